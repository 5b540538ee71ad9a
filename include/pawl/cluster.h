/* cluster.h: look after a log on Apache Kafka: make its topics, check them, verify what they hold.
 *
 *     pawl_cluster_init      make the topics that are not there, and check all
 *     pawl_cluster_check     are the topics such that nothing that is acknowledged can be lost?
 *     pawl_cluster_verify    read every record: is it as it was written?
 *     pawl_cluster_skip      skip a record that is not Pawl's, or is damaged
 *     pawl_cluster_import    copy the log of a directory into an empty cluster
 *     pawl_cluster_export    copy the log of a cluster into a new directory
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
    uint32_t skipped;     /* records that are skipped */
} pawl_cluster_topics;

/* Check every topic's replicas and settings; replication 0: as the URL says. Changes nothing.
 * Errors, besides those above: PAWL_EINVAL (a topic's setting is too weak; the words name both), PAWL_ENOTFOUND
 * (a topic is not there), PAWL_ECORRUPT (that of an operation log which was made is not there, as is known after the URL's
 * timeout; or the list of these logs has lost its beginning). */
PAWL_API int pawl_cluster_check(const char *url, uint16_t replication, pawl_cluster_topics *ret_topics,
                                pawl_error *error);

/* --- skip a record --- */

/* A record that is skipped, by the decision of a person. */
typedef struct pawl_cluster_skipped {
    pawl_stream stream;
    uint64_t at;  /* Kafka's offset */
    bool damaged; /* it was one of Pawl's, perhaps an entry; otherwise it is not Pawl's at all */
    pawl_wall time;
    char who[256];
    char reason[256];
} pawl_cluster_skipped;

/* A record that is not Pawl's, or whose checksum is wrong, stops its stream for readers and writers. Decide that it is
 * skipped: all that is opened from now on passes it, as if it were not there, and verify shows the decision. It is kept in
 * the topic CLUSTER.skips, which is made with the first, and is never taken back. What was opened before stops at the
 * record: open it again. who and reason have at most 255 bytes, and are not empty.
 * Errors, besides those above: PAWL_EINVAL (it is a sound record of Pawl's, or entries behind it rest on it, so that it was
 * an entry that counted; or a text is too long), PAWL_ENOTFOUND (there is no such record, or no such topic), PAWL_EEXISTS
 * (it is skipped already), PAWL_ECORRUPT (a record before it stops the stream), PAWL_EVERSION (a newer Pawl has written
 * it), PAWL_EFULL (there are 4,096), PAWL_EUNKNOWN (the decision may be there or not). After any @ret_skipped is
 * untouched. */
PAWL_API int pawl_cluster_skip(const char *url, pawl_stream stream, uint64_t at, const char *who,
                               const char *reason, pawl_cluster_skipped *ret_skipped, pawl_error *error);

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

    uint64_t faults; /* streams that stop at one, and operation logs whose topics were deleted */
    pawl_error
        first; /* the words of the first: topic, partition and Kafka's offset; or the topic that was deleted */

    pawl_cluster_report_stream *streams; /* those with records: by kind, lane, generation, partition */
    size_t stream_count;

    pawl_cluster_skipped *skipped; /* records that are skipped, of all streams; no faults */
    size_t skipped_count;

    size_t stream_room; /* Pawl's own */
} pawl_cluster_report;

/* Read every record of every stream up to its present end, and check it: its checksum, and that it continues
 * what counted before it. Damage is no error: the report has it, and the other streams are still read.
 * progress, which may be NULL, counts records; it is called on this thread, also while no broker answers, and
 * at least once before the call succeeds. The total is known at the end only. Changes nothing, and cancelled
 * leaves nothing behind.
 * Errors, besides those above: PAWL_ECANCELED, PAWL_ENOTFOUND (plog, raw or group0 is not there), PAWL_ECORRUPT (the list of
 * operation logs has lost its beginning). After any the report is untouched; after success release it once. */
PAWL_API int pawl_cluster_verify(const char *url, pawl_progress progress, void *arg,
                                 pawl_cluster_report *ret_report, pawl_error *error);
PAWL_API void pawl_cluster_report_release(pawl_cluster_report *report);

/* --- move a log into a cluster, and out of it --- */

typedef struct pawl_cluster_move_options {
    const char *url;
    const char *dir;        /* DIR or file://DIR: the directory to import, or to export into */
    uint32_t shards;        /* of an export: what DIR is made with (0: 2) */
    pawl_progress progress; /* may be NULL; counts entries that were copied or compared, on this thread */
    void *arg;
} pawl_cluster_move_options;

typedef struct pawl_cluster_move_report {
    uint64_t streams;
    uint64_t entries;  /* of all streams */
    uint64_t copied;   /* of these, by this call: the others were there before */
    uint64_t events;   /* import: from which the state was derived again, out of the cluster */
    uint32_t compared; /* import: partitions whose state was compared with that of DIR */
    bool ended_before; /* import: an earlier call has ended it; nothing was done */
} pawl_cluster_move_report;

/* Copy the log of a directory, which no process has open for writing, into a cluster that is empty.
 *
 *     DIR/log ── group0, PLogs, operation logs, raw ──► the cluster, with all offsets unchanged
 *             ── compared, entry by entry ──► the state derived from the cluster: equal to DIR's ──► import_done
 *
 * The topics must be there (pawl_cluster_init), with as many partitions as DIR has. Before anything is copied, DIR's log
 * is verified. Until the last step nodes refuse to open on the cluster (PAWL_EBUSY); then DIR may be opened with
 * pawl_options.log, and keeps its state, or an empty directory, which derives it. DIR is not changed (entries that a
 * killed process has left are made durable).
 *
 * If it is cancelled or killed, or after any other error, the cluster holds a part of the log. Call it again with the
 * same directory: it goes on where it was, and no entry is there twice.
 *
 * Errors, besides those above: PAWL_EEXISTS (the cluster holds something else; the words name it), PAWL_ELOCKED (DIR is
 * in use), PAWL_ECORRUPT (DIR's log is damaged, or the copy is not equal; the words say where), PAWL_EINVAL (another
 * number of partitions, or DIR has no log of its own), PAWL_EREADONLY (DIR holds only derived state), PAWL_ENOTFOUND (no
 * such directory, or no topics), PAWL_EFENCED (another process writes to the cluster), PAWL_EUNKNOWN (the brokers do not
 * say what became of the last entries: call it again), PAWL_ECANCELED. On an error the report is untouched. */
PAWL_API int pawl_cluster_import(const pawl_cluster_move_options *options, pawl_cluster_move_report *ret_report,
                                 pawl_error *error);

/* Copy the log of a cluster into a new directory, which then opens as any other, with a log of its own in files.
 *
 *     the cluster ── verified ──► DIR.exporting/log ── compared, entry by entry ──► renamed: DIR
 *
 * All offsets are unchanged. DIR must not exist, or be empty. The cluster is only read; but a node that writes to it
 * meanwhile makes the copy incomplete: then it is PAWL_EBUSY. Stop that node, and call it again.
 *
 * DIR is there whole or not at all. If it is cancelled or killed, or after any other error, DIR.exporting stays, and the
 * next call with the same cluster goes on there. Errors, besides those above: PAWL_EEXISTS (DIR is not empty, or
 * DIR.exporting is of another cluster), PAWL_ELOCKED (another process exports to it), PAWL_ECORRUPT (the cluster's log is
 * damaged), PAWL_EBUSY (a node writes to it, or an import into it was not ended), PAWL_EINVAL (too many shards),
 * PAWL_ENOTFOUND (no topics), PAWL_ECANCELED, and errors of writing. On an error the report is untouched. */
PAWL_API int pawl_cluster_export(const pawl_cluster_move_options *options, pawl_cluster_move_report *ret_report,
                                 pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
