/* engine/shard/shard.h: a shard and its partitions.
 *
 *     callers ── mailbox ──► shard: one live store, one applier
 *                              ├── processors of its partitions (core/command)
 *                              ├── sequences.h        their sequencers
 *                              └── turn_appends.h ──► the log: what they append in one turn, together
 *
 * A shard has a thread of its own; or on a machine with few processors, all shards share one: what they append in one
 * turn goes to the log together then, and the other processors are for the log and the checkpoint. What a shard owns is touched on its thread only, except what is said to be for any thread. */
#ifndef ENGINE_SHARD_SHARD_H
#define ENGINE_SHARD_SHARD_H

#include <pawl/pawl.h>

#include <stdatomic.h>

#include "base/arena.h"
#include "base/histogram.h"
#include "base/latch.h"
#include "base/mpsc.h"
#include "base/partition_set.h"
#include "base/wake_group.h"
#include "core/command/processor.h"
#include "core/command/request.h"
#include "core/state/audit.h"
#include "core/view/tables.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/lanes/lanes.h"
#include "engine/shard/sequences.h"
#include "engine/shard/turn_appends.h"

#define SHARD_GATHER_MAX 128 /* commands that gather in the mailbox while the log syncs others */

/* Somebody who waits until a partition's state, or a lane's tables, have come to an offset. */
struct applied_wait {
    struct applied_wait *next;
    uint16_t partition;
    const struct partition_lane *pl; /* NULL: the state */
    uint64_t offset;
    bool gone; /* the lane is closed: find the one that serves now */
    struct latch latch;
};

/* What shards that share a thread have together. */
struct shard_thread {
    struct shard *first; /* of its shards */
    struct turn_appends appends;
    size_t outstanding; /* commands of its shards that are not answered yet */
};

struct shard {
    pawl_engine *engine;
    struct shard_thread *thread;
    struct shard *sibling;       /* the next one on the same thread */
    struct partition *to_notify; /* partitions whose lanes must be told of new events */
    pawl_task notify;
    uint32_t index;
    struct partition_set partitions; /* that live here */
    pawl_store *store;
    struct applier applier;
    struct sequence_tails tails;
    struct mpsc mailbox; /* of pawl_request * */
    pawl_task drain;
    bool gathers;          /* commands gather in the mailbox while the log syncs others: shard.c */
    atomic_bool gathering; /* and do so now */
    bool
        goes_along; /* but are taken at the next turn: another shard of the thread sends, or it took too long */
    _Atomic uint32_t came;     /* so many have come since */
    uint32_t gather_max;       /* that many gather, and no more */
    pawl_timer patience;       /* until which they gather, if the log does not answer */
    bool patient;              /* it is set */
    size_t outstanding;        /* commands of its own that are not answered yet */
    struct wake_group callers; /* where blocking callers sleep */
    pawl_task wake_callers;
    pawl_task give_up;
    struct applied_wait *waits;

    struct view_tables views;   /* of the store */
    struct view_work *building; /* how it builds views; NULL: it does not (yet): engine/views */

    struct checkpointer *checkpointer; /* NULL: there is none */
    _Atomic uint64_t seen;             /* events that are known to be in the log, of all its partitions */
    bool holding;                      /* commands stay in the mailbox until the checkpoint has come on */
    bool refusing;                     /* they have waited too long: commands are refused */
    bool closed;
    pawl_timer hold;
    _Atomic uint64_t held; /* how often holding began */

    /* Of commands that were answered; for any thread to read. */
    struct histogram latency;
    _Atomic uint64_t answered;
    _Atomic uint64_t repeated;
    _Atomic uint64_t failed[PAWL_OUTCOMES_MAX]; /* by status, without its sign */
    bool taken_over; /* the store was the checkpoint until it was opened; read-only: it still is */
};

struct partition {
    struct processor *processor;
    struct sequences sequences;
    bool touched;                 /* during a drain: its processor has got a command */
    bool reported;                /* during opening: it is known whether it runs */
    _Atomic uint64_t offset;      /* of the last applied event; for any thread */
    uint64_t seen;                /* the offset of the last event that is known to be in the log */
    struct audit audit;           /* under audit_lock */
    struct partition_lane *lanes; /* its open lanes; only the shard touches them */
    struct partition *to_notify;  /* the next one in the shard's list */
    bool notifying;               /* it is in the shard's list */
    pawl_engine *engine;
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
    struct answered_event *event; /* as its reader sees it; NULL: nobody has asked for it */

    /* A command under way. */
    struct call call;
    pawl_instant sent;
    struct shard *shard;
    pawl_error error;
    struct waiter waiter;
    pawl_command_done done; /* NULL: the caller waits with the waiter */
    void *arg;
};

/* shard.c */
int shard_open(struct shard *shard, pawl_error *error);
void shard_close(struct shard *shard);
void shard_drain(pawl_task *task);
void shard_wake(struct shard *shard);
void shard_notify_lanes(pawl_task *task);
void shard_wake_callers(pawl_task *task);
void shard_give_up(pawl_task *task);

/* The node does not own its log any more: all partitions of the shard, and their lanes, write nothing from the shard's
 * next turn on, and are refused. Any thread; once. */
void shard_give_up_soon(struct shard *shard);

/* command.c. NULL is allowed. */
struct answered_event;
void answered_event_free(struct answered_event *event, const pawl_allocator *alloc);

/* request.c: empty the request, for another command. */
void request_restart(pawl_request *request, uint64_t wsid);

/* wait.c: wait until the state, or the tables of an entity, have come to options->min_offset. tell_applied and
 * tell_gone wake those who wait. */
int engine_wait_applied(pawl_engine *engine, uint16_t partition, const pawl_read_options *options,
                        pawl_error *error);
int engine_wait_entity(pawl_engine *engine, uint16_t partition, const char *entity,
                       const pawl_read_options *options, pawl_error *error);
void shard_tell_applied(struct shard *shard, const struct partition_lane *pl, uint16_t partition,
                        uint64_t offset);
void shard_tell_gone(struct shard *shard, const struct partition_lane *pl, uint16_t partition);

#endif
