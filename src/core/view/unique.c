#include "core/view/unique.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/schema/path.h"

#define OWN     (KEY_NUMBERED - KEY_WORKSPACE) /* of a record: its ID; only records have unique views */
#define KEY_MAX (KEY_WORKSPACE + VIEW_KEY_BYTES_MAX + OWN)

#define NEIGHBOURS_MAX ((uint64_t)16384) /* rows that a verdict looks at */

void unique_init(struct unique *u, struct view_tables *tables, uint16_t partition, const pawl_allocator *alloc)
{
    *u = (struct unique){.tables = tables, .partition = partition, .alloc = alloc};
    overlay_init(&u->staged, alloc);
}

/* --- which views bind --- */

void unique_release(struct unique *u)
{
    mem_free(u->alloc, u->bound, u->count * sizeof u->bound[0]);
    overlay_release(&u->staged);
}

static bool binds(const struct view_table *table, const struct kept_state *kept)
{
    return table->view->unique && !table->failed && kept->state.complete;
}

/* Make sure of the states of unique views, and count those that bind. */
static int count_bound(const struct unique *u, size_t place, size_t *ret_count, pawl_error *error)
{
    struct view_tables *t = u->tables;
    *ret_count = 0;
    for (size_t i = 0; i < t->count; i++) {
        struct kept_state *kept = &t->tables[i].states[place];
        int status = t->tables[i].view->unique ? view_tables_settle(t, kept) : PAWL_OK;
        if (status != PAWL_OK)
            return error_set(error, status, "%.*s: the view's state cannot be read: %s",
                             TEXT(t->tables[i].view->name), pawl_status_text(status));
        *ret_count += binds(&t->tables[i], kept);
    }
    return PAWL_OK;
}

static bool is_among(const struct bound_view *bound, size_t count, uint32_t table)
{
    for (size_t i = 0; i < count; i++)
        if (bound[i].table == table)
            return true;
    return false;
}

/* Whether some view of a is not in b. */
static bool has_more(const struct bound_view *a, size_t a_count, const struct bound_view *b, size_t b_count)
{
    for (size_t i = 0; i < a_count; i++)
        if (!is_among(b, b_count, a[i].table))
            return true;
    return false;
}

int unique_bind(struct unique *u, bool *ret_more, pawl_error *error)
{
    struct view_tables *t = u->tables;
    size_t place = partition_set_index(&t->set, u->partition), count;
    int status = count_bound(u, place, &count, error);
    if (status != PAWL_OK)
        return status;
    struct bound_view *bound = count ? mem_new(u->alloc, count, sizeof *bound) : NULL;
    if (count && !bound)
        return error_set(error, PAWL_ENOMEM, "no memory for unique views");
    for (size_t i = 0, k = 0; k < count; i++)
        if (binds(&t->tables[i], &t->tables[i].states[place]))
            bound[k++] = (struct bound_view){
                .view = t->tables[i].view, .base = t->tables[i].base, .table = t->tables[i].table};
    *ret_more = has_more(bound, count, u->bound, u->count);
    if (*ret_more || count != u->count) {
        overlay_clear(&u->staged);
        u->noted = false;
    }
    mem_free(u->alloc, u->bound, u->count * sizeof u->bound[0]);
    u->bound = bound;
    u->count = count;
    u->version = t->version;
    return PAWL_OK;
}

/* --- what an event adds and removes --- */

static pawl_bytes fields_of(pawl_bytes key)
{
    return (pawl_bytes){key.data, key.size - OWN};
}

static uint64_t record_of(pawl_bytes key)
{
    return get_u64_sorted((const uint8_t *)key.data + key.size - OWN);
}

static void append(struct changes *list, struct row_change *change)
{
    change->next = NULL;
    if (list->last)
        list->last->next = change;
    else
        list->first = change;
    list->last = change;
    list->count++;
}

/* A change of a key: of a row of the view. */
static int add_key(struct arena *memory, const struct view_row *row, bool adds, struct changes *list)
{
    struct row_change *change = arena_take(memory, sizeof *change + row->key.size);
    if (!change)
        return PAWL_ENOMEM;
    memcpy(change + 1, row->key.data, row->key.size);
    *change = (struct row_change){.key = {change + 1, row->key.size}};
    if (adds)
        change->value.data = change + 1;
    change->hash = overlay_hash(fields_of(change->key));
    append(list, change);
    return PAWL_OK;
}

/* Whether the event, whose changes are marked, changes the row no more. */
static bool is_last(const struct row_change *change)
{
    for (const struct row_change *newer = change->newer; newer; newer = newer->newer)
        if (bytes_equal(newer->key, change->key))
            return !newer->marked;
    return true;
}

/* The row as it was before the event. data NULL: there was none. */
static int row_before(const struct state *state, const struct row_change *last, pawl_bytes *ret_row)
{
    const struct row_change *first = last, *before = overlay_hidden(last);
    for (; before && before->marked; before = overlay_hidden(before))
        first = before;
    *ret_row = (pawl_bytes){0};
    if (before)
        *ret_row = before->value;
    if (before || first->digest.rows == 1) /* it was new then */
        return PAWL_OK;
    int status = pawl_store_get(state->reader, STATE_SPACE, last->key, ret_row);
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

struct key_changes {
    struct changes removed, added;
};

static int collect_row(const struct unique *u, const struct bound_view *bound, const struct row_change *change,
                       pawl_bytes before, struct arena *memory, struct key_changes *keys)
{
    struct view_tables *t = u->tables;
    struct view_row was = {0}, is = {0};
    int status = before.data ? view_evaluate(bound->view, change->key, before, &t->was, &was, NULL) : PAWL_OK;
    if (status == PAWL_OK && change->value.data)
        status = view_evaluate(bound->view, change->key, change->value, &t->is, &is, NULL);
    bool had = was.there && !was.has_null, has = is.there && !is.has_null;
    if (status != PAWL_OK || (had && has && bytes_equal(was.key, is.key)))
        return status;
    if (had)
        status = add_key(memory, &was, false, &keys->removed);
    if (status == PAWL_OK && has)
        status = add_key(memory, &is, true, &keys->added);
    return status;
}

static int collect_marked(const struct unique *u, const struct state *state, const struct changes *changes,
                          struct arena *memory, struct key_changes *keys)
{
    int status = PAWL_OK;
    for (const struct row_change *c = changes->first; c && status == PAWL_OK; c = c->next) {
        uint32_t base = key_table(c->key);
        pawl_bytes before;
        size_t i = 0;
        while (i < u->count && u->bound[i].base != base)
            i++;
        if (i == u->count || !is_last(c))
            continue;
        status = row_before(state, c, &before);
        for (; i < u->count && u->bound[i].base == base && status == PAWL_OK; i++)
            status = collect_row(u, &u->bound[i], c, before, memory, keys);
    }
    return status;
}

static bool touches(const struct unique *u, const struct changes *changes)
{
    for (const struct row_change *c = changes->first; c; c = c->next)
        for (size_t i = 0; i < u->count; i++)
            if (u->bound[i].base == key_table(c->key))
                return true;
    return false;
}

static int collect(const struct unique *u, const struct state *state, const struct changes *changes,
                   struct arena *memory, struct key_changes *ret_keys)
{
    *ret_keys = (struct key_changes){0};
    if (!touches(u, changes))
        return PAWL_OK;
    for (struct row_change *c = changes->first; c; c = c->next)
        c->marked = true;
    int status = collect_marked(u, state, changes, memory, ret_keys);
    for (struct row_change *c = changes->first; c; c = c->next)
        c->marked = false;
    return status;
}

/* --- whether somebody else has the key --- */

static const struct row_change *chain_of(const struct unique *u, uint64_t hash)
{
    struct row_change **newest = map_get(&u->staged.newest, hash, &hash);
    return newest ? *newest : NULL;
}

static bool is_newest(const struct row_change *change)
{
    for (const struct row_change *newer = change->newer; newer; newer = newer->newer)
        if (bytes_equal(newer->key, change->key))
            return false;
    return true;
}

struct key_search {
    const struct row_change *wanted;
    const struct row_change *chain;
    bool found;
    uint64_t record; /* that has the key */
};

/* What the chain knows of the row was judged there (U1). */
static bool judge_stored(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct key_search *s = arg;
    (void)value;
    bool known = bytes_equal(key, s->wanted->key);
    for (const struct row_change *c = s->chain; c && !known; c = c->older)
        known = bytes_equal(c->key, key);
    s->found = !known;
    s->record = known ? 0 : record_of(key);
    return known;
}

static int search_stored(struct key_search *s, pawl_reader *reader)
{
    uint8_t behind[KEY_MAX];
    pawl_bytes fields = fields_of(s->wanted->key);
    pawl_range range = {.space = VIEW_SPACE, .from = fields, .to = key_after_prefix(fields, behind)};
    return pawl_store_scan(reader, range, false, judge_stored, s);
}

static int search(const struct unique *u, const struct state *state, const struct row_change *wanted,
                  struct key_search *ret_search)
{
    struct key_search *s = ret_search;
    *s = (struct key_search){.wanted = wanted, .chain = chain_of(u, wanted->hash)};
    for (const struct row_change *c = s->chain; c; c = c->older) {
        if (!c->value.data || !bytes_equal(fields_of(c->key), fields_of(wanted->key)))
            continue;
        if (!bytes_equal(c->key, wanted->key) && is_newest(c)) {
            s->found = true;
            s->record = record_of(c->key);
        }
        if (s->found || c->marked) /* U3 */
            return PAWL_OK;
    }
    return search_stored(s, state->reader);
}

static const struct view *view_of(const struct unique *u, const struct row_change *change)
{
    uint32_t table = key_table(change->key);
    size_t i = 0;
    while (u->bound[i].table != table)
        i++;
    return u->bound[i].view;
}

static int refuse_equal(const struct unique *u, const struct state *state, const struct row_change *wanted,
                        pawl_error *error)
{
    struct key_search found;
    int status = search(u, state, wanted, &found);
    if (status != PAWL_OK || !found.found)
        return status;
    return error_set(error, PAWL_EEXISTS, "%.*s: record %" PRIu64 " has the same key",
                     TEXT(view_of(u, wanted)->name), found.record);
}

static int push(struct unique *u, struct row_change *change, struct changes *keys)
{
    int status = overlay_push_hashed(&u->staged, change);
    if (status == PAWL_OK)
        append(keys, change);
    return status;
}

/* All removals first, then all additions (U2). */
static int push_all(struct unique *u, const struct state *state, const struct key_changes *from, bool check,
                    struct changes *keys, pawl_error *error)
{
    int status = PAWL_OK;
    for (struct row_change *c = from->removed.first, *next; c && status == PAWL_OK; c = next) {
        next = c->next;
        status = push(u, c, keys);
    }
    for (struct row_change *c = from->added.first, *next; c && status == PAWL_OK; c = next) {
        next = c->next;
        status = check ? refuse_equal(u, state, c, error) : PAWL_OK;
        c->marked = check;
        if (status == PAWL_OK)
            status = push(u, c, keys);
    }
    return status;
}

static int stage(struct unique *u, const struct state *state, const struct changes *changes, bool check,
                 struct arena *memory, struct changes *ret_keys, pawl_error *error)
{
    struct key_changes found;
    struct changes keys = {0};
    int status = collect(u, state, changes, memory, &found);
    if (status == PAWL_OK)
        status = push_all(u, state, &found, check, &keys, error);
    if (status == PAWL_OK)
        *ret_keys = keys;
    else
        unique_remove(u, &keys);
    return status == PAWL_ENOMEM ? error_set(error, status, "no memory to check unique views") : status;
}

int unique_check(struct unique *u, const struct state *state, const struct changes *changes,
                 struct arena *memory, struct changes *ret_keys, pawl_error *error)
{
    return stage(u, state, changes, true, memory, ret_keys, error);
}

int unique_note(struct unique *u, const struct state *state, const struct changes *changes,
                struct arena *memory, struct changes *ret_keys, pawl_error *error)
{
    return stage(u, state, changes, false, memory, ret_keys, error);
}

/* --- the verdict --- */

struct neighbours {
    uint8_t before[KEY_MAX]; /* the row before */
    size_t size;             /* 0: none */
    uint64_t left;           /* rows that may still be looked at */
    bool found;
    uint64_t wsid, first, second;
};

static bool compare_neighbours(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct neighbours *n = arg;
    pawl_bytes before = {n->before, n->size}, own, row;
    bool null;
    if (n->left == 0)
        return false;
    n->left--;
    if (view_row_read(key, value, &own, &row, &null) != PAWL_OK || own.size != OWN || key.size > KEY_MAX
        || null)
        return true;
    if (n->size > OWN && bytes_equal(fields_of(before), fields_of(key))) {
        n->found = true;
        n->wsid = key_wsid(key);
        n->first = record_of(before);
        n->second = record_of(key);
        return false;
    }
    memcpy(n->before, key.data, key.size);
    n->size = key.size;
    return true;
}

/* Two equal rows: those beside which a row was put last, if they are still there; else among the view's first
 * rows. No more are looked at, because the shard has other work. */
static int find_neighbours(const struct view_tables *t, const struct view_state *state,
                           struct neighbours *ret_found)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN], behind[KEY_MAX];
    pawl_reader *reader = pawl_store_writer(t->store);
    int status = PAWL_OK;
    *ret_found = (struct neighbours){.left = NEIGHBOURS_MAX};
    if (state->twin.size > KEY_WORKSPACE + OWN && state->twin.size <= KEY_MAX) {
        pawl_bytes fields = fields_of(state->twin);
        pawl_range twins = {.space = VIEW_SPACE, .from = fields, .to = key_after_prefix(fields, behind)};
        status = pawl_store_scan(reader, twins, false, compare_neighbours, ret_found);
    }
    if (status != PAWL_OK || ret_found->found)
        return status;
    *ret_found = (struct neighbours){.left = NEIGHBOURS_MAX};
    pawl_range all = view_partition_range(t->partitions, state->partition, VIEW_SPACE, state->table, from, to);
    return pawl_store_scan(reader, all, false, compare_neighbours, ret_found);
}

int unique_verdict(struct view_tables *t, uint32_t table, uint16_t partition, pawl_error *error)
{
    const struct view_table *found = view_tables_find(t, table);
    const struct kept_state *kept = found ? view_tables_state(t, table, partition) : NULL;
    if (!kept)
        return error_set(error, PAWL_ENOTFOUND, "there is no view table %u", table);
    if (!kept->state.complete)
        return error_set(error, PAWL_EBUSY, "%.*s is not built in partition %u", TEXT(found->view->name),
                         partition);
    if (kept->state.equal == 0)
        return PAWL_OK;
    struct neighbours n;
    int status = find_neighbours(t, &kept->state, &n);
    if (status != PAWL_OK)
        return error_set(error, status, "%.*s: its rows cannot be read: %s", TEXT(found->view->name),
                         pawl_status_text(status));
    if (n.found)
        return error_set(error, PAWL_EEXISTS,
                         "%.*s: workspace %" PRIu64 ": records %" PRIu64 " and %" PRIu64 " have the same key",
                         TEXT(found->view->name), n.wsid, n.first, n.second);
    return error_set(error, PAWL_EEXISTS, "%.*s: %" PRIu64 " records have the key of another one",
                     TEXT(found->view->name), kept->state.equal);
}
