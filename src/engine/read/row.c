/* engine/read/row.c: reads fields of a row from its stored bytes. Rows were checked when they were written, so
 * only the row's shape and the fields that are read are checked here.
 *
 * The schema that a row is read with may be older than a field that is asked for. An event is read with the
 * schema that it was made under. And if another process writes, this one reads a newer schema only when the
 * known one lacks something: reading it costs a hundred times as much as the rest. */
#include "engine/read/row.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "core/schema/text.h"
#include "core/state/key.h"
#include "engine/node/node.h"
#include "engine/read/event.h"

int row_of_record(uint64_t wsid, pawl_bytes value, struct pawl_row *row, pawl_error *error)
{
    struct record_row stored;
    if (!record_row_read(value, &stored) || stored.type != row->type->id)
        return error_set(error, PAWL_ECORRUPT,
                         "workspace %" PRIu64 ": what is stored of record %" PRIu64 " is not a record", wsid,
                         row->id);
    row->parent = stored.parent;
    row->active = stored.active;
    return row_borrow(stored.row, &row->row, error);
}

int row_of_entity(pawl_engine *e, const struct schema_type *entity, pawl_bytes bytes, struct pawl_row *ret_row,
                  pawl_error *error)
{
    *ret_row = (struct pawl_row){.engine = e, .type = entity, .active = true};
    return row_borrow(bytes, &ret_row->row, error);
}

int row_of_object(pawl_engine *e, const struct schema *schema, const struct event_object *object,
                  struct pawl_row *ret_row, pawl_error *error)
{
    const struct schema_type *type = schema_type_by_id(schema, object->type);
    if (!type)
        return error_set(error, PAWL_ECORRUPT, "the schema at %" PRIu64 " has no type %u", schema->position,
                         object->type);
    *ret_row = (struct pawl_row){.engine = e,
                                 .type = type,
                                 .id = object->id,
                                 .parent = object->parent,
                                 .active = object->active,
                                 .update = object->op == EVENT_UPDATE,
                                 .cleared = {object->cleared, 2 * object->cleared_count}};
    int status = row_borrow(object->row, &ret_row->row, error);
    return status == PAWL_OK ? status : error_wrap(error, status, "object %" PRIu64, object->id);
}

pawl_bytes pawl_row_type(const pawl_row *row)
{
    return row->type->name;
}

uint64_t pawl_row_id(const pawl_row *row)
{
    return row->id;
}

uint64_t pawl_row_parent(const pawl_row *row)
{
    return row->parent;
}

bool pawl_row_active(const pawl_row *row)
{
    return row->active;
}

bool pawl_row_is_update(const pawl_row *row)
{
    return row->update;
}

uint64_t pawl_row_wsid(const pawl_row *row)
{
    return row->wsid;
}

/* --- fields --- */

static const struct schema_field *field_of(const struct schema_type *type, pawl_bytes name, size_t *ret_place)
{
    int place = type ? schema_field_place(type, name) : -1;
    if (place < 0)
        return NULL;
    *ret_place = (size_t)place;
    return &type->fields[place];
}

/* In the schema that the row is read with, or in a later one: a field keeps its place for ever. A view has its
 * fields for ever, and is no type of a schema. */
static const struct schema_field *find_field(const pawl_row *row, const char *name, size_t *ret_place)
{
    pawl_bytes text = {name, strlen(name)};
    const struct schema_field *field = field_of(row->type, text, ret_place);
    if (row->view)
        return field;
    if (!field)
        field = field_of(schema_type_by_id(engine_schema(row->engine), row->type->id), text, ret_place);
    if (!field)
        field = field_of(schema_type_by_id(engine_schema_refresh(row->engine), row->type->id), text, ret_place);
    return field;
}

/* NULL: it is no field of the key, or the row itself has it. */
static const struct value *find_in_key(const pawl_row *row, size_t place)
{
    for (size_t i = 0; row->key && i < row->type->key_count; i++)
        if (row->type->key[i] == place)
            return &row->key[i];
    return NULL;
}

/* The field's value; all zeros if it is null. */
static int get(const pawl_row *row, const char *name, enum value_type type, struct value *ret_value,
               bool *ret_null)
{
    size_t place;
    const struct schema_field *field = find_field(row, name, &place);
    if (!field)
        return PAWL_ENOTFOUND;
    if (field->type != type)
        return PAWL_EINVAL;
    const struct value *of_key = find_in_key(row, place);
    int status = PAWL_OK;
    if (!of_key)
        status = row_peek(row->row, place, type, ret_value);
    else if (type == VALUE_STRING && of_key->type == VALUE_STRING && !text_is_utf8(of_key->bytes))
        status = PAWL_ECORRUPT;
    else
        *ret_value = *of_key;
    if (status != PAWL_OK)
        return status;
    *ret_null = ret_value->type == VALUE_NULL;
    if (*ret_null)
        *ret_value = (struct value){0};
    return PAWL_OK;
}

#define GETTER(name, value_type, c_type, expression)                                                           \
    int pawl_row_##name(const pawl_row *row, const char *field, c_type *ret_value, bool *ret_null)             \
    {                                                                                                          \
        struct value value;                                                                                    \
        bool null;                                                                                             \
        int status = get(row, field, value_type, &value, &null);                                               \
        if (status != PAWL_OK)                                                                                 \
            return status;                                                                                     \
        *ret_value = (expression);                                                                             \
        if (ret_null)                                                                                          \
            *ret_null = null;                                                                                  \
        return PAWL_OK;                                                                                        \
    }

GETTER(int64, VALUE_INT64, int64_t, value.integer)
GETTER(float64, VALUE_FLOAT64, double, value.real)
GETTER(bool, VALUE_BOOL, bool, value.boolean)
GETTER(string, VALUE_STRING, pawl_bytes, value.bytes)
GETTER(bytes, VALUE_BYTES, pawl_bytes, value.bytes)
GETTER(time, VALUE_TIMESTAMP, pawl_wall, ((pawl_wall){value.integer}))
GETTER(ref, VALUE_REF, uint64_t, value.id)

/* The present schema can be used: every schema has the names of all earlier ones. */
int pawl_row_name(const pawl_row *row, const char *field, pawl_bytes *ret_value, bool *ret_null)
{
    struct value value;
    pawl_bytes text = {0};
    bool null;
    int status = get(row, field, VALUE_QNAME, &value, &null);
    if (status != PAWL_OK)
        return status;
    if (!null)
        text = schema_name_text(engine_schema(row->engine), value.name);
    if (!null && text.size == 0)
        text = schema_name_text(engine_schema_refresh(row->engine), value.name);
    if (!null && text.size == 0)
        return PAWL_ECORRUPT;
    *ret_value = text;
    if (ret_null)
        *ret_null = null;
    return PAWL_OK;
}

bool pawl_row_has(const pawl_row *row, const char *name)
{
    size_t place;
    if (!find_field(row, name, &place))
        return false;
    if (find_in_key(row, place))
        return true;
    for (size_t at = 0; at < row->cleared.size; at += 2)
        if (get_u16((const uint8_t *)row->cleared.data + at) == place)
            return true;
    return row_has(row->row, place);
}

/* --- children --- */

static int find_container(const pawl_row *row, const char *name, size_t *ret_place, pawl_error *error)
{
    int place = schema_container_place(row->type, (pawl_bytes){name, strlen(name)});
    if (place < 0)
        return error_set(error, PAWL_ENOTFOUND, "%.*s has no container %s", (int)row->type->name.size,
                         (const char *)row->type->name.data, name);
    *ret_place = (size_t)place + 1;
    return PAWL_OK;
}

static bool is_in_its_container(const struct schema_type *parent, const struct event_object *child)
{
    return child->container >= 1 && child->container <= parent->container_count
           && parent->containers[child->container - 1].type->id == child->type;
}

int pawl_row_children(const pawl_row *row, const char *container, pawl_row_visit visit, void *arg,
                      pawl_error *error)
{
    const struct pawl_event_source *source = row->event;
    size_t place = 0; /* 0: any */
    if (!source)
        return error_set(error, PAWL_EINVAL, "only an object of an event's argument has children to visit");
    int status = container ? find_container(row, container, &place, error) : PAWL_OK;
    struct event_object object;
    size_t cursor = row->behind;
    for (uint32_t i = row->index + 1; status == PAWL_OK && i < source->event.head.argument_count; i++) {
        struct pawl_row child;
        if (!event_next(&source->event, &cursor, &object))
            break;
        if (object.parent != row->id || (place && object.container != place))
            continue;
        if (!is_in_its_container(row->type, &object))
            return error_set(error, PAWL_ECORRUPT,
                             "object %" PRIu64 " of the argument is in no container of its parent", object.id);
        status = row_of_object(source->engine, source->schema, &object, &child, error);
        child.event = source;
        child.behind = cursor;
        child.index = i;
        if (status == PAWL_OK && !visit(arg, &child))
            break;
    }
    return status;
}
