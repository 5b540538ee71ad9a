/* engine/log/witness.h: a node's stores prove how far its log was durable.
 *
 * Everything in a store was durable in the log before it was applied: the applier gets events, and lanes get
 * their operations, when the append is done; checkpoints are read from the log. So the place in a partition's
 * position or in a lane's cursor is durable, and with it everything before it, even if the log's writer was
 * killed before the files could say so themselves.
 *
 *     positions, cursors ── the highest place ──► the log: shown up to there; a log without it is corrupt
 *
 * This holds for a fast store, too. Its commits are not synced, but they stay as long as the machine runs;
 * after a loss of power the store's mark says that it cannot be trusted, and it does not open. If the last
 * commit was cut short (adapter/lmdb/torn.h), the store shows an earlier state, whose places are just as
 * durable. */
#ifndef ENGINE_LOG_WITNESS_H
#define ENGINE_LOG_WITNESS_H

#include <pawl/pawl.h>

#include "engine/directory/directory.h"
#include "port/log.h"
#include "port/store.h"

/* Raise *highest to the highest place in the store of a shard. A cursor that is not valid is ignored.
 * PAWL_ECORRUPT: a position is not valid; all others are taken nevertheless. Any thread. */
int witness_of_store(pawl_store *store, const struct node_file *file, uint32_t shard,
                     const pawl_allocator *alloc, pawl_place *highest, pawl_error *error);

/* The same for all stores of a directory, live ones and checkpoints. A store that cannot be opened for reading,
 * or trusted, is ignored. */
void witness_of_directory(const char *dir, const struct node_file *file, pawl_place *highest);

#endif
