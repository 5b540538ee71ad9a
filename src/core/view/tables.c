#include "core/view/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/id.h"

#define CHUNK ((size_t)256 * 1024)

static int put_row(struct put_watch *watch, pawl_store *store, pawl_bytes key, const pawl_bytes *was,
                   pawl_bytes value);

static int flush_hook(struct apply_hook *hook, pawl_store *store)
{
    (void)store;
    return view_tables_flush(heap_entry(hook, struct view_tables, hook));
}

static void ended_hook(struct apply_hook *hook, bool committed)
{
    struct view_tables *t = heap_entry(hook, struct view_tables, hook);
    if (committed)
        view_tables_committed(t);
    else
        view_tables_aborted(t);
}

void view_tables_init(struct view_tables *t, pawl_store *store, struct partition_set set, uint32_t partitions,
                      const pawl_allocator *alloc)
{
    *t = (struct view_tables){.watch.put = put_row,
                              .hook = {.flush = flush_hook, .ended = ended_hook},
                              .store = store,
                              .set = set,
                              .partitions = partitions,
                              .version = 1,
                              .removing = true,
                              .was.alloc = alloc,
                              .is.alloc = alloc,
                              .alloc = alloc};
    arena_init(&t->memory, alloc, CHUNK);
}

static void release_table(const struct view_tables *t, struct view_table *table)
{
    for (size_t i = 0; table->states && i < t->set.count; i++)
        view_state_release(&table->states[i].state);
    mem_free(t->alloc, table->states, table->states ? t->set.count * sizeof table->states[0] : 0);
    view_drop(table->view);
}

static void release_tables(struct view_tables *t)
{
    for (size_t i = 0; i < t->count; i++)
        release_table(t, &t->tables[i]);
    mem_free(t->alloc, t->tables, t->room * sizeof t->tables[0]);
    t->tables = NULL;
    t->count = t->room = 0;
}

void view_tables_release(struct view_tables *t)
{
    release_tables(t);
    view_room_release(&t->was);
    view_room_release(&t->is);
    arena_release(&t->memory);
}

struct put_watch *view_tables_watch(struct view_tables *t)
{
    return t->count > 0 || (t->list && !t->refreshed) ? &t->watch : NULL;
}

size_t view_tables_width(const struct view_tables *t)
{
    size_t width = 0, run = 0;
    for (size_t i = 0; i < t->count; i++) {
        run = i > 0 && t->tables[i].base == t->tables[i - 1].base ? run + 1 : 1;
        width = run > width ? run : width;
    }
    return width;
}

/* --- states --- */

void view_tables_touch(struct view_tables *t, struct kept_state *s)
{
    if (s->dirty)
        return;
    s->dirty = true;
    s->next_dirty = t->dirty;
    t->dirty = s;
}

int view_tables_flush(struct view_tables *t)
{
    int status = PAWL_OK;
    for (struct kept_state *s = t->dirty; s && status == PAWL_OK; s = s->next_dirty)
        status = view_state_write(&s->state, t->store);
    return status;
}

static void end(struct view_tables *t, bool stale)
{
    for (struct kept_state *s = t->dirty; s; s = s->next_dirty) {
        s->dirty = false;
        s->stale = stale;
    }
    t->dirty = NULL;
}

void view_tables_committed(struct view_tables *t)
{
    end(t, false);
    t->fresh = false;
}

void view_tables_aborted(struct view_tables *t)
{
    if (t->dirty || t->fresh)
        t->version++;
    end(t, true);
    if (t->fresh) { /* T5; what it began was not written: the next refresh begins it again */
        t->refreshed = t->swept = false;
        release_tables(t);
    }
    t->fresh = false;
}

int view_tables_settle(struct view_tables *t, struct kept_state *s)
{
    if (!s->stale)
        return PAWL_OK;
    int status = view_state_read(&s->state, pawl_store_writer(t->store), NULL);
    if (status == PAWL_OK || status == PAWL_ENOTFOUND)
        s->stale = false;
    return s->stale ? status : PAWL_OK;
}

const struct view_table *view_tables_find(const struct view_tables *t, uint32_t table)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->tables[i].table == table)
            return &t->tables[i];
    return NULL;
}

struct kept_state *view_tables_state(struct view_tables *t, uint32_t table, uint16_t partition)
{
    const struct view_table *found = view_tables_find(t, table);
    struct kept_state *s = found ? &found->states[partition_set_index(&t->set, partition)] : NULL;
    return s && view_tables_settle(t, s) == PAWL_OK ? s : NULL;
}

size_t view_tables_digests(struct view_tables *t, uint16_t partition, struct table_digest *list, size_t room)
{
    size_t place = partition_set_index(&t->set, partition), count = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct kept_state *kept = &t->tables[i].states[place];
        if (kept->stale || !kept->state.complete || view_generation(t->tables[i].table) != 0)
            continue;
        if (count < room)
            list[count] = (struct table_digest){.table = t->tables[i].table, .digest = kept->state.digest};
        count++;
    }
    return count;
}

/* --- keeping rows current --- */

struct equal_search {
    pawl_bytes key; /* the row itself */
    bool found;
};

static bool find_equal(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct equal_search *search = arg;
    (void)value;
    search->found = !bytes_equal(key, search->key);
    return !search->found;
}

int view_has_equal(pawl_reader *reader, pawl_bytes key, size_t key_fields, bool *ret_has)
{
    uint8_t behind[KEY_WORKSPACE + VIEW_KEY_BYTES_MAX];
    pawl_bytes prefix = {key.data, key_fields};
    struct equal_search search = {.key = key};
    pawl_range range = {.space = VIEW_SPACE, .from = prefix, .to = key_after_prefix(prefix, behind)};
    int status = pawl_store_scan(reader, range, false, find_equal, &search);
    *ret_has = search.found;
    return status;
}

/* Whether another row is equal to this one, of which the view must be told. */
static int find_twin(const struct view_table *table, const struct view_row *row, pawl_store *store,
                     bool *ret_has)
{
    *ret_has = false;
    return table->view->unique && !row->has_null
               ? view_has_equal(pawl_store_writer(store), row->key, row->key_fields, ret_has)
               : PAWL_OK;
}

static int remove_old(const struct view_table *table, const struct view_row *was, pawl_store *store,
                      struct view_state *state)
{
    bool equal = false;
    int status = pawl_store_remove(store, VIEW_SPACE, was->key);
    if (status == PAWL_OK || status == PAWL_ENOTFOUND) /* lost rows are found by the digest: scrub, verify */
        status = find_twin(table, was, store, &equal);
    pawl_digest_subtract(&state->digest, was->key, was->value);
    state->equal -= equal;
    return status;
}

static int put_new(const struct view_table *table, const struct view_row *is, pawl_store *store,
                   struct view_state *state)
{
    bool equal;
    int status = find_twin(table, is, store, &equal);
    if (status == PAWL_OK && equal)
        status = view_state_note_equal(state, is->key);
    if (status == PAWL_OK)
        status = pawl_store_put(store, VIEW_SPACE, is->key, is->value);
    pawl_digest_add(&state->digest, is->key, is->value);
    return status;
}

static int replace(const struct view_row *was, const struct view_row *is, pawl_store *store,
                   struct view_state *state)
{
    pawl_digest_subtract(&state->digest, was->key, was->value);
    pawl_digest_add(&state->digest, is->key, is->value);
    return pawl_store_put(store, VIEW_SPACE, is->key, is->value);
}

static int count_failed(struct view_state *state, const struct view_row *was, const struct view_row *is,
                        pawl_bytes base_key, const pawl_error *why)
{
    state->failed += is->failed;
    state->failed -= was->failed && state->failed > 0;
    if (state->failed == 0)
        view_state_forget(state);
    return is->failed ? view_state_note(state, base_key, why->text) : PAWL_OK;
}

/* One view, whose coverage has the base row. */
static int follow(struct view_tables *t, const struct view_table *table, struct kept_state *kept,
                  pawl_store *store, pawl_bytes key, pawl_bytes was_value, pawl_bytes value)
{
    struct view_row was = {0}, is = {0};
    struct view_state *state = &kept->state;
    pawl_error why = {0};
    int status = was_value.data ? view_evaluate(table->view, key, was_value, &t->was, &was, NULL) : PAWL_OK;
    if (status == PAWL_OK && value.data)
        status = view_evaluate(table->view, key, value, &t->is, &is, &why);
    bool same_key = was.there && is.there && bytes_equal(was.key, is.key);
    if (status != PAWL_OK || (same_key && bytes_equal(was.value, is.value))
        || (!was.there && !is.there && was.failed == is.failed))
        return status;
    view_tables_touch(t, kept);
    status = count_failed(state, &was, &is, key, &why);
    if (status == PAWL_OK && same_key)
        return replace(&was, &is, store, state);
    if (status == PAWL_OK && was.there)
        status = remove_old(table, &was, store, state);
    if (status == PAWL_OK && is.there)
        status = put_new(table, &is, store, state);
    return status;
}

/* The first table whose base is not below this one. */
static size_t first_of_base(const struct view_tables *t, uint32_t base)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->tables[middle].base < base)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The row that the store has. A store hands out memory that its next change may move, so with several views the
 * row is copied. */
static int look_up(struct view_tables *t, pawl_store *store, pawl_bytes key, bool copy, pawl_bytes *ret_was)
{
    int status = pawl_store_get(pawl_store_writer(store), STATE_SPACE, key, ret_was);
    if (status == PAWL_ENOTFOUND) {
        *ret_was = (pawl_bytes){0};
        return PAWL_OK;
    }
    if (status != PAWL_OK || !copy)
        return status;
    *ret_was = arena_copy(&t->memory, *ret_was);
    return ret_was->data ? PAWL_OK : PAWL_ENOMEM;
}

static int put_row(struct put_watch *watch, pawl_store *store, pawl_bytes key, const pawl_bytes *was,
                   pawl_bytes value)
{
    struct view_tables *t = (struct view_tables *)watch; /* its first member */
    uint32_t base = key_table(key);
    if (!t->refreshed) { /* T5 */
        int failed = view_tables_refresh(t, t->list, t->schema, NULL);
        if (failed != PAWL_OK)
            return failed;
    }
    size_t i = first_of_base(t, base);
    if (i == t->count || t->tables[i].base != base)
        return PAWL_OK;
    bool several = i + 1 < t->count && t->tables[i + 1].base == base;
    size_t place = partition_set_index(
        &t->set, partition_of(get_u64_sorted((const uint8_t *)key.data + KEY_TABLE), t->partitions));
    struct arena_point start = arena_point(&t->memory);
    pawl_bytes had = was ? *was : (pawl_bytes){0};
    bool known = was != NULL;
    int status = PAWL_OK;
    for (; status == PAWL_OK && i < t->count && t->tables[i].base == base; i++) {
        struct kept_state *kept = &t->tables[i].states[place];
        status = view_tables_settle(t, kept);
        if (status != PAWL_OK || !(kept->state.complete || coverage_has(&kept->state.coverage, key)))
            continue;
        status = known ? PAWL_OK : look_up(t, store, key, several, &had);
        known = true;
        if (status == PAWL_OK)
            status = follow(t, &t->tables[i], kept, store, key, had, value);
    }
    arena_rewind(&t->memory, start);
    return status;
}

/* --- which views there are --- */

static int by_base(const void *a, const void *b)
{
    const struct view_table *x = a, *y = b;
    if (x->base != y->base)
        return x->base < y->base ? -1 : 1;
    return (x->table > y->table) - (x->table < y->table);
}

static bool stop_at_first(void *arg, pawl_bytes key, pawl_bytes value)
{
    (void)key;
    (void)value;
    *(bool *)arg = true;
    return false;
}

/* A view that the store does not know yet: if its base is empty, nothing is missing. */
static int begin_state(struct view_tables *t, struct kept_state *kept)
{
    struct view_state *s = &kept->state;
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    pawl_range range = view_partition_range(t->partitions, s->partition, STATE_SPACE, s->base, from, to);
    bool any = false;
    int status = pawl_store_scan(pawl_store_writer(t->store), range, false, stop_at_first, &any);
    if (status == PAWL_OK && !any) {
        status = coverage_add(&s->coverage, range.from, range.to);
        s->complete = status == PAWL_OK;
    }
    if (status == PAWL_OK)
        view_tables_touch(t, kept);
    return status;
}

static int open_states(struct view_tables *t, struct view_table *table, pawl_error *error)
{
    table->states = mem_new(t->alloc, t->set.count, sizeof table->states[0]);
    if (!table->states)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < t->set.count; i++)
        view_state_init(&table->states[i].state, t->alloc, partition_set_at(&t->set, i), table->table,
                        table->base);
    int status = PAWL_OK;
    for (size_t i = 0; i < t->set.count && status == PAWL_OK; i++) {
        status = view_state_read(&table->states[i].state, pawl_store_writer(t->store), error);
        if (status == PAWL_ENOTFOUND)
            status = begin_state(t, &table->states[i]);
    }
    return status;
}

/* The table as it was, moved; or a new one. */
static int take_table(struct view_tables *t, const struct view_entry *entry, uint32_t generation,
                      struct view_table *ret_table, pawl_error *error)
{
    uint32_t table = view_table(entry->view->number, generation);
    struct view_table fresh = {.table = table, .base = view_base_table(entry->view, generation)};
    for (size_t i = 0; i < t->count; i++)
        if (t->tables[i].table == table && t->tables[i].states) {
            fresh.states = t->tables[i].states;
            t->tables[i].states = NULL;
        }
    fresh.view = view_hold(entry->view);
    fresh.failed = entry->progress == VIEW_FAILED;
    fresh.built = entry->progress == VIEW_SUCCESS;
    *ret_table = fresh;
    return fresh.states ? PAWL_OK : open_states(t, ret_table, error);
}

/* States of views that are gone go first, all in this transaction (T3). */
struct dropping {
    struct view_tables *tables;
    uint8_t (*keys)[VIEW_STATE_KEY];
    size_t count;
    size_t room;
    int status;
};

static bool note_unknown(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct dropping *d = arg;
    const pawl_allocator *alloc = d->tables->alloc;
    uint16_t partition;
    uint32_t table;
    (void)value;
    if (!view_state_key_read(key, &partition, &table) || view_tables_find(d->tables, table))
        return true;
    if (d->count == d->room) {
        size_t room = d->room ? 2 * d->room : 16;
        void *keys = mem_resize(alloc, d->keys, d->room * VIEW_STATE_KEY, room * VIEW_STATE_KEY);
        if (!keys) {
            d->status = PAWL_ENOMEM;
            return false;
        }
        d->keys = keys;
        d->room = room;
    }
    memcpy(d->keys[d->count++], key.data, VIEW_STATE_KEY);
    return true;
}

static int drop_unknown(struct view_tables *t)
{
    struct dropping d = {.tables = t};
    uint8_t from[KEY_TABLE], to[KEY_TABLE];
    put_u32_sorted(from, TABLE_VIEW);
    put_u32_sorted(to, TABLE_VIEW + 1);
    pawl_range range = {.space = VIEW_SPACE, .from = {from, sizeof from}, .to = {to, sizeof to}};
    int status = pawl_store_scan(pawl_store_writer(t->store), range, false, note_unknown, &d);
    status = status == PAWL_OK ? d.status : status;
    for (size_t i = 0; i < d.count && status == PAWL_OK; i++)
        status = pawl_store_remove(t->store, VIEW_SPACE, (pawl_bytes){d.keys[i], VIEW_STATE_KEY});
    t->removing = t->removing || d.count > 0;
    mem_free(t->alloc, d.keys, d.room * VIEW_STATE_KEY);
    return status;
}

static int take_all(struct view_tables *t, const struct view_list *list, const struct schema *schema,
                    struct view_table *tables, size_t *ret_count, pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; i < list->count && status == PAWL_OK; i++) {
        uint32_t generations[2];
        size_t count = view_generations(schema, list->entries[i].view, generations);
        for (size_t k = 0; k < count && status == PAWL_OK; k++) {
            status = take_table(t, &list->entries[i], generations[k], &tables[*ret_count], error);
            ++*ret_count; /* also if it failed: it is released */
        }
    }
    return status;
}

/* What is left in the old array is gone: its states are not written any more, and must be removed. */
static void forget_gone(struct view_tables *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->swept = t->swept && !t->tables[i].states;
    for (struct kept_state **link = &t->dirty; *link;) {
        bool gone = false;
        for (size_t i = 0; i < t->count; i++)
            gone = gone
                   || (t->tables[i].states && *link >= t->tables[i].states
                       && *link < t->tables[i].states + t->set.count);
        if (gone)
            *link = (*link)->next_dirty;
        else
            link = &(*link)->next_dirty;
    }
}

int view_tables_refresh(struct view_tables *t, const struct view_list *list, const struct schema *schema,
                        pawl_error *error)
{
    size_t count = 0, room = 2 * list->count;
    if (t->refreshed && t->list == list && t->schema == schema)
        return PAWL_OK;
    t->list = list;
    t->schema = schema;
    t->refreshed = false;
    t->fresh = true;
    t->version++;
    struct view_table *tables = mem_new(t->alloc, room, sizeof *tables);
    if (room > 0 && !tables)
        return error_set(error, PAWL_ENOMEM, "no memory for views");
    int status = take_all(t, list, schema, tables, &count, error);
    forget_gone(t);
    release_tables(t);
    t->tables = tables;
    t->count = count;
    t->room = room;
    if (count > 0)
        qsort(t->tables, count, sizeof *tables, by_base);
    if (status == PAWL_OK && !t->swept) /* all states are looked at, so only if one may have to go */
        status = drop_unknown(t);
    t->refreshed = t->swept = status == PAWL_OK;
    if (status == PAWL_OK)
        return status;
    t->dirty = NULL;
    release_tables(t); /* nothing is known: the next refresh reads all states again */
    return error && error->code == status
               ? status
               : error_set(error, status, "cannot open views: %s", pawl_status_text(status));
}

/* --- rows that are nobody's --- */

struct first_key {
    uint32_t table;
    bool found;
};

static bool note_table(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct first_key *first = arg;
    (void)value;
    first->table = key_table(key);
    first->found = true;
    return false;
}

/* The first table from this one on that has rows. */
static int find_table(const struct view_tables *t, uint32_t from, struct first_key *ret_first)
{
    uint8_t key[KEY_TABLE];
    put_u32_sorted(key, from);
    *ret_first = (struct first_key){0};
    return pawl_store_scan(pawl_store_writer(t->store),
                           (pawl_range){.space = VIEW_SPACE, .from = {key, sizeof key}}, false, note_table,
                           ret_first);
}

struct piece {
    size_t left;
    uint8_t *end;
    size_t end_size; /* of the first key behind the piece; 0: the table ends before */
};

static bool count_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct piece *piece = arg;
    (void)value;
    if (piece->left > 0) {
        piece->left--;
        return true;
    }
    memcpy(piece->end, key.data, key.size);
    piece->end_size = key.size;
    return false;
}

static int remove_from(struct view_tables *t, uint32_t table, struct piece *piece)
{
    uint8_t from[KEY_TABLE], to[KEY_TABLE];
    put_u32_sorted(from, table);
    put_u32_sorted(to, table + 1);
    pawl_range range = {.space = VIEW_SPACE, .from = {from, sizeof from}, .to = {to, sizeof to}};
    int status = pawl_store_scan(pawl_store_writer(t->store), range, false, count_row, piece);
    if (piece->end_size > 0)
        range.to = (pawl_bytes){piece->end, piece->end_size};
    return status == PAWL_OK ? pawl_store_remove_range(t->store, range) : status;
}

int view_tables_remove_piece(struct view_tables *t, size_t rows_max, bool *ret_more)
{
    struct first_key first = {.table = VIEW_TABLE_BIT, .found = true};
    int status = PAWL_OK;
    *ret_more = false;
    if (!t->removing || !t->refreshed)
        return PAWL_OK;
    while ((status = find_table(t, first.table, &first)) == PAWL_OK && first.found
           && view_tables_find(t, first.table))
        first.table++;
    if (status != PAWL_OK || !first.found) {
        t->removing = status != PAWL_OK;
        return status;
    }
    struct piece piece = {.left = rows_max, .end = mem_new(t->alloc, 1, PAWL_KEY_BYTES_MAX)};
    if (!piece.end)
        return PAWL_ENOMEM;
    status = remove_from(t, first.table, &piece);
    mem_free(t->alloc, piece.end, PAWL_KEY_BYTES_MAX);
    *ret_more = true;
    return status;
}
