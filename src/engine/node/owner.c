#include "engine/node/owner.h"

#include "base/error.h"
#include "base/heap.h"
#include "engine/log/log.h"
#include "engine/node/node.h"

#define ATTEMPTS     8
#define PAUSE        (100 * PAWL_MILLISECOND)
#define FOLLOW_AGAIN PAWL_SECOND
#define ARENA_CHUNK  ((size_t)1024)

/* --- opening --- */

static int write_assignment(pawl_engine *e, pawl_error *error)
{
    struct arena arena;
    struct assignment mine = {.node = e->file.node, .time = pawl_env_wall_now(e->env).ns};
    pawl_bytes command;
    mine.name_size = name_directory(e->dir, mine.name);
    arena_init(&arena, e->options.allocator, ARENA_CHUNK);
    int status = group0_assign_encode(&mine, &arena, &command);
    if (status == PAWL_OK)
        status = engine_group0_write(e, command, error);
    else
        error_set(error, status, "no memory for an assignment");
    arena_release(&arena);
    return status;
}

static int refuse(const struct assignment *present, pawl_error *error)
{
    char text[ASSIGNMENT_TEXT_MAX];
    assignment_describe(present, text);
    return error_set(
        error, PAWL_EFENCED,
        "its log belongs to %s; if that node is gone, open it with take_over ('pawl serve --take-over')", text);
}

#define NOT_SEEN UINT64_MAX

/* first: the position of the assignment that was there at the first look, or NOT_SEEN. PAWL_EFENCED: it is another
 * node's, *refused; or somebody else wrote meanwhile: look again. */
static int try_once(pawl_engine *e, uint64_t *first, bool *refused, pawl_error *error)
{
    int status = engine_group0_read(e, error); /* nothing is claimed: a node that is refused disturbs nobody */
    /* Behind the reading: an import claims before it copies anything, so an assignment that it has copied is not
     * taken for one of this cluster. */
    if (status == PAWL_OK)
        status = import_check(e->kafka, e->file.log, error);
    if (status != PAWL_OK)
        return status;
    const struct assignment present = *group0_assignment(e->group0);
    *first = *first == NOT_SEEN ? present.position : *first;
    bool take_over = e->options.take_over && present.position == *first;
    enum assignment_step step = assignment_decide(&present, e->file.node, take_over);
    *refused = step == ASSIGNMENT_REFUSE;
    if (*refused)
        return refuse(&present, error);
    e->assignment = present.position;
    status = engine_group0_claim(e, error);
    if (status != PAWL_OK)
        return status;
    /* An import may have begun before this claim. If one claims group0 from here on, either the assignment does not count,
     * or it comes before that claim, and then no import has begun (core/group0/import.h). */
    if (present.position == 0)
        status = import_check(e->kafka, e->file.log, error);
    if (status != PAWL_OK)
        return status;
    if (group0_assignment(e->group0)->position != present.position)
        return error_set(error, PAWL_EFENCED, "another node was assigned meanwhile");
    if (step == ASSIGNMENT_CLAIM)
        return PAWL_OK;
    status = write_assignment(e, error);
    if (status != PAWL_OK)
        return status;
    e->assignment = group0_assignment(e->group0)->position;
    return engine_group0_claim(e, error);
}

static void pause_before(pawl_engine *e, unsigned attempt)
{
    struct latch never;
    latch_init(&never);
    pawl_duration jitter = pawl_env_random(e->env) % PAUSE;
    (void)latch_wait_until(&never, engine_deadline(e, attempt * PAUSE + jitter));
}

/* Only what was there at first is taken over, and as often as it takes: a claim may be lost, or come behind one of the
 * present owner. A node that has taken over meanwhile keeps it. */
int owner_open(pawl_engine *e, pawl_error *error)
{
    uint64_t first = NOT_SEEN;
    int status = PAWL_OK;
    bool refused = false;
    for (unsigned attempt = 0; attempt < ATTEMPTS && !refused; attempt++) {
        if (attempt > 0)
            pause_before(e, attempt);
        status = try_once(e, &first, &refused, error);
        if (status != PAWL_EFENCED && status != PAWL_EUNKNOWN)
            return status;
    }
    return status;
}

/* --- losing it --- */

static void lose(pawl_engine *e, const struct assignment *to)
{
    char text[ASSIGNMENT_TEXT_MAX];
    struct owner_watch *o = &e->owner;
    pthread_mutex_lock(&o->lock);
    if (to) {
        assignment_describe(to, text);
        error_set(&o->words, PAWL_EFENCED, "%s has taken over the log of this node", text);
    } else if (o->words.code == PAWL_OK) {
        error_set(&o->words, PAWL_EFENCED,
                  "another process writes to the log of this node: it has taken over, or works on a copy of %s",
                  e->dir);
    }
    pthread_mutex_unlock(&o->lock);
    if (!atomic_exchange_explicit(&o->lost, true, memory_order_acq_rel))
        for (uint32_t i = 0; i < e->file.shards; i++)
            shard_give_up_soon(&e->shards[i]);
}

int owner_check(const pawl_engine *e, pawl_error *error)
{
    const struct owner_watch *o = &e->owner;
    if (!atomic_load_explicit(&o->lost, memory_order_acquire))
        return PAWL_OK;
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&o->lock; /* nothing else is changed */
    pthread_mutex_lock(lock);
    int status = error_set(error, PAWL_EFENCED, "%s", o->words.text);
    pthread_mutex_unlock(lock);
    return status;
}

int pawl_owner_check(pawl_engine *e, pawl_error *error)
{
    return owner_check(e, error);
}

static pawl_engine *engine_of(struct owner_watch *o)
{
    return heap_entry(o, pawl_engine, owner);
}

/* An entry of group0: does it assign the log to another? */
static void look_at(pawl_engine *e, const pawl_entry *entry)
{
    struct group0_command command;
    struct arena arena;
    if (entry->body.size < 2 || ((const uint8_t *)entry->body.data)[1] != GROUP0_ASSIGN)
        return;
    arena_init(&arena, e->options.allocator, ARENA_CHUNK);
    if (group0_command_decode(entry->body, &arena, &command, NULL) == PAWL_OK
        && command.assignment.node != e->file.node)
        lose(e, &command.assignment);
    arena_release(&arena);
}

static void tell_ended(struct owner_watch *o)
{
    if (o->ended && !o->following && !o->reading)
        latch_set(o->ended);
}

/* --- asking group0 who it was: a rival's claim does not name its node --- */

static bool visit_asked(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    (void)place;
    look_at(engine_of(read->arg), entry);
    return true;
}

static void answered(pawl_read *read)
{
    struct owner_watch *o = read->arg;
    o->reading = false;
    lose(engine_of(o), NULL); /* unless it is known by now */
    tell_ended(o);
}

static void ask(pawl_task *task)
{
    struct owner_watch *o = heap_entry(task, struct owner_watch, ask);
    if (o->closing)
        return;
    o->read = (pawl_read){.stream = {.kind = PAWL_STREAM_GROUP0},
                          .from = o->from,
                          .limit = UINT64_MAX,
                          .visit = visit_asked,
                          .done = answered,
                          .arg = o};
    o->reading = o->from > 0 && pawl_log_read(engine_of(o)->log, &o->read) == PAWL_OK;
    if (!o->reading)
        lose(engine_of(o), NULL);
}

void owner_lose(pawl_engine *e)
{
    if (atomic_exchange(&e->owner.asked, true))
        return;
    e->owner.ask.fn = ask;
    (void)pawl_env_post(e->env, 0, &e->owner.ask); /* refused only when the env is closed */
}

/* --- following group0 --- */

static bool visit(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    struct owner_watch *o = follow->arg;
    (void)place;
    o->from = entry->offset + 1;
    look_at(engine_of(o), entry);
    return true;
}

static void start(struct owner_watch *o);

static void ended(pawl_follow *follow)
{
    struct owner_watch *o = follow->arg;
    o->following = false;
    tell_ended(o);
    if (!o->closing)
        pawl_env_after(engine_of(o)->env, &o->again, FOLLOW_AGAIN);
}

static void follow_again(pawl_timer *timer)
{
    start(heap_entry(timer, struct owner_watch, again));
}

/* It may fail: then the node learns of another one when it writes. */
static void start(struct owner_watch *o)
{
    pawl_engine *e = engine_of(o);
    o->follow = (pawl_follow){
        .stream = {.kind = PAWL_STREAM_GROUP0}, .from = o->from, .visit = visit, .done = ended, .arg = o};
    o->again.fn = follow_again;
    o->following = pawl_log_follow(e->log, &o->follow) == PAWL_OK;
    if (!o->following)
        pawl_env_after(e->env, &o->again, FOLLOW_AGAIN);
}

static void start_here(void *arg)
{
    start(arg);
}

void owner_follow(pawl_engine *e)
{
    e->owner.from = group0_position(e->group0) + 1;
    (void)pawl_env_call(e->env, 0, start_here, &e->owner);
}

struct stopping {
    struct owner_watch *watch;
    struct latch latch;
    bool wait;
};

static void stop_here(void *arg)
{
    struct stopping *s = arg;
    struct owner_watch *o = s->watch;
    o->closing = true;
    pawl_env_cancel(engine_of(o)->env, &o->again);
    s->wait = o->following || o->reading;
    if (!s->wait)
        return;
    o->ended = &s->latch;
    if (o->following)
        (void)pawl_log_unfollow(engine_of(o)->log, &o->follow); /* PAWL_EMISUSE: it ends by itself */
}

void owner_close(pawl_engine *e)
{
    struct stopping stopping = {.watch = &e->owner};
    if (e->owner.from == 0) /* nothing was followed */
        return;
    latch_init(&stopping.latch);
    (void)pawl_env_call(e->env, 0, stop_here, &stopping);
    if (stopping.wait)
        latch_wait(&stopping.latch);
}
