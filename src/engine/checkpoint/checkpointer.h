/* engine/checkpoint/checkpointer.h: the thread that keeps a shard's checkpoint store.
 *
 *     log ── sweep ──► core/state/checkpoint ── full, or 5 s old ──► synced commits ──► room for commands
 *
 * It is full with 256,000 events, with 12 MiB, or when a transaction would have more than 8,192 rows: of each
 * page that a transaction changes LMDB keeps a copy. So a shard's checkpoint takes at most some 50 MiB, and
 * that only where each row has a page of its own.
 *
 * A thread of its own, and not the pool's: a commit takes as long as the disk does, the pool's threads are
 * there for reads that somebody waits for, and LMDB's writer is one thread. It sleeps while there is little to
 * do, and the shard wakes it when it has come to an offset that was asked for.
 *
 *     MAKING ── copied from the live store ──► FOLLOWING ── no more than the lag behind ──► GUARDING
 *
 * While it guards, the live store is fast, and commands are held back rather than that the log gets further
 * ahead of the checkpoint than the lag (engine/checkpoint/stores.h, T1). Before that the live store is durable; and it is
 * made so again before a checkpoint that contradicts the log, or itself, is thrown away.
 *
 * In its pauses it reads rows of both stores again, a table at a time (core/state/scrub.h), for at most a
 * fiftieth of its time. */
#ifndef ENGINE_CHECKPOINT_CHECKPOINTER_H
#define ENGINE_CHECKPOINT_CHECKPOINTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/state/checkpoint.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/lane_tables.h"
#include "engine/checkpoint/stores.h"

struct checkpointer {
    struct shard *shard;
    struct stores_options stores;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;        /* under lock */
    pawl_error error; /* under lock: why it does not come on; code 0: it does */

    atomic_bool guards;
    atomic_bool hurry;          /* commands are held back: commit what there is */
    _Atomic uint64_t committed; /* the sum of its partitions' offsets */
    _Atomic uint64_t wake_at;   /* be woken when the shard has seen this many events */
    _Atomic uint64_t events;    /* figures, from here on */
    _Atomic uint64_t rows;
    _Atomic uint64_t commits;
    _Atomic uint64_t failures;
    _Atomic uint64_t made;
    _Atomic uint64_t scrubs;
    _Atomic uint64_t scrubs_missed;

    /* The thread's. */
    pawl_store *store; /* NULL: there is none, or it is not open */
    struct checkpoint *checkpoint;
    struct lane_tables lanes; /* while there is a checkpoint */
    pawl_instant oldest;      /* when the first event came that is not committed */
    pawl_duration delay;      /* before the next attempt; 0: the last one worked */
    int status;               /* of a visit */
    pawl_error words;
    pawl_sweep_stream *streams; /* of the last sweep: its partitions, then its lanes' logs */
    size_t stream_room;
    bool log_failed;       /* what failed last was reading the log */
    pawl_instant scrubbed; /* when it may read rows again */
    size_t scrub_index;    /* the partition and the table that it has come to */
    uint32_t scrub_table;
};

#endif
