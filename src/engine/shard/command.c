/* engine/shard/command.c: a request on its way to its shard and back.
 *
 * A blocking caller sleeps in the shard's wake group; an asynchronous one is called. Either way the request
 * lies in the shard's mailbox by its address, and nothing is allocated. */
#include <pawl/pawl.h>

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/json/json.h"
#include "engine/node/node.h"
#include "engine/read/read.h"

/* A request that has kept an error is not sent. */
static int send(pawl_engine *e, pawl_request *r, pawl_error *error)
{
    if (r->kept.code != PAWL_OK)
        return error_set(error, r->kept.code, "%s", r->kept.text);
    uint16_t partition = partition_of(hash_token(r->request.wsid), e->file.partitions);
    struct shard *shard = shard_of(e, partition);
    r->shard = shard;
    r->sent = pawl_env_now(e->env);
    error_clear(&r->error);
    int status = mpsc_push(&shard->mailbox, &r);
    if (status != PAWL_OK)
        return error_set(error, PAWL_EBUSY, "the mailbox of shard %u is full", shard->index);
    shard_wake(shard);
    return PAWL_OK;
}

int pawl_command_async(pawl_engine *e, pawl_request *r, pawl_command_done done, void *arg, pawl_error *error)
{
    if (atomic_load_explicit(&e->closing, memory_order_relaxed))
        return error_set(error, PAWL_ECLOSED, "the engine is being closed");
    if (e->options.read_only)
        return error_set(error, PAWL_EREADONLY, "the engine was opened read-only");
    int owner = owner_check(e, error);
    if (owner != PAWL_OK)
        return owner;
    if (!done)
        return error_set(error, PAWL_EINVAL, "there is no function to call when it is done");
    r->done = done;
    r->arg = arg;
    return send(e, r, error);
}

int pawl_command(pawl_engine *e, pawl_request *r, pawl_answer *ret_answer, pawl_error *error)
{
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    r->done = NULL;
    waiter_init(&r->waiter);
    status = send(e, r, error);
    if (status != PAWL_OK)
        return status;
    wake_group_wait(&r->shard->callers, &r->waiter);
    status = r->call.status;
    if (status != PAWL_OK)
        return error_set(error, status, "%s", r->error.text[0] ? r->error.text : pawl_status_text(status));
    if (ret_answer)
        *ret_answer = r->answer;
    return PAWL_OK;
}

int pawl_workspace_create(pawl_engine *e, pawl_request *r, uint64_t wsid, const char *kind,
                          pawl_answer *ret_answer, pawl_error *error)
{
    request_restart(r, wsid);
    const struct schema_workspace *found =
        schema_workspace_by_name(r->schema, (pawl_bytes){kind, strlen(kind)});
    if (!found)
        error_set(&r->kept, PAWL_ENOTFOUND, "there is no workspace kind %s", kind);
    r->request.command = NAME_WS_CREATE;
    r->request.kind = found ? found->id : 0;
    return pawl_command(e, r, ret_answer, error);
}

int pawl_workspace_freeze(pawl_engine *e, pawl_request *r, uint64_t wsid, bool frozen, pawl_answer *ret_answer,
                          pawl_error *error)
{
    pawl_error kept = {0};
    request_restart(r, wsid);
    r->request.command = frozen ? NAME_WS_FREEZE : NAME_WS_THAW;
    int status = pawl_command(e, r, ret_answer, &kept);
    if (status == PAWL_EEXISTS) { /* it is so already */
        if (ret_answer)
            *ret_answer = (pawl_answer){.partition = pawl_partition_of(e, wsid)};
        return PAWL_OK;
    }
    if (status != PAWL_OK && error)
        *error = kept;
    return status;
}

uint64_t pawl_request_id(const pawl_request *r, uint64_t raw)
{
    struct event event;
    struct event_object object;
    if (!r->body.data || event_decode(r->body, &event, NULL) != PAWL_OK)
        return 0;
    for (size_t cursor = 0; event_next(&event, &cursor, &object);)
        if (object.raw == raw && raw != 0)
            return object.id;
    return 0;
}

/* Made once for a request, and used for each of its answers. */
struct answered_event {
    struct json_out out;
    struct pawl_event_source source;
    pawl_event event;
};

void answered_event_free(struct answered_event *a, const pawl_allocator *alloc)
{
    if (!a)
        return;
    json_out_release(&a->out);
    mem_free(alloc, a, sizeof *a);
}

int pawl_request_event(pawl_request *r, const pawl_event **ret_event, pawl_error *error)
{
    const pawl_allocator *alloc = r->engine->options.allocator;
    if (!r->body.data)
        return error_set(error, PAWL_EMISUSE, "there is no answer");
    if (!r->event) {
        r->event = mem_new(alloc, 1, sizeof *r->event);
        if (!r->event)
            return error_set(error, PAWL_ENOMEM, "no memory for an event");
        json_out_init(&r->event->out, alloc);
    }
    int status = event_show(r->engine, r->answer.partition, r->answer.offset, r->body, &r->event->out,
                            &r->event->source, &r->event->event, error);
    if (status == PAWL_OK)
        *ret_event = &r->event->event;
    return status;
}

int pawl_request_answer_json(const pawl_request *r, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    struct event event;
    if (!r->body.data)
        return error_set(error, PAWL_EMISUSE, "there is no answer");
    int status = event_decode(r->body, &event, error);
    if (status != PAWL_OK)
        return status;
    struct json_source source = {.partition = r->answer.partition,
                                 .offset = r->answer.offset,
                                 .schema = engine_schema_at(r->engine, event.head.schema),
                                 .body = r->body};
    json_out_init(&out, r->engine->options.allocator);
    status = source.schema ? json_answer(&out, &source, r->answer.repeated, error)
                           : error_set(error, PAWL_ECORRUPT, "the schema of the event is not known");
    return text_take(&out, status, ret_text, error);
}
