/* adapter/mem/env.c: the scheduler of a simulated world, and the env port of its nodes.
 *
 * Each shard has a queue of what was posted and a heap of its timers; each node has a heap of the works under
 * way. A step looks at all their heads, lets the seed choose one of those that are ready, and runs it.
 *
 * Invariants
 *   I1  Posted links run in the order of the queue: a head that is delayed holds back what is behind it.
 *   I2  world.now never goes back, and moves only while nothing is ready or by mem_world_advance.
 *   I3  Nothing of a task, timer or work is touched once its function was entered: it may free itself. A
 *       work that has a done stays until that was entered.
 *   I4  The scheduler's choices, the works' delays and each node's random numbers come from separate
 *       generators, so that one more call of random in the code under test does not reshuffle everything
 *       else. */
#include "adapter/mem/env.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

#define WALL_START       ((int64_t)1767225600 * (int64_t)PAWL_SECOND) /* 2026-01-01 */
#define BOOT_START_MAX   (24 * 3600 * PAWL_SECOND)
#define WORK_MIN_DEFAULT (10 * PAWL_MICROSECOND)
#define WORK_MAX_DEFAULT PAWL_MILLISECOND
#define NEVER            UINT64_MAX

/* In pawl_task.impl, and in pawl_work.impl once only done is left to run. */
struct mem_link {
    struct mem_link *next;
    uint64_t ready_at; /* by the world's clock */
    uint64_t number;
    uint64_t kind; /* MEM_POST, MEM_DONE; 0: not queued */
};

/* In pawl_timer.impl (key: due by the node's boot clock) and in pawl_work.impl (key: due by the world's). */
struct mem_wait {
    struct heap_node node;
    struct mem_shard *shard; /* whose it is. Timer: NULL when not set. Work: NULL when no shard asked. */
};

_Static_assert(sizeof(struct mem_link) <= sizeof((pawl_task *)0)->impl, "a task holds a link");
_Static_assert(sizeof(struct mem_link) <= sizeof((pawl_work *)0)->impl, "a work holds a link");
_Static_assert(sizeof(struct mem_wait) <= sizeof((pawl_timer *)0)->impl, "a timer holds a wait");
_Static_assert(sizeof(struct mem_wait) <= sizeof((pawl_work *)0)->impl, "a work holds a wait");

struct mem_shard {
    struct mem_env *env;
    struct mem_link *first;
    struct mem_link **last;
    struct heap timers;
    bool paused;
};

struct mem_order {
    uint64_t number;
    pawl_duration delay;
};

struct mem_env {
    pawl_env port;
    struct mem_world *world;
    struct mem_env *next;
    uint32_t id;
    bool closed;
    bool killed;
    bool pool_paused;
    uint64_t random;
    pawl_duration boot_offset; /* its boot clock is the world's time plus this */
    int64_t wall_offset;
    pawl_duration work_min, work_max;
    uint64_t asked[MEM_DONE];         /* by kind: how many there were */
    struct mem_order order[MEM_DONE]; /* by kind */
    struct heap works;
    uint32_t shard_count;
    struct mem_shard shards[];
};

struct mem_world {
    const pawl_allocator *allocator;
    struct mem_world_options options;
    uint64_t choices, delays, births;
    uint64_t now;
    uint32_t env_count;
    struct mem_env *envs;
    bool running;
    struct mem_shard *current; /* while running: NULL in the pool */
};

/* What a step may run: the head of a shard's queue, a shard's next timer, or a node's next work. */
struct choice {
    enum mem_kind kind;
    struct mem_env *env;
    struct mem_shard *shard;
};

static uint64_t chance(uint64_t *state)
{
    uint64_t v = *state += UINT64_C(0x9e3779b97f4a7c15);
    v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
    return v ^ v >> 31;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? NEVER : sum;
}

static struct mem_env *env_of(pawl_env *port)
{
    return (struct mem_env *)port;
}

static uint64_t env_now(const struct mem_env *env)
{
    return add_capped(env->world->now, env->boot_offset);
}

/* Counts one more of a kind; *ret_delay is what was ordered for it. */
static uint64_t ask(struct mem_env *env, enum mem_kind kind, pawl_duration *ret_delay)
{
    uint64_t number = ++env->asked[kind];
    *ret_delay = env->order[kind].number == number ? env->order[kind].delay : 0;
    return number;
}

static void shard_push(struct mem_shard *shard, struct mem_link *link)
{
    link->next = NULL;
    *shard->last = link;
    shard->last = &link->next;
}

static struct mem_link *shard_pop(struct mem_shard *shard)
{
    struct mem_link *link = shard->first;
    shard->first = link->next;
    if (!shard->first)
        shard->last = &shard->first;
    return link;
}

/* The port. */

static pawl_instant port_now(pawl_env *port)
{
    return (pawl_instant){env_now(env_of(port))};
}

static pawl_wall port_wall_now(pawl_env *port)
{
    struct mem_env *env = env_of(port);
    return (pawl_wall){WALL_START + (int64_t)env->world->now + env->wall_offset};
}

static uint64_t port_random(pawl_env *port)
{
    return chance(&env_of(port)->random);
}

static uint32_t port_shards(pawl_env *port)
{
    return env_of(port)->shard_count;
}

static struct mem_shard *current_of(struct mem_env *env)
{
    struct mem_shard *shard = env->world->current;
    return shard && shard->env == env ? shard : NULL;
}

static uint32_t port_self(pawl_env *port)
{
    struct mem_env *env = env_of(port);
    struct mem_shard *shard = current_of(env);
    return shard ? (uint32_t)(shard - env->shards) : PAWL_NO_SHARD;
}

static void port_cancel(pawl_env *port, pawl_timer *timer)
{
    struct mem_env *env = env_of(port);
    struct mem_wait *wait = (struct mem_wait *)timer->impl;
    if (env->closed || !wait->shard)
        return;
    assert(wait->shard == current_of(env));
    heap_remove(&wait->shard->timers, &wait->node);
    wait->shard = NULL;
}

static void port_after(pawl_env *port, pawl_timer *timer, pawl_duration delay)
{
    struct mem_env *env = env_of(port);
    struct mem_wait *wait = (struct mem_wait *)timer->impl;
    if (env->closed)
        return;
    assert(current_of(env));
    port_cancel(port, timer);
    pawl_duration more;
    wait->node.seq = ask(env, MEM_TIMER, &more);
    wait->node.key = add_capped(env_now(env), add_capped(delay, more));
    wait->shard = current_of(env);
    heap_insert(&wait->shard->timers, &wait->node);
}

static int port_post(pawl_env *port, uint32_t shard, pawl_task *task)
{
    struct mem_env *env = env_of(port);
    struct mem_link *link = (struct mem_link *)task->impl;
    if (shard >= env->shard_count)
        return PAWL_EINVAL;
    if (env->closed)
        return PAWL_ECLOSED;
    if (link->kind)
        return PAWL_OK;
    pawl_duration more;
    link->kind = MEM_POST;
    link->number = ask(env, MEM_POST, &more);
    link->ready_at = add_capped(env->world->now, more);
    shard_push(&env->shards[shard], link);
    return PAWL_OK;
}

static int port_work(pawl_env *port, pawl_work *work)
{
    struct mem_env *env = env_of(port);
    struct mem_wait *wait = (struct mem_wait *)work->impl;
    if (env->closed)
        return PAWL_ECLOSED;
    pawl_duration more;
    pawl_duration takes = env->work_min + chance(&env->world->delays) % (env->work_max - env->work_min + 1);
    wait->node.seq = ask(env, MEM_WORK, &more);
    wait->node.key = add_capped(env->world->now, add_capped(takes, more));
    wait->shard = current_of(env);
    heap_insert(&env->works, &wait->node);
    return PAWL_OK;
}

/* Everything is one thread here, so the shard is free: the caller is not on it. */
static int port_call(pawl_env *port, uint32_t shard, void (*fn)(void *arg), void *arg)
{
    struct mem_env *env = env_of(port);
    struct mem_world *world = env->world;
    if (current_of(env))
        return PAWL_EMISUSE;
    if (shard >= env->shard_count)
        return PAWL_EINVAL;
    if (env->closed)
        return PAWL_ECLOSED;
    struct mem_shard *before = world->current;
    bool running = world->running;
    world->current = &env->shards[shard];
    world->running = true;
    fn(arg);
    world->current = before;
    world->running = running;
    return PAWL_OK;
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

/* The scheduler. When a node is closing, the time and its pauses no longer hold anything back. */

/* At which time of the world the head is ready; NEVER if there is none, or it is paused. */
static uint64_t queue_ready_at(const struct mem_shard *shard)
{
    if (!shard->first)
        return NEVER;
    if (shard->env->closed)
        return 0;
    return shard->paused ? NEVER : shard->first->ready_at;
}

static uint64_t timer_ready_at(const struct mem_shard *shard)
{
    const struct heap_node *min = heap_min(&shard->timers);
    if (!min || shard->paused || min->key == NEVER)
        return NEVER;
    pawl_duration offset = shard->env->boot_offset;
    return min->key > offset ? min->key - offset : 0;
}

static uint64_t work_ready_at(const struct mem_env *env)
{
    const struct heap_node *min = heap_min(&env->works);
    if (!min)
        return NEVER;
    if (env->closed)
        return 0;
    return env->pool_paused ? NEVER : min->key;
}

/* One more that could run at this time: it is taken if it is ready and chance says so, each of those that are
 * ready being as likely as any other. *next becomes the earliest time of all. */
static void consider(struct mem_world *world, uint64_t at, struct choice candidate, uint64_t *ready,
                     uint64_t *next, struct choice *choice)
{
    if (at < *next)
        *next = at;
    if (at == NEVER || at > world->now)
        return;
    ++*ready;
    if (chance(&world->choices) % *ready == 0)
        *choice = candidate;
}

static void consider_env(struct mem_env *env, uint64_t *ready, uint64_t *next, struct choice *choice)
{
    struct mem_world *world = env->world;
    for (uint32_t i = 0; i < env->shard_count; i++) {
        struct mem_shard *s = &env->shards[i];
        consider(world, queue_ready_at(s), (struct choice){MEM_POST, env, s}, ready, next, choice);
        consider(world, timer_ready_at(s), (struct choice){MEM_TIMER, env, s}, ready, next, choice);
    }
    consider(world, work_ready_at(env), (struct choice){MEM_WORK, env, NULL}, ready, next, choice);
}

static void trace(const struct choice *choice, enum mem_kind kind, uint64_t number)
{
    const struct mem_world *world = choice->env->world;
    if (!world->options.trace)
        return;
    struct mem_trace t = {
        .at = world->now,
        .node = choice->env->id,
        .shard = choice->shard ? (uint32_t)(choice->shard - choice->env->shards) : PAWL_NO_SHARD,
        .kind = kind,
        .number = number,
    };
    world->options.trace(world->options.trace_ctx, &t);
}

static void run_posted(const struct choice *choice)
{
    struct mem_link *link = shard_pop(choice->shard);
    enum mem_kind kind = (enum mem_kind)link->kind;
    link->kind = 0;
    trace(choice, kind, link->number);
    if (kind == MEM_POST) {
        pawl_task *task = heap_entry(link, pawl_task, impl);
        task->fn(task);
    } else {
        pawl_work *work = heap_entry(link, pawl_work, impl);
        work->done(work);
    }
}

static void run_timer(const struct choice *choice)
{
    struct mem_wait *wait = heap_entry(heap_min(&choice->shard->timers), struct mem_wait, node);
    heap_remove(&choice->shard->timers, &wait->node);
    wait->shard = NULL;
    trace(choice, MEM_TIMER, wait->node.seq);
    pawl_timer *timer = heap_entry(wait, pawl_timer, impl);
    timer->fn(timer);
}

/* A work whose node is killed by its own fn has no done: it belongs to that node too. */
static void run_work(const struct choice *choice)
{
    struct mem_env *env = choice->env;
    struct mem_wait *wait = heap_entry(heap_min(&env->works), struct mem_wait, node);
    heap_remove(&env->works, &wait->node);
    pawl_work *work = heap_entry(wait, pawl_work, impl);
    struct mem_shard *asker = wait->shard;
    uint64_t number = wait->node.seq;
    bool has_done = work->done != NULL;
    trace(choice, MEM_WORK, number);
    work->fn(work);
    if (!has_done || env->killed)
        return;
    if (!asker) {
        trace(choice, MEM_DONE, number);
        work->done(work);
        return;
    }
    struct mem_link *link = (struct mem_link *)work->impl;
    *link = (struct mem_link){.ready_at = env->world->now, .number = number, .kind = MEM_DONE};
    shard_push(asker, link);
}

static void run(struct mem_world *world, const struct choice *choice)
{
    world->running = true;
    world->current = choice->shard;
    switch (choice->kind) {
    case MEM_TIMER: run_timer(choice); break;
    case MEM_WORK: run_work(choice); break;
    default: run_posted(choice); break;
    }
    world->current = NULL;
    world->running = false;
}

/* Runs one thing that is ready, of all nodes or of one. If there is none: *ret_next is when there will be. */
static bool step(struct mem_world *world, struct mem_env *only, uint64_t *ret_next)
{
    assert(!world->running);
    struct choice choice = {0};
    uint64_t ready = 0;
    uint64_t next = NEVER;
    for (struct mem_env *env = only ? only : world->envs; env; env = only ? NULL : env->next)
        consider_env(env, &ready, &next, &choice);
    *ret_next = next;
    if (!ready)
        return false;
    run(world, &choice);
    return true;
}

bool mem_world_step(struct mem_world *world)
{
    uint64_t next;
    return step(world, NULL, &next);
}

static bool never_holds(void *arg)
{
    return false;
}

/* *ret_idle: whether it ended because nothing will ever be ready. */
static bool drive(struct mem_world *world, bool (*holds)(void *arg), void *arg, uint64_t limit, bool *ret_idle)
{
    *ret_idle = false;
    uint64_t steps = 0;
    while (!holds(arg)) {
        uint64_t next;
        if (steps == limit)
            return false;
        if (step(world, NULL, &next)) {
            steps++;
        } else if (next == NEVER) {
            *ret_idle = true;
            return false;
        } else {
            assert(next > world->now);
            world->now = next;
        }
    }
    return true;
}

bool mem_world_run_until(struct mem_world *world, bool (*holds)(void *arg), void *arg, uint64_t limit)
{
    bool idle;
    return drive(world, holds, arg, limit, &idle);
}

bool mem_world_run(struct mem_world *world, uint64_t limit)
{
    bool idle;
    drive(world, never_holds, NULL, limit, &idle);
    return idle;
}

void mem_world_advance(struct mem_world *world, pawl_duration duration)
{
    uint64_t end = add_capped(world->now, duration);
    uint64_t next;
    for (;;) {
        if (step(world, NULL, &next))
            continue;
        if (next == NEVER || next > end)
            break;
        world->now = next;
    }
    world->now = end;
}

int mem_world_open(const struct mem_world_options *options, struct mem_world **ret_world, pawl_error *error)
{
    struct mem_world *world = mem_new(options->allocator, 1, sizeof *world);
    if (!world)
        return error_set(error, PAWL_ENOMEM, "no memory for a simulated world");
    world->allocator = options->allocator;
    world->options = *options;
    uint64_t seed = options->seed;
    world->choices = chance(&seed);
    world->delays = chance(&seed);
    world->births = chance(&seed);
    *ret_world = world;
    return PAWL_OK;
}

static void env_free(struct mem_env *env)
{
    struct mem_env **at = &env->world->envs;
    while (*at != env)
        at = &(*at)->next;
    *at = env->next;
    mem_free(env->world->allocator, env, sizeof *env + env->shard_count * sizeof env->shards[0]);
}

void mem_world_close(struct mem_world *world)
{
    if (!world)
        return;
    assert(!world->running);
    while (world->envs)
        env_free(world->envs);
    mem_free(world->allocator, world, sizeof *world);
}

void mem_trace_format(const struct mem_trace *t, char text[MEM_TRACE_TEXT_MAX])
{
    static const char *const kinds[] = {"?", "post", "timer", "work", "done"};
    unsigned long long s = t->at / PAWL_SECOND;
    unsigned long long ns = t->at % PAWL_SECOND;
    const char *kind = kinds[t->kind <= MEM_DONE ? t->kind : 0];
    if (t->shard == PAWL_NO_SHARD)
        snprintf(text, MEM_TRACE_TEXT_MAX, "%llu.%09llu n%u/pool %s %llu", s, ns, t->node, kind,
                 (unsigned long long)t->number);
    else
        snprintf(text, MEM_TRACE_TEXT_MAX, "%llu.%09llu n%u/%u %s %llu", s, ns, t->node, t->shard, kind,
                 (unsigned long long)t->number);
}

int mem_env_open(struct mem_world *world, const struct mem_env_options *options, struct mem_env **ret_env,
                 pawl_error *error)
{
    if (options->shards == 0 || options->shards > UINT16_MAX)
        return error_set(error, PAWL_EINVAL, "a node has 1 to %d shards, not %u", UINT16_MAX, options->shards);
    if (options->work_min > options->work_max)
        return error_set(error, PAWL_EINVAL, "the shortest work takes longer than the longest");
    struct mem_env *env = mem_new(world->allocator, 1, sizeof *env + options->shards * sizeof env->shards[0]);
    if (!env)
        return error_set(error, PAWL_ENOMEM, "no memory for a simulated node");
    env->port.ops = &port_ops;
    env->world = world;
    env->id = world->env_count++;
    env->random = chance(&world->births);
    env->boot_offset = chance(&world->births) % BOOT_START_MAX;
    env->work_min = options->work_max ? options->work_min : WORK_MIN_DEFAULT;
    env->work_max = options->work_max ? options->work_max : WORK_MAX_DEFAULT;
    env->shard_count = options->shards;
    for (uint32_t i = 0; i < env->shard_count; i++) {
        env->shards[i].env = env;
        env->shards[i].last = &env->shards[i].first;
    }
    struct mem_env **at = &world->envs;
    while (*at)
        at = &(*at)->next;
    *at = env;
    *ret_env = env;
    return PAWL_OK;
}

pawl_env *mem_env_port(struct mem_env *env)
{
    return &env->port;
}

static void forget_timers(struct mem_env *env)
{
    for (uint32_t i = 0; i < env->shard_count; i++)
        env->shards[i].timers.root = NULL;
}

int mem_env_close(struct mem_env *env)
{
    if (!env)
        return PAWL_OK;
    if (env->world->running)
        return PAWL_EMISUSE;
    uint64_t next;
    env->closed = true;
    forget_timers(env);
    while (step(env->world, env, &next))
        ;
    env_free(env);
    return PAWL_OK;
}

void mem_env_kill(struct mem_env *env)
{
    env->killed = true;
    env->closed = true;
    forget_timers(env);
    env->works.root = NULL;
    for (uint32_t i = 0; i < env->shard_count; i++) {
        env->shards[i].first = NULL;
        env->shards[i].last = &env->shards[i].first;
    }
}

static void set_paused(struct mem_env *env, uint32_t shard, bool paused)
{
    assert(shard == PAWL_NO_SHARD || shard < env->shard_count);
    if (shard != PAWL_NO_SHARD) {
        env->shards[shard].paused = paused;
        return;
    }
    env->pool_paused = paused;
    for (uint32_t i = 0; i < env->shard_count; i++)
        env->shards[i].paused = paused;
}

void mem_env_pause(struct mem_env *env, uint32_t shard)
{
    set_paused(env, shard, true);
}

void mem_env_resume(struct mem_env *env, uint32_t shard)
{
    set_paused(env, shard, false);
}

void mem_env_jump(struct mem_env *env, pawl_duration forward)
{
    env->boot_offset = add_capped(env->boot_offset, forward);
}

void mem_env_jump_wall(struct mem_env *env, int64_t by_ns)
{
    env->wall_offset += by_ns;
}

void mem_env_delay(struct mem_env *env, enum mem_kind kind, uint64_t number, pawl_duration delay)
{
    assert(kind == MEM_POST || kind == MEM_TIMER || kind == MEM_WORK);
    env->order[kind] = (struct mem_order){number, delay};
}
