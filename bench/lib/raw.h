/* raw.h: the plainest program that is as durable as a log, for a peer: a loop of pwrite and fdatasync over a
 * file of zeros, and nothing else. Nothing that syncs can be faster on this file system. */
#ifndef BENCH_LIB_RAW_H
#define BENCH_LIB_RAW_H

#include "bench/lib/bench.h"

/* Records a second: each of so many bytes, so many of them a sync, for so many ns. */
double raw_append(const struct bench_round *round, size_t bytes, size_t records, uint64_t duration);

#endif
