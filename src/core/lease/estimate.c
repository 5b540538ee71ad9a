#include "core/lease/estimate.h"

/* known is not 0. */
static unsigned nearest(uint64_t known, unsigned size_class)
{
    uint64_t above = known >> size_class;
    uint64_t below = known << (ESTIMATE_CLASSES - 1 - size_class);
    unsigned up = above ? (unsigned)__builtin_ctzll(above) : ESTIMATE_CLASSES;
    unsigned down = below ? (unsigned)__builtin_clzll(below) : ESTIMATE_CLASSES;
    return up <= down ? size_class + up : size_class - down;
}

pawl_duration estimate_get(const struct estimate *estimate, uint8_t size_class,
                           const struct estimate_limits *limits)
{
    if (!estimate->known)
        return limits->first;
    pawl_duration twice = 2 * estimate->average[nearest(estimate->known, size_class)];
    if (twice < limits->min)
        return limits->min;
    return twice < limits->max ? twice : limits->max;
}
