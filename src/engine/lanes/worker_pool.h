/* engine/lanes/worker_pool.h: threads that run one projector of one generation of a lane, in all partitions.
 *
 *     part ── worker_pool_push ──► its queue ──► a thread: job_work ──► partition_lane_return
 *
 * They are started when there is something to do, up to the projector's number of workers, and end when there
 * was nothing for a while. Partitions take turns: each time a thread is free the next partition that has
 * something queued gets it, so none gets more than its share while another waits.
 *
 * A handler may hang. A thread that is busy for longer than WORKERS_SLOW no longer counts: another may be started
 * in its place. But in no partition does the projector ever run more often at once than it has workers, so what
 * hangs in one partition ends up with so many threads, and the others go on.
 *
 * Jobs are queued ahead, so that threads go on without waiting for the shard: many of those that are quick, a
 * few of others. */
#ifndef ENGINE_LANES_WORKER_POOL_H
#define ENGINE_LANES_WORKER_POOL_H

#include "engine/lanes/impl.h"

#define WORKERS_SLOW        PAWL_SECOND
#define WORKERS_IDLE        (5 * PAWL_SECOND) /* then a thread ends */
#define WORKERS_THREADS_MAX 1024              /* of an engine */

struct worker_thread;

/* What a worker pool has of a partition. */
struct worker_queue {
    struct job *first, **last;
    uint32_t queued;
    uint32_t running;
    bool listed;
    struct worker_queue *next; /* among those with something queued */
};

struct worker_pool {
    struct generation *generation;
    uint32_t projection;
    const struct schema_projector *projector;
    bool quick; /* the lane runs it itself */

    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t gone;  /* the last of its threads has left */
    uint32_t limit;       /* at once */
    uint32_t cap;         /* slow ones included */
    pawl_handler handler; /* NULL: it has actions, or outsiders work on it */
    void *arg;
    bool stopping;

    struct worker_queue *queues; /* by partition */
    struct worker_queue *first, **last;
    uint32_t queued;
    struct worker_thread *threads;
    struct worker_thread *ended; /* to be joined */
    uint32_t count, idle, slow;
    uint64_t average; /* of a job, in nanoseconds */

    struct expr_cache *cache; /* of what its handler's results say: results.c */
};

int worker_pool_init(struct worker_pool *pool, struct generation *generation, uint32_t projection,
                     const struct schema_projector *projector);

/* Nothing is queued or running: join its threads, and forget it. */
void worker_pool_release(struct worker_pool *pool);

/* Whether anybody here works for it. */
bool worker_pool_is_staffed(struct worker_pool *pool);
void worker_pool_set_handler(struct worker_pool *pool, pawl_handler handler, void *arg);

/* The schema wants another number of workers. */
void worker_pool_resize(struct worker_pool *pool, uint32_t count);

/* How many more jobs a partition may queue now. */
uint32_t worker_pool_room(struct worker_pool *pool, uint16_t partition);

/* Jobs in a list, by queued. */
void worker_pool_push(struct worker_pool *pool, uint16_t partition, struct job *jobs);

/* What is queued of a partition and nobody has begun, as a list. */
struct job *worker_pool_take_back(struct worker_pool *pool, uint16_t partition);

/* Join those that have ended, replace those that are slow. True: there is something to look after. */
bool worker_pool_look_after(struct worker_pool *pool);

/* Whether the calling thread is one of its own. */
bool worker_pool_is_self(struct worker_pool *pool);

#endif
