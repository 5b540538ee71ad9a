#include <string.h>

#include "bench/peers/lmdb_version.h"
#include "bench/peers/puts.h"

#define MAP_BYTES ((size_t)4 << 30)

struct bare {
    MDB_env *env;
    MDB_dbi rows, index;
};

static bool fails(int rc)
{
    if (rc)
        fprintf(stderr, "LMDB: %s\n", mdb_strerror(rc));
    return rc != 0;
}

static bool put(void *store, const struct put_row *row)
{
    struct bare *b = store;
    MDB_txn *txn = NULL;
    uint64_t id = __builtin_bswap64(row->id); /* LMDB compares bytes */
    uint64_t entry[2] = {__builtin_bswap64(row->wsid), __builtin_bswap64(row->number)};
    MDB_val id_key = {sizeof id, &id}, entry_key = {sizeof entry, entry};
    MDB_val body = {sizeof row->body, (void *)(uintptr_t)row->body}, to = {sizeof id, &id};
    int rc = mdb_txn_begin(b->env, NULL, 0, &txn);
    if (rc == 0) {
        rc = mdb_put(txn, b->rows, &id_key, &body, 0);
        rc = rc ? rc : mdb_put(txn, b->index, &entry_key, &to, 0);
        if (rc == 0)
            rc = mdb_txn_commit(txn);
        else
            mdb_txn_abort(txn);
    }
    return !fails(rc);
}

static int prepare(struct bare *b, const char *dir)
{
    MDB_txn *txn = NULL;
    int rc = mdb_env_create(&b->env);
    rc = rc ? rc : mdb_env_set_mapsize(b->env, MAP_BYTES);
    rc = rc ? rc : mdb_env_set_maxdbs(b->env, 2);
    rc = rc ? rc : mdb_env_open(b->env, dir, 0, 0600);
    rc = rc ? rc : mdb_txn_begin(b->env, NULL, 0, &txn);
    if (rc)
        return rc;
    rc = mdb_dbi_open(txn, "rows", MDB_CREATE, &b->rows);
    rc = rc ? rc : mdb_dbi_open(txn, "index", MDB_CREATE, &b->index);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

double lmdb_puts(const struct bench_round *round, unsigned threads, uint64_t duration)
{
    struct bare b = {0};
    lmdb_note_version();
    double rate = fails(prepare(&b, round->dir)) ? 0 : puts_run(threads, duration, put, &b);
    if (b.env)
        mdb_env_close(b.env);
    return rate;
}
