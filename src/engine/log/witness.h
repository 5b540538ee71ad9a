/* engine/log/witness.h: what a node's stores know of its log: how far it was durable.
 *
 * Everything that a store holds was durable in the log before it was applied: the applier gets events, and
 * lanes their operations, when the append is done; checkpoints are read from the log. So the place that a
 * position of a partition or a cursor of a lane names is durable, and with it everything before it, even if the
 * log's writer was killed before the files could say so themselves.
 *
 *     positions, cursors ── the highest place ──► the log: shown up to there; a log without it is corrupt
 *
 * That holds for a fast store, too. Its commits are not synced, but what a process has committed is there as
 * long as the machine runs; after a loss of power the store's mark says that it is not to be trusted, and it
 * does not open. A last commit that was cut short (adapter/lmdb/torn.h) shows a state of before, whose places
 * are as true. */
#ifndef ENGINE_LOG_WITNESS_H
#define ENGINE_LOG_WITNESS_H

#include <pawl/pawl.h>

#include "engine/directory/directory.h"
#include "port/log.h"
#include "port/store.h"

/* Raise *highest to the highest place that the store of a shard names. A cursor that is none says nothing.
 * PAWL_ECORRUPT: a position that is none; the others are taken all the same. Any thread. */
int witness_of_store(pawl_store *store, const struct node_file *file, uint32_t shard,
                     const pawl_allocator *alloc, pawl_place *highest, pawl_error *error);

/* The same of all stores of a directory, live ones and checkpoints, that can be opened to be read, and
 * believed. The others say nothing. */
void witness_of_directory(const char *dir, const struct node_file *file, pawl_place *highest);

#endif
