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

/* Create the topics that are not there, with so many partitions, and check all. replication: 0 is the URL's.
 * Blocks. Errors: PAWL_EINVAL, naming topic and setting; PAWL_EIO; PAWL_EACCES. */
int kafka_cluster_init(const char *url, uint32_t partitions, uint16_t replication, pawl_error *error);

struct kafka_cluster_report {
    uint32_t topics;
    uint32_t partitions; /* of plog */
    uint16_t replication;
    bool broker_sync;
};

int kafka_cluster_check(const char *url, uint16_t replication, struct kafka_cluster_report *ret_report,
                        pawl_error *error);

/* Read every record of every stream up to the present end. */
struct kafka_verify_stream {
    pawl_stream id;
    uint64_t records, entries, claims, ignored, bytes;
    uint64_t epoch;
};

struct kafka_verify_report {
    struct kafka_verify_stream *streams; /* those with records, in the order of their names */
    size_t stream_count, stream_room;
    uint64_t records, entries, claims, ignored, bytes;
    uint64_t faults;  /* streams that stop at one */
    pawl_error first; /* of them, with topic, partition and Kafka's offset */
};

/* Of an open log, on this thread. A fault is in the report; errors are those of reading at all. Release the
 * report in any case. */
int kafka_verify(pawl_log *log, void (*progress)(void *arg, uint64_t done, uint64_t of_records), void *arg,
                 struct kafka_verify_report *ret_report, pawl_error *error);
void kafka_verify_release(struct kafka_verify_report *report);

#endif
