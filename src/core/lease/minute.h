/* core/lease/minute.h: what happened in the last minute, in fixed memory.
 *
 * Sums are kept in a ring of slices of about a second; a reader adds up the slices that are young
 * enough. So writing is one addition, and old events are forgotten even if nothing happens. Waits are also
 * counted in a histogram, eight cells a power of two; of those there are two, each for half a minute, and
 * reading takes both.
 *
 * Invariant M1: a slice says which moment it is of; one of another moment is empty, whatever it holds. */
#ifndef CORE_LEASE_MINUTE_H
#define CORE_LEASE_MINUTE_H

#include <pawl/lease.h>

#define MINUTE_SLICE_BITS 30 /* a slice is 2^30 ns */
#define MINUTE_SLICES     64 /* room; 56 of them make a minute */
#define MINUTE_AGE_MAX    56
#define MINUTE_HALF_BITS  35 /* a half is 2^35 ns, 34 s */
#define MINUTE_CELLS      496

struct minute_slice {
    uint64_t moment;
    pawl_lease_minute sums;
};

struct minute_half {
    uint64_t moment;
    uint32_t cells[MINUTE_CELLS];
};

struct minute {
    struct minute_slice slices[MINUTE_SLICES];
    struct minute_half halves[2];
};

void minute_init(struct minute *minute);

/* Where what happens now is added. */
static inline pawl_lease_minute *minute_now(struct minute *minute, pawl_instant now)
{
    uint64_t moment = now.ns >> MINUTE_SLICE_BITS;
    struct minute_slice *slice = &minute->slices[moment % MINUTE_SLICES];
    if (__builtin_expect(slice->moment != moment, 0))
        *slice = (struct minute_slice){.moment = moment};
    return &slice->sums;
}

/* A turn came, after this wait. */
void minute_turn(struct minute *minute, pawl_instant now, pawl_duration wait);

pawl_lease_minute minute_sum(const struct minute *minute, pawl_instant now);

void minute_add(pawl_lease_minute *to, const pawl_lease_minute *more);

/* The upper end of the cell that 99 % of the waits reach at most; 0: there were none. */
pawl_duration minute_p99(const struct minute *minute, pawl_instant now);

#endif
