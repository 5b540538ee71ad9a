#include "core/view/slice.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "port/longkey.h"

#define BYTES_MAX ((size_t)4 << 20) /* of view rows in one slice */

/* A row to be put. */
struct made {
    pawl_bytes key;
    pawl_bytes value;
    size_t key_fields;
    bool has_null;
};

/* One view of the slice. */
struct building_view {
    const struct view_table *table;
    struct kept_state *kept;
    struct made *made;
    size_t count;
    size_t room;
};

struct slicing {
    struct view_tables *tables;
    const struct slice *slice;
    struct building_view *views;
    uint32_t rows;
    size_t bytes;
    pawl_bytes end; /* the first key behind the slice; data NULL: the range ends before */
    int status;
};

static int take_made(struct slicing *s, struct building_view *v, const struct view_row *row)
{
    struct arena *memory = &s->tables->memory;
    if (v->count == v->room) {
        size_t room = v->room ? 2 * v->room : 256;
        struct made *made = arena_take(memory, room * sizeof *made);
        if (!made)
            return PAWL_ENOMEM;
        if (v->count)
            memcpy(made, v->made, v->count * sizeof *made);
        v->made = made;
        v->room = room;
    }
    uint8_t *bytes = arena_take(memory, row->key.size + row->value.size);
    if (!bytes)
        return PAWL_ENOMEM;
    memcpy(bytes, row->key.data, row->key.size);
    memcpy(bytes + row->key.size, row->value.data, row->value.size);
    v->made[v->count++] = (struct made){.key = {bytes, row->key.size},
                                        .value = {bytes + row->key.size, row->value.size},
                                        .key_fields = row->key_fields,
                                        .has_null = row->has_null};
    s->bytes += row->key.size + row->value.size;
    return PAWL_OK;
}

static int make_row(struct slicing *s, struct building_view *v, pawl_bytes key, pawl_bytes value)
{
    struct view_row row;
    pawl_error why = {0};
    if (coverage_has(&v->kept->state.coverage, key))
        return PAWL_OK;
    int status = view_evaluate(v->table->view, key, value, &s->tables->is, &row, &why);
    if (status == PAWL_OK && row.failed) {
        v->kept->state.failed++;
        status = view_state_note(&v->kept->state, key, why.text);
    }
    return status == PAWL_OK && row.there ? take_made(s, v, &row) : status;
}

static bool scan_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct slicing *s = arg;
    if (s->rows == s->slice->rows_max || s->bytes >= BYTES_MAX) {
        s->end = arena_copy(&s->tables->memory, key);
        s->status = s->end.data ? PAWL_OK : PAWL_ENOMEM;
        return false;
    }
    for (size_t i = 0; i < s->slice->count && s->status == PAWL_OK; i++)
        s->status = make_row(s, &s->views[i], key, value);
    s->rows++;
    return s->status == PAWL_OK;
}

static int by_key(const void *a, const void *b)
{
    return longkey_compare_keys(((const struct made *)a)->key, ((const struct made *)b)->key);
}

/* A row of the view that is there already would be one that its coverage has: none is. */
static int put_made(struct slicing *s, struct building_view *v)
{
    pawl_store *store = s->tables->store;
    struct view_state *state = &v->kept->state;
    int status = PAWL_OK;
    if (v->count > 0)
        qsort(v->made, v->count, sizeof v->made[0], by_key);
    for (size_t i = 0; i < v->count && status == PAWL_OK; i++) {
        const struct made *m = &v->made[i];
        bool equal = false;
        if (v->table->view->unique && !m->has_null)
            status = view_has_equal(pawl_store_writer(store), m->key, m->key_fields, &equal);
        if (status == PAWL_OK && equal)
            status = view_state_note_equal(state, m->key);
        pawl_digest_add(&state->digest, m->key, m->value);
        if (status == PAWL_OK)
            status = pawl_store_put(store, VIEW_SPACE, m->key, m->value);
    }
    return status;
}

/* Whether all of the partition is covered now. */
static void note_complete(struct view_tables *t, struct view_state *state)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    pawl_range all = view_partition_range(t->partitions, state->partition, STATE_SPACE, state->base, from, to);
    bool was = state->complete;
    state->complete = coverage_covers(&state->coverage, all.from, all.to);
    t->version += state->complete != was;
}

static int cover(struct slicing *s, pawl_bytes from, pawl_bytes to)
{
    int status = PAWL_OK;
    for (size_t i = 0; i < s->slice->count && status == PAWL_OK; i++) {
        struct view_state *state = &s->views[i].kept->state;
        status = put_made(s, &s->views[i]);
        if (status == PAWL_OK)
            status = coverage_add(&state->coverage, from, to);
        state->scanned += s->rows;
        if (status == PAWL_OK)
            note_complete(s->tables, state);
    }
    return status;
}

static int find_views(struct slicing *s)
{
    s->views = arena_take(&s->tables->memory, s->slice->count * sizeof s->views[0]);
    if (!s->views)
        return PAWL_ENOMEM;
    memset(s->views, 0, s->slice->count * sizeof s->views[0]);
    for (size_t i = 0; i < s->slice->count; i++) {
        struct building_view *v = &s->views[i];
        v->table = view_tables_find(s->tables, s->slice->views[i]);
        v->kept = v->table ? view_tables_state(s->tables, v->table->table, s->slice->partition) : NULL;
        if (!v->kept || v->table->base != s->slice->base)
            return PAWL_ENOTFOUND;
    }
    return PAWL_OK;
}

/* The first key of the range that some view lacks; the range's end if none lacks any. */
static pawl_bytes first_gap(const struct slicing *s)
{
    pawl_bytes first = s->slice->range.to;
    for (size_t i = 0; i < s->slice->count; i++) {
        pawl_bytes gap = coverage_gap(&s->views[i].kept->state.coverage, s->slice->range.from);
        if (longkey_compare_keys(gap, first) < 0)
            first = gap;
    }
    return first;
}

static int run(struct slicing *s, struct slice_report *ret_report)
{
    struct arena *memory = &s->tables->memory;
    pawl_bytes to = s->slice->range.to, from = first_gap(s);
    if (longkey_compare_keys(from, to) >= 0) {
        *ret_report = (struct slice_report){.covered = true};
        return PAWL_OK;
    }
    from = arena_copy(memory, from); /* it is the memory of a coverage, which changes */
    if (!from.data)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < s->slice->count; i++)
        view_tables_touch(s->tables, s->views[i].kept);
    int status =
        pawl_store_scan(pawl_store_writer(s->tables->store),
                        (pawl_range){.space = STATE_SPACE, .from = from, .to = to}, false, scan_row, s);
    status = status == PAWL_OK ? s->status : status;
    if (status == PAWL_OK)
        status = cover(s, from, s->end.data ? s->end : to);
    if (status == PAWL_OK)
        *ret_report = (struct slice_report){
            .rows = s->rows, .covered = !s->end.data && longkey_compare_keys(first_gap(s), to) >= 0};
    return status;
}

int slice_put(struct view_tables *t, const struct slice *slice, struct slice_report *ret_report)
{
    struct slicing s = {.tables = t, .slice = slice};
    int status = t->refreshed || !t->list ? PAWL_OK : view_tables_refresh(t, t->list, t->schema, NULL); /* T5 */
    arena_reset(&t->memory);
    if (status == PAWL_OK)
        status = find_views(&s);
    if (status == PAWL_OK)
        status = run(&s, ret_report);
    arena_reset(&t->memory);
    return status;
}

bool slice_covers(struct view_tables *t, uint32_t view, uint16_t partition, pawl_range range)
{
    const struct kept_state *kept = view_tables_state(t, view, partition);
    return kept && (kept->state.complete || coverage_covers(&kept->state.coverage, range.from, range.to));
}
