/* core/project/explode.h: from what a projector wants to what it writes.
 *
 *     intents ── explode(state) ──► writes: rows and values     to be logged
 *                               ──► reads: what it looked at    to be validated at its turn (reads.h)
 *
 * An intent (core/state/acting.h) is an upsert, or an update or delete of the rows that a clause matches, or of
 * one row by its key. A declarative projector's actions are intents; a handler makes its own. Intents are
 * exploded one after the other, each on the state that the earlier ones leave: explode pushes their changes to
 * the state's overlay, which is the caller's own.
 *
 * Exploding is pure: the same intents on the same rows give the same writes. A run before its turn sees rows
 * that earlier operations may still change, so
 *
 *   E1  its writes count if its reads stand at its turn. Its changes never count, because other fields of a row
 *       may have changed meanwhile: operation_derive makes the changes again from the writes;
 *   E2  its failure does not count. Who gets PAWL_EINVAL or PAWL_ETOOBIG before the turn explodes again at the
 *       turn, and so does who gets PAWL_ETOOBIG from deriving the writes.
 *
 * Slices. A snapshot must not live long, and a clause may look at a million rows. So a run off the shard gives
 * a pause function, which explode calls every ACTING_SLICE rows. It may replace the snapshot by a fresh one.
 * Such a run did not happen at a single operation r: reads->at is the oldest, that of the first snapshot, and
 * nothing that it looked at may have changed since then. That is sound: if nothing of it changed between the
 * oldest snapshot and its turn, all snapshots agree on it.
 *
 * Memory. The keys that a clause matched and the writes are kept, but not all that was looked at. Keys and
 * writes are bounded by OPERATION_BYTES_MAX each; beyond it explode fails with PAWL_ETOOBIG. */
#ifndef CORE_PROJECT_EXPLODE_H
#define CORE_PROJECT_EXPLODE_H

#include "core/project/operation.h"
#include "core/project/reads.h"
#include "core/state/acting.h"

/* A declarative projector's actions as intents, in the arena. PAWL_ENOMEM. */
int intents_of(const struct schema_projector *projector, struct arena *memory,
               const struct intent **ret_intents, size_t *ret_count);

/* Whether exploding touches only a few rows, because all intents go by key. Such a projector is run at its
 * turn, where it needs no validation. */
bool intents_are_quick(const struct intent *intents, size_t count);

struct explosion {
    const struct derivation *derivation; /* the event, and the schema that the projector is run under */
    uint32_t generation;                 /* of the lane: which tables */
    const struct intent *intents;
    size_t intent_count;
    struct operation_maker *writes; /* reset by explode */
    struct reads *reads;            /* added to, not reset. NULL: it is its turn, nothing can change */

    /* Put a fresh snapshot into *reader, and release the old one; or leave it. Any status but PAWL_OK ends the
     * run with that status, and *reader is not used again. NULL: there is no pause. */
    int (*pause)(void *ctx, pawl_reader **reader);
    void *pause_ctx;
};

/* The changes are pushed to the state's overlay and lie in memory, as with derive. On failure nothing is
 * pushed. After a pause has replaced the reader, the state's own reader is no longer valid. Errors:
 * PAWL_EINVAL, PAWL_ETOOBIG (the handler's or the projector's fault; error names the intent); PAWL_ENOMEM;
 * PAWL_ECORRUPT; those of the store and of pause. */
int explode(const struct explosion *explosion, const struct state *state, struct arena *memory,
            struct changes *ret_changes, pawl_error *error);

/* Work out what a logged operation does to the state: the same changes that exploding gave, one for each row
 * that it names, in its order. They are pushed to the overlay; on failure nothing is. Errors: PAWL_ECORRUPT (it
 * does not fit its schema, or the state); PAWL_ETOOBIG (a row would be too large: it cannot have been logged);
 * PAWL_ENOMEM; those of the store. */
int operation_derive(const struct operation *operation, const struct schema *schema, uint32_t generation,
                     const struct state *state, struct arena *memory, struct changes *ret_changes,
                     pawl_error *error);

#endif
