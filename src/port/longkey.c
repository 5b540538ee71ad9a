#include "port/longkey.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

#define HASH_AT (PAWL_KEY_BYTES_PREFIX + 1)

_Static_assert(HASH_AT + 16 == PAWL_KEY_BYTES_SORTED, "a long key's stored form fills a stored key");

struct longkey longkey_place(pawl_bytes key, uint8_t room[PAWL_KEY_BYTES_SORTED])
{
    if (key.size <= PAWL_KEY_BYTES_SORTED)
        return (struct longkey){.stored = key, .whole = key};
    struct hash128 h = hash_wide(key);
    memcpy(room, key.data, PAWL_KEY_BYTES_PREFIX);
    room[PAWL_KEY_BYTES_PREFIX] = 0;
    put_u64_sorted(room + HASH_AT, h.high);
    put_u64_sorted(room + HASH_AT + 8, h.low);
    return (struct longkey){.stored = {room, PAWL_KEY_BYTES_SORTED}, .whole = key};
}

int longkey_compare(struct longkey a, struct longkey b)
{
    int order = bytes_compare(a.stored, b.stored);
    return order ? order : bytes_compare(a.whole, b.whole);
}

int longkey_compare_keys(pawl_bytes a, pawl_bytes b)
{
    if (a.size <= PAWL_KEY_BYTES_SORTED && b.size <= PAWL_KEY_BYTES_SORTED)
        return bytes_compare(a, b);
    uint8_t room_a[PAWL_KEY_BYTES_SORTED], room_b[PAWL_KEY_BYTES_SORTED];
    return longkey_compare(longkey_place(a, room_a), longkey_place(b, room_b));
}

int longkey_check_key(uint8_t space, pawl_bytes key)
{
    if (space >= PAWL_STORE_SPACES || key.size == 0)
        return PAWL_EINVAL;
    return key.size > PAWL_KEY_BYTES_MAX ? PAWL_ETOOBIG : PAWL_OK;
}

int longkey_check_row(uint8_t space, pawl_bytes key, pawl_bytes value)
{
    int status = longkey_check_key(space, key);
    if (status == PAWL_OK && value.size > PAWL_VALUE_BYTES_MAX)
        status = PAWL_ETOOBIG;
    return status;
}

int longkey_check_range(pawl_range range)
{
    if (range.space >= PAWL_STORE_SPACES)
        return PAWL_EINVAL;
    return range.from.size > PAWL_KEY_BYTES_MAX || range.to.size > PAWL_KEY_BYTES_MAX ? PAWL_ETOOBIG : PAWL_OK;
}

void longkey_range_init(struct longkey_range *r, pawl_range range)
{
    r->from = longkey_place(range.from, r->from_room);
    r->to = longkey_place(range.to, r->to_room);
}

int longkey_range_side(const struct longkey_range *r, struct longkey key)
{
    if (r->from.whole.size && longkey_compare(key, r->from) < 0)
        return -1;
    return r->to.whole.size && longkey_compare(key, r->to) >= 0;
}
