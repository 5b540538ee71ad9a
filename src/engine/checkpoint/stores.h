/* engine/checkpoint/stores.h: the two stores of a shard, and which of them is the live one.
 *
 *     DIR/state/N            the live store
 *     DIR/state/N.new        a live store that is being copied from a checkpoint on another file system
 *     DIR/checkpoint/N       the checkpoint store, durable, some events behind
 *     DIR/checkpoint/N.new   a checkpoint that is being made: a copy of the live store
 *
 * Invariants
 *   T1  At any moment one of the two is durable and lacks at most as many events as the configured lag. The
 *       live store is opened fast only if there is such a checkpoint; otherwise it is durable itself, until
 *       there is.
 *
 *   T2  Taking over removes the live store and renames the checkpoint (or a copy of it, between file systems).
 *       A crash between any two steps leaves a checkpoint, and a live store that is empty or not there; then
 *       the next opening takes over again. So does an opening that finds a live store that is not valid.
 *
 *   T3  A name without ".new" is a whole store: a copy gets its name after it was synced.
 */
#ifndef ENGINE_CHECKPOINT_STORES_H
#define ENGINE_CHECKPOINT_STORES_H

#include "engine/checkpoint/checkpoint.h"

/* Open the checkpoint store, on the thread that will write it. PAWL_ENOTFOUND: there is none. PAWL_ECORRUPT,
 * PAWL_EFORMAT: it cannot be used; discard it as soon as the live store is durable (T1). */
int stores_open_checkpoint(const struct stores_options *options, pawl_store **ret_store, pawl_error *error);

/* Remove the checkpoint store, because it cannot be used. It must be closed. */
int stores_discard_checkpoint(const struct stores_options *options, pawl_error *error);

/* Remove the checkpoint store, which must be closed, and make another as a copy of the live store, which may be
 * written meanwhile. Any thread. */
int stores_make_checkpoint(const struct stores_options *options, pawl_store *live, pawl_error *error);

#endif
