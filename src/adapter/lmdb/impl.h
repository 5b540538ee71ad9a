/* adapter/lmdb/impl.h: the store's insides, shared by open.c (opening, closing, copying) and store.c
 * (reading and writing). */
#ifndef ADAPTER_LMDB_IMPL_H
#define ADAPTER_LMDB_IMPL_H

#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>

#include "adapter/lmdb/mark.h"
#include "adapter/lmdb/reserve.h"
#include "adapter/lmdb/store.h"
#include "adapter/lmdb/write_cursor.h"

#define DATA_FILE "data.mdb"

/* When a snapshot is released, its LMDB transaction is kept for the next one. It keeps its entry in LMDB's
 * table of readers, so that the next snapshot takes no lock of LMDB's. If no commit has begun or ended since it
 * was taken, it even stays live: the next reader uses it as it is, and LMDB need not look up its spaces. */
struct lmdb_reader {
    pawl_reader reader;
    MDB_txn *txn;             /* NULL: none was made yet */
    bool live;                /* and not reset */
    uint64_t commits;         /* as the store's, when the transaction was taken */
    struct lmdb_reader *next; /* in the list of the free ones */
};

/* A slot holds a released snapshot for the next reader. A thread looks into its own slot first, so that readers
 * on several threads neither wait for each other nor share a cache line. A live snapshot may wait only in a
 * slot: the writer looks into all slots before it begins (S4). */
#define READER_SLOTS 8
struct reader_slot {
    _Atomic(struct lmdb_reader *) reader;
    char apart[64 - sizeof(struct lmdb_reader *)];
};

struct lmdb_store {
    pawl_store store;
    MDB_env *env;
    MDB_dbi dbi[PAWL_STORE_SPACES];
    enum pawl_store_mode mode;
    bool read_only;
    int dir_fd;
    int lock_fd;
    char *dir;
    size_t dir_size;
    char boot[MARK_BOOT_BYTES]; /* a test's, or "" */
    const pawl_allocator *alloc;

    /* The writer's thread. */
    MDB_txn *write; /* the transaction, from the first change to commit or abort */
    int broken;     /* the status of the change that failed in it; it can only be aborted */
    uint64_t begun; /* transactions */
    struct write_cursor cursors[PAWL_STORE_SPACES]; /* of the transaction */
    bool dirty;                                     /* the mark says DIRTY, or of a durable store OPEN (M1) */
    struct reserve reserve;                         /* on: LMDB writes through its map */
    struct lmdb_reader writer;                      /* while write is NULL, its txn sees the last commit */

    atomic_uint_least64_t commits; /* begun, and ended; any thread reads it */

    struct lmdb_reader *snapshots;
    uint32_t max_snapshots;
    struct reader_slot slots[READER_SLOTS]; /* any thread */
    pthread_mutex_t lock;
    struct lmdb_reader *free; /* under lock: snapshots that found no free slot */
};

extern const struct pawl_store_ops lmdb_store_ops;

/* LMDB's or the system's error as a status, in words that name the directory. */
int lmdb_status(int rc);
int lmdb_fail(const struct lmdb_store *s, pawl_error *error, int rc, const char *doing);

/* Snapshots that are not released. */
uint32_t lmdb_snapshots_used(struct lmdb_store *s);

int lmdb_store_close(pawl_store *store);
int lmdb_store_copy(pawl_store *store, const char *dir, pawl_error *error);
void lmdb_store_abort(pawl_store *store);

#endif
