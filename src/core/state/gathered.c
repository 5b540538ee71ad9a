#include "core/state/gathered.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/state/key.h"

#define CHUNK      ((size_t)64 * 1024)
#define WORK_CHUNK ((size_t)16 * 1024)

void gathered_init(struct gathered *g, const pawl_allocator *alloc)
{
    *g = (struct gathered){.alloc = alloc};
    overlay_init(&g->overlay, alloc);
    arena_init(&g->memory, alloc, CHUNK);
    arena_init(&g->work, alloc, WORK_CHUNK);
}

void gathered_release(struct gathered *g)
{
    overlay_release(&g->overlay);
    arena_release(&g->memory);
    arena_release(&g->work);
    g->rows = (struct changes){0};
}

static struct gathered_row *row_of(struct row_change *change)
{
    return (struct gathered_row *)change; /* its first member */
}

int gathered_set(struct gathered *g, struct gathered_row *row, pawl_bytes value)
{
    if (!value.data) {
        row->change.value = (pawl_bytes){0};
        return PAWL_OK;
    }
    if (value.size > row->room_size || !row->room) {
        /* The old memory is not freed before everything is forgotten: so the new one is at least twice as
         * large. */
        size_t size = value.size > 2 * row->room_size ? value.size : 2 * row->room_size;
        uint8_t *room = arena_take(&g->memory, size);
        if (!room)
            return PAWL_ENOMEM;
        row->room = room;
        row->room_size = size;
    }
    memcpy(row->room, value.data, value.size);
    row->change.value = (pawl_bytes){row->room, value.size};
    return PAWL_OK;
}

/* A row that is not on the overlay yet. */
static struct gathered_row *new_row(struct gathered *g, pawl_bytes key)
{
    struct gathered_row *row = arena_take(&g->memory, sizeof *row);
    if (!row)
        return NULL;
    *row = (struct gathered_row){.change = {.key = arena_copy(&g->memory, key)}};
    return row->change.key.data ? row : NULL;
}

static void add_row(struct gathered *g, struct gathered_row *row)
{
    row->change.next = g->rows.first;
    g->rows.first = &row->change;
    g->rows.count++;
}

static int take_change(struct gathered *g, struct row_change *change)
{
    struct row_change *hidden = overlay_hidden(change);
    if (hidden) {
        overlay_take_off(&g->overlay, change);
        return gathered_set(g, row_of(hidden), change->value);
    }
    struct gathered_row *row = new_row(g, change->key);
    int status = row ? gathered_set(g, row, change->value) : PAWL_ENOMEM;
    if (status != PAWL_OK)
        return status;
    overlay_replace(&g->overlay, change, &row->change);
    add_row(g, row);
    return PAWL_OK;
}

int gathered_take(struct gathered *g, const struct changes *changes)
{
    int status = PAWL_OK;
    for (struct row_change *change = changes->first; status == PAWL_OK && change; change = change->next)
        status = take_change(g, change);
    return status;
}

int gathered_row(struct gathered *g, pawl_bytes key, struct digests *sums, struct gathered_row **ret_row)
{
    uint64_t hash = overlay_hash(key);
    struct row_change *change = overlay_find(&g->overlay, key, hash);
    if (change) {
        *ret_row = row_of(change);
        return PAWL_OK;
    }
    struct gathered_row *row = new_row(g, key);
    int status = row ? digests_want(sums, key_table(key)) : PAWL_ENOMEM;
    if (status != PAWL_OK)
        return status;
    row->sums = sums;
    row->change.waits = true;
    row->change.hash = hash;
    status = overlay_push_hashed(&g->overlay, &row->change);
    if (status != PAWL_OK)
        return status;
    add_row(g, row);
    *ret_row = row;
    return PAWL_OK;
}

void gathered_add(struct gathered_row *row, struct gathered_step *step)
{
    assert(row->change.waits);
    step->next = NULL;
    if (row->newest)
        row->newest->next = step;
    else
        row->first = step;
    row->newest = step;
    row->steps++;
}

/* Apply the steps to the row that the store has. The result is borrowed until the store changes or the next row
 * is settled. */
static int work_out(struct gathered *g, pawl_store *store, struct gathered_row *row, pawl_bytes *ret_value,
                    pawl_error *error)
{
    struct row_change *c = &row->change;
    pawl_bytes value = {0};
    int status = pawl_store_get(pawl_store_writer(store), STATE_SPACE, c->key, &value);
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return error_set(error, status, "%s", store->error.text);
    status = PAWL_OK;
    if (value.data)
        pawl_digest_subtract(&c->digest, c->key, value);
    arena_reset(&g->work);
    for (struct gathered_step *step = row->first; status == PAWL_OK && step; step = step->next)
        status = step->become(step, row, value, &g->work, &value, error);
    if (status == PAWL_OK)
        *ret_value = value;
    return status;
}

int gathered_settle(struct gathered *g, pawl_store *store, struct gathered_row *row, pawl_error *error)
{
    pawl_bytes value;
    int status = work_out(g, store, row, &value, error);
    if (status != PAWL_OK)
        return status;
    row->change.waits = false;
    status = gathered_set(g, row, value);
    return status == PAWL_OK ? status : error_set(error, status, "no memory for a row");
}

/* A row by its key: table, token, and what is behind the workspace, which follows from the token. Rows that are
 * equal in these are in no order, which only costs time; to compare whole keys would cost a cache miss each. */
struct sorted {
    uint64_t key[3];
    struct row_change *row;
};

static uint64_t key_part(pawl_bytes key, size_t at)
{
    const uint8_t *bytes = key.data;
    uint64_t part = 0;
    if (key.size >= at + 8)
        return get_u64_sorted(bytes + at);
    for (size_t i = at; i < at + 8; i++)
        part = part << 8 | (i < key.size ? bytes[i] : 0);
    return part;
}

static inline bool comes_after(const struct sorted *a, const struct sorted *b)
{
    for (size_t i = 0; i < 2; i++)
        if (a->key[i] != b->key[i])
            return a->key[i] > b->key[i];
    return a->key[2] > b->key[2];
}

/* Merges runs of doubling length from one array into the other, and tells which one is sorted in the end. The
 * library's sort would call to compare, which takes twice as long. */
static struct sorted *sort(struct sorted *rows, struct sorted *room, size_t count)
{
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            size_t a = at, b = at + run < count ? at + run : count;
            size_t a_end = b, b_end = at + 2 * run < count ? at + 2 * run : count;
            for (size_t to = at; to < b_end; to++)
                room[to] =
                    a < a_end && (b == b_end || !comes_after(&rows[a], &rows[b])) ? rows[a++] : rows[b++];
        }
        struct sorted *sorted = room;
        room = rows;
        rows = sorted;
    }
    return rows;
}

/* A row that is removed may never have been in the store: it was made and removed in between. */
static int write_row(const struct gathered *g, pawl_store *store, pawl_bytes key, pawl_bytes value,
                     pawl_error *error)
{
    int status = g->watch ? g->watch->put(g->watch, store, key, NULL, value) : PAWL_OK;
    if (status != PAWL_OK)
        return error_set(error, status, "%s", store->error.text);
    status = value.data ? pawl_store_put(store, STATE_SPACE, key, value)
                        : pawl_store_remove(store, STATE_SPACE, key);
    if (status == PAWL_OK || (status == PAWL_ENOTFOUND && !value.data))
        return PAWL_OK;
    return error_set(error, status, "%s", store->error.text);
}

static int put_row(struct gathered *g, pawl_store *store, struct gathered_row *row, pawl_error *error)
{
    struct row_change *c = &row->change;
    pawl_bytes value = c->value;
    int status = c->waits ? work_out(g, store, row, &value, error) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    if (row->sums) { /* H2 */
        if (value.data)
            pawl_digest_add(&c->digest, c->key, value);
        digests_sum(row->sums, key_table(c->key), &c->digest);
    }
    return write_row(g, store, c->key, value, error);
}

static void let_go(struct gathered *g)
{
    if (g->overlay.count == g->rows.count)
        overlay_clear(&g->overlay);
    else
        overlay_remove(&g->overlay, &g->rows);
    g->rows = (struct changes){0};
}

int gathered_put(struct gathered *g, pawl_store *store, pawl_error *error)
{
    size_t count = 0, room = g->rows.count;
    int status = PAWL_OK;
    if (room == 0)
        return PAWL_OK;
    struct sorted *memory = mem_resize(g->alloc, NULL, 0, 2 * room * sizeof memory[0]);
    if (!memory)
        return error_set(error, PAWL_ENOMEM, "no memory to sort rows");
    for (struct row_change *row = g->rows.first; row; row = row->next)
        memory[count++] = (struct sorted){
            .key = {key_part(row->key, 0), key_part(row->key, 8), key_part(row->key, KEY_WORKSPACE)},
            .row = row};
    struct sorted *rows = sort(memory, memory + room, count);
    for (size_t i = 0; status == PAWL_OK && i < count; i++)
        status = put_row(g, store, row_of(rows[i].row), error);
    g->puts += count;
    mem_free(g->alloc, memory, 2 * room * sizeof memory[0]);
    if (status == PAWL_OK)
        let_go(g);
    return status;
}

/* The set holds much at times, and then nothing for a long time: free the memory. */
void gathered_clear(struct gathered *g)
{
    const pawl_allocator *alloc = g->alloc;
    struct put_watch *watch = g->watch;
    gathered_release(g);
    gathered_init(g, alloc);
    g->watch = watch;
}

void gathered_reset(struct gathered *g)
{
    overlay_clear(&g->overlay);
    arena_reset(&g->memory);
    g->rows = (struct changes){0};
    g->puts = 0;
}
