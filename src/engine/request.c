/* engine/request.c: a request, made by calls; names become numbers under the schema of its beginning. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/schema/definition.h"
#include "engine/json/request.h"
#include "engine/node.h"

#define ARENA_CHUNK ((size_t)4096)

static pawl_bytes bytes_of(const char *text)
{
    return (pawl_bytes){text, strlen(text)};
}

int pawl_request_new(pawl_engine *engine, pawl_request **ret_request)
{
    pawl_request *r = mem_new(engine->options.allocator, 1, sizeof *r);
    if (!r)
        return PAWL_ENOMEM;
    r->engine = engine;
    r->schema = engine_schema(engine); /* for whoever forgets to begin */
    arena_init(&r->memory, engine->options.allocator, ARENA_CHUNK);
    arena_init(&r->answered, engine->options.allocator, ARENA_CHUNK);
    request_init(&r->request, &r->memory);
    *ret_request = r;
    return PAWL_OK;
}

void pawl_request_free(pawl_request *r)
{
    if (!r)
        return;
    const pawl_allocator *alloc = r->engine->options.allocator;
    arena_release(&r->memory);
    arena_release(&r->answered);
    mem_free(alloc, r, sizeof *r);
}

void request_restart(pawl_request *r, uint64_t wsid)
{
    arena_reset(&r->memory);
    request_init(&r->request, &r->memory);
    r->request.wsid = wsid;
    r->schema = engine_schema(r->engine);
    r->ack = ACK_APPLIED;
    r->body = (pawl_bytes){0};
    r->error.text[0] = '\0';
}

int pawl_request_begin(pawl_request *r, uint64_t wsid, const char *command, pawl_error *error)
{
    request_restart(r, wsid);
    const struct schema_command *found = schema_command_by_name(r->schema, bytes_of(command));
    if (!found)
        return error_set(error, PAWL_ENOTFOUND, "there is no command %s", command);
    r->request.command = found->id;
    return PAWL_OK;
}

int pawl_request_json(pawl_request *r, uint64_t wsid, pawl_bytes json, pawl_error *error)
{
    request_restart(r, wsid);
    return json_request(json, wsid, r->schema, &r->memory, &r->request, error);
}

static int added(int status, pawl_error *error)
{
    if (status == PAWL_ETOOBIG)
        return error_set(error, status, "more than %d objects", REQUEST_OBJECTS_MAX);
    return status == PAWL_OK ? status : error_set(error, status, "no memory for a request");
}

static int records_follow(const pawl_request *r, pawl_error *error)
{
    if (r->request.object_count == r->request.argument_count)
        return PAWL_OK;
    return error_set(error, PAWL_EINVAL, "the argument comes before all records");
}

int pawl_request_argument(pawl_request *r, uint64_t id, pawl_error *error)
{
    const struct schema_command *command = schema_command_by_id(r->schema, r->request.command);
    int status = records_follow(r, error);
    if (status != PAWL_OK)
        return status;
    if (!command || !command->argument)
        return error_set(error, PAWL_EINVAL, "the command takes no argument");
    if (r->request.argument_count > 0)
        return error_set(error, PAWL_EINVAL, "there is an argument already");
    return added(request_add_argument(&r->request, id, command->argument->id, REQUEST_NO_PARENT, 0), error);
}

int pawl_request_child(pawl_request *r, uint64_t parent, const char *container, uint64_t id, pawl_error *error)
{
    int status = records_follow(r, error);
    if (status != PAWL_OK)
        return status;
    for (size_t i = r->request.argument_count; i-- > 0;) {
        if (r->request.objects[i].id != parent)
            continue;
        const struct schema_type *type = schema_type_by_id(r->schema, r->request.objects[i].type);
        int place = schema_container_place(type, bytes_of(container));
        if (place < 0)
            return error_set(error, PAWL_ENOTFOUND, "%.*s has no container %s", (int)type->name.size,
                             (const char *)type->name.data, container);
        return added(request_add_argument(&r->request, id, type->containers[place].type->id, (uint32_t)i,
                                          (uint16_t)(place + 1)),
                     error);
    }
    return error_set(error, PAWL_ENOTFOUND, "the argument has no object %" PRIu64, parent);
}

int pawl_request_record(pawl_request *r, uint64_t id, const char *type, pawl_error *error)
{
    const struct schema_type *found = schema_type_by_name(r->schema, bytes_of(type));
    if (!found)
        return error_set(error, PAWL_ENOTFOUND, "there is no type %s", type);
    return added(request_add_record(&r->request, id, found->id), error);
}

/* The record that was added last. */
static struct request_object *last_record(pawl_request *r, pawl_error *error)
{
    if (r->request.object_count > r->request.argument_count)
        return &r->request.objects[r->request.object_count - 1];
    error_set(error, PAWL_EINVAL, "there is no record yet");
    return NULL;
}

/* Which place that is depends on the parent's type, which is known when the command is processed. */
int pawl_request_parent(pawl_request *r, uint64_t parent, const char *container, pawl_error *error)
{
    struct request_object *record = last_record(r, error);
    if (!record)
        return PAWL_EINVAL;
    pawl_bytes name = arena_copy(&r->memory, bytes_of(container));
    if (!name.data)
        return error_set(error, PAWL_ENOMEM, "no memory for a request");
    record->parent_id = parent;
    record->container_name = name;
    return PAWL_OK;
}

int pawl_request_active(pawl_request *r, bool active, pawl_error *error)
{
    struct request_object *record = last_record(r, error);
    if (!record)
        return PAWL_EINVAL;
    record->active = active ? ACTIVE_YES : ACTIVE_NO;
    return PAWL_OK;
}

static int set(pawl_request *r, const char *field, struct value value, pawl_error *error)
{
    if (r->request.object_count == 0)
        return error_set(error, PAWL_EINVAL, "there is no object yet to set %s of", field);
    const struct schema_type *type =
        schema_type_by_id(r->schema, r->request.objects[r->request.object_count - 1].type);
    int place = schema_field_place(type, bytes_of(field));
    if (place < 0)
        return error_set(error, PAWL_ENOTFOUND, "%.*s has no field %s", (int)type->name.size,
                         (const char *)type->name.data, field);
    enum value_type wants = type->fields[place].type;
    if (value.type != VALUE_NULL && value.type != wants)
        return error_set(error, PAWL_EINVAL, "%s is of type %s, not %s", field, value_type_text(wants),
                         value_type_text(value.type));
    int status = request_set(&r->request, (uint16_t)place, value);
    if (status == PAWL_EEXISTS)
        return error_set(error, status, "%s is set already", field);
    return status == PAWL_OK ? status : error_set(error, status, "no memory for a request");
}

int pawl_request_set_int64(pawl_request *r, const char *field, int64_t value, pawl_error *error)
{
    return set(r, field, (struct value){.type = VALUE_INT64, .integer = value}, error);
}

int pawl_request_set_float64(pawl_request *r, const char *field, double value, pawl_error *error)
{
    if (!isfinite(value))
        return error_set(error, PAWL_EINVAL, "%s: the number is not finite", field);
    return set(r, field, (struct value){.type = VALUE_FLOAT64, .real = value}, error);
}

int pawl_request_set_bool(pawl_request *r, const char *field, bool value, pawl_error *error)
{
    return set(r, field, (struct value){.type = VALUE_BOOL, .boolean = value}, error);
}

int pawl_request_set_string(pawl_request *r, const char *field, const char *value, pawl_error *error)
{
    return set(r, field, (struct value){.type = VALUE_STRING, .bytes = bytes_of(value)}, error);
}

int pawl_request_set_bytes(pawl_request *r, const char *field, pawl_bytes value, pawl_error *error)
{
    return set(r, field, (struct value){.type = VALUE_BYTES, .bytes = value}, error);
}

int pawl_request_set_time(pawl_request *r, const char *field, pawl_wall value, pawl_error *error)
{
    return set(r, field, (struct value){.type = VALUE_TIMESTAMP, .integer = value.ns}, error);
}

int pawl_request_set_name(pawl_request *r, const char *field, const char *qname, pawl_error *error)
{
    uint16_t name = schema_name_id(r->schema, bytes_of(qname));
    if (name == 0)
        return error_set(error, PAWL_ENOTFOUND, "%s: there is no name %s", field, qname);
    return set(r, field, (struct value){.type = VALUE_QNAME, .name = name}, error);
}

int pawl_request_set_ref(pawl_request *r, const char *field, uint64_t id, pawl_error *error)
{
    return set(r, field, (struct value){.type = VALUE_REF, .id = id}, error);
}

int pawl_request_set_null(pawl_request *r, const char *field, pawl_error *error)
{
    return set(r, field, (struct value){.type = VALUE_NULL}, error);
}

void pawl_request_expect(pawl_request *r, uint64_t workspace_offset)
{
    r->request.expects = true;
    r->request.expected = workspace_offset;
}

void pawl_request_ack(pawl_request *r, pawl_ack ack)
{
    r->ack = ack == PAWL_ACK_DURABLE ? ACK_DURABLE : ACK_APPLIED;
}

static int keep(pawl_request *r, const char *text, pawl_bytes *ret_kept, pawl_error *error)
{
    pawl_bytes kept = {0};
    if (text) {
        kept = arena_copy(&r->memory, bytes_of(text));
        if (!kept.data)
            return error_set(error, PAWL_ENOMEM, "no memory for a request");
    }
    *ret_kept = kept;
    return PAWL_OK;
}

int pawl_request_key(pawl_request *r, const char *key, pawl_error *error)
{
    pawl_bytes kept;
    int status = keep(r, key, &kept, error);
    if (status == PAWL_OK && kept.data)
        status = json_request_key(&r->request, kept, error);
    else if (status == PAWL_OK)
        r->request.key = kept;
    return status;
}

int pawl_request_actor(pawl_request *r, const char *actor, pawl_error *error)
{
    return keep(r, actor, &r->request.actor, error);
}

int pawl_request_correlation(pawl_request *r, const char *correlation, pawl_error *error)
{
    return keep(r, correlation, &r->request.correlation, error);
}

int pawl_request_causation(pawl_request *r, const char *causation, pawl_error *error)
{
    return keep(r, causation, &r->request.causation, error);
}
