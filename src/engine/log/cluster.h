/* engine/log/cluster.h: logs on Kafka, named by a URL (pawl/cluster.h). In a build without Kafka each call is
 * PAWL_EINVAL. */
#ifndef ENGINE_LOG_CLUSTER_H
#define ENGINE_LOG_CLUSTER_H

#include <pawl/cluster.h>

/* Whether this is the name of a log on Kafka. */
bool cluster_is(const char *where);

int cluster_open(const char *url, pawl_env *env, pawl_log **ret_log, pawl_error *error);

#endif
