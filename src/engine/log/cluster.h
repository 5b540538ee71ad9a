/* engine/log/cluster.h: logs on Kafka, by the URL that names them (pawl/cluster.h). A build without Kafka refuses
 * each with PAWL_EINVAL. */
#ifndef ENGINE_LOG_CLUSTER_H
#define ENGINE_LOG_CLUSTER_H

#include <pawl/cluster.h>

/* Whether these words name a log on Kafka. */
bool cluster_is(const char *where);

int cluster_open(const char *url, pawl_env *env, pawl_log **ret_log, pawl_error *error);

#endif
