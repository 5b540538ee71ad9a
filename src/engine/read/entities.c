/* engine/read/entities.c: reads rows of entities from a snapshot of their shard's store, on the caller's
 * thread.
 *
 * Rows that a lane makes are in the tables of the generation that serves. Between begin and end the reader is
 * counted: when another generation takes over, rows of the old one are not removed while somebody reads
 * them. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/schema/path.h"
#include "core/schema/row.h"
#include "core/state/key.h"
#include "engine/node/node.h"
#include "engine/read/entity_read.h"
#include "engine/read/read.h"

struct counted_read {
    struct entity_read read;
    unsigned parity; /* of lanes_read_begin */
    pawl_store *store;
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

static int begin(struct counted_read *l, pawl_engine *e, uint64_t wsid, const char *name,
                 struct entity_query at, const pawl_read_options *options, pawl_error *error)
{
    uint16_t partition = pawl_partition_of(e, wsid);
    int status = engine_enter(e, error);
    if (status == PAWL_OK)
        status = wait(e, partition, name, options, error);
    if (status == PAWL_OK)
        status = engine_workspace(e, wsid, error);
    if (status != PAWL_OK)
        return status;
    unsigned parity = lanes_read_begin(e);
    const struct schema *schema = engine_schema(e);
    const struct schema_type *entity = schema_type_by_name(schema, (pawl_bytes){name, strlen(name)});
    if (!entity || entity->kind != TYPE_ENTITY) {
        lanes_read_end(e, parity);
        return error_set(error, PAWL_ENOTFOUND, "there is no entity %s", name);
    }
    *l = (struct counted_read){.read = {.engine = e,
                                        .schema = schema,
                                        .entity = entity,
                                        .table = schema_serving_table(schema, entity),
                                        .wsid = wsid,
                                        .at = at,
                                        .error = error},
                               .parity = parity,
                               .store = shard_of(e, partition)->store};
    entity_read_begin(&l->read, e->options.allocator);
    return PAWL_OK;
}

static int end(struct counted_read *l, int status, pawl_text *ret_text)
{
    lanes_read_end(l->read.engine, l->parity);
    return entity_read_end(&l->read, status, ret_text);
}

static int not_read(const struct entity_read *l, int status)
{
    if (status == PAWL_ENOTFOUND)
        return error_set(l->error, status, "workspace %" PRIu64 " has no such %.*s", l->wsid,
                         TEXT(l->entity->name));
    return error_set(l->error, status, "cannot read workspace %" PRIu64, l->wsid);
}

static int get(struct counted_read *l)
{
    pawl_bytes key, value;
    pawl_reader *snapshot;
    int status = entity_read_key(&l->read, &key);
    if (status != PAWL_OK)
        return status;
    status = pawl_store_snapshot(l->store, &snapshot);
    if (status != PAWL_OK)
        return not_read(&l->read, status);
    status = pawl_store_get(snapshot, STATE_SPACE, key, &value);
    status = status == PAWL_OK ? entity_read_show(&l->read, value) : not_read(&l->read, status);
    pawl_store_release(l->store, snapshot);
    return status;
}

/* ret_text: NULL if there is a visitor. */
static int read_one(pawl_engine *e, uint64_t wsid, const char *entity, struct entity_query at,
                    const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    struct counted_read l;
    int status = begin(&l, e, wsid, entity, at, options, error);
    return status == PAWL_OK ? end(&l, get(&l), ret_text) : status;
}

int pawl_entity_get(pawl_engine *e, uint64_t wsid, const char *entity, pawl_bytes key,
                    const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    return read_one(e, wsid, entity, (struct entity_query){.json = key}, options, ret_text, error);
}

int pawl_entity_read(pawl_engine *e, uint64_t wsid, const char *entity, pawl_key key,
                     const pawl_read_options *options, pawl_row_visit visit, void *arg, pawl_error *error)
{
    struct entity_query at = {.key = key, .visit = visit, .arg = arg};
    return read_one(e, wsid, entity, at, options, NULL, error);
}

static int scan(void *ctx, pawl_bytes from, pawl_bytes to, pawl_visit_row visit, void *arg)
{
    struct counted_read *l = ctx;
    pawl_reader *snapshot;
    int status = pawl_store_snapshot(l->store, &snapshot);
    if (status != PAWL_OK)
        return not_read(&l->read, status);
    status = pawl_store_scan(snapshot, (pawl_range){.space = STATE_SPACE, .from = from, .to = to}, false, visit,
                             arg);
    pawl_store_release(l->store, snapshot);
    return status == PAWL_OK ? PAWL_OK : not_read(&l->read, status);
}

static int read_many(pawl_engine *e, uint64_t wsid, const char *entity, struct entity_query at,
                     const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    struct counted_read l;
    int status = begin(&l, e, wsid, entity, at, options, error);
    return status == PAWL_OK ? end(&l, entity_read_list(&l.read, scan, &l), ret_text) : status;
}

int pawl_entity_list(pawl_engine *e, uint64_t wsid, const char *entity, pawl_bytes after, size_t limit,
                     const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    return read_many(e, wsid, entity, (struct entity_query){.json = after, .limit = limit}, options, ret_text,
                     error);
}

int pawl_entity_page(pawl_engine *e, uint64_t wsid, const char *entity, pawl_bytes after, pawl_cursor *cursor,
                     size_t limit, const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    return read_many(e, wsid, entity, (struct entity_query){.json = after, .limit = limit, .cursor = cursor},
                     options, ret_text, error);
}

int pawl_entity_scan(pawl_engine *e, uint64_t wsid, const char *entity, pawl_key after, pawl_cursor *cursor,
                     size_t limit, const pawl_read_options *options, pawl_row_visit visit, void *arg,
                     pawl_error *error)
{
    struct entity_query at = {.key = after, .visit = visit, .arg = arg, .limit = limit, .cursor = cursor};
    return read_many(e, wsid, entity, at, options, NULL, error);
}
