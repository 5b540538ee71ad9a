/* core/command/request.h: what a command asks for, decoded: names are numbers, values have types.
 *
 * A request is made on the caller's thread, under the schema that was published then. It is processed on the
 * partition's shard, under the present schema. That is sound because a schema only grows: numbers of names and
 * places of fields keep their meaning (core/schema/schema.h).
 *
 *     argument    objects 0 ... argument_count - 1, each after its parent, the first being the root
 *     records     the others, in the order in which they were given
 *
 * A raw ID stands for a record that this command creates; any other ID is that of an existing record.
 *
 * The functions below do not check whether a request makes sense. That is decided in one place, when the
 * request is made into an event (core/command/build.h), and errors name the path in the request. */
#ifndef CORE_COMMAND_REQUEST_H
#define CORE_COMMAND_REQUEST_H

#include "base/arena.h"
#include "core/schema/schema.h"

#define REQUEST_OBJECTS_MAX 65535
#define REQUEST_NO_PARENT   UINT32_MAX

enum request_active { ACTIVE_UNSAID = 0, ACTIVE_YES = 1, ACTIVE_NO = 2 };

struct request_field {
    uint16_t place;
    struct value value; /* VALUE_NULL: make it null */
};

struct request_object {
    uint64_t id;
    uint16_t type;
    uint16_t container;        /* its place in the parent's type, plus 1; 0: none */
    pawl_bytes container_name; /* records: if it is not empty, it is looked up in the parent's type */
    uint32_t parent;           /* argument: the parent's index, or REQUEST_NO_PARENT */
    uint64_t parent_id;        /* records: raw or not; 0: none */
    enum request_active active;
    uint32_t field_first; /* into fields */
    uint32_t field_count;
};

struct request {
    uint64_t wsid;
    uint16_t command;
    uint16_t kind; /* of the workspace to create, when the command is NAME_WS_CREATE */
    bool expects;  /* the command is for a workspace whose last offset is expected */
    uint64_t expected;
    pawl_bytes actor;
    pawl_bytes correlation;
    pawl_bytes causation;
    pawl_bytes key; /* of idempotency; empty: none */

    struct request_object *objects;
    size_t object_count;
    size_t argument_count;
    struct request_field *fields;
    size_t field_count;

    struct arena *memory; /* for everything above */
    size_t object_room;
    size_t field_room;
};

/* memory is borrowed for as long as the request is used. */
void request_init(struct request *request, struct arena *memory);

/* Add an object; fields set from then on are its own. Arguments are added before records. PAWL_ETOOBIG: more
 * than REQUEST_OBJECTS_MAX. PAWL_ENOMEM. */
int request_add_argument(struct request *request, uint64_t id, uint16_t type, uint32_t parent,
                         uint16_t container);
int request_add_record(struct request *request, uint64_t id, uint16_t type);

/* Set a field of the last object. Copies bytes. PAWL_ENOMEM; PAWL_EEXISTS: it was set before. */
int request_set(struct request *request, uint16_t place, struct value value);

/* A digest of everything that the request asks for. Not part of it: the actor and the other texts, the key, the
 * expected offset, and the order of an object's fields. Of a container that has a name, only the name counts.
 * Digests are stored in events, so the digest of a request must never change. */
uint64_t request_digest(const struct request *request);

/* "$.argument.lines[2].qty", "$.records[0].fields.cents": where a user wrote it. place -1: the object itself.
 * Cut to fit. text has REQUEST_PATH_MAX bytes; returns it. */
#define REQUEST_PATH_MAX 256
char *request_path(const struct request *request, const struct schema *schema, size_t object, int place,
                   char *text);

#endif
