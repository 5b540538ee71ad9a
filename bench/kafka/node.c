#include "bench/kafka/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

#include "base/latch.h"
#include "base/wait.h"
#include "bench/lib/crowd.h"
#include "engine/log/log.h"
#include "port/env.h"

#define PARTITIONS    16
#define WORKSPACES    256
#define IN_FLIGHT_MAX 2048
#define BODY_BYTES    300
#define PATH_BYTES    4096
#define READS         50
#define TEXT                                                                                                   \
    "an invoice for something that somebody has bought, with a few words about what it was and when it was"

static const char schema[] =
    "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": "
    "{\"first\": 1}}}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {"
    "   \"number\": {\"type\": \"int64\", \"sequence\": \"invoice\"}, \"cents\": {\"type\": \"int64\"},"
    "   \"text\": {\"type\": \"string\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}}}";

static struct {
    char commands[1200], streams[1200], filled[1200]; /* three logs */
    uint64_t events;                                  /* in the last one */
    bool made;
} on;

void node_brokers(const char *brokers, unsigned replication)
{
    snprintf(on.commands, sizeof on.commands, "kafka://%s/commands?replication=%u", brokers, replication);
    snprintf(on.streams, sizeof on.streams, "kafka://%s/streams?replication=%u", brokers, replication);
    snprintf(on.filled, sizeof on.filled, "kafka://%s/filled?replication=%u", brokers, replication);
}

static uint64_t round_end(const struct bench_round *round)
{
    return bench_now() + (round->quick ? UINT64_C(1000000000) : UINT64_C(4000000000));
}

/* --- the node --- */

/* A directory of the round, which has taken the log from the one before it. mirror: its bytes; 0: the default. */
static pawl_engine *open_with(const struct bench_round *round, const char *name, const char *url,
                              uint64_t mirror)
{
    char path[PATH_BYTES];
    pawl_options options = {.log = url, .take_over = true, .mirror_bytes_max = mirror};
    pawl_error error = {0};
    pawl_engine *node;
    snprintf(path, sizeof path, "%s/%s", round->dir, name);
    if (pawl_open(path, &options, &node, &error) == PAWL_OK)
        return node;
    bench_failed(path, &error);
    return NULL;
}

static pawl_engine *open_node(const struct bench_round *round, const char *name, const char *url)
{
    return open_with(round, name, url, 0);
}

static pawl_engine *new_node(const struct bench_round *round, const char *name, const char *url)
{
    pawl_error error = {0};
    pawl_request *request;
    if (pawl_cluster_init(url, PARTITIONS, 0, &error) != PAWL_OK) {
        bench_failed(url, &error);
        return NULL;
    }
    pawl_engine *node = open_node(round, name, url);
    if (!node || pawl_request_new(node, &request) != PAWL_OK)
        return NULL;
    int status = pawl_schema_apply(node, schema, NULL, &error);
    for (uint64_t wsid = 1; status == PAWL_OK && wsid <= WORKSPACES; wsid++)
        status = pawl_workspace_create(node, request, wsid, "bench.tenant", NULL, &error);
    pawl_request_free(request);
    if (status == PAWL_OK)
        return node;
    bench_failed("workspaces", &error);
    pawl_close(node);
    return NULL;
}

static void make_bill(void *arg, pawl_request *r, uint64_t n)
{
    (void)arg;
    pawl_request_begin(r, 1 + n % WORKSPACES, "bench.Bill");
    pawl_request_record(r, 1, "bench.Invoice");
    pawl_request_set_int64(r, "cents", (int64_t)(n % 1000));
    pawl_request_set_string(r, "text", TEXT);
}

double node_commands(const struct bench_round *round)
{
    pawl_engine *node = on.made ? open_node(round, "node", on.commands) : new_node(round, "node", on.commands);
    if (!node)
        return 0;
    on.made = true;
    struct crowd crowd = {.engine = node,
                          .make = make_bill,
                          .deadline = round_end(round),
                          .under_way = (size_t)(*(const uint64_t *)round->arg)};
    uint64_t began = bench_begin(), answered = crowd_run(&crowd);
    double rate = answered ? bench_per_second(answered, began) : 0;
    pawl_close(node);
    return rate;
}

static bool fill(const struct bench_round *round)
{
    if (on.events > 0)
        return true;
    pawl_engine *node = new_node(round, "filling", on.filled);
    if (!node)
        return false;
    struct crowd crowd = {.engine = node,
                          .make = make_bill,
                          .most = round->quick ? NODE_EVENTS_QUICK : NODE_EVENTS,
                          .under_way = IN_FLIGHT_MAX};
    on.events = crowd_run(&crowd);
    pawl_close(node);
    return on.events > 0;
}

double node_open(const struct bench_round *round)
{
    pawl_engine *node = fill(round) ? open_node(round, "node", on.filled) : NULL;
    if (!node)
        return 0;
    pawl_close(node);
    uint64_t began = bench_begin();
    node = open_node(round, "node", on.filled);
    double ms = (double)(bench_now() - began) / 1e6;
    if (node)
        pawl_close(node);
    return node ? ms : 0;
}

double node_back(const struct bench_round *round)
{
    if (!fill(round))
        return 0;
    uint64_t began = bench_begin();
    pawl_engine *node = open_node(round, "node", on.filled);
    double rate = bench_per_second(on.events, began);
    if (node)
        pawl_close(node);
    return node ? rate : 0;
}

double node_replay(const struct bench_round *round)
{
    char files[PATH_BYTES];
    pawl_error error = {0};
    pawl_cluster_move_report moved;
    pawl_state_report report;
    snprintf(files, sizeof files, "%s/files", round->dir);
    const pawl_cluster_move_options move = {.url = on.filled, .dir = files};
    if (!fill(round) || pawl_cluster_export(&move, &moved, &error) != PAWL_OK)
        return bench_failed("export", &error);
    pawl_engine *engine; /* replay compares with a state: opening derives it */
    if (pawl_open(files, NULL, &engine, &error) != PAWL_OK)
        return bench_failed(files, &error);
    pawl_close(engine);
    char state[PATH_BYTES];
    snprintf(state, sizeof state, "%s/state", round->dir);
    const pawl_replay_options options = {.dir = files, .to = state};
    uint64_t began = bench_begin();
    int status = pawl_replay(&options, &report, &error);
    return status == PAWL_OK ? bench_per_second(on.events, began) : bench_failed("replay", &error);
}

static bool see_event(void *arg, const pawl_event *event)
{
    ++*(uint64_t *)arg;
    return true;
}

/* Wait until nobody else reads: the checkpoint has all events. Returns how often the mirror had not what was wanted. */
static uint64_t misses_before(pawl_engine *node, pawl_error *error)
{
    pawl_figures figures = {.checkpoint_lag = 1};
    pawl_log_figures log = {0};
    while (figures.checkpoint_lag > 0 && pawl_figures_get(node, &figures, error) == PAWL_OK)
        wait_pause(10 * PAWL_MILLISECOND);
    (void)pawl_log_figures_get(node, &log, error);
    return log.mirror.misses;
}

/* That most reads came from the mirror: it may have left out an entry while its disk was slow. */
static int look_at_mirror(pawl_engine *node, uint64_t before, pawl_error *error)
{
    pawl_log_figures figures;
    int status = pawl_log_figures_get(node, &figures, error);
    return status == PAWL_OK && figures.mirror.misses > before + READS / 4
               ? pawl_error_set(error, PAWL_ENOTFOUND, "the mirror lacks events that were read")
               : status;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of reads among the newest events, all over the workspaces. The first one, with which connections are made,
 * does not count. */
static double read_events(const struct bench_round *round, uint64_t mirror)
{
    pawl_engine *node = fill(round) ? open_with(round, "node", on.filled, mirror) : NULL;
    pawl_error error = {0};
    double ms[READS + 1];
    uint64_t seen = 0, next, each = on.events / WORKSPACES;
    int status = PAWL_OK;
    if (!node)
        return 0;
    uint64_t before = misses_before(node, &error);
    for (uint64_t i = 0; status == PAWL_OK && i <= READS; i++) {
        uint64_t offset = each - i * 7919 % (each / 8), began = bench_now();
        status = pawl_workspace_events_read(node, 1 + i * 31 % WORKSPACES, offset, 1, see_event, &seen, &next,
                                            &error);
        ms[i] = (double)(bench_now() - began) / 1e6;
    }
    if (status == PAWL_OK && mirror > 1)
        status = look_at_mirror(node, before, &error);
    pawl_close(node);
    qsort(ms + 1, READS, sizeof *ms, compare_times);
    return status == PAWL_OK && seen == READS + 1 ? ms[READS / 2] : bench_failed("read", &error);
}

double node_read_mirrored(const struct bench_round *round)
{
    return read_events(round, UINT64_C(1) << 30); /* for all of them */
}

double node_read_kafka(const struct bench_round *round)
{
    return read_events(round, 1); /* too little for a mirror: there is none */
}

/* --- the log alone --- */

struct entry_under_way {
    pawl_append request;
    pawl_append_entry entry;
    pawl_error error;
    size_t stream;
};

static const char body[BODY_BYTES];
static struct {
    struct engine_log *log;
    uint64_t epoch[PARTITIONS], next[PARTITIONS];
    uint64_t deadline, acknowledged;
    size_t under_way;
    int status;
    struct latch over;
    pawl_task task;
    struct entry_under_way entries[IN_FLIGHT_MAX];
} streams;

static void entry_done(pawl_append *request);

static void send_entry(struct entry_under_way *e)
{
    e->entry =
        (pawl_append_entry){.entry = {.stream = {.kind = PAWL_STREAM_PLOG, .partition = (uint16_t)e->stream},
                                      .epoch = streams.epoch[e->stream],
                                      .offset = streams.next[e->stream]++,
                                      .body = {body, sizeof body}}};
    e->request =
        (pawl_append){.entries = &e->entry, .count = 1, .done = entry_done, .arg = e, .error = &e->error};
    int status = pawl_log_append(engine_log_port(streams.log), &e->request);
    if (status != PAWL_OK) {
        streams.status = status;
        streams.under_way--;
    }
}

static void entry_done(pawl_append *request)
{
    if (request->status != PAWL_OK)
        streams.status = request->status;
    else
        streams.acknowledged++;
    if (streams.status == PAWL_OK && bench_now() < streams.deadline)
        send_entry(request->arg);
    else
        streams.under_way--;
    if (streams.under_way == 0)
        latch_set(&streams.over);
}

static void send_all(pawl_task *task)
{
    (void)task;
    for (size_t i = 0, count = streams.under_way; i < count; i++) {
        streams.entries[i].stream = i % PARTITIONS;
        send_entry(&streams.entries[i]);
    }
    if (streams.under_way == 0)
        latch_set(&streams.over);
}

static void claimed(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static bool claim_streams(void)
{
    for (uint16_t i = 0; i < PARTITIONS; i++) {
        struct latch latch;
        pawl_error error = {0};
        latch_init(&latch);
        pawl_claim claim = {.stream = {.kind = PAWL_STREAM_PLOG, .partition = i},
                            .done = claimed,
                            .arg = &latch,
                            .error = &error};
        int status = pawl_log_claim(engine_log_port(streams.log), &claim);
        if (status == PAWL_OK)
            latch_wait(&latch);
        if (status != PAWL_OK || claim.status != PAWL_OK)
            return bench_failed("claim", &error) > 0;
        streams.epoch[i] = claim.epoch;
        streams.next[i] = claim.next;
    }
    return true;
}

double node_entries(const struct bench_round *round)
{
    pawl_error error = {0};
    if (!streams.log
        && (pawl_cluster_init(on.streams, PARTITIONS, 0, &error) != PAWL_OK
            || engine_log_open(on.streams, false, &streams.log, &error) != PAWL_OK))
        return bench_failed(on.streams, &error);
    if (!claim_streams())
        return 0;
    streams.acknowledged = 0;
    streams.under_way = (size_t)(*(const uint64_t *)round->arg);
    streams.deadline = round_end(round);
    streams.task.fn = send_all;
    latch_init(&streams.over);
    uint64_t began = bench_begin();
    pawl_env_post(engine_log_env(streams.log), 0, &streams.task);
    latch_wait(&streams.over);
    error.code = streams.status;
    return streams.status == PAWL_OK ? bench_per_second(streams.acknowledged, began)
                                     : bench_failed("append", &error);
}

void node_end(void)
{
    if (streams.log)
        engine_log_close(streams.log);
}
