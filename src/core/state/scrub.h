/* core/state/scrub.h: rows that nobody touches, read again.
 *
 *     a table of a partition ── its rows, in one snapshot ──► their digest ──┐
 *                            └─ the digest that the position keeps ──────────┴──► equal?
 *
 * A store keeps the digest of what it has written (core/state/position.h), in the same transaction as the rows.
 * So one snapshot of one store tells whether its rows are still the rows that were written: there is no need to
 * wait for equal offsets, and no writer is held up. Rows that the two stores have derived differently are found
 * by the audit.
 *
 * Behind the state's own tables come those of views: a view's state (core/view/view_state.h) keeps the digest of
 * the view's rows in the same way. */
#ifndef CORE_STATE_SCRUB_H
#define CORE_STATE_SCRUB_H

#include "core/state/position.h"

enum scrub_verdict {
    SCRUB_NOTHING, /* the partition has no table behind the last one, of its own or of a view */
    SCRUB_RIGHT,
    SCRUB_WRONG,     /* the rows are not those that were written, or cannot be read */
    SCRUB_TOO_LARGE, /* for the bytes that may be read at once */
};

struct scrub {
    uint16_t partition;
    uint32_t partitions;
    uint32_t table; /* the last one that was looked at; 0: none */
    size_t bytes_max;
    const pawl_allocator *alloc;
};

struct scrubbed {
    enum scrub_verdict verdict;
    uint32_t table;
    uint64_t offset; /* of the partition, where the snapshot is */
};

/* The partition's first table behind the last one. Any thread. Errors: PAWL_EBUSY (no snapshot to be had),
 * PAWL_ENOMEM. */
int scrub_table(const struct scrub *scrub, pawl_store *store, struct scrubbed *ret_scrubbed);

#endif
