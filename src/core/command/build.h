/* core/command/build.h: a request becomes an event.
 *
 *     check ──► number ──► write ──► derive
 *       │         │                    │
 *       ▼         ▼                    ▼
 *     refused   cancelled            cancelled          no number is consumed, nothing is written
 *
 * Everything that a request can get wrong is found by the check, which names the path in the request. Then the
 * sequencer opens an event and gives the numbers: the PLog offset, the workspace offset, then for each record
 * in the request's order, and after them for the argument and its children, an ID and the custom numbers that
 * its fields ask for. Raw IDs are replaced by those wherever they stand. The event is left open in the
 * sequencer: whoever called stages it, or cancels it. */
#ifndef CORE_COMMAND_BUILD_H
#define CORE_COMMAND_BUILD_H

#include <pawl/sequencer.h>

#include "core/command/request.h"
#include "core/state/overlay.h"

/* What a processor knows of the workspace at hand. */
struct workspace_facts {
    uint16_t kind;
    uint64_t last;   /* workspace offset; 0: there is no event yet */
    uint64_t record; /* last number of the O/W register; 0: none */
};

struct build {
    const struct schema *schema;
    const struct request *request;
    const struct workspace_facts *workspace;
    const struct state *state;
    pawl_sequencer *sequencer;
    pawl_wall now;
    size_t event_bytes_max;
    struct arena *memory; /* the event's body is taken from it, and what is needed on the way */
};

struct built {
    pawl_bytes body;
    uint64_t offset;
    uint64_t workspace_offset;
    uint64_t record;
};

/* Errors: PAWL_EINVAL, PAWL_ENOTFOUND (a record, a type), PAWL_EEXISTS (a singleton), PAWL_ETOOBIG, all naming
 * the path; PAWL_ENOMEM; those of pawl_sequencer_start and _next. No event is open then. */
int build_event(const struct build *build, struct built *ret_built, pawl_error *error);

#endif
