/* core/project/lane.h: one generation of a lane in one partition, from events to entity tables.
 *
 *     PLog ── read ──► match ──► bind n ──► lease ──► run elsewhere ──► handed in
 *                                            ▲                             │ n's turn, or known to be stale before
 *                                            └──────── repeat ◄─────── does it stand?
 *                                                                          │ yes; or done again here
 *     entity tables ◄── applier ◄── durable ◄── operation log ◄── staged, on the overlay
 *
 * A lane lives on its partition's shard and is called there only; runs are made on other threads (run.h). A
 * projector whose actions all go by key is not worth a hand-over: it is run here, at its turn.
 *
 * The operation log is written by a writer (core/stream/writer.h), whose states are the lane's. In DRAINING a
 * lane forgets all that is not applied: its numbers are bound again, and runs that still work on them are
 * fenced. But leases that are kept (pawl/lease.h) come back with their numbers, then as after a restart: the
 * n-th match is the same event every time (N1).
 *
 * Invariants
 *   N1  The n-th match of the PLog is operation n: numbers are bound in the order of events, and of the
 *       projectors within one.
 *   N2  Operations are staged in order of their numbers, each on the state that all before it leave.
 *   N3  The tables are a prefix of the operation log: the cursor is written with the rows, in one transaction.
 *   N4  What is staged is what a serial run would have written: a run stands, or is done again (reads.h). Every run is
 *       validated at its turn, whatever the schedule (schedule.h) predicted.
 *   N5  Nothing is bound unless every operation of the log is applied, or staged by this lane.
 *   N6  No lane waits for another, and no command for a lane: a turn of the loop does a bounded piece of work.
 */
#ifndef CORE_PROJECT_LANE_H
#define CORE_PROJECT_LANE_H

#include "core/project/cursor.h"
#include "core/project/run.h"
#include "core/stream/writer.h"

struct lane;

struct lane_options {
    pawl_env *env;
    uint32_t shard;
    pawl_log *log;
    pawl_store *store;
    struct applier *applier;   /* the shard's */
    struct view_tables *views; /* of the store; NULL: there are none */
    uint16_t partition;
    uint16_t lane;
    uint32_t generation;
    uint64_t assignment; /* struct writer_options */

    /* A schema that has this generation; it says which projectors there are. */
    const struct schema *schema;

    /* schema_for: the schema under which the generation projects an event that was made under another schema;
     * NULL: it does not project it. schema_at: the schema at a position, for operations that are in the log
     * already. Both schemas stay valid as long as the lane. */
    const struct schema *(*schema_for)(void *ctx, uint16_t lane, uint32_t generation, uint64_t event_schema);
    const struct schema *(*schema_at)(void *ctx, uint64_t position);

    /* Explode a run again on another thread (run_explode), then call lane_exploded. NULL: the lane does it on
     * its shard, however long it takes. */
    void (*explode)(void *ctx, struct lane *lane, struct run *run);

    /* available: there may be something to acquire. applied: the tables have the effects of all events up to an
     * offset. taken: another node has the operation log, and the lane is refused for good. Each may be NULL. */
    void (*available)(void *ctx, struct lane *lane);
    void (*applied)(void *ctx, struct lane *lane, uint64_t scanned);
    void (*taken)(void *ctx, struct lane *lane);
    void *ctx;

    /* Zero means the default. */
    uint32_t window;     /* 1024 numbers bound and not committed, a power of two */
    size_t window_bytes; /* 4 MiB of their events */
    size_t ready_bytes;  /* 64 MiB of runs that wait for their turn; then only the next number is given out */
    uint32_t batch_operations; /* 256 */
    size_t batch_bytes;        /* 1 MiB */
    uint32_t batches;          /* 4 between staged and applied */
    size_t rows_here;          /* 1024: a clause that looked at more rows is exploded again on another thread */
    pawl_duration lease_first; /* these three: as in pawl/lease.h */
    pawl_duration lease_min;
    pawl_duration backoff_min;
    pawl_lease_thresholds thresholds;

    /* Where leases of external workers are kept; NULL: nowhere. */
    const pawl_lease_store *lease_store;
    void *lease_store_ctx;
    const pawl_allocator *allocator;
};

struct lane_figures {
    enum writer_state state;
    uint64_t read;       /* the last event read */
    uint64_t scanned;    /* all operations of events up to here are applied */
    uint64_t applied;    /* the last operation */
    uint64_t operations; /* applied since it was made, those of catching up included */
    uint64_t rows;       /* written or removed by them */
    uint64_t quick;      /* run by the lane itself at their turn */
    uint64_t repeated;   /* runs that did not stand */
    uint64_t run_ahead;  /* so many numbers behind the last one staged are given out, at most */
    uint64_t held;       /* numbers that wait for another one of their chain */
    uint64_t failures;   /* of the log */
    bool paused;
    pawl_lease_figures leases;
};

/* Makes one, which begins to claim its stream. On the shard. PAWL_ENOMEM; PAWL_ECORRUPT, PAWL_EVERSION (the
 * cursor). */
int lane_new(const struct lane_options *options, struct lane **ret_lane, pawl_error *error);

/* The PLog has events up to this offset: the lane reads on. */
void lane_log_grew(struct lane *lane, uint64_t offset);

/* While it is paused, the lane gives out no number and runs none itself. Runs that were given out before may
 * still be handed in. */
void lane_pause(struct lane *lane, bool paused);

/* Another node has the log: write no more operations, and be refused, with these words. */
void lane_give_up(struct lane *lane, const char *words);

/* --- runs, for workers --- */

/* The lane's projectors in their order: a projection is an index into them. NULL beyond the last. */
const struct schema_projector *lane_projector(const struct lane *lane, uint32_t projection);

/* The number that lane_acquire would give now; 0: none. */
uint64_t lane_offer(const struct lane *lane, uint32_t projection);

/* Whether this projection has the next number in turn, nobody works on it, and lane_acquire would give it. */
bool lane_offers_next(const struct lane *lane, uint32_t projection);

/* Lease the next number of a projection that is worth working on (duration 0: adaptive). PAWL_ENOTFOUND: none;
 * PAWL_ENOMEM. */
int lane_acquire(struct lane *lane, uint32_t projection, pawl_duration duration, struct run *run);

/* The same, and the store keeps the lease. Tell nobody of it before the store has settled. Also the store's
 * errors. */
int lane_acquire_kept(struct lane *lane, uint32_t projection, pawl_duration duration, struct run *run);

/* Get the run of a lease that was acquired before and is held under this ID, for a worker that kept nothing but
 * number and ID. *ret_again: the run was handed in before, or is committed, or nobody knows any more. Then the
 * run has nothing but number and ID, and handing it in tells which. PAWL_EFENCED: the number is another's.
 * PAWL_EBUSY: the lane is recovering, or the number of a kept lease is not bound yet. PAWL_ENOMEM. */
int lane_resume(struct lane *lane, uint64_t number, pawl_operation_id id, struct run *run, bool *ret_again);

/* Hand in a run that was exploded. PAWL_OK: finished will be called, perhaps from inside. PAWL_EFENCED: the
 * number is another's, or was committed by another. PAWL_EBUSY: the lane has started over; if the lease is kept,
 * resume it and work it out again. An external worker may hand in the same number and ID
 * twice, the second time with a new run: then finished is called for it when the first one is applied. */
int lane_hand_in(struct lane *lane, struct run *run);

/* Take back a run that only waits to be told what became of its operation: it was handed in a second time, or
 * its batch was lost. finished is not called for it. False: it is no such run. */
bool lane_leave(struct lane *lane, struct run *run);

/* The run that options.explode was given is exploded, with this status. */
void lane_exploded(struct lane *lane, struct run *run, int status);

/* The handler of a run failed. It may have read too early. So a failure that decides (permanent, or the last
 * that the lease table allows) counts only if what the handler read still stands at its turn. Then the lane
 * keeps the run until its turn, like one that is handed in, and returns true. The failure of a run from before the
 * lane started over says nothing. */
bool lane_fail_run(struct lane *lane, struct run *run, bool permanent, const char *words);

/* As in pawl/lease.h. The lane does not keep the run. PAWL_EBUSY: the number of a kept lease is not bound yet. */
int lane_fail(struct lane *lane, uint64_t number, pawl_operation_id id, bool permanent, const char *words);
int lane_release(struct lane *lane, uint64_t number, pawl_operation_id id, const char *words);
int lane_postpone(struct lane *lane, uint64_t number, pawl_operation_id id, const char *words);
bool lane_unkeep(struct lane *lane, uint64_t number, pawl_operation_id id);
int lane_extend(struct lane *lane, uint64_t number, pawl_operation_id id, pawl_duration duration);

/* Take over what a later schema may change without a new generation: how often a projector is tried, and what
 * becomes of a number that fails each time. */
void lane_follow(struct lane *lane, const struct schema *schema);

/* For operators. */
int lane_reclaim(struct lane *lane, uint64_t number);
int lane_retry(struct lane *lane, uint64_t number);
int lane_void(struct lane *lane, uint64_t number, const char *words);

/* --- reading its state --- */

void lane_figures(const struct lane *lane, struct lane_figures *ret_figures);
const pawl_leases *lane_leases(const struct lane *lane);
const struct cursor *lane_cursor(const struct lane *lane);
const pawl_error *lane_error(const struct lane *lane);

/* The event that a bound number is for; 0: it is not known. */
uint64_t lane_event_of(const struct lane *lane, uint64_t number);

/* Finish: runs that were handed in and not sent are told PAWL_ECLOSED; those that were sent are applied. closed
 * is called by a later turn of the loop, when nothing is under way any more; then free the lane. Runs on other
 * threads may go on, but must not be handed in. */
void lane_close(struct lane *lane, void (*closed)(void *arg), void *arg);
void lane_free(struct lane *lane);

#endif
