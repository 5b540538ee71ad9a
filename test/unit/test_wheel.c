#include "test/lib/test.h"

#include "base/wheel.h"

#define NODES 200

/* The model: every node's tick and when it was added; what is due is found by looking at all. */
struct timer {
    struct wheel_node node;
    bool set;
    uint64_t tick;
    uint64_t added;
};

struct model {
    struct wheel wheel;
    struct timer timers[NODES];
    uint64_t now;
    uint64_t added;
    uint64_t state;
    uint64_t fired;
    bool meddle;     /* whether fire adds and removes */
    bool due[NODES]; /* set at the beginning of an advance: those that must fire in it */
};

static void model_add(struct model *m, struct timer *t, uint64_t tick)
{
    wheel_add(&m->wheel, &t->node, tick);
    t->set = true;
    t->tick = tick < m->now ? m->now : tick;
    t->added = m->added++;
}

static void model_remove(struct model *m, struct timer *t)
{
    wheel_remove(&m->wheel, &t->node);
    t->set = false;
    m->due[t - m->timers] = false;
}

/* The first of those that must still fire. */
static struct timer *model_first_due(struct model *m)
{
    struct timer *first = NULL;
    for (size_t i = 0; i < NODES; i++) {
        struct timer *t = &m->timers[i];
        if (m->due[i]
            && (!first || t->tick < first->tick || (t->tick == first->tick && t->added < first->added)))
            first = t;
    }
    return first;
}

/* Ticks of all magnitudes around the present, some in the past, some at the very end. */
static uint64_t random_tick(struct model *m)
{
    uint64_t distance = test_random(&m->state) >> test_below(&m->state, 64);
    switch (test_below(&m->state, 10)) {
    case 0: return m->now - (distance < m->now ? distance : m->now);
    case 1: return m->now;
    case 2: return UINT64_MAX - test_below(&m->state, 3);
    case 3: return (m->now | 63) + (m->now < UINT64_MAX - 64);
    default: return m->now + (distance < UINT64_MAX - m->now ? distance : UINT64_MAX - m->now);
    }
}

static void meddle(struct model *m)
{
    struct timer *t = &m->timers[test_below(&m->state, NODES)];
    if (t->set)
        model_remove(m, t);
    else
        model_add(m, t, random_tick(m));
}

static void fire(struct wheel_node *node, void *arg)
{
    struct model *m = arg;
    struct timer *expected = model_first_due(m);
    assert_non_null(expected);
    assert_ptr_equal(node, &expected->node);
    assert_false(wheel_has(node));
    expected->set = false;
    m->due[expected - m->timers] = false;
    m->fired++;
    if (m->meddle)
        for (uint64_t n = test_below(&m->state, 4); n; n--)
            meddle(m);
}

static void advance(struct model *m, uint64_t now)
{
    m->now = now;
    for (size_t i = 0; i < NODES; i++)
        m->due[i] = m->timers[i].set && m->timers[i].tick <= now;
    wheel_advance(&m->wheel, now, fire, m);
    assert_null(model_first_due(m));
}

static void check_next(struct model *m)
{
    uint64_t earliest = UINT64_MAX, next;
    bool any = false;
    for (size_t i = 0; i < NODES; i++) {
        struct timer *t = &m->timers[i];
        assert_int_equal(wheel_has(&t->node), t->set);
        if (!t->set)
            continue;
        any = true;
        earliest = t->tick < earliest ? t->tick : earliest;
    }
    assert_int_equal(wheel_next(&m->wheel, &next), any);
    if (any) {
        assert_true(next <= earliest);
        assert_true(next >= m->now);
        assert_true(next > m->now || earliest == m->now);
    }
}

static struct model *model_new(uint64_t now, uint64_t seed)
{
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    wheel_init(&m->wheel, now);
    m->now = now;
    m->state = seed;
    return m;
}

static void model_free(struct model *m)
{
    for (size_t i = 0; i < NODES; i++)
        wheel_remove(&m->wheel, &m->timers[i].node);
    wheel_release(&m->wheel);
    free(m);
}

TEST(nothing_fires_before_its_tick_and_all_by_it)
{
    static const uint64_t starts[] = {0, 1, 63, 64, 4095, 1000000007, UINT64_MAX / 2 - 5, UINT64_MAX - 5000};
    for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++)
        for (uint64_t delay = 0; delay < 5000; delay += delay < 130 ? 1 : 61) {
            struct model *m = model_new(starts[s], 1);
            model_add(m, &m->timers[0], starts[s] + delay);
            if (delay > 0)
                advance(m, starts[s] + delay - 1);
            assert_int_equal(m->fired, 0);
            advance(m, starts[s] + delay);
            assert_int_equal(m->fired, 1);
            model_free(m);
        }
}

TEST(a_timer_for_the_past_fires_at_the_next_advance)
{
    struct model *m = model_new(1000, 1);
    model_add(m, &m->timers[0], 5);
    model_add(m, &m->timers[1], 1000);
    model_add(m, &m->timers[2], 0);
    uint64_t next = 0;
    assert_true(wheel_next(&m->wheel, &next));
    assert_true(next == 1000);
    advance(m, 1000);
    assert_int_equal(m->fired, 3);
    assert_false(wheel_next(&m->wheel, &next));
    model_free(m);
}

TEST(the_last_tick_there_is_can_be_waited_for)
{
    struct model *m = model_new(0, 1);
    model_add(m, &m->timers[0], UINT64_MAX);
    model_add(m, &m->timers[1], UINT64_MAX - 1);
    advance(m, UINT64_MAX - 1);
    assert_int_equal(m->fired, 1);
    advance(m, UINT64_MAX);
    assert_int_equal(m->fired, 2);
    model_add(m, &m->timers[2], 7);
    advance(m, UINT64_MAX);
    assert_int_equal(m->fired, 3);
    model_free(m);
}

TEST(following_next_comes_to_the_timer_in_a_few_steps)
{
    uint64_t seed = test_seed(6);
    for (int round = 0; round < 2000; round++) {
        struct model *m = model_new(test_random(&seed) >> test_below(&seed, 64), seed);
        uint64_t tick = random_tick(m), next;
        model_add(m, &m->timers[0], tick);
        int steps = 0;
        while (wheel_next(&m->wheel, &next)) {
            steps++;
            advance(m, next);
        }
        assert_true(m->fired == 1);
        assert_true(m->now == m->timers[0].tick);
        assert_true(steps <= WHEEL_LEVELS);
        model_free(m);
    }
}

static void random_history(uint64_t seed, bool with_meddling)
{
    struct model *m = model_new(test_random(&seed) >> 1 >> test_below(&seed, 63), seed);
    m->meddle = with_meddling;
    for (int step = 0; step < 20000; step++) {
        uint64_t next, jump = test_random(&m->state) >> (8 + test_below(&m->state, 56));
        switch (test_below(&m->state, 12)) {
        case 0: advance(m, m->now + (jump < UINT64_MAX - m->now ? jump : 0)); break;
        case 1: advance(m, m->now + (m->now < UINT64_MAX)); break;
        case 2:
            if (wheel_next(&m->wheel, &next))
                advance(m, next);
            break;
        default: meddle(m);
        }
        check_next(m);
    }
    assert_true(m->fired > 100);
    model_free(m);
}

TEST(random_histories_agree_with_looking_at_all)
{
    uint64_t seed = test_seed(7);
    for (int i = 0; i < 8; i++)
        random_history(test_random(&seed), false);
}

TEST(fire_may_add_and_remove_what_it_likes)
{
    uint64_t seed = test_seed(8);
    for (int i = 0; i < 8; i++)
        random_history(test_random(&seed), true);
}

static void fire_again_at_once(struct wheel_node *node, void *arg)
{
    struct model *m = arg;
    m->fired++;
    wheel_add(&m->wheel, node, 0);
}

TEST(a_timer_that_sets_itself_again_does_not_hold_the_wheel)
{
    struct model *m = model_new(10, 1);
    wheel_add(&m->wheel, &m->timers[0].node, 20);
    wheel_advance(&m->wheel, UINT64_C(5000000000), fire_again_at_once, m);
    assert_int_equal(m->fired, 1);
    uint64_t next = 0;
    assert_true(wheel_next(&m->wheel, &next));
    assert_true(next == UINT64_C(5000000000));
    wheel_advance(&m->wheel, next, fire_again_at_once, m);
    assert_int_equal(m->fired, 2);
    model_free(m);
}

struct fired {
    struct wheel_node *nodes[8];
    size_t count;
};

static void note(struct wheel_node *node, void *arg)
{
    struct fired *fired = arg;
    fired->nodes[fired->count++] = node;
}

TEST(what_is_too_much_for_one_call_is_due_first_in_the_next)
{
    struct model *m = model_new(10, 1);
    struct fired fired = {0};
    for (size_t i = 0; i < 5; i++)
        wheel_add(&m->wheel, &m->timers[i].node, 100 - i);
    assert_int_equal(wheel_advance_some(&m->wheel, 99, 2, note, &fired), 2);
    uint64_t next = 0;
    assert_true(wheel_next(&m->wheel, &next) && next == 99);
    wheel_remove(&m->wheel, &m->timers[2].node);
    assert_int_equal(wheel_advance_some(&m->wheel, 200, 2, note, &fired), 2);
    assert_int_equal(wheel_advance_some(&m->wheel, 200, 2, note, &fired), 0);
    static const size_t order[] = {4, 3, 1, 0};
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(fired.nodes[i], &m->timers[order[i]].node);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(nothing_fires_before_its_tick_and_all_by_it),
        RUN(a_timer_for_the_past_fires_at_the_next_advance),
        RUN(the_last_tick_there_is_can_be_waited_for),
        RUN(following_next_comes_to_the_timer_in_a_few_steps),
        RUN(random_histories_agree_with_looking_at_all),
        RUN(fire_may_add_and_remove_what_it_likes),
        RUN(a_timer_that_sets_itself_again_does_not_hold_the_wheel),
        RUN(what_is_too_much_for_one_call_is_due_first_in_the_next),
    };
    return TEST_MAIN(tests);
}
