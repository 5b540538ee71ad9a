/* test_engine_rows.c: fields read with their own types: of records, of rows of entities, of events. */
#include "test/lib/lanes.h"

#include <stdatomic.h>

#include "test/lib/event.h"

/* Single quotes stand for double ones. %s: further fields of Thing. */
static const char schema_form[] =
    "{'schema': 1, 'package': 't', 'workspaces': {'tenant': {}},"
    " 'types': {"
    "   'Thing': {'kind': 'WDoc', 'fields': {'i': {'type': 'int64'}, 'f': {'type': 'float64'},"
    "     'b': {'type': 'bool'}, 's': {'type': 'string'}, 'y': {'type': 'bytes'}, 't': {'type': 'timestamp'},"
    "     'q': {'type': 'qname'}, 'r': {'type': 'ref'}%s}},"
    "   'Order': {'kind': 'ODoc', 'fields': {'text': {'type': 'string'}, 'cents': {'type': 'int64'}},"
    "     'children': {'lines': 'Line', 'gifts': 'Line'}},"
    "   'Line': {'kind': 'ORecord', 'fields': {'qty': {'type': 'int64'}}, 'children': {'notes': 'Note'}},"
    "   'Note': {'kind': 'ORecord', 'fields': {'said': {'type': 'string'}}}},"
    " 'entities': {'Seen': {'key': ['s', 'i'], 'fields': {'s': {'type': 'string'}, 'i': {'type': 'int64'},"
    "   'thing': {'type': 'ref'}, 'times': {'type': 'int64'}}},"
    "   'Sum': {'key': ['text'], 'fields': {'text': {'type': 'string'}, 'cents': {'type': 'int64'}}}},"
    " 'commands': {'Put': {'records': ['Thing']}, 'Place': {'argument': 'Order', 'records': ['Thing']}},"
    " 'projectors': {"
    "   'seen': {'on': ['Put'], 'sync': true, 'do': [{'upsert': 'Seen', 'key': {"
    "     's': 'coalesce($event.records.Thing.s, \\'\\')', 'i': 'coalesce($event.records.Thing.i, 0)'},"
    "     'set': {'times': 'coalesce(times, 0) + 1', 'thing': '$event.records.Thing.id'}}]},"
    "   'sums': {'on': ['Place'], 'writes': ['Sum']}}}";

static void quote(char *text)
{
    for (char *at = text; *at; at++)
        if (*at == '\\' && at[1] == '\'')
            memmove(at, at + 1, strlen(at));
        else
            *at = *at == '\'' ? '"' : *at;
}

static void apply(struct lanes_bed *bed, const char *more)
{
    char json[4096];
    snprintf(json, sizeof json, schema_form, more);
    quote(json);
    if (bed->engine)
        bed_apply(bed, json);
    else
        bed_begin(bed, json);
}

/* A command to workspace 1; the ID of its first record. */
static uint64_t send(struct lanes_bed *bed, const char *form)
{
    char *json = strdup(form);
    assert_non_null(json);
    quote(json);
    pawl_request_json(bed->request, 1, text_bytes(json));
    int status = pawl_command(bed->engine, bed->request, NULL, &bed->error);
    if (status != PAWL_OK)
        print_error("%s\n", bed->error.text);
    assert_ok(status);
    free(json);
    return pawl_request_id(bed->request, 1);
}

static bool is(pawl_bytes text, const char *words)
{
    return text.size == strlen(words) && memcmp(text.data, words, text.size) == 0;
}

/* --- getters --- */

#define FULL                                                                                                   \
    "{'command': 't.Put', 'records': [{'id': 1, 'type': 't.Thing', 'fields': {'i': -5, 'f': 2.5, 'b': true,"   \
    " 's': 'ada', 'y': 'AQI=', 't': '1970-01-01T00:00:01Z', 'q': 't.Order', 'r': 1}}]}"
#define EMPTY "{'command': 't.Put', 'records': [{'id': 1, 'type': 't.Thing', 'fields': {}}]}"

static void check_full(const pawl_row *row)
{
    int64_t i = 0;
    double f = 0;
    bool b = false, null = true;
    pawl_bytes s, y, q;
    pawl_wall t = {0};
    uint64_t r = 0;
    assert_ok(pawl_row_int64(row, "i", &i, &null));
    assert_int_equal(i, -5);
    assert_false(null);
    assert_ok(pawl_row_float64(row, "f", &f, NULL));
    assert_true(f == 2.5);
    assert_ok(pawl_row_bool(row, "b", &b, NULL));
    assert_true(b);
    assert_ok(pawl_row_string(row, "s", &s, NULL));
    assert_true(is(s, "ada"));
    assert_ok(pawl_row_bytes(row, "y", &y, NULL));
    assert_true(is(y, "\1\2"));
    assert_ok(pawl_row_time(row, "t", &t, NULL));
    assert_int_equal(t.ns, PAWL_SECOND);
    assert_ok(pawl_row_name(row, "q", &q, NULL));
    assert_true(is(q, "t.Order"));
    assert_ok(pawl_row_ref(row, "r", &r, NULL));
    assert_int_equal(r, pawl_row_id(row));
    assert_true(is(pawl_row_type(row), "t.Thing"));
    assert_true(pawl_row_active(row));
    assert_int_equal(pawl_row_parent(row), 0);
    assert_true(pawl_row_has(row, "i"));
}

static void check_empty(const pawl_row *row)
{
    int64_t i = 1;
    double f = 1;
    bool b = true, null = false;
    pawl_bytes s = {"x", 1}, y = s, q = s;
    pawl_wall t = {1};
    uint64_t r = 1;
    assert_ok(pawl_row_int64(row, "i", &i, &null));
    assert_true(null && i == 0);
    null = false;
    assert_ok(pawl_row_float64(row, "f", &f, &null));
    assert_true(null && f == 0);
    null = false;
    assert_ok(pawl_row_bool(row, "b", &b, &null));
    assert_true(null && !b);
    null = false;
    assert_ok(pawl_row_string(row, "s", &s, &null));
    assert_true(null && s.size == 0);
    null = false;
    assert_ok(pawl_row_bytes(row, "y", &y, &null));
    assert_true(null && y.size == 0);
    null = false;
    assert_ok(pawl_row_time(row, "t", &t, &null));
    assert_true(null && t.ns == 0);
    null = false;
    assert_ok(pawl_row_name(row, "q", &q, &null));
    assert_true(null && q.size == 0);
    null = false;
    assert_ok(pawl_row_ref(row, "r", &r, &null));
    assert_true(null && r == 0);
    assert_false(pawl_row_has(row, "i"));
}

static void check_refusals(const pawl_row *row)
{
    static const char *const fields[] = {"i", "f", "b", "s", "y", "t", "q", "r"};
    for (size_t at = 0; at < 8; at++) {
        int64_t i = 9;
        double f = 9;
        bool b = true, null = true;
        pawl_bytes y = {0, 9};
        pawl_wall t = {9};
        uint64_t r = 9;
        int statuses[] = {
            pawl_row_int64(row, fields[at], &i, &null), pawl_row_float64(row, fields[at], &f, &null),
            pawl_row_bool(row, fields[at], &b, &null),  pawl_row_string(row, fields[at], &y, &null),
            pawl_row_bytes(row, fields[at], &y, &null), pawl_row_time(row, fields[at], &t, &null),
            pawl_row_name(row, fields[at], &y, &null),  pawl_row_ref(row, fields[at], &r, &null)};
        for (size_t getter = 0; getter < 8; getter++)
            assert_status(statuses[getter], getter == at ? PAWL_OK : PAWL_EINVAL);
    }
    int64_t untouched = 9;
    bool null = true;
    assert_status(pawl_row_int64(row, "none", &untouched, &null), PAWL_ENOTFOUND);
    assert_status(pawl_row_int64(row, "s", &untouched, &null), PAWL_EINVAL);
    assert_true(untouched == 9 && null);
    assert_false(pawl_row_has(row, "none"));
    assert_status(pawl_row_children(row, NULL, NULL, NULL, NULL), PAWL_EINVAL);
}

struct seen {
    size_t rows;
    uint64_t empty; /* the ID of the record without fields */
};

static bool check_thing(void *arg, const pawl_row *row)
{
    struct seen *seen = arg;
    seen->rows++;
    check_refusals(row);
    if (pawl_row_id(row) == seen->empty)
        check_empty(row);
    else
        check_full(row);
    return true;
}

static bool check_records(void *arg, const pawl_event *event)
{
    struct seen *seen = arg;
    pawl_error error;
    if (!event_is(event, "t.Put"))
        return true;
    assert_null(pawl_event_argument(event));
    assert_ok(pawl_event_records(event, NULL, check_thing, seen, &error));
    return true;
}

TEST(every_type_of_field_is_read_from_a_record_and_from_the_event_that_made_it)
{
    struct lanes_bed bed = {0};
    apply(&bed, "");
    uint64_t full = send(&bed, FULL);
    struct seen seen = {.empty = send(&bed, EMPTY)};
    assert_ok(pawl_record_read(bed.engine, 1, "t.Thing", full, NULL, check_thing, &seen, &bed.error));
    assert_ok(pawl_record_read(bed.engine, 1, "t.Thing", seen.empty, NULL, check_thing, &seen, &bed.error));
    assert_ok(pawl_record_scan(bed.engine, 1, "t.Thing", 0, 10, NULL, check_thing, &seen, NULL, &bed.error));
    assert_ok(pawl_workspace_events_read(bed.engine, 1, 1, 10, check_records, &seen, NULL, &bed.error));
    assert_int_equal(seen.rows, 6);
    bed_end(&bed);
}

/* --- schemas that change --- */

static bool check_late(void *arg, const pawl_row *row)
{
    int64_t late = 9;
    bool null = false;
    assert_ok(pawl_row_int64(row, "late", &late, &null));
    assert_true(null && late == 0);
    assert_false(pawl_row_has(row, "late"));
    ++*(int *)arg;
    return true;
}

static bool check_late_event(void *arg, const pawl_event *event)
{
    assert_ok(pawl_event_records(event, NULL, check_late, arg, NULL));
    return true;
}

TEST(a_field_that_was_added_later_is_null_in_older_rows_and_events)
{
    struct lanes_bed bed = {0};
    int visits = 0;
    apply(&bed, "");
    uint64_t id = send(&bed, FULL);
    apply(&bed, ", 'late': {'type': 'int64'}");
    assert_ok(pawl_record_read(bed.engine, 1, "t.Thing", id, NULL, check_late, &visits, &bed.error));
    assert_ok(pawl_workspace_events_read(bed.engine, 1, 1, 10, check_late_event, &visits, NULL, &bed.error));
    assert_int_equal(visits, 2);
    bed_end(&bed);
}

static bool change_under_it(void *arg, const pawl_row *row)
{
    struct lanes_bed *bed = arg;
    apply(bed, ", 'late': {'type': 'int64'}");
    int visits = 0;
    return check_late(&visits, row);
}

TEST(a_field_that_is_added_while_a_row_is_visited_can_be_asked_for)
{
    struct lanes_bed bed = {0};
    apply(&bed, "");
    uint64_t id = send(&bed, FULL);
    assert_ok(pawl_record_read(bed.engine, 1, "t.Thing", id, NULL, change_under_it, &bed, &bed.error));
    bed_end(&bed);
}

/* --- events --- */

static bool add_note(void *arg, const pawl_row *row)
{
    pawl_bytes said;
    assert_ok(pawl_row_string(row, "said", &said, NULL));
    snprintf((char *)arg + strlen(arg), 100, "%.*s,", (int)said.size, (const char *)said.data);
    return true;
}

static bool add_line(void *arg, const pawl_row *row)
{
    int64_t qty;
    assert_ok(pawl_row_int64(row, "qty", &qty, NULL));
    snprintf((char *)arg + strlen(arg), 100, "%" PRId64 "(", qty);
    assert_ok(pawl_row_children(row, "notes", add_note, arg, NULL));
    snprintf((char *)arg + strlen(arg), 2, ")");
    return true;
}

static bool add_one(void *arg, const pawl_row *row)
{
    add_line(arg, row);
    return false;
}

static bool note_update(void *arg, const pawl_row *row)
{
    bool null = false;
    int64_t i;
    *(bool *)arg = pawl_row_is_update(row);
    assert_true(pawl_row_has(row, "i"));
    assert_true(pawl_row_has(row, "s"));
    assert_false(pawl_row_has(row, "f"));
    assert_ok(pawl_row_int64(row, "i", &i, &null));
    assert_true(null);
    return true;
}

static bool check_place(void *arg, const pawl_event *event)
{
    char lines[512] = "", gifts[512] = "", all[512] = "", one[512] = "";
    bool update = false;
    int64_t cents;
    const pawl_row *order = pawl_event_argument(event);
    pawl_error error;
    pawl_bytes json, again;
    if (!event_is(event, "t.Place"))
        return true;
    assert_non_null(order);
    assert_ok(pawl_row_int64(order, "cents", &cents, NULL));
    assert_int_equal(cents, 12);
    assert_true(is(event->actor, "till") && is(event->key, "k1") && event->correlation.size == 0);
    assert_true(event->wsid == 1 && event->workspace_offset > 0 && event->time.ns > 0);
    assert_ok(pawl_row_children(order, "lines", add_line, lines, &error));
    assert_string_equal(lines, "1(x,y,)3()");
    assert_ok(pawl_row_children(order, "gifts", add_line, gifts, &error));
    assert_string_equal(gifts, "2(z,)");
    assert_ok(pawl_row_children(order, NULL, add_line, all, &error));
    assert_int_equal(strlen(all), strlen(lines) + strlen(gifts));
    assert_ok(pawl_row_children(order, "lines", add_one, one, &error));
    assert_string_equal(one, "1(x,y,)");
    assert_status(pawl_row_children(order, "none", add_line, all, &error), PAWL_ENOTFOUND);
    assert_ok(pawl_event_records(event, "t.Thing", note_update, &update, &error));
    assert_true(update);
    assert_status(pawl_event_records(event, "t.None", note_update, &update, &error), PAWL_ENOTFOUND);
    assert_ok(pawl_event_json(event, &json, &error));
    assert_ok(pawl_event_json(event, &again, &error));
    assert_true(json.data == again.data && json.size == again.size); /* made once */
    assert_int_equal(strlen(json.data), json.size);
    ++*(int *)arg;
    return true;
}

static void place(struct lanes_bed *bed, uint64_t thing)
{
    char form[1024];
    snprintf(form, sizeof form,
             "{'command': 't.Place', 'actor': 'till', 'idempotency_key': 'k1', 'argument': {'id': 1, 'text': "
             "'o', 'cents': 12,"
             " 'lines': [{'id': 2, 'qty': 1, 'notes': [{'id': 3, 'said': 'x'}, {'id': 4, 'said': 'y'}]}, "
             "{'id': 5, 'qty': 3}],"
             " 'gifts': [{'id': 6, 'qty': 2, 'notes': [{'id': 7, 'said': 'z'}]}]},"
             " 'records': [{'id': %" PRIu64 ", 'type': 't.Thing', 'fields': {'i': null, 's': 'bob'}}]}",
             thing);
    send(bed, form);
}

TEST(an_events_argument_its_children_and_its_records_are_read_without_json)
{
    struct lanes_bed bed = {0};
    int visits = 0;
    apply(&bed, "");
    place(&bed, send(&bed, FULL));
    assert_ok(pawl_workspace_events_read(bed.engine, 1, 1, 10, check_place, &visits, NULL, &bed.error));
    assert_int_equal(visits, 1);
    bed_end(&bed);
}

/* --- rows of entities, and pages --- */

struct page {
    int64_t at[16];
    size_t count;
    size_t stop; /* after so many; 0: never */
};

static bool take_seen(void *arg, const pawl_row *row)
{
    struct page *page = arg;
    int64_t times;
    assert_ok(pawl_row_int64(row, "i", &page->at[page->count], NULL));
    assert_ok(pawl_row_int64(row, "times", &times, NULL));
    assert_int_equal(times, 1);
    assert_int_equal(pawl_row_id(row), 0);
    return ++page->count != page->stop;
}

static bool take_id(void *arg, const pawl_row *row)
{
    struct page *page = arg;
    page->at[page->count++] = (int64_t)pawl_row_id(row);
    return page->count != page->stop;
}

static void put(struct lanes_bed *bed, const char *s, int64_t i)
{
    char form[2048];
    snprintf(form, sizeof form,
             "{'command': 't.Put', 'records': [{'id': 1, 'type': 't.Thing', 'fields': {'i': %" PRId64
             ", 's': '%s'}}]}",
             i, s);
    send(bed, form);
}

static int scan(struct lanes_bed *bed, pawl_key after, pawl_cursor *cursor, size_t limit, struct page *page)
{
    return pawl_entity_scan(bed->engine, 1, "t.Seen", after, cursor, limit, NULL, take_seen, page, &bed->error);
}

TEST(pages_of_an_entitys_rows_go_on_behind_the_last_one_to_the_end)
{
    struct lanes_bed bed = {0};
    char shared[701];
    memset(shared, 'k', 700); /* keys that agree in all that is sorted by */
    shared[700] = '\0';
    apply(&bed, "");
    for (int64_t i = 0; i < 7; i++)
        put(&bed, i < 4 ? "a" : shared, i);
    for (size_t limit = 1; limit <= 8; limit++) {
        struct page page = {0};
        pawl_cursor cursor = {0};
        size_t calls = 0;
        for (; !cursor.done; calls++) {
            size_t before = page.count;
            assert_ok(scan(&bed, (pawl_key){0}, &cursor, limit, &page));
            assert_in_range(page.count - before, 0, limit);
        }
        assert_int_equal(page.count, 7);
        assert_int_equal(calls, 7 / limit + 1);
        for (int64_t i = 0; i < 4; i++)
            assert_int_equal(page.at[i], i);
        assert_int_equal(page.at[4] + page.at[5] + page.at[6], 4 + 5 + 6); /* each once */
        assert_ok(scan(&bed, (pawl_key){0}, &cursor, limit, &page));       /* the end stays the end */
        assert_int_equal(page.count, 7);
        pawl_cursor_free(&cursor);
    }
    bed_end(&bed);
}

TEST(a_visitor_that_stops_is_not_called_again_and_the_cursor_goes_on_behind_its_row)
{
    struct lanes_bed bed = {0};
    apply(&bed, "");
    for (int64_t i = 0; i < 5; i++)
        put(&bed, "a", i);
    struct page page = {.stop = 2};
    pawl_cursor cursor = {0};
    assert_ok(scan(&bed, (pawl_key){0}, &cursor, 0, &page));
    assert_true(page.count == 0 && !cursor.done);
    assert_ok(scan(&bed, (pawl_key){0}, &cursor, 10, &page));
    assert_true(page.count == 2 && !cursor.done);
    assert_ok(scan(&bed, (pawl_key){0}, &cursor, 10, &page));
    assert_true(page.count == 5 && cursor.done && page.at[2] == 2 && page.at[4] == 4);
    pawl_cursor_free(&cursor);
    pawl_value after[] = {pawl_value_string("a"), pawl_value_int64(3)};
    page = (struct page){0};
    assert_ok(scan(&bed, (pawl_key){after, 2}, NULL, 10, &page));
    assert_true(page.count == 1 && page.at[0] == 4);

    uint64_t next = 9;
    page = (struct page){.stop = 2};
    assert_ok(pawl_record_scan(bed.engine, 1, "t.Thing", 0, 10, NULL, take_id, &page, &next, &bed.error));
    assert_true(page.count == 2 && next == (uint64_t)page.at[1]);
    assert_ok(pawl_record_scan(bed.engine, 1, "t.Thing", next, 2, NULL, take_id, &page, &next, &bed.error));
    assert_true(page.count == 4 && next == (uint64_t)page.at[3]);
    assert_ok(pawl_record_scan(bed.engine, 1, "t.Thing", next, 2, NULL, take_id, &page, &next, &bed.error));
    assert_true(page.count == 5 && next == 0);
    bed_end(&bed);
}

TEST(a_row_is_found_by_a_key_of_values_and_a_wrong_key_is_refused_with_words)
{
    struct lanes_bed bed = {0};
    struct page page = {0};
    apply(&bed, "");
    put(&bed, "a", 3);
    pawl_value key[] = {pawl_value_string("a"), pawl_value_int64(3), pawl_value_int64(1)};
    pawl_value absent[] = {pawl_value_text((pawl_bytes){"abc", 1}), pawl_value_int64(4)};
    pawl_value other[] = {pawl_value_ref(1), pawl_value_int64(3)};
    pawl_value bad[] = {pawl_value_string("\xff"), pawl_value_int64(3)};
    const struct {
        pawl_key key;
        int status;
        const char *words;
    } cases[] = {
        {{key, 2}, PAWL_OK, ""},
        {{absent, 2}, PAWL_ENOTFOUND, "has no such t.Seen"},
        {{key, 3}, PAWL_EINVAL, "has 2 fields, not 3"},
        {{key, 1}, PAWL_EINVAL, "has 2 fields, not 1"},
        {{NULL, 0}, PAWL_EINVAL, "has 2 fields, not 0"},
        {{other, 2}, PAWL_EINVAL, "s is of type string, not ref"},
        {{bad, 2}, PAWL_EINVAL, "is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bed.error = (pawl_error){0};
        assert_status(
            pawl_entity_read(bed.engine, 1, "t.Seen", cases[i].key, NULL, take_seen, &page, &bed.error),
            cases[i].status);
        assert_contains(bed.error.text, cases[i].words);
    }
    assert_true(page.count == 1 && page.at[0] == 3);
    bed_end(&bed);
}

/* --- handlers --- */

struct sums {
    pawl_handler_ctx *ctx;
    int64_t cents;
    size_t rows;
    int nested;
};

static bool take_sum(void *arg, const pawl_row *row)
{
    struct sums *sums = arg;
    int64_t cents;
    pawl_text text;
    assert_ok(pawl_row_int64(row, "cents", &cents, NULL));
    sums->cents += cents;
    sums->rows++;
    sums->nested = pawl_handler_list(sums->ctx, "t.Sum", (pawl_bytes){0}, 1, &text, NULL);
    return true;
}

/* What all orders before it came to, by both ways of reading. */
static int sum_up(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct sums one = {.ctx = ctx}, all = {.ctx = ctx};
    pawl_value key = pawl_value_string("all");
    int64_t cents = 0;
    pawl_cursor cursor = {0};
    (void)pawl_row_int64(pawl_event_argument(event), "cents", &cents, NULL);
    (void)pawl_handler_read(ctx, "t.Sum", (pawl_key){&key, 1}, take_sum, &one, NULL);
    (void)pawl_handler_scan(ctx, "t.Sum", (pawl_key){0}, &cursor, 10, take_sum, &all, NULL);
    pawl_cursor_free(&cursor);
    if (one.cents != all.cents || (one.rows > 0 && one.nested != PAWL_EMISUSE))
        return pawl_results_fail(results, true, "the two ways differ");
    bed_moment(); /* so that runs overlap */
    atomic_fetch_add((_Atomic int *)arg, 1);
    pawl_results_upsert(results, "t.Sum");
    pawl_results_set_string(results, "text", "all");
    return pawl_results_set_int64(results, "cents", one.cents + cents);
}

TEST(what_a_handler_reads_by_rows_is_validated_as_what_it_reads_by_json)
{
    struct lanes_bed bed = {0};
    static _Atomic int calls;
    apply(&bed, "");
    assert_ok(pawl_projector_register(bed.engine, "t.sums", sum_up, (void *)&calls, &bed.error));
    for (int i = 0; i < 50; i++)
        send(&bed, "{'command': 't.Place', 'argument': {'id': 1, 'cents': 3}}");
    bed_wait(&bed, NULL);
    assert_contains(bed_row(&bed, 1, "t.Sum", "[\"all\"]", 0), "\"cents\":150}");
    pawl_lane_verdict verdict;
    assert_ok(pawl_lane_verify(bed.engine, NULL, &verdict, &bed.error));
    assert_int_equal(verdict.differences, 0);
    assert_in_range(atomic_load(&calls), 50, 1000000);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(every_type_of_field_is_read_from_a_record_and_from_the_event_that_made_it),
        RUN(a_field_that_was_added_later_is_null_in_older_rows_and_events),
        RUN(a_field_that_is_added_while_a_row_is_visited_can_be_asked_for),
        RUN(an_events_argument_its_children_and_its_records_are_read_without_json),
        RUN(pages_of_an_entitys_rows_go_on_behind_the_last_one_to_the_end),
        RUN(a_visitor_that_stops_is_not_called_again_and_the_cursor_goes_on_behind_its_row),
        RUN(a_row_is_found_by_a_key_of_values_and_a_wrong_key_is_refused_with_words),
        RUN(what_a_handler_reads_by_rows_is_validated_as_what_it_reads_by_json),
    };
    return TEST_MAIN(tests);
}
