/* core/project/operation_rows.h: the rows of a logged operation one after the other, and what becomes of each.
 *
 *     begin ──► next: a change, and the key of its row ──► what the state has there ──► becomes: the new row
 *
 * The operation has the rows and values, so this reads no event and runs no expression. It gives exactly the
 * bytes that exploding gave. If something does not fit the schema or the rows in the state, the log or the
 * state is wrong. The caller reads and writes the state: operation_derive makes changes of the rows, redo
 * gathers them. */
#ifndef CORE_PROJECT_OPERATION_ROWS_H
#define CORE_PROJECT_OPERATION_ROWS_H

#include "core/project/operation.h"

/* What an operation does to one row. Borrows from the operation and its schema. */
struct operation_change {
    const struct schema_type *entity;
    enum action_kind kind;
    struct operation_row row;
};

struct operation_rows {
    struct operation_change change; /* at hand */
    pawl_bytes key;                 /* the whole key; borrowed until next */

    const struct operation *operation;
    const struct schema *schema;
    uint32_t generation;
    struct arena *memory;
    pawl_error *error;
    struct operation_walk walk;
    uint8_t *room; /* for the key */
    size_t room_size;
};

/* Copies nothing. What it takes from memory may be freed when the walk is over. */
void operation_rows_begin(struct operation_rows *rows, const struct operation *operation,
                          const struct schema *schema, uint32_t generation, struct arena *memory,
                          pawl_error *error);

/* PAWL_ENOTFOUND: there is none left. PAWL_ECORRUPT, PAWL_ENOMEM. */
int operation_rows_next(struct operation_rows *rows);

/* Check that what the change sets fits its entity. PAWL_ECORRUPT, PAWL_EVERSION. */
int operation_change_check(const struct operation_change *change, pawl_error *error);

/* Check that a row of the state belongs to the change's entity, as this schema or an earlier one has it.
 * PAWL_ECORRUPT, PAWL_EVERSION. */
int operation_change_fits(const struct operation_change *change, pawl_bytes was, pawl_error *error);

/* What the row becomes. Both the change and the row were checked. was.data NULL: there was no row. The value's
 * data NULL: the row is removed. The value is in memory. PAWL_ECORRUPT, PAWL_EVERSION; PAWL_ETOOBIG (a row
 * would be too large: it cannot have been logged); PAWL_ENOMEM. */
int operation_change_becomes(const struct operation_change *change, pawl_bytes was, struct arena *memory,
                             pawl_bytes *ret_value, pawl_error *error);

#endif
