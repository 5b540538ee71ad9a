/* core/view/coordinator_calls.c: calls of workers, and what their answers mean. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/view/coordinator_impl.h"

void contact_forget_uncovered(struct contact *contact)
{
    mem_free(contact->coordinator->options.allocator, contact->uncovered,
             contact->uncovered_count * sizeof *contact->uncovered);
    contact->uncovered = NULL;
    contact->uncovered_count = contact->uncovered_at = 0;
}

/* The batch stays, and is tried again: a worker that is still at it is then found at it. */
static void call_failed(struct contact *contact, int status, pawl_bytes words)
{
    struct coordinator *c = contact->coordinator;
    contact->state = CONTACT_WAITING;
    contact->wait_until = coordinator_now(c) + c->options.backoff;
    if (status == PAWL_ETIMEOUT || status == PAWL_EIO) {
        c->figures.lost++;
        contact->ask = true; /* it may have begun anew, and cover less */
        contact->ask_from = contact->wait_until;
        error_set(&contact->error, status, "node %u does not answer for its shard %u", contact->place.node,
                  contact->place.shard);
    } else if (words.size > 0) {
        error_set(&contact->error, status, "%.*s", (int)words.size, (const char *)words.data);
    } else {
        error_set(&contact->error, status, "shard %u of node %u: %s", contact->place.shard, contact->place.node,
                  pawl_status_text(status));
    }
}

/* The place of an ID in the batch; they are usually answered in order, so it is looked for from *from on. */
static bool batch_find(const struct batch *batch, uint64_t id, size_t *from)
{
    for (size_t n = 0; n < batch->count; n++) {
        size_t i = (*from + n) % batch->count;
        if (batch->ids[i] != id)
            continue;
        *from = i;
        return true;
    }
    return false;
}

static bool note_failure(struct coordinator *c, uint32_t view, pawl_bytes words)
{
    for (size_t i = 0; i < c->failure_count; i++)
        if (c->failures[i].view == view)
            return true;
    if (c->failure_count == FAILURES_MAX)
        return false;
    struct failure *f = &c->failures[c->failure_count++];
    f->view = view;
    error_set(&f->words, PAWL_EEXISTS, "%.*s", (int)words.size, (const char *)words.data);
    return true;
}

/* O3. How many of the batch are over. */
static size_t take_results(struct contact *contact, const struct work_result *results, size_t count)
{
    struct coordinator *c = contact->coordinator;
    size_t over = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        if (!batch_find(&contact->batch, results[i].id, &at))
            continue;
        if (results[i].outcome == WORK_FINISHED)
            over += collect_finished(c, results[i].id);
        else if (results[i].outcome == WORK_FAILED)
            over += note_failure(c, contact->batch.views[at], results[i].words);
    }
    return over;
}

static void call_done(pawl_bus_call *call)
{
    struct contact *contact = call->arg;
    struct coordinator *c = contact->coordinator;
    struct work_result *results;
    size_t count;
    int status = call->status;
    pawl_bytes words = call->reply;
    contact->state = CONTACT_IDLE;
    arena_reset(&c->scratch);
    if (status == PAWL_OK) {
        words = (pawl_bytes){0};
        status = work_reply_decode(call->reply, &c->scratch, &results, &count);
    }
    if (status != PAWL_OK) {
        call_failed(contact, status, words);
    } else {
        size_t over = take_results(contact, results, count);
        contact->left = contact->left || over < contact->batch.count;
        if (over == 0 && contact->tablet == contact->batch.tablet) /* else what is left there comes first */
            contact->tablet++;
        contact->batch.count = 0;
        contact->error.code = PAWL_OK;
    }
    coordinator_wake(c);
}

void contact_call(struct contact *contact)
{
    struct coordinator *c = contact->coordinator;
    pawl_bytes body;
    arena_reset(&c->scratch);
    int status = work_encode(c->options.term, contact->batch.ids, contact->batch.count, &c->scratch, &body);
    contact->chosen = false;
    contact->state = CONTACT_CALLED;
    contact->call = (pawl_bus_call){
        .node = contact->place.node,
        .shard = contact->place.shard,
        .verb = VERB_WORK,
        .body = body,
        .timeout = c->options.timeout,
        .done = call_done,
        .arg = contact,
    };
    c->figures.calls++;
    if (status == PAWL_OK)
        status = pawl_bus_call_begin(c->options.bus, &contact->call);
    if (status != PAWL_OK)
        call_failed(contact, status, (pawl_bytes){0});
}

void contact_drop(struct contact *contact)
{
    assert(contact->state == CONTACT_CALLED);
    pawl_bus_cancel(contact->coordinator->options.bus, &contact->call);
    contact->state = CONTACT_IDLE;
    contact->drop = false;
    contact->batch.count = 0;
    contact->error.code = PAWL_OK;
}

static void ask_failed(struct contact *contact)
{
    contact->ask = true;
    contact->ask_from = coordinator_now(contact->coordinator) + contact->coordinator->options.backoff;
}

static void forget_bases(struct contact *contact)
{
    mem_free(contact->coordinator->options.allocator, contact->bases,
             contact->base_count * sizeof *contact->bases);
    contact->bases = NULL;
    contact->base_count = 0;
}

bool contact_rows(const struct contact *contact, uint32_t base, uint64_t *ret_rows)
{
    size_t low = 0, high = contact->base_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (contact->bases[middle].base < base)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < contact->base_count && contact->bases[low].base == base;
    if (found)
        *ret_rows = contact->bases[low].rows;
    return found;
}

static int keep_uncovered(struct contact *contact, pawl_bytes bytes)
{
    struct coordinator *c = contact->coordinator;
    struct uncovered_reply reply;
    arena_reset(&c->scratch);
    int status = uncovered_reply_decode(bytes, &c->scratch, &reply);
    if (status != PAWL_OK)
        return status;
    struct uncovered *list = mem_new(c->options.allocator, reply.count, sizeof *list);
    struct base_rows *bases = mem_new(c->options.allocator, reply.base_count, sizeof *bases);
    if ((!list && reply.count > 0) || (!bases && reply.base_count > 0)) {
        mem_free(c->options.allocator, list, list ? reply.count * sizeof *list : 0);
        mem_free(c->options.allocator, bases, bases ? reply.base_count * sizeof *bases : 0);
        return PAWL_ENOMEM;
    }
    if (reply.count > 0)
        memcpy(list, reply.list, reply.count * sizeof *list);
    if (reply.base_count > 0)
        memcpy(bases, reply.bases, reply.base_count * sizeof *bases);
    forget_bases(contact);
    contact->uncovered = list;
    contact->uncovered_count = reply.count;
    contact->bases = bases;
    contact->base_count = reply.base_count;
    contact->told = true;
    return PAWL_OK;
}

/* If it is to be asked again, the answer is out of date: it was asked about another map, or other views. */
static void ask_done(pawl_bus_call *call)
{
    struct contact *contact = call->arg;
    contact->asked = false;
    if (call->status != PAWL_OK || (!contact->ask && keep_uncovered(contact, call->reply) != PAWL_OK))
        ask_failed(contact);
    if (call->status == PAWL_ETIMEOUT || call->status == PAWL_EIO)
        contact->coordinator->figures.lost++;
    contact->coordinator->base_decided = false; /* it may be another's turn */
    coordinator_wake(contact->coordinator);
}

void contact_ask(struct contact *contact)
{
    struct coordinator *c = contact->coordinator;
    pawl_bytes body;
    arena_reset(&c->scratch);
    contact_forget_uncovered(contact);
    contact->ask = false;
    int status = uncovered_encode(c->options.term, &c->scratch, &body);
    contact->asking = (pawl_bus_call){
        .node = contact->place.node,
        .shard = contact->place.shard,
        .verb = VERB_UNCOVERED,
        .body = body,
        .timeout = c->options.timeout,
        .done = ask_done,
        .arg = contact,
    };
    c->figures.calls++;
    if (status == PAWL_OK)
        status = pawl_bus_call_begin(c->options.bus, &contact->asking);
    contact->asked = status == PAWL_OK;
    if (status != PAWL_OK)
        ask_failed(contact);
}

void contact_release(struct contact *contact)
{
    const struct coordinator_options *options = &contact->coordinator->options;
    pawl_bus_cancel(options->bus, &contact->call);
    pawl_bus_cancel(options->bus, &contact->asking);
    contact_forget_uncovered(contact);
    forget_bases(contact);
    mem_free(options->allocator, contact->batch.ids, WORK_TASKS_MAX * sizeof *contact->batch.ids);
    mem_free(options->allocator, contact->batch.views, WORK_TASKS_MAX * sizeof *contact->batch.views);
}
