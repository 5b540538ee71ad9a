/* core/state/gathered.h: what many events or operations write, each row once.
 *
 *     derive ──► changes on the overlay ── take ──► the newest value of each row ── put ──► the store, sorted
 *                    ▲                                     │  ▲                       │
 *                    └──────────── reads ──────────────────┘  │                       │
 *     redo ──► steps of a row ── wait ────────────────────────┴─────── what it was ◄──┘
 *
 * A row that is written a thousand times within a transaction is put once, and rows are put in the order of
 * their keys, so that a commit copies each page once.
 *
 * A step that needs the old row to compute the new one would look it up at once, in no order, and spend most of
 * its time on fetching a page that nobody has touched lately. So steps may wait until the row is put: then the
 * page is fetched once for both.
 *
 *   H1  There is at most one change of a key. Before a scan all rows are put (state.before_scan), because a
 *       scan would have to look at all of them.
 *   H2  A row's part of its table's digest was added before the row was taken. If the row has sums, it is
 *       added to them when the row is put: once, however often the row was set.
 *   H3  Nobody reads a row that waits: it is settled before. */
#ifndef CORE_STATE_GATHERED_H
#define CORE_STATE_GATHERED_H

#include "core/state/digests.h"
#include "core/state/overlay.h"

struct schema_type;
struct gathered_row;

/* Something to be done to a row, in memory of the set's. */
struct gathered_step {
    struct gathered_step *next;

    /* What the row becomes; data NULL: there is none, before or after. The value is in memory, or borrowed from
     * what stays. */
    int (*become)(struct gathered_step *step, struct gathered_row *row, pawl_bytes was, struct arena *memory,
                  pawl_bytes *ret_value, pawl_error *error);
};

struct gathered_row {
    struct row_change change; /* on the overlay, under all that is derived */
    uint8_t *room;            /* its own, for values */
    size_t room_size;
    const struct schema_type *type; /* for the one who sets it: the type that the value is known to fit */
    struct digests *sums;           /* or NULL; change.digest is then minus the row that the store has */
    struct gathered_step *first;    /* while change.waits */
    struct gathered_step *newest;
    uint32_t steps;
};

struct gathered {
    struct overlay overlay; /* the rows; and, while something is derived, its changes on top */
    struct changes rows;    /* of the memory below */
    struct arena memory;
    struct arena work;       /* of one row */
    uint64_t puts;           /* since it was cleared */
    struct put_watch *watch; /* is told of each row before it is put; NULL: nobody; the owner sets it */
    const pawl_allocator *alloc;
};

void gathered_init(struct gathered *gathered, const pawl_allocator *alloc);
void gathered_release(struct gathered *gathered);

/* Changes that lie on its overlay become rows, and leave it. PAWL_ENOMEM: the set is useless, clear it; so
 * it is after every failure below. */
int gathered_take(struct gathered *gathered, const struct changes *changes);

/* A row. A new one waits: the store was not asked for it. Its digest is added to sums when it is put, so sums
 * must not move until then. Nothing lies on top of the rows meanwhile. PAWL_ENOMEM. */
int gathered_row(struct gathered *gathered, pawl_bytes key, struct digests *sums,
                 struct gathered_row **ret_row);

/* Set the value of a row that does not wait; data NULL: it is removed. Copies. PAWL_ENOMEM. */
int gathered_set(struct gathered *gathered, struct gathered_row *row, pawl_bytes value);

/* One more step of a row that waits; the step lies in the set's memory. */
void gathered_add(struct gathered_row *row, struct gathered_step *step);

/* Look the row up in the store, and do the steps that wait. Errors of the store, and of the steps. */
int gathered_settle(struct gathered *gathered, pawl_store *store, struct gathered_row *row, pawl_error *error);

/* Put all rows into the store's transaction, and take them off the overlay. Errors of the store, and of the
 * steps; PAWL_ENOMEM. error says what. */
int gathered_put(struct gathered *gathered, pawl_store *store, pawl_error *error);

/* Forget everything; clear gives the memory back, reset keeps it for as much again. */
void gathered_clear(struct gathered *gathered);
void gathered_reset(struct gathered *gathered);

/* The memory that it has: what was put is forgotten with the rest. */
static inline size_t gathered_bytes(const struct gathered *gathered)
{
    return gathered->memory.held + gathered->work.held + gathered->overlay.newest.memory_size;
}

#endif
