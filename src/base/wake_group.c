#include "base/wake_group.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/wait.h"

/* A waiter that is alone stays awake for so long. If a disk's sync takes longer, it is better to sleep. */
#define AWAKE_MAX (500 * PAWL_MICROSECOND)

/* ASLEEP + i: on futex i. */
enum { WAITING, ANSWERED, ASLEEP };

void wake_group_init(struct wake_group *group)
{
    for (size_t i = 0; i < WAKE_FUTEXES; i++)
        atomic_init(&group->futexes[i], 0);
    atomic_init(&group->turn, 0);
    atomic_init(&group->waiting, 0);
    group->noted = 0;
}

void waiter_init(struct waiter *waiter)
{
    atomic_init(&waiter->state, WAITING);
}

void wake_group_next(struct wake_group *group)
{
    atomic_fetch_add_explicit(&group->turn, 1, memory_order_relaxed);
}

/* Whether the waiter has been answered by then. */
static bool wait_awake(const struct waiter *waiter, uint64_t until)
{
    while (atomic_load_explicit(&waiter->state, memory_order_acquire) != ANSWERED) {
        if (clock_monotonic_ns() >= until)
            return false;
        sched_yield();
    }
    return true;
}

/* Check the waiter for its answer before touching the group again: once it is answered, the group's owner may be
 * gone. */
static void wait_asleep(struct wake_group *group, struct waiter *waiter)
{
    uint32_t i = atomic_load_explicit(&group->turn, memory_order_relaxed) % WAKE_FUTEXES;
    uint32_t state = WAITING;
    do {
        uint32_t value =
            atomic_load_explicit(&group->futexes[i], memory_order_acquire); /* G1: before the state */
        if (!atomic_compare_exchange_strong_explicit(&waiter->state, &state, ASLEEP + i, memory_order_acq_rel,
                                                     memory_order_acquire))
            return;
        long result = syscall(SYS_futex, &group->futexes[i], FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
        assert(result == 0 || errno == EAGAIN || errno == EINTR);
        state = atomic_load_explicit(&waiter->state, memory_order_acquire);
    } while (state != ANSWERED);
}

void wake_group_wait(struct wake_group *group, struct waiter *waiter)
{
    static _Thread_local uint64_t last; /* how long this thread's last wait alone took */
    bool alone = atomic_fetch_add_explicit(&group->waiting, 1, memory_order_relaxed) == 0;
    uint64_t began = alone ? clock_monotonic_ns() : 0;
    if (!alone || last > AWAKE_MAX || !wait_awake(waiter, began + AWAKE_MAX))
        wait_asleep(group, waiter);
    if (alone)
        last = clock_monotonic_ns() - began;
}

bool wake_group_answer(struct wake_group *group, struct waiter *waiter)
{
    atomic_fetch_sub_explicit(&group->waiting, 1, memory_order_relaxed);
    uint32_t before = atomic_exchange_explicit(&waiter->state, ANSWERED, memory_order_acq_rel);
    /* From here on the waiter may be gone. */
    assert(before != ANSWERED);
    if (before == WAITING)
        return false;
    bool first = group->noted == 0;
    group->noted |= 1u << (before - ASLEEP);
    return first;
}

void wake_group_wake(struct wake_group *group)
{
    for (uint32_t i = 0; group->noted; i++) {
        if (!(group->noted & 1u << i))
            continue;
        group->noted &= ~(1u << i);
        atomic_fetch_add_explicit(&group->futexes[i], 1, memory_order_release);
        syscall(SYS_futex, &group->futexes[i], FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}
