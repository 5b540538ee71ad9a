/* Many appends at once: which are written together, and which wait for others. */
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapter/journal/journal.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "test/lib/test.h"

#define CROWD 64
#define TURNS 20

struct rig {
    char dir[64];
    struct uv_env *env;
    pawl_log *log;
    struct disk disk;
    struct latch gate; /* the first sync after it was armed waits here */
    atomic_bool armed;
    uint64_t epoch[CROWD];
};

static int gated_sync(void *ctx, int file)
{
    struct rig *rig = ctx;
    if (atomic_exchange(&rig->armed, false))
        latch_wait(&rig->gate);
    return disk_real.sync(NULL, file);
}

static pawl_stream stream_of(unsigned i)
{
    return (pawl_stream){.kind = PAWL_STREAM_PLOG, .partition = (uint16_t)i};
}

static void claimed(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static void rig_open(struct rig *rig)
{
    *rig = (struct rig){.dir = "/tmp/pawl-crowd-XXXXXX", .disk = disk_real};
    assert_non_null(mkdtemp(rig->dir));
    rig->disk.ctx = rig;
    rig->disk.sync = gated_sync;
    latch_init(&rig->gate);
    assert_ok(uv_env_open(&(struct uv_env_options){.shards = 1, .pool_threads = 1}, &rig->env, NULL));
    struct journal_options options = {.dir = rig->dir, .env = uv_env_port(rig->env), .disk = &rig->disk};
    assert_ok(journal_open(&options, &rig->log, NULL));
    for (unsigned i = 0; i < CROWD; i++) {
        struct latch latch;
        latch_init(&latch);
        pawl_claim claim = {.stream = stream_of(i), .done = claimed, .arg = &latch};
        assert_ok(pawl_log_claim(rig->log, &claim));
        latch_wait(&latch);
        assert_ok(claim.status);
        rig->epoch[i] = claim.epoch;
    }
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    return remove(path);
}

static void rig_close(struct rig *rig)
{
    assert_ok(pawl_log_close(rig->log));
    assert_ok(uv_env_close(rig->env));
    nftw(rig->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static uint64_t syncs_of(struct rig *rig)
{
    struct journal_stats stats;
    journal_stats(rig->log, &stats);
    return stats.syncs;
}

/* Appends one entry, so many times, each from the done of the one before. */
struct flight {
    pawl_task task; /* first */
    struct rig *rig;
    unsigned left;
    unsigned failures;
    bool alone; /* from the second on */
    struct latch *over;
    atomic_uint *flying;
    pawl_append append;
    pawl_append_entry entry;
};

static void fly(struct flight *f)
{
    int status = pawl_log_append(f->rig->log, &f->append);
    if (status != PAWL_OK)
        f->append.done(&f->append);
}

static void landed(pawl_append *append)
{
    struct flight *f = append->arg;
    f->failures += append->status != PAWL_OK;
    f->entry.entry.offset++;
    append->alone = f->alone;
    if (--f->left > 0)
        fly(f);
    else if (atomic_fetch_sub(f->flying, 1) == 1)
        latch_set(f->over);
}

static void take_off(pawl_task *task)
{
    fly((struct flight *)task);
}

static void flight_init(struct flight *f, struct rig *rig, unsigned i, unsigned turns)
{
    *f = (struct flight){.task.fn = take_off, .rig = rig, .left = turns};
    f->entry.entry = (pawl_entry){.stream = stream_of(i),
                                  .epoch = rig->epoch[i],
                                  .offset = 1,
                                  .body = text_bytes("an entry of the crowd")};
    f->append = (pawl_append){.entries = &f->entry, .count = 1, .done = landed, .arg = f};
}

struct marker {
    pawl_task task; /* first */
    struct latch passed;
};

static void pass(pawl_task *task)
{
    latch_set(&((struct marker *)task)->passed);
}

TEST(what_a_shard_appends_from_dones_that_came_together_is_written_together)
{
    static struct flight flights[CROWD];
    struct rig rig;
    struct latch over;
    struct marker marker = {.task.fn = pass};
    atomic_uint flying = CROWD;
    rig_open(&rig);
    latch_init(&over);
    latch_init(&marker.passed);
    uint64_t before = syncs_of(&rig);
    /* The first is held up in its sync until all the others have gathered behind it. */
    rig.armed = true;
    for (unsigned i = 0; i < CROWD; i++) {
        flight_init(&flights[i], &rig, i, i == 0 ? 1 : TURNS);
        flights[i].over = &over;
        flights[i].flying = &flying;
        assert_ok(pawl_env_post(uv_env_port(rig.env), 0, &flights[i].task));
        while (i == 0 && rig.armed)
            sched_yield();
    }
    assert_ok(pawl_env_post(uv_env_port(rig.env), 0, &marker.task));
    latch_wait(&marker.passed);
    latch_set(&rig.gate);
    latch_wait(&over);
    uint64_t syncs = syncs_of(&rig) - before;
    rig_close(&rig);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(flights[i].failures, 0);
    assert_int_equal(syncs, 1 + TURNS);
}

static void landed_in_latch(pawl_append *append)
{
    latch_set(append->arg);
}

static void *append_alone(void *arg)
{
    struct flight *f = arg;
    f->append.alone = true;
    for (; f->left > 0; f->left--) {
        struct latch latch;
        latch_init(&latch);
        f->append.done = landed_in_latch;
        f->append.arg = &latch;
        int status = pawl_log_append(f->rig->log, &f->append);
        if (status == PAWL_OK)
            latch_wait(&latch);
        f->failures += status < 0 || f->append.status != PAWL_OK;
        f->entry.entry.offset++;
    }
    return NULL;
}

TEST(threads_that_append_alone_all_get_their_outcome)
{
    static struct flight flights[CROWD];
    pthread_t threads[CROWD];
    struct rig rig;
    rig_open(&rig);
    for (unsigned i = 0; i < CROWD; i++) {
        flight_init(&flights[i], &rig, i, TURNS);
        assert_int_equal(pthread_create(&threads[i], NULL, append_alone, &flights[i]), 0);
    }
    for (unsigned i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(flights[i].failures, 0);
    rig_close(&rig);
}

/* The done of an append that no shard made runs on the writer, which must not wait there for itself. */
TEST(an_append_alone_from_a_done_does_not_wait_for_its_own_thread)
{
    struct flight f;
    struct rig rig;
    struct latch over;
    atomic_uint flying = 1;
    rig_open(&rig);
    latch_init(&over);
    flight_init(&f, &rig, 0, TURNS);
    f.over = &over;
    f.flying = &flying;
    f.alone = true;
    fly(&f);
    latch_wait(&over);
    rig_close(&rig);
    assert_int_equal(f.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(what_a_shard_appends_from_dones_that_came_together_is_written_together),
        RUN(threads_that_append_alone_all_get_their_outcome),
        RUN(an_append_alone_from_a_done_does_not_wait_for_its_own_thread),
    };
    return TEST_MAIN(tests);
}
