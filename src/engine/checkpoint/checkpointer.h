/* engine/checkpoint/checkpointer.h: the thread that keeps a shard's checkpoint store.
 *
 *     log ── sweep ──► core/state/checkpoint ── full, or 5 s old ──► synced commits ──► room for commands
 *
 * The set of changes is full with 256,000 events, with 12 MiB, or when a transaction would have more than 8,192
 * rows, because LMDB keeps a copy of each page that a transaction changes. So a shard's checkpoint takes at
 * most some 50 MiB of memory, and this only if each row is on a page of its own.
 *
 * It has a thread of its own instead of one of the pool: a commit takes as long as the disk does, the pool's
 * threads are for reads that somebody waits for, and LMDB wants one thread as its writer. The thread sleeps
 * while there is little to do. The shard wakes it when it has seen as many events as the thread has asked for.
 *
 *     MAKING ── copied from the live store ──► FOLLOWING ── no more than the lag behind ──► GUARDING
 *
 * While it guards, the live store is fast, and commands are held back rather than that the log gets further
 * ahead of the checkpoint than the lag (engine/checkpoint/stores.h, T1). Before that the live store is durable;
 * and it is made so again before a checkpoint that contradicts the log, or itself, is thrown away.
 *
 * Views are built here too, by slices of its own between commits, while the lag is below half its bound: a task of
 * view building is finished when both stores cover it.
 *
 * When it has nothing to commit, it reads rows of both stores again, a table at a time (core/state/scrub.h),
 * for at most a fiftieth of its time. */
#ifndef ENGINE_CHECKPOINT_CHECKPOINTER_H
#define ENGINE_CHECKPOINT_CHECKPOINTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/state/checkpoint.h"
#include "core/view/tables.h"
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
    bool stop;                  /* under lock */
    bool views_new;             /* under lock: there may be other views than those that are known */
    pthread_mutex_t store_lock; /* whoever reads the store from another thread; its own thread to close it */
    pawl_error error;           /* under lock: what keeps it from going on; code 0: nothing does */

    atomic_bool guards;         /* its state is GUARDING */
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

    /* Only its thread touches these. */
    pawl_store *store; /* NULL: there is none, or it is not open */
    struct checkpoint *checkpoint;
    struct lane_tables lanes; /* while there is a checkpoint */
    struct view_tables views; /* the same */
    pawl_instant build_at;    /* no slice of a view before this: commands go first */
    pawl_instant built_from;  /* when the last slices were begun, and how many base rows they had: the */
    uint64_t built_rows;      /* throttle is measured by them */
    pawl_instant oldest;      /* when the first event was read that is not committed */
    pawl_duration delay;      /* before it tries again; 0: the last try worked */
    int status;               /* of a visit */
    pawl_error words;
    pawl_sweep_stream *streams; /* of the last sweep: the partitions' logs, then the lanes' logs */
    size_t stream_room;
    bool log_failed;       /* the last error came from reading the log */
    pawl_instant scrubbed; /* it scrubs no table before this */
    size_t scrub_index;    /* the partition to scrub next */
    uint32_t scrub_table;  /* and its table */
};

/* view_builds.c, on its thread. Errors of the store and PAWL_ENOMEM, with words. refresh: learn which views there
 * are. builds: whether there is something to build; *ret_rest: but not before so long. build: some slices, between
 * commits. remove: a piece of rows that are nobody's, likewise. */
int checkpointer_refresh_views(struct checkpointer *checkpointer);
bool checkpointer_builds(struct checkpointer *checkpointer, pawl_duration *ret_rest);
int checkpointer_build_views(struct checkpointer *checkpointer);
int checkpointer_remove_views(struct checkpointer *checkpointer, bool *ret_more);

#endif
