#include "core/view/coordinator.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/heap.h"
#include "core/view/coordinator_impl.h"

#define ARENA_CHUNK ((size_t)64 * 1024)

const struct coordinator_figures *coordinator_figures(const struct coordinator *c)
{
    return &c->figures;
}

uint64_t coordinator_now(const struct coordinator *c)
{
    return pawl_env_now(c->options.env).ns;
}

/* All that comes before the loop's next turn is one step. */
void coordinator_wake(struct coordinator *c)
{
    pawl_env_after(c->options.env, &c->timer, 0);
}

void coordinator_changed(struct coordinator *c)
{
    coordinator_wake(c);
}

void coordinator_covered(struct coordinator *c)
{
    for (size_t i = 0; i < c->contact_count; i++)
        if (c->contacts[i].state == CONTACT_WAITING && c->contacts[i].error.code == PAWL_OK)
            c->contacts[i].state = CONTACT_IDLE;
    coordinator_wake(c);
}

bool coordinator_trouble(const struct coordinator *c, uint32_t view, pawl_error *ret_error)
{
    for (size_t i = 0; i < c->contact_count; i++) {
        const struct contact *contact = &c->contacts[i];
        for (size_t k = 0; k < contact->batch.count && contact->error.code != PAWL_OK; k++) {
            if (contact->batch.views[k] != view)
                continue;
            *ret_error = contact->error;
            return true;
        }
    }
    return false;
}

/* The replicas. */

static void contacts_free(struct coordinator *c)
{
    for (size_t i = 0; i < c->contact_count; i++)
        contact_release(&c->contacts[i]);
    mem_free(c->options.allocator, c->contacts, c->contact_count * sizeof *c->contacts);
    c->contacts = NULL;
    c->contact_count = 0;
}

/* As many as the map has. The calls of those that were there are cancelled. PAWL_ENOMEM: there are none. */
static int contacts_make(struct coordinator *c, uint32_t nodes, uint32_t shards)
{
    contacts_free(c);
    size_t count = (size_t)nodes * shards;
    c->contacts = mem_new(c->options.allocator, count, sizeof *c->contacts);
    if (!c->contacts)
        return PAWL_ENOMEM;
    c->contact_count = count;
    c->nodes = nodes;
    c->shards = shards;
    bool full = true;
    for (size_t i = 0; i < count; i++) {
        struct contact *contact = &c->contacts[i];
        contact->coordinator = c;
        contact->place = (struct replica){1 + (uint32_t)(i / shards), (uint32_t)(i % shards)};
        contact->ask = true;
        contact->type = TASK_BUILD_RANGE;
        contact->batch.ids = mem_new(c->options.allocator, WORK_TASKS_MAX, sizeof *contact->batch.ids);
        contact->batch.views = mem_new(c->options.allocator, WORK_TASKS_MAX, sizeof *contact->batch.views);
        full = full && contact->batch.ids && contact->batch.views;
    }
    if (!full)
        contacts_free(c);
    return full ? PAWL_OK : PAWL_ENOMEM;
}

/* A step. */

static bool batch_is_open(const struct building *b, const struct batch *batch)
{
    if (b->paused || batch->base != b->processing)
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        const struct view_entry *entry =
            batch->views[i] && b->views ? view_list_by_table(b->views, batch->views[i]) : NULL;
        if (entry && entry->paused)
            return false;
    }
    return true;
}

/* What has changed since the last look: whom it concerns. */
static void follow(struct coordinator *c, const struct building *b)
{
    uint64_t list_version = b->views ? b->views->version : 0;
    bool listed = !c->looked || c->list_version != list_version;
    bool mapped = !c->looked || c->map_version != b->map_version;
    bool sweep = listed || mapped || c->next != b->tasks.next || c->processing != b->processing;
    for (size_t i = 0; i < c->contact_count; i++) {
        struct contact *contact = &c->contacts[i];
        if (listed || mapped) { /* what it answered was about other views, or other tablets */
            contact_forget_uncovered(contact);
            contact->told = false;
            contact->ask = true;
            contact->ask_from = 0;
        }
        if (sweep) {
            contact->type = TASK_BUILD_RANGE;
            contact->tablet = 0;
            contact->left = false;
        }
        contact->drop = contact->state == CONTACT_CALLED && c->views_version != b->views_version
                        && !batch_is_open(b, &contact->batch);
    }
    c->looked = true;
    c->list_version = list_version;
    c->map_version = b->map_version;
    c->views_version = b->views_version;
    c->next = b->tasks.next;
    c->processing = b->processing;
}

/* The replica's tablets were all gone through. What was left behind is asked about again, after a while. */
static void sweep_again(struct coordinator *c, struct contact *contact)
{
    if (contact->type != SWEEP_OVER || !contact->left)
        return;
    contact->type = TASK_BUILD_RANGE;
    contact->tablet = 0;
    contact->left = false;
    contact->state = CONTACT_WAITING;
    contact->wait_until = coordinator_now(c) + c->options.collect;
}

static void choose(struct coordinator *c, const struct building *b, uint32_t *looks)
{
    uint64_t now = coordinator_now(c);
    size_t first = c->first;
    for (size_t n = 0; n < c->contact_count; n++) {
        size_t i = (first + n) % c->contact_count;
        struct contact *contact = &c->contacts[i];
        if (contact->state == CONTACT_WAITING && now >= contact->wait_until)
            contact->state = CONTACT_IDLE;
        if (contact->state != CONTACT_IDLE)
            continue;
        if (*looks == 0) { /* the next step begins with this one */
            c->first = i;
            c->more = true;
            return;
        }
        contact->chosen = choose_batch(c, b, contact, looks);
        if (!contact->chosen)
            sweep_again(c, contact);
    }
}

static int decide(struct coordinator *c, const struct building *b, pawl_bytes *ret_command)
{
    uint32_t looks = STEP_LOOKS;
    int status = PAWL_OK;
    bool changed = !c->looked || c->views_version != b->views_version || c->map_version != b->map_version;
    if (changed)
        status = choose_groups(c, b);
    if (status != PAWL_OK)
        return status;
    follow(c, b);
    choose(c, b, &looks);
    looks = STEP_LOOKS;
    return propose_next(c, b, &looks, ret_command);
}

static void act(struct coordinator *c)
{
    uint64_t now = coordinator_now(c);
    for (size_t i = 0; i < c->contact_count; i++) {
        struct contact *contact = &c->contacts[i];
        if (contact->drop) {
            contact_drop(contact);
            c->more = true;
        }
        if (contact->chosen)
            contact_call(contact);
        if (contact->ask && !contact->asked && now >= contact->ask_from)
            contact_ask(contact);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When the next step is due by time alone. */
static void arm(struct coordinator *c)
{
    uint64_t at = UINT64_MAX, now = coordinator_now(c);
    for (size_t i = 0; i < c->contact_count; i++) {
        const struct contact *contact = &c->contacts[i];
        if (contact->state == CONTACT_WAITING)
            at = earlier(at, contact->wait_until);
        if (contact->ask && !contact->asked)
            at = earlier(at, contact->ask_from);
    }
    if (!c->proposing && c->propose_from > now)
        at = earlier(at, c->propose_from);
    else if (!c->proposing && c->finished_count > 0)
        at = earlier(at, c->finished_since + c->options.collect);
    if (c->more)
        at = now;
    if (at != UINT64_MAX)
        pawl_env_after(c->options.env, &c->timer, at > now ? at - now : 0);
}

static void step(pawl_timer *timer)
{
    struct coordinator *c = heap_entry(timer, struct coordinator, timer);
    pawl_bytes command = {0};
    c->figures.steps++;
    c->more = false;
    const struct building *b = c->options.ops->look(c->options.ctx);
    uint32_t nodes = b->map.nodes, shards = b->map.shards;
    bool fits = c->nodes == nodes && c->shards == shards && c->contacts;
    int status = fits ? decide(c, b, &command) : PAWL_OK;
    c->options.ops->looked(c->options.ctx);
    if (!fits) {
        status = contacts_make(c, nodes, shards);
        c->looked = false;
        c->more = status == PAWL_OK;
    }
    if (fits)
        act(c);
    if (status != PAWL_OK) /* no memory */
        c->propose_from = coordinator_now(c) + c->options.backoff;
    arm(c);
    if (command.size > 0) {
        c->figures.proposals++;
        c->options.ops->propose(c->options.ctx, command);
    }
}

/* What was proposed is over. */
static void applied(struct coordinator *c, enum group0_command_kind kind)
{
    if (kind == GROUP0_FINISHED) {
        c->figures.finished += c->finished_proposed;
        forget_finished(c, c->finished_proposed);
    } else if (kind == GROUP0_FAILED) {
        forget_failure(c);
    } else if (kind == GROUP0_BASE && c->proposed_base != 0) {
        c->figures.turns++;
    }
}

void coordinator_proposed(struct coordinator *c, int status)
{
    assert(c->proposing);
    enum group0_command_kind kind = c->proposing;
    c->proposing = 0;
    if (status == PAWL_OK) {
        applied(c, kind);
    } else {
        c->finished_proposed = 0;
        c->base_decided = false;
        if (kind == GROUP0_TASKS)
            propose_tasks_again(c);
    }
    if (status == PAWL_ECONFLICT)
        c->figures.conflicts++;
    else if (status != PAWL_OK)
        c->propose_from = coordinator_now(c) + c->options.backoff;
    coordinator_wake(c);
}

int coordinator_new(const struct coordinator_options *options, struct coordinator **ret_coordinator)
{
    struct coordinator *c = mem_new(options->allocator, 1, sizeof *c);
    if (!c)
        return PAWL_ENOMEM;
    c->options = *options;
    c->options.collect = options->collect ? options->collect : 200 * PAWL_MILLISECOND;
    c->options.backoff = options->backoff ? options->backoff : PAWL_SECOND;
    c->options.timeout = options->timeout ? options->timeout : 10 * PAWL_SECOND;
    c->timer.fn = step;
    map_init(&c->finished_set, options->allocator, sizeof(uint64_t), 0, COLLECTED_MAX);
    arena_init(&c->command, options->allocator, ARENA_CHUNK);
    arena_init(&c->scratch, options->allocator, ARENA_CHUNK);
    coordinator_wake(c);
    *ret_coordinator = c;
    return PAWL_OK;
}

void coordinator_free(struct coordinator *c)
{
    if (!c)
        return;
    pawl_env_cancel(c->options.env, &c->timer);
    contacts_free(c);
    mem_free(c->options.allocator, c->open, c->open_room * sizeof *c->open);
    mem_free(c->options.allocator, c->finished, c->finished_room * sizeof *c->finished);
    map_release(&c->finished_set);
    arena_release(&c->command);
    arena_release(&c->scratch);
    mem_free(c->options.allocator, c, sizeof *c);
}
