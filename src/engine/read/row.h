/* engine/read/row.h: a row as its reader sees it, whatever it is a row of; and the values of a key. */
#ifndef ENGINE_READ_ROW_H
#define ENGINE_READ_ROW_H

#include <pawl/pawl.h>

#include "base/arena.h"
#include "core/event/event.h"
#include "core/schema/row.h"

struct pawl_row {
    pawl_engine *engine;
    const struct schema_type *type; /* of the schema that it is read with */
    struct row row;                 /* borrowed, not opened */
    uint64_t id;
    uint64_t parent;
    bool active;
    bool update;
    pawl_bytes cleared; /* of an update, or a write of an operation: places, u16 each */

    const struct value
        *key; /* of a write of an operation: the values of its key, which the row does not have */

    /* Of an object of an event's argument. */
    const struct pawl_event_source *event; /* NULL: it is none */
    size_t behind;                         /* cursor of the object behind it */
    uint32_t index;
};

/* A record, as it is stored: fills in what is stored to a row that has engine, type and id. Errors: as of
 * row_borrow; PAWL_ECORRUPT: it is no record of this type. */
int row_of_record(uint64_t wsid, pawl_bytes value, struct pawl_row *row, pawl_error *error);

/* A row of an entity. Errors: as of row_borrow. */
int row_of_entity(pawl_engine *engine, const struct schema_type *entity, pawl_bytes bytes,
                  struct pawl_row *ret_row, pawl_error *error);

/* An object of an event; its type is in the schema (PAWL_ECORRUPT). */
int row_of_object(pawl_engine *engine, const struct schema *schema, const struct event_object *object,
                  struct pawl_row *ret_row, pawl_error *error);

/* value.c: the values of a key, in the arena, checked against the entity's fields; strings are borrowed.
 * Errors: PAWL_EINVAL, PAWL_ENOMEM. */
int key_values(pawl_key key, const struct schema *schema, const struct schema_type *entity, struct arena *arena,
               struct value **ret_values, pawl_error *error);

/* The place where a scan has stopped: the row's own key, behind the workspace. {NULL, 0}: a cursor of zeros. */
pawl_bytes scan_cursor_key(const pawl_cursor *cursor);

/* Copies. PAWL_ENOMEM; then the cursor is as it was. */
int scan_cursor_move(pawl_cursor *cursor, const pawl_allocator *alloc, pawl_bytes key);

#endif
