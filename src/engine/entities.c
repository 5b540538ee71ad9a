/* engine/entities.c: rows of entities as they are read: from a snapshot of their shard's store, on the caller's
 * own thread.
 *
 * Those of a lane lie in the tables of its generation that serves. Between begin and end the reader is counted,
 * so that they are not removed under it when another generation takes over. */
#include <pawl/engine.h>

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/schema/path.h"
#include "core/schema/row.h"
#include "core/state/key.h"
#include "engine/json/key.h"
#include "engine/json/show.h"
#include "engine/node.h"
#include "engine/text.h"

#define ROWS_AT_ONCE 1000 /* in one snapshot, which must not live long */
#define ARENA_CHUNK  ((size_t)4096)

/* One read of an entity. */
struct looking {
    const struct schema *schema;
    const struct schema_type *entity;
    struct lanes *lanes;
    unsigned parity; /* in which it is counted */
    pawl_store *store;
    uint32_t table;
    uint64_t wsid;
    struct arena memory;
    struct json_out out;
    pawl_error *error;
};

static int wait(pawl_engine *e, uint16_t partition, const char *name, const pawl_read_options *options,
                pawl_error *error)
{
    const struct schema *schema = engine_schema_refresh(e);
    const struct schema_type *entity = schema_type_by_name(schema, (pawl_bytes){name, strlen(name)});
    if (!entity || entity->kind != TYPE_ENTITY)
        return error_set(error, PAWL_ENOTFOUND, "there is no entity %s", name);
    return entity->lane ? engine_wait_entity(e, partition, name, options, error)
                        : engine_wait_applied(e, partition, options, error);
}

static int begin(struct looking *l, pawl_engine *e, uint64_t wsid, const char *name,
                 const pawl_read_options *options, pawl_error *error)
{
    uint16_t partition = pawl_partition_of(e, wsid);
    int status = engine_enter(e, error);
    if (status == PAWL_OK)
        status = wait(e, partition, name, options, error);
    if (status == PAWL_OK)
        status = engine_workspace(e, wsid, error);
    if (status != PAWL_OK)
        return status;
    unsigned parity = lanes_read_begin(&e->lanes);
    *l = (struct looking){.schema = engine_schema(e),
                          .lanes = &e->lanes,
                          .parity = parity,
                          .store = shard_of(e, partition)->store,
                          .wsid = wsid,
                          .error = error};
    l->entity = schema_type_by_name(l->schema, (pawl_bytes){name, strlen(name)});
    if (!l->entity || l->entity->kind != TYPE_ENTITY) {
        lanes_read_end(&e->lanes, parity);
        return error_set(error, PAWL_ENOTFOUND, "there is no entity %s", name);
    }
    l->table = schema_serving_table(l->schema, l->entity);
    arena_init(&l->memory, e->options.allocator, ARENA_CHUNK);
    json_out_init(&l->out, e->options.allocator);
    return PAWL_OK;
}

static int end(struct looking *l, int status, pawl_text *ret_text)
{
    lanes_read_end(l->lanes, l->parity);
    arena_release(&l->memory);
    return text_take(&l->out, status, ret_text, l->error);
}

static int find_key(struct looking *l, pawl_bytes json, pawl_bytes *ret_key)
{
    return json_row_key(json, l->schema, l->entity, l->table, l->wsid, &l->memory, ret_key, l->error);
}

static int not_read(const struct looking *l, int status)
{
    if (status == PAWL_ENOTFOUND)
        return error_set(l->error, status, "workspace %" PRIu64 " has no such %.*s", l->wsid,
                         TEXT(l->entity->name));
    return error_set(l->error, status, "cannot read workspace %" PRIu64, l->wsid);
}

static int look(struct looking *l, pawl_bytes json)
{
    pawl_bytes key, value;
    pawl_reader *snapshot;
    int status = find_key(l, json, &key);
    if (status != PAWL_OK)
        return status;
    status = pawl_store_snapshot(l->store, &snapshot);
    if (status != PAWL_OK)
        return not_read(l, status);
    status = pawl_store_get(snapshot, STATE_SPACE, key, &value);
    status = status == PAWL_OK ? json_row(&l->out, l->schema, l->entity, value, l->error) : not_read(l, status);
    pawl_store_release(l->store, snapshot);
    return status;
}

int pawl_entity_get(pawl_engine *e, uint64_t wsid, const char *entity, pawl_bytes key,
                    const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    struct looking l;
    int status = begin(&l, e, wsid, entity, options, error);
    return status == PAWL_OK ? end(&l, look(&l, key), ret_text) : status;
}

/* --- lists --- */

struct listing {
    struct looking *looking;
    pawl_bytes last; /* the key that was shown last, in the memory; or that to begin with */
    bool inclusive;
    size_t rows; /* in this snapshot */
    size_t left;
    int status;
};

static bool list_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct listing *list = arg;
    struct looking *l = list->looking;
    if (!list->inclusive && bytes_equal(key, list->last))
        return true;
    list->status = json_row(&l->out, l->schema, l->entity, value, l->error);
    if (list->status != PAWL_OK)
        return false;
    out_raw(&l->out, (pawl_bytes){"\n", 1});
    list->rows++;
    list->left--;
    if (list->left > 0 && list->rows < ROWS_AT_ONCE)
        return true;
    arena_reset(&l->memory);
    list->last = arena_copy(&l->memory, key);
    list->inclusive = false;
    if (!list->last.data)
        list->status = error_set(l->error, PAWL_ENOMEM, "no memory for a list");
    return false;
}

static int list_some(struct listing *list)
{
    struct looking *l = list->looking;
    uint8_t prefix[KEY_WORKSPACE], behind[KEY_WORKSPACE];
    pawl_range range = {.space = STATE_SPACE,
                        .from = list->last,
                        .to = key_after_prefix(key_of_workspace(l->table, l->wsid, prefix), behind)};
    pawl_reader *snapshot;
    list->rows = 0;
    int status = pawl_store_snapshot(l->store, &snapshot);
    if (status != PAWL_OK)
        return not_read(l, status);
    status = pawl_store_scan(snapshot, range, false, list_row, list);
    pawl_store_release(l->store, snapshot);
    return status == PAWL_OK ? list->status : not_read(l, status);
}

int pawl_entity_list(pawl_engine *e, uint64_t wsid, const char *entity, pawl_bytes after, size_t limit,
                     const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    struct looking l;
    struct listing list = {.looking = &l, .left = limit, .inclusive = !after.data};
    uint8_t first[KEY_WORKSPACE];
    int status = begin(&l, e, wsid, entity, options, error);
    if (status != PAWL_OK)
        return status;
    if (after.data)
        status = find_key(&l, after, &list.last);
    else
        list.last = key_of_workspace(l.table, wsid, first);
    do
        status = status == PAWL_OK && list.left > 0 ? list_some(&list) : status;
    while (status == PAWL_OK && list.left > 0 && list.rows == ROWS_AT_ONCE);
    return end(&l, status, ret_text);
}
