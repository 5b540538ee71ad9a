#include "cli/node/bench_load.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/show/say.h"

#define SUB_BITS 6 /* steps within a power of two: 64 */
#define SUB      (1U << SUB_BITS)
#define BUCKETS  (SUB * (64 - SUB_BITS + 1))

#define SYNC_BYTES 256
#define SYNC_ROOM  ((off_t)1 << 20) /* is written from its beginning again when it is full */
#define SYNC_FD(c) ((int)(intptr_t)(c)->arg)

struct histogram {
    uint64_t counts[BUCKETS];
    uint64_t count;
    uint64_t max;
};

struct worker {
    struct bench_client *client;
    pthread_t thread;
    atomic_bool *stop;
    struct histogram times;
    int status;
    pawl_error error;
};

/* --- times --- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * PAWL_SECOND + (uint64_t)now.tv_nsec;
}

static size_t bucket_of(uint64_t ns)
{
    if (ns < SUB)
        return ns;
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - SUB_BITS;
    return (size_t)(shift + 1) * SUB + (size_t)(ns >> shift) - SUB;
}

/* The largest value of a bucket. */
static uint64_t bucket_end(size_t bucket)
{
    if (bucket < SUB)
        return bucket;
    unsigned shift = (unsigned)(bucket / SUB) - 1;
    return ((bucket % SUB + SUB + 1) << shift) - 1;
}

static void note(struct histogram *h, uint64_t ns)
{
    h->counts[bucket_of(ns)]++;
    h->count++;
    h->max = ns > h->max ? ns : h->max;
}

static void add(struct histogram *sum, const struct histogram *h)
{
    for (size_t i = 0; i < BUCKETS; i++)
        sum->counts[i] += h->counts[i];
    sum->count += h->count;
    sum->max = h->max > sum->max ? h->max : sum->max;
}

/* In seconds; the bucket's end, but not more than the largest time. */
static double quantile(const struct histogram *h, double share)
{
    uint64_t seen = 0, wanted = (uint64_t)(share * (double)h->count);
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += h->counts[i];
        if (seen > wanted) {
            uint64_t end = bucket_end(i);
            return (double)(end < h->max ? end : h->max) / (double)PAWL_SECOND;
        }
    }
    return (double)h->max / (double)PAWL_SECOND;
}

/* --- workers --- */

static void *work(void *arg)
{
    struct worker *w = arg;
    while (w->status == PAWL_OK && !atomic_load_explicit(w->stop, memory_order_relaxed)) {
        uint64_t begun = now_ns();
        w->status = w->client->once(w->client, &w->error);
        if (w->status == PAWL_OK)
            note(&w->times, now_ns() - begun);
    }
    if (w->status != PAWL_OK)
        atomic_store(w->stop, true);
    return NULL;
}

/* Until the time is over, somebody has failed, or wait wants no more. */
static void wait_for(double seconds, atomic_bool *stop, bench_wait wait, void *arg)
{
    double end = seconds_now() + seconds, left;
    while (!atomic_load(stop) && (left = end - seconds_now()) > 0)
        if (!wait(arg, left < 0.1 ? left : 0.1))
            break;
    atomic_store(stop, true);
}

int bench_run(struct bench_client *clients, size_t count, double seconds, bench_wait wait, void *arg,
              struct bench_times *ret_times, pawl_error *error)
{
    atomic_bool stop = false;
    int status = PAWL_OK;
    size_t begun = 0;
    struct worker *workers = calloc(count + 1, sizeof *workers); /* the last one is their sum */
    if (!workers)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory to measure");
    double from = seconds_now();
    for (; begun < count && status == PAWL_OK; begun++) {
        struct worker *w = &workers[begun];
        w->client = &clients[begun];
        w->stop = &stop;
        int number = pthread_create(&w->thread, NULL, work, w);
        if (number != 0)
            status = pawl_error_errno(error, number, "cannot start a thread");
    }
    begun -= status != PAWL_OK;
    if (status == PAWL_OK)
        wait_for(seconds, &stop, wait, arg);
    atomic_store(&stop, true);
    struct histogram *sum = &workers[count].times;
    for (size_t i = 0; i < begun; i++) {
        pthread_join(workers[i].thread, NULL);
        add(sum, &workers[i].times);
        if (status == PAWL_OK && workers[i].status != PAWL_OK) {
            status = workers[i].status;
            *error = workers[i].error;
        }
    }
    double lasted = seconds_now() - from;
    if (status == PAWL_OK)
        *ret_times = (struct bench_times){.count = sum->count,
                                          .seconds = lasted,
                                          .rate = (double)sum->count / lasted,
                                          .p50 = quantile(sum, 0.5),
                                          .p99 = quantile(sum, 0.99),
                                          .max = (double)sum->max / (double)PAWL_SECOND};
    free(workers);
    return status;
}

/* --- the disk alone --- */

static int sync_once(struct bench_client *client, pawl_error *error)
{
    static const char bytes[SYNC_BYTES] = {1};
    int fd = SYNC_FD(client);
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at >= SYNC_ROOM)
        at = lseek(fd, 0, SEEK_SET);
    if (at < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes || fdatasync(fd) != 0)
        return pawl_error_errno(error, errno, "cannot write and sync a file");
    return PAWL_OK;
}

/* The file has its room before, as the segments of the log have. */
int bench_sync_open(const char *dir, struct bench_client *ret_client, pawl_error *error)
{
    char *zeros = calloc(1, (size_t)SYNC_ROOM);
    char *path = NULL;
    int fd = asprintf(&path, "%s/raw", dir) < 0 ? -1 : open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    int status = PAWL_OK;
    if (!zeros || fd < 0 || write(fd, zeros, (size_t)SYNC_ROOM) != (ssize_t)SYNC_ROOM || fsync(fd) != 0
        || lseek(fd, 0, SEEK_SET) != 0)
        status = pawl_error_errno(error, errno, "cannot write a file in %s", dir);
    free(zeros);
    free(path);
    if (status == PAWL_OK)
        *ret_client = (struct bench_client){.once = sync_once, .arg = (void *)(intptr_t)fd};
    else if (fd >= 0)
        close(fd);
    return status;
}

void bench_sync_close(struct bench_client *client)
{
    close(SYNC_FD(client));
}
