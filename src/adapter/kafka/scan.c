/* adapter/kafka/scan.c: a stream read from its first record to its present end, on the caller's thread, with all that a
 * record tells: who had claimed the stream, too. */
#include "adapter/kafka/impl.h"
#include "base/error.h"

struct scanning {
    const struct stream_scan *scan;
    struct stream_reader reader;
    uint64_t end; /* that the present leader has told: a stream that grows has no other */
    uint64_t deadline;
};

static uint64_t patience(const struct kafka_log *log)
{
    return clock_boot_ns() + (uint64_t)log->url.timeout_ms * 1000000;
}

static int take(struct scanning *s, const rd_kafka_message_t *message, bool *doubted, pawl_error *error)
{
    enum found found = FOUND_NOTHING;
    pawl_entry entry;
    pawl_place place;
    struct stream_reader *reader = &s->reader;
    uint64_t epoch = reader->judged.judge.epoch;
    int status = stream_reader_take(reader, message, &found, &entry, &place, error);
    *doubted = *doubted || found == FOUND_DOUBT;
    if (status != PAWL_OK || message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return status;
    const struct scanned scanned = {.position = (uint64_t)message->offset,
                                    .verdict = reader->verdict,
                                    .node = reader->judged.judge.node,
                                    .claimed = reader->judged.judge.epoch > epoch,
                                    .entry = found == FOUND_ENTRY ? &entry : NULL,
                                    .bytes = message->len};
    return s->scan->visit(s->scan->arg, &scanned, error);
}

static int read_all(struct scanning *s, struct kafka_log *log, pawl_error *error)
{
    rd_kafka_message_t *messages[TAKE_MAX];
    struct stream_reader *reader = &s->reader;
    int status = PAWL_OK;
    s->deadline = patience(log);
    while (reader->judged.judge.at < s->end && status == PAWL_OK) {
        bool doubted = false;
        size_t taken = cursor_take(&reader->cursor, 100, messages);
        for (size_t i = 0; i < taken; i++) {
            if (status == PAWL_OK && reader->judged.judge.at < s->end)
                status = take(s, messages[i], &doubted, error);
            rd_kafka_message_destroy(messages[i]);
        }
        if (status == PAWL_OK && doubted && reader->judged.judge.at < s->end)
            status = stream_reader_settle(reader, error);
        if (taken > 0)
            s->deadline = patience(log);
        else if (clock_boot_ns() > s->deadline)
            status = error_set(error, PAWL_EIO, "topic %s, partition %u: no broker answers",
                               reader->cursor.stream->topic, reader->cursor.stream->id.partition);
        if (status == PAWL_OK && s->scan->tick)
            status = s->scan->tick(s->scan->arg, reader, error);
    }
    return status;
}

static int find_end(const struct stream_scan *scan, const struct stream *s, struct bounds *ret_bounds,
                    pawl_error *error)
{
    uint64_t until = patience(s->log);
    for (;;) {
        int status = stream_bounds(s, ret_bounds, error);
        if (status == PAWL_OK && !ret_bounds->there)
            status = stream_absent(s, 0, error);
        if (status != PAWL_EIO || clock_boot_ns() >= until)
            return status;
        status = scan->wait ? scan->wait(scan->arg, error) : PAWL_OK;
        if (status != PAWL_OK)
            return status;
        wait_pause(LOOK_AGAIN_NS);
    }
}

int stream_scan(struct kafka_log *log, pawl_stream stream, const struct stream_scan *scan,
                struct scan_end *ret_end, pawl_error *error)
{
    struct scanning s = {.scan = scan};
    struct stream *known;
    struct bounds bounds = {0};
    *ret_end = (struct scan_end){0};
    judge_init(&ret_end->judged.judge, 0);
    pthread_mutex_lock(&log->lock);
    int status = stream_find(log, stream, &known);
    pthread_mutex_unlock(&log->lock);
    if (status != PAWL_OK)
        return error_set(error, status, "no memory for another stream");
    status = find_end(scan, known, &bounds, error);
    if (status != PAWL_OK || bounds.high == 0)
        return status;
    judge_init(&s.reader.judged.judge, 0); /* no resume point: the claims before it are wanted, too */
    pthread_mutex_lock(&log->lock);
    s.reader.known = known->latest.judge.at;
    status = cursor_open(known, 0, false, &s.reader.cursor, error);
    pthread_mutex_unlock(&log->lock);
    if (status != PAWL_OK)
        return status;
    s.end = bounds.high;
    status = read_all(&s, log, error);
    *ret_end =
        (struct scan_end){.judged = s.reader.judged, .verdict = s.reader.verdict, .ignored = s.reader.ignored};
    stream_reader_close(&s.reader);
    return status;
}

struct visiting {
    kafka_scan_visit visit;
    void *arg;
};

static int pass_on(void *arg, const struct scanned *found, pawl_error *error)
{
    const struct visiting *v = arg;
    (void)error;
    if (found->claimed || found->entry)
        v->visit(v->arg, found->node, found->entry);
    return PAWL_OK;
}

int kafka_scan(pawl_log *port, pawl_stream stream, kafka_scan_visit visit, void *arg, pawl_error *error)
{
    struct kafka_log *log = (struct kafka_log *)port;
    struct visiting v = {.visit = visit, .arg = arg};
    const struct stream_scan scan = {.visit = pass_on, .arg = &v};
    struct scan_end end;
    char topic[KAFKA_TOPIC_MAX];
    uint32_t partitions;
    kafka_topic_of(log->url.cluster, stream, topic);
    int status = log_await_topic(log, topic, stream, &partitions, error);
    if (status != PAWL_OK || partitions == 0) /* an operation log that was never claimed is empty */
        return status;
    return stream_scan(log, stream, &scan, &end, error);
}
