/* test/sim/lanes.h: lanes under virtual time, with random schemas, events, workers and faults, and the serial
 * run that they are compared with.
 *
 *     feed ──► PLog ──► lanes ◄──► workers         what lies on the disks outlives a life
 *                        │
 *                        └──► operation logs, tables ──► the model: one after the other, alone
 *
 * lanes_schema.c    random schemas, and the events
 * lanes_handler.c   what handlers do: the same for workers and for the model
 * lanes_model.c     the serial run, and what is compared with it
 * lanes_worker.c    workers, good and bad
 * lanes_life.c      how a life begins and ends
 * test_lanes.c      what happens */
#ifndef TEST_SIM_LANES_H
#define TEST_SIM_LANES_H

#include "adapter/mem/env.h"
#include "adapter/mem/log.h"
#include "adapter/mem/store.h"
#include "core/group0/group0.h"
#include "core/project/lane.h"
#include "test/lib/lease_store.h"
#include "test/lib/mortal.h"
#include "test/lib/plog.h"
#include "test/lib/test.h"

enum {
    FEEDS_MAX = 2,
    LANES_MAX = 2,
    SITES_MAX = FEEDS_MAX * LANES_MAX,
    ENTITIES_MAX = 3,
    PROJECTORS_MAX = 4,
    COMMANDS = 4, /* the last one is never sent: the actions of projectors on it are lent to handlers */
    WORKERS_MAX = 64,
    HANDED_MAX = 4096,
    STEPS_MAX = 20000000,
    HELD_MAX = 256,
};

struct sim;

#define READ_REASON "for what it read"

/* What a handler does with what it reads. */
enum handler_kind {
    HANDLER_ROW,    /* a row decides which row is written, and what into it */
    HANDLER_RANGE,  /* the sum of all rows does */
    HANDLER_TWICE,  /* two rows, read at two times */
    HANDLER_CHOICE, /* a row decides between deleting by key and a clause; or nothing at all */
    HANDLER_KEYED,  /* an update by key, with a computed set */
    HANDLER_KINDS,
};

struct sim_projector {
    bool handler;
    enum handler_kind kind;
    unsigned lane;
    unsigned reads, writes; /* entities */
};

/* A partition's log as it was fed. */
struct sim_event {
    uint64_t wsid;
    unsigned command;
    int64_t k, by;
    pawl_bytes body;
};

struct feed {
    struct plog plog;
    struct sim_event *events; /* offset - 1 */
    size_t count, room;
};

/* The serial run of a lane in a partition. */
struct model {
    mem_store_disk *disk;
    pawl_store *store;
    uint64_t operations;     /* of the log, that were compared */
    pawl_digest *digests;    /* of the tables, after so many operations */
    struct operation *heads; /* by number: without what is borrowed */
    size_t room;
    uint64_t event; /* the next match is of this one or behind it */
    size_t place;   /* and of this projector, or behind it */
    uint64_t voids;
};

/* A lane in a partition. */
struct site {
    struct sim *sim;
    struct feed *feed;
    uint16_t lane_id;
    uint32_t generation;
    unsigned lane_number;
    struct model model;
    struct lease_twin leases; /* what the node keeps of external leases; it outlives a life */

    /* of a life */
    struct lane *lane;
    bool closing, closed;
    uint64_t scanned; /* as it was told last */
};

struct handling {
    const struct sim *sim;
    const struct site *site;
    const struct sim_projector *projector;
    struct sim_event event;
    unsigned step;
    int64_t seen[2];
    bool found[2];
};

/* An attempt. It lives until somebody says what became of it. */
struct job {
    struct job *next;
    struct sim *sim;
    struct site *site;
    struct run run;
    struct handling handling;
    unsigned steps_left;
    bool fails;
    bool exploded;
    bool handed_in;
    bool kept;     /* by an external worker, which outlives the process */
    bool answered; /* and knows of its lease, which is durable */
};

/* What an external worker has of a lease, between two lives of the process. */
struct held {
    struct site *site;
    uint64_t number;
    pawl_operation_id id;
};

enum worker_state { WORKER_IDLE, WORKER_COMING, WORKER_BUSY };

struct worker {
    pawl_timer timer;
    struct sim *sim;
    enum worker_state state;
    struct job *job;
};

/* Exploded for a lane, elsewhere. */
struct errand {
    pawl_timer timer;
    struct errand *next;
    struct sim *sim;
    struct site *site;
    struct run *run;
};

/* What somebody was told of an attempt. */
struct told {
    struct site *site;
    uint64_t number;
    pawl_operation_id id;
    int status;
    bool by_look; /* into the log, which may have failed */
};

/* So that nobody takes a quiet history for a passed test. */
struct totals {
    uint64_t operations, voids, repeated, expired, fenced, failures, elsewhere;
    uint64_t held, resumed; /* leases that were held at the end of a life; work that went on with them */
    uint64_t promised, promises_kept, promises_broken;
};

struct sim {
    uint64_t random;
    struct mem_world *world;
    struct mem_log_disk *log_disk;
    mem_store_disk *store_disk;
    struct group0 *group0;
    struct mem_env *feeder_env;
    pawl_log *feeder;

    /* The schema. */
    unsigned entities, projector_count, lanes, versions;
    struct sim_projector projectors[PROJECTORS_MAX + LANES_MAX];
    unsigned entity_lane[ENTITIES_MAX];
    char text[16384];
    size_t text_size;
    uint64_t schema_seed;
    const struct schema *schema; /* the newest */

    /* The history's nature. */
    unsigned workers_count;
    uint64_t workspaces, keys;
    pawl_duration pace; /* of workers */
    unsigned trouble;   /* of workers: one in so many goes wrong; 0: none does */
    bool faults;        /* of log, store and memory */
    bool elsewhere;     /* explode again on a thread */
    unsigned external;  /* of four workers so many are in another process */
    struct lane_options limits;

    struct feed feeds[FEEDS_MAX];
    unsigned partitions;
    struct site sites[SITES_MAX];
    unsigned site_count;

    /* of a life */
    struct mortal memory;
    struct mem_env *env;
    pawl_log *log;
    pawl_store *store;
    struct applier applier;
    struct run_buffers buffers;
    struct worker workers[WORKERS_MAX];
    struct job *jobs;
    struct errand *errands;
    bool alive, settling, closing;

    /* Over all lives. */
    struct told told[HANDED_MAX];
    size_t told_count;
    pawl_operation_id old_ids[16];
    uint64_t old_numbers[16];
    size_t old_count;
    struct held held[HELD_MAX];
    size_t held_count;
    struct totals seen;
};

static inline uint64_t below(struct sim *s, uint64_t bound)
{
    return test_below(&s->random, bound);
}

/* lanes_schema.c */
void sim_make_schema(struct sim *s);
void sim_apply_version(struct sim *s, unsigned version);
const struct schema_type *sim_entity(const struct schema *schema, unsigned entity);
const struct sim_projector *sim_projector(const struct sim *s, const struct schema *schema,
                                          const struct schema_projector *projector);
const struct schema_projector *sim_lender(const struct schema *schema, unsigned lane);

/* lanes_handler.c: one step of reading, on a state; then what it wants, in memory. reads NULL: nobody
 * validates.
 */
unsigned handler_steps(const struct sim_projector *projector);
int handler_read(struct handling *h, const struct schema *schema, const struct state *state,
                 struct reads *reads, struct arena *memory);
bool handler_fails(const struct handling *h); /* for good, because of what it read */
void handler_intents(const struct handling *h, const struct schema *schema, struct arena *memory,
                     const struct intent **ret_intents, size_t *ret_count);

/* lanes_model.c */
void model_open(struct site *site);
void model_close(struct site *site);
void model_follow(struct site *site); /* what the log has */
void model_check_snapshot(struct site *site);
void model_check_scanned(struct site *site, uint64_t scanned); /* the tables have all of events up to here */
void model_check_end(struct site *site);

/* lanes_worker.c: on the shard, but for release. */
void workers_init(struct sim *s);
void workers_wake(struct sim *s);
void workers_release(struct sim *s);
void workers_available(void *ctx, struct lane *lane);
void workers_explode(void *ctx, struct lane *lane, struct run *run);
/* Somebody hands in what was not given out to it: again, late, or under another's ID. */
void workers_visit(struct sim *s, struct site *site, uint64_t number, pawl_operation_id id);
void workers_check_told(struct sim *s);
bool workers_wait(const struct sim *s); /* somebody was not told yet */
void workers_forget(struct sim *s);     /* the process died */
struct site *sim_site_of(struct sim *s, const struct lane *lane);

/* lanes_life.c */
void sim_open(struct sim *s, uint64_t seed);
void sim_close(struct sim *s);
void sim_boot(struct sim *s);
void sim_halt(struct sim *s);
void sim_close_lane(struct site *site); /* on the shard; once */
void sim_crash(struct sim *s, bool power);
void sim_feed(struct sim *s, struct feed *feed, size_t count);
void sim_call(struct sim *s, void (*fn)(void *arg), void *arg);

#endif
