#include "test/lib/test.h"

#include "base/wait.h"

struct scene {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool said;
};

static void scene_init(struct scene *s)
{
    *s = (struct scene){0};
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->cond);
}

static void scene_release(struct scene *s)
{
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->lock);
}

TEST(a_wait_that_nobody_ends_ends_at_its_end_and_not_before)
{
    struct scene s;
    scene_init(&s);
    pthread_mutex_lock(&s.lock);
    uint64_t end = wait_deadline(2 * PAWL_MILLISECOND);
    while (cond_wait_until(&s.cond, &s.lock, end))
        assert_true(clock_monotonic_ns() < end + 600 * PAWL_SECOND); /* a net: it woke for nothing, for ever */
    assert_true(clock_monotonic_ns() >= end);
    pthread_mutex_unlock(&s.lock);
    scene_release(&s);
}

TEST(an_end_that_has_passed_does_not_wait)
{
    struct scene s;
    scene_init(&s);
    pthread_mutex_lock(&s.lock);
    assert_false(cond_wait_until(&s.cond, &s.lock, 0));
    assert_false(cond_wait_until(&s.cond, &s.lock, wait_deadline(0)));
    pthread_mutex_unlock(&s.lock);
    scene_release(&s);
}

static void *say(void *arg)
{
    struct scene *s = arg;
    pthread_mutex_lock(&s->lock);
    s->said = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void wait_until_said(uint64_t end)
{
    struct scene s;
    pthread_t thread;
    bool in_time = true;
    scene_init(&s);
    pthread_mutex_lock(&s.lock);
    assert_int_equal(pthread_create(&thread, NULL, say, &s), 0);
    while (!s.said && in_time)
        in_time = cond_wait_until(&s.cond, &s.lock, end);
    assert_true(s.said);
    assert_true(in_time);
    pthread_mutex_unlock(&s.lock);
    pthread_join(thread, NULL);
    scene_release(&s);
}

TEST(a_signal_ends_a_wait_before_its_end)
{
    wait_until_said(wait_deadline(600 * PAWL_SECOND));
    wait_until_said(wait_deadline(UINT64_C(1) << 62));
}

TEST(a_wait_without_an_end_waits_for_a_signal)
{
    assert_true(wait_deadline(WAIT_FOREVER) == WAIT_FOREVER);
    assert_true(wait_deadline(WAIT_FOREVER - 1) == WAIT_FOREVER);
    wait_until_said(WAIT_FOREVER);
}

TEST(a_pause_lasts_as_long_as_was_asked)
{
    uint64_t began = clock_monotonic_ns(), boot = clock_boot_ns();
    wait_pause(2 * PAWL_MILLISECOND);
    assert_true(clock_monotonic_ns() - began >= 2 * PAWL_MILLISECOND);
    assert_true(clock_boot_ns() - boot >= 2 * PAWL_MILLISECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_wait_that_nobody_ends_ends_at_its_end_and_not_before),
        RUN(an_end_that_has_passed_does_not_wait),
        RUN(a_signal_ends_a_wait_before_its_end),
        RUN(a_wait_without_an_end_waits_for_a_signal),
        RUN(a_pause_lasts_as_long_as_was_asked),
    };
    return TEST_MAIN(tests);
}
