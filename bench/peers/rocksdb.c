#include <limits.h>
#include <stdio.h>

#include "bench/peers/puts.h"

#ifdef WITH_ROCKSDB

#include <rocksdb/c.h>

struct rocks {
    rocksdb_t *db;
    rocksdb_writeoptions_t *synced;
};

static bool fails(char *error)
{
    if (!error)
        return false;
    fprintf(stderr, "RocksDB: %s\n", error);
    rocksdb_free(error);
    return true;
}

static bool put(void *store, const struct put_row *row)
{
    struct rocks *r = store;
    char *error = NULL;
    uint64_t id = __builtin_bswap64(row->id); /* it compares bytes; an index entry has one key word more */
    uint64_t entry[2] = {__builtin_bswap64(row->wsid), __builtin_bswap64(row->number)};
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, (const char *)&id, sizeof id, row->body, sizeof row->body);
    rocksdb_writebatch_put(batch, (const char *)entry, sizeof entry, (const char *)&id, sizeof id);
    rocksdb_write(r->db, r->synced, batch, &error);
    rocksdb_writebatch_destroy(batch);
    return !fails(error);
}

double rocksdb_puts(const struct bench_round *round, unsigned threads, uint64_t duration)
{
    char path[PATH_MAX];
    char *error = NULL;
    double rate = 0;
    struct rocks r = {.synced = rocksdb_writeoptions_create()};
    rocksdb_options_t *options = rocksdb_options_create();
    bench_peer("RocksDB", WITH_ROCKSDB);
    snprintf(path, sizeof path, "%s/rocksdb", round->dir);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_writeoptions_set_sync(r.synced, 1);
    r.db = rocksdb_open(options, path, &error);
    if (!fails(error)) {
        rate = puts_run(threads, duration, put, &r);
        rocksdb_close(r.db);
    }
    rocksdb_writeoptions_destroy(r.synced);
    rocksdb_options_destroy(options);
    return rate;
}

#else

double rocksdb_puts(const struct bench_round *round, unsigned threads, uint64_t duration)
{
    fprintf(stderr, "Pawl was built without RocksDB (tools/install bench): it is left out\n");
    return BENCH_NO_PEER;
}

#endif
