#include "test/lib/ask.h"

#include "test/lib/test.h"

static void answered(struct call *call)
{
    struct ask *ask = (struct ask *)((char *)call - offsetof(struct ask, call));
    ask->answers++;
    ask->at = ask->partition->answers++;
    if (call->status == PAWL_OK) {
        free(ask->body);
        ask->body = malloc(call->body.size);
        if (!ask->body)
            abort();
        memcpy(ask->body, call->body.data, call->body.size);
        assert_ok(event_decode((pawl_bytes){ask->body, call->body.size}, &ask->event, NULL));
    } else
        assert_int_equal(ask->error.code, call->status);
    if (ask->closes)
        partition_close_inside(ask->partition);
}

void ask_init(struct ask *ask, struct partition *p, uint64_t wsid, const char *command)
{
    *ask = (struct ask){.partition = p};
    arena_init(&ask->memory, NULL, 4096);
    request_init(&ask->request, &ask->memory);
    ask->request.wsid = wsid;
    ask->request.command =
        command ? schema_name_id(group0_schema(p->group0), text_bytes(command)) : (uint16_t)NAME_WS_CREATE;
    ask->call = (struct call){.request = &ask->request, .done = answered, .error = &ask->error};
}

void ask_create(struct ask *ask, struct partition *p, uint64_t wsid, const char *kind)
{
    ask_init(ask, p, wsid, NULL);
    ask->request.kind = schema_name_id(group0_schema(p->group0), text_bytes(kind));
}

void ask_release(struct ask *ask)
{
    arena_release(&ask->memory);
    free(ask->body);
}

static uint16_t type_id(const struct ask *ask, const char *type)
{
    return schema_name_id(group0_schema(ask->partition->group0), text_bytes(type));
}

void ask_record(struct ask *ask, uint64_t id, const char *type)
{
    assert_ok(request_add_record(&ask->request, id, type_id(ask, type)));
}

void ask_argument(struct ask *ask, uint64_t id, const char *type)
{
    assert_ok(request_add_argument(&ask->request, id, type_id(ask, type), REQUEST_NO_PARENT, 0));
}

void ask_child(struct ask *ask, uint64_t id, const char *type, uint32_t parent)
{
    assert_ok(request_add_argument(&ask->request, id, type_id(ask, type), parent, 1));
}

void ask_parent(struct ask *ask, uint64_t parent, uint16_t container)
{
    struct request_object *o = &ask->request.objects[ask->request.object_count - 1];
    o->parent_id = parent;
    o->container = container;
}

static void set(struct ask *ask, const char *field, struct value value)
{
    const struct request_object *o = &ask->request.objects[ask->request.object_count - 1];
    const struct schema_type *type = schema_type_by_id(group0_schema(ask->partition->group0), o->type);
    int place = schema_field_place(type, text_bytes(field));
    assert_true(place >= 0);
    assert_ok(request_set(&ask->request, (uint16_t)place, value));
}

void ask_text(struct ask *ask, const char *field, const char *text)
{
    set(ask, field, (struct value){.type = VALUE_STRING, .bytes = text_bytes(text)});
}

void ask_number(struct ask *ask, const char *field, int64_t number)
{
    set(ask, field, (struct value){.type = VALUE_INT64, .integer = number});
}

void ask_ref(struct ask *ask, const char *field, uint64_t id)
{
    set(ask, field, (struct value){.type = VALUE_REF, .id = id});
}

void ask_null(struct ask *ask, const char *field)
{
    set(ask, field, (struct value){.type = VALUE_NULL});
}

void ask_send(struct ask *ask)
{
    int status = partition_submit(ask->partition, &ask->call);
    if (status != PAWL_OK) {
        ask->call.status = status;
        ask->answers++;
        return;
    }
    partition_run(ask->partition);
}

static bool has_answer(void *arg)
{
    const struct ask *ask = arg;
    return ask->answers > 0;
}

int ask_wait(struct ask *ask)
{
    assert_true(mem_world_run_until(ask->partition->world, has_answer, ask, PARTITION_STEPS_MAX));
    assert_int_equal(ask->answers, 1);
    return ask->call.status;
}

int ask_and_wait(struct ask *ask)
{
    ask_send(ask);
    return ask_wait(ask);
}

struct event_object ask_object(const struct ask *ask, size_t i)
{
    struct event_object object = {0};
    size_t cursor = 0;
    for (size_t k = 0; k <= i; k++)
        assert_true(event_next(&ask->event, &cursor, &object));
    return object;
}
