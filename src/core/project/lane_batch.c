/* core/project/lane_batch.c: what becomes of staged operations: durable, and applied; or lost. */
#include <assert.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "core/project/lane_impl.h"
#include "core/state/key.h"

#define BUSY        (PAWL_MILLISECOND)
#define KEPT        ((size_t)4 << 20)        /* memory of a batch, for the next */
#define MOVE_EVENTS 4096                     /* without a match, before the cursor is written for them alone */
#define MOVE_AFTER  (100 * PAWL_MILLISECOND) /* or so long after the first of them */

struct lane_batch *lane_batch_next(struct lane *lane)
{
    for (struct lane_batch *b = lane->first; b; b = b->next)
        if (b->state == LANE_BATCH_FILLING)
            return b;
    for (uint32_t i = 0; i < lane->options.batches; i++) {
        struct lane_batch *b = &lane->batches[i];
        if (b->state != LANE_BATCH_FREE)
            continue;
        b->state = LANE_BATCH_FILLING;
        b->next = NULL;
        *lane->last = b;
        lane->last = &b->next;
        return b;
    }
    return NULL;
}

void lane_batch_free(struct lane_batch *batch)
{
    struct lane *lane = batch->lane;
    struct lane_batch **link = &lane->first;
    while (*link != batch)
        link = &(*link)->next;
    *link = batch->next;
    if (!*link)
        lane->last = link;
    batch->state = LANE_BATCH_FREE;
    batch->count = batch->bytes = 0;
    if (batch->memory.held > KEPT)
        arena_release(&batch->memory);
    else
        arena_reset(&batch->memory);
}

bool lane_batches_under_way(const struct lane *lane)
{
    for (const struct lane_batch *b = lane->first; b; b = b->next)
        if (b->state == LANE_BATCH_SENT || b->state == LANE_BATCH_DURABLE)
            return true;
    return lane->moving;
}

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
    const struct lane_work *work = lane_work(lane, number);
    lane->cursor.applied = number;
    lane->cursor.scanned = work->last ? work->event->offset : work->event->offset - 1;
    lane->cursor.within = work->last ? 0 : work->index;
}

static void rewind_to(struct cursor *cursor, const struct lane_mark *mark)
{
    cursor->applied = mark->applied;
    cursor->place = mark->place;
    cursor->checksum = mark->checksum;
    cursor->scanned = mark->scanned;
    cursor->within = mark->within;
}

static int item_write(struct apply_item *item, pawl_store *store)
{
    struct lane_batch *batch = heap_entry(item, struct lane_batch, item);
    struct lane *lane = batch->lane;
    struct cursor *cursor = &lane->cursor;
    struct lane_mark before = lane_mark(cursor);
    size_t i = 0;
    int status = PAWL_OK;
    for (; i < batch->count && status == PAWL_OK; i++) {
        const struct changes *changes = &batch->staged[i].changes;
        status = digests_add(&cursor->digests, changes);
        if (status != PAWL_OK)
            break;
        for (const struct row_change *c = changes->first; c && status == PAWL_OK; c = c->next)
            status = c->value.data ? pawl_store_put(store, STATE_SPACE, c->key, c->value)
                                   : pawl_store_remove(store, STATE_SPACE, c->key);
    }
    if (status == PAWL_OK) {
        const struct lane_staged *last = &batch->staged[batch->count - 1];
        move_past(lane, last->number);
        cursor->place = batch->entries[batch->count - 1].place;
        cursor->checksum = hash_checksum(0, batch->entries[batch->count - 1].entry.body);
        status = cursor_write(cursor, store);
        if (status == PAWL_OK)
            return status;
    }
    rewind_to(cursor, &before);
    while (i-- > 0)
        digests_subtract(&cursor->digests, &batch->staged[i].changes);
    return status;
}

static void item_undo(struct apply_item *item)
{
    struct lane_batch *batch = heap_entry(item, struct lane_batch, item);
    struct lane *lane = batch->lane;
    for (size_t i = 0; i < batch->count; i++)
        digests_subtract(&lane->cursor.digests, &batch->staged[i].changes);
    rewind_to(&lane->cursor, &lane->committed);
}

static void item_done(struct apply_item *item)
{
    struct lane_batch *batch = heap_entry(item, struct lane_batch, item);
    struct lane *lane = batch->lane;
    int status = pawl_leases_commit(lane->leases, batch->staged[batch->count - 1].number);
    assert(status == PAWL_OK);
    (void)status;
    lane->committed = lane_mark(&lane->cursor);
    for (size_t i = 0; i < batch->count; i++) {
        struct lane_staged *s = &batch->staged[i];
        overlay_remove(&lane->overlay, &s->changes);
        lane->figures.rows += s->changes.count;
        lane_forget(lane, s->number);
    }
    lane->figures.operations += batch->count;
    lane_move_cursor(lane);
    lane_tell_applied(lane);
    for (size_t i = 0; i < batch->count; i++) {
        struct lane_staged *s = &batch->staged[i];
        struct run *run = s->run;
        struct id128 id = {0};
        if (run)
            id = (struct id128){run->id.high, run->id.low};
        if (run)
            run->finished(run, PAWL_OK);
        if (lane->waiting.first)
            lane_tell_waiting(lane, s->number, run ? &id : NULL);
    }
    lane_batch_free(batch);
    if (lane->state == LANE_RUNNING)
        lane_pump(lane);
    else
        lane_recover(lane);
}

/* --- sending --- */

static void batch_durable(struct lane_batch *batch)
{
    struct lane *lane = batch->lane;
    batch->state = LANE_BATCH_DURABLE;
    batch->item = (struct apply_item){.write = item_write, .undo = item_undo, .done = item_done};
    applier_add(lane->options.applier, &batch->item);
}

/* Which of them are in the log is found out by reading it. */
static void batch_lost(struct lane_batch *batch)
{
    struct lane *lane = batch->lane;
    if (lane->cause == PAWL_OK) {
        lane->figures.failures++;
        lane->cause = batch->append.status;
        lane->error = batch->error;
    }
    if (lane->state == LANE_RUNNING)
        lane_move(lane, LANE_DRAINING);
    batch->state = LANE_BATCH_LOST;
}

static void batch_back(struct lane_batch *batch)
{
    struct lane *lane = batch->lane;
    if (batch->append.status == PAWL_OK && lane->cause == PAWL_OK)
        batch_durable(batch);
    else
        batch_lost(batch);
}

static void sent_done(pawl_append *append)
{
    struct lane_batch *batch = heap_entry(append, struct lane_batch, append);
    struct lane *lane = batch->lane;
    batch_back(batch);
    applier_soon(lane->options.applier);
    if (lane->state != LANE_RUNNING)
        lane_recover(lane);
}

bool lane_batch_send(struct lane *lane, struct lane_batch *batch)
{
    batch->append = (pawl_append){
        .entries = batch->entries, .count = batch->count, .done = sent_done, .error = &batch->error};
    int status = pawl_log_append(lane->options.log, &batch->append);
    if (status == PAWL_EBUSY) {
        lane_pump_later(lane, BUSY);
        return false;
    }
    batch->state = LANE_BATCH_SENT;
    if (status == PAWL_OK)
        return true;
    batch->append.status = PAWL_EIO; /* nothing was started */
    batch_back(batch);
    return false;
}

/* --- over events without matches --- */

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
    lane->committed = lane_mark(&lane->cursor);
    if (lane->state != LANE_RUNNING)
        lane_recover(lane);
}

/* Events that have no matches were seen, or all of theirs are applied, and the cursor does not say so yet. */
static bool has_moved(const struct lane *lane)
{
    return lane->state == LANE_RUNNING && !lane->moving && lane->cursor.applied == lane->bound
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

/* It is not written for every event: what is read again costs less. But other processes see no more of how far
 * the tables have come than the cursor, so it is not left behind for long. */
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
