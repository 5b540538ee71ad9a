/* port/env.h: time, threads and chance, as the cores see them.
 *
 * A node runs on a few shards. A shard has one thread with one loop, its own or one that it shares with other shards:
 * whatever a shard owns is touched on that thread only, so it needs no locks. Besides the shards there is a pool for work that blocks or computes.
 *
 *      any thread ── post ──► shard ── work ──► pool
 *                               ▲                 │
 *                               └───── done ──────┘          after: the same shard, later
 *
 * Under test the same interface is one thread with virtual time, where one seed decides what happens next.
 *
 * Tasks, timers and works are structs that the caller embeds in its own and owns; the env allocates nothing per
 * call, so none of these can fail for want of memory, and what is queued is bounded by what exists.
 *
 * Caveats
 *   - A timer belongs to the shard that set it: set, reset and cancel it there.
 *   - Once shutdown has begun, timers no longer fire, and post and work return PAWL_ECLOSED; what was posted or
 *     under way before is still run to its end. */
#ifndef PAWL_PORT_ENV_H
#define PAWL_PORT_ENV_H

#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_NO_SHARD UINT32_MAX

typedef struct pawl_env pawl_env;

/* Something to run on a shard, once for each time that it was posted while not queued. Posting it while it
 * is still queued does nothing: it will run. fn may post it again. Zero it before first use. */
typedef struct pawl_task pawl_task;
struct pawl_task {
    void (*fn)(pawl_task *task);
    void *impl[4];
};

/* Something to run on this shard later. Fires once. Setting one that is set moves it. Zero it before first use.
 */
typedef struct pawl_timer pawl_timer;
struct pawl_timer {
    void (*fn)(pawl_timer *timer);
    void *impl[6];
};

/* Something to run on a thread of the pool; then done runs on the shard that asked, or, if no shard did, on
 * that same pool thread. done may be NULL. Works of one caller may run in any order. */
typedef struct pawl_work pawl_work;
struct pawl_work {
    void (*fn)(pawl_work *work);
    void (*done)(pawl_work *work);
    void *impl[6];
};

struct pawl_env_ops {
    pawl_instant (*now)(pawl_env *env);
    pawl_wall (*wall_now)(pawl_env *env);
    uint64_t (*random)(pawl_env *env);
    uint32_t (*shards)(pawl_env *env);
    uint32_t (*self)(pawl_env *env); /* the shard that runs on this thread now, or PAWL_NO_SHARD */
    void (*after)(pawl_env *env, pawl_timer *timer, pawl_duration delay);
    void (*cancel)(pawl_env *env, pawl_timer *timer);
    int (*post)(pawl_env *env, uint32_t shard, pawl_task *task);
    int (*work)(pawl_env *env, pawl_work *work);
    int (*call)(pawl_env *env, uint32_t shard, void (*fn)(void *arg), void *arg);
};

/* An implementation puts this first into its own struct. */
struct pawl_env {
    const struct pawl_env_ops *ops;
};

static inline pawl_instant pawl_env_now(pawl_env *env)
{
    return env->ops->now(env);
}

static inline pawl_wall pawl_env_wall_now(pawl_env *env)
{
    return env->ops->wall_now(env);
}

/* 64 random bits; good enough for identities and jitter, not for secrets. Any thread. */
static inline uint64_t pawl_env_random(pawl_env *env)
{
    return env->ops->random(env);
}

static inline uint32_t pawl_env_shards(pawl_env *env)
{
    return env->ops->shards(env);
}

static inline uint32_t pawl_env_self(pawl_env *env)
{
    return env->ops->self(env);
}

static inline void pawl_env_after(pawl_env *env, pawl_timer *timer, pawl_duration delay)
{
    env->ops->after(env, timer, delay);
}

/* Does nothing if it is not set. Once cancel has returned, fn is not called. */
static inline void pawl_env_cancel(pawl_env *env, pawl_timer *timer)
{
    env->ops->cancel(env, timer);
}

/* From any thread. PAWL_EINVAL: no such shard. Posts of one thread to one shard run in their order. */
static inline int pawl_env_post(pawl_env *env, uint32_t shard, pawl_task *task)
{
    return env->ops->post(env, shard, task);
}

/* From any thread. */
static inline int pawl_env_work(pawl_env *env, pawl_work *work)
{
    return env->ops->work(env, work);
}

/* Run fn(arg) on a shard, and return when it has returned: for works and foreign threads, which may block, to
 * reach what a shard owns. PAWL_EMISUSE from a shard; PAWL_EINVAL: no such shard; PAWL_ECLOSED. fn was then not
 * called. */
static inline int pawl_env_call(pawl_env *env, uint32_t shard, void (*fn)(void *arg), void *arg)
{
    return env->ops->call(env, shard, fn, arg);
}

#ifdef __cplusplus
}
#endif
#endif
