#include "core/state/digests.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "core/state/key.h"

static size_t row_size(const struct digests *d, size_t tables)
{
    return d->head + tables * DIGESTS_TABLE;
}

void digests_init(struct digests *d, const pawl_allocator *alloc, size_t head)
{
    *d = (struct digests){.alloc = alloc, .head = head};
}

void digests_release(struct digests *d)
{
    mem_free(d->alloc, d->tables, d->room * sizeof d->tables[0]);
    mem_free(d->alloc, d->row, d->row ? row_size(d, d->room) : 0);
    digests_init(d, d->alloc, d->head);
}

static int reserve(struct digests *d, size_t count)
{
    if (count <= d->room && d->row)
        return PAWL_OK;
    size_t room = d->room ? d->room : 16;
    while (room < count)
        room *= 2;
    uint8_t *row = mem_resize(d->alloc, NULL, 0, row_size(d, room));
    if (!row)
        return PAWL_ENOMEM;
    struct table_digest *tables =
        mem_resize(d->alloc, d->tables, d->room * sizeof *tables, room * sizeof *tables);
    if (!tables) {
        mem_free(d->alloc, row, row_size(d, room));
        return PAWL_ENOMEM;
    }
    mem_free(d->alloc, d->row, d->row ? row_size(d, d->room) : 0);
    d->row = row;
    d->tables = tables;
    d->room = room;
    return PAWL_OK;
}

/* Where a table is, or would be. */
static size_t find_table(const struct digests *d, uint32_t table)
{
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->tables[middle].table < table)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_table(const struct digests *d, size_t at, uint32_t table)
{
    return at < d->count && d->tables[at].table == table;
}

pawl_digest digests_of(const struct digests *d, uint32_t table)
{
    size_t at = find_table(d, table);
    return has_table(d, at, table) ? d->tables[at].digest : (pawl_digest){0};
}

int digests_want(struct digests *d, uint32_t table)
{
    size_t at = find_table(d, table);
    if (has_table(d, at, table))
        return PAWL_OK;
    int status = reserve(d, d->count + 1);
    if (status != PAWL_OK)
        return status;
    memmove(d->tables + at + 1, d->tables + at, (d->count - at) * sizeof d->tables[0]);
    d->tables[at] = (struct table_digest){.table = table};
    d->count++;
    return PAWL_OK;
}

void digests_sum(struct digests *d, uint32_t table, const pawl_digest *digest)
{
    size_t at = find_table(d, table);
    assert(has_table(d, at, table));
    pawl_digest *sum = &d->tables[at].digest;
    sum->low += digest->low;
    sum->high += digest->high + (sum->low < digest->low);
    sum->rows += digest->rows;
}

/* Add the tables first, because that can fail; an empty table does no harm. */
int digests_add(struct digests *d, const struct changes *changes)
{
    for (const struct row_change *c = changes->first; c; c = c->next) {
        int status = digests_want(d, key_table(c->key));
        if (status != PAWL_OK)
            return status;
    }
    for (const struct row_change *c = changes->first; c; c = c->next)
        digests_sum(d, key_table(c->key), &c->digest);
    return PAWL_OK;
}

void digests_subtract(struct digests *d, const struct changes *changes)
{
    for (const struct row_change *c = changes->first; c; c = c->next) {
        pawl_digest *sum = &d->tables[find_table(d, key_table(c->key))].digest;
        sum->high -= c->digest.high + (sum->low < c->digest.low);
        sum->low -= c->digest.low;
        sum->rows -= c->digest.rows;
    }
}

int digests_encode(struct digests *d, uint8_t **ret_row, size_t *ret_size, uint32_t *ret_count)
{
    int status = reserve(d, d->count);
    if (status != PAWL_OK)
        return status;
    const pawl_digest nothing = {0};
    uint32_t count = 0;
    for (size_t i = 0; i < d->count; i++) {
        const struct table_digest *t = &d->tables[i];
        if (pawl_digest_equal(&t->digest, &nothing))
            continue;
        uint8_t *slot = d->row + row_size(d, count++);
        put_u32(slot, t->table);
        put_u64(slot + 4, t->digest.low);
        put_u64(slot + 12, t->digest.high);
        put_u64(slot + 20, t->digest.rows);
    }
    *ret_row = d->row;
    *ret_size = row_size(d, count);
    *ret_count = count;
    return PAWL_OK;
}

static bool tables_ascend(const uint8_t *tables, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (get_u32(tables + (i - 1) * DIGESTS_TABLE) >= get_u32(tables + i * DIGESTS_TABLE))
            return false;
    return true;
}

int digests_decode(struct digests *d, pawl_bytes tables, uint32_t count)
{
    assert(tables.size == count * DIGESTS_TABLE);
    if (!tables_ascend(tables.data, count))
        return PAWL_ECORRUPT;
    int status = reserve(d, count);
    if (status != PAWL_OK)
        return status;
    struct decoder from = decoder_over(tables);
    for (uint32_t i = 0; i < count; i++) {
        struct table_digest *t = &d->tables[i];
        t->table = decode_u32(&from);
        t->digest.low = decode_u64(&from);
        t->digest.high = decode_u64(&from);
        t->digest.rows = decode_u64(&from);
    }
    d->count = count;
    return PAWL_OK;
}
