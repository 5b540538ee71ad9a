#include "core/state/position.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/error.h"
#include "core/state/key.h"

#define FIXED ((size_t)40)

static pawl_bytes position_key(const struct position *p, uint8_t key[KEY_TOKEN])
{
    put_u32_sorted(key, TABLE_PARTITION);
    put_u64_sorted(key + 4, p->partition);
    return (pawl_bytes){key, KEY_TOKEN};
}

void position_init(struct position *p, const pawl_allocator *alloc, uint16_t partition)
{
    *p = (struct position){.partition = partition};
    digests_init(&p->digests, alloc, FIXED);
}

void position_release(struct position *p)
{
    digests_release(&p->digests);
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
    uint8_t key[KEY_TOKEN], *at;
    size_t size;
    uint32_t count;
    int status = digests_encode(&p->digests, &at, &size, &count);
    if (status != PAWL_OK)
        return status;
    put_u8(at, POSITION_VERSION);
    put_u8(at + 1, 0);
    put_u16(at + 2, p->partition);
    put_u32(at + 4, count);
    put_u64(at + 8, p->offset);
    put_u64(at + 16, p->place.position);
    put_u64(at + 24, p->place.hint);
    put_u64(at + 32, p->checksum);
    return pawl_store_put(store, STATE_SPACE, position_key(p, key), (pawl_bytes){at, size});
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
    if (d.bad || version == 0 || zero != 0 || partition != p->partition || count > DIGESTS_TABLES_MAX
        || d.left != count * DIGESTS_TABLE)
        return error_set(error, PAWL_ECORRUPT, "the position of partition %u is not one", p->partition);
    int status = digests_decode(&p->digests, (pawl_bytes){d.at, d.left}, count);
    if (status == PAWL_ECORRUPT)
        return error_set(error, status, "the position of partition %u has its tables in no order",
                         p->partition);
    if (status != PAWL_OK)
        return error_set(error, status, "no memory for the position of partition %u", p->partition);
    p->offset = offset;
    p->place = place;
    p->checksum = checksum;
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
    p->digests.count = 0;
    return PAWL_OK;
}
