/* engine/read/records.c: records as they are read: from a snapshot of their shard's store, on the caller's own
 * thread.
 *
 * Documents of O types are no rows: they live in the event that made them. The rows of a workspace's log carry
 * the last number that was given by each event, numbers only grow, and so the event of a record is found by
 * halving. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/state/key.h"
#include "engine/json/json.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/read/row.h"
#include "engine/read/text.h"

#define ROWS_AT_ONCE 1000 /* in one snapshot, which must not live long */

/* One read of a record. */
struct looking {
    pawl_engine *engine;
    const struct schema *schema;
    uint16_t partition;
    uint64_t wsid;
    uint64_t id;
    const struct schema_type *type; /* the only one that is wanted; NULL: any */
    pawl_reader *snapshot;
    struct json_out *out;
    int status; /* of a visit */
    pawl_error *error;
};

static int not_found(const struct looking *l)
{
    return error_set(l->error, PAWL_ENOTFOUND, "workspace %" PRIu64 " has no record %" PRIu64, l->wsid, l->id);
}

static int show_record(struct looking *l, const struct schema_type *type, pawl_bytes value)
{
    struct record_row record;
    if (!record_row_read(value, &record) || record.type != type->id)
        return error_set(l->error, PAWL_ECORRUPT,
                         "workspace %" PRIu64 ": what is stored of record %" PRIu64 " is not a record", l->wsid,
                         l->id);
    return json_record(l->out, l->schema, l->id, &record, NULL, l->error);
}

static int look_in_table(struct looking *l, const struct schema_type *type)
{
    uint8_t key[KEY_NUMBERED];
    pawl_bytes value;
    int status =
        pawl_store_get(l->snapshot, STATE_SPACE, key_numbered(type->table, l->wsid, l->id, key), &value);
    return status == PAWL_OK ? show_record(l, type, value) : status;
}

/* Whether a record of this ID could be of this type, which has a table. */
static bool could_be(const struct schema_type *type, uint64_t id)
{
    if (type->kind == TYPE_ENTITY || !type_has_table(type->kind))
        return false;
    return type->singleton ? type->singleton == id : type_in_c(type->kind) == record_in_c(id);
}

static int look_in_tables(struct looking *l)
{
    for (size_t i = 0; i < l->schema->type_count; i++) {
        if (!could_be(&l->schema->types[i], l->id))
            continue;
        int status = look_in_table(l, &l->schema->types[i]);
        if (status != PAWL_ENOTFOUND)
            return status;
    }
    return PAWL_ENOTFOUND;
}

/* --- in an event --- */

/* Of what an event has, only what has no table: a record of a table may have changed since. */
static bool is_wanted(const struct looking *l, const struct event_object *object)
{
    const struct schema_type *type = schema_type_by_id(l->schema, object->type);
    return object->id == l->id && type && !type_has_table(type->kind) && (!l->type || l->type == type);
}

static bool show_object(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct looking *l = read->arg;
    struct event event;
    struct event_object object;
    l->status = event_decode(entry->body, &event, l->error);
    for (size_t cursor = 0; l->status == PAWL_OK && event_next(&event, &cursor, &object);) {
        if (!is_wanted(l, &object))
            continue;
        struct record_row record = {.active = object.active,
                                    .type = object.type,
                                    .container = object.container,
                                    .parent = object.parent,
                                    .row = object.row};
        l->status = json_record(l->out, l->schema, l->id, &record, NULL, l->error);
        return false;
    }
    if (l->status == PAWL_OK)
        l->status = PAWL_ENOTFOUND;
    return false;
}

static int wlog_at(const struct looking *l, uint64_t offset, struct wlog_row *ret_row)
{
    uint8_t key[KEY_NUMBERED];
    pawl_bytes value;
    int status =
        pawl_store_get(l->snapshot, STATE_SPACE, key_numbered(TABLE_WLOG, l->wsid, offset, key), &value);
    if (status == PAWL_OK && !wlog_row_read(value, ret_row))
        status = PAWL_ECORRUPT;
    return status;
}

/* The first event whose last number is not below the record's: it gave that number, or nobody did. */
static int find_event(const struct looking *l, uint64_t *ret_plog_offset)
{
    uint64_t low = 0, high = 0; /* of events: low is below it, or 0; high is not, or the one behind the last */
    struct wlog_row row;
    int status = engine_last_offset(l->snapshot, l->wsid, &high);
    uint64_t end = ++high;
    while (status == PAWL_OK && high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        status = wlog_at(l, middle, &row);
        if (status == PAWL_OK)
            *(row.record < record_base(l->id) ? &low : &high) = middle;
    }
    if (status == PAWL_OK && high == end)
        return PAWL_ENOTFOUND;
    if (status == PAWL_OK)
        status = wlog_at(l, high, &row);
    if (status == PAWL_OK)
        *ret_plog_offset = row.plog_offset;
    return status;
}

static int look_in_events(struct looking *l)
{
    uint64_t offset;
    if (record_in_c(l->id) || record_base(l->id) < RECORD_FIRST)
        return PAWL_ENOTFOUND;
    int status = find_event(l, &offset);
    if (status != PAWL_OK)
        return status;
    l->status = PAWL_ENOTFOUND;
    status = engine_read_plog(l->engine, l->partition, offset, 1, show_object, l, NULL, l->error);
    return status == PAWL_OK ? l->status : status;
}

static int look(struct looking *l)
{
    if (l->type && type_has_table(l->type->kind))
        return look_in_table(l, l->type);
    int status = l->type ? PAWL_ENOTFOUND : look_in_tables(l);
    return status == PAWL_ENOTFOUND ? look_in_events(l) : status;
}

static int find_type(const struct schema *schema, const char *name, const struct schema_type **ret_type,
                     pawl_error *error)
{
    *ret_type = NULL;
    if (!name)
        return PAWL_OK;
    *ret_type = schema_type_by_name(schema, (pawl_bytes){name, strlen(name)});
    if (!*ret_type || (*ret_type)->kind == TYPE_ENTITY)
        return error_set(error, PAWL_ENOTFOUND, "there is no type of records %s", name);
    return PAWL_OK;
}

static int begin(struct looking *l, pawl_engine *e, uint64_t wsid, const pawl_read_options *options,
                 pawl_error *error)
{
    int status = engine_enter(e, error);
    *l = (struct looking){.engine = e, .partition = pawl_partition_of(e, wsid), .wsid = wsid, .error = error};
    return status == PAWL_OK ? engine_wait_applied(e, l->partition, options, error) : status;
}

/* The schema after the snapshot: whatever a row names had its name before the row was there. */
static int take_snapshot(struct looking *l, pawl_store *store)
{
    int status = pawl_store_snapshot(store, &l->snapshot);
    if (status == PAWL_OK)
        l->schema = engine_schema_refresh(l->engine);
    return status;
}

int pawl_record_get(pawl_engine *e, uint64_t wsid, const char *type_name, uint64_t id,
                    const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    struct looking l;
    struct json_out out;
    int status = begin(&l, e, wsid, options, error);
    if (status != PAWL_OK)
        return status;
    pawl_store *store = shard_of(e, l.partition)->store;
    json_out_init(&out, e->options.allocator);
    l.out = &out;
    l.id = id;
    status = take_snapshot(&l, store);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read workspace %" PRIu64, wsid);
    status = find_type(l.schema, type_name, &l.type, error);
    if (status != PAWL_OK) {
        pawl_store_release(store, l.snapshot);
        return status;
    }
    status = look(&l);
    pawl_store_release(store, l.snapshot);
    if (status == PAWL_ENOTFOUND)
        status = engine_workspace(e, wsid, error);
    if (status == PAWL_OK && out.size == 0)
        status = not_found(&l);
    return text_take(&out, status, ret_text, error);
}

/* --- lists --- */

/* Each record goes to a visitor, or, if there is none, as a line into the text. */
struct listing {
    struct looking looking;
    const struct schema_type *type;
    pawl_row_visit visit;
    void *arg;
    bool any;
    bool stopped;
    size_t rows; /* in this snapshot */
    size_t left;
};

static int list_line(struct looking *l, const struct schema_type *type, pawl_bytes value)
{
    int status = show_record(l, type, value);
    out_raw(l->out, (pawl_bytes){"\n", 1});
    return status;
}

static int list_row(struct listing *list, pawl_bytes value)
{
    struct looking *l = &list->looking;
    struct pawl_row row = {.engine = l->engine, .type = list->type, .id = l->id};
    int status = row_of_record(l->wsid, value, &row, l->error);
    if (status == PAWL_OK)
        list->stopped = !list->visit(list->arg, &row);
    return status;
}

static bool list_record(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct listing *list = arg;
    struct looking *l = &list->looking;
    if (key.size != KEY_NUMBERED) {
        l->status = error_set(l->error, PAWL_ECORRUPT, "workspace %" PRIu64 ": a key is not one", l->wsid);
        return false;
    }
    l->id = get_u64_sorted((const uint8_t *)key.data + KEY_WORKSPACE);
    l->status = list->visit ? list_row(list, value) : list_line(l, list->type, value);
    list->any = true;
    list->rows++;
    list->left--;
    return l->status == PAWL_OK && !list->stopped && list->left > 0 && list->rows < ROWS_AT_ONCE;
}

static int list_some(struct listing *list, pawl_store *store)
{
    struct looking *l = &list->looking;
    uint8_t first[KEY_NUMBERED], prefix[KEY_WORKSPACE], end[KEY_WORKSPACE];
    pawl_range range = {.space = STATE_SPACE,
                        .from = key_numbered(list->type->table, l->wsid, l->id + 1, first),
                        .to = key_after_prefix(key_of_workspace(list->type->table, l->wsid, prefix), end)};
    list->rows = 0;
    int status = take_snapshot(l, store);
    if (status != PAWL_OK)
        return status;
    status = pawl_store_scan(l->snapshot, range, false, list_record, list);
    pawl_store_release(store, l->snapshot);
    return status == PAWL_OK ? l->status : status;
}

static int list_records(struct listing *list, pawl_engine *e, const char *type_name, uint64_t after)
{
    struct looking *l = &list->looking;
    int status = find_type(engine_schema_refresh(e), type_name, &list->type, l->error);
    if (status == PAWL_OK && (!list->type || !type_has_table(list->type->kind)))
        status = error_set(l->error, PAWL_EINVAL,
                           "records of O types are in their events; there is no list of them");
    if (status != PAWL_OK)
        return status;
    l->id = after;
    do
        status = l->id == UINT64_MAX || list->left == 0 ? PAWL_OK
                                                        : list_some(list, shard_of(e, l->partition)->store);
    while (status == PAWL_OK && !list->stopped && list->left > 0 && list->rows == ROWS_AT_ONCE);
    return status == PAWL_OK && !list->any ? engine_workspace(e, l->wsid, l->error) : status;
}

int pawl_record_list(pawl_engine *e, uint64_t wsid, const char *type_name, uint64_t after, size_t limit,
                     const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    struct listing list = {.left = limit};
    struct json_out out;
    int status = begin(&list.looking, e, wsid, options, error);
    if (status != PAWL_OK)
        return status;
    json_out_init(&out, e->options.allocator);
    list.looking.out = &out;
    return text_take(&out, list_records(&list, e, type_name, after), ret_text, error);
}

int pawl_record_scan(pawl_engine *e, uint64_t wsid, const char *type_name, uint64_t after, size_t limit,
                     const pawl_read_options *options, pawl_row_visit visit, void *arg, uint64_t *ret_after,
                     pawl_error *error)
{
    struct listing list = {.visit = visit, .arg = arg, .left = limit};
    int status = begin(&list.looking, e, wsid, options, error);
    if (status == PAWL_OK)
        status = list_records(&list, e, type_name, after);
    if (status == PAWL_OK && ret_after)
        *ret_after = list.stopped || list.left == 0 ? list.looking.id : 0;
    return status;
}
