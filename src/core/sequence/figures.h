/* core/sequence/figures.h: figures that one thread counts and any thread reads.
 *
 * At any time one thread writes (the shard's, or the pool's while it recovers), so adding is a load and a
 * store, and no instruction is locked. A reader sees each figure whole; no order between figures is promised.
 */
#ifndef CORE_SEQUENCE_FIGURES_H
#define CORE_SEQUENCE_FIGURES_H

#include <stdatomic.h>
#include <stdint.h>

/* Names as in pawl_sequencer_figures: what is so now, what was counted, and times of which the longest counts
 * where several are added up. */
#define SEQUENCER_GAUGES(X)                                                                                    \
    X(offset_given)                                                                                            \
    X(offset_flushed)                                                                                          \
    X(offset_stored)                                                                                           \
    X(staged)                                                                                                  \
    X(unflushed)                                                                                               \
    X(workspaces)                                                                                              \
    X(memory_bytes)

#define SEQUENCER_COUNTERS(X)                                                                                  \
    X(cache_hits)                                                                                              \
    X(cache_misses)                                                                                            \
    X(evictions)                                                                                               \
    X(busy)                                                                                                    \
    X(flushes)                                                                                                 \
    X(flush_failures)                                                                                          \
    X(rows_written)                                                                                            \
    X(flush_ns_total)                                                                                          \
    X(recoveries)                                                                                              \
    X(recovery_retries)                                                                                        \
    X(events_replayed)

#define SEQUENCER_TIMES(X)                                                                                     \
    X(flush_ns_last)                                                                                           \
    X(flush_ns_max)                                                                                            \
    X(recovery_ns_last)

#define SEQUENCER_FIGURES(X)                                                                                   \
    SEQUENCER_GAUGES(X)                                                                                        \
    SEQUENCER_COUNTERS(X)                                                                                      \
    SEQUENCER_TIMES(X)

typedef _Atomic uint64_t figure;

struct sequencer_figures {
#define X(name) figure name;
    SEQUENCER_FIGURES(X)
#undef X
};

static inline uint64_t figure_get(const figure *f)
{
    return atomic_load_explicit(f, memory_order_relaxed);
}

static inline void figure_set(figure *f, uint64_t value)
{
    atomic_store_explicit(f, value, memory_order_relaxed);
}

static inline void figure_add(figure *f, uint64_t more)
{
    figure_set(f, figure_get(f) + more);
}

#endif
