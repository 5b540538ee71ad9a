/* engine/node/node.h: a node's insides: shards, their partitions, group0.
 *
 *     callers ── mailbox ──► shard: one thread, one live store, one applier
 *                              └── processors of its partitions (core/command)
 *     schema ── group0 stream ──► group0 ── published: one atomic pointer
 *
 * Which partitions live on a shard is base/partition_set.h's. The log, with one writer thread, serves them all. */
#ifndef ENGINE_NODE_NODE_H
#define ENGINE_NODE_NODE_H

#include <pawl/pawl.h>

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/uv/env.h"
#include "base/latch.h"
#include "base/wait.h"
#include "core/group0/group0.h"
#include "engine/directory/directory.h"
#include "engine/knobs.h"
#include "engine/shard/shard.h"

#define ALERTS_MAX 32

struct pawl_engine {
    char dir[NODE_PATH_MAX];
    int lock_fd; /* -1: read-only */
    pawl_options options;
    struct engine_knobs knobs;
    struct node_file file;
    struct uv_env *uv;
    pawl_env *env;
    pawl_log *log;
    struct shard *shards;
    struct partition *partitions;

    pthread_mutex_t schema_lock; /* one command of group0 is proposed at a time */
    pthread_mutex_t group0_lock; /* of group0 itself, which shards look into too */
    struct group0 *group0;
    uint64_t group0_epoch;
    uint64_t group0_next;
    const struct schema *_Atomic schema; /* the present one; it stays until close */

    struct lanes *lanes;

    pthread_mutex_t audit_lock;
    pawl_alert alerts[ALERTS_MAX]; /* under it, like the next ones */
    size_t alert_count;
    uint64_t alerted; /* how often there was something to tell, told or not */

    atomic_bool closing;

    struct latch opened;
    _Atomic uint32_t opening; /* partitions whose fate is not known yet */
    _Atomic int refused;      /* a partition that was; its error below is written once */
    pawl_error error;
    struct latch closed;
    _Atomic uint32_t open; /* partitions not yet closed */
};

static inline struct shard *shard_of(pawl_engine *engine, uint16_t partition)
{
    return &engine->shards[partition_shard(partition, engine->file.shards)];
}

/* The shard's partition of this place in its set. */
static inline struct partition *shard_partition(const struct shard *shard, size_t index)
{
    return &shard->engine->partitions[partition_set_at(&shard->partitions, index)];
}

/* Run fn on the partition's shard, and wait for it: as pawl_env_call. */
static inline int partition_call(pawl_engine *engine, uint16_t partition, void (*fn)(void *arg), void *arg)
{
    return pawl_env_call(engine->env, shard_of(engine, partition)->index, fn, arg);
}

static inline const struct schema *engine_schema(const pawl_engine *engine)
{
    return atomic_load_explicit(&engine->schema, memory_order_acquire);
}

/* So much later; never, if that is beyond the clock. */
static inline pawl_instant engine_deadline(const pawl_engine *engine, pawl_duration wait)
{
    uint64_t now = pawl_env_now(engine->env).ns;
    return (pawl_instant){wait < UINT64_MAX - now ? now + wait : UINT64_MAX};
}

/* schema.c: claim group0 and read it. */
int engine_group0_open(pawl_engine *engine, pawl_error *error);

/* Write a command of group0, if it says something new, and apply it: when this returns it is durable, and every
 * shard knows the schema that it makes. Of an engine that may write; not on a shard's thread, because each is
 * waited for. Errors: those of group0_check, and the log's. */
int engine_group0_propose(pawl_engine *engine, pawl_bytes command, enum group0_outcome *ret_outcome,
                          pawl_error *error);

/* The same, of whoever has schema_lock. */
int engine_group0_propose_held(pawl_engine *engine, pawl_bytes command, pawl_error *error);

/* Whether this is a thread of the engine's, inside a callback of a shard or of a follower; and that a follower
 * is visited on this one from now on, or, with NULL, no longer. */
bool engine_is_self(const pawl_engine *engine);
void engine_visiting(const pawl_engine *engine);

/* Any of the engine's calls, from a thread that may make it. */
int engine_enter(const pawl_engine *engine, pawl_error *error);
int engine_enter_writing(const pawl_engine *engine, pawl_error *error);

/* The schema that the command at this very position made; NULL if none did. Any thread. */
const struct schema *engine_schema_at(pawl_engine *engine, uint64_t position);

/* The schema under which a generation of a lane projects an event that was made under another; NULL: it does
 * not. Any thread. */
const struct schema *engine_schema_for(pawl_engine *engine, uint16_t lane, uint32_t generation,
                                       uint64_t event_schema);

/* The present schema; beside another process, what that has published by now. */
const struct schema *engine_schema_refresh(pawl_engine *engine);

/* alerts.c: something is not as it should be, and is told once for each kind, partition and table. Any thread.
 */
void engine_alert(pawl_engine *engine, const pawl_alert *alert);

/* One of the two sides of a partition has come to an offset that is compared. Any thread. */
void engine_audit(pawl_engine *engine, enum audit_side side, const struct position *position, uint64_t offset);
uint64_t engine_audit_every(const pawl_engine *engine);

#endif
