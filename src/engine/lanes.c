/* engine/lanes.c: a lane's generation in one partition, on its shard: jobs go out to the crews and come back.
 */
#include "engine/lanes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "engine/node.h"
#include "engine/results.h"
#include "engine/workers.h"

#define SPARE_MAX       64
#define SPARE_BYTES_MAX ((size_t)256 << 10)
#define TICK_MAX        (100 * PAWL_MILLISECOND)
#define MAX_RUN         (600 * PAWL_SECOND)

static pawl_engine *engine_of(const struct lane_part *part)
{
    return part->generation->engine;
}

static struct shard *shard_at(const struct lane_part *part)
{
    return shard_of(engine_of(part), part->partition);
}

/* Lanes and jobs of a generation that are gone may be the last ones. */
static void less_busy(struct lane_part *part)
{
    struct lanes *lanes = &engine_of(part)->lanes;
    if (atomic_fetch_sub(&part->generation->busy, 1) == 1)
        steward_ask(lanes);
}

/* --- jobs --- */

struct job *job_new(struct lane_part *part)
{
    const pawl_allocator *alloc = engine_of(part)->options.allocator;
    struct job *job = mem_new(alloc, 1, sizeof *job);
    if (!job)
        return NULL;
    job->part = part;
    run_init(&job->run, alloc);
    return job;
}

void job_free(struct job *job)
{
    results_forget(job);
    run_release(&job->run);
    mem_free(engine_of(job->part)->options.allocator, job, sizeof *job);
}

static struct job *take_spare(struct lane_part *part)
{
    struct job *job = part->spare;
    if (!job)
        return job_new(part);
    part->spare = job->queued;
    part->spare_count--;
    return job;
}

static void put_spare(struct lane_part *part, struct job *job)
{
    results_forget(job);
    run_reset(&job->run);
    if (part->spare_count >= SPARE_MAX || !part->lane || run_held(&job->run) > SPARE_BYTES_MAX) {
        job_free(job);
        return;
    }
    job->queued = part->spare;
    part->spare = job;
    part->spare_count++;
}

static void free_spares(struct lane_part *part)
{
    while (part->spare) {
        struct job *job = part->spare;
        part->spare = job->queued;
        job_free(job);
    }
    part->spare_count = 0;
}

static void finished(struct run *run, int status)
{
    struct job *job = heap_entry(run, struct job, run);
    if (job->commit)
        worker_commit_finished(job, status);
    else
        put_spare(job->part, job);
}

/* --- leases of jobs that are out --- */

static pawl_duration tick_after(const struct lane_part *part)
{
    pawl_duration tick = TICK_MAX;
    for (const struct job *job = part->out; job; job = job->next)
        if (job->run.duration / 4 < tick)
            tick = job->run.duration / 4;
    return tick > PAWL_MILLISECOND ? tick : PAWL_MILLISECOND;
}

static void extend(struct lane_part *part, struct job *job, pawl_instant now, pawl_duration max_run)
{
    if (atomic_load(&job->given_up) || now.ns - job->extended.ns < job->run.duration / 2)
        return;
    job->extended = now;
    if (now.ns - job->since.ns >= max_run
        || lane_extend(part->lane, job->run.number, job->run.id, job->run.duration) != PAWL_OK)
        atomic_store(&job->given_up, true);
}

static void tick(pawl_timer *timer)
{
    struct lane_part *part = heap_entry(timer, struct lane_part, timer);
    pawl_engine *e = engine_of(part);
    pawl_instant now = pawl_env_now(e->env);
    pawl_duration max_run = e->options.max_run ? e->options.max_run : MAX_RUN;
    part->ticking = false;
    if (!part->lane || part->closing || !part->out)
        return;
    for (struct job *job = part->out; job; job = job->next)
        extend(part, job, now, max_run);
    part->ticking = true;
    pawl_env_after(e->env, &part->timer, tick_after(part));
}

void jobs_give_up(struct job *out, uint64_t number)
{
    for (struct job *job = out; job; job = job->next)
        if (job->run.number == number)
            atomic_store(&job->given_up, true);
}

/* --- out --- */

static void list_out(struct lane_part *part, struct job *job)
{
    pawl_engine *e = engine_of(part);
    job->next = part->out;
    job->link = &part->out;
    if (job->next)
        job->next->link = &job->next;
    part->out = job;
    part->out_count++;
    atomic_fetch_add(&part->generation->busy, 1);
    job->since = job->extended = pawl_env_now(e->env);
    atomic_store(&job->given_up, false);
    job->run.finished = finished;
    if (part->ticking)
        return;
    part->ticking = true;
    pawl_env_after(e->env, &part->timer, tick_after(part));
}

static void list_in(struct lane_part *part, struct job *job)
{
    *job->link = job->next;
    if (job->next)
        job->next->link = job->link;
    part->out_count--;
}

static void fill_crew(struct lane_part *part, struct crew *crew)
{
    struct job *first = NULL, **last = &first;
    for (uint32_t room = crew_room(crew, part->partition); room > 0; room--) {
        struct job *job = take_spare(part);
        if (!job)
            break;
        if (lane_acquire(part->lane, crew->projection, 0, &job->run) != PAWL_OK) {
            put_spare(part, job);
            break;
        }
        list_out(part, job);
        job->queued = NULL;
        *last = job;
        last = &job->queued;
    }
    if (first)
        crew_push(crew, part->partition, first);
}

void part_fill(struct lane_part *part)
{
    struct generation *generation = part->generation;
    if (!part->lane || part->closing)
        return;
    for (uint32_t i = 0; i < generation->projections; i++) {
        struct crew *crew = &generation->crews[i];
        if (crew->quick)
            continue;
        if (crew_is_manned(crew))
            fill_crew(part, crew);
        else if (pawl_leases_peek(lane_leases(part->lane), i) != 0)
            leases_offer(generation->engine, crew->projector->id);
    }
}

/* --- back --- */

void part_ask(struct lane_part *part)
{
    pawl_engine *e = engine_of(part);
    (void)pawl_env_post(e->env, part->partition % e->file.shards, &part->task);
}

void part_return(struct job *job)
{
    struct lane_part *part = job->part;
    struct job *newest = atomic_load(&part->returned);
    do
        job->queued = newest;
    while (!atomic_compare_exchange_weak(&part->returned, &newest, job));
    part_ask(part); /* the job may be gone; its part stays, because this thread is joined before it goes */
}

static void take_in(struct lane_part *part, struct job *job)
{
    struct run *run = &job->run;
    list_in(part, job);
    if (!part->lane || part->closing) {
        put_spare(part, job);
        return;
    }
    switch (job->outcome) {
    case JOB_DONE:
        if (lane_hand_in(part->lane, run) == PAWL_OK)
            return;
        break;
    case JOB_FAILED:
        if (lane_fail_run(part->lane, run, job->permanent, job->words))
            return;
        break;
    case JOB_POSTPONED: (void)lane_postpone(part->lane, run->number, run->id, job->words); break;
    }
    put_spare(part, job);
}

static void take_returned(pawl_task *task)
{
    struct lane_part *part = heap_entry(task, struct lane_part, task);
    struct job *newest = atomic_exchange(&part->returned, NULL), *oldest = NULL;
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
        take_in(part, job);
        count++;
    }
    part_fill(part);
    while (count-- > 0) /* last of all: it may be what the steward waits for */
        less_busy(part);
}

/* --- what the lane asks for --- */

static const struct schema *schema_for(void *ctx, uint16_t lane, uint32_t generation, uint64_t event_schema)
{
    const struct lane_part *part = ctx;
    return engine_schema_for(engine_of(part), lane, generation, event_schema);
}

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct lane_part *part = ctx;
    return engine_schema_at(engine_of(part), position);
}

static void explode_job(pawl_work *work)
{
    struct job *job = heap_entry(work, struct job, work);
    struct run_room room;
    job->status = run_room_init(&room, engine_of(job->part)->options.allocator);
    if (job->status == PAWL_OK)
        job->status = run_explode(&job->run, shard_at(job->part)->store, &room, &job->run.error);
    run_room_release(&room);
}

static void exploded(pawl_work *work)
{
    struct job *job = heap_entry(work, struct job, work);
    lane_exploded(job->part->lane, &job->run, job->status);
}

static void explode_again(void *ctx, struct lane *lane, struct run *run)
{
    const struct lane_part *part = ctx;
    struct job *job = heap_entry(run, struct job, run);
    job->work.fn = explode_job;
    job->work.done = exploded;
    int status = pawl_env_work(engine_of(part)->env, &job->work);
    if (status != PAWL_OK)
        lane_exploded(lane, run, status);
}

static void available(void *ctx, struct lane *lane)
{
    (void)lane;
    part_fill(ctx);
}

static void applied(void *ctx, struct lane *lane, uint64_t scanned)
{
    struct lane_part *part = ctx;
    (void)lane;
    atomic_store_explicit(&part->offset, scanned, memory_order_release);
    shard_tell_applied(shard_at(part), part, part->partition, scanned);
}

/* --- beginning and end --- */

static void link_part(struct lane_part *part)
{
    struct partition *partition = &engine_of(part)->partitions[part->partition];
    part->next = partition->parts;
    partition->parts = part;
}

static void unlink_part(struct lane_part *part)
{
    struct lane_part **at = &engine_of(part)->partitions[part->partition].parts;
    while (*at != part)
        at = &(*at)->next;
    *at = part->next;
}

void part_open(struct lane_part *part)
{
    struct generation *g = part->generation;
    pawl_engine *e = g->engine;
    struct shard *shard = shard_at(part);
    const pawl_options *o = &e->options;
    struct lane_options options = {.env = e->env,
                                   .shard = shard->index,
                                   .log = e->log,
                                   .store = shard->store,
                                   .applier = &shard->applier,
                                   .partition = part->partition,
                                   .lane = g->id,
                                   .generation = g->number,
                                   .schema = g->schema,
                                   .schema_for = schema_for,
                                   .schema_at = schema_at,
                                   .explode = explode_again,
                                   .available = available,
                                   .applied = applied,
                                   .ctx = part,
                                   .lease_first = o->lease_first,
                                   .lease_min = o->lease_min,
                                   .backoff_min = o->backoff_min,
                                   .thresholds = o->thresholds,
                                   .allocator = o->allocator};
    part->task.fn = take_returned;
    part->timer.fn = tick;
    error_clear(&part->error);
    part->status = lane_new(&options, &part->lane, &part->error);
    if (part->status != PAWL_OK)
        return;
    lane_follow(part->lane, engine_schema(e));
    atomic_fetch_add(&g->busy, 1);
    link_part(part);
    atomic_store_explicit(&part->offset, lane_cursor(part->lane)->scanned, memory_order_release);
    if (lanes_is_paused(e, g->name))
        lane_pause(part->lane, true);
    lane_poke(part->lane, atomic_load(&e->partitions[part->partition].offset));
}

static void lane_is_closed(void *arg)
{
    struct lane_part *part = arg;
    lane_free(part->lane);
    part->lane = NULL;
    part->closing = false;
    free_spares(part);
    less_busy(part);
}

void part_close(struct lane_part *part)
{
    if (!part->lane || part->closing)
        return;
    part->closing = true;
    unlink_part(part);
    pawl_env_cancel(engine_of(part)->env, &part->timer);
    part->ticking = false;
    for (uint32_t i = 0; i < part->generation->projections; i++)
        for (struct job *job = crew_take_back(&part->generation->crews[i], part->partition); job;) {
            struct job *next = job->queued;
            list_in(part, job);
            job_free(job);
            atomic_fetch_sub(&part->generation->busy, 1); /* the lane is still open: not the last */
            job = next;
        }
    for (struct job *job = part->out; job; job = job->next)
        atomic_store(&job->given_up, true);
    shard_tell_gone(shard_at(part), part);
    lane_close(part->lane, lane_is_closed, part);
}

void part_poke(struct lane_part *part, uint64_t offset)
{
    if (part->lane && !part->closing)
        lane_poke(part->lane, offset);
}
