/* test_engine_lists.c: lists of workspaces, last numbers and entities. They are right however far the sequence
 * storage lags behind the events. */
#include <pawl/pawl.h>

#include "base/bytes.h"
#include "test/lib/beds.h"
#include "test/lib/dir.h"

static const char schema[] =
    "{\"schema\": 1, \"package\": \"t\","
    " \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": {\"first\": 1}}}, \"other\": {}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {\"number\": {\"type\": \"int64\","
    "   \"sequence\": \"invoice\"}, \"place\": {\"type\": \"string\"}, \"table\": {\"type\": \"int64\"}}}},"
    " \"entities\": {\"Seat\": {\"key\": [\"place\", \"table\"], \"fields\": {\"place\": {\"type\": "
    "\"string\"},"
    "   \"table\": {\"type\": \"int64\"}, \"bills\": {\"type\": \"int64\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}},"
    " \"projectors\": {\"seats\": {\"on\": [\"Bill\"], \"sync\": true, \"do\": [{\"upsert\": \"Seat\","
    "   \"key\": {\"place\": \"$event.records.Invoice.place\", \"table\": \"$event.records.Invoice.table\"},"
    "   \"set\": {\"bills\": \"coalesce(bills, 0) + 1\"}}]}}}";

#define MANY 1100 /* more than one page */

struct bench {
    char dir[256];
    char data[300];
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error;
};

static void open_it(struct bench *b, pawl_options options)
{
    assert_ok(beds_open(b->data, &options, &b->engine, &b->error));
    assert_ok(pawl_request_new(b->engine, &b->request));
}

static void shut(struct bench *b)
{
    pawl_request_free(b->request);
    assert_ok(pawl_close(b->engine));
}

static void begin(struct bench *b, uint32_t partitions)
{
    *b = (struct bench){0};
    test_dir_make(b->dir, sizeof b->dir);
    snprintf(b->data, sizeof b->data, "%s/data", b->dir);
    open_it(b, (pawl_options){.partitions = partitions, .shards = 2});
    assert_ok(pawl_schema_apply(b->engine, schema, NULL, &b->error));
}

static void end(struct bench *b)
{
    shut(b);
    test_dir_remove(b->dir);
}

static void create(struct bench *b, uint64_t wsid)
{
    assert_ok(pawl_workspace_create(b->engine, b->request, wsid, "t.tenant", NULL, &b->error));
}

static void bill(struct bench *b, uint64_t wsid, const char *place, int64_t table)
{
    pawl_request_begin(b->request, wsid, "t.Bill");
    pawl_request_record(b->request, 1, "t.Invoice");
    pawl_request_set_string(b->request, "place", place);
    pawl_request_set_int64(b->request, "table", table);
    assert_ok(pawl_command(b->engine, b->request, NULL, &b->error));
}

/* --- workspaces --- */

struct list {
    uint64_t wsids[MANY];
    size_t count;
    size_t stop_at; /* 0: never */
};

static bool take(void *arg, const pawl_workspace *w)
{
    struct list *list = arg;
    assert_true(list->count < MANY);
    assert_true(bytes_equal(w->kind, text_bytes("t.tenant")));
    assert_true(w->workspace_offset >= 1 && w->offset >= w->workspace_offset);
    list->wsids[list->count++] = w->wsid;
    return list->count != list->stop_at;
}

static void check_pages(struct bench *b, const struct list *all, size_t page)
{
    static struct list paged;
    paged = (struct list){0};
    for (size_t before = SIZE_MAX; before != paged.count;) {
        before = paged.count;
        uint64_t after = before ? paged.wsids[before - 1] : 0;
        assert_ok(pawl_workspaces_read(b->engine, after, page, take, &paged, &b->error));
        assert_true(paged.count - before <= page);
    }
    assert_int_equal(paged.count, all->count);
    assert_memory_equal(paged.wsids, all->wsids, all->count * sizeof all->wsids[0]);
}

static void check_workspaces(uint32_t partitions)
{
    static struct list all, some;
    static bool seen[MANY + 1];
    struct bench b;
    begin(&b, partitions);
    for (uint64_t wsid = 1; wsid <= MANY; wsid++)
        create(&b, wsid);
    all = (struct list){0};
    memset(seen, 0, sizeof seen);
    assert_ok(pawl_workspaces_read(b.engine, 0, SIZE_MAX, take, &all, &b.error));
    assert_int_equal(all.count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_false(seen[all.wsids[i]]);
        seen[all.wsids[i]] = true;
    }
    check_pages(&b, &all, 7);
    check_pages(&b, &all, 1000);
    some = (struct list){.stop_at = 3};
    assert_ok(pawl_workspaces_read(b.engine, 0, SIZE_MAX, take, &some, &b.error));
    assert_int_equal(some.count, 3);
    some = (struct list){0};
    assert_ok(pawl_workspaces_read(b.engine, 0, 0, take, &some, &b.error));
    assert_ok(pawl_workspaces_read(b.engine, all.wsids[MANY - 1], SIZE_MAX, take, &some, &b.error));
    assert_int_equal(some.count, 0);
    end(&b);
}

TEST(all_workspaces_are_listed_once_in_pages_of_any_size)
{
    check_workspaces(4);
}

TEST(all_workspaces_of_a_single_partition_are_listed_too)
{
    check_workspaces(1);
}

TEST(a_workspace_is_as_its_last_event_left_it)
{
    struct bench b;
    pawl_workspace w;
    begin(&b, 4);
    create(&b, 7);
    create(&b, UINT64_MAX);
    bill(&b, 7, "x", 1);
    assert_ok(pawl_workspace_get(b.engine, 7, NULL, &w, &b.error));
    assert_int_equal(w.wsid, 7);
    assert_int_equal(w.partition, pawl_partition_of(b.engine, 7));
    assert_int_equal(w.workspace_offset, 2);
    assert_ok(pawl_workspace_get(b.engine, UINT64_MAX, NULL, &w, &b.error));
    assert_int_equal(w.workspace_offset, 1);
    assert_status(pawl_workspace_get(b.engine, 8, NULL, &w, &b.error), PAWL_ENOTFOUND);
    pawl_read_options ahead = {.min_offset = 1000, .timeout = PAWL_MILLISECOND};
    assert_status(pawl_workspace_get(b.engine, 7, &ahead, &w, &b.error), PAWL_ETIMEOUT);
    end(&b);
}

TEST(workspaces_are_shown_as_json_too)
{
    struct bench b;
    pawl_text text;
    uint64_t after = 99;
    begin(&b, 1);
    create(&b, 7);
    create(&b, UINT64_MAX);
    bill(&b, 7, "x", 1);
    assert_ok(pawl_workspace_show(b.engine, 7, NULL, &text, &b.error));
    assert_string_equal(text.data,
                        "{\"wsid\":7,\"kind\":\"t.tenant\",\"partition\":0,\"offset\":3,\"workspace_offset\":2,"
                        "\"frozen\":false,"
                        "\"sequences\":{\"sys.WLogOffsetSeq\":2,\"sys.RecIDSeq\":200001,\"t.invoice\":1}}");
    pawl_text_free(&text);
    assert_status(pawl_workspace_show(b.engine, 8, NULL, &text, &b.error), PAWL_ENOTFOUND);
    size_t lines = 0;
    for (after = 0; lines == 0 || after > 0; lines++) {
        assert_ok(pawl_workspaces_list(b.engine, after, 1, &text, &after, &b.error));
        if (lines < 2)
            assert_true(text.size > 0 && text.data[text.size - 1] == '\n' && strstr(text.data, "\"wsid\":"));
        else
            assert_int_equal(text.size, 0);
        pawl_text_free(&text);
    }
    assert_int_equal(lines, 3); /* the third page is empty */
    end(&b);
}

TEST(an_offset_that_is_told_is_read_without_waiting)
{
    struct bench b;
    pawl_text text;
    uint64_t state, rows;
    const pawl_duration no_time = 1;
    begin(&b, 1);
    create(&b, 7);
    for (int i = 0; i < 20; i++) {
        bill(&b, 7, "x", i);
        assert_ok(pawl_offset_get(b.engine, 0, &state, &b.error));
        assert_ok(pawl_entity_offset_get(b.engine, 7, "t.Seat", &rows, &b.error));
        assert_int_equal(state, i + 2); /* the command was answered, so it is applied */
        assert_int_equal(rows, i + 2);
        pawl_read_options options = {.min_offset = rows, .timeout = no_time};
        assert_ok(pawl_entity_list(b.engine, 7, "t.Seat", (pawl_bytes){0}, 1, &options, &text, &b.error));
        pawl_text_free(&text);
    }
    assert_status(pawl_offset_get(b.engine, 1, &state, &b.error), PAWL_EINVAL);
    assert_status(pawl_entity_offset_get(b.engine, 7, "t.Invoice", &rows, &b.error), PAWL_ENOTFOUND);
    shut(&b);
    open_it(&b, (pawl_options){.read_only = true});
    assert_ok(pawl_offset_get(b.engine, 0, &state, &b.error));
    assert_int_equal(state, 21);
    end(&b);
}

/* --- last numbers --- */

struct numbers {
    char text[400];
    size_t rows;
    uint64_t last_wsid;
};

static bool take_number(void *arg, const pawl_last_number *n)
{
    struct numbers *numbers = arg;
    size_t size = strlen(numbers->text);
    if (size < sizeof numbers->text - 100)
        snprintf(numbers->text + size, 100, "%" PRIu64 " %.*s %" PRIu64 "\n", n->wsid, (int)n->sequence.size,
                 (const char *)n->sequence.data, n->number);
    assert_true(n->wsid >= numbers->last_wsid);
    numbers->last_wsid = n->wsid;
    numbers->rows++;
    return true;
}

static void check_numbers(struct bench *b, uint64_t wsid, const char *expected)
{
    struct numbers numbers = {0};
    assert_ok(pawl_last_numbers_read(b->engine, 0, wsid, take_number, &numbers, &b->error));
    assert_string_equal(numbers.text, expected);
}

TEST(last_numbers_are_those_of_the_events_before_and_after_the_storage_has_them)
{
    static const char all[] =
        "0 sys.PLogOffsetSeq 5\n7 sys.WLogOffsetSeq 3\n7 sys.RecIDSeq 200002\n7 t.invoice 2\n"
        "9 sys.WLogOffsetSeq 2\n9 sys.RecIDSeq 200001\n9 t.invoice 1\n";
    static const char seven[] = "7 sys.WLogOffsetSeq 3\n7 sys.RecIDSeq 200002\n7 t.invoice 2\n";
    struct bench b;
    begin(&b, 1);
    create(&b, 9);
    create(&b, 7);
    bill(&b, 7, "x", 1);
    bill(&b, 9, "x", 1);
    bill(&b, 7, "x", 1);
    check_numbers(&b, 0, all);
    check_numbers(&b, 7, seven);
    shut(&b);
    open_it(&b, (pawl_options){.read_only = true});
    check_numbers(&b, 0, all);
    check_numbers(&b, 7, seven);
    shut(&b);
    open_it(&b, (pawl_options){0});
    bill(&b, 7, "x", 1); /* half of it in the storage, half behind */
    check_numbers(&b, 7, "7 sys.WLogOffsetSeq 4\n7 sys.RecIDSeq 200003\n7 t.invoice 3\n");
    struct numbers none = {0};
    assert_status(pawl_last_numbers_read(b.engine, 0, 8, take_number, &none, &b.error), PAWL_ENOTFOUND);
    assert_status(pawl_last_numbers_read(b.engine, 1, 0, take_number, &none, &b.error), PAWL_EINVAL);
    assert_int_equal(none.rows, 0);
    end(&b);
}

TEST(last_numbers_of_many_workspaces_come_in_their_order)
{
    struct bench b;
    begin(&b, 1);
    for (uint64_t wsid = MANY; wsid >= 1; wsid--)
        create(&b, wsid);
    for (int round = 0; round < 2; round++) {
        struct numbers numbers = {0};
        assert_ok(pawl_last_numbers_read(b.engine, 0, 0, take_number, &numbers, &b.error));
        assert_int_equal(numbers.rows, MANY + 1);
        shut(&b);
        open_it(&b, (pawl_options){0});
    }
    end(&b);
}

/* --- entities --- */

static void check_entity(struct bench *b, const char *key, const char *expected)
{
    pawl_text text;
    assert_ok(pawl_entity_get(b->engine, 7, "t.Seat", text_bytes(key), NULL, &text, &b->error));
    assert_string_equal(text.data, expected);
    pawl_text_free(&text);
}

static void check_list(struct bench *b, const char *after, size_t limit, const char *expected)
{
    pawl_text text;
    pawl_bytes behind = {after, after ? strlen(after) : 0};
    assert_ok(pawl_entity_list(b->engine, 7, "t.Seat", behind, limit, NULL, &text, &b->error));
    assert_string_equal(text.data, expected);
    pawl_text_free(&text);
}

TEST(rows_of_entities_are_found_by_all_fields_of_their_keys_and_sorted_by_them)
{
#define ROW(place, table, bills) "{\"place\":\"" place "\",\"table\":" table ",\"bills\":" bills "}"
    struct bench b;
    pawl_text text;
    begin(&b, 4);
    create(&b, 7);
    create(&b, 8);
    bill(&b, 7, "bar", 2);
    bill(&b, 7, "b", 9);
    bill(&b, 7, "bar", -1);
    bill(&b, 7, "bar", 2);
    bill(&b, 8, "bar", 2);
    check_entity(&b, "[\"bar\", 2]", ROW("bar", "2", "2"));
    check_entity(&b, "{\"table\": -1, \"place\": \"bar\"}", ROW("bar", "-1", "1"));
    check_list(&b, NULL, 10, ROW("b", "9", "1") "\n" ROW("bar", "-1", "1") "\n" ROW("bar", "2", "2") "\n");
    check_list(&b, NULL, 1, ROW("b", "9", "1") "\n");
    check_list(&b, "[\"bar\", -1]", 10, ROW("bar", "2", "2") "\n");
    check_list(&b, "[\"bar\", 0]", 10, ROW("bar", "2", "2") "\n"); /* a key that no row has */
    check_list(&b, "[\"bar\", 2]", 10, "");
    static const char *const bad[] = {
        "[\"bar\"]",          "[\"bar\", null]", "{\"place\": \"bar\"}",
        "[\"bar\", \"two\"]", "[\"bar\"",        "{\"place\": \"bar\", \"bills\": 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_status(pawl_entity_get(b.engine, 7, "t.Seat", text_bytes(bad[i]), NULL, &text, &b.error),
                      PAWL_EINVAL);
    pawl_bytes key = text_bytes("[\"bar\", 5]");
    assert_status(pawl_entity_get(b.engine, 7, "t.Seat", key, NULL, &text, &b.error), PAWL_ENOTFOUND);
    assert_status(pawl_entity_get(b.engine, 7, "t.Invoice", key, NULL, &text, &b.error), PAWL_ENOTFOUND);
    assert_status(pawl_entity_list(b.engine, 9, "t.Seat", (pawl_bytes){0}, 1, NULL, &text, &b.error),
                  PAWL_ENOTFOUND);
    end(&b);
}

TEST(rows_of_entities_come_page_by_page_with_a_cursor_that_survives_as_text)
{
    struct bench b;
    pawl_text text, all, marked;
    pawl_cursor cursor = {0};
    size_t rows = 0;
    begin(&b, 1);
    create(&b, 7);
    for (int i = 0; i < 50; i++)
        bill(&b, 7, "bar", i);
    assert_ok(pawl_entity_list(b.engine, 7, "t.Seat", (pawl_bytes){0}, 100, NULL, &all, &b.error));
    const char *at = all.data;
    while (!cursor.done) {
        assert_ok(pawl_entity_page(b.engine, 7, "t.Seat", (pawl_bytes){0}, &cursor, 7, NULL, &text, &b.error));
        assert_memory_equal(text.data, at, text.size);
        at += text.size;
        pawl_text_free(&text);
        assert_ok(pawl_cursor_format(&cursor, &marked, &b.error));
        pawl_cursor_free(&cursor);
        assert_ok(pawl_cursor_parse(b.engine, marked.data, &cursor, &b.error));
        pawl_text_free(&marked);
        assert_true(++rows < 20);
    }
    assert_int_equal(*at, '\0');
    pawl_cursor_free(&cursor);
    pawl_text_free(&all);
    assert_ok(pawl_entity_page(b.engine, 7, "t.Seat", text_bytes("[\"bar\", 48]"), &cursor, 7, NULL, &text,
                               &b.error));
    assert_string_equal(text.data, ROW("bar", "49", "1") "\n");
    assert_true(cursor.done);
    pawl_text_free(&text);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(all_workspaces_are_listed_once_in_pages_of_any_size),
        RUN(all_workspaces_of_a_single_partition_are_listed_too),
        RUN(a_workspace_is_as_its_last_event_left_it),
        RUN(workspaces_are_shown_as_json_too),
        RUN(an_offset_that_is_told_is_read_without_waiting),
        RUN(last_numbers_are_those_of_the_events_before_and_after_the_storage_has_them),
        RUN(last_numbers_of_many_workspaces_come_in_their_order),
        RUN(rows_of_entities_are_found_by_all_fields_of_their_keys_and_sorted_by_them),
        RUN(rows_of_entities_come_page_by_page_with_a_cursor_that_survives_as_text),
    };
    return TEST_MAIN(tests);
}
