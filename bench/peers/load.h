/* load.h: many clients of a server on loopback, on one thread.
 *
 * Each client has a connection, says something, waits for the whole answer, and says the next. One thread for all of
 * them costs a server least: on a small machine it has nearly all processors for itself. */
#ifndef BENCH_PEERS_LOAD_H
#define BENCH_PEERS_LOAD_H

#include <pawl/pawl.h>

#include "bench/lib/bench.h"

#define LOAD_CLIENTS_MAX 64

enum speech { SPEAK_HTTP, SPEAK_RESP, SPEAK_POSTGRES };

/* Where a client is in a conversation of several steps. */
struct talk {
    unsigned client;
    unsigned step;     /* 0 at first; afterwards as it was left */
    pawl_bytes answer; /* to what was said last; empty at first */
    char words[512];   /* what is said next, */
    size_t size;       /* so many bytes */
    bool ended;        /* the answer was the last one of an operation */
};

struct load {
    enum speech speech;
    uint16_t port;
    unsigned clients;
    pawl_bytes hellos[2]; /* said once, one after the other, and their answers awaited; may be empty */
    size_t ask_count;
    const pawl_bytes
        *asks; /* each client says these in turn, beginning with another one. Or, instead of them: */
    bool (*talk)(void *arg, struct talk *talk); /* false: the answer is wrong, and that was printed */
    void *arg;
    const char *expected; /* in every answer; NULL: anything, but no error of Redis */
    const char *again;    /* an answer with this text is a refusal: the same is said again. NULL: none is */
    uint64_t duration;    /* ns */
    uint64_t most;        /* operations; 0: as many as there is time for */
    double
        rate; /* operations a second, with asks only: each has a time when it is due, and goes to a client that is free.
                    0: a client asks when it has its answer */
};

struct loaded {
    uint64_t operations; /* without what was refused */
    uint64_t refused;
    double seconds;
    double p50_us, p99_us; /* of an operation; with a rate, from when it is due */
};

/* The frame's clock (bench_begin) runs from the first question to the last answer. False, after saying why: an answer
 * was not the expected one, or a connection ended. */
bool load_run(const struct load *load, struct loaded *ret_loaded);

/* Operations a second; 0 if it failed. ret_loaded may be NULL. */
double load_rate(const struct load *load, struct loaded *ret_loaded);

int connect_to(uint16_t port); /* -1, after saying why */

#endif
