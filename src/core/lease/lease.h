/* core/lease/lease.h: the lease table's insides, for the files of this room.
 *
 * Numbers lie on a ring of slots: number n in slot n modulo the window, from its bind to its commit. A slot is
 * two cache lines, and neighbours in number are neighbours in memory, so that a commit that goes on to the next
 * number finds it in the cache.
 *
 *      committed      taken                                     bound
 *          │ TAKEN ... │ READY, LEASED, BOUND, BACKING_OFF, ...   │  free
 *     ─────┴───────────┴──────────────────────────────────────────┴────────
 *
 * A slot is in at most one structure at a time, which follows from its state; so the links share their memory:
 *
 *     BOUND         the queue of its projection (queue.h); nothing, if it is held
 *     LEASED        the wheel, at its deadline (due.c)
 *     BACKING_OFF   the wheel, at the end of its back-off
 *     others        nothing
 *
 * Invariants, besides those of pawl/lease.h
 *   T1  A slot changes its state in slot_move (queue.h) only, which knows what may follow what.
 *   T2  is_current: the operation ID counts. Set when the number is given out; cleared when the attempt is
 *       over. In a queue it means expired, and not yet given to anybody else.
 *   T3  The timer, if there is one, is set for the earliest tick of the wheel or before.
 *   T4  SLOT_STORED only with SLOT_KEPT and is_current, in LEASED, READY and TAKEN. slot_move drops the row when
 *       one of these ends.
 *   T5  SLOT_HELD only in BOUND, and only above taken + 1. slot_leave clears it. */
#ifndef CORE_LEASE_LEASE_H
#define CORE_LEASE_LEASE_H

#include <pawl/lease.h>

#include "base/heap.h"
#include "base/wheel.h"
#include "core/lease/estimate.h"
#include "core/lease/minute.h"
#include "core/lease/words.h"
#include "port/env.h"

#define LEASE_TICK_BITS    20 /* a tick of the wheel is 2^20 ns, about a millisecond */
#define LEASE_DUE_MAX      256
#define LEASE_DURATION_MAX ((pawl_duration)1 << 60)
#define LEASE_NO_SLOT      UINT32_MAX
#define LEASE_SLOT_BYTES   128

/* In one byte, so that a number that is not kept costs one store and a test at each move. */
enum slot_flag {
    SLOT_UNCOUNTED = 1, /* as its projection is */
    SLOT_KEPT = 2,      /* the present or last attempt was acquired to be kept */
    SLOT_STORED = 4,    /* the store has its row */
    SLOT_RESTORED = 8,  /* the attempt began before the table did */
    SLOT_HELD = 16,     /* BOUND, and in no queue */
};

struct slot {
    union {
        struct wheel_node timer;
        struct heap_node back;
        struct {
            uint32_t next;
            uint32_t prev;
        } fresh; /* places of slots */
    } in;
    uint64_t number;
    pawl_operation_id operation;
    void *work;
    void *result;
    pawl_instant leased_at;
    pawl_instant handed_at;
    pawl_duration duration; /* as granted; after it has expired, the least that will be granted next */
    uint32_t projection;
    uint32_t attempt;
    uint32_t failures;
    uint32_t words;
    uint8_t state; /* pawl_lease_state */
    uint8_t size_class;
    uint8_t postponed; /* how often, up to 255 */
    bool is_fresh;     /* never given out: in the queue's list, not in its heap */
    bool is_current;
    bool has_expired;
    bool is_void;
    uint8_t flags; /* of slot_flag */
};

_Static_assert(sizeof(struct slot) == LEASE_SLOT_BYTES, "a slot is two cache lines");

struct projection {
    uint32_t fresh_first; /* slots */
    uint32_t fresh_last;
    struct heap back; /* came back, by number */
    uint32_t attempts_max;
    pawl_lease_policy policy;
    bool is_uncounted; /* left out of the figures of the last minute */
    struct estimate estimate;
};

/* What is remembered of a number after its commit. */
struct memory {
    uint64_t number;
    pawl_operation_id operation;
    pawl_instant leased_at;
    pawl_instant committed_at;
    pawl_duration duration;
    uint32_t projection;
    uint32_t attempt;
    bool is_void;
};

struct lease_counts {
    uint64_t active;
    uint64_t waiting;
    uint64_t stalled;
    uint64_t acquired;
    uint64_t committed;
    uint64_t expired;
    uint64_t released;
    uint64_t failed;
    uint64_t voids;
    uint64_t fenced;
    uint64_t repeated;
    pawl_duration repeated_time;
};

struct pawl_leases {
    pawl_leases_options options;
    struct estimate_limits limits;
    struct slot *slots;
    uint64_t mask;
    uint64_t bound;
    uint64_t taken;
    uint64_t committed;
    uint64_t attempts; /* so many operation IDs were made */
    uint64_t keys[4];  /* what makes them this table's */
    uint64_t armed;    /* the tick that the timer is set for; UINT64_MAX: it is not */
    uint64_t awaited;  /* the lowest number in the store that is not bound; UINT64_MAX: none */
    bool has_news;     /* a number became available, and changed was not called for it yet */
    struct projection *projections;
    struct memory *memories; /* a power of two of them */
    uint64_t memory_mask;
    void *slots_memory;
    struct lease_counts counts;
    struct words words;
    pawl_timer timer;
    struct wheel wheel;
    struct minute minute;
};

/* The slot of a number that is bound and not committed, or NULL. */
static inline struct slot *slot_find(const pawl_leases *leases, uint64_t number)
{
    bool is_here = number > leases->committed && number <= leases->bound;
    return is_here ? &leases->slots[number & leases->mask] : NULL;
}

/* lifetime.c: zeros become the defaults. */
pawl_lease_thresholds thresholds_with_defaults(const pawl_lease_thresholds *given);

/* table.c */
void slot_void(pawl_leases *leases, struct slot *slot, const char *words, pawl_instant now);

/* kept.c: leases that outlive the table. */

/* The next number to bind is this one: drop the rows of all before it. */
void kept_begin(pawl_leases *leases, uint64_t next);

/* The number is bound, and is the awaited one: lease it to the worker that has it. */
void kept_restore(pawl_leases *leases, struct slot *slot);

/* Keep the slot's lease for this long after a restart. The store's error: it does not have it. */
int kept_put(pawl_leases *leases, struct slot *slot, pawl_duration duration);

/* The slot's lease is in the store, and is over. */
void kept_drop(pawl_leases *leases, struct slot *slot);

/* operator.c */
void slot_show(const pawl_leases *leases, const struct slot *slot, pawl_lease *ret_lease);

/* due.c: deadlines. */
void due_init(pawl_leases *leases);
void due_set(pawl_leases *leases, struct slot *slot, pawl_instant now, pawl_duration delay);
void due_unset(pawl_leases *leases, struct slot *slot);

/* Set the timer, if a node in the wheel needs it earlier. Once in each call, after all nodes were added. */
void due_arm(pawl_leases *leases, pawl_instant now);

/* Without a timer: expire what is due, up to LEASE_DUE_MAX. */
void due_catch_up(pawl_leases *leases, pawl_instant now);

/* turns.c: a number that was committed not long ago, or NULL. */
const struct memory *memory_find(const pawl_leases *leases, uint64_t number);

static inline bool operation_is(pawl_operation_id a, pawl_operation_id b)
{
    return a.high == b.high && a.low == b.low;
}

#endif
