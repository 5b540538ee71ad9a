/* test/kafka/clock_ahead.c: loaded into a program (LD_PRELOAD), it sets the program's wall clock two hours ahead.
 * Only what librdkafka stamps its messages with is changed. */
#include <sys/time.h>
#include <time.h>

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec real;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec + 2 * 3600;
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}
