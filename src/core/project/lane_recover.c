/* core/project/lane_recover.c: a lane starts over from what its tables have, and catches up with its log.
 *
 * If the log has the operation of a run whose batch was lost, the run is told that it was written. The other
 * runs are told that theirs was not, and never will be. */
#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "core/project/lane_impl.h"
#include "core/project/redo.h"

int lane_status_of_lost(const struct lane *lane, const struct run *run)
{
    if (lane->writer.state == WRITER_CLOSED)
        return PAWL_ECLOSED;
    return run->may_ask_again ? PAWL_EBUSY : PAWL_EFENCED;
}

struct dropping {
    struct lane *lane;
    struct runs runs;
};

/* A run that is still on another thread is told when it comes back. */
static void drop_number(void *arg, uint64_t number, void *work, void *result)
{
    struct dropping *dropping = arg;
    struct lane *lane = dropping->lane;
    struct run *run = result;
    (void)work;
    if (run && number > lane->staged && (run != lane->exploding || lane->exploded))
        runs_add(&dropping->runs, run);
}

void lane_start_over(struct lane *lane)
{
    struct dropping dropping = {.lane = lane};
    struct run *run;
    runs_init(&dropping.runs);
    lane->starts++;
    pawl_leases_reset(lane->leases, lane->cursor.applied + 1, drop_number, &dropping);
    for (uint64_t n = lane->cursor.applied + 1; n <= lane->bound; n++)
        lane_forget(lane, n);
    assert(lane->bytes == 0 && lane->overlay.count == 0);
    lane->exploding = NULL;
    lane->ready = 0;
    lane->bound = lane->staged = lane->cursor.applied;
    lane->seen = lane->cursor.scanned;
    lane->skip = lane->cursor.within;
    lane->place = (pawl_place){0};
    schedule_reset(&lane->schedule, lane->cursor.applied + 1);
    recent_writes_reset(lane->recent, lane->cursor.applied + 1);
    while ((run = runs_take(&dropping.runs))) /* its owner may call anything */
        run->finished(run, lane_status_of_lost(lane, run));
}

bool lane_drained(void *ctx)
{
    struct lane *lane = ctx;
    if (lane->scanning || lane->moving)
        return false;
    lane_start_over(lane);
    return true;
}

/* --- catching up --- */

int lane_position(void *ctx, bool again, struct writer_position *ret_position, pawl_error *error)
{
    struct lane *lane = ctx;
    int status = again ? cursor_read(&lane->cursor, pawl_store_writer(lane->options.store), error) : PAWL_OK;
    *ret_position = (struct writer_position){
        .offset = lane->cursor.applied, .place = lane->cursor.place, .checksum = lane->cursor.checksum};
    return status;
}

struct redoing {
    struct redo redo;
    const struct copied_entry *entries;
    uint64_t count;
};

static int put_operations(void *ctx, pawl_store *store, pawl_error *error)
{
    struct redoing *r = ctx;
    r->redo.store = store;
    for (const struct copied_entry *e = r->entries; e; e = e->next, r->count++) {
        int status = redo_operation(&r->redo, e->offset, e->place, e->body, error);
        if (status != PAWL_OK)
            return error_wrap(error, status, "operation %" PRIu64, e->offset);
    }
    return redo_put(&r->redo, error);
}

/* Tell the runs that wait and whose operations the log has. */
static void tell_found(struct lane *lane, const struct copied_entry *entries)
{
    struct operation op;
    for (const struct copied_entry *e = entries; e && lane->waiting.first; e = e->next)
        if (operation_decode(e->body, &op, NULL) == PAWL_OK)
            lane_tell_waiting(lane, op.number, op.kind == OPERATION_WRITES ? &op.id : NULL);
}

int lane_replay(void *ctx, const struct copied_entry *entries, struct arena *memory, pawl_error *error)
{
    struct lane *lane = ctx;
    struct gathered gathered;
    struct redoing r = {.redo = {.cursor = &lane->cursor,
                                 .gathered = &gathered,
                                 .memory = memory,
                                 .scratch = lane->scratch,
                                 .schema_at = lane->options.schema_at,
                                 .ctx = lane->options.ctx},
                        .entries = entries};
    gathered_init(&gathered, lane->options.allocator);
    gathered.watch = lane->options.views ? view_tables_watch(lane->options.views) : NULL;
    int status = applier_write(lane->options.applier, put_operations, &r, error);
    gathered_release(&gathered);
    if (status != PAWL_OK)
        return status;
    lane->committed = lane_progress(&lane->cursor);
    lane->figures.operations += r.count;
    lane->figures.rows += r.redo.rows;
    tell_found(lane, entries);
    lane_tell_applied(lane);
    return PAWL_OK;
}

/* The log does not have the operations of runs that still wait, and never will. */
void lane_prepare(void *ctx)
{
    struct lane *lane = ctx;
    struct run *run;
    while ((run = runs_take(&lane->waiting)))
        run->finished(run, lane_status_of_lost(lane, run));
    if (lane->writer.state == WRITER_CLOSED) /* a run's owner has closed it */
        return;
    lane_start_over(lane);
    lane_tell_applied(lane);
    writer_ready(&lane->writer);
}
