/* test_lost_write.c: if one of two hundred thousand writes to the live stores is lost, that is found while
 * commands go on. Here none is lost. With test/sabotage/applier-drops-a-write.patch every 100,000th is lost,
 * and this test must fail. No row is written twice: so no later event repairs a lost row, and only reading it
 * again shows the loss. */
#include "test/engine/twice.h"

#define COMMANDS 72000 /* of three rows each, in three tables; the workspaces are a fourth */
#define TABLES   4

TEST(two_hundred_thousand_writes_are_all_there_and_nothing_is_said)
{
    struct twice t;
    twice_make(&t);
    t.total_key = "$event.records.Invoice.number";
    t.knobs.checkpoint_rows = 0; /* each transaction is synced, and there are many */
    t.knobs.scrub_pause = PAWL_MILLISECOND;
    twice_begin(&t);
    twice_bill_flying(&t, COMMANDS);
    pawl_figures figures = twice_wait(&t, 0);
    uint64_t before = figures.scrubs, round = t.options.partitions * TABLES * 2;
    while (figures.alerts == 0 && figures.scrubs < before + 2 * round) {
        twice_pause();
        figures = twice_figures(&t);
    }
    pawl_alert alert = {0};
    size_t alerts;
    pawl_alerts(t.engine, &alert, 1, &alerts);
    print_message("# %" PRIu64 " tables read, %zu alerts: %s\n", figures.scrubs, alerts, alert.text);
    assert_int_equal(figures.alerts, 0);
    assert_int_equal(figures.scrubs_missed, 0);
    twice_close(&t);
    twice_check(&t);
    twice_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(two_hundred_thousand_writes_are_all_there_and_nothing_is_said),
    };
    return TEST_MAIN(tests);
}
