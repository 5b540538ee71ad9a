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
 * Ahead. While the log syncs, the shard would only wait. So the rows of a batch that was sent can be put already,
 * and when the log has answered there is less to do before the commit:
 *
 *     sent, sent, ... ── a turn ──► ahead, ahead, ... ── the log answers: add, add, ... ──► write, ..., commit
 *                                        │
 *          a batch is lost; applier_write; another must be written now ──► abort: these rows are put by write
 *
 * What was added waits until all that is ahead was added, too, but no longer than a moment: the log may answer for one
 * batch and not for the next.
 *
 * An event that is durable will be applied: if the store is full or failing, the applier tries again until it
 * works, or until it is closed. stuck has the status of the last failure, so that processors refuse new
 * commands meanwhile.
 *
 * Invariants
 *   A1  Items are written in the order in which they were added.
 *   A2  They are done in that order, too, and one after the other: while an item's changes lie in an overlay,
 *       those of a later one must not have left it.
 *   A3  Between two calls the transaction has nothing but the rows of items that are ahead: what else was put is
 *       committed, or gone.
 *   A4  A transaction is committed only if all items whose rows it has were added: each is durable.
 *   A5  Rows are put ahead only into a transaction that is empty, all in one turn; and only of an item with no earlier one
 *       of the same stream before it. */
#ifndef CORE_STREAM_APPLIER_H
#define CORE_STREAM_APPLIER_H

#include "port/env.h"
#include "port/store.h"

enum apply_ahead {
    APPLY_NOT_PUT,
    APPLY_SENT, /* its rows may be put ahead */
    APPLY_PUT,  /* its rows are in the transaction */
};

struct apply_item {
    struct apply_item *next;   /* that was added */
    struct apply_item *beside; /* that was sent, or is ahead */
    enum apply_ahead ahead_state;
    int (*ahead)(
        struct apply_item *item,
        pawl_store *store); /* its rows, before it is durable; PAWL_ECANCELED: not these, and none was put */
    int (*write)(struct apply_item *item,
                 pawl_store *store);       /* into the open transaction; what is not put yet */
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
    struct apply_item *sent; /* APPLY_SENT, the newest first */
    struct apply_item *put;  /* APPLY_PUT */
    uint32_t undurable;      /* of them: not added yet */
    bool works_ahead;        /* its owner sets it: no, unless the log answers soon as a rule */
    bool waits;              /* what was added waits for what is ahead, until the timer */
    pawl_task task;
    pawl_task ahead_task;
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

/* On the shard. add: queue an item. soon: write what was added at the loop's next turn. run: write it now, even if
 * rows of others are ahead; from inside a done, at the next turn. */
void applier_add(struct applier *applier, struct apply_item *item);
void applier_soon(struct applier *applier);
void applier_run(struct applier *applier);

/* On the shard: the log has the entries of this item, which has ahead, and will answer soon. Its rows may be put at the
 * loop's next turn, behind what was posted before. The item is added later, or is lost. */
void applier_sent(struct applier *applier, struct apply_item *item);
void applier_lost(struct applier *applier, struct apply_item *item);

/* Abort what is ahead, if there is anything: the store is what it was at the last commit. What has waited for that is
 * written soon. */
void applier_retreat(struct applier *applier);

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
