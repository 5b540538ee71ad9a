#include "bench/lib/steady.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SYNC_NS 200000

static _Atomic uint64_t sync_ns;

/* The kernel may wake a thread 50 µs late, unless it has said that it minds. */
static void sleep_until(uint64_t ns)
{
    static _Thread_local bool minds;
    const struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    minds = minds || prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

/* In place of the C library's. */
__attribute__((visibility("default"))) int fdatasync(int file)
{
    struct timespec began;
    uint64_t least = atomic_load(&sync_ns);
    clock_gettime(CLOCK_MONOTONIC, &began);
    int status = (int)syscall(SYS_fdatasync, file), error = errno;
    if (least > 0)
        sleep_until((uint64_t)began.tv_sec * 1000000000 + (uint64_t)began.tv_nsec + least);
    errno = error;
    return status;
}

double steady(const struct bench_round *round, bench_measure measure)
{
    atomic_store(&sync_ns, SYNC_NS);
    double figure = measure(round);
    atomic_store(&sync_ns, 0);
    return figure;
}
