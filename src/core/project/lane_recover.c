/* core/project/lane_recover.c: from whatever state to running.
 *
 *   DRAINING      wait until nothing is on its way to the log and everything durable is applied; then forget
 *                 all that is not applied: its numbers are bound anew, whoever works on them is fenced.
 *   CLAIMING      become the operation log's one writer. From then on nothing that was sent before can appear.
 *   CATCHING_UP   check that the tables are a prefix of this log, then read what they lack and apply it. A run
 *                 that was lost from sight and is found here was written, and is told so; the others never
 *                 will be. */
#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "core/project/lane_impl.h"
#include "core/project/redo.h"

#define OPERATIONS_AT_ONCE ((uint64_t)1024)
#define BYTES_AT_ONCE      ((size_t)4 << 20)
#define RETRY_MIN          (10 * PAWL_MILLISECOND)
#define RETRY_MAX          PAWL_SECOND

static void retry_over(pawl_timer *timer)
{
    struct lane *lane = heap_entry(timer, struct lane, retry);
    lane->retrying = false;
    lane_recover(lane);
}

static void try_later(struct lane *lane)
{
    lane->retry_delay = lane->retry_delay == 0 ? RETRY_MIN : lane->retry_delay * 2;
    lane->retry_delay = lane->retry_delay > RETRY_MAX ? RETRY_MAX : lane->retry_delay;
    lane->retrying = true;
    lane->retry.fn = retry_over;
    pawl_env_after(lane->options.env, &lane->retry, lane->retry_delay);
}

/* --- draining --- */

/* Whether a batch's operations are in the log is not known yet, or it is known that they are not. */
static void drop_batches(struct lane *lane)
{
    while (lane->first) {
        struct lane_batch *batch = lane->first;
        for (size_t i = 0; i < batch->count; i++) {
            overlay_remove(&lane->overlay, &batch->staged[i].changes);
            if (batch->staged[i].run)
                runs_add(&lane->waiting, batch->staged[i].run);
        }
        lane_batch_free(batch);
    }
}

struct dropping {
    struct lane *lane;
    struct runs runs;
};

/* A run that is still being exploded elsewhere is told when it comes back. */
static void drop_number(void *arg, uint64_t number, void *work, void *result)
{
    struct dropping *dropping = arg;
    struct lane *lane = dropping->lane;
    struct run *run = result;
    (void)work;
    if (run && number > lane->staged && (run != lane->redoing || lane->redo_back))
        runs_add(&dropping->runs, run);
}

void lane_start_over(struct lane *lane)
{
    struct dropping dropping = {.lane = lane};
    struct run *run;
    runs_init(&dropping.runs);
    drop_batches(lane);
    pawl_leases_reset(lane->leases, lane->cursor.applied + 1, drop_number, &dropping);
    for (uint64_t n = lane->cursor.applied + 1; n <= lane->bound; n++)
        lane_forget(lane, n);
    assert(lane->bytes == 0 && lane->overlay.count == 0);
    lane->redoing = NULL;
    lane->ready = 0;
    lane->bound = lane->staged = lane->cursor.applied;
    lane->seen = lane->cursor.scanned;
    lane->skip = lane->cursor.within;
    lane->place = (pawl_place){0};
    recent_reset(lane->recent, lane->cursor.applied + 1);
    while ((run = runs_take(&dropping.runs))) /* who may call anything */
        run->finished(run, lane->state == LANE_CLOSED ? PAWL_ECLOSED : PAWL_EFENCED);
}

/* --- claiming --- */

static void claimed(pawl_claim *claim)
{
    struct lane *lane = claim->arg;
    lane->claiming = false;
    if (lane->state == LANE_CLOSED) {
        lane_close_step(lane);
        return;
    }
    if (claim->status != PAWL_OK) {
        try_later(lane);
        return;
    }
    lane->retry_delay = 0;
    lane->epoch = claim->epoch;
    lane->next = claim->next;
    if (lane->cursor.applied >= lane->next) {
        error_set(&lane->error, PAWL_ECORRUPT,
                  "partition %u: the tables are at operation %" PRIu64 ", their log ends at %" PRIu64,
                  lane->options.partition, lane->cursor.applied, lane->next - 1);
        lane_refuse(lane, PAWL_ECORRUPT);
        return;
    }
    lane_move(lane, LANE_CATCHING_UP);
    lane_recover(lane);
}

static void claim(struct lane *lane)
{
    lane->claim =
        (pawl_claim){.stream = lane_stream(lane), .done = claimed, .arg = lane, .error = &lane->error};
    lane->claiming = pawl_log_claim(lane->options.log, &lane->claim) == PAWL_OK;
    if (!lane->claiming)
        try_later(lane);
}

/* --- catching up --- */

static bool take_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct lane *lane = read->arg;
    struct lane_entry *taken = arena_take(&lane->replay, sizeof *taken);
    if (taken)
        *taken = (struct lane_entry){
            .number = entry->offset, .place = place, .body = arena_copy(&lane->replay, entry->body)};
    if (!taken || !taken->body.data) {
        lane->read_status = PAWL_ENOMEM;
        return false;
    }
    *lane->entries_last = taken;
    lane->entries_last = &taken->next;
    lane->entries_bytes += entry->body.size;
    return lane->entries_bytes < BYTES_AT_ONCE;
}

/* The first operation of the first read is the last one that the tables have. */
static int verify_first(struct lane *lane)
{
    struct lane_entry *first = lane->entries;
    if (lane->verified || lane->cursor.applied == 0)
        return PAWL_OK;
    if (!first || first->number != lane->cursor.applied
        || hash_checksum(0, first->body) != lane->cursor.checksum)
        return error_set(&lane->error, PAWL_ECORRUPT,
                         "partition %u: operation %" PRIu64
                         " of the log is not the one that the tables were made from",
                         lane->options.partition, lane->cursor.applied);
    lane->entries = first->next;
    return PAWL_OK;
}

/* All of a read, in one transaction; after a failure the cursor is to be read again. */
static int apply_all(struct lane *lane)
{
    struct gathered gathered;
    struct redo redo = {.store = lane->options.store,
                        .cursor = &lane->cursor,
                        .gathered = &gathered,
                        .memory = &lane->replay,
                        .scratch = lane->scratch,
                        .schema_at = lane->options.schema_at,
                        .ctx = lane->options.ctx};
    if (!lane->entries)
        return error_set(&lane->error, PAWL_ECORRUPT,
                         "partition %u: the log of operations ends at %" PRIu64 ", and was claimed at %" PRIu64,
                         lane->options.partition, lane->read.from - 1, lane->next);
    int status = verify_first(lane);
    uint64_t count = 0;
    lane->unread = true;
    gathered_init(&gathered, lane->options.allocator);
    for (const struct lane_entry *e = lane->entries; status == PAWL_OK && e; e = e->next) {
        status = redo_operation(&redo, e->number, e->place, e->body, &lane->error);
        if (status != PAWL_OK)
            error_wrap(&lane->error, status, "partition %u, operation %" PRIu64, lane->options.partition,
                       e->number);
        count++;
    }
    if (status == PAWL_OK && count > 0) {
        status = redo_commit(&redo, &lane->error);
        if (status != PAWL_OK)
            error_wrap(&lane->error, status, "partition %u", lane->options.partition);
    }
    gathered_release(&gathered);
    if (status != PAWL_OK) {
        pawl_store_abort(lane->options.store);
        return status;
    }
    lane->unread = false;
    lane->verified = true;
    lane->committed = lane_mark(&lane->cursor);
    lane->figures.operations += count;
    lane->figures.rows += redo.rows;
    return PAWL_OK;
}

static void tell_found(struct lane *lane)
{
    struct operation op;
    for (const struct lane_entry *e = lane->entries; e && lane->waiting.first; e = e->next)
        if (operation_decode(e->body, &op, NULL) == PAWL_OK)
            lane_tell_waiting(lane, op.number, op.kind == OPERATION_WRITES ? &op.id : NULL);
}

static void caught_up(struct lane *lane)
{
    lane_tell_waiting(lane, UINT64_MAX, NULL);
    if (lane->state == LANE_CLOSED) { /* by one of those who were told */
        lane_close_step(lane);
        return;
    }
    lane->cause = PAWL_OK;
    arena_release(&lane->replay);
    lane->entries = NULL;
    lane_start_over(lane);
    error_clear(&lane->error);
    lane_move(lane, LANE_RUNNING);
    lane_tell_applied(lane);
    lane_pump(lane);
}

static void entries_read(pawl_read *read)
{
    struct lane *lane = read->arg;
    lane->reading = false;
    if (lane->state == LANE_CLOSED) {
        lane_close_step(lane);
        return;
    }
    int status = read->status == PAWL_OK ? lane->read_status : read->status;
    if (status == PAWL_OK)
        status = apply_all(lane);
    if (status == PAWL_ECORRUPT || status == PAWL_EVERSION || status == PAWL_ETOOBIG || status == PAWL_EINVAL) {
        lane_refuse(lane, status == PAWL_EVERSION ? status : PAWL_ECORRUPT);
        return;
    }
    if (status != PAWL_OK) {
        try_later(lane);
        return;
    }
    lane->retry_delay = 0;
    tell_found(lane);
    lane_tell_applied(lane);
    lane_recover(lane);
}

static void catch_up(struct lane *lane)
{
    if (lane->unread) {
        int status = cursor_read(&lane->cursor, pawl_store_writer(lane->options.store), &lane->error);
        if (status != PAWL_OK) {
            try_later(lane);
            return;
        }
        lane->unread = false;
    }
    bool whole = lane->verified || lane->cursor.applied == 0;
    uint64_t from = whole ? lane->cursor.applied + 1 : lane->cursor.applied;
    if (from >= lane->next) {
        caught_up(lane);
        return;
    }
    uint64_t left = lane->next - from;
    arena_reset(&lane->replay);
    lane->entries = NULL;
    lane->entries_last = &lane->entries;
    lane->entries_bytes = 0;
    lane->read_status = PAWL_OK;
    lane->read = (pawl_read){.stream = lane_stream(lane),
                             .from = from,
                             .limit = left < OPERATIONS_AT_ONCE ? left : OPERATIONS_AT_ONCE,
                             .visit = take_entry,
                             .done = entries_read,
                             .arg = lane,
                             .error = &lane->error};
    if (!whole)
        lane->read.at = lane->cursor.place;
    lane->reading = pawl_log_read(lane->options.log, &lane->read) == PAWL_OK;
    if (!lane->reading)
        try_later(lane);
}

void lane_recover(struct lane *lane)
{
    if (lane->state == LANE_DRAINING && !lane->scanning && !lane_batches_under_way(lane)) {
        lane_start_over(lane);
        if (lane->state == LANE_DRAINING) /* it may have been closed by one of those who were told */
            lane_move(lane, LANE_CLAIMING);
    }
    if (lane->state == LANE_CLOSED)
        lane_close_step(lane);
    else if (lane->retrying)
        return;
    else if (lane->state == LANE_CLAIMING && !lane->claiming)
        claim(lane);
    else if (lane->state == LANE_CATCHING_UP && !lane->reading)
        catch_up(lane);
}
