#include "core/state/gathered.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/state/key.h"

#define CHUNK ((size_t)64 * 1024)

void gathered_init(struct gathered *g, const pawl_allocator *alloc)
{
    *g = (struct gathered){.alloc = alloc};
    overlay_init(&g->overlay, alloc);
    arena_init(&g->memory, alloc, CHUNK);
}

void gathered_release(struct gathered *g)
{
    overlay_release(&g->overlay);
    arena_release(&g->memory);
    g->rows = (struct changes){0};
}

static int take_value(struct gathered *g, struct row_change *row, pawl_bytes value)
{
    if (value.data && row->value.data && value.size <= row->value.size) {
        memcpy((void *)row->value.data, value.data, value.size); /* its own copy */
        row->value.size = value.size;
        return PAWL_OK;
    }
    row->value = (pawl_bytes){0};
    if (!value.data)
        return PAWL_OK;
    row->value = arena_copy(&g->memory, value);
    return row->value.data ? PAWL_OK : PAWL_ENOMEM;
}

static int take_change(struct gathered *g, struct row_change *change)
{
    struct row_change *row = overlay_hidden(change);
    if (row) {
        overlay_take_off(&g->overlay, change);
        return take_value(g, row, change->value);
    }
    row = arena_take(&g->memory, sizeof *row);
    if (!row)
        return PAWL_ENOMEM;
    *row = (struct row_change){.key = arena_copy(&g->memory, change->key)};
    int status = row->key.data ? take_value(g, row, change->value) : PAWL_ENOMEM;
    if (status != PAWL_OK)
        return status;
    overlay_replace(&g->overlay, change, row);
    row->next = g->rows.first;
    g->rows.first = row;
    g->rows.count++;
    return PAWL_OK;
}

int gathered_take(struct gathered *g, const struct changes *changes)
{
    int status = PAWL_OK;
    for (struct row_change *change = changes->first; status == PAWL_OK && change; change = change->next)
        status = take_change(g, change);
    return status;
}

/* A row by its key: table, token, and what is behind the workspace, which follows from the token. What is equal
 * so far is in no order, which costs time and nothing else; comparing whole keys would cost a miss of the cache
 * each. */
struct sorted {
    uint64_t key[3];
    const struct row_change *row;
};

static uint64_t key_part(pawl_bytes key, size_t at)
{
    const uint8_t *bytes = key.data;
    uint64_t part = 0;
    for (size_t i = at; i < at + 8; i++)
        part = part << 8 | (i < key.size ? bytes[i] : 0);
    return part;
}

static int by_parts(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    for (size_t i = 0; i < 3; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return 0;
}

/* A row that is removed may never have been in the store: it came and went in between. */
static int put_sorted(const struct sorted *rows, size_t count, pawl_store *store)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < count; i++) {
        pawl_bytes key = rows[i].row->key, value = rows[i].row->value;
        status = value.data ? pawl_store_put(store, STATE_SPACE, key, value)
                            : pawl_store_remove(store, STATE_SPACE, key);
        if (status == PAWL_ENOTFOUND && !value.data)
            status = PAWL_OK;
    }
    return status;
}

int gathered_put(struct gathered *g, pawl_store *store)
{
    size_t count = 0, room = g->rows.count;
    if (room == 0)
        return PAWL_OK;
    struct sorted *rows = mem_new(g->alloc, room, sizeof rows[0]);
    if (!rows)
        return PAWL_ENOMEM;
    for (const struct row_change *row = g->rows.first; row; row = row->next)
        rows[count++] = (struct sorted){
            .key = {key_part(row->key, 0), key_part(row->key, 8), key_part(row->key, KEY_WORKSPACE)},
            .row = row};
    qsort(rows, count, sizeof rows[0], by_parts);
    int status = put_sorted(rows, count, store);
    g->puts += count;
    mem_free(g->alloc, rows, room * sizeof rows[0]);
    if (status != PAWL_OK)
        return status;
    overlay_remove(&g->overlay, &g->rows);
    g->rows = (struct changes){0};
    return PAWL_OK;
}

/* It holds much, and then nothing for a long time: the memory goes back. */
void gathered_clear(struct gathered *g)
{
    const pawl_allocator *alloc = g->alloc;
    gathered_release(g);
    gathered_init(g, alloc);
}
