/* adapter/kafka/read_alone.c: a read whose caller waits for it alone, on the caller's thread. */
#include "adapter/kafka/impl.h"
#include "base/error.h"

bool kafka_must_ask(const struct stream *s, uint64_t from, uint64_t limit)
{
    uint64_t next = s->latest.judge.next;
    return limit > next || from > next - limit;
}

/* A read under way. */
struct alone {
    struct kafka_log *log;
    struct stream *stream;
    pawl_read *read;
    struct stream_reader reader;
    uint64_t next; /* that is wanted */
    uint64_t left;
    bool over;
    bool doubted;
    bool lost;
};

static int take_message(struct alone *a, rd_kafka_message_t *m)
{
    enum found found = FOUND_NOTHING;
    pawl_entry entry;
    pawl_place place;
    int status = stream_reader_take(&a->reader, m, &found, &entry, &place, a->read->error);
    a->doubted = a->doubted || found == FOUND_DOUBT;
    a->lost = found == FOUND_LOST;
    if (found == FOUND_ENTRY && entry.offset >= a->next) {
        a->over = !a->read->visit(a->read, &entry, place) || --a->left == 0;
        a->next = entry.offset + 1;
    }
    a->over =
        a->over || found == FOUND_END
        || (status == PAWL_OK && m->err == RD_KAFKA_RESP_ERR_NO_ERROR && stream_reader_at_end(&a->reader));
    return status;
}

/* Until it is over, or lost. */
static int read_stream(struct alone *a)
{
    struct kafka_log *log = a->log;
    rd_kafka_message_t *messages[TAKE_MAX];
    uint64_t deadline = kafka_deadline(log);
    int status = PAWL_OK;
    while (!a->over && !a->lost && status == PAWL_OK) {
        uint64_t at = a->reader.judged.judge.at;
        size_t taken = cursor_take(&a->reader.cursor, 100, messages);
        for (size_t i = 0; i < taken; i++) {
            if (!a->over && !a->lost && status == PAWL_OK)
                status = take_message(a, messages[i]);
            rd_kafka_message_destroy(messages[i]);
        }
        if (a->reader.judged.judge.at > at)
            deadline = kafka_deadline(log);
        if (!a->over && status == PAWL_OK && a->doubted)
            status = stream_reader_settle(&a->reader, a->read->error);
        else if (!a->over && !a->lost && status == PAWL_OK && clock_boot_ns() > deadline)
            status = kafka_no_answer(log, a->read->error);
        if (a->doubted)
            deadline = a->reader.until;
        a->doubted = false;
        pthread_mutex_lock(&log->lock);
        if (status == PAWL_OK && a->reader.upto == 0)
            stream_keep_resume_point(a->stream, &a->reader.judged);
        pthread_mutex_unlock(&log->lock);
    }
    return status;
}

/* From a place that is found, if it is worth a search, and else from the last resume point. */
static int read_once(struct alone *a, const struct bounds *bounds, bool may_seek, pawl_place at)
{
    struct kafka_log *log = a->log;
    struct seek seek;
    pthread_mutex_lock(&log->lock);
    bool seeks = may_seek && stream_seek_begin(a->stream, a->next, a->left, at, &seek);
    pthread_mutex_unlock(&log->lock);
    if (seeks)
        stream_seek(a->stream, bounds->high, &seek);
    pthread_mutex_lock(&log->lock);
    int status = seeks && seek.found
                     ? stream_reader_open_at(a->stream, &seek, false, &a->reader, a->read->error)
                     : stream_reader_open(a->stream, a->next, false, &a->reader, a->read->error);
    pthread_mutex_unlock(&log->lock);
    if (a->reader.known < bounds->high)
        a->reader.known = bounds->high;
    a->lost = false;
    if (status == PAWL_OK)
        status = read_stream(a);
    stream_reader_close(&a->reader);
    return status;
}

static int read_all(struct alone *a, const struct bounds *bounds)
{
    bool may_seek = true;
    pawl_place at = a->read->at;
    int status;
    do {
        a->reader = (struct stream_reader){0};
        status = read_once(a, bounds, may_seek, at);
        may_seek = a->next > a->reader.upto; /* what was proven has ended; otherwise it was misled */
        at = (pawl_place){0};
    } while (status == PAWL_OK && a->lost);
    return status;
}

int kafka_read_alone(struct kafka_log *log, pawl_read *read)
{
    struct alone a = {
        .log = log, .read = read, .next = read->from, .left = read->limit, .over = read->limit == 0};
    uint32_t partitions = 0;
    struct bounds bounds = {0};
    bool bounded = false;
    uint64_t known = 0;
    pthread_mutex_lock(&log->lock);
    int status = stream_find(log, read->stream, &a.stream);
    if (status == PAWL_OK) {
        partitions = a.stream->partitions;
        known = a.stream->latest.judge.at;
        bounded = kafka_must_ask(a.stream, read->from, read->limit);
    }
    pthread_mutex_unlock(&log->lock);
    if (status != PAWL_OK)
        return error_wrap(read->error, status, "read");
    atomic_fetch_add(&log->outstanding, 1);
    if (partitions == 0)
        status = log_await_topic(log, a.stream->topic, a.stream->id, &partitions, read->error);
    if (status == PAWL_OK && read->stream.partition < partitions && bounded)
        status = stream_bounds_wait(a.stream, known, &bounds, read->error);
    if (status == PAWL_OK && read->stream.partition < partitions) {
        pthread_mutex_lock(&log->lock);
        a.stream->partitions = partitions;
        pthread_mutex_unlock(&log->lock);
        status = read_all(&a, &bounds);
    }
    read->next = a.next;
    read->status = status;
    atomic_fetch_sub(&log->outstanding, 1);
    return PAWL_READ_DONE;
}
