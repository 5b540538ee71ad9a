/* engine/read/value.c: values of a key that a program makes. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "core/schema/definition.h"
#include "core/schema/text.h"
#include "engine/read/row.h"

pawl_value pawl_value_null(void)
{
    return (pawl_value){.type = PAWL_NULL};
}

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

/* Says what is wrong with a value; NULL: nothing. pawl_type has the same numbers as the schema's types. */
static const char *take_value(const pawl_value *from, const struct schema *schema, struct value *ret_value)
{
    *ret_value = (struct value){.type = (enum value_type)from->type};
    switch (from->type) {
    case PAWL_NULL: return NULL;
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

_Static_assert((int)PAWL_NULL == VALUE_NULL, "same numbers");
_Static_assert((int)PAWL_INT64 == VALUE_INT64 && (int)PAWL_FLOAT64 == VALUE_FLOAT64, "same numbers");
_Static_assert((int)PAWL_BOOL == VALUE_BOOL && (int)PAWL_STRING == VALUE_STRING, "same numbers");
_Static_assert((int)PAWL_BYTES == VALUE_BYTES && (int)PAWL_TIME == VALUE_TIMESTAMP, "same numbers");
_Static_assert((int)PAWL_NAME == VALUE_QNAME && (int)PAWL_REF == VALUE_REF, "same numbers");

/* nulls: whether a value may be null. */
static int take_values(pawl_key key, const struct schema *schema, const struct schema_type *type, bool nulls,
                       struct value *values, pawl_error *error)
{
    for (size_t i = 0; i < key.count; i++) {
        const struct schema_field *field = &type->fields[type->key[i]];
        const char *wrong = take_value(&key.values[i], schema, &values[i]);
        bool null = values[i].type == VALUE_NULL;
        if (null && !nulls)
            wrong = "is null";
        if (!wrong && !null && values[i].type != field->type)
            return error_set(error, PAWL_EINVAL, "%.*s is of type %s, not %s", (int)field->name.size,
                             (const char *)field->name.data, value_type_text(field->type),
                             value_type_text(values[i].type));
        if (wrong)
            return error_set(error, PAWL_EINVAL, "%.*s: the value %s", (int)field->name.size,
                             (const char *)field->name.data, wrong);
    }
    return PAWL_OK;
}

static int wrong_count(pawl_key key, const struct schema_type *type, pawl_error *error)
{
    return error_set(error, PAWL_EINVAL, "the key of %.*s has %zu fields, not %zu", (int)type->name.size,
                     (const char *)type->name.data, type->key_count, key.count);
}

int key_values(pawl_key key, const struct schema *schema, const struct schema_type *entity, struct arena *arena,
               struct value **ret_values, pawl_error *error)
{
    if (key.count != entity->key_count)
        return wrong_count(key, entity, error);
    struct value *values = arena_take(arena, key.count * sizeof *values);
    if (!values)
        return error_set(error, PAWL_ENOMEM, "no memory for a key");
    int status = take_values(key, schema, entity, false, values, error);
    if (status == PAWL_OK)
        *ret_values = values;
    return status;
}

int key_first_values(pawl_key key, const struct schema *schema, const struct schema_type *view,
                     struct value *values, pawl_error *error)
{
    return key.count > view->key_count ? wrong_count(key, view, error)
                                       : take_values(key, schema, view, true, values, error);
}
