/* core/project/explode.h: from what a projector wants to what it writes.
 *
 *     intents ── explode(state) ──► writes: rows and values     to be logged
 *                               ──► reads: what it looked at    to be validated at its turn (recent.h)
 *
 * An intent is an upsert, or an update or delete of the rows that a clause matches, or of one row by its key.
 * Its expressions see the event, and the row at hand. A declarative projector's actions are intents; a handler
 * makes its own. Intents are exploded one after the other, each on the state that those before it have left:
 * they are pushed to the state's overlay, which is the caller's own.
 *
 * Exploding is pure: the same intents on the same rows give the same writes. */
#ifndef CORE_PROJECT_EXPLODE_H
#define CORE_PROJECT_EXPLODE_H

#include "core/project/operation.h"
#include "core/project/reads.h"
#include "core/state/derive.h"

struct intent_set {
    uint16_t field;
    const struct expr *expr; /* NULL: value */
    struct value value;
};

struct intent {
    enum action_kind kind;
    const struct schema_type *entity;
    const struct expr *const *key_exprs; /* for each of the key's fields; or NULL */
    const struct value *key;             /* the same as values; both NULL: where says which rows */
    const struct intent_set *sets;
    size_t set_count;
    const struct expr *where; /* NULL: all of the workspace's rows */
};

/* A declarative projector's actions as intents, in the arena. PAWL_ENOMEM. */
int intents_of(const struct schema_projector *projector, struct arena *memory,
               const struct intent **ret_intents, size_t *ret_count);

/* Whether exploding costs no more than a few rows: all by key. Such a projector is run at its turn, where it
 * needs no validation. */
bool intents_are_quick(const struct intent *intents, size_t count);

struct explosion {
    const struct derivation *derivation; /* the event, and the schema that the projector is run under */
    uint32_t generation;                 /* of the lane: which tables */
    const struct intent *intents;
    size_t intent_count;
    struct operation_maker *writes;
    struct reads *reads; /* NULL: it is its turn, nothing can change any more */
};

/* The changes are pushed to the state's overlay and lie in memory, as derive does. When it fails nothing is
 * pushed. Errors: PAWL_EINVAL, PAWL_ETOOBIG (the handler's or the projector's fault; error names the intent);
 * PAWL_ENOMEM; PAWL_ECORRUPT; those of the store. */
int explode(const struct explosion *explosion, const struct state *state, struct arena *memory,
            struct changes *ret_changes, pawl_error *error);

/* What a logged operation does to the state: the same changes that exploding it gave. Pushed to the overlay.
 * PAWL_ECORRUPT (it does not fit its schema); PAWL_ENOMEM; those of the store. */
int operation_derive(const struct operation *operation, const struct schema *schema, uint32_t generation,
                     const struct state *state, struct arena *memory, struct changes *ret_changes,
                     pawl_error *error);

#endif
