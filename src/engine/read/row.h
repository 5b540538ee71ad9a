/* engine/read/row.h: a row as its reader sees it: of a record, an entity or an event's object; the values of a
 * key; where a scan has stopped. */
#ifndef ENGINE_READ_ROW_H
#define ENGINE_READ_ROW_H

#include <pawl/pawl.h>

#include "base/arena.h"
#include "core/event/event.h"
#include "core/schema/row.h"

struct pawl_row {
    pawl_engine *engine;
    const struct schema_type *type; /* in the schema that the row is read with */
    struct row row;                 /* viewed, not opened */
    uint64_t id;
    uint64_t parent;
    uint64_t wsid; /* of a view's row */
    bool active;
    bool update;
    bool view; /* it is a view's: type is the view's own */
    pawl_bytes
        cleared; /* of an update, or a write of an operation: the places of fields that become null, u16 */

    const struct value
        *key; /* of a write of an operation: the values of its key, which the row does not have */

    /* Only of an object of an event's argument. */
    const struct pawl_event_source *event; /* NULL: it is not such an object */
    size_t behind;                         /* the event's cursor to the object behind this one */
    uint32_t index;
};

/* A stored record. The row has engine, type and id; this fills in the rest. Errors: as of row_borrow;
 * PAWL_ECORRUPT: it is not a record of this type. */
int row_of_record(uint64_t wsid, pawl_bytes value, struct pawl_row *row, pawl_error *error);

/* A row of an entity. Errors: as of row_borrow. */
int row_of_entity(pawl_engine *engine, const struct schema_type *entity, pawl_bytes bytes,
                  struct pawl_row *ret_row, pawl_error *error);

/* An object of an event. PAWL_ECORRUPT: the schema does not have its type. */
int row_of_object(pawl_engine *engine, const struct schema *schema, const struct event_object *object,
                  struct pawl_row *ret_row, pawl_error *error);

/* value.c: the values of a key, in the arena, checked against the entity's fields; strings are borrowed.
 * Errors: PAWL_EINVAL, PAWL_ENOMEM. */
int key_values(pawl_key key, const struct schema *schema, const struct schema_type *entity, struct arena *arena,
               struct value **ret_values, pawl_error *error);

/* The same of a view's key, or of its first fields: as many as there are, in values, which has room for them.
 * Nulls are allowed. PAWL_EINVAL. */
int key_first_values(pawl_key key, const struct schema *schema, const struct schema_type *view,
                     struct value *values, pawl_error *error);

/* cursor.c: the key of the last row of a scan, without table and workspace; of a view's, without table.
 * {NULL, 0}: a cursor of zeros. */
pawl_bytes scan_cursor_key(const pawl_cursor *cursor);

/* What the cursor is of, in a number that whoever moves it chooses: 0 is an entity. */
uint64_t scan_cursor_of(const pawl_cursor *cursor);

/* Copies the key. PAWL_ENOMEM: the cursor is as it was. */
int scan_cursor_move(pawl_cursor *cursor, const pawl_allocator *alloc, uint64_t of, pawl_bytes key);

#endif
