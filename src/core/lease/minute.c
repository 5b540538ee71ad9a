#include "core/lease/minute.h"

#include <string.h>

/* 0 to 7 have a cell each; above, a cell is an eighth of a power of two. */
static unsigned cell_of(pawl_duration wait)
{
    if (wait < 8)
        return (unsigned)wait;
    unsigned top = 63 - (unsigned)__builtin_clzll(wait);
    return (top - 2) * 8 + (unsigned)(wait >> (top - 3) & 7);
}

static pawl_duration cell_end(unsigned cell)
{
    if (cell < 8)
        return cell;
    unsigned shift = cell / 8 - 1;
    return ((pawl_duration)(8 + cell % 8) << shift) + (((pawl_duration)1 << shift) - 1);
}

_Static_assert(MINUTE_CELLS == (63 - 2) * 8 + 8, "the greatest wait has the last cell");

void minute_init(struct minute *minute)
{
    *minute = (struct minute){0};
}

void minute_turn(struct minute *minute, pawl_instant now, pawl_duration wait)
{
    pawl_lease_minute *sums = minute_now(minute, now);
    sums->turns++;
    sums->waited += wait;
    uint64_t moment = now.ns >> MINUTE_HALF_BITS;
    struct minute_half *half = &minute->halves[moment % 2];
    if (half->moment != moment) {
        memset(half->cells, 0, sizeof half->cells);
        half->moment = moment;
    }
    half->cells[cell_of(wait)]++;
}

pawl_lease_minute minute_sum(const struct minute *minute, pawl_instant now)
{
    uint64_t moment = now.ns >> MINUTE_SLICE_BITS;
    pawl_lease_minute total = {0};
    for (size_t i = 0; i < MINUTE_SLICES; i++) {
        const struct minute_slice *slice = &minute->slices[i];
        if (slice->moment + MINUTE_AGE_MAX > moment)
            minute_add(&total, &slice->sums);
    }
    return total;
}

void minute_add(pawl_lease_minute *to, const pawl_lease_minute *more)
{
    to->ended += more->ended;
    to->expired += more->expired;
    to->committed += more->committed;
    to->voids += more->voids;
    to->turns += more->turns;
    to->waited += more->waited;
    to->used += more->used;
    to->granted += more->granted;
}

static uint32_t cell_count(const struct minute *minute, uint64_t moment, unsigned cell)
{
    uint32_t count = 0;
    for (int i = 0; i < 2; i++)
        if (minute->halves[i].moment + 1 >= moment)
            count += minute->halves[i].cells[cell];
    return count;
}

pawl_duration minute_p99(const struct minute *minute, pawl_instant now)
{
    uint64_t moment = now.ns >> MINUTE_HALF_BITS;
    uint64_t total = 0;
    for (unsigned cell = 0; cell < MINUTE_CELLS; cell++)
        total += cell_count(minute, moment, cell);
    uint64_t seen = 0;
    for (unsigned cell = 0; cell < MINUTE_CELLS; cell++) {
        seen += cell_count(minute, moment, cell);
        if (total && seen * 100 >= total * 99)
            return cell_end(cell);
    }
    return 0;
}
