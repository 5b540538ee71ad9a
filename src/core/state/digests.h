/* core/state/digests.h: the digests of a state's tables, and the row that keeps them.
 *
 * The users of this file (position.h, core/project/cursor.h) write the digests, and how far they have come,
 * into one row: a head of their own, and behind it the tables, 28 bytes each, ascending:
 *
 *     table u32, digest low u64, high u64, rows u64
 *
 * A table whose digest is zero is left out. The row's memory grows with the tables, when changes are added, so
 * that writing the row allocates nothing. */
#ifndef CORE_STATE_DIGESTS_H
#define CORE_STATE_DIGESTS_H

#include "core/state/overlay.h"

#define DIGESTS_TABLE      ((size_t)28)
#define DIGESTS_TABLES_MAX 65536

struct table_digest {
    uint32_t table;
    pawl_digest digest;
};

struct digests {
    struct table_digest *tables; /* ascending */
    size_t count;
    size_t room;
    uint8_t *row;
    size_t head; /* bytes of the row before the tables */
    const pawl_allocator *alloc;
};

/* Allocates nothing. */
void digests_init(struct digests *digests, const pawl_allocator *alloc, size_t head);
void digests_release(struct digests *digests);

/* Add what changes do to their tables, or, if they were not committed after all, take it back. Taking back
 * cannot fail. PAWL_ENOMEM: nothing was added. */
int digests_add(struct digests *digests, const struct changes *changes);
void digests_subtract(struct digests *digests, const struct changes *changes);

/* The same for a caller that adds a row's digest later than it changes the row. want: make sure that there is
 * such a table, perhaps an empty one. PAWL_ENOMEM. sum: add a change's digest to a table that was wanted. */
int digests_want(struct digests *digests, uint32_t table);
void digests_sum(struct digests *digests, uint32_t table, const pawl_digest *digest);

/* The row, whose head is for the caller to fill in, with its tables. Borrowed until the next change.
 * PAWL_ENOMEM, if nothing was ever added. */
int digests_encode(struct digests *digests, uint8_t **ret_row, size_t *ret_size, uint32_t *ret_count);

/* From the tables of a row, and nothing but them. PAWL_ECORRUPT: they do not ascend; PAWL_ENOMEM. */
int digests_decode(struct digests *digests, pawl_bytes tables, uint32_t count);

/* A table's; zero if it has none. */
pawl_digest digests_of(const struct digests *digests, uint32_t table);

#endif
