/* engine/log/cluster.h: logs on Kafka, named by a URL (pawl/cluster.h). In a build without Kafka each call is
 * PAWL_EINVAL. */
#ifndef ENGINE_LOG_CLUSTER_H
#define ENGINE_LOG_CLUSTER_H

#include <pawl/cluster.h>
#include <pawl/figures.h>

#include "engine/directory/directory.h"

/* Whether this is the name of a log on Kafka. */
bool cluster_is(const char *where);

/* Whether it is a URL that a log can be opened by; looks at nothing else. PAWL_EINVAL, with words that say what is wrong. */
int cluster_url_check(const char *url, pawl_error *error);

/* node: who claims; 0: somebody. */
int cluster_open(const char *url, pawl_env *env, uint64_t node, pawl_log **ret_log, pawl_error *error);

/* Read a stream of a log on Kafka from its first record, and visit what counts, with the ID of the node whose claim it
 * stands under; entry is NULL for a claim. Blocks; visits on this thread. Errors as of reading. */
typedef void (*cluster_scan_visit)(void *arg, uint64_t node, const pawl_entry *entry);
int cluster_scan(pawl_log *log, pawl_stream stream, cluster_scan_visit visit, void *arg, pawl_error *error);

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

/* Of a log that cluster_mirror_open opened. */
void cluster_mirror_look(pawl_log *log, pawl_mirror_figures *ret_figures);

/* What a cluster is: how many partitions its PLog has, and the ID that the Kafka cluster, in which it is, was given when
 * its brokers were formatted; "": they tell none. Another Kafka cluster may have a cluster of the same name.
 * PAWL_ENOTFOUND: there is no such topic; errors as in pawl/cluster.h. */
struct cluster_identity {
    uint32_t partitions;
    char kafka[NODE_KAFKA_MAX];
};
int cluster_identity_get(const char *url, struct cluster_identity *ret_identity, pawl_error *error);

/* Whether both URLs name clusters of one name. Brokers may come and go. */
bool cluster_is_same(const char *url, const char *other);

/* Of a log that cluster_open opened; adapter/kafka/kafka.h says what they are. outage, weakness: PAWL_OK, or what is
 * wrong now. */
void cluster_look(pawl_log *log, pawl_log_figures *ret_figures);
size_t cluster_claims(pawl_log *log, pawl_claim_figures *claims, size_t room);
void cluster_acks(pawl_log *log, uint32_t seconds, pawl_histogram *sum);
uint64_t cluster_records_read(pawl_log *log); /* for reads, follows and tails */
int cluster_outage(pawl_log *log, pawl_error *ret_error);
int cluster_weakness(pawl_log *log, pawl_error *ret_error);

#endif
