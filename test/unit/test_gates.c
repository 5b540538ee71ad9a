#include "test/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/gates.h"

#define THREADS 8
#define ROUNDS  4000

/* A request on its caller's stack: the answer is plain memory, ordered by the ticket alone. */
struct request {
    struct ticket ticket;
    uint64_t question;
    uint64_t answer;
};

struct desk {
    struct gates gates;
    _Atomic(struct request *) inbox[THREADS];
    _Atomic uint32_t left; /* callers that are not through */
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
        ticket_init(&request.ticket);
        atomic_store_explicit(&desk->inbox[caller->number], &request, memory_order_release);
        gates_wait(&desk->gates, &request.ticket);
        if (request.answer != i * 3)
            abort();
        request.answer = 0; /* the frame is used again, as another caller's would be */
    }
    atomic_fetch_sub(&desk->left, 1);
    return NULL;
}

/* Takes what is there, in turns, answers it, and opens now and then. */
static void answer_all(struct desk *desk, uint64_t *seed)
{
    bool due = false;
    while (atomic_load(&desk->left) > 0) {
        for (size_t i = 0; i < THREADS; i++) {
            struct request *request = atomic_exchange_explicit(&desk->inbox[i], NULL, memory_order_acquire);
            if (!request)
                continue;
            request->answer = request->question * 3;
            due = gates_answer(&desk->gates, &request->ticket) || due;
        }
        if (test_below(seed, 4) == 0)
            gates_turn(&desk->gates);
        if (due && test_below(seed, 2) == 0) {
            gates_open(&desk->gates);
            due = false;
        }
        if (test_below(seed, 8) == 0)
            sched_yield();
    }
}

TEST(everyone_gets_its_own_answer_whoever_is_let_through_with_it)
{
    static struct desk desk;
    struct caller callers[THREADS];
    uint64_t seed = test_seed(1);
    gates_init(&desk.gates);
    atomic_store(&desk.left, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.desk = &desk, .number = i};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    answer_all(&desk, &seed);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
    assert_int_equal(desk.gates.waiting, 0);
}

TEST(who_does_not_sleep_needs_no_gate)
{
    struct gates gates;
    struct ticket ticket;
    gates_init(&gates);
    ticket_init(&ticket);
    assert_false(gates_answer(&gates, &ticket));
    gates_wait(&gates, &ticket);
    gates_open(&gates); /* nothing was noted */
}

struct sleeper {
    pthread_t thread;
    struct gates *gates;
    struct ticket ticket;
    _Atomic bool through;
    bool opened; /* whoever answered had to open a gate */
};

static void *answer_soon(void *arg)
{
    struct sleeper *s = arg;
    while (atomic_load(&s->gates->waiting) == 0)
        sched_yield();
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    do /* so that one who sleeps at once does by then */
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - began.tv_sec) * 1000000000 + now.tv_nsec - began.tv_nsec < 50000);
    s->opened = gates_answer(s->gates, &s->ticket);
    if (s->opened)
        gates_open(s->gates);
    return NULL;
}

/* The answer comes soon, so that of many waits some end before the time to sleep has come, however busy the
 * machine is. */
TEST(one_who_waits_alone_is_answered_awake)
{
    struct gates gates;
    unsigned awake = 0;
    gates_init(&gates);
    for (unsigned i = 0; i < 10000 && awake < 10; i++) {
        struct sleeper s = {.gates = &gates};
        ticket_init(&s.ticket);
        assert_int_equal(pthread_create(&s.thread, NULL, answer_soon, &s), 0);
        gates_wait(&gates, &s.ticket);
        pthread_join(s.thread, NULL);
        awake += !s.opened;
    }
    assert_int_equal(awake, 10);
    assert_int_equal(gates.waiting, 0);
}

static void *sleep_until_answered(void *arg)
{
    struct sleeper *s = arg;
    gates_wait(s->gates, &s->ticket);
    atomic_store(&s->through, true);
    return NULL;
}

static void wait_asleep(struct sleeper *s)
{
    while (atomic_load(&s->ticket.state) == 0)
        sched_yield();
}

TEST(those_at_one_gate_go_through_at_once_and_only_those_with_an_answer)
{
    struct gates gates;
    struct sleeper sleepers[3];
    gates_init(&gates);
    for (size_t i = 0; i < 3; i++) {
        sleepers[i] = (struct sleeper){.gates = &gates};
        ticket_init(&sleepers[i].ticket);
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_until_answered, &sleepers[i]), 0);
        wait_asleep(&sleepers[i]);
    }
    assert_true(gates_answer(&gates, &sleepers[0].ticket));
    assert_false(gates_answer(&gates, &sleepers[1].ticket)); /* one open is enough for both */
    gates_open(&gates);
    pthread_join(sleepers[0].thread, NULL);
    pthread_join(sleepers[1].thread, NULL);
    assert_false(sleepers[2].through);
    assert_true(gates_answer(&gates, &sleepers[2].ticket));
    gates_open(&gates);
    pthread_join(sleepers[2].thread, NULL);
}

TEST(a_wrong_guess_of_the_gate_is_opened_too)
{
    struct gates gates;
    struct sleeper sleepers[GATES + 1];
    gates_init(&gates);
    for (size_t i = 0; i <= GATES; i++, gates_turn(&gates)) {
        sleepers[i] = (struct sleeper){.gates = &gates};
        ticket_init(&sleepers[i].ticket);
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_until_answered, &sleepers[i]), 0);
        wait_asleep(&sleepers[i]);
    }
    for (size_t i = 0; i <= GATES; i++)
        assert_int_equal(gates_answer(&gates, &sleepers[i].ticket), i == 0);
    gates_open(&gates);
    for (size_t i = 0; i <= GATES; i++)
        pthread_join(sleepers[i].thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(everyone_gets_its_own_answer_whoever_is_let_through_with_it),
        RUN(who_does_not_sleep_needs_no_gate),
        RUN(one_who_waits_alone_is_answered_awake),
        RUN(those_at_one_gate_go_through_at_once_and_only_those_with_an_answer),
        RUN(a_wrong_guess_of_the_gate_is_opened_too),
    };
    return TEST_MAIN(tests);
}
