/* The journal on real threads and a disk that refuses now and then: one writes, and claims again after every
 * failure, while others read and follow, in the same log and beside it. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "adapter/journal/journal.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "test/lib/dir.h"
#include "test/lib/test.h"

#define ROUNDS      40
#define GROUP       4
#define ENTRIES_MAX (ROUNDS * GROUP)

static const pawl_stream stream = {.kind = PAWL_STREAM_RAW};

/* What the entry with an offset must hold: set before anybody can see it. */
static _Atomic uint64_t truth[ENTRIES_MAX + 2];
static _Atomic uint64_t acknowledged;
static _Atomic bool over;

/* ---- a disk that refuses ---- */

static struct disk flaky;
static _Atomic uint64_t calls;
static _Atomic uint64_t every;

static bool refuses(void)
{
    uint64_t n = atomic_load(&every);
    return n && atomic_fetch_add(&calls, 1) % n == n - 1;
}

static int flaky_sync(void *ctx, int file)
{
    return refuses() ? -EIO : disk_real.sync(ctx, file);
}

static int flaky_sync_dir(void *ctx, int dir)
{
    return refuses() ? -EIO : disk_real.sync_dir(ctx, dir);
}

static int64_t flaky_write(void *ctx, int file, const void *data, size_t size, uint64_t at)
{
    return refuses() ? -EIO : disk_real.write(ctx, file, data, size, at);
}

static int flaky_list(void *ctx, int dir, void (*visit)(void *arg, const char *name), void *arg)
{
    return refuses() ? -EIO : disk_real.list(ctx, dir, visit, arg);
}

/* ---- those who look on ---- */

struct looker {
    pawl_log *log;
    bool beside; /* sees only what the files witness */
    uint64_t seen;
    int status;
    const char *wrong;
    pawl_error error;
    struct latch latch;
};

static void look_at(struct looker *l, const pawl_entry *entry)
{
    uint64_t tag = 0;
    if (entry->body.size >= sizeof tag)
        memcpy(&tag, entry->body.data, sizeof tag);
    if (entry->offset != l->seen + 1)
        l->wrong = "an offset is missing";
    else if (atomic_load(&truth[entry->offset]) != tag)
        l->wrong = "an entry is not the one that was written";
    l->seen = entry->offset;
}

static bool visit_read(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    look_at(read->arg, entry);
    return true;
}

static bool visit_sweep(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place)
{
    look_at(sweep->arg, entry);
    return true;
}

static void read_done(pawl_read *read)
{
    latch_set(&((struct looker *)read->arg)->latch);
}

static int read_all(struct looker *l)
{
    pawl_read read = {.stream = stream,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .visit = visit_read,
                      .done = read_done,
                      .arg = l,
                      .error = &l->error};
    latch_init(&l->latch);
    int status = pawl_log_read(l->log, &read);
    if (status != PAWL_OK)
        return status;
    latch_wait(&l->latch);
    return read.status;
}

static int sweep_all(struct looker *l)
{
    pawl_sweep_stream streams[] = {{.stream = {.kind = PAWL_STREAM_GROUP0}, .from = 1},
                                   {.stream = stream, .from = 1}};
    pawl_sweep sweep = {.streams = streams,
                        .count = 2,
                        .limit = UINT64_MAX,
                        .visit = visit_sweep,
                        .arg = l,
                        .error = &l->error};
    return pawl_log_sweep(l->log, &sweep);
}

/* Reads and sweeps in turn; in the same log each must see at least what was acknowledged before it began. */
static void *read_all_the_time(void *arg)
{
    struct looker *l = arg;
    for (bool sweeps = false; !l->wrong && l->status == PAWL_OK && !atomic_load(&over); sweeps = !sweeps) {
        uint64_t least = l->beside ? 0 : atomic_load(&acknowledged);
        l->seen = 0;
        l->status = sweeps ? sweep_all(l) : read_all(l);
        if (l->status == PAWL_OK && l->seen < least)
            l->wrong = "an acknowledged entry is not seen";
    }
    return NULL;
}

static bool visit_follow(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    struct looker *l = follow->arg;
    look_at(l, entry);
    return l->seen < ENTRIES_MAX;
}

static void follow_done(pawl_follow *follow)
{
    latch_set(&((struct looker *)follow->arg)->latch);
}

/* ---- the one who writes ---- */

struct writing {
    pawl_log *log;
    uint64_t epoch;
    uint64_t next;
    uint64_t tags;
    uint64_t failures;
};

static void claim_done(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static void append_done(pawl_append *append)
{
    latch_set(append->arg);
}

static void claim_again(struct writing *w)
{
    pawl_error error = {0};
    for (int i = 0; i < 100; i++) {
        struct latch latch;
        latch_init(&latch);
        pawl_claim claim = {.stream = stream, .done = claim_done, .arg = &latch, .error = &error};
        assert_ok(pawl_log_claim(w->log, &claim));
        latch_wait(&latch);
        if (claim.status == PAWL_OK) {
            w->epoch = claim.epoch;
            w->next = claim.next;
            return;
        }
    }
    fail_msg("cannot claim: %s", error.text);
}

static void append_group(struct writing *w, bool alone)
{
    struct latch latch;
    struct {
        uint64_t tag;
        uint8_t rest[600];
    } bodies[GROUP] = {0};
    pawl_append_entry entries[GROUP];
    latch_init(&latch);
    for (size_t i = 0; i < GROUP; i++) {
        bodies[i].tag = ++w->tags;
        atomic_store(&truth[w->next + i], bodies[i].tag);
        entries[i] = (pawl_append_entry){.entry = {.stream = stream,
                                                   .epoch = w->epoch,
                                                   .offset = w->next + i,
                                                   .body = {&bodies[i], 8 + 100 * (w->tags % 6)}}};
    }
    pawl_append append = {
        .entries = entries, .count = GROUP, .alone = alone, .done = append_done, .arg = &latch};
    int status = pawl_log_append(w->log, &append);
    assert_true(status >= 0);
    if (status == PAWL_OK)
        latch_wait(&latch);
    if (append.status == PAWL_OK) {
        w->next += GROUP;
        atomic_store(&acknowledged, w->next - 1);
        return;
    }
    w->failures++;
    claim_again(w);
    if (w->next - 1 > atomic_load(&acknowledged)) /* it was found, and is truth */
        atomic_store(&acknowledged, w->next - 1);
}

static void check(const struct looker *l)
{
    if (l->wrong)
        fail_msg("%s: offset %" PRIu64, l->wrong, l->seen);
    if (l->status != PAWL_OK)
        fail_msg("%s", l->error.text);
}

static void live(uint64_t refuse_every)
{
    char dir[128];
    struct uv_env *env, *other;
    struct writing w = {0};
    struct looker reader = {0}, beside = {0}, follower = {0};
    pthread_t threads[2];
    const struct uv_env_options env_options = {.shards = 1, .pool_threads = 2};
    test_dir_make(dir, sizeof dir);
    assert_ok(uv_env_open(&env_options, &env, NULL));
    assert_ok(uv_env_open(&env_options, &other, NULL));
    flaky = disk_real;
    flaky.sync = flaky_sync;
    flaky.sync_dir = flaky_sync_dir;
    flaky.write = flaky_write;
    flaky.list = flaky_list;
    every = 0;
    atomic_store(&acknowledged, 0);
    atomic_store(&over, false);
    struct journal_options options = {
        .dir = dir, .env = uv_env_port(env), .disk = &flaky, .segment_bytes = 32768};
    assert_ok(journal_open(&options, &w.log, NULL));
    claim_again(&w);
    options = (struct journal_options){.dir = dir, .env = uv_env_port(other), .read_only = true};
    assert_ok(journal_open(&options, &beside.log, NULL));
    reader.log = follower.log = w.log;
    beside.beside = true;
    every = refuse_every;

    latch_init(&follower.latch);
    pawl_follow follow = {.stream = stream,
                          .from = 1,
                          .visit = visit_follow,
                          .done = follow_done,
                          .arg = &follower,
                          .error = &follower.error};
    assert_ok(pawl_log_follow(w.log, &follow));
    assert_int_equal(pthread_create(&threads[0], NULL, read_all_the_time, &reader), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, read_all_the_time, &beside), 0);
    for (int i = 0; w.next + GROUP <= ENTRIES_MAX + 1; i++)
        append_group(&w, i % 3 == 0);
    while (w.next <= ENTRIES_MAX) { /* what is left after groups of which only a part was found */
        uint64_t tag = ++w.tags;
        struct latch latch;
        latch_init(&latch);
        atomic_store(&truth[w.next], tag);
        pawl_append_entry entry = {
            .entry = {.stream = stream, .epoch = w.epoch, .offset = w.next, .body = {&tag, sizeof tag}}};
        pawl_append append = {.entries = &entry, .count = 1, .done = append_done, .arg = &latch};
        assert_ok(pawl_log_append(w.log, &append));
        latch_wait(&latch);
        if (append.status == PAWL_OK)
            w.next++;
        else
            claim_again(&w);
    }
    latch_wait(&follower.latch);
    atomic_store(&over, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    follower.status = follow.status;
    check(&follower);
    check(&reader);
    check(&beside);
    assert_true(refuse_every == 0 || w.failures > 0);
    assert_true(pawl_log_close(w.log) != PAWL_EMISUSE);
    assert_ok(pawl_log_close(beside.log));
    assert_ok(uv_env_close(env));
    assert_ok(uv_env_close(other));
    test_dir_remove(dir);
}

static void append_large(struct writing *w)
{
    static const uint8_t body[128 << 10];
    struct latch latch;
    latch_init(&latch);
    pawl_append_entry entry = {
        .entry = {.stream = stream, .epoch = w->epoch, .offset = w->next++, .body = {body, sizeof body}}};
    pawl_append append = {.entries = &entry, .count = 1, .done = append_done, .arg = &latch};
    assert_ok(pawl_log_append(w->log, &append));
    latch_wait(&latch);
    assert_ok(append.status);
}

/* A disk that tells when the second draft was synced: that of the second segment, which is twice as large as the first. */
static _Atomic int draft_file = -1;
static struct latch draft_ready;

static int noting_open(void *ctx, int dir, const char *name, int flags)
{
    int file = disk_real.open(ctx, dir, name, flags);
    if (strcmp(name, "draft-2.tmp") == 0)
        atomic_store(&draft_file, file);
    return file;
}

static int noting_sync(void *ctx, int file)
{
    int rc = disk_real.sync(ctx, file);
    if (atomic_compare_exchange_strong(&draft_file, &(int){file}, -1))
        latch_set(&draft_ready);
    return rc;
}

TEST(the_next_segment_is_ready_when_little_more_than_half_of_the_present_one_is_full)
{
    char dir[128];
    struct uv_env *env;
    struct writing w = {0};
    struct journal_stats stats = {0};
    struct disk disk = disk_real;
    disk.open = noting_open;
    disk.sync = noting_sync;
    latch_init(&draft_ready);
    test_dir_make(dir, sizeof dir);
    assert_ok(uv_env_open(&(struct uv_env_options){.shards = 1, .pool_threads = 1}, &env, NULL));
    struct journal_options options = {.dir = dir, .env = uv_env_port(env), .disk = &disk};
    assert_ok(journal_open(&options, &w.log, NULL));
    claim_again(&w);
    for (uint64_t bytes = 0; bytes <= JOURNAL_SEGMENT_FIRST / 2; bytes += 128 << 10)
        append_large(&w);
    journal_stats(w.log, &stats);
    assert_int_equal(stats.segments_made, 1);
    pawl_instant limit = {pawl_env_now(uv_env_port(env)).ns + 120 * PAWL_SECOND};
    assert_ok(latch_wait_until(&draft_ready, limit));
    assert_ok(pawl_log_close(w.log));
    assert_ok(uv_env_close(env));
    test_dir_remove(dir);
}

static _Atomic uint64_t pushes;

static int refuse_push(void *ctx, int file, uint64_t at, uint64_t size)
{
    atomic_fetch_add(&pushes, 1);
    return -EIO;
}

TEST(a_segment_that_could_not_be_made_ahead_is_made_when_it_is_needed)
{
    char dir[128];
    struct uv_env *env;
    struct writing w = {0};
    struct journal_stats stats = {0};
    struct disk disk = disk_real;
    disk.push = refuse_push;
    test_dir_make(dir, sizeof dir);
    assert_ok(uv_env_open(&(struct uv_env_options){.shards = 1, .pool_threads = 1}, &env, NULL));
    struct journal_options options = {.dir = dir, .env = uv_env_port(env), .disk = &disk};
    assert_ok(journal_open(&options, &w.log, NULL));
    claim_again(&w);
    while (stats.segments_made < 3) {
        append_large(&w);
        journal_stats(w.log, &stats);
    }
    assert_true(pushes > 0);
    assert_ok(pawl_log_close(w.log));
    assert_ok(uv_env_close(env));
    test_dir_remove(dir);
}

TEST(readers_see_nothing_of_rolls)
{
    live(0);
}

TEST(readers_see_nothing_of_failures_and_recoveries)
{
    static const uint64_t rates[] = {17, 29, 61};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        live(rates[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_next_segment_is_ready_when_little_more_than_half_of_the_present_one_is_full),
        RUN(a_segment_that_could_not_be_made_ahead_is_made_when_it_is_needed),
        RUN(readers_see_nothing_of_rolls),
        RUN(readers_see_nothing_of_failures_and_recoveries),
    };
    return TEST_MAIN(tests);
}
