/* engine/read/value.c: values of a key as a program has them, and where a scan has stopped. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/schema/definition.h"
#include "core/schema/text.h"
#include "engine/read/row.h"

pawl_value pawl_value_int64(int64_t value)
{
    return (pawl_value){.type = PAWL_INT64, .as.integer = value};
}

pawl_value pawl_value_float64(double value)
{
    return (pawl_value){.type = PAWL_FLOAT64, .as.real = value};
}

pawl_value pawl_value_bool(bool value)
{
    return (pawl_value){.type = PAWL_BOOL, .as.boolean = value};
}

pawl_value pawl_value_string(const char *text)
{
    return pawl_value_text((pawl_bytes){text, strlen(text)});
}

pawl_value pawl_value_text(pawl_bytes text)
{
    return (pawl_value){.type = PAWL_STRING, .as.bytes = text};
}

pawl_value pawl_value_bytes(pawl_bytes bytes)
{
    return (pawl_value){.type = PAWL_BYTES, .as.bytes = bytes};
}

pawl_value pawl_value_time(pawl_wall time)
{
    return (pawl_value){.type = PAWL_TIME, .as.integer = time.ns};
}

pawl_value pawl_value_name(const char *qname)
{
    return (pawl_value){.type = PAWL_NAME, .as.bytes = {qname, strlen(qname)}};
}

pawl_value pawl_value_ref(uint64_t id)
{
    return (pawl_value){.type = PAWL_REF, .as.id = id};
}

/* --- keys --- */

/* What is wrong with a value, or NULL. The numbers of the types are those of the schema. */
static const char *take_value(const pawl_value *from, const struct schema *schema, struct value *ret_value)
{
    *ret_value = (struct value){.type = (enum value_type)from->type};
    switch (from->type) {
    case PAWL_INT64:
    case PAWL_TIME: ret_value->integer = from->as.integer; return NULL;
    case PAWL_FLOAT64: ret_value->real = from->as.real; return isfinite(from->as.real) ? NULL : "is not finite";
    case PAWL_BOOL: ret_value->boolean = from->as.boolean; return NULL;
    case PAWL_STRING:
        ret_value->bytes = from->as.bytes;
        return text_is_utf8(from->as.bytes) ? NULL : "is not UTF-8";
    case PAWL_BYTES: ret_value->bytes = from->as.bytes; return NULL;
    case PAWL_NAME:
        ret_value->name = schema_name_id(schema, from->as.bytes);
        return ret_value->name ? NULL : "is no name of the schema";
    case PAWL_REF: ret_value->id = from->as.id; return NULL;
    }
    return "is of no type";
}

_Static_assert((int)PAWL_INT64 == VALUE_INT64 && (int)PAWL_FLOAT64 == VALUE_FLOAT64, "same numbers");
_Static_assert((int)PAWL_BOOL == VALUE_BOOL && (int)PAWL_STRING == VALUE_STRING, "same numbers");
_Static_assert((int)PAWL_BYTES == VALUE_BYTES && (int)PAWL_TIME == VALUE_TIMESTAMP, "same numbers");
_Static_assert((int)PAWL_NAME == VALUE_QNAME && (int)PAWL_REF == VALUE_REF, "same numbers");

int key_values(pawl_key key, const struct schema *schema, const struct schema_type *entity, struct arena *arena,
               struct value **ret_values, pawl_error *error)
{
    if (key.count != entity->key_count)
        return error_set(error, PAWL_EINVAL, "the key of %.*s has %zu fields, not %zu", (int)entity->name.size,
                         (const char *)entity->name.data, entity->key_count, key.count);
    struct value *values = arena_take(arena, key.count * sizeof *values);
    if (!values)
        return error_set(error, PAWL_ENOMEM, "no memory for a key");
    for (size_t i = 0; i < key.count; i++) {
        const struct schema_field *field = &entity->fields[entity->key[i]];
        const char *wrong = take_value(&key.values[i], schema, &values[i]);
        if (!wrong && values[i].type != field->type)
            return error_set(error, PAWL_EINVAL, "%.*s is of type %s, not %s", (int)field->name.size,
                             (const char *)field->name.data, value_type_text(field->type),
                             value_type_text(values[i].type));
        if (wrong)
            return error_set(error, PAWL_EINVAL, "%.*s: the value %s", (int)field->name.size,
                             (const char *)field->name.data, wrong);
    }
    *ret_values = values;
    return PAWL_OK;
}

/* --- cursors --- */

struct cursor_memory {
    const pawl_allocator *alloc;
    size_t size; /* of the key */
    uint8_t key[];
};

pawl_bytes scan_cursor_key(const pawl_cursor *cursor)
{
    const struct cursor_memory *memory = cursor ? cursor->memory : NULL;
    return memory ? (pawl_bytes){memory->key, memory->size} : (pawl_bytes){0};
}

int scan_cursor_move(pawl_cursor *cursor, const pawl_allocator *alloc, pawl_bytes key)
{
    struct cursor_memory *memory = mem_new(alloc, 1, sizeof *memory + key.size);
    if (!memory)
        return PAWL_ENOMEM;
    memory->alloc = alloc;
    memory->size = key.size;
    memcpy(memory->key, key.data, key.size);
    pawl_cursor_free(cursor);
    cursor->memory = memory;
    return PAWL_OK;
}

void pawl_cursor_free(pawl_cursor *cursor)
{
    struct cursor_memory *memory = cursor->memory;
    if (memory)
        mem_free(memory->alloc, memory, sizeof *memory + memory->size);
    *cursor = (pawl_cursor){0};
}
