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

struct verified_stream {
    struct verifying *job;
    pawl_cluster_report_stream stream;
};

static int step(struct verifying *job, uint64_t done, uint64_t total, pawl_error *error)
{
    if (!job->progress || job->progress(job->arg, done, total))
        return PAWL_OK;
    return error_set(error, PAWL_ECANCELED, "the verification of %s was cancelled", job->log->url.cluster);
}

static int note(void *arg, const struct scanned *found, pawl_error *error)
{
    struct verified_stream *v = arg;
    (void)error;
    v->stream.claims += found->claimed;
    v->stream.entries += found->entry != NULL;
    v->stream.bytes += found->bytes;
    return PAWL_OK;
}

static int tick(void *arg, const struct stream_reader *reader, pawl_error *error)
{
    struct verified_stream *v = arg;
    return step(v->job, v->job->report->records + reader->judged.judge.at, 0, error);
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

static void note_fault(struct verifying *job, const pawl_error *error)
{
    if (job->report->faults++ == 0)
        job->report->first = *error;
}

/* Also while nobody says where the stream ends. */
static int wait(void *arg, pawl_error *error)
{
    struct verified_stream *v = arg;
    return step(v->job, v->job->report->records, 0, error);
}

static int verify_stream(struct verifying *job, pawl_stream stream, pawl_error *error)
{
    struct verified_stream v = {.job = job, .stream = {.id = stream}};
    const struct stream_scan scan = {.visit = note, .tick = tick, .wait = wait, .arg = &v};
    struct scan_end end;
    int status = stream_scan(job->log, stream, &scan, &end, error);
    v.stream.records = end.judged.judge.at;
    v.stream.epoch = end.judged.judge.epoch;
    v.stream.ignored = end.ignored;
    if (status == PAWL_ECORRUPT || status == PAWL_EVERSION) {
        note_fault(job, error);
        status = PAWL_OK;
    }
    if (status == PAWL_OK && v.stream.records > 0)
        status = add_stream(job, &v.stream, error);
    return status == PAWL_OK || status == PAWL_ECANCELED ? status : error_wrap(error, status, "verify");
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

static int note_lost(void *arg, pawl_error *error)
{
    struct verifying *job = arg;
    note_fault(job, error);
    return step(job, job->report->records, 0, error);
}

static int wait_for_topics(void *arg, pawl_error *error)
{
    struct verifying *job = arg;
    return step(job, job->report->records, 0, error);
}

/* Operation logs whose topics were deleted. */
static int find_lost(struct verifying *job, pawl_error *error)
{
    struct kafka_log *log = job->log;
    const struct oplog_search search = {.lost = note_lost, .wait = wait_for_topics, .arg = job};
    struct oplog_list made = {0};
    pthread_mutex_lock(&log->oplogs_lock);
    int status = log->trust_topics ? PAWL_OK : oplogs_load(log->front, &log->url, &made, error);
    pthread_mutex_unlock(&log->oplogs_lock);
    if (status == PAWL_OK)
        status = oplogs_find_lost(log->front, &log->url, &made, &search, error);
    oplogs_release(&made);
    return status;
}

static int copy_skips(const struct kafka_log *log, pawl_cluster_report *report, pawl_error *error)
{
    if (log->skips.count == 0)
        return PAWL_OK;
    report->skipped = mem_new(NULL, log->skips.count, sizeof *report->skipped);
    if (!report->skipped)
        return error_set(error, PAWL_ENOMEM, "no memory for the report");
    for (size_t i = 0; i < log->skips.count; i++)
        report->skipped[report->skipped_count++] = log->skips.items[i].shown;
    return PAWL_OK;
}

int kafka_verify(pawl_log *port, pawl_progress progress, void *arg, pawl_cluster_report *ret_report,
                 pawl_error *error)
{
    pawl_cluster_report report = {0};
    struct verifying job = {
        .log = (struct kafka_log *)port, .report = &report, .progress = progress, .arg = arg};
    int status = topics_each(job.log->front, &job.log->url, verify_topic, &job, error);
    if (status == PAWL_OK)
        status = find_lost(&job, error);
    if (status == PAWL_OK)
        status = step(&job, report.records, report.records, error);
    if (status == PAWL_OK)
        status = copy_skips(job.log, &report, error);
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
    mem_free(NULL, report->skipped, report->skipped_count * sizeof *report->skipped);
    *report = (pawl_cluster_report){0};
}
