/* base/ring.h: a bounded queue for one thread, with a look at any element of it by its distance from the front.
 *
 * A window of numbers that are under way is such a queue: push at the end, complete anywhere, pop from the
 * front what is complete.
 *
 * Invariant R1: count <= capacity, a power of two; element i lies at (front + i) modulo capacity.
 *
 * Pointers to elements are borrowed until the element is popped; pushing moves nothing. */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <assert.h>

#include <pawl/types.h>

#define RING_CAPACITY_MAX      ((size_t)1 << 32)
#define RING_ELEMENT_BYTES_MAX ((size_t)1 << 20)

struct ring {
    uint8_t *memory;
    size_t element_size;
    size_t capacity;
    size_t front;
    size_t count;
    const pawl_allocator *alloc;
};

/* capacity: a power of two. PAWL_ENOMEM. */
int ring_init(struct ring *ring, const pawl_allocator *alloc, size_t capacity, size_t element_size);
void ring_release(struct ring *ring);

/* The i-th element from the front; i < count. */
static inline void *ring_at(const struct ring *ring, size_t i)
{
    assert(i < ring->count);
    return ring->memory + ((ring->front + i) & (ring->capacity - 1)) * ring->element_size;
}

/* A new last element to be filled in, its bytes undefined; NULL if the ring is full. */
static inline void *ring_push(struct ring *ring)
{
    if (ring->count == ring->capacity)
        return NULL;
    ring->count++;
    return ring_at(ring, ring->count - 1);
}

/* Drop the first n elements; n <= count. */
static inline void ring_pop(struct ring *ring, size_t n)
{
    assert(n <= ring->count);
    ring->front = (ring->front + n) & (ring->capacity - 1);
    ring->count -= n;
}

static inline void ring_clear(struct ring *ring)
{
    ring_pop(ring, ring->count);
}

#endif
