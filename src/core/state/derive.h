/* core/state/derive.h: what an event does to the state.
 *
 *     derive(event, its schema, state) ──► changes
 *
 * One pure function, of the event's bytes, the schema that the event names and the rows it reads: no clock, no
 * chance, no configuration. So the processor, which derives before the event is durable, the checkpoint store,
 * which derives again behind it, and every replay and replica come to the same bytes.
 *
 * What an event writes, in this order:
 *   1. its workspace's row, if it creates one;
 *   2. the row of the workspace's log;
 *   3. the records it creates or updates (those of O types live in the event only);
 *   4. what the synchronous projectors say, each seeing the changes before its own.
 *
 * Everything that can fail fails here, before the event is in the log: an expression that overflows, a row that
 * is too large. */
#ifndef CORE_STATE_DERIVE_H
#define CORE_STATE_DERIVE_H

#include "core/event/event.h"
#include "core/schema/schema.h"
#include "core/state/overlay.h"

struct derivation {
    uint64_t offset; /* the event's, in the PLog */
    const struct event *event;
    const struct schema *schema; /* the one at the event's schema position */
};

/* The changes are pushed to the state's overlay, and lie in memory; their number is at least one. When it fails
 * nothing is pushed.
 * Errors: PAWL_EINVAL, PAWL_ETOOBIG (a projector cannot do what it should: error names it; the command is to be
 * refused); PAWL_ECORRUPT (the event does not fit its schema or the state, which only a wrong state explains);
 * PAWL_ENOMEM; those of the store. */
int derive(const struct derivation *derivation, const struct state *state, struct arena *memory,
           struct changes *ret_changes, pawl_error *error);

#endif
