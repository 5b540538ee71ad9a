/* base/histogram.h: how often values of which size came, since the beginning and in the last seconds.
 *
 * Buckets grow by a quarter of a power of two, so a quantile is right within a fifth. The first one has all values
 * below 2^scale, the last one all that are too large for the others.
 *
 * Any thread may add and read at any time; there is no lock. The counts of all time are exact. Those of a second
 * may lack a few values that came in the very moment when its slot was used again: they are for people to look
 * at. Time comes in. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdatomic.h>

#include <pawl/figures.h>

#define HISTOGRAM_SECONDS 16 /* that are kept, with the present one */

struct histogram_second {
    _Atomic uint64_t second;
    _Atomic uint64_t sum;
    _Atomic uint32_t buckets[PAWL_HISTOGRAM_BUCKETS];
};

struct histogram {
    unsigned scale;
    _Atomic uint64_t sum;
    _Atomic uint64_t buckets[PAWL_HISTOGRAM_BUCKETS];
    struct histogram_second seconds[HISTOGRAM_SECONDS];
};

#define HISTOGRAM_NS    10 /* scales: times, from a microsecond on; */
#define HISTOGRAM_COUNT 0  /* and numbers */

/* A struct that is zero, but for scale, is empty. */
void histogram_add(struct histogram *histogram, pawl_instant now, uint64_t value);

/* The same value, so many times. */
void histogram_add_many(struct histogram *histogram, pawl_instant now, uint64_t value, uint32_t count);

/* The bound of a bucket (pawl/figures.h). */
uint64_t histogram_bound(unsigned scale, size_t bucket);

/* Add all values (seconds 0), or those of the last whole seconds, to a sum. At most HISTOGRAM_SECONDS - 2. */
void histogram_sum(struct histogram *histogram, pawl_instant now, uint32_t seconds, pawl_histogram *to);

#endif
