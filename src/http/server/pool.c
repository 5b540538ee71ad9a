#include "http/server/pool.h"

#include <pthread.h>
#include <stdlib.h>

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t more;   /* a job was added, or closing was set */
    struct pool_job *jobs; /* a ring; under lock, like all below */
    uint32_t room;
    uint32_t first;
    uint32_t count;
    uint32_t busy; /* jobs that run */
    bool closing;
    uint32_t thread_count;
    pthread_t threads[];
};

static void *work(void *arg)
{
    struct pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->count == 0 && !pool->closing)
            pthread_cond_wait(&pool->more, &pool->lock);
        if (pool->count == 0)
            break;
        struct pool_job job = pool->jobs[pool->first];
        pool->first = (pool->first + 1) % pool->room;
        pool->count--;
        pool->busy++;
        pthread_mutex_unlock(&pool->lock);
        job.run(job.arg);
        pthread_mutex_lock(&pool->lock);
        pool->busy--;
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int pool_new(uint32_t threads, uint32_t queue, struct pool **ret_pool, pawl_error *error)
{
    struct pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->threads[0]);
    struct pool_job *jobs = calloc((size_t)queue + threads, sizeof *jobs);
    if (!pool || !jobs) {
        free(pool);
        free(jobs);
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a pool of threads");
    }
    pool->jobs = jobs;
    pool->room = queue + threads;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->more, NULL);
    for (; pool->thread_count < threads; pool->thread_count++) {
        int number = pthread_create(&pool->threads[pool->thread_count], NULL, work, pool);
        if (number != 0) {
            pool_free(pool);
            return pawl_error_errno(error, number, "cannot start a thread");
        }
    }
    *ret_pool = pool;
    return PAWL_OK;
}

int pool_submit(struct pool *pool, struct pool_job job)
{
    pthread_mutex_lock(&pool->lock);
    /* A thread that is idle, and has not taken its job yet, counts as room. */
    bool full = pool->count + pool->busy == pool->room;
    int status = pool->closing ? PAWL_ECLOSED : full ? PAWL_EBUSY : PAWL_OK;
    if (status == PAWL_OK) {
        pool->jobs[(pool->first + pool->count++) % pool->room] = job;
        pthread_cond_signal(&pool->more);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->more);
    pthread_mutex_destroy(&pool->lock);
    free(pool->jobs);
    free(pool);
}
