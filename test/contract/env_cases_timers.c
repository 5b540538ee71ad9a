/* The env suite: timers. Which of two timers is due first is known only if the thread was not interrupted while
 * it set them: a test of their order repeats itself until that is so. */
#include "test/contract/env_cases.h"

#define APART (2 * PAWL_MILLISECOND)

static void set_others(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    uint64_t began = pawl_env_now(p->f->env).ns;
    for (uint64_t i = 0; i < p->left; i++) {
        p->others[i].set_at = pawl_env_now(p->f->env).ns;
        pawl_env_after(p->f->env, &p->others[i].timer, p->others[i].delay);
    }
    p->took = pawl_env_now(p->f->env).ns - began;
}

static bool fire_in_order(void **test_state)
{
    static const uint64_t delays[] = {4, 1, 6, 3, 0, 2, 5};
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 7);
    struct probe first = {.others = probes, .left = 7};
    for (size_t i = 0; i < 7; i++) {
        probes[i].delay = delays[i] * APART;
        probes[i].id = delays[i];
    }
    start(f, 0, &first, set_others);
    env_await(f, 7);
    bool at_once = first.took < APART;
    if (at_once)
        EXPECT(f, 0, 1, 2, 3, 4, 5, 6);
    env_fixture_free(f);
    free(probes);
    return at_once;
}

CONTRACT_TEST(timers_fire_in_the_order_in_which_they_are_due)
{
    while (!fire_in_order(test_state))
        ;
}

/* 1: early. Otherwise 0. */
static void record_early(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    env_record(p->f, pawl_env_now(p->f->env).ns - p->set_at < p->delay);
}

CONTRACT_TEST(a_timer_never_fires_early)
{
    uint64_t random = test_seed(11);
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 300);
    struct probe first = {.others = probes, .left = 300};
    for (size_t i = 0; i < 300; i++) {
        probes[i].delay = test_below(&random, (i % 2 ? 20000 : 500) * PAWL_MICROSECOND);
        probes[i].timer.fn = record_early;
    }
    start(f, 0, &first, set_others);
    env_await(f, 300);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(f->values[i], 0);
    env_fixture_free(f);
    free(probes);
}

static void set_and_move(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env *env = p->f->env;
    uint64_t began = pawl_env_now(env).ns;
    pawl_env_after(env, &p->others[0].timer, APART);
    pawl_env_after(env, &p->others[1].timer, 2 * APART);
    pawl_env_after(env, &p->others[2].timer, 3600 * PAWL_SECOND);
    pawl_env_after(env, &p->others[0].timer, 3 * APART);
    pawl_env_after(env, &p->others[2].timer, APART);
    p->took = pawl_env_now(env).ns - began;
}

static bool move(void **test_state)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 3);
    struct probe first = {.others = probes};
    start(f, 0, &first, set_and_move);
    env_await(f, 3);
    env_fixture_close(f);
    bool at_once = first.took < APART;
    if (at_once)
        EXPECT(f, 2, 1, 0);
    env_fixture_free(f);
    free(probes);
    return at_once;
}

CONTRACT_TEST(setting_a_timer_that_is_set_moves_it)
{
    while (!move(test_state))
        ;
}

static void fire_again(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    pawl_env_cancel(p->f->env, timer); /* it is no longer set: nothing to do */
    env_record(p->f, p->left);
    if (p->left-- > 0)
        pawl_env_after(p->f->env, timer, p->left * PAWL_MILLISECOND / 2);
}

CONTRACT_TEST(a_timer_fires_once_and_may_be_set_again_from_its_own_callback)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe p = {.f = f, .left = 3, .timer.fn = fire_again}, first = {.others = &p, .left = 1};
    start(f, 0, &first, set_others);
    env_await(f, 4);
    env_fixture_close(f);
    EXPECT(f, 3, 2, 1, 0);
    env_fixture_free(f);
}

static void set_and_cancel(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env *env = p->f->env;
    pawl_env_cancel(env, &p->others[0].timer); /* never set */
    for (int i = 0; i < 4; i++)
        pawl_env_after(env, &p->others[i].timer, (uint64_t)i * PAWL_MILLISECOND);
    pawl_env_after(env, &p->others[4].timer, UINT64_MAX);
    pawl_env_cancel(env, &p->others[0].timer);
    pawl_env_cancel(env, &p->others[2].timer);
    pawl_env_cancel(env, &p->others[2].timer);
}

CONTRACT_TEST(a_cancelled_timer_does_not_fire)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 5);
    struct probe first = {.others = probes};
    start(f, 0, &first, set_and_cancel);
    env_await(f, 2);
    env_fixture_close(f);
    EXPECT(f, 1, 3);
    env_fixture_free(f);
    free(probes);
}

static void cancel_others(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    env_record(p->f, 0);
    for (size_t i = 0; i < 10; i++)
        pawl_env_cancel(p->f->env, &p->others[i].timer);
}

CONTRACT_TEST(a_timer_cancels_another_that_is_due_at_the_same_time)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 11);
    struct probe first = {.others = probes, .left = 11};
    for (size_t i = 0; i < 10; i++) {
        probes[i].timer.fn = cancel_others;
        probes[i].others = probes;
    }
    probes[10].delay = 3 * PAWL_MILLISECOND;
    start(f, 0, &first, set_others);
    env_await(f, 2);
    env_fixture_close(f);
    EXPECT(f, 0, 10);
    env_fixture_free(f);
    free(probes);
}

static void free_timer(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    struct env_fixture *f = p->f;
    memset(p, 0xee, sizeof *p);
    free(p);
    env_record(f, 0);
}

CONTRACT_TEST(a_timer_may_free_itself)
{
    struct env_fixture *f = open_for(test_state, 1);
    for (uint64_t i = 0; i < 100; i++) {
        struct probe *p = probes_new(f, 1);
        p->timer.fn = free_timer;
        p->delay = i % 3 * PAWL_MILLISECOND;
        start(f, 0, p, set_own);
    }
    env_await(f, 100);
    env_fixture_free(f);
}
