/* core/command/batch.c: what becomes of a batch of events: durable, applied and answered; or undone. */
#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "core/command/processor_impl.h"

/* Durable, and applied if that was asked. */
static void answer(struct writer_batch *batch, size_t index)
{
    const pawl_entry *entry = &batch->entries[index].entry;
    struct call *call;
    while ((call = calls_take(&batch_staged(batch)[index].calls))) {
        call->offset = entry->offset;
        call->body = entry->body;
        call_finish(call, PAWL_OK);
    }
}

/* Those who did not ask for more than this. */
static void answer_durable(struct writer_batch *batch, size_t index)
{
    const pawl_entry *entry = &batch->entries[index].entry;
    struct staged *staged = &batch_staged(batch)[index];
    struct calls rest;
    struct call *call;
    calls_init(&rest);
    while ((call = calls_take(&staged->calls))) {
        if (call->ack == ACK_APPLIED) {
            calls_add(&rest, call);
            continue;
        }
        call->offset = entry->offset;
        call->body = entry->body;
        call_finish(call, PAWL_OK);
    }
    calls_prepend(&staged->calls, &rest);
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
    while ((call = calls_take(&p->waiting[batch->index])))
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
        status = changes_put(&staged[i].changes, store);
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

/* The position's own fields are those of the next attempt's last batch in any case; only sums must be taken
 * back. */
void batch_unwrite(void *ctx, struct writer_batch *batch)
{
    struct processor *p = ctx;
    for (size_t i = 0; i < batch->count; i++)
        digests_subtract(&p->position.digests, &batch_staged(batch)[i].changes);
}

static void leave_overlay(struct processor *p, struct writer_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        overlay_remove(&p->overlay, &batch_staged(batch)[i].changes);
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

/* The event is truth, and is applied whenever that can be: but nobody waits for it for ever. */
void batch_late(void *ctx, struct writer_batch *batch)
{
    const struct processor *p = ctx;
    if (pawl_env_now(p->options.env).ns - batch->durable.ns < p->options.wait)
        return;
    char words[128];
    snprintf(words, sizeof words, "the event is in the log, and the state cannot be written now (%s)",
             pawl_status_name(p->options.applier->stuck));
    for (size_t i = 0; i < batch->count; i++)
        calls_refuse(&batch_staged(batch)[i].calls, PAWL_EUNKNOWN, words);
}

/* --- undoing --- */

/* A status by which the log says for certain that an entry was not written. */
static bool is_certain(int status)
{
    return status != PAWL_OK && status != PAWL_EUNKNOWN;
}

/* What was not written is refused, with the reason of the first failure; of the rest recovery finds out. */
static void refuse_unwritten(struct processor *p, struct writer_batch *batch)
{
    const struct writer *w = &p->writer;
    for (size_t i = 0; i < batch->count; i++) {
        int reason = batch->entries[i].status;
        if (!is_certain(reason))
            continue;
        reason = reason == PAWL_EFENCED && is_certain(w->cause) ? w->cause : reason;
        calls_refuse(&batch_staged(batch)[i].calls, reason,
                     w->error.text[0] ? w->error.text : pawl_status_text(reason));
    }
}

/* Numbers from here on are void. Whatever rested on them is processed again; and so is what was never sent. What
 * is durable and cannot be applied any more will be when the state is opened again: that is an answer. */
void batch_undo(void *ctx, struct writer_batch *batch)
{
    struct processor *p = ctx;
    leave_overlay(p, batch);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->state == BATCH_FILLING)
            calls_return(&p->queue, &batch_staged(batch)[i].calls);
        else if (batch->state == BATCH_DURABLE)
            answer(batch, i);
    calls_return(&p->queue, &p->waiting[batch->index]);
    if (batch->state == BATCH_LOST)
        refuse_unwritten(p, batch);
}

void batch_fate(void *ctx, struct writer_batch *batch, size_t index, enum writer_fate fate)
{
    const struct processor *p = ctx;
    struct calls *calls = &batch_staged(batch)[index].calls;
    if (fate == FATE_WRITTEN)
        answer(batch, index);
    else if (fate == FATE_NOT_WRITTEN)
        calls_refuse(calls, PAWL_EIO, "the event was not written");
    else
        calls_refuse(calls, PAWL_EUNKNOWN, p->writer.state == WRITER_CLOSED ? "closed" : p->writer.error.text);
}
