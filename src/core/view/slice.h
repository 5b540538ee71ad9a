/* core/view/slice.h: a piece of a view's building: some base rows that were there before the view.
 *
 *     the first key that some view lacks ──► so many base rows ──► view rows, sorted ──► put; the interval is covered
 *
 * A slice reads the base through the writer, in the transaction that it writes in: so no row can be changed
 * between being read and being covered, and whatever is put behind the commit finds it covered. All views of a
 * batch are made in one scan. */
#ifndef CORE_VIEW_SLICE_H
#define CORE_VIEW_SLICE_H

#include "core/view/tables.h"
#include "core/view/worker.h"

#define SLICE_VIEWS_MAX WORK_TASKS_MAX

struct slice {
    uint16_t partition;
    uint32_t base;         /* table */
    const uint32_t *views; /* tables, all over that base */
    size_t count;
    pawl_range range; /* of the base's keys: a tablet, inside the partition */
    uint32_t rows_max;
};

/* Into the store's transaction; the caller commits. PAWL_ENOTFOUND: a view is not known here (any more);
 * PAWL_ENOMEM; those of the store. After an error the transaction can only be aborted. */
int slice_put(struct view_tables *tables, const struct slice *slice, struct slice_report *ret_report);

/* Whether a view covers a range of its base in a partition. False also if it is not known here. */
bool slice_covers(struct view_tables *tables, uint32_t view, uint16_t partition, pawl_range range);

#endif
