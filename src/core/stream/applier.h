/* core/stream/applier.h: durable entries go to the shard's store, one transaction for all that have gathered.
 *
 * Several partitions and lanes live on a shard, and their batches become durable together. The applier puts the
 * rows of all of them into one transaction and commits once. An item is what a writer has to write for one
 * batch.
 *
 *     add, add, ... ── a turn of the shard's loop ──► write, write, ..., commit ──► done, done, ...
 *                                                              │
 *                                                    no room ──┴──► undo all, and again after a while
 *
 * The applier owns the store's transaction: nobody else commits or aborts it. Other writes (events that a store
 * lacks when it catches up, rows of sequences, removal of rows that nobody needs any more) go through
 * applier_write, and each gets a transaction of its own.
 *
 * An event that is durable will be applied: if the store is full or failing, the applier tries again until it
 * works, or until it is closed. stuck has the status of the last failure, so that processors refuse new
 * commands meanwhile.
 *
 * Invariants
 *   A1  Items are written in the order in which they were added.
 *   A2  They are done in that order, too, and one after the other: while an item's changes lie in an overlay,
 *       those of a later one must not have left it.
 *   A3  Between two calls the transaction is empty: what was put is committed, or gone. */
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

/* Somebody who has rows to add to every transaction at its end, and must know what became of it: views do
 * (core/view/tables.h). */
struct apply_hook {
    int (*flush)(struct apply_hook *hook, pawl_store *store); /* before the commit; an error aborts */
    void (*ended)(struct apply_hook *hook, bool committed);
};

struct applier {
    pawl_env *env;
    uint32_t shard;
    pawl_store *store;
    struct apply_hook *hook; /* NULL: nobody; its owner sets it */
    struct apply_item *first;
    struct apply_item **last;
    pawl_task task;
    pawl_timer timer;
    pawl_duration delay; /* before the next attempt; 0: the last one worked */
    int stuck;           /* the status of the last attempt; PAWL_OK: it worked */
    bool writing;        /* inside a write or a put: A3 */
    bool telling;        /* inside a done, or a late */
    bool closed;
    uint64_t commits;
    uint64_t retries;
};

void applier_init(struct applier *applier, pawl_env *env, uint32_t shard, pawl_store *store);

/* On the shard. add: queue an item. soon: write what was added at the loop's next turn. run: write it now; from
 * inside a done, at the next turn. */
void applier_add(struct applier *applier, struct apply_item *item);
void applier_soon(struct applier *applier);
void applier_run(struct applier *applier);

/* Take back an item that waits for the store, because its owner is closing. It gets no done. False: it is not
 * here; it was written, and its done is coming. */
bool applier_remove(struct applier *applier, struct apply_item *item);

/* Write something that is no item, now, in a transaction of its own: put puts the rows into it, then it is
 * committed. On the shard, and not from inside a write or a put. Errors: those of put, with its words; those of
 * a commit. After any error nothing was written. */
int applier_write(struct applier *applier, int (*put)(void *ctx, pawl_store *store, pawl_error *error),
                  void *ctx, pawl_error *error);

/* Make no more attempts. The owners have taken back all items that are left. If a turn of the loop was asked
 * for, it still comes, and does nothing: free the applier after that. */
void applier_close(struct applier *applier);

#endif
