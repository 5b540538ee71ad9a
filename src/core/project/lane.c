/* core/project/lane.c: the numbers of a lane: which run gets which, and whose turn it is. */
#include "core/project/lane_impl.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"

#define TURNS_AT_ONCE 256 /* in one turn of the loop, which has other things to do */
#define QUICK_AT_ONCE 64

void runs_init(struct runs *runs)
{
    runs->first = NULL;
    runs->last = &runs->first;
}

void runs_add(struct runs *runs, struct run *run)
{
    run->next = NULL;
    *runs->last = run;
    runs->last = &run->next;
}

struct run *runs_take(struct runs *runs)
{
    struct run *run = runs->first;
    if (!run)
        return NULL;
    runs->first = run->next;
    if (!runs->first)
        runs->last = &runs->first;
    return run;
}

void lane_forget(struct lane *lane, uint64_t number)
{
    struct lane_binding *binding = lane_binding(lane, number);
    lane->bytes -= binding->last ? binding->event->size : 0;
    lane_event_drop(binding->event);
    *binding = (struct lane_binding){0};
}

/* The tables have the effects of all events up to this offset. It is the event before the first number that is
 * not applied; if every bound number is applied, it is the last event read. An offset that was told once stays
 * told, also when the lane starts over and reads the same events again. */
static uint64_t lane_scanned(const struct lane *lane)
{
    uint64_t applied = lane->cursor.applied, scanned = lane->cursor.scanned;
    if (applied < lane->bound)
        scanned = lane->bindings[(applied + 1) & (lane->options.window - 1)].event->offset - 1;
    else if (lane->seen > scanned)
        scanned = lane->seen;
    return scanned > lane->told ? scanned : lane->told;
}

void lane_tell_applied(struct lane *lane)
{
    lane->figures.applied = lane->cursor.applied;
    lane->told = lane_scanned(lane);
    if (lane->options.applied)
        lane->options.applied(lane->options.ctx, lane, lane->told);
}

/* The lane leases quick numbers to itself, ready at once, and runs them when their turn has come. */
static void lease_quick(struct lane *lane)
{
    pawl_lease leases[QUICK_AT_ONCE];
    size_t count;
    for (uint32_t i = 0; i < lane->projections; i++) {
        while (lane->quick[i]
               && pawl_leases_acquire(lane->leases, i, 0, QUICK_AT_ONCE, leases, &count) == PAWL_OK)
            for (size_t k = 0; k < count; k++) {
                int status = pawl_leases_ready(lane->leases, leases[k].number, leases[k].operation, NULL, NULL);
                assert(status == PAWL_OK);
                (void)status;
            }
    }
}

/* The next number, if it is ready; or the last one, if it was exploded again on another thread and is back. */
static bool next_turn(struct lane *lane, pawl_turn *ret_turn)
{
    if (!lane->exploding) {
        if (pawl_leases_take(lane->leases, 1, ret_turn) != 1)
            return false;
        lane_binding(lane, ret_turn->number)->handed = NULL;
        const struct run *run = ret_turn->result;
        assert(!run || lane->ready >= run->held);
        lane->ready -= run ? run->held : 0;
        return true;
    }
    if (!lane->exploded)
        return false;
    *ret_turn = lane->exploding_turn;
    lane->exploding = NULL;
    return true;
}

static bool is_full(const struct lane *lane, const struct writer_batch *batch)
{
    return batch->count == lane->options.batch_operations || batch->bytes >= lane->options.batch_bytes;
}

static void offer(struct lane *lane)
{
    for (uint32_t i = 0; i < lane->projections && lane->options.available; i++)
        if (lane_offer(lane, i) != 0) {
            lane->options.available(lane->options.ctx, lane);
            return;
        }
}

/* Stage the numbers whose turn has come, and send them. True: there is more to do. */
static bool take_turns(struct lane *lane)
{
    struct writer_batch *batch = NULL;
    pawl_turn turn;
    size_t taken = 0;
    bool stopped = false;
    while (lane->writer.state == WRITER_RUNNING && !lane->writer.pausing && taken < TURNS_AT_ONCE) {
        batch = batch ? batch : writer_fill(&lane->writer);
        if (batch && is_full(lane, batch)) { /* it was filled before, and the log was busy */
            stopped = !writer_send(&lane->writer, batch);
            batch = NULL;
            continue;
        }
        if (!batch || !next_turn(lane, &turn)) {
            stopped = true;
            break;
        }
        taken++;
        if (!lane_stage(lane, batch, &turn)) {
            stopped = true;
            break;
        }
    }
    if (batch && batch->state == BATCH_FILLING) {
        if (batch->count == 0)
            writer_unfill(batch);
        else if (lane->writer.state == WRITER_RUNNING && !lane->writer.pausing) {
            offer(lane); /* numbers that have become free; first of all, because waking the log takes a while */
            (void)writer_send(&lane->writer, batch);
        }
    }
    return !stopped && taken == TURNS_AT_ONCE;
}

void lane_pump(struct lane *lane)
{
    if (lane->pumping) {
        lane->again = true;
        return;
    }
    bool more = false;
    lane->pumping = true;
    do {
        lane->again = false;
        if (lane->writer.state != WRITER_RUNNING)
            break;
        if (!lane->paused)
            lease_quick(lane);
        more = take_turns(lane);
        lane_examine(lane);
        lane_scan(lane);
        offer(lane);
    } while (lane->again && !more);
    lane->pumping = false;
    if (lane->writer.state == WRITER_DRAINING || lane->writer.state == WRITER_CLOSED)
        writer_step(&lane->writer);
    else if (more)
        (void)pawl_env_post(lane->options.env, lane->options.shard, &lane->task);
}

void lane_log_grew(struct lane *lane, uint64_t offset)
{
    if (offset <= lane->known)
        return;
    lane->known = offset;
    lane_pump(lane);
}

void lane_pause(struct lane *lane, bool paused)
{
    lane->paused = paused;
    lane_pump(lane);
}

void lane_give_up(struct lane *lane, const char *words)
{
    writer_give_up(&lane->writer, words);
}

const struct schema_projector *lane_projector(const struct lane *lane, uint32_t projection)
{
    const struct schema *schema = lane->options.schema;
    for (size_t i = 0; i < schema->projector_count; i++)
        if (schema->projectors[i].lane == lane->options.lane && projection-- == 0)
            return &schema->projectors[i];
    return NULL;
}

/* --- what becomes of a run --- */

static void lookup_done(pawl_read *read)
{
    struct run *run = read->arg;
    struct lane *lane = run->lookup_lane;
    lane->lookups--;
    run->finished(run, lane->writer.state == WRITER_CLOSED ? PAWL_ECLOSED
                       : run->found                        ? PAWL_OK
                                                           : PAWL_EFENCED);
    if (lane->writer.state == WRITER_CLOSED)
        writer_step(&lane->writer);
}

static bool compare_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct run *run = read->arg;
    struct operation op;
    (void)place;
    run->found = operation_decode(entry->body, &op, NULL) == PAWL_OK && op.kind == OPERATION_WRITES
                 && op.id.high == run->id.high && op.id.low == run->id.low;
    return false;
}

/* The number is applied already: read the log to find out whose it was. */
static int look_up_in_log(struct lane *lane, struct run *run)
{
    run->lookup_lane = lane;
    run->found = false;
    run->lookup = (pawl_read){.stream = lane->writer.options.stream,
                              .from = run->number,
                              .limit = 1,
                              .visit = compare_entry,
                              .done = lookup_done,
                              .arg = run};
    int status = pawl_log_read(lane->options.log, &run->lookup);
    lane->lookups += status == PAWL_OK;
    return status;
}

int lane_hand_in(struct lane *lane, struct run *run)
{
    bool again = false;
    if (lane->writer.state == WRITER_CLOSED)
        return PAWL_ECLOSED;
    if (run->number <= lane->cursor.applied)
        return look_up_in_log(lane, run);
    /* The lease may be kept, but what the run rests on was forgotten. */
    if (run->event && run->start != lane->starts)
        return run->may_ask_again ? PAWL_EBUSY : PAWL_EFENCED;
    int status = pawl_leases_ready(lane->leases, run->number, run->id, run, &again);
    if (status != PAWL_OK)
        return status == PAWL_EBUSY ? PAWL_EBUSY : PAWL_EFENCED;
    if (again)
        runs_add(&lane->waiting, run);
    else {
        lane->ready += run->held = run_held(run);
        lane_binding(lane, run->number)->handed = run;
        lane_binding(lane, run->number)->marks = reads_marks(&run->seen);
        lane->handed_last = run->number > lane->handed_last ? run->number : lane->handed_last;
        uint64_t number = run->number;
        lane_examine_one(lane, number); /* it may have read too early: then the run is its owner's again */
        lane_promise(lane, number);
    }
    lane_pump(lane);
    return PAWL_OK;
}

bool lane_leave(struct lane *lane, struct run *run)
{
    struct run **at = &lane->waiting.first;
    while (*at && *at != run)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = run->next;
    if (!*at)
        lane->waiting.last = at;
    return true;
}

/* Go on after a change of the lease table. */
static int after(struct lane *lane, int status)
{
    if (status == PAWL_OK)
        lane_pump(lane);
    return status;
}

int lane_fail(struct lane *lane, uint64_t number, pawl_operation_id id, bool permanent, const char *words)
{
    int status = pawl_leases_fail(lane->leases, number, id, permanent, words);
    return after(lane, status == PAWL_ENOTFOUND ? PAWL_EFENCED : status);
}

bool lane_fail_run(struct lane *lane, struct run *run, bool permanent, const char *words)
{
    if (run->start != lane->starts) /* as in lane_hand_in: what it read does not tell */
        return false;
    bool decides = permanent || pawl_leases_is_last(lane->leases, run->number);
    if (!decides || reads_is_blind(&run->seen)) {
        (void)lane_fail(lane, run->number, run->id, permanent, words);
        return false;
    }
    run->failed = true;
    run->permanent = permanent;
    error_set(&run->error, PAWL_EINVAL, "%s", words);
    return lane_hand_in(lane, run) == PAWL_OK;
}

int lane_release(struct lane *lane, uint64_t number, pawl_operation_id id, const char *words)
{
    int status = pawl_leases_release(lane->leases, number, id, words);
    return after(lane, status == PAWL_ENOTFOUND ? PAWL_EFENCED : status);
}

int lane_postpone(struct lane *lane, uint64_t number, pawl_operation_id id, const char *words)
{
    int status = pawl_leases_postpone(lane->leases, number, id, words);
    return status == PAWL_ENOTFOUND ? PAWL_EFENCED : status;
}

bool lane_unkeep(struct lane *lane, uint64_t number, pawl_operation_id id)
{
    return pawl_leases_unkeep(lane->leases, number, id);
}

int lane_extend(struct lane *lane, uint64_t number, pawl_operation_id id, pawl_duration duration)
{
    int status = pawl_leases_extend(lane->leases, number, id, duration);
    return status == PAWL_ENOTFOUND ? PAWL_EFENCED : status;
}

int lane_reclaim(struct lane *lane, uint64_t number)
{
    return after(lane, pawl_leases_reclaim(lane->leases, number));
}

int lane_retry(struct lane *lane, uint64_t number)
{
    return after(lane, pawl_leases_retry(lane->leases, number));
}

int lane_void(struct lane *lane, uint64_t number, const char *words)
{
    return after(lane, pawl_leases_void(lane->leases, number, words));
}

/* --- reading its state --- */

void lane_figures(const struct lane *lane, struct lane_figures *ret_figures)
{
    *ret_figures = lane->figures;
    ret_figures->state = lane->writer.state;
    ret_figures->failures = lane->writer.failures;
    ret_figures->read = lane->seen;
    ret_figures->scanned = lane_scanned(lane);
    ret_figures->applied = lane->cursor.applied;
    ret_figures->paused = lane->paused;
    ret_figures->run_ahead = (uint64_t)lane->schedule.ahead;
    ret_figures->held = lane->schedule.held;
    pawl_leases_figures_get(lane->leases, &ret_figures->leases);
}

const pawl_leases *lane_leases(const struct lane *lane)
{
    return lane->leases;
}

const struct cursor *lane_cursor(const struct lane *lane)
{
    return &lane->cursor;
}

const pawl_error *lane_error(const struct lane *lane)
{
    return &lane->writer.error;
}

uint64_t lane_event_of(const struct lane *lane, uint64_t number)
{
    if (number <= lane->cursor.applied || number > lane->bound)
        return 0;
    const struct lane_event *event = lane->bindings[number & (lane->options.window - 1)].event;
    return event ? event->offset : 0;
}
