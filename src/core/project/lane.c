/* core/project/lane.c: the numbers of a lane: which run gets which, and whose turn it is. */
#include "core/project/lane_impl.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "core/state/key.h"

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
            stopped = !writer_send(&lane->writer, batch, false);
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
        else if (lane->writer.state == WRITER_RUNNING && !lane->writer.pausing)
            (void)writer_send(&lane->writer, batch, false);
    }
    return !stopped && taken == TURNS_AT_ONCE;
}

static bool is_available(const struct lane *lane)
{
    for (uint32_t i = 0; i < lane->projections; i++)
        if (!lane->quick[i] && pawl_leases_peek(lane->leases, i) != 0)
            return true;
    return false;
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
        lane_scan(lane);
        if (!lane->paused && lane->options.available && is_available(lane))
            lane->options.available(lane->options.ctx, lane);
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

const struct schema_projector *lane_projector(const struct lane *lane, uint32_t projection)
{
    const struct schema *schema = lane->options.schema;
    for (size_t i = 0; i < schema->projector_count; i++)
        if (schema->projectors[i].lane == lane->options.lane && projection-- == 0)
            return &schema->projectors[i];
    return NULL;
}

int lane_copy_staged_rows(struct lane *lane, struct run *run, uint64_t wsid)
{
    struct staged_row **last = &run->staged_rows;
    for (const struct writer_batch *b = lane->writer.first; b; b = b->next)
        for (size_t i = 0; i < b->count; i++)
            for (const struct row_change *c = lane_staged(b)[i].changes.first; c; c = c->next) {
                if (key_wsid(c->key) != wsid)
                    continue;
                struct staged_row *row = arena_take(&run->memory, sizeof *row);
                if (!row)
                    return PAWL_ENOMEM;
                *row = (struct staged_row){.key = arena_copy(&run->memory, c->key)};
                if (c->value.data)
                    row->value = arena_copy(&run->memory, c->value);
                if (!row->key.data || (c->value.data && !row->value.data))
                    return PAWL_ENOMEM;
                *last = row;
                last = &row->next;
            }
    run->at_turn = true;
    return PAWL_OK;
}

static int fill_run(struct lane *lane, const pawl_lease *lease, struct run *run)
{
    const struct lane_binding *binding = lane_binding(lane, lease->number);
    run_reset(run);
    run->number = lease->number;
    run->id = lease->operation;
    run->projection = lease->projection;
    run->attempt = lease->attempt;
    run->duration = lease->duration;
    run->partition = lane->options.partition;
    run->lane = lane->options.lane;
    run->generation = lane->options.generation;
    run->schema = binding->schema;
    run->projector = binding->projector;
    run->event = lane_event_hold(binding->event);
    run->start = lane->starts;
    if (binding->at_turn && lane_copy_staged_rows(lane, run, binding->wsid) != PAWL_OK) {
        run_reset(run);
        return PAWL_ENOMEM;
    }
    return PAWL_OK;
}

/* Runs that wait for a slow number must not take more than ready_bytes. Beyond it, only the next number in turn
 * is given out. */
static bool may_run_ahead(const struct lane *lane, uint32_t projection)
{
    return lane->ready < lane->options.ready_bytes
           || pawl_leases_peek(lane->leases, projection) == lane->staged + 1;
}

typedef int (*acquire_fn)(pawl_leases *leases, uint32_t projection, pawl_duration duration, size_t max,
                          pawl_lease *ret_leases, size_t *ret_count);

static int acquire(struct lane *lane, uint32_t projection, pawl_duration duration, acquire_fn from_table,
                   struct run *run)
{
    pawl_lease lease;
    size_t count;
    if (lane->writer.state != WRITER_RUNNING || lane->paused || projection >= lane->projections
        || lane->quick[projection] || !may_run_ahead(lane, projection))
        return PAWL_ENOTFOUND;
    int status = from_table(lane->leases, projection, duration, 1, &lease, &count);
    if (status != PAWL_OK)
        return status;
    status = fill_run(lane, &lease, run);
    if (status != PAWL_OK)
        (void)pawl_leases_release(lane->leases, lease.number, lease.operation, "no memory");
    return status;
}

int lane_acquire(struct lane *lane, uint32_t projection, pawl_duration duration, struct run *run)
{
    return acquire(lane, projection, duration, pawl_leases_acquire, run);
}

int lane_acquire_kept(struct lane *lane, uint32_t projection, pawl_duration duration, struct run *run)
{
    return acquire(lane, projection, duration, pawl_leases_acquire_kept, run);
}

static bool copy_lease(void *arg, const pawl_lease *lease)
{
    *(pawl_lease *)arg = *lease;
    return false;
}

int lane_resume(struct lane *lane, uint64_t number, pawl_operation_id id, struct run *run, bool *ret_again)
{
    pawl_lease lease = {0};
    if (lane->writer.state != WRITER_RUNNING)
        return PAWL_EBUSY;
    if (number == 0) /* pawl_leases_list would begin at the first number */
        return PAWL_EFENCED;
    if (pawl_leases_is_awaited(lane->leases, number, id))
        return PAWL_EBUSY;
    pawl_leases_list(lane->leases, number, copy_lease, &lease);
    bool known = lease.number == number;
    bool again = known ? lease.state >= PAWL_LEASE_READY : number <= lane->cursor.applied;
    if ((known && (lease.operation.high != id.high || lease.operation.low != id.low)) || (!known && !again))
        return PAWL_EFENCED;
    int status = again ? PAWL_OK : fill_run(lane, &lease, run);
    if (status != PAWL_OK)
        return status;
    if (again) {
        run_reset(run);
        run->number = number;
        run->id = id;
        run->partition = lane->options.partition;
    }
    run->may_ask_again = true;
    *ret_again = again;
    return PAWL_OK;
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
    else
        lane->ready += run->held = run_held(run);
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
    if (!decides || run->at_turn || reads_is_blind(&run->seen)) {
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
