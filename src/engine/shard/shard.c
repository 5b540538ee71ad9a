/* engine/shard/shard.c: a shard's mailbox and its partitions.
 *
 * A caller pushes its request and posts the shard's task. The task takes all requests that are there, hands
 * each command to its partition's processor, and runs every processor that got one once. So commands that came
 * together go to the log as one append (turn_appends.h), and are synced together.
 *
 * While the log syncs one group, the next one gathers in the mailbox: otherwise each command that comes would begin a
 * group of its own, and most of a shard's time would go into groups. A mailbox that has many is not held any longer;
 * then there is enough work to do while the disk works. A command that finds nothing under way is not held. */
#include <assert.h>

#include "adapter/lmdb/store.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/sequence/storage.h"
#include "engine/node/node.h"

#define HOLD_DEFAULT (10 * PAWL_SECOND)
#define DRAIN_MAX    1024 /* commands in one turn: the loop has other work too */
#define ALONE_MAX    16   /* entries that a shard's thread syncs itself */
#define GATHER_TIME  (20 * PAWL_MILLISECOND)

static uint16_t call_partition(const pawl_request *r)
{
    return partition_of(hash_token(r->request.wsid), r->engine->file.partitions);
}

/* The log has this event now: it counts for the lag of the checkpoint. */
static void see(struct shard *shard, struct partition *partition, uint64_t offset)
{
    if (offset <= partition->seen)
        return;
    uint64_t seen = atomic_load(&shard->seen) + offset - partition->seen;
    partition->seen = offset;
    atomic_store(&shard->seen, seen);
    if (shard->checkpointer)
        checkpointer_seen(shard->checkpointer, seen);
}

static bool has_room(const struct shard *shard)
{
    return !shard->checkpointer
           || checkpointer_has_room(shard->checkpointer, atomic_load(&shard->seen), shard->outstanding);
}

void shard_wake_callers(pawl_task *task)
{
    wake_group_wake(&heap_entry(task, struct shard, wake_callers)->callers);
}

/* Wake the callers after all requests that are being answered now. */
static void wake_soon(struct shard *shard)
{
    if (pawl_env_post(shard->engine->env, shard->index, &shard->wake_callers) != PAWL_OK)
        wake_group_wake(&shard->callers);
}

static void count(struct shard *shard, const pawl_request *r, int status, bool repeated)
{
    pawl_instant now = pawl_env_now(shard->engine->env);
    _Atomic uint64_t *counter = repeated ? &shard->repeated : &shard->answered;
    if (status < 0)
        counter = &shard->failed[-status < PAWL_OUTCOMES_MAX ? -status : 0];
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    histogram_add(&shard->latency, now, now.ns > r->sent.ns ? now.ns - r->sent.ns : 0);
}

static void finished(struct call *call)
{
    pawl_request *r = heap_entry(call, pawl_request, call);
    struct shard *shard = r->shard;
    shard->outstanding--;
    shard->thread->outstanding--;
    if (shard->holding)
        (void)pawl_env_post(shard->engine->env, shard->index, &shard->drain);
    int status = call->status;
    if (status == PAWL_OK) {
        see(shard, &shard->engine->partitions[call_partition(r)], call->offset);
        arena_reset(&r->answered);
        r->body = arena_copy(&r->answered, call->body);
        if (!r->body.data)
            status = error_set(&r->error, PAWL_ENOMEM, "no memory for the answer; the command took effect");
        else
            r->answer = (pawl_answer){.partition = call_partition(r),
                                      .offset = call->offset,
                                      .workspace_offset = call->workspace_offset,
                                      .repeated = call->repeated};
    }
    count(shard, r, status, call->repeated);
    if (!r->done) {
        call->status = status;
        if (wake_group_answer(&shard->callers,
                              &r->waiter)) /* from here on the request belongs to its caller again */
            wake_soon(shard);
        return;
    }
    r->done(r->arg, r, status, &r->answer, &r->error);
}

static void take(struct shard *shard, pawl_request *r)
{
    pawl_engine *engine = shard->engine;
    struct partition *partition = &engine->partitions[call_partition(r)];
    r->call.done = finished;
    r->call.request = &r->request;
    r->call.ack = r->ack;
    r->call.error = &r->error;
    shard->outstanding++;
    shard->thread->outstanding++;
    int status = processor_submit(partition->processor, &r->call);
    if (status != PAWL_OK) {
        r->call.status = status;
        r->call.body = (pawl_bytes){0};
        finished(&r->call);
        return;
    }
    partition->touched = true;
}

static void refuse_all(struct shard *shard, int status)
{
    pawl_request *r;
    while (mpsc_pop(&shard->mailbox, &r)) {
        shard->outstanding++;
        shard->thread->outstanding++;
        r->call.status = status;
        r->call.body = (pawl_bytes){0};
        pawl_error why;
        if (status == PAWL_ECLOSED)
            error_set(&r->error, status, "the engine is being closed");
        else if (checkpointer_error(shard->checkpointer, &why))
            error_set(&r->error, status, "the checkpoint of shard %u cannot be written: %s", shard->index,
                      why.text);
        else
            error_set(&r->error, status, "the checkpoint of shard %u is too far behind", shard->index);
        finished(&r->call);
    }
}

static void held_too_long(pawl_timer *timer)
{
    struct shard *shard = heap_entry(timer, struct shard, hold);
    shard->refusing = true;
    refuse_all(shard, PAWL_EBUSY);
}

/* The checkpoint is as far behind as it may be: commands stay in the mailbox until it has come on. Set hurry
 * first, then check for room again. The checkpointer makes room first, then reads hurry. So one of the two
 * always sees the other. */
static bool hold(struct shard *shard)
{
    if (!shard->holding) {
        shard->holding = true;
        atomic_fetch_add(&shard->held, 1);
        shard->hold.fn = held_too_long;
        pawl_duration wait = shard->engine->options.wait;
        pawl_env_after(shard->engine->env, &shard->hold, wait ? wait : HOLD_DEFAULT);
        checkpointer_hurry(shard->checkpointer, true);
        if (has_room(shard))
            return false;
    }
    if (shard->refusing)
        refuse_all(shard, PAWL_EBUSY);
    return true;
}

static void hold_no_more(struct shard *shard)
{
    shard->holding = shard->refusing = false;
    pawl_env_cancel(shard->engine->env, &shard->hold);
    checkpointer_hurry(shard->checkpointer, false);
}

/* Whether the thread would only wait for the append that it is about to send, because nobody else has asked for anything.
 * Then it writes and syncs itself, which saves two switches between threads; unless there are so many entries that putting
 * their rows meanwhile saves more (applier.h). Not while the log has something to answer, though its commands may have been
 * answered as late: its outcome must come first (W4). */
static bool has_nothing_else(const struct shard_thread *thread)
{
    size_t kept = turn_appends_kept(&thread->appends);
    bool waits = kept <= ALONE_MAX && kept == thread->outstanding && !turn_appends_under_way(&thread->appends);
    for (const struct shard *shard = thread->first; shard && waits; shard = shard->sibling)
        waits = !shard->applier.first && mpsc_count(&shard->mailbox) == 0;
    return waits;
}

/* The end of a turn, on the thread's first shard. What it has synced itself is applied before anything else that has come
 * meanwhile. */
static void send_kept(void *arg)
{
    struct shard_thread *thread = arg;
    bool alone = has_nothing_else(thread);
    turn_appends_send(&thread->appends, alone);
    for (struct shard *shard = thread->first; alone && shard; shard = shard->sibling)
        applier_run(&shard->applier);
}

/* Whether another shard on the thread has commands: then its turn comes next. */
static bool has_more(const struct shard *shard)
{
    for (struct shard *other = shard->thread->first; other; other = other->sibling)
        if (other != shard && mpsc_count(&other->mailbox) > 0)
            return true;
    return false;
}

/* A log that does not answer keeps commands waiting no longer than this: a processor that has them watches their deadlines
 * (core/command/late.c). The timer is set when commands begin to gather and it does not run. So a shard that is busy sets
 * it once in that while, and what it breaks then is one group of many. */
static void gathered_too_long(pawl_timer *timer)
{
    struct shard *shard = heap_entry(timer, struct shard, patience);
    shard->patient = false;
    if (!atomic_load_explicit(&shard->gathering, memory_order_relaxed))
        return;
    shard->goes_along = true;
    (void)pawl_env_post(shard->engine->env, shard->index, &shard->drain);
}

static void be_patient(struct shard *shard)
{
    if (shard->patient)
        return;
    pawl_duration most = shard->engine->knobs.gather_time;
    shard->patient = true;
    shard->patience.fn = gathered_too_long;
    pawl_env_after(shard->engine->env, &shard->patience, most ? most : GATHER_TIME);
}

/* Whether the mailbox is left alone until the log has answered. Whoever puts a command into it meanwhile does not wake the
 * shard, unless many have come (shard_wake). */
static bool gather(struct shard *shard)
{
    bool holds = shard->gathers && !shard->goes_along && turn_appends_under_way(&shard->thread->appends)
                 && mpsc_count(&shard->mailbox) < shard->gather_max;
    shard->goes_along = false;
    if (holds && !atomic_load_explicit(&shard->gathering, memory_order_relaxed))
        atomic_store(&shard->came, 0);
    if (holds)
        be_patient(shard);
    atomic_store(&shard->gathering, holds);
    atomic_thread_fence(memory_order_seq_cst); /* as in shard_wake */
    return holds;
}

/* What this shard sends takes along what gathers at the others on its thread. Otherwise they would wait for as long as this
 * one has so many commands that the log never has nothing to answer. */
static void take_along(const struct shard *shard)
{
    for (struct shard *other = shard->thread->first; other; other = other->sibling)
        if (other != shard && mpsc_count(&other->mailbox) > 0
            && atomic_load_explicit(&other->gathering, memory_order_relaxed)) {
            other->goes_along = true;
            (void)pawl_env_post(shard->engine->env, other->index, &other->drain);
        }
}

/* The log has answered all. The applier's turn is asked for already: those who wait are answered first. */
static void gathered(void *arg)
{
    struct shard_thread *thread = arg;
    for (struct shard *shard = thread->first; shard; shard = shard->sibling)
        if (atomic_load_explicit(&shard->gathering, memory_order_relaxed))
            (void)pawl_env_post(shard->engine->env, shard->index, &shard->drain);
}

/* Any thread, after it has put a command into the mailbox. Either it sees that the shard gathers no more, and wakes it; or
 * the shard, which looks into the mailbox after it has said so, sees the command. */
void shard_wake(struct shard *shard)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&shard->gathering, memory_order_relaxed)
        && atomic_fetch_add(&shard->came, 1) + 1 != shard->gather_max)
        return;
    /* A post is refused only after close has begun, and by then callers must have stopped. */
    (void)pawl_env_post(shard->engine->env, shard->index, &shard->drain);
}

void shard_drain(pawl_task *task)
{
    struct shard *shard = heap_entry(task, struct shard, drain);
    pawl_engine *engine = shard->engine;
    pawl_request *request;
    size_t taken = 0;
    if (shard->closed) {
        refuse_all(shard, PAWL_ECLOSED);
        return;
    }
    if (gather(shard))
        return;
    take_along(shard);
    while (taken < DRAIN_MAX && (has_room(shard) || !hold(shard))) {
        if (shard->holding)
            hold_no_more(shard);
        if (!mpsc_pop(&shard->mailbox, &request))
            break;
        take(shard, request);
        taken++;
    }
    for (size_t i = 0; taken > 0 && i < shard->partitions.count; i++) {
        struct partition *partition = shard_partition(shard, i);
        if (!partition->touched)
            continue;
        partition->touched = false;
        processor_run(partition->processor);
    }
    wake_group_next(&shard->callers);
    /* The thread's first shard sends at once (turn_appends.h: C4). Else what is kept goes with what comes, at the turn's
     * end. */
    if (shard->gathers && shard == shard->thread->first && !has_more(shard))
        send_kept(shard->thread);
    if (taken == DRAIN_MAX)
        (void)pawl_env_post(engine->env, shard->index, &shard->drain);
}

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    return engine_schema_at(ctx, position);
}

/* Notify at the loop's next turn: callers that wait for an answer go first. */
static void notify_lanes_later(struct shard *shard, struct partition *partition)
{
    if (!partition->lanes || partition->notifying)
        return;
    partition->notifying = true;
    partition->to_notify = shard->to_notify;
    shard->to_notify = partition;
    (void)pawl_env_post(shard->engine->env, shard->index, &shard->notify);
}

void shard_notify_lanes(pawl_task *task)
{
    struct shard *shard = heap_entry(task, struct shard, notify);
    while (shard->to_notify) {
        struct partition *partition = shard->to_notify;
        shard->to_notify = partition->to_notify;
        partition->notifying = false;
        uint64_t offset = atomic_load_explicit(&partition->offset, memory_order_relaxed);
        lanes_applied(partition, offset);
    }
}

static void applied(void *ctx, uint16_t number, uint64_t offset)
{
    pawl_engine *engine = ctx;
    atomic_store_explicit(&engine->partitions[number].offset, offset, memory_order_release);
    see(shard_of(engine, number), &engine->partitions[number], offset);
    shard_tell_applied(shard_of(engine, number), NULL, number, offset);
    notify_lanes_later(shard_of(engine, number), &engine->partitions[number]);
    knobs_step(&engine->knobs, "events were applied");
}

static void audit(void *ctx, const struct position *position, uint64_t offset)
{
    pawl_engine *engine = ctx;
    engine_audit(engine, AUDIT_LIVE, position, &shard_of(engine, position->partition)->views, offset);
}

/* A log that is not there, is too weak or lets nobody in stays so until somebody sees to it: whoever opens the node is
 * told. Later, when it runs, the partition tries again. */
static bool cannot_open(const struct processor *processor)
{
    int code = processor_error(processor)->code;
    return processor_state(processor) == WRITER_REFUSED
           || (processor_state(processor) == WRITER_CLAIMING
               && (code == PAWL_EINVAL || code == PAWL_EACCES || code == PAWL_ENOTFOUND));
}

/* A partition runs now, cannot run, or will need a while. Opening waits for the first report of each. */
static void changed(void *arg)
{
    struct partition *partition = arg;
    pawl_engine *engine = partition->engine;
    if (processor_state(partition->processor) == WRITER_REFUSED
        && processor_error(partition->processor)->code == PAWL_EFENCED)
        owner_lose(engine);
    if (partition->reported)
        return;
    partition->reported = true;
    int none = 0;
    if (cannot_open(partition->processor) && atomic_compare_exchange_strong(&engine->refused, &none, 1))
        engine->error = *processor_error(partition->processor);
    if (atomic_fetch_sub(&engine->opening, 1) == 1)
        latch_set(&engine->opened);
}

struct opening {
    struct shard *shard;
    pawl_error *error;
    int status;
};

static int open_partition(struct shard *shard, uint16_t number, pawl_error *error)
{
    pawl_engine *engine = shard->engine;
    struct partition *partition = &engine->partitions[number];
    partition->engine = engine;
    partition->sequences = (struct sequences){.log = engine->log,
                                              .applier = &shard->applier,
                                              .store = shard->store,
                                              .env = engine->env,
                                              .shard = shard->index,
                                              .partition = number,
                                              .tails = &shard->tails};
    struct processor_options options = {.env = engine->env,
                                        .shard = shard->index,
                                        .log = turn_appends_port(&shard->thread->appends),
                                        .store = shard->store,
                                        .applier = &shard->applier,
                                        .views = &shard->views,
                                        .partition = number,
                                        .assignment = engine->assignment,
                                        .sequences = sequences_storage(&partition->sequences),
                                        .schema = engine_schema(engine),
                                        .schema_at = schema_at,
                                        .applied = applied,
                                        .audit = shard->checkpointer ? audit : NULL,
                                        .audit_every = engine_audit_every(engine),
                                        .ctx = engine,
                                        .event_bytes_max = engine->options.event_bytes_max,
                                        .workspaces_max = engine->options.sequences.workspaces_max,
                                        .limits = engine->options.sequences,
                                        .wait = engine->options.wait,
                                        .allocator = engine->options.allocator};
    int status = processor_new(&options, &partition->processor, error);
    if (status != PAWL_OK)
        return status;
    atomic_store(&partition->offset, processor_figures(partition->processor)->offset);
    see(shard, partition, processor_figures(partition->processor)->offset);
    processor_watch(partition->processor, changed, partition);
    return PAWL_OK;
}

static void open_partitions(void *arg)
{
    struct opening *opening = arg;
    struct shard *shard = opening->shard;
    pawl_engine *engine = shard->engine;
    struct shard_thread *thread = shard->thread;
    shard->gathers = !node_is_on_kafka(&engine->file); /* a broker may take long to answer */
    if (thread->first == shard) {
        turn_appends_init(&thread->appends, engine->log, engine->env, shard->index, engine->options.allocator);
        thread->appends.idle = gathered;
        thread->appends.send = shard->gathers ? send_kept : NULL;
        thread->appends.arg = thread;
    }
    applier_init(&shard->applier, engine->env, shard->index, shard->store);
    shard->applier.works_ahead = shard->gathers;
    struct sequence_tails_options tails = {.log = engine->log,
                                           .store = shard->store,
                                           .partitions = shard->partitions,
                                           .alloc = engine->options.allocator};
    sequence_tails_init(&shard->tails, &tails);
    opening->status = views_open_shard(shard, opening->error);
    for (size_t i = 0; opening->status == PAWL_OK && i < shard->partitions.count; i++)
        opening->status = open_partition(shard, partition_set_at(&shard->partitions, i), opening->error);
}

int shard_open(struct shard *shard, pawl_error *error)
{
    struct opening opening = {.shard = shard, .error = error};
    int status = pawl_env_call(shard->engine->env, shard->index, open_partitions, &opening);
    return status == PAWL_OK ? opening.status : status;
}

void shard_give_up(pawl_task *task)
{
    struct shard *shard = heap_entry(task, struct shard, give_up);
    pawl_error error = {0};
    (void)owner_check(shard->engine, &error);
    for (size_t i = 0; !shard->closed && i < shard->partitions.count; i++) {
        struct partition *partition = shard_partition(shard, i);
        lanes_give_up(partition, error.text);
        if (partition->processor)
            processor_give_up(partition->processor, error.text);
    }
}

void shard_give_up_soon(struct shard *shard)
{
    (void)pawl_env_post(shard->engine->env, shard->index, &shard->give_up); /* refused only when it is closed */
}

static void partition_closed(void *arg)
{
    struct partition *partition = arg;
    if (atomic_fetch_sub(&partition->engine->open, 1) == 1)
        latch_set(&partition->engine->closed);
}

static void close_partitions(void *arg)
{
    struct shard *shard = arg;
    for (size_t i = 0; i < shard->partitions.count; i++) {
        struct partition *partition = shard_partition(shard, i);
        if (partition->processor)
            processor_close(partition->processor, partition_closed, partition);
    }
    shard->closed = true;
    pawl_env_cancel(shard->engine->env, &shard->hold);
    pawl_env_cancel(shard->engine->env, &shard->patience);
    atomic_store(&shard->gathering, false);
    atomic_thread_fence(memory_order_seq_cst); /* as in shard_wake: whoever comes now wakes the shard */
    refuse_all(shard, PAWL_ECLOSED);
}

void shard_close(struct shard *shard)
{
    (void)pawl_env_call(shard->engine->env, shard->index, close_partitions, shard);
}
