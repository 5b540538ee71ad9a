/* core/stream/applier.h: durable entries go to the shard's store, in one transaction for all that have
 * gathered.
 *
 * Several partitions and lanes live on a shard, and their batches become durable together; what each has to
 * write is put into one transaction, and committed once. An item is what a writer has to write for one batch.
 *
 *     add, add, ... ── a turn of the shard's loop ──► write, write, ..., commit ──► done, done, ...
 *                                                              │
 *                                                    no room ──┴──► undo all, and again after a while
 *
 * An event that is durable will be applied: a store that is full or failing is tried again until it works, or
 * the applier is closed. stuck says what it is waiting for, so that processors refuse new commands meanwhile.
 *
 * Invariants
 *   A1  Items are written in the order in which they were added.
 *   A2  They are done in that order, too, and one after the other: while an item's changes lie in an overlay,
 *       those of a later one must not have left it. */
#ifndef CORE_STREAM_APPLIER_H
#define CORE_STREAM_APPLIER_H

#include "port/env.h"
#include "port/store.h"

struct apply_item {
    struct apply_item *next;
    int (*write)(struct apply_item *item, pawl_store *store); /* into the open transaction */
    void (*undo)(struct apply_item *item); /* the transaction is gone; only if write returned PAWL_OK */
    void (*done)(struct apply_item *item); /* committed; may add, and run, but not free the applier */
    void (*late)(struct apply_item *item); /* another attempt has failed; may do what done may; or NULL */
};

struct applier {
    pawl_env *env;
    uint32_t shard;
    pawl_store *store;
    struct apply_item *first;
    struct apply_item **last;
    pawl_task task;
    pawl_timer timer;
    pawl_duration delay; /* before the next attempt; 0: the last one worked */
    int stuck;           /* what the last attempt ended with; PAWL_OK */
    bool telling;        /* inside a done, or a late */
    bool closed;
    uint64_t commits;
    uint64_t retries;
};

void applier_init(struct applier *applier, pawl_env *env, uint32_t shard, pawl_store *store);

/* On the shard. What was added is written at the loop's next turn, or now; from inside a done, at the next turn
 * in any case. */
void applier_add(struct applier *applier, struct apply_item *item);
void applier_soon(struct applier *applier);
void applier_run(struct applier *applier);

/* Take an item back that waits for the store: whoever owns it goes first. It gets no done. False: it is not
 * here, because it was written, and its done is coming. */
bool applier_remove(struct applier *applier, struct apply_item *item);

/* No more attempts. Whoever added something that is left has taken it back. A turn of the loop that was asked
 * for still comes, and does nothing: free the applier after that. */
void applier_close(struct applier *applier);

#endif
