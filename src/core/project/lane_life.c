/* core/project/lane_life.c: how a lane begins and ends.
 *
 * It ends when no append, apply, claim, read or run on another thread is left that would call it back. */
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

static void leases_changed(void *ctx)
{
    lane_pump(ctx);
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

/* Note for each projector whether it is quick, and set its policy for failures. */
static int know_projectors(struct lane *lane)
{
    int status = PAWL_OK;
    struct arena memory;
    arena_init(&memory, lane->options.allocator, ARENA_CHUNK);
    for (uint32_t i = 0; i < lane->projections && status == PAWL_OK; i++) {
        const struct schema_projector *projector = lane_projector(lane, i);
        const struct intent *intents;
        size_t count;
        status = set_policy(lane, i, projector);
        if (status != PAWL_OK || projector->handler)
            continue;
        status = intents_of(projector, &memory, &intents, &count);
        lane->quick[i] = status == PAWL_OK && intents_are_quick(intents, count);
        if (lane->quick[i]) /* the lane's own speed says nothing about that of workers */
            status = pawl_leases_uncounted(lane->leases, i);
    }
    arena_release(&memory);
    return status;
}

/* The writer is CLOSED. Wait for what is under way, then tell all runs that wait. */
static bool end(void *ctx)
{
    struct lane *lane = ctx;
    struct run *run;
    if (lane->moving && applier_remove(lane->options.applier, &lane->moved))
        lane->moving = false;
    if (lane->scanning || lane->exploding_count > 0 || lane->lookups > 0 || lane->moving)
        return false;
    lane_start_over(lane);
    while ((run = runs_take(&lane->waiting)))
        run->finished(run, PAWL_ECLOSED);
    return true;
}

static void run(void *ctx)
{
    lane_pump(ctx);
}

static void moved(void *ctx, enum writer_state from)
{
    struct lane *lane = ctx;
    (void)from;
    if (lane->writer.state == WRITER_REFUSED && lane->writer.error.code == PAWL_EFENCED && lane->options.taken)
        lane->options.taken(lane->options.ctx, lane);
}

static int new_writer(struct lane *lane)
{
    static const struct writer_ops ops = {.position = lane_position,
                                          .replay = lane_replay,
                                          .write = lane_batch_write,
                                          .unwrite = lane_batch_unwrite,
                                          .applied = lane_batch_applied,
                                          .undo = lane_batch_undo,
                                          .moved = moved,
                                          .drained = lane_drained,
                                          .prepare = lane_prepare,
                                          .run = run,
                                          .end = end};
    const struct lane_options *o = &lane->options;
    struct writer_options writer = {.env = o->env,
                                    .shard = o->shard,
                                    .log = o->log,
                                    .applier = o->applier,
                                    .stream = {.kind = PAWL_STREAM_OPLOG,
                                               .partition = o->partition,
                                               .lane = o->lane,
                                               .generation = o->generation},
                                    .assignment = o->assignment,
                                    .ops = &ops,
                                    .ctx = lane,
                                    .batches = o->batches,
                                    .batch_entries = o->batch_operations,
                                    .staged_size = sizeof(struct lane_staged),
                                    .memory_chunk = ARENA_CHUNK,
                                    .allocator = o->allocator};
    return writer_init(&lane->writer, &writer);
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
                                  .store = o->lease_store,
                                  .store_ctx = o->lease_store_ctx,
                                  .allocator = o->allocator};
    lane->scratch = mem_take(o->allocator, 1, STATE_SCRATCH_BYTES);
    lane->bindings = mem_new(o->allocator, o->window, sizeof lane->bindings[0]);
    lane->quick = mem_new(o->allocator, lane->projections, sizeof lane->quick[0]);
    lane->outside = mem_new(o->allocator, lane->projections, sizeof lane->outside[0]);
    if (!lane->scratch || !lane->bindings || !lane->quick || !lane->outside || new_writer(lane)
        || recent_writes_new(o->allocator, RECENT_CAPACITY, &lane->recent))
        return error_set(error, PAWL_ENOMEM, "no memory for a lane");
    int status = cursor_read(&lane->cursor, pawl_store_writer(o->store), error);
    if (status != PAWL_OK)
        return status;
    lane->committed = lane_progress(&lane->cursor);
    schedule_init(&lane->schedule, &lane_schedule_ops, lane, o->window, o->allocator);
    schedule_reset(&lane->schedule, lane->cursor.applied + 1);
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
    lane->task.fn = run_task;
    runs_init(&lane->waiting);
    overlay_init(&lane->overlay, options->allocator);
    operation_maker_init(&lane->writes, options->allocator);
    cursor_init(&lane->cursor, options->allocator, options->partition, options->lane, options->generation);
    int status = new_parts(lane, error);
    if (status == PAWL_OK && writer_begin(&lane->writer))
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
    assert(!lane->waiting.first && lane->exploding_count == 0);
    if (lane->leases)
        pawl_leases_free(lane->leases);
    if (lane->recent)
        recent_writes_free(lane->recent);
    schedule_release(&lane->schedule);
    if (lane->writer.batches)
        writer_deinit(&lane->writer);
    mem_free(o->allocator, lane->quick, lane->projections * sizeof lane->quick[0]);
    mem_free(o->allocator, lane->outside, lane->projections * sizeof lane->outside[0]);
    mem_free(o->allocator, lane->bindings, o->window * sizeof lane->bindings[0]);
    mem_free(o->allocator, lane->scratch, STATE_SCRATCH_BYTES);
    cursor_release(&lane->cursor);
    operation_maker_release(&lane->writes);
    overlay_release(&lane->overlay);
    mem_free(o->allocator, lane, sizeof *lane);
}

void lane_close(struct lane *lane, void (*closed)(void *arg), void *arg)
{
    lane_move_cursor_now(lane);
    pawl_env_cancel(lane->options.env, &lane->rest);
    writer_close(&lane->writer, closed, arg);
}
