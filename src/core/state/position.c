#include "core/state/position.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/state/key.h"

#define FIXED ((size_t)40)
#define TABLE ((size_t)28)

static size_t bytes_size(size_t tables)
{
    return FIXED + tables * TABLE;
}

static pawl_bytes position_key(const struct position *p, uint8_t key[KEY_TOKEN])
{
    put_u32_sorted(key, TABLE_PARTITION);
    put_u64_sorted(key + 4, p->partition);
    return (pawl_bytes){key, KEY_TOKEN};
}

void position_init(struct position *p, const pawl_allocator *alloc, uint16_t partition)
{
    *p = (struct position){.partition = partition, .alloc = alloc};
}

void position_release(struct position *p)
{
    mem_free(p->alloc, p->tables, p->table_room * sizeof p->tables[0]);
    mem_free(p->alloc, p->bytes, p->bytes ? bytes_size(p->table_room) : 0);
    p->tables = NULL;
    p->bytes = NULL;
    p->table_room = p->table_count = 0;
}

static int reserve(struct position *p, size_t count)
{
    if (count <= p->table_room && p->bytes)
        return PAWL_OK;
    size_t room = p->table_room ? p->table_room : 16;
    while (room < count)
        room *= 2;
    uint8_t *bytes = mem_resize(p->alloc, NULL, 0, bytes_size(room));
    if (!bytes)
        return PAWL_ENOMEM;
    struct table_digest *tables =
        mem_resize(p->alloc, p->tables, p->table_room * sizeof *tables, room * sizeof *tables);
    if (!tables) {
        mem_free(p->alloc, bytes, bytes_size(room));
        return PAWL_ENOMEM;
    }
    mem_free(p->alloc, p->bytes, p->bytes ? bytes_size(p->table_room) : 0);
    p->bytes = bytes;
    p->tables = tables;
    p->table_room = room;
    return PAWL_OK;
}

/* Where a table is, or would be. */
static size_t find_table(const struct position *p, uint32_t table)
{
    size_t low = 0, high = p->table_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->tables[middle].table < table)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_table(const struct position *p, size_t at, uint32_t table)
{
    return at < p->table_count && p->tables[at].table == table;
}

static int add_table(struct position *p, uint32_t table)
{
    size_t at = find_table(p, table);
    if (has_table(p, at, table))
        return PAWL_OK;
    int status = reserve(p, p->table_count + 1);
    if (status != PAWL_OK)
        return status;
    memmove(p->tables + at + 1, p->tables + at, (p->table_count - at) * sizeof p->tables[0]);
    p->tables[at] = (struct table_digest){.table = table};
    p->table_count++;
    return PAWL_OK;
}

/* Tables first, which can fail; a table with nothing in it is as good as none. */
int position_add(struct position *p, const struct changes *changes)
{
    for (const struct row_change *c = changes->first; c; c = c->next) {
        int status = add_table(p, key_table(c->key));
        if (status != PAWL_OK)
            return status;
    }
    for (const struct row_change *c = changes->first; c; c = c->next) {
        pawl_digest *sum = &p->tables[find_table(p, key_table(c->key))].digest;
        sum->low += c->digest.low;
        sum->high += c->digest.high + (sum->low < c->digest.low);
        sum->rows += c->digest.rows;
    }
    return PAWL_OK;
}

void position_subtract(struct position *p, const struct changes *changes)
{
    for (const struct row_change *c = changes->first; c; c = c->next) {
        pawl_digest *sum = &p->tables[find_table(p, key_table(c->key))].digest;
        sum->high -= c->digest.high + (sum->low < c->digest.low);
        sum->low -= c->digest.low;
        sum->rows -= c->digest.rows;
    }
}

const pawl_digest *position_digest(const struct position *p, uint32_t table)
{
    static const pawl_digest nothing;
    size_t at = find_table(p, table);
    return has_table(p, at, table) ? &p->tables[at].digest : &nothing;
}

pawl_range position_range(const struct position *p, uint32_t partitions, uint32_t table,
                          uint8_t from[KEY_TOKEN], uint8_t to[KEY_TOKEN])
{
    unsigned bits = (unsigned)__builtin_ctz(partitions);
    uint64_t width = bits == 0 ? 0 : UINT64_C(1) << (64 - bits); /* 0: all of them */
    bool last = (uint32_t)p->partition + 1 == partitions;
    put_u32_sorted(from, table);
    put_u64_sorted(from + 4, p->partition * width);
    put_u32_sorted(to, last ? table + 1 : table);
    put_u64_sorted(to + 4, last ? 0 : (p->partition + UINT64_C(1)) * width);
    return (pawl_range){.space = STATE_SPACE, .from = {from, KEY_TOKEN}, .to = {to, KEY_TOKEN}};
}

int position_write(struct position *p, pawl_store *store)
{
    int status = reserve(p, p->table_count);
    if (status != PAWL_OK)
        return status;
    const pawl_digest nothing = {0};
    uint8_t key[KEY_TOKEN], *at = p->bytes;
    put_u8(at, POSITION_VERSION);
    put_u8(at + 1, 0);
    put_u16(at + 2, p->partition);
    put_u64(at + 8, p->offset);
    put_u64(at + 16, p->place.position);
    put_u64(at + 24, p->place.hint);
    put_u64(at + 32, p->checksum);
    uint32_t count = 0;
    for (size_t i = 0; i < p->table_count; i++) {
        const struct table_digest *t = &p->tables[i];
        if (pawl_digest_equal(&t->digest, &nothing))
            continue;
        uint8_t *slot = at + FIXED + count++ * TABLE;
        put_u32(slot, t->table);
        put_u64(slot + 4, t->digest.low);
        put_u64(slot + 12, t->digest.high);
        put_u64(slot + 20, t->digest.rows);
    }
    put_u32(at + 4, count);
    return pawl_store_put(store, STATE_SPACE, position_key(p, key), (pawl_bytes){at, bytes_size(count)});
}

static bool tables_ascend(const uint8_t *tables, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (get_u32(tables + (i - 1) * TABLE) >= get_u32(tables + i * TABLE))
            return false;
    return true;
}

static int decode(struct position *p, pawl_bytes bytes, pawl_error *error)
{
    struct decoder d = decoder_over(bytes);
    uint8_t version = decode_u8(&d), zero = decode_u8(&d);
    uint16_t partition = decode_u16(&d);
    uint32_t count = decode_u32(&d);
    uint64_t offset = decode_u64(&d);
    pawl_place place = {.position = decode_u64(&d)};
    place.hint = decode_u64(&d);
    uint64_t checksum = decode_u64(&d);
    if (!d.bad && version > POSITION_VERSION)
        return error_set(error, PAWL_EVERSION, "the position of partition %u is of version %u", p->partition,
                         version);
    if (d.bad || version == 0 || zero != 0 || partition != p->partition || count > POSITION_TABLES_MAX
        || d.left != count * TABLE)
        return error_set(error, PAWL_ECORRUPT, "the position of partition %u is not one", p->partition);
    if (!tables_ascend(d.at, count))
        return error_set(error, PAWL_ECORRUPT, "the position of partition %u has its tables in no order",
                         p->partition);
    int status = reserve(p, count);
    if (status != PAWL_OK)
        return error_set(error, status, "no memory for the position of partition %u", p->partition);
    for (uint32_t i = 0; i < count; i++) {
        struct table_digest *t = &p->tables[i];
        t->table = decode_u32(&d);
        t->digest.low = decode_u64(&d);
        t->digest.high = decode_u64(&d);
        t->digest.rows = decode_u64(&d);
    }
    p->offset = offset;
    p->place = place;
    p->checksum = checksum;
    p->table_count = count;
    return PAWL_OK;
}

int position_read(struct position *p, pawl_reader *reader, pawl_error *error)
{
    uint8_t key[KEY_TOKEN];
    pawl_bytes bytes;
    int status = pawl_store_get(reader, STATE_SPACE, position_key(p, key), &bytes);
    if (status == PAWL_OK)
        return decode(p, bytes, error);
    if (status != PAWL_ENOTFOUND)
        return error_set(error, status, "cannot read the position of partition %u", p->partition);
    p->offset = p->checksum = 0;
    p->place = (pawl_place){0};
    p->table_count = 0;
    return PAWL_OK;
}
