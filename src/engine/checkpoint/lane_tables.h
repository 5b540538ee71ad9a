/* engine/checkpoint/lane_tables.h: a shard's checkpoint follows the operation logs of its lanes, too.
 *
 *     operation logs ── sweep ──► redo ──► the checkpoint's set ── with its next commit ──► rows and cursors
 *
 * So after a loss of power the tables of lanes are as near to the end of their logs as everything else. It
 * follows the generations that the schema names, of each lane the one that serves and the one that is being
 * built; and generations that have ended, while entities are still read from them. Rows of a generation that
 * nobody needs are removed between commits, a piece at a time, so it does not matter how many they are.
 *
 * An operation log that is damaged or was deleted is not read any more. Its lane is refused, and the tables stay as they
 * are until nobody needs them; everything else goes on.
 *
 * It lives on the checkpointer's thread. */
#ifndef ENGINE_CHECKPOINT_LANE_TABLES_H
#define ENGINE_CHECKPOINT_LANE_TABLES_H

#include "core/project/redo.h"
#include "core/state/checkpoint.h"

struct pawl_engine;

/* A generation of a lane in a partition. Each of the last three includes the one before it. */
struct followed {
    struct cursor cursor; /* it counts what is not committed, too */
    bool ahead;           /* the cursor is ahead of the store's */
    bool ended;           /* no lane of the schema names it */
    bool over;            /* nobody adds to its log any more */
    bool gone;            /* nobody reads its rows any more: they are removed */
};

struct lane_tables {
    struct pawl_engine *engine;
    uint32_t shard;
    struct checkpoint *checkpoint;
    pawl_store *store;
    const struct schema *schema; /* by which the list was last made */
    struct followed **followed;
    size_t read; /* of them: the first so many are read, the others' logs are damaged */
    size_t count;
    size_t room;
    struct arena memory;
    uint8_t *scratch;
    const pawl_allocator *alloc;
};

/* PAWL_ENOMEM. Nothing is followed yet. */
int lane_tables_init(struct lane_tables *lanes, struct pawl_engine *engine, uint32_t shard, pawl_store *store);
void lane_tables_release(struct lane_tables *lanes);

/* Add the generations that a new schema names; .read is the number of logs to read. PAWL_ECORRUPT,
 * PAWL_EVERSION: a cursor is not valid; those of the store; PAWL_ENOMEM. */
int lane_tables_refresh(struct lane_tables *lanes, pawl_error *error);

/* The operation logs' share of the checkpointer's sweep. Errors of take and end: PAWL_ECORRUPT, PAWL_EVERSION
 * (the checkpoint contradicts a log, or a log itself); those of the store; PAWL_ENOMEM. */
void lane_tables_begin(struct lane_tables *lanes, pawl_sweep_stream *streams);
int lane_tables_take(struct lane_tables *lanes, size_t index, const pawl_entry *entry, pawl_place place,
                     pawl_error *error);
int lane_tables_end(struct lane_tables *lanes, const pawl_sweep_stream *streams, pawl_error *error);

/* Instead of end: if the sweep has failed because one of the logs is damaged, that one is read no more, and this returns
 * its stream; otherwise NULL. */
const pawl_sweep_stream *lane_tables_leave(struct lane_tables *lanes, const pawl_sweep_stream *streams);

/* Between commits, when the transaction is empty: remove a piece of the rows of generations that are gone, and
 * commit. *ret_more: there may be more of them. Errors: those of the store; PAWL_ENOMEM. */
int lane_tables_remove_rows(struct lane_tables *lanes, bool *ret_more);

/* write: within a commit, put a partition's cursors into the transaction. committed: the commit is done.
 * forget: what was not committed is lost, so read the cursors again. */
int lane_tables_write(struct lane_tables *lanes, uint16_t partition);
void lane_tables_committed(struct lane_tables *lanes);
int lane_tables_forget(struct lane_tables *lanes, pawl_error *error);

#endif
