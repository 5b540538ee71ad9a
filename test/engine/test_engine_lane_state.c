/* The tables of lanes, derived again: by a replay, by running all projectors again, and by the checkpoint. */
#include <stdatomic.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "adapter/lmdb/store.h"
#include "core/project/cursor.h"
#include "core/schema/schema.h"
#include "core/state/key.h"
#include "test/engine/twice.h"
#include "test/lib/child.h"
#include "test/lib/lanes.h"

/* --- worked out again --- */

static _Atomic int64_t ticks; /* a clock that never stands still */

static int stamp(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    bool by_clock = *(const bool *)arg && event->workspace_offset == 5;
    pawl_results_upsert(results, "t.Note");
    pawl_results_set_int64(results, "event", (int64_t)event->workspace_offset);
    return pawl_results_set_int64(results, "sum", by_clock ? atomic_fetch_add(&ticks, 1) : 7);
}

/* Counts the notes that are there: what it reads through its ctx is the same whenever it is run again. */
static int count(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    pawl_text text;
    pawl_error error;
    int64_t notes = 0;
    int status = pawl_handler_list(ctx, "t.Note", (pawl_bytes){0}, 1000, &text, &error);
    if (status != PAWL_OK)
        return status;
    for (size_t i = 0; i < text.size; i++)
        notes += text.data[i] == '\n';
    pawl_text_free(&text);
    pawl_results_upsert(results, "t.Note");
    pawl_results_set_int64(results, "event", (int64_t)event->workspace_offset);
    return pawl_results_set_int64(results, "sum", notes);
}

static void ask_and_wait(struct lanes_bed *bed, pawl_handler handler, void *arg)
{
    bed_begin(bed, LANES_SCHEMA(""));
    assert_ok(pawl_projector_register(bed->engine, "t.notes", handler, arg, &bed->error));
    for (uint64_t wsid = 1; wsid <= 3; wsid++)
        for (int i = 0; i < 5; i++) {
            bed_send(bed, wsid, "t.Ask", "ada", i);
            bed_send(bed, wsid, "t.Bill", "ada", 60);
            bed_send(bed, wsid, "t.Raise", "x", 1);
        }
    bed_wait(bed, "t.notes");
    bed_wait(bed, "t.totals");
    bed_wait(bed, "t.marks");
}

TEST(operations_come_out_the_same_when_they_are_worked_out_again)
{
    struct lanes_bed bed = {0};
    pawl_lane_verdict verdict;
    ask_and_wait(&bed, count, NULL);
    assert_ok(pawl_lane_verify(bed.engine, NULL, &verdict, &bed.error));
    if (verdict.differences)
        print_error("%s\n", verdict.first.text);
    assert_int_equal(verdict.differences, 0);
    assert_int_equal(verdict.operations, 3 * 5 * 4);
    assert_int_equal(verdict.compared, 3 * 5 * 4);
    assert_true(verdict.unchecked == 0 && verdict.unchecked_count == 0);
    assert_ok(pawl_lane_verify(bed.engine, "t.marks", &verdict, &bed.error));
    assert_int_equal(verdict.operations, 3 * 5);
    assert_status(pawl_lane_verify(bed.engine, "t.none", &verdict, &bed.error), PAWL_ENOTFOUND);
    bed_end(&bed);
}

TEST(a_handler_that_looks_at_a_clock_is_found_and_the_first_operation_and_row_are_named)
{
    struct lanes_bed bed = {0};
    pawl_lane_verdict verdict;
    bool by_clock = true;
    char text[64];
    ask_and_wait(&bed, stamp, &by_clock);
    assert_ok(pawl_lane_verify(bed.engine, NULL, &verdict, &bed.error));
    assert_true(verdict.differences >= 1);
    assert_contains(verdict.first.text, "lane t.notes");
    assert_contains(verdict.first.text, "projector t.notes");
    assert_contains(verdict.first.text, "row of t.Note in workspace ");
    assert_contains(verdict.first.text, ", key {\"event\":5}: the row is set to other values");
    snprintf(text, sizeof text, "partition %u", bed.options.partitions);
    assert_null(strstr(verdict.first.text, text));
    bed_end(&bed);
}

#define LONG_SCHEMA                                                                                            \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"                                    \
    " \"types\": {\"Item\": {\"kind\": \"WDoc\", \"fields\": {\"who\": {\"type\": \"string\"},"                \
    "   \"cents\": {\"type\": \"int64\"}}}}, \"commands\": {\"Ask\": {\"records\": [\"Item\"]}},"              \
    " \"entities\": {\"Long\": {\"key\": [\"name\"], \"fields\": {\"name\": {\"type\": \"string\"},"           \
    "   \"n\": {\"type\": \"int64\"}}}},"                                                                      \
    " \"projectors\": {\"long\": {\"on\": [\"Ask\"], \"writes\": [\"Long\"]}}}"

/* Another value with each run, under a key of 2,000 bytes that are characters of two. */
static int write_long(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    char name[2000];
    for (size_t i = 0; i < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa4", 2);
    pawl_results_upsert(results, "t.Long");
    pawl_results_set_text(results, "name", (pawl_bytes){name, sizeof name});
    return pawl_results_set_int64(results, "n", atomic_fetch_add(&ticks, 1));
}

TEST(a_long_key_of_a_row_that_differs_is_shown_by_its_beginning)
{
    struct lanes_bed bed = {0};
    pawl_lane_verdict verdict;
    bed_begin(&bed, LONG_SCHEMA);
    assert_ok(pawl_projector_register(bed.engine, "t.long", write_long, NULL, &bed.error));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_wait(&bed, "t.long");
    assert_ok(pawl_lane_verify(bed.engine, NULL, &verdict, &bed.error));
    assert_int_equal(verdict.differences, 1);
    assert_contains(verdict.first.text, "row of t.Long in workspace 1, key {\"name\":\"\xc3\xa4\xc3\xa4");
    assert_contains(verdict.first.text, "\xc3\xa4...: the row is set to other values");
    bed_end(&bed);
}

TEST(a_replay_derives_what_lanes_have_written_and_finds_a_row_that_is_not_so)
{
    struct lanes_bed bed = {0};
    pawl_state_report report;
    ask_and_wait(&bed, count, NULL);
    bed_close(&bed);
    pawl_replay_options options = {.dir = bed.path, .reproject = true, .audit = true};
    assert_ok(pawl_replay(&options, &report, &bed.error));
    assert_int_equal(report.live.differences + report.checkpoint.differences + report.lanes.differences, 0);
    assert_int_equal(report.lanes.operations, 3 * 5 * 4);
    assert_int_equal(report.lanes.compared, 3 * 5 * 3); /* the handler is not here */
    assert_int_equal(report.lanes.unchecked, 3 * 5);
    assert_int_equal(report.lanes.unchecked_count, 1);
    assert_string_equal(report.lanes.unchecked_by[0].projector, "t.notes");
    assert_int_equal(report.lanes.unchecked_by[0].operations, 3 * 5);

    /* A row of a lane's table goes, and nobody is told. */
    bool removed = false;
    for (unsigned shard = 0; shard < bed.options.shards && !removed; shard++) {
        char path[400];
        pawl_store *store;
        uint8_t key[KEY_WORKSPACE + 32];
        snprintf(path, sizeof path, "%s/state/%u", bed.path, shard);
        struct lmdb_options lmdb = {.dir = path, .mode = PAWL_STORE_FAST};
        assert_ok(lmdb_store_open(&lmdb, NULL, &store, &bed.error));
        for (uint32_t table = 1 << 16; table < 3 << 16 && !removed; table++) {
            uint8_t to[KEY_WORKSPACE];
            pawl_bytes prefix = key_of_workspace(table, 1, key);
            pawl_range range = {.space = STATE_SPACE, .from = prefix, .to = key_after_prefix(prefix, to)};
            pawl_digest digest;
            assert_ok(pawl_store_digest(pawl_store_writer(store), range, &digest));
            if (digest.rows == 0)
                continue;
            assert_ok(pawl_store_remove_range(store, range));
            assert_ok(pawl_store_commit(store));
            removed = true;
        }
        assert_ok(pawl_store_close(store));
    }
    assert_true(removed);
    assert_ok(pawl_replay(&options, &report, &bed.error));
    assert_true(report.live.differences > 0);
    assert_contains(report.live.first.text, "workspace 1");
    assert_int_equal(report.checkpoint.differences, 0);
    bed_end(&bed);
}

/* --- the checkpoint --- */

static const char tally[] =
    "{\"schema\": 1, \"package\": \"l\", \"entities\": {\"Tally\": {\"key\": [\"k\"],"
    " \"fields\": {\"k\": {\"type\": \"int64\"}, \"n\": {\"type\": \"int64\"}}}},"
    " \"projectors\": {\"tally\": {\"on\": [\"t.Bill\"], \"do\": [{\"upsert\": \"Tally\","
    " \"key\": {\"k\": \"1\"}, \"set\": {\"n\": \"coalesce(n, 0) + 1\"}}]}}}";

static const char tally_alone[] =
    "{\"schema\": 1, \"package\": \"l\", \"entities\": {\"Tally\": {\"key\": [\"k\"],"
    " \"fields\": {\"k\": {\"type\": \"int64\"}, \"n\": {\"type\": \"int64\"}}}}}";

static struct twice life;

static int live_and_die(void)
{
    twice_open(&life);
    twice_bill_many(&life, 60);
    if (pawl_lanes_wait(life.engine, NULL, 300 * PAWL_SECOND, &life.error) != PAWL_OK)
        return 1;
    _exit(0);
}

static uint64_t operations_in_checkpoints(struct twice *t)
{
    uint64_t sum = 0;
    for (unsigned shard = 0; shard < t->options.shards; shard++) {
        char path[400];
        pawl_store *store;
        snprintf(path, sizeof path, "%s/checkpoint/%u", t->dir, shard);
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_DURABLE, .read_only = true};
        assert_ok(lmdb_store_open(&options, NULL, &store, &t->error));
        pawl_reader *snapshot;
        assert_ok(pawl_store_snapshot(store, &snapshot));
        for (uint32_t p = shard; p < t->options.partitions; p += t->options.shards) {
            uint64_t applied, scanned;
            assert_ok(cursor_peek(snapshot, (uint16_t)p, 1, 1, &applied, &scanned));
            sum += applied;
        }
        pawl_store_release(store, snapshot);
        assert_ok(pawl_store_close(store));
    }
    return sum;
}

static void check_tallies(struct twice *t, unsigned bills)
{
    for (unsigned i = 0; i < TWICE_WORKSPACES; i++) {
        pawl_text text;
        char want[32];
        assert_ok(pawl_entity_get(t->engine, i + 1, "l.Tally", (pawl_bytes){"[1]", 3}, NULL, &text, &t->error));
        snprintf(want, sizeof want, "\"n\":%u", bills / TWICE_WORKSPACES);
        assert_contains(text.data, want);
        pawl_text_free(&text);
    }
}

TEST(after_a_loss_of_power_the_tables_of_lanes_come_from_the_checkpoint_too)
{
    struct twice t;
    twice_make(&t);
    t.knobs.boot_id = "this boot";
    t.knobs.checkpoint_rows = 0; /* or closing would not wait for all operations */
    twice_begin(&t);
    assert_ok(pawl_schema_apply(t.engine, tally, NULL, &t.error));
    twice_bill_many(&t, 300);
    assert_ok(pawl_lanes_wait(t.engine, NULL, 300 * PAWL_SECOND, &t.error));
    twice_close(&t);
    assert_int_equal(operations_in_checkpoints(&t), 300);

    life = t;
    assert_int_equal(in_child(live_and_die), 0);
    for (unsigned i = 0; i < TWICE_WORKSPACES; i++)
        t.billed[i] += 60 / TWICE_WORKSPACES;
    t.knobs.boot_id = "the next boot";
    twice_open(&t);
    assert_int_equal(twice_figures(&t).taken_over, t.options.shards);
    assert_ok(pawl_lanes_wait(t.engine, NULL, 300 * PAWL_SECOND, &t.error));
    check_tallies(&t, 360);
    twice_close(&t);
    twice_check(&t);
    twice_remove(&t);
}

TEST(rows_that_are_read_though_nobody_fills_them_any_more_come_from_the_checkpoint_too)
{
    struct twice t;
    twice_make(&t);
    t.knobs.boot_id = "this boot";
    t.knobs.checkpoint_rows = 0; /* or closing would not wait for all operations */
    twice_begin(&t);
    assert_ok(pawl_schema_apply(t.engine, tally, NULL, &t.error));
    twice_bill_many(&t, 300);
    assert_ok(pawl_lanes_wait(t.engine, NULL, 300 * PAWL_SECOND, &t.error));
    assert_ok(pawl_schema_apply(t.engine, tally_alone, NULL, &t.error));
    twice_bill_many(&t, 60);
    twice_close(&t);
    assert_int_equal(operations_in_checkpoints(&t), 300);

    life = t;
    assert_int_equal(in_child(live_and_die), 0);
    for (unsigned i = 0; i < TWICE_WORKSPACES; i++)
        t.billed[i] += 60 / TWICE_WORKSPACES;
    t.knobs.boot_id = "the next boot";
    twice_open(&t);
    assert_int_equal(twice_figures(&t).taken_over, t.options.shards);
    check_tallies(&t, 300);
    twice_close(&t);
    twice_check(&t);
    twice_remove(&t);
}

/* --- how much it holds --- */

static const char tally_all[] =
    "{\"schema\": 1, \"package\": \"l\", \"entities\": {\"Tally\": {\"key\": [\"k\"],"
    " \"fields\": {\"k\": {\"type\": \"int64\"}, \"n\": {\"type\": \"int64\"}}}},"
    " \"projectors\": {\"tally\": {\"on\": [\"t.Bill\"],"
    " \"do\": [{\"upsert\": \"Tally\", \"key\": {\"k\": \"$event.offset\"}, \"set\": {\"n\": \"0\"}},"
    " {\"update\": \"Tally\", \"where\": \"n >= 0\", \"set\": {\"n\": \"n + 1\"}}]}}}";

TEST(a_checkpoint_is_full_by_an_operation_of_many_rows_and_not_by_the_next_one)
{
    const unsigned rows = 150;
    struct twice t;
    twice_make(&t);
    t.options.partitions = t.options.shards = 1;
    t.knobs.checkpoint_rows = 100;
    t.knobs.checkpoint_age = 3600 * PAWL_SECOND;
    twice_begin(&t);
    assert_ok(pawl_schema_apply(t.engine, tally_all, NULL, &t.error));
    for (unsigned i = 0; i < rows; i++)
        assert_ok(twice_bill(&t, 0));
    assert_ok(pawl_lanes_wait(t.engine, NULL, 300 * PAWL_SECOND, &t.error));
    twice_close(&t);
    twice_open(&t);
    while (twice_figures(&t).checkpoints_ready < t.options.shards)
        twice_pause();
    /* It may have written the last operation already, if it was behind when the engine was closed. */
    uint64_t before = twice_figures(&t).checkpoint_rows;
    assert_ok(twice_bill(&t, 0));
    while (twice_figures(&t).checkpoint_rows <= before + rows)
        twice_pause();
    twice_close(&t);
    twice_check(&t);
    twice_remove(&t);
}

/* --- a generation that is gone --- */

static const char tally_each[] =
    "{\"schema\": 1, \"package\": \"l\", \"entities\": {\"Tally\": {\"key\": [\"k\"],"
    " \"fields\": {\"k\": {\"type\": \"int64\"}}}}, \"projectors\": {\"tally\": {\"on\": [\"t.Bill\"],"
    " \"do\": [{\"upsert\": \"Tally\", \"key\": {\"k\": \"$event.offset\"}, \"set\": {}}]}}}";

static _Atomic unsigned pieces;

static void count_piece(void *arg, const char *what)
{
    const unsigned *dies_at = arg;
    if (strcmp(what, "rows of a checkpoint are removed") == 0 && atomic_fetch_add(&pieces, 1) + 1 == *dies_at)
        _exit(55);
}

static int rebuild_and_die(void)
{
    twice_open(&life);
    if (pawl_lane_rebuild(life.engine, "l.tally", &life.error) != PAWL_OK)
        return 1;
    for (;;)
        twice_pause();
}

struct stored {
    uint64_t cursors, old, rebuilt;
};

static bool count_stored(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct stored *s = arg;
    uint32_t table = key_table(key);
    s->cursors += table == TABLE_LANE;
    s->old += table >> SCHEMA_TABLE_BITS == 1;
    s->rebuilt += table >> SCHEMA_TABLE_BITS == 2;
    return true;
}

static struct stored stored_in_checkpoint(struct twice *t)
{
    struct stored stored = {0};
    char path[400];
    pawl_store *store;
    pawl_reader *snapshot;
    snprintf(path, sizeof path, "%s/checkpoint/0", t->dir);
    struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_DURABLE, .read_only = true};
    assert_ok(lmdb_store_open(&options, NULL, &store, &t->error));
    assert_ok(pawl_store_snapshot(store, &snapshot));
    assert_ok(pawl_store_scan(snapshot, (pawl_range){.space = STATE_SPACE}, false, count_stored, &stored));
    pawl_store_release(store, snapshot);
    assert_ok(pawl_store_close(store));
    return stored;
}

TEST(a_checkpoint_removes_a_generation_that_is_gone_in_pieces_and_goes_on_with_it_after_a_crash)
{
    static unsigned dies_at = 3, never = 0;
    const unsigned rows = 1500; /* three pieces */
    struct twice t;
    twice_make(&t);
    t.options.partitions = t.options.shards = 1;
    t.knobs.checkpoint_rows = 0;
    t.knobs.step = count_piece;
    t.knobs.arg = &never;
    twice_begin(&t);
    assert_ok(pawl_schema_apply(t.engine, tally_each, NULL, &t.error));
    twice_bill_flying(&t, rows);
    assert_ok(pawl_lanes_wait(t.engine, NULL, 300 * PAWL_SECOND, &t.error));
    (void)twice_wait(&t, 0);
    twice_close(&t);
    struct stored stored = stored_in_checkpoint(&t);
    assert_int_equal(stored.old, rows);
    assert_int_equal(stored.cursors, 1);
    assert_int_equal(atomic_load(&pieces), 0);

    life = t;
    life.knobs.arg = &dies_at;
    assert_int_equal(in_child(rebuild_and_die), 55);
    stored = stored_in_checkpoint(&t);
    assert_true(stored.old > 0 && stored.old < rows);
    assert_int_equal(stored.cursors, 2);

    twice_open(&t);
    while (atomic_load(&pieces) == 0)
        twice_pause();
    twice_close(&t); /* the piece that has begun is its last */
    stored = stored_in_checkpoint(&t);
    assert_int_equal(stored.old, 0);
    assert_int_equal(stored.rebuilt, rows);
    assert_int_equal(stored.cursors, 1);
    twice_check(&t);
    twice_remove(&t);
}

/* All rows of a derived state. */
static pawl_digest derived_until(struct lanes_bed *bed, const char *name, uint64_t until, bool reproject)
{
    char to[400], path[500];
    pawl_state_report report;
    pawl_digest sum = {0};
    snprintf(to, sizeof to, "%s/%s", bed->dir, name);
    pawl_replay_options options = {.dir = bed->path, .to = to, .until = until, .reproject = reproject};
    assert_ok(pawl_replay(&options, &report, &bed->error));
    assert_int_equal(report.lanes.operations, 1);
    for (unsigned shard = 0; shard < bed->options.shards; shard++) {
        pawl_store *store;
        pawl_digest digest;
        snprintf(path, sizeof path, "%s/state/%u", to, shard);
        assert_ok(lmdb_store_open(&(struct lmdb_options){.dir = path}, NULL, &store, &bed->error));
        assert_ok(pawl_store_digest(pawl_store_writer(store), (pawl_range){.space = STATE_SPACE}, &digest));
        assert_ok(pawl_store_close(store));
        sum.low += digest.low;
        sum.rows += digest.rows;
    }
    return sum;
}

TEST(a_replay_up_to_an_offset_keeps_its_last_operation_when_it_is_worked_out_again)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Bill", "ada", 60);
    bed_wait(&bed, "t.totals");
    bed_close(&bed);
    pawl_digest logged = derived_until(&bed, "logged", 100, false);
    pawl_digest again = derived_until(&bed, "again", 100, true);
    assert_int_equal(again.rows, logged.rows);
    assert_int_equal(again.low, logged.low);
    bed_end(&bed);
}

/* A state of then has the operations of then, and goes on from there. */
TEST(a_restore_up_to_an_offset_leaves_operations_of_later_events_behind)
{
    struct twice t;
    pawl_backup_report report;
    char backup[300], restored[300];
    twice_make(&t);
    t.knobs.checkpoint_rows = 0;
    twice_begin(&t);
    assert_ok(pawl_schema_apply(t.engine, tally, NULL, &t.error));
    twice_bill_many(&t, 120);
    assert_ok(pawl_lanes_wait(t.engine, NULL, 300 * PAWL_SECOND, &t.error));
    snprintf(backup, sizeof backup, "%s/backup", t.base);
    snprintf(restored, sizeof restored, "%s/restored", t.base);
    twice_close(&t);
    assert_ok(pawl_backup(&(pawl_backup_options){.dir = t.dir, .to = backup}, &report, &t.error));
    assert_ok(
        pawl_restore(&(pawl_backup_options){.dir = backup, .to = restored, .until = 11}, &report, &t.error));
    snprintf(t.dir, sizeof t.dir, "%s", restored);
    memset(t.billed, 0, sizeof t.billed);
    twice_open(&t);
    twice_bill_many(&t, 6);
    assert_ok(pawl_lanes_wait(t.engine, NULL, 300 * PAWL_SECOND, &t.error));
    for (unsigned i = 0; i < TWICE_WORKSPACES; i++) {
        pawl_text text;
        pawl_workspace workspace;
        char want[32];
        assert_ok(pawl_workspace_get(t.engine, i + 1, NULL, &workspace, &t.error));
        assert_ok(pawl_entity_get(t.engine, i + 1, "l.Tally", (pawl_bytes){"[1]", 3}, NULL, &text, &t.error));
        snprintf(want, sizeof want, "\"n\":%u}", (unsigned)workspace.workspace_offset - 1);
        assert_contains(text.data, want);
        pawl_text_free(&text);
    }
    twice_close(&t);
    pawl_state_report replayed;
    assert_ok(pawl_replay(&(pawl_replay_options){.dir = t.dir, .reproject = true}, &replayed, &t.error));
    assert_int_equal(replayed.live.differences + replayed.lanes.differences, 0);
    twice_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(operations_come_out_the_same_when_they_are_worked_out_again),
        RUN(a_handler_that_looks_at_a_clock_is_found_and_the_first_operation_and_row_are_named),
        RUN(a_long_key_of_a_row_that_differs_is_shown_by_its_beginning),
        RUN(a_replay_derives_what_lanes_have_written_and_finds_a_row_that_is_not_so),
        RUN(a_replay_up_to_an_offset_keeps_its_last_operation_when_it_is_worked_out_again),
        RUN(after_a_loss_of_power_the_tables_of_lanes_come_from_the_checkpoint_too),
        RUN(a_restore_up_to_an_offset_leaves_operations_of_later_events_behind),
        RUN(rows_that_are_read_though_nobody_fills_them_any_more_come_from_the_checkpoint_too),
        RUN(a_checkpoint_is_full_by_an_operation_of_many_rows_and_not_by_the_next_one),
        RUN(a_checkpoint_removes_a_generation_that_is_gone_in_pieces_and_goes_on_with_it_after_a_crash),
    };
    return TEST_MAIN(tests);
}
