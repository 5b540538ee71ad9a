/* engine/shard/request.c: a request, made by calls; names become numbers under the schema of its beginning. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/schema/definition.h"
#include "engine/json/json.h"
#include "engine/node/node.h"

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
    answered_event_free(r->event, alloc);
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
    error_clear(&r->kept);
}

/* --- the first error, which is kept until the next beginning --- */

/* What a call returns that was refused: what it came upon, or what one before it did. Nothing is added to a
 * request that has failed, so calls that follow an error cannot hide it by others of their own. */
#define refuse(r, status, ...) error_set(&(r)->kept, status, __VA_ARGS__)

/* "$.records[0].fields.qty": a field, known or not, of the object that was added last. */
static const char *field_path(const pawl_request *r, const char *field, char *text)
{
    size_t last = r->request.object_count - 1;
    request_path(&r->request, r->schema, last, -1, text);
    size_t size = strlen(text);
    snprintf(text + size, REQUEST_PATH_MAX - size, last < r->request.argument_count ? ".%s" : ".fields.%s",
             field);
    return text;
}

const pawl_error *pawl_request_error(const pawl_request *r)
{
    return &r->kept;
}

/* --- beginning --- */

int pawl_request_begin(pawl_request *r, uint64_t wsid, const char *command)
{
    request_restart(r, wsid);
    const struct schema_command *found = schema_command_by_name(r->schema, bytes_of(command));
    if (!found)
        return refuse(r, PAWL_ENOTFOUND, "$.command: there is no command %s", command);
    r->request.command = found->id;
    return PAWL_OK;
}

int pawl_request_json(pawl_request *r, uint64_t wsid, pawl_bytes json)
{
    request_restart(r, wsid);
    int status = json_request(json, wsid, r->schema, &r->memory, &r->request, &r->kept);
    return status == r->kept.code ? status : refuse(r, status, "%s", pawl_status_text(status));
}

/* --- objects --- */

static int no_memory(pawl_request *r)
{
    return refuse(r, PAWL_ENOMEM, "no memory for a request");
}

static int added(pawl_request *r, int status)
{
    if (status == PAWL_ETOOBIG)
        return refuse(r, status, "a command has at most %d objects", REQUEST_OBJECTS_MAX);
    return status == PAWL_OK ? status : no_memory(r);
}

/* Whether the argument may still grow. */
static int begin_argument(pawl_request *r)
{
    if (r->kept.code != PAWL_OK || r->request.object_count == r->request.argument_count)
        return r->kept.code;
    return refuse(r, PAWL_EINVAL, "$.argument: the argument comes before all records");
}

int pawl_request_argument(pawl_request *r, uint64_t id)
{
    const struct schema_command *command = schema_command_by_id(r->schema, r->request.command);
    int status = begin_argument(r);
    if (status != PAWL_OK)
        return status;
    if (!command || !command->argument)
        return refuse(r, PAWL_EINVAL, "$.argument: the command takes no argument");
    if (r->request.argument_count > 0)
        return refuse(r, PAWL_EINVAL, "$.argument: there is an argument already");
    return added(r, request_add_argument(&r->request, id, command->argument->id, REQUEST_NO_PARENT, 0));
}

static int add_child(pawl_request *r, size_t parent, const char *container, uint64_t id)
{
    char path[REQUEST_PATH_MAX];
    const struct schema_type *type = schema_type_by_id(r->schema, r->request.objects[parent].type);
    int place = schema_container_place(type, bytes_of(container));
    if (place < 0)
        return refuse(r, PAWL_ENOTFOUND, "%s: %.*s has no container %s",
                      request_path(&r->request, r->schema, parent, -1, path), (int)type->name.size,
                      (const char *)type->name.data, container);
    return added(r, request_add_argument(&r->request, id, type->containers[place].type->id, (uint32_t)parent,
                                         (uint16_t)(place + 1)));
}

int pawl_request_child(pawl_request *r, uint64_t parent, const char *container, uint64_t id)
{
    int status = begin_argument(r);
    if (status != PAWL_OK)
        return status;
    for (size_t i = r->request.argument_count; i-- > 0;)
        if (r->request.objects[i].id == parent)
            return add_child(r, i, container, id);
    return refuse(r, PAWL_ENOTFOUND, "$.argument: it has no object %" PRIu64, parent);
}

int pawl_request_record(pawl_request *r, uint64_t id, const char *type)
{
    if (r->kept.code != PAWL_OK)
        return r->kept.code;
    const struct schema_type *found = schema_type_by_name(r->schema, bytes_of(type));
    if (!found)
        return refuse(r, PAWL_ENOTFOUND, "$.records[%zu]: there is no type %s",
                      r->request.object_count - r->request.argument_count, type);
    return added(r, request_add_record(&r->request, id, found->id));
}

/* The record that was added last; NULL: there is none, or the request has failed before. */
static struct request_object *last_record(pawl_request *r)
{
    if (r->kept.code != PAWL_OK)
        return NULL;
    if (r->request.object_count > r->request.argument_count)
        return &r->request.objects[r->request.object_count - 1];
    refuse(r, PAWL_EINVAL, "$.records: there is no record yet");
    return NULL;
}

/* Which place that is depends on the parent's type, which is known when the command is processed. */
int pawl_request_parent(pawl_request *r, uint64_t parent, const char *container)
{
    struct request_object *record = last_record(r);
    if (!record)
        return r->kept.code;
    pawl_bytes name = arena_copy(&r->memory, bytes_of(container));
    if (!name.data)
        return no_memory(r);
    record->parent_id = parent;
    record->container_name = name;
    return PAWL_OK;
}

int pawl_request_active(pawl_request *r, bool active)
{
    struct request_object *record = last_record(r);
    if (!record)
        return r->kept.code;
    record->active = active ? ACTIVE_YES : ACTIVE_NO;
    return PAWL_OK;
}

/* --- fields --- */

/* Whether there is an object to set a field of. */
static int begin_field(pawl_request *r, const char *field)
{
    if (r->kept.code != PAWL_OK || r->request.object_count > 0)
        return r->kept.code;
    return refuse(r, PAWL_EINVAL, "there is no object yet to set %s of", field);
}

static int set(pawl_request *r, const char *field, struct value value)
{
    char path[REQUEST_PATH_MAX];
    int status = begin_field(r, field);
    if (status != PAWL_OK)
        return status;
    const struct schema_type *type =
        schema_type_by_id(r->schema, r->request.objects[r->request.object_count - 1].type);
    int place = schema_field_place(type, bytes_of(field));
    if (place < 0)
        return refuse(r, PAWL_ENOTFOUND, "%s: %.*s has no such field", field_path(r, field, path),
                      (int)type->name.size, (const char *)type->name.data);
    enum value_type wants = type->fields[place].type;
    if (value.type != VALUE_NULL && value.type != wants)
        return refuse(r, PAWL_EINVAL, "%s: it is of type %s, not %s", field_path(r, field, path),
                      value_type_text(wants), value_type_text(value.type));
    status = request_set(&r->request, (uint16_t)place, value);
    if (status == PAWL_EEXISTS)
        return refuse(r, status, "%s: it is set already", field_path(r, field, path));
    return status == PAWL_OK ? status : no_memory(r);
}

int pawl_request_set_int64(pawl_request *r, const char *field, int64_t value)
{
    return set(r, field, (struct value){.type = VALUE_INT64, .integer = value});
}

int pawl_request_set_float64(pawl_request *r, const char *field, double value)
{
    char path[REQUEST_PATH_MAX];
    int status = begin_field(r, field);
    if (status == PAWL_OK && !isfinite(value))
        status = refuse(r, PAWL_EINVAL, "%s: the number is not finite", field_path(r, field, path));
    return status == PAWL_OK ? set(r, field, (struct value){.type = VALUE_FLOAT64, .real = value}) : status;
}

int pawl_request_set_bool(pawl_request *r, const char *field, bool value)
{
    return set(r, field, (struct value){.type = VALUE_BOOL, .boolean = value});
}

int pawl_request_set_text(pawl_request *r, const char *field, pawl_bytes value)
{
    return set(r, field, (struct value){.type = VALUE_STRING, .bytes = value});
}

int pawl_request_set_string(pawl_request *r, const char *field, const char *value)
{
    return pawl_request_set_text(r, field, bytes_of(value));
}

int pawl_request_set_bytes(pawl_request *r, const char *field, pawl_bytes value)
{
    return set(r, field, (struct value){.type = VALUE_BYTES, .bytes = value});
}

int pawl_request_set_time(pawl_request *r, const char *field, pawl_wall value)
{
    return set(r, field, (struct value){.type = VALUE_TIMESTAMP, .integer = value.ns});
}

int pawl_request_set_name(pawl_request *r, const char *field, const char *qname)
{
    char path[REQUEST_PATH_MAX];
    uint16_t name = schema_name_id(r->schema, bytes_of(qname));
    int status = begin_field(r, field);
    if (status == PAWL_OK && name == 0)
        status = refuse(r, PAWL_ENOTFOUND, "%s: there is no name %s", field_path(r, field, path), qname);
    return status == PAWL_OK ? set(r, field, (struct value){.type = VALUE_QNAME, .name = name}) : status;
}

int pawl_request_set_ref(pawl_request *r, const char *field, uint64_t id)
{
    return set(r, field, (struct value){.type = VALUE_REF, .id = id});
}

int pawl_request_set_null(pawl_request *r, const char *field)
{
    return set(r, field, (struct value){.type = VALUE_NULL});
}

/* --- what goes with it --- */

void pawl_request_expect(pawl_request *r, uint64_t workspace_offset)
{
    r->request.expects = true;
    r->request.expected = workspace_offset;
}

void pawl_request_ack(pawl_request *r, pawl_ack ack)
{
    r->ack = ack == PAWL_ACK_DURABLE ? ACK_DURABLE : ACK_APPLIED;
}

static int keep(pawl_request *r, const char *text, pawl_bytes *ret_kept)
{
    pawl_bytes kept = {0};
    if (r->kept.code != PAWL_OK)
        return r->kept.code;
    if (text) {
        kept = arena_copy(&r->memory, bytes_of(text));
        if (!kept.data)
            return no_memory(r);
    }
    *ret_kept = kept;
    return PAWL_OK;
}

int pawl_request_key(pawl_request *r, const char *key)
{
    pawl_bytes kept;
    int status = keep(r, key, &kept);
    if (status == PAWL_OK && kept.data)
        status = json_request_key(&r->request, kept, &r->kept);
    else if (status == PAWL_OK)
        r->request.key = kept;
    return status;
}

int pawl_request_actor(pawl_request *r, const char *actor)
{
    return keep(r, actor, &r->request.actor);
}

int pawl_request_correlation(pawl_request *r, const char *correlation)
{
    return keep(r, correlation, &r->request.correlation);
}

int pawl_request_causation(pawl_request *r, const char *causation)
{
    return keep(r, causation, &r->request.causation);
}
