/* bench/log.c: how close the journal comes to what the disk, and the machine, could do.
 *
 * The peer of writing is the plainest program that is as durable (bench/lib/raw.h), which writes as many bytes
 * a record as the journal does. The peer of reading is pread, and XXH3 of every record's bytes. Opening is
 * compared with itself, a hundred times shorter. Every peer has its zeros, and its files, before the clock
 * starts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/lib/raw.h"
#include "bench/lib/steady.h"
#include "bench/log/log.h"

static uint64_t duration_of(const struct bench_round *round)
{
    return (round->quick ? 300 : 1000) * UINT64_C(1000000);
}

pawl_stream rig_stream(unsigned i)
{
    return (pawl_stream){.kind = PAWL_STREAM_PLOG, .partition = (uint16_t)i};
}

pawl_bytes rig_body(void)
{
    static const uint8_t body[BODY] = {'b', 'o', 'd', 'y'};
    return (pawl_bytes){body, sizeof body};
}

static void claim_done(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static bool claim_all(struct rig *rig, pawl_error *error)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        struct latch latch;
        latch_init(&latch);
        pawl_claim claim = {.stream = rig_stream(i), .done = claim_done, .arg = &latch, .error = error};
        if (pawl_log_claim(rig->log, &claim) != PAWL_OK)
            return false;
        latch_wait(&latch);
        if (claim.status != PAWL_OK)
            return false;
        rig->epoch[i] = claim.epoch;
        rig->next[i] = claim.next;
    }
    return true;
}

void rig_close(struct rig *rig)
{
    if (rig->log)
        pawl_log_close(rig->log);
    uv_env_close(rig->env);
    *rig = (struct rig){0};
}

bool rig_open(struct rig *rig, const char *dir, const struct disk *disk)
{
    pawl_error error = {0};
    *rig = (struct rig){0};
    struct uv_env_options env = {.shards = 1, .pool_threads = 1};
    if (uv_env_open(&env, &rig->env, &error) == PAWL_OK) {
        struct journal_options options = {.dir = dir, .env = uv_env_port(rig->env), .disk = disk};
        if (journal_open(&options, &rig->log, &error) == PAWL_OK && claim_all(rig, &error))
            return true;
        rig_close(rig);
    }
    bench_failed(dir, &error);
    return false;
}

/* One append of one entry, again and again in one stream. */
struct flight {
    pawl_append append;
    pawl_append_entry entry;
    pawl_error error;
    struct latch latch;
    struct crowd *crowd;
};

/* Those in flight at once. */
struct crowd {
    pawl_task task; /* first */
    struct rig *rig;
    uint64_t deadline;
    struct latch over;
    _Atomic uint64_t count;
    _Atomic unsigned flying;
    _Atomic bool failed;
    struct flight flights[WRITERS];
};

static void flight_init(struct flight *f, struct crowd *crowd, unsigned i, void (*done)(pawl_append *append))
{
    *f = (struct flight){.crowd = crowd};
    f->entry.entry = (pawl_entry){.stream = rig_stream(i),
                                  .epoch = crowd->rig->epoch[i],
                                  .offset = crowd->rig->next[i],
                                  .body = rig_body()};
    f->append = (pawl_append){.entries = &f->entry, .count = 1, .done = done, .arg = f, .error = &f->error};
}

static void set_latch(pawl_append *append)
{
    struct flight *f = append->arg;
    latch_set(&f->latch);
}

/* Returns how many it could append until the deadline. */
static uint64_t append_blocking(struct flight *f)
{
    uint64_t count = 0;
    f->append.alone = true;
    for (; bench_now() < f->crowd->deadline; count++) {
        latch_init(&f->latch);
        int status = pawl_log_append(f->crowd->rig->log, &f->append);
        if (status == PAWL_OK)
            latch_wait(&f->latch);
        if (status < 0 || f->append.status != PAWL_OK) {
            bench_failed("append", &f->error);
            atomic_store(&f->crowd->failed, true);
            break;
        }
        f->entry.entry.offset++;
    }
    return count;
}

static double alone(const struct bench_round *round)
{
    struct rig rig;
    if (!rig_open(&rig, round->dir, NULL))
        return 0;
    static struct crowd crowd;
    crowd = (struct crowd){.rig = &rig, .deadline = bench_now() + duration_of(round)};
    flight_init(&crowd.flights[0], &crowd, 0, set_latch);
    uint64_t began = bench_begin();
    double rate = bench_per_second(append_blocking(&crowd.flights[0]), began);
    rig_close(&rig);
    return crowd.failed ? 0 : rate;
}

static void *thread_main(void *arg)
{
    struct flight *f = arg;
    atomic_fetch_add(&f->crowd->count, append_blocking(f));
    return NULL;
}

static double threads(const struct bench_round *round)
{
    struct rig rig;
    if (!rig_open(&rig, round->dir, NULL))
        return 0;
    static struct crowd crowd;
    crowd = (struct crowd){.rig = &rig, .deadline = bench_now() + duration_of(round)};
    pthread_t ids[WRITERS];
    unsigned started = 0;
    uint64_t began = bench_begin();
    for (; started < WRITERS; started++) {
        flight_init(&crowd.flights[started], &crowd, started, set_latch);
        if (pthread_create(&ids[started], NULL, thread_main, &crowd.flights[started]) != 0)
            break;
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    double rate = bench_per_second(crowd.count, began);
    rig_close(&rig);
    return crowd.failed || started < WRITERS ? 0 : rate;
}

static void fly(struct flight *f)
{
    int status = pawl_log_append(f->crowd->rig->log, &f->append);
    if (status == PAWL_OK)
        return;
    bench_failed("append", &f->error);
    atomic_store(&f->crowd->failed, true);
    if (atomic_fetch_sub(&f->crowd->flying, 1) == 1)
        latch_set(&f->crowd->over);
}

static void fly_again(pawl_append *append)
{
    struct flight *f = append->arg;
    struct crowd *crowd = f->crowd;
    if (append->status != PAWL_OK) {
        bench_failed("append", &f->error);
        atomic_store(&crowd->failed, true);
    }
    atomic_fetch_add_explicit(&crowd->count, 1, memory_order_relaxed);
    f->entry.entry.offset++;
    if (!crowd->failed && bench_now() < crowd->deadline)
        fly(f);
    else if (atomic_fetch_sub(&crowd->flying, 1) == 1)
        latch_set(&crowd->over);
}

static void take_off(pawl_task *task)
{
    struct crowd *crowd = (struct crowd *)task;
    for (unsigned i = 0; i < WRITERS; i++)
        fly(&crowd->flights[i]);
}

static double outstanding(const struct bench_round *round, bool shard)
{
    struct rig rig;
    if (!rig_open(&rig, round->dir, NULL))
        return 0;
    static struct crowd crowd;
    crowd = (struct crowd){.task.fn = take_off, .rig = &rig, .flying = WRITERS};
    latch_init(&crowd.over);
    for (unsigned i = 0; i < WRITERS; i++)
        flight_init(&crowd.flights[i], &crowd, i, fly_again);
    crowd.deadline = bench_now() + duration_of(round);
    uint64_t began = bench_begin();
    if (shard)
        pawl_env_post(uv_env_port(rig.env), 0, &crowd.task);
    else
        take_off(&crowd.task);
    latch_wait(&crowd.over);
    double rate = bench_per_second(crowd.count, began);
    rig_close(&rig);
    return crowd.failed ? 0 : rate;
}

static double outstanding_shard(const struct bench_round *round)
{
    return outstanding(round, true);
}

static double outstanding_foreign(const struct bench_round *round)
{
    return outstanding(round, false);
}

static double raw_alone(const struct bench_round *round)
{
    return raw_append(round, record_size(BODY), 1, duration_of(round));
}

static double raw_crowd(const struct bench_round *round)
{
    return raw_append(round, record_size(BODY), WRITERS, duration_of(round));
}

static double steady_shard(const struct bench_round *round)
{
    return steady(round, outstanding_shard);
}

static double steady_foreign(const struct bench_round *round)
{
    return steady(round, outstanding_foreign);
}

static double steady_threads(const struct bench_round *round)
{
    return steady(round, threads);
}

static double steady_raw_crowd(const struct bench_round *round)
{
    return steady(round, raw_crowd);
}

#define APPENDS(text, at_least, measure, against)                                                              \
    {                                                                                                          \
        .question = (text), .unit = "op/s", .better = BENCH_MORE, .goal = (at_least), .ours = (measure),       \
        .peer = (against)                                                                                      \
    }

int main(int argc, char **argv)
{
    static const struct bench_question questions[] = {
        APPENDS("append: one at a time", 0.9, alone, raw_alone),
        APPENDS("append: 64 outstanding, from a shard", 0.8, outstanding_shard, raw_crowd),
        APPENDS("append: 64 outstanding, from a foreign thread", 0.8, outstanding_foreign, raw_crowd),
        APPENDS("append: 64 blocking threads", 0.4, threads, raw_crowd),
        APPENDS("200 us a sync: append, 64 outstanding, from a shard", 0.8, steady_shard, steady_raw_crowd),
        APPENDS("200 us a sync: append, 64 outstanding, from a foreign thread", 0.8, steady_foreign,
                steady_raw_crowd),
        APPENDS("200 us a sync: append, 64 blocking threads", 0.4, steady_threads, steady_raw_crowd),
        {.question = "read and verify, alone",
         .unit = "MB/s",
         .better = BENCH_MORE,
         .goal = 0.7,
         .ours = read_alone,
         .peer = read_raw},
        {.question = "read and verify, from a shard",
         .unit = "MB/s",
         .better = BENCH_MORE,
         .goal = 0.5,
         .ours = read_from_shard,
         .peer = read_raw},
        {.question = "open 10 GB after a crash (peer: 100 MB)",
         .unit = "ms",
         .better = BENCH_LESS,
         .goal = 2,
         .ours = open_long,
         .peer = open_short},
    };
    int status = bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
    large_remove();
    return status;
}
