/* core/project/lane_acquire.c: which numbers are given out before their turn, and what their runs get.
 *
 * The schedule says which numbers are worth working on (schedule.h). What was handed in too early is found when an
 * operation is staged that wrote what it read: the number is given out again at once, and not only at its turn. */
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

static void hold(void *ctx, uint64_t number, bool held)
{
    struct lane *lane = ctx;
    (void)pawl_leases_hold(lane->leases, number, held); /* if somebody has it already, it is too late */
}

const struct schedule_ops lane_schedule_ops = {.values = values_of, .hold = hold};

/* Give a number that was handed in out again: an operation has been staged that changed what its run read. */
static void repeat_early(struct lane *lane, uint64_t number)
{
    struct lane_binding *binding = lane_binding(lane, number);
    struct run *run = binding->handed;
    if (pawl_leases_repeat_early(lane->leases, number) != PAWL_OK)
        return;
    lane->ready -= run->held;
    binding->handed = NULL;
    binding->again = true;
    lane->figures.repeated++;
    schedule_repeated(&lane->schedule, number, reads_last_writer(&run->seen, lane->recent));
    run->finished(run, PAWL_ECONFLICT);
}

/* The next one in turn is judged then: it is never interrupted. */
void lane_examine_one(struct lane *lane, uint64_t number)
{
    const struct run *run = lane_binding(lane, number)->handed;
    if (run && number > lane->staged + 1 && !reads_stand(&run->seen, lane->recent))
        repeat_early(lane, number);
}

void lane_examine(struct lane *lane)
{
    if (lane->examined == lane->staged)
        return;
    lane->examined = lane->staged;
    uint64_t marks = recent_writes_marks(lane->recent);
    uint64_t last = lane->handed_last < lane->bound ? lane->handed_last : lane->bound;
    for (uint64_t n = lane->staged + 2; n <= last && lane->writer.state == WRITER_RUNNING; n++)
        if (lane_binding(lane, n)->marks & marks)
            lane_examine_one(lane, n);
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
bool lane_offers(const struct lane *lane, uint32_t projection)
{
    if (lane->writer.state != WRITER_RUNNING || lane->paused || projection >= lane->projections
        || lane->quick[projection])
        return false;
    uint64_t number = pawl_leases_peek(lane->leases, projection);
    return number != 0
           && (number == lane->staged + 1
               || (lane->ready < lane->options.ready_bytes && schedule_is_near(&lane->schedule, number)));
}

bool lane_offers_next(const struct lane *lane, uint32_t projection)
{
    return lane_offers(lane, projection) && pawl_leases_peek(lane->leases, projection) == lane->staged + 1;
}

typedef int (*acquire_fn)(pawl_leases *leases, uint32_t projection, pawl_duration duration, size_t max,
                          pawl_lease *ret_leases, size_t *ret_count);

static int acquire(struct lane *lane, uint32_t projection, pawl_duration duration, acquire_fn from_table,
                   struct run *run)
{
    pawl_lease lease;
    size_t count;
    if (!lane_offers(lane, projection))
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
