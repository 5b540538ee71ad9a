/* The log on Kafka with errors made to order: librdkafka's mock brokers, and a second writer to the same
 * topic. */
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "adapter/kafka/kafka.h"
#include "adapter/kafka/record.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "base/wait.h"
#include "test/lib/test.h"

#define TOPIC        "mock.raw"
#define PLOG         "mock.plog"
#define BROKER       1 /* the only one, but for LEADER in some tests */
#define LEADER       2
#define PRODUCE      0 /* Kafka's numbers for requests */
#define FETCH        1
#define LIST_OFFSETS 2

/* How long the log waits. What is to work has minutes, so that it works on a busy machine too. A test that
 * waits until the log gives up takes the short time. */
#define PATIENT_MS      120000
#define HASTY_MS        5000
#define NEVER_MS        3600000 /* later than any test lasts */
#define PATIENT_SECONDS 200     /* for what is asked again; meson.build gives the program 300 */
#define RETRY_NS        ((uint64_t)20 * 1000 * 1000)
/* A leader takes so long to say where a stream begins, and then where it ends: the log's time is over before it has said
 * both, and it still has more than a second before each is asked again (ASK_MS in bounds.c). */
#define LEADER_MS     1900
#define LEADER_LOG_MS 3500
#define LEADER_TRIES  10
#define LATE_MS       2000 /* an answer is on its way for so long; something else is done meanwhile */

static const pawl_stream stream = {.kind = PAWL_STREAM_RAW, .partition = 1};

struct mock {
    rd_kafka_t *outsider;
    rd_kafka_mock_cluster_t *brokers;
    char url[512];
    struct uv_env *env;
    pawl_log *log;
    uint64_t epoch, next;
    bool forgot; /* the brokers know of no topic */
    pawl_error error;
};

static void ignore_log(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
}

/* The log's memory. While there is no more, it gets none. */
static atomic_bool no_more;

static void *resize(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    if (new_size == 0) {
        free(memory);
        return NULL;
    }
    return new_size > old_size && atomic_load(&no_more) ? NULL : realloc(memory, new_size);
}

static const pawl_allocator scarce = {.resize = resize};

/* In place of librdkafka's: counts what is asked of brokers about all topics that the client knows, since this was set to 0.
 * librdkafka lets them make those that are missing then. */
static atomic_int known_asked, topics_asked;

static atomic_int plog_asked;
static rd_kafka_mock_cluster_t *plog_late; /* it knows PLOG only when it is asked once more */

rd_kafka_resp_err_t rd_kafka_metadata(rd_kafka_t *client, int all, rd_kafka_topic_t *only,
                                      const struct rd_kafka_metadata **ret_metadata, int timeout_ms)
{
    rd_kafka_resp_err_t (*real)(rd_kafka_t *, int, rd_kafka_topic_t *, const struct rd_kafka_metadata **, int);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_metadata");
    atomic_fetch_add(&known_asked, !all && !only);
    atomic_fetch_add(&topics_asked, only != NULL);
    if (only && strcmp(rd_kafka_topic_name(only), PLOG) == 0 && atomic_fetch_add(&plog_asked, 1) == 1
        && plog_late)
        rd_kafka_mock_topic_set_error(plog_late, PLOG, RD_KAFKA_RESP_ERR_NO_ERROR);
    return real(client, all, only, ret_metadata, timeout_ms);
}

static struct mock *mock_open_on(int brokers, int timeout_ms)
{
    char why[256];
    struct mock *m = calloc(1, sizeof *m);
    assert_non_null(m);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, ignore_log);
    m->outsider = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert_non_null(m->outsider);
    m->brokers = rd_kafka_mock_cluster_new(m->outsider, brokers);
    assert_int_equal(rd_kafka_mock_topic_create(m->brokers, TOPIC, 2, 1), 0);
    assert_int_equal(rd_kafka_mock_partition_set_leader(m->brokers, TOPIC, 1, BROKER), 0);
    const char *list = rd_kafka_mock_cluster_bootstraps(m->brokers);
    assert_true(rd_kafka_brokers_add(m->outsider, list) > 0);
    snprintf(m->url, sizeof m->url, "kafka://%s/mock?timeout-ms=%d", list, timeout_ms);
    const struct uv_env_options options = {.shards = 1, .pool_threads = 2};
    assert_ok(uv_env_open(&options, &m->env, NULL));
    const struct kafka_log_options log = {
        .url = m->url, .env = uv_env_port(m->env), .alloc = &scarce, .trust_topics = true};
    if (kafka_log_open(&log, &m->log, &m->error) != PAWL_OK)
        fail_msg("%s", m->error.text);
    atomic_store(&known_asked, 0); /* when it is opened, it knows none yet */
    atomic_store(&topics_asked, 0);
    return m;
}

static struct mock *mock_open_with(int timeout_ms)
{
    return mock_open_on(1, timeout_ms);
}

static struct mock *mock_open(void)
{
    return mock_open_with(PATIENT_MS);
}

static void mock_close(struct mock *m)
{
    assert_int_equal(atomic_load(&known_asked), 0);
    assert_ok(pawl_log_close(m->log));
    assert_ok(uv_env_close(m->env));
    rd_kafka_mock_cluster_destroy(m->brokers);
    rd_kafka_destroy(m->outsider);
    free(m);
}

static void claim_done(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static int claim_on(struct mock *m, uint64_t group0)
{
    struct latch latch;
    latch_init(&latch);
    m->error = (pawl_error){0};
    pawl_claim request = {
        .stream = stream, .group0 = group0, .done = claim_done, .arg = &latch, .error = &m->error};
    assert_ok(pawl_log_claim(m->log, &request));
    latch_wait(&latch);
    if (request.status == PAWL_OK) {
        m->epoch = request.epoch;
        m->next = request.next;
    }
    return request.status;
}

static int claim(struct mock *m)
{
    return claim_on(m, 0);
}

/* A machine that others keep busy may take longer than the log waits: then it is asked again, after a moment. It is given
 * up before this program would be. */
static bool goes_on(time_t began)
{
    wait_pause(RETRY_NS);
    return time(NULL) < began + PATIENT_SECONDS;
}

static int claim_patiently(struct mock *m)
{
    time_t began = time(NULL);
    int status = claim(m);
    while ((status == PAWL_EIO || status == PAWL_EUNKNOWN) && goes_on(began))
        status = claim(m);
    return status;
}

static void append_done(pawl_append *append)
{
    latch_set(append->arg);
}

/* An append under way. */
struct appending {
    pawl_append_entry entry;
    pawl_append request;
    struct latch done;
};

static void append_begin_in(struct mock *m, uint16_t partition, uint64_t offset, struct appending *a)
{
    m->error = (pawl_error){0};
    *a = (struct appending){
        .entry.entry = {.stream = {.kind = PAWL_STREAM_RAW, .partition = partition},
                        .epoch = m->epoch,
                        .offset = offset,
                        .body = text_bytes("body")},
        .request = {
            .entries = &a->entry, .count = 1, .done = append_done, .arg = &a->done, .error = &m->error}};
    latch_init(&a->done);
    assert_ok(pawl_log_append(m->log, &a->request));
}

static void append_begin(struct mock *m, uint64_t offset, struct appending *a)
{
    append_begin_in(m, stream.partition, offset, a);
}

static int append_end(struct appending *a)
{
    latch_wait(&a->done);
    assert_status(a->entry.status, a->request.status);
    return a->request.status;
}

static int append_at(struct mock *m, uint64_t offset)
{
    struct appending a;
    append_begin(m, offset, &a);
    return append_end(&a);
}

/* The same: what became of an append that was not answered in time is settled by a claim. */
static void append_patiently(struct mock *m, uint64_t offset)
{
    time_t began = time(NULL);
    int status = append_at(m, offset);
    while (status == PAWL_EUNKNOWN && goes_on(began)) {
        assert_ok(claim_patiently(m));
        status = m->next > offset ? PAWL_OK : append_at(m, offset);
    }
    assert_ok(status);
}

static bool count(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return true;
}

static void never(pawl_read *read)
{
    abort();
}

/* Read to the end. The same. */
static int read_patiently(struct mock *m, uint64_t from, uint64_t *ret_next)
{
    time_t began = time(NULL);
    int status;
    do {
        pawl_read read = {.stream = stream,
                          .from = from,
                          .limit = UINT64_MAX,
                          .alone = true,
                          .visit = count,
                          .done = never,
                          .error = &m->error};
        assert_int_equal(pawl_log_read(m->log, &read), PAWL_READ_DONE);
        status = read.status;
        *ret_next = read.next;
    } while (status == PAWL_EIO && goes_on(began));
    return status;
}

static uint64_t entries_in(struct mock *m)
{
    uint64_t next = 0;
    assert_ok(read_patiently(m, 1, &next));
    return next - 1;
}

static struct kafka_figures figures_of(struct mock *m)
{
    struct kafka_figures figures;
    kafka_log_figures(m->log, &figures);
    return figures;
}

/* Somebody else's value, as it is. */
static void put_in(struct mock *m, int32_t partition, const void *value, size_t size)
{
    rd_kafka_topic_t *topic = rd_kafka_topic_new(m->outsider, TOPIC, NULL);
    assert_int_equal(
        rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)value, size, NULL, 0, NULL),
        0);
    rd_kafka_topic_destroy(topic);
    assert_int_equal(rd_kafka_flush(m->outsider, PATIENT_MS), 0);
}

static void put(struct mock *m, const void *value, size_t size)
{
    put_in(m, 1, value, size);
}

static void put_record(struct mock *m, struct kafka_record record)
{
    uint8_t bytes[KAFKA_RECORD_HEADER + 16];
    assert_true(record.body.size <= 16);
    kafka_record_encode(&record, kafka_record_seed(TOPIC, 1), bytes);
    put(m, bytes, KAFKA_RECORD_HEADER + record.body.size);
}

static void put_claim(struct mock *m, uint64_t epoch)
{
    put_record(m, (struct kafka_record){
                      .head = {.kind = CLAIM_KIND_CLAIM, .epoch = epoch, .node = 666, .nonce = epoch}});
}

static pawl_log_figures look_at(struct mock *m)
{
    pawl_log_figures figures;
    kafka_log_look(m->log, &figures);
    return figures;
}

/* Poll until the log says that it is without brokers, or no longer. What it said last is in error. */
static void wait_for_outage(struct mock *m, bool out)
{
    while ((kafka_log_outage(m->log, &m->error) != PAWL_OK) != out)
        sched_yield();
}

TEST(appends_are_acknowledged_without_reading_anything_back)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    for (uint64_t n = 1; n <= 20; n++)
        assert_ok(append_at(m, n));
    struct kafka_figures figures = figures_of(m);
    assert_int_equal(figures.acknowledged, 20);
    assert_int_equal(figures.gaps, 0);
    assert_int_equal(figures.claims_won, 1);
    assert_int_equal(entries_in(m), 20);
    pawl_histogram acks = {0};
    kafka_log_acks(m->log, 0, &acks);
    assert_int_equal(acks.count, 21); /* the claim, too */
    assert_true(acks.sum > 0);
    pawl_claim_figures claim;
    assert_int_equal(kafka_log_claims(m->log, &claim, 1), 1);
    assert_true(claim.held && claim.epoch == m->epoch && pawl_stream_equal(claim.stream, stream));
    assert_int_equal(look_at(m).claims_held, 1);
    mock_close(m);
}

TEST(records_of_others_that_do_not_count_are_read_and_ignored)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    put_claim(m, 1); /* too late */
    put_record(
        m, (struct kafka_record){.head = {.kind = CLAIM_KIND_EVENT, .epoch = 9, .offset = 2}, .fragments = 1});
    assert_ok(append_at(m, 2));
    struct kafka_figures figures = figures_of(m);
    assert_int_equal(figures.gaps, 1);
    assert_int_equal(figures.ignored, 2);
    assert_int_equal(entries_in(m), 2);
    mock_close(m);
}

TEST(an_append_behind_a_rivals_claim_is_fenced_though_the_broker_took_it)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    put_claim(m, 2);
    assert_status(append_at(m, 2), PAWL_EFENCED);
    assert_status(append_at(m, 2), PAWL_EFENCED); /* and stays quiet */
    assert_int_equal(entries_in(m), 1);
    assert_ok(claim_patiently(m));
    assert_int_equal(m->epoch, 3);
    assert_int_equal(m->next, 2);
    assert_ok(append_at(m, 2));
    mock_close(m);
}

/* As a leader does that was replaced, and does not know it yet. */
static void deny_position(struct mock *m)
{
    rd_kafka_mock_push_request_errors(m->brokers, FETCH, 1, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
}

TEST(a_position_that_is_called_out_of_range_and_is_there_is_read)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    for (uint64_t n = 1; n <= 3; n++)
        assert_ok(append_at(m, n));
    deny_position(m);
    assert_int_equal(entries_in(m), 3);
    deny_position(m);
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, 4);
    put_claim(m, 2); /* too late: the owner reads it, and is denied the place first */
    deny_position(m);
    assert_ok(append_at(m, 4));
    assert_int_equal(entries_in(m), 4);
    mock_close(m);
}

static void keep_known(void *arg, pawl_stream of, pawl_bytes known)
{
    assert_int_equal(known.size, KAFKA_KNOWN_BYTES);
    memcpy(arg, known.data, known.size);
}

/* As if the topic had been deleted and made again: the log knows a stream of four records, and there are fewer. */
static struct mock *mock_open_shorter(int records, int timeout_ms)
{
    uint8_t known[KAFKA_KNOWN_BYTES];
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    for (uint64_t n = 1; n <= 3; n++)
        assert_ok(append_at(m, n));
    kafka_log_known(m->log, 1, keep_known, known);
    mock_close(m);
    m = mock_open_with(timeout_ms);
    assert_ok(kafka_log_learn(m->log, stream, (pawl_bytes){known, sizeof known}));
    for (int i = 0; i < records; i++)
        put(m, "anything", 8);
    return m;
}

TEST(a_stream_that_ends_before_what_is_known_is_corrupt)
{
    static const char *const words[] = {"partition 1, offset 3", "records were deleted, or the topic was"};
    for (int records = 0; records <= 3; records += 3) { /* the position is out of range; it is the end */
        struct mock *m = mock_open_shorter(records, HASTY_MS);
        assert_status(claim_patiently(m), PAWL_ECORRUPT);
        for (size_t i = 0; i < 2; i++)
            assert_contains(m->error.text, words[i]);
        assert_status(claim(m), PAWL_ECORRUPT);
        mock_close(m);
    }
    for (uint64_t from = 1; from <= 4; from += 3) { /* from the beginning, and from where it is known on */
        struct mock *m = mock_open_shorter(0, HASTY_MS);
        uint64_t next;
        assert_status(read_patiently(m, from, &next), PAWL_ECORRUPT);
        for (size_t i = 0; i < 2; i++)
            assert_contains(m->error.text, words[i]);
        mock_close(m);
    }
}

static int claim_with_a_late_leader(void)
{
    struct mock *m = mock_open_shorter(0, LEADER_LOG_MS);
    assert_int_equal(rd_kafka_mock_broker_push_request_error_rtts(
                         m->brokers, BROKER, LIST_OFFSETS, 4, RD_KAFKA_RESP_ERR_NO_ERROR, LEADER_MS,
                         RD_KAFKA_RESP_ERR_NO_ERROR, LEADER_MS, RD_KAFKA_RESP_ERR_NO_ERROR, LEADER_MS,
                         RD_KAFKA_RESP_ERR_NO_ERROR, LEADER_MS),
                     0);
    int status = claim(m);
    if (status == PAWL_ECORRUPT)
        assert_contains(m->error.text, "records were deleted, or the topic was");
    mock_close(m);
    return status;
}

/* A busy machine may make it too late; but not each time. */
TEST(a_stream_that_ends_too_early_is_corrupt_however_late_its_leader_says_so)
{
    int status = PAWL_EIO;
    for (int tries = 0; tries < LEADER_TRIES && status == PAWL_EIO; tries++)
        status = claim_with_a_late_leader();
    assert_status(status, PAWL_ECORRUPT);
}

/* As a leader that was replaced and does not know it: fetches are answered by BROKER, who denies what lies behind
 * @end (-1: nothing), while LEADER leads and has all of it. */
static void answer_from_the_past(struct mock *m, int64_t end)
{
    assert_int_equal(rd_kafka_mock_partition_set_leader(m->brokers, TOPIC, 1, LEADER), 0);
    assert_int_equal(rd_kafka_mock_partition_set_follower(m->brokers, TOPIC, 1, BROKER), 0);
    assert_int_equal(rd_kafka_mock_partition_set_follower_wmarks(m->brokers, TOPIC, 1, 0, end), 0);
}

static struct mock *mock_open_stale(int64_t end)
{
    struct mock *m = mock_open_on(2, HASTY_MS);
    assert_ok(claim_patiently(m));
    for (uint64_t n = 1; n <= 5; n++)
        append_patiently(m, n);
    answer_from_the_past(m, end);
    return m;
}

TEST(a_read_ends_in_time_though_a_broker_keeps_telling_an_end_that_is_not_the_end)
{
    struct mock *m = mock_open_stale(3);
    pawl_read read = {.stream = stream,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = count,
                      .done = never,
                      .error = &m->error};
    assert_int_equal(pawl_log_read(m->log, &read), PAWL_READ_DONE);
    assert_status(read.status, PAWL_EIO);
    assert_true(read.next < 6);
    mock_close(m);
}

static void read_done(pawl_read *read)
{
    latch_set(read->arg);
}

TEST(a_read_of_the_logs_thread_ends_in_time_though_a_broker_keeps_telling_an_end_that_is_not_the_end)
{
    struct mock *m = mock_open_stale(3);
    struct latch latch;
    latch_init(&latch);
    pawl_read read = {.stream = stream,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .visit = count,
                      .done = read_done,
                      .arg = &latch,
                      .error = &m->error};
    assert_ok(pawl_log_read(m->log, &read));
    latch_wait(&latch);
    assert_status(read.status, PAWL_EIO);
    assert_true(read.next < 6);
    mock_close(m);
}

TEST(a_claim_ends_in_time_though_a_broker_keeps_telling_an_end_that_is_not_the_end)
{
    struct mock *m = mock_open_stale(5); /* the claim is written, and never read */
    assert_status(claim(m), PAWL_EIO);
    answer_from_the_past(m, -1);
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, 6);
    mock_close(m);
}

/* Count requests of this kind at a broker: wait_for_requests returns when so many have come since. */
static void count_requests(struct mock *m, int32_t broker, int16_t kind, size_t requests)
{
    for (size_t i = 0; i < requests; i++)
        assert_int_equal(rd_kafka_mock_broker_push_request_error_rtts(m->brokers, broker, kind, 1,
                                                                      RD_KAFKA_RESP_ERR_NO_ERROR, 0),
                         0);
}

/* Or the claim is over: a busy machine may not have got that far in time. */
static void wait_for_requests(struct mock *m, int32_t broker, int16_t kind, struct latch *over)
{
    size_t waiting = 1;
    while (waiting > 0 && latch_wait_until(over, (pawl_instant){0}) != PAWL_OK) {
        assert_int_equal(rd_kafka_mock_broker_error_stack_cnt(m->brokers, broker, kind, &waiting), 0);
        sched_yield();
    }
}

/* From now on the brokers say that there is no such topic, as one does that has just started. */
static void forget_topic(struct mock *m)
{
    rd_kafka_mock_topic_set_error(m->brokers, TOPIC, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
}

TEST(a_claim_is_not_corrupt_if_its_leader_has_shown_the_records_while_it_waited)
{
    rd_kafka_resp_err_t denied[1000];
    struct mock *m = mock_open_with(HASTY_MS);
    struct latch latch;
    latch_init(&latch);
    pawl_claim request = {.stream = stream, .done = claim_done, .arg = &latch, .error = &m->error};
    assert_ok(claim_patiently(m));
    append_patiently(m, 1);
    for (size_t i = 0; i < 1000; i++)
        denied[i] = RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
    rd_kafka_mock_push_request_errors_array(m->brokers, FETCH, 1000, denied);
    count_requests(m, BROKER, LIST_OFFSETS, 4); /* it is asked twice where the stream begins, and ends */
    assert_ok(pawl_log_claim(m->log, &request));
    wait_for_requests(m, BROKER, LIST_OFFSETS, &latch);
    forget_topic(m);
    latch_wait(&latch);
    assert_status(request.status, PAWL_EIO);
    mock_close(m);
}

TEST(a_claim_that_was_written_and_cannot_be_read_is_not_corrupt)
{
    struct mock *m = mock_open_stale(5); /* it tells this end, and then brings the record there */
    struct latch latch;
    latch_init(&latch);
    pawl_claim request = {.stream = stream, .done = claim_done, .arg = &latch, .error = &m->error};
    count_requests(m, LEADER, PRODUCE, 1);
    assert_ok(pawl_log_claim(m->log, &request));
    wait_for_requests(m, LEADER, PRODUCE, &latch); /* the claim is written, and never read */
    forget_topic(m);
    latch_wait(&latch);
    assert_status(request.status, PAWL_EIO);
    mock_close(m);
}

/* When the only record of partition 0 was read, the topic is unknown, until this is called once more. */
static bool forget_for_a_moment(void *arg, uint64_t done, uint64_t total)
{
    struct mock *m = arg;
    if (done == 1 && !m->forgot)
        forget_topic(m);
    else if (m->forgot)
        rd_kafka_mock_topic_set_error(m->brokers, TOPIC, RD_KAFKA_RESP_ERR_NO_ERROR);
    m->forgot = done == 1;
    return true;
}

TEST(a_stream_is_not_empty_because_a_broker_does_not_know_its_topic_for_a_moment)
{
    struct kafka_record first = {.head = {.kind = CLAIM_KIND_CLAIM, .epoch = 1, .node = 666, .nonce = 1}};
    uint8_t bytes[KAFKA_RECORD_HEADER];
    pawl_cluster_report report;
    struct mock *m = mock_open();
    assert_int_equal(rd_kafka_mock_topic_create(m->brokers, PLOG, 1, 1), 0);
    assert_int_equal(rd_kafka_mock_topic_create(m->brokers, "mock.group0", 1, 1), 0);
    kafka_record_encode(&first, kafka_record_seed(TOPIC, 0), bytes);
    put_in(m, 0, bytes, sizeof bytes);
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    if (kafka_verify(m->log, forget_for_a_moment, m, &report, &m->error) != PAWL_OK)
        fail_msg("%s", m->error.text);
    assert_int_equal(report.stream_count, 2);
    assert_int_equal(report.records, 3);
    kafka_verify_release(&report);
    mock_close(m);
}

TEST(an_event_of_an_old_epoch_is_no_entry)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    put_claim(m, 2);
    put_record(m, (struct kafka_record){.head = {.kind = CLAIM_KIND_EVENT, .epoch = 1, .offset = 1},
                                        .fragments = 1,
                                        .body = text_bytes("zombie")});
    assert_int_equal(entries_in(m), 0);
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, 1);
    mock_close(m);
}

TEST(a_refused_record_is_unknown_until_a_claim_shows_that_it_is_not_there)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    rd_kafka_mock_push_request_errors(m->brokers, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_status(append_at(m, 2), PAWL_EUNKNOWN);
    assert_contains(m->error.text, "too large");
    assert_status(append_at(m, 2), PAWL_EFENCED); /* nothing is sent before the next claim */
    assert_int_equal(figures_of(m).unknown, 1);
    assert_int_equal(figures_of(m).resolved, 0);
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, 2);
    assert_int_equal(figures_of(m).resolved, 1);
    assert_ok(append_at(m, 2));
    mock_close(m);
}

/* In place of librdkafka's: its queue is full behind so many messages of the next batch, once; or somewhere in between. */
static int taken_max = -1;
static bool takes_the_last;

int rd_kafka_produce_batch(rd_kafka_topic_t *topic, int32_t partition, int flags, rd_kafka_message_t *messages,
                           int count)
{
    int (*real)(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_produce_batch");
    int most = taken_max >= 0 && taken_max < count ? taken_max : count, taken = 0;
    if (most < count)
        taken_max = -1;
    if (most > 0)
        taken = real(topic, partition, flags, messages, most);
    for (int i = most; i < count; i++)
        messages[i].err = RD_KAFKA_RESP_ERR__QUEUE_FULL;
    if (most < count && takes_the_last)
        taken += real(topic, partition, flags, &messages[count - 1], 1);
    return taken;
}

/* Entries that go out together. */
static int append_several(struct mock *m, uint64_t offset, size_t several, pawl_append_entry *entries)
{
    struct latch done;
    latch_init(&done);
    m->error = (pawl_error){0};
    for (size_t i = 0; i < several; i++)
        entries[i] = (pawl_append_entry){
            .entry = {.stream = stream, .epoch = m->epoch, .offset = offset + i, .body = text_bytes("body")}};
    pawl_append request = {
        .entries = entries, .count = several, .done = append_done, .arg = &done, .error = &m->error};
    assert_ok(pawl_log_append(m->log, &request));
    latch_wait(&done);
    return request.status;
}

TEST(what_librdkafka_has_no_room_for_is_sent_later)
{
    struct mock *m = mock_open();
    pawl_append_entry entries[5];
    uint64_t next = 1;
    assert_ok(claim_patiently(m));
    for (taken_max = 4; next <= 20; next += 5) {
        int first = taken_max = 4 - (int)(next / 5);
        assert_ok(append_several(m, next, 5, entries));
        assert_int_equal(taken_max, -1);
        assert_int_equal(entries[0].place.position + 4, entries[4].place.position);
        print_message("# %d of 5 found room at first\n", first);
    }
    assert_int_equal(entries_in(m), 20);
    assert_int_equal(figures_of(m).unknown, 0);
    mock_close(m);
}

/* One that was behind it is sent: nothing can be taken back any more. */
TEST(a_record_that_was_left_out_makes_all_in_flight_unknown)
{
    struct mock *m = mock_open();
    pawl_append_entry entries[5];
    assert_ok(claim_patiently(m));
    taken_max = 2;
    takes_the_last = true;
    assert_status(append_several(m, 1, 5, entries), PAWL_EUNKNOWN);
    takes_the_last = false;
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, 3); /* two are there; the last one does not count */
    assert_ok(append_at(m, 3));
    mock_close(m);
}

/* The broker writes the entry at @offset, and is gone before it has answered. librdkafka sends a record again
 * when its request fails, so nothing may answer until the test says so: a late answer to one request is not
 * enough. */
static void append_and_lose_the_answer(struct mock *m, uint64_t offset, struct appending *a)
{
    size_t waiting = 1;
    assert_int_equal(rd_kafka_mock_broker_push_request_error_rtts(m->brokers, BROKER, PRODUCE, 1,
                                                                  RD_KAFKA_RESP_ERR_NO_ERROR, NEVER_MS),
                     0);
    append_begin(m, offset, a);
    while (waiting > 0) { /* the broker takes it from there when the request has come */
        assert_int_equal(rd_kafka_mock_broker_error_stack_cnt(m->brokers, BROKER, PRODUCE, &waiting), 0);
        sched_yield();
    }
    rd_kafka_mock_broker_set_down(m->brokers, BROKER);
}

TEST(a_record_whose_answer_was_lost_is_unknown_until_a_claim_finds_it)
{
    struct appending lost;
    struct mock *m = mock_open_with(HASTY_MS);
    assert_ok(claim_patiently(m));
    append_patiently(m, 1);
    append_and_lose_the_answer(m, 2, &lost);
    assert_status(append_end(&lost), PAWL_EUNKNOWN);
    rd_kafka_mock_broker_set_up(m->brokers, BROKER);
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, entries_in(m) + 1);
    assert_int_equal(m->next, 3);
    append_patiently(m, 3);
    mock_close(m);
}

TEST(a_record_that_was_sent_again_counts_once_and_is_acknowledged)
{
    struct appending lost;
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    append_and_lose_the_answer(m, 2, &lost);
    rd_kafka_mock_broker_set_up(m->brokers, BROKER);
    assert_ok(append_end(&lost));
    assert_int_equal(figures_of(m).gaps, 1); /* the answer was about the second copy */
    assert_ok(append_at(m, 3));
    assert_int_equal(entries_in(m), 3);
    mock_close(m);
}

TEST(brokers_that_are_gone_make_outcomes_unknown_and_come_back)
{
    struct mock *m = mock_open_with(HASTY_MS);
    assert_ok(claim_patiently(m));
    append_patiently(m, 1);
    pawl_log_figures before = look_at(m);
    rd_kafka_mock_broker_set_down(m->brokers, BROKER);
    wait_for_outage(m, true);
    assert_contains(m->error.text, "has answered for");
    assert_status(append_at(m, 2), PAWL_EUNKNOWN);
    assert_int_not_equal(claim(m), PAWL_OK);
    assert_int_equal(look_at(m).unknown, 1);
    rd_kafka_mock_broker_set_up(m->brokers, BROKER);
    assert_ok(claim_patiently(m));
    wait_for_outage(m, false);
    pawl_log_figures seen = look_at(m);
    assert_true(seen.unknown == 0 && seen.unknown_total == before.unknown_total + 1
                && seen.connection_errors > 0);
    assert_true(seen.outages > before.outages && seen.outage_time > 0);
    uint64_t last = m->next;
    append_patiently(m, last);
    assert_int_equal(entries_in(m), last);
    mock_close(m);
}

/* Whether the log has said, before the append has ended, that brokers acknowledge nothing, though they answer. */
static bool is_said_to_stall(struct mock *m, struct appending *a)
{
    pawl_error seen = {0};
    while (latch_wait_until(&a->done, (pawl_instant){0}) != PAWL_OK) {
        if (kafka_log_outage(m->log, &seen) != PAWL_OK && strstr(seen.text, "have acknowledged nothing for"))
            return true;
        sched_yield();
    }
    return false;
}

TEST(too_few_replicas_in_sync_are_waited_for_and_then_it_is_unknown)
{
    rd_kafka_resp_err_t few[200];
    struct mock *m = mock_open_with(HASTY_MS);
    assert_ok(claim_patiently(m));
    for (size_t i = 0; i < 200; i++)
        few[i] = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS;
    rd_kafka_mock_push_request_errors_array(m->brokers, PRODUCE, 2, few);
    append_patiently(m, 1); /* they came back */
    time_t began = time(NULL);
    for (bool said = false; !said;) { /* on a busy machine they may seem to be silent, which is said instead */
        struct appending second;
        rd_kafka_mock_push_request_errors_array(m->brokers, PRODUCE, 200, few);
        append_begin(m, 2, &second);
        said = is_said_to_stall(m, &second);
        assert_status(append_end(&second), PAWL_EUNKNOWN);
        assert_contains(m->error.text, "topic " TOPIC ", partition 1");
        rd_kafka_mock_clear_request_errors(m->brokers, PRODUCE);
        assert_ok(claim_patiently(m));
        assert_int_equal(m->next, 2);
        assert_true(said || goes_on(began));
    }
    wait_for_outage(m, false);
    mock_close(m);
}

TEST(a_claim_on_an_older_assignment_is_lost)
{
    struct mock *m = mock_open();
    put_record(m, (struct kafka_record){
                      .head = {.kind = CLAIM_KIND_CLAIM, .epoch = 1, .node = 666, .nonce = 1, .group0 = 7}});
    assert_status(claim_on(m, 6), PAWL_EFENCED);
    assert_int_equal(figures_of(m).claims_lost, 1);
    assert_ok(claim_on(m, 7));
    assert_int_equal(figures_of(m).claims_won, 1);
    mock_close(m);
}

TEST(a_claim_that_the_brokers_did_not_take_is_made_again)
{
    struct mock *m = mock_open();
    put_record(m, (struct kafka_record){
                      .head = {.kind = CLAIM_KIND_CLAIM, .epoch = 1, .node = 666, .nonce = 1, .group0 = 7}});
    rd_kafka_mock_push_request_errors(m->brokers, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_int_not_equal(claim_on(m, 7), PAWL_OK);
    assert_ok(claim_on(m, 7)); /* who had it before has not taken it */
    assert_int_equal(m->epoch, 2);
    mock_close(m);
}

/* The first record of the stream, as an outsider reads it. */
static struct kafka_record first_record(struct mock *m)
{
    char why[256];
    struct kafka_record record;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, ignore_log);
    rd_kafka_t *reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    assert_non_null(reader);
    assert_true(rd_kafka_brokers_add(reader, rd_kafka_mock_cluster_bootstraps(m->brokers)) > 0);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(reader, TOPIC, NULL);
    assert_int_equal(rd_kafka_consume_start(topic, 1, RD_KAFKA_OFFSET_BEGINNING), 0);
    rd_kafka_message_t *message = rd_kafka_consume(topic, 1, PATIENT_MS);
    assert_true(message && message->err == RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(
        kafka_record_decode((pawl_bytes){message->payload, message->len}, kafka_record_seed(TOPIC, 1), &record),
        KAFKA_RECORD_GOOD);
    rd_kafka_message_destroy(message);
    assert_int_equal(rd_kafka_consume_stop(topic, 1), 0);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(reader);
    return record;
}

/* Claim, while another claim comes in between: the answer to the first fetch is on its way, which says where the stream
 * ends, when @head is written there. */
static int claim_behind(struct mock *m, struct claim_record head)
{
    struct latch latch;
    size_t waiting = 1;
    latch_init(&latch);
    m->error = (pawl_error){0};
    pawl_claim request = {.stream = stream, .done = claim_done, .arg = &latch, .error = &m->error};
    assert_int_equal(rd_kafka_mock_broker_push_request_error_rtts(m->brokers, BROKER, FETCH, 1,
                                                                  RD_KAFKA_RESP_ERR_NO_ERROR, LATE_MS),
                     0);
    assert_ok(pawl_log_claim(m->log, &request));
    while (waiting > 0) { /* the broker takes it from there when the request has come */
        assert_int_equal(rd_kafka_mock_broker_error_stack_cnt(m->brokers, BROKER, FETCH, &waiting), 0);
        sched_yield();
    }
    put_record(m, (struct kafka_record){.head = head});
    latch_wait(&latch);
    m->epoch = request.epoch;
    return request.status;
}

/* The same, until the other claim has indeed come in between: on a busy machine it may come after. */
static int claim_missed(struct mock *m, struct claim_record head)
{
    int status = PAWL_OK;
    for (int tries = 0; tries < 20 && status == PAWL_OK; tries++) {
        head.epoch = m->epoch + 1;
        status = claim_behind(m, head);
    }
    return status;
}

/* An earlier claim, of which nobody knew what became of it, and which counts now. */
TEST(a_late_claim_of_ones_own_is_not_anothers)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    struct claim_record own = first_record(m).head;
    assert_int_equal(own.kind, CLAIM_KIND_CLAIM);
    own.nonce |= UINT32_MAX; /* another one of the same session */
    assert_status(claim_missed(m, own), PAWL_EUNKNOWN);
    assert_contains(m->error.text, "an earlier claim of this writer counts");
    assert_int_equal(figures_of(m).claims_lost, 0);
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 2));
    assert_int_equal(entries_in(m), 2);
    mock_close(m);
}

/* As from a copy of the directory, or from the process that had it before. */
TEST(a_claim_of_the_same_node_in_another_session_is_anothers)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    struct claim_record other = first_record(m).head;
    other.nonce ^= UINT64_C(1) << 32;
    assert_status(claim_missed(m, other), PAWL_EFENCED);
    assert_int_equal(figures_of(m).claims_lost, 1);
    mock_close(m);
}

TEST(a_producer_that_the_broker_fences_is_replaced_at_the_next_claim)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    rd_kafka_mock_push_request_errors(m->brokers, PRODUCE, 1, RD_KAFKA_RESP_ERR_PRODUCER_FENCED);
    assert_status(append_at(m, 2), PAWL_EUNKNOWN);
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, 2);
    assert_ok(append_at(m, 2));
    assert_int_equal(entries_in(m), 2);
    mock_close(m);
}

/* In place of librdkafka's: counts the logs' clients, and those that let brokers make a topic which they ask for. */
static atomic_int clients, makers;
static _Atomic(rd_kafka_t *) producer; /* of the log, the last one */

rd_kafka_t *rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *why, size_t size)
{
    rd_kafka_t *(*real)(rd_kafka_type_t, rd_kafka_conf_t *, char *, size_t);
    char id[32] = "", makes[32] = "";
    size_t id_size = sizeof id, makes_size = sizeof makes;
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_new");
    rd_kafka_t *made = real(type, conf, why, size);
    const rd_kafka_conf_t *used = made ? rd_kafka_conf(made) : NULL; /* what is not set depends on the type */
    if (!used || rd_kafka_conf_get(used, "client.id", id, &id_size) || strcmp(id, "pawl") != 0)
        return made;
    assert_int_equal(rd_kafka_conf_get(used, "allow.auto.create.topics", makes, &makes_size), 0);
    atomic_fetch_add(&clients, 1);
    atomic_fetch_add(&makers, strcmp(makes, "false") != 0);
    if (type == RD_KAFKA_PRODUCER)
        atomic_store(&producer, made);
    return made;
}

TEST(no_client_lets_a_broker_make_a_topic_that_was_deleted)
{
    atomic_store(&clients, 0);
    atomic_store(&makers, 0);
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    mock_close(m);
    assert_true(atomic_load(&clients) >= 3); /* one that looks, one that reads, one that writes */
    assert_int_equal(atomic_load(&makers), 0);
}

TEST(a_probe_whether_brokers_answer_lets_them_make_no_topic)
{
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    int before = atomic_load(&topics_asked);
    while (atomic_load(&topics_asked) == before && atomic_load(&known_asked) == 0) /* nothing else asks now */
        wait_pause(RETRY_NS);
    mock_close(m); /* it checks */
}

/* In place of librdkafka's: reports are lost, and their messages seem to be under way for ever. */
static atomic_bool loses_reports;

/* Or the next one is held back, and is lost when the test destroys it. */
static atomic_bool holds_report;
static _Atomic(rd_kafka_event_t *) held_report;

static rd_kafka_event_t *hold_report(rd_kafka_event_t *event)
{
    if (!event || rd_kafka_event_type(event) != RD_KAFKA_EVENT_DR || !atomic_exchange(&holds_report, false))
        return event;
    atomic_store(&held_report, event);
    return NULL;
}

rd_kafka_event_t *rd_kafka_queue_poll(rd_kafka_queue_t *queue, int timeout_ms)
{
    rd_kafka_event_t *(*real)(rd_kafka_queue_t *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_queue_poll");
    if (!atomic_load(&loses_reports))
        return hold_report(real(queue, timeout_ms));
    rd_kafka_event_t *event = real(queue, timeout_ms < 1000 ? 0 : timeout_ms);
    if (!event || rd_kafka_event_type(event) != RD_KAFKA_EVENT_DR)
        return event;
    rd_kafka_event_destroy(event);
    return NULL;
}

int rd_kafka_outq_len(rd_kafka_t *client)
{
    int (*real)(rd_kafka_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_outq_len");
    return atomic_load(&loses_reports) ? 1 : real(client);
}

static int claim_partition(struct mock *m, uint16_t partition, uint64_t *ret_epoch)
{
    struct latch latch;
    latch_init(&latch);
    pawl_claim request = {.stream = {.kind = PAWL_STREAM_RAW, .partition = partition},
                          .done = claim_done,
                          .arg = &latch,
                          .error = &m->error};
    assert_ok(pawl_log_claim(m->log, &request));
    latch_wait(&latch);
    *ret_epoch = request.epoch;
    return request.status;
}

/* An entry was refused, and that was settled. What is unknown later has reasons of its own. */
TEST(an_unknown_outcome_is_not_told_with_the_words_of_an_earlier_one)
{
    struct appending lost;
    struct mock *m = mock_open_on(2, PATIENT_MS);
    uint64_t epoch = 0;
    pawl_error why = {0};
    assert_int_equal(rd_kafka_mock_partition_set_leader(m->brokers, TOPIC, 0, LEADER), 0);
    assert_ok(claim_partition(m, 0, &epoch));
    assert_ok(claim_patiently(m));
    rd_kafka_mock_push_request_errors(m->brokers, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_status(append_at(m, 1), PAWL_EUNKNOWN);
    assert_contains(m->error.text, "refused");
    assert_ok(claim_patiently(m));
    atomic_store(&loses_reports, true);
    append_and_lose_the_answer(m, 1, &lost);
    lost.request.error = &why;
    assert_int_equal(rd_kafka_test_fatal_error(atomic_load(&producer), RD_KAFKA_RESP_ERR__FATAL, "test"), 0);
    (void)claim_partition(m, 0, &epoch); /* with a new producer */
    assert_status(append_end(&lost), PAWL_EUNKNOWN);
    atomic_store(&loses_reports, false);
    assert_contains(why.text, "it may be there or not");
    assert_contains(why.text, "its producer has failed");
    mock_close(m);
}

#define AT_ONCE 256 /* so many entries do not wait for the report of one before them */

/* It was written, and its report is still to come when another one is refused. */
TEST(only_the_entry_that_was_refused_is_told_so)
{
    static pawl_append_entry entries[AT_ONCE];
    struct appending first;
    struct mock *m = mock_open();
    pawl_error why = {0};
    assert_ok(claim_patiently(m));
    atomic_store(&holds_report, true);
    append_begin(m, 1, &first);
    first.request.error = &why;
    while (!atomic_load(&held_report))
        sched_yield();
    rd_kafka_mock_push_request_errors(m->brokers, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_status(append_several(m, 2, AT_ONCE, entries), PAWL_EUNKNOWN);
    assert_contains(m->error.text, "the brokers refused it, so it is not there");
    assert_contains(m->error.text, "too large");
    assert_status(append_end(&first), PAWL_EUNKNOWN);
    assert_contains(why.text, "it may be there or not");
    assert_contains(why.text, "too large"); /* of another one, which is why */
    rd_kafka_event_destroy(atomic_exchange(&held_report, NULL));
    assert_ok(claim_patiently(m));
    assert_true(m->next >= 2); /* it is */
    mock_close(m);
}

/* An append ends with its last entry. Before that, another claim may have settled what is unknown of the first. */
TEST(why_an_entry_is_unknown_is_told_after_it_was_settled_too)
{
    struct mock *m = mock_open_on(2, PATIENT_MS);
    struct latch done;
    uint64_t epoch = 0;
    latch_init(&done);
    assert_int_equal(rd_kafka_mock_partition_set_leader(m->brokers, TOPIC, 0, LEADER), 0);
    assert_ok(claim_partition(m, 0, &epoch));
    assert_ok(claim_patiently(m));
    pawl_append_entry entries[2] = {
        {.entry = {.stream = stream, .epoch = m->epoch, .offset = 1, .body = text_bytes("body")}},
        {.entry = {
             .stream = {.kind = PAWL_STREAM_RAW}, .epoch = epoch, .offset = 1, .body = text_bytes("body")}}};
    pawl_error why = {0};
    pawl_append both = {.entries = entries, .count = 2, .done = append_done, .arg = &done, .error = &why};
    assert_int_equal(rd_kafka_mock_broker_push_request_error_rtts(m->brokers, BROKER, PRODUCE, 1,
                                                                  RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 0),
                     0);
    rd_kafka_mock_broker_set_down(m->brokers, LEADER);
    assert_ok(pawl_log_append(m->log, &both));
    while (look_at(m).unknown == 0)
        sched_yield();
    assert_ok(claim_patiently(m));
    assert_int_equal(look_at(m).unknown, 0);
    rd_kafka_mock_broker_set_up(m->brokers, LEADER);
    latch_wait(&done);
    assert_status(both.status, PAWL_EUNKNOWN);
    assert_ok(entries[1].status);
    assert_contains(why.text, "too large");
    mock_close(m);
}

TEST(what_is_not_a_record_of_pawls_stops_the_stream_and_is_named)
{
    static const char *const words[] = {"topic mock.raw, partition 1, offset 2", "not written by Pawl"};
    struct mock *m = mock_open();
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    put(m, "hello", 5);
    assert_status(append_at(m, 2), PAWL_ECORRUPT);
    for (size_t i = 0; i < 2; i++)
        assert_contains(m->error.text, words[i]);
    assert_status(claim(m), PAWL_ECORRUPT);
    for (size_t i = 0; i < 2; i++)
        assert_contains(m->error.text, words[i]);
    pawl_read read = {.stream = stream,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = count,
                      .done = never,
                      .error = &m->error};
    assert_int_equal(pawl_log_read(m->log, &read), PAWL_READ_DONE);
    assert_status(read.status, PAWL_ECORRUPT);
    assert_int_equal(read.next, 2);
    for (size_t i = 0; i < 2; i++)
        assert_contains(m->error.text, words[i]);
    mock_close(m);
}

TEST(a_record_that_does_not_check_for_its_place_stops_the_stream)
{
    static const struct {
        uint16_t sealed_for;
        size_t flipped; /* byte */
    } cases[] = {{0, SIZE_MAX}, {1, 7}, {1, KAFKA_RECORD_HEADER}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[KAFKA_RECORD_HEADER + 4];
        struct mock *m = mock_open();
        struct kafka_record record = {.head = {.kind = CLAIM_KIND_EVENT, .epoch = 1, .offset = 2},
                                      .fragments = 1,
                                      .body = text_bytes("body")};
        assert_ok(claim_patiently(m));
        assert_ok(append_at(m, 1));
        kafka_record_encode(&record, kafka_record_seed(TOPIC, cases[i].sealed_for), bytes);
        if (cases[i].flipped < sizeof bytes)
            bytes[cases[i].flipped] ^= 0x10;
        put(m, bytes, sizeof bytes);
        assert_status(append_at(m, 2), PAWL_ECORRUPT);
        assert_contains(m->error.text, "topic mock.raw, partition 1, offset 2");
        mock_close(m);
    }
}

/* Somebody who follows, on the shard, and takes his time over the first entry. */
struct slow {
    pawl_task task;
    pawl_log *log;
    pawl_follow follow;
    struct latch first, go_on, over;
};

static bool visit_slowly(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    struct slow *s = follow->arg;
    if (entry->offset == 1) {
        latch_set(&s->first);
        latch_wait(&s->go_on);
    }
    return true;
}

static void slow_ended(pawl_follow *follow)
{
    latch_set(&((struct slow *)follow->arg)->over);
}

static void follow_slowly(pawl_task *task)
{
    struct slow *s = (struct slow *)task;
    s->follow = (pawl_follow){.stream = stream, .from = 1, .visit = visit_slowly, .done = slow_ended, .arg = s};
    assert_ok(pawl_log_follow(s->log, &s->follow));
}

static void wait_for_lag(struct mock *m, uint64_t least, uint64_t most)
{
    for (;;) { /* the test's time is limited */
        uint64_t lag = figures_of(m).lag;
        if (lag >= least && lag <= most)
            return;
        sched_yield();
    }
}

TEST(who_follows_slowly_lags_behind_until_he_has_caught_up)
{
    struct mock *m = mock_open();
    struct slow s = {.task.fn = follow_slowly, .log = m->log};
    latch_init(&s.first);
    latch_init(&s.go_on);
    latch_init(&s.over);
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    assert_ok(pawl_env_post(uv_env_port(m->env), 0, &s.task));
    latch_wait(&s.first);
    for (uint64_t n = 2; n <= 50; n++)
        assert_ok(append_at(m, n));
    wait_for_lag(m, 49, 49);
    latch_set(&s.go_on);
    wait_for_lag(m, 0, 0);
    assert_ok(pawl_log_unfollow(m->log, &s.follow));
    latch_wait(&s.over);
    mock_close(m);
}

TEST(what_cannot_be_read_for_want_of_memory_is_unknown_and_says_why)
{
    struct mock *m = mock_open();
    struct slow s = {.task.fn = follow_slowly, .log = m->log};
    latch_init(&s.first);
    latch_init(&s.go_on);
    latch_init(&s.over);
    assert_ok(claim_patiently(m));
    assert_ok(append_at(m, 1));
    assert_ok(pawl_env_post(uv_env_port(m->env), 0, &s.task));
    latch_wait(&s.first); /* it has the only handle that reads, so that another one is needed */
    put_claim(m, 1);      /* too late, and the owner must read that */
    atomic_store(&no_more, true);
    assert_status(append_at(m, 2), PAWL_EUNKNOWN);
    atomic_store(&no_more, false);
    assert_contains(m->error.text, "no memory for another reader");
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, 3);
    latch_set(&s.go_on);
    assert_ok(pawl_log_unfollow(m->log, &s.follow));
    latch_wait(&s.over);
    mock_close(m);
}

TEST(a_record_that_breaks_the_chain_stops_the_stream)
{
    struct mock *m = mock_open();
    put_claim(m, 1);
    put_record(m, (struct kafka_record){.head = {.kind = CLAIM_KIND_EVENT, .epoch = 1, .offset = 1, .chain = 5},
                                        .fragments = 1});
    assert_status(claim(m), PAWL_ECORRUPT);
    assert_contains(m->error.text, "offset 1: does not continue the chain");
    mock_close(m);
}

/* Records by hand; the chain follows. */
struct hand {
    struct judge judge;
};

static void put_event(struct mock *m, struct hand *h, uint64_t epoch, uint64_t offset, uint64_t chain)
{
    struct kafka_record r = {
        .head = {.kind = CLAIM_KIND_EVENT, .epoch = epoch, .offset = offset, .chain = chain, .last = true},
        .fragments = 1,
        .body = text_bytes("body")};
    uint8_t bytes[KAFKA_RECORD_HEADER + 16];
    kafka_record_encode(&r, kafka_record_seed(TOPIC, 1), bytes);
    put(m, bytes, KAFKA_RECORD_HEADER + r.body.size);
    r.head.position = h->judge.at;
    (void)judge_next(&h->judge, &r.head);
}

static void put_first_claim(struct mock *m, struct hand *h)
{
    struct kafka_record r = {.head = {.kind = CLAIM_KIND_CLAIM, .epoch = 1, .node = 666, .nonce = 1}};
    uint8_t bytes[KAFKA_RECORD_HEADER];
    judge_init(&h->judge, 0);
    kafka_record_encode(&r, kafka_record_seed(TOPIC, 1), bytes);
    put(m, bytes, sizeof bytes);
    assert_int_equal(judge_next(&h->judge, &r.head), CLAIM_COUNTS);
}

static int skip_at(struct mock *m, uint64_t at)
{
    const pawl_cluster_skipped wanted = {.stream = stream, .at = at, .who = "ada", .reason = "a test"};
    pawl_cluster_skipped skipped;
    return kafka_skip(m->log, &wanted, &skipped, &m->error);
}

TEST(a_record_that_others_rest_on_is_not_skipped)
{
    static const char junk[] = "not written by Pawl at all, and long enough to be a record";
    struct hand h;
    struct mock *m = mock_open();
    put_first_claim(m, &h);
    put_event(m, &h, 1, 1, judge_chain(&h.judge));
    put(m, junk, sizeof junk); /* where entry 2 was */
    h.judge.at++;
    put_event(m, &h, 1, 3, 12345);
    assert_status(skip_at(m, 2), PAWL_EINVAL);
    assert_contains(m->error.text, "rest on it");
    mock_close(m);

    m = mock_open();
    put_first_claim(m, &h);
    put_event(m, &h, 1, 1, judge_chain(&h.judge));
    put(m, junk, sizeof junk);
    h.judge.at++;
    put_event(m, &h, 1, 2, judge_chain(&h.judge) + 1); /* it continues another chain */
    assert_status(skip_at(m, 2), PAWL_EINVAL);
    assert_contains(m->error.text, "rest on it");
    mock_close(m);
}

TEST(a_sound_record_and_a_place_without_one_are_not_skipped)
{
    struct hand h;
    struct mock *m = mock_open();
    put_first_claim(m, &h);
    put_event(m, &h, 1, 1, judge_chain(&h.judge));
    put_event(m, &h, 9, 9, 0); /* of an epoch that nobody has claimed: it does not count, and stops nothing */
    for (uint64_t at = 0; at < 3; at++) {
        assert_status(skip_at(m, at), PAWL_EINVAL);
        assert_contains(m->error.text, "sound record");
    }
    assert_status(skip_at(m, 3), PAWL_ENOTFOUND);
    assert_int_equal(entries_in(m), 1);
    mock_close(m);
}

/* --- a client that is told that there is no such topic --- */

/* In place of librdkafka's: so often what it has read is an error instead. librdkafka 2.0.2 only logs this one. */
static atomic_int unknown_told;

static void tell_unknown(rd_kafka_message_t *message)
{
    if (atomic_load(&unknown_told) == 0)
        return;
    atomic_fetch_sub(&unknown_told, 1);
    message->err = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

rd_kafka_message_t *rd_kafka_consume_queue(rd_kafka_queue_t *queue, int timeout_ms)
{
    rd_kafka_message_t *(*real)(rd_kafka_queue_t *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_consume_queue");
    rd_kafka_message_t *message = real(queue, timeout_ms);
    if (message)
        tell_unknown(message);
    return message;
}

ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t *queue, int timeout_ms, rd_kafka_message_t **messages,
                                     size_t room)
{
    ssize_t (*real)(rd_kafka_queue_t *, int, rd_kafka_message_t **, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_consume_batch_queue");
    ssize_t taken = real(queue, timeout_ms, messages, room);
    for (ssize_t i = 0; i < taken; i++)
        tell_unknown(messages[i]);
    return taken;
}

/* Somebody who follows from the beginning. */
struct follower {
    pawl_follow follow;
    pawl_error error;
    _Atomic uint64_t seen;
    struct latch over;
};

static bool note_offset(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    struct follower *f = follow->arg;
    atomic_store(&f->seen, entry->offset);
    return true;
}

static void follow_ended(pawl_follow *follow)
{
    latch_set(&((struct follower *)follow->arg)->over);
}

static void follow_begin(struct mock *m, struct follower *f)
{
    *f = (struct follower){.follow = {.stream = stream,
                                      .from = 1,
                                      .visit = note_offset,
                                      .done = follow_ended,
                                      .arg = f,
                                      .error = &f->error}};
    latch_init(&f->over);
    assert_ok(pawl_log_follow(m->log, &f->follow));
}

/* Or it has ended. */
static void wait_for_entry(struct follower *f, uint64_t offset)
{
    while (atomic_load(&f->seen) < offset && latch_wait_until(&f->over, (pawl_instant){0}) != PAWL_OK)
        sched_yield();
    if (atomic_load(&f->seen) < offset)
        fail_msg("%s", f->error.text);
}

static void read_in_the_log(struct mock *m, uint64_t from)
{
    struct latch over;
    latch_init(&over);
    pawl_read read = {.stream = stream,
                      .from = from,
                      .limit = UINT64_MAX,
                      .visit = count,
                      .done = read_done,
                      .arg = &over,
                      .error = &m->error};
    assert_ok(pawl_log_read(m->log, &read));
    latch_wait(&over);
    assert_ok(read.status);
    assert_int_equal(read.next, 4);
}

/* The present leader knows it: who said so had just started. */
TEST(a_topic_that_is_called_unknown_and_is_there_is_read)
{
    struct mock *m = mock_open();
    struct follower f;
    uint64_t next;
    assert_ok(claim_patiently(m));
    for (uint64_t n = 1; n <= 3; n++)
        assert_ok(append_at(m, n));
    atomic_store(&unknown_told, 1);
    assert_ok(read_patiently(m, 4, &next)); /* from where it is known on */
    atomic_store(&unknown_told, 1);
    read_in_the_log(m, 4);
    atomic_store(&unknown_told, 1);
    assert_ok(claim_patiently(m));
    assert_int_equal(m->next, 4);
    put_claim(m, 2); /* too late, and the owner must read that */
    atomic_store(&unknown_told, 1);
    assert_ok(append_at(m, 4));
    follow_begin(m, &f);
    wait_for_entry(&f, 4);
    atomic_store(&unknown_told, 1);
    assert_ok(append_at(m, 5));
    wait_for_entry(&f, 5);
    assert_int_equal(atomic_load(&unknown_told), 0);
    assert_ok(pawl_log_unfollow(m->log, &f.follow));
    latch_wait(&f.over);
    mock_close(m);
}

/* --- who a cluster is --- */

/* Right after 'pawl cluster init' not all brokers know the topics. */
TEST(a_cluster_is_known_though_a_broker_does_not_know_its_topic_at_first)
{
    struct kafka_identity identity = {0};
    struct mock *m = mock_open();
    assert_int_equal(rd_kafka_mock_topic_create(m->brokers, PLOG, 4, 1), 0);
    rd_kafka_mock_topic_set_error(m->brokers, PLOG, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    assert_status(kafka_cluster_identity(m->url, &identity, &m->error), PAWL_ENOTFOUND);
    assert_contains(m->error.text, "there is no topic " PLOG "; 'pawl cluster init' makes the topics");
    atomic_store(&plog_asked, 0);
    plog_late = m->brokers;
    int status = kafka_cluster_identity(m->url, &identity, &m->error);
    plog_late = NULL;
    assert_ok(status);
    assert_int_equal(identity.partitions, 4);
    assert_true(identity.kafka[0] != '\0');
    mock_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(appends_are_acknowledged_without_reading_anything_back),
        RUN(records_of_others_that_do_not_count_are_read_and_ignored),
        RUN(an_append_behind_a_rivals_claim_is_fenced_though_the_broker_took_it),
        RUN(a_position_that_is_called_out_of_range_and_is_there_is_read),
        RUN(a_stream_that_ends_before_what_is_known_is_corrupt),
        RUN(a_stream_that_ends_too_early_is_corrupt_however_late_its_leader_says_so),
        RUN(a_read_ends_in_time_though_a_broker_keeps_telling_an_end_that_is_not_the_end),
        RUN(a_read_of_the_logs_thread_ends_in_time_though_a_broker_keeps_telling_an_end_that_is_not_the_end),
        RUN(a_claim_ends_in_time_though_a_broker_keeps_telling_an_end_that_is_not_the_end),
        RUN(a_claim_is_not_corrupt_if_its_leader_has_shown_the_records_while_it_waited),
        RUN(a_claim_that_was_written_and_cannot_be_read_is_not_corrupt),
        RUN(a_stream_is_not_empty_because_a_broker_does_not_know_its_topic_for_a_moment),
        RUN(an_event_of_an_old_epoch_is_no_entry),
        RUN(a_refused_record_is_unknown_until_a_claim_shows_that_it_is_not_there),
        RUN(what_librdkafka_has_no_room_for_is_sent_later),
        RUN(a_record_that_was_left_out_makes_all_in_flight_unknown),
        RUN(a_record_whose_answer_was_lost_is_unknown_until_a_claim_finds_it),
        RUN(a_record_that_was_sent_again_counts_once_and_is_acknowledged),
        RUN(brokers_that_are_gone_make_outcomes_unknown_and_come_back),
        RUN(too_few_replicas_in_sync_are_waited_for_and_then_it_is_unknown),
        RUN(a_claim_on_an_older_assignment_is_lost),
        RUN(a_claim_that_the_brokers_did_not_take_is_made_again),
        RUN(a_late_claim_of_ones_own_is_not_anothers),
        RUN(a_claim_of_the_same_node_in_another_session_is_anothers),
        RUN(a_producer_that_the_broker_fences_is_replaced_at_the_next_claim),
        RUN(no_client_lets_a_broker_make_a_topic_that_was_deleted),
        RUN(a_probe_whether_brokers_answer_lets_them_make_no_topic),
        RUN(an_unknown_outcome_is_not_told_with_the_words_of_an_earlier_one),
        RUN(only_the_entry_that_was_refused_is_told_so),
        RUN(why_an_entry_is_unknown_is_told_after_it_was_settled_too),
        RUN(what_is_not_a_record_of_pawls_stops_the_stream_and_is_named),
        RUN(a_record_that_does_not_check_for_its_place_stops_the_stream),
        RUN(who_follows_slowly_lags_behind_until_he_has_caught_up),
        RUN(what_cannot_be_read_for_want_of_memory_is_unknown_and_says_why),
        RUN(a_record_that_breaks_the_chain_stops_the_stream),
        RUN(a_record_that_others_rest_on_is_not_skipped),
        RUN(a_sound_record_and_a_place_without_one_are_not_skipped),
        RUN(a_topic_that_is_called_unknown_and_is_there_is_read),
        RUN(a_cluster_is_known_though_a_broker_does_not_know_its_topic_at_first),
    };
    return TEST_MAIN(tests);
}
