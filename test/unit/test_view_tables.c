/* Views of a store, kept current by every row that is put. */
#include "test/lib/view_store.h"

static const struct view_text by_a = {.package = "p", .name = "by_a", .base = "T", .key = "a", .include = "b"};
static const struct view_text some = {.package = "p",
                                      .name = "some",
                                      .base = "T",
                                      .key = "b a",
                                      .include = "id active",
                                      .filter = "active and a > 1"};
static const struct view_text failing = {
    .package = "p", .name = "failing", .base = "T", .key = "a", .filter = "a / c >= 0"};
static const struct view_text unique = {.package = "p", .name = "u", .base = "T", .key = "a", .unique = true};

static uint64_t rows_of(struct view_bed *bed, uint32_t table)
{
    uint64_t rows = 0;
    for (uint16_t p = 0; p < BED_PARTITIONS; p++)
        rows += view_tables_state(&bed->tables, table, p)->state.digest.rows;
    return rows;
}

static uint64_t failed_of(struct view_bed *bed, uint32_t table)
{
    return view_tables_state(&bed->tables, table, 0)->state.failed
           + view_tables_state(&bed->tables, table, 1)->state.failed;
}

static uint64_t equal_of(struct view_bed *bed, uint32_t table)
{
    return view_tables_state(&bed->tables, table, 0)->state.equal
           + view_tables_state(&bed->tables, table, 1)->state.equal;
}

#define ROW(ws, number, ...) (&(struct view_bed_row){.wsid = (ws), .id = (number), __VA_ARGS__})

static void put_and_commit(struct view_bed *bed, const struct view_bed_row *row)
{
    view_bed_put(bed, row);
    view_bed_commit(bed);
}

TEST(a_view_over_an_empty_base_is_complete_at_once_and_follows)
{
    struct view_bed bed;
    view_bed_open(&bed);
    assert_null(view_tables_watch(&bed.tables));
    uint32_t a = view_bed_create(&bed, &by_a), s = view_bed_create(&bed, &some);
    assert_true(view_tables_state(&bed.tables, a, 0)->state.complete);
    assert_true(view_tables_state(&bed.tables, a, 1)->state.complete);
    put_and_commit(&bed, ROW(1, 1, .a = 1, .b = "x"));
    assert_int_equal(rows_of(&bed, a), 1);
    assert_int_equal(rows_of(&bed, s), 0);
    put_and_commit(&bed, ROW(1, 1, .a = 2, .b = "x")); /* another key, and the filter lets it through */
    assert_int_equal(rows_of(&bed, a), 1);
    assert_int_equal(rows_of(&bed, s), 1);
    put_and_commit(&bed, ROW(1, 1, .a = 2, .b = "y")); /* another value, and another key */
    put_and_commit(&bed, ROW(1, 1, .a = 2, .b = "y", .c = 5));
    put_and_commit(&bed, ROW(1, 1, .a = 2, .b = "y", .inactive = true));
    assert_int_equal(rows_of(&bed, a), 1);
    assert_int_equal(rows_of(&bed, s), 0);
    put_and_commit(&bed, ROW(7, 2, .a = 2, .b = "y"));
    put_and_commit(&bed, ROW(1, 1, .removed = true));
    assert_int_equal(rows_of(&bed, a), 1);
    put_and_commit(&bed, ROW(1, 1, .removed = true)); /* it is gone already */
    put_and_commit(&bed, ROW(7, 2, .removed = true));
    assert_int_equal(rows_of(&bed, a) + rows_of(&bed, s), 0);
    view_bed_close(&bed);
}

TEST(a_view_over_rows_covers_nothing_and_is_not_touched_by_puts)
{
    struct view_bed bed;
    view_bed_open(&bed);
    for (uint64_t wsid = 1; wsid <= 12; wsid++)
        view_bed_put(&bed, ROW(wsid, 1, .a = 3));
    view_bed_commit(&bed);
    uint32_t a = view_bed_create(&bed, &by_a);
    assert_false(view_tables_state(&bed.tables, a, 0)->state.complete);
    for (uint64_t wsid = 1; wsid <= 12; wsid++) {
        view_bed_put(&bed, ROW(wsid, 1, .a = 4));
        view_bed_put(&bed, ROW(wsid, 2, .a = 5));
    }
    view_bed_commit(&bed);
    assert_int_equal(rows_of(&bed, a), 0);
    assert_int_equal(views_count_rows(pawl_store_writer(bed.store)), 0);
    view_bed_close(&bed);
}

TEST(rows_that_fail_and_rows_that_are_equal_are_counted)
{
    struct view_bed bed;
    view_bed_open(&bed);
    uint32_t f = view_bed_create(&bed, &failing), u = view_bed_create(&bed, &unique);
    put_and_commit(&bed, ROW(1, 1, .a = 1, .c = 0));
    assert_int_equal(failed_of(&bed, f), 1);
    put_and_commit(&bed, ROW(1, 1, .a = 2, .c = 0));
    assert_int_equal(failed_of(&bed, f), 1);
    put_and_commit(&bed, ROW(1, 1, .a = 2, .c = 1));
    assert_int_equal(failed_of(&bed, f), 0);
    assert_int_equal(rows_of(&bed, f), 1);
    for (uint64_t id = 2; id < 5; id++)
        put_and_commit(&bed, ROW(1, id, .a = 2, .c = 1));
    assert_int_equal(equal_of(&bed, u), 3);
    put_and_commit(&bed, ROW(2, 1, .a = 2, .c = 1)); /* of another workspace */
    assert_int_equal(equal_of(&bed, u), 3);
    put_and_commit(&bed, ROW(1, 3, .a = 4, .c = 1));
    assert_int_equal(equal_of(&bed, u), 2);
    put_and_commit(&bed, ROW(1, 1, .removed = true));
    assert_int_equal(equal_of(&bed, u), 1);
    for (uint64_t id = 8; id < 10; id++)
        put_and_commit(&bed, ROW(1, id, .a = INT64_MIN, .c = 1)); /* nulls are not held to it */
    assert_int_equal(equal_of(&bed, u), 1);
    put_and_commit(&bed, ROW(1, 2, .removed = true));
    assert_int_equal(equal_of(&bed, u), 0);
    view_bed_close(&bed);
}

TEST(what_is_aborted_did_not_happen)
{
    struct view_bed bed;
    view_bed_open(&bed);
    uint32_t a = view_bed_create(&bed, &by_a);
    put_and_commit(&bed, ROW(1, 1, .a = 1));
    view_bed_put(&bed, ROW(1, 1, .a = 2));
    view_bed_put(&bed, ROW(1, 2, .a = 2));
    assert_int_equal(rows_of(&bed, a), 2);
    view_bed_abort(&bed);
    assert_int_equal(rows_of(&bed, a), 1);
    put_and_commit(&bed, ROW(1, 3, .a = 2));
    assert_int_equal(rows_of(&bed, a), 2);
    /* A commit that fails is an abort. */
    view_bed_put(&bed, ROW(1, 1, .a = 9));
    mem_store_disk_fail(bed.disk, (struct mem_store_fault){
                                      .op = MEM_STORE_COMMIT, .countdown = 1, .times = 1, .status = PAWL_EIO});
    assert_status(view_bed_try_commit(&bed), PAWL_EIO);
    put_and_commit(&bed, ROW(1, 4, .a = 2));
    assert_int_equal(rows_of(&bed, a), 3);
    view_bed_close(&bed);
}

/* A view that became known in a transaction that was aborted: its base is empty still. */
TEST(a_refresh_that_was_aborted_is_made_again_by_the_next_put)
{
    struct view_bed bed;
    enum group0_outcome outcome;
    view_bed_open(&bed);
    assert_ok(views_create(bed.group0, &by_a, &outcome, NULL));
    assert_ok(view_bed_refresh(&bed));
    view_bed_abort(&bed);
    put_and_commit(&bed, ROW(1, 1, .a = 1));
    uint32_t a = view_table(1, 0);
    assert_int_equal(rows_of(&bed, a), 1);
    assert_true(view_tables_state(&bed.tables, a, 0)->state.complete);
    assert_true(view_tables_state(&bed.tables, a, 1)->state.complete);
    assert_int_equal(views_count_states(pawl_store_writer(bed.store)), 2);
    view_bed_close(&bed);
}

TEST(while_a_refresh_fails_no_row_is_put)
{
    static const enum mem_store_op ops[] = {MEM_STORE_SCAN, MEM_STORE_GET, MEM_STORE_REMOVE};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct view_bed bed;
        enum group0_outcome outcome;
        view_bed_open(&bed);
        uint32_t a = view_bed_create(&bed, &by_a);
        put_and_commit(&bed, ROW(1, 1, .a = 1));
        assert_ok(views_create(bed.group0, &some, &outcome, NULL));
        if (ops[i] == MEM_STORE_REMOVE) {
            assert_ok(views_named(bed.group0, GROUP0_VIEW_DROP, "p.by_a", &outcome, NULL));
            bed.removing = true;
        }
        mem_store_disk_fail(
            bed.disk, (struct mem_store_fault){.op = ops[i], .countdown = 1, .times = 2, .status = PAWL_EIO});
        assert_status(view_bed_refresh(&bed), PAWL_EIO);
        view_bed_abort(&bed);
        assert_non_null(view_tables_watch(&bed.tables));
        assert_status(view_bed_try_put(&bed, ROW(1, 1, .a = 2)), PAWL_EIO);
        view_bed_abort(&bed);
        put_and_commit(&bed, ROW(1, 1, .a = 3));
        if (ops[i] != MEM_STORE_REMOVE)
            assert_int_equal(rows_of(&bed, a), 1);
        else
            assert_null(view_tables_find(&bed.tables, a));
        assert_non_null(view_tables_find(&bed.tables, view_table(2, 0)));
        view_bed_close(&bed);
    }
}

/* There may be many states, and commands wait meanwhile. A scan would fail here. */
TEST(a_refresh_looks_through_the_states_only_if_a_view_has_gone)
{
    struct view_bed bed;
    enum group0_outcome outcome;
    view_bed_open(&bed);
    view_bed_create(&bed, &by_a);
    view_bed_create(&bed, &some);
    struct group0_command pause = {.kind = GROUP0_VIEW_PAUSE, .paused = true, .name = text_bytes("p.by_a")};
    assert_ok(views_command(bed.group0, &pause, &outcome, NULL));
    mem_store_disk_fail(bed.disk, (struct mem_store_fault){
                                      .op = MEM_STORE_SCAN, .countdown = 1, .times = 1, .status = PAWL_EIO});
    assert_ok(view_bed_refresh(&bed));
    mem_store_disk_fail(bed.disk, (struct mem_store_fault){0});
    view_bed_commit(&bed);
    assert_int_equal(views_count_states(pawl_store_writer(bed.store)), 4);
    assert_ok(views_named(bed.group0, GROUP0_VIEW_DROP, "p.by_a", &outcome, NULL));
    for (int i = 0; i < 2; i++) { /* an aborted one did not happen */
        assert_ok(view_bed_refresh(&bed));
        assert_int_equal(views_count_states(pawl_store_writer(bed.store)), 2);
        if (i == 0)
            view_bed_abort(&bed);
    }
    view_bed_commit(&bed);
    view_bed_close(&bed);
}

TEST(a_dropped_view_loses_its_states_at_once_and_its_rows_in_pieces)
{
    struct view_bed bed;
    enum group0_outcome outcome;
    bool more;
    view_bed_open(&bed);
    uint32_t a = view_bed_create(&bed, &by_a), s = view_bed_create(&bed, &some);
    for (uint64_t id = 1; id <= 30; id++)
        view_bed_put(&bed, ROW(1 + id % 5, id, .a = 5, .b = "x"));
    view_bed_commit(&bed);
    assert_int_equal(rows_of(&bed, a), 30);
    assert_ok(views_named(bed.group0, GROUP0_VIEW_DROP, "p.by_a", &outcome, NULL));
    assert_ok(view_bed_refresh(&bed));
    bed.removing = true;
    view_bed_commit(&bed);
    assert_int_equal(views_count_states(pawl_store_writer(bed.store)), 2);
    assert_int_equal(views_count_rows(pawl_store_writer(bed.store)), 60);
    assert_null(view_tables_find(&bed.tables, a));
    /* A restart in the middle. */
    assert_ok(view_tables_remove_piece(&bed.tables, 12, &more));
    assert_true(more);
    view_bed_commit(&bed);
    assert_int_equal(views_count_rows(pawl_store_writer(bed.store)), 48);
    view_tables_release(&bed.tables);
    mem_store_disk_crash(bed.disk);
    view_bed_open_tables(&bed);
    assert_ok(view_bed_refresh(&bed));
    put_and_commit(&bed, ROW(1, 99, .a = 6, .b = "x"));
    int pieces = 0;
    do {
        assert_ok(view_tables_remove_piece(&bed.tables, 12, &more));
        view_bed_commit(&bed);
        pieces += more;
    } while (more);
    assert_int_equal(pieces, 2);
    bed.removing = false;
    assert_true(view_bed_right(&bed));
    assert_int_equal(rows_of(&bed, s), 31);
    assert_int_equal(views_count_rows(pawl_store_writer(bed.store)), 31);
    view_bed_close(&bed);
}

TEST(the_tables_of_complete_views_can_be_audited)
{
    struct view_bed bed;
    struct table_digest list[2];
    view_bed_open(&bed);
    uint32_t a = view_bed_create(&bed, &by_a);
    put_and_commit(&bed, ROW(1, 1, .a = 1));
    uint32_t s = view_bed_create(&bed, &some);
    size_t complete = 0;
    for (uint16_t p = 0; p < BED_PARTITIONS; p++) {
        size_t count = view_tables_digests(&bed.tables, p, list, 2);
        complete += count;
        assert_int_equal(list[0].table, a);
        if (count == 2)
            assert_int_equal(list[1].table, s);
        assert_int_equal(view_tables_digests(&bed.tables, p, list, 0), count);
    }
    assert_int_equal(complete, 3); /* the row lies in one partition: there the second is not complete */
    view_bed_close(&bed);
}

TEST(random_puts_aborts_restarts_and_changes_of_views)
{
    uint64_t seed = test_seed(11);
    for (uint64_t round = 0; round < (TEST_SANITIZED ? 10 : 40); round++) {
        static const struct view_text *const texts[] = {&by_a, &some, &failing, &unique};
        static const char *const names[] = {"p.by_a", "p.some", "p.failing", "p.u"};
        uint64_t random = seed + round;
        struct view_bed bed;
        enum group0_outcome outcome;
        view_bed_open(&bed);
        bed.removing = true;
        for (int step = 0; step < 120; step++) {
            size_t which = (size_t)test_below(&random, 4);
            uint64_t what = test_below(&random, 40);
            bool more;
            for (uint64_t k = test_below(&random, 6); k > 0; k--)
                view_bed_put_random(&bed, &random);
            if (what == 0) {
                assert_ok(views_create(bed.group0, texts[which], &outcome, NULL));
            } else if (what == 1) {
                assert_ok(views_named(bed.group0, GROUP0_VIEW_DROP, names[which], &outcome, NULL));
            } else if (what == 2) {
                view_bed_commit(&bed);
                assert_ok(view_tables_remove_piece(&bed.tables, 5, &more));
            } else if (what == 3) {
                view_tables_release(&bed.tables);
                mem_store_disk_crash(bed.disk);
                view_bed_open_tables(&bed);
                assert_ok(view_bed_refresh(&bed));
            }
            if (what < 2)
                assert_ok(view_bed_refresh(&bed));
            if (test_below(&random, 5) == 0)
                view_bed_abort(&bed);
            else if (test_below(&random, 2))
                assert_ok(view_bed_try_commit(&bed));
            if (bed.tables.refreshed && !bed.tables.fresh)
                assert_true(view_bed_right(&bed));
        }
        view_bed_close(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_view_over_an_empty_base_is_complete_at_once_and_follows),
        RUN(a_view_over_rows_covers_nothing_and_is_not_touched_by_puts),
        RUN(rows_that_fail_and_rows_that_are_equal_are_counted),
        RUN(what_is_aborted_did_not_happen),
        RUN(a_refresh_that_was_aborted_is_made_again_by_the_next_put),
        RUN(while_a_refresh_fails_no_row_is_put),
        RUN(a_refresh_looks_through_the_states_only_if_a_view_has_gone),
        RUN(a_dropped_view_loses_its_states_at_once_and_its_rows_in_pieces),
        RUN(the_tables_of_complete_views_can_be_audited),
        RUN(random_puts_aborts_restarts_and_changes_of_views),
    };
    return TEST_MAIN(tests);
}
