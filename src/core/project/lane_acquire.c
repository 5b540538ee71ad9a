/* core/project/lane_acquire.c: which numbers are given out before their turn, and what their runs get.
 *
 * The schedule says which numbers are worth working on (schedule.h). What was handed in too early is found when an
 * operation is staged that wrote what it read: the number is given out again at once, and not only at its turn. */
#include "base/bytes.h"
#include "core/project/lane_impl.h"
#include "core/state/key.h"

#define STAGED_ROWS_MAX 1024 /* are copied for a run that may do without them */

/* --- the schedule --- */

static bool values_of(void *ctx, uint64_t number, struct event_values *ret_values)
{
    struct lane *lane = ctx;
    const struct lane_binding *binding = lane_binding(lane, number);
    if (number <= lane->cursor.applied || number > lane->bound || !binding->event)
        return false;
    event_values_of((pawl_bytes){binding->event->bytes, binding->event->size}, binding->schema,
                    binding->projector->id, ret_values);
    return true;
}

static bool hold(void *ctx, uint64_t number, bool held)
{
    struct lane *lane = ctx;
    return pawl_leases_hold(lane->leases, number, held) == PAWL_OK;
}

/* An external worker reads without its run, so it can be promised nothing. */
static bool takes_promises(void *ctx, uint64_t number)
{
    struct lane *lane = ctx;
    return !lane->outside[lane_binding(lane, number)->projection];
}

const struct schedule_ops lane_schedule_ops = {
    .values = values_of, .hold = hold, .takes_promises = takes_promises};

/* Whether a promised row is as it was promised, in the state that the last number staged leaves. */
static bool is_kept(struct lane *lane, const struct promised_row *row)
{
    struct state state = lane_staged_state(lane);
    pawl_bytes value = {0};
    int status = state_get(&state, row->key, &value);
    if (status == PAWL_ENOTFOUND)
        return !row->value.data;
    return status == PAWL_OK && row->value.data && bytes_equal(value, row->value);
}

/* What is promised by a number that is not staged yet is judged later: at the latest at the run's own turn, when all
 * numbers before it are staged (P1). */
bool lane_stands(struct lane *lane, const struct reads *reads)
{
    if (!reads_stand(reads, lane->recent))
        return false;
    uint64_t read = reads_promised(reads);
    for (size_t i = 0; i < reads->promise.count; i++) {
        const struct promised_row *row = &reads->promise.rows[i];
        if (read >> i & 1 && row->number <= lane->staged && !is_kept(lane, row))
            return false;
    }
    return true;
}

/* Give a number that was handed in out again: what its run read is not as writer leaves it. */
static bool repeat_early(struct lane *lane, uint64_t number, uint64_t writer)
{
    struct lane_binding *binding = lane_binding(lane, number);
    struct run *run = binding->handed;
    if (pawl_leases_repeat_early(lane->leases, number) != PAWL_OK)
        return false;
    lane->ready -= run->held;
    binding->handed = NULL;
    binding->again = true;
    lane->figures.repeated++;
    schedule_repeated(&lane->schedule, number, writer);
    run->finished(run, PAWL_ECONFLICT);
    return true;
}

/* The next one in turn is judged then: it is never interrupted. */
static bool examine_one(struct lane *lane, uint64_t number)
{
    const struct run *run = lane_binding(lane, number)->handed;
    return run && number > lane->staged + 1 && !lane_stands(lane, &run->seen)
           && repeat_early(lane, number, reads_last_writer(&run->seen, lane->recent));
}

/* The number that a run was promised rows by, and that is given out again; 0: none. One that is exploded again, elsewhere,
 * is not given out: it may keep its promise. */
static uint64_t broken_promise(struct lane *lane, const struct run *run)
{
    for (size_t i = 0; i < run->promise.count; i++) {
        uint64_t number = run->promise.rows[i].number;
        bool is_exploding = lane->exploding && lane->exploding->number == number;
        if (number > lane->staged && !lane_binding(lane, number)->handed && !is_exploding)
            return number;
    }
    return 0;
}

static uint64_t last_handed(const struct lane *lane)
{
    return lane->handed_last < lane->bound ? lane->handed_last : lane->bound;
}

/* Upwards: what rests on one that is found here is found, too. Who is told may end all of it. */
void lane_repeat_what_rests_on(struct lane *lane, uint64_t number)
{
    uint64_t first = number > lane->staged ? number + 1 : lane->staged + 2;
    for (uint64_t n = first; n <= last_handed(lane) && lane->writer.state == WRITER_RUNNING; n++) {
        const struct run *run = lane_binding(lane, n)->handed;
        uint64_t broken = run ? broken_promise(lane, run) : 0;
        if (broken)
            (void)repeat_early(lane, n, broken);
    }
}

void lane_examine_one(struct lane *lane, uint64_t number)
{
    if (examine_one(lane, number))
        lane_repeat_what_rests_on(lane, number);
}

/* Whether the next run of its chain is worth beginning with what this one has made. What rests on it would be in vain if
 * this one rests on what counts no more; or if the next one does as this one and reads a range, in which every row that is
 * staged is a change, promised or not. */
static bool can_promise(struct lane *lane, const struct run *run)
{
    bool read_ranges = run->seen.rows_count > 0 || run->seen.all;
    return run->made.count > 0 && !run->failed && !read_ranges && broken_promise(lane, run) == 0
           && promise_fits(&run->promise, &run->made, lane->staged);
}

void lane_promise(struct lane *lane, uint64_t number)
{
    const struct run *run = lane_binding(lane, number)->handed;
    if (run && can_promise(lane, run))
        schedule_promise(&lane->schedule, number);
}

void lane_examine(struct lane *lane)
{
    if (lane->examined == lane->staged)
        return;
    lane->examined = lane->staged;
    uint64_t marks = recent_writes_marks(lane->recent), last = last_handed(lane), first = 0;
    for (uint64_t n = lane->staged + 2; n <= last && lane->writer.state == WRITER_RUNNING; n++)
        if (lane_binding(lane, n)->marks & marks && examine_one(lane, n))
            first = first ? first : n;
    if (first)
        lane_repeat_what_rests_on(lane, first);
}

/* --- giving out --- */

int lane_copy_staged_rows(struct lane *lane, struct run *run, uint64_t wsid, size_t max)
{
    struct staged_row **last = &run->staged_rows;
    for (const struct writer_batch *b = lane->writer.first; b; b = b->next)
        for (size_t i = 0; i < b->count; i++)
            for (const struct row_change *c = lane_staged(b)[i].changes.first; c; c = c->next) {
                if (key_wsid(c->key) != wsid)
                    continue;
                if (max-- == 0)
                    return PAWL_ETOOBIG;
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
    *last = NULL;
    run->base = lane->staged;
    return PAWL_OK;
}

/* A run that is repeated needs the rows that are staged before it, or it would be in vain again. In a lane that has
 * conflicts, others are better off with them, too. */
static int give_staged_rows(struct lane *lane, const struct lane_binding *binding, struct run *run)
{
    if (binding->again)
        return lane_copy_staged_rows(lane, run, binding->wsid, SIZE_MAX);
    if (schedule_is_wary(&lane->schedule)
        && lane_copy_staged_rows(lane, run, binding->wsid, STAGED_ROWS_MAX) != PAWL_OK)
        run->staged_rows = NULL;
    return PAWL_OK;
}

/* What the run of the number before it in its chain will write: it fits (can_promise). Without memory for it, this run
 * will be repeated. */
static void give_promise(struct lane *lane, const struct lane_binding *binding, struct run *run)
{
    uint64_t before = schedule_before(&lane->schedule, run->number);
    const struct run *other = before > lane->staged ? lane_binding(lane, before)->handed : NULL;
    struct promise promise;
    run->promises = schedule_has_chains(&lane->schedule);
    if (other
        && promise_pass_on(&promise, &run->memory, &other->promise, &other->made, before, lane->staged,
                           binding->wsid)
               == PAWL_OK)
        run_promise(run, promise);
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
    if (give_staged_rows(lane, binding, run) != PAWL_OK) {
        run_reset(run);
        return PAWL_ENOMEM;
    }
    return PAWL_OK;
}

/* Runs that wait for a slow number must not take more than ready_bytes. Beyond it, only the next number in turn
 * is given out. */
uint64_t lane_offer(const struct lane *lane, uint32_t projection)
{
    if (lane->writer.state != WRITER_RUNNING || lane->paused || projection >= lane->projections
        || lane->quick[projection])
        return 0;
    uint64_t number = pawl_leases_peek(lane->leases, projection);
    bool early = lane->ready < lane->options.ready_bytes && schedule_is_near(&lane->schedule, number);
    return early || number == lane->staged + 1 ? number : 0;
}

bool lane_offers_next(const struct lane *lane, uint32_t projection)
{
    return lane_offer(lane, projection) == lane->staged + 1;
}

typedef int (*acquire_fn)(pawl_leases *leases, uint32_t projection, pawl_duration duration, size_t max,
                          pawl_lease *ret_leases, size_t *ret_count);

static int acquire(struct lane *lane, uint32_t projection, pawl_duration duration, acquire_fn from_table,
                   struct run *run)
{
    pawl_lease lease;
    size_t count;
    if (lane_offer(lane, projection) == 0)
        return PAWL_ENOTFOUND;
    int status = from_table(lane->leases, projection, duration, 1, &lease, &count);
    if (status != PAWL_OK)
        return status;
    status = fill_run(lane, &lease, run);
    if (status == PAWL_OK && from_table == pawl_leases_acquire)
        give_promise(lane, lane_binding(lane, lease.number), run);
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
    if (projection < lane->projections)
        lane->outside[projection] = true;
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
