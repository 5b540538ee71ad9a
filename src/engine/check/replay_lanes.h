/* engine/check/replay_lanes.h: derives the tables of lanes again from their logs, and compares them.
 *
 *     apply         operation logs ──► tables, compared with the stored ones at the offset that these have
 *     re-project    the same; and every operation is worked out again from its event, and compared with the one
 *                   that was logged: this finds a projector that depends on more than the event and the tables
 *
 * For each lane of the schema: the generation that serves, and the one that is being built. */
#ifndef ENGINE_CHECK_REPLAY_LANES_H
#define ENGINE_CHECK_REPLAY_LANES_H

#include "core/project/reproject.h"
#include "engine/check/compare.h"
#include "engine/node/node.h"

struct replay_lanes {
    pawl_engine *source;
    const struct schema_lane *only; /* NULL: all lanes */
    pawl_store *store;              /* where the derived tables go */
    uint16_t partition;
    uint64_t until;            /* the last event; 0: all */
    struct view_tables *views; /* of that store, refreshed; NULL: no views are kept */
    struct compare_side *sides;
    size_t side_count;
    bool reproject;
    pawl_lane_verdict *report;
    const pawl_allocator *alloc;
};

/* Check the lanes of the partition. The sides must have their snapshots. PAWL_OK even with differences. Errors:
 * as pawl_replay. */
int replay_lanes(struct replay_lanes *lanes, pawl_error *error);

#endif
