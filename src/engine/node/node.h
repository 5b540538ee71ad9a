/* engine/node/node.h: what a node consists of: shards, their partitions, group0.
 *
 *     callers ── mailbox ──► shard: one thread, one live store, one applier
 *                              └── processors of its partitions (core/command)
 *     schema ── group0 stream ──► group0 ── published: one atomic pointer
 *
 * base/partition_set.h says which partitions live on a shard. All shards share one log, with one writer
 * thread. */
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
#include "engine/local/local.h"
#include "engine/node/known.h"
#include "engine/node/owner.h"
#include "engine/shard/shard.h"
#include "engine/tokens/tokens.h"
#include "engine/views/views.h"

#define ALERTS_MAX     32
#define LOG_ALERTS_MAX 3 /* of a log on Kafka; beside them */

struct pawl_engine {
    char dir[NODE_PATH_MAX];
    int lock_fd; /* -1: read-only */
    pawl_options options;
    struct engine_knobs knobs;
    struct node_file file;
    bool
        file_is_ahead; /* file has a URL or an ID that DIR/node has not yet: it may be another log, of which nothing is kept */
    struct uv_env *uv;
    pawl_env *env;
    pawl_log *log;
    pawl_log *kafka; /* NULL, or the log itself, behind its mirror */
    struct shard *shards;
    struct shard_thread *threads;
    uint32_t thread_count;
    struct partition *partitions;

    pthread_mutex_t schema_lock; /* one command of group0 is proposed at a time */
    pthread_mutex_t group0_lock; /* protects group0 itself, which shards read too */
    struct group0 *group0;
    uint64_t assignment; /* its position in group0; 0: the log is the directory's own. Set while it is opened */
    struct owner_watch owner;
    struct known_streams known;
    uint64_t group0_epoch;
    uint64_t group0_next;
    bool group0_open; /* it was claimed and read; from now on another's claim means that the log is lost */
    const struct schema *_Atomic schema;       /* the present one; it stays until close */
    const struct view_list *_Atomic view_list; /* likewise */
    uint64_t group0_saved;                     /* position of the last snapshot; under schema_lock */

    struct lanes *lanes;
    struct views *views;
    struct tokens *tokens;
    struct local *local;   /* DIR/local */
    bool local_is_foreign; /* it knows more of group0 than the log has: it is of another log */

    pthread_mutex_t audit_lock;
    pawl_alert alerts[ALERTS_MAX]; /* under audit_lock, like the next two */
    size_t alert_count;
    uint64_t alerted; /* how often something was found, also if the alert was there already */

    atomic_bool closing;

    struct latch opened;
    _Atomic uint32_t opening; /* partitions that have not reported yet whether they run */
    _Atomic int refused;      /* 1: a partition cannot run; its error below is written once */
    pawl_error error;
    struct latch closed;
    _Atomic uint32_t open; /* partitions not yet closed */
};

static inline struct shard *shard_of(pawl_engine *engine, uint16_t partition)
{
    return &engine->shards[partition_shard(partition, engine->file.shards)];
}

/* The partition at this place of the shard's set. */
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

/* The instant this long from now; if the clock cannot show it, one that never comes. */
static inline pawl_instant engine_deadline(const pawl_engine *engine, pawl_duration wait)
{
    uint64_t now = pawl_env_now(engine->env).ns;
    return (pawl_instant){wait < UINT64_MAX - now ? now + wait : UINT64_MAX};
}

/* find.c: find the directory or make it, and take its lock if it is opened for writing.
 * keep_file: the log is this node's, and has what the state was derived from: write down what engine_find has learnt of it.
 * Not before: what does not work must not mislead the next opening. */
int engine_find(pawl_engine *engine, pawl_error *error);
int engine_keep_file(pawl_engine *engine, pawl_error *error);

/* schema.c: claim group0 and read it. */
int engine_group0_open(pawl_engine *engine, pawl_error *error);

/* The steps of that, for owner.c. read: apply the commands that the stream has and group0 has not. claim: on
 * engine->assignment, and read up to the claim. write: a command, which is applied when it is durable; after an error
 * claim again, and look whether it is there. */
int engine_group0_read(pawl_engine *engine, pawl_error *error);
int engine_group0_claim(pawl_engine *engine, pawl_error *error);
int engine_group0_write(pawl_engine *engine, pawl_bytes command, pawl_error *error);

/* Write a command of group0, unless it changes nothing, and apply it. When this returns, the command is durable
 * and every shard knows the schema that it makes. The engine must be open for writing. Not on a shard's thread,
 * because this waits for all shards. Errors: those of group0_check, and the log's. */
int engine_group0_propose(pawl_engine *engine, pawl_bytes command, enum group0_outcome *ret_outcome,
                          pawl_error *error);

/* The same, for a caller that holds schema_lock. */
int engine_group0_propose_held(pawl_engine *engine, pawl_bytes command, pawl_error *error);

/* snapshot.c: a snapshot of group0 in the node's own store. load: at opening; one that cannot be used is ignored,
 * and all commands are read. if_due: under schema_lock; write one, if there were many commands since the last.
 * save: write one, if anything has changed. */
void group0_snapshot_load(pawl_engine *engine);
int group0_snapshot_forget(pawl_engine *engine); /* it is of another log: begin anew. PAWL_ENOMEM */
void group0_snapshot_if_due(pawl_engine *engine);
void group0_snapshot_save(pawl_engine *engine);

/* is_self: whether this thread runs a callback of the engine, on a shard or for a follower. visiting: from now
 * on this thread runs a follower's callback; NULL: no longer. */
bool engine_is_self(const pawl_engine *engine);
void engine_visiting(const pawl_engine *engine);

/* At the beginning of every public call: PAWL_EMISUSE inside a callback; PAWL_ECLOSED; of writing also
 * PAWL_EREADONLY. */
int engine_enter(const pawl_engine *engine, pawl_error *error);
int engine_enter_writing(const pawl_engine *engine, pawl_error *error);

/* The schema that the command at exactly this position made; NULL if it made none. Any thread. */
const struct schema *engine_schema_at(pawl_engine *engine, uint64_t position);

/* The schema by which a generation of a lane projects an event that was made under event_schema; NULL: it does
 * not project it. Any thread. */
const struct schema *engine_schema_for(pawl_engine *engine, uint16_t lane, uint32_t generation,
                                       uint64_t event_schema);

/* The present schema. If this engine only reads: the newest one that the writing process has published. */
const struct schema *engine_schema_refresh(pawl_engine *engine);

/* alerts.c: something is not as it should be. One alert is kept for each kind, partition and table. Any
 * thread. */
void engine_alert(pawl_engine *engine, const pawl_alert *alert);

/* What is wrong with a log on Kafka now; returns how many alerts that is. Any thread. */
size_t engine_log_alerts(const pawl_engine *engine, pawl_alert alerts[LOG_ALERTS_MAX]);

/* A table in the words of an alert: "table 70", "view shop.by_customer (table 2147483653)". Any thread. */
void engine_describe_table(pawl_engine *engine, uint32_t table, char *text, size_t size);

/* One of the two states of a partition has come to an offset at which they are compared. views: of that state; NULL:
 * it has none. On the thread of its writer. */
void engine_audit(pawl_engine *engine, enum audit_side side, const struct position *position,
                  struct view_tables *views, uint64_t offset);
uint64_t engine_audit_every(const pawl_engine *engine);

#endif
