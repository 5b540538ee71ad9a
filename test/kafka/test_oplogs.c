/* Operation logs that have a topic (adapter/kafka/oplogs.h), on a real broker, which PAWL_KAFKA names: what is made, listed
 * and claimed, in this order; and when a topic that is missing is lost. Every test has a cluster of its own on that broker.
 *
 * Some functions of librdkafka are replaced, and call it: so a topic can be one that the brokers do not know, and a list one
 * that cannot be written or read. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <librdkafka/rdkafka.h>

#include "adapter/kafka/kafka.h"
#include "adapter/kafka/oplogs.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "base/wait.h"
#include "test/lib/test.h"

#define PATIENT_MS 60000
#define HASTY_MS   5000 /* longer than a new topic is waited for, by more than a busy machine needs */
#define ABSENCES   3    /* of a topic that is waited for, which together are longer than HASTY_MS */
#define TRIES_MAX  20
#define READERS    8
#define GOOD       "flush.messages=1 retention.bytes=-1 max.message.bytes=2097152 min.insync.replicas=1"

static const pawl_stream stream = {.kind = PAWL_STREAM_OPLOG, .partition = 0, .lane = 7, .generation = 2};
static const char topic_name[] = "oplog.7.2";

/* --- in place of librdkafka's --- */

static _Atomic(const char *) hidden; /* the topic that no broker knows */
static _Atomic(const char *) hidden_once_listed;
static atomic_bool refuses_list, holds_list;
static atomic_bool tells_an_end, tells_out_of_range; /* once, of the list, as a leader does that was replaced */
static atomic_size_t looks, loads;
static atomic_int list_hidden; /* at so many looks from now on nobody knows it */
static atomic_size_t list_looks;
static _Atomic rd_kafka_resp_err_t told_of_list; /* instead of its records */

static bool is_list(const rd_kafka_topic_t *topic)
{
    const char *name = rd_kafka_topic_name(topic), *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".oplogs") == 0;
}

rd_kafka_resp_err_t rd_kafka_metadata(rd_kafka_t *client, int all, rd_kafka_topic_t *only,
                                      const struct rd_kafka_metadata **ret_metadata, int timeout_ms)
{
    rd_kafka_resp_err_t (*real)(rd_kafka_t *, int, rd_kafka_topic_t *, const struct rd_kafka_metadata **, int);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_metadata");
    const char *name = atomic_load(&hidden);
    rd_kafka_resp_err_t err = real(client, all, only, ret_metadata, timeout_ms);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR && only && is_list(only)) {
        atomic_fetch_add(&list_looks, 1);
        if (atomic_load(&list_hidden) > 0 && atomic_fetch_sub(&list_hidden, 1) > 0) {
            (*ret_metadata)->topics[0].err = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
            (*ret_metadata)->topics[0].partition_cnt = 0;
        }
    }
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR && only && name && strcmp(rd_kafka_topic_name(only), name) == 0) {
        (*ret_metadata)->topics[0].err = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        (*ret_metadata)->topics[0].partition_cnt = 0;
        atomic_fetch_add(&looks, 1);
    }
    return err;
}

int rd_kafka_produce(rd_kafka_topic_t *topic, int32_t partition, int flags, void *payload, size_t len,
                     const void *key, size_t keylen, void *opaque)
{
    int (*real)(rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t, void *);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_produce");
    if (is_list(topic) && atomic_load(&refuses_list))
        return -1;
    if (is_list(topic) && atomic_load(&hidden_once_listed))
        atomic_store(&hidden, atomic_load(&hidden_once_listed));
    return real(topic, partition, flags, payload, len, key, keylen, opaque);
}

/* The list cannot be read, which takes until all readers have asked for it; or a position is asked for that is not there. */
int rd_kafka_consume_start(rd_kafka_topic_t *topic, int32_t partition, int64_t offset)
{
    int (*real)(rd_kafka_topic_t *, int32_t, int64_t);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_consume_start");
    if (is_list(topic) && atomic_exchange(&tells_out_of_range, false))
        return real(topic, partition, 1000);
    if (!is_list(topic) || !atomic_load(&holds_list))
        return real(topic, partition, offset);
    atomic_fetch_add(&loads, 1);
    while (atomic_load(&looks) < READERS)
        sched_yield();
    return -1;
}

/* Nobody but the log's front reads the list, and all that it reads so is the list and the skips. */
static rd_kafka_message_t *invented(rd_kafka_topic_t *topic, rd_kafka_resp_err_t err)
{
    rd_kafka_message_t *m = calloc(1, sizeof *m);
    assert_non_null(m);
    *m = (rd_kafka_message_t){.err = err, .rkt = topic, ._private = &told_of_list};
    return m;
}

rd_kafka_message_t *rd_kafka_consume(rd_kafka_topic_t *topic, int32_t partition, int timeout_ms)
{
    rd_kafka_message_t *(*real)(rd_kafka_topic_t *, int32_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_consume");
    rd_kafka_resp_err_t err = atomic_load(&told_of_list);
    if (is_list(topic) && atomic_exchange(&tells_an_end, false))
        return invented(topic, RD_KAFKA_RESP_ERR__PARTITION_EOF);
    return is_list(topic) && err != RD_KAFKA_RESP_ERR_NO_ERROR ? invented(topic, err)
                                                               : real(topic, partition, timeout_ms);
}

void rd_kafka_message_destroy(rd_kafka_message_t *message)
{
    void (*real)(rd_kafka_message_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_message_destroy");
    if (message->_private == &told_of_list)
        free(message);
    else
        real(message);
}

/* --- a log --- */

struct site {
    char url[512], topic[128];
    struct uv_env *env;
    pawl_log *log;
    uint64_t epoch;
    pawl_error error;
};

static void site_open(struct site *s, const char *cluster, int timeout_ms)
{
    *s = (struct site){0};
    atomic_store(&hidden, NULL);
    atomic_store(&hidden_once_listed, NULL);
    snprintf(s->topic, sizeof s->topic, "%s.%s", cluster, topic_name);
    snprintf(s->url, sizeof s->url, "kafka://%s/%s?replication=1&check-ms=1000&timeout-ms=%d",
             getenv("PAWL_KAFKA"), cluster, timeout_ms);
    int status = PAWL_EIO;
    while (status == PAWL_EIO) /* it is tried again as long as the brokers are too busy */
        status = kafka_cluster_init(s->url, 1, 0, &s->error);
    if (status != PAWL_OK)
        fail_msg("%s", s->error.text);
    const struct uv_env_options options = {.shards = 1, .pool_threads = 2};
    assert_ok(uv_env_open(&options, &s->env, NULL));
    const struct kafka_log_options log = {.url = s->url, .env = uv_env_port(s->env)};
    do
        status = kafka_log_open(&log, &s->log, &s->error);
    while (status == PAWL_EIO);
    if (status != PAWL_OK)
        fail_msg("%s", s->error.text);
}

static void site_close(struct site *s)
{
    assert_ok(pawl_log_close(s->log));
    assert_ok(uv_env_close(s->env));
}

static void claim_done(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static int claim(struct site *s)
{
    struct latch latch;
    latch_init(&latch);
    s->error = (pawl_error){0};
    pawl_claim request = {.stream = stream, .done = claim_done, .arg = &latch, .error = &s->error};
    assert_ok(pawl_log_claim(s->log, &request));
    latch_wait(&latch);
    s->epoch = request.epoch;
    return request.status;
}

/* As a writer does, until the answer is not one of brokers that may know better soon. What became of a claim that they were
 * too busy to answer is settled by the next one. */
static int claim_until_known(struct site *s)
{
    int status = claim(s);
    while (status == PAWL_EIO || status == PAWL_ENOTFOUND || status == PAWL_EUNKNOWN)
        status = claim(s);
    return status;
}

/* The brokers were too busy to answer in time. That they do not know a topic is an answer. */
static bool is_silence(int status, const pawl_error *error)
{
    return status == PAWL_EUNKNOWN || (status == PAWL_EIO && !strstr(error->text, "do not know"));
}

static bool pass_over(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return true;
}

static void read_done(pawl_read *read)
{
    latch_set(read->arg);
}

static int read_once(struct site *s, bool alone, pawl_error *error)
{
    struct latch latch;
    latch_init(&latch);
    pawl_read read = {.stream = stream,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .alone = alone,
                      .visit = pass_over,
                      .done = read_done,
                      .arg = &latch,
                      .error = error};
    if (pawl_log_read(s->log, &read) != PAWL_READ_DONE)
        latch_wait(&latch);
    return read.status;
}

static int read_all(struct site *s, bool alone, pawl_error *error)
{
    int status = read_once(s, alone, error);
    while (is_silence(status, error))
        status = read_once(s, alone, error);
    return status;
}

static bool pass_by(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    return true;
}

static void follow_done(pawl_follow *follow)
{
    latch_set(follow->arg);
}

static int follow(struct site *s)
{
    struct latch latch;
    latch_init(&latch);
    pawl_follow follow = {
        .stream = stream, .from = 1, .visit = pass_by, .done = follow_done, .arg = &latch, .error = &s->error};
    assert_ok(pawl_log_follow(s->log, &follow));
    latch_wait(&latch);
    return follow.status;
}

/* Somebody else, with test/kafka/client.c. */
static int outsider(const char *words)
{
    char command[600];
    snprintf(command, sizeof command, "\"%s\" \"%s\" %s", getenv("KAFKA_CLIENT"), getenv("PAWL_KAFKA"), words);
    return system(command); // NOLINT(cert-env33-c): the words are of this file
}

static bool is_there(const struct site *s)
{
    char words[300];
    snprintf(words, sizeof words, "topics %.*s | grep -qx %s", (int)(strlen(s->topic) - strlen(topic_name) - 1),
             s->topic, s->topic);
    return outsider(words) == 0;
}

/* Between two processes, as far as the log can tell: librdkafka 2.0.2 may not end a consumer whose topic is gone. What the
 * controller has acknowledged, a broker may act on a little later. */
static void delete_topic(struct site *s, const char *cluster)
{
    char words[200];
    site_close(s);
    snprintf(words, sizeof words, "delete %s", s->topic);
    assert_int_equal(outsider(words), 0);
    while (is_there(s))
        wait_pause(PAWL_SECOND / 10);
    site_open(s, cluster, HASTY_MS);
}

static int check(struct site *s)
{
    pawl_cluster_topics topics;
    int status = kafka_cluster_check(s->url, 0, &topics, &s->error);
    while (is_silence(status, &s->error))
        status = kafka_cluster_check(s->url, 0, &topics, &s->error);
    return status;
}

static int verify(struct site *s, pawl_cluster_report *ret_report)
{
    int status = kafka_verify(s->log, NULL, NULL, ret_report, &s->error);
    while (is_silence(status, &s->error))
        status = kafka_verify(s->log, NULL, NULL, ret_report, &s->error);
    return status;
}

/* Delete all that the list has. */
static void behead(const struct site *s)
{
    char list[128], why[256];
    snprintf(list, sizeof list, "%.*s.oplogs", (int)(strlen(s->topic) - strlen(topic_name) - 1), s->topic);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", getenv("PAWL_KAFKA"), why, sizeof why), 0);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert_non_null(client);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_topic_partition_list_t *before = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(before, list, 0)->offset = RD_KAFKA_OFFSET_END;
    rd_kafka_DeleteRecords_t *wanted = rd_kafka_DeleteRecords_new(before);
    rd_kafka_DeleteRecords(client, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, PATIENT_MS);
    assert_non_null(event);
    assert_int_equal(rd_kafka_event_error(event), 0);
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteRecords_destroy(wanted);
    rd_kafka_topic_partition_list_destroy(before);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
}

static void assert_lost(const struct site *s, int status)
{
    char words[200];
    assert_status(status, PAWL_ECORRUPT);
    snprintf(words, sizeof words, "topic %s was deleted", s->topic);
    assert_contains(s->error.text, words);
}

/* --- tests --- */

TEST(a_log_is_made_then_listed_then_claimed)
{
    struct site s;
    site_open(&s, "ordered", PATIENT_MS);
    atomic_store(&refuses_list, true);
    assert_int_not_equal(claim(&s), PAWL_OK);
    while (!is_there(&s)) /* it was made, or is made by a claim for which the brokers are not too busy */
        assert_int_not_equal(claim(&s), PAWL_OK);
    atomic_store(&refuses_list, false);
    assert_ok(claim_until_known(&s));
    assert_int_equal(s.epoch, 1); /* the first try has written none */
    site_close(&s);
}

TEST(a_topic_that_was_there_before_the_list_is_listed_by_its_next_claim)
{
    struct site s;
    char words[300];
    site_open(&s, "older", HASTY_MS);
    snprintf(words, sizeof words, "create %s 1", s.topic);
    assert_int_equal(outsider(words), 0);
    snprintf(words, sizeof words, "alter %s %s retention.ms=-1", s.topic, GOOD);
    assert_int_equal(outsider(words), 0);
    assert_ok(claim_until_known(&s));
    delete_topic(&s, "older");
    assert_lost(&s, claim_until_known(&s));
    assert_lost(&s, read_all(&s, true, &s.error));
    assert_false(is_there(&s));
    site_close(&s);
}

TEST(a_topic_that_was_seen_and_is_missing_is_lost_though_it_is_not_listed)
{
    struct site s;
    char words[300];
    site_open(&s, "seen", HASTY_MS);
    snprintf(words, sizeof words, "create %s 1", s.topic);
    assert_int_equal(outsider(words), 0);
    while (!is_there(&s))
        wait_pause(PAWL_SECOND / 10);
    assert_ok(read_all(&s, true, &s.error));
    atomic_store(&hidden, s.topic);
    assert_lost(&s, claim_until_known(&s));
    atomic_store(&hidden, NULL);
    site_close(&s);
}

/* A topic that no broker knows for a moment is doubted, and not lost. False: the moment was as long as the timeout, on a
 * machine that is busy; then it may be lost. */
static bool is_doubted(struct site *s)
{
    uint64_t began = clock_boot_ns();
    atomic_store(&hidden, s->topic);
    int status = claim(s);
    while (is_silence(status, &s->error))
        status = claim(s);
    atomic_store(&hidden, NULL);
    if (clock_boot_ns() - began >= (uint64_t)HASTY_MS * 1000000)
        return false;
    assert_status(status, PAWL_EIO);
    assert_contains(s->error.text, "do not know topic absent.oplog.7.2");
    return true;
}

TEST(a_topic_is_absent_for_the_whole_timeout_before_it_is_lost)
{
    struct site s;
    site_open(&s, "absent", HASTY_MS);
    assert_ok(claim_until_known(&s));
    int tries = 0;
    for (int times = 0; times < ABSENCES; tries++) { /* that it was seen again counts: together it is longer */
        bool doubted = is_doubted(&s);
        times = doubted ? times + 1 : 0;
        assert_true(tries < TRIES_MAX);
        if (!doubted) {
            site_close(&s);
            site_open(&s, "absent", HASTY_MS);
        }
        assert_ok(claim_until_known(&s));
    }
    for (int how = 0; how < 4; how++) {
        site_close(&s);
        site_open(&s, "absent", HASTY_MS);
        uint64_t began = clock_boot_ns();
        atomic_store(&hidden, s.topic);
        int status = how == 0   ? claim_until_known(&s)
                     : how == 1 ? follow(&s)
                                : read_all(&s, how == 2, &s.error);
        assert_lost(&s, status);
        assert_true(clock_boot_ns() - began >= (uint64_t)HASTY_MS * 1000000);
    }
    atomic_store(&hidden, NULL);
    site_close(&s);
}

TEST(looks_that_lie_far_apart_do_not_add_up)
{
    const struct kafka_url url = {.cluster = "sparse", .timeout_ms = 30000};
    const uint64_t now = clock_boot_ns(), second = PAWL_SECOND;
    struct oplog_absence absence = {.since = now - 40 * second, .last = now - 9 * second};
    pawl_error error = {0};
    assert_status(oplog_judge(&url, "sparse.oplog.7.2", 0, &absence, &error), PAWL_ECORRUPT);
    absence = (struct oplog_absence){.since = now - 40 * second, .last = now - 25 * second};
    assert_status(oplog_judge(&url, "sparse.oplog.7.2", 0, &absence, &error), PAWL_EIO);
}

TEST(a_claim_that_cannot_see_what_it_has_made_is_not_lost)
{
    struct site s;
    site_open(&s, "made", PATIENT_MS);
    atomic_store(&hidden_once_listed, s.topic);
    int status = claim(&s);
    assert_true(status == PAWL_ENOTFOUND || status == PAWL_EIO);
    atomic_store(&hidden_once_listed, NULL);
    atomic_store(&hidden, NULL);
    assert_ok(claim_until_known(&s));
    assert_int_equal(s.epoch, 1);
    site_close(&s);
}

TEST(a_list_that_a_broker_does_not_know_yet_is_not_empty)
{
    struct site s;
    site_open(&s, "young", HASTY_MS);
    assert_ok(claim_until_known(&s));
    delete_topic(&s, "young");
    for (int how = 0; how < 5; how++) {
        pawl_cluster_topics topics;
        pawl_cluster_report report;
        site_close(&s);
        site_open(&s, "young", HASTY_MS); /* it has not read the list */
        atomic_store(&list_hidden, 1);    /* more looks may take longer than a list is waited for */
        if (how == 0)
            assert_lost(&s, claim_until_known(&s));
        if (how == 1)
            assert_lost(&s, read_all(&s, true, &s.error));
        if (how == 2)
            assert_lost(&s, read_all(&s, false, &s.error));
        if (how == 3)
            assert_lost(&s, kafka_cluster_check(s.url, 0, &topics, &s.error));
        if (how == 4) {
            assert_ok(kafka_verify(s.log, NULL, NULL, &report, &s.error));
            assert_int_equal(report.faults, 1);
            kafka_verify_release(&report);
        }
        assert_true(atomic_load(&list_hidden) <= 0);
    }
    assert_false(is_there(&s));
    site_close(&s);
}

TEST(without_a_list_an_operation_log_is_empty_and_only_the_first_reader_waits)
{
    struct site s;
    site_open(&s, "virgin", HASTY_MS);
    assert_ok(read_all(&s, true, &s.error));
    atomic_store(&list_looks, 0);
    for (size_t before = 0; before < 3;
         before = atomic_load(&list_looks)) { /* an answer is believed for a while */
        assert_ok(read_all(&s, before % 2 > 0, &s.error));
        assert_true(atomic_load(&list_looks) <= before + 1);
        wait_pause(PAWL_SECOND / 10);
    }
    assert_int_not_equal(outsider("topics virgin | grep -qx virgin.oplogs"), 0);
    site_close(&s);
}

TEST(what_looks_at_all_logs_finds_the_lost_one)
{
    struct site s;
    pawl_cluster_report report;
    site_open(&s, "checked", HASTY_MS);
    assert_ok(claim_until_known(&s));
    assert_ok(check(&s));
    delete_topic(&s, "checked");
    assert_lost(&s, check(&s));
    assert_ok(verify(&s, &report));
    assert_int_equal(report.faults, 1);
    s.error = report.first;
    assert_lost(&s, report.first.code);
    kafka_verify_release(&report);
    site_close(&s);
}

static void assert_perhaps_lost(const struct site *s, int status)
{
    assert_status(status, PAWL_ECORRUPT);
    assert_contains(s->error.text, s->topic);
    assert_contains(s->error.text, ".oplogs");
    assert_contains(s->error.text, "first records");
    assert_contains(s->error.text, "retention.ms");
}

TEST(a_list_whose_first_records_are_gone_lists_again_what_is_there)
{
    struct site s;
    pawl_cluster_topics topics;
    pawl_cluster_report report;
    site_open(&s, "headless", HASTY_MS);
    assert_ok(claim_until_known(&s));
    behead(&s);
    site_close(&s);
    site_open(&s, "headless", HASTY_MS);
    assert_ok(read_all(&s, true, &s.error));
    assert_ok(claim_until_known(&s));
    site_close(&s);
    site_open(&s, "headless", HASTY_MS);
    atomic_store(&hidden, s.topic);
    assert_lost(&s, read_all(&s, true, &s.error));
    atomic_store(&hidden, NULL);
    assert_status(kafka_cluster_check(s.url, 0, &topics, &s.error), PAWL_ECORRUPT);
    assert_contains(s.error.text, "topic headless.oplogs has lost its first records");
    assert_ok(kafka_verify(s.log, NULL, NULL, &report, &s.error));
    assert_int_equal(report.faults, 1);
    assert_contains(report.first.text, "topic headless.oplogs has lost its first records");
    kafka_verify_release(&report);
    site_close(&s);
}

TEST(a_log_that_such_a_list_may_have_had_and_that_is_missing_is_corrupt_until_the_list_is_deleted)
{
    struct site s;
    site_open(&s, "beheaded", HASTY_MS);
    assert_ok(claim_until_known(&s));
    behead(&s);
    delete_topic(&s, "beheaded");
    assert_perhaps_lost(&s, claim_until_known(&s));
    assert_false(is_there(&s));
    site_close(&s);
    site_open(&s, "beheaded", HASTY_MS);
    assert_perhaps_lost(&s, read_all(&s, true, &s.error));
    site_close(&s);
    assert_int_equal(outsider("delete beheaded.oplogs"), 0);
    while (outsider("topics beheaded | grep -qx beheaded.oplogs") == 0)
        wait_pause(PAWL_SECOND / 10);
    site_open(&s, "beheaded", HASTY_MS);
    assert_ok(claim_until_known(&s));
    assert_int_equal(s.epoch, 1);
    site_close(&s);
}

TEST(a_list_is_read_to_its_end_whatever_a_replaced_leader_tells)
{
    struct site s;
    site_open(&s, "cut_off", HASTY_MS);
    assert_ok(claim_until_known(&s));
    delete_topic(&s, "cut_off");
    for (int how = 0; how < 2; how++) {
        atomic_store(how == 0 ? &tells_an_end : &tells_out_of_range, true);
        assert_lost(&s, claim_until_known(&s));
        assert_false(atomic_load(&tells_an_end) || atomic_load(&tells_out_of_range));
        site_close(&s);
        site_open(&s, "cut_off", HASTY_MS);
    }
    site_close(&s);
}

TEST(a_list_of_which_brokers_tell_nothing_but_errors_ends_a_claim)
{
    struct site s;
    site_open(&s, "garbled", HASTY_MS);
    assert_ok(claim_until_known(&s));
    site_close(&s);
    site_open(&s, "garbled", HASTY_MS); /* it has not read the list */
    atomic_store(&told_of_list, RD_KAFKA_RESP_ERR_UNKNOWN);
    assert_status(claim(&s), PAWL_EIO);
    assert_contains(s.error.text, "topic garbled.oplogs");
    assert_contains(s.error.text, rd_kafka_err2str(RD_KAFKA_RESP_ERR_UNKNOWN));
    atomic_store(&told_of_list, RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_ok(claim_until_known(&s));
    site_close(&s);
}

static void set_retention(const char *cluster, const char *retention)
{
    char words[300];
    snprintf(words, sizeof words, "alter %s.oplogs %s %s", cluster, GOOD, retention);
    assert_int_equal(outsider(words), 0);
}

TEST(the_settings_of_the_list_are_watched_while_a_log_is_held)
{
    struct site s;
    pawl_error seen = {0};
    site_open(&s, "watched", PATIENT_MS);
    assert_ok(claim_until_known(&s));
    assert_ok(kafka_log_weakness(s.log, &seen));
    set_retention("watched", "retention.ms=60000");
    while (kafka_log_weakness(s.log, &seen) == PAWL_OK)
        wait_pause(PAWL_SECOND / 10);
    assert_contains(seen.text, "watched.oplogs");
    assert_contains(seen.text, "retention.ms=60000");
    set_retention("watched", "retention.ms=-1");
    while (kafka_log_weakness(s.log, &seen) != PAWL_OK)
        wait_pause(PAWL_SECOND / 10);
    site_close(&s);
}

struct reader {
    pthread_t thread;
    struct site *site;
    int status;
    pawl_error error;
};

static void *reader_main(void *arg)
{
    struct reader *r = arg;
    r->status = read_once(r->site, true, &r->error);
    return NULL;
}

TEST(whoever_waits_for_a_list_that_cannot_be_read_shares_the_failure)
{
    struct site s;
    struct reader readers[READERS] = {0};
    site_open(&s, "waiting", PATIENT_MS);
    assert_ok(claim_until_known(&s));
    site_close(&s);
    site_open(&s, "waiting", PATIENT_MS); /* it has not read the list */
    atomic_store(&looks, 0);
    atomic_store(&loads, 0);
    atomic_store(&holds_list, true);
    atomic_store(&hidden, s.topic);
    for (size_t i = 0; i < READERS; i++) {
        readers[i].site = &s;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]), 0);
    }
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_status(readers[i].status, PAWL_EIO);
        assert_contains(readers[i].error.text, "cannot read topic waiting.oplogs");
    }
    assert_int_equal(atomic_load(&loads), 1);
    atomic_store(&holds_list, false);
    atomic_store(&hidden, NULL);
    assert_ok(read_all(&s, true, &s.error));
    site_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_log_is_made_then_listed_then_claimed),
        RUN(a_topic_that_was_there_before_the_list_is_listed_by_its_next_claim),
        RUN(a_topic_that_was_seen_and_is_missing_is_lost_though_it_is_not_listed),
        RUN(a_topic_is_absent_for_the_whole_timeout_before_it_is_lost),
        RUN(looks_that_lie_far_apart_do_not_add_up),
        RUN(a_claim_that_cannot_see_what_it_has_made_is_not_lost),
        RUN(a_list_that_a_broker_does_not_know_yet_is_not_empty),
        RUN(without_a_list_an_operation_log_is_empty_and_only_the_first_reader_waits),
        RUN(what_looks_at_all_logs_finds_the_lost_one),
        RUN(a_list_whose_first_records_are_gone_lists_again_what_is_there),
        RUN(a_log_that_such_a_list_may_have_had_and_that_is_missing_is_corrupt_until_the_list_is_deleted),
        RUN(a_list_is_read_to_its_end_whatever_a_replaced_leader_tells),
        RUN(a_list_of_which_brokers_tell_nothing_but_errors_ends_a_claim),
        RUN(the_settings_of_the_list_are_watched_while_a_log_is_held),
        RUN(whoever_waits_for_a_list_that_cannot_be_read_shares_the_failure),
    };
    if (!getenv("PAWL_KAFKA") || !getenv("KAFKA_CLIENT")) {
        fputs("PAWL_KAFKA names no brokers, or KAFKA_CLIENT no client\n", stderr);
        return 1;
    }
    return TEST_MAIN(tests);
}
