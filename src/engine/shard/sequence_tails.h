/* engine/shard/sequence_tails.h: what the sequence storages of a shard lag by, read in one sweep when the shard is opened.
 *
 *     log ── one sweep, by the first that asks ──► numbers of every partition ── once each ──► sequencers
 *
 * A sequencer that begins reads what its storage lags by, some thousands of events. All of a shard's begin
 * together, and share one log. So the first of them reads for all, and keeps of each event the envelope, which
 * is what a sequencer looks at. What is kept is bounded, and handed out once; whoever wants more, or has to
 * begin again later, reads the log by itself.
 *
 * What is kept is the beginning of a tail, and its reader goes on behind it. So nothing that goes wrong here (a
 * log that cannot be read, no memory) is told: the reader comes to it by itself.
 *
 * Any thread that may block. */
#ifndef ENGINE_SHARD_SEQUENCE_TAILS_H
#define ENGINE_SHARD_SEQUENCE_TAILS_H

#include <pthread.h>

#include "base/arena.h"
#include "base/partition_set.h"
#include "port/log.h"
#include "port/store.h"

struct tail;

struct sequence_tails_options {
    pawl_log *log;
    pawl_store *store; /* which has the storages */
    struct partition_set partitions;
    const pawl_allocator *alloc;
};

struct sequence_tails {
    struct sequence_tails_options options;
    pthread_mutex_t lock;
    struct tail *tails;  /* under lock; NULL: not read yet, or all handed out */
    bool is_read;        /* under lock */
    size_t left;         /* under lock: tails that may still be asked for */
    struct arena memory; /* written under lock before anything is handed out, freed when nothing is left */
};

/* Reads nothing yet. */
void sequence_tails_init(struct sequence_tails *tails, const struct sequence_tails_options *options);
void sequence_tails_release(struct sequence_tails *tails); /* also of one that is all zeros */

/* Hand out what there is of a partition behind an offset, which its storage has: take gets the envelopes one by
 * one, and its error ends it. *ret_next is the offset behind the last, or 0 if there is nothing for it, not
 * even that the log has the offset itself. */
int sequence_tails_take(struct sequence_tails *tails, uint16_t partition, uint64_t after,
                        int (*take)(void *arg, uint64_t offset, pawl_bytes envelope), void *arg,
                        uint64_t *ret_next);

#endif
