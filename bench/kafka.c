/* bench/kafka.c: what does the log on Kafka cost beyond Kafka?
 *
 * Ours is the log port; the peer is librdkafka in a bare loop, with the same settings on client and topic,
 * against the same brokers, which this program starts for itself (test/kafka/cluster) unless PAWL_KAFKA names
 * some.
 *
 *     bench_kafka [--brokers 3|1] [the options of bench.h] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/kafka/client.h"
#include "adapter/kafka/kafka.h"
#include "adapter/kafka/topics.h"
#include "adapter/mirror/mirror.h"
#include "base/latch.h"
#include "bench/kafka/node.h"
#include "bench/lib/bench.h"
#include "engine/log/log.h"
#include "port/env.h"

#define EVENT_BYTES   300
#define IN_FLIGHT_MAX 2048
#define ROUND_SECONDS 2
#define FOLLOWED      200000
#define BATCH         1000
#define CHANGES       20
#define URL_MAX       1200
#define WAIT_MS       30000
#define WARM_UP       UINT64_C(1500000000) /* ns, twice */
#define PRODUCED      0                    /* partitions of raw: appended to, */
#define FOLLOWED_AT   1                    /* read, */
#define CHANGED       2                    /* and taken from each other */
#define LONG_AT       3                    /* a long one, of which single entries are read */
#define MIRRORED      4                    /* written through a mirror */
#define PARTITIONS    5
#define LONG          1000000
#define LONG_QUICK    100000
#define READS         50
#define MIRROR_READS  1000
#define CLUSTER       SOURCE_ROOT "/test/kafka/cluster"

static const char event[EVENT_BYTES];
static char url_text[URL_MAX];
static struct kafka_url url;
static struct engine_log *logs[2]; /* two writers */

static double failed(const char *what, const char *why)
{
    fprintf(stderr, "bench_kafka: %s: %s\n", what, why);
    return 0;
}

static pawl_stream raw(uint16_t partition)
{
    return (pawl_stream){.kind = PAWL_STREAM_RAW, .partition = partition};
}

static uint64_t round_end(const struct bench_round *round)
{
    return bench_now() + (uint64_t)ROUND_SECONDS * 1000000000 / (round->quick ? 4 : 1);
}

/* Ours: a window of appends, on the log's shard; each that ends begins the next. */
struct window {
    pawl_log *log;
    pawl_stream stream;
    uint64_t epoch;
    uint64_t next;
    uint64_t in_flight;
    uint64_t acknowledged;
    uint64_t deadline; /* 0: stop after a number */
    uint64_t left;
    int status;
    struct latch over;
    pawl_task task;
    struct append {
        pawl_append request;
        pawl_append_entry entry;
        pawl_error error;
    } appends[IN_FLIGHT_MAX];
};

static struct window window;

static void append_ended(pawl_append *request);

static void append_next(struct append *a)
{
    a->entry = (pawl_append_entry){.entry = {.stream = window.stream,
                                             .epoch = window.epoch,
                                             .offset = window.next++,
                                             .body = {event, sizeof event}}};
    a->request =
        (pawl_append){.entries = &a->entry, .count = 1, .done = append_ended, .arg = a, .error = &a->error};
    int status = pawl_log_append(window.log, &a->request);
    if (status != PAWL_OK) {
        window.status = status;
        window.in_flight--;
    }
}

static void append_ended(pawl_append *request)
{
    if (request->status != PAWL_OK)
        window.status = request->status;
    else
        window.acknowledged++;
    bool more = window.deadline ? bench_now() < window.deadline : window.left > 0;
    if (more && window.status == PAWL_OK) {
        window.left -= window.left > 0;
        append_next(request->arg);
    } else {
        window.in_flight--;
    }
    if (window.in_flight == 0)
        latch_set(&window.over);
}

static void begin(pawl_task *task)
{
    for (size_t i = 0, count = window.in_flight; i < count && window.status == PAWL_OK; i++)
        append_next(&window.appends[i]);
    if (window.in_flight == 0)
        latch_set(&window.over);
}

static void claim_ended(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static int claim(struct engine_log *log, uint16_t partition, uint64_t *ret_epoch, uint64_t *ret_next)
{
    struct latch latch;
    pawl_error error = {0};
    latch_init(&latch);
    pawl_claim request = {.stream = raw(partition), .done = claim_ended, .arg = &latch, .error = &error};
    int status = pawl_log_claim(engine_log_port(log), &request);
    if (status == PAWL_OK) {
        latch_wait(&latch);
        status = request.status;
    }
    if (status != PAWL_OK) {
        failed("claim", error.text);
        return status;
    }
    *ret_epoch = request.epoch;
    *ret_next = request.next;
    return PAWL_OK;
}

static bool own(struct engine_log *log, uint16_t partition)
{
    window = (struct window){.log = engine_log_port(log), .stream = raw(partition), .task = {.fn = begin}};
    return claim(log, partition, &window.epoch, &window.next) == PAWL_OK;
}

/* Appends to the stream that is owned, until the deadline; if that is 0, so many entries. Returns how many were
 * acknowledged, or 0 if one was not. */
static uint64_t append_all(struct engine_log *log, uint64_t in_flight, uint64_t deadline, uint64_t count)
{
    window.in_flight = in_flight;
    window.deadline = deadline;
    window.left = count - (count ? in_flight : 0);
    latch_init(&window.over);
    pawl_env_post(engine_log_env(log), 0, &window.task);
    latch_wait(&window.over);
    if (window.status != PAWL_OK)
        failed("append", pawl_status_name(window.status));
    return window.status == PAWL_OK ? window.acknowledged : 0;
}

/* The stream is owned before the clock starts, as the peer's connections are made before. */
static double ours_produce(const struct bench_round *round)
{
    uint64_t in_flight = *(const uint64_t *)round->arg;
    if (!own(logs[0], PRODUCED))
        return 0;
    uint64_t began = bench_begin();
    return bench_per_second(append_all(logs[0], in_flight, round_end(round), 0), began);
}

/* Bare: the delivery reports of one poll make room for as many messages. */
static uint64_t take_reports(rd_kafka_queue_t *queue, uint64_t *acknowledged)
{
    uint64_t count = 0;
    rd_kafka_event_t *report = rd_kafka_queue_poll(queue, WAIT_MS);
    const rd_kafka_message_t *message;
    while (report && (message = rd_kafka_event_message_next(report))) {
        count++;
        *acknowledged += message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (report)
        rd_kafka_event_destroy(report);
    return count;
}

static double bare_loop(rd_kafka_t *client, rd_kafka_topic_t *topic, uint64_t in_flight_max, uint64_t deadline)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(client);
    uint64_t in_flight = 0, sent = 0, acknowledged = 0, began = bench_begin();
    for (;;) {
        bool more = bench_now() < deadline;
        for (; more && in_flight < in_flight_max; in_flight++, sent++)
            if (rd_kafka_produce(topic, 0, 0, (void *)(uintptr_t)event, sizeof event, NULL, 0, NULL) != 0)
                return failed("produce", rd_kafka_err2str(rd_kafka_last_error()));
        if (in_flight == 0)
            break;
        in_flight -= take_reports(queue, &acknowledged);
    }
    double rate = bench_per_second(sent, began);
    rd_kafka_queue_destroy(queue);
    return acknowledged == sent ? rate : failed("produce", "a message was not delivered");
}

static double bare_produce(const struct bench_round *round)
{
    static rd_kafka_t *client;
    static rd_kafka_topic_t *topic;
    pawl_error error;
    if (!client) {
        if (client_open(&url, CLIENT_PRODUCER, &client, &error) != PAWL_OK)
            return failed("producer", error.text);
        topic = rd_kafka_topic_new(client, "bare.raw", NULL);
    }
    if (bare_loop(client, topic, 1, bench_now() + 50000000) <= 0)
        return 0;
    return bare_loop(client, topic, *(const uint64_t *)round->arg, round_end(round));
}

static bool fill(void)
{
    static bool filled;
    filled =
        filled || (own(logs[0], FOLLOWED_AT) && append_all(logs[0], IN_FLIGHT_MAX, 0, FOLLOWED) == FOLLOWED);
    return filled;
}

static bool count_entry(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    return entry->offset < FOLLOWED;
}

static void follow_ended(pawl_follow *follow)
{
    latch_set(follow->arg);
}

static double ours_follow(const struct bench_round *round)
{
    struct latch latch;
    pawl_error error = {0};
    if (!fill())
        return 0;
    latch_init(&latch);
    pawl_follow follow = {.stream = raw(FOLLOWED_AT),
                          .from = 1,
                          .visit = count_entry,
                          .done = follow_ended,
                          .arg = &latch,
                          .error = &error};
    uint64_t began = bench_begin();
    int status = pawl_log_follow(engine_log_port(logs[1]), &follow);
    if (status == PAWL_OK) {
        latch_wait(&latch);
        status = follow.status;
    }
    return status == PAWL_OK ? bench_per_second(FOLLOWED, began) : failed("follow", error.text);
}

static double bare_follow(const struct bench_round *round)
{
    static rd_kafka_t *client;
    static rd_kafka_topic_t *topic;
    static rd_kafka_message_t *messages[BATCH];
    pawl_error error;
    if (!client) {
        uint32_t partitions; /* asks a broker, so that there is a connection */
        if (client_open(&url, CLIENT_CONSUMER, &client, &error) != PAWL_OK
            || topic_partitions(client, &url, "bench.raw", &partitions, &error) != PAWL_OK)
            return failed("consumer", error.text);
        topic = rd_kafka_topic_new(client, "bench.raw", NULL);
    }
    uint64_t began = bench_begin(), count = 0;
    rd_kafka_consume_start(topic, FOLLOWED_AT, RD_KAFKA_OFFSET_BEGINNING);
    while (count < FOLLOWED + 1) {          /* and the claim */
        size_t left = FOLLOWED + 1 - count; /* a batch that cannot be filled would wait */
        size_t most = left < BATCH ? left : BATCH;
        ssize_t some = rd_kafka_consume_batch(topic, FOLLOWED_AT, WAIT_MS, messages, most);
        if (some <= 0)
            return failed("consume", "nothing came");
        for (ssize_t i = 0; i < some; i++) {
            count += messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR;
            rd_kafka_message_destroy(messages[i]);
        }
    }
    double rate = bench_per_second(FOLLOWED, began);
    rd_kafka_consume_stop(topic, FOLLOWED_AT);
    return rate;
}

/* Writers that take a stream from each other, both alive: from the claim to its first acknowledged append. */
static double ours_change(const struct bench_round *round)
{
    double worst = 0;
    for (int i = 0; i < CHANGES; i++) {
        uint64_t began = bench_begin();
        if (!own(logs[i % 2], CHANGED) || append_all(logs[i % 2], 1, 0, 1) != 1)
            return 0;
        double ms = (double)(bench_now() - began) / 1e6;
        worst = ms > worst ? ms : worst;
    }
    return worst;
}

/* Single entries. */

static uint64_t long_entries;

/* Of the stream that is long, however quick it should be: filled once, by one writer. */
static bool fill_long(const struct bench_round *round)
{
    if (long_entries > 0)
        return true;
    uint64_t count = round->quick ? LONG_QUICK : LONG;
    if (!own(logs[0], LONG_AT) || append_all(logs[0], IN_FLIGHT_MAX, 0, count) != count)
        return false;
    long_entries = count;
    return true;
}

static bool see_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    *(uint64_t *)read->arg = entry->offset;
    return true;
}

static bool read_one(pawl_log *log, uint16_t partition, uint64_t offset)
{
    uint64_t seen = 0;
    pawl_error error = {0};
    pawl_read read = {.stream = raw(partition),
                      .from = offset,
                      .limit = 1,
                      .alone = true,
                      .visit = see_entry,
                      .arg = &seen,
                      .error = &error};
    int status = pawl_log_read(log, &read);
    return (status == PAWL_READ_DONE && read.status == PAWL_OK && seen == offset)
           || failed("read", error.text) > 0;
}

/* Single entries all over the stream; the ms that one takes. The first, with which connections are made, does not
 * count. */
static double read_singly(pawl_log *log)
{
    uint64_t began = 0;
    for (uint64_t i = 0; i <= READS; i++) {
        if (!read_one(log, LONG_AT, 1 + (i * 7919 + 17) * 104729 % (long_entries - 2 * IN_FLIGHT_MAX)))
            return 0;
        began = i == 0 ? bench_begin() : began;
    }
    return (double)(bench_now() - began) / 1e6 / READS;
}

static double ours_read_unknown(const struct bench_round *round)
{
    struct engine_log *log;
    pawl_error error;
    if (!fill_long(round))
        return 0;
    if (engine_log_open(url_text, false, &log, &error) != PAWL_OK)
        return failed("open", error.text);
    double ms = read_singly(engine_log_port(log));
    engine_log_close(log);
    return ms;
}

static double ours_read_known(const struct bench_round *round)
{
    return fill_long(round) ? read_singly(engine_log_port(logs[0])) : 0;
}

static void teach(void *arg, pawl_stream stream, pawl_bytes known)
{
    (void)kafka_log_learn(engine_log_port(arg), stream, known);
}

/* Claim the long stream, as a node does that was closed and is opened again. */
static double ours_claim_known(const struct bench_round *round)
{
    struct engine_log *first, *log;
    pawl_error error;
    uint64_t epoch, next;
    if (!fill_long(round))
        return 0;
    if (engine_log_open(url_text, false, &first, &error) != PAWL_OK
        || engine_log_open(url_text, false, &log, &error) != PAWL_OK)
        return failed("open", error.text);
    bool ok = claim(first, LONG_AT, &epoch, &next) == PAWL_OK;
    kafka_log_known(engine_log_port(first), 1, teach, log);
    uint64_t began = bench_begin();
    ok = ok && claim(log, LONG_AT, &epoch, &next) == PAWL_OK && next == long_entries + 1;
    double ms = (double)(bench_now() - began) / 1e6;
    engine_log_close(first);
    engine_log_close(log);
    return ok ? ms : 0;
}

static double ours_read_mirror(const struct bench_round *round)
{
    char dir[4096];
    pawl_error error;
    struct mirror_options options = {
        .dir = dir, .id = "bench", .bytes_max = (uint64_t)64 << 20, .env = engine_log_env(logs[0])};
    const struct kafka_log_options kafka = {.url = url_text, .env = engine_log_env(logs[0])};
    pawl_log *log;
    uint64_t last = round->quick ? 4000 : 20000, before;
    snprintf(dir, sizeof dir, "%s/mirror", round->dir);
    if (kafka_log_open(&kafka, &options.log, &error) != PAWL_OK
        || mirror_open(&options, &log, &error) != PAWL_OK)
        return failed("open", error.text);
    struct latch latch;
    latch_init(&latch);
    pawl_claim request = {.stream = raw(MIRRORED), .done = claim_ended, .arg = &latch, .error = &error};
    if (pawl_log_claim(log, &request) == PAWL_OK)
        latch_wait(&latch);
    before = request.next - 1;
    window = (struct window){.log = log,
                             .stream = raw(MIRRORED),
                             .epoch = request.epoch,
                             .next = request.next,
                             .task = {.fn = begin}};
    bool ok = request.status == PAWL_OK && append_all(logs[0], IN_FLIGHT_MAX, 0, last) == last;
    uint64_t began = bench_begin();
    for (uint64_t i = 0; ok && i < MIRROR_READS; i++)
        ok = read_one(log, MIRRORED, before + 1 + i * 104729 % last);
    double ms = (double)(bench_now() - began) / 1e6 / MIRROR_READS;
    pawl_log_close(log);
    return ok ? ms : 0;
}

static bool make_topics(unsigned brokers)
{
    pawl_error error;
    rd_kafka_t *client;
    snprintf(url_text, sizeof url_text, "kafka://%s/bench?replication=%u", getenv("PAWL_KAFKA"), brokers);
    if (kafka_url_parse(url_text, &url, &error) != PAWL_OK
        || client_open(&url, CLIENT_CONSUMER, &client, &error) != PAWL_OK)
        return failed(url_text, error.text) > 0;
    bool ok = topic_create(client, &url, "bench.raw", PARTITIONS, &error) == PAWL_OK
              && topic_create(client, &url, "bare.raw", 1, &error) == PAWL_OK;
    client_close(client);
    node_brokers(getenv("PAWL_KAFKA"), brokers);
    for (int i = 0; ok && i < 2; i++)
        ok = engine_log_open(url_text, false, &logs[i], &error) == PAWL_OK;
    return ok || failed(url_text, error.text) > 0;
}

/* A virtual machine of Java compiles what it runs often: the first second of a broker says nothing of the next. */
static bool warm_up(void)
{
    return own(logs[0], PRODUCED) && append_all(logs[0], 64, bench_now() + WARM_UP, 0) > 0
           && append_all(logs[0], IN_FLIGHT_MAX, bench_now() + WARM_UP, 0) > 0;
}

int main(int argc, char **argv)
{
    const char *brokers = "3";
    if (argc > 2 && strcmp(argv[1], "--brokers") == 0)
        brokers = argv[2];
    if (!getenv("PAWL_KAFKA")) {
        char **words = calloc((size_t)argc + 4, sizeof *words);
        memcpy(words + 3, argv, (size_t)argc * sizeof *words);
        words[0] = (char *)(uintptr_t)CLUSTER;
        words[1] = (char *)(uintptr_t) "run";
        words[2] = (char *)(uintptr_t)brokers;
        execv(CLUSTER, words);
        perror(CLUSTER);
        free(words);
        return 1;
    }
    if (!make_topics((unsigned)strtoul(brokers, NULL, 10)) || !warm_up())
        return 1;
    if (strcmp(argv[argc > 1 ? 1 : 0], "--brokers") == 0) {
        argv[2] = argv[0];
        argc -= 2;
        argv += 2;
    }
    static uint64_t one = 1, some = 64, many = IN_FLIGHT_MAX;
    const struct bench_question questions[] = {
        {"append 300 bytes, 1 in flight", "op/s", BENCH_MORE, 0.8, ours_produce, bare_produce, &one},
        {"append 300 bytes, 64 in flight", "op/s", BENCH_MORE, 0.9, ours_produce, bare_produce, &some},
        {"append 300 bytes, 2048 in flight", "op/s", BENCH_MORE, 0.9, ours_produce, bare_produce, &many},
        {"follow 200000 events of 300 bytes", "op/s", BENCH_MORE, 0.9, ours_follow, bare_follow, NULL},
        {"take a stream from a live writer, slowest of 20", "ms", BENCH_LESS, 50, ours_change, NULL, NULL},
        {"read one of 1000000 entries, by a log that knows nothing of them", "ms", BENCH_LESS, 20,
         ours_read_unknown, NULL, NULL},
        {"read one of 1000000 entries, by their writer", "ms", BENCH_LESS, 20, ours_read_known, NULL, NULL},
        {"read one entry from the mirror", "ms", BENCH_LESS, 1, ours_read_mirror, NULL, NULL},
        {"claim a stream of 1000000 entries that is known", "ms", BENCH_LESS, 3000, ours_claim_known, NULL,
         NULL},
        {"commands, 64 under way (peer: the log alone, 16 streams)", "op/s", BENCH_MORE, 0.5, node_commands,
         node_entries, &some},
        {"commands, 2048 under way (peer: the log alone, 16 streams)", "op/s", BENCH_MORE, 0.3, node_commands,
         node_entries, &many},
        {"open a node with 1000000 events", "ms", BENCH_LESS, 3000, node_open, NULL, NULL},
        {"read one event of a workspace, by a node whose mirror has it", "ms", BENCH_LESS, 1,
         node_read_mirrored, NULL, NULL},
        {"read one event of a workspace, by a node whose mirror has it not", "ms", BENCH_LESS, 20,
         node_read_kafka, NULL, NULL},
        {"come back from nothing (peer: pawl replay, in files)", "op/s", BENCH_MORE, 0.5, node_back,
         node_replay, NULL},
    };
    bench_peer("librdkafka", rd_kafka_version_str());
    int status = bench_main(argc, argv, questions, sizeof questions / sizeof questions[0]);
    node_end();
    for (int i = 0; i < 2; i++)
        engine_log_close(logs[i]);
    return status;
}
