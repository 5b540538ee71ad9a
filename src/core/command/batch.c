/* core/command/batch.c: what becomes of a batch of events: durable, applied and answered; or undone. */
#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "core/command/processor_impl.h"

/* The event is durable, and applied for those who asked to wait for that. */
static void answer(struct writer_batch *batch, size_t index)
{
    const pawl_entry *entry = &batch->entries[index].entry;
    struct call *call;
    while ((call = call_list_take(&batch_staged(batch)[index].calls))) {
        call->offset = entry->offset;
        call->body = entry->body;
        call_finish(call, PAWL_OK);
    }
}

/* Answer those who did not ask to wait until it is applied. */
static void answer_durable(struct writer_batch *batch, size_t index)
{
    const pawl_entry *entry = &batch->entries[index].entry;
    struct staged *staged = &batch_staged(batch)[index];
    struct call_list rest;
    struct call *call;
    call_list_init(&rest);
    while ((call = call_list_take(&staged->calls))) {
        if (call->ack == ACK_APPLIED) {
            call_list_add(&rest, call);
            continue;
        }
        call->offset = entry->offset;
        call->body = entry->body;
        call_finish(call, PAWL_OK);
    }
    call_list_prepend(&staged->calls, &rest);
}

void batch_durable(void *ctx, struct writer_batch *batch)
{
    struct processor *p = ctx;
    int status = pawl_sequencer_flush(p->sequencer, batch->entries[batch->count - 1].entry.offset);
    assert(status == PAWL_OK);
    (void)status;
    for (size_t i = 0; i < batch->count; i++)
        answer_durable(batch, i);
    struct call *call;
    while ((call = call_list_take(&p->waiting[batch->index])))
        call_finish(call, call->status);
}

/* --- applying --- */

void processor_tell_applied(struct processor *p)
{
    p->figures.offset = p->position.offset;
    if (p->options.applied)
        p->options.applied(p->options.ctx, p->options.partition, p->position.offset);
}

void processor_audit(struct processor *p, uint64_t offset)
{
    if (p->options.audit && offset % p->options.audit_every == 0)
        p->options.audit(p->options.ctx, &p->position, offset);
}

/* What an audit compares is the state behind one event: the rows of those behind it must not be there yet. */
static bool has_audit(const struct processor *p, const struct writer_batch *batch)
{
    uint64_t first = batch->entries[0].entry.offset, every = p->options.audit_every;
    return p->options.audit && (first + batch->count - 1) / every != (first - 1) / every;
}

static int put_rows(const struct processor *p, const struct staged *staged, pawl_store *store)
{
    struct put_watch *watch = p->options.views ? view_tables_watch(p->options.views) : NULL;
    return changes_put(&staged->changes, store, watch);
}

int batch_ahead(void *ctx, struct writer_batch *batch, pawl_store *store)
{
    const struct processor *p = ctx;
    int status = has_audit(p, batch) ? PAWL_ECANCELED : PAWL_OK;
    for (size_t i = 0; i < batch->count && status == PAWL_OK; i++)
        status = put_rows(p, &batch_staged(batch)[i], store);
    return status;
}

int batch_write(void *ctx, struct writer_batch *batch, pawl_store *store)
{
    struct processor *p = ctx;
    struct position *position = &p->position;
    const struct staged *staged = batch_staged(batch);
    size_t i = 0;
    int status = PAWL_OK;
    for (; i < batch->count && status == PAWL_OK; i++) {
        status = digests_add(&position->digests, &staged[i].changes);
        if (status != PAWL_OK)
            break;
        if (!batch_is_put(batch))
            status = put_rows(p, &staged[i], store);
        if (status == PAWL_OK)
            processor_audit(p, batch->entries[i].entry.offset);
    }
    uint64_t offset = position->offset, checksum = position->checksum;
    pawl_place place = position->place;
    if (status == PAWL_OK) {
        const pawl_append_entry *last = &batch->entries[batch->count - 1];
        position->offset = last->entry.offset;
        position->place = last->place;
        position->checksum = hash_checksum(0, last->entry.body);
        status = position_write(position, store);
        if (status == PAWL_OK)
            return status;
    }
    position->offset = offset;
    position->place = place;
    position->checksum = checksum;
    while (i-- > 0)
        digests_subtract(&position->digests, &staged[i].changes);
    return status;
}

/* Only the digests must be taken back. The position's other fields are set again when the batch is written
 * again. */
void batch_unwrite(void *ctx, struct writer_batch *batch)
{
    struct processor *p = ctx;
    for (size_t i = 0; i < batch->count; i++)
        digests_subtract(&p->position.digests, &batch_staged(batch)[i].changes);
}

static void leave_overlay(struct processor *p, struct writer_batch *batch)
{
    struct staged *staged = batch_staged(batch);
    for (size_t i = 0; i < batch->count; i++) {
        overlay_remove(&p->overlay, &staged[i].changes);
        unique_remove(&p->unique, &staged[i].keys);
    }
}

void batch_applied(void *ctx, struct writer_batch *batch)
{
    struct processor *p = ctx;
    leave_overlay(p, batch);
    for (size_t i = 0; i < batch->count; i++)
        p->figures.puts += batch_staged(batch)[i].changes.count;
    p->figures.events += batch->count;
    processor_tell_applied(p);
    for (size_t i = 0; i < batch->count; i++)
        answer(batch, i);
}

/* The event is in the log and will be applied as soon as the store can be written. But nobody waits for
 * ever. */
void batch_late(void *ctx, struct writer_batch *batch)
{
    const struct processor *p = ctx;
    if (pawl_env_now(p->options.env).ns - batch->durable.ns < p->options.wait)
        return;
    char words[128];
    snprintf(words, sizeof words, "the event is in the log, and the state cannot be written now (%s)",
             pawl_status_name(p->options.applier->stuck));
    for (size_t i = 0; i < batch->count; i++)
        call_list_refuse(&batch_staged(batch)[i].calls, PAWL_EUNKNOWN, words);
}

/* --- undoing --- */

/* A status by which the log says for certain that an entry was not written. */
static bool is_certain(int status)
{
    return status != PAWL_OK && status != PAWL_EUNKNOWN;
}

/* Refuse the commands whose events were certainly not written, with the reason of the first failure. Recovery
 * finds out what became of the others. */
static void refuse_unwritten(struct processor *p, struct writer_batch *batch)
{
    const struct writer *w = &p->writer;
    for (size_t i = 0; i < batch->count; i++) {
        int reason = batch->entries[i].status;
        if (!is_certain(reason))
            continue;
        reason = reason == PAWL_EFENCED && is_certain(w->cause) ? w->cause : reason;
        call_list_refuse(&batch_staged(batch)[i].calls, reason,
                         w->error.text[0] ? w->error.text : pawl_status_text(reason));
    }
}

/* Numbers from this batch on are void. Commands whose answer rested on it are processed again, and so are
 * commands that were never sent. If the batch is durable and the writer is closing, the store gets its events
 * when it is opened again: so these commands are answered. */
void batch_undo(void *ctx, struct writer_batch *batch)
{
    struct processor *p = ctx;
    leave_overlay(p, batch);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->state == BATCH_FILLING)
            call_list_return(&p->queue, &batch_staged(batch)[i].calls);
        else if (batch->state == BATCH_DURABLE)
            answer(batch, i);
    call_list_return(&p->queue, &p->waiting[batch->index]);
    if (batch->state == BATCH_LOST)
        refuse_unwritten(p, batch);
}

void batch_fate(void *ctx, struct writer_batch *batch, size_t index, enum writer_fate fate)
{
    const struct processor *p = ctx;
    struct call_list *calls = &batch_staged(batch)[index].calls;
    if (fate == FATE_WRITTEN)
        answer(batch, index);
    else if (fate == FATE_NOT_WRITTEN)
        call_list_refuse(calls, PAWL_EIO, "the event was not written");
    else
        call_list_refuse(calls, PAWL_EUNKNOWN,
                         p->writer.state == WRITER_CLOSED
                             ? "the partition is closed, and it is not known whether the event was written"
                             : p->writer.error.text);
}
