/* core/command/late.c: nobody waits longer than options.wait (P7), whether or not the log answers.
 *
 * One timer stands at the first deadline of all commands under way. It is set when a command is submitted and the timer
 * does not run, so a processor that is busy all the time sets it once in that while. A command whose event is in a batch
 * is answered with PAWL_EUNKNOWN: the log may have it, and the writer goes on to find that out. Others get PAWL_EBUSY.
 *
 * A command whose event is durable is not looked at here: batch_late tells it, if the state cannot be written.
 *
 * While the shard's own thread syncs (engine/shard/shard.c: send_kept) no timer runs: if a disk hangs in that moment, these
 * few commands wait for it. */
#include <stdio.h>

#include "base/error.h"
#include "base/heap.h"
#include "core/command/processor_impl.h"

#define LOOKS_IN_A_WAIT 100 /* at most: many commands have their deadlines close together */

static void take_first(const struct call_list *calls, pawl_instant *next)
{
    if (calls->first && calls->first->deadline.ns < next->ns)
        *next = calls->first->deadline;
}

/* Those whose events are in a batch. One that was not sent, because the log has no room, will be. */
static void refuse_staged(struct processor *p, pawl_instant now)
{
    const pawl_error *error = &p->writer.error;
    char unknown[sizeof error->text];
    const char *why = error->text[0] ? error->text : "the log has not answered in time";
    snprintf(unknown, sizeof unknown, "it is not known whether the event was written: %.400s", why);
    for (struct writer_batch *b = p->writer.first; b; b = b->next)
        for (size_t i = 0; b->state != BATCH_DURABLE && i < b->count; i++)
            call_list_refuse_late(&batch_staged(b)[i].calls, now, PAWL_EUNKNOWN, unknown);
}

/* Why a command that has left no trace was not answered. */
static void explain(const struct processor *p, pawl_error *error)
{
    const pawl_error *why = &p->writer.error;
    if (p->writer.state != WRITER_RUNNING)
        error_set(error, PAWL_EBUSY, "partition %u is recovering%s%.400s", p->options.partition,
                  why->text[0] ? ": " : "", why->text);
    else if (!p->writer.pausing)
        error_set(error, PAWL_EBUSY, "the log of partition %u does not answer", p->options.partition);
    else if (error && error->code == PAWL_EBUSY) /* it was tried, and the sequencer said why */
        error_wrap(error, PAWL_EBUSY, "partition %u has no room", p->options.partition);
    else
        error_set(error, PAWL_EBUSY, "partition %u has no room", p->options.partition);
}

static void refuse_untraced(struct processor *p, struct call_list *calls, pawl_instant now)
{
    while (calls->first && calls->first->deadline.ns <= now.ns) {
        struct call *call = call_list_take(calls);
        explain(p, call->error);
        call_finish(call, PAWL_EBUSY);
    }
}

static pawl_instant first_deadline(const struct processor *p, pawl_instant next)
{
    take_first(&p->queue, &next);
    for (uint32_t i = 0; i < p->options.batches_max; i++)
        take_first(&p->waiting[i], &next);
    for (const struct writer_batch *b = p->writer.first; b; b = b->next)
        for (size_t i = 0; b->state != BATCH_DURABLE && i < b->count; i++)
            take_first(&batch_staged(b)[i].calls, &next);
    return next;
}

static void look(pawl_timer *timer)
{
    struct processor *p = heap_entry(timer, struct processor, late_timer);
    const pawl_duration least = p->options.wait / LOOKS_IN_A_WAIT;
    pawl_instant now = pawl_env_now(p->options.env), next = {UINT64_MAX};
    refuse_staged(p, now);
    repeat_late(p, now, &next);
    for (uint32_t i = 0; i < p->options.batches_max; i++)
        refuse_untraced(p, &p->waiting[i], now); /* an answer that rests on what is staged */
    refuse_untraced(p, &p->queue, now);
    next = first_deadline(p, next);
    p->late_watching =
        next.ns < UINT64_MAX && p->writer.state != WRITER_CLOSED; /* an answer may have closed it */
    if (p->late_watching)
        pawl_env_after(p->options.env, &p->late_timer, next.ns > now.ns + least ? next.ns - now.ns : least);
}

void late_watch(struct processor *p)
{
    if (p->late_watching)
        return;
    p->late_watching = true;
    p->late_timer.fn = look;
    pawl_env_after(p->options.env, &p->late_timer, p->options.wait);
}
