/* core/lease/estimate.h: how long work of one projection is likely to take.
 *
 * Sizes fall into classes, a class a power of two. Each keeps a moving average of what was observed, in which a
 * new observation counts an eighth. A class that has none asks the nearest that has, the larger if two are as
 * near: too long a lease costs less than one that expires. */
#ifndef CORE_LEASE_ESTIMATE_H
#define CORE_LEASE_ESTIMATE_H

#include <pawl/types.h>

#define ESTIMATE_CLASSES 64

struct estimate {
    uint64_t known; /* bit c: class c has been observed */
    pawl_duration average[ESTIMATE_CLASSES];
};

struct estimate_limits {
    pawl_duration first; /* before anything was observed */
    pawl_duration min;
    pawl_duration max;
};

/* 0: no bytes; 1: one; 2: two and three; 3: four to seven; ... */
static inline uint8_t estimate_class(size_t bytes)
{
    unsigned bits = bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
    return (uint8_t)(bits < ESTIMATE_CLASSES ? bits : ESTIMATE_CLASSES - 1);
}

static inline void estimate_observe(struct estimate *estimate, uint8_t size_class, pawl_duration took)
{
    pawl_duration *average = &estimate->average[size_class];
    if (estimate->known >> size_class & 1)
        *average = took > *average ? *average + (took - *average) / 8 : *average - (*average - took) / 8;
    else
        *average = took;
    estimate->known |= UINT64_C(1) << size_class;
}

/* The class whose average stands for this one. known is not 0. */
static inline unsigned estimate_nearest(uint64_t known, unsigned size_class)
{
    uint64_t above = known >> size_class;
    if (above & 1)
        return size_class;
    uint64_t below = known << (ESTIMATE_CLASSES - 1 - size_class);
    unsigned up = above ? (unsigned)__builtin_ctzll(above) : ESTIMATE_CLASSES;
    unsigned down = below ? (unsigned)__builtin_clzll(below) : ESTIMATE_CLASSES;
    return up <= down ? size_class + up : size_class - down;
}

/* Twice the average, within the limits. */
static inline pawl_duration estimate_get(const struct estimate *estimate, uint8_t size_class,
                                         const struct estimate_limits *limits)
{
    if (!estimate->known)
        return limits->first;
    pawl_duration twice = 2 * estimate->average[estimate_nearest(estimate->known, size_class)];
    if (twice < limits->min)
        return limits->min;
    return twice < limits->max ? twice : limits->max;
}

#endif
