#include "test/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/latch.h"

#define ROUNDS 20000

static pawl_instant boot_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (pawl_instant){(uint64_t)t.tv_sec * PAWL_SECOND + (uint64_t)t.tv_nsec};
}

TEST(a_latch_that_is_set_does_not_block)
{
    struct latch latch;
    latch_init(&latch);
    latch_set(&latch);
    latch_wait(&latch);
    latch_wait(&latch);
    assert_ok(latch_wait_until(&latch, (pawl_instant){0}));
}

TEST(a_deadline_that_has_passed_is_a_timeout_at_once)
{
    struct latch latch;
    latch_init(&latch);
    assert_status(latch_wait_until(&latch, (pawl_instant){0}), PAWL_ETIMEOUT);
    assert_status(latch_wait_until(&latch, boot_now()), PAWL_ETIMEOUT);
    latch_set(&latch);
    assert_ok(latch_wait_until(&latch, (pawl_instant){0}));
}

TEST(a_timeout_does_not_come_before_its_deadline)
{
    struct latch latch;
    latch_init(&latch);
    pawl_instant deadline = {boot_now().ns + 2 * PAWL_MILLISECOND};
    assert_status(latch_wait_until(&latch, deadline), PAWL_ETIMEOUT);
    assert_true(boot_now().ns >= deadline.ns);
}

/* A request as it would lie on a caller's stack: the answer is plain memory, ordered by the latch alone. */
struct request {
    struct latch latch;
    uint64_t question;
    uint64_t answer;
};

/* The way to the thread that answers, one request at a time. finished counts requests which that thread will
 * not touch again. */
struct desk {
    _Atomic(struct request *) inbox;
    _Atomic uint64_t finished;
    _Atomic bool slow;
};

static void *answer(void *arg)
{
    struct desk *desk = arg;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct request *r;
        while (!(r = atomic_exchange(&desk->inbox, NULL)))
            sched_yield();
        /* Sometimes only when the caller is asleep, or about to be, sometimes before it waits. */
        while (atomic_load(&desk->slow) && atomic_load_explicit(&r->latch.state, memory_order_relaxed) == 0)
            sched_yield();
        r->answer = r->question * 3;
        latch_set(&r->latch);
        atomic_fetch_add(&desk->finished, 1);
    }
    return NULL;
}

static __attribute__((noinline)) uint64_t ask(struct desk *desk, uint64_t question, bool with_deadline)
{
    struct request r = {.question = question};
    latch_init(&r.latch);
    atomic_store(&desk->inbox, &r);
    if (with_deadline) {
        if (latch_wait_until(&r.latch, (pawl_instant){UINT64_MAX}) != PAWL_OK)
            return 0;
    } else {
        latch_wait(&r.latch);
    }
    return r.answer;
}

TEST(a_request_on_the_stack_is_answered_and_its_frame_may_die)
{
    struct desk desk = {.slow = false};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer, &desk), 0);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        atomic_store(&desk.slow, i % 4 == 3);
        wrong += ask(&desk, i + 1, i % 2 == 1) != (i + 1) * 3;
    }
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
}

TEST(nothing_is_written_to_a_latch_after_it_was_seen_set)
{
    struct desk desk = {.slow = false};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer, &desk), 0);
    uint64_t wrong = 0;
    struct request r;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        r = (struct request){.question = i};
        latch_init(&r.latch);
        atomic_store(&desk.slow, i % 4 == 3);
        atomic_store(&desk.inbox, &r);
        latch_wait(&r.latch);
        /* As if the frame had been reused; the setter may still be on its way out of latch_set. */
        memset(&r, 0xdb, sizeof r);
        while (atomic_load(&desk.finished) != i + 1)
            sched_yield();
        for (size_t k = 0; k < sizeof r; k++)
            wrong += ((uint8_t *)&r)[k] != 0xdb;
    }
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_latch_that_is_set_does_not_block),
        RUN(a_deadline_that_has_passed_is_a_timeout_at_once),
        RUN(a_timeout_does_not_come_before_its_deadline),
        RUN(a_request_on_the_stack_is_answered_and_its_frame_may_die),
        RUN(nothing_is_written_to_a_latch_after_it_was_seen_set),
    };
    return TEST_MAIN(tests);
}
