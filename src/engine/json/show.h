/* engine/json/show.h: answers, events, operations, records and rows as JSON. docs/API.md is the manual.
 *
 * Each function adds one line to the text, without a newline. A null value is left out, except where an event
 * has made it null. On failure the text is as it was. Errors: PAWL_ECORRUPT, PAWL_EVERSION: the bytes are
 * damaged, or not of this schema; PAWL_ENOMEM. */
#ifndef ENGINE_JSON_SHOW_H
#define ENGINE_JSON_SHOW_H

#include "core/schema/schema.h"
#include "core/state/key.h"
#include "engine/json/out.h"

/* An event, and where it lies. */
struct json_source {
    uint16_t partition;
    uint64_t offset;
    const struct schema *schema; /* the one that the event was made under, or a later one */
    pawl_bytes body;
};

/* The answer to a command. IDs come in the order in which they were given: those of the records, then those of
 * the argument. repeated: the event was made by an earlier command with the same key. */
int json_answer(struct json_out *out, const struct json_source *source, bool repeated, pawl_error *error);

int json_event(struct json_out *out, const struct json_source *source, pawl_error *error);

/* A stored record. parent: the type of its parent; NULL: not known. If several types could be its parent, and
 * they have different names for its container, the container is left out unless parent is given. */
int json_record(struct json_out *out, const struct schema *schema, uint64_t id, const struct record_row *record,
                const struct schema_type *parent, pawl_error *error);

/* An operation of a lane in this partition, under the schema that it names: docs/API.md. */
struct operation;
int json_operation(struct json_out *out, uint16_t partition, const struct schema *schema,
                   const struct operation *operation, pawl_error *error);

/* The key of a row, as an object with its fields. key: the row's own, behind the workspace. */
int json_show_key(struct json_out *out, const struct schema *schema, const struct schema_type *entity,
                  pawl_bytes key, pawl_error *error);

/* The same in words, for messages: "record 200017", "row {"customer":"Ada"}"; a key that would take more than
 * size bytes by how many it has. type: of the row, a record's or an entity's; NULL: not known. */
void json_row_words(const struct schema *schema, const struct schema_type *type, pawl_bytes key,
                    const pawl_allocator *alloc, char *text, size_t size);

/* The fields of a row of this type, an entity's for instance. */
int json_row(struct json_out *out, const struct schema *schema, const struct schema_type *type, pawl_bytes row,
             pawl_error *error);

/* A row of a view: {"wsid":7,"id":200017, and its fields}. wsid, id: 0 is not shown. A field of the view that
 * has one of these names is shown in its place. */
int json_view_row(struct json_out *out, const struct schema *schema, const struct schema_type *view,
                  uint64_t wsid, uint64_t id, pawl_bytes row, pawl_error *error);

#endif
