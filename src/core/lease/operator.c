/* core/lease/operator.c: what an operator may see of numbers, and decide about them. */
#include "core/lease/queue.h"

int pawl_leases_reclaim(pawl_leases *leases, uint64_t number)
{
    struct slot *slot = slot_find(leases, number);
    if (!slot || slot->state != PAWL_LEASE_LEASED)
        return PAWL_ENOTFOUND;
    minute_now(&leases->minute, pawl_env_now(leases->options.env))->ended++;
    words_fix(&leases->words, &slot->words, WORDS_RECLAIMED);
    slot->is_current = false;
    slot_move(leases, slot, PAWL_LEASE_BOUND);
    return PAWL_OK;
}

int pawl_leases_retry(pawl_leases *leases, uint64_t number)
{
    struct slot *slot = slot_find(leases, number);
    if (!slot || (slot->state != PAWL_LEASE_STALLED && slot->state != PAWL_LEASE_BACKING_OFF))
        return PAWL_ENOTFOUND;
    slot->failures = 0;
    slot->postponed = 0;
    slot_move(leases, slot, PAWL_LEASE_BOUND);
    return PAWL_OK;
}

int pawl_leases_void(pawl_leases *leases, uint64_t number, const char *words)
{
    struct slot *slot = slot_find(leases, number);
    if (!slot || slot->state >= PAWL_LEASE_READY)
        return PAWL_ENOTFOUND;
    pawl_instant now = pawl_env_now(leases->options.env);
    if (slot->state == PAWL_LEASE_LEASED)
        minute_now(&leases->minute, now)->ended++;
    slot_void(leases, slot, words, now);
    return PAWL_OK;
}

void slot_show(const pawl_leases *leases, const struct slot *slot, pawl_lease *ret_lease)
{
    ret_lease->number = slot->number;
    ret_lease->state = (pawl_lease_state)slot->state;
    ret_lease->operation = slot->operation;
    ret_lease->projection = slot->projection;
    ret_lease->work = slot->work;
    ret_lease->attempt = slot->attempt;
    ret_lease->is_void = slot->is_void;
    ret_lease->leased_at = slot->leased_at;
    ret_lease->duration = slot->duration;
    ret_lease->committed_at = (pawl_instant){0};
    ret_lease->words = words_get(&leases->words, slot->words);
}

static void memory_show(const struct memory *memory, pawl_lease *ret_lease)
{
    *ret_lease = (pawl_lease){
        .number = memory->number,
        .state = PAWL_LEASE_COMMITTED,
        .operation = memory->operation,
        .projection = memory->projection,
        .attempt = memory->attempt,
        .is_void = memory->is_void,
        .leased_at = memory->leased_at,
        .duration = memory->duration,
        .committed_at = memory->committed_at,
        .words = "",
    };
}

void pawl_leases_list(const pawl_leases *leases, uint64_t from,
                      bool (*visit)(void *arg, const pawl_lease *lease), void *arg)
{
    uint64_t remembered = leases->options.remembered;
    uint64_t oldest = leases->committed > remembered ? leases->committed - remembered + 1 : 1;
    uint64_t number = from ? from : leases->committed + 1;
    for (number = number > oldest ? number : oldest; number <= leases->bound; number++) {
        const struct slot *slot = slot_find(leases, number);
        const struct memory *memory = slot ? NULL : memory_find(leases, number);
        pawl_lease lease;
        if (slot)
            slot_show(leases, slot, &lease);
        else if (memory)
            memory_show(memory, &lease);
        else
            continue;
        if (!visit(arg, &lease))
            return;
    }
}
