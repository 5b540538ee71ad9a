/* base/latch.h: one event that happens once, and a thread that sleeps until it has.
 *
 * A blocking caller puts a request with a latch in it on its own stack, hands it to a shard, and waits; the
 * shard fills in the answer and sets the latch.
 *
 *     UNSET ──wait──► WAITED (somebody sleeps, or is about to) ──set──► SET
 *       └──────────────────────────set─────────────────────────────────► SET
 *
 * Setting and dying. The moment SET is in memory the waiter may return and its stack frame be gone, before the
 * setter has done anything more. So set is one atomic exchange, and after it *nothing reads or writes the
 * latch*: whether anybody must be woken is what the exchange returned. The wake-up passes the address to the
 * kernel as a mere number: for a private futex it looks up sleepers by (process, address) and does not touch
 * what is there. If the address is gone, it finds nobody; if another latch lies there by now, its sleeper wakes
 * for nothing, looks, and sleeps again. For the same reason the setter may not touch anything else of the
 * waiter's after set.
 *
 * Order. What the setter did before latch_set is visible to the waiter after its wait returns PAWL_OK: the
 * exchange releases, the load that sees SET acquires. The futex is for sleeping only and carries no order.
 *
 * There is no spinning before sleep. A waiter usually waits for a sync of a disk, tens of microseconds at best;
 * to spin that long would take a core from the thread that sets the latch. */
#ifndef BASE_LATCH_H
#define BASE_LATCH_H

#include <stdatomic.h>

#include <pawl/types.h>

struct latch {
    _Atomic uint32_t state;
};
_Static_assert(sizeof(struct latch) == 4, "a futex is four bytes");

void latch_init(struct latch *latch);

/* Any thread, once. */
void latch_set(struct latch *latch);

/* Until it is set. Any number of threads may wait, if the latch outlives them all. */
void latch_wait(struct latch *latch);

/* PAWL_OK: it is set. PAWL_ETIMEOUT: the boot-time clock has reached the deadline, and it was not set. The
 * setter may still come: the latch must stay until it has, or until it is certain that it never will. The
 * kernel does not count suspended time when it sleeps, so after a suspend it may be reported as much later. */
int latch_wait_until(struct latch *latch, pawl_instant deadline);

#endif
