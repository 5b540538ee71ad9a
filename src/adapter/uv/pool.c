/* adapter/uv/pool.c: threads for what blocks or computes.
 *
 * A queue under a mutex: a work is worth far more than the lock, and its order among others does not matter.
 * Whether a work is still accepted is decided under that lock too, so that what was accepted is run. */
#include "adapter/uv/impl.h"
#include "base/alloc.h"

static struct uv_job *next_job(struct uv_pool *pool)
{
    struct uv_link *link = NULL;
    uv_mutex_lock(&pool->mutex);
    while (!pool->first && !pool->stopping)
        uv_cond_wait(&pool->cond, &pool->mutex);
    if (pool->first) {
        link = pool->first;
        pool->first = link->next;
        if (!pool->first)
            pool->last = &pool->first;
    }
    uv_mutex_unlock(&pool->mutex);
    return link ? heap_entry(link, struct uv_job, link) : NULL;
}

/* A work without a done may free itself in fn; one with a done is there until that has begun. */
static void run_job(struct uv_job *job)
{
    pawl_work *work = heap_entry(job, pawl_work, impl);
    struct uv_runner *asker = job->asker;
    bool has_done = work->done != NULL;
    work->fn(work);
    if (!has_done)
        return;
    if (asker)
        uv_runner_put(asker, &job->link);
    else
        work->done(work);
}

static void pool_main(void *arg)
{
    struct uv_env *env = arg;
    pthread_setname_np(pthread_self(), "pawl/pool");
    uv_place = (struct uv_place){.env = env};
    struct uv_job *job;
    while ((job = next_job(&env->pool)))
        run_job(job);
}

int uv_pool_put(struct uv_pool *pool, struct uv_job *job)
{
    uv_mutex_lock(&pool->mutex);
    bool accepted = !pool->stopping;
    if (accepted) {
        job->link.next = NULL;
        *pool->last = &job->link;
        pool->last = &job->link.next;
        uv_cond_signal(&pool->cond);
    }
    uv_mutex_unlock(&pool->mutex);
    return accepted ? PAWL_OK : PAWL_ECLOSED;
}

static void join_all(struct uv_pool *pool)
{
    uv_mutex_lock(&pool->mutex);
    pool->stopping = true;
    uv_cond_broadcast(&pool->cond);
    uv_mutex_unlock(&pool->mutex);
    for (uint32_t i = 0; i < pool->count; i++)
        uv_thread_join(&pool->threads[i]);
}

int uv_pool_start(struct uv_pool *pool, struct uv_env *env, uint32_t threads)
{
    pool->last = &pool->first;
    pool->threads = mem_new(env->allocator, threads, sizeof pool->threads[0]);
    if (!pool->threads)
        return UV_ENOMEM;
    int rc = uv_mutex_init(&pool->mutex);
    if (rc < 0)
        goto mutex_failed;
    rc = uv_cond_init(&pool->cond);
    if (rc < 0)
        goto cond_failed;
    for (pool->count = 0; pool->count < threads; pool->count++) {
        rc = uv_env_spawn(&pool->threads[pool->count], pool_main, env);
        if (rc < 0)
            goto thread_failed;
    }
    return 0;

thread_failed:
    join_all(pool);
    uv_cond_destroy(&pool->cond);
cond_failed:
    uv_mutex_destroy(&pool->mutex);
mutex_failed:
    mem_free(env->allocator, pool->threads, threads * sizeof pool->threads[0]);
    return rc;
}

void uv_pool_stop(struct uv_pool *pool, struct uv_env *env)
{
    join_all(pool);
    uv_cond_destroy(&pool->cond);
    uv_mutex_destroy(&pool->mutex);
    mem_free(env->allocator, pool->threads, pool->count * sizeof pool->threads[0]);
}
