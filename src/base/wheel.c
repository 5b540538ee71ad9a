#include "base/wheel.h"

#include <assert.h>
#include <stddef.h>

#define DIGIT_BITS 6
#define LIST_DUE   ((uint32_t)(WHEEL_LEVELS * WHEEL_SLOTS))
_Static_assert(WHEEL_SLOTS == 1 << DIGIT_BITS, "a slot is a digit");
_Static_assert(WHEEL_LEVELS *DIGIT_BITS >= 64, "the levels cover every tick");

static struct wheel_node *node_of(struct wheel_link *link)
{
    return (struct wheel_node *)(void *)((char *)link - offsetof(struct wheel_node, link));
}

static bool list_empty(const struct wheel_link *head)
{
    return head->next == head;
}

static void list_reset(struct wheel_link *head)
{
    head->next = head->prev = head;
}

static void list_append(struct wheel *wheel, uint32_t list, struct wheel_node *node)
{
    struct wheel_link *head = &wheel->lists[list];
    node->list = list;
    node->link = (struct wheel_link){.next = head, .prev = head->prev};
    head->prev->next = &node->link;
    head->prev = &node->link;
}

static void node_unlink(struct wheel_node *node)
{
    node->link.prev->next = node->link.next;
    node->link.next->prev = node->link.prev;
    node->link = (struct wheel_link){0};
}

/* W2 */
static uint32_t list_for(const struct wheel *wheel, uint64_t tick)
{
    uint64_t differs = tick ^ wheel->now;
    unsigned level = differs ? (63 - (unsigned)__builtin_clzll(differs)) / DIGIT_BITS : 0;
    return level * WHEEL_SLOTS + (uint32_t)(tick >> (level * DIGIT_BITS) & (WHEEL_SLOTS - 1));
}

static void place(struct wheel *wheel, struct wheel_node *node)
{
    uint32_t list = list_for(wheel, node->tick);
    list_append(wheel, list, node);
    wheel->occupied[list / WHEEL_SLOTS] |= UINT64_C(1) << list % WHEEL_SLOTS;
}

/* The first slot of the lowest level that holds any, and the tick at which it begins (W4). */
static bool first_slot(const struct wheel *wheel, uint32_t *ret_list, uint64_t *ret_tick)
{
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        if (wheel->occupied[level] == 0)
            continue;
        uint64_t slot = (uint64_t)__builtin_ctzll(wheel->occupied[level]);
        unsigned shift = level * DIGIT_BITS;
        unsigned above = shift + DIGIT_BITS;
        uint64_t block = above < 64 ? wheel->now >> above << above : 0;
        *ret_list = level * WHEEL_SLOTS + (uint32_t)slot;
        *ret_tick = block | slot << shift;
        return true;
    }
    return false;
}

/* Enter a slot: of level 0, its nodes are due; of a higher one, they move down, in their order. */
static void enter_slot(struct wheel *wheel, uint32_t list)
{
    struct wheel_link *head = &wheel->lists[list];
    wheel->occupied[list / WHEEL_SLOTS] &= ~(UINT64_C(1) << list % WHEEL_SLOTS);
    while (!list_empty(head)) {
        struct wheel_node *node = node_of(head->next);
        node_unlink(node);
        if (list < WHEEL_SLOTS)
            list_append(wheel, LIST_DUE, node);
        else
            place(wheel, node);
    }
}

void wheel_init(struct wheel *wheel, uint64_t now)
{
    *wheel = (struct wheel){.now = now};
    for (size_t i = 0; i < sizeof wheel->lists / sizeof wheel->lists[0]; i++)
        list_reset(&wheel->lists[i]);
}

void wheel_release(struct wheel *wheel)
{
    uint64_t tick;
    assert(!wheel->firing);
    assert(!wheel_next(wheel, &tick));
}

void wheel_add(struct wheel *wheel, struct wheel_node *node, uint64_t tick)
{
    assert(!wheel_has(node));
    node->tick = tick < wheel->now ? wheel->now : tick; /* W1 */
    place(wheel, node);
}

void wheel_remove(struct wheel *wheel, struct wheel_node *node)
{
    if (!wheel_has(node))
        return;
    node_unlink(node);
    if (node->list != LIST_DUE && list_empty(&wheel->lists[node->list]))
        wheel->occupied[node->list / WHEEL_SLOTS] &= ~(UINT64_C(1) << node->list % WHEEL_SLOTS);
}

void wheel_advance(struct wheel *wheel, uint64_t now, wheel_fire fire, void *arg)
{
    wheel_advance_some(wheel, now, SIZE_MAX, fire, arg);
}

size_t wheel_advance_some(struct wheel *wheel, uint64_t now, size_t max, wheel_fire fire, void *arg)
{
    assert(!wheel->firing);
    assert(now >= wheel->now);
    uint32_t list;
    uint64_t tick;
    while (first_slot(wheel, &list, &tick) && tick <= now) {
        wheel->now = tick;
        enter_slot(wheel, list);
    }
    wheel->now = now;

    /* All that is due is known before the first fire, so what fire does cannot change the order. */
    struct wheel_link *due = &wheel->lists[LIST_DUE];
    size_t fired = 0;
    wheel->firing = true;
    while (fired < max && !list_empty(due)) {
        struct wheel_node *node = node_of(due->next);
        node_unlink(node);
        fired++;
        fire(node, arg);
    }
    wheel->firing = false;
    return fired;
}

bool wheel_next(const struct wheel *wheel, uint64_t *ret_tick)
{
    uint32_t list;
    if (!list_empty(&wheel->lists[LIST_DUE])) {
        *ret_tick = wheel->now;
        return true;
    }
    return first_slot(wheel, &list, ret_tick);
}
