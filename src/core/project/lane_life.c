/* core/project/lane_life.c: how a lane begins and ends.
 *
 * It ends when nothing is under way that would come back to it: no append, no apply, no claim, no read, no run
 * that is exploded again for it. */
#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/project/lane_impl.h"

#define ARENA_CHUNK     ((size_t)64 * 1024)
#define RECENT_CAPACITY 4096

static void fill_options(struct lane_options *o, uint32_t projections)
{
    o->window = o->window ? o->window : 1024;
    while (o->window < projections) /* an event's matches are bound together */
        o->window *= 2;
    o->window_bytes = o->window_bytes ? o->window_bytes : (size_t)4 << 20;
    o->ready_bytes = o->ready_bytes ? o->ready_bytes : (size_t)64 << 20;
    o->batch_operations = o->batch_operations ? o->batch_operations : 256;
    o->batch_bytes = o->batch_bytes ? o->batch_bytes : (size_t)1 << 20;
    o->batches = o->batches ? o->batches : 4;
    o->rows_here = o->rows_here ? o->rows_here : 1024;
}

static int new_batches(struct lane *lane)
{
    const struct lane_options *o = &lane->options;
    lane->batches = mem_new(o->allocator, o->batches, sizeof lane->batches[0]);
    if (!lane->batches)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < o->batches; i++) {
        struct lane_batch *b = &lane->batches[i];
        b->lane = lane;
        arena_init(&b->memory, o->allocator, ARENA_CHUNK);
        b->entries = mem_new(o->allocator, o->batch_operations, sizeof b->entries[0]);
        b->staged = mem_new(o->allocator, o->batch_operations, sizeof b->staged[0]);
        if (!b->entries || !b->staged)
            return PAWL_ENOMEM;
    }
    return PAWL_OK;
}

static void free_batches(struct lane *lane)
{
    const struct lane_options *o = &lane->options;
    for (uint32_t i = 0; lane->batches && i < o->batches; i++) {
        struct lane_batch *b = &lane->batches[i];
        arena_release(&b->memory);
        mem_free(o->allocator, b->entries, o->batch_operations * sizeof b->entries[0]);
        mem_free(o->allocator, b->staged, o->batch_operations * sizeof b->staged[0]);
    }
    mem_free(o->allocator, lane->batches, o->batches * sizeof lane->batches[0]);
}

static void leases_changed(void *ctx)
{
    lane_pump(ctx);
}

static void begin(pawl_task *task)
{
    lane_recover(heap_entry(task, struct lane, begin));
}

static void run_task(pawl_task *task)
{
    lane_pump(heap_entry(task, struct lane, task));
}

static int set_policy(struct lane *lane, uint32_t projection, const struct schema_projector *projector)
{
    return pawl_leases_policy(lane->leases, projection,
                              projector->on_failure == ON_FAILURE_VOID ? PAWL_LEASE_VOID : PAWL_LEASE_STALL,
                              projector->attempts_max);
}

void lane_follow(struct lane *lane, const struct schema *schema)
{
    for (uint32_t i = 0; i < lane->projections; i++) {
        const struct schema_projector *mine = lane_projector(lane, i);
        for (size_t k = 0; k < schema->projector_count; k++)
            if (schema->projectors[k].id == mine->id)
                (void)set_policy(lane, i, &schema->projectors[k]);
    }
}

/* What each of its projectors needs: whether it is quick, and what is to be done when it fails. */
static int know_projectors(struct lane *lane)
{
    int status = PAWL_OK;
    for (uint32_t i = 0; i < lane->projections && status == PAWL_OK; i++) {
        const struct schema_projector *projector = lane_projector(lane, i);
        const struct intent *intents;
        size_t count;
        status = set_policy(lane, i, projector);
        if (status != PAWL_OK || projector->handler)
            continue;
        status = intents_of(projector, &lane->replay, &intents, &count);
        lane->quick[i] = status == PAWL_OK && intents_are_quick(intents, count);
        if (lane->quick[i]) /* what it does itself says nothing about those who work for it */
            status = pawl_leases_uncounted(lane->leases, i);
    }
    arena_reset(&lane->replay);
    return status;
}

static int new_parts(struct lane *lane, pawl_error *error)
{
    const struct lane_options *o = &lane->options;
    pawl_leases_options leases = {.env = o->env,
                                  .window = o->window,
                                  .projections = lane->projections,
                                  .duration_first = o->lease_first,
                                  .duration_min = o->lease_min,
                                  .backoff_min = o->backoff_min,
                                  .thresholds = o->thresholds,
                                  .changed = leases_changed,
                                  .ctx = lane,
                                  .allocator = o->allocator};
    lane->scratch = mem_new(o->allocator, 1, STATE_SCRATCH_BYTES);
    lane->works = mem_new(o->allocator, o->window, sizeof lane->works[0]);
    lane->quick = mem_new(o->allocator, lane->projections, sizeof lane->quick[0]);
    if (!lane->scratch || !lane->works || !lane->quick || new_batches(lane)
        || recent_new(o->allocator, RECENT_CAPACITY, &lane->recent))
        return error_set(error, PAWL_ENOMEM, "no memory for a lane");
    int status = cursor_read(&lane->cursor, pawl_store_writer(o->store), error);
    if (status != PAWL_OK)
        return status;
    lane->committed = lane_mark(&lane->cursor);
    leases.next = lane->cursor.applied + 1;
    status = pawl_leases_new(&leases, &lane->leases, error);
    if (status == PAWL_OK && know_projectors(lane) != PAWL_OK)
        status = error_set(error, PAWL_ENOMEM, "no memory for a lane");
    return status;
}

int lane_new(const struct lane_options *options, struct lane **ret_lane, pawl_error *error)
{
    struct lane *lane = mem_new(options->allocator, 1, sizeof *lane);
    if (!lane)
        return error_set(error, PAWL_ENOMEM, "no memory for a lane");
    lane->options = *options;
    while (lane_projector(lane, lane->projections))
        lane->projections++;
    assert(lane->projections > 0); /* or the schema would not have the lane */
    fill_options(&lane->options, lane->projections);
    lane->last = &lane->first;
    lane->begin.fn = begin;
    lane->task.fn = run_task;
    runs_init(&lane->waiting);
    overlay_init(&lane->overlay, options->allocator);
    operation_maker_init(&lane->writes, options->allocator);
    cursor_init(&lane->cursor, options->allocator, options->partition, options->lane, options->generation);
    arena_init(&lane->replay, options->allocator, ARENA_CHUNK);
    int status = new_parts(lane, error);
    if (status == PAWL_OK && pawl_env_post(options->env, options->shard, &lane->begin))
        status = error_set(error, PAWL_ECLOSED, "the env is closed");
    if (status != PAWL_OK) {
        lane_free(lane);
        return status;
    }
    lane->bound = lane->staged = lane->cursor.applied;
    lane->seen = lane->cursor.scanned;
    *ret_lane = lane;
    return PAWL_OK;
}

void lane_free(struct lane *lane)
{
    const struct lane_options *o = &lane->options;
    assert(!lane->first && !lane->waiting.first && lane->redos == 0);
    if (lane->leases)
        pawl_leases_free(lane->leases);
    if (lane->recent)
        recent_free(lane->recent);
    free_batches(lane);
    mem_free(o->allocator, lane->quick, lane->projections * sizeof lane->quick[0]);
    mem_free(o->allocator, lane->works, o->window * sizeof lane->works[0]);
    mem_free(o->allocator, lane->scratch, STATE_SCRATCH_BYTES);
    arena_release(&lane->replay);
    cursor_release(&lane->cursor);
    operation_maker_release(&lane->writes);
    overlay_release(&lane->overlay);
    mem_free(o->allocator, lane, sizeof *lane);
}

/* --- the end --- */

/* What was sent comes back; what is durable is written now, or, if the store cannot be written, given up: it is
 * applied when the log is read again. */
static bool batches_come_back(struct lane *lane)
{
    struct applier *applier = lane->options.applier;
    for (const struct lane_batch *b = lane->first; b; b = b->next)
        if (b->state == LANE_BATCH_SENT)
            return true;
    if ((lane->first || lane->moving) && applier->telling) { /* which is no moment to write: later */
        (void)pawl_env_post(lane->options.env, lane->options.shard, &lane->begin);
        return true;
    }
    applier_run(applier);
    for (struct lane_batch *b = lane->first; b; b = b->next)
        if (b->state == LANE_BATCH_DURABLE && !applier_remove(applier, &b->item))
            return true;
    if (lane->moving && applier_remove(applier, &lane->moved))
        lane->moving = false;
    return lane->moving;
}

static void tell_closed(pawl_task *task)
{
    struct lane *lane = heap_entry(task, struct lane, close_task);
    lane->closed(lane->closed_arg);
}

void lane_close_step(struct lane *lane)
{
    if (lane->state != LANE_CLOSED || lane->closing_told || lane->claiming || lane->reading || lane->scanning
        || lane->redos > 0 || lane->looks > 0 || batches_come_back(lane))
        return;
    struct run *run;
    lane_start_over(lane);
    while ((run = runs_take(&lane->waiting)))
        run->finished(run, PAWL_ECLOSED);
    lane->closing_told = true;
    lane->close_task.fn = tell_closed;
    (void)pawl_env_post(lane->options.env, lane->options.shard, &lane->close_task);
}

void lane_close(struct lane *lane, void (*closed)(void *arg), void *arg)
{
    lane->closed = closed;
    lane->closed_arg = arg;
    lane_move_cursor_now(lane);
    lane_move(lane, LANE_CLOSED);
    pawl_env_cancel(lane->options.env, &lane->rest);
    pawl_env_cancel(lane->options.env, &lane->pause);
    pawl_env_cancel(lane->options.env, &lane->retry);
    (void)pawl_env_post(lane->options.env, lane->options.shard, &lane->begin); /* this may be a done */
}
