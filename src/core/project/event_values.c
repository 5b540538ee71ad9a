#include "core/project/event_values.h"

#include "base/hash.h"
#include "core/schema/row.h"

static uint64_t hash_of_number(uint64_t number)
{
    uint64_t hash = hash_mix(number + 1);
    return hash ? hash : 1;
}

static uint64_t hash_of_value(const struct value *value)
{
    switch (value->type) {
    case VALUE_INT64:
    case VALUE_TIMESTAMP: return hash_of_number((uint64_t)value->integer);
    case VALUE_FLOAT64: return hash_checksum(2, (pawl_bytes){&value->real, sizeof value->real}) | 1;
    case VALUE_STRING:
    case VALUE_BYTES: return hash_checksum(3, value->bytes) | 1;
    case VALUE_QNAME: return hash_of_number(value->name);
    case VALUE_REF: return hash_of_number(value->id);
    case VALUE_BOOL: /* says nothing about which thing is concerned */
    case VALUE_NULL: break;
    }
    return 0;
}

/* The places of the fields behind an object follow from its type, not from which of them it has. */
static size_t add_object(const struct event_object *object, const struct schema_type *type, size_t at,
                         struct event_values *values)
{
    struct row row;
    bool readable = row_borrow(object->row, &row, NULL) == PAWL_OK;
    values->hashes[at++] = object->op == EVENT_UPDATE ? hash_of_number(object->id) : 0;
    for (size_t i = 0; i < type->field_count && at < EVENT_VALUES_MAX; i++, at++) {
        struct value value = {.type = VALUE_NULL};
        if (readable && row_has(row, i) && row_peek(row, i, type->fields[i].type, &value) == PAWL_OK)
            values->hashes[at] = hash_of_value(&value);
    }
    return at;
}

void event_values_of(pawl_bytes bytes, const struct schema *schema, uint32_t projection,
                     struct event_values *ret_values)
{
    struct event event;
    struct event_object object;
    size_t cursor = 0, at = 0;
    *ret_values = (struct event_values){0};
    if (event_decode(bytes, &event, NULL) != PAWL_OK)
        return;
    ret_values->kind = projection << 16 | event.head.command;
    ret_values->wsid = event.envelope.wsid;
    while (at < EVENT_VALUES_MAX && event_next(&event, &cursor, &object)) {
        const struct schema_type *type = schema_type_by_id(schema, object.type);
        if (!type)
            break;
        at = add_object(&object, type, at, ret_values);
    }
}
