/* base/mpsc.h: a bounded queue from many threads to one, without a lock.
 *
 * It is the mailbox of a shard: whoever has something for the shard pushes it here, or is refused.
 *
 * Each cell has a sequence number which says whose turn it is. For the position p, in cell p mod capacity:
 *
 *     sequence == p               free: the producer that wins position p may write
 *     sequence == p + 1           published: the consumer may read
 *     sequence == p + capacity    free again, for the producer of the next lap
 *
 * A producer reads the sequence, wins the position by advancing tail with a compare-and-swap, writes the
 * element, and publishes it by storing p + 1. The consumer, alone, owns head: it reads, and frees by storing
 * p + capacity. Elements are copied in and out.
 *
 * Why these memory orders suffice
 *
 *   - The element is written by one thread and read by another, so something must order the two. The producer's
 *     release store of p + 1 comes after its write; the consumer's acquire load that sees p + 1 comes before
 *     its read. The pair synchronises: the consumer sees the whole element, and everything else that the
 *     producer did before the push.
 *   - The reverse holds for reuse. The consumer's release store of p + capacity comes after its read of the old
 *     element; the producer's acquire load that sees it comes before its write of the new one. So no producer
 *     writes over an element that is still being copied out.
 *   - tail carries no data: it only deals out positions, and for that being atomic is enough (relaxed). A stale
 *     tail does no harm: either the cell's sequence has passed the position, and the producer looks again; or
 *     the compare-and-swap fails. Which producer wins is ordered by tail's own modification order, and one
 *     thread's pushes follow each other in it: so each producer's elements come out in its own order.
 *   - There is no ABA: positions are 64 bits wide and never come back.
 *   - A producer is never told "full" while the queue has room that it could have seen: it read a sequence
 *     below p, so position p - capacity was not yet freed in its eyes, while tail was at p or beyond. A freeing
 *     that is on its way to it may be missed; the refusal is then a moment late, which every refusal may be.
 *
 * What empty means. Between winning a position and publishing it a producer may be interrupted. Until it goes
 * on, pop says empty at that position, even if later ones are published already: the queue keeps its order
 * rather than its progress. Nothing is lost by it as long as every producer wakes the consumer *after* its own
 * push has returned, by something that sticks until it is seen (an eventfd, uv_async_send): the late producer's
 * own wake-up is still to come. A wake-up that is skipped when the consumer looks awake would need a
 * sequentially consistent fence on both sides, between push and looking, and between falling asleep and a last
 * pop; that belongs to whoever skips.
 *
 * Caveat: before init and after release no other thread may use it; handing it over is the caller's. */
#ifndef BASE_MPSC_H
#define BASE_MPSC_H

#include <stdatomic.h>

#include <pawl/types.h>

#define MPSC_CACHE_LINE        64
#define MPSC_CAPACITY_MAX      ((size_t)1 << 24)
#define MPSC_ELEMENT_BYTES_MAX 4096

/* The producers' tail, the consumer's head, and what nobody writes, each on cache lines of their own. Padding
 * between them does it wherever the struct lies; alignment would oblige whoever embeds it. */
struct mpsc {
    uint8_t *cells;
    size_t mask;
    size_t cell_size;
    size_t element_size;
    const pawl_allocator *alloc;
    uint8_t padding_tail[MPSC_CACHE_LINE];
    _Atomic uint64_t tail;
    uint8_t padding_head[MPSC_CACHE_LINE];
    uint64_t head;
    uint8_t padding_end[MPSC_CACHE_LINE];
};

/* capacity: a power of two, at least 2 (with one cell, published and free again would be one number).
 * PAWL_ENOMEM. */
int mpsc_init(struct mpsc *mpsc, const pawl_allocator *alloc, size_t capacity, size_t element_size);

/* What is still queued is forgotten. */
void mpsc_release(struct mpsc *mpsc);

/* Any thread. Copies the element. PAWL_EBUSY: full. */
int mpsc_push(struct mpsc *mpsc, const void *element);

/* The consumer's thread only. False: empty, as said above; ret_element is then untouched. */
bool mpsc_pop(struct mpsc *mpsc, void *ret_element);

/* How many elements are in it, at about this moment. On the consumer's thread. */
uint64_t mpsc_count(const struct mpsc *mpsc);

#endif
