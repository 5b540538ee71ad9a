/* engine/shard/sequence_tails.h: the events that the sequence storages of a shard lack, read in one sweep when
 * the shard is opened.
 *
 *     log ── one sweep, by the first that asks ──► numbers of every partition ── once each ──► sequencers
 *
 * A sequencer that begins must read the events that its storage lacks: the tail, some thousands of events. All
 * sequencers of a shard begin together, and share one log. So the first of them reads for all, and keeps the
 * envelope of each event, which is all that a sequencer needs. The memory for this is bounded, and each tail is
 * handed out once. A sequencer that needs more, or begins again later, reads the log by itself.
 *
 * Only the beginning of a tail may be kept; its sequencer reads on behind it. So errors here (a log that cannot
 * be read, no memory) are not reported: the sequencer reads the same place again, and meets them itself.
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
    pawl_store *store; /* that has the storages */
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

/* Hand out what is kept of a partition behind an offset, the last one that its storage has. take gets the
 * envelopes one by one; an error that it returns ends this. *ret_next is the offset behind the last envelope;
 * 0: nothing is kept of the partition, and it is not known whether the log has the offset itself. */
int sequence_tails_take(struct sequence_tails *tails, uint16_t partition, uint64_t after,
                        int (*take)(void *arg, uint64_t offset, pawl_bytes envelope), void *arg,
                        uint64_t *ret_next);

#endif
