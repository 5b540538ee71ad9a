/* core/command/build.h: a request becomes an event.
 *
 *     check ──► number ──► write ──► derive
 *       │         │                    │
 *       ▼         ▼                    ▼
 *     refused   cancelled            cancelled          no number is consumed, nothing is written
 *
 * The check finds everything that can be wrong with a request, and names the path in the request. Then the
 * sequencer opens an event and gives the numbers: first the PLog offset, then the workspace offset, then those
 * of the records in the request's order, then those of the argument and its children. Each of these objects
 * gets an ID, and a custom number for every field that asks for one. The new IDs replace the raw ones wherever
 * a raw ID stands. The event is left open in the sequencer: the caller stages it or cancels it. */
#ifndef CORE_COMMAND_BUILD_H
#define CORE_COMMAND_BUILD_H

#include <pawl/sequencer.h>

#include "core/command/request.h"
#include "core/event/event.h"
#include "core/state/overlay.h"

/* What a processor knows of the workspace at hand. */
struct workspace_facts {
    uint16_t kind;
    bool frozen;
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
    struct arena *memory; /* for the event's body and for temporary data */
};

struct built {
    pawl_bytes body;
    struct event event; /* what event_decode would make of the body */
    uint64_t offset;
    uint64_t workspace_offset;
    uint64_t record;
};

/* Errors: PAWL_EINVAL, PAWL_ENOTFOUND (a record, a type), PAWL_EEXISTS (a singleton), PAWL_ETOOBIG, all naming
 * the path; PAWL_ENOMEM; those of pawl_sequencer_start and _next. No event is open then. */
int build_event(const struct build *build, struct built *ret_built, pawl_error *error);

#endif
