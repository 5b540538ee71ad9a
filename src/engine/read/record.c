/* engine/read/record.c: one record, read where it lies: a snapshot, a get, and the row's bytes as they are.
 *
 * Beside another process that writes, a newer schema is looked for only when a type is not in the one that is
 * known: engine/read/row.c says why. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/state/key.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/read/row.h"

static int read_stored(pawl_reader *snapshot, uint64_t token, uint64_t wsid, struct pawl_row *row,
                       pawl_error *error)
{
    uint8_t key[KEY_NUMBERED];
    pawl_bytes value;
    int status = pawl_store_get(snapshot, STATE_SPACE,
                                key_at_token(row->type->table, token, wsid, row->id, key), &value);
    return status == PAWL_OK ? row_of_record(wsid, value, row, error) : status;
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
                     const pawl_read_options *options, pawl_row_visit visit, void *arg, pawl_error *error)
{
    uint64_t token = hash_token(wsid);
    uint16_t partition = partition_of(token, e->file.partitions);
    pawl_store *store = shard_of(e, partition)->store;
    pawl_reader *snapshot;
    struct pawl_row row = {.engine = e, .id = id};
    int status = engine_enter(e, error);
    if (status == PAWL_OK && options)
        status = engine_wait_applied(e, partition, options, error);
    if (status != PAWL_OK)
        return status;
    row.type = find_type(e, type);
    if (!row.type)
        return error_set(error, PAWL_ENOTFOUND, "there is no type of records with a table %s", type);
    status = pawl_store_snapshot(store, &snapshot);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read workspace %" PRIu64, wsid);
    status = read_stored(snapshot, token, wsid, &row, error);
    if (status == PAWL_OK)
        (void)visit(arg, &row);
    pawl_store_release(store, snapshot);
    if (status != PAWL_ENOTFOUND)
        return status;
    status = engine_workspace(e, wsid, error);
    return status != PAWL_OK
               ? status
               : error_set(error, PAWL_ENOTFOUND, "workspace %" PRIu64 " has no %s %" PRIu64, wsid, type, id);
}
