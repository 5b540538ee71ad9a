/* core/project/schedule.h: which numbers of a lane are worth working on before their turn.
 *
 * A run that is made before its turn is in vain if an operation between changes what it read. So a lane looks ahead in
 * two ways, and learns both from what was repeated:
 *
 *   how far    numbers up to ahead behind the last one staged are given out. What stands lets it grow, what is
 *              repeated lets it shrink, so that about one run in ten is repeated at most: a lane without conflicts
 *              uses its whole window, one in which every operation needs the one before it works in order. A conflict
 *              that is foreseen from now on (below) does not let it shrink.
 *   which      of numbers that are predicted to need each other, a chain, only the first is given out. If a run of n was
 *              in vain because of m, the values that both events have in common tell what made them conflict
 *              (event_values.h). From then on, numbers whose events agree in these values form a chain.
 *
 *     staged
 *        │ 1   2   3   4   5   6   7   8   9 │              3, 6 and 7 are of one customer; 2 and 5 of another
 *     ───┴───────────────────────────────────┴───────►      number
 *          F   F   F   F   h   h   h   F   F   too far       F: given out   h: held
 *              └───────────┘                                 5 becomes free when 2 is staged,
 *                  └───────────┴───┘                         6 when 3 is, 7 when 6 is; or when their runs are handed in
 *
 *     bound ──► FREE ◄──── before is staged or promised, or predictions are not trusted ──── HELD
 *                 │                                                                           ▲
 *                 └──── its event agrees with that of before, which is neither ───────────────┘
 *                       when it is bound, or it or before is repeated
 *
 * Promised is a number whose run was handed in, with the rows that it will write (promise.h): the next number of its chain
 * can be run with them.
 *
 * Whether predictions are trusted: for each number that has a number before it in its chain it is noted, when it is
 * staged, whether it read what that one or a later one wrote. If less than half did, nothing is held any more; but
 * predictions are still made and judged, so trust may come back.
 *
 * Pure: no clock, no I/O, no thread. What is to be done goes out by two calls.
 *
 * Invariants
 *   S1  The next number in turn is FREE and not too far: a schedule may delay work, never stop it.
 *   S2  HELD is a number only while before, a lower number, is neither staged nor promised to it.
 *   S3  Nothing here says whether a run counts: that is validated at its turn (reads.h), predicted or not.
 *   S4  1 <= ahead <= window.
 *   S5  Before the first conflict nothing is allocated, and a number costs a comparison. Without memory there are no
 *       predictions. */
#ifndef CORE_PROJECT_SCHEDULE_H
#define CORE_PROJECT_SCHEDULE_H

#include "core/project/event_values.h"

struct schedule_ops {
    /* The values of a bound number's event. False: they are not known any more. */
    bool (*values)(void *ctx, uint64_t number, struct event_values *ret_values);

    /* Do not give out this number, or do so again. False: it cannot be held, because somebody has it. */
    bool (*hold)(void *ctx, uint64_t number, bool held);

    /* Whether a run of this number would get what was promised by the one before it. */
    bool (*takes_promises)(void *ctx, uint64_t number);
};

struct schedule_chains;

struct schedule {
    const struct schedule_ops *ops;
    void *ctx;
    const pawl_allocator *alloc;
    uint32_t window;
    uint64_t bound;
    uint64_t staged;
    double ahead;
    uint64_t wary_until;            /* a conflict is not older than a window of numbers, up to this one */
    double trust;                   /* share of predictions that were right, the latest first */
    bool trusted;                   /* so chains are held */
    uint32_t held;                  /* how many numbers are HELD */
    struct schedule_chains *chains; /* NULL: no conflict yet */
};

/* window: a power of two. The next number to be bound is next. */
void schedule_init(struct schedule *schedule, const struct schedule_ops *ops, void *ctx, uint32_t window,
                   const pawl_allocator *alloc);
void schedule_release(struct schedule *schedule);

/* Forget all numbers, and keep what was learned. */
void schedule_reset(struct schedule *schedule, uint64_t next);

/* The next number is bound; it is staged. Each once, in order. */
void schedule_bind(struct schedule *schedule, uint64_t number);
void schedule_stage(struct schedule *schedule, uint64_t number);

/* A run of this number was handed in, and what it will write is known; or that run is gone, without a word on the number. */
void schedule_promise(struct schedule *schedule, uint64_t number);
void schedule_withdraw(struct schedule *schedule, uint64_t number);

/* A run of this number stands at its turn. writer: the last number that wrote what it read; 0: none is known. Before
 * schedule_stage. */
void schedule_stood(struct schedule *schedule, uint64_t number, uint64_t writer);

/* A run of this number was in vain, because of what writer wrote (0: it is not known), and promises nothing any more. The
 * number, and the next of its chain, may be HELD now. */
void schedule_repeated(struct schedule *schedule, uint64_t number, uint64_t writer);

/* Whether a number is near enough to be given out. */
static inline bool schedule_is_near(const struct schedule *schedule, uint64_t number)
{
    return number <= schedule->staged + (uint64_t)schedule->ahead;
}

/* Whether there may be chains: then runs keep what they have made. */
static inline bool schedule_has_chains(const struct schedule *schedule)
{
    return schedule->chains && schedule->trusted;
}

/* Whether the lane has had conflicts of late: then a run is better off with the rows that are staged. */
static inline bool schedule_is_wary(const struct schedule *schedule)
{
    return schedule->held > 0 || schedule->staged < schedule->wary_until;
}

/* The number before this one in its chain; 0: none is predicted. */
uint64_t schedule_before(const struct schedule *schedule, uint64_t number);

#endif
