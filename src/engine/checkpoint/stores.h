/* engine/checkpoint/stores.h: the two stores of a shard, and which of them is the live one.
 *
 *     DIR/state/N            the live store
 *     DIR/state/N.new        one that is being copied from a checkpoint on another file system
 *     DIR/checkpoint/N       the checkpoint store, durable, some events behind
 *     DIR/checkpoint/N.new   one that is being made: a copy of the live store
 *
 * Invariants
 *   T1  At any moment one of the two is durable and lacks at most as many events as the configured lag. The
 *       live store is opened fast only if there is such a checkpoint; otherwise it is durable itself, until
 *       there is.
 *
 *   T2  Taking over is a removal and a rename (of a copy, between file systems): a crash between any two of its
 *       steps leaves a live store that is empty, or none, beside a checkpoint; and the next opening takes over
 *       again. So does one that finds a live store which cannot be one.
 *
 *   T3  A name without ".new" is a whole store: a copy gets its name after it was synced.
 */
#ifndef ENGINE_CHECKPOINT_STORES_H
#define ENGINE_CHECKPOINT_STORES_H

#include "engine/checkpoint/checkpoint.h"

/* Open the checkpoint store, on the thread that will write it. PAWL_ENOTFOUND: there is none. PAWL_ECORRUPT,
 * PAWL_EFORMAT: none that could be used; it is to be discarded, once the live store can do without (T1). */
int stores_open_checkpoint(const struct stores_options *options, pawl_store **ret_store, pawl_error *error);

/* Remove the checkpoint store, which is closed: it is not what it should be. */
int stores_discard_checkpoint(const struct stores_options *options, pawl_error *error);

/* Remove the checkpoint store, which is closed, and make another as a copy of the live one, which goes on
 * meanwhile. Any thread. */
int stores_make_checkpoint(const struct stores_options *options, pawl_store *live, pawl_error *error);

#endif
