#include "base/latch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/wait.h"

enum { UNSET, WAITED, SET };

/* True if it is set; otherwise it is WAITED from here on, and the setter knows that it must wake. */
static bool set_or_waited(struct latch *latch)
{
    uint32_t state = UNSET;
    if (atomic_compare_exchange_strong_explicit(&latch->state, &state, WAITED, memory_order_acquire,
                                                memory_order_acquire))
        return false;
    return state == SET;
}

/* May return for no reason: the caller looks again. The kernel checks under its own lock that the state is
 * still WAITED, so a set in between is not missed. */
static void sleep_while_waited(struct latch *latch, const struct timespec *timeout)
{
    long result = syscall(SYS_futex, &latch->state, FUTEX_WAIT_PRIVATE, WAITED, timeout, NULL, 0);
    assert(result == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
}

void latch_init(struct latch *latch)
{
    atomic_init(&latch->state, UNSET);
}

void latch_set(struct latch *latch)
{
    uint32_t before = atomic_exchange_explicit(&latch->state, SET, memory_order_release);
    /* From here on the latch may be gone. */
    assert(before != SET);
    if (before == WAITED)
        syscall(SYS_futex, latch, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void latch_wait(struct latch *latch)
{
    while (!set_or_waited(latch))
        sleep_while_waited(latch, NULL);
}

int latch_wait_until(struct latch *latch, pawl_instant deadline)
{
    while (!set_or_waited(latch)) {
        uint64_t now = clock_boot_ns();
        if (now >= deadline.ns)
            return PAWL_ETIMEOUT;
        uint64_t left = deadline.ns - now;
        struct timespec timeout = {.tv_sec = (time_t)(left / PAWL_SECOND),
                                   .tv_nsec = (long)(left % PAWL_SECOND)};
        sleep_while_waited(latch, &timeout);
    }
    return PAWL_OK;
}
