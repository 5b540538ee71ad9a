/* engine/log/cluster.h: logs on Kafka, named by a URL (pawl/cluster.h). In a build without Kafka each call is
 * PAWL_EINVAL. */
#ifndef ENGINE_LOG_CLUSTER_H
#define ENGINE_LOG_CLUSTER_H

#include <pawl/cluster.h>
#include <pawl/figures.h>

/* Whether this is the name of a log on Kafka. */
bool cluster_is(const char *where);

/* node: who claims; 0: somebody. */
int cluster_open(const char *url, pawl_env *env, uint64_t node, pawl_log **ret_log, pawl_error *error);

/* How many partitions the PLog has. PAWL_ENOTFOUND: there is no such topic; errors as in pawl/cluster.h. */
int cluster_partitions(const char *url, uint32_t *ret_partitions, pawl_error *error);

/* Whether both URLs name clusters of one name. Brokers may come and go. */
bool cluster_is_same(const char *url, const char *other);

/* Of a log that cluster_open opened; adapter/kafka/kafka.h says what they are. outage, weakness: PAWL_OK, or what is
 * wrong now. */
void cluster_look(pawl_log *log, pawl_log_figures *ret_figures);
size_t cluster_claims(pawl_log *log, pawl_claim_figures *claims, size_t room);
void cluster_acks(pawl_log *log, uint32_t seconds, pawl_histogram *sum);
int cluster_outage(pawl_log *log, pawl_error *ret_error);
int cluster_weakness(pawl_log *log, pawl_error *ret_error);

#endif
