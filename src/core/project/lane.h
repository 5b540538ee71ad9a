/* core/project/lane.h: one generation of a lane in one partition, from events to entity tables.
 *
 *     PLog ── read ──► match ──► bind n ──► lease ──► run elsewhere ──► handed in
 *                                            ▲                             │ n's turn
 *                                            └──────── repeat ◄─────── does it stand?
 *                                                                          │ yes; or done again here
 *     entity tables ◄── applier ◄── durable ◄── operation log ◄── staged, on the overlay
 *
 * A lane lives on its partition's shard and is called there only; runs are made on other threads (run.h). A
 * projector whose actions all go by key is not worth a hand-over: it is run here, at its turn.
 *
 * The operation log is written by a writer (core/stream/writer.h), whose states are the lane's. In DRAINING a
 * lane forgets all that is not applied: its numbers are bound anew, and whoever works on them is fenced.
 *
 * Invariants
 *   N1  The n-th match of the PLog is operation n: numbers are bound in the order of events, and of the
 *       projectors within one.
 *   N2  Operations are staged in order of their numbers, each on the state that all before it leave.
 *   N3  The tables are a prefix of the operation log: the cursor is written with the rows, in one transaction.
 *   N4  What is staged is what a serial run would have written: a run stands, or is done again (reads.h).
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
    struct applier *applier; /* the shard's */
    uint16_t partition;
    uint16_t lane;
    uint32_t generation;

    /* A schema that has this generation; it says which projectors there are. */
    const struct schema *schema;

    /* The schema under which the generation projects an event that was made under another; NULL: it does not.
     * And the schema at a position, for operations that are in the log already. Both stay as long as the lane.
     */
    const struct schema *(*schema_for)(void *ctx, uint16_t lane, uint32_t generation, uint64_t event_schema);
    const struct schema *(*schema_at)(void *ctx, uint64_t position);

    /* Explode a run again, on another thread (run_explode), and come back with lane_exploded. NULL: it is done
     * here, however long it takes. */
    void (*explode)(void *ctx, struct lane *lane, struct run *run);

    /* There may be something to acquire. And: the tables have come to the effects of all events up to an
     * offset. Either may be NULL. */
    void (*available)(void *ctx, struct lane *lane);
    void (*applied)(void *ctx, struct lane *lane, uint64_t scanned);
    void *ctx;

    /* Zero means the default. */
    uint32_t window;     /* 1024 numbers bound and not committed, a power of two */
    size_t window_bytes; /* 4 MiB of their events */
    size_t ready_bytes;  /* 64 MiB of runs that wait for their turn; then only the next in turn is given out */
    uint32_t batch_operations; /* 256 */
    size_t batch_bytes;        /* 1 MiB */
    uint32_t batches;          /* 4 between staged and applied */
    size_t rows_here;          /* 1024: a clause that looked at more is done again elsewhere */
    pawl_duration lease_first; /* these three: as in pawl/lease.h */
    pawl_duration lease_min;
    pawl_duration backoff_min;
    pawl_lease_thresholds thresholds;
    const pawl_allocator *allocator;
};

struct lane_figures {
    enum writer_state state;
    uint64_t read;       /* the last event looked at */
    uint64_t scanned;    /* all operations of events up to here are applied */
    uint64_t applied;    /* the last operation */
    uint64_t operations; /* applied since it was made, those of catching up included */
    uint64_t rows;       /* written or removed by them */
    uint64_t quick;      /* done at their turn, without a lease to others */
    uint64_t repeated;   /* runs that did not stand */
    uint64_t failures;   /* of the log */
    bool paused;
    pawl_lease_figures leases;
};

/* Makes one, which begins to claim its stream. On the shard. PAWL_ENOMEM; PAWL_ECORRUPT, PAWL_EVERSION (the
 * cursor). */
int lane_new(const struct lane_options *options, struct lane **ret_lane, pawl_error *error);

/* The PLog has come to this offset. */
void lane_poke(struct lane *lane, uint64_t offset);

/* Nothing is given out, nor done here, while it is paused; what was given out is still taken. */
void lane_pause(struct lane *lane, bool paused);

/* --- runs, for whoever works --- */

/* Its projectors, in their order: a projection is an index among them. NULL beyond the last. */
const struct schema_projector *lane_projector(const struct lane *lane, uint32_t projection);

/* Lease the next number of a projection (duration 0: adaptive). PAWL_ENOTFOUND: none; PAWL_ENOMEM. */
int lane_acquire(struct lane *lane, uint32_t projection, pawl_duration duration, struct run *run);

/* The run of a lease that was acquired before, and is held under this ID: for a worker that keeps nothing of it
 * but number and ID. *ret_again: it was handed in before, or committed, or nobody knows any more; the run has
 * nothing but number and ID, and handing it in tells. PAWL_EFENCED: the number is another's. PAWL_EBUSY: it is
 * recovering. PAWL_ENOMEM. */
int lane_resume(struct lane *lane, uint64_t number, pawl_operation_id id, struct run *run, bool *ret_again);

/* Hand in a run that was exploded. PAWL_OK: finished will be called, perhaps from inside. PAWL_EFENCED: the
 * number is another's, or has been committed by another. If it was handed in before, under the same ID, by a
 * run that is gone (an external worker that repeats itself), *ret_again and finished is called when that one is
 * applied. */
int lane_hand_in(struct lane *lane, struct run *run);

/* Take a run back that waits for nothing but to be told: it was handed in again, or lost from sight. It is not
 * told any more. False: it is not such a run. */
bool lane_leave(struct lane *lane, struct run *run);

/* What options.explode was asked for is done, with this status. */
void lane_exploded(struct lane *lane, struct run *run, int status);

/* The handler of a run failed. What it read may have been too early, and a failure that decides (permanent, or
 * the last that the lease table allows) counts only if it would be the same at its turn: then the run is kept
 * until that comes, as one that is handed in, and this returns true. */
bool lane_fail_run(struct lane *lane, struct run *run, bool permanent, const char *words);

/* As in pawl/lease.h. The run is not kept. */
int lane_fail(struct lane *lane, uint64_t number, pawl_operation_id id, bool permanent, const char *words);
int lane_release(struct lane *lane, uint64_t number, pawl_operation_id id, const char *words);
int lane_postpone(struct lane *lane, uint64_t number, pawl_operation_id id, const char *words);
int lane_extend(struct lane *lane, uint64_t number, pawl_operation_id id, pawl_duration duration);

/* What a later schema says of its projectors without making another generation of them: how often they are
 * tried, and what becomes of a number that fails each time. */
void lane_follow(struct lane *lane, const struct schema *schema);

/* An operator's. */
int lane_reclaim(struct lane *lane, uint64_t number);
int lane_retry(struct lane *lane, uint64_t number);
int lane_void(struct lane *lane, uint64_t number, const char *words);

/* --- looking --- */

void lane_figures(const struct lane *lane, struct lane_figures *ret_figures);
const pawl_leases *lane_leases(const struct lane *lane);
const struct cursor *lane_cursor(const struct lane *lane);
const pawl_error *lane_error(const struct lane *lane);

/* The event that a bound number is for; 0: it is not known. */
uint64_t lane_event_of(const struct lane *lane, uint64_t number);

/* Finish: runs that were handed in and not sent are told PAWL_ECLOSED; what was sent is applied. closed is
 * called, not from inside, when nothing is under way any more; then free it. Runs elsewhere may go on, and must
 * not come back. */
void lane_close(struct lane *lane, void (*closed)(void *arg), void *arg);
void lane_free(struct lane *lane);

#endif
