/* adapter/kafka/skips.c: the decisions of skip.h: read when a log is opened, asked at every record that cannot be read,
 * and made. */
#include "adapter/kafka/skips.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapter/kafka/impl.h"
#include "adapter/kafka/side_topic.h"
#include "base/alloc.h"
#include "base/error.h"

#define TAKE_MS 100

static const struct kafka_skip *find(const struct skip_list *list, pawl_stream stream, uint64_t position)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].shown.at == position && pawl_stream_equal(list->items[i].shown.stream, stream))
            return &list->items[i];
    return NULL;
}

bool stream_skips(const struct stream *s, uint64_t position, pawl_bytes value, struct kafka_record *ret_record)
{
    const struct kafka_skip *skip = find(&s->log->skips, s->id, position);
    if (!skip || skip->hash != kafka_skip_hash(value))
        return false;
    *ret_record = (struct kafka_record){.head = {.position = position,
                                                 .kind = CLAIM_KIND_EVENT, /* of epoch 0: it is nobody's */
                                                 .last = true,
                                                 .checksum = skip->hash},
                                        .fragments = 1};
    return true;
}

static int add(struct skip_list *list, const struct kafka_skip *skip, pawl_error *error)
{
    if (find(list, skip->shown.stream, skip->shown.at))
        return PAWL_OK;
    if (list->count == KAFKA_SKIPS_MAX)
        return error_set(error, PAWL_EFULL, "there are %d records that are skipped, and cannot be more",
                         KAFKA_SKIPS_MAX);
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 4;
        void *items =
            mem_resize(list->alloc, list->items, list->room * sizeof *list->items, room * sizeof *list->items);
        if (!items)
            return error_set(error, PAWL_ENOMEM, "no memory for a record that is skipped");
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = *skip;
    return PAWL_OK;
}

void skips_release(struct skip_list *list)
{
    mem_free(list->alloc, list->items, list->room * sizeof *list->items);
    *list = (struct skip_list){0};
}

/* --- reading them --- */

static int take(void *arg, pawl_bytes value, uint64_t seed, pawl_error *error)
{
    struct kafka_skip skip;
    if (!kafka_skip_decode(value, seed, &skip))
        return PAWL_OK; /* not one of ours: it skips nothing */
    return add(arg, &skip, error);
}

int skips_load(rd_kafka_t *client, const struct kafka_url *url, struct skip_list *list, pawl_error *error)
{
    char topic[KAFKA_TOPIC_MAX];
    uint64_t first = 0;
    kafka_skips_topic(url->cluster, topic);
    int status = side_topic_read(client, url, topic, take, list, &first, error);
    if (status == PAWL_ENOTFOUND || status == PAWL_EACCES)
        return PAWL_OK; /* who does not see the decisions stops at the records */
    return status == PAWL_OK && first > 0 ? side_topic_cut(topic, error) : status;
}

/* --- making one --- */

static int refuse(const struct stream *s, uint64_t at, int status, const char *why, pawl_error *error)
{
    return stream_fault(s, status, at, error, why);
}

/* What lies there, and whether it may be skipped at all. */
static int look_at(struct stream *s, struct kafka_skip *skip, pawl_error *error)
{
    struct kafka_log *log = s->log;
    struct cursor cursor = {0};
    rd_kafka_message_t *messages[TAKE_MAX];
    uint64_t at = skip->shown.at, until = clock_boot_ns() + (uint64_t)log->url.timeout_ms * 1000000;
    bool found = false;
    pthread_mutex_lock(&log->lock);
    int status = cursor_open(s, at, false, &cursor, error);
    pthread_mutex_unlock(&log->lock);
    while (status == PAWL_OK && !found) {
        size_t taken = cursor_take(&cursor, TAKE_MS, messages);
        for (size_t i = 0; i < taken; i++) {
            const rd_kafka_message_t *m = messages[i];
            if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && (uint64_t)m->offset == at && !found) {
                struct kafka_record record;
                const pawl_bytes value = {m->payload, m->len};
                enum kafka_record_fault fault = kafka_record_decode(value, s->seed, &record);
                found = true;
                skip->hash = kafka_skip_hash(value);
                skip->shown.damaged = fault != KAFKA_RECORD_FOREIGN;
                if (fault == KAFKA_RECORD_GOOD)
                    status = refuse(s, at, PAWL_EINVAL,
                                    "it is a sound record of Pawl's: such a record is never skipped", error);
                if (fault == KAFKA_RECORD_NEWER)
                    status = refuse(s, at, PAWL_EVERSION, "it was written by a newer Pawl: use that", error);
            }
            rd_kafka_message_destroy(messages[i]);
        }
        if (taken == 0 && clock_boot_ns() > until)
            status = refuse(s, at, PAWL_EIO, "no broker answers", error);
    }
    cursor_close(&cursor);
    return status;
}

struct trial {
    uint64_t at;
    bool decided; /* the first entry behind it has told */
    bool rests;   /* it rests on what was skipped */
};

/* The first entry behind it, of whatever epoch is the current one then, is the next one, or is there already; if an entry
 * is missing before it, that was perhaps the record that is to be skipped. */
static int try_one(void *arg, const struct scanned *found, pawl_error *error)
{
    struct trial *t = arg;
    (void)error;
    if (t->decided || found->position <= t->at || found->claimed)
        return PAWL_OK;
    t->rests = found->verdict == CLAIM_AHEAD;
    t->decided = t->rests || found->verdict == CLAIM_COUNTS || found->verdict == CLAIM_PART
                 || found->verdict == CLAIM_REPEATED;
    return PAWL_OK;
}

/* Read the stream as it would be read then. */
static int try_without(struct stream *s, uint64_t at, pawl_error *error)
{
    static const char needed[] =
        "entries behind it rest on it: it was an entry that counted, and they would be lost without it";
    struct trial trial = {.at = at};
    const struct stream_scan scan = {.visit = try_one, .arg = &trial};
    struct scan_end end;
    int status = stream_scan(s->log, s->id, &scan, &end, error);
    bool stops_behind = (status == PAWL_ECORRUPT || status == PAWL_EVERSION) && end.judged.judge.at > at;
    if (status != PAWL_OK && !stops_behind)
        return error_wrap(error, status, "the stream stops before offset %" PRIu64, at);
    /* Any other record that stops it there is decided for itself. */
    trial.rests = trial.rests || (stops_behind && end.verdict == CLAIM_BROKEN);
    return trial.rests ? refuse(s, at, PAWL_EINVAL, needed, error) : PAWL_OK;
}

static int write_down(struct kafka_log *log, const struct kafka_skip *skip, pawl_error *error)
{
    char topic[KAFKA_TOPIC_MAX];
    uint8_t bytes[KAFKA_SKIP_BYTES_MAX];
    kafka_skips_topic(log->url.cluster, topic);
    size_t size = kafka_skip_encode(skip, kafka_record_seed(topic, 0), bytes);
    return side_topic_append(log->front, &log->url, topic, (pawl_bytes){bytes, size},
                             "the decision (look with 'pawl verify')", error);
}

static int decide(struct stream *s, struct kafka_skip *skip, pawl_error *error)
{
    struct kafka_log *log = s->log;
    struct bounds bounds = {0};
    uint64_t at = skip->shown.at;
    const struct kafka_skip *before = find(&log->skips, s->id, at);
    if (before)
        return error_set(error, PAWL_EEXISTS,
                         "topic %s, partition %u, offset %" PRIu64 ": %s has skipped it already: %s", s->topic,
                         s->id.partition, at, before->shown.who, before->shown.reason);
    int status = stream_bounds_wait(s, 0, &bounds, error);
    if (status == PAWL_OK && (at >= bounds.high || at < bounds.low))
        return refuse(s, at, PAWL_ENOTFOUND, "there is no such record", error);
    if (status == PAWL_OK)
        status = look_at(s, skip, error);
    if (status == PAWL_OK)
        status = add(&log->skips, skip, error);
    return status == PAWL_OK ? try_without(s, at, error) : status;
}

int kafka_skip(pawl_log *port, const pawl_cluster_skipped *wanted, pawl_cluster_skipped *ret_skipped,
               pawl_error *error)
{
    struct kafka_log *log = (struct kafka_log *)port;
    struct kafka_skip skip = {.shown = *wanted};
    struct stream *s;
    uint32_t partitions;
    if (!pawl_stream_valid(wanted->stream))
        return error_set(error, PAWL_EINVAL, "there is no such stream");
    pthread_mutex_lock(&log->lock);
    int status = stream_find(log, wanted->stream, &s);
    pthread_mutex_unlock(&log->lock);
    if (status != PAWL_OK)
        return error_set(error, status, "no memory for another stream");
    status = log_await_topic(log, s->topic, s->id, &partitions, error);
    if (status == PAWL_OK && partitions == 0) /* an operation log that was never claimed */
        status = refuse(s, wanted->at, PAWL_ENOTFOUND, "there is no such record", error);
    if (status == PAWL_OK)
        status = decide(s, &skip, error);
    if (status == PAWL_OK)
        status = write_down(log, &skip, error);
    if (status == PAWL_OK)
        *ret_skipped = skip.shown;
    return status;
}
