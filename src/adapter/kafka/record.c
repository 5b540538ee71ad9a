#include "adapter/kafka/record.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/hash.h"

enum {
    AT_SUM = 0,
    AT_MAGIC = 8,
    AT_TYPE = 12,
    AT_KIND = 13,
    AT_ZERO = 14,
    AT_EPOCH = 16,
    AT_A = 24,
    AT_B = 32,
    AT_C = 40
};

static const uint8_t magic[3] = {'P', 'W', 'L'};

uint64_t kafka_record_seed(const char *topic, uint16_t partition)
{
    uint8_t number[2];
    put_u16(number, partition);
    return hash_checksum(hash_checksum(0, (pawl_bytes){topic, strlen(topic)}),
                         (pawl_bytes){number, sizeof number});
}

void kafka_record_encode(struct kafka_record *r, uint64_t seed, uint8_t *to)
{
    struct claim_record *h = &r->head;
    bool claim = h->kind == CLAIM_KIND_CLAIM;
    assert(claim || (h->kind == CLAIM_KIND_EVENT && h->fragment < r->fragments));
    assert(r->body.size <= (claim ? 0 : KAFKA_BODY_BYTES_MAX));
    memcpy(to + AT_MAGIC, magic, sizeof magic);
    put_u8(to + AT_MAGIC + sizeof magic, KAFKA_RECORD_VERSION);
    put_u8(to + AT_TYPE, h->kind);
    put_u8(to + AT_KIND, claim ? 0 : r->kind);
    put_u16(to + AT_ZERO, 0);
    put_u64(to + AT_EPOCH, h->epoch);
    put_u64(to + AT_A, claim ? h->group0 : h->offset);
    put_u64(to + AT_B, claim ? h->node : h->chain);
    if (claim) {
        put_u64(to + AT_C, h->nonce);
    } else {
        put_u32(to + AT_C, h->fragment);
        put_u32(to + AT_C + 4, r->fragments);
    }
    if (r->body.size > 0)
        memcpy(to + KAFKA_RECORD_HEADER, r->body.data, r->body.size);
    h->checksum =
        hash_checksum(seed, (pawl_bytes){to + AT_MAGIC, KAFKA_RECORD_HEADER - AT_MAGIC + r->body.size});
    put_u64(to + AT_SUM, h->checksum);
}

static bool makes_sense(const struct kafka_record *r)
{
    const struct claim_record *h = &r->head;
    if (h->epoch == 0)
        return false;
    if (h->kind == CLAIM_KIND_CLAIM)
        return r->body.size == 0 && r->kind == 0;
    if (h->kind != CLAIM_KIND_EVENT || h->offset == 0 || h->fragment >= r->fragments
        || r->fragments > KAFKA_FRAGMENTS_MAX)
        return false;
    if (!h->last)
        return r->body.size == KAFKA_BODY_BYTES_MAX;
    return r->body.size <= KAFKA_BODY_BYTES_MAX && (r->fragments == 1 || r->body.size > 0);
}

enum kafka_record_fault kafka_record_decode(pawl_bytes value, uint64_t seed, struct kafka_record *ret_record)
{
    const uint8_t *at = value.data;
    if (value.size < KAFKA_RECORD_HEADER || memcmp(at + AT_MAGIC, magic, sizeof magic) != 0)
        return KAFKA_RECORD_FOREIGN;
    if (at[AT_MAGIC + sizeof magic] > KAFKA_RECORD_VERSION)
        return KAFKA_RECORD_NEWER;
    struct kafka_record r = {.kind = at[AT_KIND],
                             .body = {at + KAFKA_RECORD_HEADER, value.size - KAFKA_RECORD_HEADER}};
    struct claim_record *h = &r.head;
    h->checksum = get_u64(at + AT_SUM);
    if (h->checksum != hash_checksum(seed, (pawl_bytes){at + AT_MAGIC, value.size - AT_MAGIC}))
        return KAFKA_RECORD_UNSOUND;
    h->kind = at[AT_TYPE];
    h->epoch = get_u64(at + AT_EPOCH);
    if (h->kind == CLAIM_KIND_CLAIM) {
        h->group0 = get_u64(at + AT_A);
        h->node = get_u64(at + AT_B);
        h->nonce = get_u64(at + AT_C);
    } else {
        h->offset = get_u64(at + AT_A);
        h->chain = get_u64(at + AT_B);
        h->fragment = get_u32(at + AT_C);
        r.fragments = get_u32(at + AT_C + 4);
        h->last = h->fragment + 1 == r.fragments;
    }
    if (at[AT_MAGIC + sizeof magic] != KAFKA_RECORD_VERSION || get_u16(at + AT_ZERO) != 0 || !makes_sense(&r))
        return KAFKA_RECORD_NONSENSE;
    *ret_record = r;
    return KAFKA_RECORD_GOOD;
}

const char *kafka_record_fault_text(enum kafka_record_fault fault)
{
    switch (fault) {
    case KAFKA_RECORD_GOOD: return "good";
    case KAFKA_RECORD_FOREIGN: return "it was not written by Pawl";
    case KAFKA_RECORD_NEWER: return "it was written by a newer Pawl";
    case KAFKA_RECORD_UNSOUND: return "its checksum is not that of its bytes in this place";
    case KAFKA_RECORD_NONSENSE: return "it checks, but no Pawl writes such a record";
    }
    return "?";
}
