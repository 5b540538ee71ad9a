/* core/project/reads.h: what a run looked at, and whether that still stands when its turn comes.
 *
 * A run at operation r of its lane, as its snapshot says, may be committed as number n if no operation between
 * them changed what it looked at:
 *
 *     which rows     a clause over a workspace's rows of an entity: stands unless one of them inserted or
 *                    deleted a row of that entity in that workspace, or set a field that the clause reads; a
 *                    range, whose rows were read, unless one of them set any field
 *     which values   a row by its key, found or not: stands unless one of them touched that row
 *
 * What recent operations wrote is kept in a bounded ring, newest numbers only; if r is older than the ring, the
 * run is repeated. Everything is compared by hash: what collides costs a repeat, never a wrong result.
 *
 *   R1  recent_note is called once for each number, in order, with the changes as they are staged.
 *   R2  A lookup costs what the run looked at, not how much is in the ring.
 *   R3  Of every number above the floor all that it wrote is in the ring. */
#ifndef CORE_PROJECT_READS_H
#define CORE_PROJECT_READS_H

#include "base/arena.h"
#include "core/project/operation.h"
#include "core/schema/expr.h"
#include "core/state/overlay.h"

struct read_rows {
    uint64_t hash;          /* of table and workspace */
    const uint64_t *fields; /* bits by place: those that the clause reads; NULL: every one */
    size_t words;
};

/* What one run looked at. */
struct reads {
    const pawl_allocator *alloc;
    uint64_t at;   /* r: the operation that the snapshot had come to, or the oldest of several */
    uint64_t *row; /* hashes of whole keys */
    size_t row_count, row_room;
    struct read_rows *rows;
    size_t rows_count, rows_room;
    struct arena fields;
    bool all; /* too much to remember: only a lane that wrote nothing since will do */
};

#define READS_MAX ((size_t)65536) /* of each sort; then all */

/* Allocates nothing. */
void reads_init(struct reads *reads, const pawl_allocator *alloc);
void reads_release(struct reads *reads);
void reads_reset(struct reads *reads, uint64_t at);

/* A row by its whole key; a clause (where NULL: every row matches, so no field matters); a range, whose rows
 * were read. PAWL_ENOMEM: it must be taken as failed. */
int reads_add_row(struct reads *reads, pawl_bytes key);
int reads_add_rows(struct reads *reads, uint32_t table, uint64_t wsid, const struct expr *where,
                   size_t field_count);
int reads_add_range(struct reads *reads, uint32_t table, uint64_t wsid);

/* Its bytes. */
static inline size_t reads_held(const struct reads *reads)
{
    return reads->row_room * sizeof reads->row[0] + reads->rows_room * sizeof reads->rows[0]
           + reads->fields.held;
}

/* Nothing was looked at. */
static inline bool reads_is_blind(const struct reads *reads)
{
    return !reads->all && reads->row_count == 0 && reads->rows_count == 0;
}

struct recent;

/* capacity: a power of two, how many touched rows, and fields of workspaces, it remembers. All its memory is
 * taken here: some 50 bytes each. PAWL_ENOMEM. */
int recent_new(const pawl_allocator *alloc, uint32_t capacity, struct recent **ret_recent);
void recent_free(struct recent *recent);

/* Forget all; the next number noted is next. */
void recent_reset(struct recent *recent, uint64_t next);

/* What an operation wrote, and the changes that it was staged with: one for each of its rows, in its order, as
 * operation_derive and explode give them. Never fails: what does not fit makes the ring shorter. */
void recent_note(struct recent *recent, const struct operation *operation, const struct changes *changes);

/* Whether everything that was looked at stands, with all noted operations above reads->at. */
bool recent_stands(const struct recent *recent, const struct reads *reads);

#endif
