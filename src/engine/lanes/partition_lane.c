/* engine/lanes/partition_lane.c: a lane's generation in one partition, on its shard: jobs go out to the worker
 * pools and come back. */

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/results.h"
#include "engine/lanes/worker_pool.h"

#define SPARE_MAX       64
#define SPARE_BYTES_MAX ((size_t)256 << 10)
#define TICK_MAX        (100 * PAWL_MILLISECOND)
#define MAX_RUN         (600 * PAWL_SECOND)

static pawl_engine *engine_of(const struct partition_lane *pl)
{
    return pl->generation->engine;
}

static struct shard *shard_at(const struct partition_lane *pl)
{
    return shard_of(engine_of(pl), pl->partition);
}

/* A lane was closed, or a job came back: if it was the last one, the generation may be freed. */
static void less_busy(struct partition_lane *pl)
{
    struct lanes *lanes = engine_of(pl)->lanes;
    if (atomic_fetch_sub(&pl->generation->busy, 1) == 1)
        maintenance_ask(lanes);
}

/* --- jobs --- */

struct job *job_new(struct partition_lane *pl)
{
    const pawl_allocator *alloc = engine_of(pl)->options.allocator;
    struct job *job = mem_new(alloc, 1, sizeof *job);
    if (!job)
        return NULL;
    job->pl = pl;
    run_init(&job->run, alloc);
    return job;
}

void job_free(struct job *job)
{
    results_forget(job);
    run_release(&job->run);
    mem_free(engine_of(job->pl)->options.allocator, job, sizeof *job);
}

static struct job *take_spare(struct partition_lane *pl)
{
    struct job *job = pl->spare;
    if (!job)
        return job_new(pl);
    pl->spare = job->queued;
    pl->spare_count--;
    return job;
}

static void put_spare(struct partition_lane *pl, struct job *job)
{
    results_forget(job);
    run_reset(&job->run);
    if (pl->spare_count >= SPARE_MAX || !pl->lane || run_held(&job->run) > SPARE_BYTES_MAX) {
        job_free(job);
        return;
    }
    job->queued = pl->spare;
    pl->spare = job;
    pl->spare_count++;
}

static void free_spares(struct partition_lane *pl)
{
    while (pl->spare) {
        struct job *job = pl->spare;
        pl->spare = job->queued;
        job_free(job);
    }
    pl->spare_count = 0;
}

static void finished(struct run *run, int status)
{
    struct job *job = heap_entry(run, struct job, run);
    if (job->commit)
        worker_commit_finished(job, status);
    else
        put_spare(job->pl, job);
}

/* --- leases of jobs that are out --- */

static pawl_duration tick_after(const struct partition_lane *pl)
{
    pawl_duration tick = TICK_MAX;
    for (const struct job *job = pl->out; job; job = job->next)
        if (job->run.duration / 4 < tick)
            tick = job->run.duration / 4;
    return tick > PAWL_MILLISECOND ? tick : PAWL_MILLISECOND;
}

static void extend(struct partition_lane *pl, struct job *job, pawl_instant now, pawl_duration max_run)
{
    if (atomic_load(&job->given_up) || now.ns - job->extended.ns < job->run.duration / 2)
        return;
    job->extended = now;
    if (now.ns - job->since.ns >= max_run
        || lane_extend(pl->lane, job->run.number, job->run.id, job->run.duration) != PAWL_OK)
        atomic_store(&job->given_up, true);
}

static void tick(pawl_timer *timer)
{
    struct partition_lane *pl = heap_entry(timer, struct partition_lane, timer);
    pawl_engine *e = engine_of(pl);
    pawl_instant now = pawl_env_now(e->env);
    pawl_duration max_run = e->options.max_run ? e->options.max_run : MAX_RUN;
    pl->ticking = false;
    if (!pl->lane || pl->closing || !pl->out)
        return;
    for (struct job *job = pl->out; job; job = job->next)
        extend(pl, job, now, max_run);
    pl->ticking = true;
    pawl_env_after(e->env, &pl->timer, tick_after(pl));
}

void jobs_give_up(struct job *out, uint64_t number)
{
    for (struct job *job = out; job; job = job->next)
        if (job->run.number == number)
            atomic_store(&job->given_up, true);
}

/* --- out --- */

static void list_out(struct partition_lane *pl, struct job *job)
{
    pawl_engine *e = engine_of(pl);
    job->next = pl->out;
    job->link = &pl->out;
    if (job->next)
        job->next->link = &job->next;
    pl->out = job;
    pl->out_count++;
    atomic_fetch_add(&pl->generation->busy, 1);
    job->since = job->extended = pawl_env_now(e->env);
    atomic_store(&job->given_up, false);
    job->run.finished = finished;
    if (pl->ticking)
        return;
    pl->ticking = true;
    pawl_env_after(e->env, &pl->timer, tick_after(pl));
}

static void list_in(struct partition_lane *pl, struct job *job)
{
    *job->link = job->next;
    if (job->next)
        job->next->link = job->link;
    pl->out_count--;
}

static bool is_below(uint64_t offered, uint64_t lowest)
{
    return offered != 0 && offered < lowest;
}

/* A number that has just become free may be lower than all that are queued: others wait for it, so it need not wait
 * for a place. */
static void fill_pool(struct partition_lane *pl, struct worker_pool *pool)
{
    struct job *first = NULL, **last = &first;
    uint64_t lowest;
    uint32_t room = worker_pool_room(pool, pl->partition, &lowest);
    for (uint32_t count = 0; count < room || is_below(lane_offer(pl->lane, pool->projection), lowest);
         count++) {
        struct job *job = take_spare(pl);
        if (!job)
            break;
        if (lane_acquire(pl->lane, pool->projection, 0, &job->run) != PAWL_OK) {
            put_spare(pl, job);
            break;
        }
        list_out(pl, job);
        job->queued = NULL;
        *last = job;
        last = &job->queued;
    }
    if (first)
        worker_pool_push(pool, pl->partition, first);
}

void partition_lane_fill(struct partition_lane *pl)
{
    struct generation *generation = pl->generation;
    if (!pl->lane || pl->closing)
        return;
    for (uint32_t i = 0; i < generation->projections; i++) {
        struct worker_pool *pool = &generation->pools[i];
        if (pool->quick)
            continue;
        if (worker_pool_is_staffed(pool))
            fill_pool(pl, pool);
        else if (lane_offer(pl->lane, i) != 0)
            leases_offer(generation->engine, pool->projector->id);
    }
}

/* --- back --- */

void partition_lane_ask(struct partition_lane *pl)
{
    pawl_engine *e = engine_of(pl);
    (void)pawl_env_post(e->env, shard_of(e, pl->partition)->index, &pl->task);
}

void partition_lane_return(struct job *job)
{
    struct partition_lane *pl = job->pl;
    struct job *newest = atomic_load(&pl->returned);
    do
        job->queued = newest;
    while (!atomic_compare_exchange_weak(&pl->returned, &newest, job));
    /* The job may be freed by now, but not pl: its generation is freed after this thread was joined. */
    partition_lane_ask(pl);
}

static void take_in(struct partition_lane *pl, struct job *job)
{
    struct run *run = &job->run;
    list_in(pl, job);
    if (!pl->lane || pl->closing) {
        put_spare(pl, job);
        return;
    }
    switch (job->outcome) {
    case JOB_DONE:
        if (lane_hand_in(pl->lane, run) == PAWL_OK)
            return;
        break;
    case JOB_FAILED:
        if (lane_fail_run(pl->lane, run, job->permanent, job->words))
            return;
        break;
    case JOB_POSTPONED: (void)lane_postpone(pl->lane, run->number, run->id, job->words); break;
    }
    put_spare(pl, job);
}

static void take_returned(pawl_task *task)
{
    struct partition_lane *pl = heap_entry(task, struct partition_lane, task);
    struct job *newest = atomic_exchange(&pl->returned, NULL), *oldest = NULL;
    uint32_t count = 0;
    while (newest) {
        struct job *job = newest;
        newest = job->queued;
        job->queued = oldest;
        oldest = job;
    }
    while (oldest) {
        struct job *job = oldest;
        oldest = job->queued;
        take_in(pl, job);
        count++;
    }
    partition_lane_fill(pl);
    while (count-- > 0) /* last of all: then the maintenance thread may free the generation */
        less_busy(pl);
}

/* --- what the lane asks for --- */

static const struct schema *schema_for(void *ctx, uint16_t lane, uint32_t generation, uint64_t event_schema)
{
    const struct partition_lane *pl = ctx;
    return engine_schema_for(engine_of(pl), lane, generation, event_schema);
}

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct partition_lane *pl = ctx;
    return engine_schema_at(engine_of(pl), position);
}

static void explode_job(pawl_work *work)
{
    struct job *job = heap_entry(work, struct job, work);
    struct run_buffers buffers;
    job->status = run_buffers_init(&buffers, engine_of(job->pl)->options.allocator);
    if (job->status == PAWL_OK)
        job->status = run_explode(&job->run, shard_at(job->pl)->store, &buffers, &job->run.error);
    run_buffers_release(&buffers);
}

static void exploded(pawl_work *work)
{
    struct job *job = heap_entry(work, struct job, work);
    lane_exploded(job->pl->lane, &job->run, job->status);
}

static void explode_again(void *ctx, struct lane *lane, struct run *run)
{
    const struct partition_lane *pl = ctx;
    struct job *job = heap_entry(run, struct job, run);
    job->work.fn = explode_job;
    job->work.done = exploded;
    int status = pawl_env_work(engine_of(pl)->env, &job->work);
    if (status != PAWL_OK)
        lane_exploded(lane, run, status);
}

static void available(void *ctx, struct lane *lane)
{
    (void)lane;
    partition_lane_fill(ctx);
}

static void applied(void *ctx, struct lane *lane, uint64_t scanned)
{
    struct partition_lane *pl = ctx;
    if (pl->worker_reads)
        worker_reads_forget(pl, lane_cursor(lane)->applied);
    atomic_store_explicit(&pl->offset, scanned, memory_order_release);
    shard_tell_applied(shard_at(pl), pl, pl->partition, scanned);
}

/* Whoever loses one stream of a log that nodes share gives up all of them. */
static void taken(void *ctx, struct lane *lane)
{
    (void)lane;
    owner_lose(engine_of(ctx));
}

/* --- beginning and end --- */

static void link_to_partition(struct partition_lane *pl)
{
    struct partition *partition = &engine_of(pl)->partitions[pl->partition];
    pl->next = partition->lanes;
    partition->lanes = pl;
}

static void unlink_from_partition(struct partition_lane *pl)
{
    struct partition_lane **at = &engine_of(pl)->partitions[pl->partition].lanes;
    while (*at != pl)
        at = &(*at)->next;
    *at = pl->next;
}

void partition_lane_open(struct partition_lane *pl)
{
    struct generation *g = pl->generation;
    pawl_engine *e = g->engine;
    struct shard *shard = shard_at(pl);
    const pawl_options *o = &e->options;
    struct lane_options options = {.env = e->env,
                                   .shard = shard->index,
                                   .log = e->log,
                                   .store = shard->store,
                                   .applier = &shard->applier,
                                   .views = &shard->views,
                                   .partition = pl->partition,
                                   .lane = g->id,
                                   .generation = g->number,
                                   .assignment = e->assignment,
                                   .schema = g->schema,
                                   .schema_for = schema_for,
                                   .schema_at = schema_at,
                                   .explode = explode_again,
                                   .available = available,
                                   .applied = applied,
                                   .taken = taken,
                                   .ctx = pl,
                                   .lease_first = o->lease_first,
                                   .lease_min = o->lease_min,
                                   .backoff_min = o->backoff_min,
                                   .thresholds = o->thresholds,
                                   .lease_store = &kept_leases_store,
                                   .lease_store_ctx = pl,
                                   .allocator = o->allocator};
    kept_leases_take(pl);
    pl->task.fn = take_returned;
    pl->timer.fn = tick;
    error_clear(&pl->error);
    pl->status = lane_new(&options, &pl->lane, &pl->error);
    if (pl->status != PAWL_OK)
        return;
    lane_follow(pl->lane, engine_schema(e));
    atomic_fetch_add(&g->busy, 1);
    link_to_partition(pl);
    atomic_store_explicit(&pl->offset, lane_cursor(pl->lane)->scanned, memory_order_release);
    if (lanes_is_paused(e, g->name))
        lane_pause(pl->lane, true);
    lane_log_grew(pl->lane, atomic_load(&e->partitions[pl->partition].offset));
}

static void lane_is_closed(void *arg)
{
    struct partition_lane *pl = arg;
    lane_free(pl->lane);
    pl->lane = NULL;
    if (pl->superseded)
        kept_leases_drop_all(pl);
    pl->closing = false;
    worker_reads_free(pl);
    free_spares(pl);
    less_busy(pl);
}

void partition_lane_close(struct partition_lane *pl)
{
    if (!pl->lane || pl->closing)
        return;
    pl->closing = true;
    unlink_from_partition(pl);
    pawl_env_cancel(engine_of(pl)->env, &pl->timer);
    pl->ticking = false;
    for (uint32_t i = 0; i < pl->generation->projections; i++)
        for (struct job *job = worker_pool_take_back(&pl->generation->pools[i], pl->partition); job;) {
            struct job *next = job->queued;
            list_in(pl, job);
            job_free(job);
            atomic_fetch_sub(&pl->generation->busy, 1); /* the lane is still open, so this is not the last */
            job = next;
        }
    for (struct job *job = pl->out; job; job = job->next)
        atomic_store(&job->given_up, true);
    shard_tell_gone(shard_at(pl), pl, pl->partition);
    lane_close(pl->lane, lane_is_closed, pl);
}

void partition_lane_retire(struct partition_lane *pl)
{
    pl->superseded = true;
    partition_lane_close(pl);
    if (!pl->lane)
        kept_leases_drop_all(pl);
}

int partition_lane_refusal(const struct partition_lane *pl)
{
    return pl->superseded || pl->status != PAWL_OK ? PAWL_EFENCED : PAWL_EBUSY;
}

void lanes_give_up(struct partition *partition, const char *words)
{
    for (struct partition_lane *pl = partition->lanes; pl; pl = pl->next)
        if (lanes_is_open(pl))
            lane_give_up(pl->lane, words);
}

void lanes_applied(struct partition *partition, uint64_t offset)
{
    for (struct partition_lane *pl = partition->lanes; pl; pl = pl->next)
        if (lanes_is_open(pl))
            lane_log_grew(pl->lane, offset);
}
