/* lmdb_version.h: have the report name the version of LMDB, where it is a peer. */
#ifndef BENCH_PEERS_LMDB_VERSION_H
#define BENCH_PEERS_LMDB_VERSION_H

#include <stdio.h>

#include <lmdb.h>

#include "bench/lib/bench.h"

static inline void lmdb_note_version(void)
{
    char version[32];
    int major, minor, patch;
    (void)mdb_version(&major, &minor, &patch);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    bench_peer("LMDB", version);
}

#endif
