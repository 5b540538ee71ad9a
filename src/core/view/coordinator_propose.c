/* core/view/coordinator_propose.c: which command is proposed next, if any.
 *
 * In this order: a view that has failed; tasks that are finished; the base to be processed; tasks for what is
 * not covered. Finished and failed tasks are true whatever else has changed, so these commands name no
 * versions; the other two are decided on what was looked at. */
#include <string.h>

#include "base/alloc.h"
#include "core/view/coordinator_impl.h"

#define TURN_SHARE 8 /* another base takes its turn when it has an eighth of the work */

bool collect_finished(struct coordinator *c, uint64_t id)
{
    void *value;
    bool is_new;
    if (c->finished_count == c->finished_room) {
        size_t room = c->finished_room ? c->finished_room * 2 : 64;
        uint64_t *more =
            mem_resize(c->options.allocator, c->finished, c->finished_room * sizeof *more, room * sizeof *more);
        if (!more)
            return false;
        c->finished = more;
        c->finished_room = room;
    }
    if (map_put_u64(&c->finished_set, id, &value, &is_new) != PAWL_OK)
        return false;
    if (!is_new)
        return true;
    if (c->finished_count == c->finished_proposed)
        c->finished_since = coordinator_now(c);
    c->finished[c->finished_count++] = id;
    return true;
}

void forget_finished(struct coordinator *c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        map_remove_u64(&c->finished_set, c->finished[i]);
    c->finished_count -= count;
    memmove(c->finished, c->finished + count, c->finished_count * sizeof *c->finished);
    c->finished_proposed = 0;
}

static int encode(struct coordinator *c, const struct group0_command *command, pawl_bytes *ret_command)
{
    int status = group0_view_encode(command, &c->command, ret_command);
    if (status == PAWL_OK)
        c->proposing = command->kind;
    return status;
}

void forget_failure(struct coordinator *c)
{
    c->failure_count--;
    memmove(c->failures, c->failures + 1, c->failure_count * sizeof c->failures[0]);
}

static int propose_failed(struct coordinator *c, pawl_bytes *ret_command)
{
    const struct failure *f = &c->failures[0];
    struct group0_command command = {
        .kind = GROUP0_FAILED,
        .guard.term = c->options.term,
        .table = f->view,
        .words = {f->words.text, strlen(f->words.text)},
    };
    return encode(c, &command, ret_command);
}

/* Those that are aborted or gone by now are forgotten: group0 would leave them alone. */
static int propose_finished(struct coordinator *c, const struct building *b, pawl_bytes *ret_command)
{
    size_t count = c->finished_count < PROPOSE_MAX ? c->finished_count : PROPOSE_MAX;
    uint64_t *ids = arena_take(&c->command, count * sizeof *ids);
    if (!ids)
        return PAWL_ENOMEM;
    size_t alive = 0;
    struct task task;
    for (size_t i = 0; i < count; i++)
        if (tasks_find(&b->tasks, c->finished[i], &task) == PAWL_OK && !task.aborted)
            ids[alive++] = c->finished[i];
    if (alive == 0) {
        forget_finished(c, count);
        return PAWL_OK;
    }
    struct group0_command command = {
        .kind = GROUP0_FINISHED,
        .guard.term = c->options.term,
        .ids = ids,
        .id_count = alive,
    };
    int status = encode(c, &command, ret_command);
    if (status == PAWL_OK)
        c->finished_proposed = count;
    return status;
}

/* What a base has to do that may be done now. Work is counted in rows, as the replicas told them: a huge base has as
 * many tasks as a small one. If they did not, it is counted in tasks. At any moment all bases are counted alike, else
 * two could take turns for ever. */
struct base_work {
    uint32_t base;
    bool builds;   /* build_range is among it */
    uint64_t left; /* tasks, or rows */
};

/* Whether a replica that is there has not said yet how many rows it lacks. One that was lost is not waited for. */
static bool answers_are_awaited(const struct coordinator *c)
{
    uint64_t now = coordinator_now(c);
    for (size_t i = 0; i < c->contact_count; i++) {
        const struct contact *contact = &c->contacts[i];
        if (!contact->told && (contact->asked || now >= contact->ask_from))
            return true;
    }
    return false;
}

static bool count_rows(const struct coordinator *c, uint32_t base, uint64_t *ret_rows)
{
    bool known = false;
    uint64_t sum = 0, rows;
    for (size_t i = 0; i < c->contact_count; i++) {
        if (!contact_rows(&c->contacts[i], base, &rows))
            continue;
        known = true;
        sum = rows > UINT64_MAX - sum ? UINT64_MAX : sum + rows;
    }
    *ret_rows = sum;
    return known;
}

/* Count the work in rows, if they are known of all bases. */
static void weigh_bases(const struct coordinator *c, struct base_work *works, size_t count)
{
    uint64_t rows;
    for (size_t i = 0; i < count; i++)
        if (!count_rows(c, works[i].base, &rows))
            return;
    for (size_t i = 0; i < count; i++)
        (void)count_rows(c, works[i].base, &works[i].left);
}

/* Returns NULL when there is no memory. */
static struct base_work *sum_bases(struct coordinator *c, const struct building *b, size_t *ret_count)
{
    struct base_work *works = arena_take(&c->scratch, b->tasks.count * sizeof *works);
    size_t count = 0, at = 0;
    for (size_t i = 0; works && i < b->tasks.count; i++) {
        const struct task_group *g = &b->tasks.groups[i];
        if (g->left == g->aborted_count || !view_is_open(b, g->view))
            continue;
        if (at >= count || works[at].base != g->base)
            for (at = 0; at < count && works[at].base != g->base; at++)
                ;
        if (at == count)
            works[count++] = (struct base_work){.base = g->base};
        works[at].left += g->left - g->aborted_count;
        works[at].builds = works[at].builds || g->type == TASK_BUILD_RANGE;
    }
    *ret_count = count;
    return works;
}

static bool comes_first(const struct base_work *a, const struct base_work *b)
{
    if (a->builds != b->builds)
        return !a->builds;
    return a->left != b->left ? a->left < b->left : a->base < b->base;
}

static bool takes_turn(const struct base_work *other, const struct base_work *present)
{
    return other->left <= present->left / TURN_SHARE && other->left < present->left;
}

static int propose_base(struct coordinator *c, const struct building *b, pawl_bytes *ret_command)
{
    size_t count;
    struct base_work *works = sum_bases(c, b, &count);
    if (!works)
        return PAWL_ENOMEM;
    const struct base_work *best = NULL, *present = NULL;
    bool awaited = answers_are_awaited(c);
    if (!awaited)
        weigh_bases(c, works, count);
    for (size_t i = 0; i < count; i++)
        if (works[i].base == b->processing)
            present = &works[i];
    for (size_t i = 0; i < count; i++)
        if ((!present || takes_turn(&works[i], present)) && (!best || comes_first(&works[i], best)))
            best = &works[i];
    if (present && awaited)
        best = NULL;
    c->base_decided = !best;
    c->base_version = b->views_version;
    if (!best)
        return PAWL_OK;
    struct group0_command command = {
        .kind = GROUP0_BASE,
        .guard = {.term = c->options.term, .views_version = b->views_version},
        .table = best->base,
    };
    c->proposed_base = b->processing;
    return encode(c, &command, ret_command);
}

/* *hint: the group that had the task before this one. */
static bool has_task(const struct building *b, const struct uncovered *u, size_t *hint, uint32_t *looks)
{
    const struct tasks *tasks = &b->tasks;
    for (size_t n = 0; n < tasks->count; n++) {
        size_t i = (*hint + n) % tasks->count;
        const struct task_group *g = &tasks->groups[i];
        *looks -= *looks > 0;
        if (g->view != u->view || u->tablet >= g->tablets || task_group_next(g, u->tablet) != u->tablet)
            continue;
        *hint = i;
        return true;
    }
    return false;
}

/* A view that has failed gets no tasks: it waits for somebody to rebuild it. */
static bool lacks_task(const struct building *b, const struct uncovered *u, size_t *hint, uint32_t *looks)
{
    const struct view_entry *entry = b->views ? view_list_by_table(b->views, u->view) : NULL;
    return entry && entry->progress != VIEW_FAILED && u->tablet < b->map.tablets
           && !has_task(b, u, hint, looks);
}

/* What was answered is gone through again from its beginning. */
void propose_tasks_again(struct coordinator *c)
{
    for (size_t i = 0; i < c->contact_count; i++)
        c->contacts[i].uncovered_at = 0;
}

static int propose_tasks(struct coordinator *c, const struct building *b, uint32_t *looks,
                         pawl_bytes *ret_command)
{
    struct uncovered *missing = NULL;
    size_t count = 0, hint = 0;
    for (size_t i = 0; i < c->contact_count; i++) {
        struct contact *contact = &c->contacts[i];
        while (contact->uncovered_at<contact->uncovered_count && * looks> 0 && count < PROPOSE_MAX) {
            const struct uncovered *u = &contact->uncovered[contact->uncovered_at];
            if (!missing)
                missing = arena_take(&c->command, PROPOSE_MAX * sizeof *missing);
            if (!missing)
                return PAWL_ENOMEM;
            *looks -= 1;
            if (lacks_task(b, u, &hint, looks))
                missing[count++] = *u;
            contact->uncovered_at++;
        }
        c->more = c->more || contact->uncovered_at < contact->uncovered_count;
    }
    for (size_t i = 0; i < c->contact_count && count == 0; i++)
        if (c->contacts[i].uncovered_at == c->contacts[i].uncovered_count)
            contact_forget_uncovered(&c->contacts[i]);
    if (count == 0)
        return PAWL_OK;
    struct group0_command command = {
        .kind = GROUP0_TASKS,
        .guard = {c->options.term, b->map_version, b->views_version},
        .uncovered = missing,
        .uncovered_count = count,
    };
    int status = encode(c, &command, ret_command);
    if (status != PAWL_OK)
        propose_tasks_again(c);
    return status;
}

static bool finished_is_due(const struct coordinator *c)
{
    return c->finished_count >= PROPOSE_MAX
           || (c->finished_count > 0 && coordinator_now(c) >= c->finished_since + c->options.collect);
}

int coordinator_last_words(struct coordinator *c, pawl_bytes *ret_command)
{
    *ret_command = (pawl_bytes){0};
    if (c->finished_count == 0 || c->proposing)
        return PAWL_OK;
    c->proposing = GROUP0_FINISHED; /* for good: no step may use the memory of the command again */
    arena_reset(&c->command);
    struct group0_command command = {
        .kind = GROUP0_FINISHED,
        .guard = {.term = c->options.term},
        .ids = c->finished,
        .id_count = c->finished_count < PROPOSE_MAX ? c->finished_count : PROPOSE_MAX,
    };
    return group0_view_encode(&command, &c->command, ret_command);
}

int propose_next(struct coordinator *c, const struct building *b, uint32_t *looks, pawl_bytes *ret_command)
{
    int status = PAWL_OK;
    *ret_command = (pawl_bytes){0};
    if (c->proposing || coordinator_now(c) < c->propose_from) /* O4 */
        return PAWL_OK;
    arena_reset(&c->command);
    arena_reset(&c->scratch);
    while (c->failure_count > 0 && !(b->views && view_list_by_table(b->views, c->failures[0].view)))
        forget_failure(c); /* it was dropped meanwhile */
    if (c->failure_count > 0)
        return propose_failed(c, ret_command);
    if (finished_is_due(c))
        status = propose_finished(c, b, ret_command);
    if (status != PAWL_OK || c->proposing || b->map.resize_to != 0)
        return status;
    if (!b->paused && !(c->base_decided && c->base_version == b->views_version))
        status = propose_base(c, b, ret_command);
    if (status == PAWL_OK && !c->proposing)
        status = propose_tasks(c, b, looks, ret_command);
    return status;
}
