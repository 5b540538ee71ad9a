/* core/sequence/ready.c: telling those whom start answered PAWL_EBUSY that it is worth another try.
 *
 *      when_ready ──► queue ── may start: a timer of no delay ──► told, in their order, while there is room
 *
 * They are told from the shard's loop and never from inside a call, so that a caller of flush or when_ready
 * does not find another event open when the call returns. Each is told once: it leaves the queue before it is
 * called. The first one told may take the last room; then the others go on waiting. */
#include "core/sequence/sequencer.h"

#include "base/error.h"
#include "base/heap.h"

/* Whether start of any workspace would be accepted. */
static bool may_start(const pawl_sequencer *s)
{
    bool staged = s->staged.count;
    return sequencer_state(s) == PAWL_SEQUENCER_READY
           && figure_get(&s->figures.unflushed) + s->changes.count < s->options.limits.unflushed_max
           && !(staged && s->staged.count == s->staged.capacity)
           && !(staged && s->changes.capacity - s->changes.count < s->kinds.sequences_max);
}

static void tell_first(pawl_sequencer *s, int status)
{
    pawl_sequencer_waiter *waiter = s->ready.first;
    s->ready.first = waiter->next;
    s->ready.count--;
    waiter->next = NULL;
    waiter->fn(waiter, status);
}

void ready_tell_all(pawl_sequencer *s, int status)
{
    while (s->ready.first)
        tell_first(s, status);
}

/* No more than were there when it began: one that at once waits again has its turn in the next round. */
static void timer_fired(pawl_timer *timer)
{
    pawl_sequencer *s = heap_entry(timer, pawl_sequencer, ready.timer);
    for (size_t n = s->ready.count; n && s->ready.first && (s->refused || may_start(s)); n--)
        tell_first(s, s->refused);
    ready_look(s);
}

void ready_init(pawl_sequencer *s)
{
    s->ready.timer.fn = timer_fired;
}

void ready_look(pawl_sequencer *s)
{
    if (s->ready.first && !s->closed && (s->refused || may_start(s)))
        pawl_env_after(s->env, &s->ready.timer, 0);
}

int pawl_sequencer_when_ready(pawl_sequencer *s, pawl_sequencer_waiter *waiter)
{
    if (s->closed)
        return error_set(&s->error, PAWL_EMISUSE, "when_ready: it was freed");
    pawl_sequencer_waiter **last = &s->ready.first;
    while (*last)
        last = &(*last)->next;
    waiter->next = NULL;
    *last = waiter;
    s->ready.count++;
    ready_look(s);
    return PAWL_OK;
}

bool pawl_sequencer_unwait(pawl_sequencer *s, pawl_sequencer_waiter *waiter)
{
    for (pawl_sequencer_waiter **at = &s->ready.first; *at; at = &(*at)->next)
        if (*at == waiter) {
            *at = waiter->next;
            s->ready.count--;
            return true;
        }
    return false;
}
