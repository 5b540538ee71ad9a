#include "base/wait.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    int failed = clock_gettime(clock, &now);
    assert(!failed);
    return (uint64_t)now.tv_sec * PAWL_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

uint64_t clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME);
}

uint64_t wait_deadline(pawl_duration timeout)
{
    uint64_t now = clock_monotonic_ns();
    return timeout < WAIT_FOREVER - now ? now + timeout : WAIT_FOREVER;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / PAWL_SECOND), .tv_nsec = (long)(ns % PAWL_SECOND)};
}

void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t end)
{
    struct timespec until = timespec_of(end);
    int rc = end == WAIT_FOREVER ? pthread_cond_wait(cond, lock) : pthread_cond_timedwait(cond, lock, &until);
    assert(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

void wait_pause(pawl_duration duration)
{
    struct timespec until = timespec_of(wait_deadline(duration));
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}
