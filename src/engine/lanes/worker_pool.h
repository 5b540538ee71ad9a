/* engine/lanes/worker_pool.h: threads that run one projector of one generation of a lane, in all partitions.
 *
 *     partition_lane ── worker_pool_push ──► its queue ──► a thread: job_work ──► partition_lane_return
 *
 * Threads are started when there is something to do, up to the projector's number of workers. A thread ends
 * when there was nothing to do for a while. Partitions take turns: a thread that is free takes a job of the
 * next partition that has one queued, so no partition gets more than its share while another waits.
 *
 * A handler may hang. A thread that is busy for longer than WORKERS_SLOW no longer counts: another may be
 * started in its place. But one partition never has more runs of the projector at once than the projector has
 * workers. So if everything hangs in one partition, it holds that many threads, and the other partitions go on.
 *
 * Jobs are queued ahead, so that threads need not wait for the shard: many jobs if they are quick, else a
 * few. */
#ifndef ENGINE_LANES_WORKER_POOL_H
#define ENGINE_LANES_WORKER_POOL_H

#include "engine/lanes/impl.h"

#define WORKERS_SLOW        PAWL_SECOND
#define WORKERS_IDLE        (5 * PAWL_SECOND) /* then a thread ends */
#define WORKERS_THREADS_MAX 1024              /* of an engine */

struct worker_thread;

/* The jobs of one partition that a worker pool has. */
struct worker_queue {
    struct job *first, **last;
    uint32_t queued;
    uint32_t running;
    bool listed;               /* in the pool's list */
    struct worker_queue *next; /* in the pool's list */
};

struct worker_pool {
    struct generation *generation;
    uint32_t projection;
    const struct schema_projector *projector;
    bool quick; /* the lane runs it itself */

    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t gone;  /* the last of its threads has left */
    uint32_t limit;       /* of threads that are not slow; of runs at once in one partition */
    uint32_t cap;         /* of all threads, slow ones included */
    pawl_handler handler; /* NULL: the projector has actions, or outside workers run it */
    void *arg;
    bool stopping;

    struct worker_queue *queues;        /* by partition */
    struct worker_queue *first, **last; /* the queues that are not empty, in the order of their turns */
    uint32_t queued;                    /* jobs in all queues */
    struct worker_thread *threads;
    struct worker_thread *ended; /* to be joined */
    uint32_t count, idle, slow;
    uint32_t running; /* jobs that its threads work on */
    uint64_t average; /* of a job, in nanoseconds */

    struct expr_cache *cache; /* compiled expressions of its handler's results: results_expr.c */
};

int worker_pool_init(struct worker_pool *pool, struct generation *generation, uint32_t projection,
                     const struct schema_projector *projector);

/* Join its threads, and free what it has. Only when nothing is queued or running. */
void worker_pool_release(struct worker_pool *pool);

/* Whether threads of this process run the projector. False: it needs outside workers. */
bool worker_pool_is_staffed(struct worker_pool *pool);
void worker_pool_set_handler(struct worker_pool *pool, pawl_handler handler, void *arg);

/* Set the number of workers, as the schema says; 0: the default. */
void worker_pool_resize(struct worker_pool *pool, uint32_t count);

/* How many more jobs a partition may queue now, and besides them any whose number is below the lowest one that it has
 * queued (0: none is). */
uint32_t worker_pool_room(struct worker_pool *pool, uint16_t partition, uint64_t *ret_lowest);

/* Queue a list of jobs, linked by job->queued. */
void worker_pool_push(struct worker_pool *pool, uint16_t partition, struct job *jobs);

/* Take back the jobs of a partition that no thread has begun, as a list linked by job->queued. */
struct job *worker_pool_take_back(struct worker_pool *pool, uint16_t partition);

/* Join threads that have ended, replace slow ones. True: it has threads, or jobs are queued: call again
 * soon. */
bool worker_pool_look_after(struct worker_pool *pool);

/* Whether the calling thread is one of its own. */
bool worker_pool_is_self(struct worker_pool *pool);

#endif
