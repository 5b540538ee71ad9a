/* engine/read/event.h: an event as its reader sees it. Its JSON is made only if somebody asks for it. */
#ifndef ENGINE_READ_EVENT_H
#define ENGINE_READ_EVENT_H

#include "engine/json/json.h"
#include "engine/read/row.h"

struct pawl_event_source {
    pawl_engine *engine;
    const struct schema *schema; /* the one that it was made under */
    pawl_bytes body;
    struct event event;
    struct pawl_row argument; /* if the event has one */
    struct json_out *out;     /* where its JSON goes; empty: it was not made yet */
    uint16_t partition;
    uint64_t offset;
};

/* Open an event for its reader. Source and event borrow the body, and out, which is emptied. Makes no JSON.
 * Errors: PAWL_ECORRUPT, PAWL_EVERSION. */
int event_show(pawl_engine *engine, uint16_t partition, uint64_t offset, pawl_bytes body, struct json_out *out,
               struct pawl_event_source *ret_source, pawl_event *ret_event, pawl_error *error);

#endif
