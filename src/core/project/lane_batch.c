/* core/project/lane_batch.c: what becomes of staged operations: applied, or undone. */
#include <assert.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "core/project/lane_impl.h"
#include "core/state/key.h"

#define MOVE_EVENTS 4096                     /* events without a match, before the cursor is written for them */
#define MOVE_AFTER  (100 * PAWL_MILLISECOND) /* or when the first of them is so old */

void lane_tell_waiting(struct lane *lane, uint64_t number, const struct id128 *id)
{
    struct runs rest;
    struct run *run;
    runs_init(&rest);
    while ((run = runs_take(&lane->waiting))) {
        if (run->number > number)
            runs_add(&rest, run);
        else if (run->number == number && id && id->high == run->id.high && id->low == run->id.low)
            run->finished(run, PAWL_OK);
        else
            run->finished(run, PAWL_EFENCED);
    }
    while ((run = runs_take(&rest)))
        runs_add(&lane->waiting, run);
}

void lane_tell_refused(struct lane *lane, const pawl_turn *turn, int status, const char *words)
{
    struct runs rest;
    struct run *run;
    runs_init(&rest);
    while ((run = runs_take(&lane->waiting))) {
        if (run->number != turn->number || run->id.high != turn->operation.high
            || run->id.low != turn->operation.low) {
            runs_add(&rest, run);
            continue;
        }
        error_set(&run->error, status, "%s", words);
        run->finished(run, status);
    }
    while ((run = runs_take(&rest)))
        runs_add(&lane->waiting, run);
}

/* --- applying --- */

static void move_past(struct lane *lane, uint64_t number)
{
    const struct lane_binding *binding = lane_binding(lane, number);
    lane->cursor.applied = number;
    lane->cursor.scanned = binding->last ? binding->event->offset : binding->event->offset - 1;
    lane->cursor.within = binding->last ? 0 : binding->index;
}

static void rewind_to(struct cursor *cursor, const struct lane_progress *progress)
{
    cursor->applied = progress->applied;
    cursor->place = progress->place;
    cursor->checksum = progress->checksum;
    cursor->scanned = progress->scanned;
    cursor->within = progress->within;
}

int lane_batch_write(void *ctx, struct writer_batch *batch, pawl_store *store)
{
    struct lane *lane = ctx;
    struct cursor *cursor = &lane->cursor;
    struct lane_progress before = lane_progress(cursor);
    const struct lane_staged *staged = lane_staged(batch);
    struct put_watch *watch = lane->options.views ? view_tables_watch(lane->options.views) : NULL;
    size_t i = 0;
    int status = PAWL_OK;
    for (; i < batch->count && status == PAWL_OK; i++) {
        status = digests_add(&cursor->digests, &staged[i].changes);
        if (status != PAWL_OK)
            break;
        status = changes_put(&staged[i].changes, store, watch);
    }
    if (status == PAWL_OK) {
        const pawl_append_entry *last = &batch->entries[batch->count - 1];
        move_past(lane, last->entry.offset);
        cursor->place = last->place;
        cursor->checksum = hash_checksum(0, last->entry.body);
        status = cursor_write(cursor, store);
        if (status == PAWL_OK)
            return status;
    }
    rewind_to(cursor, &before);
    while (i-- > 0)
        digests_subtract(&cursor->digests, &staged[i].changes);
    return status;
}

void lane_batch_unwrite(void *ctx, struct writer_batch *batch)
{
    struct lane *lane = ctx;
    for (size_t i = 0; i < batch->count; i++)
        digests_subtract(&lane->cursor.digests, &lane_staged(batch)[i].changes);
    rewind_to(&lane->cursor, &lane->committed);
}

void lane_batch_applied(void *ctx, struct writer_batch *batch)
{
    struct lane *lane = ctx;
    const struct lane_staged *staged = lane_staged(batch);
    int status = pawl_leases_commit(lane->leases, batch->entries[batch->count - 1].entry.offset);
    assert(status == PAWL_OK);
    (void)status;
    lane->committed = lane_progress(&lane->cursor);
    for (size_t i = 0; i < batch->count; i++) {
        overlay_remove(&lane->overlay, &staged[i].changes);
        lane->figures.rows += staged[i].changes.count;
        lane_forget(lane, batch->entries[i].entry.offset);
    }
    lane->figures.operations += batch->count;
    lane_move_cursor(lane);
    lane_tell_applied(lane);
    for (size_t i = 0; i < batch->count; i++) {
        struct run *run = staged[i].run;
        struct id128 id = {0};
        if (run)
            id = (struct id128){run->id.high, run->id.low};
        if (run)
            run->finished(run, PAWL_OK);
        if (lane->waiting.first)
            lane_tell_waiting(lane, batch->entries[i].entry.offset, run ? &id : NULL);
    }
}

/* The runs are told when the log was read: until then nobody knows whether it has their operations. */
void lane_batch_undo(void *ctx, struct writer_batch *batch)
{
    struct lane *lane = ctx;
    for (size_t i = 0; i < batch->count; i++) {
        struct lane_staged *staged = &lane_staged(batch)[i];
        overlay_remove(&lane->overlay, &staged->changes);
        if (staged->run)
            runs_add(&lane->waiting, staged->run);
    }
}

/* --- past events without matches --- */

static int move_write(struct apply_item *item, pawl_store *store)
{
    struct lane *lane = heap_entry(item, struct lane, moved);
    return cursor_write(&lane->cursor, store);
}

static void move_undo(struct apply_item *item)
{
    (void)item;
}

static void move_done(struct apply_item *item)
{
    struct lane *lane = heap_entry(item, struct lane, moved);
    lane->moving = false;
    lane->committed = lane_progress(&lane->cursor);
    if (lane->writer.state != WRITER_RUNNING)
        writer_step(&lane->writer);
}

/* Everything that was read is applied, and the cursor does not say so yet. */
static bool has_moved(const struct lane *lane)
{
    return lane->writer.state == WRITER_RUNNING && !lane->moving && lane->cursor.applied == lane->bound
           && lane->seen > lane->cursor.scanned;
}

void lane_move_cursor_now(struct lane *lane)
{
    if (!has_moved(lane))
        return;
    lane->cursor.scanned = lane->seen;
    lane->cursor.within = 0;
    lane->moving = true;
    lane->moved = (struct apply_item){.write = move_write, .undo = move_undo, .done = move_done};
    applier_add(lane->options.applier, &lane->moved);
    applier_soon(lane->options.applier);
}

static void rest_over(pawl_timer *timer)
{
    struct lane *lane = heap_entry(timer, struct lane, rest);
    lane->resting = false;
    lane_move_cursor_now(lane);
}

/* The cursor is not written for every event, because reading a few events again after a restart costs less. But
 * it is all that other processes see of the lane's progress, so it is written after a while. */
void lane_move_cursor(struct lane *lane)
{
    if (!has_moved(lane))
        return;
    if (lane->seen >= lane->cursor.scanned + MOVE_EVENTS) {
        lane_move_cursor_now(lane);
    } else if (!lane->resting) {
        lane->resting = true;
        lane->rest.fn = rest_over;
        pawl_env_after(lane->options.env, &lane->rest, MOVE_AFTER);
    }
}
