/* pace.h: commands to an engine at a rate that does not depend on how fast they are answered, and how long they take. */
#ifndef BENCH_LIB_PACE_H
#define BENCH_LIB_PACE_H

#include <pawl/pawl.h>

struct pace {
    pawl_engine *engine;
    void (*make)(void *arg, pawl_request *request, uint64_t n); /* the n-th, from 0 */
    void *make_arg;
    double rate;                             /* commands a second */
    bool (*over)(void *arg, double seconds); /* asked some times a second */
    void *arg;
};

/* What so many of 100 commands do not exceed, in µs. */
struct paced {
    double p50_us, p99_us;
};

/* Sends commands at this rate until over says so. The time of a command begins when it is due, not when there
 * was a request free to send it. False, after saying why. */
bool pace_run(const struct pace *pace, struct paced *ret_paced);

/* As over: arg is a double, so many seconds. */
bool pace_over_after(void *arg, double seconds);

#endif
