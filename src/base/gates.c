#include "base/gates.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ASLEEP + g: at gate g. */
enum { WAITING, ANSWERED, ASLEEP };

void gates_init(struct gates *gates)
{
    for (size_t g = 0; g < GATES; g++)
        atomic_init(&gates->words[g], 0);
    atomic_init(&gates->turn, 0);
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

/* An answered ticket is seen before the gates are looked at again: their owner may be gone by then. */
void gates_wait(struct gates *gates, struct ticket *ticket)
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

bool gates_answer(struct gates *gates, struct ticket *ticket)
{
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
