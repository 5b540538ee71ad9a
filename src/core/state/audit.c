#include "core/state/audit.h"

#include <string.h>

#include "base/alloc.h"
#include "core/view/view.h"

void audit_init(struct audit *a, const pawl_allocator *alloc)
{
    *a = (struct audit){.alloc = alloc};
}

static void forget(struct audit *a, struct audit_digests *slot)
{
    mem_free(a->alloc, slot->tables, slot->count * sizeof slot->tables[0]);
    *slot = (struct audit_digests){0};
}

void audit_release(struct audit *a)
{
    for (size_t i = 0; i < AUDIT_RING; i++)
        forget(a, &a->ring[i]);
}

/* NULL: a view's table that is not complete there. Any other table that is not there is empty. */
static const pawl_digest *digest_of(const struct table_digest *tables, size_t count, uint32_t table)
{
    static const pawl_digest none;
    for (size_t i = 0; i < count; i++)
        if (tables[i].table == table)
            return &tables[i].digest;
    return table_is_view(table) ? NULL : &none;
}

/* A table of the first list whose digest differs in the second. */
static uint32_t compare(const struct table_digest *a, size_t count, const struct table_digest *b,
                        size_t b_count)
{
    for (size_t i = 0; i < count; i++) {
        const pawl_digest *other = digest_of(b, b_count, a[i].table);
        if (other && !pawl_digest_equal(&a[i].digest, other))
            return a[i].table;
    }
    return 0;
}

static void keep(struct audit *a, enum audit_side side, uint64_t offset, const struct table_digest *tables,
                 size_t count)
{
    struct audit_digests *slot = &a->ring[a->next];
    a->next = (a->next + 1) % AUDIT_RING;
    a->missed += slot->offset != 0;
    forget(a, slot);
    struct table_digest *copy = mem_new(a->alloc, count, sizeof *copy);
    if (!copy && count > 0) {
        a->missed++;
        return;
    }
    if (count > 0)
        memcpy(copy, tables, count * sizeof *copy);
    *slot = (struct audit_digests){.side = side, .offset = offset, .tables = copy, .count = count};
}

uint32_t audit_note(struct audit *a, enum audit_side side, uint64_t offset, const struct table_digest *tables,
                    size_t count)
{
    for (size_t i = 0; i < AUDIT_RING; i++) {
        struct audit_digests *slot = &a->ring[i];
        if (slot->offset != offset || slot->side == side)
            continue;
        uint32_t table = compare(tables, count, slot->tables, slot->count);
        table = table ? table : compare(slot->tables, slot->count, tables, count);
        forget(a, slot);
        a->compared++;
        a->differed += table != 0;
        return table;
    }
    for (size_t i = 0; i < AUDIT_RING; i++) /* the events were undone, and this offset comes once more */
        if (a->ring[i].offset == offset)
            forget(a, &a->ring[i]);
    keep(a, side, offset, tables, count);
    return 0;
}
