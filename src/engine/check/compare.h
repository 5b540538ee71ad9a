/* engine/check/compare.h: a stored state, and one that was derived from the log just now: equal at the same offset?
 *
 * A side is one of the stores that a directory has of a shard: the live one, or the checkpoint. Of each table
 * are compared the digest that the side keeps, the digest of the rows that are really there, and the derived
 * one; where they differ, row by row. And the sequence storage, at its own offset. */
#ifndef ENGINE_CHECK_COMPARE_H
#define ENGINE_CHECK_COMPARE_H

#include <pawl/admin.h>

#include "core/project/cursor.h"
#include "core/schema/schema.h"
#include "core/state/position.h"

struct compare_side {
    const char *name; /* "the live store" */
    pawl_store *store;
    pawl_state_side *report;
    uint32_t partitions; /* of the directory */
    const struct schema *schema;
    const pawl_allocator *alloc;

    /* Of a partition. */
    uint16_t partition;
    pawl_reader *snapshot;
    struct position stored;
    uint64_t sequences_offset; /* up to which the sequence storage is complete */
};

/* One snapshot for a partition: it is a file that nobody may be writing to, or a moment of one that somebody
 * is. A position that is none is a difference. */
int compare_begin(struct compare_side *side, uint16_t partition, pawl_error *error);
void compare_end(struct compare_side *side);

/* The derived state has come to this position: compare what the side has at the same offset. */
int compare_at(struct compare_side *side, const struct position *derived, pawl_reader *reader);

/* The log has ended. */
void compare_log_ended(struct compare_side *side, uint64_t last);

/* The same of a generation of a lane, which stands where its cursor says. A cursor that is none is a
 * difference, and not known. */
int compare_read_cursor(struct compare_side *side, struct cursor *cursor, bool *ret_known, pawl_error *error);
int compare_lane(struct compare_side *side, const struct schema_lane *lane, const struct cursor *derived,
                 const struct cursor *stored, pawl_reader *reader);
void compare_lane_ended(struct compare_side *side, const struct schema_lane *lane, const struct cursor *stored,
                        uint64_t last);

#endif
