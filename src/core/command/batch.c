/* core/command/batch.c: what becomes of a batch once it was sent: durable, applied and answered; or lost. */
#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "core/command/processor_impl.h"
#include "core/state/key.h"

void staged_answer(struct staged *staged)
{
    struct call *call;
    while ((call = calls_take(&staged->calls))) {
        call->offset = staged->offset;
        call->body = staged->body;
        call_finish(call, PAWL_OK);
    }
}

/* Those who did not ask for more than this. */
static void answer_durable(struct staged *staged)
{
    struct calls rest;
    struct call *call;
    calls_init(&rest);
    while ((call = calls_take(&staged->calls))) {
        if (call->ack == ACK_APPLIED) {
            calls_add(&rest, call);
            continue;
        }
        call->offset = staged->offset;
        call->body = staged->body;
        call_finish(call, PAWL_OK);
    }
    calls_prepend(&staged->calls, &rest);
}

void batch_free(struct batch *batch)
{
    struct processor *p = batch->processor;
    struct batch **link = &p->first;
    while (*link != batch)
        link = &(*link)->next;
    *link = batch->next;
    if (!*link)
        p->last = link;
    batch->state = BATCH_FREE;
    batch->count = batch->bytes = 0;
    arena_reset(&batch->memory);
}

struct batch *batch_fill(struct processor *p)
{
    for (uint32_t i = 0; i < p->options.batches_max; i++) {
        struct batch *b = &p->batches[i];
        if (b->state != BATCH_FREE)
            continue;
        b->state = BATCH_FILLING;
        b->next = NULL;
        *p->last = b;
        p->last = &b->next;
        calls_init(&b->waiting);
        return b;
    }
    return NULL;
}

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

static int item_write(struct apply_item *item, pawl_store *store)
{
    struct batch *batch = heap_entry(item, struct batch, item);
    struct processor *p = batch->processor;
    struct position *position = &p->position;
    size_t i = 0;
    int status = PAWL_OK;
    for (; i < batch->count; i++) {
        status = digests_add(&position->digests, &batch->events[i].changes);
        if (status != PAWL_OK)
            break;
        for (const struct row_change *c = batch->events[i].changes.first; c && status == PAWL_OK; c = c->next)
            status = c->value.data ? pawl_store_put(store, STATE_SPACE, c->key, c->value)
                                   : pawl_store_remove(store, STATE_SPACE, c->key);
        if (status != PAWL_OK) {
            i++;
            break;
        }
        processor_audit(p, batch->events[i].offset);
    }
    uint64_t offset = position->offset, checksum = position->checksum;
    pawl_place place = position->place;
    if (status == PAWL_OK) {
        const struct staged *last = &batch->events[batch->count - 1];
        position->offset = last->offset;
        position->place = batch->entries[batch->count - 1].place;
        position->checksum = hash_checksum(0, last->body);
        status = position_write(position, store);
        if (status == PAWL_OK)
            return status;
    }
    position->offset = offset;
    position->place = place;
    position->checksum = checksum;
    while (i-- > 0)
        digests_subtract(&position->digests, &batch->events[i].changes);
    return status;
}

/* The position's own fields are those of the next attempt's last batch in any case; only sums must be taken
 * back. */
static void item_undo(struct apply_item *item)
{
    struct batch *batch = heap_entry(item, struct batch, item);
    for (size_t i = 0; i < batch->count; i++)
        digests_subtract(&batch->processor->position.digests, &batch->events[i].changes);
}

static void item_done(struct apply_item *item)
{
    struct batch *batch = heap_entry(item, struct batch, item);
    struct processor *p = batch->processor;
    for (size_t i = 0; i < batch->count; i++) {
        overlay_remove(&p->overlay, &batch->events[i].changes);
        p->figures.puts += batch->events[i].changes.count;
    }
    p->figures.events += batch->count;
    processor_tell_applied(p);
    for (size_t i = 0; i < batch->count; i++)
        staged_answer(&batch->events[i]);
    batch_free(batch);
    if (p->state == PROCESSOR_RUNNING)
        processor_run(p, false);
    else
        recover_step(p);
}

/* The event is truth, and is applied whenever that can be: but nobody waits for it for ever. */
static void item_late(struct apply_item *item)
{
    struct batch *batch = heap_entry(item, struct batch, item);
    const struct processor *p = batch->processor;
    if (pawl_env_now(p->options.env).ns - batch->durable.ns < p->options.wait)
        return;
    char words[128];
    snprintf(words, sizeof words, "the event is in the log, and the state cannot be written now (%s)",
             pawl_status_name(p->options.applier->stuck));
    for (size_t i = 0; i < batch->count; i++)
        calls_refuse(&batch->events[i].calls, PAWL_EUNKNOWN, words);
}

static void batch_durable(struct batch *batch)
{
    struct processor *p = batch->processor;
    batch->state = BATCH_DURABLE;
    int status = pawl_sequencer_flush(p->sequencer, batch->events[batch->count - 1].offset);
    assert(status == PAWL_OK);
    batch->durable = pawl_env_now(p->options.env);
    batch->item =
        (struct apply_item){.write = item_write, .undo = item_undo, .done = item_done, .late = item_late};
    applier_add(p->options.applier, &batch->item);
    for (size_t i = 0; i < batch->count; i++)
        answer_durable(&batch->events[i]);
    struct call *call;
    while ((call = calls_take(&batch->waiting)))
        call_finish(call, call->status);
}

/* A status by which the log says for certain that an entry was not written. */
static bool is_certain(int status)
{
    return status != PAWL_OK && status != PAWL_EUNKNOWN;
}

/* Numbers after this one are void: what was not written is refused now, with the reason of the first failure;
 * of the rest recovery finds out. Whatever rested on it is processed again. */
static void batch_lost(struct batch *batch)
{
    struct processor *p = batch->processor;
    int status = batch->append.status;
    if (p->cause == PAWL_OK) {
        p->figures.failures++;
        p->cause = status;
        p->lost = pawl_env_now(p->options.env);
        p->error = batch->error;
    }
    if (p->state == PROCESSOR_RUNNING)
        processor_move(p, PROCESSOR_DRAINING);
    batch->state = BATCH_LOST;
    for (size_t i = 0; i < batch->count; i++)
        overlay_remove(&p->overlay, &batch->events[i].changes);
    calls_return(&p->queue, &batch->waiting);
    for (size_t i = 0; i < batch->count; i++) {
        int reason = batch->entries[i].status;
        if (!is_certain(reason))
            continue;
        reason = reason == PAWL_EFENCED && is_certain(p->cause) ? p->cause : reason;
        calls_refuse(&batch->events[i].calls, reason,
                     p->error.text[0] ? p->error.text : pawl_status_text(reason));
    }
}

void batch_sent_done(struct batch *batch)
{
    struct processor *p = batch->processor;
    if (batch->append.status == PAWL_OK && p->cause == PAWL_OK)
        batch_durable(batch);
    else
        batch_lost(batch);
    if (p->state != PROCESSOR_RUNNING)
        recover_step(p);
}
