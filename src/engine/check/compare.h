/* engine/check/compare.h: compares a stored state with one that was just derived from the log, at the same
 * offset.
 *
 * A side is one of the two stores of a shard: the live one, or the checkpoint. For each table three digests are
 * compared: the one that the side keeps, that of the side's rows, and the derived one. Where they differ, the
 * rows are compared one by one. The sequence storage is compared too, at its own offset; so are views
 * (compare_views.h). */
#ifndef ENGINE_CHECK_COMPARE_H
#define ENGINE_CHECK_COMPARE_H

#include <pawl/admin.h>

#include "core/project/cursor.h"
#include "core/schema/schema.h"
#include "core/state/position.h"
#include "core/view/tables.h"

struct compare_side {
    const char *name; /* "the live store" */
    pawl_store *store;
    pawl_state_side *report;
    uint32_t partitions; /* of the directory */
    const struct schema *schema;
    const pawl_allocator *alloc;
    bool elsewhere; /* it was made from a copy of the log: entries have other places there */

    /* Of the partition that is compared now. */
    uint16_t partition;
    pawl_reader *snapshot;
    struct position stored;
    uint64_t sequences_offset; /* the sequence storage is complete up to this offset */
    struct view_tables *views; /* of the derived state; NULL: none are compared */
};

/* A difference: counted, and the first one is kept in words. */
__attribute__((format(printf, 2, 3))) void compare_differ(struct compare_side *side, const char *format, ...);

/* Take one snapshot for a partition: another process may be writing to the store. A position that is not valid
 * counts as a difference. */
int compare_begin(struct compare_side *side, uint16_t partition, pawl_error *error);
void compare_end(struct compare_side *side);

/* The derived state has come to this position: compare, if the side is at the same offset. */
int compare_at(struct compare_side *side, const struct position *derived, pawl_reader *reader);

/* The log has ended. */
void compare_log_ended(struct compare_side *side, uint64_t last);

/* The same for a generation of a lane, whose cursor says how far its tables have come. A cursor that is not
 * valid counts as a difference; then *ret_known is false. */
int compare_read_cursor(struct compare_side *side, struct cursor *cursor, bool *ret_known, pawl_error *error);
int compare_lane(struct compare_side *side, const struct schema_lane *lane, const struct cursor *derived,
                 const struct cursor *stored, pawl_reader *reader);
void compare_lane_ended(struct compare_side *side, const struct schema_lane *lane, const struct cursor *stored,
                        uint64_t last);

#endif
