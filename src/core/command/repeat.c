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

static int refuse_other_body(struct call *call, uint64_t offset)
{
    return error_set(call->error, PAWL_ECONFLICT,
                     "the idempotency key was used with another body, for the event at offset %" PRIu64,
                     offset);
}

static bool visit(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct call *call = read->arg;
    call->found = mem_resize(call->processor->options.allocator, NULL, 0, entry->body.size);
    if (call->found) {
        memcpy(call->found, entry->body.data, entry->body.size);
        call->offset = entry->offset;
        call->body = (pawl_bytes){call->found, entry->body.size};
    }
    return false;
}

static void drop_found(struct call *call)
{
    mem_free(call->processor->options.allocator, call->found, call->found ? call->body.size : 0);
    call->found = NULL;
    call->body = (pawl_bytes){0};
}

static void event_read(pawl_read *read)
{
    struct call *call = read->arg;
    struct processor *p = call->processor;
    enum verdict verdict = VERDICT_SAME;
    int status = read->status;
    p->repeats--;
    if (status == PAWL_OK && !call->found)
        status = read->next > read->from
                     ? error_set(call->error, PAWL_ENOMEM, "no memory for an event")
                     : error_set(call->error, PAWL_ECORRUPT, "the log has no event %" PRIu64, read->from);
    if (status == PAWL_OK)
        status = judge(call, call->body, &verdict, call->error);
    if (status == PAWL_OK && verdict == VERDICT_OTHER_KEY && p->writer.state != WRITER_CLOSED) {
        drop_found(call);
        process_again(p, call);
        processor_run(p, false);
        return;
    }
    if (status == PAWL_OK && verdict == VERDICT_OTHER_BODY)
        status = refuse_other_body(call, call->offset);
    if (status == PAWL_OK && verdict == VERDICT_OTHER_KEY)
        status = error_set(call->error, PAWL_ECLOSED, "the partition is closed");
    call->repeated = status == PAWL_OK;
    call_finish(call, status);
    if (p->writer.state == WRITER_CLOSED)
        writer_step(&p->writer);
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
        status = refuse_other_body(call, offset);
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
    call->read = (pawl_read){.stream = {.kind = PAWL_STREAM_PLOG, .partition = p->options.partition},
                             .from = offset,
                             .limit = 1,
                             .visit = visit,
                             .done = event_read,
                             .arg = call,
                             .error = call->error};
    p->repeats++;
    int status = pawl_log_read(p->options.log, &call->read);
    if (status == PAWL_OK)
        return;
    p->repeats--;
    error_set(call->error, status, "cannot read the event that the idempotency key was used for");
    call_finish(call, status);
}
