/* core/command/calls.c: lists of commands that wait, and how a wait ends. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/command/processor_impl.h"

void calls_init(struct calls *calls)
{
    *calls = (struct calls){.last = &calls->first};
}

void calls_add(struct calls *calls, struct call *call)
{
    call->next = NULL;
    *calls->last = call;
    calls->last = &call->next;
    calls->count++;
}

struct call *calls_take(struct calls *calls)
{
    struct call *call = calls->first;
    if (!call)
        return NULL;
    calls->first = call->next;
    if (!calls->first)
        calls->last = &calls->first;
    calls->count--;
    return call;
}

void calls_prepend(struct calls *to, struct calls *from)
{
    if (!from->first)
        return;
    *from->last = to->first;
    if (!to->first)
        to->last = from->last;
    to->first = from->first;
    to->count += from->count;
    calls_init(from);
}

void calls_return(struct calls *to, struct calls *from)
{
    struct call **at = &to->first, *call;
    while ((call = calls_take(from))) {
        while (*at && (*at)->order < call->order)
            at = &(*at)->next;
        call->next = *at;
        *at = call;
        at = &call->next;
        if (!call->next)
            to->last = at;
        to->count++;
    }
}

void call_finish(struct call *call, int status)
{
    struct processor *p = call->processor;
    call->status = status;
    if (status != PAWL_OK)
        p->figures.refused++;
    else {
        p->figures.commands++;
        p->figures.repeated += call->repeated;
    }
    uint8_t *found = call->found; /* the call belongs to its owner from done on */
    size_t size = call->body.size;
    call->done(call);
    mem_free(p->options.allocator, found, found ? size : 0);
}

void calls_refuse(struct calls *calls, int status, const char *words)
{
    struct calls refused; /* a done may submit again */
    struct call *call;
    calls_init(&refused);
    calls_prepend(&refused, calls);
    while ((call = calls_take(&refused))) {
        error_set(call->error, status, "%s", words);
        call_finish(call, status);
    }
}
