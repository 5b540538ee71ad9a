/* engine/lanes/impl.h: how the lanes of a node work. For this room only.
 *
 *     generation of a lane ─┬─ a partition_lane in each partition, on its shard: core/project/lane.h in it
 *                           └─ a worker_pool for each projector: threads that run it
 *
 *     lane ── available ──► partition_lane: jobs ──► worker pool ──► returned ──► lane_hand_in ──► finished
 *     (shard)               (shard)                  (threads)       (shard)      (shard)          (shard)
 *
 * Opening a lane waits for nothing: it recovers by itself, and commands never wait for it. If one lane cannot
 * be opened in one partition, all others go on.
 *
 * Who touches what
 *   the lists of generations, handlers and waiting workers            any thread, under lanes.lock
 *   a partition_lane and its jobs                                     its shard
 *   a job that is out, except its links                               the thread that works on it
 *   a worker pool                                                     any thread, under its own lock
 *
 * Invariants
 *   E1  A generation is freed when the schema no longer names it, its lanes are closed, its jobs are back, and
 *       nobody holds it.
 *   E2  Rows of a generation are removed when it is freed, no entity is read from it any more, and every reader
 *       that began while one still was has ended.
 *   E3  Locks are taken in this order: schema_lock, lanes.lock, a worker pool's. Nobody waits for a shard under
 *       the last two.
 *   E4  A lease of an external worker is durable before the worker is told of it. Its row stays while the engine
 *       is closed; it goes when the lease table says that it is over, and with its generation. */
#ifndef ENGINE_LANES_IMPL_H
#define ENGINE_LANES_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/latch.h"
#include "base/wait.h"
#include "engine/lanes/lanes.h"
#include "engine/node/node.h"

struct generation;

/* How a run ended. POSTPONED: it lacked something for now, memory or a snapshot; this does not count as a
 * failure. */
enum job_outcome { JOB_DONE, JOB_FAILED, JOB_POSTPONED };

/* A run, and what the engine must know about it. */
struct job {
    struct run run;
    struct partition_lane *pl;
    struct job *next, **link; /* in the list of jobs that are out, of its partition_lane */
    struct job *queued;       /* the next one in the pool's queue, or among returned or spare jobs */
    atomic_bool given_up;     /* its lease is lost: nobody wants its result */
    pawl_instant since;       /* when it went out */
    pawl_instant extended;    /* when its lease was last extended */
    enum job_outcome outcome;
    bool permanent; /* it failed, and would fail again */
    /* Why it failed; 4 bytes more than are kept, so that whoever cuts it sees the whole last character. */
    char words[PAWL_LEASE_WORDS_MAX + 4];
    struct results_expr *exprs; /* expressions of its results that are in no cache */

    pawl_work work; /* explodes it again, on the env's pool */
    int status;     /* of that */

    struct worker_commit *commit; /* the commit of an outside worker; NULL: the job is a worker pool's */
};

/* The leases of external workers that a partition_lane has in DIR/local, by number. */
struct kept_lease;
struct kept_leases {
    struct kept_lease *first, *last;
    _Atomic uint64_t written; /* the last write that was queued for them: settle waits for it */
};

/* A generation in one partition. */
struct partition_lane {
    struct generation *generation;
    uint16_t partition;
    struct partition_lane *next; /* of the same partition */
    struct lane *lane;           /* NULL: it could not be opened, or is closed */
    bool closing;                /* it was asked to close, and is not closed yet */
    _Atomic uint64_t offset;     /* all events up to here are applied to its tables; for any thread */
    int status;                  /* of opening it */
    pawl_error error;
    uint64_t goal; /* the maintenance thread's: it must come to this offset before its generation can serve */

    struct job *out; /* jobs that a worker pool has */
    size_t out_count;
    struct job *spare; /* jobs to be used again */
    size_t spare_count;
    struct worker_reads *worker_reads; /* what outside workers have read; NULL: nothing yet */
    struct job *_Atomic returned;      /* jobs that came back, the newest first; any thread adds to them */
    pawl_task task;                    /* takes the returned jobs */
    pawl_timer timer;                  /* extends the leases of jobs that are out */
    bool ticking;                      /* the timer is set */
    struct kept_leases kept;
    bool superseded; /* the schema no longer names its generation */
};

struct generation {
    struct generation *next;
    pawl_engine *engine;
    uint16_t id; /* of the lane */
    uint32_t number;
    const struct schema *schema;  /* one that names this generation */
    pawl_bytes name;              /* of the lane */
    uint32_t projections;         /* how many projectors it has */
    struct worker_pool *pools;    /* by projection */
    struct partition_lane *lanes; /* by partition */
    uint32_t holders;             /* how many hold it; under lanes.lock */
    bool retired;                 /* the schema no longer names it, or the engine closes; under lanes.lock */
    _Atomic uint32_t busy;        /* how many of its lanes are open, plus how many jobs are out */

    /* The maintenance thread's, while the generation is being built. */
    bool aiming;           /* its lanes have goals */
    pawl_instant again_at; /* no switch is tried before this */
    pawl_duration delay;   /* from the last try to the next; 0: none has failed */
};

/* A handler that somebody registered. */
struct handler {
    struct handler *next;
    uint16_t projector;
    pawl_handler fn;
    void *arg;
};

/* A worker that waits for something to lease. */
struct lease_wait {
    struct lease_wait *next, **link;
    uint16_t projector;
    struct latch latch;
    bool told; /* the latch is set: there may be something */
};

struct lanes {
    pthread_mutex_t lock;
    struct generation *first;
    struct handler *handlers;
    struct lease_wait *waits;
    pthread_cond_t waits_gone; /* the last waiting worker has left */
    _Atomic uint32_t waiting;  /* how many workers wait */
    _Atomic uint32_t threads;  /* how many threads all worker pools have */
    struct pawl_worker_watch *watches;
    _Atomic uint32_t armed; /* how many of them want to be told */

    /* How many read entities now, by the parity of the epoch that they began in: E2. */
    _Atomic uint64_t epoch;
    _Atomic uint64_t readers[2];

    /* The maintenance thread: maintenance.c. */
    pthread_mutex_t maintenance_lock;
    pthread_cond_t maintenance_wake;
    pthread_t maintenance;
    bool maintenance_started;
    bool maintenance_stop;
    bool maintenance_asked;

    /* The maintenance thread's: what it knows about rows that are to be removed. */
    const struct schema *removal_seen; /* the schema by which it last searched for unneeded rows */
    bool removal_due;                  /* there may be unneeded rows */
    pawl_instant removal_at;           /* not before this */
    unsigned removal_parity;           /* nor before the readers of this parity have ended */

    char **paused; /* names of lanes; under lock */
    size_t paused_count, paused_room;

    struct kept_lease *loaded; /* while the engine is opened: rows that no lane has taken yet */
};

/* --- generations.c --- */

/* Hold a generation, so that it is not freed. number 0: the newest. NULL: there is none. */
struct generation *generation_hold(pawl_engine *engine, uint16_t id, uint32_t number);
struct generation *generation_hold_next(pawl_engine *engine, struct generation *after); /* NULL: the first */
struct generation *generation_hold_any(pawl_engine *engine, struct generation *after);  /* retired ones, too */
void generation_hold_more(struct generation *generation); /* the caller holds it already */
void generation_release(struct generation *generation);

/* Visit its lanes, each on its shard; from a thread that may wait. */
void generation_visit(struct generation *generation, void (*visit)(struct partition_lane *pl));

/* Free the retired generations that nobody needs any more: E1. True: retired ones are left. */
bool generations_free_retired(pawl_engine *engine);

/* As lanes_find, and also checks that the engine is open for writing and has the partition. Errors as
 * engine_enter_writing; PAWL_EINVAL. */
int lanes_find_in_partition(pawl_engine *engine, uint16_t partition, const char *name,
                            const struct schema_lane **ret_lane, pawl_error *error);

/* --- partition_lane.c: on its shard, if nothing else is said --- */

void partition_lane_open(struct partition_lane *pl);
void partition_lane_close(struct partition_lane *pl); /* generation->busy falls when it is done */

/* The same for good, also if it is closed already: its kept leases are removed. */
void partition_lane_retire(struct partition_lane *pl);

/* Why a closed lane refuses what is said of a lease. It may be opened again with its leases (PAWL_EBUSY), unless
 * it is superseded or could not be opened (PAWL_EFENCED). */
int partition_lane_refusal(const struct partition_lane *pl);

/* Acquire leases of what can be worked on, and queue the jobs for the worker pools. */
void partition_lane_fill(struct partition_lane *pl);

/* Any thread: give a job back; say that there is room in a queue. */
void partition_lane_return(struct job *job);
void partition_lane_ask(struct partition_lane *pl);

/* The lease of this number was taken back: give up the job that had it, in the list from out on. */
void jobs_give_up(struct job *out, uint64_t number);

/* Any thread: make a job that is not in the list of jobs that are out; free it. NULL: no memory. */
struct job *job_new(struct partition_lane *pl);
void job_free(struct job *job);

/* --- maintenance.c --- */

int maintenance_start(pawl_engine *engine, pawl_error *error);
void maintenance_stop(pawl_engine *engine);
void maintenance_ask(struct lanes *lanes);        /* wake the maintenance thread; any thread */
bool maintenance_look_after(pawl_engine *engine); /* join and replace worker threads; true: there are some */
void maintenance_sleep(struct lanes *lanes, pawl_duration timeout); /* until it is asked, or the time is over */

/* --- generation_switch.c: let each new generation serve that has caught up with the one that serves. True:
 * some new generation has not caught up. */
bool lanes_switch_generations(pawl_engine *engine);

/* --- row_removal.c: remove rows of generations that nobody reads any more. True: there may be more to remove:
 * call again later. */
bool lanes_remove_rows(pawl_engine *engine);

/* --- paused.c --- */

int paused_pause(pawl_engine *engine, const char *lane, bool paused, pawl_error *error);
bool lanes_is_paused(pawl_engine *engine, pawl_bytes lane);
void paused_forget(pawl_engine *engine);

/* --- kept_leases.c: on the shard, if nothing else is said --- */

/* The store of a lane's lease table; its ctx is the partition_lane. */
extern const pawl_lease_store kept_leases_store;

/* Wait until what its leases have queued is durable. Not on a shard. */
int kept_leases_settle(struct partition_lane *pl, pawl_error *error);

/* Take over the rows that were loaded for it; before its lane is opened. */
void kept_leases_take(struct partition_lane *pl);

/* Remove all its rows: its generation is over. release: forget them, they stay in the store. forget: the same with
 * those that no lane has taken. The last two on any thread. */
void kept_leases_drop_all(struct partition_lane *pl);
void kept_leases_release(struct partition_lane *pl);
void kept_leases_forget(pawl_engine *engine);

/* --- handler.c --- */

/* Run a job: its handler, if its projector has one, and the explosion. job->outcome says how it ended. */
struct worker_pool;
void job_work(struct job *job, struct worker_pool *pool, struct run_buffers *buffers);

/* Run the handler alone, on a store of the caller's choice. PAWL_OK: the run has its intents; otherwise
 * job->outcome and job->words say how it ended. */
struct expr_cache;
struct handling {
    pawl_engine *engine;
    pawl_store *store;
    pawl_handler fn;
    void *arg;
    struct expr_cache *cache;
};
int job_handle(const struct handling *handling, struct job *job, struct run_buffers *buffers);

/* The handler that is registered for a projector. False: there is none. */
bool handler_find(pawl_engine *engine, uint16_t projector, pawl_handler *ret_fn, void **ret_arg);

/* --- worker_lease.c --- */

/* An operation of this projector can be leased: wake one worker that waits for it. */
void leases_offer(pawl_engine *engine, uint16_t projector);

/* On the shard: the next operation in turn can be leased from outside, and no worker waits for one. */
bool leases_is_starving(const struct partition_lane *pl);

/* Wake all waiting workers, and wait until they have left. */
void leases_close(pawl_engine *engine);

/* --- worker_watch.c: tell those that watch this projector, on any thread. has: whether there are any; under
 * lanes.lock. */
void watches_tell(pawl_engine *engine, uint16_t projector);
bool watches_has(const struct lanes *lanes, uint16_t projector);

/* --- worker_commit.c: the run of a commit has ended. */
void worker_commit_finished(struct job *job, int status);

/* On the shard: the worker of a lease says that it failed, and this may decide; it counts only if what the worker
 * has read still stands at the operation's turn. PAWL_EFENCED, PAWL_EBUSY, PAWL_ENOMEM. */
int worker_fail(struct partition_lane *pl, uint64_t number, pawl_operation_id id, bool permanent,
                const char *words);

/* --- worker_reads.c: on the shard --- */

/* Add what was read under a lease to the reads of its run. PAWL_ENOMEM. */
int worker_reads_copy(struct partition_lane *pl, struct run *run);
bool worker_reads_has(const struct partition_lane *pl, uint64_t number, pawl_operation_id id);
void worker_reads_forget(struct partition_lane *pl, uint64_t applied); /* of numbers up to this one */
void worker_reads_free(struct partition_lane *pl);                     /* all */

/* worker_lease.c: a projector that takes workers. Errors: those of pawl_worker_acquire. */
int worker_projector_find(pawl_engine *engine, const char *name, uint16_t *ret_id, pawl_error *error);

/* worker_lease.c: the lane that a lease belongs to. PAWL_EINVAL: the lease names none; PAWL_ENOTFOUND. */
int worker_lease_find(pawl_engine *engine, const pawl_worker_lease *lease, const struct schema_lane **ret_lane,
                      pawl_error *error);

#endif
