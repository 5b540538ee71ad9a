/* core/project/redo.h: operations of a log, applied one after the other to a store.
 *
 * A lane redoes the operations that its tables lack. A check of the tables redoes all operations.
 *
 *     redo_operation, redo_operation, ... ──► redo_put ──► the owner of the store commits
 *
 * After any failure the caller must abort the store's transaction, clear what was gathered, and read the cursor
 * again, which is ahead of the store then. */
#ifndef CORE_PROJECT_REDO_H
#define CORE_PROJECT_REDO_H

#include "core/project/cursor.h"
#include "core/project/explode.h"
#include "core/state/gathered.h"

struct redo {
    pawl_store *store;
    struct cursor *cursor;     /* ahead of the store's by what is not committed */
    struct gathered *gathered; /* rows that are not put yet; redo_put clears them */
    struct arena *memory;      /* for one operation at a time */
    uint8_t *scratch;          /* STATE_SCRATCH_BYTES */
    const struct schema *(*schema_at)(void *ctx, uint64_t position);
    void *ctx;
    bool at_once;                /* rows are read through the overlay between operations */
    const struct schema *schema; /* of the last operation */
    uint64_t rows;               /* written or removed so far */
};

/* Apply the next operation. Errors: PAWL_ECORRUPT, PAWL_EVERSION (the body is no operation, or not the next
 * one, or does not fit its schema or the tables); PAWL_ENOMEM; those of the store. error says what is wrong,
 * not where. */
int redo_operation(struct redo *redo, uint64_t number, pawl_place place, pawl_bytes body, pawl_error *error);

/* Put all rows since the last time into the store's transaction, with the cursor. Errors as above. They name
 * the operation, because a row may not have been read before. */
int redo_put(struct redo *redo, pawl_error *error);

/* The same, and commit: for the owner of the store. */
int redo_commit(struct redo *redo, pawl_error *error);

#endif
