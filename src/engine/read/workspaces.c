/* engine/read/workspaces.c: lists workspaces, and the last event of each.
 *
 * A workspace is a row of TABLE_WORKSPACE in its shard's store. The last row of its WLog there tells its last
 * event. Rows are in the order of their tokens, and each partition has a range of tokens. So reading one
 * partition after the other gives all workspaces in one order, and a list can go on behind any of them. */
#include <pawl/pawl.h>

#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/state/key.h"
#include "engine/node/node.h"
#include "engine/read/read.h"

#define ROWS_AT_ONCE 1000 /* in one snapshot, which must not live long */

struct last_event {
    uint64_t workspace_offset; /* 0: the workspace has no event */
    uint64_t offset;
    bool bad;
};

static bool take_last(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct last_event *last = arg;
    struct wlog_row row;
    last->bad = key.size != KEY_NUMBERED || !wlog_row_read(value, &row);
    if (last->bad)
        return false;
    last->workspace_offset = get_u64_sorted((const uint8_t *)key.data + KEY_WORKSPACE);
    last->offset = row.plog_offset;
    return false;
}

static int find_last(pawl_reader *snapshot, uint64_t wsid, struct last_event *ret_last)
{
    uint8_t prefix[KEY_WORKSPACE], end[KEY_WORKSPACE];
    pawl_bytes from = key_of_workspace(TABLE_WLOG, wsid, prefix);
    pawl_range range = {.space = STATE_SPACE, .from = from, .to = key_after_prefix(from, end)};
    *ret_last = (struct last_event){0};
    int status = pawl_store_scan(snapshot, range, true, take_last, ret_last);
    return status == PAWL_OK && ret_last->bad ? PAWL_ECORRUPT : status;
}

int engine_last_offset(pawl_reader *snapshot, uint64_t wsid, uint64_t *ret_last)
{
    struct last_event last;
    int status = find_last(snapshot, wsid, &last);
    if (status == PAWL_OK)
        *ret_last = last.workspace_offset;
    return status;
}

/* Fills in a workspace from its row. */
static int read_workspace(pawl_engine *e, pawl_reader *snapshot, uint64_t wsid, pawl_bytes value,
                          pawl_workspace *ret_workspace)
{
    struct last_event last;
    struct workspace_row row;
    int status = workspace_row_read(value, &row) ? find_last(snapshot, wsid, &last) : PAWL_ECORRUPT;
    if (status == PAWL_OK)
        *ret_workspace = (pawl_workspace){.wsid = wsid,
                                          .kind = schema_name_text(engine_schema(e), row.kind),
                                          .partition = pawl_partition_of(e, wsid),
                                          .offset = last.offset,
                                          .workspace_offset = last.workspace_offset,
                                          .frozen = row.frozen};
    return status;
}

static int not_read(uint64_t wsid, int status, pawl_error *error)
{
    if (status == PAWL_ENOTFOUND)
        return error_set(error, status, "there is no workspace %" PRIu64, wsid);
    if (status == PAWL_ECORRUPT)
        return error_set(error, status, "workspace %" PRIu64 ": what is stored of it is not a workspace", wsid);
    return error_set(error, status, "cannot read workspace %" PRIu64, wsid);
}

static int get(pawl_engine *e, uint64_t wsid, pawl_workspace *ret_workspace, pawl_error *error)
{
    pawl_store *store = shard_of(e, pawl_partition_of(e, wsid))->store;
    uint8_t key[KEY_WORKSPACE];
    pawl_reader *snapshot;
    pawl_bytes value;
    int status = pawl_store_snapshot(store, &snapshot);
    if (status != PAWL_OK)
        return not_read(wsid, status, error);
    status = pawl_store_get(snapshot, STATE_SPACE, key_of_workspace(TABLE_WORKSPACE, wsid, key), &value);
    if (status == PAWL_OK && ret_workspace) {
        (void)engine_schema_refresh(e); /* after the snapshot: then it has the kind's name */
        status = read_workspace(e, snapshot, wsid, value, ret_workspace);
    }
    pawl_store_release(store, snapshot);
    return status == PAWL_OK ? status : not_read(wsid, status, error);
}

int engine_workspace(pawl_engine *e, uint64_t wsid, pawl_error *error)
{
    return get(e, wsid, NULL, error);
}

int pawl_workspace_get(pawl_engine *e, uint64_t wsid, const pawl_read_options *options,
                       pawl_workspace *ret_workspace, pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status == PAWL_OK)
        status = engine_wait_applied(e, pawl_partition_of(e, wsid), options, error);
    return status == PAWL_OK ? get(e, wsid, ret_workspace, error) : status;
}

/* --- lists --- */

struct page {
    pawl_engine *engine;
    pawl_reader *snapshot;
    pawl_workspace *rows;
    size_t count;
    size_t room;
    uint32_t partition;
    uint64_t token; /* go on behind the workspace with this token and this ID */
    uint64_t wsid;
    bool over; /* the partition has no more workspaces */
    int status;
};

static bool take_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct page *page = arg;
    const uint8_t *at = key.data;
    if (key.size != KEY_WORKSPACE || get_u64_sorted(at + 4) != hash_token(get_u64_sorted(at + 12))) {
        page->status = PAWL_ECORRUPT;
        return false;
    }
    uint64_t token = get_u64_sorted(at + 4), wsid = get_u64_sorted(at + 12);
    if (partition_of(token, page->engine->file.partitions) != page->partition)
        return false;
    page->over = page->count < page->room;
    if (!page->over)
        return false;
    if (token == page->token && wsid == page->wsid)
        return true;
    page->status = read_workspace(page->engine, page->snapshot, wsid, value, &page->rows[page->count]);
    page->count += page->status == PAWL_OK;
    page->token = token;
    page->wsid = wsid;
    return page->status == PAWL_OK;
}

static int read_page(struct page *page)
{
    pawl_store *store = shard_of(page->engine, (uint16_t)page->partition)->store;
    uint8_t from[KEY_WORKSPACE], to[KEY_TABLE];
    page->count = 0;
    page->over = true; /* unless a row says otherwise */
    int status = pawl_store_snapshot(store, &page->snapshot);
    if (status != PAWL_OK)
        return status;
    (void)engine_schema_refresh(page->engine); /* after the snapshot: then it has the kinds' names */
    put_u32_sorted(from, TABLE_WORKSPACE);
    put_u64_sorted(from + 4, page->token);
    put_u64_sorted(from + 12, page->wsid);
    put_u32_sorted(to, TABLE_WORKSPACE + 1);
    pawl_range range = {.space = STATE_SPACE, .from = {from, sizeof from}, .to = {to, sizeof to}};
    status = pawl_store_scan(page->snapshot, range, false, take_row, page);
    pawl_store_release(store, page->snapshot);
    return status == PAWL_OK ? page->status : status;
}

static uint64_t first_token(uint32_t partition, uint32_t partitions)
{
    unsigned bits = (unsigned)__builtin_ctz(partitions);
    return bits == 0 ? 0 : (uint64_t)partition << (64 - bits);
}

static int read_all(struct page *page, size_t limit, pawl_workspace_visit visit, void *arg)
{
    const uint32_t partitions = page->engine->file.partitions;
    while (limit > 0 && page->partition < partitions) {
        page->room = limit < ROWS_AT_ONCE ? limit : ROWS_AT_ONCE;
        int status = read_page(page);
        if (status != PAWL_OK)
            return status;
        for (size_t i = 0; i < page->count; i++)
            if (!visit(arg, &page->rows[i]))
                return PAWL_OK;
        limit -= page->count;
        if (page->over && ++page->partition < partitions) {
            page->token = first_token(page->partition, partitions);
            page->wsid = 0;
        }
    }
    return PAWL_OK;
}

int pawl_workspaces_read(pawl_engine *e, uint64_t after, size_t limit, pawl_workspace_visit visit, void *arg,
                         pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    struct page page = {.engine = e};
    if (after > 0) {
        page.partition = pawl_partition_of(e, after);
        page.token = hash_token(after);
        page.wsid = after;
    }
    page.rows = mem_new(e->options.allocator, ROWS_AT_ONCE, sizeof page.rows[0]);
    if (!page.rows)
        return error_set(error, PAWL_ENOMEM, "no memory for a list of workspaces");
    status = read_all(&page, limit, visit, arg);
    mem_free(e->options.allocator, page.rows, ROWS_AT_ONCE * sizeof page.rows[0]);
    return status == PAWL_OK
               ? status
               : error_set(error, status, "cannot list the workspaces of partition %u", page.partition);
}
