/* core/project/redo.h: operations of a log, applied one after the other to a store.
 *
 * A lane does it with what its tables lack, a check of the tables with all there is.
 *
 *     redo_operation, redo_operation, ... ──► redo_put ──► whoever owns the store commits
 *
 * After any failure the store's transaction is to be aborted, what was gathered to be cleared, and the cursor,
 * which is ahead of the store then, to be read again. */
#ifndef CORE_PROJECT_REDO_H
#define CORE_PROJECT_REDO_H

#include "core/project/cursor.h"
#include "core/project/explode.h"
#include "core/state/gathered.h"

struct redo {
    pawl_store *store;
    struct cursor *cursor;     /* the store's, and ahead of it by what is not committed */
    struct gathered *gathered; /* rows that are not put yet; cleared by a commit */
    struct arena *memory;      /* for one operation at a time */
    uint8_t *scratch;          /* STATE_SCRATCH_BYTES */
    const struct schema *(*schema_at)(void *ctx, uint64_t position);
    void *ctx;
    bool at_once;                /* whether rows are read, through the overlay, between operations */
    const struct schema *schema; /* of the last operation */
    uint64_t rows;               /* written or removed so far */
};

/* Errors: PAWL_ECORRUPT, PAWL_EVERSION (it is none, or not the next one, or does not
 * fit its schema or the tables); PAWL_ENOMEM; those of the store. error says what, not where. */
int redo_operation(struct redo *redo, uint64_t number, pawl_place place, pawl_bytes body, pawl_error *error);

/* All since the last time, and the cursor with it. Errors as above, which name the operation then, because a row
 * may be looked at no sooner. */
int redo_put(struct redo *redo, pawl_error *error);

/* The same, and committed, for whoever owns the store. */
int redo_commit(struct redo *redo, pawl_error *error);

#endif
