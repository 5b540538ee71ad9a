#include "core/project/cursor.h"

#include "base/bytes.h"
#include "base/error.h"
#include "core/state/key.h"

#define FIXED ((size_t)56)

pawl_bytes cursor_key(uint16_t partition, uint16_t lane, uint32_t generation, uint8_t key[CURSOR_KEY])
{
    put_u32_sorted(key, TABLE_LANE);
    put_u64_sorted(key + 4, partition);
    key[12] = (uint8_t)(lane >> 8);
    key[13] = (uint8_t)lane;
    put_u32_sorted(key + 14, generation);
    return (pawl_bytes){key, CURSOR_KEY};
}

bool cursor_key_read(pawl_bytes key, uint16_t *ret_partition, uint16_t *ret_lane, uint32_t *ret_generation)
{
    const uint8_t *at = key.data;
    if (key.size != CURSOR_KEY || get_u32_sorted(at) != TABLE_LANE || get_u64_sorted(at + 4) > UINT16_MAX)
        return false;
    *ret_partition = (uint16_t)get_u64_sorted(at + 4);
    *ret_lane = get_u16_sorted(at + 12);
    *ret_generation = get_u32_sorted(at + 14);
    return true;
}

void cursor_init(struct cursor *c, const pawl_allocator *alloc, uint16_t partition, uint16_t lane,
                 uint32_t generation)
{
    *c = (struct cursor){.partition = partition, .lane = lane, .generation = generation};
    digests_init(&c->digests, alloc, FIXED);
}

void cursor_release(struct cursor *c)
{
    digests_release(&c->digests);
}

int cursor_write(struct cursor *c, pawl_store *store)
{
    uint8_t key[CURSOR_KEY], *at;
    size_t size;
    uint32_t count;
    int status = digests_encode(&c->digests, &at, &size, &count);
    if (status != PAWL_OK)
        return status;
    put_u8(at, CURSOR_VERSION);
    put_u8(at + 1, 0);
    put_u16(at + 2, 0);
    put_u32(at + 4, count);
    put_u64(at + 8, c->applied);
    put_u64(at + 16, c->place.position);
    put_u64(at + 24, c->place.hint);
    put_u64(at + 32, c->checksum);
    put_u64(at + 40, c->scanned);
    put_u64(at + 48, c->within);
    return pawl_store_put(store, STATE_SPACE, cursor_key(c->partition, c->lane, c->generation, key),
                          (pawl_bytes){at, size});
}

/* Everything but the tables, which are the rest of the bytes: ret_count of them. */
static int decode_head(struct decoder *d, struct cursor *ret_head, uint32_t *ret_count)
{
    uint8_t version = decode_u8(d), zero = decode_u8(d);
    uint16_t zeros = decode_u16(d);
    uint32_t count = decode_u32(d);
    struct cursor head = {.applied = decode_u64(d)};
    head.place.position = decode_u64(d);
    head.place.hint = decode_u64(d);
    head.checksum = decode_u64(d);
    head.scanned = decode_u64(d);
    head.within = decode_u64(d);
    if (!d->bad && version > CURSOR_VERSION)
        return PAWL_EVERSION;
    if (d->bad || version == 0 || zero != 0 || zeros != 0 || count > DIGESTS_TABLES_MAX
        || d->left != count * DIGESTS_TABLE)
        return PAWL_ECORRUPT;
    *ret_head = head;
    *ret_count = count;
    return PAWL_OK;
}

int cursor_peek(pawl_reader *reader, uint16_t partition, uint16_t lane, uint32_t generation,
                uint64_t *ret_applied, uint64_t *ret_scanned)
{
    uint8_t key[CURSOR_KEY];
    struct cursor head = {0};
    uint32_t count;
    pawl_bytes bytes;
    int status = pawl_store_get(reader, STATE_SPACE, cursor_key(partition, lane, generation, key), &bytes);
    if (status == PAWL_OK) {
        struct decoder d = decoder_over(bytes);
        status = decode_head(&d, &head, &count);
    }
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return status;
    *ret_applied = head.applied;
    *ret_scanned = head.scanned;
    return PAWL_OK;
}

static void move_to(struct cursor *c, const struct cursor *head)
{
    c->applied = head->applied;
    c->place = head->place;
    c->checksum = head->checksum;
    c->scanned = head->scanned;
    c->within = head->within;
}

int cursor_read(struct cursor *c, pawl_reader *reader, pawl_error *error)
{
    uint8_t key[CURSOR_KEY];
    struct cursor head = {0};
    uint32_t count;
    pawl_bytes bytes;
    int status =
        pawl_store_get(reader, STATE_SPACE, cursor_key(c->partition, c->lane, c->generation, key), &bytes);
    if (status == PAWL_ENOTFOUND) {
        move_to(c, &head);
        c->digests.count = 0;
        return PAWL_OK;
    }
    if (status == PAWL_OK) {
        struct decoder d = decoder_over(bytes);
        status = decode_head(&d, &head, &count);
        if (status == PAWL_OK)
            status = digests_decode(&c->digests, (pawl_bytes){d.at, d.left}, count);
    }
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read the cursor of lane %u.%u in partition %u: %s", c->lane,
                         c->generation, c->partition, pawl_status_text(status));
    move_to(c, &head);
    return PAWL_OK;
}
