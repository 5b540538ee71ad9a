/* core/state/gathered.h: what many events or operations write, each row once.
 *
 *     derive ──► changes on the overlay ── take ──► the newest value of each row ── put ──► the store, sorted
 *                    ▲                                     │
 *                    └──────────── reads ──────────────────┘  and the store below
 *
 * A row that is written a thousand times within a transaction is put once, and rows are put in the order of
 * their keys, so that a commit copies each page once.
 *
 *   H1  There is at most one change of a key. Whoever scans has all of it put first (state.before_scan),
 * because a scan looks at all of it. */
#ifndef CORE_STATE_GATHERED_H
#define CORE_STATE_GATHERED_H

#include "core/state/overlay.h"

struct gathered {
    struct overlay overlay; /* the rows; and, while something is derived, its changes on top */
    struct changes rows;    /* of the memory below */
    struct arena memory;
    uint64_t puts; /* since it was cleared */
    const pawl_allocator *alloc;
};

void gathered_init(struct gathered *gathered, const pawl_allocator *alloc);
void gathered_release(struct gathered *gathered);

/* Changes that lie on its overlay become rows, and leave it. PAWL_ENOMEM: all is worth nothing, clear it. */
int gathered_take(struct gathered *gathered, const struct changes *changes);

/* All rows into the store's transaction, and out of sight. Errors of the store; PAWL_ENOMEM. */
int gathered_put(struct gathered *gathered, pawl_store *store);

/* Forget everything. */
void gathered_clear(struct gathered *gathered);

/* The memory that it has: what was put is forgotten with the rest. */
static inline size_t gathered_bytes(const struct gathered *gathered)
{
    return gathered->memory.held + gathered->overlay.newest.memory_size;
}

#endif
