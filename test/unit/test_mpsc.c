#include "test/lib/test.h"

#include <pthread.h>
#include <sched.h>

#include "base/mpsc.h"
#include "test/lib/alloc.h"

#define PRODUCERS 4
#define MESSAGES  200000

TEST(a_full_queue_refuses_and_order_is_kept)
{
    struct mpsc q;
    assert_ok(mpsc_init(&q, NULL, 4, sizeof(uint64_t)));
    uint64_t v = 99;
    assert_false(mpsc_pop(&q, &v));
    assert_true(v == 99);
    for (uint64_t i = 0; i < 4; i++)
        assert_ok(mpsc_push(&q, &i));
    assert_status(mpsc_push(&q, &v), PAWL_EBUSY);
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(mpsc_pop(&q, &v));
        assert_true(v == i);
    }
    assert_false(mpsc_pop(&q, &v));
    mpsc_release(&q);
}

TEST(laps_leave_no_trace)
{
    uint64_t state = test_seed(9);
    struct test_alloc memory;
    test_alloc_init(&memory);
    struct mpsc q;
    assert_ok(mpsc_init(&q, &memory.allocator, 8, 12));
    uint64_t pushed = 0, popped = 0;
    uint8_t element[12];
    for (int step = 0; step < 100000; step++) {
        if (test_below(&state, 2) == 0) {
            memset(element, (int)(pushed & 0xff), sizeof element);
            bool full = pushed - popped == 8;
            assert_status(mpsc_push(&q, element), full ? PAWL_EBUSY : PAWL_OK);
            pushed += !full;
        } else if (mpsc_pop(&q, element)) {
            for (size_t i = 0; i < sizeof element; i++)
                assert_int_equal(element[i], popped & 0xff);
            popped++;
        } else {
            assert_true(pushed == popped);
        }
    }
    mpsc_release(&q);
    test_alloc_release(&memory);
}

TEST(the_smallest_queue_has_two)
{
    struct mpsc q;
    assert_ok(mpsc_init(&q, NULL, 2, 1));
    for (uint8_t i = 0; i < 20; i++) {
        uint8_t v = 0;
        assert_ok(mpsc_push(&q, &i));
        assert_ok(mpsc_push(&q, &(uint8_t){200}));
        assert_status(mpsc_push(&q, &v), PAWL_EBUSY);
        assert_true(mpsc_pop(&q, &v) && v == i);
        assert_true(mpsc_pop(&q, &v) && v == 200);
        assert_false(mpsc_pop(&q, &v));
    }
    mpsc_release(&q);
}

TEST(a_reserved_but_unpublished_place_holds_back_those_behind_it)
{
    struct mpsc q;
    assert_ok(mpsc_init(&q, NULL, 4, sizeof(uint64_t)));
    /* A producer that won position 0 and was interrupted. */
    atomic_fetch_add(&q.tail, 1);
    uint64_t v = 0;
    for (uint64_t i = 1; i < 4; i++)
        assert_ok(mpsc_push(&q, &i));
    assert_status(mpsc_push(&q, &v), PAWL_EBUSY);
    assert_false(mpsc_pop(&q, &v));
    mpsc_release(&q);
}

struct message {
    uint32_t producer;
    uint32_t number;
    uint64_t *payload; /* plain memory, written before the push and read after the pop */
};

struct producer {
    struct mpsc *q;
    uint32_t index;
    uint64_t *payloads;
};

static void *produce(void *arg)
{
    struct producer *p = arg;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        p->payloads[i] = (uint64_t)p->index << 32 | i;
        struct message m = {p->index, i, &p->payloads[i]};
        while (mpsc_push(p->q, &m) == PAWL_EBUSY)
            sched_yield();
    }
    return NULL;
}

TEST(many_producers_each_keep_their_order)
{
    struct mpsc q;
    assert_ok(mpsc_init(&q, NULL, 64, sizeof(struct message)));
    pthread_t threads[PRODUCERS];
    struct producer producers[PRODUCERS];
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){&q, i, calloc(MESSAGES, sizeof(uint64_t))};
        assert_non_null(producers[i].payloads);
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    uint32_t next[PRODUCERS] = {0};
    uint64_t wrong = 0;
    for (uint64_t got = 0; got < (uint64_t)PRODUCERS * MESSAGES;) {
        struct message m;
        if (!mpsc_pop(&q, &m)) {
            sched_yield();
            continue;
        }
        wrong += m.producer >= PRODUCERS || m.number != next[m.producer]
                 || *m.payload != ((uint64_t)m.producer << 32 | m.number);
        next[m.producer % PRODUCERS] = m.number + 1;
        got++;
    }
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
        free(producers[i].payloads);
    }
    assert_int_equal(wrong, 0);
    assert_false(mpsc_pop(&q, &(struct message){0}));
    mpsc_release(&q);
}

TEST(no_memory_is_said)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    test_alloc_fail(&memory, 1, TEST_ALLOC_ONCE);
    struct mpsc q;
    assert_status(mpsc_init(&q, &memory.allocator, 4, 8), PAWL_ENOMEM);
    test_alloc_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_full_queue_refuses_and_order_is_kept),
        RUN(laps_leave_no_trace),
        RUN(the_smallest_queue_has_two),
        RUN(a_reserved_but_unpublished_place_holds_back_those_behind_it),
        RUN(many_producers_each_keep_their_order),
        RUN(no_memory_is_said),
    };
    return TEST_MAIN(tests);
}
