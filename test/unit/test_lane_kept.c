/* Leases of external workers in a lane that crashes, or starts over because its log has failed. */
#include "test/lib/lease_store.h"
#include "test/lib/two_lanes.h"

/* The side lane has no event here, so that the store is the main lane's alone. */
static void open_keeping(struct lane_bed *b, struct lease_twin *twin)
{
    *twin = (struct lease_twin){0};
    lane_bed_open(b, two_lanes);
    b->limits.lease_store = &lease_twin_store;
    b->limits.lease_store_ctx = twin;
    lane_bed_boot(b);
}

static void acquire_kept(struct attempt *a, struct lane_bed *b)
{
    assert_true(attempt_acquire_kept(a, b, MAIN, SLOW, 600 * PAWL_SECOND));
}

static int hand_in(struct attempt *a, int64_t k, int64_t x)
{
    attempt_put(a, k, x);
    attempt_explode(a);
    return attempt_hand_in(a);
}

static void resume(struct attempt *a, struct lane_bed *b, const struct attempt *whose)
{
    bool again = true;
    assert_ok(attempt_resume(a, b, MAIN, whose->run.number, whose->run.id, &again));
    assert_false(again);
}

static bool has_row(const struct lease_twin *twin)
{
    pawl_lease_row row;
    return lease_twin_store.find((void *)(uintptr_t)twin, 0, &row);
}

TEST(a_lane_that_starts_over_keeps_external_leases_and_takes_no_run_from_before)
{
    static struct lease_twin twin;
    struct lane_bed b;
    struct attempt lost, before, first, second, inside;
    open_keeping(&b, &twin);
    for (int64_t k = 1; k <= 3; k++)
        lane_bed_event(&b, "Slow", WS, k, 0);
    acquire_kept(&lost, &b);
    acquire_kept(&before, &b);
    acquire(&inside, &b, SLOW);
    uint64_t request = mem_log_requests(b.log) + 1;
    assert_ok(mem_log_order(b.log, &(struct mem_log_fault){MEM_LOG_FAIL, request, 0}));
    assert_ok(hand_in(&lost, 1, 10));
    lane_bed_pass(&b, 10 * PAWL_SECOND);
    assert_true(lost.is_told);
    assert_status(lost.told, PAWL_EBUSY); /* ask again */
    assert_status(hand_in(&before, 2, 20), PAWL_EBUSY);
    assert_status(hand_in(&inside, 3, 30), PAWL_EFENCED); /* nobody keeps its lease */
    resume(&first, &b, &lost);
    resume(&second, &b, &before);
    assert_ok(hand_in(&second, 2, 21));
    assert_ok(hand_in(&first, 1, 11));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(first.told);
    assert_ok(second.told);
    assert_int_equal(x_of(&b, 1), 11);
    assert_int_equal(x_of(&b, 2), 21);
    assert_false(has_row(&twin));
    attempt_release(&lost);
    attempt_release(&before);
    attempt_release(&inside);
    attempt_release(&first);
    attempt_release(&second);
    close_lanes(&b);
}

TEST(a_committed_number_is_not_leased_after_a_crash_though_its_row_is_left)
{
    static struct lease_twin twin;
    struct lane_bed b;
    struct attempt committed, held, back;
    bool again = false;
    open_keeping(&b, &twin);
    lane_bed_event(&b, "Slow", WS, 1, 0);
    lane_bed_event(&b, "Slow", WS, 2, 0);
    acquire_kept(&committed, &b);
    acquire_kept(&held, &b);
    assert_ok(lease_twin_store.settle(&twin));
    assert_ok(hand_in(&committed, 1, 10));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(committed.told);
    lane_bed_crash(&b);
    lease_twin_crash(&twin, 0); /* the removal of its row is lost */
    assert_int_equal(twin.count, 2);
    lane_bed_boot(&b);
    lane_bed_pass(&b, 10 * PAWL_SECOND);
    assert_int_equal(lane_bed_figures(&b, MAIN).leases.active, 1);
    assert_ok(attempt_resume(&back, &b, MAIN, committed.run.number, committed.run.id, &again));
    assert_true(again); /* the log knows */
    assert_ok(attempt_hand_in(&back));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(back.told);
    attempt_release(&back);
    assert_false(attempt_acquire(&back, &b, MAIN, SLOW, 0));
    attempt_release(&back);
    resume(&back, &b, &held);
    assert_int_equal(back.run.attempt, 1);
    assert_ok(hand_in(&back, 2, 20));
    lane_bed_pass(&b, PAWL_SECOND);
    assert_ok(back.told);
    assert_false(has_row(&twin));
    attempt_release(&back);
    close_lanes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_lane_that_starts_over_keeps_external_leases_and_takes_no_run_from_before),
        RUN(a_committed_number_is_not_leased_after_a_crash_though_its_row_is_left),
    };
    return TEST_MAIN(tests);
}
