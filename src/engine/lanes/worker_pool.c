#include "engine/lanes/worker_pool.h"

#include <signal.h>

#include "base/alloc.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/results.h"

#define WORKERS_DEFAULT 4
#define PARTITIONS_MANY 16 /* in so many partitions all handlers may hang before other partitions suffer */
#define QUICK           PAWL_MILLISECOND
#define QUICK_AHEAD     32
#define SLOW_AHEAD      8 /* one job is queued ahead for so many workers */
#define ARENA_CHUNK     ((size_t)4096)

struct worker_thread {
    struct worker_pool *pool;
    pthread_t id;
    struct worker_thread *next, **link;
    struct worker_queue *busy; /* the queue of the job that it works on; NULL: none */
    pawl_instant since;
    bool slow;
};

static pawl_engine *engine_of(const struct worker_pool *pool)
{
    return pool->generation->engine;
}

/* --- the queue; all of it under the lock --- */

static void list_queue(struct worker_pool *pool, struct worker_queue *queue)
{
    if (queue->listed || !queue->first)
        return;
    queue->listed = true;
    queue->next = NULL;
    *pool->last = queue;
    pool->last = &queue->next;
}

/* The lowest number first: all others of its partition wait for it. Most numbers are higher than all that are queued; one
 * that came back, or has become free, may be lower. */
static void insert(struct worker_queue *queue, struct job *job)
{
    struct job **at = &queue->first;
    while (*at && (*at)->run.number < job->run.number)
        at = &(*at)->queued;
    job->queued = *at;
    *at = job;
    if (!job->queued)
        queue->last = &job->queued;
}

static struct job *pop(struct worker_pool *pool, struct worker_queue *queue)
{
    struct job *job = queue->first;
    queue->first = job->queued;
    if (!queue->first)
        queue->last = &queue->first;
    queue->queued--;
    pool->queued--;
    return job;
}

/* A job of the first queue in the list whose partition may have one more run. The queue goes to the end. */
static struct job *take(struct worker_pool *pool, struct worker_queue **ret_queue)
{
    struct worker_queue **at = &pool->first;
    while (*at && (*at)->running >= pool->limit)
        at = &(*at)->next;
    struct worker_queue *queue = *at;
    if (!queue)
        return NULL;
    *at = queue->next;
    if (!*at)
        pool->last = at;
    queue->listed = false;
    struct job *job = pop(pool, queue);
    list_queue(pool, queue);
    *ret_queue = queue;
    return job;
}

/* --- threads --- */

static void wait_idle(struct worker_pool *pool, bool *ret_over)
{
    uint64_t end = wait_deadline(WORKERS_IDLE);
    pool->idle++;
    *ret_over = !cond_wait_until(&pool->work, &pool->lock, end);
    pool->idle--;
}

static void begin_job(struct worker_thread *t, struct worker_queue *queue)
{
    queue->running++;
    t->pool->running++;
    t->busy = queue;
    t->since = pawl_env_now(engine_of(t->pool)->env);
}

static void end_job(struct worker_thread *t)
{
    struct worker_pool *pool = t->pool;
    uint64_t took = pawl_env_now(engine_of(pool)->env).ns - t->since.ns;
    pool->average = pool->average - pool->average / 8 + took / 8;
    t->busy->running--;
    pool->running--;
    t->busy = NULL;
    if (t->slow)
        pool->slow--;
    t->slow = false;
}

/* A thread that was slow was replaced, and is not slow any more: now there is one too many. */
static bool is_too_many(const struct worker_pool *pool)
{
    return pool->count - pool->slow > pool->limit;
}

static void leave(struct worker_thread *t)
{
    struct worker_pool *pool = t->pool;
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    t->next = pool->ended;
    pool->ended = t;
    pool->count--;
    atomic_fetch_sub(&engine_of(pool)->lanes->threads, 1);
    if (pool->count == 0)
        pthread_cond_broadcast(&pool->gone);
}

static void *thread_main(void *arg)
{
    struct worker_thread *t = arg;
    struct worker_pool *pool = t->pool;
    struct run_buffers buffers;
    struct worker_queue *queue;
    struct job *job;
    bool over = run_buffers_init(&buffers, engine_of(pool)->options.allocator) != PAWL_OK;
    pthread_mutex_lock(&pool->lock);
    while (!over) {
        while (!is_too_many(pool) && (job = take(pool, &queue))) {
            /* A quick job is back soon, and then the shard fills the queue. */
            bool ask = queue->queued == 0 && pool->average >= QUICK;
            begin_job(t, queue);
            pthread_mutex_unlock(&pool->lock);
            if (ask)
                partition_lane_ask(job->pl);
            job_work(job, pool, &buffers);
            pthread_mutex_lock(&pool->lock);
            end_job(t);
            pthread_mutex_unlock(&pool->lock);
            partition_lane_return(job);
            pthread_mutex_lock(&pool->lock);
        }
        if (pool->stopping || is_too_many(pool))
            break;
        wait_idle(pool, &over);
        over = over && !pool->first;
    }
    leave(t);
    pthread_mutex_unlock(&pool->lock);
    run_buffers_release(&buffers);
    return NULL;
}

static void start_thread(struct worker_pool *pool)
{
    pawl_engine *e = engine_of(pool);
    sigset_t all, before;
    if (atomic_fetch_add(&e->lanes->threads, 1) >= WORKERS_THREADS_MAX)
        goto too_many;
    struct worker_thread *t = mem_new(e->options.allocator, 1, sizeof *t);
    if (!t)
        goto too_many;
    t->pool = pool;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the host's handlers run on the host's threads */
    int failed = pthread_create(&t->id, NULL, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        goto create_failed;
    t->next = pool->threads;
    t->link = &pool->threads;
    if (t->next)
        t->next->link = &t->next;
    pool->threads = t;
    pool->count++;
    maintenance_ask(e->lanes); /* which replaces the thread if it hangs */
    return;

create_failed:
    mem_free(e->options.allocator, t, sizeof *t);
too_many:
    atomic_fetch_sub(&e->lanes->threads, 1);
}

/* Under the lock: start a thread for each queued job that no idle thread is there for, within the limits. How many idle
 * ones are to be woken, after the lock is given back: else each would only wait for it. */
static uint32_t staff(struct worker_pool *pool)
{
    uint32_t wanted = pool->queued;
    for (uint32_t i = pool->idle;
         i < wanted && pool->count - pool->slow < pool->limit && pool->count < pool->cap; i++) {
        uint32_t before = pool->count;
        start_thread(pool);
        if (pool->count == before)
            break;
    }
    return wanted < pool->idle ? wanted : pool->idle;
}

static void wake(struct worker_pool *pool, uint32_t count)
{
    while (count-- > 0)
        pthread_cond_signal(&pool->work);
}

/* --- for the lanes --- */

bool worker_pool_is_staffed(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool staffed = !pool->projector->handler || pool->handler;
    pthread_mutex_unlock(&pool->lock);
    return staffed;
}

void worker_pool_set_handler(struct worker_pool *pool, pawl_handler handler, void *arg)
{
    pthread_mutex_lock(&pool->lock);
    pool->handler = handler;
    pool->arg = arg;
    pthread_mutex_unlock(&pool->lock);
}

void worker_pool_resize(struct worker_pool *pool, uint32_t count)
{
    uint32_t partitions = engine_of(pool)->file.partitions;
    pthread_mutex_lock(&pool->lock);
    pool->limit = count ? count : WORKERS_DEFAULT;
    pool->cap = pool->limit * (partitions < PARTITIONS_MANY ? partitions : PARTITIONS_MANY);
    (void)staff(pool);
    pthread_mutex_unlock(&pool->lock);
    /* A thread that is too many now may take a signal, and leave: wake all. */
    pthread_cond_broadcast(&pool->work);
}

/* Each partition has a job queued, so that it gets its turn. But a single worker does not work ahead of itself: while it
 * works, what it will write cannot be read. */
static uint32_t ahead_of_slow(const struct worker_pool *pool, const struct worker_queue *queue)
{
    return pool->limit > 1 || queue->running == 0 ? 1 + pool->limit / SLOW_AHEAD : 0;
}

uint32_t worker_pool_room(struct worker_pool *pool, uint16_t partition, uint64_t *ret_lowest)
{
    pthread_mutex_lock(&pool->lock);
    const struct worker_queue *queue = &pool->queues[partition];
    uint32_t at_work = pool->running - pool->slow;
    uint32_t free = pool->limit > at_work + pool->queued ? pool->limit - at_work - pool->queued : 0;
    uint32_t ahead = pool->average < QUICK ? QUICK_AHEAD : ahead_of_slow(pool, queue);
    uint32_t most = queue->queued + free > ahead ? queue->queued + free : ahead;
    uint32_t room = most > queue->queued && !pool->stopping ? most - queue->queued : 0;
    *ret_lowest = queue->first && !pool->stopping ? queue->first->run.number : 0;
    pthread_mutex_unlock(&pool->lock);
    return room;
}

void worker_pool_push(struct worker_pool *pool, uint16_t partition, struct job *jobs)
{
    struct worker_queue *queue = &pool->queues[partition];
    pthread_mutex_lock(&pool->lock);
    while (jobs) {
        struct job *job = jobs;
        jobs = job->queued;
        insert(queue, job);
        queue->queued++;
        pool->queued++;
    }
    list_queue(pool, queue);
    uint32_t idle = staff(pool);
    bool nobody = pool->count == 0;
    pthread_mutex_unlock(&pool->lock);
    wake(pool, idle);
    if (nobody) /* no thread could be started: the maintenance thread tries again */
        maintenance_ask(engine_of(pool)->lanes);
}

struct job *worker_pool_take_back(struct worker_pool *pool, uint16_t partition)
{
    struct worker_queue *queue = &pool->queues[partition];
    pthread_mutex_lock(&pool->lock);
    struct job *jobs = queue->first;
    pool->queued -= queue->queued;
    queue->queued = 0;
    queue->first = NULL;
    queue->last = &queue->first;
    if (queue->listed) {
        struct worker_queue **at = &pool->first;
        while (*at != queue)
            at = &(*at)->next;
        *at = queue->next;
        if (!*at)
            pool->last = at;
        queue->listed = false;
    }
    pthread_mutex_unlock(&pool->lock);
    return jobs;
}

/* --- looking after it --- */

static void join_ended(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct worker_thread *t = pool->ended;
    pool->ended = NULL;
    pthread_mutex_unlock(&pool->lock);
    while (t) {
        struct worker_thread *next = t->next;
        pthread_join(t->id, NULL);
        mem_free(engine_of(pool)->options.allocator, t, sizeof *t);
        t = next;
    }
}

bool worker_pool_look_after(struct worker_pool *pool)
{
    pawl_instant now = pawl_env_now(engine_of(pool)->env);
    join_ended(pool);
    pthread_mutex_lock(&pool->lock);
    for (struct worker_thread *t = pool->threads; t; t = t->next)
        if (t->busy && !t->slow && now.ns >= t->since.ns + WORKERS_SLOW) {
            t->slow = true;
            pool->slow++;
        }
    uint32_t idle = pool->queued > pool->idle ? staff(pool) : 0;
    bool busy = pool->count > 0 || pool->queued > 0;
    pthread_mutex_unlock(&pool->lock);
    wake(pool, idle);
    return busy;
}

bool worker_pool_is_self(struct worker_pool *pool)
{
    bool self = false;
    pthread_mutex_lock(&pool->lock);
    for (const struct worker_thread *t = pool->threads; t; t = t->next)
        self = self || pthread_equal(t->id, pthread_self());
    pthread_mutex_unlock(&pool->lock);
    return self;
}

/* --- beginning and end --- */

/* Whether the lane runs the projector itself; judged as the lane judges it. */
static int judge_quick(struct worker_pool *pool)
{
    struct arena memory;
    const struct intent *intents;
    size_t count;
    arena_init(&memory, engine_of(pool)->options.allocator, ARENA_CHUNK);
    int status = pool->projector->handler ? PAWL_OK : intents_of(pool->projector, &memory, &intents, &count);
    if (status == PAWL_OK && !pool->projector->handler)
        pool->quick = intents_are_quick(intents, count);
    arena_release(&memory);
    return status;
}

int worker_pool_init(struct worker_pool *pool, struct generation *g, uint32_t projection,
                     const struct schema_projector *projector)
{
    pawl_engine *e = g->engine;
    uint32_t partitions = e->file.partitions;
    pool->generation = g;
    pool->projection = projection;
    pool->projector = projector;
    pool->last = &pool->first;
    pthread_mutex_init(&pool->lock, NULL);
    cond_init(&pool->work);
    pthread_cond_init(&pool->gone, NULL);
    worker_pool_resize(pool, projector->workers);
    pool->queues = mem_new(e->options.allocator, partitions, sizeof *pool->queues);
    if (!pool->queues)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < partitions; i++)
        pool->queues[i].last = &pool->queues[i].first;
    pool->average = QUICK; /* a guess, until jobs have run */
    int status = judge_quick(pool);
    return status == PAWL_OK ? expr_cache_new(e->options.allocator, &pool->cache) : status;
}

void worker_pool_release(struct worker_pool *pool)
{
    pawl_engine *e = engine_of(pool);
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    while (pool->count > 0)
        pthread_cond_wait(&pool->gone, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    join_ended(pool);
    expr_cache_free(pool->cache);
    mem_free(e->options.allocator, pool->queues, pool->queues ? e->file.partitions * sizeof *pool->queues : 0);
    pthread_cond_destroy(&pool->gone);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
}
