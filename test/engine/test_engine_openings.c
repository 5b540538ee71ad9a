/* test_engine_openings.c: a node that is opened and closed often: its log has the commands, and no trace of the
 * openings. */
#include "adapter/journal/verify.h"
#include "test/lib/lanes.h"

#define OPENINGS 17

static pawl_log_report verified(const struct lanes_bed *bed)
{
    char log[320];
    snprintf(log, sizeof log, "%s/log", bed->path);
    struct journal_verify_options options = {.dir = log};
    pawl_log_report report;
    pawl_error error;
    assert_ok(journal_verify(&options, &report, &error));
    if (report.faults)
        fail_msg("%s", report.first.error.text);
    pawl_log_report_release(&report);
    assert_true(report.clean);
    return report;
}

/* All lanes have done what there was to do, so that nothing is left for the next opening. */
static void send_and_wait(struct lanes_bed *bed)
{
    uint64_t last = bed_send(bed, 1, "t.Bill", "ada", 5);
    assert_contains(bed_row(bed, 1, "t.Total", "[\"ada\"]", last), "\"cents\"");
    bed_wait(bed, "t.totals");
}

TEST(seventeen_openings_of_a_node_leave_what_one_leaves)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(", \"workers\": 3"));
    send_and_wait(&bed);
    bed_close(&bed);
    pawl_log_report once = verified(&bed);
    for (int i = 1; i < OPENINGS; i++) {
        bed_open(&bed);
        bed_close(&bed);
    }
    pawl_log_report often = verified(&bed);
    print_message("# %" PRIu64 " segments, %" PRIu64 " claims, %" PRIu64 " entries, %" PRIu64 " bytes\n",
                  often.segments, often.claims, often.entries, often.bytes);
    assert_int_equal(often.segments, once.segments);
    assert_int_equal(often.claims, once.claims);
    assert_int_equal(often.records, once.records);
    assert_int_equal(often.bytes, once.bytes);
    bed_open(&bed);
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"bills\":1");
    bed_end(&bed);
}

TEST(an_opening_with_a_command_adds_its_entries_and_the_claims_they_are_under)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(", \"workers\": 3"));
    send_and_wait(&bed);
    bed_close(&bed);
    pawl_log_report once = verified(&bed);
    for (int i = 1; i < OPENINGS; i++) {
        bed_open(&bed);
        send_and_wait(&bed);
        bed_close(&bed);
    }
    pawl_log_report often = verified(&bed);
    assert_int_equal(often.segments, once.segments);
    assert_true(often.entries > once.entries);
    assert_true(often.claims - once.claims <= often.entries - once.entries);
    bed_open(&bed);
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"bills\":17");
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(seventeen_openings_of_a_node_leave_what_one_leaves),
        RUN(an_opening_with_a_command_adds_its_entries_and_the_claims_they_are_under),
    };
    return TEST_MAIN(tests);
}
