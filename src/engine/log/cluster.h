/* engine/log/cluster.h: logs on Kafka, named by a URL. In a build without Kafka each call is PAWL_EINVAL. */
#ifndef ENGINE_LOG_CLUSTER_H
#define ENGINE_LOG_CLUSTER_H

#include "adapter/kafka/kafka.h"

/* Whether this is the name of a log on Kafka. */
bool cluster_is(const char *where);

int cluster_open(const char *url, pawl_env *env, pawl_log **ret_log, pawl_error *error);

/* As kafka_cluster_init and kafka_cluster_check. */
int engine_cluster_init(const char *url, uint32_t partitions, uint16_t replication, pawl_error *error);
int engine_cluster_check(const char *url, uint16_t replication, struct kafka_cluster_report *ret_report,
                         pawl_error *error);

/* As kafka_verify, with a log that this call opens. Release the report after success. */
int engine_cluster_verify(const char *url, void (*progress)(void *arg, uint64_t done, uint64_t of_records),
                          void *arg, struct kafka_verify_report *ret_report, pawl_error *error);
void engine_cluster_verify_release(struct kafka_verify_report *report);

#endif
