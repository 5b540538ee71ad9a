#include "core/project/remove.h"

#include <string.h>

#include "base/alloc.h"
#include "core/state/position.h"

/* Finds the end of a piece. */
struct piece {
    size_t left; /* rows that fit */
    uint8_t *end;
    size_t end_size; /* of the first key behind the piece; 0: the table ends before */
};

static bool count_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct piece *piece = arg;
    if (piece->left > 0) {
        piece->left--;
        return true;
    }
    memcpy(piece->end, key.data, key.size);
    piece->end_size = key.size;
    return false;
}

static int remove_from_table(const struct removal *r, uint32_t table, struct piece *piece)
{
    struct position position = {.partition = r->cursor->partition};
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    pawl_range range = position_range(&position, r->partitions, table, from, to);
    int status = pawl_store_scan(pawl_store_writer(r->store), range, false, count_row, piece);
    if (piece->end_size > 0)
        range.to = (pawl_bytes){piece->end, piece->end_size};
    return status == PAWL_OK ? pawl_store_remove_range(r->store, range) : status;
}

int remove_piece(const struct removal *r, bool *ret_last)
{
    const struct cursor *cursor = r->cursor;
    uint8_t row[CURSOR_KEY];
    struct piece piece = {.left = r->rows_max, .end = mem_new(r->alloc, 1, PAWL_KEY_BYTES_MAX)};
    if (!piece.end)
        return PAWL_ENOMEM;
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && piece.end_size == 0 && i < cursor->digests.count; i++)
        status = remove_from_table(r, cursor->digests.tables[i].table, &piece);
    bool last = piece.end_size == 0;
    if (status == PAWL_OK && last)
        status = pawl_store_remove(r->store, STATE_SPACE,
                                   cursor_key(cursor->partition, cursor->lane, cursor->generation, row));
    mem_free(r->alloc, piece.end, PAWL_KEY_BYTES_MAX);
    if (status == PAWL_ENOTFOUND)
        status = PAWL_OK; /* it has never been written */
    if (status == PAWL_OK)
        *ret_last = last;
    return status;
}
