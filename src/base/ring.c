#include "base/ring.h"

#include "base/alloc.h"

int ring_init(struct ring *ring, const pawl_allocator *alloc, size_t capacity, size_t element_size)
{
    assert(capacity >= 1 && capacity <= RING_CAPACITY_MAX);
    assert((capacity & (capacity - 1)) == 0);
    assert(element_size >= 1 && element_size <= RING_ELEMENT_BYTES_MAX);
    uint8_t *memory = mem_take(alloc, capacity, element_size);
    if (!memory)
        return PAWL_ENOMEM;
    *ring = (struct ring){
        .memory = memory,
        .element_size = element_size,
        .capacity = capacity,
        .alloc = alloc,
    };
    return PAWL_OK;
}

void ring_release(struct ring *ring)
{
    mem_free(ring->alloc, ring->memory, ring->capacity * ring->element_size);
    *ring = (struct ring){0};
}
