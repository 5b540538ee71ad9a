/* bench/project/conflicts.h: slow handlers that read what earlier operations write. */
#ifndef BENCH_PROJECT_CONFLICTS_H
#define BENCH_PROJECT_CONFLICTS_H

#include "bench/lib/bench.h"

/* Which key an event has. */
enum conflict_keys {
    KEYS_ONE,
    KEYS_BY_TURNS, /* 8 keys: 0, 1, ..., 7, 0, 1, ... */
    KEYS_EIGHT,    /* 8 keys at random */
    KEYS_RANDOM,   /* 1,000 keys at random */
    KEYS_ZIPF,     /* 1,000 keys; the k-th comes in proportion to 1 / k */
    KEYS_DEMO, /* statements as ./run's shops have them: 200 tenants in 16 partitions, each with 8 customers */
};

/* The question's arg. */
struct conflicts {
    enum conflict_keys keys;
    unsigned workers;
    uint64_t count; /* of events */
};

/* Operations a second. The handler reads the row of its key, sleeps for 20 ms, and writes the row. The rows are compared
 * with those of a serial run, and how many runs were repeated is printed. */
double conflicts_handle(const struct bench_round *round);

/* How many of the runs were repeated, in percent. */
double conflicts_repeated(const struct bench_round *round);

/* Operations a second of a scheduler that knows all conflicts beforehand, works on the same events and loses no time: the longest
 * chain of events with the same key, or all events shared among the workers, whichever takes longer. A step takes as
 * long as 20 ms of sleep take here. */
double conflicts_ideal(const struct bench_round *round);

#endif
