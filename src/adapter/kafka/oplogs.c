#include "adapter/kafka/oplogs.h"

#include <stdio.h>
#include <string.h>

#include "adapter/kafka/impl.h"
#include "adapter/kafka/side_topic.h"
#include "adapter/kafka/topics.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

#define HEAD    8
#define VERSION 1
#define FRESH_NS                                                                                               \
    ((uint64_t)1000 * 1000 * 1000) /* a follow of a log that nobody has claimed asks five times a second */

static const uint8_t magic[3] = {'P', 'W', 'O'};

void kafka_oplogs_topic(const char *cluster, char *topic)
{
    snprintf(topic, KAFKA_TOPIC_MAX, "%s.oplogs", cluster);
}

/* --- bytes --- */

void kafka_oplog_encode(pawl_stream stream, uint64_t seed, uint8_t *to)
{
    struct encoder e = encoder_over(to + HEAD, KAFKA_OPLOG_BYTES - HEAD);
    encode_raw(&e, (pawl_bytes){magic, sizeof magic});
    encode_u8(&e, VERSION);
    encode_u16(&e, stream.lane);
    encode_u16(&e, 0);
    encode_u32(&e, stream.generation);
    put_u64(to, hash_checksum(seed, (pawl_bytes){to + HEAD, KAFKA_OPLOG_BYTES - HEAD}));
}

bool kafka_oplog_decode(pawl_bytes value, uint64_t seed, pawl_stream *ret_stream)
{
    pawl_stream stream = {.kind = PAWL_STREAM_OPLOG};
    struct decoder d = decoder_over(value);
    uint64_t sum = decode_u64(&d);
    const uint8_t *head = decode_raw(&d, sizeof magic);
    if (value.size != KAFKA_OPLOG_BYTES || memcmp(head, magic, sizeof magic) != 0 || decode_u8(&d) != VERSION
        || sum != hash_checksum(seed, (pawl_bytes){(const uint8_t *)value.data + HEAD, value.size - HEAD}))
        return false;
    stream.lane = decode_u16(&d);
    uint16_t zero = decode_u16(&d);
    stream.generation = decode_u32(&d);
    if (zero != 0 || !pawl_stream_valid(stream))
        return false;
    *ret_stream = stream;
    return true;
}

/* --- the list --- */

bool oplogs_have(const struct oplog_list *list, pawl_stream stream)
{
    stream.partition = 0;
    for (size_t i = 0; i < list->count; i++)
        if (pawl_stream_equal(list->items[i], stream))
            return true;
    return false;
}

static int add(struct oplog_list *list, pawl_stream stream, pawl_error *error)
{
    stream.partition = 0;
    if (oplogs_have(list, stream))
        return PAWL_OK;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 8;
        void *items =
            mem_resize(list->alloc, list->items, list->room * sizeof *list->items, room * sizeof *list->items);
        if (!items)
            return error_set(error, PAWL_ENOMEM, "no memory for a list of operation logs");
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = stream;
    return PAWL_OK;
}

struct taking {
    struct oplog_list *list;
    uint64_t seed;
};

static int take(void *arg, pawl_bytes value, pawl_error *error)
{
    const struct taking *t = arg;
    pawl_stream stream;
    if (!kafka_oplog_decode(value, t->seed, &stream))
        return PAWL_OK; /* not one of ours, or damaged: if the topic is there, the next claim lists it again */
    return add(t->list, stream, error);
}

int oplogs_load(rd_kafka_t *client, const struct kafka_url *url, struct oplog_list *list, pawl_error *error)
{
    char topic[KAFKA_TOPIC_MAX];
    uint64_t now = clock_boot_ns();
    kafka_oplogs_topic(url->cluster, topic);
    struct taking taking = {.list = list, .seed = kafka_record_seed(topic, 0)};
    int status = side_topic_read(client, url, topic, take, &taking, error);
    if (status == PAWL_OK)
        list->read_at = now;
    return status;
}

void oplogs_release(struct oplog_list *list)
{
    mem_free(list->alloc, list->items, list->room * sizeof *list->items);
    *list = (struct oplog_list){0};
}

int oplog_lost(const char *cluster, const char *topic, pawl_error *error)
{
    return error_set(error, PAWL_ECORRUPT,
                     "topic %s was deleted, and the operations in it are lost (%s.oplogs lists the operation "
                     "logs that were made)",
                     topic, cluster);
}

/* --- reading --- */

/* *ret_known: it is listed. Without log->lock. */
static int look_up(struct kafka_log *log, pawl_stream stream, bool *ret_known, pawl_error *error)
{
    int status = PAWL_OK;
    pthread_mutex_lock(&log->oplogs_lock);
    bool known = oplogs_have(&log->oplogs, stream);
    if (!known && (log->oplogs.read_at == 0 || clock_boot_ns() - log->oplogs.read_at > FRESH_NS)) {
        status = oplogs_load(log->front, &log->url, &log->oplogs, error);
        known = oplogs_have(&log->oplogs, stream);
    }
    pthread_mutex_unlock(&log->oplogs_lock);
    *ret_known = known;
    return status;
}

int log_find_topic(struct kafka_log *log, const char *topic, pawl_stream stream, uint32_t *ret_partitions,
                   pawl_error *error)
{
    bool may_be_missing = stream.kind == PAWL_STREAM_OPLOG, known = false;
    uint32_t partitions = 0;
    int status = topic_find(log->front, &log->url, topic, stream.partition, may_be_missing, &partitions, error);
    if (status == PAWL_OK && partitions == 0 && !log->trust_topics)
        status = look_up(log, stream, &known, error);
    if (status == PAWL_OK && known) { /* the broker that was asked may not know a new topic yet */
        status = topic_find(log->front, &log->url, topic, stream.partition, false, &partitions, error);
        if (status == PAWL_ENOTFOUND)
            status = oplog_lost(log->url.cluster, topic, error);
    }
    if (status == PAWL_OK)
        *ret_partitions = partitions;
    return status;
}

/* --- claiming --- */

/* With as many partitions as plog. */
static int make_topic(const struct stream *s, pawl_error *error)
{
    struct kafka_log *log = s->log;
    char plog[KAFKA_TOPIC_MAX];
    uint32_t partitions;
    kafka_topic_of(log->url.cluster, (pawl_stream){.kind = PAWL_STREAM_PLOG}, plog);
    int status = topic_find(log->front, &log->url, plog, 0, false, &partitions, error);
    return status == PAWL_OK ? topic_create(log->front, &log->url, s->topic, partitions, error) : status;
}

static int list_it(const struct stream *s, pawl_error *error)
{
    struct kafka_log *log = s->log;
    char topic[KAFKA_TOPIC_MAX];
    uint8_t bytes[KAFKA_OPLOG_BYTES];
    kafka_oplogs_topic(log->url.cluster, topic);
    kafka_oplog_encode(s->id, kafka_record_seed(topic, 0), bytes);
    int status = side_topic_append(log->front, &log->url, topic, (pawl_bytes){bytes, sizeof bytes},
                                   "the name of an operation log", error);
    return status == PAWL_OK ? add(&log->oplogs, s->id, error) : status;
}

static int make_and_list(const struct stream *s, bool seen, pawl_error *error)
{
    struct kafka_log *log = s->log;
    uint32_t partitions = 0;
    int status = topic_find(log->front, &log->url, s->topic, 0, !seen, &partitions, error);
    if (status == PAWL_OK && partitions == 0)
        status = make_topic(s, error);
    return status == PAWL_OK ? list_it(s, error) : status;
}

/* With the lock for all of it: the claims of the other partitions wait, and then have nothing to do. */
int oplog_prepare(const struct stream *s, bool seen, pawl_error *error)
{
    struct kafka_log *log = s->log;
    int status = PAWL_OK;
    pthread_mutex_lock(&log->oplogs_lock);
    if (!oplogs_have(&log->oplogs, s->id))
        status = oplogs_load(log->front, &log->url, &log->oplogs, error);
    if (status == PAWL_OK && !oplogs_have(&log->oplogs, s->id))
        status = make_and_list(s, seen, error);
    pthread_mutex_unlock(&log->oplogs_lock);
    return status;
}
