/* core/project/reads.h: what a run read, and whether that still stands when its turn comes.
 *
 * A run that read the state as operation r of its lane left it may be committed as number n, if no operation
 * between r and n changed what it read:
 *
 *     which rows     a clause over a workspace's rows of an entity stands unless one of these operations
 *                    inserted or deleted a row of that entity in that workspace, or set a field that the
 *                    clause reads. A range, whose rows were read, stands unless one of them did so, or set
 *                    any field
 *     which values   a row by its key, found or not, stands unless one of them touched that row
 *
 * A row that was promised (promise.h) is not among these: it stands if it is there at the turn as it was promised,
 * which whoever has the state compares. A clause or a range has read all promised rows of its workspace and entity.
 *
 * A bounded ring keeps what recent operations wrote. If r is older than the ring, the run is repeated.
 * Everything is compared by hash: a collision costs a repeat, never a wrong result.
 *
 *   R1  recent_writes_note is called once for each number, in order, with the changes as they are staged.
 *   R2  A lookup costs what the run read, not how much is in the ring.
 *   R3  Of every number above the floor all that it wrote is in the ring. */
#ifndef CORE_PROJECT_READS_H
#define CORE_PROJECT_READS_H

#include "base/arena.h"
#include "core/project/operation.h"
#include "core/project/promise.h"
#include "core/schema/expr.h"
#include "core/state/overlay.h"

struct read_rows {
    uint64_t hash;          /* of table and workspace */
    const uint64_t *fields; /* bits by place: fields that the clause reads; NULL: all fields */
    size_t words;
};

/* What one run read. */
struct reads {
    const pawl_allocator *alloc;
    uint64_t at;   /* r: the operation that the snapshot had come to, or the oldest of several */
    uint64_t *row; /* hashes of whole keys */
    size_t row_count, row_room;
    struct read_rows *rows;
    size_t rows_count, rows_room;
    struct arena fields;
    bool all; /* too much to remember: it stands only if nothing was written since */
    struct promise promise;
    uint64_t promised; /* a bit for each of its rows that was read */
};

#define READS_MAX ((size_t)65536) /* of each sort; beyond it only the flag all is set */

/* Allocates nothing. */
void reads_init(struct reads *reads, const pawl_allocator *alloc);
void reads_release(struct reads *reads);
void reads_reset(struct reads *reads, uint64_t at); /* the promise stays */

/* Note a read. row: by its whole key. rows: by a clause; where NULL: every row matches, so no field matters.
 * range: all fields of the rows. PAWL_ENOMEM: the run must fail. */
int reads_add_row(struct reads *reads, pawl_bytes key);
int reads_add_rows(struct reads *reads, uint32_t table, uint64_t wsid, const struct expr *where,
                   size_t field_count);
int reads_add_range(struct reads *reads, uint32_t table, uint64_t wsid);

/* Note all that others has, of rows and ranges; it must have no clauses (reads_add_rows), and no promise. */
int reads_add(struct reads *reads, const struct reads *others);

/* Keep only that something was read: from now on it stands only if nothing was written since. */
void reads_coarsen(struct reads *reads);

/* Its bytes. */
static inline size_t reads_held(const struct reads *reads)
{
    return reads->row_room * sizeof reads->row[0] + reads->rows_room * sizeof reads->rows[0]
           + reads->fields.held;
}

/* Which promised rows were read, a bit for each. */
static inline uint64_t reads_promised(const struct reads *reads)
{
    return reads->all ? UINT64_MAX : reads->promised;
}

/* Nothing was read. */
static inline bool reads_is_blind(const struct reads *reads)
{
    return !reads->all && reads->row_count == 0 && reads->rows_count == 0 && reads->promised == 0;
}

struct recent_writes;

/* capacity: a power of two, how many touched rows, and fields of workspaces, it remembers. All its memory is
 * allocated here: some 50 bytes each. PAWL_ENOMEM. */
int recent_writes_new(const pawl_allocator *alloc, uint32_t capacity, struct recent_writes **ret_recent);
void recent_writes_free(struct recent_writes *recent);

/* Forget everything; the next number noted will be next. */
void recent_writes_reset(struct recent_writes *recent, uint64_t next);

/* Note what an operation wrote. changes: those it was staged with, one for each of its rows, in its order, as
 * operation_derive and explode give them. Never fails: if there is no room, the oldest numbers are
 * forgotten. */
void recent_writes_note(struct recent_writes *recent, const struct operation *operation,
                        const struct changes *changes);

/* Whether everything that was read stands, with all noted operations above reads->at; but for promised rows. */
bool reads_stand(const struct reads *reads, const struct recent_writes *recent);

/* A quick look: if the two have no bit in common, nothing that was read is among what was written since the last call of
 * recent_writes_marks. */
uint64_t reads_marks(const struct reads *reads);
uint64_t recent_writes_marks(struct recent_writes *recent);

/* The last operation noted that wrote anything of what was read; 0: none that is remembered. */
uint64_t reads_last_writer(const struct reads *reads, const struct recent_writes *recent);

#endif
