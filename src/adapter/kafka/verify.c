/* adapter/kafka/verify.c: every record of every stream, read and judged from the beginning. */
#include <stdlib.h>
#include <string.h>

#include "adapter/kafka/impl.h"
#include "adapter/kafka/topics.h"
#include "base/alloc.h"
#include "base/error.h"

struct verifying {
    struct kafka_log *log;
    pawl_cluster_report *report;
    pawl_progress progress;
    void *arg;
};

static int step(struct verifying *job, uint64_t done, uint64_t total, pawl_error *error)
{
    if (!job->progress || job->progress(job->arg, done, total))
        return PAWL_OK;
    return error_set(error, PAWL_ECANCELED, "the verification of %s was cancelled", job->log->url.cluster);
}

/* Up to the end that the present leader has told: a stream that grows has no other end. */
static int read_all(struct verifying *job, struct stream_reader *reader, uint64_t end,
                    pawl_cluster_report_stream *s, pawl_error *error)
{
    struct kafka_log *log = job->log;
    rd_kafka_message_t *messages[TAKE_MAX];
    uint64_t deadline = clock_boot_ns() + (uint64_t)log->url.timeout_ms * 1000000;
    int status = PAWL_OK;
    bool over = end == 0, doubted = false;
    while (!over && status == PAWL_OK) {
        size_t taken = cursor_take(&reader->cursor, 100, messages);
        for (size_t i = 0; i < taken; i++) {
            enum found found = FOUND_NOTHING;
            pawl_entry entry;
            pawl_place place;
            uint64_t epoch = reader->judged.judge.epoch;
            if (!over && status == PAWL_OK) {
                status = stream_reader_take(reader, messages[i], &found, &entry, &place, error);
                s->claims += reader->judged.judge.epoch > epoch;
                s->entries += found == FOUND_ENTRY;
                doubted = doubted || found == FOUND_DOUBT;
                if (status == PAWL_OK && messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR)
                    s->bytes += messages[i]->len;
            }
            over = over || reader->judged.judge.at >= end;
            rd_kafka_message_destroy(messages[i]);
        }
        if (!over && status == PAWL_OK && doubted)
            status = stream_reader_settle(reader, error);
        doubted = false;
        if (taken > 0)
            deadline = clock_boot_ns() + (uint64_t)log->url.timeout_ms * 1000000;
        else if (clock_boot_ns() > deadline)
            status = error_set(error, PAWL_EIO, "topic %s, partition %u: no broker answers",
                               reader->cursor.stream->topic, reader->cursor.stream->id.partition);
        if (status == PAWL_OK)
            status = step(job, job->report->records + reader->judged.judge.at, 0, error);
    }
    s->records = reader->judged.judge.at;
    s->ignored = reader->ignored;
    s->epoch = reader->judged.judge.epoch;
    return status;
}

static int add_stream(struct verifying *job, const pawl_cluster_report_stream *s, pawl_error *error)
{
    pawl_cluster_report *r = job->report;
    if (r->stream_count == r->stream_room) {
        size_t room = r->stream_room ? r->stream_room * 2 : 16;
        void *streams =
            mem_resize(NULL, r->streams, r->stream_room * sizeof *r->streams, room * sizeof *r->streams);
        if (!streams)
            return error_set(error, PAWL_ENOMEM, "no memory for the report");
        r->streams = streams;
        r->stream_room = room;
    }
    r->streams[r->stream_count++] = *s;
    r->records += s->records;
    r->entries += s->entries;
    r->claims += s->claims;
    r->ignored += s->ignored;
    r->bytes += s->bytes;
    return PAWL_OK;
}

static int find_end(struct verifying *job, const struct stream *s, struct bounds *ret_bounds, pawl_error *error)
{
    uint64_t until = clock_boot_ns() + (uint64_t)job->log->url.timeout_ms * 1000000;
    int status;
    while ((status = stream_bounds(s, ret_bounds, error)) == PAWL_EIO && clock_boot_ns() < until) {
        status = step(job, job->report->records, 0, error);
        if (status != PAWL_OK)
            break;
        wait_pause(LOOK_AGAIN_NS);
    }
    return status;
}

static int verify_stream(struct verifying *job, pawl_stream stream, pawl_error *error)
{
    struct stream_reader reader = {0};
    struct stream *known;
    pawl_cluster_report_stream s = {.id = stream};
    struct bounds bounds = {0};
    pthread_mutex_lock(&job->log->lock);
    int status = stream_find(job->log, stream, &known);
    pthread_mutex_unlock(&job->log->lock);
    if (status == PAWL_OK)
        status = find_end(job, known, &bounds, error);
    if (status == PAWL_OK && bounds.high == 0)
        return PAWL_OK;
    pthread_mutex_lock(&job->log->lock);
    if (status == PAWL_OK)
        status = stream_reader_open(known, 1, false, &reader, error);
    pthread_mutex_unlock(&job->log->lock);
    if (status == PAWL_ECANCELED)
        return status;
    if (status != PAWL_OK)
        return error_wrap(error, status, "verify");
    status = read_all(job, &reader, bounds.high, &s, error);
    stream_reader_close(&reader);
    if (status == PAWL_ECORRUPT || status == PAWL_EVERSION) {
        if (job->report->faults++ == 0)
            job->report->first = *error;
        status = PAWL_OK;
    }
    if (status == PAWL_OK && s.records > 0)
        status = add_stream(job, &s, error);
    return status;
}

static int verify_topic(void *arg, const char *topic, uint32_t partitions, pawl_error *error)
{
    struct verifying *job = arg;
    int status = PAWL_OK;
    for (uint32_t i = 0; i < partitions && status == PAWL_OK; i++) {
        pawl_stream stream;
        if (kafka_stream_of(job->log->url.cluster, topic, (uint16_t)i, &stream))
            status = verify_stream(job, stream, error);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    const pawl_cluster_report_stream *x = a, *y = b;
    if (x->id.kind != y->id.kind)
        return x->id.kind < y->id.kind ? -1 : 1;
    if (x->id.lane != y->id.lane)
        return x->id.lane < y->id.lane ? -1 : 1;
    if (x->id.generation != y->id.generation)
        return x->id.generation < y->id.generation ? -1 : 1;
    return (x->id.partition > y->id.partition) - (x->id.partition < y->id.partition);
}

int kafka_verify(pawl_log *port, pawl_progress progress, void *arg, pawl_cluster_report *ret_report,
                 pawl_error *error)
{
    pawl_cluster_report report = {0};
    struct verifying job = {
        .log = (struct kafka_log *)port, .report = &report, .progress = progress, .arg = arg};
    int status = topics_each(job.log->front, &job.log->url, verify_topic, &job, error);
    if (status == PAWL_OK)
        status = step(&job, report.records, report.records, error);
    if (status != PAWL_OK) {
        kafka_verify_release(&report);
        return status;
    }
    if (report.stream_count > 0)
        qsort(report.streams, report.stream_count, sizeof *report.streams, by_name);
    *ret_report = report;
    return PAWL_OK;
}

void kafka_verify_release(pawl_cluster_report *report)
{
    mem_free(NULL, report->streams, report->stream_room * sizeof *report->streams);
    *report = (pawl_cluster_report){0};
}
