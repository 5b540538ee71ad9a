/* engine/json/show_operation.c: shows an operation with the rows that it writes. Keys are shown as fields. */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "core/project/operation.h"
#include "core/schema/definition.h"
#include "core/schema/path.h"
#include "core/schema/row.h"
#include "engine/json/show_impl.h"

/* The rows of one operation. The scratch is for strings of a key, and grows to the longest one. */
struct rows {
    const struct show *show;
    uint8_t *scratch;
    size_t scratch_size;
};

static int make_room(struct rows *rows, size_t size)
{
    if (size <= rows->scratch_size)
        return PAWL_OK;
    uint8_t *scratch = mem_new(rows->show->out->alloc, size, 1);
    if (!scratch)
        return error_set(rows->show->error, PAWL_ENOMEM, "%s", pawl_status_text(PAWL_ENOMEM));
    mem_free(rows->show->out->alloc, rows->scratch, rows->scratch_size);
    rows->scratch = scratch;
    rows->scratch_size = size;
    return PAWL_OK;
}

static int show_key(struct rows *rows, const struct schema_type *entity, pawl_bytes key)
{
    enum value_type types[DEFINITION_KEY_MAX];
    struct value values[DEFINITION_KEY_MAX];
    const struct show *show = rows->show;
    for (size_t i = 0; i < entity->key_count; i++)
        types[i] = entity->fields[entity->key[i]].type;
    int status = make_room(rows, key.size);
    if (status)
        return status;
    if (row_key_read(key, types, entity->key_count, rows->scratch, values))
        return error_set(show->error, PAWL_ECORRUPT, "a key of %.*s is not valid", TEXT(entity->name));
    out_open(show->out, '{');
    for (size_t i = 0; i < entity->key_count && status == PAWL_OK; i++) {
        out_name(show->out, entity->fields[entity->key[i]].name);
        status = show_value(show, &values[i]);
    }
    out_close(show->out, '}');
    return status;
}

static int show_row(struct rows *rows, const struct schema_type *entity, enum action_kind kind,
                    const struct operation_row *row)
{
    struct json_out *out = rows->show->out;
    out_open(out, '{');
    out_key(out, "key");
    int status = show_key(rows, entity, row->key);
    if (status == PAWL_OK && kind != ACTION_DELETE) {
        out_key(out, "set");
        out_open(out, '{');
        status = show_fields(rows->show, entity, row->set, row->cleared);
        out_close(out, '}');
    }
    out_close(out, '}');
    return status;
}

static int show_write(struct rows *rows, const struct operation_write *write)
{
    static const char *const words[] = {
        [ACTION_UPSERT] = "upsert", [ACTION_UPDATE] = "update", [ACTION_DELETE] = "delete"};
    struct json_out *out = rows->show->out;
    const struct schema_type *entity;
    struct operation_row row;
    size_t cursor = 0;
    int status = show_type(rows->show, write->entity, &entity);
    if (status == PAWL_OK && entity->kind != TYPE_ENTITY)
        status = error_set(rows->show->error, PAWL_ECORRUPT, "%.*s is not an entity", TEXT(entity->name));
    if (status)
        return status;
    out_open(out, '{');
    out_key(out, words[write->kind]);
    out_text(out, entity->name);
    out_key(out, "rows");
    out_open(out, '[');
    while (status == PAWL_OK && operation_next_row(write, &cursor, &row))
        status = show_row(rows, entity, write->kind, &row);
    out_close(out, ']');
    out_close(out, '}');
    return status;
}

static int show_writes(const struct show *show, const struct operation *operation)
{
    struct rows rows = {.show = show};
    struct operation_write write;
    size_t cursor = 0;
    int status = PAWL_OK;
    out_key(show->out, "writes");
    out_open(show->out, '[');
    while (status == PAWL_OK && operation_next_write(operation, &cursor, &write))
        status = show_write(&rows, &write);
    out_close(show->out, ']');
    mem_free(show->out->alloc, rows.scratch, rows.scratch_size);
    return status;
}

static int show_operation(const struct show *show, uint16_t partition, const struct operation *operation)
{
    struct json_out *out = show->out;
    char id[ID128_TEXT_SIZE];
    id128_format(operation->id, id);
    out_open(out, '{');
    out_key(out, "partition");
    out_unsigned(out, partition);
    out_key(out, "number");
    out_unsigned(out, operation->number);
    out_key(out, "operation");
    out_text(out, (pawl_bytes){id, 32});
    out_key(out, "event");
    out_unsigned(out, operation->event);
    out_key(out, "wsid");
    out_unsigned(out, operation->wsid);
    int status = show_name(show, "projector", operation->projector);
    out_key(out, "schema");
    out_unsigned(out, operation->schema);
    out_key(out, "attempt");
    out_unsigned(out, operation->attempt);
    out_key(out, "time");
    out_timestamp(out, operation->time.ns);
    if (operation->kind == OPERATION_VOID) {
        out_key(out, "void");
        out_text(out, operation->reason);
    } else if (status == PAWL_OK)
        status = show_writes(show, operation);
    out_close(out, '}');
    return status ? error_wrap(show->error, status, "operation %" PRIu64, operation->number) : PAWL_OK;
}

int json_operation(struct json_out *out, uint16_t partition, const struct schema *schema,
                   const struct operation *operation, pawl_error *error)
{
    struct show show;
    int status = show_begin(&show, out, schema, error);
    return status ? status : show_end(&show, show_operation(&show, partition, operation));
}

int json_show_key(struct json_out *out, const struct schema *schema, const struct schema_type *entity,
                  pawl_bytes key, pawl_error *error)
{
    struct show show;
    struct rows rows = {.show = &show};
    int status = show_begin(&show, out, schema, error);
    if (status == PAWL_OK)
        status = show_key(&rows, entity, key);
    mem_free(out->alloc, rows.scratch, rows.scratch_size);
    return show_end(&show, status);
}

void json_row_words(const struct schema *schema, const struct schema_type *type, pawl_bytes key,
                    const pawl_allocator *alloc, char *text, size_t size)
{
    struct json_out shown;
    bool entity = type && type->kind == TYPE_ENTITY;
    if (key.size == KEY_NUMBERED - KEY_WORKSPACE && !entity) {
        snprintf(text, size, "record %" PRIu64, get_u64_sorted(key.data));
        return;
    }
    json_out_init(&shown, alloc);
    if (entity && json_show_key(&shown, schema, type, key, NULL) == PAWL_OK
        && shown.size + sizeof "row " <= size)
        snprintf(text, size, "row %.*s", (int)shown.size, shown.data);
    else
        snprintf(text, size, "a row with a key of %zu bytes", key.size);
    json_out_release(&shown);
}
