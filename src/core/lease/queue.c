/* core/lease/queue.c: the numbers of a projection that wait for a worker.
 *
 * Fresh ones are a list through their slots, in the order of binding, which is that of their numbers. Those
 * that came back are a heap by number, and go first: the lower a number, the more wait behind it. */
#include "core/lease/lease.h"

void queue_init(struct projection *projection)
{
    projection->fresh_first = LEASE_NO_SLOT;
    projection->fresh_last = LEASE_NO_SLOT;
    projection->back = (struct heap){0};
}

static uint32_t place_of(const pawl_leases *leases, const struct slot *slot)
{
    return (uint32_t)(slot->number & leases->mask);
}

static void fresh_put(pawl_leases *leases, struct projection *projection, struct slot *slot)
{
    uint32_t place = place_of(leases, slot);
    uint32_t last = projection->fresh_last;
    slot->in.fresh.next = LEASE_NO_SLOT;
    slot->in.fresh.prev = last;
    if (last == LEASE_NO_SLOT)
        projection->fresh_first = place;
    else
        leases->slots[last].in.fresh.next = place;
    projection->fresh_last = place;
}

static void fresh_remove(pawl_leases *leases, struct projection *projection, struct slot *slot)
{
    uint32_t next = slot->in.fresh.next;
    uint32_t prev = slot->in.fresh.prev;
    if (prev == LEASE_NO_SLOT)
        projection->fresh_first = next;
    else
        leases->slots[prev].in.fresh.next = next;
    if (next == LEASE_NO_SLOT)
        projection->fresh_last = prev;
    else
        leases->slots[next].in.fresh.prev = prev;
}

void queue_put(pawl_leases *leases, struct slot *slot)
{
    struct projection *projection = &leases->projections[slot->projection];
    if (slot->is_fresh) {
        fresh_put(leases, projection, slot);
        return;
    }
    slot->in.back.key = slot->number;
    slot->in.back.seq = 0;
    heap_insert(&projection->back, &slot->in.back);
}

void queue_remove(pawl_leases *leases, struct slot *slot)
{
    struct projection *projection = &leases->projections[slot->projection];
    if (slot->is_fresh)
        fresh_remove(leases, projection, slot);
    else
        heap_remove(&projection->back, &slot->in.back);
}

struct slot *queue_first(const pawl_leases *leases, const struct projection *projection)
{
    struct heap_node *back = heap_min(&projection->back);
    if (back)
        return heap_entry(back, struct slot, in.back);
    return projection->fresh_first == LEASE_NO_SLOT ? NULL : &leases->slots[projection->fresh_first];
}
