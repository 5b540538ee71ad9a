/* engine/local/local.h: DIR/local, the small durable store that a node has for itself.
 *
 * What is in it is of this node only and is in no log: which lanes are paused (engine/lanes/paused.c), the leases of
 * external workers (engine/lanes/kept_leases.c), access tokens (engine/tokens/tokens.c), a snapshot of group0
 * (engine/node/snapshot.c), how far a log on Kafka is known (engine/node/known.c).
 *
 *     any thread, also a shard ── local_add ──► queue ──► the thread: one transaction, one sync, for all
 *     who must know            ── local_sync ─────────────────────┘ waits
 *
 * One thread writes, because a store has one writer, and because many writes then share one sync. It is started
 * by the first who needs it, opens the store with its first write, and has it open until the end. Writes take
 * effect in the order in which they were added. A write that nobody waits for is written soon, with others.
 *
 * If a transaction fails (the disk is full), whoever waits is told; the writes stay in the queue, in their order,
 * and are tried again.
 *
 * Invariants
 *   O1  A write is durable only after all that were added before it, those aside that failed while their caller
 *       waited in local_put.
 *   O2  The queue is bounded: local_add refuses, and a write that may not be refused was paid for by one that
 *       could have been.
 *   O3  Only the thread opens the store for writing, and closes it. Readers before that open it for themselves. */
#ifndef ENGINE_LOCAL_LOCAL_H
#define ENGINE_LOCAL_LOCAL_H

#include <pawl/types.h>

#include "port/store.h"

struct local;

struct local_options {
    const char *dir; /* copied */
    const char *boot_id;
    const pawl_allocator *alloc;
};

/* A write. It, and what it points to, stay until done is called, on the thread. */
struct local_write {
    pawl_bytes key;
    pawl_bytes value; /* data NULL: remove the key; it need not be there */
    void (*done)(struct local_write *write);

    /* local.c's */
    struct local_write *next;
    uint64_t number;
    bool once; /* one try only: somebody waits for just this one */
    bool is_over;
    int status;
};

/* PAWL_ENOMEM. */
int local_new(const struct local_options *options, struct local **ret_local);

/* Write what is in the queue, if that can be done, and end the thread. NULL is allowed. */
void local_free(struct local *local);

/* Start the thread, if it does not run. Not on a shard. */
int local_start(struct local *local, pawl_error *error);

/* Visit all rows whose keys begin with this. PAWL_OK, also if there is no store; the errors of opening one. */
int local_scan(struct local *local, pawl_bytes prefix, pawl_visit_row visit, void *arg, pawl_error *error);

/* Queue a write; waits for nothing. Its number is for local_sync. PAWL_EBUSY: there are too many. must: it cannot
 * be refused (O2). The thread must have been started. */
int local_add(struct local *local, struct local_write *write, bool must, uint64_t *ret_number);

/* Wait until this write and all before it are durable. Not on a shard. An error: a transaction that had it has
 * failed. */
int local_sync(struct local *local, uint64_t number, pawl_error *error);

/* Write one row (value.data NULL: remove it), and wait until it is durable. If that fails, it was not written. Not
 * on a shard. */
int local_put(struct local *local, pawl_bytes key, pawl_bytes value, pawl_error *error);

#endif
