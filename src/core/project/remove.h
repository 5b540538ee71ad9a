/* core/project/remove.h: the rows of a generation that nobody reads any more, removed a piece at a time.
 *
 *     piece ── commit ── piece ── commit ── ... ── the last one, and the cursor's row
 *
 * A table may have any number of rows, and a transaction's memory grows with what it changes: so each piece is
 * a transaction of its own, of so many rows that lie side by side.
 *
 *   D1  The cursor's row says that there is something, and which tables have rows; it goes with the last piece.
 *       Whatever ends this in between, it is found again. */
#ifndef CORE_PROJECT_REMOVE_H
#define CORE_PROJECT_REMOVE_H

#include "core/project/cursor.h"

struct removal {
    pawl_store *store;
    const struct cursor *cursor; /* as the store has it */
    uint32_t partitions;         /* of the node */
    size_t rows_max;             /* of a piece */
    const pawl_allocator *alloc;
};

/* Into the store's transaction, which has nothing else, and which the caller commits. ret_last: the cursor's
 * row is among it, nothing is left. After an error, abort. Errors of the store; PAWL_ENOMEM. */
int remove_piece(const struct removal *removal, bool *ret_last);

#endif
