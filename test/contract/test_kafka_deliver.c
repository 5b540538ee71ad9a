/* The log on Kafka: how appends return to the shards and threads that asked. On librdkafka's mock brokers. */
#include <sched.h>
#include <stdatomic.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "adapter/kafka/kafka.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "port/env.h"
#include "test/lib/test.h"

#define TOPIC      "mock.raw"
#define BROKER     1 /* the only one */
#define SHARDS     2
#define ASKERS     (SHARDS + 1) /* and a thread that is no shard */
#define WINDOW     8
#define EACH       2000
#define PATIENT_MS 120000

struct brokers {
    rd_kafka_t *handle;
    rd_kafka_mock_cluster_t *cluster;
    struct uv_env *env;
    pawl_log *log;
};

static uint32_t threads; /* that run the shards; 0: one for each */

static void ignore_log(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
}

static void brokers_open(struct brokers *b)
{
    char url[512], why[256];
    pawl_error error = {0};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, ignore_log);
    b->handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert_non_null(b->handle);
    b->cluster = rd_kafka_mock_cluster_new(b->handle, 1);
    assert_int_equal(rd_kafka_mock_topic_create(b->cluster, TOPIC, ASKERS, 1), 0);
    snprintf(url, sizeof url, "kafka://%s/mock?timeout-ms=%d", rd_kafka_mock_cluster_bootstraps(b->cluster),
             PATIENT_MS);
    const struct uv_env_options options = {.shards = SHARDS, .threads = threads, .pool_threads = 2};
    assert_ok(uv_env_open(&options, &b->env, NULL));
    const struct kafka_log_options log = {.url = url, .env = uv_env_port(b->env), .trust_topics = true};
    if (kafka_log_open(&log, &b->log, &error) != PAWL_OK)
        fail_msg("%s", error.text);
}

/* The log is closed by then. */
static void brokers_close(struct brokers *b)
{
    assert_ok(uv_env_close(b->env));
    rd_kafka_mock_cluster_destroy(b->cluster);
    rd_kafka_destroy(b->handle);
}

static void claim_done(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static uint64_t claim(struct brokers *b, uint16_t partition)
{
    struct latch latch;
    pawl_error error = {0};
    latch_init(&latch);
    pawl_claim request = {.stream = {.kind = PAWL_STREAM_RAW, .partition = partition},
                          .done = claim_done,
                          .arg = &latch,
                          .error = &error};
    assert_ok(pawl_log_claim(b->log, &request));
    latch_wait(&latch);
    if (request.status != PAWL_OK)
        fail_msg("%s", error.text);
    return request.epoch;
}

/* Somebody who appends EACH entries to a stream of its own, up to WINDOW at a time. */
struct asker {
    pawl_task task;
    struct brokers *brokers;
    pawl_env *env;
    uint32_t shard; /* PAWL_NO_SHARD: a thread that is none */
    pawl_stream stream;
    uint64_t epoch, begun, ended;
    _Atomic unsigned wrong; /* returned out of order, elsewhere, or not written */
    struct latch over;
    struct {
        pawl_append request;
        pawl_append_entry entry;
    } appends[WINDOW];
};

static void append_done(pawl_append *request);

static void append_next(struct asker *a)
{
    size_t at = a->begun++ % WINDOW;
    a->appends[at].entry.entry =
        (pawl_entry){.stream = a->stream, .epoch = a->epoch, .offset = a->begun, .body = text_bytes("body")};
    a->appends[at].request =
        (pawl_append){.entries = &a->appends[at].entry, .count = 1, .done = append_done, .arg = a};
    if (pawl_log_append(a->brokers->log, &a->appends[at].request) != PAWL_OK)
        atomic_fetch_add(&a->wrong, 1);
}

static void append_done(pawl_append *request)
{
    struct asker *a = request->arg;
    bool here = pawl_env_self(a->env) == a->shard;
    bool next = request == &a->appends[a->ended % WINDOW].request;
    if (!here || !next || request->status != PAWL_OK || request->entries[0].entry.offset != a->ended + 1) {
        if (atomic_fetch_add(&a->wrong, 1) == 0)
            latch_set(&a->over);
        return;
    }
    a->ended++;
    if (atomic_load(&a->wrong) > 0)
        return;
    if (a->ended == EACH)
        latch_set(&a->over);
    while (a->begun < EACH && a->begun - a->ended < WINDOW)
        append_next(a);
}

/* The first append alone: all others come from dones. So one thread at a time touches an asker, also if it is no shard,
 * whose dones run on the log's thread. */
static void begin(pawl_task *task)
{
    append_next((struct asker *)task);
}

static void asker_open(struct asker *a, struct brokers *b, uint32_t number)
{
    *a = (struct asker){.task = {.fn = begin},
                        .brokers = b,
                        .env = uv_env_port(b->env),
                        .shard = number < SHARDS ? number : PAWL_NO_SHARD,
                        .stream = {.kind = PAWL_STREAM_RAW, .partition = (uint16_t)number}};
    latch_init(&a->over);
    a->epoch = claim(b, (uint16_t)number);
}

static void run(struct asker *askers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        askers[i].begun = askers[i].ended = 0;
        if (askers[i].shard != PAWL_NO_SHARD)
            assert_ok(pawl_env_post(askers[i].env, askers[i].shard, &askers[i].task));
        else
            begin(&askers[i].task);
    }
    for (size_t i = 0; i < count; i++) {
        latch_wait(&askers[i].over);
        assert_int_equal(atomic_load(&askers[i].wrong), 0);
    }
}

TEST(a_shard_that_appends_alone_gets_everything_back_in_order)
{
    static struct asker asker;
    struct brokers b;
    brokers_open(&b);
    asker_open(&asker, &b, 1);
    run(&asker, 1);
    assert_ok(pawl_log_close(b.log));
    brokers_close(&b);
}

TEST(everybody_who_appends_gets_its_own_back_in_order)
{
    static struct asker askers[ASKERS];
    struct brokers b;
    brokers_open(&b);
    for (uint32_t i = 0; i < ASKERS; i++)
        asker_open(&askers[i], &b, i);
    run(askers, ASKERS);
    assert_ok(pawl_log_close(b.log));
    brokers_close(&b);
}

/* Somebody who reads on the same shard all the time, until it is told to end. What is read comes by the log's thread. */
struct looker {
    pawl_task task;
    struct asker *asker;
    pawl_tail tail;
    pawl_error error;
    _Atomic bool stop;
    unsigned wrong;
    struct latch over;
};

static void tail_done(pawl_tail *tail)
{
    struct looker *l = tail->arg;
    l->wrong += tail->status != PAWL_OK;
    if (atomic_load(&l->stop) || l->wrong > 0)
        latch_set(&l->over);
    else
        l->task.fn(&l->task);
}

static void look(pawl_task *task)
{
    struct looker *l = (struct looker *)task;
    l->tail = (pawl_tail){.stream = l->asker->stream, .done = tail_done, .arg = l, .error = &l->error};
    if (pawl_log_tail(l->asker->brokers->log, &l->tail) == PAWL_OK)
        return;
    l->wrong++;
    latch_set(&l->over);
}

TEST(a_shard_that_appends_and_reads_at_the_same_time_can_be_closed)
{
    static struct asker asker;
    static struct looker lookers[WINDOW];
    struct brokers b;
    brokers_open(&b);
    asker_open(&asker, &b, 0);
    for (size_t i = 0; i < WINDOW; i++) {
        lookers[i] = (struct looker){.task = {.fn = look}, .asker = &asker};
        latch_init(&lookers[i].over);
        assert_ok(pawl_env_post(uv_env_port(b.env), 0, &lookers[i].task));
    }
    run(&asker, 1);
    for (size_t i = 0; i < WINDOW; i++)
        atomic_store(&lookers[i].stop, true);
    for (size_t i = 0; i < WINDOW; i++) {
        latch_wait(&lookers[i].over);
        assert_int_equal(lookers[i].wrong, 0);
    }
    assert_ok(pawl_log_close(b.log));
    brokers_close(&b);
}

/* A task that wants to close the log when a shard has been told of reports, which it may be too busy to take: with this. */
struct closing {
    pawl_task task;
    struct brokers *brokers;
    int status;
    struct latch over;
};

static uint64_t connection_errors(pawl_log *log)
{
    pawl_log_figures figures;
    kafka_log_look(log, &figures);
    return figures.connection_errors;
}

static void close_log(pawl_task *task)
{
    struct closing *c = (struct closing *)task;
    struct brokers *b = c->brokers;
    uint64_t before = connection_errors(b->log);
    rd_kafka_mock_broker_set_down(b->cluster, BROKER); /* librdkafka tells this with the reports */
    while (connection_errors(b->log) < before + 2)     /* one of each client that has a connection */
        sched_yield();
    c->status = pawl_log_close(b->log);
    latch_set(&c->over);
}

TEST(a_shard_may_not_close_the_log_and_others_may_though_it_was_told_of_reports)
{
    static struct asker asker;
    struct brokers b;
    brokers_open(&b);
    asker_open(&asker, &b, 0);
    run(&asker, 1);
    struct closing closing = {.task = {.fn = close_log}, .brokers = &b};
    latch_init(&closing.over);
    assert_ok(pawl_env_post(uv_env_port(b.env), 1, &closing.task)); /* which may run on the same thread */
    latch_wait(&closing.over);
    assert_status(closing.status, PAWL_EMISUSE);
    assert_ok(pawl_log_close(b.log));
    brokers_close(&b);
}

/* A shard that is busy while its append returns: the log's thread has taken the report, which the shard was told of. Then
 * the append's done wants to close the log. */
struct ending {
    pawl_task task;
    struct brokers *brokers;
    pawl_append request;
    pawl_append_entry entry;
    atomic_bool busy;
    int appended, closed;
    struct latch over;
};

static void close_at_the_end(pawl_append *request)
{
    struct ending *e = request->arg;
    e->appended = request->status;
    e->closed = pawl_log_close(e->brokers->log);
    latch_set(&e->over);
}

static void append_and_be_busy(pawl_task *task)
{
    struct ending *e = (struct ending *)task;
    e->request = (pawl_append){.entries = &e->entry, .count = 1, .done = close_at_the_end, .arg = e};
    e->appended = pawl_log_append(e->brokers->log, &e->request);
    while (atomic_load(&e->busy))
        sched_yield();
}

static uint64_t acknowledged(pawl_log *log)
{
    pawl_log_figures figures;
    kafka_log_look(log, &figures);
    return figures.acknowledged;
}

TEST(the_last_done_may_not_close_the_log_and_others_may_though_another_thread_took_its_report)
{
    struct brokers b;
    brokers_open(&b);
    struct ending e = {.task = {.fn = append_and_be_busy}, .brokers = &b, .busy = true};
    e.entry.entry = (pawl_entry){.stream = {.kind = PAWL_STREAM_RAW}, .offset = 1, .body = text_bytes("last")};
    e.entry.entry.epoch = claim(&b, 0);
    latch_init(&e.over);
    assert_ok(pawl_env_post(uv_env_port(b.env), 0, &e.task));
    while (acknowledged(b.log) == 0)
        sched_yield();
    (void)claim(&b, 1); /* the log's thread has gone round once more */
    atomic_store(&e.busy, false);
    latch_wait(&e.over);
    assert_ok(e.appended);
    assert_status(e.closed, PAWL_EMISUSE);
    assert_ok(pawl_log_close(b.log));
    brokers_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_shard_that_appends_alone_gets_everything_back_in_order),
        RUN(everybody_who_appends_gets_its_own_back_in_order),
        RUN(a_shard_that_appends_and_reads_at_the_same_time_can_be_closed),
        RUN(a_shard_may_not_close_the_log_and_others_may_though_it_was_told_of_reports),
        RUN(the_last_done_may_not_close_the_log_and_others_may_though_another_thread_took_its_report),
    };
    const char *shared = getenv("PAWL_THREADS");
    threads = shared ? (uint32_t)strtoul(shared, NULL, 10) : 0;
    return TEST_MAIN(tests);
}
