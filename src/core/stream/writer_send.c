/* core/stream/writer_send.c: what becomes of a batch: sent, durable and applied; or lost. */
#include <assert.h>

#include "base/heap.h"
#include "core/stream/writer_impl.h"

#define BUSY PAWL_MILLISECOND

/* --- applying --- */

static int item_ahead(struct apply_item *item, pawl_store *store)
{
    struct writer_batch *batch = heap_entry(item, struct writer_batch, item);
    return batch->writer->options.ops->ahead(batch->writer->options.ctx, batch, store);
}

static int item_write(struct apply_item *item, pawl_store *store)
{
    struct writer_batch *batch = heap_entry(item, struct writer_batch, item);
    return batch->writer->options.ops->write(batch->writer->options.ctx, batch, store);
}

static void item_undo(struct apply_item *item)
{
    struct writer_batch *batch = heap_entry(item, struct writer_batch, item);
    batch->writer->options.ops->unwrite(batch->writer->options.ctx, batch);
}

static void item_late(struct apply_item *item)
{
    struct writer_batch *batch = heap_entry(item, struct writer_batch, item);
    if (batch->writer->options.ops->late)
        batch->writer->options.ops->late(batch->writer->options.ctx, batch);
}

static void item_done(struct apply_item *item)
{
    struct writer_batch *batch = heap_entry(item, struct writer_batch, item);
    struct writer *w = batch->writer;
    w->options.ops->applied(w->options.ctx, batch);
    writer_free_batch(batch);
    if (w->state == WRITER_RUNNING)
        w->options.ops->run(w->options.ctx);
    else
        writer_step(w);
}

/* --- the log's answer --- */

static void become_durable(struct writer_batch *batch)
{
    struct writer *w = batch->writer;
    batch->state = BATCH_DURABLE;
    batch->durable = pawl_env_now(w->options.env);
    applier_add(w->options.applier, &batch->item);
    if (w->options.ops->durable)
        w->options.ops->durable(w->options.ctx, batch);
}

static void become_lost(struct writer_batch *batch)
{
    struct writer *w = batch->writer;
    if (w->cause == PAWL_OK) {
        w->failures++;
        w->cause = batch->append.status;
        w->lost = pawl_env_now(w->options.env);
        w->error = batch->error;
    }
    batch->state = BATCH_LOST;
    applier_lost(w->options.applier, &batch->item);
    if (w->state == WRITER_RUNNING)
        writer_move(w, WRITER_DRAINING);
    w->options.ops->undo(w->options.ctx, batch);
}

static void append_done(pawl_append *append)
{
    struct writer_batch *batch = heap_entry(append, struct writer_batch, append);
    struct writer *w = batch->writer;
    for (const struct writer_batch *b = w->first; b != batch; b = b->next)
        assert(append->status != PAWL_OK || b->state != BATCH_SENT); /* W4 */
    if (append->status == PAWL_OK && w->cause == PAWL_OK)
        become_durable(batch);
    else
        become_lost(batch); /* W2 */
    applier_soon(w->options.applier);
    if (w->state != WRITER_RUNNING)
        writer_step(w);
}

/* --- sending --- */

bool writer_send(struct writer *w, struct writer_batch *batch)
{
    assert(w->state == WRITER_RUNNING && batch->state == BATCH_FILLING && batch->count > 0);
    batch->append = (pawl_append){
        .entries = batch->entries, .count = batch->count, .done = append_done, .error = &batch->error};
    batch->item = (struct apply_item){
        .ahead = item_ahead, .write = item_write, .undo = item_undo, .done = item_done, .late = item_late};
    int status = pawl_log_append(w->options.log, &batch->append);
    if (status == PAWL_EBUSY) {
        writer_pause(w, BUSY);
        return false;
    }
    batch->state = BATCH_SENT;
    if (status == PAWL_OK) {
        if (w->options.ops->ahead && w->first == batch)
            applier_sent(w->options.applier, &batch->item);
        return true;
    }
    /* Nothing was started: the same as if the log had refused every entry. */
    for (size_t i = 0; i < batch->count; i++)
        batch->entries[i].status = PAWL_EIO;
    batch->append.status = PAWL_EIO;
    become_lost(batch);
    writer_soon(w);
    return true;
}
