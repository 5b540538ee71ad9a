/* adapter/lmdb/internal.h: the store's insides, shared by open.c (opening, closing, copying) and store.c
 * (reading and writing). */
#ifndef ADAPTER_LMDB_INTERNAL_H
#define ADAPTER_LMDB_INTERNAL_H

#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>

#include "adapter/lmdb/finger.h"
#include "adapter/lmdb/mark.h"
#include "adapter/lmdb/reserve.h"
#include "adapter/lmdb/store.h"

#define DATA_FILE "data.mdb"

/* A snapshot's transaction is kept when it is released: its slot in LMDB's table of readers stays its own, so
 * that taking a snapshot takes no lock of LMDB's. It may even stay live, and is the next reader's as it is, if
 * no commit has begun or ended since it was taken; then LMDB need not look its spaces up again either. */
struct lmdb_reader {
    pawl_reader reader;
    MDB_txn *txn;             /* NULL: none was made yet */
    bool live;                /* and not reset */
    uint64_t commits;         /* as the store's, when the transaction was taken */
    struct lmdb_reader *next; /* in the list of the free ones */
};

/* Where a released snapshot waits for the next reader: a thread looks at its own first, so that readers on
 * several threads neither wait for each other nor share a cache line. Only here may one wait that is live: the
 * writer looks into all of them before it begins (S4). */
#define LMDB_BERTHS 8
struct lmdb_berth {
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
    struct finger fingers[PAWL_STORE_SPACES]; /* of the transaction */
    bool dirty;                               /* the mark says DIRTY, or of a durable store OPEN (M1) */
    struct reserve reserve;                   /* on: LMDB writes through its map */
    struct lmdb_reader writer;                /* its txn is the view of the last commit, while write is NULL */

    atomic_uint_least64_t commits; /* begun, and ended; any thread reads it */

    struct lmdb_reader *snapshots;
    uint32_t max_snapshots;
    struct lmdb_berth berths[LMDB_BERTHS]; /* any thread */
    pthread_mutex_t lock;
    struct lmdb_reader *free; /* under lock: those that found no berth */
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
