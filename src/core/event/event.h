/* core/event/event.h: what an event says, behind the numbers that the envelope shows. docs/FORMAT.md shows the
 * same for users.
 *
 *      0  version      u8    1
 *      1  zero         u8
 *      2  command      u16
 *      4  objects      u32   n
 *      8  argument     u32   the first so many are the argument and its children, each after its parent
 *     12  zero         u32
 *     16  schema       u64   position of the schema that it was made under
 *     24  time         i64   nanoseconds since 1970 UTC: a stamp
 *     32  record       u64   last number of the workspace's O/W register, this event's included; 0: none yet
 *     40  digest       u64   of what was asked, so that a repeated key can be told from a stolen one
 *     48  sizes        u8 each: actor, correlation, causation, key
 *     52  texts        their bytes
 *         objects      n of them
 *
 * An object:
 *
 *      0  op           u8    1 create, 2 update
 *      1  flags        u8    1: it is active afterwards; 2: the event says so (of an update)
 *      2  type         u16
 *      4  raw          u16   the placeholder it had in the request; 0: none
 *      6  container    u16   its place in the parent's type, plus 1; 0: none
 *      8  id           u64
 *     16  parent       u64   0: none
 *     24  size         u32   of the row
 *     28  cleared      u16   as many places follow, u16 each, ascending: fields that an update makes null
 *     30  zero         u16
 *         cleared, row       a row of an update holds the fields that it changes
 *
 * So the answer to the command can be made again from the event alone. */
#ifndef CORE_EVENT_EVENT_H
#define CORE_EVENT_EVENT_H

#include "core/event/envelope.h"

#define EVENT_VERSION     1
#define EVENT_FIXED       ((size_t)52)
#define EVENT_OBJECT      ((size_t)32)
#define EVENT_TEXT_MAX    ((size_t)255) /* of each of actor, correlation, causation, key */
#define EVENT_OBJECTS_MAX ((size_t)65535)

enum event_op { EVENT_CREATE = 1, EVENT_UPDATE = 2 };

/* Everything but the numbers and the objects. */
struct event_head {
    uint16_t command;
    uint32_t object_count;
    uint32_t argument_count;
    uint64_t schema;
    pawl_wall time;
    uint64_t record;
    uint64_t digest;
    pawl_bytes actor;
    pawl_bytes correlation;
    pawl_bytes causation;
    pawl_bytes key;
};

struct event_object {
    enum event_op op;
    bool active;
    bool says_active;
    uint16_t type;
    uint16_t raw;
    uint16_t container;
    uint64_t id;
    uint64_t parent;
    const uint8_t *cleared; /* u16 each: event_cleared */
    size_t cleared_count;
    pawl_bytes row; /* not yet checked: that takes its type */
};

/* An event that was decoded. Borrows from the body. */
struct event {
    struct envelope envelope;
    struct event_head head;
    pawl_bytes objects;
};

size_t event_head_size(const struct event_head *head);
size_t event_object_size(size_t cleared_count, size_t row_size);

/* Write a head, or all of an object but its row and cleared places, to at; where the next byte goes is
 * returned. The sizes are those above. */
uint8_t *event_head_write(const struct event_head *head, uint8_t *at);
uint8_t *event_object_write(const struct event_object *object, uint8_t *at);

/* Checks everything it hands out, save rows. PAWL_EVERSION; PAWL_ECORRUPT, naming the byte. */
int event_decode(pawl_bytes body, struct event *ret_event, pawl_error *error);

/* Visit the objects of a decoded event: start with *cursor = 0, until false. */
bool event_next(const struct event *event, size_t *cursor, struct event_object *ret_object);

uint16_t event_cleared(const struct event_object *object, size_t i);

/* The numbers that the event took from a sequence; a count of 0 if it took none. */
struct event_numbers event_numbers_of(const struct event *event, uint16_t seq);

#endif
