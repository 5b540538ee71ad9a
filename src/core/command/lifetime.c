/* core/command/lifetime.c: how a processor begins, changes its schema, and ends.
 *
 * It ends when nothing is under way that would come back to it: no append, no apply, no claim, no read, no
 * sequencer. */
#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/command/processor_impl.h"
#include "core/schema/schema.h"

#define ARENA_CHUNK ((size_t)256 * 1024)

/* The sequence storage lags by so much at most: a row that is written once for many events costs next to nothing,
 * while one for each would cost as much as the event. What it lags by is read when the state is opened again.
 */
#define FLUSH_EVENTS   8192
#define FLUSH_INTERVAL (5 * PAWL_SECOND)
/* Of so many numbers at most, in one transaction of the shard's, which does nothing else meanwhile. */
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

static int new_batches(struct processor *p)
{
    const struct processor_options *o = &p->options;
    p->batches = mem_new(o->allocator, o->batches_max, sizeof p->batches[0]);
    if (!p->batches)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < o->batches_max; i++) {
        struct batch *b = &p->batches[i];
        b->processor = p;
        arena_init(&b->memory, o->allocator, ARENA_CHUNK);
        b->entries = mem_new(o->allocator, o->batch_events_max, sizeof b->entries[0]);
        b->events = mem_new(o->allocator, o->batch_events_max, sizeof b->events[0]);
        if (!b->entries || !b->events)
            return PAWL_ENOMEM;
    }
    return PAWL_OK;
}

static void free_batches(struct processor *p)
{
    const struct processor_options *o = &p->options;
    for (uint32_t i = 0; p->batches && i < o->batches_max; i++) {
        struct batch *b = &p->batches[i];
        arena_release(&b->memory);
        mem_free(o->allocator, b->entries, o->batch_events_max * sizeof b->entries[0]);
        mem_free(o->allocator, b->events, o->batch_events_max * sizeof b->events[0]);
    }
    mem_free(o->allocator, p->batches, o->batches_max * sizeof p->batches[0]);
}

static void begin(pawl_task *task)
{
    recover_step(heap_entry(task, struct processor, begin));
}

int processor_new(const struct processor_options *options, struct processor **ret_processor, pawl_error *error)
{
    struct processor *p = mem_new(options->allocator, 1, sizeof *p);
    if (!p)
        return error_set(error, PAWL_ENOMEM, "no memory for a partition");
    p->options = *options;
    fill_options(&p->options);
    p->schema = options->schema;
    p->last = &p->first;
    p->begin.fn = begin;
    calls_init(&p->queue);
    overlay_init(&p->overlay, options->allocator);
    position_init(&p->position, options->allocator, options->partition);
    arena_init(&p->replay, options->allocator, ARENA_CHUNK);
    p->scratch = mem_new(options->allocator, 1, STATE_SCRATCH_BYTES);
    int status = PAWL_OK;
    if (!p->scratch || new_batches(p)
        || workspaces_init(&p->workspaces, options->allocator, p->options.workspaces_max)
        || windows_init(&p->windows, options->allocator, p->options.windows_max))
        status = error_set(error, PAWL_ENOMEM, "no memory for a partition");
    if (status == PAWL_OK)
        status = position_read(&p->position, pawl_store_writer(options->store), error);
    if (status == PAWL_OK && pawl_env_post(options->env, options->shard, &p->begin))
        status = error_set(error, PAWL_ECLOSED, "the env is closed");
    if (status != PAWL_OK) {
        processor_free(p);
        return status;
    }
    p->figures.offset = p->position.offset;
    queue_watch(p);
    *ret_processor = p;
    return PAWL_OK;
}

void processor_free(struct processor *p)
{
    const pawl_allocator *alloc = p->options.allocator;
    assert(!p->sequencer && !p->first && !p->queue.first);
    windows_release(&p->windows);
    workspaces_release(&p->workspaces);
    free_batches(p);
    mem_free(alloc, p->scratch, STATE_SCRATCH_BYTES);
    arena_release(&p->replay);
    position_release(&p->position);
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

/* Events that are staged keep the schema that they were built under; the next one has the new one. Only a
 * change of sequences needs another sequencer, and that needs a moment without staged events. */
void processor_schema(struct processor *p, const struct schema *schema)
{
    p->resequence = p->resequence || !same_kinds(p->schema, schema);
    p->schema = schema;
    if (!p->resequence)
        return;
    if (p->state == PROCESSOR_RUNNING)
        processor_move(p, PROCESSOR_DRAINING);
    else if (p->state == PROCESSOR_NUMBERING && p->sequencer && !p->sequencer_closing)
        recover_close_sequencer(p);
    recover_step(p);
}

/* What became durable and cannot be applied any more will be when the state is opened again: that is an answer.
 * What is lost from sight is not known. */
static void end_batches(struct processor *p)
{
    while (p->first) {
        struct batch *b = p->first;
        for (size_t i = 0; i < b->count; i++) {
            if (b->state != BATCH_LOST)
                overlay_remove(&p->overlay, &b->events[i].changes);
            if (b->state == BATCH_DURABLE)
                staged_answer(&b->events[i]);
            else
                calls_refuse(&b->events[i].calls, b->state == BATCH_LOST ? PAWL_EUNKNOWN : PAWL_ECLOSED,
                             "closed");
        }
        calls_refuse(&b->waiting, PAWL_ECLOSED, "closed");
        batch_free(b);
    }
}

/* What was sent comes back; what is durable is written now, or, if the store cannot be written, given up. */
static bool batches_come_back(struct processor *p)
{
    for (const struct batch *b = p->first; b; b = b->next)
        if (b->state == BATCH_SENT)
            return true;
    if (p->first && p->options.applier->telling) { /* which is no moment to write: later */
        (void)pawl_env_post(p->options.env, p->options.shard, &p->begin);
        return true;
    }
    applier_run(p->options.applier);
    for (struct batch *b = p->first; b; b = b->next)
        if (b->state == BATCH_DURABLE && !applier_remove(p->options.applier, &b->item))
            return true;
    return false;
}

static void tell_closed(pawl_task *task)
{
    struct processor *p = heap_entry(task, struct processor, close_task);
    p->closed(p->closed_arg);
}

void close_step(struct processor *p)
{
    if (p->state != PROCESSOR_CLOSED || p->claiming || p->reading || p->repeats > 0 || batches_come_back(p)
        || p->sequencer_closing || p->closing_told)
        return;
    end_batches(p);
    calls_refuse(&p->queue, PAWL_ECLOSED, "closed");
    if (p->sequencer) {
        recover_close_sequencer(p);
        return;
    }
    p->closing_told = true;
    p->close_task.fn = tell_closed;
    (void)pawl_env_post(p->options.env, p->options.shard, &p->close_task);
}

void processor_close(struct processor *p, void (*closed)(void *arg), void *arg)
{
    p->closed = closed;
    p->closed_arg = arg;
    processor_move(p, PROCESSOR_CLOSED);
    pawl_env_cancel(p->options.env, &p->queue_timer);
    pawl_env_cancel(p->options.env, &p->pause);
    pawl_env_cancel(p->options.env, &p->retry);
    calls_refuse(&p->queue, PAWL_ECLOSED, "closed");
    (void)pawl_env_post(p->options.env, p->options.shard, &p->begin); /* this may be a done, amid its batch */
}
