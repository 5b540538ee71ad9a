/* engine/look.c: rows of an entity, shown. A list is read in slices, each in a snapshot of its own, which goes
 * on behind the key that was shown last. */
#include "engine/look.h"

#include "base/bytes.h"
#include "base/error.h"
#include "core/state/key.h"
#include "engine/json/key.h"
#include "engine/json/show.h"

#define ROWS_AT_ONCE 1000 /* in one snapshot */
#define ARENA_CHUNK  ((size_t)4096)

void look_begin(struct look *l, const pawl_allocator *alloc)
{
    arena_init(&l->memory, alloc, ARENA_CHUNK);
    json_out_init(&l->out, alloc);
}

int look_key(struct look *l, pawl_bytes json, pawl_bytes *ret_key)
{
    return json_row_key(json, l->schema, l->entity, l->table, l->wsid, &l->memory, ret_key, l->error);
}

int look_show(struct look *l, pawl_bytes row)
{
    return json_row(&l->out, l->schema, l->entity, row, l->error);
}

struct listing {
    struct look *look;
    pawl_bytes last; /* the key that was shown last, in the memory; or that to begin with */
    bool inclusive;
    size_t rows; /* in this slice */
    size_t left;
    int status;
};

static bool list_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct listing *list = arg;
    struct look *l = list->look;
    if (!list->inclusive && bytes_equal(key, list->last))
        return true;
    list->status = look_show(l, value);
    if (list->status != PAWL_OK)
        return false;
    out_raw(&l->out, (pawl_bytes){"\n", 1});
    list->rows++;
    list->left--;
    if (list->left > 0 && list->rows < ROWS_AT_ONCE)
        return true;
    arena_reset(&l->memory);
    list->last = arena_copy(&l->memory, key);
    list->inclusive = false;
    if (!list->last.data)
        list->status = error_set(l->error, PAWL_ENOMEM, "no memory for a list");
    return false;
}

int look_list(struct look *l, pawl_bytes after, size_t limit, look_scan scan, void *ctx)
{
    struct listing list = {.look = l, .left = limit, .inclusive = !after.data, .rows = ROWS_AT_ONCE};
    uint8_t first[KEY_WORKSPACE], behind[KEY_WORKSPACE];
    pawl_bytes workspace = key_of_workspace(l->table, l->wsid, first);
    pawl_bytes to = key_after_prefix(workspace, behind);
    int status = PAWL_OK;
    list.last = workspace;
    if (after.data)
        status = look_key(l, after, &list.last);
    while (status == PAWL_OK && list.left > 0 && list.rows == ROWS_AT_ONCE) {
        list.rows = 0;
        status = scan(ctx, list.last, to, list_row, &list);
        if (status == PAWL_OK)
            status = list.status;
    }
    return status;
}

int look_end(struct look *l, int status, pawl_text *ret_text)
{
    arena_release(&l->memory);
    return text_take(&l->out, status, ret_text, l->error);
}
