/* adapter/uv/env.c: the port's functions, and how the threads of an env begin and end together. */
#include "adapter/uv/env.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>

#include "adapter/uv/impl.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/latch.h"
#include "base/wait.h"

#define THREADS_MAX 1024

_Thread_local struct uv_place uv_place;

static struct uv_env *env_of(pawl_env *port)
{
    return (struct uv_env *)port;
}

static pawl_instant port_now(pawl_env *port)
{
    return (pawl_instant){clock_boot_ns()};
}

static pawl_wall port_wall_now(pawl_env *port)
{
    return (pawl_wall){clock_wall_ns()};
}

/* Random bytes of the kernel, fetched ahead: a call for each number would cost ten times as much. Each thread
 * has a stock of its own, so no two threads are given the same bytes. getrandom gives up to 256 bytes whole,
 * and cannot fail for a caller whose buffer is real. */
static uint64_t port_random(pawl_env *port)
{
    static _Thread_local uint64_t stock[32];
    static _Thread_local uint32_t left;
    if (left == 0) {
        ssize_t got;
        do
            got = getrandom(stock, sizeof stock, 0);
        while (got < 0);
        assert(got == sizeof stock);
        left = sizeof stock / sizeof stock[0];
    }
    return stock[--left];
}

static uint32_t port_shards(pawl_env *port)
{
    return env_of(port)->shards;
}

/* NULL: it is not a thread of the env's shards. */
static struct uv_runner *self_of(const struct uv_env *env)
{
    return uv_place.env == env ? uv_place.runner : NULL;
}

static uint32_t port_self(pawl_env *port)
{
    return self_of(env_of(port)) ? uv_place.shard : PAWL_NO_SHARD;
}

static void port_after(pawl_env *port, pawl_timer *timer, pawl_duration delay)
{
    struct uv_runner *runner = self_of(env_of(port));
    assert(runner);
    uv_runner_after(runner, (struct uv_wait *)timer->impl, delay);
}

static void port_cancel(pawl_env *port, pawl_timer *timer)
{
    uv_runner_cancel(self_of(env_of(port)), (struct uv_wait *)timer->impl);
}

static int post(struct uv_env *env, uint32_t shard, struct uv_link *link)
{
    if (uv_env_closing(env))
        return PAWL_ECLOSED;
    if (uv_link_claim(link)) {
        link->kind = UV_LINK_TASK;
        link->shard = shard;
        uv_runner_put(uv_env_runner(env, shard), link);
    }
    return PAWL_OK;
}

/* Close waits for its own threads' callbacks anyway. Of the others it can only know by counting: the count and
 * the flag are sequentially consistent, so either close sees the visitor, or the visitor sees the flag. */
static int port_post(pawl_env *port, uint32_t shard, pawl_task *task)
{
    struct uv_env *env = env_of(port);
    struct uv_link *link = (struct uv_link *)task->impl;
    if (shard >= env->shards)
        return PAWL_EINVAL;
    if (uv_place.env == env)
        return post(env, shard, link);
    atomic_fetch_add(&env->visitors, 1);
    int status = post(env, shard, link);
    atomic_fetch_sub(&env->visitors, 1);
    return status;
}

static int port_work(pawl_env *port, pawl_work *work)
{
    struct uv_env *env = env_of(port);
    struct uv_job *job = (struct uv_job *)work->impl;
    if (uv_env_closing(env))
        return PAWL_ECLOSED;
    job->asker = self_of(env);
    job->link.kind = UV_LINK_DONE;
    job->link.shard = uv_place.shard;
    return uv_pool_put(&env->pool, job);
}

struct caller {
    pawl_task task;
    struct latch latch;
    void (*fn)(void *arg);
    void *arg;
};

static void answer_caller(pawl_task *task)
{
    struct caller *caller = heap_entry(task, struct caller, task);
    caller->fn(caller->arg);
    latch_set(&caller->latch);
}

static int port_call(pawl_env *port, uint32_t shard, void (*fn)(void *arg), void *arg)
{
    if (port_self(port) != PAWL_NO_SHARD)
        return PAWL_EMISUSE;
    struct caller caller = {.task.fn = answer_caller, .fn = fn, .arg = arg};
    latch_init(&caller.latch);
    int status = port_post(port, shard, &caller.task);
    if (status == PAWL_OK)
        latch_wait(&caller.latch);
    return status;
}

static const struct pawl_env_ops port_ops = {
    .now = port_now,
    .wall_now = port_wall_now,
    .random = port_random,
    .shards = port_shards,
    .self = port_self,
    .after = port_after,
    .cancel = port_cancel,
    .post = port_post,
    .work = port_work,
    .call = port_call,
};

pawl_env *uv_env_port(struct uv_env *env)
{
    return &env->port;
}

int uv_env_spawn(uv_thread_t *thread, void (*entry)(void *arg), void *arg)
{
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    sigdelset(&blocked, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int rc = uv_thread_create(thread, entry, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void ack(pawl_task *control)
{
    uv_sem_post(&heap_entry(control, struct uv_runner, control)->env->acks);
}

/* A runner that is awake may come here while the thread that told it to stop still checks whether it must be
 * woken: its handles stay until that thread has finished. */
static void stop(pawl_task *control)
{
    struct uv_runner *runner = heap_entry(control, struct uv_runner, control);
    uv_sem_wait(&runner->env->acks);
    uv_runner_stop(runner);
}

static void tell_runners(struct uv_env *env, uint32_t count, void (*fn)(pawl_task *control))
{
    for (uint32_t i = 0; i < count; i++) {
        pawl_task *control = &env->runners[i].control;
        struct uv_link *link = (struct uv_link *)control->impl;
        *control = (pawl_task){.fn = fn};
        link->shard = i;
        uv_runner_put(&env->runners[i], link);
    }
}

static void stop_runners(struct uv_env *env, uint32_t started)
{
    tell_runners(env, started, stop);
    for (uint32_t i = 0; i < started; i++)
        uv_sem_post(&env->acks);
    for (uint32_t i = 0; i < started; i++)
        uv_runner_join(&env->runners[i]);
}

static int start_runners(struct uv_env *env)
{
    int rc = 0;
    uint32_t opened = 0;
    uint32_t started = 0;
    while (opened < env->count && rc == 0) {
        rc = uv_runner_open(&env->runners[opened], env, opened);
        opened += rc == 0;
    }
    while (started < env->count && rc == 0) {
        rc = uv_runner_start(&env->runners[started]);
        started += rc == 0;
    }
    if (rc == 0)
        return 0;
    stop_runners(env, started);
    for (uint32_t i = started; i < opened; i++)
        uv_runner_discard(&env->runners[i]);
    return rc;
}

static size_t env_size(uint32_t runners)
{
    return sizeof(struct uv_env) + runners * sizeof(struct uv_runner);
}

/* As many threads as there are shards, unless fewer are asked for. */
static uint32_t runners_of(const struct uv_env_options *options)
{
    return options->threads && options->threads < options->shards ? options->threads : options->shards;
}

int uv_env_open(const struct uv_env_options *options, struct uv_env **ret_env, pawl_error *error)
{
    if (options->shards == 0 || options->shards > THREADS_MAX)
        return error_set(error, PAWL_EINVAL, "a node has 1 to %d shards, not %u", THREADS_MAX, options->shards);
    if (options->pool_threads == 0 || options->pool_threads > THREADS_MAX)
        return error_set(error, PAWL_EINVAL, "a pool has 1 to %d threads, not %u", THREADS_MAX,
                         options->pool_threads);
    struct uv_env *env = mem_new(options->allocator, 1, env_size(runners_of(options)));
    if (!env)
        return error_set(error, PAWL_ENOMEM, "no memory for %u shards", options->shards);
    env->port.ops = &port_ops;
    env->allocator = options->allocator;
    env->shards = options->shards;
    env->count = runners_of(options);
    int rc = uv_sem_init(&env->acks, 0);
    if (rc < 0)
        goto sem_failed;
    rc = uv_pool_start(&env->pool, env, options->pool_threads);
    if (rc < 0)
        goto pool_failed;
    rc = start_runners(env);
    if (rc < 0)
        goto shards_failed;
    *ret_env = env;
    return PAWL_OK;

shards_failed:
    uv_pool_stop(&env->pool, env);
pool_failed:
    uv_sem_destroy(&env->acks);
sem_failed:
    mem_free(env->allocator, env, env_size(env->count));
    return error_errno(error, -rc, "cannot start %u shards and %u pool threads", options->shards,
                       options->pool_threads);
}

/* Each step leaves fewer who could still queue something:
 *   1. Threads that are not ours: from here on they are refused, and those inside have left.
 *   2. The shards: one that has answered has seen the flag, in this and all later callbacks, so it posts no
 *      more. What it posted before is in the mailboxes.
 *   3. The pool: it runs what it has to the end; then its posts and the works' dones are in the mailboxes too.
 *   4. So the stop that is put now comes behind everything that was ever accepted. */
int uv_env_close(struct uv_env *env)
{
    if (!env)
        return PAWL_OK;
    if (uv_place.env == env)
        return PAWL_EMISUSE;
    atomic_store(&env->closing, true);
    while (atomic_load(&env->visitors))
        sched_yield();
    tell_runners(env, env->count, ack);
    for (uint32_t i = 0; i < env->count; i++)
        uv_sem_wait(&env->acks);
    uv_pool_stop(&env->pool, env);
    stop_runners(env, env->count);
    uv_sem_destroy(&env->acks);
    mem_free(env->allocator, env, env_size(env->count));
    return PAWL_OK;
}
