#include "base/mpsc.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

struct cell {
    _Atomic uint64_t sequence;
    uint8_t element[];
};

static inline struct cell *cell_at(const struct mpsc *mpsc, uint64_t position)
{
    return (struct cell *)(void *)(mpsc->cells + (position & mpsc->mask) * mpsc->cell_size);
}

int mpsc_init(struct mpsc *mpsc, const pawl_allocator *alloc, size_t capacity, size_t element_size)
{
    assert(capacity >= 2 && capacity <= MPSC_CAPACITY_MAX);
    assert((capacity & (capacity - 1)) == 0);
    assert(element_size >= 1 && element_size <= MPSC_ELEMENT_BYTES_MAX);
    size_t cell_size = sizeof(struct cell) + ((element_size + 7) & ~(size_t)7);
    uint8_t *cells = mem_new(alloc, capacity, cell_size);
    if (!cells)
        return PAWL_ENOMEM;
    mpsc->cells = cells;
    mpsc->mask = capacity - 1;
    mpsc->cell_size = cell_size;
    mpsc->element_size = element_size;
    mpsc->alloc = alloc;
    mpsc->head = 0;
    atomic_init(&mpsc->tail, 0);
    for (size_t i = 0; i < capacity; i++)
        atomic_init(&cell_at(mpsc, i)->sequence, i);
    return PAWL_OK;
}

void mpsc_release(struct mpsc *mpsc)
{
    mem_free(mpsc->alloc, mpsc->cells, (mpsc->mask + 1) * mpsc->cell_size);
    mpsc->cells = NULL;
}

int mpsc_push(struct mpsc *mpsc, const void *element)
{
    uint64_t position = atomic_load_explicit(&mpsc->tail, memory_order_relaxed);
    struct cell *cell;
    for (;;) {
        cell = cell_at(mpsc, position);
        uint64_t sequence = atomic_load_explicit(&cell->sequence, memory_order_acquire);
        if (sequence < position)
            return PAWL_EBUSY;
        if (sequence > position)
            position = atomic_load_explicit(&mpsc->tail, memory_order_relaxed);
        else if (atomic_compare_exchange_weak_explicit(&mpsc->tail, &position, position + 1,
                                                       memory_order_relaxed, memory_order_relaxed))
            break;
    }
    memcpy(cell->element, element, mpsc->element_size);
    atomic_store_explicit(&cell->sequence, position + 1, memory_order_release);
    return PAWL_OK;
}

bool mpsc_pop(struct mpsc *mpsc, void *ret_element)
{
    uint64_t position = mpsc->head;
    struct cell *cell = cell_at(mpsc, position);
    if (atomic_load_explicit(&cell->sequence, memory_order_acquire) != position + 1)
        return false;
    memcpy(ret_element, cell->element, mpsc->element_size);
    atomic_store_explicit(&cell->sequence, position + mpsc->mask + 1, memory_order_release);
    mpsc->head = position + 1;
    return true;
}

uint64_t mpsc_count(const struct mpsc *m)
{
    uint64_t tail = atomic_load_explicit(&m->tail, memory_order_relaxed);
    return tail > m->head ? tail - m->head : 0;
}
