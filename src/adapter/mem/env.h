/* adapter/mem/env.h: time, threads and chance, in one thread and from one seed.
 *
 * A world is a scheduler, a clock and a seed. An env in it is one node: its shards, its pool, its clocks.
 * Several nodes of one world make a simulated cluster; whatever lies between them (a network, a shared log) may
 * be a node of its own, so that it outlives the others.
 *
 *      mem_world_step ──► all that is ready now, on any shard or pool of any node ──► the seed picks one ──► run
 *
 * Nothing runs but inside a call that drives the world, and virtual time moves only there: when nothing is
 * ready, to the next instant at which something will be. A run is decided by the seed and by what the caller
 * does, and by nothing else; two runs of the same give the same trace.
 *
 * What the seed chooses: which shard, timer or finished work is next; how long each work takes; what random
 * returns; and where each node's boot clock starts, so that no one compares the instants of two nodes. Posts to
 * one shard run in the order in which they were made.
 *
 * Caveats
 *   - One thread. A function that drives or closes may not be called from inside a task, a timer or a work.
 *   - After a kill, the node's tasks, timers and works must be zeroed before they are used again. */
#ifndef ADAPTER_MEM_ENV_H
#define ADAPTER_MEM_ENV_H

#include "port/env.h"

struct mem_world;
struct mem_env;

enum mem_kind {
    MEM_POST = 1,
    MEM_TIMER,
    MEM_WORK,
    MEM_DONE,
};

/* Something that is about to run: "0.001500000 n0/2 timer 17". Posts, timers and works are each numbered from 1
 * in the order in which the node asked for them; a done has its work's number. */
struct mem_trace {
    pawl_duration at; /* since the world began */
    uint32_t node;    /* counted from 0, in the order of opening */
    uint32_t shard;   /* PAWL_NO_SHARD: the pool */
    enum mem_kind kind;
    uint64_t number;
};

#define MEM_TRACE_TEXT_MAX 80

struct mem_world_options {
    uint64_t seed;
    void (*trace)(void *ctx, const struct mem_trace *trace); /* may be NULL; called before each thing runs */
    void *trace_ctx;
    const pawl_allocator *allocator;
};

struct mem_env_options {
    uint32_t shards;
    pawl_duration work_min, work_max; /* how long a work takes; both 0: 10 us to 1 ms */
};

/* Errors: PAWL_ENOMEM. */
int mem_world_open(const struct mem_world_options *options, struct mem_world **ret_world, pawl_error *error);

/* The power goes out: nodes that are still open are killed and freed; nothing runs. */
void mem_world_close(struct mem_world *world);

/* Run one ready thing. False: nothing is ready now. */
bool mem_world_step(struct mem_world *world);

/* Step, moving time when nothing is ready, until holds(arg). False: the world is idle (what is paused does not
 * count) or limit steps were made, and it still does not hold. */
bool mem_world_run_until(struct mem_world *world, bool (*holds)(void *arg), void *arg, uint64_t limit);

/* The same until the world is idle. False: limit steps did not suffice. */
bool mem_world_run(struct mem_world *world, uint64_t limit);

/* Let this much time pass, running everything at its instant. */
void mem_world_advance(struct mem_world *world, pawl_duration duration);

void mem_trace_format(const struct mem_trace *trace, char text[MEM_TRACE_TEXT_MAX]);

/* Errors: PAWL_EINVAL (no shards, work_min above work_max), PAWL_ENOMEM. */
int mem_env_open(struct mem_world *world, const struct mem_env_options *options, struct mem_env **ret_env,
                 pawl_error *error);

/* Shut down, as port/env.h says, and free: what was posted or under way is run to its end now, paused or not,
 * without time passing and without the other nodes. Errors: PAWL_EMISUSE from inside a task, timer or work. */
int mem_env_close(struct mem_env *env);

pawl_env *mem_env_port(struct mem_env *env);

/* Faults to order.
 *
 * kill: whatever belongs to the node is dropped and never runs. The env stays, as one that is closed, until
 * mem_env_close or mem_world_close frees it; a node that starts again is a new env. May be called from inside.
 *
 * pause: the shard's posts and timers wait, until resume lets them come. PAWL_NO_SHARD: all shards and the
 * pool.
 *
 * jump, jump_wall: this node's clock is moved, and no time passes. The boot clock goes only forward, and timers
 * see it.
 *
 * delay: the number-th post, timer or work (MEM_POST, MEM_TIMER, MEM_WORK; numbered as in the trace) comes that
 * much later. Later posts to the same shard wait behind a delayed one. One order a kind: a new one replaces it.
 */
void mem_env_kill(struct mem_env *env);
void mem_env_pause(struct mem_env *env, uint32_t shard);
void mem_env_resume(struct mem_env *env, uint32_t shard);
void mem_env_jump(struct mem_env *env, pawl_duration forward);
void mem_env_jump_wall(struct mem_env *env, int64_t by_ns);
void mem_env_delay(struct mem_env *env, enum mem_kind kind, uint64_t number, pawl_duration delay);

#endif
