/* core/project/event_values.h: the values that an event has, as hashes, in the order of its objects and their fields.
 *
 * Two events that concern the same thing have a value in common: a customer, an order. Equal values have equal hashes,
 * whatever field of whatever object they are in; a value that is null, or not there, has none. */
#ifndef CORE_PROJECT_EVENT_VALUES_H
#define CORE_PROJECT_EVENT_VALUES_H

#include "core/event/event.h"
#include "core/schema/schema.h"

#define EVENT_VALUES_MAX 24 /* the first so many */

struct event_values {
    uint32_t kind; /* events of one kind have the same fields in the same places */
    uint64_t wsid;
    uint64_t hashes[EVENT_VALUES_MAX]; /* 0: none */
};

/* Of an event as bytes, with a schema that knows its types; what cannot be decoded has no values. */
void event_values_of(pawl_bytes event, const struct schema *schema, uint32_t projection,
                     struct event_values *ret_values);

#endif
