/* core/view/unique.h: unique views as a constraint on the commands of one partition.
 *
 *     event's changes ──► keys that it gives up ──► all taken off ──┬──► nobody else has them: staged
 *       (after derive)    keys that it takes    ──► looked up   ────┴──► PAWL_EEXISTS
 *
 * A unique view binds in a partition from the commit on that completes its coverage there, whatever group0 says
 * of it, unless it has failed. Then no command may give two records of a workspace the same key. A record with
 * a null in its key is not held to that.
 *
 * The view's rows are those of applied events. What staged events add to them and remove lies on an overlay of
 * its own, in chains by the hash of the key's fields. The changes lie in the memory of the event's batch, and
 * leave when the event is applied or undone.
 *
 * Invariants
 *   U1  Whether a row has a key: its newest change in the chain says so; if there is none, the view's row does.
 *       So it does not matter whether the store has an event already while its changes are still here.
 *   U2  An event's removals are older than its additions: two records may exchange their keys.
 *   U3  An addition that is marked was checked: no other row had the key then. So whoever has it now is that
 *       row, or a newer change says.
 *   U4  While it is not known which views bind, or not all staged events are noted, nothing is checked: the
 *       caller binds and notes again first. */
#ifndef CORE_VIEW_UNIQUE_H
#define CORE_VIEW_UNIQUE_H

#include "core/view/tables.h"

struct bound_view {
    const struct view *view; /* borrowed from the tables while their version is the same */
    uint32_t base;
    uint32_t table;
};

struct unique {
    struct view_tables *tables; /* NULL: there are no views */
    uint16_t partition;
    struct bound_view *bound; /* by base */
    size_t count;
    uint64_t version;      /* of the tables, when it was found which views bind */
    bool noted;            /* all staged events are on the overlay (U4); the caller sets it */
    struct overlay staged; /* keys: a whole key of the view; value.data NULL: given up */
    const pawl_allocator *alloc;
};

void unique_init(struct unique *unique, struct view_tables *tables, uint16_t partition,
                 const pawl_allocator *alloc);
void unique_release(struct unique *unique);

/* Whether it is known which views bind, and all staged events are noted (U4). */
static inline bool unique_is_current(const struct unique *u)
{
    return !u->tables || (u->version == u->tables->version && u->noted);
}

/* Find out which views bind now. The tables have been refreshed. If they are others than before, the overlay is
 * empty and noted is false: the caller notes all staged events, oldest first. ret_more: a view binds that did
 * not. Errors: those of the store, PAWL_ENOMEM. */
int unique_bind(struct unique *unique, bool *ret_more, pawl_error *error);

/* Put on the overlay what a staged event adds and removes, checked or not. state: the event's changes lie on
 * its overlay. ret_keys lie in memory; take them off by unique_remove. unique_check: PAWL_EEXISTS, naming the view
 * and the other record. Both: only while it is current; PAWL_ENOMEM; those of the store. After an error nothing
 * of the event is on the overlay. */
int unique_check(struct unique *unique, const struct state *state, const struct changes *changes,
                 struct arena *memory, struct changes *ret_keys, pawl_error *error);
int unique_note(struct unique *unique, const struct state *state, const struct changes *changes,
                struct arena *memory, struct changes *ret_keys, pawl_error *error);

static inline void unique_remove(struct unique *u, struct changes *keys)
{
    if (keys->first)
        overlay_remove(&u->staged, keys);
    *keys = (struct changes){0};
}

/* Whether the rows of a view's table in a partition keep what it promises. PAWL_EEXISTS: two rows are equal;
 * the words name them. PAWL_ENOTFOUND: there is no such table here; PAWL_EBUSY: it does not cover the partition;
 * errors of the store. */
int unique_verdict(struct view_tables *tables, uint32_t table, uint16_t partition, pawl_error *error);

#endif
