/* puts.h: durable transactions of libraries that live in the process: a row of 300 bytes and one index entry each, in
 * transactions that are synced before the caller goes on.
 *
 *     sqlite.c     WAL, synchronous=FULL. It has one writer: threads share a connection under a mutex, which wastes least
 *     lmdb.c       its defaults, and a map that is large enough. One writer; threads wait for its lock
 *     rocksdb.c    its defaults, a batch with sync. Threads that wait share a sync */
#ifndef BENCH_PEERS_PUTS_H
#define BENCH_PEERS_PUTS_H

#include "bench/lib/bench.h"

#define PUT_TENANTS UINT64_C(10000) /* in turn */

struct put_row {
    uint64_t id; /* 0, 1, ... */
    uint64_t wsid, number;
    char body[300];
};

/* So many threads that each put one row after the other: transactions a second. put may print why it failed. */
double puts_run(unsigned threads, uint64_t duration, bool (*put)(void *store, const struct put_row *row),
                void *store);

/* Transactions a second. BENCH_NO_PEER: Pawl was built without this library. */
double sqlite_puts(const struct bench_round *round, unsigned threads, uint64_t duration);
double lmdb_puts(const struct bench_round *round, unsigned threads, uint64_t duration);
double rocksdb_puts(const struct bench_round *round, unsigned threads, uint64_t duration);

#endif
