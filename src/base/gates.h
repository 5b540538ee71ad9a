/* base/gates.h: many threads that each wait for an answer of its own, let through together.
 *
 * Whoever answers many at once would have to wake each by a system call, and each that wakes may push it off
 * its processor. So those who wait sleep at a few common places, the gates, and one call lets through all that
 * sleep at one.
 *
 *     ticket:  WAITING ──wait──► ASLEEP at gate g ──answer──► ANSWERED
 *                 └──────────────────answer───────────────────► ANSWERED
 *
 *     the owner:  turn: who comes from now on sleeps at the next gate
 *                 answer, answer, ...: each ticket, and notes its gate
 *                 open: the gates that were noted
 *
 * Which gate one sleeps at is a guess at who will be answered together, and only costs time if it is wrong: one
 * who is let through without an answer goes to sleep again.
 *
 * One who waits alone stays awake for a while, and needs no gate if it is answered by then: to wake a thread
 * whose processor sleeps takes a quarter of a quick disk's sync. It gives way to all other threads meanwhile,
 * and sleeps at once where its last wait was longer than that while.
 *
 * Order. What the owner did before answer is visible to the waiter when its wait returns. From answer on
 * nothing of the ticket is touched by the owner: it may be gone. G1: an owner reads where a ticket sleeps by
 * the very exchange that answers it, and moves the gate's word after that; the sleeper read the word before it
 * said where it sleeps. So either it finds the word moved and does not sleep, or it is woken. */
#ifndef BASE_GATES_H
#define BASE_GATES_H

#include <stdatomic.h>

#include <pawl/types.h>

#define GATES 16

struct gates {
    _Atomic uint32_t words[GATES]; /* how often each was opened: a futex */
    _Atomic uint32_t turn;
    _Atomic int32_t waiting; /* those who have come and are not answered */
    uint32_t noted;          /* the owner's: a bit for each gate that must be opened */
};

struct ticket {
    _Atomic uint32_t state;
};

void gates_init(struct gates *gates);
void ticket_init(struct ticket *ticket);

/* Any thread: until the ticket is answered. The gates outlive the call. */
void gates_wait(struct gates *gates, struct ticket *ticket);

/* The owner's thread. answer: once a ticket; true if it is the first since the last open that makes an open
 * necessary. */
void gates_turn(struct gates *gates);
bool gates_answer(struct gates *gates, struct ticket *ticket);
void gates_open(struct gates *gates);

#endif
