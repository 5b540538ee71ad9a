/* adapter/kafka/side_topic.h: a topic beside the streams: one partition of small records, which are read as a whole and
 * never change. What a cluster's logs must agree on, and no stream can tell, is written down there: skips.h, oplogs.h.
 * Everything here blocks. */
#ifndef KAFKA_SIDE_TOPIC_H
#define KAFKA_SIDE_TOPIC_H

#include "adapter/kafka/client.h"

/* The value of a record, until it returns, and the seed of its checksum. An error ends reading. */
typedef int (*side_topic_take)(void *arg, pawl_bytes value, uint64_t seed, pawl_error *error);

/* Read all records, up to the end that the present leader tells. client is a consumer, and nobody else reads the topic with it
 * meanwhile. *ret_first: the offset of the first one; if it is not 0, those before it were deleted. A record may be taken
 * twice. PAWL_ENOTFOUND: the brokers do not know the topic. PAWL_EIO: nothing more came for long. PAWL_EACCES.
 * PAWL_ECORRUPT: a record is damaged. */
int side_topic_read(rd_kafka_t *client, const struct kafka_url *url, const char *topic, side_topic_take take,
                    void *arg, uint64_t *ret_first, pawl_error *error);

/* Say that the first records were deleted: PAWL_ECORRUPT. */
int side_topic_cut(const char *topic, pawl_error *error);

/* Append a record, and make the topic if it is not there. what names the record in words, for errors. It is on the disks
 * when this returns. PAWL_EUNKNOWN: it may be there or not. */
int side_topic_append(rd_kafka_t *client, const struct kafka_url *url, const char *topic, pawl_bytes value,
                      const char *what, pawl_error *error);

#endif
