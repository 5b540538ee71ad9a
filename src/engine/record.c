/* engine/record.c: one record, read where it lies: a snapshot, a get, and the row's bytes as they are. They
 * were checked when they were written, so of the row only its shape is looked at, and of a field only what is
 * read.
 */
#include <pawl/engine.h>

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/schema/row.h"
#include "core/state/key.h"
#include "engine/node.h"

struct pawl_record {
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

int pawl_record_read(pawl_engine *e, uint64_t wsid, const char *type, uint64_t id,
                     const pawl_read_options *options, pawl_record_visit visit, void *arg, pawl_error *error)
{
    uint64_t token = hash_token(wsid);
    uint16_t partition = partition_of(token, e->file.partitions);
    pawl_store *store = shard_of(e, partition)->store;
    pawl_reader *snapshot;
    struct pawl_record record = {.id = id};
    int status = engine_enter(e, error);
    if (status == PAWL_OK && options)
        status = engine_wait_applied(e, partition, options, error);
    if (status != PAWL_OK)
        return status;
    record.type = schema_type_by_name(engine_schema_refresh(e), (pawl_bytes){type, strlen(type)});
    if (!record.type || record.type->kind == TYPE_ENTITY || !type_has_table(record.type->kind))
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

/* The field's value, zeros if it is null. */
static int get(const pawl_record *record, const char *field, enum value_type type, struct value *ret_value,
               bool *ret_null)
{
    int place = schema_field_place(record->type, (pawl_bytes){field, strlen(field)});
    if (place < 0)
        return PAWL_ENOTFOUND;
    if (record->type->fields[place].type != type)
        return PAWL_EINVAL;
    int status = row_peek(record->row, (size_t)place, type, ret_value);
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
