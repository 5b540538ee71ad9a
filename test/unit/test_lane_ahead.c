/* How a lane works ahead: what it gives out again early, what it holds, and what runs read that begin before their
 * turn. */
#include "test/lib/two_lanes.h"

/* 2 takes long; 3 has read what 1 writes. */
TEST(what_has_read_too_early_is_run_again_before_its_turn_and_sees_what_is_staged)
{
    struct lane_bed b;
    struct attempt first, second, third;
    open_lanes(&b);
    lane_bed_events(&b, "Slow", WS, 1, 3);
    lane_bed_pass(&b, PAWL_SECOND);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    acquire(&third, &b, SLOW);
    assert_int_equal(attempt_read(&third, 1), -1);
    attempt_put(&third, 3, 1);
    attempt_explode(&third);
    assert_ok(attempt_hand_in(&third));
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    mem_store_disk_fail(b.store_disk,
                        (struct mem_store_fault){
                            .op = MEM_STORE_COMMIT, .countdown = 1, .times = UINT64_MAX, .status = PAWL_EFULL});
    assert_ok(attempt_hand_in(&first));
    assert_true(third.is_told); /* while 2 is still under way */
    assert_status(third.told, PAWL_ECONFLICT);
    attempt_release(&third);
    acquire(&third, &b, SLOW);
    assert_int_equal(third.run.number, 3);
    assert_int_equal(third.run.attempt, 1);
    assert_int_equal(attempt_read(&third, 1), 10); /* which the store does not have */
    assert_int_equal(attempt_read(&third, 2), -1);
    attempt_put(&third, 3, 11);
    attempt_explode(&third);
    assert_ok(attempt_hand_in(&third));
    assert_false(third.is_told);
    attempt_put(&second, 9, 1);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    mem_store_disk_fail(b.store_disk, (struct mem_store_fault){0});
    lane_bed_pass(&b, 5 * PAWL_SECOND);
    assert_ok(second.told);
    assert_ok(third.told);
    assert_int_equal(x_of(&b, 3), 11);
    assert_int_equal(lane_bed_figures(&b, MAIN).repeated, 1);
    assert_int_equal(lane_bed_figures(&b, MAIN).leases.failed, 0);
    attempt_release(&first);
    attempt_release(&second);
    attempt_release(&third);
    close_lanes(&b);
}

TEST(a_run_that_was_repeated_early_is_validated_at_its_turn_like_any_other)
{
    struct lane_bed b;
    struct attempt first, second, third;
    open_lanes(&b);
    lane_bed_events(&b, "Slow", WS, 1, 3);
    lane_bed_pass(&b, PAWL_SECOND);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    acquire(&third, &b, SLOW);
    assert_int_equal(attempt_read(&third, 1), -1);
    attempt_put(&third, 3, 1);
    attempt_explode(&third);
    assert_ok(attempt_hand_in(&third));
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    assert_ok(attempt_hand_in(&first));
    assert_status(third.told, PAWL_ECONFLICT);
    attempt_release(&third);
    acquire(&third, &b, SLOW);
    assert_int_equal(attempt_read(&third, 1), 10);
    attempt_put(&third, 3, 11);
    attempt_explode(&third);
    attempt_put(&second, 1, 20); /* it changes the row once more */
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    lane_bed_pass(&b, PAWL_SECOND); /* and the store has it */
    assert_ok(attempt_hand_in(&third));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_status(third.told, PAWL_ECONFLICT);
    attempt_release(&third);
    acquire(&third, &b, SLOW);
    assert_int_equal(attempt_read(&third, 1), 20);
    attempt_put(&third, 3, 21);
    attempt_explode(&third);
    assert_ok(attempt_hand_in(&third));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(third.told);
    assert_int_equal(x_of(&b, 3), 21);
    attempt_release(&first);
    attempt_release(&second);
    attempt_release(&third);
    close_lanes(&b);
}

/* The staged rows that a run was given are older than what the store has by the time it reads. */
TEST(a_run_reads_the_newer_of_what_was_staged_when_it_began_and_what_the_store_has)
{
    struct lane_bed b;
    struct attempt first, second, third;
    open_lanes(&b);
    lane_bed_events(&b, "Slow", WS, 1, 3);
    lane_bed_pass(&b, PAWL_SECOND);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    acquire(&third, &b, SLOW);
    assert_int_equal(attempt_read(&third, 1), -1);
    attempt_explode(&third);
    assert_ok(attempt_hand_in(&third));
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    assert_ok(attempt_hand_in(&first));
    assert_status(third.told, PAWL_ECONFLICT);
    attempt_release(&third);
    acquire(&third, &b, SLOW); /* with the row of 1 */
    attempt_put(&second, 1, 20);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(attempt_read(&third, 1), 20);
    attempt_put(&third, 3, 21);
    attempt_explode(&third);
    assert_ok(attempt_hand_in(&third));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(third.told);
    attempt_release(&first);
    attempt_release(&second);
    attempt_release(&third);
    close_lanes(&b);
}

/* 1 and 2 are of one key. From their conflict the lane learns what the others need. */
TEST(after_a_conflict_only_the_first_of_each_chain_is_given_out)
{
    static const int64_t keys[] = {1, 1, 2, 3, 2, 3, 4};
    struct lane_bed b;
    struct attempt first, second, given[4], none;
    open_lanes(&b);
    for (size_t i = 0; i < 7; i++)
        lane_bed_event(&b, "Slow", WS, keys[i], 0);
    acquire(&first, &b, SLOW);
    acquire(&second, &b, SLOW);
    assert_int_equal(attempt_read(&second, 1), -1);
    attempt_put(&second, 1, 1);
    attempt_explode(&second);
    assert_ok(attempt_hand_in(&second));
    attempt_put(&first, 1, 10);
    attempt_explode(&first);
    assert_ok(attempt_hand_in(&first));
    assert_status(second.told, PAWL_ECONFLICT);
    static const uint64_t expected[] = {2, 3, 4, 7};
    for (size_t i = 0; i < 4; i++) {
        acquire(&given[i], &b, SLOW);
        assert_int_equal(given[i].run.number, expected[i]);
    }
    assert_false(attempt_acquire(&none, &b, MAIN, SLOW, 0));
    assert_int_equal(lane_bed_figures(&b, MAIN).held, 2);
    attempt_release(&none);
    for (size_t i = 0; i < 2; i++) { /* 2, and 3, which 5 waits for */
        attempt_put(&given[i], keys[expected[i] - 1], 20);
        attempt_explode(&given[i]);
        assert_ok(attempt_hand_in(&given[i]));
    }
    acquire(&none, &b, SLOW);
    assert_int_equal(none.run.number, 5);
    assert_int_equal(attempt_read(&none, 2), 20); /* which is staged */
    assert_int_equal(lane_bed_figures(&b, MAIN).held, 1);
    lane_bed_pass(&b, PAWL_SECOND);
    attempt_release(&none);
    attempt_release(&first);
    attempt_release(&second);
    for (size_t i = 0; i < 4; i++)
        attempt_release(&given[i]);
    close_lanes(&b);
}

/* Every operation needs the one before it, and none is applied before the next one begins. */
TEST(one_worker_repeats_hardly_anything_though_each_operation_needs_the_last)
{
    enum { OPERATIONS = 100 };
    struct lane_bed b;
    open_lanes(&b);
    for (int i = 0; i < OPERATIONS; i++)
        lane_bed_event(&b, "Slow", WS, 1, 0);
    uint64_t runs = 0;
    while (lane_bed_figures(&b, MAIN).leases.taken < OPERATIONS) {
        struct attempt a;
        acquire(&a, &b, SLOW);
        int64_t x = attempt_read(&a, 1);
        attempt_put(&a, 1, x < 0 ? 1 : x + 1);
        attempt_explode(&a);
        assert_ok(attempt_hand_in(&a));
        lane_bed_pass(&b, runs++ % 3 ? PAWL_MILLISECOND : 0);
        if (!a.is_told)
            lane_bed_pass(&b, PAWL_SECOND);
        attempt_release(&a);
    }
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(x_of(&b, 1), OPERATIONS);
    assert_true(runs <= OPERATIONS + 1);
    close_lanes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(what_has_read_too_early_is_run_again_before_its_turn_and_sees_what_is_staged),
        RUN(a_run_that_was_repeated_early_is_validated_at_its_turn_like_any_other),
        RUN(a_run_reads_the_newer_of_what_was_staged_when_it_began_and_what_the_store_has),
        RUN(after_a_conflict_only_the_first_of_each_chain_is_given_out),
        RUN(one_worker_repeats_hardly_anything_though_each_operation_needs_the_last),
    };
    return TEST_MAIN(tests);
}
