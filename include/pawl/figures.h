/* figures.h: what an engine has done, and how far its parts are: numbers for whoever watches it. */
#ifndef PAWL_FIGURES_H
#define PAWL_FIGURES_H

#include <pawl/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums over all shards, since opening, unless it says otherwise. */
typedef struct pawl_figures {
    /* The checkpoint stores (docs/OPERATIONS.md). */
    uint64_t checkpoint_lag;     /* events that a checkpoint lacks, now, of the shard where it lacks most */
    uint64_t checkpoint_lag_max; /* its bound, as configured */
    uint64_t checkpoint_events;  /* derived */
    uint64_t checkpoint_rows;    /* written: fewer than what the events changed, because each is written once a
                                    commit */
    uint64_t checkpoint_commits;
    uint64_t checkpoint_failures; /* of reading, deriving or writing; each is tried again */
    uint64_t checkpoint_made;     /* copied from the live store, because there was none that could be used */
    uint32_t checkpoints_ready;   /* shards that a loss of power would cost no more than the lag */
    uint64_t held;                /* times that commands had to wait for a checkpoint */

    /* The audit: the two states of a shard, compared at equal offsets; and their rows, read through again. */
    uint64_t audits;        /* comparisons */
    uint64_t audits_missed; /* one side was too far behind */
    uint64_t scrubs;        /* tables of a partition that were read, in one of the two states */
    uint64_t scrubs_missed; /* those that were too large for that */
    uint64_t alerts;        /* how often something was found: see pawl_alerts */

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

typedef enum pawl_alert_kind {
    PAWL_ALERT_DIFFERENT = 1, /* the two states, each derived from the log by itself, do not agree */
    PAWL_ALERT_LIVE,          /* the rows of the live state are not those that it has written */
    PAWL_ALERT_CHECKPOINT,    /* the same of the checkpoint's */
    PAWL_ALERT_LOG,           /* the log cannot be read: it is damaged */
} pawl_alert_kind;

/* What was found while everything went on. 'pawl verify --audit' says which of the states is right, and names
 * the row. */
typedef struct pawl_alert {
    pawl_alert_kind kind;
    uint16_t partition;
    uint32_t table;  /* 0: it is the log */
    uint64_t offset; /* of the partition, where it was seen first */
    char text[256];
} pawl_alert;

/* The alerts since opening, one for each kind, partition and table, at most room of them; ret_count: how many
 * there are. Any thread. */
PAWL_API void pawl_alerts(pawl_engine *engine, pawl_alert *alerts, size_t room, size_t *ret_count);

#ifdef __cplusplus
}
#endif
#endif
