/* cli/node/status.c: how a node is doing now, once: what it is, where its log is, who owns it, and what is alarming. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/node/figures.h"
#include "cli/talk/lanes.h"
#include "cli/talk/session.h"

static void say_node(const json_t *f)
{
    const json_t *node = json_object_get(f, "node");
    char memory[BYTES_TEXT_MAX];
    bytes_format(json_u64_in(node, "memory_bytes"), memory);
    printf("%-12s %s, %" PRIu64 " partitions on %" PRIu64 " shards, %s, pawl %s, %s of memory\n", "node",
           text_in(node, "directory"), json_u64_in(node, "partitions"), json_u64_in(node, "shards"),
           json_is_true(json_object_get(node, "writes")) ? "reads and writes" : "reads only",
           text_in(node, "version"), memory);
}

static void say_files(const json_t *log)
{
    char p50[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX];
    const json_t *sync = json_object_get(log, "sync_10s");
    format_seconds(real_in(sync, "p50"), p50);
    format_seconds(real_in(sync, "p99"), p99);
    printf("%-12s in files: %.0f syncs/s, p50 %s, p99 %s\n", "log", real_in(log, "syncs_10s"), p50, p99);
}

static void say_claims(const json_t *kafka)
{
    const json_t *claims = json_object_get(kafka, "claims"), *topics = json_object_get(claims, "topics");
    printf("%-12s %" PRIu64 " streams are held by this node (ID %s, assignment %" PRIu64 "); %" PRIu64
           " claims won, %" PRIu64 " lost\n",
           "claims", json_u64_in(claims, "held"), text_in(kafka, "node"), json_u64_in(kafka, "assignment"),
           json_u64_in(claims, "won"), json_u64_in(claims, "lost"));
    for (size_t i = 0; i < json_array_size(topics); i++) {
        const json_t *t = json_array_get(topics, i);
        printf("%-12s %s: %" PRIu64 " of %" PRIu64 " held here; epoch %" PRIu64
               " of node %s, assignment %" PRIu64 "\n",
               "", text_in(t, "topic"), json_u64_in(t, "held"), json_u64_in(t, "streams"),
               json_u64_in(t, "epoch"), text_in(t, "node"), json_u64_in(t, "assignment"));
    }
}

static void say_mirror(const json_t *mirror)
{
    char bytes[BYTES_TEXT_MAX], most[BYTES_TEXT_MAX];
    bytes_format(json_u64_in(mirror, "bytes"), bytes);
    bytes_format(json_u64_in(mirror, "bytes_max"), most);
    if (json_is_true(json_object_get(mirror, "off")))
        printf("%-12s off: %s\n", "mirror", text_in(mirror, "why"));
    else if (json_u64_in(mirror, "bytes_max") == 0)
        printf("%-12s none\n", "mirror");
    else
        printf("%-12s %s of %s, %" PRIu64 " entries not written yet; %" PRIu64 " entries read there, %" PRIu64
               " reads from the brokers, %" PRIu64 " entries left out\n",
               "mirror", bytes, most, json_u64_in(mirror, "unwritten"), json_u64_in(mirror, "hits"),
               json_u64_in(mirror, "misses"), json_u64_in(mirror, "dropped"));
}

static void say_kafka(const json_t *kafka)
{
    char p50[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX], silence[DURATION_TEXT_MAX], out[DURATION_TEXT_MAX];
    const json_t *ack = json_object_get(kafka, "ack_10s");
    format_seconds(real_in(ack, "p50"), p50);
    format_seconds(real_in(ack, "p99"), p99);
    format_seconds(real_in(kafka, "silence"), silence);
    format_seconds(real_in(kafka, "outage_time"), out);
    printf("%-12s on Kafka: cluster %s at %s, replication %" PRIu64 ", %s\n", "log", text_in(kafka, "cluster"),
           text_in(kafka, "brokers"), json_u64_in(kafka, "replication"),
           json_is_true(json_object_get(kafka, "broker_sync"))
               ? "synced by the brokers"
               : "not synced by the brokers: acknowledged means in the memory of a majority");
    printf("%-12s %.0f acknowledged/s, p50 %s, p99 %s; %" PRIu64 " entries unknown now, %" PRIu64
           " ever; %" PRIu64 " records did not count\n",
           "", real_in(kafka, "acks_10s"), p50, p99, json_u64_in(kafka, "unknown"),
           json_u64_in(kafka, "unknown_total"), json_u64_in(kafka, "ignored"));
    printf("%-12s a broker answered %s ago; %" PRIu64 " outages, together %s; %" PRIu64 " connection errors\n",
           "", silence, json_u64_in(kafka, "outages"), out, json_u64_in(kafka, "connection_errors"));
    say_mirror(json_object_get(kafka, "mirror"));
    say_claims(kafka);
}

static void say_commands(const json_t *f)
{
    const json_t *commands = json_object_get(f, "commands"),
                 *latency = json_object_get(commands, "latency_10s"),
                 *checkpoint = json_object_get(f, "checkpoint");
    char p50[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX];
    format_seconds(real_in(latency, "p50"), p50);
    format_seconds(real_in(latency, "p99"), p99);
    printf("%-12s %.0f/s in 10 s, p50 %s, p99 %s; %" PRIu64 " done, %" PRIu64 " repeated\n", "commands",
           real_in(commands, "rate_10s"), p50, p99, json_u64_in(commands, "ok"),
           json_u64_in(commands, "repeated"));
    printf("%-12s lag %" PRIu64 " of %" PRIu64 "\n", "checkpoint", json_u64_in(checkpoint, "lag"),
           json_u64_in(checkpoint, "lag_max"));
}

static void say_lanes(const json_t *lanes)
{
    for (size_t i = 0; i < json_array_size(lanes); i++) {
        const json_t *lane = json_array_get(lanes, i);
        printf("%-12s %s, generation %" PRIu64 ": %s, %" PRIu64 " behind, %" PRIu64 " repeated\n",
               i == 0 ? "lanes" : "", text_in(lane, "lane"), json_u64_in(lane, "generation"),
               text_in(lane, "state"), json_u64_in(lane, "events_behind"), json_u64_in(lane, "repeated"));
    }
}

static void say_alerts(const json_t *alerts)
{
    if (json_array_size(alerts) == 0)
        printf("%-12s none\n", "alerts");
    for (size_t i = 0; i < json_array_size(alerts); i++) {
        const json_t *alert = json_array_get(alerts, i);
        const char *lane = text_in(alert, "lane");
        printf("%-12s %s%s%s%s\n", i == 0 ? "alerts" : "", lane, lane[0] ? ": " : "", text_in(alert, "text"),
               text_in(alert, "text")[0] ? "" : text_in(alert, "alert"));
        printf("%-12s   %s\n", "", text_in(alert, "advice"));
    }
}

static void say_status(const json_t *f)
{
    const json_t *log = json_object_get(f, "log"), *kafka = json_object_get(log, "kafka");
    say_node(f);
    if (kafka)
        say_kafka(kafka);
    else
        say_files(log);
    say_commands(f);
    say_lanes(json_object_get(f, "lanes"));
    say_alerts(json_object_get(f, "alerts"));
}

static int run(const struct options *options)
{
    struct session session;
    pawl_text text;
    pawl_error error = {0};
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_figures(&session, &text, &error);
    if (status == PAWL_OK) {
        if (options_get(options, "json"))
            printf("%s\n", text.data);
        else
            say_each((pawl_bytes){text.data, text.size}, say_status);
        pawl_text_free(&text);
    }
    return session_close(options, &session, status, &error);
}

const struct command command_status = {
    .name = "status",
    .summary = "say how a node is doing now",
    .about = "What it is, where its log is, who owns that and how fast it is, commands, lanes, and what is "
             "alarming,\n"
             "with an advice for each. 'pawl top' shows what moves, once a second.\n",
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run,
};
