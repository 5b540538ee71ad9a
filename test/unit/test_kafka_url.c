/* The names of logs on Kafka, the topics of streams, and what topics must be like. */
#include "adapter/kafka/settings.h"
#include "adapter/kafka/url.h"
#include "test/lib/test.h"

TEST(a_url_has_brokers_a_cluster_and_options)
{
    struct kafka_url url;
    assert_ok(kafka_url_parse("kafka://a:1,b.example:65535,[::1]:9092/my-cluster_1.x", &url, NULL));
    assert_string_equal(url.brokers, "a:1,b.example:65535,[::1]:9092");
    assert_string_equal(url.cluster, "my-cluster_1.x");
    assert_int_equal(url.replication, 3);
    assert_false(url.no_broker_sync);
    assert_string_equal(url.config, "");
    assert_int_equal(url.timeout_ms, 30000);
    assert_int_equal(url.check_ms, 60000);
    assert_ok(kafka_url_parse(
        "kafka://a:1/c?no-broker-sync=1&replication=1&config=/etc/k&timeout-ms=1000&check-ms=2000", &url,
        NULL));
    assert_int_equal(url.check_ms, 2000);
    assert_int_equal(url.replication, 1);
    assert_true(url.no_broker_sync);
    assert_string_equal(url.config, "/etc/k");
    assert_int_equal(url.timeout_ms, 1000);
}

TEST(a_wrong_url_is_refused_and_named)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"file://x", "does not begin with kafka://"},
        {"kafka://", "names no broker"},
        {"kafka:///c", "names no broker"},
        {"kafka://a/c", "'a' is not HOST:PORT"},
        {"kafka://a:/c", "'a:' is not HOST:PORT"},
        {"kafka://a:0/c", "is not HOST:PORT"},
        {"kafka://a:65536/c", "is not HOST:PORT"},
        {"kafka://:1/c", "is not HOST:PORT"},
        {"kafka://a:1,/c", "'' is not HOST:PORT"},
        {"kafka://::1:9/c", "is not HOST:PORT"},
        {"kafka://u@a:1/c", "is not HOST:PORT"},
        {"kafka://a:1", "names no cluster"},
        {"kafka://a:1/", "names no cluster"},
        {"kafka://a:1/a/b", "not '/'"},
        {"kafka://a:1/a b", "not ' '"},
        {"kafka://a:1/c?acks=1", "'acks' is no option"},
        {"kafka://a:1/c?replication=0", "replication is a number"},
        {"kafka://a:1/c?replication=x", "replication is a number"},
        {"kafka://a:1/c?no-broker-sync=2", "no-broker-sync is 0 or 1"},
        {"kafka://a:1/c?timeout-ms=999", "timeout-ms is a number from 1000"},
        {"kafka://a:1/c?timeout-ms=600001", "timeout-ms is a number"},
        {"kafka://a:1/c?timeout-ms=", "timeout-ms is a number"},
        {"kafka://a:1/c?check-ms=999", "check-ms is a number from 1000"},
        {"kafka://a:1/c?config=", "config is the path"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kafka_url url;
        pawl_error error = {0};
        assert_status(kafka_url_parse(cases[i].text, &url, &error), PAWL_EINVAL);
        assert_contains(error.text, cases[i].words);
    }
}

TEST(a_stream_is_a_topic_and_back)
{
    static const struct {
        pawl_stream stream;
        const char *topic;
    } cases[] = {
        {{.kind = PAWL_STREAM_RAW, .partition = 5}, "c.1.raw"},
        {{.kind = PAWL_STREAM_PLOG, .partition = 65535}, "c.1.plog"},
        {{.kind = PAWL_STREAM_OPLOG, .partition = 1, .lane = 65535, .generation = UINT32_MAX},
         "c.1.oplog.65535.4294967295"},
        {{.kind = PAWL_STREAM_OPLOG}, "c.1.oplog.0.0"},
        {{.kind = PAWL_STREAM_GROUP0}, "c.1.group0"},
    };
    pawl_stream stream;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char topic[KAFKA_TOPIC_MAX];
        kafka_topic_of("c.1", cases[i].stream, topic);
        assert_string_equal(topic, cases[i].topic);
        assert_true(kafka_stream_of("c.1", topic, cases[i].stream.partition, &stream));
        assert_true(pawl_stream_equal(stream, cases[i].stream));
    }
    static const char *const others[] = {"c.1",
                                         "c.1.",
                                         "c.2.raw",
                                         "c.1.rawx",
                                         "c.1.oplog.1",
                                         "c.1.oplog.65536.1",
                                         "c.1.oplog.01.1",
                                         "c.1.oplog.1.4294967296",
                                         "c.1.2.raw",
                                         "xc.1.raw"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(kafka_stream_of("c.1", others[i], 0, &stream));
    assert_false(kafka_stream_of("c.1", "c.1.group0", 1, &stream));
}

static int check(const char *url_text, const char *name, const char *value, pawl_error *error)
{
    struct kafka_setting settings[KAFKA_SETTINGS_MAX];
    struct kafka_url url;
    assert_ok(kafka_url_parse(url_text, &url, NULL));
    size_t count = kafka_settings(&url, settings);
    assert_true(count <= KAFKA_SETTINGS_MAX);
    for (size_t i = 0; i < count; i++)
        if (strcmp(settings[i].name, name) == 0)
            return kafka_setting_check(&settings[i], "c.raw", value, error);
    return PAWL_OK; /* not asked for */
}

TEST(a_topic_with_weaker_settings_is_refused_by_their_name)
{
    static const struct {
        const char *url, *name, *value;
        bool good;
    } cases[] = {
        {"kafka://a:1/c", "min.insync.replicas", "2", true},
        {"kafka://a:1/c", "min.insync.replicas", "3", true},
        {"kafka://a:1/c", "min.insync.replicas", "1", false},
        {"kafka://a:1/c", "min.insync.replicas", "", false},
        {"kafka://a:1/c", "min.insync.replicas", "2x", false},
        {"kafka://a:1/c?replication=1", "min.insync.replicas", "1", true},
        {"kafka://a:1/c?replication=2", "min.insync.replicas", "1", false},
        {"kafka://a:1/c", "unclean.leader.election.enable", "false", true},
        {"kafka://a:1/c", "unclean.leader.election.enable", "true", false},
        {"kafka://a:1/c", "cleanup.policy", "delete", true},
        {"kafka://a:1/c", "cleanup.policy", "compact", false},
        {"kafka://a:1/c", "cleanup.policy", "compact,delete", false},
        {"kafka://a:1/c", "retention.ms", "604800000", false},
        {"kafka://a:1/c", "retention.bytes", "1", false},
        {"kafka://a:1/c", "max.message.bytes", "2097152", true},
        {"kafka://a:1/c", "max.message.bytes", "1048588", false},
        {"kafka://a:1/c", "flush.messages", "1", true},
        {"kafka://a:1/c", "flush.messages", "9223372036854775807", false},
        {"kafka://a:1/c", "flush.messages", NULL, false},
        {"kafka://a:1/c?no-broker-sync=1", "flush.messages", "9223372036854775807", true},
        {"kafka://a:1/c", "message.timestamp.type", "CreateTime", true}, /* as topics were made before */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pawl_error error = {0};
        int status = check(cases[i].url, cases[i].name, cases[i].value, &error);
        assert_status(status, cases[i].good ? PAWL_OK : PAWL_EINVAL);
        if (!cases[i].good) {
            assert_contains(error.text, "c.raw");
            assert_contains(error.text, cases[i].name);
        }
    }
}

TEST(a_topic_is_made_with_the_time_of_the_brokers)
{
    struct kafka_setting settings[KAFKA_SETTINGS_MAX];
    struct kafka_url url;
    bool found = false;
    assert_ok(kafka_url_parse("kafka://a:1/c", &url, NULL));
    size_t count = kafka_settings(&url, settings);
    for (size_t i = 0; i < count; i++)
        found |= strcmp(settings[i].name, "message.timestamp.type") == 0
                 && strcmp(settings[i].value, "LogAppendTime") == 0;
    assert_true(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_url_has_brokers_a_cluster_and_options),
        RUN(a_wrong_url_is_refused_and_named),
        RUN(a_stream_is_a_topic_and_back),
        RUN(a_topic_with_weaker_settings_is_refused_by_their_name),
        RUN(a_topic_is_made_with_the_time_of_the_brokers),
    };
    return TEST_MAIN(tests);
}
