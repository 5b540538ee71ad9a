#include "core/state/overlay.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "core/state/key.h"
#include "port/longkey.h"

#define CHANGES_MAX ((size_t)1 << 24)

void overlay_init(struct overlay *overlay, const pawl_allocator *alloc)
{
    *overlay = (struct overlay){.alloc = alloc};
    map_init(&overlay->newest, alloc, sizeof(uint64_t), sizeof(struct row_change *), CHANGES_MAX);
}

void overlay_release(struct overlay *overlay)
{
    map_release(&overlay->newest);
}

uint64_t overlay_hash(pawl_bytes key)
{
    return hash_checksum(0, key);
}

void overlay_clear(struct overlay *overlay)
{
    map_clear(&overlay->newest);
    overlay->count = 0;
}

int overlay_push(struct overlay *overlay, struct row_change *change)
{
    change->hash = overlay_hash(change->key);
    return overlay_push_hashed(overlay, change);
}

int overlay_push_hashed(struct overlay *overlay, struct row_change *change)
{
    void *value;
    bool fresh;
    int status = map_put(&overlay->newest, change->hash, &change->hash, &value, &fresh);
    if (status != PAWL_OK)
        return PAWL_ENOMEM;
    struct row_change **newest = value;
    change->older = fresh ? NULL : *newest;
    change->newer = NULL;
    if (change->older)
        change->older->newer = change;
    *newest = change;
    overlay->count++;
    return PAWL_OK;
}

void overlay_take_off(struct overlay *overlay, struct row_change *change)
{
    if (change->older)
        change->older->newer = change->newer;
    if (change->newer)
        change->newer->older = change->older;
    else if (change->older) {
        struct row_change **newest = map_get(&overlay->newest, change->hash, &change->hash);
        *newest = change->older;
    } else
        map_remove(&overlay->newest, change->hash, &change->hash);
    overlay->count--;
}

void overlay_remove(struct overlay *overlay, const struct changes *changes)
{
    for (struct row_change *change = changes->first; change; change = change->next)
        overlay_take_off(overlay, change);
}

/* Changes are put in the order in which they were derived: so a row that was new then is not in the store. */
static int watch_change(const struct row_change *c, pawl_store *store, struct put_watch *watch)
{
    static const pawl_bytes none;
    return watch->put(watch, store, c->key, c->digest.rows == 1 ? &none : NULL, c->value);
}

int changes_put(const struct changes *changes, pawl_store *store, struct put_watch *watch)
{
    int status = PAWL_OK;
    for (const struct row_change *c = changes->first; status == PAWL_OK && c; c = c->next) {
        status = watch ? watch_change(c, store, watch) : PAWL_OK;
        if (status == PAWL_OK)
            status = c->value.data ? pawl_store_put(store, STATE_SPACE, c->key, c->value)
                                   : pawl_store_remove(store, STATE_SPACE, c->key);
    }
    return status;
}

void overlay_replace(struct overlay *overlay, struct row_change *change, struct row_change *by)
{
    by->hash = change->hash;
    by->older = change->older;
    by->newer = change->newer;
    if (by->older)
        by->older->newer = by;
    if (by->newer)
        by->newer->older = by;
    else {
        struct row_change **newest = map_get(&overlay->newest, by->hash, &by->hash);
        *newest = by;
    }
}

struct row_change *overlay_hidden(const struct row_change *change)
{
    for (struct row_change *older = change->older; older; older = older->older)
        if (bytes_equal(older->key, change->key))
            return older;
    return NULL;
}

struct row_change *overlay_find(const struct overlay *overlay, pawl_bytes key, uint64_t hash)
{
    struct row_change **newest = map_get(&overlay->newest, hash, &hash);
    for (struct row_change *change = newest ? *newest : NULL; change; change = change->older)
        if (bytes_equal(change->key, key))
            return change;
    return NULL;
}

int state_get(const struct state *state, pawl_bytes key, pawl_bytes *ret_value)
{
    const struct row_change *change = NULL;
    if (state->overlay && state->overlay->count > 0)
        change = overlay_find(state->overlay, key, overlay_hash(key));
    if (!change)
        return pawl_store_get(state->reader, STATE_SPACE, key, ret_value);
    assert(!change->waits); /* H3 */
    if (!change->value.data)
        return PAWL_ENOTFOUND;
    *ret_value = change->value;
    return PAWL_OK;
}

int state_change(const struct state *state, struct arena *memory, struct changes *changes, pawl_bytes key,
                 pawl_bytes old, pawl_bytes value)
{
    struct row_change *change = arena_take(memory, sizeof *change);
    if (!change)
        return PAWL_ENOMEM;
    *change = (struct row_change){.key = arena_copy(memory, key)};
    if (old.data)
        pawl_digest_subtract(&change->digest, key, old);
    if (value.data) {
        pawl_digest_add(&change->digest, key, value);
        change->value = arena_copy(memory, value);
    }
    if (!change->key.data || (value.data && !change->value.data))
        return PAWL_ENOMEM;
    if (state->overlay) {
        int status = overlay_push(state->overlay, change);
        if (status != PAWL_OK)
            return status;
    }
    if (changes->last)
        changes->last->next = change;
    else
        changes->first = change;
    changes->last = change;
    changes->count++;
    return PAWL_OK;
}

/* A scan merges two orders: the store's rows, and the overlay's newest change of each key in the range. */
struct merge {
    const struct row_change **changes; /* ascending by key */
    size_t count;
    size_t next;
    pawl_visit_row visit;
    void *arg;
    bool stopped;
};

static int by_key(const void *a, const void *b)
{
    const struct row_change *const *x = a, *const *y = b;
    return longkey_compare_keys((*x)->key, (*y)->key);
}

static bool in_range(pawl_bytes key, pawl_bytes from, pawl_bytes to)
{
    return longkey_compare_keys(key, from) >= 0 && (to.size == 0 || longkey_compare_keys(key, to) < 0);
}

/* Whether an earlier one of its chain, which is newer, has the same key. */
static bool is_hidden(const struct row_change *change)
{
    for (const struct row_change *newer = change->newer; newer; newer = newer->newer)
        if (bytes_equal(newer->key, change->key))
            return true;
    return false;
}

static int gather(const struct overlay *overlay, pawl_bytes from, pawl_bytes to, struct arena *memory,
                  struct merge *merge)
{
    const void *key;
    void *value;
    merge->changes = arena_take(memory, overlay->count * sizeof merge->changes[0]);
    if (!merge->changes)
        return PAWL_ENOMEM;
    for (size_t cursor = 0; map_next(&overlay->newest, &cursor, &key, &value);)
        for (const struct row_change *change = *(struct row_change **)value; change; change = change->older)
            if (in_range(change->key, from, to) && !is_hidden(change))
                merge->changes[merge->count++] = change;
    qsort(merge->changes, merge->count, sizeof merge->changes[0], by_key);
    return PAWL_OK;
}

/* Show the overlay's rows that come before a key, or all that are left. Whether the overlay has the key
 * itself. */
static bool show_before(struct merge *merge, const pawl_bytes *key)
{
    while (!merge->stopped && merge->next < merge->count) {
        const struct row_change *change = merge->changes[merge->next];
        int order = key ? longkey_compare_keys(change->key, *key) : -1;
        if (order > 0)
            return false;
        merge->next++;
        if (change->value.data && !merge->visit(merge->arg, change->key, change->value))
            merge->stopped = true;
        if (order == 0)
            return true;
    }
    return false;
}

static bool merge_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct merge *merge = arg;
    bool theirs = show_before(merge, &key);
    if (!theirs && !merge->stopped && !merge->visit(merge->arg, key, value))
        merge->stopped = true;
    return !merge->stopped;
}

int state_scan(const struct state *state, pawl_bytes from, pawl_bytes to, struct arena *memory,
               pawl_visit_row visit, void *arg)
{
    pawl_range range = {.space = STATE_SPACE, .from = from, .to = to};
    int status = state->before_scan ? state->before_scan(state->ctx) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    if (!state->overlay || state->overlay->count == 0)
        return pawl_store_scan(state->reader, range, false, visit, arg);
    struct merge merge = {.visit = visit, .arg = arg};
    struct arena_point start = arena_point(memory);
    status = gather(state->overlay, from, to, memory, &merge);
    if (status == PAWL_OK)
        status = pawl_store_scan(state->reader, range, false, merge_row, &merge);
    if (status == PAWL_OK)
        show_before(&merge, NULL);
    arena_rewind(memory, start);
    return status;
}
