/* test_checkpoint.c: the checkpoint stores of a running engine: how far they are behind, what that bounds, and
 * how they take the place of a live store that a loss of power has made worthless. */
#include <fcntl.h>
#include <glob.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "adapter/journal/record.h"
#include "adapter/journal/segment.h"
#include "adapter/lmdb/store.h"
#include "core/state/position.h"
#include "test/engine/twice.h"
#include "test/lib/child.h"
#include "test/lib/event.h"

static bool exists(const struct twice *t, const char *what)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", t->dir, what);
    return access(path, F_OK) == 0;
}

TEST(a_checkpoint_follows_writes_a_row_once_a_commit_and_goes_on_where_it_was)
{
    struct twice t;
    twice_make(&t);
    twice_begin(&t);
    twice_bill_many(&t, 300);
    pawl_figures figures = twice_wait(&t, 0);
    assert_int_equal(figures.checkpoint_events, 300 + TWICE_WORKSPACES);
    assert_int_equal(figures.checkpoint_failures, 0);
    assert_int_equal(figures.checkpoint_made, 0);
    assert_true(figures.checkpoint_commits > 0);
    twice_close(&t);
    twice_open(&t);
    twice_bill_many(&t, 60);
    figures = twice_wait(&t, 0);
    assert_int_equal(figures.checkpoint_events, 60);
    assert_int_equal(figures.replayed, 0);
    assert_int_equal(figures.taken_over, 0);
    twice_close(&t);
    twice_check(&t);
    twice_remove(&t);
}

TEST(a_lag_without_a_bound_holds_nothing_back)
{
    struct twice t;
    twice_make(&t);
    t.options.checkpoint_lag_max = UINT64_MAX;
    twice_begin(&t);
    for (unsigned i = 0; i < 3; i++) {
        twice_bill_many(&t, 60);
        assert_int_equal(twice_wait(&t, 0).held, 0);
    }
    twice_close(&t);
    twice_check(&t);
    twice_remove(&t);
}

/* Each command counts a total up: three rows, of which one is the same as the last time. */
TEST(a_large_commit_writes_a_row_once_that_its_events_have_changed_again_and_again)
{
    struct twice t;
    twice_make(&t);
    t.options.partitions = t.options.shards = 1;
    t.knobs.checkpoint_age = 3600 * PAWL_SECOND;
    t.knobs.checkpoint_events = 50;
    t.knobs.checkpoint_rows = 1000;
    twice_begin(&t);
    for (unsigned i = 0; i < 200; i++)
        assert_ok(twice_bill(&t, 0));
    pawl_figures figures = twice_wait(&t, 49);
    assert_true(figures.checkpoint_commits >= 1 && figures.checkpoint_commits <= 4);
    assert_true(figures.checkpoint_events > 150);
    assert_true(figures.checkpoint_rows < 2 * figures.checkpoint_events + 40 * figures.checkpoint_commits);
    twice_close(&t);
    twice_check(&t);
    twice_remove(&t);
}

/* --- taking over --- */

/* As a process leaves it that is killed, and the machine with it: the live stores are not clean, and what they
 * hold is worth nothing. */
static struct twice life;

static int die_after(unsigned commands)
{
    twice_open(&life);
    for (unsigned i = 0; i < commands; i++)
        CHECK(twice_bill(&life, i % TWICE_WORKSPACES) == PAWL_OK);
    pawl_figures figures = twice_figures(&life);
    CHECK(figures.checkpoint_lag <= life.options.checkpoint_lag_max);
    return 0;
}

static int die(void)
{
    return die_after(60);
}

static void note_answers(struct twice *t, unsigned commands)
{
    for (unsigned i = 0; i < commands; i++)
        t->billed[i % TWICE_WORKSPACES]++;
}

static void scribble(struct twice *t, uint64_t *random)
{
    for (unsigned shard = 0; shard < t->options.shards; shard++) {
        char path[400];
        uint8_t garbage[4096];
        snprintf(path, sizeof path, "%s/state/%u/data.mdb", t->dir, shard);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        off_t size = lseek(fd, 0, SEEK_END);
        for (off_t at = 0; at + 4096 <= size && at < 4096 * 1000; at += 4096) {
            if (test_below(random, 2))
                continue;
            for (size_t i = 0; i < sizeof garbage; i++)
                garbage[i] = (uint8_t)test_random(random);
            assert_int_equal(pwrite(fd, garbage, sizeof garbage, at), sizeof garbage);
        }
        close(fd);
    }
}

static void live_and_lose_power(struct twice *t, unsigned lag, unsigned commands, uint64_t *random)
{
    twice_make(t);
    t->options.checkpoint_lag_max = lag;
    t->knobs.boot_id = "this boot";
    twice_begin(t);
    twice_bill_flying(t, commands);
    (void)twice_wait(t, 0);
    twice_close(t);
    life = *t;
    assert_int_equal(in_child(die), 0);
    note_answers(t, 60);
    scribble(t, random);
    t->knobs.boot_id = "the next boot";
}

TEST(after_a_loss_of_power_the_checkpoint_takes_over_and_only_the_lag_is_replayed)
{
    static const struct {
        unsigned lag, commands;
    } cases[] = {{20, 120}, {20, 6000}, {2000, 120}};
    uint64_t random = test_seed(5);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct twice t;
        unsigned lag = cases[i].lag;
        live_and_lose_power(&t, lag, cases[i].commands, &random);
        twice_open(&t);
        pawl_figures figures = twice_figures(&t);
        assert_int_equal(figures.taken_over, t.options.shards);
        print_message("# a lag of at most %u, %u commands: %" PRIu64 " events replayed\n", lag,
                      cases[i].commands, figures.replayed);
        assert_true(figures.replayed <= (uint64_t)lag * t.options.shards);
        assert_true(figures.replayed <= 60);
        twice_bill_many(&t, 60);
        figures = twice_wait(&t, 0);
        assert_int_equal(figures.checkpoint_made, t.options.shards);
        twice_close(&t);
        assert_true(exists(&t, "checkpoint/0") && exists(&t, "checkpoint/1"));
        assert_false(exists(&t, "checkpoint/0.new"));
        twice_check(&t);
        twice_remove(&t);
    }
}

/* Dies at the n-th step of opening, of making a checkpoint, or of committing one. */
struct dying {
    _Atomic int left;
};

static struct dying dying;

static void die_at_step(void *arg, const char *what)
{
    (void)arg;
    if (atomic_fetch_sub(&dying.left, 1) == 1) {
        fprintf(stderr, "# dies when %s\n", what);
        _exit(55);
    }
}

static int open_and_die(void)
{
    life.knobs.step = die_at_step;
    twice_open(&life);
    for (unsigned i = 0; i < TWICE_WORKSPACES; i++)
        CHECK(twice_bill(&life, i) == PAWL_OK);
    (void)twice_wait(&life, 0);
    CHECK(twice_bill(&life, 0) == PAWL_OK);
    twice_close(&life);
    return 0;
}

/* How many of the child's commands were answered is not known: the log says. */
static bool count_bills(void *arg, const pawl_event *event)
{
    struct twice *t = arg;
    if (event_is(event, "t.Bill"))
        t->billed[event->wsid - 1]++;
    return true;
}

static void recount(struct twice *t)
{
    memset(t->billed, 0, sizeof t->billed);
    twice_open(t);
    for (uint32_t p = 0; p < pawl_partitions(t->engine); p++)
        assert_ok(pawl_events_read(t->engine, (uint16_t)p, 1, SIZE_MAX, count_bills, t, NULL, &t->error));
}

TEST(a_loss_of_power_at_any_step_of_taking_over_and_making_anew_costs_no_more_than_the_lag)
{
    uint64_t random = test_seed(6);
    bool ended = false;
    int steps = 0;
    struct twice lost;
    live_and_lose_power(&lost, 40, 120, &random); /* of 186 events */
    for (int step = 1; !ended; step++) {
        struct twice t = lost;
        snprintf(t.dir, sizeof t.dir, "%s/%d", lost.base, step);
        test_dir_copy(lost.dir, t.dir);
        life = t;
        atomic_store(&dying.left, step);
        int how = in_child(open_and_die);
        assert_true(how == 55 || how == 0);
        ended = how == 0;
        steps = step;
        t.knobs.boot_id = "the boot after";
        uint64_t known = 180;
        recount(&t);
        uint64_t there = 0;
        for (unsigned i = 0; i < TWICE_WORKSPACES; i++)
            there += t.billed[i];
        assert_true(there >= known);
        pawl_figures figures = twice_figures(&t);
        assert_true(figures.replayed <= 40 * t.options.shards);
        (void)twice_wait(&t, 0);
        twice_close(&t);
        twice_check(&t);
        test_dir_remove(t.dir);
    }
    twice_remove(&lost);
    print_message("# %d steps\n", steps);
    assert_true(steps > 12);
}

static void remove_live(const struct twice *t)
{
    for (unsigned shard = 0; shard < t->options.shards; shard++) {
        char path[400];
        snprintf(path, sizeof path, "%s/state/%u", t->dir, shard);
        test_dir_remove(path);
    }
}

TEST(a_checkpoint_on_another_disk_takes_over_and_stays)
{
    char other[] = "/dev/shm/pawl-test-XXXXXX", path[400];
    struct stat here, there;
    struct twice t;
    twice_make(&t);
    twice_begin(&t);
    twice_close(&t);
    bool made = mkdtemp(other) != NULL;
    if (!made || stat(t.base, &here) || stat(other, &there) || here.st_dev == there.st_dev) {
        if (made)
            test_dir_remove(other);
        twice_remove(&t);
        print_message("# there is no other disk\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/checkpoint", t.dir);
    test_dir_remove(path);
    assert_int_equal(symlink(other, path), 0);
    for (unsigned i = 0; i < 3; i++) {
        twice_open(&t);
        assert_int_equal(twice_figures(&t).taken_over, i ? t.options.shards : 0);
        twice_bill_many(&t, 60);
        (void)twice_wait(&t, 0);
        assert_int_equal(twice_figures(&t).checkpoint_made, i ? 0 : t.options.shards);
        twice_close(&t);
        remove_live(&t);
        snprintf(path, sizeof path, "%s/state/0.new", t.dir); /* as one leaves it that is killed */
        assert_int_equal(mkdir(path, 0700), 0);
    }
    twice_check(&t);
    test_dir_remove(other);
    twice_remove(&t);
}

/* --- a state that is ahead of what the log's files say is durable --- */

/* Watermarks at the end of the newest segment that has records go: as if the process had died before. */
static void forget_watermarks(const struct twice *t)
{
    static uint8_t bytes[2 << 20], zeros[RECORD_HEADER];
    char path[400];
    glob_t found;
    bool done = false;
    snprintf(path, sizeof path, "%s/log/journal/*.seg", t->dir);
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    for (size_t i = found.gl_pathc; i-- > 0 && !done;) {
        int fd = open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);
        ssize_t size = pread(fd, bytes, sizeof bytes, 0);
        struct segment_header header;
        struct record r;
        uint64_t fault;
        size_t need, entries_end = 0;
        assert_ok(segment_header_decode((pawl_bytes){bytes, (size_t)size}, &header, NULL, &fault, NULL));
        size_t at = header.size;
        for (;
             record_decode((pawl_bytes){bytes + at, (size_t)size - at}, journal_seed(header.journal), &r, &need)
             == RECORD_VALID;
             at += need)
            entries_end = r.type == RECORD_WATERMARK ? entries_end : at + need;
        done = entries_end > 0;
        for (size_t mark = entries_end; done && mark < at; mark += sizeof zeros)
            assert_int_equal(pwrite(fd, zeros, sizeof zeros, (off_t)mark), sizeof zeros);
        close(fd);
    }
    globfree(&found);
    assert_true(done);
}

TEST(a_state_that_is_ahead_of_what_the_log_says_of_itself_agrees_with_it)
{
    struct twice t;
    pawl_state_report report;
    twice_make(&t);
    twice_begin(&t);
    twice_close(&t);
    life = t;
    assert_int_equal(in_child(die), 0);
    note_answers(&t, 60);
    forget_watermarks(&t);
    pawl_replay_options replay = {.dir = t.dir, .audit = true};
    assert_ok(pawl_replay(&replay, &report, &t.error));
    if (report.live.differences)
        print_error("%s\n", report.live.first.text);
    assert_int_equal(report.live.differences + report.checkpoint.differences, 0);
    assert_int_equal(report.live.compared, t.options.partitions);
    twice_check(&t);
    twice_remove(&t);
}

/* --- a checkpoint that is not what the log says --- */

static void contradict(struct twice *t)
{
    for (unsigned shard = 0; shard < t->options.shards; shard++) {
        char path[400];
        pawl_store *store;
        struct position position;
        snprintf(path, sizeof path, "%s/checkpoint/%u", t->dir, shard);
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_DURABLE, .boot_id = t->knobs.boot_id};
        assert_ok(lmdb_store_open(&options, NULL, &store, &t->error));
        for (uint32_t i = shard; i < t->options.partitions; i += t->options.shards) {
            position_init(&position, NULL, (uint16_t)i);
            assert_ok(position_read(&position, pawl_store_writer(store), &t->error));
            position.checksum ^= 1;
            assert_ok(position_write(&position, store));
            position_release(&position);
        }
        assert_ok(pawl_store_commit(store));
        assert_ok(pawl_store_close(store));
    }
}

/* When all are there: the others wait, so that none has its copy. */
static void die_together(void *arg, const char *what)
{
    if (strcmp(what, arg) != 0)
        return;
    if (atomic_fetch_sub(&dying.left, 1) == 1)
        _exit(55);
    for (;;)
        twice_pause();
}

static int open_and_wait_for_the_end(void)
{
    twice_open(&life);
    for (;;)
        CHECK(twice_bill(&life, 0) == PAWL_OK);
}

TEST(a_checkpoint_that_contradicts_the_log_is_thrown_away_only_when_the_live_store_is_durable)
{
    for (int dies = 0; dies < 2; dies++) {
        struct twice t;
        twice_make(&t);
        t.options.checkpoint_lag_max = 40;
        t.knobs.boot_id = "this boot";
        twice_begin(&t);
        twice_bill_many(&t, 180);
        (void)twice_wait(&t, 0);
        twice_close(&t);
        contradict(&t);
        if (dies) { /* when both checkpoints are gone, and no other is there */
            life = t;
            life.knobs.step = die_together;
            life.knobs.arg = "a copy begins";
            atomic_store(&dying.left, (int)t.options.shards);
            assert_int_equal(in_child(open_and_wait_for_the_end), 55);
            t.knobs.boot_id = "the next boot";
            recount(&t);
            pawl_figures figures = twice_figures(&t);
            assert_int_equal(figures.taken_over, 0);
            assert_true(figures.replayed <= 40 * t.options.shards);
        } else {
            twice_open(&t);
            twice_bill_many(&t, 60);
        }
        unsigned least = dies ? 1 : t.options.shards; /* it may have died when one was made already */
        while (twice_figures(&t).checkpoint_made < least)
            twice_pause();
        pawl_figures figures = twice_wait(&t, 0);
        assert_in_range(figures.checkpoint_made, least, t.options.shards);
        assert_int_equal(figures.checkpoint_failures, dies ? 0 : t.options.shards);
        twice_bill_many(&t, 60);
        twice_close(&t);
        twice_check(&t);
        twice_remove(&t);
    }
}

static _Atomic unsigned opened_stores, answered;

/* The checkpoint of shard 0 rots when it was looked at, and before it is opened to be followed. */
static void spoil_and_die(void *arg, const char *what)
{
    if (strcmp(what, "the live store is open") == 0 && atomic_fetch_add(&opened_stores, 1) == 1) {
        char path[400];
        snprintf(path, sizeof path, "%s/checkpoint/0/pawl.mark", life.dir);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (pwrite(fd, "rotten", 6, 0) != 6)
            abort();
        close(fd);
    }
    if (strcmp(what, "a copy begins") != 0)
        return;
    while (atomic_load(&answered) < 2 * TWICE_WORKSPACES)
        twice_pause();
    _exit(55);
}

static int open_and_bill_all(void)
{
    twice_open(&life);
    for (unsigned i = 0;; i++) {
        CHECK(twice_bill(&life, i % TWICE_WORKSPACES) == PAWL_OK);
        atomic_fetch_add(&answered, 1);
    }
}

TEST(a_checkpoint_that_cannot_be_opened_any_more_is_thrown_away_only_when_the_live_store_is_durable)
{
    struct twice t;
    twice_make(&t);
    t.options.checkpoint_lag_max = 40;
    t.knobs.boot_id = "this boot";
    twice_begin(&t);
    twice_bill_many(&t, 600);
    (void)twice_wait(&t, 0);
    twice_close(&t);
    life = t;
    life.knobs.step = spoil_and_die;
    assert_int_equal(in_child(open_and_bill_all), 55);
    t.knobs.boot_id = "the next boot";
    recount(&t);
    assert_true(twice_figures(&t).replayed <= 40 * t.options.shards);
    (void)twice_wait(&t, 0);
    twice_close(&t);
    twice_check(&t);
    twice_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_checkpoint_follows_writes_a_row_once_a_commit_and_goes_on_where_it_was),
        RUN(a_lag_without_a_bound_holds_nothing_back),
        RUN(a_large_commit_writes_a_row_once_that_its_events_have_changed_again_and_again),
        RUN(after_a_loss_of_power_the_checkpoint_takes_over_and_only_the_lag_is_replayed),
        RUN(a_loss_of_power_at_any_step_of_taking_over_and_making_anew_costs_no_more_than_the_lag),
        RUN(a_checkpoint_on_another_disk_takes_over_and_stays),
        RUN(a_state_that_is_ahead_of_what_the_log_says_of_itself_agrees_with_it),
        RUN(a_checkpoint_that_contradicts_the_log_is_thrown_away_only_when_the_live_store_is_durable),
        RUN(a_checkpoint_that_cannot_be_opened_any_more_is_thrown_away_only_when_the_live_store_is_durable),
    };
    return TEST_MAIN(tests);
}
