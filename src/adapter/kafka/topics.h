/* adapter/kafka/topics.h: topics are created, looked at and checked. Everything here blocks. */
#ifndef KAFKA_TOPICS_H
#define KAFKA_TOPICS_H

#include "adapter/kafka/client.h"
#include "adapter/kafka/settings.h"

/* How many partitions a topic has; 0: there is none of this name. Creates nothing: client is a consumer. */
int topic_partitions(rd_kafka_t *client, const struct kafka_url *url, const char *topic,
                     uint32_t *ret_partitions, pawl_error *error);

/* The same, of a topic that must be there, unless it may be missing: PAWL_ENOTFOUND, naming it, after it was looked for
 * several times. A topic without this partition is PAWL_EINVAL. */
int topic_find(rd_kafka_t *client, const struct kafka_url *url, const char *topic, uint16_t partition,
               bool may_be_missing, uint32_t *ret_partitions, pawl_error *error);

/* One end of a partition: RD_KAFKA_OFFSET_BEGINNING, or _END, which is behind the last record. Its leader tells it, as far as
 * the client knows who leads: it looks at the topic before. PAWL_EIO, PAWL_EACCES. */
int topic_offset(rd_kafka_t *client, const char *topic, uint16_t partition, int64_t which, uint64_t *ret_offset,
                 pawl_error *error);

/* PAWL_OK if it is there already. Returns when the brokers show it. */
int topic_create(rd_kafka_t *client, const struct kafka_url *url, const char *topic, uint32_t partitions,
                 pawl_error *error);

/* Replicas and settings. PAWL_ENOTFOUND; PAWL_EINVAL, naming what is too weak. ret_partitions may be NULL. */
int topic_check(rd_kafka_t *client, const struct kafka_url *url, const char *topic, uint32_t *ret_partitions,
                pawl_error *error);

/* The streams whose topics 'pawl cluster init' makes. */
extern const uint8_t topic_kinds[];
#define TOPIC_KINDS 3

/* Call back for each topic of the cluster that is a stream's, in no order; stops at the first error.
 * PAWL_ENOTFOUND, naming it, if one of topic_kinds is not there; nothing is called then. */
int topics_each(rd_kafka_t *client, const struct kafka_url *url,
                int (*visit)(void *arg, const char *topic, uint32_t partitions, pawl_error *error), void *arg,
                pawl_error *error);

#endif
