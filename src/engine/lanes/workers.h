/* engine/lanes/workers.h: threads that run one projector of one generation of a lane, in all partitions.
 *
 *     part ── crew_push ──► its queue ──► a thread: job_work ──► part_return
 *
 * They are started when there is something to do, up to the projector's number of workers, and end when there
 * was nothing for a while. Partitions take turns: each time a thread is free the next partition that has
 * something queued gets it, so none gets more than its share while another waits.
 *
 * A handler may hang. A thread that is busy for longer than CREW_SLOW no longer counts: another may be started
 * in its place. But in no partition does the projector ever run more often at once than it has workers, so what
 * hangs in one partition ends up with so many threads, and the others go on.
 *
 * Jobs are queued ahead, so that threads go on without waiting for the shard: many of those that are quick, a
 * few of others. */
#ifndef ENGINE_LANES_WORKERS_H
#define ENGINE_LANES_WORKERS_H

#include "engine/lanes/lanes.h"

#define CREW_SLOW        PAWL_SECOND
#define CREW_IDLE        (5 * PAWL_SECOND) /* then a thread ends */
#define CREW_THREADS_MAX 1024              /* of an engine */

struct crew_thread;

/* What a crew has of a partition. */
struct bench {
    struct job *first, **last;
    uint32_t queued;
    uint32_t running;
    bool listed;
    struct bench *next; /* among those with something queued */
};

struct crew {
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

    struct bench *benches; /* by partition */
    struct bench *first, **last;
    uint32_t queued;
    struct crew_thread *threads;
    struct crew_thread *ended; /* to be joined */
    uint32_t count, idle, slow;
    uint64_t average; /* of a job, in nanoseconds */

    struct expr_cache *cache; /* of what its handler's results say: results.c */
};

int crew_init(struct crew *crew, struct generation *generation, uint32_t projection,
              const struct schema_projector *projector);

/* Nothing is queued or running: join its threads, and forget it. */
void crew_release(struct crew *crew);

/* Whether anybody here works for it. */
bool crew_is_manned(struct crew *crew);
void crew_man(struct crew *crew, pawl_handler handler, void *arg);

/* The schema wants another number of workers. */
void crew_resize(struct crew *crew, uint32_t workers);

/* How many more jobs a partition may queue now. */
uint32_t crew_room(struct crew *crew, uint16_t partition);

/* Jobs in a list, by queued. */
void crew_push(struct crew *crew, uint16_t partition, struct job *jobs);

/* What is queued of a partition and nobody has begun, as a list. */
struct job *crew_take_back(struct crew *crew, uint16_t partition);

/* Join those that have ended, replace those that are slow. True: there is something to look after. */
bool crew_look_after(struct crew *crew);

/* Whether the calling thread is one of its own. */
bool crew_is_self(struct crew *crew);

#endif
