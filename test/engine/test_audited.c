/* test_audited.c: a state that is derived twice finds out, while it runs, that the two differ; and the audit
 * says which of them is right. */
#include <fcntl.h>

#include "adapter/lmdb/store.h"
#include "core/schema/schema.h"
#include "core/state/key.h"
#include "test/engine/twice.h"

static void audit(struct twice *t, pawl_state_report *ret_report)
{
    pawl_replay_options options = {.dir = t->dir, .audit = true};
    assert_ok(pawl_replay(&options, ret_report, &t->error));
}

/* A bit falls over in a row of a store that nobody has open: the last one, which is a total. */
struct row {
    uint8_t key[512], value[512];
    size_t key_size, value_size;
};

static bool take_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct row *row = arg;
    memcpy(row->key, key.data, row->key_size = key.size);
    memcpy(row->value, value.data, row->value_size = value.size);
    return true; /* the last one stays */
}

static void flip(struct twice *t, const char *what)
{
    char path[400];
    uint8_t from[KEY_TABLE];
    struct row row = {.key_size = 0};
    bool done = false;
    for (unsigned shard = 0; shard < t->options.shards && !done; shard++) {
        pawl_store *store;
        snprintf(path, sizeof path, "%s/%s/%u", t->dir, what, shard);
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_DURABLE, .boot_id = t->knobs.boot_id};
        assert_ok(lmdb_store_open(&options, NULL, &store, &t->error));
        put_u32_sorted(from, SCHEMA_TABLE_FIRST);
        pawl_range range = {.space = STATE_SPACE, .from = {from, sizeof from}};
        assert_ok(pawl_store_scan(pawl_store_writer(store), range, false, take_row, &row));
        if (row.key_size > 0) {
            row.value[row.value_size - 1] ^= 4;
            assert_ok(pawl_store_put(store, STATE_SPACE, (pawl_bytes){row.key, row.key_size},
                                     (pawl_bytes){row.value, row.value_size}));
            assert_ok(pawl_store_commit(store));
            done = true;
        }
        assert_ok(pawl_store_close(store));
    }
    assert_true(done);
}

static void begin(struct twice *t)
{
    twice_make(t);
    t->knobs.audit_every = 10;
    twice_begin(t);
    twice_bill_many(t, 240);
    (void)twice_wait(t, 0);
}

TEST(two_states_that_agree_are_compared_and_nothing_is_said)
{
    struct twice t;
    pawl_state_report report;
    pawl_alert alert;
    size_t alerts;
    begin(&t);
    pawl_figures figures = twice_figures(&t);
    assert_true(figures.audits >= 10);
    assert_int_equal(figures.alerts, 0);
    assert_int_equal(figures.audits_missed, 0);
    pawl_alerts(t.engine, &alert, 1, &alerts);
    assert_int_equal(alerts, 0);
    twice_close(&t);
    audit(&t, &report);
    assert_int_equal(report.live.differences + report.checkpoint.differences, 0);
    assert_int_equal(report.checkpoint.compared, t.options.partitions);
    twice_remove(&t);
}

TEST(a_row_that_changed_by_itself_is_named_and_the_side_that_is_right)
{
    static const char *const sides[] = {"state", "checkpoint"};
    for (int wrong = 0; wrong < 2; wrong++) {
        struct twice t;
        pawl_state_report report;
        begin(&t);
        twice_close(&t);
        flip(&t, sides[wrong]);
        audit(&t, &report);
        const pawl_state_side *bad = wrong ? &report.checkpoint : &report.live;
        const pawl_state_side *good = wrong ? &report.live : &report.checkpoint;
        assert_int_equal(good->differences, 0);
        assert_int_equal(bad->differences, 1);
        assert_contains(bad->first.text, wrong ? "the checkpoint store and the log have different values"
                                               : "the live store and the log have different values");
        assert_contains(bad->first.text, "(t.");
        assert_contains(bad->first.text, "partition ");
        assert_contains(bad->first.text, ", workspace ");

        /* What the operator is told to do helps. */
        for (unsigned shard = 0; shard < t.options.shards; shard++) {
            char path[400];
            snprintf(path, sizeof path, "%s/%s/%u", t.dir, sides[wrong], shard);
            test_dir_remove(path);
        }
        twice_check(&t);
        twice_open(&t);
        (void)twice_wait(&t, 0);
        twice_close(&t);
        audit(&t, &report);
        assert_int_equal(report.live.differences + report.checkpoint.differences, 0);
        assert_int_equal(report.checkpoint.compared, t.options.partitions);
        twice_remove(&t);
    }
}

/* A bit falls over in the position of the first partition that has one. */
static void flip_position(struct twice *t, const char *what, size_t at)
{
    uint8_t key[KEY_TOKEN], value[4096];
    for (uint32_t i = 0; i < t->options.partitions; i++) {
        char path[400];
        pawl_store *store;
        pawl_bytes row;
        snprintf(path, sizeof path, "%s/%s/%u", t->dir, what, i % t->options.shards);
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_DURABLE, .boot_id = t->knobs.boot_id};
        assert_ok(lmdb_store_open(&options, NULL, &store, &t->error));
        put_u32_sorted(key, TABLE_PARTITION);
        put_u64_sorted(key + 4, i);
        pawl_bytes of_partition = {key, sizeof key};
        bool there = pawl_store_get(pawl_store_writer(store), STATE_SPACE, of_partition, &row) == PAWL_OK;
        if (there) {
            memcpy(value, row.data, row.size);
            value[at] ^= 4;
            assert_ok(pawl_store_put(store, STATE_SPACE, of_partition, (pawl_bytes){value, row.size}));
            assert_ok(pawl_store_commit(store));
        }
        assert_ok(pawl_store_close(store));
        if (there)
            return;
    }
    fail();
}

TEST(a_position_that_changed_by_itself_is_named_and_the_side_that_is_right)
{
    static const char *const sides[] = {"state", "checkpoint"};
    static const struct {
        size_t at;
        const char *words;
    } cases[] = {{1, "is not one"}, {16, "elsewhere in the log"}, {32, "from another event"}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        struct twice t;
        pawl_state_report report;
        size_t wrong = i % 2;
        begin(&t);
        twice_close(&t);
        flip_position(&t, sides[wrong], cases[i / 2].at);
        audit(&t, &report);
        const pawl_state_side *bad = wrong ? &report.checkpoint : &report.live;
        const pawl_state_side *good = wrong ? &report.live : &report.checkpoint;
        assert_int_equal(good->differences, 0);
        assert_int_equal(bad->differences, 1);
        assert_contains(bad->first.text, cases[i / 2].words);
        assert_contains(bad->first.text, wrong ? "the checkpoint store" : "the live store");
        twice_remove(&t);
    }
}

TEST(a_live_store_that_cannot_be_one_is_thrown_away_and_the_checkpoint_takes_over)
{
    for (int meta = 0; meta < 2; meta++) {
        struct twice t;
        begin(&t);
        twice_close(&t);
        if (meta) {
            char path[400];
            snprintf(path, sizeof path, "%s/state/0/data.mdb", t.dir);
            int fd = open(path, O_WRONLY | O_CLOEXEC);
            assert_int_equal(pwrite(fd, "rotten", 6, 16), 6); /* where LMDB looks for its magic number */
            close(fd);
        } else
            flip_position(&t, "state", 1);
        twice_open(&t);
        assert_int_equal(twice_figures(&t).taken_over, 1);
        twice_bill_many(&t, 60);
        (void)twice_wait(&t, 0);
        twice_close(&t);
        twice_check(&t);
        twice_remove(&t);
    }
}

/* The totals are counted up by each command: who starts from a wrong one is wrong from then on. */
TEST(a_difference_that_spreads_raises_an_alert_while_commands_go_on)
{
    static const char *const sides[] = {"state", "checkpoint"};
    for (int wrong = 0; wrong < 2; wrong++) {
        struct twice t;
        pawl_alert alerts[4];
        size_t count;
        begin(&t);
        twice_close(&t);
        flip(&t, sides[wrong]);
        twice_open(&t);
        twice_bill_many(&t, 240);
        pawl_figures figures = twice_wait(&t, 0);
        assert_true(figures.alerts > 0);
        pawl_alerts(t.engine, alerts, 4, &count);
        assert_int_equal(count, 1); /* one partition, one table */
        assert_int_equal(alerts[0].kind, PAWL_ALERT_DIFFERENT);
        assert_contains(alerts[0].text, "the live and the checkpoint state differ at offset");
        assert_true(alerts[0].table >= SCHEMA_TABLE_FIRST && alerts[0].offset % 10 == 0);
        pawl_state_report report;
        twice_close(&t);
        audit(&t, &report);
        assert_true((wrong ? report.checkpoint : report.live).differences > 0);
        assert_int_equal((wrong ? report.live : report.checkpoint).differences, 0);
        twice_remove(&t);
    }
}

/* Nobody writes, so the digests that are kept as rows are written stay right on both sides. */
TEST(a_row_that_changed_by_itself_and_is_never_touched_again_is_found_by_reading)
{
    static const char *const sides[] = {"state", "checkpoint"};
    for (int wrong = 0; wrong < 2; wrong++) {
        struct twice t;
        pawl_alert alerts[4];
        size_t count;
        begin(&t);
        twice_close(&t);
        flip(&t, sides[wrong]);
        t.knobs.scrub_pause = PAWL_MILLISECOND;
        twice_open(&t);
        while (twice_figures(&t).alerts == 0)
            twice_pause();
        pawl_alerts(t.engine, alerts, 4, &count);
        assert_int_equal(count, 1);
        assert_int_equal(alerts[0].kind, wrong ? PAWL_ALERT_CHECKPOINT : PAWL_ALERT_LIVE);
        assert_true(alerts[0].table >= SCHEMA_TABLE_FIRST && alerts[0].offset > 0);
        assert_contains(alerts[0].text, wrong ? "rows of the checkpoint state are not those that it has written"
                                              : "rows of the live state are not those that it has written");
        twice_bill_many(&t, 6); /* nothing stops */
        twice_close(&t);
        twice_remove(&t);
    }
}

TEST(all_tables_of_both_states_are_read_while_commands_go_on_and_those_that_are_too_large_are_counted)
{
    for (size_t bytes = 1; bytes <= 1 << 20; bytes <<= 20) {
        struct twice t;
        twice_make(&t);
        t.knobs.scrub_pause = 1;
        t.knobs.scrub_bytes = bytes;
        twice_begin(&t);
        pawl_figures figures = twice_figures(&t);
        /* 4 partitions at most, 4 tables, 2 states; the walk begins anew behind the last one. */
        while ((bytes == 1 ? figures.scrubs_missed : figures.scrubs) < UINT64_C(4 * 4 * 2 * 3)) {
            twice_bill_many(&t, 6);
            figures = twice_figures(&t);
        }
        assert_int_equal(bytes == 1 ? figures.scrubs : figures.scrubs_missed, 0);
        assert_int_equal(figures.alerts, 0);
        twice_close(&t);
        twice_check(&t);
        twice_remove(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(two_states_that_agree_are_compared_and_nothing_is_said),
        RUN(a_row_that_changed_by_itself_is_named_and_the_side_that_is_right),
        RUN(a_position_that_changed_by_itself_is_named_and_the_side_that_is_right),
        RUN(a_live_store_that_cannot_be_one_is_thrown_away_and_the_checkpoint_takes_over),
        RUN(a_difference_that_spreads_raises_an_alert_while_commands_go_on),
        RUN(a_row_that_changed_by_itself_and_is_never_touched_again_is_found_by_reading),
        RUN(all_tables_of_both_states_are_read_while_commands_go_on_and_those_that_are_too_large_are_counted),
    };
    return TEST_MAIN(tests);
}
