/* base/wake_group.h: many threads that each wait for an answer of its own, woken together.
 *
 * An owner that answers many threads at once would have to wake each by a system call, and each thread that
 * wakes may push the owner off its processor. So the waiters sleep on a few futexes that they share, and one
 * call wakes all that sleep on one of them.
 *
 *     waiter:  WAITING ──wait──► ASLEEP on futex i ──answer──► ANSWERED
 *                 └─────────────────answer───────────────────► ANSWERED
 *
 *     the owner:  next: who comes from now on sleeps on the next futex
 *                 answer, answer, ...: answers each waiter, and notes the futex that it sleeps on
 *                 wake: wakes all that sleep on the noted futexes
 *
 * Which futex a waiter sleeps on is a guess at who will be answered together. A wrong guess only costs time: a
 * waiter that is woken without an answer goes to sleep again.
 *
 * A waiter that is alone stays awake for a while, and need not be woken if it is answered by then: to wake a
 * thread whose processor sleeps takes a quarter of a quick disk's sync. It yields to all other threads
 * meanwhile, and sleeps at once if its last wait was longer than that while.
 *
 * Order. What the owner did before answer is visible to the waiter when its wait returns. From answer on the
 * owner touches nothing of the waiter: it may be gone. G1: the owner reads where a waiter sleeps by the very
 * exchange that answers it, and changes the futex after that; the waiter read the futex before it said where it
 * sleeps. So either the waiter finds the futex changed and does not sleep, or it is woken. */
#ifndef BASE_WAKE_GROUP_H
#define BASE_WAKE_GROUP_H

#include <stdatomic.h>

#include <pawl/types.h>

#define WAKE_FUTEXES 16

struct wake_group {
    _Atomic uint32_t futexes[WAKE_FUTEXES]; /* how often the sleepers of each were woken */
    _Atomic uint32_t turn;                  /* modulo WAKE_FUTEXES: where the next waiter sleeps */
    _Atomic int32_t waiting;                /* waiters that have come and are not answered */
    uint32_t noted;                         /* the owner's: a bit for each futex that must be woken */
};

struct waiter {
    _Atomic uint32_t state;
};

void wake_group_init(struct wake_group *group);
void waiter_init(struct waiter *waiter);

/* Any thread: until the waiter is answered. The group outlives the call. */
void wake_group_wait(struct wake_group *group, struct waiter *waiter);

/* The owner's thread. answer: once for each waiter; true if it is the first since the last wake that makes a
 * wake necessary. */
void wake_group_next(struct wake_group *group);
bool wake_group_answer(struct wake_group *group, struct waiter *waiter);
void wake_group_wake(struct wake_group *group);

#endif
