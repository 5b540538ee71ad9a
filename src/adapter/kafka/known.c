/* adapter/kafka/known.c: what a log knows of its streams, as bytes, for the next log that is opened. */
#include "adapter/kafka/impl.h"
#include "base/bytes.h"
#include "base/hash.h"

#define VERSION 1

enum {
    AT_SUM = 0,
    AT_VERSION = 8,
    AT_POSITION = 9,
    AT_EPOCH = 17,
    AT_NODE = 25,
    AT_NONCE = 33,
    AT_GROUP0 = 41,
    AT_NEXT = 49,
    AT_CHAIN = 57,
    AT_BEFORE = 65,
    AT_ENDED = 73,
    AT_END = AT_ENDED + ENDED_MAX * 16
};
_Static_assert(AT_END == KAFKA_KNOWN_BYTES, "all bytes have a meaning");

static uint64_t sum_of(const struct stream *s, const uint8_t *bytes)
{
    return hash_checksum(s->seed, (pawl_bytes){bytes + AT_VERSION, AT_END - AT_VERSION});
}

/* Between two entries (K3). */
static void encode(const struct stream *s, uint8_t *bytes)
{
    const struct judge *j = &s->latest.judge;
    put_u8(bytes + AT_VERSION, VERSION);
    put_u64(bytes + AT_POSITION, j->at);
    put_u64(bytes + AT_EPOCH, j->epoch);
    put_u64(bytes + AT_NODE, j->node);
    put_u64(bytes + AT_NONCE, j->nonce);
    put_u64(bytes + AT_GROUP0, j->group0);
    put_u64(bytes + AT_NEXT, j->next);
    put_u64(bytes + AT_CHAIN, j->chain);
    put_u64(bytes + AT_BEFORE, s->latest.sum);
    for (size_t i = 0; i < ENDED_MAX; i++) {
        put_u64(bytes + AT_ENDED + i * 16, s->ended[i].epoch);
        put_u64(bytes + AT_ENDED + i * 16 + 8, s->ended[i].upto);
    }
    put_u64(bytes + AT_SUM, sum_of(s, bytes));
}

static bool decode(const struct stream *s, pawl_bytes known, struct judged *ret_judged)
{
    const uint8_t *bytes = known.data;
    if (known.size != AT_END || bytes[AT_VERSION] != VERSION || get_u64(bytes + AT_SUM) != sum_of(s, bytes))
        return false;
    struct judged judged = {.judge = {.at = get_u64(bytes + AT_POSITION),
                                      .epoch = get_u64(bytes + AT_EPOCH),
                                      .node = get_u64(bytes + AT_NODE),
                                      .nonce = get_u64(bytes + AT_NONCE),
                                      .group0 = get_u64(bytes + AT_GROUP0),
                                      .next = get_u64(bytes + AT_NEXT),
                                      .chain = get_u64(bytes + AT_CHAIN)},
                            .sum = get_u64(bytes + AT_BEFORE)};
    *ret_judged = judged;
    return judged.judge.at > 0 && judged.judge.next > 0;
}

void kafka_log_known(pawl_log *port, uint64_t records, kafka_known_visit visit, void *arg)
{
    struct kafka_log *log = (struct kafka_log *)port;
    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < log->stream_count; i++) {
        struct stream *s = log->streams[i];
        uint8_t bytes[AT_END];
        if (s->corrupt || s->latest.judge.at < s->told + records)
            continue;
        encode(s, bytes);
        s->told = s->latest.judge.at;
        visit(arg, s->id, (pawl_bytes){bytes, sizeof bytes});
    }
    pthread_mutex_unlock(&log->lock);
}

int kafka_log_learn(pawl_log *port, pawl_stream stream, pawl_bytes known)
{
    struct kafka_log *log = (struct kafka_log *)port;
    struct stream *s;
    struct judged judged;
    if (!pawl_stream_valid(stream))
        return PAWL_EINVAL;
    pthread_mutex_lock(&log->lock);
    int status = stream_find(log, stream, &s);
    if (status == PAWL_OK && !decode(s, known, &judged))
        status = PAWL_EINVAL;
    if (status == PAWL_OK && judged.judge.at > s->latest.judge.at) {
        const uint8_t *ended = (const uint8_t *)known.data + AT_ENDED;
        stream_keep_resume_point(s, &judged);
        for (size_t i = 0; i < ENDED_MAX; i++)
            s->ended[i] = (struct find_fact){get_u64(ended + i * 16), get_u64(ended + i * 16 + 8)};
        s->told = judged.judge.at;
    }
    pthread_mutex_unlock(&log->lock);
    return status;
}
