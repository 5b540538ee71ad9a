/* adapter/kafka/cursor.c: many readers, each at a place of its own.
 *
 * A handle of librdkafka reads any number of partitions, but each of them at one place only. So a cursor uses
 * a handle that has no cursor on the same stream. It waits there for the request that is under way for other
 * streams; so it rather takes a handle that has no cursor at all, and a few are made for that. Handles, with their
 * connections, are kept until the log is closed. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "adapter/kafka/impl.h"
#include "base/alloc.h"
#include "base/error.h"

static const uint64_t one = 1;

static struct fetcher *fetcher_new(struct kafka_log *log, pawl_error *error)
{
    struct fetcher *f = mem_new(log->alloc, 1, sizeof *f);
    if (!f) {
        error_set(error, PAWL_ENOMEM, "no memory for another reader");
        return NULL;
    }
    if (client_open(&log->url, CLIENT_CONSUMER, &f->client, error) != PAWL_OK) {
        mem_free(log->alloc, f, sizeof *f);
        return NULL;
    }
    f->events = rd_kafka_queue_get_main(f->client);
    f->next = log->fetchers;
    log->fetchers = f;
    return f;
}

static bool serves(const struct fetcher *f, const struct stream *stream)
{
    for (const struct cursor *c = f->cursors; c; c = c->next)
        if (c->stream == stream)
            return true;
    return false;
}

static int start(struct cursor *c, uint64_t position, bool bell, pawl_error *error)
{
    struct kafka_log *log = c->stream->log;
    c->topic = rd_kafka_topic_new(c->fetcher->client, c->stream->topic, NULL);
    c->queue = rd_kafka_queue_new(c->fetcher->client);
    if (bell)
        rd_kafka_queue_io_event_enable(c->queue, log->bell, &one, sizeof one);
    if (c->topic
        && rd_kafka_consume_start_queue(c->topic, c->stream->id.partition, (int64_t)position, c->queue) == 0) {
        c->next = c->fetcher->cursors;
        c->fetcher->cursors = c;
        return PAWL_OK;
    }
    rd_kafka_resp_err_t err = rd_kafka_last_error();
    if (c->topic)
        rd_kafka_topic_destroy(c->topic);
    rd_kafka_queue_destroy(c->queue);
    c->fetcher = NULL;
    return error_set(error, PAWL_EIO, "cannot read topic %s: %s", c->stream->topic, rd_kafka_err2str(err));
}

/* NULL: make another. */
static struct fetcher *choose_fetcher(const struct kafka_log *log, const struct stream *stream)
{
    struct fetcher *best = NULL;
    size_t count = 0;
    for (struct fetcher *f = log->fetchers; f; f = f->next, count++)
        if (!f->cursors || (!best && !serves(f, stream)))
            best = f;
    return best && best->cursors && count < FETCHERS_MIN ? NULL : best;
}

int cursor_open(struct stream *stream, uint64_t position, bool bell, struct cursor *c, pawl_error *error)
{
    struct kafka_log *log = stream->log;
    assert(!c->fetcher);
    c->stream = stream; /* also of a cursor that could not be opened */
    pthread_mutex_lock(&log->fetch_lock);
    struct fetcher *f = choose_fetcher(log, stream);
    int status = PAWL_EIO;
    if (!f)
        f = fetcher_new(log, error);
    if (f) {
        *c = (struct cursor){.stream = stream, .fetcher = f};
        status = start(c, position, bell, error);
    }
    pthread_mutex_unlock(&log->fetch_lock);
    return status;
}

void cursor_close(struct cursor *c)
{
    if (!c->fetcher)
        return;
    struct kafka_log *log = c->stream->log;
    pthread_mutex_lock(&log->fetch_lock);
    rd_kafka_queue_io_event_enable(c->queue, -1, NULL, 0);
    rd_kafka_consume_stop(c->topic, c->stream->id.partition);
    rd_kafka_queue_destroy(c->queue);
    rd_kafka_topic_destroy(c->topic);
    struct cursor **at = &c->fetcher->cursors;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->fetcher = NULL;
    pthread_mutex_unlock(&log->fetch_lock);
}

size_t cursor_take(struct cursor *c, int timeout_ms, rd_kafka_message_t **messages)
{
    size_t first = 0;
    if (timeout_ms > 0) { /* for the first only: a batch that waits would wait until it is full */
        messages[0] = rd_kafka_consume_queue(c->queue, timeout_ms);
        if (!messages[0])
            return 0;
        first = 1;
    }
    ssize_t taken = rd_kafka_consume_batch_queue(c->queue, 0, messages + first, TAKE_MAX - first);
    return first + (taken > 0 ? (size_t)taken : 0);
}

uint64_t cursor_end(const struct cursor *c)
{
    int64_t low, high = -1;
    rd_kafka_get_watermark_offsets(c->fetcher->client, c->stream->topic, c->stream->id.partition, &low, &high);
    return high < 0 ? UINT64_MAX : (uint64_t)high;
}

void fetchers_serve(struct kafka_log *log)
{
    pthread_mutex_lock(&log->fetch_lock);
    for (struct fetcher *f = log->fetchers; f; f = f->next)
        for (rd_kafka_event_t *event; (event = rd_kafka_queue_poll(f->events, 0));) {
            watch_event(log, event);
            rd_kafka_event_destroy(event);
        }
    pthread_mutex_unlock(&log->fetch_lock);
}

void fetchers_close(struct kafka_log *log)
{
    for (struct fetcher *f = log->fetchers, *next; f; f = next) {
        next = f->next;
        assert(!f->cursors);
        rd_kafka_queue_destroy(f->events);
        client_close(f->client);
        mem_free(log->alloc, f, sizeof *f);
    }
    log->fetchers = NULL;
}

/* Messages. */

int stream_fault(const struct stream *s, int status, uint64_t position, pawl_error *error, const char *why)
{
    return error_set(error, status, "topic %s, partition %u, offset %" PRIu64 ": %s", s->topic, s->id.partition,
                     position, why);
}

static int error_read(const struct stream *s, const rd_kafka_message_t *m, uint64_t at, pawl_error *error)
{
    int status = client_status(m->err);
    switch (status) {
    case PAWL_ECORRUPT:
    case PAWL_EACCES: return stream_fault(s, status, at, error, rd_kafka_err2str(m->err));
    default: return PAWL_OK; /* the client tries again by itself */
    }
}

int message_read(const struct stream *s, const rd_kafka_message_t *m, const struct judged *before,
                 enum found *ret_found, struct kafka_record *ret_record, pawl_error *error)
{
    *ret_found = FOUND_NOTHING;
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        *ret_found = FOUND_END;
        *ret_record = (struct kafka_record){.head.position = (uint64_t)m->offset};
        return PAWL_OK;
    }
    if (m->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE || m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
        *ret_found = FOUND_DOUBT;
        return PAWL_OK;
    }
    if (client_status(m->err) == PAWL_ENOTFOUND
        && before->judge.at > 0) { /* a topic that was just made is waited for */
        *ret_found = FOUND_DOUBT;
        return PAWL_OK;
    }
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return error_read(s, m, before->judge.at, error);
    uint64_t position = (uint64_t)m->offset;
    enum kafka_record_fault fault = kafka_record_decode((pawl_bytes){m->payload, m->len}, s->seed, ret_record);
    if (fault != KAFKA_RECORD_GOOD && fault != KAFKA_RECORD_NEWER
        && stream_skips(s, position, (pawl_bytes){m->payload, m->len}, ret_record))
        fault = KAFKA_RECORD_GOOD;
    if (fault != KAFKA_RECORD_GOOD)
        return stream_fault(s, fault == KAFKA_RECORD_NEWER ? PAWL_EVERSION : PAWL_ECORRUPT, position, error,
                            kafka_record_fault_text(fault));
    ret_record->head.position = position;
    if (position + 1 == before->judge.at) {
        if (ret_record->head.checksum != before->sum)
            return stream_fault(
                s, PAWL_ECORRUPT, position, error,
                "another record than before lies here: the topic was deleted and created again");
        return PAWL_OK; /* known already */
    }
    *ret_found = FOUND_ENTRY;
    return PAWL_OK;
}
