/* core/stream/writer.c: the states of a writer, its batches, how it begins and ends. */
#include "core/stream/writer.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/stream/writer_impl.h"

#define COPIES_CHUNK ((size_t)64 * 1024)
#define CHUNKS_KEPT  64 /* of a batch's memory are kept for the next use; the rest is freed */

/* --- states --- */

/* The drawing in writer.h as a table: which state may follow which. */
void writer_move(struct writer *w, enum writer_state to)
{
#define TO(state) (1u << WRITER_##state)
    static const unsigned legal[] = {
        [WRITER_CLAIMING] = TO(CATCHING_UP) | TO(REFUSED) | TO(CLOSED),
        [WRITER_CATCHING_UP] = TO(PREPARING) | TO(REFUSED) | TO(CLOSED),
        [WRITER_PREPARING] = TO(RUNNING) | TO(REFUSED) | TO(CLOSED),
        [WRITER_RUNNING] = TO(DRAINING) | TO(REFUSED) | TO(CLOSED),
        [WRITER_DRAINING] = TO(CLAIMING) | TO(PREPARING) | TO(CLOSED),
        [WRITER_REFUSED] = TO(CLOSED),
        [WRITER_CLOSED] = 0,
    };
#undef TO
    enum writer_state from = w->state;
    assert(legal[from] & 1u << to);
    w->state = to;
    if (w->options.ops->moved)
        w->options.ops->moved(w->options.ctx, from);
}

void writer_step(struct writer *w)
{
    if (w->state == WRITER_CLOSED)
        writer_end(w);
    else
        writer_recover(w);
}

void writer_drain(struct writer *w)
{
    if (w->state != WRITER_RUNNING)
        return;
    writer_move(w, WRITER_DRAINING);
    writer_soon(w);
}

void writer_ready(struct writer *w)
{
    if (w->state != WRITER_PREPARING)
        return;
    assert(!w->first && w->cause == PAWL_OK); /* W6 */
    w->error = (pawl_error){0};
    w->retry_delay = 0;
    writer_move(w, WRITER_RUNNING);
    if (w->state == WRITER_RUNNING)
        w->options.ops->run(w->options.ctx);
}

void writer_refuse(struct writer *w, int status)
{
    w->error.code = status;
    writer_move(w, WRITER_REFUSED);
    writer_settle(w, FATE_UNKNOWN);
}

void writer_give_up(struct writer *w, const char *words)
{
    if (w->state == WRITER_REFUSED || w->state == WRITER_CLOSED || w->given_up)
        return;
    w->given_up = true;
    error_set(&w->given_up_to, PAWL_EFENCED, "%s", words);
    writer_soon(w); /* not at once: this may be a callback in the middle of a batch */
}

static void pause_over(pawl_timer *timer)
{
    struct writer *w = heap_entry(timer, struct writer, pause);
    w->pausing = false;
    if (w->state == WRITER_RUNNING)
        w->options.ops->run(w->options.ctx);
}

void writer_pause(struct writer *w, pawl_duration delay)
{
    w->pausing = true;
    w->pause.fn = pause_over;
    pawl_env_after(w->options.env, &w->pause, delay);
}

/* --- batches --- */

struct writer_batch *writer_fill(struct writer *w)
{
    assert(w->state == WRITER_RUNNING); /* W6 */
    for (struct writer_batch *b = w->first; b; b = b->next)
        if (b->state == BATCH_FILLING)
            return b;
    for (uint32_t i = 0; i < w->options.batches; i++) {
        struct writer_batch *b = &w->batches[i];
        if (b->state != BATCH_FREE)
            continue;
        b->state = BATCH_FILLING;
        b->next = NULL;
        *w->last = b;
        w->last = &b->next;
        return b;
    }
    return NULL;
}

void writer_unfill(struct writer_batch *batch)
{
    assert(batch->state == BATCH_FILLING && batch->count == 0);
    writer_free_batch(batch);
}

void writer_free_batch(struct writer_batch *batch)
{
    struct writer *w = batch->writer;
    struct writer_batch **link = &w->first;
    while (*link != batch)
        link = &(*link)->next;
    *link = batch->next;
    if (!*link)
        w->last = link;
    batch->state = BATCH_FREE;
    batch->count = batch->bytes = batch->settled = 0;
    if (batch->memory.held > CHUNKS_KEPT * batch->memory.chunk_size)
        arena_release(&batch->memory);
    else
        arena_reset(&batch->memory);
}

/* --- the beginning --- */

static void step(pawl_task *task)
{
    writer_step(heap_entry(task, struct writer, step));
}

void writer_soon(struct writer *w)
{
    /* The env refuses only when it is closing, and then nothing runs any more. */
    if (!w->told)
        (void)pawl_env_post(w->options.env, w->options.shard, &w->step);
}

int writer_init(struct writer *w, const struct writer_options *o)
{
    *w = (struct writer){.options = *o, .step.fn = step};
    w->last = &w->first;
    copies_init(&w->copies, o->allocator, COPIES_CHUNK);
    w->batches = mem_new(o->allocator, o->batches, sizeof w->batches[0]);
    for (uint32_t i = 0; w->batches && i < o->batches; i++) {
        struct writer_batch *b = &w->batches[i];
        b->writer = w;
        b->index = i;
        arena_init(&b->memory, o->allocator, o->memory_chunk);
        b->entries = mem_take(o->allocator, o->batch_entries, sizeof b->entries[0]);
        b->staged = mem_take(o->allocator, o->batch_entries, o->staged_size);
        if (!b->entries || !b->staged) {
            writer_deinit(w);
            return PAWL_ENOMEM;
        }
    }
    return w->batches ? PAWL_OK : PAWL_ENOMEM;
}

void writer_deinit(struct writer *w)
{
    const struct writer_options *o = &w->options;
    assert(!w->first);
    for (uint32_t i = 0; w->batches && i < o->batches; i++) {
        struct writer_batch *b = &w->batches[i];
        arena_release(&b->memory);
        mem_free(o->allocator, b->entries, o->batch_entries * sizeof b->entries[0]);
        mem_free(o->allocator, b->staged, o->batch_entries * o->staged_size);
    }
    mem_free(o->allocator, w->batches, o->batches * sizeof w->batches[0]);
    w->batches = NULL;
    copies_release(&w->copies);
}

int writer_begin(struct writer *w)
{
    return pawl_env_post(w->options.env, w->options.shard, &w->step);
}

/* --- the end --- */

/* Wait until the log has answered every batch. Durable batches are written to the store now. If the store
 * cannot be written, they are given up: the store gets them when it catches up with the log after the next
 * opening. True: some are still under way. */
static bool batches_come_back(struct writer *w)
{
    struct applier *applier = w->options.applier;
    for (const struct writer_batch *b = w->first; b; b = b->next)
        if (b->state == BATCH_SENT)
            return true;
    if (applier->telling) { /* it cannot write now */
        writer_soon(w);
        return true;
    }
    applier_run(applier);
    for (struct writer_batch *b = w->first; b; b = b->next)
        if (b->state == BATCH_DURABLE && !applier_remove(applier, &b->item))
            return true;
    return false;
}

static void tell_closed(pawl_task *task)
{
    struct writer *w = heap_entry(task, struct writer, close_task);
    w->closed(w->closed_arg);
}

void writer_end(struct writer *w)
{
    const struct writer_ops *ops = w->options.ops;
    if (w->told || w->claiming || w->reading || batches_come_back(w))
        return;
    writer_settle(w, FATE_UNKNOWN);
    while (w->first) {
        ops->undo(w->options.ctx, w->first);
        writer_free_batch(w->first);
    }
    if (!ops->end(w->options.ctx) || w->told)
        return;
    w->told = true;
    w->close_task.fn = tell_closed;
    (void)pawl_env_post(w->options.env, w->options.shard, &w->close_task);
}

void writer_close(struct writer *w, void (*closed)(void *arg), void *arg)
{
    w->closed = closed;
    w->closed_arg = arg;
    writer_move(w, WRITER_CLOSED);
    pawl_env_cancel(w->options.env, &w->pause);
    pawl_env_cancel(w->options.env, &w->retry);
    writer_soon(w); /* not at once: this may be a callback in the middle of a batch */
}
