/* test_engine_operations.c: operations of a lane, read from C: their fields and the rows that they wrote, page
 * by page. */
#include "test/lib/lanes.h"

#define NOTES ", \"workers\": 1"

/* Does what the event's amount says. */
enum { MAKE = 1, CLEAR, DELETE, FAIL };

static bool take_cents(void *arg, const pawl_row *record)
{
    assert_ok(pawl_row_int64(record, "cents", arg, NULL));
    return false;
}

static int note(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    int64_t what = 0;
    (void)ctx;
    (void)arg;
    assert_ok(pawl_event_records(event, NULL, take_cents, &what, NULL));
    if (what == FAIL)
        return pawl_results_fail(results, true, "it rains");
    if (what == DELETE)
        pawl_results_delete(results, "t.Note", NULL);
    else if (what == CLEAR)
        pawl_results_update(results, "t.Note", NULL);
    else
        pawl_results_upsert(results, "t.Note");
    pawl_results_set_int64(results, "event", 7);
    if (what == MAKE) {
        pawl_results_set_string(results, "text", "ink");
        pawl_results_set_int64(results, "sum", 40);
    } else if (what == CLEAR)
        pawl_results_set_null(results, "text");
    return PAWL_OK;
}

static bool is(pawl_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

/* What was found, in memory of the test's own. */
struct found {
    size_t operations;
    uint64_t numbers[8], events[8];
    char json[8][512];
    bool is_void[8];
    char reason[64];
    size_t rows;
    pawl_write_kind kinds[8];
    struct {
        bool has_event, has_text, has_sum, null_text;
        int64_t event, sum;
        char text[16];
    } notes[8];
};

static bool take_note(void *arg, pawl_write_kind kind, const pawl_row *row)
{
    struct found *f = arg;
    pawl_bytes text;
    assert_true(is(pawl_row_type(row), "t.Note"));
    f->kinds[f->rows] = kind;
    f->notes[f->rows].has_event = pawl_row_has(row, "event");
    f->notes[f->rows].has_text = pawl_row_has(row, "text");
    f->notes[f->rows].has_sum = pawl_row_has(row, "sum");
    assert_false(pawl_row_has(row, "nothing"));
    assert_ok(pawl_row_int64(row, "event", &f->notes[f->rows].event, NULL));
    assert_ok(pawl_row_int64(row, "sum", &f->notes[f->rows].sum, NULL));
    assert_ok(pawl_row_string(row, "text", &text, &f->notes[f->rows].null_text));
    assert_status(pawl_row_string(row, "event", &text, NULL), PAWL_EINVAL);
    assert_status(pawl_row_string(row, "nothing", &text, NULL), PAWL_ENOTFOUND);
    snprintf(f->notes[f->rows].text, sizeof f->notes[0].text, "%.*s", (int)text.size, (const char *)text.data);
    f->rows++;
    return true;
}

static bool take_operation(void *arg, const pawl_operation *operation)
{
    struct found *f = arg;
    pawl_error error;
    pawl_bytes json, again;
    size_t i = f->operations++;
    f->numbers[i] = operation->number;
    f->events[i] = operation->event;
    f->is_void[i] = operation->is_void;
    if (operation->is_void)
        snprintf(f->reason, sizeof f->reason, "%.*s", (int)operation->reason.size,
                 (const char *)operation->reason.data);
    assert_true(is(operation->projector, "t.notes") && operation->wsid == 1 && operation->attempt == 1);
    assert_true(operation->schema > 0 && operation->time.ns > 0 && (operation->id.high || operation->id.low));
    assert_ok(pawl_operation_writes(operation, "t.Note", take_note, f, &error));
    assert_ok(pawl_operation_writes(operation, "t.Mark", take_note, f, &error)); /* of which it has none */
    assert_status(pawl_operation_writes(operation, "t.Item", take_note, f, &error), PAWL_ENOTFOUND);
    assert_status(pawl_operation_writes(operation, "t.Nothing", take_note, f, &error), PAWL_ENOTFOUND);
    assert_ok(pawl_operation_json(operation, &json, &error));
    assert_ok(pawl_operation_json(operation, &again, &error));
    assert_true(json.data == again.data && ((const char *)json.data)[json.size] == '\0');
    snprintf(f->json[i], sizeof f->json[i], "%s", (const char *)json.data);
    return true;
}

TEST(an_operation_tells_its_rows_field_by_field)
{
    struct lanes_bed bed = {.options = {.partitions = 1, .shards = 1}};
    struct found f = {0};
    uint64_t events[4], next = 0;
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, NULL, &bed.error));
    for (int what = MAKE; what <= FAIL; what++)
        events[what - MAKE] = bed_send(&bed, 1, "t.Ask", "ada", what);
    bed_wait(&bed, "t.notes");
    assert_ok(pawl_operations_read(bed.engine, 0, "t.notes", 0, 1, 8, take_operation, &f, &next, &bed.error));
    assert_int_equal(f.operations, 4);
    assert_int_equal(next, 5);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(f.numbers[i], i + 1);
        assert_int_equal(f.events[i], events[i]);
        assert_int_equal(f.is_void[i], i == 3);
    }
    assert_string_equal(f.reason, "it rains");
    assert_int_equal(f.rows, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(f.notes[i].has_event && f.notes[i].event == 7);
    assert_int_equal(f.kinds[0], PAWL_WRITE_UPSERT);
    assert_true(f.notes[0].has_text && !f.notes[0].null_text && f.notes[0].has_sum && f.notes[0].sum == 40);
    assert_string_equal(f.notes[0].text, "ink");
    assert_int_equal(f.kinds[1], PAWL_WRITE_UPDATE);
    assert_true(f.notes[1].has_text && f.notes[1].null_text && !f.notes[1].has_sum);
    assert_int_equal(f.kinds[2], PAWL_WRITE_DELETE);
    assert_true(!f.notes[2].has_text && !f.notes[2].has_sum);
    assert_contains(f.json[0], "\"rows\":[{\"key\":{\"event\":7},\"set\":{\"text\":\"ink\",\"sum\":40}}]");
    assert_contains(f.json[3], "\"void\":\"it rains\"");
    bed_end(&bed);
}

static bool take_numbers(void *arg, const pawl_operation *operation)
{
    struct found *f = arg;
    f->numbers[f->operations++] = operation->number;
    return true;
}

TEST(operations_are_read_page_by_page)
{
    struct lanes_bed bed = {.options = {.partitions = 1, .shards = 1}};
    struct found f = {0};
    uint64_t next = 1;
    bed_begin(&bed, LANES_SCHEMA(""));
    for (int i = 0; i < 5; i++)
        bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_wait(&bed, "t.marks");
    for (size_t page = 1; page <= 3; page++) {
        assert_ok(
            pawl_operations_read(bed.engine, 0, "t.marks", 0, next, 2, take_numbers, &f, &next, &bed.error));
        assert_int_equal(f.operations, page < 3 ? 2 * page : 5);
        assert_int_equal(next, f.operations + 1);
    }
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(f.numbers[i], i + 1);
    bed_end(&bed);
}

static bool take_total(void *arg, pawl_write_kind kind, const pawl_row *row)
{
    int64_t *cents = arg;
    pawl_bytes who;
    assert_int_equal(kind, PAWL_WRITE_UPDATE);
    assert_ok(pawl_row_string(row, "who", &who, NULL)); /* a string of the key */
    assert_true(is(who, "ada") || is(who, "bob"));
    assert_ok(pawl_row_int64(row, "cents", &cents[is(who, "bob")], NULL));
    return true;
}

static bool take_totals(void *arg, const pawl_operation *operation)
{
    assert_true(is(operation->projector, "t.raise"));
    assert_ok(pawl_operation_writes(operation, NULL, take_total, arg, NULL));
    return true;
}

TEST(an_update_of_many_rows_names_each_by_its_key)
{
    struct lanes_bed bed = {.options = {.partitions = 1, .shards = 1}};
    int64_t cents[2] = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Bill", "ada", 200);
    bed_send(&bed, 1, "t.Bill", "bob", 300);
    bed_send(&bed, 1, "t.Bill", "eve", 5);
    bed_send(&bed, 1, "t.Raise", "", 11);
    bed_wait(&bed, "t.totals");
    assert_ok(pawl_operations_read(bed.engine, 0, "t.totals", 0, 4, 1, take_totals, cents, NULL, &bed.error));
    assert_true(cents[0] == 211 && cents[1] == 311);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_operation_tells_its_rows_field_by_field),
        RUN(operations_are_read_page_by_page),
        RUN(an_update_of_many_rows_names_each_by_its_key),
    };
    return TEST_MAIN(tests);
}
