/* A sequencer tells its waiters that start is worth another try: when, once, in which order, and what happens
 * at the end. */
#include "test/lib/test.h"

#include "test/lib/sequence.h"

/* Somebody who starts an event when told, as a user does. */
struct clerk {
    pawl_sequencer_waiter waiter;
    struct bed *bed;
    int told; /* how often */
    int status;
    int started; /* what start answered */
    uint64_t offset;
    bool starts; /* else it only listens */
    bool stages; /* what it started; else it stays open */
    bool waits_again;
};

static bool in_a_call; /* of the sequencer's, made by this test */

static void told(pawl_sequencer_waiter *waiter, int status)
{
    struct clerk *clerk = (struct clerk *)waiter;
    assert_false(in_a_call);
    clerk->told++;
    clerk->status = status;
    if (clerk->starts && status == PAWL_OK)
        clerk->started = pawl_sequencer_start(clerk->bed->s, KIND_SHOP, 5, &clerk->offset);
    if (clerk->stages && clerk->started == PAWL_OK && status == PAWL_OK) {
        uint64_t number;
        assert_ok(pawl_sequencer_next(clerk->bed->s, SEQ_WLOG, &number));
        assert_ok(pawl_sequencer_stage(clerk->bed->s));
    }
    if (clerk->waits_again && clerk->told < 3)
        assert_ok(pawl_sequencer_when_ready(clerk->bed->s, &clerk->waiter));
}

static struct clerk clerk_of(struct bed *bed)
{
    return (struct clerk){.waiter.fn = told, .bed = bed, .status = 1, .started = 1};
}

static int do_wait(struct bed *bed, void *arg)
{
    in_a_call = true;
    int status = pawl_sequencer_when_ready(bed->s, &((struct clerk *)arg)->waiter);
    in_a_call = false;
    return status;
}

static int do_unwait(struct bed *bed, void *arg)
{
    return pawl_sequencer_unwait(bed->s, &((struct clerk *)arg)->waiter);
}

static int do_flush(struct bed *bed, void *arg)
{
    in_a_call = true;
    int status = pawl_sequencer_flush(bed->s, *(uint64_t *)arg);
    in_a_call = false;
    return status;
}

static bool is_told(void *arg)
{
    return ((struct clerk *)arg)->told > 0;
}

static void run_until_told(struct bed *bed, struct clerk *clerk)
{
    assert_true(mem_world_run_until(bed->world, is_told, clerk, 100000));
}

/* So that a recovery is under way. */
static void begin_recovery(struct bed *bed)
{
    assert_ok(bed_new(bed));
    while (pawl_sequencer_state_get(bed->s) != PAWL_SEQUENCER_RECOVERING)
        assert_true(mem_world_step(bed->world));
}

TEST(who_was_busy_while_the_log_was_read_is_told_and_starts)
{
    struct bed bed;
    uint64_t offset;
    bed_open(&bed, 1);
    mock_append_one(&bed.mock, 1, KIND_SHOP, 5, SEQ_WLOG, 1);
    bed.mock.fail[MOCK_SCAN] = 3;
    begin_recovery(&bed);
    struct clerk clerk = clerk_of(&bed);
    clerk.starts = true;
    assert_status(bed_start(&bed, KIND_SHOP, 5, &offset), PAWL_EBUSY);
    assert_ok(bed_call(&bed, do_wait, &clerk));
    run_until_told(&bed, &clerk);
    assert_status(clerk.status, PAWL_OK);
    assert_ok(clerk.started);
    assert_int_equal(clerk.offset, 2);
    mem_world_advance(bed.world, 10 * PAWL_SECOND);
    assert_int_equal(clerk.told, 1);
    bed_release(&bed);
}

TEST(who_asks_when_it_is_ready_is_told_from_the_loop)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    struct clerk clerk = clerk_of(&bed);
    assert_ok(bed_call(&bed, do_wait, &clerk)); /* told asserts that it is not inside */
    run_until_told(&bed, &clerk);
    assert_status(clerk.status, PAWL_OK);
    bed_release(&bed);
}

TEST(who_was_busy_because_of_the_storage_is_told_when_it_is_written)
{
    struct bed bed;
    uint64_t offset;
    bed_open(&bed, 1);
    bed.options.limits.unflushed_max = 8;
    bed.options.limits.flush_events = 2;
    bed_new_ready(&bed);
    bed.mock.fail[MOCK_WRITE] = MOCK_FOR_EVER;
    uint64_t ws = 1;
    while (bed_start(&bed, KIND_SHOP, ws, &offset) == PAWL_OK) {
        assert_ok(bed_cancel(&bed));
        bed_cycle(&bed, KIND_SHOP, ws++, SEQ_WLOG);
    }
    assert_status(bed_start(&bed, KIND_SHOP, ws, &offset), PAWL_EBUSY);
    struct clerk clerk = clerk_of(&bed);
    clerk.starts = true;
    assert_ok(bed_call(&bed, do_wait, &clerk));
    mem_world_advance(bed.world, 60 * PAWL_SECOND);
    assert_int_equal(clerk.told, 0);
    bed.mock.fail[MOCK_WRITE] = 0;
    run_until_told(&bed, &clerk);
    assert_ok(clerk.started);
    bed_release(&bed);
}

/* Four may be staged. One flush makes room for one: the first who waits takes it, the second goes on waiting.
 */
TEST(those_who_were_busy_because_of_staged_events_are_told_in_their_order)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.staged_max = 4;
    bed_new_ready(&bed);
    for (uint64_t i = 1; i <= 4; i++) {
        bed_expect_start(&bed, KIND_SHOP, 5, i);
        assert_ok(bed_stage(&bed));
    }
    struct clerk clerks[2] = {clerk_of(&bed), clerk_of(&bed)};
    for (int i = 0; i < 2; i++) {
        clerks[i].starts = clerks[i].stages = true;
        assert_ok(bed_call(&bed, do_wait, &clerks[i]));
    }
    mem_world_advance(bed.world, PAWL_SECOND);
    assert_int_equal(clerks[0].told, 0);
    for (uint64_t i = 1; i <= 2; i++) {
        assert_ok(bed_call(&bed, do_flush, &i));
        mem_world_advance(bed.world, PAWL_MILLISECOND);
        assert_int_equal(clerks[0].told, 1);
        assert_int_equal(clerks[1].told, i - 1);
        assert_ok(clerks[i - 1].started);
        assert_int_equal(clerks[i - 1].offset, 4 + i);
    }
    bed_release(&bed);
}

/* The first leaves its event open: the second would only be misused. */
TEST(nobody_is_told_while_an_event_is_open)
{
    static int (*const ends[])(struct bed *) = {bed_stage, bed_cancel, NULL};
    for (int e = 0; e < 3; e++) {
        struct bed bed;
        bed_open(&bed, 1);
        begin_recovery(&bed);
        struct clerk clerks[2] = {clerk_of(&bed), clerk_of(&bed)};
        for (int i = 0; i < 2; i++) {
            clerks[i].starts = true;
            assert_ok(bed_call(&bed, do_wait, &clerks[i]));
        }
        run_until_told(&bed, &clerks[0]);
        mem_world_advance(bed.world, PAWL_SECOND);
        assert_int_equal(clerks[1].told, 0);
        assert_ok(ends[e] ? ends[e](&bed) : bed_flush(&bed, 1));
        run_until_told(&bed, &clerks[1]);
        assert_ok(clerks[1].started);
        bed_release(&bed);
    }
}

TEST(one_that_waits_again_when_told_is_told_again)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    struct clerk clerk = clerk_of(&bed);
    clerk.waits_again = true;
    assert_ok(bed_call(&bed, do_wait, &clerk));
    mem_world_advance(bed.world, PAWL_SECOND);
    assert_int_equal(clerk.told, 3);
    bed_release(&bed);
}

TEST(actualizing_tells_when_the_log_is_read_again)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 1);
    assert_ok(bed_actualize(&bed));
    struct clerk clerk = clerk_of(&bed);
    clerk.starts = true;
    assert_ok(bed_call(&bed, do_wait, &clerk));
    run_until_told(&bed, &clerk);
    assert_ok(clerk.started);
    assert_int_equal(clerk.offset, 1);
    bed_release(&bed);
}

TEST(a_waiter_that_is_taken_back_is_not_told)
{
    struct bed bed;
    bed_open(&bed, 1);
    begin_recovery(&bed);
    struct clerk clerks[3] = {clerk_of(&bed), clerk_of(&bed), clerk_of(&bed)};
    for (int i = 0; i < 3; i++)
        assert_ok(bed_call(&bed, do_wait, &clerks[i]));
    assert_true(bed_call(&bed, do_unwait, &clerks[1]));
    assert_false(bed_call(&bed, do_unwait, &clerks[1]));
    run_until_told(&bed, &clerks[2]);
    assert_int_equal(clerks[0].told, 1);
    assert_int_equal(clerks[1].told, 0);
    assert_false(bed_call(&bed, do_unwait, &clerks[0]));
    bed_release(&bed);
}

TEST(who_waits_for_a_log_that_is_refused_is_told_so)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.mock.stored_last = 50;
    begin_recovery(&bed);
    struct clerk early = clerk_of(&bed), late = clerk_of(&bed);
    assert_ok(bed_call(&bed, do_wait, &early));
    run_until_told(&bed, &early);
    assert_status(early.status, PAWL_ECORRUPT);
    assert_ok(bed_call(&bed, do_wait, &late));
    run_until_told(&bed, &late);
    assert_status(late.status, PAWL_ECORRUPT);
    bed_release(&bed);
}

/* Before it has begun, while it recovers, while it is full, and when it was about to tell. */
TEST(who_waits_when_it_is_freed_is_told_that_it_is_closed)
{
    enum { JUST_NEW, RECOVERING, FULL, ABOUT_TO, SITUATIONS };
    for (int situation = 0; situation < SITUATIONS; situation++) {
        struct bed bed;
        bed_open(&bed, 1);
        bed.options.limits.staged_max = 1;
        assert_ok(bed_new(&bed));
        struct clerk clerk = clerk_of(&bed), late = clerk_of(&bed);
        if (situation == RECOVERING)
            mem_env_delay(bed.env, MEM_WORK, 1, PAWL_SECOND);
        if (situation >= FULL)
            bed_ready(&bed);
        if (situation == FULL) {
            bed_expect_start(&bed, KIND_SHOP, 5, 1);
            assert_ok(bed_stage(&bed));
        }
        if (situation == JUST_NEW) {
            in_a_call = true;
            assert_ok(pawl_sequencer_when_ready(bed.s, &clerk.waiter));
            in_a_call = false;
        } else
            assert_ok(bed_call(&bed, do_wait, &clerk));
        bed_close_begin(&bed);
        if (clerk.told == 0)
            run_until_told(&bed, &clerk);
        assert_int_equal(clerk.told, 1);
        if (situation == FULL)
            assert_status(clerk.status, PAWL_ECLOSED);
        assert_status(bed_call(&bed, do_wait, &late), PAWL_EMISUSE);
        assert_ok(bed_close(&bed));
        assert_int_equal(clerk.told, 1);
        assert_int_equal(late.told, 0);
        bed_release(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(who_was_busy_while_the_log_was_read_is_told_and_starts),
        RUN(who_asks_when_it_is_ready_is_told_from_the_loop),
        RUN(who_was_busy_because_of_the_storage_is_told_when_it_is_written),
        RUN(those_who_were_busy_because_of_staged_events_are_told_in_their_order),
        RUN(nobody_is_told_while_an_event_is_open),
        RUN(one_that_waits_again_when_told_is_told_again),
        RUN(actualizing_tells_when_the_log_is_read_again),
        RUN(a_waiter_that_is_taken_back_is_not_told),
        RUN(who_waits_for_a_log_that_is_refused_is_told_so),
        RUN(who_waits_when_it_is_freed_is_told_that_it_is_closed),
    };
    return TEST_MAIN(tests);
}
