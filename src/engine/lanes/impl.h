/* engine/lanes/impl.h: how the lanes of a node work. For this room only.
 *
 *     generation of a lane ─┬─ a partition_lane in each partition, on its shard: core/project/lane.h in it
 *                           └─ a worker_pool for each projector: threads that run it
 *
 *     lane ── available ──► partition_lane: jobs ──► worker pool ── worked on ──► returned ──► lane_hand_in ──► finished
 *     (shard)               (shard)                  (threads)                    (shard)      (shard)          (shard)
 *
 * Opening a lane waits for nothing: it recovers by itself, and commands never wait for it. If one lane cannot be
 * opened in one partition, all others go on.
 *
 * Who touches what
 *   the list of generations, handlers, whoever waits for a lease      any thread, under lanes.lock
 *   a partition_lane and its jobs                                     its shard
 *   a job that is out, save its links                                 the thread that works on it
 *   a worker pool                                                     any thread, under its own lock
 *
 * Invariants
 *   E1  A generation is freed when the schema has it no more, its lanes are closed, its jobs are back, and
 *       nobody holds it.
 *   E2  Rows of a generation are removed when it is freed, no entity is read from it, and every reader that
 *       began before that was so has ended.
 *   E3  Locks are taken in this order: schema_lock, lanes.lock, a worker pool's. Nobody waits for a shard under
 *       the last two. */
#ifndef ENGINE_LANES_IMPL_H
#define ENGINE_LANES_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/latch.h"
#include "base/wait.h"
#include "engine/lanes/lanes.h"
#include "engine/node/node.h"

struct generation;

/* How a run ended. POSTPONED: something that it needs was not to be had, which is nobody's failure. */
enum job_outcome { JOB_DONE, JOB_FAILED, JOB_POSTPONED };

/* A run, and what the engine has to know of it. */
struct job {
    struct run run;
    struct partition_lane *pl;
    struct job *next, **link; /* among its partition_lane's that are out */
    struct job *queued;       /* the next one in its pool's queue, or that was returned */
    atomic_bool given_up;     /* nobody waits for it any more */
    pawl_instant since;
    pawl_instant extended;
    enum job_outcome outcome;
    bool permanent;
    char words[PAWL_LEASE_WORDS_MAX + 4]; /* more than are kept, so that whoever cuts them sees the character */
    struct results_expr *exprs;           /* that its results named, and no cache has */

    pawl_work work; /* exploding again, on the pool */
    int status;

    struct worker_commit *commit; /* an external worker's; NULL: a worker pool's */
};

/* A generation in one partition. */
struct partition_lane {
    struct generation *generation;
    uint16_t partition;
    struct partition_lane *next; /* of the same partition */
    struct lane *lane;           /* NULL: it could not be opened, or is closed */
    bool closing;                /* until it is closed */
    _Atomic uint64_t offset;     /* all events up to here are applied to its tables; for any thread */
    int status;                  /* of opening it */
    pawl_error error;
    uint64_t goal; /* the maintenance's: where what serves had come to when it was last looked at */

    struct job *out; /* with the workers */
    size_t out_count;
    struct job *spare;
    size_t spare_count;
    struct job *_Atomic returned; /* by any thread; the newest first */
    pawl_task task;
    pawl_timer timer; /* extends leases */
    bool ticking;
};

struct generation {
    struct generation *next;
    pawl_engine *engine;
    uint16_t id;
    uint32_t number;
    const struct schema *schema; /* one that has it */
    pawl_bytes name;             /* of the lane */
    uint32_t projections;
    struct worker_pool *pools;    /* by projection */
    struct partition_lane *lanes; /* by partition */
    uint32_t holders;             /* under lanes.lock */
    bool retired;                 /* the schema has it no more; the same */
    _Atomic uint32_t busy;        /* lanes that are open, jobs that are out */

    /* The maintenance's, while it is being built. */
    bool aiming;           /* its lanes have goals */
    pawl_instant again_at; /* when to try once more */
    pawl_duration delay;
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
    bool told;
};

struct lanes {
    pthread_mutex_t lock;
    struct generation *first;
    struct handler *handlers;
    struct lease_wait *waits;
    pthread_cond_t waits_gone; /* the last of them has left */
    _Atomic uint32_t waiting;  /* how many there are */
    _Atomic uint32_t threads;  /* of all workers */

    /* Readers of entities, by the parity of the epoch that they began in: E2. */
    _Atomic uint64_t epoch;
    _Atomic uint64_t readers[2];

    /* The thread that does what may wait: maintenance.c. */
    pthread_mutex_t maintenance_lock;
    pthread_cond_t maintenance_wake;
    pthread_t maintenance;
    bool maintenance_started;
    bool maintenance_stop;
    bool maintenance_asked;

    /* The maintenance's: since when it has been waiting to remove rows. */
    const struct schema *removal_seen;
    bool removal_due;
    pawl_instant removal_at;
    unsigned removal_parity;

    char **paused; /* names of lanes; under lock */
    size_t paused_count, paused_room;
};

/* --- generations.c --- */

/* Hold a generation, so that it is not freed. number 0: the newest. NULL: there is none. */
struct generation *generation_hold(pawl_engine *engine, uint16_t id, uint32_t number);
struct generation *generation_hold_next(pawl_engine *engine, struct generation *after); /* NULL: the first */
struct generation *generation_hold_any(pawl_engine *engine, struct generation *after);  /* retired ones, too */
void generation_hold_more(struct generation *generation); /* which the caller holds */
void generation_release(struct generation *generation);

/* Visit its lanes, each on its shard; from a thread that may wait. */
void generation_visit(struct generation *generation, void (*visit)(struct partition_lane *pl));

/* Those that are retired and done with are taken out and freed. True: some are left that are not done. */
bool generations_free_retired(pawl_engine *engine);

/* As lanes_find, of a call that concerns a partition of an engine that writes. Errors as engine_enter_writing;
 * PAWL_EINVAL.
 */
int lanes_find_part(pawl_engine *engine, uint16_t partition, const char *name,
                    const struct schema_lane **ret_lane, pawl_error *error);

/* --- lanes.c: a pl, on its shard --- */

void partition_lane_open(struct partition_lane *pl);
void partition_lane_close(struct partition_lane *pl); /* generation->busy tells when it is done */

/* Acquire what can be worked on, for the workers. */
void partition_lane_fill(struct partition_lane *pl);

/* Any thread: a job is back; or there is room in a queue. */
void partition_lane_return(struct job *job);
void partition_lane_ask(struct partition_lane *pl);

/* Somebody took this number's lease back, which one of these jobs, or of those behind it in the list, had. */
void jobs_give_up(struct job *out, uint64_t number);

/* A job for a run of somebody else's; and its end. On any thread. NULL: no memory. */
struct job *job_new(struct partition_lane *pl);
void job_free(struct job *job);

/* --- maintenance.c --- */

int maintenance_start(pawl_engine *engine, pawl_error *error);
void maintenance_stop(pawl_engine *engine);
void maintenance_ask(struct lanes *lanes);                          /* look again, soon; any thread */
bool maintenance_look_after(pawl_engine *engine);                   /* the workers; true: some are at work */
void maintenance_sleep(struct lanes *lanes, pawl_duration timeout); /* until it is asked, or the time is over */

/* --- generation_switch.c: a generation that is as far as the one that serves takes its place. True: there is one that is
 * not so far yet. */
bool lanes_switch_generations(pawl_engine *engine);

/* --- row_removal.c: remove rows of generations that nobody reads any more. True: come back later. */
bool lanes_remove_rows(pawl_engine *engine);

/* --- paused.c --- */

int paused_pause(pawl_engine *engine, const char *lane, bool paused, pawl_error *error);
bool lanes_is_paused(pawl_engine *engine, pawl_bytes lane);
void paused_forget(pawl_engine *engine);

/* --- handler.c --- */

/* Work on a job, whatever its projector is: its outcome is in it afterwards. */
struct worker_pool;
void job_work(struct job *job, struct worker_pool *pool, struct run_room *room);

/* The handler alone, on a store of the caller's choice. PAWL_OK: there are intents in the run; otherwise the
 * job says what became of it. */
struct expr_cache;
struct handling {
    pawl_engine *engine;
    pawl_store *store;
    pawl_handler fn;
    void *arg;
    struct expr_cache *cache;
};
int job_handle(const struct handling *handling, struct job *job, struct run_room *room);

/* The handler that is registered for a projector; false: none. */
bool handler_find(pawl_engine *engine, uint16_t projector, pawl_handler *ret_fn, void **ret_arg);

/* --- worker_lease.c: there may be something to lease of this projector --- */
void leases_offer(pawl_engine *engine, uint16_t projector);
void leases_close(pawl_engine *engine);

/* --- worker_commit.c: a commit's run has ended. */
void worker_commit_finished(struct job *job, int status);

/* worker_lease.c: the lane that a lease is of. PAWL_EINVAL: it names none; PAWL_ENOTFOUND. */
int worker_lease_find(pawl_engine *engine, const pawl_worker_lease *lease, const struct schema_lane **ret_lane,
                      pawl_error *error);

#endif
