/* core/command/lifetime.c: how a processor begins, changes its schema, and ends.
 *
 * It ends when no append, apply, claim, read or sequencer is left that would call it back. */
#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/command/processor_impl.h"
#include "core/schema/schema.h"

#define ARENA_CHUNK ((size_t)256 * 1024)

/* How many events the sequence storage may lag behind the log. A row that is written once for many events costs
 * next to nothing; a row for each event would cost as much as the event. What the storage lacks is read from
 * the log when the state is opened again. */
#define FLUSH_EVENTS   8192
#define FLUSH_INTERVAL (5 * PAWL_SECOND)
/* How many numbers one transaction flushes at most: the shard does nothing else meanwhile. */
#define UNFLUSHED_MAX 16384

static void fill_u32(uint32_t *option, uint32_t fallback)
{
    *option = *option ? *option : fallback;
}

static void fill_size(size_t *option, size_t fallback)
{
    *option = *option ? *option : fallback;
}

static void fill_limits(pawl_sequencer_limits *l, uint32_t workspaces_max)
{
    fill_u32(&l->flush_events, FLUSH_EVENTS);
    l->flush_interval = l->flush_interval ? l->flush_interval : FLUSH_INTERVAL;
    fill_u32(&l->unflushed_max, UNFLUSHED_MAX);
    fill_u32(&l->recovery_batch, UNFLUSHED_MAX);
    fill_u32(&l->workspaces_max, workspaces_max);
}

static void fill_options(struct processor_options *o)
{
    fill_u32(&o->queue_max, 4096);
    fill_u32(&o->batch_events_max, 512);
    fill_size(&o->batch_bytes_max, (size_t)1 << 20);
    fill_u32(&o->batches_max, 4);
    fill_size(&o->event_bytes_max, (size_t)1 << 20);
    fill_u32(&o->workspaces_max, 4096);
    fill_u32(&o->windows_max, 256);
    fill_limits(&o->limits, o->workspaces_max);
    o->wait = o->wait ? o->wait : 10 * PAWL_SECOND;
}

static void moved(void *ctx, enum writer_state from)
{
    struct processor *p = ctx;
    (void)from;
    enum writer_state to = p->writer.state;
    p->figures.failures = p->writer.failures;
    if ((to == WRITER_RUNNING || to == WRITER_REFUSED) && p->changed)
        p->changed(p->changed_arg);
    if (to == WRITER_REFUSED)
        call_list_refuse(&p->queue, p->writer.error.code, p->writer.error.text);
}

static void run(void *ctx)
{
    processor_run(ctx);
}

/* The writer is CLOSED and no batch is left: now the sequencer is closed. */
static bool end(void *ctx)
{
    struct processor *p = ctx;
    if (p->repeats || p->sequencer_closing)
        return false;
    call_list_refuse(&p->queue, PAWL_ECLOSED, "the partition is closed");
    if (p->sequencer)
        recover_close_sequencer(p);
    return !p->sequencer;
}

static int new_writer(struct processor *p)
{
    static const struct writer_ops ops = {.position = recover_position,
                                          .replay = recover_replay,
                                          .durable = batch_durable,
                                          .ahead = batch_ahead,
                                          .write = batch_write,
                                          .unwrite = batch_unwrite,
                                          .late = batch_late,
                                          .applied = batch_applied,
                                          .undo = batch_undo,
                                          .fate = batch_fate,
                                          .moved = moved,
                                          .will_retry = recover_will_retry,
                                          .prepare = recover_prepare,
                                          .run = run,
                                          .end = end};
    const struct processor_options *o = &p->options;
    struct writer_options writer = {.env = o->env,
                                    .shard = o->shard,
                                    .log = o->log,
                                    .applier = o->applier,
                                    .stream = {.kind = PAWL_STREAM_PLOG, .partition = o->partition},
                                    .assignment = o->assignment,
                                    .ops = &ops,
                                    .ctx = p,
                                    .batches = o->batches_max,
                                    .batch_entries = o->batch_events_max,
                                    .staged_size = sizeof(struct staged),
                                    .memory_chunk = ARENA_CHUNK,
                                    .allocator = o->allocator};
    p->waiting = mem_new(o->allocator, o->batches_max, sizeof p->waiting[0]);
    for (uint32_t i = 0; p->waiting && i < o->batches_max; i++)
        call_list_init(&p->waiting[i]);
    return p->waiting ? writer_init(&p->writer, &writer) : PAWL_ENOMEM;
}

int processor_new(const struct processor_options *options, struct processor **ret_processor, pawl_error *error)
{
    struct processor *p = mem_new(options->allocator, 1, sizeof *p);
    if (!p)
        return error_set(error, PAWL_ENOMEM, "no memory for a partition");
    p->options = *options;
    fill_options(&p->options);
    p->schema = options->schema;
    call_list_init(&p->queue);
    overlay_init(&p->overlay, options->allocator);
    unique_init(&p->unique, options->views, options->partition, options->allocator);
    position_init(&p->position, options->allocator, options->partition);
    p->scratch = mem_take(options->allocator, 1, STATE_SCRATCH_BYTES);
    int status = PAWL_OK;
    if (!p->scratch || new_writer(p)
        || workspaces_init(&p->workspaces, options->allocator, p->options.workspaces_max)
        || windows_init(&p->windows, options->allocator, p->options.windows_max))
        status = error_set(error, PAWL_ENOMEM, "no memory for a partition");
    if (status == PAWL_OK)
        status = position_read(&p->position, pawl_store_writer(options->store), error);
    if (status == PAWL_OK && writer_begin(&p->writer))
        status = error_set(error, PAWL_ECLOSED, "the env is closed");
    if (status != PAWL_OK) {
        processor_free(p);
        return status;
    }
    p->figures.offset = p->position.offset;
    *ret_processor = p;
    return PAWL_OK;
}

void processor_free(struct processor *p)
{
    const pawl_allocator *alloc = p->options.allocator;
    assert(!p->sequencer && !p->queue.first);
    windows_release(&p->windows);
    workspaces_release(&p->workspaces);
    if (p->writer.batches)
        writer_deinit(&p->writer);
    mem_free(alloc, p->waiting, p->options.batches_max * sizeof p->waiting[0]);
    mem_free(alloc, p->scratch, STATE_SCRATCH_BYTES);
    position_release(&p->position);
    unique_release(&p->unique);
    overlay_release(&p->overlay);
    mem_free(alloc, p, sizeof *p);
}

static bool same_sequences(const struct schema_workspace *a, const struct schema_workspace *b)
{
    if (a->id != b->id || a->sequence_count != b->sequence_count)
        return false;
    for (size_t i = 0; i < a->sequence_count; i++)
        if (a->sequences[i].id != b->sequences[i].id || a->sequences[i].first != b->sequences[i].first
            || a->sequences[i].end != b->sequences[i].end)
            return false;
    return true;
}

static bool same_kinds(const struct schema *a, const struct schema *b)
{
    if (a->workspace_count != b->workspace_count)
        return false;
    for (size_t i = 0; i < a->workspace_count; i++)
        if (!same_sequences(&a->workspaces[i], &b->workspaces[i]))
            return false;
    return true;
}

/* Staged events keep the schema that they were built under; the next event has the new one. Only a change of
 * sequences needs another sequencer, and that waits until nothing is staged. */
void processor_schema(struct processor *p, const struct schema *schema)
{
    p->resequence = p->resequence || !same_kinds(p->schema, schema);
    p->schema = schema;
    if (!p->resequence)
        return;
    writer_drain(&p->writer);
    if (p->writer.state == WRITER_PREPARING && p->sequencer && !p->sequencer_closing)
        recover_close_sequencer(p);
}

void processor_give_up(struct processor *p, const char *words)
{
    writer_give_up(&p->writer, words);
}

void processor_close(struct processor *p, void (*closed)(void *arg), void *arg)
{
    writer_close(&p->writer, closed, arg);
    pawl_env_cancel(p->options.env, &p->late_timer);
    call_list_refuse(&p->queue, PAWL_ECLOSED, "the partition is closed");
}
