/* figures.h: numbers and alerts for monitoring an engine. */
#ifndef PAWL_FIGURES_H
#define PAWL_FIGURES_H

#include <pawl/engine.h>
#include <pawl/log.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums over all shards, since opening, unless it says otherwise. */
typedef struct pawl_figures {
    /* The checkpoint stores (docs/OPERATIONS.md). */
    uint64_t checkpoint_lag;     /* events that a checkpoint lacks, now, of the shard where it lacks most */
    uint64_t checkpoint_lag_max; /* its bound, as configured */
    uint64_t checkpoint_events;  /* derived */
    uint64_t checkpoint_rows;    /* written: fewer than the events changed, because each row is written once a
                                    commit */
    uint64_t checkpoint_commits;
    uint64_t checkpoint_failures; /* of reading, deriving or writing; each is tried again */
    uint64_t checkpoint_made;     /* copied from the live store, because there was none that could be used */
    uint32_t checkpoints_ready;   /* shards whose checkpoint lacks no more events than the lag allows */
    uint64_t held;                /* times that commands had to wait for a checkpoint */

    /* The audit compares the two states of a shard at equal offsets; the scrub reads their rows again. */
    uint64_t audits;        /* comparisons */
    uint64_t audits_missed; /* one side was too far behind */
    uint64_t scrubs;        /* tables of a partition that were read, in one of the two states */
    uint64_t scrubs_missed; /* tables that were too large to be read */
    uint64_t
        alerts; /* how often something was found, and what is wrong with a log on Kafka now: see pawl_alerts */

    /* The sequencers, which give numbers: one for each partition (pawl/sequencer.h). A partition whose
     * sequencer is not ready lets its commands wait. pawl_numbering_get tells of one partition.
     *
     * sequencer_states: how many are in which pawl_sequencer_state, now. PAWL_SEQUENCER_NONE: the partition has
     * not caught up with the log yet, or was refused. sequencers: the figures of all, added up
     * (pawl_sequencer_figures_add). Its state is not used. */
    uint32_t sequencer_states[PAWL_SEQUENCER_FINISHED + 1];
    pawl_sequencer_figures sequencers;

    /* Opening. */
    uint32_t taken_over; /* shards whose live store was thrown away, and whose checkpoint took its place */
    uint64_t
        replayed; /* events that were applied because the state lacked them; also after a failure of the log */
} pawl_figures;

/* Any thread that is not one of Pawl's own. Errors: PAWL_EMISUSE, PAWL_ECLOSED. */
PAWL_API int pawl_figures_get(pawl_engine *engine, pawl_figures *ret_figures, pawl_error *error);

/* How the numbering of one partition is doing. figures: those of its sequencer, its counters since opening.
 * error: what failed last, in the sequencer or before it was ready; its code is PAWL_OK if nothing has. The
 * figures say whether that is over. */
typedef struct pawl_numbering {
    pawl_sequencer_figures figures;
    pawl_error error;
} pawl_numbering;

/* Any thread that is not one of Pawl's own. Errors: PAWL_EINVAL (there is no such partition), PAWL_EREADONLY
 * (an engine that only reads gives no numbers), PAWL_EMISUSE, PAWL_ECLOSED. */
PAWL_API int pawl_numbering_get(pawl_engine *engine, uint16_t partition, pawl_numbering *ret_numbering,
                                pawl_error *error);

/* --- partitions and shards --- */

/* A partition, now. Any thread that is not one of Pawl's own. Errors: PAWL_EINVAL (there is no such partition),
 * PAWL_EMISUSE, PAWL_ECLOSED, and those of reading, of an engine that only reads. */
typedef struct pawl_partition_figures {
    uint64_t offset; /* of its last event that is applied; 0: it has none */
    uint32_t shard;  /* where it lives */
} pawl_partition_figures;

PAWL_API int pawl_partition_figures_get(pawl_engine *engine, uint16_t partition,
                                        pawl_partition_figures *ret_figures, pawl_error *error);

/* A shard, now. mailbox, commands and checkpoint_lag are 0 in an engine that only reads. Errors: PAWL_EINVAL
 * (there is no such shard), PAWL_EMISUSE, PAWL_ECLOSED. Any thread that is not one of Pawl's own. */
typedef struct pawl_shard_figures {
    uint64_t mailbox;        /* commands that wait for the shard */
    uint64_t commands;       /* that it has taken, and not answered yet */
    uint64_t checkpoint_lag; /* events that its checkpoint lacks */
    uint64_t live_bytes;     /* on the disk, of its two stores */
    uint64_t checkpoint_bytes;
} pawl_shard_figures;

PAWL_API uint32_t pawl_shards(const pawl_engine *engine);
PAWL_API int pawl_shard_figures_get(pawl_engine *engine, uint32_t shard, pawl_shard_figures *ret_figures,
                                    pawl_error *error);

/* --- the log --- */

/* The mirror of a log on Kafka, which is kept on the node's own disk (docs/KAFKA.md). Sums since opening, unless it
 * says otherwise. All zero: there is no mirror. */
typedef struct pawl_mirror_figures {
    uint64_t bytes;     /* in its files: now */
    uint64_t bytes_max; /* its bound, as configured; 0: there is no mirror */
    uint64_t hits;      /* entries that were read in it */
    uint64_t misses;    /* reads that went to the brokers, with all or the rest of what they wanted */
    uint64_t dropped;   /* acknowledged entries that it left out, because its disk was too slow or it was off */
    uint64_t discarded; /* how often everything in it was removed */
    uint64_t unwritten; /* entries that it has in memory, and not in its files yet: now */
    bool off;           /* it keeps nothing: now. It tries again every 10 s */
    char why[256];      /* it is off: with file and error */
} pawl_mirror_figures;

/* Sums since opening, unless it says otherwise. Everything is zero or empty if the log is in files. */
typedef struct pawl_log_figures {
    bool kafka;        /* false: it is in files */
    char cluster[204]; /* its name, the addresses of brokers, and what topics must have, as the URL says */
    char brokers[1024];
    uint16_t replication;
    bool broker_sync;    /* false: brokers acknowledge what is in the memory of a majority */
    uint64_t node;       /* the ID of this node */
    uint64_t assignment; /* position in group0 of the assignment that its claims rest on; 0: it only reads */

    uint64_t acknowledged; /* entries */
    uint64_t
        unknown; /* entries whose outcome was told to be unknown, and which no claim has settled yet: now */
    uint64_t unknown_total; /* entries whose outcome ever was */
    uint64_t gaps;          /* how often records of others had to be read before acknowledging */
    uint64_t ignored;       /* records that were read and did not count */
    uint64_t claims_held;   /* streams that this node owns: now */
    uint64_t claims_won;
    uint64_t claims_lost;
    uint64_t lag; /* records that followers have not come to yet: now */

    pawl_duration silence; /* since a broker answered last: now. Somebody asks every second */
    pawl_duration
        stalled;      /* for so long entries have waited, and none was acknowledged: now, of the worst stream */
    uint64_t outages; /* how often no broker answered for a third of the URL's timeout-ms, and 3 s at least */
    pawl_duration outage_time;  /* how long that lasted, together */
    uint64_t connection_errors; /* connections to a broker that broke or could not be made */
    uint32_t weak_topics; /* topics of streams that this node owns, whose settings are too weak, as seen last */
    pawl_mirror_figures mirror;
} pawl_log_figures;

/* Any thread that is not one of Pawl's own. Errors: PAWL_EMISUSE, PAWL_ECLOSED. */
PAWL_API int pawl_log_figures_get(pawl_engine *engine, pawl_log_figures *ret_figures, pawl_error *error);

/* Who owns a stream of a log on Kafka, as far as this node has read it. */
typedef struct pawl_claim_figures {
    pawl_stream stream;
    uint64_t node; /* its ID */
    uint64_t epoch;
    uint64_t assignment; /* position in group0 of the assignment that the claim rests on */
    bool held;           /* by this node, which writes to it */
} pawl_claim_figures;

/* The claims that this node knows, at most room of them; ret_count: how many there are. None, if the log is in files.
 * Errors: PAWL_EMISUSE, PAWL_ECLOSED. Any thread that is not one of Pawl's own. */
PAWL_API int pawl_claim_figures_get(pawl_engine *engine, pawl_claim_figures *claims, size_t room,
                                    size_t *ret_count, pawl_error *error);

/* --- how long things take --- */

typedef enum pawl_histogram_kind {
    PAWL_HISTOGRAM_COMMAND = 1, /* ns from sending a command to its answer, refused ones too */
    PAWL_HISTOGRAM_SYNC = 2,    /* ns that a sync of the log takes */
    PAWL_HISTOGRAM_BATCH = 3,   /* records that are written to the log with one sync */
    PAWL_HISTOGRAM_ACK = 4,     /* ns from handing a record to Kafka's client to the brokers' acknowledgement */
} pawl_histogram_kind;

/* A bucket has the values that are less than its bound, and not less than that of the one before. Bounds grow by
 * a quarter of a power of two. The last bucket has no bound: UINT64_MAX. */
#define PAWL_HISTOGRAM_BUCKETS 108
typedef struct pawl_histogram {
    uint64_t count;
    uint64_t sum; /* of the values */
    uint64_t buckets[PAWL_HISTOGRAM_BUCKETS];
} pawl_histogram;

#define PAWL_HISTOGRAM_SECONDS_MAX 14

/* The values since opening (seconds 0), or those of the last whole seconds. Those of seconds may lack a few. Takes
 * no lock that anybody works under. Any thread. PAWL_EINVAL: there is no such kind, or so many seconds are not
 * kept. */
PAWL_API int pawl_histogram_get(pawl_engine *engine, pawl_histogram_kind kind, uint32_t seconds,
                                pawl_histogram *ret_histogram, pawl_error *error);

/* The bound of a bucket; 0 if there is no such kind or bucket. */
PAWL_API uint64_t pawl_histogram_bound(pawl_histogram_kind kind, size_t bucket);

/* The bound of the bucket in which this share (0 to 1) of the values is reached; 0: there are no values. Of the
 * last bucket: the bound of the one before. */
PAWL_API uint64_t pawl_histogram_quantile(const pawl_histogram *histogram, pawl_histogram_kind kind,
                                          double share);

/* How many commands were answered, and how, since opening. */
#define PAWL_OUTCOMES_MAX 32
typedef struct pawl_outcomes {
    uint64_t ok;                        /* new events */
    uint64_t repeated;                  /* the answer was there already: an idempotency key was sent again */
    uint64_t failed[PAWL_OUTCOMES_MAX]; /* by the status, without its sign: failed[-PAWL_EBUSY] */
} pawl_outcomes;

/* Any thread. */
PAWL_API void pawl_outcomes_get(pawl_engine *engine, pawl_outcomes *ret_outcomes);

/* --- as JSON --- */

/* What an operator wants to see at a glance, as one object: docs/API.md. Any thread that is not one of Pawl's
 * own. Errors: PAWL_EMISUSE, PAWL_ECLOSED, PAWL_ENOMEM, and those of reading. */
PAWL_API int pawl_figures_json(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

/* All that is alarming now, one line each: the alerts below, and those of lanes (pawl/lane.h). Errors: the same.
 */
PAWL_API int pawl_alerts_json(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

/* --- alerts --- */

typedef enum pawl_alert_kind {
    PAWL_ALERT_DIFFERENT = 1, /* the two states, each derived from the log by itself, do not agree */
    PAWL_ALERT_LIVE,          /* the rows of the live state are not those that it has written */
    PAWL_ALERT_CHECKPOINT,    /* the same of the checkpoint's */
    PAWL_ALERT_LOG,           /* the log cannot be read: it is damaged */

    /* Of a log on Kafka, as long as it is so (docs/KAFKA.md). Partition, table and offset are 0. */
    PAWL_ALERT_BROKER,   /* no broker answers, or none acknowledges */
    PAWL_ALERT_FENCED,   /* another node has taken over the log; it is over when this node is opened again */
    PAWL_ALERT_SETTINGS, /* topics have weaker settings than this log needs */
    PAWL_ALERT_MIRROR,   /* its mirror is off: the disk of this node is full, or cannot be written */
} pawl_alert_kind;

/* Something that was found wrong while the engine was running. 'pawl verify --audit' says which of the states
 * is right, and names the row. */
typedef struct pawl_alert {
    pawl_alert_kind kind;
    uint16_t partition;
    uint32_t table;  /* 0: it is the log */
    uint64_t offset; /* of the partition, where it was seen first */
    char text[256];
} pawl_alert;

/* The alerts since opening, one for each kind, partition and table, and those of a log on Kafka that there are now; at
 * most room of them. ret_count: how many there are. Any thread. */
PAWL_API void pawl_alerts(pawl_engine *engine, pawl_alert *alerts, size_t room, size_t *ret_count);

/* What to do about it: one sentence. */
PAWL_API const char *pawl_alert_advice(pawl_alert_kind kind);

#ifdef __cplusplus
}
#endif
#endif
