/* engine/checkpoint/lane_tables.h: a shard's checkpoint follows the operation logs of its lanes, too.
 *
 *     operation logs ── sweep ──► redo ──► the checkpoint's set ── with its next commit ──► rows and cursors
 *
 * So after a loss of power the tables of lanes are as near to the end of their logs as everything else. What is
 * followed is what the schema has: of each lane the generation that serves, and the one that is being built;
 * and what has ended, but entities are still read from. The rows of a generation that is gone go between
 * commits, a piece at a time, so that its size is no matter.
 *
 * It lives on the checkpointer's thread. */
#ifndef ENGINE_CHECKPOINT_LANE_TABLES_H
#define ENGINE_CHECKPOINT_LANE_TABLES_H

#include "core/project/redo.h"
#include "core/state/checkpoint.h"

struct pawl_engine;

/* A generation of a lane in a partition. */
struct followed {
    struct cursor cursor; /* ahead of the store by what is not committed */
    bool ahead;
    bool ended; /* no lane of the schema has it */
    bool over;  /* and nobody adds to its log any more */
    bool gone;  /* and nobody reads from it */
};

struct lane_tables {
    struct pawl_engine *engine;
    uint32_t shard;
    struct checkpoint *checkpoint;
    pawl_store *store;
    const struct schema *schema; /* which it was last looked at for */
    struct followed **followed;
    size_t count;
    size_t room;
    struct arena memory;
    uint8_t *scratch;
    const pawl_allocator *alloc;
};

/* PAWL_ENOMEM. Nothing is followed yet. */
int lane_tables_init(struct lane_tables *lanes, struct pawl_engine *engine, uint32_t shard, pawl_store *store);
void lane_tables_release(struct lane_tables *lanes);

/* See what is to be followed by now: .count logs. PAWL_ECORRUPT, PAWL_EVERSION: a cursor; those of the store;
 * PAWL_ENOMEM. */
int lane_tables_refresh(struct lane_tables *lanes, pawl_error *error);

/* A sweep over them, as a part of the checkpointer's. Errors of take and end: PAWL_ECORRUPT, PAWL_EVERSION (the
 * checkpoint contradicts a log, or a log itself); those of the store; PAWL_ENOMEM. */
void lane_tables_begin(struct lane_tables *lanes, pawl_sweep_stream *streams);
int lane_tables_take(struct lane_tables *lanes, size_t index, const pawl_entry *entry, pawl_place place,
                     pawl_error *error);
int lane_tables_end(struct lane_tables *lanes, const pawl_sweep_stream *streams, pawl_error *error);

/* Between commits, when the transaction is empty: a piece of what is gone, committed. ret_more: there may be
 * another. Errors: those of the store; PAWL_ENOMEM. */
int lane_tables_remove_rows(struct lane_tables *lanes, bool *ret_more);

/* Within a commit: a partition's cursors go into the transaction. After all of them; or after everything was
 * forgotten. */
int lane_tables_write(struct lane_tables *lanes, uint16_t partition);
void lane_tables_committed(struct lane_tables *lanes);
int lane_tables_forget(struct lane_tables *lanes, pawl_error *error);

#endif
