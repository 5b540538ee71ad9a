#include "core/project/operation_rows.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "core/state/key.h"
#include "port/store.h"

static int corrupt(const struct schema_type *entity, pawl_error *error, const char *what)
{
    return error_set(error, PAWL_ECORRUPT, "a row of %.*s %s", (int)entity->name.size,
                     (const char *)entity->name.data, what);
}

/* The walk. */

void operation_rows_begin(struct operation_rows *r, const struct operation *operation,
                          const struct schema *schema, uint32_t generation, struct arena *memory,
                          pawl_error *error)
{
    *r = (struct operation_rows){
        .operation = operation, .schema = schema, .generation = generation, .memory = memory, .error = error};
}

/* The key is made in a buffer that is used again for the next one. */
static int make_key(struct operation_rows *r)
{
    const struct schema_type *entity = r->change.entity;
    pawl_bytes own = r->change.row.key;
    size_t size = KEY_WORKSPACE + own.size;
    if (size > PAWL_KEY_BYTES_MAX)
        return corrupt(entity, r->error, "has a key that is too long");
    if (size > r->room_size) {
        uint8_t *room = arena_take(r->memory, 2 * size);
        if (!room)
            return PAWL_ENOMEM;
        r->room = room;
        r->room_size = 2 * size;
    }
    key_of_workspace(schema_table(entity, r->generation), r->operation->wsid, r->room);
    memcpy(r->room + KEY_WORKSPACE, own.data, own.size);
    r->key = (pawl_bytes){r->room, size};
    return PAWL_OK;
}

int operation_rows_next(struct operation_rows *r)
{
    struct operation_change *c = &r->change;
    if (!operation_walk(r->operation, &r->walk, &c->row))
        return PAWL_ENOTFOUND;
    if (!c->entity || c->entity->id != r->walk.entity)
        c->entity = schema_type_by_id(r->schema, r->walk.entity);
    if (!c->entity || c->entity->kind != TYPE_ENTITY)
        return error_set(r->error, PAWL_ECORRUPT,
                         "the operation writes entity %u, which its schema does not have", r->walk.entity);
    c->kind = r->walk.kind;
    return make_key(r);
}

/* One row. */

static int open_row(const struct schema_type *entity, pawl_bytes bytes, struct row *ret_row, pawl_error *error)
{
    int status = row_open(entity->fields, entity->field_count, bytes, ret_row, error);
    if (status == PAWL_OK && row_fields(*ret_row) > entity->field_count)
        return corrupt(entity, error, "was written under a later schema than the operation that changes it");
    return status;
}

int operation_change_fits(const struct operation_change *c, pawl_bytes was, pawl_error *error)
{
    struct row row;
    return open_row(c->entity, was, &row, error);
}

/* Read the values of the key's fields, by place, and no others. */
static int read_key(const struct operation_change *c, struct arena *memory, struct value *values,
                    pawl_error *error)
{
    const struct schema_type *entity = c->entity;
    size_t count = entity->key_count;
    struct value *key = arena_take(memory, count * sizeof *key);
    enum value_type *types = arena_take(memory, count * sizeof *types);
    uint8_t *scratch = arena_take(memory, c->row.key.size);
    if (!key || !types || !scratch)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < count; i++)
        types[i] = entity->fields[entity->key[i]].type;
    if (row_key_read(c->row.key, types, count, scratch, key) != PAWL_OK)
        return corrupt(entity, error, "has a key that cannot be decoded");
    memset(values, 0, entity->field_count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        if (key[i].type == VALUE_NULL)
            return corrupt(entity, error, "has null in its key");
        values[entity->key[i]] = key[i];
    }
    return PAWL_OK;
}

/* For a row that did not exist before: the row that has nothing but its key. */
static int row_of_key(const struct operation_change *c, struct arena *memory, struct row *ret_row,
                      pawl_error *error)
{
    size_t fields = c->entity->field_count, size;
    struct value *values = arena_take(memory, fields * sizeof *values);
    int status = values ? read_key(c, memory, values, error) : PAWL_ENOMEM;
    if (status == PAWL_OK)
        status = row_size(values, fields, &size);
    uint8_t *at = status == PAWL_OK ? arena_take(memory, size) : NULL;
    if (!at)
        return status != PAWL_OK ? status : PAWL_ENOMEM;
    row_write(values, fields, at);
    *ret_row = (struct row){.bytes = {at, size}};
    return PAWL_OK;
}

/* Checks the change alone. It must have been checked before operation_change_becomes. */
int operation_change_check(const struct operation_change *c, pawl_error *error)
{
    const struct schema_type *entity = c->entity;
    const struct operation_row *row = &c->row;
    struct row set;
    if (c->kind == ACTION_DELETE)
        return PAWL_OK;
    int status = open_row(entity, row->set, &set, error);
    if (status != PAWL_OK)
        return status;
    if (row->cleared_count > 0 && operation_cleared(row, row->cleared_count - 1) >= entity->field_count)
        return corrupt(entity, error, "is cleared of a field that it does not have"); /* they ascend */
    for (size_t i = 0; i < entity->key_count; i++)
        if (row_has(set, entity->key[i]))
            return corrupt(entity, error, "is set in its key");
    return PAWL_OK;
}

static int merge_rows(const struct operation_change *c, struct row was, struct arena *memory,
                      pawl_bytes *ret_value, pawl_error *error)
{
    const struct schema_type *entity = c->entity;
    struct row set = {.bytes = c->row.set}, merged;
    uint8_t *value = arena_take(memory, row_merge_room(entity->field_count, was, set));
    if (!value)
        return PAWL_ENOMEM;
    int status = row_merge(entity->fields, entity->field_count, was, set, c->row.cleared, value, &merged);
    if (status == PAWL_ETOOBIG)
        return error_set(error, status, "the row would be larger than a row may be");
    if (status == PAWL_EINVAL)
        return corrupt(entity, error, "is null in a required field");
    for (size_t i = 0; i < entity->key_count; i++)
        if (!row_has(merged, entity->key[i]))
            return corrupt(entity, error, "is set in its key");
    *ret_value = merged.bytes;
    return PAWL_OK;
}

int operation_change_becomes(const struct operation_change *c, pawl_bytes was, struct arena *memory,
                             pawl_bytes *ret_value, pawl_error *error)
{
    struct row row = {.bytes = was};
    if (!was.data && c->kind != ACTION_UPSERT)
        return corrupt(c->entity, error, "is not there");
    if (c->kind == ACTION_DELETE) {
        *ret_value = (pawl_bytes){0};
        return PAWL_OK;
    }
    int status = was.data ? PAWL_OK : row_of_key(c, memory, &row, error);
    return status == PAWL_OK ? merge_rows(c, row, memory, ret_value, error) : status;
}
