/* engine/json/show.c: rows and records. */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/error.h"
#include "core/schema/row.h"
#include "engine/json/show_impl.h"

int show_begin(struct show *show, struct json_out *out, const struct schema *schema, pawl_error *error)
{
    *show = (struct show){.out = out, .schema = schema, .error = error, .before = out->size};
    return out->status ? error_set(error, out->status, "%s", pawl_status_text(out->status)) : PAWL_OK;
}

int show_end(struct show *show, int status)
{
    if (status == PAWL_OK && show->out->status)
        status = error_set(show->error, show->out->status, "%s", pawl_status_text(show->out->status));
    if (status)
        json_out_rewind(show->out, show->before);
    return status;
}

int show_type(const struct show *show, uint16_t id, const struct schema_type **ret_type)
{
    const struct schema_type *type = schema_type_by_id(show->schema, id);
    if (!type)
        return error_set(show->error, PAWL_ECORRUPT, "the schema at %" PRIu64 " has no type %u",
                         show->schema->position, id);
    *ret_type = type;
    return PAWL_OK;
}

static int find_name(const struct show *show, uint16_t id, pawl_bytes *ret_text)
{
    pawl_bytes text = schema_name_text(show->schema, id);
    if (text.size == 0)
        return error_set(show->error, PAWL_ECORRUPT, "the schema at %" PRIu64 " has no name %u",
                         show->schema->position, id);
    *ret_text = text;
    return PAWL_OK;
}

int show_name(const struct show *show, const char *key, uint16_t id)
{
    pawl_bytes text;
    int status = find_name(show, id, &text);
    if (status)
        return status;
    out_key(show->out, key);
    out_text(show->out, text);
    return PAWL_OK;
}

int show_value(const struct show *show, const struct value *value)
{
    pawl_bytes text;
    int status = PAWL_OK;
    switch (value->type) {
    case VALUE_NULL: out_null(show->out); break;
    case VALUE_INT64: out_integer(show->out, value->integer); break;
    case VALUE_FLOAT64: out_real(show->out, value->real); break;
    case VALUE_BOOL: out_flag(show->out, value->boolean); break;
    case VALUE_STRING: out_text(show->out, value->bytes); break;
    case VALUE_BYTES: out_bytes(show->out, value->bytes); break;
    case VALUE_TIMESTAMP: out_timestamp(show->out, value->integer); break;
    case VALUE_REF: out_unsigned(show->out, value->id); break;
    case VALUE_QNAME:
        status = find_name(show, value->name, &text);
        if (status == PAWL_OK)
            out_text(show->out, text);
        break;
    }
    return status;
}

int show_fields(const struct show *show, const struct schema_type *type, pawl_bytes bytes, pawl_bytes cleared)
{
    struct row row;
    size_t at = 0;
    int status = row_open(type->fields, type->field_count, bytes, &row, show->error);
    for (size_t place = 0; place < type->field_count && status == PAWL_OK; place++) {
        struct value value = row_get(row, place, type->fields[place].type);
        bool clears = at < cleared.size && get_u16((const uint8_t *)cleared.data + at) == place;
        at += clears ? 2 : 0;
        if (value.type == VALUE_NULL && !clears)
            continue;
        out_name(show->out, type->fields[place].name);
        status = show_value(show, &value);
    }
    return status;
}

static bool has_child_at(const struct schema_type *parent, uint16_t child, uint16_t place)
{
    return place >= 1 && place <= parent->container_count && parent->containers[place - 1].type->id == child;
}

pawl_bytes show_container(const struct show *show, const struct schema_type *parent, uint16_t child,
                          uint16_t place)
{
    pawl_bytes found = {NULL, 0};
    if (parent)
        return has_child_at(parent, child, place) ? parent->containers[place - 1].name : found;
    for (size_t i = 0; i < show->schema->type_count; i++) {
        const struct schema_type *type = &show->schema->types[i];
        if (!has_child_at(type, child, place))
            continue;
        pawl_bytes name = type->containers[place - 1].name;
        if (found.size && !bytes_equal(found, name))
            return (pawl_bytes){NULL, 0};
        found = name;
    }
    return found;
}

static int show_record(const struct show *show, uint64_t id, const struct record_row *record,
                       const struct schema_type *parent)
{
    struct json_out *out = show->out;
    const struct schema_type *type;
    int status = show_type(show, record->type, &type);
    if (status)
        return status;
    out_open(out, '{');
    out_key(out, "id");
    out_unsigned(out, id);
    out_key(out, "type");
    out_text(out, type->name);
    out_key(out, "active");
    out_flag(out, record->active);
    if (record->parent) {
        out_key(out, "parent");
        out_unsigned(out, record->parent);
        pawl_bytes container = show_container(show, parent, type->id, record->container);
        if (container.size) {
            out_key(out, "container");
            out_text(out, container);
        }
    }
    out_key(out, "fields");
    out_open(out, '{');
    status = show_fields(show, type, record->row, (pawl_bytes){0});
    out_close(out, '}');
    out_close(out, '}');
    return status ? error_wrap(show->error, status, "record %" PRIu64, id) : PAWL_OK;
}

int json_record(struct json_out *out, const struct schema *schema, uint64_t id, const struct record_row *record,
                const struct schema_type *parent, pawl_error *error)
{
    struct show show;
    int status = show_begin(&show, out, schema, error);
    return status ? status : show_end(&show, show_record(&show, id, record, parent));
}

int json_row(struct json_out *out, const struct schema *schema, const struct schema_type *type, pawl_bytes row,
             pawl_error *error)
{
    struct show show;
    int status = show_begin(&show, out, schema, error);
    if (status)
        return status;
    out_open(out, '{');
    status = show_fields(&show, type, row, (pawl_bytes){0});
    out_close(out, '}');
    return show_end(&show, status);
}

static void show_number(const struct show *show, const struct schema_type *view, const char *name,
                        uint64_t number)
{
    if (number == 0 || schema_field_place(view, (pawl_bytes){name, strlen(name)}) >= 0)
        return;
    out_key(show->out, name);
    out_unsigned(show->out, number);
}

int json_view_row(struct json_out *out, const struct schema *schema, const struct schema_type *view,
                  uint64_t wsid, uint64_t id, pawl_bytes row, pawl_error *error)
{
    struct show show;
    int status = show_begin(&show, out, schema, error);
    if (status)
        return status;
    out_open(out, '{');
    show_number(&show, view, "wsid", wsid);
    show_number(&show, view, "id", id);
    status = show_fields(&show, view, row, (pawl_bytes){0});
    out_close(out, '}');
    return show_end(&show, status);
}
