/* crowd.h: commands to an engine, so many under way at once, each made anew when the one before it is answered.
 */
#ifndef BENCH_LIB_CROWD_H
#define BENCH_LIB_CROWD_H

#include <pawl/pawl.h>

#define CROWD 64

struct crowd {
    pawl_engine *engine;
    void (*make)(void *arg, pawl_request *request, uint64_t n); /* the n-th, from 0 */
    void *arg;
    uint64_t most;     /* commands; 0: as many as there is time for */
    uint64_t deadline; /* of bench_now; 0: none */
    size_t under_way;  /* 0: CROWD */
};

/* Back when all are answered: how many. 0: one failed, and was printed. What the engine is too busy for is sent
 * again. */
uint64_t crowd_run(const struct crowd *crowd);

/* The same with a thread for each command under way, which waits for its answer. */
uint64_t crowd_block(const struct crowd *crowd);

#endif
