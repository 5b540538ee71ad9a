#include "base/histogram.h"

static size_t bucket_of(unsigned scale, uint64_t value)
{
    if (value >> scale == 0)
        return 0;
    unsigned octave = 63 - (unsigned)__builtin_clzll(value);
    unsigned quarter = octave >= 2 ? (value >> (octave - 2)) & 3 : (value << (2 - octave)) & 3;
    size_t bucket = 1 + 4 * (size_t)(octave - scale) + quarter;
    return bucket < PAWL_HISTOGRAM_BUCKETS ? bucket : PAWL_HISTOGRAM_BUCKETS - 1;
}

uint64_t histogram_bound(unsigned scale, size_t bucket)
{
    if (bucket == PAWL_HISTOGRAM_BUCKETS - 1)
        return UINT64_MAX;
    if (bucket == 0)
        return UINT64_C(1) << scale;
    unsigned octave = scale + (unsigned)((bucket - 1) / 4), quarter = (unsigned)((bucket - 1) % 4) + 1;
    uint64_t least = UINT64_C(1) << octave;
    return octave >= 2 ? least + (least >> 2) * quarter : least + (least * quarter + 3) / 4;
}

/* The slot of this second, emptied if it was that of an earlier one. */
static struct histogram_second *slot_of(struct histogram *h, uint64_t second)
{
    struct histogram_second *slot = &h->seconds[second % HISTOGRAM_SECONDS];
    uint64_t old = atomic_load_explicit(&slot->second, memory_order_relaxed);
    if (old == second || old > second)
        return slot;
    if (atomic_compare_exchange_strong_explicit(&slot->second, &old, second, memory_order_relaxed,
                                                memory_order_relaxed)) {
        for (size_t i = 0; i < PAWL_HISTOGRAM_BUCKETS; i++)
            atomic_store_explicit(&slot->buckets[i], 0, memory_order_relaxed);
        atomic_store_explicit(&slot->sum, 0, memory_order_relaxed);
    }
    return slot;
}

void histogram_add_many(struct histogram *h, pawl_instant now, uint64_t value, uint32_t count)
{
    size_t bucket = bucket_of(h->scale, value);
    struct histogram_second *slot = slot_of(h, now.ns / PAWL_SECOND);
    atomic_fetch_add_explicit(&h->buckets[bucket], count, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, value * count, memory_order_relaxed);
    atomic_fetch_add_explicit(&slot->buckets[bucket], count, memory_order_relaxed);
    atomic_fetch_add_explicit(&slot->sum, value * count, memory_order_relaxed);
}

void histogram_add(struct histogram *h, pawl_instant now, uint64_t value)
{
    histogram_add_many(h, now, value, 1);
}

static void add_second(struct histogram_second *slot, uint64_t second, pawl_histogram *to)
{
    if (atomic_load_explicit(&slot->second, memory_order_relaxed) != second)
        return;
    to->sum += atomic_load_explicit(&slot->sum, memory_order_relaxed);
    for (size_t i = 0; i < PAWL_HISTOGRAM_BUCKETS; i++) {
        uint32_t count = atomic_load_explicit(&slot->buckets[i], memory_order_relaxed);
        to->buckets[i] += count;
        to->count += count;
    }
}

void histogram_sum(struct histogram *h, pawl_instant now, uint32_t seconds, pawl_histogram *to)
{
    uint64_t present = now.ns / PAWL_SECOND;
    for (uint32_t i = 1; i <= seconds && i <= present; i++)
        add_second(&h->seconds[(present - i) % HISTOGRAM_SECONDS], present - i, to);
    if (seconds > 0)
        return;
    to->sum += atomic_load_explicit(&h->sum, memory_order_relaxed);
    for (size_t i = 0; i < PAWL_HISTOGRAM_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        to->buckets[i] += count;
        to->count += count;
    }
}
