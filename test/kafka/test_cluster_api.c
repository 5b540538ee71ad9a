/* pawl/cluster.h on a real broker, which PAWL_KAFKA names, linked with libpawl and nothing else. Every test has
 * a cluster of its own on that broker. */
#include <pawl/cluster.h>

#include <semaphore.h>

#include "test/lib/test.h"

#define ENTRIES 10

static char url[400];

static void name_cluster(const char *name)
{
    snprintf(url, sizeof url, "kafka://%s/%s?replication=1", getenv("PAWL_KAFKA"), name);
}

static void done(pawl_claim *claim)
{
    sem_post(claim->arg);
}

static void appended(pawl_append *append)
{
    sem_post(append->arg);
}

/* Entries of raw/1. */
static void write_some(void)
{
    pawl_env *env;
    pawl_log *log;
    pawl_error error = {0};
    sem_t over;
    const pawl_stream stream = {.kind = PAWL_STREAM_RAW, .partition = 1};
    pawl_append_entry entries[ENTRIES] = {0};
    sem_init(&over, 0, 0);
    assert_ok(pawl_env_open(NULL, &env, &error));
    assert_ok(pawl_log_open(url, &(pawl_log_options){.env = env}, &log, &error));
    pawl_claim claim = {.stream = stream, .done = done, .arg = &over};
    assert_ok(pawl_log_claim(log, &claim));
    while (sem_wait(&over)) {
    }
    assert_ok(claim.status);
    for (size_t i = 0; i < ENTRIES; i++)
        entries[i].entry = (pawl_entry){
            .stream = stream, .epoch = claim.epoch, .offset = claim.next + i, .body = {"entry", 5}};
    pawl_append append = {.entries = entries, .count = ENTRIES, .done = appended, .arg = &over};
    assert_ok(pawl_log_append(log, &append));
    while (sem_wait(&over)) {
    }
    assert_ok(append.status);
    assert_ok(pawl_log_close(log));
    assert_ok(pawl_env_close(env));
}

TEST(topics_are_made_once_and_found_good)
{
    pawl_cluster_topics topics = {.topics = 77};
    pawl_error error = {0};
    name_cluster("made");
    assert_status(pawl_cluster_check(url, 0, &topics, &error), PAWL_ENOTFOUND);
    assert_int_equal(topics.topics, 77);
    assert_status(pawl_cluster_init(url, 3, 0, &error), PAWL_EINVAL);
    assert_ok(pawl_cluster_init(url, 4, 0, &error));
    assert_ok(pawl_cluster_init(url, 4, 1, &error));
    assert_status(pawl_cluster_init(url, 8, 0, &error), PAWL_EEXISTS);
    assert_ok(pawl_cluster_check(url, 0, &topics, &error));
    assert_int_equal(topics.topics, 3);
    assert_int_equal(topics.partitions, 4);
    assert_int_equal(topics.replication, 1);
    assert_true(topics.broker_sync);
    assert_status(pawl_cluster_check(url, 3, &topics, &error), PAWL_EINVAL);
    assert_contains(error.text, "replica");
}

struct watch {
    uint64_t calls;
    uint64_t cancel_at; /* 0: never */
    uint64_t done, total;
    bool went_back;
    bool called_after;
};

static bool look(void *arg, uint64_t records, uint64_t total)
{
    struct watch *w = arg;
    w->went_back |= records < w->done;
    w->called_after |= w->cancel_at && w->calls >= w->cancel_at;
    w->done = records;
    w->total = total;
    return ++w->calls != w->cancel_at;
}

TEST(a_log_is_verified_and_tells_its_records)
{
    pawl_cluster_report report;
    pawl_error error = {0};
    struct watch watch = {0};
    name_cluster("verified");
    assert_ok(pawl_cluster_init(url, 0, 0, &error));
    write_some();
    assert_ok(pawl_cluster_verify(url, look, &watch, &report, &error));
    assert_int_equal(report.faults, 0);
    assert_int_equal(report.entries, ENTRIES);
    assert_int_equal(report.claims, 1);
    assert_int_equal(report.records, ENTRIES + 1);
    assert_int_equal(report.stream_count, 1);
    assert_int_equal(report.streams[0].id.kind, PAWL_STREAM_RAW);
    assert_int_equal(report.streams[0].id.partition, 1);
    assert_int_equal(report.streams[0].entries, ENTRIES);
    assert_true(watch.calls > 0 && !watch.went_back);
    assert_int_equal(watch.done, report.records);
    assert_int_equal(watch.total, report.records);
    pawl_cluster_report_release(&report);
}

/* How many calls there are may differ from one time to the next: the last one is that which knows the total. */
static bool cancel_the_last(void *arg, uint64_t records, uint64_t total)
{
    struct watch *w = arg;
    w->called_after |= w->total > 0;
    w->total = total;
    return total == 0;
}

TEST(a_verification_can_be_cancelled)
{
    pawl_cluster_report report = {.records = 77};
    pawl_error error = {0};
    struct watch first = {.cancel_at = 1}, last = {0};
    name_cluster("cancelled");
    assert_ok(pawl_cluster_init(url, 2, 0, &error));
    write_some();
    assert_status(pawl_cluster_verify(url, look, &first, &report, &error), PAWL_ECANCELED);
    assert_contains(error.text, "cancelled");
    assert_false(first.called_after);
    assert_status(pawl_cluster_verify(url, cancel_the_last, &last, &report, &error), PAWL_ECANCELED);
    assert_false(last.called_after);
    assert_int_equal(report.records, 77);
}

TEST(what_is_no_cluster_is_refused)
{
    pawl_cluster_report report;
    pawl_cluster_topics topics;
    pawl_error error = {0};
    assert_status(pawl_cluster_init("/tmp/dir", 4, 0, &error), PAWL_EINVAL);
    assert_status(pawl_cluster_check("kafka://", 0, &topics, &error), PAWL_EINVAL);
    assert_status(pawl_cluster_verify("/tmp/dir", NULL, NULL, &report, &error), PAWL_EINVAL);
    assert_contains(error.text, "/tmp/dir");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(topics_are_made_once_and_found_good),
        RUN(a_log_is_verified_and_tells_its_records),
        RUN(a_verification_can_be_cancelled),
        RUN(what_is_no_cluster_is_refused),
    };
    if (!getenv("PAWL_KAFKA")) {
        fputs("PAWL_KAFKA names no brokers\n", stderr);
        return 1;
    }
    return TEST_MAIN(tests);
}
