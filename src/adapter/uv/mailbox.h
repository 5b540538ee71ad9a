/* adapter/uv/mailbox.h: what was posted to the shards of a runner: many threads put in, one takes all out.
 *
 * The list is linked from the newest to the oldest. To put is to swing the head with compare-and-swap; to take
 * is to exchange it for NULL and turn the list round. There is no ABA: the list is only ever taken whole, so
 * whatever link is the head when the swap succeeds is the rest of the list, however often it came and went.
 *
 * Memory order
 *   M1  put releases and take acquires. Every put is a read-modify-write of head, so it continues the release
 *       sequence of all puts before it: one acquire sees everything that every putter wrote before its put.
 *   M2  A task's queued flag is changed by exchange on both sides, both acquire and release. A poster that
 *       finds it set has released what it wrote to whoever clears it, and that is the shard right before fn: so
 *       fn sees it, though nothing was put. A plain store there would clear the flag and see nothing.
 *   M3  The shard reads a link's next before it clears queued, and the poster writes next after it found queued
 *       clear; M2 orders the two. */
#ifndef ADAPTER_UV_MAILBOX_H
#define ADAPTER_UV_MAILBOX_H

#include <stdatomic.h>

#include <pawl/types.h>

enum uv_link_kind {
    UV_LINK_TASK,
    UV_LINK_DONE,
};

/* In pawl_task.impl and pawl_work.impl. */
struct uv_link {
    struct uv_link *next;
    _Atomic uint32_t queued;
    enum uv_link_kind kind;
    uint32_t shard; /* on which it runs */
};

struct uv_mailbox {
    _Atomic(struct uv_link *) head;
};

/* Whether the mailbox was empty: then the shard may be asleep. Nothing of the link is touched after the swap:
 * the shard may be running it by then. */
static inline bool uv_mailbox_put(struct uv_mailbox *box, struct uv_link *link)
{
    struct uv_link *head = atomic_load_explicit(&box->head, memory_order_relaxed);
    do
        link->next = head;
    while (!atomic_compare_exchange_weak_explicit(&box->head, &head, link, memory_order_release,
                                                  memory_order_relaxed));
    return head == NULL;
}

/* All there is, the oldest first. */
static inline struct uv_link *uv_mailbox_take(struct uv_mailbox *box)
{
    struct uv_link *newest = atomic_exchange_explicit(&box->head, NULL, memory_order_acquire);
    struct uv_link *oldest = NULL;
    while (newest) {
        struct uv_link *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static inline bool uv_mailbox_empty(struct uv_mailbox *box)
{
    return atomic_load_explicit(&box->head, memory_order_relaxed) == NULL;
}

/* M2. True: the caller is the one to put it. */
static inline bool uv_link_claim(struct uv_link *link)
{
    return atomic_exchange_explicit(&link->queued, 1, memory_order_acq_rel) == 0;
}

static inline void uv_link_release(struct uv_link *link)
{
    atomic_exchange_explicit(&link->queued, 0, memory_order_acq_rel);
}

#endif
