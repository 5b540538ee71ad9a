/* engine/shard/sequences.h: a partition's sequencer on Pawl's own log and store.
 *
 * The log is the partition's PLog, whose events open with their numbers (core/event/envelope.h); the sequence
 * storage is a key space of the shard's live store. The sequencer calls from the pool, the store belongs to the
 * shard: writes go there by pawl_env_call.
 *
 *     PLog ── scan_log ──► sequencer ── write_values_and_offset ──► the shard's store
 *                                                                   (rows, then the offset: one commit) */
#ifndef ENGINE_SHARD_SEQUENCES_H
#define ENGINE_SHARD_SEQUENCES_H

#include <pawl/sequencer.h>

#include "core/stream/applier.h"
#include "engine/shard/sequence_tails.h"
#include "port/env.h"

struct sequences {
    pawl_log *log;
    pawl_store *store;       /* read by snapshots */
    struct applier *applier; /* the shard's, who writes to it */
    pawl_env *env;
    uint32_t shard;
    uint16_t partition;
    struct sequence_tails *tails; /* of the shard; NULL: the log is read in any case */
};

/* The storage for pawl_sequencer_new. Borrows s, which the caller has filled in. */
pawl_sequence_storage sequences_storage(struct sequences *s);

#endif
