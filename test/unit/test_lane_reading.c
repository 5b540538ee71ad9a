/* What a lane reads: clauses that match nothing or very much, events that match no projector, events that were
 * half done, logs that are long or busy. */
#include "test/lib/two_lanes.h"

/* --- clauses --- */

TEST(a_clause_that_matches_nothing_is_an_ordinary_operation)
{
    struct lane_bed b;
    struct attempt a;
    struct operation op;
    open_lanes(&b);
    lane_bed_event(&b, "Sweep", WS, 1, 100);
    acquire(&a, &b, SWEEP);
    attempt_explode(&a);
    assert_ok(attempt_hand_in(&a));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(a.told);
    assert_int_equal(lane_bed_operation(&b, MAIN, 1, &op, NULL), OPERATION_WRITES);
    assert_int_equal(op.count, 0);
    attempt_release(&a);
    close_lanes(&b);
}

enum { ROWS = 100000, ROWS_AT_ONCE = 20000 };

/* A sweep over many rows that does not stand, because a row was changed before its turn. */
static void sweep_that_does_not_stand(struct lane_bed *b, struct attempt *slow, struct attempt *sweep)
{
    lane_bed_open(b, two_lanes);
    b->limits.explode = lane_bed_explode;
    lane_bed_boot(b);
    for (int64_t k = 0; k < ROWS; k += ROWS_AT_ONCE) {
        lane_bed_event(b, "Slow", WS, 1, 0);
        acquire(slow, b, SLOW);
        attempt_put_many(slow, k, ROWS_AT_ONCE, 3);
        attempt_explode(slow);
        assert_ok(attempt_hand_in(slow));
        lane_bed_pass(b, PAWL_SECOND);
        assert_ok(slow->told);
        attempt_release(slow);
    }
    lane_bed_event(b, "Slow", WS, 1, 0);
    lane_bed_event(b, "Sweep", WS, 1, 5);
    acquire(slow, b, SLOW);
    acquire(sweep, b, SWEEP);
    attempt_explode(sweep);
    assert_ok(attempt_hand_in(sweep));
    attempt_put(slow, 99, 10);
    attempt_explode(slow);
    assert_ok(attempt_hand_in(slow));
    lane_bed_pass(b, PAWL_SECOND);
    assert_ok(slow->told);
    assert_ptr_equal(b->exploding, &sweep->run);
    attempt_release(slow);
}

TEST(a_clause_over_many_rows_is_done_again_elsewhere_and_nothing_waits_for_it_but_its_lane)
{
    struct lane_bed b;
    struct attempt slow, sweep;
    struct operation op;
    sweep_that_does_not_stand(&b, &slow, &sweep);
    lane_bed_event(&b, "Aside", WS, 4, 0);
    assert_int_equal(lane_bed_field(&b, "t.Other", WS, 4, "x"), 1);
    lane_bed_exploded(&b, MAIN, PAWL_OK);
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(sweep.told);
    assert_int_equal(y_of(&b, 99), 10);
    assert_int_equal(y_of(&b, 98), -1);
    assert_int_equal(lane_bed_operation(&b, MAIN, ROWS / ROWS_AT_ONCE + 2, &op, NULL), OPERATION_WRITES);
    assert_int_equal(op.count, 1);
    assert_int_equal(lane_bed_figures(&b, MAIN).repeated, 1);
    attempt_release(&sweep);
    close_lanes(&b);
}

TEST(a_lane_that_is_closed_waits_for_what_is_done_again_elsewhere_however_it_ends)
{
    for (int failed = 0; failed < 2; failed++) {
        struct lane_bed b;
        struct attempt slow, sweep;
        sweep_that_does_not_stand(&b, &slow, &sweep);
        lane_bed_begin_halt(&b);
        lane_bed_pass(&b, PAWL_SECOND);
        assert_int_equal(b.closed, 1); /* the other lane */
        assert_false(sweep.is_told);
        lane_bed_exploded(&b, MAIN, failed ? PAWL_ENOMEM : PAWL_OK);
        lane_bed_pass(&b, PAWL_SECOND);
        assert_status(sweep.told, PAWL_ECLOSED);
        attempt_release(&sweep);
        close_lanes(&b);
    }
}

/* --- reading on --- */

TEST(events_without_a_match_move_the_cursor_and_it_is_kept)
{
    struct lane_bed b;
    uint64_t applied, scanned;
    open_lanes(&b);
    lane_bed_event(&b, "Add", WS, 1, 5);
    lane_bed_events(&b, "Nothing", WS, 1, 5000);
    lane_bed_pass(&b, 10 * PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).scanned, 5001);
    lane_bed_cursor(&b, MAIN, &applied, &scanned);
    assert_int_equal(applied, 1);
    assert_true(scanned >= 4096 && scanned <= 5001);
    lane_bed_crash(&b);
    lane_bed_boot(&b);
    assert_true(lane_bed_figures(&b, MAIN).scanned >= scanned);
    lane_bed_event(&b, "Add", WS, 1, 5);
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(x_of(&b, 1), 10);
    close_lanes(&b);
}

TEST(how_far_the_tables_have_come_never_goes_back)
{
    struct lane_bed b;
    open_lanes(&b);
    lane_bed_events(&b, "Nothing", WS, 1, 3);
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).scanned, 3);
    lane_bed_event(&b, "Nothing", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Nothing", WS, 1, 0);
    assert_int_equal(lane_bed_figures(&b, MAIN).scanned, 4); /* nothing of them is missing */
    lane_bed_work(&b, MAIN, SLOW, 1, 1);
    assert_int_equal(lane_bed_figures(&b, MAIN).scanned, 6);
    close_lanes(&b);
}

TEST(an_event_with_several_matches_is_resumed_in_its_middle)
{
    struct lane_bed b;
    struct operation op;
    open_lanes(&b);
    lane_bed_event(&b, "Both", WS, 1, 5);
    lane_bed_event(&b, "Both", WS, 1, 5);
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).applied, 1);
    lane_bed_crash(&b);
    lane_bed_boot(&b);
    lane_bed_work(&b, MAIN, SLOW, 2, 7);
    lane_bed_crash(&b);
    lane_bed_boot(&b);
    assert_int_equal(lane_bed_figures(&b, MAIN).applied, 3);
    lane_bed_work(&b, MAIN, SLOW, 2, 8);
    static const uint64_t events[] = {1, 1, 2, 2};
    for (uint64_t n = 1; n <= 4; n++) {
        assert_int_equal(lane_bed_operation(&b, MAIN, n, &op, NULL), OPERATION_WRITES);
        assert_int_equal(op.event, events[n - 1]);
    }
    assert_int_equal(x_of(&b, 1), 10);
    assert_int_equal(x_of(&b, 2), 8);
    close_lanes(&b);
}

TEST(a_lane_with_a_long_log_and_no_tables_catches_up)
{
    struct lane_bed b;
    open_lanes(&b);
    lane_bed_events(&b, "Add", WS, 1, 3000);
    lane_bed_pass(&b, 10 * PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).applied, 3000);
    lane_bed_crash(&b);
    mem_store_disk_free(b.store_disk);
    assert_ok(mem_store_disk_new(NULL, &b.store_disk));
    lane_bed_boot(&b);
    lane_bed_pass(&b, 10 * PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).applied, 3000);
    assert_int_equal(lane_bed_figures(&b, MAIN).scanned, 3000);
    assert_int_equal(x_of(&b, 3000), 1);
    close_lanes(&b);
}

TEST(a_busy_log_delays_full_batches_and_loses_nothing)
{
    struct lane_bed b;
    lane_bed_open(&b, two_lanes);
    b.log_requests = 1;
    b.limits.batch_operations = 2;
    lane_bed_boot(&b);
    lane_bed_events(&b, "Add", WS, 1, 64);
    lane_bed_pass(&b, 10 * PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).applied, 64);
    assert_int_equal(x_of(&b, 64), 1);
    close_lanes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_clause_that_matches_nothing_is_an_ordinary_operation),
        RUN(a_clause_over_many_rows_is_done_again_elsewhere_and_nothing_waits_for_it_but_its_lane),
        RUN(a_lane_that_is_closed_waits_for_what_is_done_again_elsewhere_however_it_ends),
        RUN(events_without_a_match_move_the_cursor_and_it_is_kept),
        RUN(how_far_the_tables_have_come_never_goes_back),
        RUN(an_event_with_several_matches_is_resumed_in_its_middle),
        RUN(a_lane_with_a_long_log_and_no_tables_catches_up),
        RUN(a_busy_log_delays_full_batches_and_loses_nothing),
    };
    return TEST_MAIN(tests);
}
