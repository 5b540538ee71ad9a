/* Views are built in slices between rows that are put; every commit is right (T1). */
#include <inttypes.h>

#include "base/id.h"
#include "core/tablet/tablet.h"
#include "core/view/unique.h"
#include "test/lib/view_store.h"

static const struct view_text texts[] = {
    {.package = "p", .name = "v0", .base = "T", .key = "a", .include = "b"},
    {.package = "p", .name = "v1", .base = "T", .key = "b", .include = "id", .filter = "a > 2"},
    {.package = "p", .name = "v2", .base = "T", .key = "a", .unique = true},
    {.package = "p", .name = "v3", .base = "T", .key = "c", .filter = "a / c >= 0"},
};

static void fill(struct view_bed *bed, uint64_t *random, int rows)
{
    for (int i = 0; i < rows; i++)
        view_bed_put_random(bed, random);
    view_bed_commit(bed);
}

static int try_slice(struct view_bed *bed, uint32_t tablets, uint32_t tablet, const uint32_t *views,
                     size_t count, uint32_t rows_max, struct slice_report *ret_report)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    uint32_t base = view_bed_base(bed);
    struct slice slice = {.partition = (uint16_t)(tablet / (tablets / BED_PARTITIONS)),
                          .base = base,
                          .views = views,
                          .count = count,
                          .range = tablet_range(tablets, tablet, base, from, to),
                          .rows_max = rows_max};
    return slice_put(&bed->tables, &slice, ret_report);
}

/* All slices of a tablet, each with a commit. Returns how many rows were read. */
static uint64_t build(struct view_bed *bed, uint32_t tablets, uint32_t tablet, const uint32_t *views,
                      size_t count, uint32_t rows_max)
{
    uint64_t rows = 0;
    for (struct slice_report report = {0}; !report.covered; rows += report.rows) {
        assert_ok(try_slice(bed, tablets, tablet, views, count, rows_max, &report));
        assert_true(report.rows <= rows_max);
        view_bed_commit(bed);
    }
    return rows;
}

static uint64_t base_rows(struct view_bed *bed)
{
    uint8_t from[KEY_TABLE], to[KEY_TABLE];
    pawl_digest digest;
    put_u32_sorted(from, view_bed_base(bed));
    put_u32_sorted(to, view_bed_base(bed) + 1);
    assert_ok(pawl_store_digest(pawl_store_writer(bed->store),
                                (pawl_range){.space = STATE_SPACE, .from = {from, 4}, .to = {to, 4}}, &digest));
    return digest.rows;
}

static bool is_complete(struct view_bed *bed, uint32_t view)
{
    return view_tables_state(&bed->tables, view, 0)->state.complete
           && view_tables_state(&bed->tables, view, 1)->state.complete;
}

TEST(slices_of_any_size_cover_everything)
{
    uint64_t random = test_seed(5);
    for (uint32_t rows_max = 1; rows_max < 200; rows_max += rows_max < 8 ? 1 : 61) {
        struct view_bed bed;
        view_bed_open(&bed);
        fill(&bed, &random, 150);
        uint32_t view = view_bed_create(&bed, &texts[0]);
        uint64_t rows = 0;
        for (uint32_t tablet = 0; tablet < 8; tablet++)
            rows += build(&bed, 8, tablet, &view, 1, rows_max);
        assert_int_equal(rows, base_rows(&bed));
        assert_true(is_complete(&bed, view));
        assert_int_equal(views_count_rows(pawl_store_writer(bed.store)), rows);
        uint64_t scanned = view_tables_state(&bed.tables, view, 0)->state.scanned
                           + view_tables_state(&bed.tables, view, 1)->state.scanned;
        assert_int_equal(scanned, rows);
        struct slice_report report = {.rows = 7};
        assert_ok(try_slice(&bed, 2, 0, &view, 1, 1, &report)); /* again: nothing is left */
        assert_true(report.covered);
        assert_int_equal(report.rows, 0);
        view_bed_close(&bed);
    }
}

/* What is put behind a slice, in the same transaction and later, finds its rows covered. */
TEST(a_slice_reads_what_its_own_transaction_has_put)
{
    struct view_bed bed;
    struct slice_report report;
    view_bed_open(&bed);
    for (uint64_t id = 1; id <= 10; id++)
        for (uint64_t wsid = 1; wsid <= 10; wsid++)
            view_bed_put(&bed, &(struct view_bed_row){.wsid = wsid, .id = id, .a = 1, .b = "old"});
    view_bed_commit(&bed);
    uint32_t view = view_bed_create(&bed, &texts[0]);
    for (uint64_t wsid = 1; wsid <= 10; wsid++)
        view_bed_put(&bed, &(struct view_bed_row){.wsid = wsid, .id = 5, .a = 2, .b = "new"});
    for (uint32_t tablet = 0; tablet < 2; tablet++)
        assert_ok(try_slice(&bed, 2, tablet, &view, 1, 1000, &report));
    for (uint64_t wsid = 1; wsid <= 10; wsid++)
        view_bed_put(&bed, &(struct view_bed_row){.wsid = wsid, .id = 6, .a = 3, .b = "newer"});
    view_bed_commit(&bed);
    assert_true(is_complete(&bed, view));
    view_bed_close(&bed);
}

/* 20,000 rows, and the two last ones are equal. They are found without looking at all others, because the shard has
 * other work; if they are not known, the verdict comes without them. */
TEST(a_verdict_on_a_large_view_is_short)
{
    enum { ROWS = 20000 };
    struct view_bed bed;
    struct slice_report report = {0};
    pawl_error error = {0};
    char words[128];
    uint64_t wsid = 1;
    while (partition_of(hash_token(wsid), BED_PARTITIONS) != 0)
        wsid++;
    view_bed_open(&bed);
    for (uint64_t id = 1; id <= ROWS; id++)
        view_bed_put(&bed,
                     &(struct view_bed_row){.wsid = wsid, .id = id, .a = id == ROWS ? ROWS - 1 : (int64_t)id});
    view_bed_commit(&bed);
    uint32_t view = view_bed_create(&bed, &texts[2]);
    while (!report.covered)
        assert_ok(try_slice(&bed, 2, 0, &view, 1, 8192, &report));
    view_bed_commit(&bed);
    snprintf(words, sizeof words, "p.v2: workspace %" PRIu64 ": records %d and %d have the same key", wsid,
             ROWS - 1, ROWS);
    assert_status(unique_verdict(&bed.tables, view, 0, &error), PAWL_EEXISTS);
    assert_string_equal(error.text, words);
    view_tables_release(&bed.tables); /* which are the same ones after a restart */
    mem_store_disk_crash(bed.disk);
    view_bed_open_tables(&bed);
    assert_ok(view_bed_refresh(&bed));
    assert_status(unique_verdict(&bed.tables, view, 0, &error), PAWL_EEXISTS);
    assert_string_equal(error.text, words);
    struct kept_state *kept = view_tables_state(&bed.tables, view, 0);
    uint8_t key[KEY_WORKSPACE + VIEW_KEY_BYTES_MAX];
    size_t size;
    assert_ok(view_prefix(view_tables_find(&bed.tables, view)->view, view, wsid,
                          &(struct value){.type = VALUE_INT64, .integer = 5}, 1, key, &size));
    put_u64_sorted(key + size, 5);
    assert_ok(view_state_note_equal(&kept->state, (pawl_bytes){key, size + 8})); /* which is equal to none */
    assert_status(unique_verdict(&bed.tables, view, 0, &error), PAWL_EEXISTS);
    assert_string_equal(error.text, "p.v2: 2 records have the key of another one");
    view_bed_close(&bed);
}

TEST(views_with_different_coverage_are_built_in_one_scan)
{
    uint64_t random = test_seed(6);
    struct view_bed bed;
    struct slice_report report;
    view_bed_open(&bed);
    fill(&bed, &random, 200);
    uint32_t views[4];
    for (size_t i = 0; i < 4; i++)
        views[i] = view_bed_create(&bed, &texts[i]);
    for (int i = 0; i < 5; i++) { /* the first has a piece of partition 0, the second all of 1 */
        assert_ok(try_slice(&bed, 8, 1, &views[0], 1, 3, &report));
        view_bed_commit(&bed);
    }
    (void)build(&bed, 2, 1, &views[1], 1, 10);
    for (uint32_t tablet = 0; tablet < 4; tablet++)
        (void)build(&bed, 4, tablet, views, 4, 7);
    for (size_t i = 0; i < 4; i++)
        assert_true(is_complete(&bed, views[i]));
    view_bed_close(&bed);
}

TEST(a_slice_of_a_view_that_is_gone_or_of_another_base_is_refused)
{
    uint64_t random = test_seed(7);
    struct view_bed bed;
    struct slice_report report;
    enum group0_outcome outcome;
    view_bed_open(&bed);
    fill(&bed, &random, 20);
    uint32_t views[] = {view_bed_create(&bed, &texts[0]), view_table(77, 0)};
    assert_status(try_slice(&bed, 2, 0, views, 2, 9, &report), PAWL_ENOTFOUND);
    view_bed_abort(&bed);
    assert_ok(views_named(bed.group0, GROUP0_VIEW_DROP, "p.v0", &outcome, NULL));
    assert_ok(view_bed_refresh(&bed));
    view_bed_commit(&bed);
    assert_status(try_slice(&bed, 2, 0, views, 1, 9, &report), PAWL_ENOTFOUND);
    assert_false(slice_covers(&bed.tables, views[0], 0, (pawl_range){0}));
    view_bed_close(&bed);
}

/* A slice that fails, wherever: nothing of it is there, and it succeeds later. */
TEST(a_slice_that_fails_is_made_again)
{
    uint64_t random = test_seed(8);
    static const enum mem_store_op ops[] = {MEM_STORE_SCAN, MEM_STORE_PUT, MEM_STORE_COMMIT};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (uint64_t countdown = 1; countdown < 12; countdown++) {
            struct view_bed bed;
            struct slice_report report;
            view_bed_open(&bed);
            fill(&bed, &random, 40);
            uint32_t view = view_bed_create(&bed, &texts[2]);
            mem_store_disk_fail(bed.disk,
                                (struct mem_store_fault){
                                    .op = ops[i], .countdown = countdown, .times = 1, .status = PAWL_EFULL});
            int status = try_slice(&bed, 2, 0, &view, 1, 5, &report);
            if (status == PAWL_OK)
                status = view_bed_try_commit(&bed);
            else
                view_bed_abort(&bed);
            mem_store_disk_fail(bed.disk, (struct mem_store_fault){0});
            if (status != PAWL_OK)
                assert_int_equal(views_count_rows(pawl_store_writer(bed.store)), 0);
            assert_true(view_bed_right(&bed));
            (void)build(&bed, 2, 0, &view, 1, 5);
            (void)build(&bed, 2, 1, &view, 1, 5);
            assert_true(is_complete(&bed, view));
            view_bed_close(&bed);
        }
}

TEST(a_slice_survives_every_failed_allocation)
{
    uint64_t random = test_seed(9);
    for (uint64_t k = 1;; k++) {
        struct view_bed bed;
        struct slice_report report;
        view_bed_open(&bed);
        fill(&bed, &random, 40);
        uint32_t views[] = {view_bed_create(&bed, &texts[2]), view_bed_create(&bed, &texts[3])};
        test_alloc_fail(&bed.alloc, k, TEST_ALLOC_ONCE);
        int status = try_slice(&bed, 2, 0, views, 2, 30, &report);
        if (status == PAWL_OK)
            status = view_bed_try_commit(&bed);
        else
            view_bed_abort(&bed);
        bool failed = test_alloc_failed(&bed.alloc);
        test_alloc_fail(&bed.alloc, 0, TEST_ALLOC_ONCE);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        assert_true(view_bed_right(&bed));
        (void)build(&bed, 2, 0, views, 2, 30);
        view_bed_close(&bed);
        if (!failed)
            break;
    }
}

/* --- an entity, whose keys are long --- */

static void put_entity(struct view_bed *bed, uint32_t table, uint64_t wsid, size_t size, uint64_t which,
                       int64_t n)
{
    uint8_t key[KEY_WORKSPACE + 2048], value[4096];
    char text[1024];
    memset(text, 'k', size);
    snprintf(text + size - 7, 8, "%07u", (unsigned)which);
    struct value values[] = {{.type = VALUE_STRING, .bytes = {text, size}},
                             {.type = VALUE_INT64, .integer = n}};
    size_t bytes;
    key_of_workspace(table, wsid, key);
    size_t own = row_key_write(values, 1, key + KEY_WORKSPACE, sizeof key - KEY_WORKSPACE);
    assert_ok(row_size(values, 2, &bytes));
    row_write(values, 2, value);
    pawl_bytes whole = {key, KEY_WORKSPACE + own}, row = n < 0 ? (pawl_bytes){0} : (pawl_bytes){value, bytes};
    struct put_watch *watch = view_tables_watch(&bed->tables);
    if (watch)
        assert_ok(watch->put(watch, bed->store, whole, NULL, row));
    int status = row.data ? pawl_store_put(bed->store, STATE_SPACE, whole, row)
                          : pawl_store_remove(bed->store, STATE_SPACE, whole);
    assert_true(status == PAWL_OK || status == PAWL_ENOTFOUND);
}

TEST(bases_with_long_keys_are_built_too)
{
    static const struct view_text over_e = {.package = "p", .name = "e", .base = "E", .key = "n k"};
    uint64_t random = test_seed(10);
    for (int round = 0; round < 10; round++) {
        struct view_bed bed;
        view_bed_open(&bed);
        uint32_t base = schema_table(schema_type_by_name(group0_schema(bed.group0), text_bytes("p.E")), 1);
        for (int i = 0; i < 120; i++)
            put_entity(&bed, base, 1 + test_below(&random, 3), test_below(&random, 2) ? 700 : 20,
                       test_below(&random, 50), (int64_t)test_below(&random, 4));
        view_bed_commit(&bed);
        (void)view_bed_create(&bed, &over_e);
        uint32_t view = view_table(1, 1);
        for (uint16_t partition = 0; partition < BED_PARTITIONS; partition++)
            for (struct slice_report report = {0}; !report.covered;) {
                uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
                struct slice slice = {.partition = partition,
                                      .base = base,
                                      .views = &view,
                                      .count = 1,
                                      .range = tablet_range(BED_PARTITIONS, partition, base, from, to),
                                      .rows_max = 1 + (uint32_t)test_below(&random, 4)};
                assert_ok(slice_put(&bed.tables, &slice, &report));
                view_bed_commit(&bed);
                for (int i = 0; i < 3; i++)
                    put_entity(&bed, base, 1 + test_below(&random, 3), test_below(&random, 2) ? 700 : 20,
                               test_below(&random, 50), (int64_t)test_below(&random, 5) - 1);
                view_bed_commit(&bed);
            }
        assert_true(is_complete(&bed, view));
        view_bed_close(&bed);
    }
}

TEST(random_puts_between_slices)
{
    uint64_t seed = test_seed(12);
    for (uint64_t round = 0; round < (TEST_SANITIZED ? 10 : 60); round++) {
        uint64_t random = seed + round;
        struct view_bed bed;
        view_bed_open(&bed);
        fill(&bed, &random, 100);
        uint32_t views[4];
        size_t count = 0;
        for (int step = 0; step < 200; step++) {
            struct slice_report report;
            uint32_t tablets = UINT32_C(2) << test_below(&random, 4);
            if (count < 4 && test_below(&random, 20) == 0) {
                views[count] = view_bed_create(&bed, &texts[count]);
                count++;
            }
            for (uint64_t k = test_below(&random, 4); k > 0; k--)
                view_bed_put_random(&bed, &random);
            if (count > 0 && test_below(&random, 3)) {
                size_t first = (size_t)test_below(&random, count);
                assert_ok(try_slice(&bed, tablets, (uint32_t)test_below(&random, tablets), views + first,
                                    1 + (size_t)test_below(&random, count - first),
                                    1 + (uint32_t)test_below(&random, 12), &report));
            }
            for (uint64_t k = test_below(&random, 3); k > 0; k--)
                view_bed_put_random(&bed, &random);
            if (test_below(&random, 6) == 0)
                view_bed_abort(&bed);
            else
                view_bed_commit(&bed);
            if (test_below(&random, 50) == 0) {
                view_tables_release(&bed.tables);
                mem_store_disk_crash(bed.disk);
                view_bed_open_tables(&bed);
                assert_ok(view_bed_refresh(&bed));
                view_bed_commit(&bed);
            }
        }
        for (uint32_t tablet = 0; count > 0 && tablet < 2; tablet++)
            (void)build(&bed, 2, tablet, views, count, 50);
        for (size_t i = 0; i < count; i++)
            assert_true(is_complete(&bed, views[i]));
        view_bed_close(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(slices_of_any_size_cover_everything),
        RUN(a_slice_reads_what_its_own_transaction_has_put),
        RUN(a_verdict_on_a_large_view_is_short),
        RUN(views_with_different_coverage_are_built_in_one_scan),
        RUN(a_slice_of_a_view_that_is_gone_or_of_another_base_is_refused),
        RUN(a_slice_that_fails_is_made_again),
        RUN(a_slice_survives_every_failed_allocation),
        RUN(bases_with_long_keys_are_built_too),
        RUN(random_puts_between_slices),
    };
    return TEST_MAIN(tests);
}
