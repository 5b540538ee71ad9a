/* http/routes/metrics.c: GET /metrics: figures as Prometheus text (version 0.0.4).
 *
 * Labels are outcomes, partitions, shards, lanes, views and stores, of which there are few; never workspaces. Times are in
 * seconds, sizes in bytes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/server/server.h"

#define TYPE_METRICS         "text/plain; version=0.0.4; charset=utf-8"
#define PARTITIONS_LABEL_MAX 1024 /* of more, there is no metric for each */

struct metrics {
    pawl_engine *engine;
    FILE *out;
    pawl_figures figures;
};

static void head(const struct metrics *m, const char *name, const char *type, const char *help)
{
    fprintf(m->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(const struct metrics *m, const char *name, const char *type, const char *help, double value)
{
    head(m, name, type, help);
    fprintf(m->out, "%s %.17g\n", name, value);
}

/* The value of a label, in quotes. */
static void label(const struct metrics *m, const char *text)
{
    fputc('"', m->out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', m->out);
        fputc(*text == '\n' ? ' ' : *text, m->out);
    }
    fputc('"', m->out);
}

/* --- commands and the log --- */

static void put_results(const struct metrics *m)
{
    pawl_outcomes outcomes;
    pawl_outcomes_get(m->engine, &outcomes);
    head(m, "pawl_commands_total", "counter", "Commands that were answered, by result.");
    fprintf(m->out, "pawl_commands_total{result=\"ok\"} %" PRIu64 "\n", outcomes.ok);
    fprintf(m->out, "pawl_commands_total{result=\"repeated\"} %" PRIu64 "\n", outcomes.repeated);
    for (int i = 1; i < PAWL_OUTCOMES_MAX; i++)
        if (outcomes.failed[i] || -i == PAWL_EBUSY)
            fprintf(m->out, "pawl_commands_total{result=\"%s\"} %" PRIu64 "\n", pawl_status_name(-i),
                    outcomes.failed[i]);
}

/* Every fourth bucket: bounds are powers of two. Only those up to the last that has anything are worth a line, but
 * a bound that was there once must stay: so all up to most. */
static void put_histogram(const struct metrics *m, const char *name, const char *help, pawl_histogram_kind kind,
                          double unit, uint64_t most)
{
    pawl_histogram h = {0};
    uint64_t seen = 0;
    (void)pawl_histogram_get(m->engine, kind, 0, &h, NULL);
    head(m, name, "histogram", help);
    for (size_t i = 0; i < PAWL_HISTOGRAM_BUCKETS - 1; i++) {
        uint64_t bound = pawl_histogram_bound(kind, i);
        seen += h.buckets[i];
        if (i % 4 != 0 || bound > most)
            continue;
        fprintf(m->out, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", name, (double)bound / unit, seen);
    }
    fprintf(m->out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, h.count);
    fprintf(m->out, "%s_sum %.17g\n%s_count %" PRIu64 "\n", name, (double)h.sum / unit, name, h.count);
}

static void put_times(const struct metrics *m)
{
    put_histogram(m, "pawl_command_seconds", "From sending a command to its answer.", PAWL_HISTOGRAM_COMMAND,
                  1e9, 64 * PAWL_SECOND);
    put_histogram(m, "pawl_log_sync_seconds", "How long a sync of the log takes.", PAWL_HISTOGRAM_SYNC, 1e9,
                  64 * PAWL_SECOND);
    put_histogram(m, "pawl_log_batch_events", "Records that are written to the log with one sync.",
                  PAWL_HISTOGRAM_BATCH, 1, 65536);
    put_histogram(m, "pawl_log_ack_seconds", "How long brokers take to acknowledge a record.",
                  PAWL_HISTOGRAM_ACK, 1e9, 64 * PAWL_SECOND);
}

static void put_mirror(const struct metrics *m, const pawl_mirror_figures *f)
{
    one(m, "pawl_mirror_bytes", "gauge", "Of the mirror's files.", (double)f->bytes);
    one(m, "pawl_mirror_bytes_max", "gauge", "The bound of the mirror's files; 0: there is no mirror.",
        (double)f->bytes_max);
    one(m, "pawl_mirror_hits_total", "counter", "Entries that were read in the mirror.", (double)f->hits);
    one(m, "pawl_mirror_misses_total", "counter", "Reads that went to the brokers.", (double)f->misses);
    one(m, "pawl_mirror_dropped_total", "counter", "Acknowledged entries that the mirror left out.",
        (double)f->dropped);
    one(m, "pawl_mirror_discarded_total", "counter", "How often all of the mirror was removed.",
        (double)f->discarded);
    one(m, "pawl_mirror_unwritten_entries", "gauge", "Entries of the mirror that are not in its files yet.",
        (double)f->unwritten);
    one(m, "pawl_mirror_off", "gauge", "Whether the mirror is off, because its disk cannot be written.",
        f->off);
}

/* Those of Kafka are there, and 0, of a log in files, too: rules need not know which it is. */
static int put_log(const struct metrics *m, pawl_error *error)
{
    pawl_log_figures f;
    int status = pawl_log_figures_get(m->engine, &f, error);
    if (status != PAWL_OK)
        return status;
    head(m, "pawl_log_info", "gauge", "Which log it is, and on how many brokers what is acknowledged is.");
    fprintf(m->out, "pawl_log_info{kind=\"%s\",cluster=", f.kafka ? "kafka" : "files");
    label(m, f.cluster);
    fprintf(m->out, ",replication=\"%u\",broker_sync=\"%s\"} 1\n", f.replication,
            f.broker_sync ? "true" : "false");
    one(m, "pawl_log_unknown_entries", "gauge",
        "Entries of which nobody knows yet whether they are in the log.", (double)f.unknown);
    one(m, "pawl_log_unknown_entries_total", "counter", "Entries whose outcome was unknown at first.",
        (double)f.unknown_total);
    one(m, "pawl_log_ignored_records_total", "counter", "Records of the log that were read and did not count.",
        (double)f.ignored);
    one(m, "pawl_log_claims_held", "gauge", "Streams of the log that this node owns.", (double)f.claims_held);
    head(m, "pawl_log_claims_total", "counter", "Claims on streams of the log, by result.");
    fprintf(m->out, "pawl_log_claims_total{result=\"won\"} %" PRIu64 "\n", f.claims_won);
    fprintf(m->out, "pawl_log_claims_total{result=\"lost\"} %" PRIu64 "\n", f.claims_lost);
    one(m, "pawl_log_silence_seconds", "gauge", "Since a broker has answered.", (double)f.silence / 1e9);
    one(m, "pawl_log_stalled_seconds", "gauge", "How long entries have waited while none was acknowledged.",
        (double)f.stalled / 1e9);
    one(m, "pawl_log_outages_total", "counter", "How often no broker answered for long.", (double)f.outages);
    one(m, "pawl_log_outage_seconds_total", "counter", "How long no broker answered.",
        (double)f.outage_time / 1e9);
    one(m, "pawl_log_connection_errors_total", "counter",
        "Connections to a broker that broke or could not be made.", (double)f.connection_errors);
    one(m, "pawl_log_weak_topics", "gauge", "Topics whose settings are too weak.", (double)f.weak_topics);
    put_mirror(m, &f.mirror);
    return PAWL_OK;
}

/* --- partitions and shards --- */

static int put_partitions(const struct metrics *m, pawl_error *error)
{
    uint32_t count = pawl_partitions(m->engine);
    int status = PAWL_OK;
    if (count > PARTITIONS_LABEL_MAX)
        return PAWL_OK;
    head(m, "pawl_partition_offset", "gauge", "The offset of the partition's last event that is applied.");
    for (uint32_t i = 0; i < count && status == PAWL_OK; i++) {
        pawl_partition_figures partition;
        status = pawl_partition_figures_get(m->engine, (uint16_t)i, &partition, error);
        if (status == PAWL_OK)
            fprintf(m->out, "pawl_partition_offset{partition=\"%u\"} %" PRIu64 "\n", i, partition.offset);
    }
    return status;
}

#define SHARDS_MAX 64

static int put_shards(const struct metrics *m, pawl_error *error)
{
    pawl_shard_figures shards[SHARDS_MAX] = {0};
    uint32_t count = pawl_shards(m->engine);
    uint64_t live = 0, checkpoint = 0;
    for (uint32_t i = 0; i < count; i++) {
        int status = pawl_shard_figures_get(m->engine, i, &shards[i], error);
        if (status != PAWL_OK)
            return status;
        live += shards[i].live_bytes;
        checkpoint += shards[i].checkpoint_bytes;
    }
    head(m, "pawl_mailbox_depth", "gauge", "Commands that wait for a shard.");
    for (uint32_t i = 0; i < count; i++)
        fprintf(m->out, "pawl_mailbox_depth{shard=\"%u\"} %" PRIu64 "\n", i, shards[i].mailbox);
    head(m, "pawl_checkpoint_lag_events", "gauge", "Events that the checkpoint of a shard lacks.");
    for (uint32_t i = 0; i < count; i++)
        fprintf(m->out, "pawl_checkpoint_lag_events{shard=\"%u\"} %" PRIu64 "\n", i, shards[i].checkpoint_lag);
    head(m, "pawl_store_bytes", "gauge", "Bytes of the stores on the disk.");
    fprintf(m->out,
            "pawl_store_bytes{store=\"live\"} %" PRIu64 "\npawl_store_bytes{store=\"checkpoint\"} %" PRIu64
            "\n",
            live, checkpoint);
    return PAWL_OK;
}

static void put_sequencers(const struct metrics *m)
{
    static const char *const names[] = {[PAWL_SEQUENCER_NONE] = "none",
                                        [PAWL_SEQUENCER_RECOVERING] = "recovering",
                                        [PAWL_SEQUENCER_READY] = "ready",
                                        [PAWL_SEQUENCER_EVENTING] = "eventing",
                                        [PAWL_SEQUENCER_FINISHED] = "finished"};
    const pawl_figures *f = &m->figures;
    head(m, "pawl_sequencer_status", "gauge", "Partitions whose sequencer is in a state.");
    for (size_t i = 0; i <= PAWL_SEQUENCER_FINISHED; i++)
        fprintf(m->out, "pawl_sequencer_status{state=\"%s\"} %u\n", names[i], f->sequencer_states[i]);
    one(m, "pawl_sequencer_unflushed", "gauge", "Numbers that the sequence storage lacks.",
        (double)f->sequencers.unflushed);
    one(m, "pawl_sequencer_flush_failures_total", "counter", "Writes of the sequence storage that failed.",
        (double)f->sequencers.flush_failures);
    one(m, "pawl_recovery_seconds", "gauge", "How long the slowest last recovery of a sequencer took.",
        (double)f->sequencers.recovery_ns_last / 1e9);
}

static void put_state(const struct metrics *m)
{
    const pawl_figures *f = &m->figures;
    one(m, "pawl_checkpoint_lag_max_events", "gauge",
        "How many events a checkpoint may lack before commands wait.", (double)f->checkpoint_lag_max);
    one(m, "pawl_checkpoint_failures_total", "counter",
        "Failures of reading, deriving or writing a checkpoint.", (double)f->checkpoint_failures);
    one(m, "pawl_commands_held_total", "counter", "Times that commands had to wait for a checkpoint.",
        (double)f->held);
    one(m, "pawl_audits_total", "counter", "Comparisons of the two states.", (double)f->audits);
    one(m, "pawl_replayed_events_total", "counter", "Events applied again because the state lacked them.",
        (double)f->replayed);
}

/* --- lanes --- */

#define LANES_MAX 256

struct lane_sum {
    char name[160];
    uint32_t generation;
    uint64_t behind;
    uint64_t run_ahead; /* of the partition that works ahead least */
    pawl_lease_figures leases;
};

struct lane_sums {
    size_t count;
    struct lane_sum lanes[LANES_MAX];
};

/* Only the generation that serves has a line: the other one will soon be it, and a name must not appear twice. */
static bool add_lane(void *arg, const pawl_lane_status *status)
{
    struct lane_sums *sums = arg;
    size_t i = 0;
    if (!status->serving)
        return true;
    while (i < sums->count && strcmp(sums->lanes[i].name, status->lane) != 0)
        i++;
    if (i == LANES_MAX || strlen(status->lane) >= sizeof sums->lanes[i].name)
        return true;
    struct lane_sum *sum = &sums->lanes[i];
    if (i == sums->count) {
        sums->count++;
        *sum = (struct lane_sum){.generation = status->generation, .run_ahead = status->run_ahead};
        snprintf(sum->name, sizeof sum->name, "%s", status->lane);
    }
    sum->behind += status->end > status->offset ? status->end - status->offset : 0;
    sum->run_ahead = status->run_ahead < sum->run_ahead ? status->run_ahead : sum->run_ahead;
    pawl_lease_figures_add(&sum->leases, &status->leases);
    return true;
}

enum lane_value {
    LANE_BEHIND,
    LANE_WINDOW,
    LANE_ACTIVE,
    LANE_WAITING,
    LANE_STALLED,
    LANE_COMMITTED,
    LANE_EXPIRED,
    LANE_FAILED,
    LANE_VOIDS,
    LANE_FENCED,
    LANE_REPEATED,
    LANE_REPEATED_TIME,
    LANE_RUN_AHEAD,
    LANE_AVERAGE_WAIT,
    LANE_P99_WAIT,
    LANE_UTILISATION,
    LANE_EFFICIENCY,
};

static double lane_value(const struct lane_sum *lane, enum lane_value value)
{
    const pawl_lease_figures *f = &lane->leases;
    switch (value) {
    case LANE_BEHIND: return (double)lane->behind;
    case LANE_WINDOW: return (double)(f->bound - f->watermark);
    case LANE_ACTIVE: return (double)f->active;
    case LANE_WAITING: return (double)f->waiting;
    case LANE_STALLED: return (double)f->stalled;
    case LANE_COMMITTED: return (double)f->committed;
    case LANE_EXPIRED: return (double)f->expired;
    case LANE_FAILED: return (double)f->failed;
    case LANE_VOIDS: return (double)f->voids;
    case LANE_FENCED: return (double)f->fenced;
    case LANE_REPEATED: return (double)f->repeated;
    case LANE_REPEATED_TIME: return (double)f->repeated_time / 1e9;
    case LANE_RUN_AHEAD: return (double)lane->run_ahead;
    case LANE_AVERAGE_WAIT: return (double)f->average_wait / 1e9;
    case LANE_P99_WAIT: return (double)f->p99_wait / 1e9;
    case LANE_UTILISATION: return f->utilisation;
    case LANE_EFFICIENCY: return f->efficiency;
    }
    return 0;
}

static const struct {
    enum lane_value value;
    const char *name;
    const char *type;
    const char *help;
} lane_metrics[] = {
    {LANE_BEHIND, "pawl_lane_behind_events", "gauge", "Events that the lane has not applied yet."},
    {LANE_WINDOW, "pawl_lease_window", "gauge", "Operations that are bound and not committed."},
    {LANE_ACTIVE, "pawl_lease_active", "gauge", "Operations that somebody works on."},
    {LANE_WAITING, "pawl_lease_waiting", "gauge", "Operations that were handed in and wait for their turn."},
    {LANE_STALLED, "pawl_lease_stalled", "gauge", "Operations that failed too often and wait for a decision."},
    {LANE_COMMITTED, "pawl_lease_committed_total", "counter", "Operations that were committed."},
    {LANE_EXPIRED, "pawl_lease_expired_total", "counter", "Leases that ended before the work was handed in."},
    {LANE_FAILED, "pawl_lease_failed_total", "counter", "Attempts that failed."},
    {LANE_VOIDS, "pawl_lease_voids_total", "counter", "Operations that were committed as void."},
    {LANE_FENCED, "pawl_lease_fenced_total", "counter", "Calls of workers whose lease was no longer theirs."},
    {LANE_REPEATED, "pawl_lease_repeated_total", "counter",
     "Operations that were run again because what they had read changed."},
    {LANE_REPEATED_TIME, "pawl_lease_repeated_seconds_total", "counter",
     "Time that went into runs that were repeated."},
    {LANE_RUN_AHEAD, "pawl_lease_run_ahead", "gauge",
     "Operations behind the last one in order that are given out, at most."},
    {LANE_AVERAGE_WAIT, "pawl_lease_wait_average_seconds", "gauge",
     "Between handing in and the turn, over the last minute."},
    {LANE_P99_WAIT, "pawl_lease_wait_p99_seconds", "gauge", "The same, of 99 in 100."},
    {LANE_UTILISATION, "pawl_lease_utilisation_ratio", "gauge",
     "How much of the time that was granted was used."},
    {LANE_EFFICIENCY, "pawl_lease_efficiency_ratio", "gauge",
     "Committed operations, of these and of leases that expired."},
};

static int put_lanes(const struct metrics *m, pawl_error *error)
{
    struct lane_sums *sums = calloc(1, sizeof *sums);
    if (!sums)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for metrics");
    int status = pawl_lanes_read(m->engine, NULL, add_lane, sums, error);
    for (size_t i = 0; i < sizeof lane_metrics / sizeof lane_metrics[0] && status == PAWL_OK && sums->count;
         i++) {
        head(m, lane_metrics[i].name, lane_metrics[i].type, lane_metrics[i].help);
        for (size_t k = 0; k < sums->count; k++) {
            fprintf(m->out, "%s{lane=", lane_metrics[i].name);
            label(m, sums->lanes[k].name);
            fprintf(m->out, "} %.17g\n", lane_value(&sums->lanes[k], lane_metrics[i].value));
        }
    }
    free(sums);
    return status;
}

/* --- views --- */

struct viewing {
    const struct metrics *m;
    int pass;
    size_t count;
};

static bool put_view(void *arg, const pawl_view_status *v)
{
    static const char *const names[] = {"pawl_view_build_tasks", "pawl_view_build_rows_total",
                                        "pawl_view_build_percent", "pawl_view_rows", "pawl_view_failed"};
    struct viewing *viewing = arg;
    const double values[] = {(double)v->tasks_left, (double)v->rows_done, v->percent, (double)v->rows,
                             v->state == PAWL_VIEW_FAILED};
    fprintf(viewing->m->out, "%s{view=", names[viewing->pass]);
    label(viewing->m, v->name);
    fprintf(viewing->m->out, "} %.17g\n", values[viewing->pass]);
    return true;
}

static bool count_view(void *arg, const pawl_view_status *v)
{
    struct viewing *viewing = arg;
    (void)v;
    viewing->count++;
    return false;
}

static int put_views(const struct metrics *m, pawl_error *error)
{
    static const struct {
        const char *name;
        const char *type;
        const char *help;
    } heads[] = {
        {"pawl_view_build_tasks", "gauge", "Tasks of building a view that are left."},
        {"pawl_view_build_rows_total", "counter", "Base rows that were read to build a view."},
        {"pawl_view_build_percent", "gauge", "How much of a view is built, 0 to 100."},
        {"pawl_view_rows", "gauge", "Rows of a view."},
        {"pawl_view_failed", "gauge", "1: a unique view could not be built, because two rows have equal keys."},
    };
    struct viewing viewing = {.m = m};
    int status = pawl_view_status_read(m->engine, NULL, count_view, &viewing, error);
    for (; status == PAWL_OK && viewing.count && viewing.pass < (int)(sizeof heads / sizeof heads[0]);
         viewing.pass++) {
        head(m, heads[viewing.pass].name, heads[viewing.pass].type, heads[viewing.pass].help);
        status = pawl_view_status_read(m->engine, NULL, put_view, &viewing, error);
    }
    return status;
}

/* --- the server --- */

static size_t count_alerts(const struct metrics *m)
{
    pawl_text text;
    size_t lines = 0;
    if (pawl_alerts_json(m->engine, &text, NULL) != PAWL_OK)
        return 0;
    for (size_t i = 0; i < text.size; i++)
        lines += text.data[i] == '\n';
    pawl_text_free(&text);
    return lines;
}

static void put_server(const struct metrics *m, struct pawl_server *server)
{
    struct hub_figures hub;
    hub_figures_get(server->hub, &hub);
    pthread_mutex_lock(&server->lock);
    size_t exchanges = server->exchanges;
    pthread_mutex_unlock(&server->lock);
    one(m, "pawl_alerts", "gauge", "Alerts now; GET /v1/alerts lists them.", (double)count_alerts(m));
    one(m, "pawl_http_exchanges", "gauge", "HTTP requests that are being answered, streams too.",
        (double)exchanges);
    one(m, "pawl_http_followers", "gauge", "Clients that follow events or figures.", (double)hub.clients);
    one(m, "pawl_http_followers_cut_total", "counter",
        "Followers that were cut off because they were too slow.", (double)hub.cut);
    one(m, "pawl_http_events_sent_total", "counter", "Events that were sent to followers.", (double)hub.sent);
    one(m, "pawl_http_pages_total", "counter", "Pages of events that were read from the log for followers.",
        (double)hub.pages);
}

static int put_all(struct metrics *m, struct pawl_server *server, pawl_error *error)
{
    int status = pawl_figures_get(m->engine, &m->figures, error);
    if (status != PAWL_OK)
        return status;
    head(m, "pawl_build_info", "gauge", "Which version runs.");
    fprintf(m->out, "pawl_build_info{version=\"%s\",commit=\"%s\"} 1\n", pawl_version()->version,
            pawl_version()->commit);
    put_results(m);
    put_times(m);
    put_sequencers(m);
    put_state(m);
    status = put_log(m, error);
    if (status == PAWL_OK)
        status = put_partitions(m, error);
    if (status == PAWL_OK)
        status = put_shards(m, error);
    if (status == PAWL_OK)
        status = put_lanes(m, error);
    if (status == PAWL_OK)
        status = put_views(m, error);
    put_server(m, server);
    return status;
}

void metrics_get(struct exchange *x)
{
    char *text = NULL;
    size_t size = 0;
    pawl_error error = {0};
    struct metrics m = {.engine = exchange_engine(x), .out = open_memstream(&text, &size)};
    if (!m.out) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for metrics");
        return;
    }
    int status = put_all(&m, exchange_server(x), &error);
    if (fclose(m.out) != 0 && status == PAWL_OK)
        status = pawl_error_set(&error, PAWL_ENOMEM, "no memory for metrics");
    if (status == PAWL_OK)
        exchange_answer_copy(x, HTTP_OK, TYPE_METRICS, (pawl_bytes){text, size});
    else
        exchange_fail(x, &error);
    free(text);
}
