/* cli/node/bench_load.h: how long something takes that is done again and again, by several threads at a time.
 *
 * Each thread does the next one when the last one is done, so there are as many outstanding as threads. Times are
 * kept in a histogram of fixed size, in steps of less than 2 %. */
#ifndef CLI_BENCH_LOAD_H
#define CLI_BENCH_LOAD_H

#include <pawl/types.h>

#define BENCH_CLIENTS_MAX 64

/* Does it once. One of these is used by one thread at a time. */
struct bench_client {
    int (*once)(struct bench_client *client, pawl_error *error);
    void *arg;
};

struct bench_times {
    uint64_t count;
    double seconds;
    double rate;          /* in a second */
    double p50, p99, max; /* seconds */
};

/* Whether to go on: called now and then, on the thread that calls bench_run, for as long as the wait takes. */
typedef bool (*bench_wait)(void *arg, double seconds);

/* Have count clients at work for so long, or until wait returns false. Errors: that of the first client that fails,
 * which ends all; PAWL_ENOMEM. */
int bench_run(struct bench_client *clients, size_t count, double seconds, bench_wait wait, void *arg,
              struct bench_times *ret_times, pawl_error *error);

/* A client that writes to a new file in this directory, "raw", and syncs it: the least that a disk can do for a
 * durable command. The file stays. */
int bench_sync_open(const char *dir, struct bench_client *ret_client, pawl_error *error);
void bench_sync_close(struct bench_client *client);

#endif
