#include "core/view/view_state.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/state/position.h"

#define FIXED    ((size_t)56)
#define COMPLETE 1

void view_state_init(struct view_state *s, const pawl_allocator *alloc, uint16_t partition, uint32_t table,
                     uint32_t base)
{
    *s = (struct view_state){.partition = partition, .table = table, .base = base};
    coverage_init(&s->coverage, alloc);
}

/* Its memory becomes a copy of these bytes. PAWL_ENOMEM: it is as it was. */
static int replace_bytes(const struct view_state *s, pawl_bytes *bytes, pawl_bytes by)
{
    void *copy = by.size ? mem_new(s->coverage.alloc, 1, by.size) : NULL;
    if (by.size && !copy)
        return PAWL_ENOMEM;
    if (by.size)
        memcpy(copy, by.data, by.size);
    mem_free(s->coverage.alloc, (void *)(uintptr_t)bytes->data, bytes->size);
    *bytes = (pawl_bytes){copy, by.size};
    return PAWL_OK;
}

void view_state_forget(struct view_state *s)
{
    (void)replace_bytes(s, &s->example, (pawl_bytes){0});
    s->why[0] = '\0';
}

/* What is read from the store, emptied. */
static void clear(struct view_state *s)
{
    view_state_forget(s);
    (void)replace_bytes(s, &s->twin, (pawl_bytes){0});
    coverage_release(&s->coverage);
    view_state_init(s, s->coverage.alloc, s->partition, s->table, s->base);
}

void view_state_release(struct view_state *s)
{
    clear(s);
}

pawl_bytes view_state_key(uint16_t partition, uint32_t table, uint8_t key[VIEW_STATE_KEY])
{
    put_u32_sorted(key, TABLE_VIEW);
    put_u64_sorted(key + 4, partition);
    put_u32_sorted(key + 12, table);
    return (pawl_bytes){key, VIEW_STATE_KEY};
}

bool view_state_key_read(pawl_bytes key, uint16_t *ret_partition, uint32_t *ret_table)
{
    const uint8_t *at = key.data;
    if (key.size != VIEW_STATE_KEY || get_u32_sorted(at) != TABLE_VIEW || get_u64_sorted(at + 4) > UINT16_MAX)
        return false;
    *ret_partition = (uint16_t)get_u64_sorted(at + 4);
    *ret_table = get_u32_sorted(at + 12);
    return true;
}

int view_state_note(struct view_state *s, pawl_bytes base_key, const char *why)
{
    if (s->example.data)
        return PAWL_OK;
    int status = replace_bytes(s, &s->example, base_key);
    if (status == PAWL_OK)
        snprintf(s->why, sizeof s->why, "%s", why);
    return status;
}

int view_state_note_equal(struct view_state *s, pawl_bytes key)
{
    int status = replace_bytes(s, &s->twin, key);
    s->equal += status == PAWL_OK;
    return status;
}

static int decode_example(struct view_state *s, struct decoder *d)
{
    size_t size = decode_u32(d);
    const uint8_t *key = size <= PAWL_KEY_BYTES_MAX ? decode_raw(d, size) : NULL;
    size_t words = decode_u32(d);
    const uint8_t *why = words < VIEW_WHY_MAX ? decode_raw(d, words) : NULL;
    if (d->bad || !key || !why)
        return PAWL_ECORRUPT;
    char text[VIEW_WHY_MAX] = {0};
    memcpy(text, why, words);
    return size ? view_state_note(s, (pawl_bytes){key, size}, text) : PAWL_OK;
}

static int decode_twin(struct view_state *s, struct decoder *d)
{
    size_t size = decode_u32(d);
    const uint8_t *key = size <= PAWL_KEY_BYTES_MAX ? decode_raw(d, size) : NULL;
    return d->bad || !key ? PAWL_ECORRUPT : replace_bytes(s, &s->twin, (pawl_bytes){key, size});
}

static int decode(struct view_state *s, struct decoder *d)
{
    uint8_t flags = decode_u8(d);
    uint16_t zero = decode_u16(d);
    s->base = decode_u32(d);
    s->digest.low = decode_u64(d);
    s->digest.high = decode_u64(d);
    s->digest.rows = decode_u64(d);
    s->scanned = decode_u64(d);
    s->failed = decode_u64(d);
    s->equal = decode_u64(d);
    s->complete = flags & COMPLETE;
    int status = d->bad || flags > COMPLETE || zero ? PAWL_ECORRUPT : decode_example(s, d);
    if (status == PAWL_OK)
        status = decode_twin(s, d);
    if (status == PAWL_OK)
        status = coverage_decode(&s->coverage, d);
    return status == PAWL_OK && d->left > 0 ? PAWL_ECORRUPT : status;
}

int view_state_decode(struct view_state *s, pawl_bytes bytes, pawl_error *error)
{
    uint32_t base = s->base;
    struct decoder d = decoder_over(bytes);
    clear(s);
    uint8_t version = decode_u8(&d);
    if (!d.bad && version > VIEW_STATE_VERSION)
        return error_set(error, PAWL_EVERSION, "the state of view table %u is of version %u", s->table,
                         version);
    int status = d.bad || version == 0 ? PAWL_ECORRUPT : decode(s, &d);
    if (status == PAWL_OK && base != 0 && s->base != base)
        status = PAWL_ECORRUPT;
    if (status == PAWL_OK)
        return status;
    s->base = base;
    clear(s);
    return status == PAWL_ECORRUPT ? error_set(
               error, status, "the state of view table %u in partition %u is not one", s->table, s->partition)
                                   : error_set(error, status, "no memory for the state of a view");
}

int view_state_read(struct view_state *s, pawl_reader *reader, pawl_error *error)
{
    uint8_t key[VIEW_STATE_KEY];
    pawl_bytes bytes;
    int status = pawl_store_get(reader, VIEW_SPACE, view_state_key(s->partition, s->table, key), &bytes);
    if (status == PAWL_OK)
        return view_state_decode(s, bytes, error);
    clear(s);
    return status == PAWL_ENOTFOUND
               ? status
               : error_set(error, status, "cannot read the state of view table %u", s->table);
}

int view_state_peek(pawl_reader *reader, uint16_t partition, uint32_t table, bool *ret_complete)
{
    uint8_t key[VIEW_STATE_KEY];
    pawl_bytes bytes;
    int status = pawl_store_get(reader, VIEW_SPACE, view_state_key(partition, table, key), &bytes);
    if (status != PAWL_OK)
        return status;
    const uint8_t *at = bytes.data;
    if (bytes.size >= FIXED && at[0] > VIEW_STATE_VERSION)
        return PAWL_EVERSION;
    if (bytes.size < FIXED || at[0] == 0 || at[1] > COMPLETE)
        return PAWL_ECORRUPT;
    *ret_complete = at[1] == COMPLETE;
    return PAWL_OK;
}

int view_state_write(const struct view_state *s, pawl_store *store)
{
    const pawl_allocator *alloc = s->coverage.alloc;
    size_t words = strlen(s->why);
    size_t size = FIXED + 12 + s->example.size + words + s->twin.size + coverage_encoded_size(&s->coverage);
    uint8_t key[VIEW_STATE_KEY];
    void *bytes = mem_new(alloc, 1, size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(bytes, size);
    encode_u8(&e, VIEW_STATE_VERSION);
    encode_u8(&e, s->complete ? COMPLETE : 0);
    encode_u16(&e, 0);
    encode_u32(&e, s->base);
    encode_u64(&e, s->digest.low);
    encode_u64(&e, s->digest.high);
    encode_u64(&e, s->digest.rows);
    encode_u64(&e, s->scanned);
    encode_u64(&e, s->failed);
    encode_u64(&e, s->equal);
    encode_u32(&e, (uint32_t)s->example.size);
    encode_raw(&e, s->example);
    encode_u32(&e, (uint32_t)words);
    encode_raw(&e, (pawl_bytes){s->why, words});
    encode_u32(&e, (uint32_t)s->twin.size);
    encode_raw(&e, s->twin);
    coverage_encode(&s->coverage, &e);
    int status = pawl_store_put(store, VIEW_SPACE, view_state_key(s->partition, s->table, key),
                                (pawl_bytes){bytes, size});
    mem_free(alloc, bytes, size);
    return status;
}

pawl_range view_partition_range(uint32_t partitions, uint16_t partition, uint8_t space, uint32_t table,
                                uint8_t from[KEY_TOKEN], uint8_t to[KEY_TOKEN])
{
    struct position position = {.partition = partition};
    pawl_range range = position_range(&position, partitions, table, from, to);
    range.space = space;
    return range;
}
