/* engine/check/replay_lanes.h: what lanes have written, derived again from their logs, and compared.
 *
 *     apply         operation logs ──► tables, compared with those that are stored, where each of them stands
 *     re-project    the same; and every operation is worked out again from its event, and compared with the one
 *                   that was logged: this finds what depended on more than the event and the tables
 *
 * Of every lane that the schema has: the generation that serves, and the one that is being built. */
#ifndef ENGINE_CHECK_REPLAY_LANES_H
#define ENGINE_CHECK_REPLAY_LANES_H

#include "core/project/reproject.h"
#include "engine/check/compare.h"
#include "engine/node/node.h"

struct replay_lanes {
    pawl_engine *source;
    const struct schema_lane *only; /* NULL: every one */
    pawl_store *store;              /* which the tables are derived into */
    uint16_t partition;
    uint64_t until; /* the last event; 0: all */
    struct compare_side *sides;
    size_t side_count;
    bool reproject;
    pawl_lane_verdict *report;
    const pawl_allocator *alloc;
};

/* Of the partition, with the sides' snapshots taken. PAWL_OK even with differences. Errors: as pawl_replay.
 */
int replay_lanes(struct replay_lanes *lanes, pawl_error *error);

#endif
