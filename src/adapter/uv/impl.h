/* adapter/uv/impl.h: what env.c, runner.c and pool.c share. */
#ifndef ADAPTER_UV_IMPL_H
#define ADAPTER_UV_IMPL_H

#include <uv.h>

#include "adapter/uv/env.h"
#include "adapter/uv/linger.h"
#include "adapter/uv/mailbox.h"
#include "base/heap.h"

/* In pawl_work.impl: queued in the pool, then, as a link of kind done, in the asker's mailbox. */
struct uv_job {
    struct uv_link link;
    struct uv_runner *asker; /* NULL: no shard asked; else link.shard did */
};

/* In pawl_timer.impl. */
struct uv_wait {
    struct heap_node node; /* key: due by the boot clock */
    uint32_t set;
    uint32_t shard; /* that has set it */
};

_Static_assert(sizeof(struct uv_link) <= sizeof((pawl_task *)0)->impl, "a task holds a link");
_Static_assert(sizeof(struct uv_job) <= sizeof((pawl_work *)0)->impl, "a work holds a job");
_Static_assert(sizeof(struct uv_wait) <= sizeof((pawl_timer *)0)->impl, "a timer holds a wait");

/* A thread that runs one shard, or several by turns: shards i, i + runners, i + 2 * runners and so on. */
struct uv_runner {
    struct uv_mailbox mailbox; /* written by everyone: kept off the lines that the thread works on */
    atomic_bool awake;         /* it will look into the mailbox once more before it sleeps */
    char apart[64 - sizeof(struct uv_mailbox) - sizeof(atomic_bool)];
    struct uv_env *env;
    uint32_t index; /* of its first shard */
    uv_thread_t thread;
    uv_loop_t loop;
    uv_async_t async;
    uv_timer_t wake;
    struct heap timers;
    uint64_t timer_seq;
    uint64_t armed_for; /* when the timer wake fires; UINT64_MAX: it is not set */
    struct uv_linger linger;
    pawl_task control; /* close uses it to tell the thread what to do */
};

struct uv_pool {
    uv_mutex_t mutex;
    uv_cond_t cond;
    struct uv_link *first;
    struct uv_link **last;
    bool stopping;
    uint32_t count;
    uv_thread_t *threads;
};

struct uv_env {
    pawl_env port;
    const pawl_allocator *allocator;
    _Atomic bool closing;
    _Atomic uint64_t visitors; /* threads that are not ours, inside post; see uv_env_close */
    struct uv_pool pool;
    uv_sem_t acks; /* runners acknowledge control; for the stop, close acknowledges to the runner */
    uint32_t shards;
    uint32_t count; /* of runners */
    struct uv_runner runners[];
};

/* Which thread this is. It is the thread's own identity that is kept here, and nothing that two envs
 * could share, so it is thread-local and not passed along. */
struct uv_place {
    struct uv_env *env;       /* NULL: a thread of the host */
    struct uv_runner *runner; /* NULL: of the pool */
    uint32_t shard;           /* that it runs now */
};
extern _Thread_local struct uv_place uv_place;

static inline struct uv_runner *uv_env_runner(struct uv_env *env, uint32_t shard)
{
    return &env->runners[shard % env->count];
}

static inline bool uv_env_closing(struct uv_env *env)
{
    return atomic_load(&env->closing);
}

/* uv_thread_create, with all signals blocked in the new thread but those that its own faults raise. */
int uv_env_spawn(uv_thread_t *thread, void (*entry)(void *arg), void *arg);

/* 0, or libuv's negative errno. A runner that was opened and not started must be discarded. */
int uv_runner_open(struct uv_runner *runner, struct uv_env *env, uint32_t index);
void uv_runner_discard(struct uv_runner *runner);
int uv_runner_start(struct uv_runner *runner);
void uv_runner_join(struct uv_runner *runner);

/* Any thread. Cannot fail: the caller has decided before that the link may be queued. */
void uv_runner_put(struct uv_runner *runner, struct uv_link *link);

/* As a control task's fn: ends the loop once this callback is over. */
void uv_runner_stop(struct uv_runner *runner);

/* The runner's own thread. */
void uv_runner_after(struct uv_runner *runner, struct uv_wait *wait, pawl_duration delay);
void uv_runner_cancel(struct uv_runner *runner, struct uv_wait *wait);

/* 0, or libuv's negative errno. stop runs what is queued to its end. */
int uv_pool_start(struct uv_pool *pool, struct uv_env *env, uint32_t threads);
void uv_pool_stop(struct uv_pool *pool, struct uv_env *env);
int uv_pool_put(struct uv_pool *pool, struct uv_job *job);

#endif
