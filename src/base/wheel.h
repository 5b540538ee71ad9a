/* base/wheel.h: many timers, O(1) each, over the whole range of 64-bit ticks.
 *
 * A hierarchical timing wheel with no clock of its own: the caller says what a tick is and how late it is. A
 * timer is a node that the caller embeds and owns, so nothing here allocates or fails.
 *
 *     level 0:  64 slots of 1 tick          the block of 64 ticks that the present lies in
 *     level 1:  64 slots of 64 ticks        the block of 64² around that
 *     ...
 *     level 10: 16 slots of 2^60 ticks      everything
 *
 * A node's level is that of the highest digit (base 64) in which its tick differs from the present; its slot is
 * that digit. When the present enters a slot of a higher level, the slot's nodes move down to where they now
 * belong; the ticks in between, with nothing in them, are never looked at.
 *
 * Invariants
 *   W1  No node's tick is before the present: adding one for the past counts as adding it for the present.
 *   W2  A node is in the slot that its tick and the present determine. So nodes of one tick are always in one
 *       list, in the order in which they were added.
 *   W3  Bit s of occupied[l] is set exactly if slot s of level l holds a node.
 *   W4  On levels above 0 a slot with nodes lies after the present's own digit there. So the first slot of the
 *       lowest level that holds any begins at or before every node's tick. */
#ifndef BASE_WHEEL_H
#define BASE_WHEEL_H

#include <pawl/types.h>

#define WHEEL_LEVELS 11
#define WHEEL_SLOTS  64

struct wheel_link {
    struct wheel_link *next;
    struct wheel_link *prev;
};

/* Zero it before first use. */
struct wheel_node {
    struct wheel_link link;
    uint64_t tick;
    uint32_t list; /* which of the wheel's lists it is in */
};

/* It holds pointers to itself: not to be copied or moved. */
struct wheel {
    uint64_t now;
    uint64_t occupied[WHEEL_LEVELS];
    bool firing;
    struct wheel_link lists[WHEEL_LEVELS * WHEEL_SLOTS + 1]; /* the slots, and those that are due */
};

typedef void (*wheel_fire)(struct wheel_node *node, void *arg);

void wheel_init(struct wheel *wheel, uint64_t now);

/* Nothing to free; asserts that no node is left. */
void wheel_release(struct wheel *wheel);

/* The node must not be in a wheel. tick: when it is due. */
void wheel_add(struct wheel *wheel, struct wheel_node *node, uint64_t tick);

/* Does nothing if the node is in no wheel. */
void wheel_remove(struct wheel *wheel, struct wheel_node *node);

static inline bool wheel_has(const struct wheel_node *node)
{
    return node->link.next != NULL;
}

/* Let it be now (not before the present one), and call fire for every node due by then, in order of their
 * ticks, those of one tick in the order in which they were added.
 * fire gets the node after it has left the wheel, and may add and remove any node, free its own, but not
 * advance. A node removed by an earlier fire does not fire; one that is added fires in a later call, even if it
 * is due already: so this always ends. */
void wheel_advance(struct wheel *wheel, uint64_t now, wheel_fire fire, void *arg);

/* The same for at most so many nodes. Returns how many fired; those left are due, and first, in the next call.
 */
size_t wheel_advance_some(struct wheel *wheel, uint64_t now, size_t max, wheel_fire fire, void *arg);

/* The earliest tick by which wheel_advance should be called: no node is due before it, though perhaps none at
 * it. False if the wheel is empty. Advancing to that tick and asking again comes to the true one in at most
 * WHEEL_LEVELS steps. */
bool wheel_next(const struct wheel *wheel, uint64_t *ret_tick);

#endif
