#include "engine/workers.h"

#include <signal.h>

#include "base/alloc.h"
#include "engine/node.h"
#include "engine/results.h"

#define WORKERS_DEFAULT 4
#define PARTITIONS_MANY 16 /* of which that many may have hanging handlers before others suffer */
#define QUICK           PAWL_MILLISECOND
#define QUICK_AHEAD     32
#define SLOW_AHEAD      8 /* one for so many workers */
#define ARENA_CHUNK     ((size_t)4096)

struct crew_thread {
    struct crew *crew;
    pthread_t id;
    struct crew_thread *next, **link;
    struct bench *busy; /* whose job it works on; NULL: none */
    pawl_instant since;
    bool slow;
};

static pawl_engine *engine_of(const struct crew *crew)
{
    return crew->generation->engine;
}

/* --- the queue; all of it under the lock --- */

static void list_bench(struct crew *crew, struct bench *bench)
{
    if (bench->listed || !bench->first)
        return;
    bench->listed = true;
    bench->next = NULL;
    *crew->last = bench;
    crew->last = &bench->next;
}

static struct job *pop(struct crew *crew, struct bench *bench)
{
    struct job *job = bench->first;
    bench->first = job->queued;
    if (!bench->first)
        bench->last = &bench->first;
    bench->queued--;
    crew->queued--;
    return job;
}

/* The first in line that may have one more, which then goes to the end of the line. */
static struct job *take(struct crew *crew, struct bench **ret_bench)
{
    struct bench **at = &crew->first;
    while (*at && (*at)->running >= crew->limit)
        at = &(*at)->next;
    struct bench *bench = *at;
    if (!bench)
        return NULL;
    *at = bench->next;
    if (!*at)
        crew->last = at;
    bench->listed = false;
    struct job *job = pop(crew, bench);
    list_bench(crew, bench);
    *ret_bench = bench;
    return job;
}

/* --- threads --- */

static void wait_idle(struct crew *crew, bool *ret_over)
{
    uint64_t end = wait_deadline(CREW_IDLE);
    crew->idle++;
    *ret_over = !cond_wait_until(&crew->work, &crew->lock, end);
    crew->idle--;
}

static void begin_job(struct crew_thread *t, struct bench *bench)
{
    bench->running++;
    t->busy = bench;
    t->since = pawl_env_now(engine_of(t->crew)->env);
}

static void end_job(struct crew_thread *t)
{
    struct crew *crew = t->crew;
    uint64_t took = pawl_env_now(engine_of(crew)->env).ns - t->since.ns;
    crew->average = crew->average - crew->average / 8 + took / 8;
    t->busy->running--;
    t->busy = NULL;
    if (t->slow)
        crew->slow--;
    t->slow = false;
}

/* It was replaced, and its replacement is still there. */
static bool is_too_many(const struct crew *crew)
{
    return crew->count - crew->slow > crew->limit;
}

static void leave(struct crew_thread *t)
{
    struct crew *crew = t->crew;
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    t->next = crew->ended;
    crew->ended = t;
    crew->count--;
    atomic_fetch_sub(&engine_of(crew)->lanes.threads, 1);
    if (crew->count == 0)
        pthread_cond_broadcast(&crew->gone);
}

static void *thread_main(void *arg)
{
    struct crew_thread *t = arg;
    struct crew *crew = t->crew;
    struct run_room room;
    struct bench *bench;
    struct job *job;
    bool over = run_room_init(&room, engine_of(crew)->options.allocator) != PAWL_OK;
    pthread_mutex_lock(&crew->lock);
    while (!over) {
        while (!is_too_many(crew) && (job = take(crew, &bench))) {
            bool ask =
                bench->queued == 0 && crew->average >= QUICK; /* else the shard hears of it soon enough */
            begin_job(t, bench);
            pthread_mutex_unlock(&crew->lock);
            if (ask)
                part_ask(job->part);
            job_work(job, crew, &room);
            pthread_mutex_lock(&crew->lock);
            end_job(t);
            pthread_mutex_unlock(&crew->lock);
            part_return(job);
            pthread_mutex_lock(&crew->lock);
        }
        if (crew->stopping || is_too_many(crew))
            break;
        wait_idle(crew, &over);
        over = over && !crew->first;
    }
    leave(t);
    pthread_mutex_unlock(&crew->lock);
    run_room_release(&room);
    return NULL;
}

static void start_thread(struct crew *crew)
{
    pawl_engine *e = engine_of(crew);
    sigset_t all, before;
    if (atomic_fetch_add(&e->lanes.threads, 1) >= CREW_THREADS_MAX)
        goto too_many;
    struct crew_thread *t = mem_new(e->options.allocator, 1, sizeof *t);
    if (!t)
        goto too_many;
    t->crew = crew;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the host's handlers run on the host's threads */
    int failed = pthread_create(&t->id, NULL, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        goto create_failed;
    t->next = crew->threads;
    t->link = &crew->threads;
    if (t->next)
        t->next->link = &t->next;
    crew->threads = t;
    crew->count++;
    steward_ask(&e->lanes); /* to look after it */
    return;

create_failed:
    mem_free(e->options.allocator, t, sizeof *t);
too_many:
    atomic_fetch_sub(&e->lanes.threads, 1);
}

/* Under the lock: as many awake as there is to do, within the limits. */
static void wake(struct crew *crew)
{
    uint32_t wanted = crew->queued;
    for (uint32_t i = 0; i < crew->idle && i < wanted; i++)
        pthread_cond_signal(&crew->work);
    for (uint32_t i = crew->idle;
         i < wanted && crew->count - crew->slow < crew->limit && crew->count < crew->cap; i++) {
        uint32_t before = crew->count;
        start_thread(crew);
        if (crew->count == before)
            break;
    }
}

/* --- for the parts --- */

bool crew_is_manned(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    bool manned = !crew->projector->handler || crew->handler;
    pthread_mutex_unlock(&crew->lock);
    return manned;
}

void crew_man(struct crew *crew, pawl_handler handler, void *arg)
{
    pthread_mutex_lock(&crew->lock);
    crew->handler = handler;
    crew->arg = arg;
    pthread_mutex_unlock(&crew->lock);
}

void crew_resize(struct crew *crew, uint32_t workers)
{
    uint32_t partitions = engine_of(crew)->file.partitions;
    pthread_mutex_lock(&crew->lock);
    crew->limit = workers ? workers : WORKERS_DEFAULT;
    crew->cap = crew->limit * (partitions < PARTITIONS_MANY ? partitions : PARTITIONS_MANY);
    wake(crew);
    pthread_cond_broadcast(&crew->work); /* those who are too many now leave, and take no signal along */
    pthread_mutex_unlock(&crew->lock);
}

uint32_t crew_room(struct crew *crew, uint16_t partition)
{
    pthread_mutex_lock(&crew->lock);
    const struct bench *bench = &crew->benches[partition];
    uint32_t at_work = crew->count - crew->slow - crew->idle;
    uint32_t free = crew->limit > at_work + crew->queued ? crew->limit - at_work - crew->queued : 0;
    uint32_t ahead = crew->average < QUICK ? QUICK_AHEAD : 1 + crew->limit / SLOW_AHEAD;
    uint32_t most = bench->queued + free > ahead ? bench->queued + free : ahead;
    uint32_t room = most > bench->queued && !crew->stopping ? most - bench->queued : 0;
    pthread_mutex_unlock(&crew->lock);
    return room;
}

void crew_push(struct crew *crew, uint16_t partition, struct job *jobs)
{
    struct bench *bench = &crew->benches[partition];
    pthread_mutex_lock(&crew->lock);
    while (jobs) {
        struct job *job = jobs;
        jobs = job->queued;
        job->queued = NULL;
        *bench->last = job;
        bench->last = &job->queued;
        bench->queued++;
        crew->queued++;
    }
    list_bench(crew, bench);
    wake(crew);
    if (crew->count == 0) /* no thread could be started: it is tried again */
        steward_ask(&engine_of(crew)->lanes);
    pthread_mutex_unlock(&crew->lock);
}

struct job *crew_take_back(struct crew *crew, uint16_t partition)
{
    struct bench *bench = &crew->benches[partition];
    pthread_mutex_lock(&crew->lock);
    struct job *jobs = bench->first;
    crew->queued -= bench->queued;
    bench->queued = 0;
    bench->first = NULL;
    bench->last = &bench->first;
    if (bench->listed) {
        struct bench **at = &crew->first;
        while (*at != bench)
            at = &(*at)->next;
        *at = bench->next;
        if (!*at)
            crew->last = at;
        bench->listed = false;
    }
    pthread_mutex_unlock(&crew->lock);
    return jobs;
}

/* --- looking after it --- */

static void join_ended(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    struct crew_thread *t = crew->ended;
    crew->ended = NULL;
    pthread_mutex_unlock(&crew->lock);
    while (t) {
        struct crew_thread *next = t->next;
        pthread_join(t->id, NULL);
        mem_free(engine_of(crew)->options.allocator, t, sizeof *t);
        t = next;
    }
}

bool crew_look_after(struct crew *crew)
{
    pawl_instant now = pawl_env_now(engine_of(crew)->env);
    join_ended(crew);
    pthread_mutex_lock(&crew->lock);
    for (struct crew_thread *t = crew->threads; t; t = t->next)
        if (t->busy && !t->slow && now.ns >= t->since.ns + CREW_SLOW) {
            t->slow = true;
            crew->slow++;
        }
    if (crew->queued > crew->idle)
        wake(crew);
    bool busy = crew->count > 0 || crew->queued > 0;
    pthread_mutex_unlock(&crew->lock);
    return busy;
}

bool crew_is_self(struct crew *crew)
{
    bool self = false;
    pthread_mutex_lock(&crew->lock);
    for (const struct crew_thread *t = crew->threads; t; t = t->next)
        self = self || pthread_equal(t->id, pthread_self());
    pthread_mutex_unlock(&crew->lock);
    return self;
}

/* --- beginning and end --- */

/* As the lane does. */
static int judge_quick(struct crew *crew)
{
    struct arena memory;
    const struct intent *intents;
    size_t count;
    arena_init(&memory, engine_of(crew)->options.allocator, ARENA_CHUNK);
    int status = crew->projector->handler ? PAWL_OK : intents_of(crew->projector, &memory, &intents, &count);
    if (status == PAWL_OK && !crew->projector->handler)
        crew->quick = intents_are_quick(intents, count);
    arena_release(&memory);
    return status;
}

int crew_init(struct crew *crew, struct generation *g, uint32_t projection,
              const struct schema_projector *projector)
{
    pawl_engine *e = g->engine;
    uint32_t partitions = e->file.partitions;
    crew->generation = g;
    crew->projection = projection;
    crew->projector = projector;
    crew->last = &crew->first;
    pthread_mutex_init(&crew->lock, NULL);
    cond_init(&crew->work);
    pthread_cond_init(&crew->gone, NULL);
    crew_resize(crew, projector->workers);
    crew->benches = mem_new(e->options.allocator, partitions, sizeof *crew->benches);
    if (!crew->benches)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < partitions; i++)
        crew->benches[i].last = &crew->benches[i].first;
    crew->average = QUICK; /* until it is known */
    int status = judge_quick(crew);
    return status == PAWL_OK ? expr_cache_new(e->options.allocator, &crew->cache) : status;
}

void crew_release(struct crew *crew)
{
    pawl_engine *e = engine_of(crew);
    pthread_mutex_lock(&crew->lock);
    crew->stopping = true;
    pthread_cond_broadcast(&crew->work);
    while (crew->count > 0)
        pthread_cond_wait(&crew->gone, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    join_ended(crew);
    expr_cache_free(crew->cache);
    mem_free(e->options.allocator, crew->benches,
             crew->benches ? e->file.partitions * sizeof *crew->benches : 0);
    pthread_cond_destroy(&crew->gone);
    pthread_cond_destroy(&crew->work);
    pthread_mutex_destroy(&crew->lock);
}
