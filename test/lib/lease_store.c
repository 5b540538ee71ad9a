#include "test/lib/lease_store.h"

#include "test/lib/test.h"

static void apply(struct lease_twin *twin, const struct lease_twin_op *op)
{
    size_t i = 0;
    while (i < twin->count && twin->rows[i].number != op->row.number)
        i++;
    if (op->is_drop) {
        if (i < twin->count)
            twin->rows[i] = twin->rows[--twin->count];
        return;
    }
    assert_true(i < LEASE_TWIN_MAX);
    twin->rows[i] = op->row;
    twin->count += i == twin->count;
}

static void apply_some(struct lease_twin *twin, size_t count)
{
    for (size_t i = 0; i < count; i++)
        apply(twin, &twin->ops[i]);
    twin->op_count = 0;
}

static void tell(struct lease_twin *twin, const struct lease_twin_op *op)
{
    if (twin->op_count == LEASE_TWIN_MAX) /* a store writes by itself, too, now and then */
        apply_some(twin, twin->op_count);
    twin->ops[twin->op_count++] = *op;
}

static int keep(void *ctx, const pawl_lease_row *row)
{
    struct lease_twin *twin = ctx;
    if (twin->keep_status != PAWL_OK)
        return twin->keep_status;
    twin->kept++;
    tell(twin, &(struct lease_twin_op){.row = *row});
    return PAWL_OK;
}

static void drop(void *ctx, uint64_t number)
{
    struct lease_twin *twin = ctx;
    twin->dropped++;
    tell(twin, &(struct lease_twin_op){.row.number = number, .is_drop = true});
}

bool lease_twin_get(const struct lease_twin *twin, uint64_t number, pawl_lease_row *ret_row)
{
    for (size_t i = twin->op_count; i-- > 0;) {
        if (twin->ops[i].row.number != number)
            continue;
        *ret_row = twin->ops[i].row;
        return !twin->ops[i].is_drop;
    }
    for (size_t i = 0; i < twin->count; i++)
        if (twin->rows[i].number == number) {
            *ret_row = twin->rows[i];
            return true;
        }
    return false;
}

static bool find(void *ctx, uint64_t from, pawl_lease_row *ret_row)
{
    const struct lease_twin *twin = ctx;
    pawl_lease_row row;
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < twin->count; i++)
        if (twin->rows[i].number >= from && twin->rows[i].number < lowest
            && lease_twin_get(twin, twin->rows[i].number, &row))
            lowest = row.number;
    for (size_t i = 0; i < twin->op_count; i++)
        if (twin->ops[i].row.number >= from && twin->ops[i].row.number < lowest
            && lease_twin_get(twin, twin->ops[i].row.number, &row))
            lowest = row.number;
    return lowest != UINT64_MAX && lease_twin_get(twin, lowest, ret_row);
}

static int settle(void *ctx)
{
    struct lease_twin *twin = ctx;
    if (twin->settle_status != PAWL_OK)
        return twin->settle_status;
    twin->settled++;
    apply_some(twin, twin->op_count);
    return PAWL_OK;
}

const pawl_lease_store lease_twin_store = {.keep = keep, .drop = drop, .find = find, .settle = settle};

void lease_twin_crash(struct lease_twin *twin, size_t survive)
{
    apply_some(twin, survive < twin->op_count ? survive : twin->op_count);
}
