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

/* A lane that has learned from 1 and 2 that events of one key need each other. 1 is staged; 2, 3, 4 and 7 are given out,
 * and 5 and 6 are held behind 3 and 4. */
struct chained {
    struct lane_bed bed;
    struct attempt first, second, given[4];
};

static const int64_t chained_keys[] = {1, 1, 2, 3, 2, 3, 4};

static void open_chained(struct chained *c)
{
    static const uint64_t expected[] = {2, 3, 4, 7};
    open_lanes(&c->bed);
    for (size_t i = 0; i < 7; i++)
        lane_bed_event(&c->bed, "Slow", WS, chained_keys[i], 0);
    acquire(&c->first, &c->bed, SLOW);
    acquire(&c->second, &c->bed, SLOW);
    assert_int_equal(attempt_read(&c->second, 1), -1);
    attempt_put(&c->second, 1, 1);
    attempt_explode(&c->second);
    assert_ok(attempt_hand_in(&c->second));
    attempt_put(&c->first, 1, 10);
    attempt_explode(&c->first);
    assert_ok(attempt_hand_in(&c->first));
    assert_status(c->second.told, PAWL_ECONFLICT);
    for (size_t i = 0; i < 4; i++) {
        acquire(&c->given[i], &c->bed, SLOW);
        assert_int_equal(c->given[i].run.number, expected[i]);
    }
}

static void close_chained(struct chained *c)
{
    attempt_release(&c->first);
    attempt_release(&c->second);
    for (size_t i = 0; i < 4; i++)
        attempt_release(&c->given[i]);
    close_lanes(&c->bed);
}

static void hand_in(struct attempt *a, int64_t k, int64_t x)
{
    attempt_put(a, k, x);
    attempt_explode(a);
    assert_ok(attempt_hand_in(a));
}

static void assert_nothing_is_given_out(struct lane_bed *b)
{
    struct attempt none;
    assert_false(attempt_acquire(&none, b, MAIN, SLOW, 0));
    attempt_release(&none);
}

TEST(after_a_conflict_only_the_first_of_each_chain_is_given_out)
{
    struct chained c;
    struct attempt next;
    open_chained(&c);
    assert_nothing_is_given_out(&c.bed);
    assert_int_equal(lane_bed_figures(&c.bed, MAIN).held, 2);
    hand_in(&c.given[0], 1, 20);
    hand_in(&c.given[1], 2, 20); /* which 5 waits for */
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(next.run.number, 5);
    assert_int_equal(attempt_read(&next, 2), 20); /* which is staged */
    assert_int_equal(lane_bed_figures(&c.bed, MAIN).held, 1);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    attempt_release(&next);
    close_chained(&c);
}

/* 2 takes long. 5 needs 3, which is done. */
TEST(a_number_is_run_with_the_rows_that_the_one_before_it_in_its_chain_promises)
{
    struct chained c;
    struct attempt next;
    open_chained(&c);
    assert_int_equal(attempt_read(&c.given[1], 2), -1);
    hand_in(&c.given[1], 2, 20);
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(next.run.number, 5);
    assert_int_equal(attempt_read(&next, 2), 20);
    hand_in(&next, 2, 21);
    assert_nothing_is_given_out(&c.bed); /* 6 needs 4 */
    hand_in(&c.given[0], 1, 11);
    assert_false(next.is_told);
    hand_in(&c.given[2], 3, 30);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_ok(next.told);
    assert_int_equal(x_of(&c.bed, 2), 21);
    assert_int_equal(lane_bed_figures(&c.bed, MAIN).repeated, 1); /* 2, from which it was learned */
    attempt_release(&next);
    close_chained(&c);
}

/* 3 has read a row that 2 writes: both it and 5, which rests on it, are run again. */
TEST(what_rests_on_a_run_that_is_repeated_is_repeated_too)
{
    struct chained c;
    struct attempt next;
    open_chained(&c);
    assert_int_equal(attempt_read(&c.given[1], 9), -1);
    hand_in(&c.given[1], 2, 20);
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(attempt_read(&next, 2), 20);
    hand_in(&next, 2, 21);
    hand_in(&c.given[0], 9, 1);
    attempt_release(&c.given[1]);
    acquire(&c.given[1], &c.bed, SLOW);
    assert_int_equal(c.given[1].run.number, 3);
    assert_status(next.told, PAWL_ECONFLICT);
    attempt_release(&next);
    assert_int_equal(attempt_read(&c.given[1], 9), 1);
    hand_in(&c.given[1], 2, 40);
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(next.run.number, 5);
    assert_int_equal(attempt_read(&next, 2), 40);
    hand_in(&next, 2, 41);
    hand_in(&c.given[2], 3, 30);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_ok(next.told);
    assert_int_equal(x_of(&c.bed, 2), 41);
    attempt_release(&next);
    close_chained(&c);
}

/* As above, but 5 is still at work when 3 is run again, and is done before it. */
static void break_a_promise(struct chained *c, struct attempt *next)
{
    open_chained(c);
    assert_int_equal(attempt_read(&c->given[1], 9), -1);
    hand_in(&c->given[1], 2, 20);
    acquire(next, &c->bed, SLOW);
    assert_int_equal(attempt_read(next, 2), 20);
    hand_in(&c->given[0], 9, 1);
    hand_in(next, 2, 21);
    hand_in(&c->given[2], 3, 30);
    attempt_release(&c->given[1]);
    acquire(&c->given[1], &c->bed, SLOW);
    assert_int_equal(c->given[1].run.number, 3);
    assert_false(next->is_told);
}

TEST(a_run_does_not_stand_if_a_promised_row_that_it_has_read_becomes_another)
{
    struct chained c;
    struct attempt next;
    break_a_promise(&c, &next);
    hand_in(&c.given[1], 2, 50);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_status(next.told, PAWL_ECONFLICT);
    attempt_release(&next);
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(attempt_read(&next, 2), 50);
    hand_in(&next, 2, 51);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_ok(next.told);
    assert_int_equal(x_of(&c.bed, 2), 51);
    attempt_release(&next);
    close_chained(&c);
}

TEST(a_run_does_not_stand_if_a_promised_row_that_it_has_read_never_comes)
{
    struct chained c;
    struct attempt next;
    break_a_promise(&c, &next);
    hand_in(&c.given[1], 8, 1); /* another row */
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_status(next.told, PAWL_ECONFLICT);
    attempt_release(&next);
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(attempt_read(&next, 2), -1);
    hand_in(&next, 2, 51);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_ok(next.told);
    attempt_release(&next);
    close_chained(&c);
}

TEST(a_promise_that_is_broken_and_made_good_again_is_kept)
{
    struct chained c;
    struct attempt next;
    break_a_promise(&c, &next);
    hand_in(&c.given[1], 2, 20); /* the second run writes what the first one did */
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_ok(next.told);
    assert_int_equal(x_of(&c.bed, 2), 21);
    attempt_release(&next);
    close_chained(&c);
}

/* The store has another row by the time the run reads again: it has read one value nevertheless. */
TEST(a_run_sees_a_promised_row_as_it_was_promised_whatever_the_store_has)
{
    struct chained c;
    struct attempt next;
    open_chained(&c);
    assert_int_equal(attempt_read(&c.given[1], 9), -1);
    hand_in(&c.given[1], 2, 20);
    acquire(&next, &c.bed, SLOW);
    hand_in(&c.given[0], 9, 1);
    attempt_release(&c.given[1]);
    acquire(&c.given[1], &c.bed, SLOW);
    hand_in(&c.given[1], 2, 50);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_int_equal(x_of(&c.bed, 2), 50);
    assert_int_equal(attempt_read(&next, 2), 20);
    hand_in(&next, 2, 21);
    assert_status(next.told, PAWL_ECONFLICT); /* found at once */
    attempt_release(&next);
    close_chained(&c);
}

/* The rows were worked out from a promise that was broken, and could not be: division by zero. At its turn they can. */
TEST(a_failure_that_comes_from_a_broken_promise_is_not_final)
{
    struct chained c;
    struct attempt next;
    const struct schema_projector *share;
    open_chained(&c);
    assert_int_equal(attempt_read(&c.given[1], 9), -1);
    hand_in(&c.given[1], 2, 0);
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(next.run.number, 5);
    hand_in(&c.given[0], 9, 1);
    attempt_release(&c.given[1]);
    acquire(&c.given[1], &c.bed, SLOW);
    hand_in(&c.given[1], 2, 50);
    hand_in(&c.given[2], 3, 30);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_int_equal(x_of(&c.bed, 2), 50); /* 4 is applied: nothing comes between */
    share = schema_projector_by_name(c.bed.schema, text_bytes("t.share"));
    assert_ok(intents_of(share, &next.run.memory, &next.run.intents, &next.run.intent_count));
    attempt_explode(&next);
    assert_status(next.run.status, PAWL_EINVAL);
    assert_ok(attempt_hand_in(&next));
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_ok(next.told);
    assert_int_equal(y_of(&c.bed, 2), 2);
    attempt_release(&next);
    close_chained(&c);
}

/* A write that depends on no value notes no read, and yet the row as promised, with what is set, may have been too large. */
TEST(a_blind_write_that_fails_with_a_promised_row_is_tried_again_without)
{
    struct chained c;
    struct attempt next;
    open_chained(&c);
    hand_in(&c.given[1], 2, 20);
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(next.run.number, 5);
    hand_in(&c.given[0], 1, 11);
    hand_in(&c.given[2], 3, 30);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    attempt_put(&next, 2, 51);
    attempt_explode(&next);
    next.run.status = PAWL_ETOOBIG;
    assert_ok(attempt_hand_in(&next));
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_ok(next.told);
    assert_int_equal(x_of(&c.bed, 2), 51);
    attempt_release(&next);
    close_chained(&c);
}

/* 8 needs 5, which has made 40 rows, and was promised as many: more than a run can be promised. */
TEST(a_number_waits_for_staging_if_there_is_too_much_to_promise)
{
    struct chained c;
    struct attempt next;
    open_chained(&c);
    lane_bed_event(&c.bed, "Slow", WS, 2, 0);
    attempt_put_many(&c.given[1], 2, 40, 20);
    attempt_explode(&c.given[1]);
    assert_ok(attempt_hand_in(&c.given[1]));
    acquire(&next, &c.bed, SLOW);
    assert_int_equal(next.run.number, 5);
    assert_int_equal(attempt_read(&next, 2), 20);
    attempt_put_many(&next, 100, 40, 21);
    attempt_explode(&next);
    assert_ok(attempt_hand_in(&next));
    assert_nothing_is_given_out(&c.bed);
    hand_in(&c.given[0], 1, 11);
    hand_in(&c.given[2], 1000, 30);
    lane_bed_pass(&c.bed, PAWL_SECOND);
    assert_ok(next.told);
    attempt_release(&next);
    for (uint64_t n = 6; n <= 8; n++) { /* 7 has expired */
        acquire(&next, &c.bed, SLOW);
        assert_int_equal(next.run.number, n);
        attempt_release(&next);
    }
    close_chained(&c);
}

/* A run over many rows goes on in a fresh snapshot, which may have a row that comes and goes before the run's turn. */
TEST(a_row_that_is_promised_to_be_gone_is_in_no_snapshot_of_the_run)
{
    struct lane_bed b;
    struct attempt a;
    struct run_buffers buffers;
    struct state state;
    struct promised_row row = {.number = 9};
    uint8_t room[LANE_BED_KEY];
    pawl_reader *fresh;
    pawl_bytes value;
    open_lanes(&b);
    lane_bed_events(&b, "Slow", WS, 1, 2);
    lane_bed_pass(&b, PAWL_SECOND);
    acquire(&a, &b, SLOW);
    attempt_put(&a, 5, 1);
    attempt_explode(&a);
    assert_int_equal(a.run.number, 1);
    assert_ok(run_buffers_init(&buffers, &b.memory.allocator));
    row.key = lane_bed_key(&b, "t.Sum", WS, 5, room);
    run_promise(&a.run, (struct promise){.rows = &row, .count = 1});
    assert_ok(run_open_snapshot(&a.run, b.store, &buffers, &a.run.seen, &state));
    assert_status(state_get(&state, row.key, &value), PAWL_ENOTFOUND);
    assert_ok(attempt_hand_in(&a));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_int_equal(x_of(&b, 5), 1);
    assert_ok(pawl_store_snapshot(b.store, &fresh));
    state.reader = fresh;
    assert_status(state_get(&state, row.key, &value), PAWL_ENOTFOUND);
    pawl_store_release(b.store, fresh);
    run_close_snapshot(&buffers);
    run_buffers_release(&buffers);
    attempt_release(&a);
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
        RUN(a_number_is_run_with_the_rows_that_the_one_before_it_in_its_chain_promises),
        RUN(what_rests_on_a_run_that_is_repeated_is_repeated_too),
        RUN(a_run_does_not_stand_if_a_promised_row_that_it_has_read_becomes_another),
        RUN(a_run_does_not_stand_if_a_promised_row_that_it_has_read_never_comes),
        RUN(a_promise_that_is_broken_and_made_good_again_is_kept),
        RUN(a_run_sees_a_promised_row_as_it_was_promised_whatever_the_store_has),
        RUN(a_failure_that_comes_from_a_broken_promise_is_not_final),
        RUN(a_blind_write_that_fails_with_a_promised_row_is_tried_again_without),
        RUN(a_number_waits_for_staging_if_there_is_too_much_to_promise),
        RUN(a_row_that_is_promised_to_be_gone_is_in_no_snapshot_of_the_run),
        RUN(one_worker_repeats_hardly_anything_though_each_operation_needs_the_last),
    };
    return TEST_MAIN(tests);
}
