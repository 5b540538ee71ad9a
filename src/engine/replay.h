/* engine/replay.h: derive the state of a directory again, from its log, and compare.
 *
 *     DIR/log ── derive ──► a fresh state ── at the offset where DIR's own state stands: equal? ──► report
 *
 * Reads only: it may run beside the process that writes. What is compared, partition by partition, at the
 * offset that DIR's state has come to: the digest that the state keeps of each table, the digest of the rows
 * that are really there, and the digest of the rows that were derived; and the sequences view at its own
 * offset. The tables of lanes are derived from their operation logs, and compared where they stand
 * (engine/replay_lanes.h). */
#ifndef ENGINE_REPLAY_H
#define ENGINE_REPLAY_H

#include <pawl/pawl.h>

struct replay_options {
    const char *dir;
    const char *to; /* a directory to keep the derived state in, which must not exist; NULL: nothing is kept */
    uint64_t
        until; /* the last offset of each partition; 0: all. Less than DIR's own state: nothing is compared */
    void (*progress)(void *arg, uint64_t events); /* may be NULL; on the calling thread */
    void *arg;
    pawl_unwitnessed_visit left_out; /* may be NULL; on the calling thread, in the end: pawl_unwitnessed */
    void *left_out_arg;
    bool backup;    /* DIR may be a backup, or what a loss of power has left: checkpoints, and no live stores */
    bool audit;     /* compare the checkpoint stores too */
    bool reproject; /* work operations of lanes out again, from their events */
    const pawl_allocator *allocator;
};

/* One of the two states that a directory has. */
struct replay_side {
    uint32_t compared; /* partitions whose state was compared */
    uint32_t behind;   /* of them, those whose state lacks events of the log */
    uint64_t differences;
    pawl_error first; /* the first difference, in words: partition, table, row, and which side has what */
};

/* What lanes have done. */
struct replay_lanes_report {
    uint64_t operations; /* applied */
    uint64_t compared;   /* worked out again */
    uint64_t unchecked;  /* these three: as in pawl_lane_verdict */
    size_t unchecked_count;
    struct pawl_unchecked unchecked_by[PAWL_UNCHECKED_MAX];
    uint64_t differences;
    pawl_error first; /* partition, lane, operation, row, and what is different */
};

struct replay_report {
    uint64_t events; /* derived */
    uint64_t rows;   /* in the derived state, but for those of lanes */
    struct replay_lanes_report lanes;
    struct replay_side live;
    struct replay_side checkpoint; /* if it was asked for, or there is no live one; what is missing is not
                                      compared */
};

/* PAWL_OK even with differences: the report has them. Errors: PAWL_EEXISTS (to is there), and those of opening
 * DIR, of reading its log, of deriving (PAWL_ECORRUPT, naming the event), of writing. */
int engine_replay(const struct replay_options *options, struct replay_report *ret_report, pawl_error *error);

#endif
