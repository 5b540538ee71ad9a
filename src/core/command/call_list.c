/* core/command/call_list.c: lists of commands that wait, and how a wait ends. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/command/processor_impl.h"

void call_list_init(struct call_list *calls)
{
    *calls = (struct call_list){.last = &calls->first};
}

void call_list_add(struct call_list *calls, struct call *call)
{
    call->next = NULL;
    *calls->last = call;
    calls->last = &call->next;
    calls->count++;
}

struct call *call_list_take(struct call_list *calls)
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

void call_list_prepend(struct call_list *to, struct call_list *from)
{
    if (!from->first)
        return;
    *from->last = to->first;
    if (!to->first)
        to->last = from->last;
    to->first = from->first;
    to->count += from->count;
    call_list_init(from);
}

void call_list_return(struct call_list *to, struct call_list *from)
{
    struct call **at = &to->first, *call;
    while ((call = call_list_take(from))) {
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

/* In the order of submission, so those whose time is over come first. */
void call_list_refuse_late(struct call_list *calls, pawl_instant now, int status, const char *words)
{
    struct call_list late;
    call_list_init(&late);
    while (calls->first && calls->first->deadline.ns <= now.ns)
        call_list_add(&late, call_list_take(calls));
    call_list_refuse(&late, status, words);
}

void call_list_refuse(struct call_list *calls, int status, const char *words)
{
    struct call_list refused; /* a done may submit again */
    struct call *call;
    call_list_init(&refused);
    call_list_prepend(&refused, calls);
    while ((call = call_list_take(&refused))) {
        error_set(call->error, status, "%s", words);
        call_finish(call, status);
    }
}
