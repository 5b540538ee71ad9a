#include "adapter/kafka/skip.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "port/log.h"

#define HEAD    8
#define VERSION 1

static const uint8_t magic[3] = {'P', 'W', 'S'};

_Static_assert(sizeof(((pawl_cluster_skipped *)0)->who) == 256
                   && sizeof(((pawl_cluster_skipped *)0)->reason) == 256,
               "a text's length fits into a byte");

void kafka_skips_topic(const char *cluster, char *topic)
{
    snprintf(topic, KAFKA_TOPIC_MAX, "%s.skips", cluster);
}

uint64_t kafka_skip_hash(pawl_bytes value)
{
    return hash_checksum(0, value);
}

static void encode_text(struct encoder *e, const char *text)
{
    size_t size = strnlen(text, 255);
    encode_u8(e, (uint8_t)size);
    encode_raw(e, (pawl_bytes){text, size});
}

size_t kafka_skip_encode(const struct kafka_skip *skip, uint64_t seed, uint8_t *to)
{
    const pawl_cluster_skipped *s = &skip->shown;
    struct encoder e = encoder_over(to + HEAD, KAFKA_SKIP_BYTES_MAX - HEAD);
    encode_raw(&e, (pawl_bytes){magic, sizeof magic});
    encode_u8(&e, VERSION);
    encode_u8(&e, s->stream.kind);
    encode_u8(&e, s->damaged);
    encode_u16(&e, s->stream.partition);
    encode_u16(&e, s->stream.lane);
    encode_u16(&e, 0);
    encode_u32(&e, s->stream.generation);
    encode_u64(&e, s->at);
    encode_u64(&e, skip->hash);
    encode_u64(&e, (uint64_t)s->time.ns);
    encode_text(&e, s->who);
    encode_text(&e, s->reason);
    size_t size = (size_t)(e.at - (to + HEAD));
    put_u64(to, hash_checksum(seed, (pawl_bytes){to + HEAD, size}));
    return HEAD + size;
}

static bool decode_text(struct decoder *d, char text[256])
{
    size_t size = decode_u8(d);
    const uint8_t *bytes = decode_raw(d, size);
    if (!bytes || d->bad || memchr(bytes, 0, size))
        return false;
    memcpy(text, bytes, size);
    text[size] = '\0';
    return true;
}

bool kafka_skip_decode(pawl_bytes value, uint64_t seed, struct kafka_skip *ret_skip)
{
    struct kafka_skip skip = {0};
    pawl_cluster_skipped *s = &skip.shown;
    struct decoder d = decoder_over(value);
    uint64_t sum = decode_u64(&d);
    const uint8_t *head = decode_raw(&d, sizeof magic);
    if (d.bad || !head || memcmp(head, magic, sizeof magic) != 0 || decode_u8(&d) != VERSION
        || sum != hash_checksum(seed, (pawl_bytes){(const uint8_t *)value.data + HEAD, value.size - HEAD}))
        return false;
    s->stream.kind = decode_u8(&d);
    uint8_t damaged = decode_u8(&d);
    s->damaged = damaged == 1;
    s->stream.partition = decode_u16(&d);
    s->stream.lane = decode_u16(&d);
    uint16_t zero = decode_u16(&d);
    s->stream.generation = decode_u32(&d);
    s->at = decode_u64(&d);
    skip.hash = decode_u64(&d);
    s->time.ns = (int64_t)decode_u64(&d);
    if (!decode_text(&d, s->who) || !decode_text(&d, s->reason) || d.bad || d.left != 0 || zero != 0
        || damaged > 1 || !pawl_stream_valid(s->stream))
        return false;
    *ret_skip = skip;
    return true;
}
