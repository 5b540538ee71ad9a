/* base/wait.h: the system's clocks, and how a thread waits for a time.
 *
 *     boot clock        goes on while the machine is suspended: deadlines and leases, as pawl_instant
 *     monotonic clock   stands still while the machine is suspended: the kernel counts a sleep by it
 *
 * Every thread that sleeps for a time sleeps here, or on a latch (base/latch.h). Instants of the one clock are
 * never compared with instants of the other: wait_deadline gives the only value that cond_wait_until takes. */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <pthread.h>
#include <stdbool.h>

#include <pawl/types.h>

#define WAIT_FOREVER UINT64_MAX /* as a duration and as an end: no time ends the wait */

/* Nanoseconds. */
uint64_t clock_boot_ns(void);
uint64_t clock_monotonic_ns(void);
int64_t clock_wall_ns(void); /* since 1970; it may be set, so nobody waits for it */

/* The end of a wait that begins now: an instant of the monotonic clock. */
uint64_t wait_deadline(pawl_duration timeout);

/* A condition that cond_wait_until can wait on: its clock is the monotonic one. */
void cond_init(pthread_cond_t *cond);

/* As pthread_cond_wait, but no longer than to the end. False: the end has come. As with pthread_cond_wait,
 * true does not say that anybody signalled: the caller checks what it waits for. */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t end);

/* The whole duration, whatever signals come. For a caller that nobody can wake: it looks again afterwards. */
void wait_pause(pawl_duration duration);

#endif
