/* engine/lanes.h: the lanes of a node: their generations, in every partition.
 *
 *     schema published ──► reconcile: generations that it has are opened, those it has no more are closed
 *
 *     generation of a lane ─┬─ a part in each partition, on its shard: core/project/lane.h over it
 *                           └─ a crew for each projector: threads that run it        (workers.h)
 *
 *     lane ── available ──► part: jobs ──► crew ── worked on ──► returned ──► lane_hand_in ──► finished
 *     (shard)               (shard)        (threads)             (shard)      (shard)          (shard)
 *
 * Opening one waits for nothing: a lane recovers by itself, and commands never wait for it. A part whose lane
 * cannot be opened refuses nothing else.
 *
 * Who touches what
 *   the list of generations, handlers, whoever waits for a lease      any thread, under lanes.lock
 *   a part and its jobs                                               its shard
 *   a job that is out, save its links                                 the thread that works on it
 *   a crew                                                            any thread, under its own lock
 *
 * Invariants
 *   E1  A generation is freed when the schema has it no more, its lanes are closed, its jobs are back, and
 *       nobody holds it.
 *   E2  Rows of a generation are removed when it is freed, no entity is read from it, and every reader that
 *       began before that was so has ended.
 *   E3  Locks are taken in this order: schema_lock, lanes.lock, a crew's. Nobody waits for a shard under the
 *       last two. */
#ifndef ENGINE_LANES_H
#define ENGINE_LANES_H

#include <pawl/pawl.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/latch.h"
#include "core/project/lane.h"

struct generation;
struct lane_part;

/* How an attempt ended. POSTPONED: something that it needs was not to be had, which is nobody's failure. */
enum job_outcome { JOB_DONE, JOB_FAILED, JOB_POSTPONED };

/* A run, and what the engine has to know of it. */
struct job {
    struct run run;
    struct lane_part *part;
    struct job *next, **link; /* among the part's that are out */
    struct job *queued;       /* the next one in its crew's queue, or that was returned */
    atomic_bool given_up;     /* nobody waits for it any more */
    pawl_instant since;
    pawl_instant extended;
    enum job_outcome outcome;
    bool permanent;
    char words[PAWL_LEASE_WORDS_MAX + 4]; /* more than are kept, so that whoever cuts them sees the character */
    struct results_expr *exprs;           /* that its results named, and no cache has */

    pawl_work work; /* exploding again, on the pool */
    int status;

    struct worker_commit *commit; /* an external worker's; NULL: a crew's */
};

/* A generation in one partition. */
struct lane_part {
    struct generation *generation;
    uint16_t partition;
    struct lane_part *next;  /* of the same partition */
    struct lane *lane;       /* NULL: it could not be opened, or is closed */
    bool closing;            /* until it is closed */
    _Atomic uint64_t offset; /* all events up to here are applied to its tables; for any thread */
    int status;              /* of opening it */
    pawl_error error;
    uint64_t goal; /* the steward's: where what serves had come to when it was last looked at */

    struct job *out; /* with the crews */
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
    struct crew *crews;      /* by projection */
    struct lane_part *parts; /* by partition */
    uint32_t holders;        /* under lanes.lock */
    bool retired;            /* the schema has it no more; the same */
    _Atomic uint32_t busy;   /* lanes that are open, jobs that are out */

    /* The steward's, while it is being built. */
    bool aiming;           /* its parts have goals */
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
    _Atomic uint32_t threads;  /* of all crews */

    /* Readers of entities, by the parity of the epoch that they began in: E2. */
    _Atomic uint64_t epoch;
    _Atomic uint64_t readers[2];

    /* The thread that does what may wait: steward.c. */
    pthread_mutex_t steward_lock;
    pthread_cond_t steward_wake;
    pthread_t steward;
    bool steward_started;
    bool steward_stop;
    bool steward_asked;

    /* The steward's: since when it has been waiting to remove rows. */
    const struct schema *drop_seen;
    bool drop_due;
    pawl_instant drop_at;
    unsigned drop_parity;

    char **paused; /* names of lanes; under lock */
    size_t paused_count, paused_room;
};

/* --- generations.c --- */

void lanes_init(pawl_engine *engine);

/* Open what the schema has, close what it has no more. Under schema_lock, from a thread that may wait. */
int lanes_reconcile(pawl_engine *engine, pawl_error *error);

/* Close all of them, and wait until that is done. Handlers that run are waited for. */
void lanes_close(pawl_engine *engine);
void lanes_release(pawl_engine *engine);

/* Whether the calling thread is one that runs handlers. */
bool lanes_is_self(pawl_engine *engine);

/* Hold a generation, so that it is not freed. number 0: the newest. NULL: there is none. */
struct generation *generation_hold(pawl_engine *engine, uint16_t id, uint32_t number);
struct generation *generation_hold_next(pawl_engine *engine, struct generation *after); /* NULL: the first */
struct generation *generation_hold_any(pawl_engine *engine, struct generation *after);  /* retired ones, too */
void generation_hold_more(struct generation *generation); /* which the caller holds */
void generation_drop(struct generation *generation);

/* Whether it is open, or on its way out. */
bool generation_is_there(pawl_engine *engine, uint16_t id, uint32_t number);

/* Visit its parts, each on its shard; from a thread that may wait. */
void generation_visit(struct generation *generation, void (*visit)(struct lane_part *part));

/* Those that are retired and done with are taken out and freed. True: some are left that are not done. */
bool generations_bury(pawl_engine *engine);

/* The lane of the present schema by its name. PAWL_ENOTFOUND. */
int lanes_find(pawl_engine *engine, const char *name, const struct schema_lane **ret_lane, pawl_error *error);

/* The same, of a call that concerns a partition of an engine that writes. Errors as engine_enter_writing;
 * PAWL_EINVAL.
 */
int lanes_find_part(pawl_engine *engine, uint16_t partition, const char *name,
                    const struct schema_lane **ret_lane, pawl_error *error);

/* --- lanes.c: a part, on its shard --- */

void part_open(struct lane_part *part);
void part_close(struct lane_part *part); /* generation->busy tells when it is done */
void part_poke(struct lane_part *part, uint64_t offset);

/* Acquire what can be worked on, for the crews. */
void part_fill(struct lane_part *part);

/* Any thread: a job is back; or there is room in a queue. */
void part_return(struct job *job);
void part_ask(struct lane_part *part);

/* Somebody took this number's lease back, which one of these jobs, or of those behind it in the list, had. */
void jobs_give_up(struct job *out, uint64_t number);

/* A job for a run of somebody else's; and its end. On any thread. NULL: no memory. */
struct job *job_new(struct lane_part *part);
void job_free(struct job *job);

/* --- readers of entities: E2 --- */

unsigned lanes_read_begin(struct lanes *lanes);
void lanes_read_end(struct lanes *lanes, unsigned parity);

/* --- steward.c --- */

int steward_start(pawl_engine *engine, pawl_error *error);
void steward_stop(pawl_engine *engine);
void steward_ask(struct lanes *lanes);                          /* look again, soon; any thread */
bool steward_look_after(pawl_engine *engine);                   /* the crews; true: some are at work */
void steward_sleep(struct lanes *lanes, pawl_duration timeout); /* until it is asked, or the time is over */

/* --- switch.c: a generation that is as far as the one that serves takes its place. True: there is one that is
 * not so far yet. */
bool lanes_switch(pawl_engine *engine);

/* --- drop.c: remove rows of generations that nobody reads any more. True: come back later. */
bool lanes_drop(pawl_engine *engine);

/* Whether a lane, or reads of any entity that it has rows of, still need a generation. */
bool lanes_need(const struct schema *schema, uint16_t id, uint32_t number, const struct digests *tables);

/* --- local.c: what the node keeps for itself --- */

/* Load the names of paused lanes. */
int local_load(pawl_engine *engine, pawl_error *error);
int local_pause(pawl_engine *engine, const char *lane, bool paused, pawl_error *error);
bool lanes_is_paused(pawl_engine *engine, pawl_bytes lane);
void local_forget(pawl_engine *engine);

/* --- handler.c --- */

/* Work on a job, whatever its projector is: its outcome is in it afterwards. */
struct crew;
void job_work(struct job *job, struct crew *crew, struct run_room *room);

/* The event of a run, as event_show has it. The text is the caller's to release. */
struct json_out;
int job_show_event(pawl_engine *engine, struct job *job, struct json_out *out,
                   struct pawl_event_source *ret_source, pawl_event *ret_event, pawl_error *error);

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
