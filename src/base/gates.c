#include "base/gates.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* For so long one who is alone waits awake: a sync of a disk that takes longer is worth sleeping for. */
#define AWAKE_MAX (500 * PAWL_MICROSECOND)

/* ASLEEP + g: at gate g. */
enum { WAITING, ANSWERED, ASLEEP };

void gates_init(struct gates *gates)
{
    for (size_t g = 0; g < GATES; g++)
        atomic_init(&gates->words[g], 0);
    atomic_init(&gates->turn, 0);
    atomic_init(&gates->waiting, 0);
    gates->noted = 0;
}

void ticket_init(struct ticket *ticket)
{
    atomic_init(&ticket->state, WAITING);
}

void gates_turn(struct gates *gates)
{
    atomic_fetch_add_explicit(&gates->turn, 1, memory_order_relaxed);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    int failed = clock_gettime(CLOCK_MONOTONIC, &now);
    assert(!failed);
    return (uint64_t)now.tv_sec * PAWL_SECOND + (uint64_t)now.tv_nsec;
}

/* Whether the ticket has been answered by then. */
static bool wait_awake(const struct ticket *ticket, uint64_t until)
{
    while (atomic_load_explicit(&ticket->state, memory_order_acquire) != ANSWERED) {
        if (now_ns() >= until)
            return false;
        sched_yield();
    }
    return true;
}

/* An answered ticket is seen before the gates are looked at again: their owner may be gone by then. */
static void wait_asleep(struct gates *gates, struct ticket *ticket)
{
    uint32_t g = atomic_load_explicit(&gates->turn, memory_order_relaxed) % GATES;
    uint32_t state = WAITING;
    do {
        uint32_t word = atomic_load_explicit(&gates->words[g], memory_order_acquire); /* G1: before the state */
        if (!atomic_compare_exchange_strong_explicit(&ticket->state, &state, ASLEEP + g, memory_order_acq_rel,
                                                     memory_order_acquire))
            return;
        long result = syscall(SYS_futex, &gates->words[g], FUTEX_WAIT_PRIVATE, word, NULL, NULL, 0);
        assert(result == 0 || errno == EAGAIN || errno == EINTR);
        state = atomic_load_explicit(&ticket->state, memory_order_acquire);
    } while (state != ANSWERED);
}

void gates_wait(struct gates *gates, struct ticket *ticket)
{
    static _Thread_local uint64_t last; /* how long this thread's last wait alone took */
    bool alone = atomic_fetch_add_explicit(&gates->waiting, 1, memory_order_relaxed) == 0;
    uint64_t began = alone ? now_ns() : 0;
    if (!alone || last > AWAKE_MAX || !wait_awake(ticket, began + AWAKE_MAX))
        wait_asleep(gates, ticket);
    if (alone)
        last = now_ns() - began;
}

bool gates_answer(struct gates *gates, struct ticket *ticket)
{
    atomic_fetch_sub_explicit(&gates->waiting, 1, memory_order_relaxed);
    uint32_t before = atomic_exchange_explicit(&ticket->state, ANSWERED, memory_order_acq_rel);
    /* From here on the ticket may be gone. */
    assert(before != ANSWERED);
    if (before == WAITING)
        return false;
    bool first = gates->noted == 0;
    gates->noted |= 1u << (before - ASLEEP);
    return first;
}

void gates_open(struct gates *gates)
{
    for (uint32_t g = 0; gates->noted; g++) {
        if (!(gates->noted & 1u << g))
            continue;
        gates->noted &= ~(1u << g);
        atomic_fetch_add_explicit(&gates->words[g], 1, memory_order_release);
        syscall(SYS_futex, &gates->words[g], FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}
