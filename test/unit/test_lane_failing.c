/* Which failures of a run decide about its number, and which do not. */
#include "test/lib/two_lanes.h"

/* A handler reads and fails; true: what it said is kept until its turn, because it decides. */
static bool read_and_fail(struct lane_bed *b, struct attempt *a, const char *words)
{
    assert_int_equal(attempt_read(a, 1), -1);
    bool kept = attempt_fail_run(a, false, words);
    lane_bed_pass(b, PAWL_SECOND);
    return kept;
}

/* The projector of Try is given up after two failures, and its numbers become voids then. */
TEST(slowness_never_makes_a_failure_the_last_one)
{
    struct lane_bed b;
    struct attempt a;
    char reason[OPERATION_REASON + 1];
    open_lanes(&b);
    lane_bed_event(&b, "Try", WS, 1, 0);
    for (int i = 0; i < 5; i++) {
        assert_true(attempt_acquire(&a, &b, MAIN, TRY, 2 * PAWL_SECOND));
        attempt_release(&a);
        lane_bed_pass(&b, 3600 * PAWL_SECOND);
    }
    acquire(&a, &b, TRY);
    assert_int_equal(a.run.attempt, 6);
    assert_false(read_and_fail(&b, &a, "for the first time"));
    attempt_release(&a);
    assert_int_equal(lane_bed_figures(&b, MAIN).leases.voids, 0);
    acquire(&a, &b, TRY);
    assert_true(read_and_fail(&b, &a, "for the second time"));
    attempt_release(&a);
    assert_int_equal(lane_bed_operation(&b, MAIN, 1, NULL, reason), OPERATION_VOID);
    assert_string_equal(reason, "for the second time");
    close_lanes(&b);
}

TEST(after_a_retry_a_number_has_all_its_failures_before_it_again)
{
    struct lane_bed b;
    struct attempt a;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    for (int retried = 0; retried < 2; retried++) {
        for (int i = 0; i < 2; i++) {
            acquire(&a, &b, SLOW);
            assert_int_equal(read_and_fail(&b, &a, "no"), i == 1);
            attempt_release(&a);
            assert_int_equal(lane_bed_figures(&b, MAIN).leases.stalled, i);
        }
        assert_ok(lane_bed_retry(&b, MAIN, 1));
    }
    close_lanes(&b);
}

/* --- the reason --- */

/* 100 / x, of a row whose x will be zero when its turn comes. Whoever handed it in is told why it does not
 * count, and so is whoever asks for the same number again. */
TEST(a_run_that_fails_at_its_turn_says_why)
{
    struct lane_bed b;
    struct attempt slow, share, again;
    open_lanes(&b);
    lane_bed_event(&b, "Add", WS, 1, 4);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Share", WS, 1, 0);
    acquire(&slow, &b, SLOW);
    acquire(&share, &b, SHARE);
    attempt_explode(&share);
    assert_ok(share.run.status);
    assert_ok(attempt_hand_in(&share));
    assert_ok(attempt_hand_in_as(&again, &share));
    attempt_put(&slow, 1, 0);
    attempt_explode(&slow);
    assert_ok(attempt_hand_in(&slow));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_true(share.is_told && again.is_told);
    assert_status(share.told, PAWL_EINVAL);
    assert_contains(share.run.error.text, "zero");
    assert_status(again.told, PAWL_EINVAL);
    assert_contains(again.run.error.text, "zero");
    attempt_release(&slow);
    attempt_release(&share);
    attempt_release(&again);
    close_lanes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(slowness_never_makes_a_failure_the_last_one),
        RUN(after_a_retry_a_number_has_all_its_failures_before_it_again),
        RUN(a_run_that_fails_at_its_turn_says_why),
    };
    return TEST_MAIN(tests);
}
