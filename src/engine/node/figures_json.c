/* engine/node/figures_json.c: what an operator wants to see at a glance, and what is alarming, as JSON. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/json/json.h"
#include "engine/node/log_json.h"
#include "engine/node/node.h"
#include "engine/node/put.h"
#include "engine/read/read.h"

#define PARTITIONS_SHOWN 256  /* of more, only the shards' sums are shown */
#define TABLETS_SHOWN    1024 /* of more, none */

/* --- alerts --- */

static const char *alert_name(pawl_alert_kind kind)
{
    switch (kind) {
    case PAWL_ALERT_DIFFERENT: return "different";
    case PAWL_ALERT_LIVE: return "live";
    case PAWL_ALERT_CHECKPOINT: return "checkpoint";
    case PAWL_ALERT_LOG: return "log";
    case PAWL_ALERT_BROKER: return "no_broker";
    case PAWL_ALERT_FENCED: return "fenced";
    case PAWL_ALERT_SETTINGS: return "settings";
    case PAWL_ALERT_MIRROR: return "mirror";
    }
    return "?";
}

const char *pawl_alert_advice(pawl_alert_kind kind)
{
    switch (kind) {
    case PAWL_ALERT_DIFFERENT:
        return "Run 'pawl verify --audit': it says which of the two states is right, and names the row.";
    case PAWL_ALERT_LIVE:
        return "The live state is damaged: check the disk and the memory, then stop, and derive it from the "
               "log "
               "again with 'pawl replay'.";
    case PAWL_ALERT_CHECKPOINT:
        return "The checkpoint is damaged: check the disk, and take a backup now, while the live state is "
               "good.";
    case PAWL_ALERT_LOG:
        return "Stop writing, keep the directory as it is, and run 'pawl doctor', or 'pawl verify --log URL' "
               "if "
               "the log is on Kafka: it says what the log still holds. Of an operation log that was deleted, "
               "docs/KAFKA.md says how to go on.";
    case PAWL_ALERT_BROKER:
        return "See whether the brokers run, and whether this machine reaches them; too few replicas in sync "
               "stop "
               "them, too. Nothing that was answered is lost, and commands go on by themselves.";
    case PAWL_ALERT_FENCED:
        return "The other node has the log and everything that this one acknowledged. Send clients there, and "
               "close "
               "this one. Only if the other one must not have it: open this one again with take_over.";
    case PAWL_ALERT_SETTINGS:
        return "Give the topic back its settings, with kafka-configs or the like; 'pawl cluster check' names "
               "each "
               "one. Until then acknowledged events may be lost with a broker, and the next start is refused.";
    case PAWL_ALERT_MIRROR:
        return "Make room on the disk of this node, or mend it. Nothing is lost, and commands go on; until "
               "then "
               "events, lanes and checkpoints are read from the brokers, which is slower.";
    }
    return "";
}

static const struct {
    pawl_lease_alert alert;
    const char *name;
} lease_alerts[] = {
    {PAWL_LEASE_ALERT_EXPIRED, "expired"}, {PAWL_LEASE_ALERT_WAIT, "wait"},
    {PAWL_LEASE_ALERT_ACTIVE, "active"},   {PAWL_LEASE_ALERT_VOIDS, "voids"},
    {PAWL_LEASE_ALERT_STALLED, "stalled"},
};

struct alerting {
    struct json_out *out;
    bool lines; /* each is a line; false: they are in an array */
};

static void end_alert(const struct alerting *a)
{
    out_close(a->out, '}');
    if (a->lines)
        out_raw(a->out, (pawl_bytes){"\n", 1});
}

static void put_alerts(pawl_engine *e, const struct alerting *a)
{
    pawl_alert alerts[ALERTS_MAX + LOG_ALERTS_MAX];
    size_t count;
    pawl_alerts(e, alerts, ALERTS_MAX + LOG_ALERTS_MAX, &count);
    for (size_t i = 0; i < count; i++) {
        bool somewhere = alerts[i].kind < PAWL_ALERT_BROKER; /* the others are of the log as a whole */
        out_open(a->out, '{');
        put_words(a->out, "alert", alert_name(alerts[i].kind));
        if (somewhere)
            put_number(a->out, "partition", alerts[i].partition);
        if (alerts[i].table)
            put_number(a->out, "table", alerts[i].table);
        if (somewhere)
            put_number(a->out, "offset", alerts[i].offset);
        put_words(a->out, "text", alerts[i].text);
        put_words(a->out, "advice", pawl_alert_advice(alerts[i].kind));
        end_alert(a);
    }
}

/* Each is in the status of one partition, the one that has most of it. */
static bool put_lane_alerts(void *arg, const pawl_lane_status *status)
{
    const struct alerting *a = arg;
    for (size_t i = 0; i < sizeof lease_alerts / sizeof lease_alerts[0]; i++) {
        if (!(status->leases.alerts & (uint32_t)lease_alerts[i].alert))
            continue;
        out_open(a->out, '{');
        put_words(a->out, "alert", lease_alerts[i].name);
        put_words(a->out, "lane", status->lane);
        put_number(a->out, "generation", status->generation);
        put_number(a->out, "most_in_partition", status->partition);
        put_words(a->out, "text", pawl_lease_alert_text(lease_alerts[i].alert));
        put_words(a->out, "advice", pawl_lease_alert_advice(lease_alerts[i].alert));
        end_alert(a);
    }
    return true;
}

int pawl_alerts_json(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    struct alerting alerting = {.out = &out, .lines = true};
    json_out_init(&out, e->options.allocator);
    put_alerts(e, &alerting);
    int status = pawl_lanes_read(e, NULL, put_lane_alerts, &alerting, error);
    return text_take(&out, status, ret_text, error);
}

/* --- commands --- */

static void put_commands(pawl_engine *e, struct json_out *out)
{
    pawl_histogram second = {0}, ten = {0};
    pawl_outcomes outcomes;
    (void)pawl_histogram_get(e, PAWL_HISTOGRAM_COMMAND, 1, &second, NULL);
    (void)pawl_histogram_get(e, PAWL_HISTOGRAM_COMMAND, 10, &ten, NULL);
    pawl_outcomes_get(e, &outcomes);
    out_key(out, "commands");
    out_open(out, '{');
    put_real(out, "rate", (double)second.count);
    put_real(out, "rate_10s", (double)ten.count / 10);
    times_json_put(out, "latency", &second, PAWL_HISTOGRAM_COMMAND);
    times_json_put(out, "latency_10s", &ten, PAWL_HISTOGRAM_COMMAND);
    put_number(out, "ok", outcomes.ok);
    put_number(out, "repeated", outcomes.repeated);
    out_key(out, "failed");
    out_open(out, '{');
    for (int i = 1; i < PAWL_OUTCOMES_MAX; i++)
        if (outcomes.failed[i])
            put_number(out, pawl_status_name(-i), outcomes.failed[i]);
    out_close(out, '}');
    out_close(out, '}');
}

/* --- partitions, shards, the process --- */

static int put_shards(pawl_engine *e, struct json_out *out, pawl_shard_figures *sum, pawl_error *error)
{
    int status = PAWL_OK;
    out_key(out, "shards");
    out_open(out, '[');
    for (uint32_t i = 0; i < e->file.shards && status == PAWL_OK; i++) {
        pawl_shard_figures shard;
        status = pawl_shard_figures_get(e, i, &shard, error);
        if (status != PAWL_OK)
            break;
        out_open(out, '{');
        put_number(out, "shard", i);
        put_number(out, "mailbox", shard.mailbox);
        put_number(out, "commands", shard.commands);
        put_number(out, "checkpoint_lag", shard.checkpoint_lag);
        out_close(out, '}');
        sum->live_bytes += shard.live_bytes;
        sum->checkpoint_bytes += shard.checkpoint_bytes;
    }
    out_close(out, ']');
    return status;
}

static int put_partitions(pawl_engine *e, struct json_out *out, pawl_error *error)
{
    int status = PAWL_OK;
    out_key(out, "partitions");
    out_open(out, '[');
    for (uint32_t i = 0; i < e->file.partitions && i < PARTITIONS_SHOWN && status == PAWL_OK; i++) {
        pawl_partition_figures partition = {0};
        status = pawl_partition_figures_get(e, (uint16_t)i, &partition, error);
        out_open(out, '{');
        put_number(out, "partition", i);
        put_number(out, "shard", partition.shard);
        put_number(out, "offset", partition.offset);
        out_close(out, '}');
    }
    out_close(out, ']');
    return status;
}

static int put_state(pawl_engine *e, struct json_out *out, pawl_error *error)
{
    pawl_figures f;
    int status = pawl_figures_get(e, &f, error);
    if (status != PAWL_OK)
        return status;
    uint32_t ready = f.sequencer_states[PAWL_SEQUENCER_READY] + f.sequencer_states[PAWL_SEQUENCER_EVENTING];
    out_key(out, "checkpoint");
    out_open(out, '{');
    put_number(out, "lag", f.checkpoint_lag);
    put_number(out, "lag_max", f.checkpoint_lag_max);
    put_number(out, "commits", f.checkpoint_commits);
    put_number(out, "failures", f.checkpoint_failures);
    put_number(out, "held", f.held);
    out_close(out, '}');
    out_key(out, "sequencers");
    out_open(out, '{');
    put_number(out, "ready", e->options.read_only ? 0 : ready);
    put_number(out, "not_ready", e->options.read_only ? 0 : e->file.partitions - ready);
    put_number(out, "unflushed", f.sequencers.unflushed);
    put_number(out, "workspaces", f.sequencers.workspaces);
    put_seconds(out, "recovery", f.sequencers.recovery_ns_last);
    out_close(out, '}');
    return PAWL_OK;
}

static uint64_t part_bytes(const pawl_engine *e, const char *name)
{
    char path[NODE_PATH_MAX];
    return node_path(e->dir, path, NULL, "%s", name) == PAWL_OK ? tree_bytes(path) : 0;
}

static void put_stores(const pawl_engine *e, struct json_out *out, const pawl_shard_figures *sum)
{
    out_key(out, "stores");
    out_open(out, '{');
    put_number(out, "log", part_bytes(e, "log"));
    put_number(out, "live", sum->live_bytes);
    put_number(out, "checkpoint", sum->checkpoint_bytes);
    put_number(out, "local", part_bytes(e, "local"));
    out_close(out, '}');
}

/* Resident memory of the process; 0 if the system does not say. */
static uint64_t memory_bytes(void)
{
    char line[128];
    FILE *file = fopen("/proc/self/statm", "re");
    bool read = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    const char *resident = read ? strchr(line, ' ') : NULL; /* the second number, of pages */
    return resident ? strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* As pawl_version has it, which is in a library of its own. */
static void put_version(struct json_out *out)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", PAWL_VERSION_NUMBER / 10000, PAWL_VERSION_NUMBER / 100 % 100,
             PAWL_VERSION_NUMBER % 100);
    put_words(out, "version", text);
}

static void put_node(const pawl_engine *e, struct json_out *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out_key(out, "time");
    out_timestamp(out, (int64_t)now.tv_sec * (int64_t)PAWL_SECOND + now.tv_nsec / 1000000 * 1000000);
    out_key(out, "node");
    out_open(out, '{');
    put_words(out, "directory", e->dir);
    put_version(out);
    put_flag(out, "writes", !e->options.read_only);
    put_number(out, "partitions", e->file.partitions);
    put_number(out, "shards", e->file.shards);
    put_number(out, "memory_bytes", memory_bytes());
    out_close(out, '}');
}

/* --- lanes --- */

/* A generation of a lane, over all its partitions. */
struct lane_sum {
    char name[SCHEMA_QNAME_BYTES_MAX + 1];
    uint16_t id;
    uint32_t generation;
    bool serving;
    bool building;
    bool paused;
    uint32_t states[PAWL_LANE_CLOSED + 1];
    uint64_t behind;
    uint64_t operations;
    uint64_t run_ahead; /* of the partition that works ahead least; UINT64_MAX: nobody works on it here */
    pawl_lease_figures leases;
};

struct lane_sums {
    const pawl_allocator *alloc;
    struct lane_sum *sums;
    size_t count;
    size_t room;
    bool failed;
};

static struct lane_sum *find_sum(struct lane_sums *s, const pawl_lane_status *status)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->sums[i].id == status->id && s->sums[i].generation == status->generation)
            return &s->sums[i];
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 16;
        void *larger = mem_resize(s->alloc, s->sums, s->room * sizeof *s->sums, room * sizeof *s->sums);
        if (!larger)
            return NULL;
        s->sums = larger;
        s->room = room;
    }
    struct lane_sum *sum = &s->sums[s->count++];
    *sum = (struct lane_sum){.id = status->id, .generation = status->generation, .run_ahead = UINT64_MAX};
    snprintf(sum->name, sizeof sum->name, "%s", status->lane);
    return sum;
}

static bool add_lane(void *arg, const pawl_lane_status *status)
{
    struct lane_sums *s = arg;
    struct lane_sum *sum = find_sum(s, status);
    s->failed = !sum;
    if (!sum)
        return false;
    sum->serving |= status->serving;
    sum->building |= status->building;
    sum->paused |= status->paused;
    sum->states[status->state]++;
    sum->behind += status->end > status->offset ? status->end - status->offset : 0;
    sum->operations += status->operations;
    if (status->state != PAWL_LANE_CLOSED && status->run_ahead < sum->run_ahead)
        sum->run_ahead = status->run_ahead;
    pawl_lease_figures_add(&sum->leases, &status->leases);
    return true;
}

static void put_lane(struct json_out *out, const struct lane_sum *s)
{
    const pawl_lease_figures *f = &s->leases;
    const char *state = s->states[PAWL_LANE_REFUSED]      ? "refused"
                        : s->states[PAWL_LANE_RECOVERING] ? "recovering"
                        : s->states[PAWL_LANE_CLOSED]     ? "closed"
                                                          : "running";
    out_open(out, '{');
    put_words(out, "lane", s->name);
    put_number(out, "generation", s->generation);
    put_flag(out, "serving", s->serving);
    put_flag(out, "building", s->building);
    put_flag(out, "paused", s->paused);
    put_words(out, "state", state);
    put_number(out, "events_behind", s->behind);
    put_number(out, "operations", s->operations);
    put_number(out, "bound", f->bound);
    put_number(out, "watermark", f->watermark);
    put_number(out, "window", f->bound > f->watermark ? f->bound - f->watermark : 0);
    put_number(out, "leased", f->active);
    put_number(out, "ready", f->waiting);
    put_number(out, "stalled", f->stalled);
    put_number(out, "committed", f->committed);
    put_number(out, "expired", f->expired);
    put_number(out, "failed", f->failed);
    put_number(out, "voids", f->voids);
    put_number(out, "fenced", f->fenced);
    put_number(out, "repeated", f->repeated);
    put_seconds(out, "repeated_time", f->repeated_time);
    out_key(out, "run_ahead");
    if (s->run_ahead == UINT64_MAX)
        out_null(out);
    else
        out_unsigned(out, s->run_ahead);
    put_real(out, "rate_minute", (double)f->minute.committed / 60);
    put_real(out, "utilisation", f->utilisation);
    put_real(out, "efficiency", f->efficiency);
    put_seconds(out, "average_wait", f->average_wait);
    put_seconds(out, "p99_wait", f->p99_wait);
    out_close(out, '}');
}

static int put_lanes(pawl_engine *e, struct json_out *out, pawl_error *error)
{
    struct lane_sums sums = {.alloc = e->options.allocator};
    int status = pawl_lanes_read(e, NULL, add_lane, &sums, error);
    if (status == PAWL_OK && sums.failed)
        status = error_set(error, PAWL_ENOMEM, "no memory to list the lanes");
    out_key(out, "lanes");
    out_open(out, '[');
    for (size_t i = 0; i < sums.count; i++)
        put_lane(out, &sums.sums[i]);
    out_close(out, ']');
    mem_free(sums.alloc, sums.sums, sums.room * sizeof *sums.sums);
    return status;
}

/* --- views --- */

struct viewing {
    pawl_engine *engine;
    struct json_out *out;
};

static const char *view_state_name(const pawl_view_status *v)
{
    if (v->state == PAWL_VIEW_FAILED)
        return "failed";
    if (v->rebuilding)
        return v->paused ? "rebuild paused" : "rebuilding";
    if (v->state == PAWL_VIEW_BUILT)
        return "built";
    return v->paused ? "paused" : "building";
}

/* One number a tablet: which share of it is covered. A task covers a tablet as a whole. */
static void put_tablets(const struct viewing *v, const pawl_view_status *status)
{
    uint8_t covered[TABLETS_SHOWN];
    bool built = status->state == PAWL_VIEW_BUILT && !status->rebuilding;
    size_t count = views_tablets(v->engine, status->table, covered, TABLETS_SHOWN);
    out_key(v->out, "tablets");
    out_open(v->out, '[');
    for (size_t i = 0; i < count && count <= TABLETS_SHOWN; i++)
        out_unsigned(v->out, built || (status->tasks > 0 && covered[i]));
    out_close(v->out, ']');
}

static bool put_view(void *arg, const pawl_view_status *status)
{
    const struct viewing *v = arg;
    out_open(v->out, '{');
    put_words(v->out, "view", status->name);
    put_words(v->out, "base", status->base);
    put_words(v->out, "state", view_state_name(status));
    put_real(v->out, "percent", status->percent);
    put_real(v->out, "rate", status->rate);
    out_key(v->out, "eta_seconds");
    if (status->eta == UINT64_MAX)
        out_null(v->out);
    else
        out_real(v->out, (double)status->eta / 1e9);
    put_number(v->out, "rows", status->rows);
    put_number(v->out, "rows_done", status->rows_done);
    put_number(v->out, "rows_total", status->rows_total);
    put_number(v->out, "rows_failed", status->rows_failed);
    put_number(v->out, "tasks", status->tasks);
    put_number(v->out, "tasks_left", status->tasks_left);
    put_words(v->out, "words", status->words);
    put_tablets(v, status);
    out_close(v->out, '}');
    return true;
}

/* --- all of it --- */

static int put_all(pawl_engine *e, struct json_out *out, pawl_error *error)
{
    pawl_shard_figures sum = {0};
    struct viewing viewing = {.engine = e, .out = out};
    struct alerting alerting = {.out = out};
    put_node(e, out);
    put_commands(e, out);
    int status = log_json_put(e, out, error);
    if (status == PAWL_OK)
        status = put_state(e, out, error);
    if (status == PAWL_OK)
        status = put_partitions(e, out, error);
    if (status == PAWL_OK)
        status = put_shards(e, out, &sum, error);
    if (status == PAWL_OK)
        status = put_lanes(e, out, error);
    if (status != PAWL_OK)
        return status;
    put_stores(e, out, &sum);
    out_key(out, "views");
    out_open(out, '[');
    status = pawl_view_status_read(e, NULL, put_view, &viewing, error);
    out_close(out, ']');
    out_key(out, "alerts");
    out_open(out, '[');
    put_alerts(e, &alerting);
    if (status == PAWL_OK)
        status = pawl_lanes_read(e, NULL, put_lane_alerts, &alerting, error);
    out_close(out, ']');
    return status;
}

int pawl_figures_json(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    json_out_init(&out, e->options.allocator);
    out_open(&out, '{');
    status = put_all(e, &out, error);
    out_close(&out, '}');
    return text_take(&out, status, ret_text, error);
}
