#include "adapter/journal/record.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/hash.h"

_Static_assert(RECORD_HEADER % RECORD_ALIGN == 0, "a body starts aligned");
_Static_assert(RECORD_BYTES_MAX < UINT32_MAX, "a length fits its field");

enum {
    AT_CHECKSUM = 0,
    AT_CHAIN = 8,
    AT_LSN = 16,
    AT_DURABLE = 24,
    AT_LENGTH = 32,
    AT_TYPE = 36,
    AT_KIND = 37,
    AT_STREAM = 38,
    AT_ZERO = 39,
    AT_PARTITION = 40,
    AT_LANE = 42,
    AT_GENERATION = 44,
    AT_OFFSET = 48,
    AT_GUARD = 56,
};

static uint64_t guard_of(const uint8_t *at, uint64_t seed)
{
    return hash_checksum(seed, (pawl_bytes){at + AT_CHAIN, AT_GUARD - AT_CHAIN});
}

uint64_t record_encode(struct record *r, uint64_t seed, uint8_t *at)
{
    assert(r->body.size <= PAWL_ENTRY_BYTES_MAX);
    size_t length = RECORD_HEADER + r->body.size;
    size_t padded = record_size(r->body.size);
    put_u64(at + AT_CHAIN, r->chain);
    put_u64(at + AT_LSN, r->lsn);
    put_u64(at + AT_DURABLE, r->durable);
    put_u32(at + AT_LENGTH, (uint32_t)length);
    put_u8(at + AT_TYPE, (uint8_t)r->type);
    put_u8(at + AT_KIND, r->kind);
    put_u8(at + AT_STREAM, r->stream.kind);
    put_u8(at + AT_ZERO, 0);
    put_u16(at + AT_PARTITION, r->stream.partition);
    put_u16(at + AT_LANE, r->stream.lane);
    put_u32(at + AT_GENERATION, r->stream.generation);
    put_u64(at + AT_OFFSET, r->offset);
    put_u64(at + AT_GUARD, guard_of(at, seed));
    if (r->body.size)
        memcpy(at + RECORD_HEADER, r->body.data, r->body.size);
    memset(at + length, 0, padded - length);
    r->checksum = hash_checksum(seed, (pawl_bytes){at + AT_CHAIN, padded - AT_CHAIN});
    put_u64(at + AT_CHECKSUM, r->checksum);
    return r->checksum;
}

bool record_guarded(const uint8_t *at, uint64_t seed)
{
    return get_u64(at + AT_GUARD) == guard_of(at, seed);
}

static bool head_is_known(const struct record *r, size_t length, uint8_t zero)
{
    if (length < RECORD_HEADER || length > RECORD_BYTES_MAX || zero != 0 || r->lsn == 0 || r->durable >= r->lsn)
        return false;
    size_t body = length - RECORD_HEADER;
    switch (r->type) {
    case RECORD_ENTRY: return r->offset != 0 && pawl_stream_valid(r->stream);
    case RECORD_CLAIM:
        return r->offset != 0 && r->kind == 0 && body == CLAIM_BODY && pawl_stream_valid(r->stream);
    case RECORD_WATERMARK:
        return r->offset == 0 && r->kind <= WATERMARK_SEALS && body == 0
               && pawl_stream_equal(r->stream, (pawl_stream){0});
    default: return false;
    }
}

/* The record's last word holds all of it. */
static bool padding_is_zero(const uint8_t *at, size_t length, size_t padded)
{
    return length == padded || get_u64(at + padded - RECORD_ALIGN) >> (8 * (length % RECORD_ALIGN)) == 0;
}

enum record_verdict record_decode(pawl_bytes bytes, uint64_t seed, struct record *ret_record, size_t *ret_need)
{
    const uint8_t *at = bytes.data;
    if (bytes.size < RECORD_HEADER) {
        *ret_need = RECORD_HEADER;
        return RECORD_SHORT;
    }
    if (get_u64(at + AT_CHECKSUM) == 0 && bytes_all_zero(at, RECORD_HEADER))
        return RECORD_NONE;

    size_t length = get_u32(at + AT_LENGTH);
    struct record *r = ret_record;
    r->checksum = get_u64(at + AT_CHECKSUM);
    r->chain = get_u64(at + AT_CHAIN);
    r->lsn = get_u64(at + AT_LSN);
    r->durable = get_u64(at + AT_DURABLE);
    r->type = (enum record_type)at[AT_TYPE];
    r->kind = at[AT_KIND];
    r->stream.kind = at[AT_STREAM];
    r->stream.partition = get_u16(at + AT_PARTITION);
    r->stream.lane = get_u16(at + AT_LANE);
    r->stream.generation = get_u32(at + AT_GENERATION);
    r->offset = get_u64(at + AT_OFFSET);
    r->body = (pawl_bytes){at + RECORD_HEADER, length - RECORD_HEADER};
    size_t padded = (length + RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
    /* The checksum covers the guard, so the guard is checked only where the checksum cannot be computed yet. */
    if (length < RECORD_HEADER || padded > bytes.size) {
        if (!record_guarded(at, seed) || !head_is_known(r, length, at[AT_ZERO]))
            return RECORD_BAD_HEAD;
        *ret_need = padded;
        return RECORD_SHORT;
    }
    if (hash_checksum(seed, (pawl_bytes){at + AT_CHAIN, padded - AT_CHAIN}) != r->checksum)
        return record_guarded(at, seed) ? RECORD_BAD_SUM : RECORD_BAD_HEAD;
    if (!head_is_known(r, length, at[AT_ZERO]) || !padding_is_zero(at, length, padded))
        return RECORD_BAD_HEAD;
    *ret_need = padded;
    return RECORD_VALID;
}

size_t record_claimed_size(pawl_bytes bytes)
{
    const uint8_t *at = bytes.data;
    if (bytes.size < RECORD_HEADER)
        return 0;
    size_t length = get_u32(at + AT_LENGTH);
    return length < RECORD_HEADER ? 0 : (length + RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
}

const char *record_verdict_text(enum record_verdict verdict)
{
    switch (verdict) {
    case RECORD_VALID: return "valid";
    case RECORD_NONE: return "nothing is written there";
    case RECORD_SHORT: return "the file ends inside the record";
    case RECORD_BAD_HEAD: return "its header is damaged";
    case RECORD_BAD_SUM: return "its bytes do not match its checksum";
    }
    return "?";
}

void claim_body_encode(uint64_t epoch, uint64_t group0, uint8_t body[CLAIM_BODY])
{
    put_u64(body, epoch);
    put_u64(body + 8, group0);
}

bool claim_body_decode(pawl_bytes body, uint64_t *ret_epoch, uint64_t *ret_group0)
{
    struct decoder d = decoder_over(body);
    uint64_t epoch = decode_u64(&d), group0 = decode_u64(&d);
    if (d.bad || d.left != 0 || epoch == 0)
        return false;
    *ret_epoch = epoch;
    *ret_group0 = group0;
    return true;
}
