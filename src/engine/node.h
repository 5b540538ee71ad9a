/* engine/node.h: a node's insides: shards, their partitions, group0.
 *
 *     callers ── mailbox ──► shard: one thread, one live store, one applier
 *                              └── processors of its partitions (core/command)
 *     schema ── group0 stream ──► group0 ── published: one atomic pointer
 *
 * A partition p lives on shard p mod shards. The log, with one writer thread, serves them all. */
#ifndef ENGINE_NODE_H
#define ENGINE_NODE_H

#include <pawl/pawl.h>

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/uv/env.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/latch.h"
#include "base/mpsc.h"
#include "base/wait.h"
#include "base/wake_group.h"
#include "core/command/processor.h"
#include "core/command/request.h"
#include "core/group0/group0.h"
#include "core/sequence/storage.h"
#include "core/state/audit.h"
#include "engine/checkpointer.h"
#include "engine/combine.h"
#include "engine/lanes.h"
#include "engine/node_file.h"
#include "engine/sequences.h"

/* Somebody who waits until a partition's state, or a lane's tables, have come to an offset. */
struct applied_wait {
    struct applied_wait *next;
    uint16_t partition;
    const struct lane_part *part; /* NULL: the state */
    uint64_t offset;
    bool gone; /* the lane is: look again who serves */
    struct latch latch;
};

#define ALERTS_MAX 32

struct shard {
    pawl_engine *engine;
    struct partition *poked; /* whose lanes are to be told how far it has come */
    pawl_task poke;
    uint32_t index;
    pawl_store *store;
    struct combine combine;
    struct applier applier;
    struct tails tails;
    struct mpsc mailbox; /* of struct node_call * */
    pawl_task drain;
    size_t outstanding;        /* commands that are not answered yet */
    struct wake_group callers; /* blocking callers sleep here */
    pawl_task wake_callers;
    struct applied_wait *waits;

    struct checkpointer *checkpointer; /* NULL: there is none */
    _Atomic uint64_t seen;             /* events that are known to be in the log, of all its partitions */
    bool holding;                      /* the mailbox waits for the checkpoint */
    bool refusing;                     /* it has waited too long */
    bool closed;
    pawl_timer hold;
    _Atomic uint64_t held; /* how often that began */
    bool taken_over;       /* the store was the checkpoint until now; or, read-only, is */
};

struct partition {
    struct processor *processor;
    struct sequences sequences;
    bool touched;            /* during a drain: there is something to run */
    bool reported;           /* during opening: its fate is known */
    _Atomic uint64_t offset; /* applied; for any thread */
    uint64_t seen;           /* the last that is known to be in the log */
    struct audit audit;      /* under audit_lock */
    struct lane_part *parts; /* of lanes, that are open; the shard's */
    struct partition *poked; /* the next one whose lanes are to be told */
    bool poking;
    pawl_engine *engine;
};

struct pawl_engine {
    char dir[NODE_PATH_MAX];
    int lock_fd; /* -1: read-only */
    pawl_options options;
    struct engine_trial trial;
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

    struct lanes lanes;

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

struct pawl_request {
    pawl_engine *engine;
    struct arena memory;
    const struct schema *schema;
    struct request request;
    pawl_error kept; /* the first error since it was begun; then it is not sent */
    enum call_ack ack;
    struct arena answered; /* the event that answers, kept until the next command */
    pawl_bytes body;
    pawl_answer answer;

    /* A command under way. */
    struct call call;
    struct shard *shard;
    pawl_error error;
    struct waiter waiter;
    pawl_command_done done; /* NULL: a thread waits with the waiter */
    void *arg;
};

/* shard.c */
int shard_open(struct shard *shard, pawl_error *error);
void shard_close(struct shard *shard);
void shard_drain(pawl_task *task);
void shard_poke(pawl_task *task);
void shard_wake_callers(pawl_task *task);

static inline struct shard *shard_of(pawl_engine *engine, uint16_t partition)
{
    return &engine->shards[partition % engine->file.shards];
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

/* request.c: forget what was asked. */
void request_restart(pawl_request *request, uint64_t wsid);

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

/* workspaces.c: whether a workspace exists (PAWL_ENOTFOUND); its last offset, 0 if it has no event. */
int engine_workspace(pawl_engine *engine, uint64_t wsid, pawl_error *error);
int engine_last_offset(pawl_reader *snapshot, uint64_t wsid, uint64_t *ret_last);

/* events.c: read entries of a stream, or of a partition's events, on this thread. ret_next may be NULL. */
int engine_read_log(pawl_engine *engine, pawl_stream stream, uint64_t from, uint64_t limit,
                    bool (*visit)(pawl_read *, const pawl_entry *, pawl_place), void *arg, uint64_t *ret_next,
                    pawl_error *error);
int engine_read_plog(pawl_engine *engine, uint16_t partition, uint64_t from, uint64_t limit,
                     bool (*visit)(pawl_read *, const pawl_entry *, pawl_place), void *arg, uint64_t *ret_next,
                     pawl_error *error);

/* audit.c: something is not as it should be, and is told once for each kind, partition and table. Any thread.
 */
void engine_alert(pawl_engine *engine, const pawl_alert *alert);

/* One of the two sides of a partition has come to an offset that is compared. Any thread. */
void engine_audit(pawl_engine *engine, enum audit_side side, const struct position *position, uint64_t offset);
uint64_t engine_audit_every(const pawl_engine *engine);

/* wait.c: wait until the state is at least there. */
int engine_wait_applied(pawl_engine *engine, uint16_t partition, const pawl_read_options *options,
                        pawl_error *error);
int engine_wait_entity(pawl_engine *engine, uint16_t partition, const char *entity,
                       const pawl_read_options *options, pawl_error *error);
void shard_tell_applied(struct shard *shard, const struct lane_part *part, uint16_t partition, uint64_t offset);
void shard_tell_gone(struct shard *shard, const struct lane_part *part);

#endif
