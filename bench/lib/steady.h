/* steady.h: a disk whose syncs all take equally long.
 *
 * What a program does beside a sync weighs twice as much where a sync takes half as long. So a ratio to a bare loop says as
 * much about the disk as about the program, and disks differ: on one machine, a sync took 48 µs and half an hour later 1.7 ms.
 * A question that is asked here is answered alike wherever the disk is quick enough.
 *
 * In a program that is linked with this, fdatasync syncs, and then sleeps until its time is over: for ours, for the peer and
 * for LMDB. A disk that takes longer takes as long as it does. */
#ifndef BENCH_LIB_STEADY_H
#define BENCH_LIB_STEADY_H

#include "bench/lib/bench.h"

/* The measure on a disk whose syncs take 200 µs. */
double steady(const struct bench_round *round, bench_measure measure);

#endif
