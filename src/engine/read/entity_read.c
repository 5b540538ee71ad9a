/* engine/read/entity_read.c: shows rows of an entity. A list is read in slices, each in a snapshot of its own.
 * A slice begins behind the key that was shown last. */
#include "engine/read/entity_read.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/state/key.h"
#include "engine/json/json.h"

#define ROWS_AT_ONCE 1000 /* in one snapshot */
#define ARENA_CHUNK  ((size_t)4096)

void entity_read_begin(struct entity_read *l, const pawl_allocator *alloc)
{
    arena_init(&l->memory, alloc, ARENA_CHUNK);
    json_out_init(&l->out, alloc);
}

/* The whole key of a row, with table and workspace, in l->memory. */
static int place_key(struct entity_read *l, pawl_bytes own, uint8_t **ret_own, pawl_bytes *ret_key)
{
    uint8_t *key = arena_take(&l->memory, KEY_WORKSPACE + own.size);
    if (!key)
        return error_set(l->error, PAWL_ENOMEM, "no memory for a key");
    key_of_workspace(l->table, l->wsid, key);
    if (own.data)
        memcpy(key + KEY_WORKSPACE, own.data, own.size);
    *ret_own = key + KEY_WORKSPACE;
    *ret_key = (pawl_bytes){key, KEY_WORKSPACE + own.size};
    return PAWL_OK;
}

int entity_read_key(struct entity_read *l, pawl_bytes *ret_key)
{
    struct value *values;
    uint8_t *own;
    int status = l->at.visit ? key_values(l->at.key, l->schema, l->entity, &l->memory, &values, l->error)
                             : json_key(l->at.json, l->schema, l->entity, &l->memory, &values, l->error);
    if (status != PAWL_OK)
        return status;
    size_t size = row_key_write(values, l->entity->key_count, NULL, 0);
    if (size > PAWL_KEY_BYTES_MAX - KEY_WORKSPACE)
        return error_set(l->error, PAWL_ETOOBIG, "the key would have %zu bytes", size);
    status = place_key(l, (pawl_bytes){NULL, size}, &own, ret_key);
    if (status == PAWL_OK)
        row_key_write(values, l->entity->key_count, own, size);
    return status;
}

int entity_read_show(struct entity_read *l, pawl_bytes bytes)
{
    struct pawl_row row;
    if (!l->at.visit)
        return json_row(&l->out, l->schema, l->entity, bytes, l->error);
    int status = row_of_entity(l->engine, l->entity, bytes, &row, l->error);
    if (status == PAWL_OK)
        l->stopped = !l->at.visit(l->at.arg, &row);
    return status;
}

struct listing {
    struct entity_read *read;
    pawl_bytes last; /* the key that was shown last; at first the one to begin with */
    bool inclusive;
    size_t rows; /* in this slice */
    size_t left;
    int status;
};

static bool list_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct listing *list = arg;
    struct entity_read *l = list->read;
    if (!list->inclusive && bytes_equal(key, list->last))
        return true;
    list->status = entity_read_show(l, value);
    if (list->status != PAWL_OK)
        return false;
    if (!l->at.visit)
        out_raw(&l->out, (pawl_bytes){"\n", 1});
    list->rows++;
    list->left--;
    if (!l->stopped && list->left > 0 && list->rows < ROWS_AT_ONCE)
        return true;
    arena_reset(&l->memory);
    list->last = arena_copy(&l->memory, key);
    list->inclusive = false;
    if (!list->last.data)
        list->status = error_set(l->error, PAWL_ENOMEM, "no memory for a list");
    return false;
}

/* What a cursor of this list is of. Never 0. */
static uint64_t list_of(const struct entity_read *l)
{
    uint64_t of = hash_checksum(l->wsid, l->entity->name);
    return of ? of : 1;
}

/* A cursor may come from outside. */
static bool is_cursor_of(const struct entity_read *l, pawl_bytes own)
{
    return scan_cursor_of(l->at.cursor) == list_of(l) && own.size <= PAWL_KEY_BYTES_MAX - KEY_WORKSPACE;
}

/* The key before the first row. *ret_inclusive: there is no such key; *ret_key is where the rows begin. */
static int find_start(struct entity_read *l, pawl_bytes *ret_key, bool *ret_inclusive)
{
    pawl_bytes own = scan_cursor_key(l->at.cursor);
    uint8_t *at;
    if (own.data && !is_cursor_of(l, own))
        return error_set(l->error, PAWL_EINVAL, "the cursor is not of this entity and this workspace");
    *ret_inclusive = !own.data && !l->at.json.data && l->at.key.count == 0;
    return own.data || *ret_inclusive ? place_key(l, own, &at, ret_key) : entity_read_key(l, ret_key);
}

static int move_cursor(struct entity_read *l, const struct listing *list)
{
    pawl_bytes own = {(const uint8_t *)list->last.data + KEY_WORKSPACE, list->last.size - KEY_WORKSPACE};
    bool done = !l->stopped && list->left > 0;
    int status =
        done || l->at.limit == 0 ? PAWL_OK : scan_cursor_move(l->at.cursor, l->memory.alloc, list_of(l), own);
    if (status != PAWL_OK)
        return error_set(l->error, status, "no memory for a cursor");
    l->at.cursor->done = done;
    return PAWL_OK;
}

int entity_read_list(struct entity_read *l, entity_read_scan scan, void *ctx)
{
    struct listing list = {.read = l, .left = l->at.limit, .rows = ROWS_AT_ONCE};
    uint8_t first[KEY_WORKSPACE], behind[KEY_WORKSPACE];
    pawl_bytes to = key_after_prefix(key_of_workspace(l->table, l->wsid, first), behind);
    if (l->at.cursor && l->at.cursor->done)
        return PAWL_OK;
    int status = find_start(l, &list.last, &list.inclusive);
    while (status == PAWL_OK && !l->stopped && list.left > 0 && list.rows == ROWS_AT_ONCE) {
        list.rows = 0;
        status = scan(ctx, list.last, to, list_row, &list);
        if (status == PAWL_OK)
            status = list.status;
    }
    return status == PAWL_OK && l->at.cursor ? move_cursor(l, &list) : status;
}

int entity_read_end(struct entity_read *l, int status, pawl_text *ret_text)
{
    arena_release(&l->memory);
    if (!l->at.visit)
        return text_take(&l->out, status, ret_text, l->error);
    json_out_release(&l->out);
    return status;
}
