#include "engine/node/log_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/node/node.h"
#include "engine/node/put.h"

#define ROOM_MORE 64 /* streams that may be claimed between counting and listing them */

void times_json_put(struct json_out *out, const char *key, const pawl_histogram *h, pawl_histogram_kind kind)
{
    out_key(out, key);
    out_open(out, '{');
    put_number(out, "count", h->count);
    put_seconds(out, "mean", h->count ? h->sum / h->count : 0);
    put_seconds(out, "p50", pawl_histogram_quantile(h, kind, 0.5));
    put_seconds(out, "p99", pawl_histogram_quantile(h, kind, 0.99));
    out_close(out, '}');
}

static void put_syncs(pawl_engine *e, struct json_out *out)
{
    pawl_histogram syncs = {0}, batches = {0};
    (void)pawl_histogram_get(e, PAWL_HISTOGRAM_SYNC, 10, &syncs, NULL);
    (void)pawl_histogram_get(e, PAWL_HISTOGRAM_BATCH, 10, &batches, NULL);
    put_real(out, "syncs_10s", (double)syncs.count / 10);
    times_json_put(out, "sync_10s", &syncs, PAWL_HISTOGRAM_SYNC);
    put_real(out, "batch_mean_10s", batches.count ? (double)batches.sum / (double)batches.count : 0);
    put_number(out, "batch_p99_10s", pawl_histogram_quantile(&batches, PAWL_HISTOGRAM_BATCH, 0.99));
}

/* --- claims, one object for the streams of each topic --- */

struct topic_sum {
    uint32_t streams;
    uint32_t held;
    pawl_claim_figures newest; /* the one on the newest assignment; of these, the one with the highest epoch */
};

static bool is_same_topic(pawl_stream a, pawl_stream b)
{
    return a.kind == b.kind && a.lane == b.lane && a.generation == b.generation;
}

static bool is_newer(const pawl_claim_figures *a, const pawl_claim_figures *b)
{
    return a->assignment != b->assignment ? a->assignment > b->assignment : a->epoch > b->epoch;
}

/* Into an array with room for all of them; how many topics there are. */
static size_t sum_up(const pawl_claim_figures *claims, size_t count, struct topic_sum *sums)
{
    size_t topics = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < topics && !is_same_topic(sums[k].newest.stream, claims[i].stream))
            k++;
        if (k == topics)
            sums[topics++] = (struct topic_sum){.newest = claims[i]};
        sums[k].streams++;
        sums[k].held += claims[i].held;
        if (is_newer(&claims[i], &sums[k].newest))
            sums[k].newest = claims[i];
    }
    return topics;
}

static void put_id(struct json_out *out, const char *key, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, id);
    put_words(out, key, text);
}

/* "plog", "oplog/7.2": a stream's name without its partition. */
static void put_topic(struct json_out *out, pawl_stream s)
{
    char text[PAWL_STREAM_TEXT_MAX];
    switch (s.kind) {
    case PAWL_STREAM_GROUP0: snprintf(text, sizeof text, "group0"); break;
    case PAWL_STREAM_PLOG: snprintf(text, sizeof text, "plog"); break;
    case PAWL_STREAM_OPLOG: snprintf(text, sizeof text, "oplog/%u.%" PRIu32, s.lane, s.generation); break;
    default: snprintf(text, sizeof text, "raw");
    }
    put_words(out, "topic", text);
}

static void put_topics(struct json_out *out, const struct topic_sum *sums, size_t count)
{
    out_key(out, "topics");
    out_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        out_open(out, '{');
        put_topic(out, sums[i].newest.stream);
        put_number(out, "streams", sums[i].streams);
        put_number(out, "held", sums[i].held);
        put_id(out, "node", sums[i].newest.node);
        put_number(out, "epoch", sums[i].newest.epoch);
        put_number(out, "assignment", sums[i].newest.assignment);
        out_close(out, '}');
    }
    out_close(out, ']');
}

static int put_claims(pawl_engine *e, const pawl_log_figures *f, struct json_out *out, pawl_error *error)
{
    const pawl_allocator *alloc = e->options.allocator;
    size_t count = 0;
    int status = pawl_claim_figures_get(e, NULL, 0, &count, error);
    if (status != PAWL_OK)
        return status;
    size_t room = count + ROOM_MORE;
    pawl_claim_figures *claims = mem_new(alloc, room, sizeof *claims);
    struct topic_sum *sums = mem_new(alloc, room, sizeof *sums);
    status = claims && sums ? pawl_claim_figures_get(e, claims, room, &count, error)
                            : error_set(error, PAWL_ENOMEM, "no memory to list the claims");
    if (status == PAWL_OK) {
        out_key(out, "claims");
        out_open(out, '{');
        put_number(out, "held", f->claims_held);
        put_number(out, "won", f->claims_won);
        put_number(out, "lost", f->claims_lost);
        put_topics(out, sums, sum_up(claims, count < room ? count : room, sums));
        out_close(out, '}');
    }
    mem_free(alloc, claims, claims ? room * sizeof *claims : 0);
    mem_free(alloc, sums, sums ? room * sizeof *sums : 0);
    return status;
}

static void put_mirror(struct json_out *out, const pawl_mirror_figures *m)
{
    out_key(out, "mirror");
    out_open(out, '{');
    put_number(out, "bytes", m->bytes);
    put_number(out, "bytes_max", m->bytes_max);
    put_number(out, "hits", m->hits);
    put_number(out, "misses", m->misses);
    put_number(out, "dropped", m->dropped);
    put_number(out, "discarded", m->discarded);
    put_number(out, "unwritten", m->unwritten);
    put_flag(out, "off", m->off);
    put_words(out, "why", m->why);
    out_close(out, '}');
}

static int put_kafka(pawl_engine *e, const pawl_log_figures *f, struct json_out *out, pawl_error *error)
{
    pawl_histogram acks = {0};
    (void)pawl_histogram_get(e, PAWL_HISTOGRAM_ACK, 10, &acks, NULL);
    out_key(out, "kafka");
    out_open(out, '{');
    put_words(out, "cluster", f->cluster);
    put_words(out, "brokers", f->brokers);
    put_number(out, "replication", f->replication);
    put_flag(out, "broker_sync", f->broker_sync);
    put_id(out, "node", f->node);
    put_number(out, "assignment", f->assignment);
    put_real(out, "acks_10s", (double)acks.count / 10);
    times_json_put(out, "ack_10s", &acks, PAWL_HISTOGRAM_ACK);
    put_number(out, "acknowledged", f->acknowledged);
    put_number(out, "unknown", f->unknown);
    put_number(out, "unknown_total", f->unknown_total);
    put_number(out, "gaps", f->gaps);
    put_number(out, "ignored", f->ignored);
    put_number(out, "lag", f->lag);
    put_seconds(out, "silence", f->silence);
    put_seconds(out, "stalled", f->stalled);
    put_number(out, "outages", f->outages);
    put_seconds(out, "outage_time", f->outage_time);
    put_number(out, "connection_errors", f->connection_errors);
    put_number(out, "weak_topics", f->weak_topics);
    put_mirror(out, &f->mirror);
    int status = put_claims(e, f, out, error);
    out_close(out, '}');
    return status;
}

int log_json_put(pawl_engine *e, struct json_out *out, pawl_error *error)
{
    pawl_log_figures figures;
    int status = pawl_log_figures_get(e, &figures, error);
    if (status != PAWL_OK)
        return status;
    out_key(out, "log");
    out_open(out, '{');
    put_words(out, "kind", figures.kafka ? "kafka" : "files");
    put_syncs(e, out);
    if (figures.kafka)
        status = put_kafka(e, &figures, out, error);
    out_close(out, '}');
    return status;
}
