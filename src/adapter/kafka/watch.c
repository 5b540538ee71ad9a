/* adapter/kafka/watch.c: whether brokers answer, whether entries are acknowledged, and whether topics are still what they
 * must be: for figures and alerts.
 *
 * A thread of its own looks once a second. If nothing was heard of the brokers meanwhile, it asks one of them for
 * metadata. Every check-ms it looks at the settings of the topics whose streams this log owns, as a claim does, and of the
 * list of operation logs if it owns one. It only reports: who may write, and what is acknowledged, never depends on it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "adapter/kafka/impl.h"
#include "adapter/kafka/topics.h"
#include "base/alloc.h"
#include "base/error.h"

#define LOOK_EVERY_NS  ((uint64_t)1000 * 1000 * 1000)
#define PROBE_MS       1000                /* closing waits for a probe */
#define TOO_LONG_PARTS 3                   /* of timeout-ms, one of them without an answer is an outage */
#define TOO_LONG_NS    (3 * LOOK_EVERY_NS) /* but never less */
#define TOPICS_MAX     256                 /* that are looked at; of a log with more lanes, the first ones */

static uint64_t too_long_ns(const struct kafka_log *log)
{
    uint64_t part = (uint64_t)log->url.timeout_ms * 1000000 / TOO_LONG_PARTS;
    return part > TOO_LONG_NS ? part : TOO_LONG_NS;
}

/* --- whether brokers answer --- */

void watch_heard(struct kafka_log *log, uint64_t now)
{
    struct watch *w = &log->watch;
    if (w->out)
        w->out_ns += now - w->heard;
    w->out = false;
    w->heard = now;
}

void watch_event(struct kafka_log *log, rd_kafka_event_t *event)
{
    rd_kafka_resp_err_t err = rd_kafka_event_error(event);
    log->watch.connection_errors +=
        rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR
        && (err == RD_KAFKA_RESP_ERR__TRANSPORT || err == RD_KAFKA_RESP_ERR__RESOLVE
            || err == RD_KAFKA_RESP_ERR__AUTHENTICATION || err == RD_KAFKA_RESP_ERR__SSL);
}

/* Without the lock. It asks for a topic by name: librdkafka 2.0.2, asked for those that the client knows, lets the broker
 * make the ones that are missing, whatever allow.auto.create.topics says. */
static void probe(struct kafka_log *log)
{
    const rd_kafka_metadata_t *metadata;
    char topic[KAFKA_TOPIC_MAX];
    kafka_topic_of(log->url.cluster, (pawl_stream){.kind = PAWL_STREAM_GROUP0}, topic);
    rd_kafka_topic_t *handle = rd_kafka_topic_new(log->front, topic, NULL);
    if (!handle)
        return;
    rd_kafka_resp_err_t err = rd_kafka_metadata(log->front, 0, handle, &metadata, PROBE_MS);
    rd_kafka_topic_destroy(handle);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    rd_kafka_metadata_destroy(metadata);
    pthread_mutex_lock(&log->lock);
    watch_heard(log, clock_boot_ns());
    pthread_mutex_unlock(&log->lock);
}

/* --- whether entries are acknowledged --- */

/* Something was sent, and it is not known what became of it. */
static bool is_waiting(const struct stream *s)
{
    return !s->corrupt && (s->owner.count > 0 || s->unknown > 0);
}

static uint64_t stalled_ns(const struct kafka_log *log, uint64_t now)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < log->stream_count; i++) {
        const struct stream *s = log->streams[i];
        if (is_waiting(s) && s->moved > 0 && now > s->moved && now - s->moved > longest)
            longest = now - s->moved;
    }
    return longest;
}

static void note_idle(struct kafka_log *log, uint64_t now)
{
    for (size_t i = 0; i < log->stream_count; i++)
        if (!is_waiting(log->streams[i]) || log->streams[i]->moved == 0)
            log->streams[i]->moved = now;
}

/* --- whether topics are as they must be --- */

struct topics {
    char names[TOPICS_MAX][KAFKA_TOPIC_MAX];
    size_t count;
};

static bool is_listed(const struct topics *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->names[i], name) == 0)
            return true;
    return false;
}

static bool is_held(const struct stream *s)
{
    return s->owner.state == OWNER_OWNING;
}

/* The list of operation logs comes with the first of them. */
static void list_topics(const struct kafka_log *log, struct topics *t)
{
    char list[KAFKA_TOPIC_MAX] = "";
    kafka_oplogs_topic(log->url.cluster, list);
    for (size_t i = 0; i < log->stream_count && t->count + 2 <= TOPICS_MAX; i++) {
        const struct stream *s = log->streams[i];
        if (is_held(s) && s->id.kind == PAWL_STREAM_OPLOG && !is_listed(t, list))
            memcpy(t->names[t->count++], list, sizeof list);
        if (is_held(s) && !is_listed(t, s->topic))
            memcpy(t->names[t->count++], s->topic, sizeof s->topic);
    }
}

/* Without the lock. A topic that nobody tells about now keeps the verdict that it had. */
static void check_topics(struct kafka_log *log)
{
    struct topics *t = mem_new(log->alloc, 1, sizeof *t);
    uint32_t weak = 0;
    pawl_error first = {0}, error = {0};
    bool known = true;
    if (!t)
        return;
    pthread_mutex_lock(&log->lock);
    list_topics(log, t);
    pthread_mutex_unlock(&log->lock);
    for (size_t i = 0; i < t->count && known; i++) {
        int status = topic_check(log->front, &log->url, t->names[i], NULL, &error);
        known = status == PAWL_OK || status == PAWL_EINVAL || status == PAWL_ENOTFOUND;
        if (!known || status == PAWL_OK)
            continue;
        if (weak++ == 0)
            first = error;
    }
    mem_free(log->alloc, t, sizeof *t);
    if (!known)
        return;
    pthread_mutex_lock(&log->lock);
    log->watch.weak_topics = weak;
    log->watch.weak = first;
    pthread_mutex_unlock(&log->lock);
}

/* --- the thread --- */

/* With the lock; false: it is over. */
static bool pause_watch(struct kafka_log *log)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(LOOK_EVERY_NS / 1000000000);
    while (!log->stopping)
        if (pthread_cond_timedwait(&log->watch.wake, &log->lock, &until) != 0)
            break;
    return !log->stopping;
}

static void *watch_thread(void *arg)
{
    struct kafka_log *log = arg;
    struct watch *w = &log->watch;
    pthread_mutex_lock(&log->lock);
    while (pause_watch(log)) {
        uint64_t now = clock_boot_ns();
        note_idle(log, now);
        bool silent = now - w->heard >= LOOK_EVERY_NS / 2;
        bool due = !w->out && now >= w->check_at && !log->trust_topics;
        w->outages += now - w->heard >= too_long_ns(log) && !w->out;
        w->out = now - w->heard >= too_long_ns(log);
        if (due)
            w->check_at = now + (uint64_t)log->url.check_ms * 1000000;
        pthread_mutex_unlock(&log->lock);
        if (silent)
            probe(log);
        if (due)
            check_topics(log);
        pthread_mutex_lock(&log->lock);
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

int watch_start(struct kafka_log *log)
{
    struct watch *w = &log->watch;
    pthread_condattr_t monotonic;
    w->heard = clock_boot_ns();
    w->check_at = w->heard + (uint64_t)log->url.check_ms * 1000000;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&w->thread, NULL, watch_thread, log) == 0)
        return PAWL_OK;
    pthread_cond_destroy(&w->wake);
    return PAWL_ENOMEM;
}

void watch_stop(struct kafka_log *log)
{
    pthread_mutex_lock(&log->lock);
    pthread_cond_signal(&log->watch.wake);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->watch.thread, NULL);
    pthread_cond_destroy(&log->watch.wake);
}

/* --- what it has seen --- */

void kafka_log_look(pawl_log *port, pawl_log_figures *ret_figures)
{
    struct kafka_log *log = (struct kafka_log *)port;
    const struct watch *w = &log->watch;
    struct kafka_figures counts;
    kafka_log_figures(port, &counts);
    pawl_log_figures f = {.kafka = true,
                          .replication = log->url.replication,
                          .broker_sync = !log->url.no_broker_sync,
                          .node = log->node,
                          .acknowledged = counts.acknowledged,
                          .unknown_total = counts.unknown,
                          .gaps = counts.gaps,
                          .ignored = counts.ignored,
                          .claims_won = counts.claims_won,
                          .claims_lost = counts.claims_lost,
                          .lag = counts.lag};
    snprintf(f.brokers, sizeof f.brokers, "%s", log->url.brokers);
    snprintf(f.cluster, sizeof f.cluster, "%s", log->url.cluster);
    pthread_mutex_lock(&log->lock);
    uint64_t now = clock_boot_ns();
    for (size_t i = 0; i < log->stream_count; i++) {
        f.unknown += log->streams[i]->unknown;
        f.claims_held += is_held(log->streams[i]);
    }
    f.silence = now > w->heard ? now - w->heard : 0;
    f.stalled = stalled_ns(log, now);
    f.outages = w->outages;
    f.outage_time = w->out_ns + (w->out ? f.silence : 0);
    f.connection_errors = w->connection_errors;
    f.weak_topics = w->weak_topics;
    pthread_mutex_unlock(&log->lock);
    *ret_figures = f;
}

int kafka_log_outage(pawl_log *port, pawl_error *ret_error)
{
    struct kafka_log *log = (struct kafka_log *)port;
    pthread_mutex_lock(&log->lock);
    uint64_t now = clock_boot_ns(), stalled = stalled_ns(log, now);
    uint64_t silence = now > log->watch.heard ? now - log->watch.heard : 0;
    pthread_mutex_unlock(&log->lock);
    if (silence >= too_long_ns(log))
        return error_set(ret_error, PAWL_EIO, "no broker of %.120s has answered for %" PRIu64 " s",
                         log->url.brokers, silence / 1000000000);
    if (stalled >= too_long_ns(log))
        return error_set(ret_error, PAWL_EIO,
                         "the brokers of cluster %.100s have acknowledged nothing for %" PRIu64
                         " s, though entries wait for it",
                         log->url.cluster, stalled / 1000000000);
    return PAWL_OK;
}

int kafka_log_weakness(pawl_log *port, pawl_error *ret_error)
{
    struct kafka_log *log = (struct kafka_log *)port;
    pthread_mutex_lock(&log->lock);
    pawl_error weak = log->watch.weak;
    uint32_t topics = log->watch.weak_topics;
    pthread_mutex_unlock(&log->lock);
    if (topics == 0)
        return PAWL_OK;
    if (topics == 1)
        return error_set(ret_error, weak.code, "%s", weak.text);
    return error_set(ret_error, weak.code, "%.180s (and %" PRIu32 " more)", weak.text, topics - 1);
}

size_t kafka_log_claims(pawl_log *port, pawl_claim_figures *claims, size_t room)
{
    struct kafka_log *log = (struct kafka_log *)port;
    size_t count = 0;
    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < log->stream_count; i++) {
        const struct stream *s = log->streams[i];
        const struct judge *j = s->owner.judge.at < s->latest.judge.at ? &s->latest.judge : &s->owner.judge;
        if (j->epoch == 0)
            continue;
        if (count < room)
            claims[count] = (pawl_claim_figures){.stream = s->id,
                                                 .node = j->node,
                                                 .epoch = j->epoch,
                                                 .assignment = j->group0,
                                                 .held = is_held(s)};
        count++;
    }
    pthread_mutex_unlock(&log->lock);
    return count;
}

void kafka_log_acks(pawl_log *port, uint32_t seconds, pawl_histogram *sum)
{
    struct kafka_log *log = (struct kafka_log *)port;
    histogram_sum(&log->acks, (pawl_instant){clock_boot_ns()}, seconds, sum);
}
