/* engine/log/cluster.h: logs on Kafka, named by a URL (pawl/cluster.h). In a build without Kafka each call is
 * PAWL_EINVAL. */
#ifndef ENGINE_LOG_CLUSTER_H
#define ENGINE_LOG_CLUSTER_H

#include <pawl/cluster.h>

/* Whether this is the name of a log on Kafka. */
bool cluster_is(const char *where);

/* node: who claims; 0: somebody. */
int cluster_open(const char *url, pawl_env *env, uint64_t node, pawl_log **ret_log, pawl_error *error);

/* As kafka_log_known and kafka_log_learn, of a log that cluster_open opened. */
void cluster_known(pawl_log *log, uint64_t records,
                   void (*visit)(void *arg, pawl_stream stream, pawl_bytes known), void *arg);
int cluster_learn(pawl_log *log, pawl_stream stream, pawl_bytes known);

/* Put a mirror in dir before a log that cluster_open opened (adapter/mirror). id: of the log and the node. Closing it
 * closes the log. PAWL_ENOMEM. */
struct cluster_mirror {
    const char *dir, *id, *boot_id;
    uint64_t bytes_max;
};
int cluster_mirror_open(pawl_log *log, pawl_env *env, const pawl_allocator *alloc,
                        const struct cluster_mirror *mirror, pawl_log **ret_log, pawl_error *error);

/* How many partitions the PLog has. PAWL_ENOTFOUND: there is no such topic; errors as in pawl/cluster.h. */
int cluster_partitions(const char *url, uint32_t *ret_partitions, pawl_error *error);

/* Whether both URLs name clusters of one name. Brokers may come and go. */
bool cluster_is_same(const char *url, const char *other);

#endif
