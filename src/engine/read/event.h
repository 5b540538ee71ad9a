/* engine/read/event.h: an event as its reader sees it. Its JSON is made only if somebody asks for it. */
#ifndef ENGINE_READ_EVENT_H
#define ENGINE_READ_EVENT_H

#include "engine/json/json.h"
#include "engine/read/row.h"

struct pawl_event_source {
    pawl_engine *engine;
    const struct schema *schema; /* that it was made under */
    pawl_bytes body;
    struct event event;
    struct pawl_row argument; /* if it has one */
    struct json_out *out;     /* where its JSON goes; empty: not made yet */
    uint16_t partition;
    uint64_t offset;
};

/* Source and event borrow the body, and out, whose text is forgotten. Makes no JSON. Errors: PAWL_ECORRUPT,
 * PAWL_EVERSION. */
int event_show(pawl_engine *engine, uint16_t partition, uint64_t offset, pawl_bytes body, struct json_out *out,
               struct pawl_event_source *ret_source, pawl_event *ret_event, pawl_error *error);

#endif
