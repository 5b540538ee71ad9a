/* adapter/kafka/url.h: the words that name a log on Kafka.
 *
 *     kafka://HOST:PORT[,HOST:PORT...]/CLUSTER[?OPTION[&OPTION...]]
 *
 *     replication=N       topics have at least so many replicas (3)
 *     no-broker-sync=1    topics need not be synced by the brokers for every batch
 *     timeout-ms=N        an error is reported when no broker has answered for so long (30000, at least 1000)
 *     check-ms=N          how often the settings of topics are looked at while the log is open (60000, at least 1000)
 *     config=PATH         a file of librdkafka properties, for security; it cannot weaken what Pawl sets itself
 *
 * A stream is one partition of one topic:
 *
 *     raw/5         CLUSTER.raw            partition 5
 *     plog/5        CLUSTER.plog           partition 5
 *     oplog/5/7.2   CLUSTER.oplog.7.2      partition 5
 *     group0        CLUSTER.group0         partition 0 */
#ifndef KAFKA_URL_H
#define KAFKA_URL_H

#include "port/log.h"

#define KAFKA_BROKERS_MAX 1024
#define KAFKA_CLUSTER_MAX 200 /* Kafka allows 249 in a topic's name */
#define KAFKA_TOPIC_MAX   256
#define KAFKA_PATH_MAX    1024

#define KAFKA_TIMEOUT_MS     30000
#define KAFKA_TIMEOUT_MS_MIN 1000
#define KAFKA_TIMEOUT_MS_MAX 600000
#define KAFKA_CHECK_MS       60000
#define KAFKA_CHECK_MS_MIN   1000
#define KAFKA_CHECK_MS_MAX   86400000

struct kafka_url {
    char brokers[KAFKA_BROKERS_MAX];
    char cluster[KAFKA_CLUSTER_MAX + 1];
    char config[KAFKA_PATH_MAX]; /* empty: none */
    uint16_t replication;
    uint32_t timeout_ms;
    uint32_t check_ms;
    bool no_broker_sync;
};

bool kafka_url_is(const char *text);

/* PAWL_EINVAL, with words that say what is wrong with it. */
int kafka_url_parse(const char *text, struct kafka_url *ret_url, pawl_error *error);

/* topic has KAFKA_TOPIC_MAX bytes. */
void kafka_topic_of(const char *cluster, pawl_stream stream, char *topic);

/* The stream of a topic's partition; false: no topic of this cluster. */
bool kafka_stream_of(const char *cluster, const char *topic, uint16_t partition, pawl_stream *ret_stream);

#endif
