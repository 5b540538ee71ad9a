/* adapter/kafka/kafka.h: the log port on Apache Kafka. docs/KAFKA.md says how, and why it holds.
 *
 *     append ──► owner (port/claim_owner.h) ──► producer ──► brokers ── report ──► owner ──► done
 *                                                               └── what others wrote, read ──┘
 *     read, follow, tail ──► consumer ──► judge (port/claim.h) ──► visit, done
 *
 * Which record counts and what may be acknowledged is decided by the judge and the owner; this only moves
 * bytes.
 *
 * Caveats
 *   - append never returns PAWL_APPEND_DONE.
 *   - What a stream holds is known by reading it from its beginning, once for each log that is opened.
 *   - close from inside a done that runs on the log's own thread is PAWL_EMISUSE. */
#ifndef KAFKA_KAFKA_H
#define KAFKA_KAFKA_H

#include <pawl/cluster.h>
#include <pawl/figures.h>

#include "port/env.h"
#include "port/log.h"

struct kafka_log_options {
    const char *url; /* url.h */
    pawl_env *env;   /* where done and visit run; topics are checked on its pool */
    const pawl_allocator *alloc;
    uint64_t node;     /* who claims; 0: somebody, by chance */
    uint32_t window;   /* records in flight, of a stream; 0: 2048; at least 64 */
    bool trust_topics; /* for tests on brokers that cannot be asked for settings */
};

struct kafka_figures {
    uint64_t acknowledged; /* entries */
    uint64_t gaps;         /* how often others' records had to be read before acknowledging */
    uint64_t ignored;      /* records that were read and did not count */
    uint64_t claims_won;
    uint64_t claims_lost;
    uint64_t unknown;  /* entries that were told to be unknown */
    uint64_t resolved; /* of these, how many a later claim has settled */
    uint64_t lag;      /* records that follows have not come to yet */
};

/* Errors: PAWL_EINVAL (the URL, or its file of properties), PAWL_EIO (no broker answers), PAWL_EACCES,
 * PAWL_ENOMEM. Blocks until a broker has answered. */
int kafka_log_open(const struct kafka_log_options *options, pawl_log **ret_log, pawl_error *error);

/* Of a log that kafka_log_open opened. Any thread. */
void kafka_log_figures(pawl_log *log, struct kafka_figures *ret_figures);

/* watch.c: the same for people, and how the brokers are doing; but for who is assigned, of which the log knows nothing.
 * Any thread. */
void kafka_log_look(pawl_log *log, pawl_log_figures *ret_figures);

/* What is wrong now, in words: it has been without an answer for too long; a topic of a stream that it owns is too weak.
 * PAWL_OK: nothing. Any thread. */
int kafka_log_outage(pawl_log *log, pawl_error *ret_error);
int kafka_log_weakness(pawl_log *log, pawl_error *ret_error);

/* The claims that are known, of at most room streams; returns how many there are. Any thread. */
size_t kafka_log_claims(pawl_log *log, pawl_claim_figures *claims, size_t room);

/* How long the brokers take to acknowledge: as pawl_histogram_get. Any thread. */
void kafka_log_acks(pawl_log *log, uint32_t seconds, pawl_histogram *sum);

/* As pawl_cluster_init and pawl_cluster_check, but that there must be partitions. */
int kafka_cluster_init(const char *url, uint32_t partitions, uint16_t replication, pawl_error *error);

int kafka_cluster_check(const char *url, uint16_t replication, pawl_cluster_topics *ret_topics,
                        pawl_error *error);

/* How many partitions the topic of the PLog has. PAWL_ENOTFOUND: it is not there. */
int kafka_cluster_partitions(const char *url, uint32_t *ret_partitions, pawl_error *error);

/* As pawl_cluster_verify, of a log that kafka_log_open opened. Release the report with kafka_verify_release. */
int kafka_verify(pawl_log *log, pawl_progress progress, void *arg, pawl_cluster_report *ret_report,
                 pawl_error *error);
void kafka_verify_release(pawl_cluster_report *report);

#endif
