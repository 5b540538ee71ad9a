/* core/lease/turns.c: results leave in the order of their numbers.
 *
 * No list of waiters is kept, and nobody is woken: the one who commits asks what can be taken, and gets the
 * ready numbers that directly follow the last one. So a hand-in costs the same whether one number waits or a
 * million. */
#include "core/lease/queue.h"

/* The next in turn is not held: L8. */
static void free_next(pawl_leases *leases)
{
    struct slot *slot = slot_find(leases, leases->taken + 1);
    if (slot && (slot->flags & SLOT_HELD))
        (void)pawl_leases_hold(leases, slot->number, false);
}

size_t pawl_leases_take(pawl_leases *leases, size_t max, pawl_turn *ret_turns)
{
    size_t count = 0;
    if (max == 0 || leases->counts.waiting == 0)
        return 0;
    struct slot *slot = slot_find(leases, leases->taken + 1);
    if (!slot || slot->state != PAWL_LEASE_READY)
        return 0;
    pawl_instant now = pawl_env_now(leases->options.env);
    for (; count < max; count++) {
        slot = slot_find(leases, leases->taken + 1);
        if (!slot || slot->state != PAWL_LEASE_READY) /* L3 */
            break;
        slot_move(leases, slot, PAWL_LEASE_TAKEN);
        leases->taken++;
        if (!(slot->flags & SLOT_UNCOUNTED))
            minute_turn(&leases->minute, now, now.ns - slot->handed_at.ns);
        ret_turns[count] = (pawl_turn){
            .number = slot->number,
            .operation = slot->operation,
            .projection = slot->projection,
            .attempt = slot->attempt,
            .work = slot->work,
            .result = slot->result,
            .is_void = slot->is_void,
            .words = words_get(&leases->words, slot->words),
        };
    }
    free_next(leases);
    return count;
}

/* The last one taken, if it is this one and not committed. */
static struct slot *last_taken(pawl_leases *leases, uint64_t number)
{
    return number == leases->taken && number != leases->committed ? slot_find(leases, number) : NULL;
}

/* The attempt that ended then was in vain: the number waits for another, as if there had been none. */
static void begin_again(pawl_leases *leases, struct slot *slot, pawl_instant ended)
{
    leases->counts.repeated++;
    leases->counts.repeated_time += ended.ns - slot->leased_at.ns;
    slot->is_current = false;
    slot->result = NULL;
    slot->attempt--;
    slot_move(leases, slot, PAWL_LEASE_BOUND);
}

int pawl_leases_repeat(pawl_leases *leases, uint64_t number)
{
    struct slot *slot = last_taken(leases, number);
    if (!slot)
        return PAWL_EMISUSE;
    leases->taken--;
    if (slot->is_void) { /* there is nothing to work on, but its turn comes again */
        slot_move(leases, slot, PAWL_LEASE_READY);
        return PAWL_OK;
    }
    begin_again(leases, slot, slot->handed_at);
    return PAWL_OK;
}

int pawl_leases_repeat_early(pawl_leases *leases, uint64_t number)
{
    struct slot *slot = slot_find(leases, number);
    if (!slot || slot->is_void || (slot->state != PAWL_LEASE_LEASED && slot->state != PAWL_LEASE_READY))
        return PAWL_ENOTFOUND;
    if (number == leases->taken + 1)
        return PAWL_EMISUSE;
    pawl_instant now = pawl_env_now(leases->options.env);
    if (slot->state == PAWL_LEASE_LEASED)
        minute_now(&leases->minute, now)->ended++;
    begin_again(leases, slot, slot->state == PAWL_LEASE_READY ? slot->handed_at : now);
    return PAWL_OK;
}

int pawl_leases_hold(pawl_leases *leases, uint64_t number, bool held)
{
    struct slot *slot = slot_find(leases, number);
    if (!slot || slot->state != PAWL_LEASE_BOUND)
        return PAWL_ENOTFOUND;
    if (held && number == leases->taken + 1)
        return PAWL_EMISUSE;
    if (held == ((slot->flags & SLOT_HELD) != 0))
        return PAWL_OK;
    if (held) {
        queue_remove(leases, slot);
        slot->flags |= SLOT_HELD;
        return PAWL_OK;
    }
    slot->flags &= (uint8_t)~SLOT_HELD;
    slot->is_fresh = false; /* its place in the list of fresh numbers is not known any more */
    queue_put(leases, slot);
    return PAWL_OK;
}

int pawl_leases_refuse(pawl_leases *leases, uint64_t number, const char *words)
{
    struct slot *slot = last_taken(leases, number);
    if (!slot || slot->is_void)
        return PAWL_EMISUSE;
    const struct projection *projection = &leases->projections[slot->projection];
    leases->taken--;
    leases->counts.failed++;
    slot->result = NULL;
    slot->failures = projection->attempts_max;
    if (projection->policy == PAWL_LEASE_VOID) {
        slot_void(leases, slot, words, pawl_env_now(leases->options.env));
        return PAWL_OK;
    }
    slot->is_current = false;
    words_set(&leases->words, &slot->words, words);
    slot_move(leases, slot, PAWL_LEASE_STALLED);
    return PAWL_OK;
}

static void remember(pawl_leases *leases, const struct slot *slot, pawl_instant now)
{
    leases->memories[slot->number & leases->memory_mask] = (struct memory){
        .number = slot->number,
        .operation = slot->operation,
        .leased_at = slot->leased_at,
        .committed_at = now,
        .duration = slot->duration,
        .projection = slot->projection,
        .attempt = slot->attempt,
        .is_void = slot->is_void,
    };
}

const struct memory *memory_find(const pawl_leases *leases, uint64_t number)
{
    if (number == 0 || number > leases->committed || leases->committed - number >= leases->options.remembered)
        return NULL;
    const struct memory *memory = &leases->memories[number & leases->memory_mask];
    return memory->number == number ? memory : NULL;
}

int pawl_leases_commit(pawl_leases *leases, uint64_t number)
{
    if (number < leases->committed || number > leases->taken)
        return PAWL_EMISUSE;
    uint64_t count = number - leases->committed;
    if (count == 0)
        return PAWL_OK;
    pawl_instant now = pawl_env_now(leases->options.env);
    uint64_t counted = 0;
    for (uint64_t n = leases->committed + 1; n <= number; n++) {
        struct slot *slot = slot_find(leases, n);
        counted += !(slot->flags & SLOT_UNCOUNTED);
        remember(leases, slot, now);
        words_fix(&leases->words, &slot->words, WORDS_NONE);
        slot_move(leases, slot, PAWL_LEASE_COMMITTED);
    }
    leases->committed = number; /* L1 */
    leases->counts.committed += count;
    minute_now(&leases->minute, now)->committed += counted;
    return PAWL_OK;
}
