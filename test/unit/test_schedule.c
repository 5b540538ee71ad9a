/* Which numbers are worth working on before their turn: what is learned from conflicts, what is held, how far ahead. */
#include "test/lib/test.h"

#include "core/project/schedule.h"

enum { WINDOW = 64, NUMBERS = 4096 };

/* Events that are bound, and what the schedule has said of them. */
struct plan {
    struct schedule schedule;
    struct event_values events[NUMBERS];
    bool held[NUMBERS];
    bool taken[NUMBERS];   /* somebody works on it */
    bool outside[NUMBERS]; /* and gets no promise */
    uint64_t asked;        /* for values */
};

static bool values_of(void *ctx, uint64_t number, struct event_values *ret_values)
{
    struct plan *plan = ctx;
    plan->asked++;
    *ret_values = plan->events[number];
    return true;
}

static bool hold(void *ctx, uint64_t number, bool held)
{
    struct plan *plan = ctx;
    if (held && plan->taken[number])
        return false;
    plan->held[number] = held;
    return true;
}

static bool takes_promises(void *ctx, uint64_t number)
{
    struct plan *plan = ctx;
    return !plan->outside[number];
}

static void plan_open(struct plan *plan)
{
    static const struct schedule_ops ops = {
        .values = values_of, .hold = hold, .takes_promises = takes_promises};
    *plan = (struct plan){0};
    schedule_init(&plan->schedule, &ops, plan, WINDOW, NULL);
    schedule_reset(&plan->schedule, 1);
}

/* An event: its command, its customer, and two values that say nothing: one always the same, one always new. */
static void bind(struct plan *plan, uint32_t command, uint64_t customer)
{
    uint64_t number = plan->schedule.bound + 1;
    size_t at = command == 2 ? 3 : 1; /* where the customer stands */
    struct event_values *event = &plan->events[number];
    *event = (struct event_values){.kind = command, .wsid = 7};
    event->hashes[0] = 555;
    event->hashes[at] = 1000 + customer;
    event->hashes[5] = 1000000 + number;
    schedule_bind(&plan->schedule, number);
}

static void stage(struct plan *plan, uint64_t writer)
{
    uint64_t number = plan->schedule.staged + 1;
    assert_false(plan->held[number]); /* S1 */
    schedule_stood(&plan->schedule, number, writer);
    schedule_stage(&plan->schedule, number);
}

TEST(before_the_first_conflict_nothing_is_held_or_looked_at)
{
    static struct plan plan;
    plan_open(&plan);
    for (uint64_t n = 1; n <= WINDOW; n++)
        bind(&plan, 1, 1);
    for (uint64_t n = 1; n <= WINDOW; n++) {
        assert_false(plan.held[n]);
        assert_true(schedule_is_near(&plan.schedule, n));
        stage(&plan, n - 1);
    }
    assert_int_equal(plan.asked, 0);
    assert_false(schedule_is_wary(&plan.schedule));
    schedule_release(&plan.schedule);
}

TEST(of_a_chain_only_the_first_is_given_out_and_the_next_when_it_is_staged)
{
    static const uint64_t customers[] = {1, 2, 3, 2, 4, 3, 3, 5};
    static struct plan plan;
    plan_open(&plan);
    for (size_t i = 0; i < 8; i++)
        bind(&plan, 1, customers[i]);
    stage(&plan, 0);
    stage(&plan, 0);
    schedule_repeated(&plan.schedule, 4, 2); /* both are of customer 2 */
    assert_int_equal(schedule_before(&plan.schedule, 6), 3);
    assert_int_equal(schedule_before(&plan.schedule, 7), 6);
    assert_false(plan.held[3] || plan.held[4] || plan.held[5] || plan.held[8]);
    assert_true(plan.held[6] && plan.held[7]);
    assert_int_equal(plan.schedule.held, 2);
    bind(&plan, 1, 5);
    bind(&plan, 1, 6);
    assert_true(plan.held[9]);
    assert_false(plan.held[10]);
    stage(&plan, 0);
    assert_false(plan.held[6]);
    assert_true(plan.held[7]);
    stage(&plan, 2);
    stage(&plan, 0);
    stage(&plan, 3);
    assert_false(plan.held[7]);
    schedule_release(&plan.schedule);
}

TEST(the_next_of_a_chain_is_given_out_when_the_one_before_it_is_promised_and_held_when_that_is_repeated)
{
    static const uint64_t customers[] = {1, 2, 3, 2, 4, 3, 3, 5};
    static struct plan plan;
    plan_open(&plan);
    for (size_t i = 0; i < 8; i++)
        bind(&plan, 1, customers[i]);
    stage(&plan, 0);
    stage(&plan, 0);
    schedule_repeated(&plan.schedule, 4, 2);
    assert_true(plan.held[6] && plan.held[7]);
    schedule_promise(&plan.schedule, 3);
    assert_false(plan.held[6]);
    assert_true(plan.held[7]);
    schedule_promise(&plan.schedule, 6);
    assert_false(plan.held[7]);
    bind(&plan, 1, 3);
    assert_true(plan.held[9]);
    schedule_promise(&plan.schedule, 7);
    bind(&plan, 1, 4); /* of another chain */
    assert_true(plan.held[10] && !plan.held[9]);
    schedule_repeated(&plan.schedule, 6, 3);
    assert_true(plan.held[7] && !plan.held[6] && !plan.held[9]);
    stage(&plan, 0);
    schedule_promise(&plan.schedule, 5);
    assert_false(plan.held[10]);
    schedule_promise(&plan.schedule, 99); /* which is not bound */
    assert_int_equal(plan.schedule.held, 1);
    schedule_release(&plan.schedule);
}

TEST(a_number_that_gets_no_promise_is_held_until_the_one_before_it_is_staged)
{
    static struct plan plan;
    plan_open(&plan);
    for (uint64_t n = 1; n <= 6; n++)
        bind(&plan, 1, n % 2);
    stage(&plan, 0);
    plan.outside[5] = plan.outside[7] = true;
    schedule_repeated(&plan.schedule, 3, 1);
    assert_true(plan.held[5] && plan.held[6]);
    schedule_promise(&plan.schedule, 3);
    schedule_promise(&plan.schedule, 4);
    assert_true(plan.held[5]);
    assert_false(plan.held[6]);
    schedule_promise(&plan.schedule, 5);
    bind(&plan, 1, 1);
    assert_true(plan.held[7]);
    stage(&plan, 0);
    stage(&plan, 1);
    assert_false(plan.held[5]);
    schedule_release(&plan.schedule);
}

/* What was promised is not to be had any more, and nothing was learned from that. */
TEST(the_next_of_a_chain_is_held_again_when_a_promise_is_withdrawn_unless_somebody_has_it)
{
    static struct plan plan;
    plan_open(&plan);
    for (uint64_t n = 1; n <= 6; n++)
        bind(&plan, 1, n % 2);
    stage(&plan, 0);
    schedule_repeated(&plan.schedule, 3, 1);
    schedule_promise(&plan.schedule, 3);
    schedule_promise(&plan.schedule, 4);
    plan.taken[6] = true;
    double ahead = plan.schedule.ahead;
    schedule_withdraw(&plan.schedule, 3);
    schedule_withdraw(&plan.schedule, 4);
    assert_true(plan.held[5]);
    assert_false(plan.held[6]);
    assert_int_equal(plan.schedule.held, 2);
    assert_true(plan.schedule.ahead == ahead);
    schedule_release(&plan.schedule);
}

TEST(events_of_two_commands_form_a_chain_by_the_value_that_they_have_in_common)
{
    static struct plan plan;
    plan_open(&plan);
    bind(&plan, 1, 1);
    bind(&plan, 2, 1);
    for (uint64_t n = 3; n <= 20; n++)
        bind(&plan, n % 3 ? 1 : 2, n);
    stage(&plan, 0);
    schedule_repeated(&plan.schedule, 2, 1);
    bind(&plan, 2, 11); /* 11 is of the other command, and the same customer */
    assert_int_equal(schedule_before(&plan.schedule, 21), 11);
    assert_true(plan.held[21]);
    schedule_release(&plan.schedule);
}

TEST(predictions_that_are_mostly_wrong_hold_nothing)
{
    static struct plan plan;
    uint64_t held = 0;
    plan_open(&plan);
    for (uint64_t n = 1; n <= WINDOW / 2; n++)
        bind(&plan, 1, n);
    for (uint64_t n = 1; n <= 2000; n++) {
        if (n % 50 == 0) /* a conflict, and no value tells which */
            schedule_repeated(&plan.schedule, plan.schedule.staged + 5, plan.schedule.staged + 1);
        stage(&plan, 0);
        bind(&plan, 1, n % 40);
        held += n > 1000 ? plan.schedule.held : 0;
    }
    assert_false(plan.schedule.trusted);
    assert_int_equal(held, 0);
    schedule_release(&plan.schedule);
}

TEST(all_events_of_one_thing_are_one_chain)
{
    static struct plan plan;
    plan_open(&plan);
    for (uint64_t n = 1; n <= 10; n++)
        bind(&plan, 1, 1);
    stage(&plan, 0);
    schedule_repeated(&plan.schedule, 3, 1); /* once may be by chance */
    assert_int_equal(plan.schedule.held, 0);
    for (uint64_t n = 4; n <= 7; n++)
        schedule_repeated(&plan.schedule, n, 1);
    for (uint64_t n = 2; n <= 10; n++) {
        for (uint64_t other = n + 1; other <= 10; other++)
            assert_true(plan.held[other]);
        stage(&plan, n - 1);
    }
    assert_true(plan.schedule.trusted);
    schedule_release(&plan.schedule);
}

TEST(what_is_repeated_makes_it_look_less_far_ahead_and_what_stands_farther)
{
    static struct plan plan;
    plan_open(&plan);
    for (uint64_t n = 1; n <= 2000; n++)
        bind(&plan, 1, n);
    for (int i = 0; i < 40; i++)
        schedule_repeated(&plan.schedule, 2, 0);
    assert_true(schedule_is_near(&plan.schedule, 1)); /* S1, S4 */
    assert_false(schedule_is_near(&plan.schedule, 2));
    for (int i = 0; i < 200; i++)
        stage(&plan, 0);
    assert_true(schedule_is_near(&plan.schedule, 200 + WINDOW));
    assert_false(schedule_is_near(&plan.schedule, 200 + WINDOW + 1));
    for (int i = 0; i < 1500; i++) { /* of ten runs one is repeated: this is the most */
        if (i % 10 == 0)
            schedule_repeated(&plan.schedule, plan.schedule.staged + 2, 0);
        stage(&plan, 0);
    }
    assert_true(plan.schedule.ahead > 8 && plan.schedule.ahead <= WINDOW);
    schedule_release(&plan.schedule);
}

TEST(a_conflict_that_is_foreseen_from_now_on_does_not_make_it_look_less_far_ahead)
{
    static struct plan plan;
    plan_open(&plan);
    for (uint64_t n = 1; n <= 40; n++)
        bind(&plan, 1, n % 10);
    stage(&plan, 0);
    for (int i = 0; i < 3; i++) { /* these were given out before anything was learned */
        schedule_repeated(&plan.schedule, 11, 1);
        schedule_repeated(&plan.schedule, 21, 1);
        schedule_repeated(&plan.schedule, 31, 1);
    }
    assert_true(schedule_is_near(&plan.schedule, 1 + WINDOW));
    schedule_repeated(&plan.schedule, 12, 1); /* and this nobody could have known */
    assert_false(schedule_is_near(&plan.schedule, 1 + WINDOW));
    schedule_release(&plan.schedule);
}

TEST(a_new_start_forgets_the_numbers_and_keeps_what_was_learned)
{
    static struct plan plan;
    plan_open(&plan);
    bind(&plan, 1, 1);
    bind(&plan, 1, 2);
    bind(&plan, 1, 1);
    stage(&plan, 0);
    schedule_repeated(&plan.schedule, 3, 1);
    schedule_reset(&plan.schedule, 2);
    assert_int_equal(plan.schedule.held, 0);
    assert_int_equal(schedule_before(&plan.schedule, 3), 0);
    memset(plan.held, 0, sizeof plan.held);
    bind(&plan, 1, 3);
    bind(&plan, 1, 3);
    assert_true(plan.held[3]);
    schedule_release(&plan.schedule);
}

/* Whatever is said to it: the next in turn is free, and what is held waits for a lower number that is not staged. */
TEST(the_next_number_in_turn_is_never_held_whatever_happens)
{
    static struct plan plan;
    uint64_t random = test_seed(20261117);
    for (int history = 0; history < 200; history++) {
        plan_open(&plan);
        uint64_t customers = 1 + test_below(&random, 40);
        for (int step = 0; step < 2000 && plan.schedule.bound + 1 < NUMBERS; step++) {
            struct schedule *s = &plan.schedule;
            uint64_t open = s->bound - s->staged;
            switch (test_below(&random, 8)) {
            case 0:
                if (open > 0)
                    schedule_repeated(s, s->staged + 1 + test_below(&random, open),
                                      test_below(&random, 4) ? s->staged : 0);
                break;
            case 1:
            case 2:
            case 3:
                if (open > 0)
                    stage(&plan, test_below(&random, s->staged + 1));
                break;
            case 4:
                if (test_below(&random, 50) == 0) {
                    schedule_reset(s, s->staged + 1);
                    memset(plan.held, 0, sizeof plan.held);
                }
                break;
            default:
                if (open < WINDOW)
                    bind(&plan, 1 + (uint32_t)test_below(&random, 3), test_below(&random, customers));
            }
            assert_true(s->ahead >= 1 && s->ahead <= WINDOW);
            assert_false(plan.held[s->staged + 1]);
            uint64_t held = 0;
            for (uint64_t n = s->staged + 1; n <= s->bound; n++) {
                held += plan.held[n];
                assert_true(!plan.held[n] || (schedule_before(s, n) > s->staged && schedule_before(s, n) < n));
            }
            assert_int_equal(held, s->held);
        }
        schedule_release(&plan.schedule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(before_the_first_conflict_nothing_is_held_or_looked_at),
        RUN(of_a_chain_only_the_first_is_given_out_and_the_next_when_it_is_staged),
        RUN(the_next_of_a_chain_is_given_out_when_the_one_before_it_is_promised_and_held_when_that_is_repeated),
        RUN(a_number_that_gets_no_promise_is_held_until_the_one_before_it_is_staged),
        RUN(the_next_of_a_chain_is_held_again_when_a_promise_is_withdrawn_unless_somebody_has_it),
        RUN(events_of_two_commands_form_a_chain_by_the_value_that_they_have_in_common),
        RUN(predictions_that_are_mostly_wrong_hold_nothing),
        RUN(all_events_of_one_thing_are_one_chain),
        RUN(what_is_repeated_makes_it_look_less_far_ahead_and_what_stands_farther),
        RUN(a_conflict_that_is_foreseen_from_now_on_does_not_make_it_look_less_far_ahead),
        RUN(a_new_start_forgets_the_numbers_and_keeps_what_was_learned),
        RUN(the_next_number_in_turn_is_never_held_whatever_happens),
    };
    return TEST_MAIN(tests);
}
