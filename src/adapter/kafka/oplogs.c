#include "adapter/kafka/oplogs.h"

#include <inttypes.h>
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
#define NEW_NS ((uint64_t)2 * 1000 * 1000 * 1000) /* by then all brokers know a topic that was just made */
/* Looks that lie further apart tell nothing of between: 10 s, and as long as one look may take (topics.c). */
#define GAP_NS ((uint64_t)20 * 1000 * 1000 * 1000)

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

static int take(void *arg, pawl_bytes value, uint64_t seed, pawl_error *error)
{
    pawl_stream stream;
    if (!kafka_oplog_decode(value, seed, &stream))
        return PAWL_OK; /* not one of ours, or damaged: if the topic is there, the next claim lists it again */
    return add(arg, stream, error);
}

/* PAWL_ENOTFOUND: the brokers do not know it. */
static int load_once(rd_kafka_t *client, const struct kafka_url *url, struct oplog_list *list,
                     pawl_error *error)
{
    char topic[KAFKA_TOPIC_MAX];
    uint64_t now = clock_boot_ns(), first = 0;
    kafka_oplogs_topic(url->cluster, topic);
    int status = side_topic_read(client, url, topic, take, list, &first, error);
    if (status == PAWL_OK) {
        list->read_at = now;
        list->there = true;
        list->cut = first > 0;
    }
    return status;
}

/* For a while, because a broker that has just started may know less than others (L5). */
static int load_patiently(rd_kafka_t *client, const struct kafka_url *url, struct oplog_list *list,
                          pawl_error *error)
{
    uint64_t until = clock_boot_ns() + NEW_NS;
    int status = load_once(client, url, list, error);
    while (status == PAWL_ENOTFOUND && clock_boot_ns() < until) {
        wait_pause(LOOK_AGAIN_NS);
        status = load_once(client, url, list, error);
    }
    return status;
}

int oplogs_load(rd_kafka_t *client, const struct kafka_url *url, struct oplog_list *list, pawl_error *error)
{
    int status = load_patiently(client, url, list, error);
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

void oplogs_release(struct oplog_list *list)
{
    mem_free(list->alloc, list->items, list->room * sizeof *list->items);
    *list = (struct oplog_list){0};
}

/* --- topics that are missing --- */

static uint64_t timeout_ns(const struct kafka_url *url)
{
    return (uint64_t)url->timeout_ms * 1000000;
}

/* It is absent at this look, too. For how long? */
static uint64_t note_absence(struct oplog_absence *absence)
{
    uint64_t now = clock_boot_ns();
    if (absence->since == 0 || now - absence->last > GAP_NS)
        absence->since = now;
    absence->last = now;
    return now - absence->since;
}

int oplog_judge(const struct kafka_url *url, const char *topic, uint32_t partitions,
                struct oplog_absence *absence, pawl_error *error)
{
    if (partitions > 0) {
        *absence = (struct oplog_absence){0};
        return PAWL_OK;
    }
    if (note_absence(absence) < timeout_ns(url))
        return error_set(error, PAWL_EIO,
                         "the brokers do not know topic %s, which was made; after %" PRIu32
                         " ms without it, it is taken for deleted",
                         topic, url->timeout_ms);
    return error_set(error, PAWL_ECORRUPT,
                     "topic %s was deleted, and the operations in it are lost (%s.oplogs lists the operation "
                     "logs that were made)",
                     topic, url->cluster);
}

struct sought {
    pawl_stream stream;
    struct oplog_absence absence;
};

struct seeking {
    rd_kafka_t *client;
    const struct kafka_url *url;
    const struct oplog_search *search;
    struct sought *left;
    size_t count;
};

/* Those that are still in doubt are left. */
static int look_at_all(struct seeking *s, pawl_error *error)
{
    char topic[KAFKA_TOPIC_MAX];
    size_t left = 0;
    int status = PAWL_OK;
    for (size_t i = 0; i < s->count && status == PAWL_OK; i++) {
        uint32_t partitions = 0;
        kafka_topic_of(s->url->cluster, s->left[i].stream, topic);
        status = topic_partitions(s->client, s->url, topic, &partitions, error);
        if (status != PAWL_OK)
            break;
        int verdict = oplog_judge(s->url, topic, partitions, &s->left[i].absence, error);
        if (verdict == PAWL_EIO)
            s->left[left++] = s->left[i];
        else if (verdict != PAWL_OK)
            status = s->search->lost(s->search->arg, error);
    }
    s->count = left;
    return status;
}

int oplogs_find_lost(rd_kafka_t *client, const struct kafka_url *url, const struct oplog_list *list,
                     const struct oplog_search *search, pawl_error *error)
{
    struct seeking s = {.client = client, .url = url, .search = search, .count = list->count};
    int status = PAWL_OK;
    if (list->cut) {
        char topic[KAFKA_TOPIC_MAX];
        kafka_oplogs_topic(url->cluster, topic);
        (void)side_topic_cut(topic, error);
        status = search->lost(search->arg, error);
    }
    if (status != PAWL_OK || list->count == 0)
        return status;
    s.left = mem_new(list->alloc, list->count, sizeof *s.left);
    if (!s.left)
        return error_set(error, PAWL_ENOMEM, "no memory to look for operation logs");
    for (size_t i = 0; i < list->count; i++)
        s.left[i].stream = list->items[i];
    while (status == PAWL_OK && s.count > 0) {
        status = look_at_all(&s, error);
        if (status == PAWL_OK && s.count > 0 && search->wait)
            status = search->wait(search->arg, error);
        if (status == PAWL_OK && s.count > 0)
            wait_pause(LOOK_AGAIN_NS);
    }
    mem_free(list->alloc, s.left, list->count * sizeof *s.left);
    return status;
}

/* --- reading --- */

/* If the brokers fail one caller while others wait for the lock, the others get the same failure. Otherwise each of them would
 * wait for the brokers as long again, one after the other. asked: when the caller began. With oplogs_lock, as keep_failure. */
static int shared_failure(const struct kafka_log *log, pawl_stream stream, uint64_t asked, pawl_error *error)
{
    const struct oplogs_failure *f = &log->oplogs_failure;
    stream.partition = 0;
    if (f->at <= asked || (!f->of_all && !pawl_stream_equal(f->stream, stream)))
        return PAWL_OK;
    return error_set(error, f->status, "%s", f->error.text);
}

static int keep_failure(struct kafka_log *log, struct oplogs_failure f, int status, pawl_error *error)
{
    f.at = clock_boot_ns();
    f.status = status;
    log->oplogs_failure = f;
    return error_set(error, status, "%s", f.error.text);
}

/* For whoever reads, and makes no list: none that is absent for long enough is an empty one (L5). */
static int load_or_doubt(struct kafka_log *log, bool *ret_doubt, pawl_error *error)
{
    struct oplog_list *list = &log->oplogs;
    int status = load_once(log->front, &log->url, list, error);
    if (status != PAWL_ENOTFOUND) {
        list->absence = (struct oplog_absence){0};
        return status;
    }
    list->there = list->cut = false;
    *ret_doubt = note_absence(&list->absence) < NEW_NS;
    if (*ret_doubt)
        return error_set(
            error, PAWL_EIO,
            "the brokers do not know topic %s.oplogs, which lists the operation logs that were made; "
            "it is looked for again",
            log->url.cluster);
    list->read_at = list->absence.last;
    return PAWL_OK;
}

/* With oplogs_lock. */
static int load_for_reader(struct kafka_log *log, pawl_stream stream, uint64_t asked, bool *ret_doubt,
                           pawl_error *error)
{
    const struct oplog_list *list = &log->oplogs;
    struct oplogs_failure f = {.of_all = true};
    if (oplogs_have(list, stream) || (list->read_at > 0 && list->read_at + FRESH_NS > asked))
        return PAWL_OK;
    int status = shared_failure(log, stream, asked, error);
    if (status != PAWL_OK)
        return status;
    status = load_or_doubt(log, ret_doubt, &f.error);
    if (*ret_doubt) /* nobody shares a doubt: whoever has one looks again */
        return error_set(error, status, "%s", f.error.text);
    return status == PAWL_OK ? PAWL_OK : keep_failure(log, f, status, error);
}

enum made { MADE_NEVER, MADE_PERHAPS, MADE }; /* MADE_PERHAPS: L6 */

static enum made was_made(const struct oplog_list *list, pawl_stream stream)
{
    if (oplogs_have(list, stream))
        return MADE;
    return list->cut ? MADE_PERHAPS : MADE_NEVER;
}

/* *ret_doubt: PAWL_EIO, because the brokers know no list. Without log->lock. */
static int look_up(struct kafka_log *log, pawl_stream stream, enum made *ret_made, bool *ret_doubt,
                   pawl_error *error)
{
    uint64_t asked = clock_boot_ns();
    pthread_mutex_lock(&log->oplogs_lock);
    int status = load_for_reader(log, stream, asked, ret_doubt, error);
    *ret_made = was_made(&log->oplogs, stream);
    pthread_mutex_unlock(&log->oplogs_lock);
    return status;
}

/* The log keeps one absence of a topic, for all of its partitions. */
static int judge_look(struct kafka_log *log, const char *topic, pawl_stream stream, uint32_t partitions,
                      uint64_t *ret_absent_ns, pawl_error *error)
{
    struct stream *first;
    stream.partition = 0;
    *ret_absent_ns = 0;
    pthread_mutex_lock(&log->lock);
    int status = stream_find(log, stream, &first);
    if (status != PAWL_OK) {
        error_set(error, status, "no memory for another stream");
    } else {
        status = oplog_judge(&log->url, topic, partitions, &first->absence, error);
        *ret_absent_ns = first->absence.last - first->absence.since;
    }
    pthread_mutex_unlock(&log->lock);
    return status;
}

static void say_perhaps(const struct kafka_log *log, const char *topic, int status, pawl_error *error)
{
    (void)error_set(
        error, status,
        "there is no topic %s, and topic %s.oplogs, which would tell whether it was deleted, has lost its "
        "first records (were they deleted, by retention.ms or retention.bytes?)",
        topic, log->url.cluster);
}

/* A topic that was made, or perhaps was. A new one is waited for, because all brokers will know it soon; for an older one nobody of the
 * pool waits (L4). *ret_doubt: PAWL_EIO, because it is absent. */
static int find_made(struct kafka_log *log, const char *topic, pawl_stream stream, enum made made,
                     bool *ret_doubt, uint32_t *ret_partitions, pawl_error *error)
{
    *ret_doubt = false;
    for (;;) {
        uint64_t absent_ns;
        uint32_t partitions = 0;
        int status = topic_find(log->front, &log->url, topic, stream.partition, true, &partitions, error);
        if (status != PAWL_OK)
            return status;
        status = judge_look(log, topic, stream, partitions, &absent_ns, error);
        *ret_doubt = status == PAWL_EIO;
        if (made == MADE_PERHAPS && (status == PAWL_EIO || status == PAWL_ECORRUPT))
            say_perhaps(log, topic, status, error);
        if (status == PAWL_OK)
            *ret_partitions = partitions;
        if (status != PAWL_EIO || absent_ns >= NEW_NS)
            return status;
        wait_pause(LOOK_AGAIN_NS);
    }
}

static int find_oplog(struct kafka_log *log, const char *topic, pawl_stream stream, bool *ret_doubt,
                      uint32_t *ret_partitions, pawl_error *error)
{
    uint32_t partitions = 0;
    uint64_t absent_ns;
    enum made made = MADE_NEVER;
    int status = topic_find(log->front, &log->url, topic, stream.partition, true, &partitions, error);
    if (status == PAWL_OK && partitions > 0)
        status = judge_look(log, topic, stream, partitions, &absent_ns, error);
    else if (status == PAWL_OK && !log->trust_topics)
        status = look_up(log, stream, &made, ret_doubt, error);
    if (status == PAWL_OK && made != MADE_NEVER)
        status = find_made(log, topic, stream, made, ret_doubt, &partitions, error);
    if (status == PAWL_OK)
        *ret_partitions = partitions;
    return status;
}

int log_find_topic(struct kafka_log *log, const char *topic, pawl_stream stream, bool *ret_doubt,
                   uint32_t *ret_partitions, pawl_error *error)
{
    *ret_doubt = false;
    if (stream.kind == PAWL_STREAM_OPLOG)
        return find_oplog(log, topic, stream, ret_doubt, ret_partitions, error);
    return topic_find(log->front, &log->url, topic, stream.partition, false, ret_partitions, error);
}

int log_await_topic(struct kafka_log *log, const char *topic, pawl_stream stream, uint32_t *ret_partitions,
                    pawl_error *error)
{
    bool doubt;
    int status = log_find_topic(log, topic, stream, &doubt, ret_partitions, error);
    while (doubt) {
        wait_pause(LOOK_AGAIN_NS);
        status = log_find_topic(log, topic, stream, &doubt, ret_partitions, error);
    }
    return status;
}

/* --- claiming --- */

static int plog_partitions(struct kafka_log *log, uint32_t *ret_partitions, pawl_error *error)
{
    char plog[KAFKA_TOPIC_MAX];
    kafka_topic_of(log->url.cluster, (pawl_stream){.kind = PAWL_STREAM_PLOG}, plog);
    return topic_find(log->front, &log->url, plog, 0, false, ret_partitions, error);
}

/* With as many partitions as plog. */
static int make_topic(const struct stream *s, pawl_error *error)
{
    struct kafka_log *log = s->log;
    uint32_t partitions;
    int status = plog_partitions(log, &partitions, error);
    return status == PAWL_OK ? topic_create(log->front, &log->url, s->topic, partitions, error) : status;
}

/* Not in a cluster that has no plog: its name was mistyped. */
static int make_list(struct kafka_log *log, const char *topic, pawl_error *error)
{
    uint32_t of_plog, partitions = 0;
    int status = topic_partitions(log->front, &log->url, topic, &partitions, error);
    if (status != PAWL_OK || partitions > 0)
        return status;
    status = plog_partitions(log, &of_plog, error);
    return status == PAWL_OK ? topic_create(log->front, &log->url, topic, 1, error) : status;
}

/* L5. */
static int make_and_load(struct kafka_log *log, pawl_error *error)
{
    char topic[KAFKA_TOPIC_MAX];
    kafka_oplogs_topic(log->url.cluster, topic);
    int status = make_list(log, topic, error);
    if (status != PAWL_OK)
        return status;
    status = load_patiently(log->front, &log->url, &log->oplogs, error);
    return status == PAWL_ENOTFOUND
               ? error_set(error, PAWL_EIO, "the brokers do not know topic %s, which was made", topic)
               : status;
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

/* What this log has seen is not made again, listed or not. */
static int make_and_list(const struct stream *s, bool seen, pawl_error *error)
{
    struct kafka_log *log = s->log;
    enum made made = seen ? MADE : was_made(&log->oplogs, s->id);
    uint32_t partitions = 0;
    bool doubt;
    int status = made == MADE_NEVER ? topic_find(log->front, &log->url, s->topic, 0, true, &partitions, error)
                                    : find_made(log, s->topic, s->id, made, &doubt, &partitions, error);
    if (status == PAWL_OK && partitions == 0)
        status = make_topic(s, error);
    return status == PAWL_OK ? list_it(s, error) : status;
}

static int make_once(const struct stream *s, bool seen, uint64_t asked, pawl_error *error)
{
    struct oplogs_failure f = {.stream = s->id};
    f.stream.partition = 0;
    int status = shared_failure(s->log, s->id, asked, error);
    if (status != PAWL_OK)
        return status;
    status = make_and_list(s, seen, &f.error);
    return status == PAWL_OK ? PAWL_OK : keep_failure(s->log, f, status, error);
}

/* With oplogs_lock. */
static int load_for_claim(struct kafka_log *log, pawl_stream stream, uint64_t asked, pawl_error *error)
{
    const struct oplog_list *list = &log->oplogs;
    struct oplogs_failure f = {.of_all = true};
    if (oplogs_have(list, stream) || (list->there && list->read_at > asked))
        return PAWL_OK;
    int status = shared_failure(log, stream, asked, error);
    if (status != PAWL_OK)
        return status;
    status = make_and_load(log, &f.error);
    return status == PAWL_OK ? PAWL_OK : keep_failure(log, f, status, error);
}

/* With the lock for all of it: the claims of the other partitions wait, and then have nothing to do. */
static int list_if_new(const struct stream *s, bool seen, bool *ret_listed_before, pawl_error *error)
{
    struct kafka_log *log = s->log;
    uint64_t asked = clock_boot_ns();
    pthread_mutex_lock(&log->oplogs_lock);
    int status = load_for_claim(log, s->id, asked, error);
    *ret_listed_before = status == PAWL_OK && oplogs_have(&log->oplogs, s->id);
    if (status == PAWL_OK && !*ret_listed_before)
        status = make_once(s, seen, asked, error);
    pthread_mutex_unlock(&log->oplogs_lock);
    return status;
}

int oplog_prepare(const struct stream *s, bool seen, pawl_error *error)
{
    uint32_t partitions;
    bool listed_before, doubt;
    int status = list_if_new(s, seen, &listed_before, error);
    return listed_before ? find_made(s->log, s->topic, s->id, MADE, &doubt, &partitions, error) : status;
}
