/* test_engine_many_rows.c: a clause that matches a million rows is one operation, or one refusal; commands and
 * other lanes do not wait for it. */
#include "test/lib/lanes.h"

#define ROWS       INT64_C(1000000)
#define ROWS_EVENT INT64_C(10000) /* that one event makes */

#define CELLS                                                                                                  \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"                                    \
    " \"types\": {\"Item\": {\"kind\": \"WDoc\", \"fields\": {\"who\": {\"type\": \"string\"},"                \
    "   \"cents\": {\"type\": \"int64\"}}}},"                                                                  \
    " \"commands\": {\"Fill\": {\"records\": [\"Item\"]}, \"Raise\": {\"records\": [\"Item\"]},"               \
    "   \"Stamp\": {\"records\": [\"Item\"]}, \"Ask\": {\"records\": [\"Item\"]}},"                            \
    " \"entities\": {"                                                                                         \
    "   \"Cell\": {\"key\": [\"row\"], \"fields\": {\"row\": {\"type\": \"int64\"},"                           \
    "     \"cents\": {\"type\": \"int64\"}, \"text\": {\"type\": \"string\"}}},"                               \
    "   \"Mark\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"}}}},"                    \
    " \"projectors\": {"                                                                                       \
    "   \"fill\": {\"on\": [\"Fill\"], \"writes\": [\"Cell\"], \"lane\": \"cells\"},"                          \
    "   \"raise\": {\"on\": [\"Raise\"], \"lane\": \"cells\", \"do\": [{\"update\": \"Cell\","                 \
    "     \"where\": \"cents >= 0\", \"set\": {\"cents\": \"cents + $event.records.Item.cents\"}}]},"          \
    "   \"stamp\": {\"on\": [\"Stamp\"], \"lane\": \"cells\", \"do\": [{\"update\": \"Cell\","                 \
    "     \"where\": \"cents >= 0\", \"set\": {\"text\": \"$event.records.Item.who\"}}]},"                     \
    "   \"marks\": {\"on\": [\"Ask\"], \"do\": [{\"upsert\": \"Mark\","                                        \
    "     \"key\": {\"event\": \"$event.offset\"}, \"set\": {}}]}}}"

static bool take_cents(void *arg, const pawl_row *row)
{
    (void)pawl_row_int64(row, "cents", arg, NULL);
    return true;
}

/* Rows of its own for each event: as many as it takes, from the record's number on. */
static int fill(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    int64_t first = -1;
    (void)ctx;
    (void)arg;
    (void)pawl_event_records(event, NULL, take_cents, &first, NULL);
    if (first < 0)
        return pawl_results_fail(results, true, "where do they begin?");
    for (int64_t row = first; row < first + ROWS_EVENT; row++) {
        pawl_results_upsert(results, "t.Cell");
        pawl_results_set_int64(results, "row", row);
        pawl_results_set_int64(results, "cents", row % 100);
    }
    return PAWL_OK;
}

static uint64_t lane_offset(struct lanes_bed *bed, uint16_t partition)
{
    return bed_status(bed, "t.cells", partition, 0).offset;
}

static void fill_rows(struct lanes_bed *bed, int64_t rows)
{
    bed_begin(bed, CELLS);
    assert_ok(pawl_projector_register(bed->engine, "t.fill", fill, NULL, &bed->error));
    for (int64_t first = 0; first < rows; first += ROWS_EVENT)
        bed_send(bed, 1, "t.Fill", "ada", first);
    bed_wait(bed, "t.cells");
}

static int64_t cents_of(struct lanes_bed *bed, int64_t row)
{
    char key[32];
    snprintf(key, sizeof key, "[%" PRId64 "]", row);
    const char *found = strstr(bed_row(bed, 1, "t.Cell", key, 0), "\"cents\":");
    return found ? strtoll(found + strlen("\"cents\":"), NULL, 10) : -1;
}

TEST(a_million_rows_that_match_are_changed_while_everything_else_goes_on)
{
    struct lanes_bed bed = {0};
    fill_rows(&bed, ROWS);
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    uint64_t raised = bed_send(&bed, 1, "t.Raise", "ada", 1000);
    unsigned meanwhile = 0;
    while (lane_offset(&bed, partition) < raised) {
        bed_row(&bed, 1, "t.Mark", "[1]", bed_send(&bed, 1, "t.Ask", "ada", 1));
        meanwhile += lane_offset(&bed, partition) < raised;
    }
    print_message("# %u commands were answered, and projected by another lane, meanwhile\n", meanwhile);
    assert_true(meanwhile > 0);
    for (int64_t row = 0; row < ROWS; row += ROWS / 97)
        assert_int_equal(cents_of(&bed, row), row % 100 + 1000);
    assert_int_equal(cents_of(&bed, ROWS - 1), 99 + 1000);
    assert_int_equal(cents_of(&bed, ROWS), -1);
    bed_end(&bed);
}

TEST(what_does_not_fit_into_an_operation_stalls_its_lane_alone)
{
    enum { LONG = 1000, MANY = 100000 };
    struct lanes_bed bed = {0};
    char text[LONG + 1];
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    fill_rows(&bed, MANY);
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    bed_send(&bed, 1, "t.Stamp", text, 1);
    assert_status(pawl_lanes_wait(bed.engine, "t.cells", BED_PATIENCE, &bed.error), PAWL_EBUSY);
    assert_contains(bed.error.text, "stalled");
    bed_row(&bed, 1, "t.Mark", "[1]", bed_send(&bed, 1, "t.Ask", "ada", 1));
    assert_ok(
        pawl_lane_void(bed.engine, partition, "t.cells", 0, MANY / ROWS_EVENT + 1, "too much", &bed.error));
    bed_wait(&bed, "t.cells");
    assert_int_equal(cents_of(&bed, MANY - 1), 99);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_million_rows_that_match_are_changed_while_everything_else_goes_on),
        RUN(what_does_not_fit_into_an_operation_stalls_its_lane_alone),
    };
    return TEST_MAIN(tests);
}
