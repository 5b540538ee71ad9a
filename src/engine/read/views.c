/* engine/read/views.c: reads the row of a view that has a key. The key of a stored row ends with that of its
 * base row, so the row is found by the first bytes of its key. */
#include <pawl/pawl.h>

#include <inttypes.h>

#include "base/error.h"
#include "core/state/key.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/read/view_read.h"

struct view_get {
    struct view_read read;
    pawl_bytes json; /* the key; data NULL: see key */
    pawl_key key;
    bool found;
    int status;
};

static bool take_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct view_get *g = arg;
    g->found = true;
    g->status = view_read_show(&g->read, key, value);
    return false;
}

static int find_row(struct view_get *g)
{
    struct view_read *r = &g->read;
    uint8_t from[KEY_WORKSPACE + VIEW_KEY_BYTES_MAX], to[KEY_WORKSPACE + VIEW_KEY_BYTES_MAX];
    struct value *values;
    size_t count, size;
    int status = view_read_values(r, g->json, g->key, true, &values, &count);
    if (status == PAWL_OK)
        status = view_read_snapshot(r, pawl_partition_of(r->engine, r->wsid));
    if (status != PAWL_OK || !r->snapshot)
        return status;
    if (!r->visit)
        r->schema = engine_schema_refresh(r->engine); /* behind the snapshot: it has all names */
    status = view_prefix(r->view, r->table, r->wsid, values, count, from, &size);
    if (status == PAWL_OK) {
        pawl_range range = {.space = VIEW_SPACE, .from = {from, size}};
        range.to = key_after_prefix(range.from, to);
        status = pawl_store_scan(r->snapshot, range, false, take_row, g);
    }
    view_read_release(r);
    if (status != PAWL_OK)
        return error_set(r->error, status, "cannot read the view %s", r->name);
    return g->status;
}

static int not_found(struct view_get *g)
{
    struct view_read *r = &g->read;
    int status = engine_workspace(r->engine, r->wsid, r->error);
    if (status != PAWL_OK)
        return status;
    if (r->covered < 1)
        return view_read_not_built(r);
    return error_set(r->error, PAWL_ENOTFOUND, "workspace %" PRIu64 " has no such row in %s", r->wsid, r->name);
}

static int get(struct view_get *g, const pawl_read_options *options, pawl_text *ret_text)
{
    struct view_read *r = &g->read;
    int status = engine_enter(r->engine, r->error);
    if (status == PAWL_OK)
        status = view_read_find(r);
    if (status == PAWL_OK)
        status = view_read_wait(r, options);
    if (status != PAWL_OK)
        return status;
    view_read_begin(r);
    status = find_row(g);
    if (status == PAWL_OK && !g->found)
        status = not_found(g);
    return view_read_end(r, status, ret_text);
}

int pawl_view_read(pawl_engine *e, const char *view, uint64_t wsid, pawl_key key,
                   const pawl_read_options *options, pawl_row_visit visit, void *arg, pawl_error *error)
{
    struct view_get g = {
        .read = {.engine = e, .name = view, .wsid = wsid, .visit = visit, .arg = arg, .error = error},
        .key = key};
    return get(&g, options, NULL);
}

int pawl_view_get(pawl_engine *e, const char *view, uint64_t wsid, pawl_bytes key,
                  const pawl_read_options *options, pawl_text *ret_text, pawl_error *error)
{
    struct view_get g = {.read = {.engine = e, .name = view, .wsid = wsid, .error = error}, .json = key};
    return get(&g, options, ret_text);
}
