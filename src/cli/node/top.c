/* cli/node/top.c: what a node is doing, once a second: figures in place on a terminal, otherwise a line each time. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/node/figures.h"
#include "cli/talk/feed.h"
#include "cli/talk/lanes.h"
#include "cli/talk/session.h"

#define EVERY_MS 1000

/* The events of all partitions. */
static uint64_t count_events(const json_t *figures)
{
    const json_t *partitions = json_object_get(figures, "partitions");
    uint64_t events = 0;
    for (size_t i = 0; i < json_array_size(partitions); i++)
        events += json_u64_in(json_array_get(partitions, i), "offset");
    return events;
}

static void print_line(const json_t *f)
{
    const json_t *commands = json_object_get(f, "commands"),
                 *latency = json_object_get(commands, "latency_10s");
    char p50[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX];
    format_seconds(real_in(latency, "p50"), p50);
    format_seconds(real_in(latency, "p99"), p99);
    printf("%s  %.0f commands/s, p50 %s, p99 %s, %" PRIu64 " events, checkpoint lag %" PRIu64 "\n",
           text_in(f, "time"), real_in(commands, "rate_10s"), p50, p99, count_events(f),
           json_u64_in(json_object_get(f, "checkpoint"), "lag"));
}

static void draw_shards(const json_t *shards)
{
    printf("\n%9s %9s %9s %14s\033[K\n", "shard", "waiting", "under way", "checkpoint lag");
    for (size_t i = 0; i < json_array_size(shards); i++) {
        const json_t *s = json_array_get(shards, i);
        printf("%9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %14" PRIu64 "\033[K\n", json_u64_in(s, "shard"),
               json_u64_in(s, "mailbox"), json_u64_in(s, "commands"), json_u64_in(s, "checkpoint_lag"));
    }
}

static void draw_log(const json_t *log)
{
    const json_t *kafka = json_object_get(log, "kafka"),
                 *times = kafka ? json_object_get(kafka, "ack_10s") : json_object_get(log, "sync_10s");
    char p50[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX];
    format_seconds(real_in(times, "p50"), p50);
    format_seconds(real_in(times, "p99"), p99);
    if (!kafka) {
        printf("%-12s %.0f syncs/s, p50 %s, %.1f entries each\033[K\n", "log", real_in(log, "syncs_10s"), p50,
               real_in(log, "batch_mean_10s"));
        return;
    }
    printf("%-12s Kafka, cluster %s: %.0f acknowledged/s, p50 %s, p99 %s\033[K\n", "log",
           text_in(kafka, "cluster"), real_in(kafka, "acks_10s"), p50, p99);
    printf("%-12s %" PRIu64 " entries unknown, %" PRIu64 " streams held, %" PRIu64 " outages\033[K\n", "",
           json_u64_in(kafka, "unknown"), json_u64_in(json_object_get(kafka, "claims"), "held"),
           json_u64_in(kafka, "outages"));
}

static void draw_alerts(const json_t *alerts)
{
    for (size_t i = 0; i < json_array_size(alerts); i++)
        printf("%-12s %s\033[K\n", i == 0 ? "alerts" : "", text_in(json_array_get(alerts, i), "text"));
}

/* From the top left on, each line cleared to its end, and then all below. */
static void draw(const json_t *f)
{
    const json_t *node = json_object_get(f, "node"), *commands = json_object_get(f, "commands"),
                 *log = json_object_get(f, "log"), *latency = json_object_get(commands, "latency_10s");
    char p50[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX], memory[BYTES_TEXT_MAX];
    format_seconds(real_in(latency, "p50"), p50);
    format_seconds(real_in(latency, "p99"), p99);
    bytes_format(json_u64_in(node, "memory_bytes"), memory);
    printf("\033[H%s  %s  pawl %s\033[K\n\033[K\n", text_in(node, "directory"), text_in(f, "time"),
           text_in(node, "version"));
    printf("%-12s %.0f/s, %.0f/s in 10 s, p50 %s, p99 %s\033[K\n", "commands", real_in(commands, "rate"),
           real_in(commands, "rate_10s"), p50, p99);
    printf("%-12s %" PRIu64 " done, %" PRIu64 " repeated\033[K\n", "", json_u64_in(commands, "ok"),
           json_u64_in(commands, "repeated"));
    printf("%-12s %" PRIu64 " in %" PRIu64 " partitions\033[K\n", "events", count_events(f),
           json_u64_in(node, "partitions"));
    draw_log(log);
    printf("%-12s lag %" PRIu64 " of %" PRIu64 "\033[K\n", "checkpoint",
           json_u64_in(json_object_get(f, "checkpoint"), "lag"),
           json_u64_in(json_object_get(f, "checkpoint"), "lag_max"));
    printf("%-12s %s\033[K\n", "memory", memory);
    draw_alerts(json_object_get(f, "alerts"));
    draw_shards(json_object_get(f, "shards"));
    fputs("\033[J", stdout);
}

static int show_once(const struct options *options, struct session *session, pawl_error *error)
{
    pawl_text text;
    int status = session_figures(session, &text, error);
    if (status != PAWL_OK)
        return status;
    if (options_get(options, "json"))
        printf("%s\n", text.data);
    else
        say_each((pawl_bytes){text.data, text.size}, isatty(STDOUT_FILENO) ? draw : print_line);
    fflush(stdout);
    pawl_text_free(&text);
    return PAWL_OK;
}

/* Wait for the next turn. True: a signal, or that nobody reads the output any more, ends it. */
static bool is_over(const struct feed *feed, int *ret_signal)
{
    struct pollfd fds[] = {{.fd = feed->signals, .events = POLLIN}, {.fd = STDOUT_FILENO}};
    struct signalfd_siginfo info;
    if (poll(fds, 2, EVERY_MS) <= 0)
        return false;
    if (fds[0].revents && read(feed->signals, &info, sizeof info) == (ssize_t)sizeof info)
        *ret_signal = (int)info.ssi_signo;
    return true;
}

static int run(const struct options *options)
{
    struct session session;
    struct feed feed;
    pawl_error error = {0};
    uint64_t count;
    int signal = 0, status;
    if (options_number(options, "count", 1, UINT64_MAX, &count, &error) != PAWL_OK)
        return say_usage(&error);
    if (feed_init(&feed, -1, &error) != PAWL_OK)
        return say_failure(options, &error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code == CLI_OK) {
        if (isatty(STDOUT_FILENO) && !options_get(options, "json"))
            fputs("\033[2J", stdout);
        do
            status = show_once(options, &session, &error);
        while (status == PAWL_OK && --count > 0 && !ferror(stdout) && !is_over(&feed, &signal));
        code = session_close(options, &session, status, &error);
    }
    feed_release(&feed);
    return code == CLI_OK && signal ? 128 + signal : code;
}

const struct command command_top = {
    .name = "top",
    .summary = "show what a node is doing, once a second",
    .about =
        "Commands a second and how long they take, events, the log, the checkpoint, alerts, each shard. On a\n"
        "terminal the figures stay in their places; otherwise there is a line each time. A directory that no\n"
        "process serves shows what is in its files. Goes on until SIGINT or SIGTERM.\n",
    .options = {OPTIONS_WHERE, {"count", "N", "end after so many times"}, OPTION_JSON},
    .run = run,
};
