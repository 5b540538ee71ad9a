/* core/project/remove.h: removes the rows of a generation that nobody reads any more, a piece at a time.
 *
 *     piece ── commit ── piece ── commit ── ... ── the last one, and the cursor's row
 *
 * A table may have any number of rows, and a transaction's memory grows with what it changes. So each piece is
 * a transaction of its own, of at most rows_max rows that lie side by side.
 *
 *   D1  The cursor's row says that the generation has rows, and in which tables; it is removed with the last
 *       piece. If removing is interrupted, it goes on after the next start, because that row is still there. */
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

/* Remove one piece in the store's transaction, which must be empty; the caller commits. ret_last: the cursor's
 * row was removed too, and nothing is left. After an error, abort. Errors of the store; PAWL_ENOMEM. */
int remove_piece(const struct removal *removal, bool *ret_last);

#endif
