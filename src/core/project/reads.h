/* core/project/reads.h: what a run looked at, and whether that still stands when its turn comes.
 *
 * A run at operation r of its lane, as its snapshot says, may be committed as number n if no operation between
 * them changed what it looked at:
 *
 *     which rows     a clause or a range over a workspace's rows of an entity: stands unless one of them
 * inserted or deleted a row of that entity in that workspace, or set a field that the clause reads which values
 * a row by its key, found or not: stands unless one of them touched that row
 *
 * What recent operations wrote is kept in a bounded ring, newest numbers only; if r is older than the ring, the
 * run is repeated. Rows are compared by hash: two that collide cost a repeat, never a wrong result.
 *
 *   R1  recent_note is called once for each number, in order, with the changes as they are staged.
 *   R2  A lookup costs what the run looked at, not how much is in the ring. */
#ifndef CORE_PROJECT_READS_H
#define CORE_PROJECT_READS_H

#include "base/map.h"
#include "core/schema/expr.h"
#include "core/state/overlay.h"

struct read_row {
    uint64_t hash; /* of the whole key */
};

struct read_rows {
    uint64_t hash;          /* of table and workspace */
    const uint64_t *fields; /* bits by place: those that the clause reads; NULL: every one */
    size_t words;
};

/* What one run looked at. */
struct reads {
    const pawl_allocator *alloc;
    uint64_t at; /* r: the operation that the snapshot had come to */
    struct read_row *row;
    size_t row_count, row_room;
    struct read_rows *rows;
    size_t rows_count, rows_room;
    struct arena fields;
    bool all; /* too much to remember: only an unchanged lane will do */
};

#define READS_MAX ((size_t)65536) /* rows; then all */

void reads_init(struct reads *reads, const pawl_allocator *alloc);
void reads_release(struct reads *reads);
void reads_reset(struct reads *reads, uint64_t at);

/* PAWL_ENOMEM. where NULL: membership only (no field matters). */
int reads_add_row(struct reads *reads, pawl_bytes key);
int reads_add_rows(struct reads *reads, uint32_t table, uint64_t wsid, const struct expr *where,
                   size_t field_count);

struct recent;

/* operations: a power of two, how many numbers back; changes: how many rows they may have touched together. */
int recent_new(const pawl_allocator *alloc, uint32_t operations, uint32_t changes, struct recent **ret_recent);
void recent_free(struct recent *recent);

/* Forget all; the next number noted is next. */
void recent_reset(struct recent *recent, uint64_t next);

/* What number wrote. Of each change: the key, and what fields it set if the row was there before and is there
 * after. Never fails: what does not fit makes the ring shorter. */
void recent_note(struct recent *recent, uint64_t number, const struct changes *changes);

/* Whether everything that was looked at stands, with all noted operations above reads->at. */
bool recent_stands(const struct recent *recent, const struct reads *reads);

#endif
