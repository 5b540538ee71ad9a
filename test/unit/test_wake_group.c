#include "test/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/wake_group.h"

#define THREADS 8
#define ROUNDS  4000

/* A request on its caller's stack: the answer is plain memory, ordered by the waiter's state alone. */
struct request {
    struct waiter waiter;
    uint64_t question;
    uint64_t answer;
};

struct desk {
    struct wake_group group;
    _Atomic(struct request *) inbox[THREADS];
    _Atomic uint32_t left; /* callers that are not done */
};

struct caller {
    pthread_t thread;
    struct desk *desk;
    size_t number;
};

static void *call(void *arg)
{
    struct caller *caller = arg;
    struct desk *desk = caller->desk;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct request request = {.question = i};
        waiter_init(&request.waiter);
        atomic_store_explicit(&desk->inbox[caller->number], &request, memory_order_release);
        wake_group_wait(&desk->group, &request.waiter);
        if (request.answer != i * 3)
            abort();
        request.answer = 0; /* the frame is used again, as another caller's would be */
    }
    atomic_fetch_sub(&desk->left, 1);
    return NULL;
}

/* Takes the requests that are there, answers them, and wakes now and then. */
static void answer_all(struct desk *desk, uint64_t *seed)
{
    bool due = false;
    while (atomic_load(&desk->left) > 0) {
        for (size_t i = 0; i < THREADS; i++) {
            struct request *request = atomic_exchange_explicit(&desk->inbox[i], NULL, memory_order_acquire);
            if (!request)
                continue;
            request->answer = request->question * 3;
            due = wake_group_answer(&desk->group, &request->waiter) || due;
        }
        if (test_below(seed, 4) == 0)
            wake_group_next(&desk->group);
        if (due && test_below(seed, 2) == 0) {
            wake_group_wake(&desk->group);
            due = false;
        }
        if (test_below(seed, 8) == 0)
            sched_yield();
    }
}

TEST(everyone_gets_its_own_answer_whoever_is_woken_with_it)
{
    static struct desk desk;
    struct caller callers[THREADS];
    uint64_t seed = test_seed(1);
    wake_group_init(&desk.group);
    atomic_store(&desk.left, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.desk = &desk, .number = i};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    answer_all(&desk, &seed);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
    assert_int_equal(desk.group.waiting, 0);
}

TEST(a_waiter_that_does_not_sleep_need_not_be_woken)
{
    struct wake_group group;
    struct waiter waiter;
    wake_group_init(&group);
    waiter_init(&waiter);
    assert_false(wake_group_answer(&group, &waiter));
    wake_group_wait(&group, &waiter);
    wake_group_wake(&group); /* nothing was noted */
}

struct sleeper {
    pthread_t thread;
    struct wake_group *group;
    struct waiter waiter;
    _Atomic bool answered;
    bool woken; /* the one who answered had to wake it */
};

static void *answer_soon(void *arg)
{
    struct sleeper *s = arg;
    while (atomic_load(&s->group->waiting) == 0)
        sched_yield();
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    do /* so that one who sleeps at once does by then */
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - began.tv_sec) * 1000000000 + now.tv_nsec - began.tv_nsec < 50000);
    s->woken = wake_group_answer(s->group, &s->waiter);
    if (s->woken)
        wake_group_wake(s->group);
    return NULL;
}

/* The answer comes soon, so that of many waits some end before the time to sleep has come, however busy the
 * machine is. */
TEST(a_waiter_that_is_alone_is_answered_awake)
{
    struct wake_group group;
    unsigned awake = 0;
    wake_group_init(&group);
    for (unsigned i = 0; i < 10000 && awake < 10; i++) {
        struct sleeper s = {.group = &group};
        waiter_init(&s.waiter);
        assert_int_equal(pthread_create(&s.thread, NULL, answer_soon, &s), 0);
        wake_group_wait(&group, &s.waiter);
        pthread_join(s.thread, NULL);
        awake += !s.woken;
    }
    assert_int_equal(awake, 10);
    assert_int_equal(group.waiting, 0);
}

static void *sleep_until_answered(void *arg)
{
    struct sleeper *s = arg;
    wake_group_wait(s->group, &s->waiter);
    atomic_store(&s->answered, true);
    return NULL;
}

static void wait_asleep(struct sleeper *s)
{
    while (atomic_load(&s->waiter.state) == 0)
        sched_yield();
}

TEST(one_wake_wakes_all_on_a_futex_and_those_without_an_answer_sleep_again)
{
    struct wake_group group;
    struct sleeper sleepers[3];
    wake_group_init(&group);
    for (size_t i = 0; i < 3; i++) {
        sleepers[i] = (struct sleeper){.group = &group};
        waiter_init(&sleepers[i].waiter);
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_until_answered, &sleepers[i]), 0);
        wait_asleep(&sleepers[i]);
    }
    assert_true(wake_group_answer(&group, &sleepers[0].waiter));
    assert_false(wake_group_answer(&group, &sleepers[1].waiter)); /* one wake is enough for both */
    wake_group_wake(&group);
    pthread_join(sleepers[0].thread, NULL);
    pthread_join(sleepers[1].thread, NULL);
    assert_false(sleepers[2].answered);
    assert_true(wake_group_answer(&group, &sleepers[2].waiter));
    wake_group_wake(&group);
    pthread_join(sleepers[2].thread, NULL);
}

TEST(those_answered_together_are_woken_on_whatever_futex_they_sleep)
{
    struct wake_group group;
    struct sleeper sleepers[WAKE_FUTEXES + 1];
    wake_group_init(&group);
    for (size_t i = 0; i <= WAKE_FUTEXES; i++, wake_group_next(&group)) {
        sleepers[i] = (struct sleeper){.group = &group};
        waiter_init(&sleepers[i].waiter);
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_until_answered, &sleepers[i]), 0);
        wait_asleep(&sleepers[i]);
    }
    for (size_t i = 0; i <= WAKE_FUTEXES; i++)
        assert_int_equal(wake_group_answer(&group, &sleepers[i].waiter), i == 0);
    wake_group_wake(&group);
    for (size_t i = 0; i <= WAKE_FUTEXES; i++)
        pthread_join(sleepers[i].thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(everyone_gets_its_own_answer_whoever_is_woken_with_it),
        RUN(a_waiter_that_does_not_sleep_need_not_be_woken),
        RUN(a_waiter_that_is_alone_is_answered_awake),
        RUN(one_wake_wakes_all_on_a_futex_and_those_without_an_answer_sleep_again),
        RUN(those_answered_together_are_woken_on_whatever_futex_they_sleep),
    };
    return TEST_MAIN(tests);
}
