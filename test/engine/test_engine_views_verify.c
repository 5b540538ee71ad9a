/* test_engine_views_verify.c: damage to views is found, and named: by the scrub while the engine runs, and by
 * verify. */
#include <pawl/admin.h>

#include "test/lib/copy.h"
#include "test/lib/view_bed.h"

#define SHARDS         2
#define ALERT_PATIENCE (60 * PAWL_SECOND) /* a round of the scrub takes less than one */

static const char *const sides[] = {"state", "checkpoint"};

static void begin(struct view_bed *bed)
{
    view_bed_begin(bed, SHARDS);
    view_bed_fill(bed, 30);
    assert_bed_ok(bed, view_bed_create(bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
    assert_bed_ok(bed, view_bed_create(bed, "t.rich", "t.Invoice", "cents", NULL, "100 / cents > 5", false));
    assert_bed_ok(bed, view_bed_create(bed, "t.by_last", "t.Last", "cents", NULL, NULL, false));
    assert_bed_ok(bed, view_bed_create(bed, "t.by_total", "t.Total", "cents", NULL, NULL, false));
    view_bed_wait(bed, "t.v");
    view_bed_wait(bed, "t.rich");
    view_bed_wait(bed, "t.by_last");
    view_bed_wait(bed, "t.by_total");
    view_bed_fill(bed, 3);
}

static pawl_state_report audit(struct view_bed *bed)
{
    pawl_state_report report;
    pawl_replay_options options = {.dir = bed->path, .audit = true};
    assert_bed_ok(bed, pawl_replay(&options, &report, &bed->error));
    return report;
}

static void assert_clean(struct view_bed *bed, uint32_t views)
{
    pawl_state_report report = audit(bed);
    if (report.live.differences + report.checkpoint.differences > 0)
        print_error("%s; %s\n", report.live.first.text, report.checkpoint.first.text);
    assert_int_equal(report.live.differences, 0);
    assert_int_equal(report.checkpoint.differences, 0);
    assert_int_equal(report.live.views, views);
    assert_int_equal(report.checkpoint.views, views);
}

/* --- damage --- */

struct stored {
    uint32_t table; /* of the view; 0: any */
    bool state;     /* the view's state, and not a row */
    uint8_t key[600], value[4000];
    size_t key_size, value_size;
};

static bool take_stored(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct stored *s = arg;
    uint32_t table = key_table(key);
    uint16_t partition;
    if (s->state && !view_state_key_read(key, &partition, &table))
        return true;
    if (table != s->table)
        return true;
    memcpy(s->key, key.data, s->key_size = key.size);
    memcpy(s->value, value.data, s->value_size = value.size);
    return false;
}

enum damage { FLIP_VALUE, FLIP_STATE, LOSE_ROW, ADD_ROW };

static void spoil(pawl_store *store, struct stored *s, enum damage damage, size_t at)
{
    pawl_bytes key = {s->key, s->key_size};
    if (damage == LOSE_ROW) {
        assert_ok(pawl_store_remove(store, VIEW_SPACE, key));
        return;
    }
    s->value[damage == FLIP_STATE ? at : s->value_size - 1] ^= 4;
    if (damage == ADD_ROW)
        s->key[s->key_size - 1] ^= 0x80; /* of another record */
    assert_ok(pawl_store_put(store, VIEW_SPACE, key, (pawl_bytes){s->value, s->value_size}));
}

static uint32_t table_of(struct view_bed *bed, const char *view)
{
    return view_bed_status(bed, view).table;
}

/* In the first shard whose store has such a row. The engine is closed. */
static void do_damage(struct view_bed *bed, const char *side, uint32_t table, enum damage damage, size_t at)
{
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        char path[400];
        pawl_store *store;
        struct stored s = {.table = table, .state = damage == FLIP_STATE};
        uint8_t from[KEY_TABLE];
        snprintf(path, sizeof path, "%s/%s/%u", bed->path, side, shard);
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_DURABLE, .boot_id = bed->knobs.boot_id};
        assert_bed_ok(bed, lmdb_store_open(&options, NULL, &store, &bed->error));
        put_u32_sorted(from, s.state ? TABLE_VIEW : table);
        pawl_range range = {.space = VIEW_SPACE, .from = {from, sizeof from}};
        assert_ok(pawl_store_scan(pawl_store_writer(store), range, false, take_stored, &s));
        if (s.key_size > 0) {
            spoil(store, &s, damage, at);
            assert_ok(pawl_store_commit(store));
        }
        assert_ok(pawl_store_close(store));
        if (s.key_size > 0)
            return;
    }
    fail();
}

/* --- verify --- */

TEST(views_that_are_right_agree_with_the_log)
{
    struct view_bed bed;
    begin(&bed);
    view_bed_close(&bed);
    assert_clean(&bed, 4 * 8);
    view_bed_end(&bed);
}

TEST(verify_finds_a_row_of_a_view_that_changed_by_itself_and_names_it)
{
    static const struct {
        const char *view;
        enum damage damage;
        size_t at;
        const char *words;
        const char *more;
    } cases[] = {
        {"t.v", FLIP_VALUE, 0, "have different values", "view t.v, workspace "},
        {"t.v", LOSE_ROW, 0, "the log has it", ", record "},
        {"t.v", ADD_ROW, 0, "the log has not", ", record "},
        {"t.by_last", FLIP_VALUE, 0, "have different values", "row {\"customer\""},
        {"t.by_total", FLIP_VALUE, 0, "have different values", "row {\"customer\""},
        {"t.by_total", LOSE_ROW, 0, "the log has it", "view t.by_total, workspace "},
        {"t.rich", FLIP_STATE, 8, "but not the digest that it keeps", "view t.rich"},
        {"t.rich", FLIP_STATE, 1, "is not one", "view t.rich"},              /* flags */
        {"t.rich", FLIP_STATE, 40, "but not what it counts", "view t.rich"}, /* failed */
        {"t.by_total", FLIP_STATE, 24, "but not the digest that it keeps", "view t.by_total"},
        {"t.v", FLIP_STATE, 4, "is not one", "view t.v"}, /* base */
    };
    struct view_bed bed;
    char copy[400];
    begin(&bed);
    uint32_t tables[sizeof cases / sizeof cases[0]];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        tables[i] = table_of(&bed, cases[i].view);
    view_bed_close(&bed);
    snprintf(copy, sizeof copy, "%s/copy", bed.dir);
    test_dir_copy(bed.path, copy);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        size_t which = i / 2, wrong = i % 2;
        do_damage(&bed, sides[wrong], tables[which], cases[which].damage, cases[which].at);
        pawl_state_report report = audit(&bed);
        const pawl_state_side *bad = wrong ? &report.checkpoint : &report.live;
        const pawl_state_side *good = wrong ? &report.live : &report.checkpoint;
        if (bad->differences != 1 || good->differences != 0)
            print_error("case %zu: %s; %s\n", i, bad->first.text, good->first.text);
        assert_int_equal(good->differences, 0);
        assert_int_equal(bad->differences, 1);
        assert_contains(bad->first.text, cases[which].words);
        assert_contains(bad->first.text, cases[which].more);
        assert_contains(bad->first.text, wrong ? "the checkpoint store" : "the live store");
        test_dir_remove(bed.path);
        test_dir_copy(copy, bed.path);
    }
    view_bed_end(&bed);
}

/* A view that covers a part has rows of that part, and no others. */
TEST(verify_compares_what_a_half_built_view_covers)
{
    struct view_bed bed;
    view_bed_begin(&bed, SHARDS);
    view_bed_fill(&bed, 100);
    assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 500, &bed.error));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.by_total", "t.Total", "cents", NULL, NULL, false));
    while (view_bed_status(&bed, "t.v").rows_done == 0)
        wait_pause(PAWL_MILLISECOND);
    assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, true, &bed.error));
    view_bed_fill(&bed, 3);
    pawl_view_status status = view_bed_status(&bed, "t.v");
    assert_int_equal(status.state, PAWL_VIEW_BUILDING);
    assert_true(status.rows > 0 && status.rows < 103 * VIEW_TENANTS);
    view_bed_close(&bed);
    assert_clean(&bed, 2 * 8);

    do_damage(&bed, "state", status.table, LOSE_ROW, 0);
    pawl_state_report report = audit(&bed);
    assert_int_equal(report.live.differences, 1);
    assert_contains(report.live.first.text, "view t.v, workspace ");
    assert_contains(report.live.first.text, "the log has it, the live store has not");
    view_bed_end(&bed);
}

TEST(a_half_built_view_that_has_a_row_that_it_does_not_cover_is_found)
{
    struct view_bed bed;
    view_bed_begin(&bed, SHARDS);
    view_bed_fill(&bed, 5);
    assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, true, &bed.error));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
    uint32_t table = table_of(&bed, "t.v");
    assert_bed_ok(&bed, view_bed_create(&bed, "t.w", "t.Note", "text", NULL, NULL, false));
    view_bed_close(&bed);

    /* The derived rows of t.v, put where nothing is covered. */
    char to[400], path[500];
    snprintf(to, sizeof to, "%s/to", bed.dir);
    pawl_state_report report;
    pawl_replay_options options = {.dir = bed.path, .to = to};
    assert_bed_ok(&bed, pawl_replay(&options, &report, &bed.error));
    assert_int_equal(report.live.differences, 0);
    pawl_store *store;
    struct stored s = {.table = table};
    uint8_t from[KEY_TABLE];
    put_u32_sorted(from, table);
    snprintf(path, sizeof path, "%s/state/0", to);
    struct lmdb_options opening = {.dir = path, .mode = PAWL_STORE_DURABLE};
    assert_bed_ok(&bed, lmdb_store_open(&opening, NULL, &store, &bed.error));
    assert_ok(pawl_store_scan(pawl_store_writer(store),
                              (pawl_range){.space = VIEW_SPACE, .from = {from, sizeof from}}, false,
                              take_stored, &s));
    assert_ok(pawl_store_close(store));
    assert_true(s.key_size > 0);
    snprintf(path, sizeof path, "%s/state/0", bed.path);
    assert_bed_ok(&bed, lmdb_store_open(&opening, NULL, &store, &bed.error));
    assert_ok(pawl_store_put(store, VIEW_SPACE, (pawl_bytes){s.key, s.key_size},
                             (pawl_bytes){s.value, s.value_size}));
    assert_ok(pawl_store_commit(store));
    assert_ok(pawl_store_close(store));
    report = audit(&bed);
    assert_int_equal(report.live.differences, 1);
    assert_contains(report.live.first.text, "the live store has it, and does not cover it");
    assert_int_equal(report.checkpoint.differences, 0);
    view_bed_end(&bed);
}

TEST(a_replayed_directory_has_views_that_are_complete)
{
    struct view_bed bed;
    char to[300];
    begin(&bed);
    assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, true, &bed.error));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.late", "t.Invoice", "cents", NULL, NULL, false));
    uint64_t rows = view_bed_status(&bed, "t.v").rows;
    view_bed_close(&bed);
    snprintf(to, sizeof to, "%s/to", bed.dir);
    pawl_state_report report;
    pawl_replay_options options = {.dir = bed.path, .to = to};
    assert_bed_ok(&bed, pawl_replay(&options, &report, &bed.error));
    assert_int_equal(report.live.differences, 0);

    struct view_bed derived = bed;
    snprintf(derived.path, sizeof derived.path, "%s", to);
    derived.options.read_only = true;
    assert_bed_ok(&derived,
                  engine_open(derived.path, &derived.options, &derived.knobs, &derived.engine, &derived.error));
    assert_int_equal(view_bed_status(&derived, "t.v").rows, rows);
    assert_int_equal(view_bed_status(&derived, "t.late").rows, 33 * VIEW_TENANTS);
    view_bed_check(&derived);
    for (uint32_t i = 0; i < SHARDS; i++) {
        pawl_reader *snapshot;
        assert_ok(pawl_store_snapshot(derived.engine->shards[i].store, &snapshot));
        const struct view_list *list = engine_views(derived.engine);
        for (size_t k = 0; k < list->count; k++)
            for (size_t p = 0; p < derived.engine->shards[i].partitions.count; p++) {
                struct view_state state;
                uint32_t generations[2];
                (void)view_generations(engine_schema(derived.engine), list->entries[k].view, generations);
                view_state_init(&state, NULL, partition_set_at(&derived.engine->shards[i].partitions, p),
                                view_table(list->entries[k].view->number, generations[0]), 0);
                assert_ok(view_state_read(&state, snapshot, &bed.error));
                assert_true(state.complete);
                view_state_release(&state);
            }
        pawl_store_release(derived.engine->shards[i].store, snapshot);
    }
    assert_ok(pawl_close(derived.engine));
    view_bed_end(&bed);
}

/* --- the scrub --- */

static pawl_alert wait_for_alert(struct view_bed *bed, enum pawl_alert_kind kind)
{
    pawl_alert alerts[16];
    size_t count;
    uint64_t until = clock_boot_ns() + ALERT_PATIENCE;
    while (clock_boot_ns() < until) {
        pawl_alerts(bed->engine, alerts, sizeof alerts / sizeof alerts[0], &count);
        for (size_t i = 0; i < count && i < sizeof alerts / sizeof alerts[0]; i++)
            if (alerts[i].kind == kind)
                return alerts[i];
        wait_pause(PAWL_MILLISECOND);
    }
    fail_msg("no alert was raised");
    return (pawl_alert){0};
}

TEST(the_scrub_finds_a_row_of_a_view_that_changed_by_itself_and_a_rebuild_mends_it)
{
    static const struct {
        const char *view;
        enum damage damage;
        size_t at;
    } cases[] = {{"t.v", FLIP_VALUE, 0}, {"t.by_total", LOSE_ROW, 0}, {"t.rich", FLIP_STATE, 9}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        struct view_bed bed;
        size_t which = i / 2, wrong = i % 2;
        char words[100];
        begin(&bed);
        uint32_t table = table_of(&bed, cases[which].view);
        view_bed_close(&bed);
        do_damage(&bed, sides[wrong], table, cases[which].damage, cases[which].at);
        bed.knobs.scrub_pause = PAWL_MILLISECOND;
        view_bed_open(&bed);
        pawl_alert alert = wait_for_alert(&bed, wrong ? PAWL_ALERT_CHECKPOINT : PAWL_ALERT_LIVE);
        snprintf(words, sizeof words, "view %s (table %u): rows of the %s state", cases[which].view, table,
                 wrong ? "checkpoint" : "live");
        assert_contains(alert.text, words);
        assert_int_equal(alert.table, table);
        assert_bed_ok(&bed, pawl_view_rebuild(bed.engine, cases[which].view, &bed.error));
        view_bed_wait(&bed, cases[which].view);
        while (view_bed_status(&bed, cases[which].view).rebuilding)
            wait_pause(PAWL_MILLISECOND);
        view_bed_close(&bed);
        assert_clean(&bed, 4 * 8);
        view_bed_end(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(views_that_are_right_agree_with_the_log),
        RUN(verify_finds_a_row_of_a_view_that_changed_by_itself_and_names_it),
        RUN(verify_compares_what_a_half_built_view_covers),
        RUN(a_half_built_view_that_has_a_row_that_it_does_not_cover_is_found),
        RUN(a_replayed_directory_has_views_that_are_complete),
        RUN(the_scrub_finds_a_row_of_a_view_that_changed_by_itself_and_a_rebuild_mends_it),
    };
    return TEST_MAIN(tests);
}
