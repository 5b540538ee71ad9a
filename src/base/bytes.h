/* base/bytes.h: bytes on disk and on the wire are bytes.
 *
 * Integers are little-endian, written and read one by one; no struct is ever cast to a file. The plain put/get
 * functions are for a caller that has checked the room; the cursors below check by themselves. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <string.h>

#include <pawl/types.h>

static inline void put_u8(uint8_t *at, uint8_t v)
{
    at[0] = v;
}

static inline void put_u16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)v;
    at[1] = (uint8_t)(v >> 8);
}

static inline void put_u32(uint8_t *at, uint32_t v)
{
    put_u16(at, (uint16_t)v);
    put_u16(at + 2, (uint16_t)(v >> 16));
}

static inline void put_u64(uint8_t *at, uint64_t v)
{
    put_u32(at, (uint32_t)v);
    put_u32(at + 4, (uint32_t)(v >> 32));
}

static inline uint16_t get_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | (unsigned)at[1] << 8);
}

static inline uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)get_u16(at) | (uint32_t)get_u16(at + 2) << 16;
}

static inline uint64_t get_u64(const uint8_t *at)
{
    return (uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

/* Big-endian, for keys that must sort by memcmp. In halves, as above: a compiler sees one store in that, and in
 * a loop it does not. */
static inline void put_u16_sorted(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

static inline void put_u32_sorted(uint8_t *at, uint32_t v)
{
    put_u16_sorted(at, (uint16_t)(v >> 16));
    put_u16_sorted(at + 2, (uint16_t)v);
}

static inline void put_u64_sorted(uint8_t *at, uint64_t v)
{
    put_u32_sorted(at, (uint32_t)(v >> 32));
    put_u32_sorted(at + 4, (uint32_t)v);
}

static inline uint16_t get_u16_sorted(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t get_u32_sorted(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t get_u64_sorted(const uint8_t *at)
{
    return (uint64_t)get_u32_sorted(at) << 32 | get_u32_sorted(at + 4);
}

/* A cursor over bytes from outside. The first read past the end sets bad, and every read from then on gives
 * zeros, so a decoder reads all its fields and checks bad once at the end. */
struct decoder {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static inline struct decoder decoder_over(pawl_bytes bytes)
{
    return (struct decoder){.at = bytes.data, .left = bytes.size};
}

static inline const uint8_t *decode_raw(struct decoder *d, size_t size)
{
    if (d->bad || d->left < size) {
        d->bad = true;
        return NULL;
    }
    const uint8_t *at = d->at;
    d->at += size;
    d->left -= size;
    return at;
}

static inline uint8_t decode_u8(struct decoder *d)
{
    const uint8_t *at = decode_raw(d, 1);
    return at ? *at : 0;
}

static inline uint16_t decode_u16(struct decoder *d)
{
    const uint8_t *at = decode_raw(d, 2);
    return at ? get_u16(at) : 0;
}

static inline uint32_t decode_u32(struct decoder *d)
{
    const uint8_t *at = decode_raw(d, 4);
    return at ? get_u32(at) : 0;
}

static inline uint64_t decode_u64(struct decoder *d)
{
    const uint8_t *at = decode_raw(d, 8);
    return at ? get_u64(at) : 0;
}

/* The twin for writing: the first write past the end sets bad, and nothing more is written. */
struct encoder {
    uint8_t *start;
    uint8_t *at;
    size_t left;
    bool bad;
};

static inline struct encoder encoder_over(void *memory, size_t size)
{
    return (struct encoder){.start = memory, .at = memory, .left = size};
}

static inline uint8_t *encode_room(struct encoder *e, size_t size)
{
    if (e->bad || e->left < size) {
        e->bad = true;
        return NULL;
    }
    uint8_t *at = e->at;
    e->at += size;
    e->left -= size;
    return at;
}

static inline size_t encoder_size(const struct encoder *e)
{
    return (size_t)(e->at - e->start);
}

static inline void encode_u8(struct encoder *e, uint8_t v)
{
    uint8_t *at = encode_room(e, 1);
    if (at)
        *at = v;
}

static inline void encode_u16(struct encoder *e, uint16_t v)
{
    uint8_t *at = encode_room(e, 2);
    if (at)
        put_u16(at, v);
}

static inline void encode_u32(struct encoder *e, uint32_t v)
{
    uint8_t *at = encode_room(e, 4);
    if (at)
        put_u32(at, v);
}

static inline void encode_u64(struct encoder *e, uint64_t v)
{
    uint8_t *at = encode_room(e, 8);
    if (at)
        put_u64(at, v);
}

static inline void encode_raw(struct encoder *e, pawl_bytes bytes)
{
    uint8_t *at = encode_room(e, bytes.size);
    if (at && bytes.size)
        memcpy(at, bytes.data, bytes.size);
}

static inline bool bytes_equal(pawl_bytes a, pawl_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* memcmp order, a prefix before its extensions. */
static inline int bytes_compare(pawl_bytes a, pawl_bytes b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static inline bool bytes_all_zero(const void *data, size_t size)
{
    const uint8_t *p = data;
    return size == 0 || (p[0] == 0 && memcmp(p, p + 1, size - 1) == 0);
}

#endif
