/* test_engine_views_read.c: what a reader sees of views, through the public API: rows and JSON, ranges in both
 * directions, pages, one workspace and all of them, views that are being built, dropped or made anew. */
#include "test/lib/view_bed.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/state/key.h"

#define PER_TENANT 2300 /* of one tenant: more than two snapshots */
#define BIG        ((uint64_t)3)

struct seen {
    uint64_t wsid[8000];
    int64_t cents[8000];
    uint64_t id[8000];
    size_t count;
    size_t stop_at; /* 0: never */
    bool wrong;
};

static bool see(void *arg, const pawl_row *row)
{
    struct seen *seen = arg;
    bool null;
    seen->wsid[seen->count] = pawl_row_wsid(row);
    seen->id[seen->count] = pawl_row_id(row);
    if (pawl_row_int64(row, "cents", &seen->cents[seen->count], &null) != PAWL_OK)
        seen->wrong = true;
    seen->count++;
    return seen->count != seen->stop_at;
}

static struct seen seen; /* large */

static pawl_view_answer scan(struct view_bed *bed, const char *view, pawl_view_query query)
{
    pawl_view_answer answer;
    seen = (struct seen){0};
    assert_bed_ok(bed, pawl_view_scan(bed->engine, view, &query, see, &seen, &answer, &bed->error));
    assert_int_equal(answer.rows, seen.count);
    assert_false(seen.wrong);
    return answer;
}

/* Invoices with cents 0 to count - 1, in no order, in one workspace. */
static void bill_many(struct view_bed *bed, uint64_t wsid, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char customer[32];
        snprintf(customer, sizeof customer, "c%u", i % 3);
        assert_bed_ok(bed, view_bed_bill(bed, bed->request, wsid, customer, (int64_t)((i * 7919u) % count),
                                         NULL, &bed->error));
    }
}

static void create_by_cents(struct view_bed *bed)
{
    assert_bed_ok(bed, view_bed_create(bed, "t.v", "t.Invoice", "cents", NULL, NULL, false));
    view_bed_wait(bed, "t.v");
}

TEST(a_scan_is_in_the_order_of_keys_across_snapshots_and_both_ways)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, PER_TENANT);
    bill_many(&bed, 4, 5);
    create_by_cents(&bed);
    pawl_view_answer answer = scan(&bed, "t.v", (pawl_view_query){.wsid = BIG});
    assert_true(answer.built && answer.covered == 1);
    assert_int_equal(seen.count, PER_TENANT);
    for (size_t i = 0; i < seen.count; i++) {
        assert_int_equal(seen.cents[i], i);
        assert_int_equal(seen.wsid[i], BIG);
        assert_true(seen.id[i] > 0);
    }
    pawl_workspace workspace;
    assert_ok(pawl_workspace_get(bed.engine, BIG, NULL, &workspace, &bed.error));
    assert_true(answer.offset >= workspace.offset);
    scan(&bed, "t.v", (pawl_view_query){.wsid = BIG, .descending = true});
    assert_int_equal(seen.count, PER_TENANT);
    for (size_t i = 0; i < seen.count; i++)
        assert_int_equal(seen.cents[i], PER_TENANT - 1 - i);
    view_bed_end(&bed);
}

TEST(bounds_are_whole_fields_inclusive_or_exclusive_in_both_directions)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, 100);
    create_by_cents(&bed);
    const struct {
        int64_t from, to;
        bool from_exclusive, to_exclusive;
        int64_t first;
        size_t count;
    } cases[] = {
        {10, 20, false, false, 10, 11}, {10, 20, true, false, 11, 10}, {10, 20, false, true, 10, 10},
        {10, 20, true, true, 11, 9},    {10, 10, false, false, 10, 1}, {10, 10, true, false, 0, 0},
        {20, 10, false, false, 0, 0},   {-5, 3, false, false, 0, 4},   {95, 900, false, false, 95, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int descending = 0; descending < 2; descending++)
            for (int all = 0; all < 2; all++) {
                pawl_value from = pawl_value_int64(cases[i].from), to = pawl_value_int64(cases[i].to);
                scan(&bed, "t.v",
                     (pawl_view_query){.wsid = all ? 0 : BIG,
                                       .from = {&from, 1},
                                       .to = {&to, 1},
                                       .from_exclusive = cases[i].from_exclusive,
                                       .to_exclusive = cases[i].to_exclusive,
                                       .descending = descending});
                assert_int_equal(seen.count, cases[i].count);
                for (size_t k = 0; k < seen.count; k++)
                    assert_int_equal(seen.cents[descending ? seen.count - 1 - k : k],
                                     cases[i].first + (int64_t)k);
            }
    view_bed_end(&bed);
}

TEST(a_prefix_selects_and_bounds_cut_it_further)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, 90);
    assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, BIG, NULL, 5, NULL, &bed.error));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "cents", NULL, false));
    view_bed_wait(&bed, "t.v");
    pawl_value c1 = pawl_value_string("c1"), null = pawl_value_null();
    scan(&bed, "t.v", (pawl_view_query){.wsid = BIG, .prefix = {&c1, 1}});
    assert_int_equal(seen.count, 30);
    pawl_value from[] = {c1, pawl_value_int64(40)};
    size_t all = 0;
    for (size_t i = 0; i < 30; i++)
        all += seen.cents[i] >= 40;
    scan(&bed, "t.v", (pawl_view_query){.wsid = BIG, .prefix = {&c1, 1}, .from = {from, 2}});
    assert_int_equal(seen.count, all);
    scan(&bed, "t.v", (pawl_view_query){.wsid = BIG, .prefix = {&null, 1}});
    assert_int_equal(seen.count, 1);
    pawl_value wrong[] = {pawl_value_int64(1), c1, c1};
    pawl_view_query query = {.wsid = BIG, .prefix = {wrong, 1}};
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_EINVAL);
    query.prefix = (pawl_key){wrong, 3};
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_EINVAL);
    view_bed_end(&bed);
}

/* By token, then workspace, then key; the rows of one workspace as a scan of it alone has them. */
TEST(all_workspaces_come_in_one_order_and_backwards_the_other_way_round)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    view_bed_fill(&bed, 20);
    create_by_cents(&bed);
    static struct seen forward;
    pawl_view_answer answer = scan(&bed, "t.v", (pawl_view_query){0});
    assert_true(answer.built);
    assert_int_equal(answer.offset, 0);
    forward = seen;
    assert_int_equal(forward.count, 20 * VIEW_TENANTS);
    for (size_t i = 1; i < forward.count; i++) {
        uint64_t was = hash_token(forward.wsid[i - 1]), is = hash_token(forward.wsid[i]);
        assert_true(was < is || (was == is && forward.cents[i - 1] <= forward.cents[i]));
    }
    scan(&bed, "t.v", (pawl_view_query){.descending = true});
    assert_int_equal(seen.count, forward.count);
    for (size_t i = 0; i < seen.count; i++)
        assert_int_equal(seen.id[i], forward.id[seen.count - 1 - i]);
    for (uint64_t wsid = 1; wsid <= VIEW_TENANTS; wsid++) {
        scan(&bed, "t.v", (pawl_view_query){.wsid = wsid});
        size_t at = 0;
        while (forward.wsid[at] != wsid)
            at++;
        assert_memory_equal(seen.id, forward.id + at, seen.count * sizeof seen.id[0]);
        assert_int_equal(seen.count, 20);
    }
    pawl_value three = pawl_value_int64(3);
    scan(&bed, "t.v", (pawl_view_query){.prefix = {&three, 1}});
    assert_int_equal(seen.count, VIEW_TENANTS); /* one of each */
    view_bed_end(&bed);
}

static void page_through(struct view_bed *bed, pawl_view_query query, size_t limit, bool as_text)
{
    static struct seen whole, paged;
    pawl_cursor cursor = {0};
    query.limit = 0;
    scan(bed, "t.v", query);
    whole = seen;
    paged = (struct seen){0};
    query.cursor = &cursor;
    query.limit = limit;
    while (!cursor.done) {
        assert_bed_ok(bed, pawl_view_scan(bed->engine, "t.v", &query, see, &paged, NULL, &bed->error));
        if (!as_text)
            continue;
        pawl_text text;
        assert_ok(pawl_cursor_format(&cursor, &text, &bed->error));
        pawl_cursor_free(&cursor);
        assert_bed_ok(bed, pawl_cursor_parse(bed->engine, text.data, &cursor, &bed->error));
        pawl_text_free(&text);
    }
    pawl_cursor_free(&cursor);
    assert_int_equal(paged.count, whole.count);
    assert_memory_equal(paged.id, whole.id, whole.count * sizeof whole.id[0]);
}

TEST(pages_join_to_the_whole_in_both_directions_and_through_text)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    view_bed_fill(&bed, 30);
    bill_many(&bed, BIG, 1200);
    create_by_cents(&bed);
    pawl_value from = pawl_value_int64(2), to = pawl_value_int64(21);
    const size_t limits[] = {1, 7, 1000, 1001};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (unsigned how = 0; how < 8; how++) {
            if (limits[i] == 1 && how & 1)
                continue; /* thousands of texts show nothing more */
            pawl_view_query query = {.wsid = how & 2 ? BIG : 0, .descending = how & 4};
            if (limits[i] < 1000) {
                query.from = (pawl_key){&from, 1};
                query.to = (pawl_key){&to, 1};
            }
            page_through(&bed, query, limits[i], how & 1);
        }
    view_bed_end(&bed);
}

TEST(a_visitor_that_stops_is_gone_on_from)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, 10);
    create_by_cents(&bed);
    pawl_cursor cursor = {0};
    pawl_view_query query = {.wsid = BIG, .cursor = &cursor};
    seen = (struct seen){.stop_at = 4};
    assert_ok(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error));
    assert_int_equal(seen.count, 4);
    assert_false(cursor.done);
    assert_ok(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error));
    assert_true(cursor.done);
    assert_int_equal(seen.count, 10);
    assert_int_equal(seen.cents[4], 4);
    pawl_cursor_free(&cursor);
    view_bed_end(&bed);
}

TEST(a_cursor_of_something_else_is_refused)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, 10);
    create_by_cents(&bed);
    assert_bed_ok(&bed, view_bed_create(&bed, "t.w", "t.Invoice", "number", NULL, NULL, false));
    pawl_cursor cursor = {0};
    pawl_view_query query = {.wsid = BIG, .cursor = &cursor, .limit = 3};
    seen = (struct seen){0};
    assert_ok(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error));
    assert_int_equal(pawl_view_scan(bed.engine, "t.w", &query, see, &seen, NULL, &bed.error), PAWL_EINVAL);
    query.wsid = 4;
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_EINVAL);
    query.wsid = 0;
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_EINVAL);
    assert_int_equal(
        pawl_entity_scan(bed.engine, BIG, "t.Last", (pawl_key){0}, &cursor, 3, NULL, see, &seen, &bed.error),
        PAWL_EINVAL);
    pawl_text text;
    assert_ok(pawl_cursor_format(&cursor, &text, &bed.error));
    pawl_cursor_free(&cursor);
    assert_ok(
        pawl_entity_scan(bed.engine, BIG, "t.Last", (pawl_key){0}, &cursor, 1, NULL, see, &seen, &bed.error));
    query.wsid = BIG;
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_EINVAL);
    assert_int_equal(
        pawl_entity_scan(bed.engine, 4, "t.Last", (pawl_key){0}, &cursor, 3, NULL, see, &seen, &bed.error),
        PAWL_EINVAL);
    assert_ok(
        pawl_entity_scan(bed.engine, BIG, "t.Last", (pawl_key){0}, &cursor, 9, NULL, see, &seen, &bed.error));
    pawl_cursor_free(&cursor);
    for (size_t i = 0; i < text.size; i++) { /* no letter of it can be another */
        char was = text.data[i];
        text.data[i] = was == 'A' ? 'B' : 'A';
        assert_int_equal(pawl_cursor_parse(bed.engine, text.data, &cursor, &bed.error), PAWL_EINVAL);
        text.data[i] = was;
    }
    pawl_text_free(&text);
    const char *const wrong[] = {"", "A", "AAAA", "////", "no cursor", "AQAAAAAAAAAAAA"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(pawl_cursor_parse(bed.engine, wrong[i], &cursor, &bed.error), PAWL_EINVAL);
    view_bed_end(&bed);
}

static int read_cents(struct view_bed *bed, const char *view, uint64_t wsid, int64_t cents)
{
    pawl_value key = pawl_value_int64(cents);
    seen = (struct seen){0};
    return pawl_view_read(bed->engine, view, wsid, (pawl_key){&key, 1}, NULL, see, &seen, &bed->error);
}

TEST(one_row_is_read_by_its_key_as_row_and_as_json)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, 50);
    create_by_cents(&bed);
    assert_bed_ok(&bed, read_cents(&bed, "t.v", BIG, 17));
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.cents[0], 17);
    assert_int_equal(read_cents(&bed, "t.v", BIG, 50), PAWL_ENOTFOUND);
    assert_int_equal(read_cents(&bed, "t.v", 999, 17), PAWL_ENOTFOUND);
    assert_int_equal(read_cents(&bed, "t.none", BIG, 17), PAWL_ENOTFOUND);
    assert_int_equal(pawl_view_read(bed.engine, "t.v", BIG, (pawl_key){0}, NULL, see, &seen, &bed.error),
                     PAWL_EINVAL);
    pawl_text text;
    char expected[100];
    assert_bed_ok(&bed, read_cents(&bed, "t.v", BIG, 17));
    snprintf(expected, sizeof expected, "{\"id\":%llu,\"cents\":17}", (unsigned long long)seen.id[0]);
    const char *const keys[] = {"[17]", "{\"cents\":17}", "[\"17\"]"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        pawl_bytes key = {keys[i], strlen(keys[i])};
        assert_bed_ok(&bed, pawl_view_get(bed.engine, "t.v", BIG, key, NULL, &text, &bed.error));
        assert_string_equal(text.data, expected);
        pawl_text_free(&text);
    }
    const char *const wrong[] = {"[]", "{}", "[1,2]", "{\"cent\":1}", "17", "[\"x\"]", "["};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(pawl_view_get(bed.engine, "t.v", BIG, (pawl_bytes){wrong[i], strlen(wrong[i])}, NULL,
                                       &text, &bed.error),
                         PAWL_EINVAL);
    view_bed_end(&bed);
}

static bool names_are_the_views(void *arg, const pawl_row *row)
{
    bool *right = arg, null;
    int64_t number;
    pawl_bytes text;
    *right =
        pawl_row_int64(row, "number", &number, &null) == PAWL_OK && number > 0
        && pawl_row_string(row, "customer", &text, &null) == PAWL_OK && text.size == 2
        && pawl_row_int64(row, "cents", &number, &null) == PAWL_ENOTFOUND /* the base has it, not the view */
        && pawl_row_has(row, "number") && !pawl_row_has(row, "cents") && pawl_row_type(row).size == 3
        && pawl_row_int64(row, "customer", &number, &null) == PAWL_EINVAL;
    return false;
}

TEST(a_row_has_the_fields_of_its_view_and_no_others)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, 5);
    const char *key[] = {"number"}, *include[] = {"customer"};
    pawl_view_definition definition = {
        .name = "t.v", .base = "t.Invoice", .key = key, .key_count = 1, .include = include, .include_count = 1};
    assert_bed_ok(&bed, pawl_view_create(bed.engine, &definition, &bed.error));
    view_bed_wait(&bed, "t.v");
    bool right = false;
    pawl_view_query query = {.wsid = BIG, .limit = 1};
    assert_ok(pawl_view_scan(bed.engine, "t.v", &query, names_are_the_views, &right, NULL, &bed.error));
    assert_true(right);
    view_bed_end(&bed);
}

static char *list(struct view_bed *bed, const char *view, pawl_view_query query, const char *prefix,
                  const char *from, const char *to, pawl_text *ret_text)
{
    pawl_bytes p = {prefix, prefix ? strlen(prefix) : 0}, f = {from, from ? strlen(from) : 0},
               t = {to, to ? strlen(to) : 0};
    assert_bed_ok(bed, pawl_view_list(bed->engine, view, &query, p, f, t, ret_text, NULL, &bed->error));
    return ret_text->data;
}

TEST(a_list_is_lines_of_json_and_shows_the_workspace_if_all_are_asked_for)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 7, "Ada", 500, NULL, &bed.error));
    assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 7, "Bob", 300, NULL, &bed.error));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "cents", NULL, false));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.e", "t.Last", "cents", NULL, NULL, false));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.i", "t.Invoice", "id", "active", NULL, false));
    view_bed_wait(&bed, "t.v");
    view_bed_wait(&bed, "t.e");
    view_bed_wait(&bed, "t.i");
    pawl_text text;
    pawl_view_query query = {.wsid = 7};
    assert_string_equal(list(&bed, "t.v", query, NULL, NULL, NULL, &text),
                        "{\"id\":200001,\"customer\":\"Ada\",\"cents\":500}\n"
                        "{\"id\":200002,\"customer\":\"Bob\",\"cents\":300}\n");
    pawl_text_free(&text);
    assert_string_equal(list(&bed, "t.v", query, "[\"Bob\"]", NULL, NULL, &text),
                        "{\"id\":200002,\"customer\":\"Bob\",\"cents\":300}\n");
    pawl_text_free(&text);
    assert_string_equal(list(&bed, "t.v", query, NULL, "{\"customer\":\"B\"}", "[\"C\"]", &text),
                        "{\"id\":200002,\"customer\":\"Bob\",\"cents\":300}\n");
    pawl_text_free(&text);
    assert_string_equal(list(&bed, "t.v", query, "[null]", NULL, NULL, &text), "");
    pawl_text_free(&text);
    query.wsid = 0;
    assert_string_equal(list(&bed, "t.v", query, NULL, NULL, "[\"Ada\"]", &text),
                        "{\"wsid\":7,\"id\":200001,\"customer\":\"Ada\",\"cents\":500}\n");
    pawl_text_free(&text);
    assert_string_equal(list(&bed, "t.e", query, NULL, NULL, NULL, &text),
                        "{\"wsid\":7,\"cents\":300}\n{\"wsid\":7,\"cents\":500}\n");
    pawl_text_free(&text);
    query.wsid = 7;
    query.limit = 1;
    assert_string_equal(list(&bed, "t.i", query, NULL, NULL, NULL, &text), "{\"id\":200001,\"active\":true}\n");
    pawl_text_free(&text);
    pawl_bytes bad = {"{\"cents\":3}", 11}, none = {0}; /* the second field without the first */
    assert_int_equal(pawl_view_list(bed.engine, "t.v", &query, bad, none, none, &text, NULL, &bed.error),
                     PAWL_EINVAL);
    view_bed_end(&bed);
}

/* Nothing was scanned: the build is paused before it begins. */
TEST(a_view_that_is_being_built_says_so_and_complete_refuses)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, 30);
    assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, true, &bed.error));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "cents", NULL, NULL, false));
    pawl_view_answer answer = scan(&bed, "t.v", (pawl_view_query){.wsid = BIG});
    assert_false(answer.built);
    assert_true(answer.covered == 0);
    assert_int_equal(seen.count, 0);
    answer = scan(&bed, "t.v", (pawl_view_query){0});
    assert_false(answer.built);
    assert_true(answer.covered > 0 && answer.covered < 1); /* partitions without rows are complete at once */
    pawl_view_query query = {.wsid = BIG, .complete = true};
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_ENOTBUILT);
    query.wsid = 0;
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_ENOTBUILT);
    assert_int_equal(seen.count, 0);
    assert_int_equal(read_cents(&bed, "t.v", BIG, 7), PAWL_ENOTBUILT);
    assert_int_equal(read_cents(&bed, "t.v", 999, 7), PAWL_ENOTFOUND); /* there is no such workspace */
    assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, false, &bed.error));
    view_bed_wait(&bed, "t.v");
    answer = scan(&bed, "t.v", (pawl_view_query){.wsid = BIG, .complete = true});
    assert_true(answer.built);
    assert_int_equal(seen.count, 30);
    answer = scan(&bed, "t.v", (pawl_view_query){.complete = true});
    assert_true(answer.built && seen.count == 30);
    assert_int_equal(read_cents(&bed, "t.v", BIG, 30), PAWL_ENOTFOUND);
    view_bed_end(&bed);
}

struct meddling {
    struct view_bed *bed;
    int (*act)(struct view_bed *bed);
    size_t at;
    size_t count;
    int64_t last;
    bool descends;
};

static bool meddle(void *arg, const pawl_row *row)
{
    struct meddling *m = arg;
    int64_t cents;
    (void)pawl_row_int64(row, "cents", &cents, NULL);
    if (m->count > 0 && cents <= m->last)
        m->descends = true;
    m->last = cents;
    if (m->count++ == m->at)
        assert_ok(m->act(m->bed));
    return true;
}

static int rebuild(struct view_bed *bed)
{
    int status = pawl_view_rebuild(bed->engine, "t.v", &bed->error);
    return status == PAWL_OK ? pawl_view_wait(bed->engine, "t.v", VIEW_PATIENCE, &bed->error) : status;
}

static int drop(struct view_bed *bed)
{
    return pawl_view_drop(bed->engine, "t.v", &bed->error);
}

static int exchange(struct view_bed *bed)
{
    int status = drop(bed);
    return status == PAWL_OK ? view_bed_create(bed, "t.v", "t.Invoice", "customer", "cents", NULL, false)
                             : status;
}

/* A visitor may call the engine: it runs on the caller's own thread. */
TEST(a_scan_goes_on_in_a_view_that_is_made_anew_meanwhile)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    bill_many(&bed, BIG, PER_TENANT);
    create_by_cents(&bed);
    struct meddling m = {.bed = &bed, .act = rebuild, .at = 10};
    pawl_view_query query = {.wsid = BIG, .complete = true};
    pawl_view_answer answer;
    assert_bed_ok(&bed, pawl_view_scan(bed.engine, "t.v", &query, meddle, &m, &answer, &bed.error));
    assert_int_equal(m.count, PER_TENANT);
    assert_false(m.descends);
    assert_true(answer.built);
    m = (struct meddling){.bed = &bed, .act = drop, .at = 10};
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, meddle, &m, &answer, &bed.error),
                     PAWL_ENOTFOUND);
    assert_int_equal(m.count, 1000); /* the snapshot was read to its end */
    create_by_cents(&bed);
    m = (struct meddling){.bed = &bed, .act = exchange, .at = 10};
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, meddle, &m, &answer, &bed.error),
                     PAWL_ENOTFOUND);
    view_bed_end(&bed);
}

/* --- shards that learn late what group0 has decided --- */

static struct {
    struct view_bed *bed;
    pawl_task task; /* keeps the last shard busy */
    _Atomic bool armed, busy, released;
} late;

static void keep_busy(pawl_task *task)
{
    (void)task;
    atomic_store(&late.busy, true);
    while (!atomic_load(&late.released))
        wait_pause(PAWL_MILLISECOND);
    atomic_store(&late.busy, false);
}

static void hold_last_shard(void)
{
    atomic_store(&late.released, false);
    assert_ok(pawl_env_post(late.bed->engine->env, 1, &late.task));
    while (!atomic_load(&late.busy))
        wait_pause(PAWL_MILLISECOND);
}

static void release_last_shard(void)
{
    atomic_store(&late.released, true);
    while (atomic_load(&late.busy))
        wait_pause(PAWL_MILLISECOND);
}

/* The last shard is busy while a command of the coordinator is written, unless somebody releases it before. */
static void hold_while_written(void *arg, const char *what)
{
    (void)arg;
    if (!atomic_load(&late.armed))
        return;
    if (strcmp(what, "a command of the coordinator is written") == 0)
        hold_last_shard();
    else if (strcmp(what, "a command of the coordinator was written") == 0)
        release_last_shard();
}

static void begin_late(struct view_bed *bed)
{
    view_bed_begin(bed, 2);
    view_bed_fill(bed, 20);
    create_by_cents(bed);
    view_bed_close(bed);
    late.bed = bed;
    late.task.fn = keep_busy;
    bed->knobs.step = hold_while_written;
    view_bed_open(bed);
}

/* A workspace of the first shard. */
static uint64_t first_shards_workspace(struct view_bed *bed)
{
    uint64_t wsid = 1;
    while (partition_shard(pawl_partition_of(bed->engine, wsid), 2) != 0)
        wsid++;
    return wsid;
}

static void wait_until_state_is_gone(struct view_bed *bed, uint64_t wsid, uint32_t table)
{
    pawl_store *store = bed->engine->shards[0].store;
    uint64_t until = clock_boot_ns() + VIEW_PATIENCE;
    int status = PAWL_OK;
    while (status == PAWL_OK && clock_boot_ns() < until) {
        pawl_reader *snapshot;
        bool complete;
        wait_pause(PAWL_MILLISECOND);
        assert_ok(pawl_store_snapshot(store, &snapshot));
        status = view_state_peek(snapshot, pawl_partition_of(bed->engine, wsid), table, &complete);
        pawl_store_release(store, snapshot);
    }
    assert_int_equal(status, PAWL_ENOTFOUND);
}

TEST(a_view_serves_while_shards_learn_one_by_one_that_it_was_made_anew)
{
    struct view_bed bed;
    begin_late(&bed);
    uint64_t wsid = first_shards_workspace(&bed);
    uint32_t table = view_bed_status(&bed, "t.v").table;
    assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 1, &bed.error));
    assert_bed_ok(&bed, pawl_view_rebuild(bed.engine, "t.v", &bed.error));
    atomic_store(&late.armed, true);
    assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 0, &bed.error));
    wait_until_state_is_gone(&bed, wsid, table); /* and the last shard does not know of it */
    pawl_view_answer answer = scan(&bed, "t.v", (pawl_view_query){.wsid = wsid});
    bool built = answer.built;
    int found = read_cents(&bed, "t.v", wsid, 7);
    atomic_store(&late.armed, false);
    release_last_shard();
    view_bed_wait(&bed, "t.v");
    assert_true(built);
    assert_int_equal(answer.rows, 20);
    assert_int_equal(found, PAWL_OK);
    view_bed_end(&bed);
}

static void *drop_main(void *arg)
{
    struct view_bed *bed = arg;
    pawl_error error;
    (void)pawl_view_drop(bed->engine, "t.v", &error);
    return NULL;
}

TEST(a_view_that_is_dropped_is_not_one_that_is_being_built)
{
    struct view_bed bed;
    pthread_t thread;
    begin_late(&bed);
    uint64_t wsid = first_shards_workspace(&bed);
    uint32_t table = view_bed_status(&bed, "t.v").table;
    hold_last_shard();
    assert_int_equal(pthread_create(&thread, NULL, drop_main, &bed), 0);
    wait_until_state_is_gone(&bed, wsid, table);
    pawl_view_query query = {.wsid = wsid};
    int status = pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error);
    release_last_shard();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, PAWL_ENOTFOUND);
    view_bed_end(&bed);
}

TEST(a_view_over_a_lane_waits_for_the_operations_of_an_event)
{
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Total", "cents", NULL, NULL, false));
    view_bed_wait(&bed, "t.v");
    for (int64_t i = 1; i <= 20; i++) {
        pawl_workspace workspace;
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, BIG, "Ada", 1, NULL, &bed.error));
        assert_ok(pawl_workspace_get(bed.engine, BIG, NULL, &workspace, &bed.error));
        pawl_view_answer answer =
            scan(&bed, "t.v", (pawl_view_query){.wsid = BIG, .min_offset = workspace.offset});
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.cents[0], i);
        assert_true(answer.offset >= workspace.offset);
        assert_int_equal(seen.id[0], 0);
    }
    assert_bed_ok(&bed, pawl_lane_rebuild(bed.engine, "t.totals", &bed.error));
    assert_bed_ok(&bed, pawl_lanes_wait(bed.engine, "t.totals", VIEW_PATIENCE, &bed.error));
    pawl_view_answer answer = scan(&bed, "t.v", (pawl_view_query){.wsid = BIG, .complete = true});
    assert_true(answer.built && seen.count == 1 && seen.cents[0] == 20);
    pawl_view_query query = {.min_offset = 1};
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_EINVAL);
    query = (pawl_view_query){.wsid = BIG, .min_offset = 1 << 30, .timeout = PAWL_MILLISECOND};
    assert_int_equal(pawl_view_scan(bed.engine, "t.v", &query, see, &seen, NULL, &bed.error), PAWL_ETIMEOUT);
    view_bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_scan_is_in_the_order_of_keys_across_snapshots_and_both_ways),
        RUN(bounds_are_whole_fields_inclusive_or_exclusive_in_both_directions),
        RUN(a_prefix_selects_and_bounds_cut_it_further),
        RUN(all_workspaces_come_in_one_order_and_backwards_the_other_way_round),
        RUN(pages_join_to_the_whole_in_both_directions_and_through_text),
        RUN(a_visitor_that_stops_is_gone_on_from),
        RUN(a_cursor_of_something_else_is_refused),
        RUN(one_row_is_read_by_its_key_as_row_and_as_json),
        RUN(a_row_has_the_fields_of_its_view_and_no_others),
        RUN(a_list_is_lines_of_json_and_shows_the_workspace_if_all_are_asked_for),
        RUN(a_view_that_is_being_built_says_so_and_complete_refuses),
        RUN(a_scan_goes_on_in_a_view_that_is_made_anew_meanwhile),
        RUN(a_view_serves_while_shards_learn_one_by_one_that_it_was_made_anew),
        RUN(a_view_that_is_dropped_is_not_one_that_is_being_built),
        RUN(a_view_over_a_lane_waits_for_the_operations_of_an_event),
    };
    return TEST_MAIN(tests);
}
