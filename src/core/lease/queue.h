/* core/lease/queue.h: the numbers of a projection that wait for a worker, and how a slot comes from one state
 * into another. In a header, because every number goes through all of it.
 *
 * Fresh numbers are a list through their slots, in the order of binding, which is that of the numbers. Those
 * that came back are a heap by number. The lowest goes first: the lower a number, the more wait behind it. One that
 * came back is mostly the lower one; but leases that were restored may lie above numbers that nobody has had.
 *
 *     from          may become
 *     BOUND         LEASED; READY, BACKING_OFF, STALLED (a worker whose lease expired reports late, or void)
 *     LEASED        BOUND, READY, BACKING_OFF, STALLED
 *     BACKING_OFF   BOUND, READY
 *     STALLED       BOUND, READY
 *     READY         TAKEN; BOUND (it is repeated before its turn)
 *     TAKEN         COMMITTED; BOUND, STALLED, READY (its turn comes again) */
#ifndef CORE_LEASE_QUEUE_H
#define CORE_LEASE_QUEUE_H

#include <assert.h>

#include "core/lease/lease.h"

static inline void queue_init(struct projection *projection)
{
    projection->fresh_first = LEASE_NO_SLOT;
    projection->fresh_last = LEASE_NO_SLOT;
    projection->back = (struct heap){0};
}

static inline uint32_t place_of(const pawl_leases *leases, const struct slot *slot)
{
    return (uint32_t)(slot->number & leases->mask);
}

static inline void fresh_put(pawl_leases *leases, struct projection *projection, struct slot *slot)
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

static inline void fresh_remove(pawl_leases *leases, struct projection *projection, struct slot *slot)
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

static inline void queue_put(pawl_leases *leases, struct slot *slot)
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

static inline void queue_remove(pawl_leases *leases, struct slot *slot)
{
    struct projection *projection = &leases->projections[slot->projection];
    if (slot->is_fresh)
        fresh_remove(leases, projection, slot);
    else
        heap_remove(&projection->back, &slot->in.back);
}

static inline struct slot *queue_first(const pawl_leases *leases, const struct projection *projection)
{
    struct heap_node *node = heap_min(&projection->back);
    struct slot *fresh =
        projection->fresh_first == LEASE_NO_SLOT ? NULL : &leases->slots[projection->fresh_first];
    if (!node)
        return fresh;
    struct slot *back = heap_entry(node, struct slot, in.back);
    return fresh && fresh->number < back->number ? fresh : back;
}

static inline bool may_follow(unsigned from, pawl_lease_state to)
{
#define BIT(name) (1u << PAWL_LEASE_##name)
    static const uint8_t follows[] = {
        [PAWL_LEASE_BOUND] = BIT(LEASED) | BIT(READY) | BIT(BACKING_OFF) | BIT(STALLED),
        [PAWL_LEASE_LEASED] = BIT(BOUND) | BIT(READY) | BIT(BACKING_OFF) | BIT(STALLED),
        [PAWL_LEASE_BACKING_OFF] = BIT(BOUND) | BIT(READY),
        [PAWL_LEASE_STALLED] = BIT(BOUND) | BIT(READY),
        [PAWL_LEASE_READY] = BIT(TAKEN) | BIT(BOUND),
        [PAWL_LEASE_TAKEN] = BIT(COMMITTED) | BIT(BOUND) | BIT(STALLED) | BIT(READY),
    };
#undef BIT
    return follows[from] >> to & 1;
}

static inline void slot_leave(pawl_leases *leases, struct slot *slot)
{
    if (slot->state == PAWL_LEASE_LEASED) {
        wheel_remove(&leases->wheel, &slot->in.timer);
        leases->counts.active--;
    } else if (slot->state == PAWL_LEASE_BOUND) {
        if (slot->flags & SLOT_HELD)
            slot->flags &= (uint8_t)~SLOT_HELD;
        else
            queue_remove(leases, slot);
        slot->is_fresh = false;
    } else if (slot->state == PAWL_LEASE_READY) {
        leases->counts.waiting--;
    } else if (slot->state == PAWL_LEASE_BACKING_OFF) {
        wheel_remove(&leases->wheel, &slot->in.timer);
    } else if (slot->state == PAWL_LEASE_STALLED) {
        leases->counts.stalled--;
    }
}

static inline bool may_be_stored(pawl_lease_state state)
{
    return state == PAWL_LEASE_LEASED || state == PAWL_LEASE_READY || state == PAWL_LEASE_TAKEN;
}

/* Takes the slot out of the structure that it is in, and puts it into the queue if it is BOUND now. The caller
 * puts it into the wheel if that is needed. */
static inline void slot_move(pawl_leases *leases, struct slot *slot, pawl_lease_state to)
{
    assert(may_follow(slot->state, to)); /* T1 */
    slot_leave(leases, slot);
    slot->state = (uint8_t)to;
    if ((slot->flags & SLOT_STORED) && !(slot->is_current && may_be_stored(to))) /* T4 */
        kept_drop(leases, slot);
    switch (to) {
    case PAWL_LEASE_BOUND: queue_put(leases, slot); break;
    case PAWL_LEASE_LEASED: leases->counts.active++; break;
    case PAWL_LEASE_STALLED: leases->counts.stalled++; break;
    case PAWL_LEASE_READY: leases->counts.waiting++; break;
    default: break;
    }
}

#endif
