/* core/command/repeat.c: a command whose idempotency key was used before is answered by the earlier event.
 *
 * The window of keys raises the suspicion; the event decides. If the event is under way, the command waits with
 * the one that made it. If it is in the log, it is read. If the event has the same key and another body, the
 * command is refused. If it has another key with the same hash, the command is processed as usual. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/command/processor_impl.h"
#include "core/command/request.h"
#include "core/sequence/storage.h"

enum verdict { VERDICT_SAME, VERDICT_OTHER_BODY, VERDICT_OTHER_KEY };

/* If it is the same, the call knows the event's workspace offset then. */
static int judge(struct call *call, pawl_bytes body, enum verdict *ret_verdict, pawl_error *error)
{
    const struct request *request = call->request;
    struct event event;
    int status = event_decode(body, &event, error);
    if (status != PAWL_OK)
        return status;
    call->workspace_offset = event_numbers_of(&event, SEQ_WLOG_OFFSET).first;
    if (event.envelope.wsid != request->wsid || !bytes_equal(event.head.key, request->key))
        *ret_verdict = VERDICT_OTHER_KEY;
    else
        *ret_verdict = event.head.digest == request_digest(request) ? VERDICT_SAME : VERDICT_OTHER_BODY;
    return PAWL_OK;
}

/* Back to its place in the queue: it has waited already. */
static void process_again(struct processor *p, struct call *call)
{
    struct call_list one;
    call->not_repeated = true;
    call_list_init(&one);
    call_list_add(&one, call);
    call_list_return(&p->queue, &one);
}

static int refuse_other_body(pawl_error *error, uint64_t offset)
{
    return error_set(error, PAWL_ECONFLICT,
                     "the idempotency key was used with another body, for the event at offset %" PRIu64,
                     offset);
}

/* The read of a suspected event. It goes on if the call is answered before, because its time is over. */
struct repeat {
    struct processor *processor;
    struct call *call; /* NULL: it was answered */
    struct repeat *next;
    pawl_read read;
    pawl_error error;
    uint8_t *found; /* the body, copied */
    size_t size;
    uint64_t offset;
};

static bool visit(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct repeat *r = read->arg;
    (void)place;
    r->found = mem_resize(r->processor->options.allocator, NULL, 0, entry->body.size);
    if (r->found) {
        memcpy(r->found, entry->body.data, entry->body.size);
        r->size = entry->body.size;
        r->offset = entry->offset;
    }
    return false;
}

static void end_repeat(struct repeat *r)
{
    struct processor *p = r->processor;
    struct repeat **at = &p->repeats;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    mem_free(p->options.allocator, r->found, r->found ? r->size : 0);
    mem_free(p->options.allocator, r, sizeof *r);
}

/* What the event says about the command. */
static int judge_found(struct repeat *r, enum verdict *ret_verdict)
{
    if (r->read.status != PAWL_OK)
        return r->read.status;
    if (!r->found)
        return r->read.next > r->read.from
                   ? error_set(&r->error, PAWL_ENOMEM, "no memory for an event")
                   : error_set(&r->error, PAWL_ECORRUPT, "the log has no event %" PRIu64, r->read.from);
    return judge(r->call, (pawl_bytes){r->found, r->size}, ret_verdict, &r->error);
}

/* The event is the answer; or it is none, because of this status. */
static void answer(struct repeat *r, int status)
{
    struct call *call = r->call;
    call->offset = r->offset; /* of another body, too: whoever asks why is told which event it was */
    if (status != PAWL_OK) {
        error_set(call->error, status, "%s", r->error.text[0] ? r->error.text : pawl_status_text(status));
    } else {
        call->repeated = true;
        call->found = r->found; /* the call's from now on */
        call->body = (pawl_bytes){r->found, r->size};
        r->found = NULL;
    }
    call_finish(call, status);
}

static void event_read(pawl_read *read)
{
    struct repeat *r = read->arg;
    struct processor *p = r->processor;
    enum verdict verdict = VERDICT_SAME;
    bool closed = p->writer.state == WRITER_CLOSED, again = false;
    if (r->call) {
        int status = judge_found(r, &verdict);
        again = status == PAWL_OK && verdict == VERDICT_OTHER_KEY && !closed;
        if (status == PAWL_OK && verdict == VERDICT_OTHER_BODY)
            status = refuse_other_body(&r->error, r->offset);
        if (status == PAWL_OK && verdict == VERDICT_OTHER_KEY && closed)
            status = error_set(&r->error, PAWL_ECLOSED, "the partition is closed");
        if (again)
            process_again(p, r->call);
        else
            answer(r, status);
    }
    end_repeat(r);
    if (again)
        processor_run(p);
    else if (p->writer.state == WRITER_CLOSED)
        writer_step(&p->writer);
}

void repeat_late(struct processor *p, pawl_instant now, pawl_instant *ret_next)
{
    struct call_list late;
    call_list_init(&late);
    for (struct repeat *r = p->repeats; r; r = r->next) {
        if (r->call && r->call->deadline.ns <= now.ns) {
            call_list_add(&late, r->call);
            r->call = NULL;
        } else if (r->call && r->call->deadline.ns < ret_next->ns) {
            *ret_next = r->call->deadline;
        }
    }
    call_list_refuse(&late, PAWL_EBUSY,
                     "the event that the idempotency key was used for could not be read in time");
}

static struct writer_batch *find_staged(const struct processor *p, uint64_t offset, size_t *ret_index)
{
    for (struct writer_batch *b = p->writer.first; b; b = b->next) {
        uint64_t first = b->count > 0 ? b->entries[0].entry.offset : UINT64_MAX;
        if (offset < first || offset - first >= b->count)
            continue;
        *ret_index = (size_t)(offset - first);
        return b;
    }
    return NULL;
}

/* True: the event is staged, and the call is dealt with. */
static bool join_staged(struct processor *p, struct call *call, uint64_t offset)
{
    size_t index;
    struct writer_batch *batch = find_staged(p, offset, &index);
    enum verdict verdict = VERDICT_SAME;
    if (!batch)
        return false;
    int status = judge(call, batch->entries[index].entry.body, &verdict, call->error);
    if (status == PAWL_OK && verdict == VERDICT_OTHER_KEY) {
        process_again(p, call);
        return true;
    }
    if (status == PAWL_OK && verdict == VERDICT_OTHER_BODY)
        status = refuse_other_body(call->error, offset);
    if (status != PAWL_OK) {
        processor_answer(p, call, status);
        return true;
    }
    call->repeated = true;
    call_list_add(&batch_staged(batch)[index].calls, call);
    return true;
}

void repeat_check(struct processor *p, struct call *call, uint64_t offset)
{
    if (join_staged(p, call, offset))
        return;
    struct repeat *r = mem_new(p->options.allocator, 1, sizeof *r);
    if (!r) {
        error_set(call->error, PAWL_ENOMEM, "no memory to look for the event of the idempotency key");
        call_finish(call, PAWL_ENOMEM);
        return;
    }
    *r = (struct repeat){.processor = p, .call = call, .next = p->repeats};
    r->read = (pawl_read){.stream = {.kind = PAWL_STREAM_PLOG, .partition = p->options.partition},
                          .from = offset,
                          .limit = 1,
                          .visit = visit,
                          .done = event_read,
                          .arg = r,
                          .error = &r->error};
    p->repeats = r;
    int status = pawl_log_read(p->options.log, &r->read);
    if (status == PAWL_OK)
        return;
    end_repeat(r);
    error_set(call->error, status, "cannot read the event that the idempotency key was used for");
    call_finish(call, status);
}
