/* cluster.h: look after a log on Apache Kafka: make its topics, check them, verify what they hold.
 *
 *     pawl_cluster_init      make the topics that are not there, and check all
 *     pawl_cluster_check     are the topics such that nothing that is acknowledged can be lost?
 *     pawl_cluster_verify    read every record: is it as it was written?
 *
 * The log is named by its URL, kafka://HOST:PORT[,HOST:PORT...]/CLUSTER; docs/KAFKA.md has its parameters, and
 * says which settings topics must have, and why. It is opened, written and read by pawl/log.h.
 *
 * Threads. Each call blocks, and may be made on any thread that is not one of Pawl's. It makes connections of
 * its own. All may be made while others read and write.
 *
 * Errors. PAWL_EINVAL (not such a URL, or its file of properties is not good), PAWL_EIO (no broker answers
 * within the URL's timeout), PAWL_EACCES (a password or certificate is refused), PAWL_ENOMEM. A library that
 * was built without Kafka (pawl_version()->cluster is false) has these functions, too, and answers each call
 * with PAWL_EINVAL and words that say so. */
#ifndef PAWL_CLUSTER_H
#define PAWL_CLUSTER_H

#include <pawl/log.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- make and check the topics --- */

/* Make the topics that are not there, with so many partitions (0: 16; a power of two, at most
 * PAWL_PARTITIONS_MAX) and replicas (0: as the URL says), then check all. Topics that are there are not
 * changed.
 * Errors, besides those above: PAWL_EINVAL (a topic's setting is too weak; the words name both), PAWL_EEXISTS
 * (a topic is there, with another number of partitions). */
PAWL_API int pawl_cluster_init(const char *url, uint32_t partitions, uint16_t replication, pawl_error *error);

typedef struct pawl_cluster_topics {
    uint32_t topics;
    uint32_t partitions;  /* of plog, and of raw */
    uint16_t replication; /* every topic has at least so many replicas */
    bool broker_sync;     /* a broker syncs a record before it acknowledges it */
} pawl_cluster_topics;

/* Check every topic's replicas and settings; replication 0: as the URL says. Changes nothing.
 * Errors, besides those above: PAWL_EINVAL (a topic's setting is too weak; the words name both), PAWL_ENOTFOUND
 * (a topic is not there). */
PAWL_API int pawl_cluster_check(const char *url, uint16_t replication, pawl_cluster_topics *ret_topics,
                                pawl_error *error);

/* --- verify --- */

/* What a stream holds. A record counts as an entry or a claim, or does not count: that of a writer that was
 * replaced and had not noticed, or a copy. */
typedef struct pawl_cluster_report_stream {
    pawl_stream id;
    uint64_t records;
    uint64_t entries;
    uint64_t claims;
    uint64_t ignored; /* records that do not count */
    uint64_t bytes;
    uint64_t epoch;
} pawl_cluster_report_stream;

typedef struct pawl_cluster_report {
    uint64_t records; /* these five: of all streams */
    uint64_t entries;
    uint64_t claims;
    uint64_t ignored;
    uint64_t bytes;

    uint64_t faults;  /* streams that stop at one */
    pawl_error first; /* the words of the first, with topic, partition and Kafka's offset */

    pawl_cluster_report_stream *streams; /* those with records: by kind, lane, generation, partition */
    size_t stream_count;

    size_t stream_room; /* Pawl's own */
} pawl_cluster_report;

/* Read every record of every stream up to its present end, and check it: its checksum, and that it continues
 * what counted before it. Damage is no error: the report has it, and the other streams are still read.
 * progress, which may be NULL, counts records; it is called on this thread, also while no broker answers, and
 * at least once before the call succeeds. The total is known at the end only. Changes nothing, and cancelled
 * leaves nothing behind.
 * Errors, besides those above: PAWL_ECANCELED, PAWL_ENOTFOUND (plog, raw or group0 is not there). After any the report is untouched; after success release it
 * once. */
PAWL_API int pawl_cluster_verify(const char *url, pawl_progress progress, void *arg,
                                 pawl_cluster_report *ret_report, pawl_error *error);
PAWL_API void pawl_cluster_report_release(pawl_cluster_report *report);

#ifdef __cplusplus
}
#endif
#endif
