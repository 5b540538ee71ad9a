/* A lane, driven by hand: which run gets which number, what becomes of runs that are handed in, and what waits
 * for what. */
#include "test/lib/two_lanes.h"

/* --- order --- */

TEST(results_are_applied_in_the_order_of_their_events)
{
    struct lane_bed b;
    struct attempt first, second;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    assert_int_equal(first.run.number, 1);
    assert_int_equal(second.run.number, 2);
    attempt_put(&second, 1, 20);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    lane_bed_pass(&b, 5 * PAWL_SECOND);
    assert_false(second.is_told);
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    assert_ok(attempt_hand_in(&first));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_true(first.is_told && second.is_told);
    assert_ok(first.told);
    assert_ok(second.told);
    assert_int_equal(x_of(&b, 1), 20);
    attempt_release(&first);
    attempt_release(&second);
    close_lanes(&b);
}

TEST(a_handler_whose_reads_did_not_stand_is_run_again_with_what_is_in_front_of_it)
{
    struct lane_bed b;
    struct attempt first, second;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    assert_int_equal(attempt_read(&second, 1), -1);
    attempt_put(&second, 1, 1);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    mem_store_disk_fail(b.store_disk,
                        (struct mem_store_fault){
                            .op = MEM_STORE_COMMIT, .countdown = 1, .times = UINT64_MAX, .status = PAWL_EFULL});
    assert_ok(attempt_hand_in(&first));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_true(second.is_told);
    assert_status(second.told, PAWL_ECONFLICT);
    assert_false(first.is_told); /* durable; and the store has no room for it */
    attempt_release(&second);
    acquire(&second, &b, SLOW);
    assert_int_equal(second.run.number, 2);
    assert_int_equal(attempt_read(&second, 1), 10);
    attempt_put(&second, 1, 11);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    mem_store_disk_fail(b.store_disk, (struct mem_store_fault){0});
    lane_bed_pass(&b, 5 * PAWL_SECOND);
    assert_ok(first.told);
    assert_ok(second.told);
    assert_int_equal(x_of(&b, 1), 11);
    assert_int_equal(lane_bed_figures(&b, MAIN).repeated, 1);
    attempt_release(&first);
    attempt_release(&second);
    close_lanes(&b);
}

enum { WORKERS = 64, EVENTS = 2000 };

TEST(with_disjoint_keys_64_slow_workers_repeat_hardly_anything)
{
    static struct attempt attempts[WORKERS];
    struct lane_bed b;
    unsigned rounds = 0;
    open_lanes(&b);
    lane_bed_events(&b, "Slow", WS, 1, EVENTS);
    lane_bed_pass(&b, PAWL_SECOND);
    for (uint64_t done = 0; done < EVENTS; rounds++) {
        size_t count = 0;
        while (count < WORKERS && attempt_acquire(&attempts[count], &b, MAIN, SLOW, 0))
            count++;
        if (count < WORKERS)
            attempt_release(&attempts[count]);
        for (size_t i = 0; i < count; i++) {
            int64_t k = (int64_t)attempts[i].run.event->offset;
            assert_int_equal(attempt_read(&attempts[i], k), -1);
            attempt_put(&attempts[i], k, 1);
        }
        lane_bed_pass(&b, 20 * PAWL_MILLISECOND);
        for (size_t i = count; i-- > 0;) {
            attempt_explode(&attempts[i]);
            assert_ok(attempt_hand_in(&attempts[i]));
        }
        lane_bed_pass(&b, 20 * PAWL_MILLISECOND);
        for (size_t i = 0; i < count; i++)
            attempt_release(&attempts[i]);
        done = lane_bed_figures(&b, MAIN).applied;
    }
    assert_true(rounds <= EVENTS / WORKERS + 1);
    assert_true(lane_bed_figures(&b, MAIN).repeated * 100 < EVENTS);
    close_lanes(&b);
}

/* --- who comes late, twice, or under another's name --- */

TEST(a_late_result_counts_if_nobody_else_has_begun)
{
    struct lane_bed b;
    struct attempt late;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    acquire(&late, &b, SLOW);
    attempt_put(&late, 1, 10);
    attempt_explode(&late);
    lane_bed_pass(&b, 3600 * PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).leases.expired, 1);
    assert_ok(attempt_hand_in(&late));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(late.told);
    assert_int_equal(x_of(&b, 1), 10);
    attempt_release(&late);
    close_lanes(&b);
}

TEST(a_late_result_of_a_number_that_another_has_is_fenced_before_and_after_the_commit)
{
    struct lane_bed b;
    struct attempt late, later, other;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    acquire(&late, &b, SLOW);
    attempt_put(&late, 1, 10);
    attempt_explode(&late);
    lane_bed_pass(&b, 3600 * PAWL_SECOND);
    acquire(&other, &b, SLOW);
    assert_int_equal(other.run.number, 1);
    assert_int_equal(other.run.attempt, 2);
    assert_status(attempt_hand_in(&late), PAWL_EFENCED);
    attempt_put(&other, 1, 20);
    attempt_explode(&other);
    assert_ok(attempt_hand_in(&other));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(other.told);
    assert_ok(attempt_hand_in_as(&later, &late)); /* the log knows whose it was */
    lane_bed_pass(&b, PAWL_SECOND);
    assert_status(later.told, PAWL_EFENCED);
    assert_int_equal(x_of(&b, 1), 20);
    attempt_release(&late);
    attempt_release(&later);
    attempt_release(&other);
    close_lanes(&b);
}

TEST(a_run_that_is_handed_in_twice_is_told_the_same_twice)
{
    struct lane_bed b;
    struct attempt before, slow, again, after;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 2, 0);
    acquire(&before, &b, SLOW);
    acquire(&slow, &b, SLOW);
    attempt_put(&slow, 2, 10);
    attempt_explode(&slow);
    assert_ok(attempt_hand_in(&slow));
    assert_ok(attempt_hand_in_as(&again, &slow));
    attempt_put(&before, 1, 5);
    attempt_explode(&before);
    assert_ok(attempt_hand_in(&before));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_true(slow.is_told && again.is_told);
    assert_ok(slow.told);
    assert_ok(again.told);
    assert_ok(attempt_hand_in_as(&after, &slow));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(after.told);
    assert_int_equal(x_of(&b, 2), 10);
    attempt_release(&before);
    attempt_release(&slow);
    attempt_release(&again);
    attempt_release(&after);
    close_lanes(&b);
}

TEST(after_a_crash_a_worker_is_told_what_became_of_its_number)
{
    struct lane_bed b;
    struct attempt committed, lost, back;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 2, 0);
    acquire(&committed, &b, SLOW);
    acquire(&lost, &b, SLOW);
    attempt_put(&committed, 1, 10);
    attempt_explode(&committed);
    assert_ok(attempt_hand_in(&committed));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(committed.told);
    lane_bed_crash(&b);
    lane_bed_boot(&b);
    committed.lane = lost.lane = b.lanes[MAIN];
    assert_ok(attempt_hand_in_as(&back, &committed));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(back.told);
    attempt_release(&back);
    assert_status(attempt_hand_in_as(&back, &lost), PAWL_EFENCED);
    attempt_release(&back);
    lane_bed_work(&b, MAIN, SLOW, 2, 20);
    assert_ok(attempt_hand_in_as(&back, &lost));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_status(back.told, PAWL_EFENCED);
    attempt_release(&back);
    assert_int_equal(x_of(&b, 1), 10);
    assert_int_equal(x_of(&b, 2), 20);
    close_lanes(&b);
}

TEST(a_thousand_leases_that_expire_at_once_are_given_out_again_without_a_herd)
{
    enum { MANY = 1000 };
    static struct attempt attempts[MANY];
    struct lane_bed b;
    open_lanes(&b);
    lane_bed_events(&b, "Slow", WS, 1, MANY);
    lane_bed_pass(&b, PAWL_SECOND);
    for (size_t i = 0; i < MANY; i++)
        assert_true(attempt_acquire(&attempts[i], &b, MAIN, SLOW, 2 * PAWL_SECOND));
    b.available = 0;
    lane_bed_pass(&b, 3 * PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).leases.expired, MANY);
    assert_true(b.available > 0 && b.available < 20);
    for (size_t i = 0; i < MANY; i++) {
        attempt_release(&attempts[i]);
        assert_true(attempt_acquire(&attempts[i], &b, MAIN, SLOW, 2 * PAWL_SECOND));
        assert_int_equal(attempts[i].run.number, i + 1); /* the lowest first */
        assert_int_equal(attempts[i].run.duration, 4 * PAWL_SECOND);
    }
    lane_bed_pass(&b, 3 * PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).leases.expired, MANY);
    for (size_t i = 0; i < MANY; i++)
        attempt_release(&attempts[i]);
    close_lanes(&b);
}

/* --- failures --- */

TEST(a_stalled_number_holds_up_its_own_lane_and_nothing_else)
{
    struct lane_bed b;
    struct attempt a;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Add", WS, 2, 5);
    lane_bed_event(&b, "Aside", WS, 3, 0);
    for (int i = 0; i < 2; i++) {
        acquire(&a, &b, SLOW);
        assert_ok(attempt_fail(&a, false, "it is down"));
        attempt_release(&a);
        lane_bed_pass(&b, 10 * PAWL_SECOND);
    }
    assert_int_equal(lane_bed_figures(&b, MAIN).leases.stalled, 1);
    assert_int_equal(x_of(&b, 2), -2);
    assert_int_equal(lane_bed_field(&b, "t.Other", WS, 3, "x"), 1);
    assert_false(attempt_acquire(&a, &b, MAIN, SLOW, 0));
    attempt_release(&a);
    assert_ok(lane_bed_retry(&b, MAIN, 1));
    lane_bed_work(&b, MAIN, SLOW, 1, 10);
    assert_int_equal(x_of(&b, 1), 10);
    assert_int_equal(x_of(&b, 2), 5);
    close_lanes(&b);
}

TEST(a_void_says_why_by_policy_by_permanent_failure_and_by_an_operator)
{
    struct lane_bed b;
    struct attempt a, back;
    char reason[OPERATION_REASON + 1];
    open_lanes(&b);
    lane_bed_event(&b, "Try", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 2, 0);
    lane_bed_event(&b, "Slow", WS, 3, 0);
    for (int i = 0; i < 2; i++) {
        acquire(&a, &b, TRY);
        assert_ok(attempt_fail(&a, false, "no such customer"));
        attempt_release(&a);
        lane_bed_pass(&b, 10 * PAWL_SECOND);
    }
    acquire(&a, &b, SLOW);
    assert_ok(attempt_fail(&a, true, "never"));
    assert_ok(lane_bed_void(&b, MAIN, 3, "not wanted"));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(lane_bed_operation(&b, MAIN, 1, NULL, reason), OPERATION_VOID);
    assert_string_equal(reason, "no such customer");
    assert_int_equal(lane_bed_operation(&b, MAIN, 2, NULL, reason), OPERATION_VOID);
    assert_string_equal(reason, "never");
    assert_int_equal(lane_bed_operation(&b, MAIN, 3, NULL, reason), OPERATION_VOID);
    assert_string_equal(reason, "not wanted");
    assert_ok(attempt_hand_in_as(&back, &a)); /* a void is nobody's result */
    lane_bed_pass(&b, PAWL_SECOND);
    assert_status(back.told, PAWL_EFENCED);
    attempt_release(&a);
    attempt_release(&back);
    close_lanes(&b);
}

/* What a handler that fails has read is changed in front of it, or is not. */
TEST(a_failure_after_a_read_counts_at_its_turn_if_the_read_stands)
{
    static const struct {
        uint32_t projection;
        const char *command;
        bool permanent, changed;
        uint64_t voids, stalled;
    } cases[] = {
        {SLOW, "Slow", true, false, 1, 0}, {SLOW, "Slow", true, true, 0, 0}, {SLOW, "Slow", false, false, 0, 1},
        {SLOW, "Slow", false, true, 0, 0}, {TRY, "Try", false, false, 1, 0}, {TRY, "Try", false, true, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lane_bed b;
        struct attempt first, second;
        char reason[OPERATION_REASON + 1];
        struct operation op;
        open_lanes(&b);
        lane_bed_event(&b, "Slow", WS, 1, 0);
        lane_bed_event(&b, cases[i].command, WS, 2, 0);
        acquire(&first, &b, SLOW);
        acquire(&second, &b, cases[i].projection);
        if (!cases[i].permanent) { /* the first of two attempts decides nothing, whatever it read */
            assert_int_equal(attempt_read(&second, 1), -1);
            assert_false(attempt_fail_run(&second, false, "too early"));
            attempt_release(&second);
            lane_bed_pass(&b, PAWL_SECOND);
            acquire(&second, &b, cases[i].projection);
        }
        assert_int_equal(attempt_read(&second, 1), -1);
        assert_true(attempt_fail_run(&second, cases[i].permanent, "too early"));
        lane_bed_pass(&b, PAWL_SECOND);
        assert_false(second.is_told);
        attempt_put(&first, cases[i].changed ? 1 : 9, 10);
        attempt_explode(&first);
        assert_ok(attempt_hand_in(&first));
        lane_bed_pass(&b, PAWL_SECOND);
        assert_status(second.told, cases[i].changed ? PAWL_ECONFLICT : PAWL_EINVAL);
        struct lane_figures figures = lane_bed_figures(&b, MAIN);
        assert_int_equal(figures.leases.voids, cases[i].voids);
        assert_int_equal(figures.leases.stalled, cases[i].stalled);
        if (cases[i].voids) {
            assert_int_equal(lane_bed_operation(&b, MAIN, 2, &op, reason), OPERATION_VOID);
            assert_string_equal(reason, "too early");
        }
        attempt_release(&first);
        attempt_release(&second);
        if (cases[i].changed) { /* now it is its turn, and what it says counts at once */
            acquire(&second, &b, cases[i].projection);
            assert_int_equal(attempt_read(&second, 1), 10);
            assert_true(attempt_fail_run(&second, true, "again"));
            assert_status(second.told, PAWL_EINVAL);
            lane_bed_pass(&b, PAWL_SECOND);
            assert_int_equal(lane_bed_operation(&b, MAIN, 2, &op, reason), OPERATION_VOID);
            attempt_release(&second);
        }
        close_lanes(&b);
    }
}

TEST(a_division_by_zero_is_for_the_policy_at_once_and_counts_only_at_its_turn)
{
    struct lane_bed b;
    struct attempt slow, share;
    char reason[OPERATION_REASON + 1];
    open_lanes(&b);
    lane_bed_event(&b, "Add", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Share", WS, 1, 0);
    lane_bed_event(&b, "Share", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Share", WS, 1, 0);
    acquire(&share, &b, SHARE);
    attempt_explode(&share);
    assert_status(share.run.status, PAWL_EINVAL); /* as the row is now */
    assert_ok(attempt_hand_in(&share));
    acquire(&slow, &b, SLOW);
    attempt_put(&slow, 1, 20);
    attempt_explode(&slow);
    assert_ok(attempt_hand_in(&slow));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(share.told);
    assert_int_equal(y_of(&b, 1), 5);
    attempt_release(&slow);
    attempt_release(&share);

    acquire(&share, &b, SHARE);
    attempt_explode(&share);
    assert_ok(attempt_hand_in(&share));
    lane_bed_pass(&b, PAWL_SECOND);
    attempt_release(&share);
    acquire(&share, &b, SHARE);
    attempt_explode(&share);
    assert_ok(share.run.status);
    assert_ok(attempt_hand_in(&share));
    lane_bed_work(&b, MAIN, SLOW, 1, 0);
    lane_bed_pass(&b, PAWL_SECOND);
    assert_status(share.told, PAWL_EINVAL);
    assert_int_equal(lane_bed_operation(&b, MAIN, 6, NULL, reason), OPERATION_VOID);
    assert_contains(reason, "division by zero");
    attempt_release(&share);
    close_lanes(&b);
}

/* --- an operator --- */

TEST(a_lane_that_is_refused_in_a_run_s_turn_tells_it_once)
{
    struct lane_bed b;
    struct attempt first, second;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 2, 0);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    attempt_put(&second, 2, 20);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    mem_store_disk_fail(
        b.store_disk,
        (struct mem_store_fault){.op = MEM_STORE_GET, .countdown = 1, .times = 1, .status = PAWL_ECORRUPT});
    assert_ok(attempt_hand_in(&first));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).state, WRITER_REFUSED);
    assert_status(first.told, PAWL_ECONFLICT);
    lane_bed_begin_halt(&b); /* an attempt that is told again fails */
    lane_bed_pass(&b, PAWL_SECOND);
    assert_status(second.told, PAWL_ECLOSED);
    attempt_release(&first);
    attempt_release(&second);
    close_lanes(&b);
}

TEST(a_lane_that_gives_up_writes_no_operation_more)
{
    struct lane_bed b;
    struct attempt first, second;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 2, 0);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    attempt_put(&second, 2, 20);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&first));
    lane_bed_pass(&b, PAWL_SECOND);
    uint64_t applied = lane_bed_figures(&b, MAIN).applied;
    lane_give_up(b.lanes[MAIN], "another node has taken over");
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).state, WRITER_REFUSED);
    assert_true(attempt_hand_in(&second) != PAWL_OK);
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).applied, applied);
    attempt_release(&first);
    attempt_release(&second);
    close_lanes(&b);
}

TEST(results_that_pile_up_behind_a_slow_number_let_nothing_run_further_ahead)
{
    struct lane_bed b;
    struct attempt first, second, third;
    lane_bed_open(&b, two_lanes);
    b.limits.ready_bytes = 1;
    lane_bed_boot(&b);
    for (int64_t k = 1; k <= 3; k++)
        lane_bed_event(&b, "Slow", WS, k, 0);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    attempt_put(&second, 2, 20);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    assert_false(attempt_acquire(&third, &b, MAIN, SLOW, 0));
    attempt_release(&third);
    assert_int_equal(attempt_fail(&first, false, "it rains"), PAWL_OK);
    attempt_release(&first);
    lane_bed_pass(&b, PAWL_SECOND);
    acquire(&first, &b, SLOW); /* the one that all others wait for is given out in any case */
    assert_int_equal(first.run.number, 1);
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    assert_ok(attempt_hand_in(&first));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(second.told);
    attempt_release(&first);
    attempt_release(&second);
    lane_bed_work(&b, MAIN, SLOW, 3, 30);
    assert_int_equal(x_of(&b, 3), 30);
    close_lanes(&b);
}

TEST(a_paused_lane_gives_out_nothing_and_takes_what_was_given_out)
{
    struct lane_bed b;
    struct attempt a, none;
    open_lanes(&b);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    acquire(&a, &b, SLOW);
    lane_bed_pause(&b, MAIN, true);
    lane_bed_event(&b, "Add", WS, 2, 5);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    assert_false(attempt_acquire(&none, &b, MAIN, SLOW, 0));
    attempt_release(&none);
    attempt_put(&a, 1, 10);
    attempt_explode(&a);
    assert_ok(attempt_hand_in(&a));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(a.told);
    assert_int_equal(x_of(&b, 1), 10);
    assert_int_equal(x_of(&b, 2), -2);
    lane_bed_pause(&b, MAIN, false);
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(x_of(&b, 2), 5);
    attempt_release(&a);
    close_lanes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(results_are_applied_in_the_order_of_their_events),
        RUN(a_handler_whose_reads_did_not_stand_is_run_again_with_what_is_in_front_of_it),
        RUN(with_disjoint_keys_64_slow_workers_repeat_hardly_anything),
        RUN(a_late_result_counts_if_nobody_else_has_begun),
        RUN(a_late_result_of_a_number_that_another_has_is_fenced_before_and_after_the_commit),
        RUN(a_run_that_is_handed_in_twice_is_told_the_same_twice),
        RUN(after_a_crash_a_worker_is_told_what_became_of_its_number),
        RUN(a_thousand_leases_that_expire_at_once_are_given_out_again_without_a_herd),
        RUN(a_stalled_number_holds_up_its_own_lane_and_nothing_else),
        RUN(a_void_says_why_by_policy_by_permanent_failure_and_by_an_operator),
        RUN(a_failure_after_a_read_counts_at_its_turn_if_the_read_stands),
        RUN(a_division_by_zero_is_for_the_policy_at_once_and_counts_only_at_its_turn),
        RUN(a_lane_that_is_refused_in_a_run_s_turn_tells_it_once),
        RUN(a_lane_that_gives_up_writes_no_operation_more),
        RUN(results_that_pile_up_behind_a_slow_number_let_nothing_run_further_ahead),
        RUN(a_paused_lane_gives_out_nothing_and_takes_what_was_given_out),
    };
    return TEST_MAIN(tests);
}
