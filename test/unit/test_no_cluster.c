/* engine/log/cluster.c in a build without Kafka: every function exists, and says why it does nothing. */
#include <pawl/cluster.h>

#include "engine/log/cluster.h"
#include "test/lib/test.h"

#define URL "kafka://host:9092/shop"

TEST(without_kafka_every_call_is_refused_and_says_so)
{
    static const pawl_cluster_report untouched = {.records = 7};
    pawl_cluster_report report = untouched;
    pawl_cluster_topics topics = {.topics = 7};
    pawl_log *log = NULL;
    struct cluster_identity identity = {.partitions = 7};
    pawl_error error = {0};
    assert_status(pawl_cluster_init(URL, 4, 1, &error), PAWL_EINVAL);
    assert_string_equal(error.text, URL ": this build has no Kafka");
    error = (pawl_error){0};
    assert_status(pawl_cluster_check(URL, 0, &topics, &error), PAWL_EINVAL);
    assert_contains(error.text, "this build has no Kafka");
    assert_int_equal(topics.topics, 7);
    error = (pawl_error){0};
    assert_status(pawl_cluster_verify(URL, NULL, NULL, &report, &error), PAWL_EINVAL);
    assert_contains(error.text, "this build has no Kafka");
    assert_int_equal(report.records, 7);
    assert_status(cluster_open(URL, NULL, 0, &log, NULL), PAWL_EINVAL);
    assert_null(log);
    error = (pawl_error){0};
    assert_status(cluster_identity_get(URL, &identity, &error), PAWL_EINVAL);
    assert_contains(error.text, "this build has no Kafka");
    assert_int_equal(identity.partitions, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(without_kafka_every_call_is_refused_and_says_so)};
    return TEST_MAIN(tests);
}
