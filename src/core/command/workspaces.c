#include "core/command/workspaces.h"

#include <inttypes.h>

#include "base/error.h"
#include "core/state/key.h"

int workspaces_init(struct workspaces *w, const pawl_allocator *alloc, uint32_t capacity)
{
    return lru_init(&w->facts, alloc, capacity, sizeof(struct workspace_facts));
}

void workspaces_release(struct workspaces *w)
{
    lru_release(&w->facts);
}

void workspaces_clear(struct workspaces *w)
{
    lru_clear(&w->facts);
}

/* The last row of the workspace's log that the store has. */
struct last_row {
    uint64_t offset;
    struct wlog_row row;
    bool bad;
};

static bool see_last(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct last_row *last = arg;
    last->bad = key.size != KEY_NUMBERED || !wlog_row_read(value, &last->row);
    if (!last->bad)
        last->offset = get_u64_sorted((const uint8_t *)key.data + KEY_WORKSPACE);
    return false;
}

/* The staged rows follow it without gaps. */
static int find_last(const struct state *state, uint64_t wsid, struct last_row *last, pawl_error *error)
{
    uint8_t from[KEY_WORKSPACE], to[KEY_WORKSPACE], key[KEY_NUMBERED];
    pawl_bytes prefix = key_of_workspace(TABLE_WLOG, wsid, from), value;
    pawl_range range = {.space = STATE_SPACE, .from = prefix, .to = key_after_prefix(prefix, to)};
    int status = pawl_store_scan(state->reader, range, true, see_last, last);
    while (status == PAWL_OK && !last->bad && state->overlay) {
        status = state_get(state, key_numbered(TABLE_WLOG, wsid, last->offset + 1, key), &value);
        if (status != PAWL_OK)
            break;
        last->bad = !wlog_row_read(value, &last->row);
        last->offset++;
    }
    if (last->bad)
        return error_set(error, PAWL_ECORRUPT, "workspace %" PRIu64 ": a row of its log is not valid", wsid);
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return error_set(error, status, "cannot read the log of workspace %" PRIu64, wsid);
    return PAWL_OK;
}

int workspaces_get(struct workspaces *w, const struct state *state, uint64_t wsid,
                   struct workspace_facts **ret_facts, pawl_error *error)
{
    struct workspace_facts *facts = lru_get(&w->facts, wsid);
    if (facts) {
        *ret_facts = facts;
        return PAWL_OK;
    }
    uint8_t key[KEY_WORKSPACE];
    pawl_bytes value;
    struct last_row last = {0};
    int status = state_get(state, key_of_workspace(TABLE_WORKSPACE, wsid, key), &value);
    if (status == PAWL_ENOTFOUND)
        return error_set(error, status, "there is no workspace %" PRIu64, wsid);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read workspace %" PRIu64, wsid);
    struct workspace_row row;
    if (!workspace_row_read(value, &row))
        return error_set(error, PAWL_ECORRUPT, "workspace %" PRIu64 ": its row is not valid", wsid);
    status = find_last(state, wsid, &last, error);
    if (status != PAWL_OK)
        return status;
    struct lru_evicted evicted;
    facts = lru_put(&w->facts, wsid, &evicted);
    *facts = (struct workspace_facts){
        .kind = row.kind, .frozen = row.frozen, .last = last.offset, .record = last.row.record};
    *ret_facts = facts;
    return PAWL_OK;
}

void workspaces_put(struct workspaces *w, uint64_t wsid, struct workspace_facts facts)
{
    struct lru_evicted evicted;
    struct workspace_facts *put = lru_put(&w->facts, wsid, &evicted);
    *put = facts;
}
