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
 *   - Where a stream ends is known by reading it from its beginning, once for each log that is opened, or from where
 *     another log has judged it (kafka_log_learn). Entries in the middle are found without (find.c).
 *   - close from inside a done that runs on the log's own thread is PAWL_EMISUSE. */
#ifndef KAFKA_KAFKA_H
#define KAFKA_KAFKA_H

#include <pawl/cluster.h>
#include <pawl/figures.h>

#include "port/env.h"
#include "port/log.h"

/* Every reader relies on it that no writer has more records of a stream in flight (port/claim_find.h). So it must
 * never be raised: readers of an older version would take for proven what is not. */
#define KAFKA_WINDOW_MAX 2048

struct kafka_log_options {
    const char *url; /* url.h */
    pawl_env *env;   /* where done and visit run; topics are checked on its pool */
    const pawl_allocator *alloc;
    uint64_t node;     /* who claims; 0: somebody, by chance */
    uint32_t window;   /* records in flight, of a stream: 64 to KAFKA_WINDOW_MAX; 0: as many as may be */
    bool trust_topics; /* for tests on brokers that cannot be asked for settings */
};

struct kafka_figures {
    uint64_t acknowledged; /* entries */
    uint64_t gaps;         /* how often others' records had to be read before acknowledging */
    uint64_t ignored;      /* records that were read and did not count */
    uint64_t claims_won;
    uint64_t claims_lost;
    uint64_t unknown;    /* entries that were told to be unknown */
    uint64_t resolved;   /* of these, how many a later claim has settled */
    uint64_t lag;        /* records that follows have not come to yet */
    uint64_t owner_read; /* records that were read to claim a stream, or because of a gap */
    uint64_t read;       /* records that were read for a caller: of a read, a follow, a tail or a scan */
    uint64_t sought;     /* places in the middle of a stream that were looked for, */
    uint64_t found;      /* and found; others were read up to, from the last place that was known */
};

/* Errors: PAWL_EINVAL (the URL, or its file of properties), PAWL_EIO (no broker answers), PAWL_EACCES,
 * PAWL_ENOMEM. Blocks until a broker has answered. */
int kafka_log_open(const struct kafka_log_options *options, pawl_log **ret_log, pawl_error *error);

/* Of a log that kafka_log_open opened. Any thread. */
void kafka_log_figures(pawl_log *log, struct kafka_figures *ret_figures);

/* What a log knows of a stream: how far it has judged it, and what it needs to go on from there. This is a fact about
 * the stream, true for ever; another log that learns it reads from there on, and not from the beginning. docs/FORMAT.md
 * has the bytes.
 * known: visit each stream of which this log knows at least so many more records than when it was visited last. Not to
 * be called back from visit; any thread.
 * learn: PAWL_EINVAL: these are no such bytes, or of another stream; nothing was learnt. If the stream turns out not to
 * have the record that lay there, claims and reads end with PAWL_ECORRUPT. */
#define KAFKA_KNOWN_BYTES 201

typedef void (*kafka_known_visit)(void *arg, pawl_stream stream, pawl_bytes known);
void kafka_log_known(pawl_log *log, uint64_t records, kafka_known_visit visit, void *arg);
int kafka_log_learn(pawl_log *log, pawl_stream stream, pawl_bytes known);

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

/* What a cluster is: how many partitions the topic of its PLog has, and the ID of the Kafka cluster that it is in, "" if
 * the brokers tell none. PAWL_ENOTFOUND: there is no such topic; PAWL_EINVAL: an ID that cannot be one. */
#define KAFKA_ID_MAX 256

struct kafka_identity {
    uint32_t partitions;
    char kafka[KAFKA_ID_MAX];
};

int kafka_cluster_identity(const char *url, struct kafka_identity *ret_identity, pawl_error *error);

/* Read a stream from its first record to its present end, and visit what counts in it, with the ID of the node whose
 * claim it stands under. entry is NULL if it is a claim itself. Blocks, and visits on this thread. Errors as of
 * pawl_log_read. */
typedef void (*kafka_scan_visit)(void *arg, uint64_t node, const pawl_entry *entry);
int kafka_scan(pawl_log *log, pawl_stream stream, kafka_scan_visit visit, void *arg, pawl_error *error);

/* Skip a record of a log that was just opened, and is used for nothing else: wanted has stream, at, time, who and reason.
 * Errors as of pawl_cluster_skip. */
int kafka_skip(pawl_log *log, const pawl_cluster_skipped *wanted, pawl_cluster_skipped *ret_skipped,
               pawl_error *error);

/* As pawl_cluster_verify, of a log that kafka_log_open opened. Release the report with kafka_verify_release. */
int kafka_verify(pawl_log *log, pawl_progress progress, void *arg, pawl_cluster_report *ret_report,
                 pawl_error *error);
void kafka_verify_release(pawl_cluster_report *report);

#endif
