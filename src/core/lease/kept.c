/* core/lease/kept.c: leases that outlive the table, in a store of the caller's.
 *
 * The table holds no rows: it asks the store for the lowest one that is not bound yet, and restores it when
 * that number is bound. So a table without kept leases compares one number at each bind, and that is all. */
#include "core/lease/queue.h"

/* The lowest row from this number on. What a store says is not trusted to be in order. */
static bool find(const pawl_leases *leases, uint64_t from, pawl_lease_row *ret_row)
{
    const pawl_leases_options *o = &leases->options;
    return o->store && o->store->find(o->store_ctx, from, ret_row) && ret_row->number >= from;
}

static void await_from(pawl_leases *leases, uint64_t from)
{
    pawl_lease_row row;
    leases->awaited = find(leases, from, &row) ? row.number : UINT64_MAX;
}

void kept_begin(pawl_leases *leases, uint64_t next)
{
    const pawl_leases_options *o = &leases->options;
    pawl_lease_row row;
    uint64_t from = 0;
    while (find(leases, from, &row) && row.number < next) { /* L7 */
        o->store->drop(o->store_ctx, row.number);
        from = row.number + 1;
    }
    await_from(leases, next);
}

/* Whether a row can be of this slot's number. */
static bool fits(const struct slot *slot, const pawl_lease_row *row)
{
    return row->number == slot->number && row->projection == slot->projection && row->attempt > 0
           && (row->operation.high != 0 || row->operation.low != 0);
}

void kept_restore(pawl_leases *leases, struct slot *slot)
{
    const pawl_leases_options *o = &leases->options;
    pawl_lease_row row;
    bool found = find(leases, slot->number, &row);
    await_from(leases, slot->number + 1);
    if (!found || row.number != slot->number)
        return;
    if (!fits(slot, &row)) {
        o->store->drop(o->store_ctx, slot->number);
        return;
    }
    pawl_instant now = pawl_env_now(o->env);
    slot_move(leases, slot, PAWL_LEASE_LEASED);
    slot->operation = row.operation;
    slot->is_current = true;
    slot->flags |= SLOT_KEPT | SLOT_STORED | SLOT_RESTORED;
    slot->attempt = row.attempt;
    slot->failures = row.failures;
    slot->leased_at = now;
    slot->duration = row.duration < leases->limits.max ? row.duration : leases->limits.max;
    due_set(leases, slot, now, slot->duration);
    due_arm(leases, now);
}

int kept_put(pawl_leases *leases, struct slot *slot, pawl_duration duration)
{
    const pawl_leases_options *o = &leases->options;
    pawl_lease_row row = {.number = slot->number,
                          .operation = slot->operation,
                          .projection = slot->projection,
                          .attempt = slot->attempt,
                          .failures = slot->failures,
                          .duration = duration};
    int status = o->store->keep(o->store_ctx, &row);
    if (status == PAWL_OK)
        slot->flags |= SLOT_STORED;
    return status;
}

void kept_drop(pawl_leases *leases, struct slot *slot)
{
    slot->flags &= (uint8_t)~SLOT_STORED;
    leases->options.store->drop(leases->options.store_ctx, slot->number);
}

bool pawl_leases_unkeep(pawl_leases *leases, uint64_t number, pawl_operation_id operation)
{
    struct slot *slot = slot_find(leases, number);
    if (!slot || !slot->is_current || !operation_is(slot->operation, operation) || !(slot->flags & SLOT_STORED))
        return false;
    kept_drop(leases, slot);
    slot->flags &= (uint8_t)~SLOT_KEPT;
    return true;
}

int pawl_leases_settle(const pawl_leases *leases)
{
    const pawl_leases_options *o = &leases->options;
    return o->store ? o->store->settle(o->store_ctx) : PAWL_OK;
}

bool pawl_leases_is_awaited(const pawl_leases *leases, uint64_t number, pawl_operation_id operation)
{
    pawl_lease_row row;
    return number >= leases->awaited && number > leases->bound && find(leases, number, &row)
           && row.number == number && operation_is(row.operation, operation);
}
