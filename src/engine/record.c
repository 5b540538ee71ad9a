/* engine/record.c: one record, read where it lies: a snapshot, a get, and the row's bytes as they are. They
 * were checked when they were written, so of the row only its shape is looked at, and of a field only what is
 * read.
 *
 * Beside another process that writes, the schema may be older than the row, and to look for a newer one costs a
 * hundred times what the rest does: so it is looked for when a type or a field is not in the one that is known.
 */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/schema/row.h"
#include "core/state/key.h"
#include "engine/node.h"

struct pawl_record {
    pawl_engine *engine;
    const struct schema_type *type;
    uint64_t id;
    struct record_row stored;
    struct row row;
};

static int read_stored(pawl_reader *snapshot, uint64_t token, uint64_t wsid, struct pawl_record *record,
                       pawl_error *error)
{
    uint8_t key[KEY_NUMBERED];
    pawl_bytes value;
    int status = pawl_store_get(snapshot, STATE_SPACE,
                                key_at_token(record->type->table, token, wsid, record->id, key), &value);
    if (status != PAWL_OK)
        return status;
    if (!record_row_read(value, &record->stored) || record->stored.type != record->type->id)
        return error_set(error, PAWL_ECORRUPT,
                         "workspace %" PRIu64 ": what is stored of record %" PRIu64 " is not a record", wsid,
                         record->id);
    return row_view(record->stored.row, &record->row, error);
}

static const struct schema_type *find_type(pawl_engine *e, const char *name)
{
    pawl_bytes words = {name, strlen(name)};
    const struct schema_type *type = schema_type_by_name(engine_schema(e), words);
    if (!type)
        type = schema_type_by_name(engine_schema_refresh(e), words);
    return type && type->kind != TYPE_ENTITY && type_has_table(type->kind) ? type : NULL;
}

int pawl_record_read(pawl_engine *e, uint64_t wsid, const char *type, uint64_t id,
                     const pawl_read_options *options, pawl_record_visit visit, void *arg, pawl_error *error)
{
    uint64_t token = hash_token(wsid);
    uint16_t partition = partition_of(token, e->file.partitions);
    pawl_store *store = shard_of(e, partition)->store;
    pawl_reader *snapshot;
    struct pawl_record record = {.engine = e, .id = id};
    int status = engine_enter(e, error);
    if (status == PAWL_OK && options)
        status = engine_wait_applied(e, partition, options, error);
    if (status != PAWL_OK)
        return status;
    record.type = find_type(e, type);
    if (!record.type)
        return error_set(error, PAWL_ENOTFOUND, "there is no type of records with a table %s", type);
    status = pawl_store_snapshot(store, &snapshot);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read workspace %" PRIu64, wsid);
    status = read_stored(snapshot, token, wsid, &record, error);
    if (status == PAWL_OK)
        visit(arg, &record);
    pawl_store_release(store, snapshot);
    if (status != PAWL_ENOTFOUND)
        return status;
    status = engine_workspace(e, wsid, error);
    return status != PAWL_OK
               ? status
               : error_set(error, PAWL_ENOTFOUND, "workspace %" PRIu64 " has no %s %" PRIu64, wsid, type, id);
}

uint64_t pawl_record_id(const pawl_record *record)
{
    return record->id;
}

uint64_t pawl_record_parent(const pawl_record *record)
{
    return record->stored.parent;
}

bool pawl_record_active(const pawl_record *record)
{
    return record->stored.active;
}

/* Of the schema that the record was read with, or of one that came meanwhile. */
static const struct schema_field *find_field(const pawl_record *record, pawl_bytes name, size_t *ret_place)
{
    const struct schema_type *type = record->type;
    int place = schema_field_place(type, name);
    if (place < 0) {
        type = schema_type_by_id(engine_schema_refresh(record->engine), type->id);
        place = type ? schema_field_place(type, name) : -1;
    }
    *ret_place = (size_t)place;
    return place < 0 ? NULL : &type->fields[place];
}

/* The field's value, zeros if it is null. */
static int get(const pawl_record *record, const char *name, enum value_type type, struct value *ret_value,
               bool *ret_null)
{
    size_t place;
    const struct schema_field *field = find_field(record, (pawl_bytes){name, strlen(name)}, &place);
    if (!field)
        return PAWL_ENOTFOUND;
    if (field->type != type)
        return PAWL_EINVAL;
    int status = row_peek(record->row, place, type, ret_value);
    if (status != PAWL_OK)
        return status;
    bool null = ret_value->type == VALUE_NULL;
    if (null)
        *ret_value = (struct value){0};
    if (ret_null)
        *ret_null = null;
    return PAWL_OK;
}

#define GETTER(name, value_type, c_type, expression)                                                           \
    int pawl_record_##name(const pawl_record *record, const char *field, c_type *ret_value, bool *ret_null)    \
    {                                                                                                          \
        struct value value;                                                                                    \
        int status = get(record, field, value_type, &value, ret_null);                                         \
        if (status == PAWL_OK)                                                                                 \
            *ret_value = (expression);                                                                         \
        return status;                                                                                         \
    }

GETTER(int64, VALUE_INT64, int64_t, value.integer)
GETTER(float64, VALUE_FLOAT64, double, value.real)
GETTER(bool, VALUE_BOOL, bool, value.boolean)
GETTER(string, VALUE_STRING, pawl_bytes, value.bytes)
GETTER(bytes, VALUE_BYTES, pawl_bytes, value.bytes)
GETTER(time, VALUE_TIMESTAMP, pawl_wall, ((pawl_wall){value.integer}))
GETTER(ref, VALUE_REF, uint64_t, value.id)
