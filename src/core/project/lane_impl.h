/* core/project/lane_impl.h: what the files of a lane share.
 *
 *     lane.c           numbers: whose turn it is, and what becomes of runs
 *     lane_acquire.c   which numbers are given out before their turn
 *     lane_scan.c      from the PLog to matches
 *     lane_stage.c     a number's turn: does it stand, what does it write
 *     lane_batch.c     what becomes of staged operations: applied, or undone
 *     lane_recover.c   starting over, and catching up
 *     lane_life.c      how it begins and ends */
#ifndef CORE_PROJECT_LANE_IMPL_H
#define CORE_PROJECT_LANE_IMPL_H

#include "core/project/lane.h"
#include "core/project/schedule.h"
#include "core/view/tables.h"

/* What a number is bound to: an event and a projector. */
struct lane_binding {
    struct lane_event *event; /* held; NULL: the number is not bound */
    const struct schema *schema;
    const struct schema_projector *projector;
    uint64_t wsid;
    uint32_t projection;
    uint32_t index;     /* which match of its event, from 1 */
    bool last;          /* the last match of its event */
    bool again;         /* it is repeated: the next run gets the staged rows, too */
    uint64_t marks;     /* of what the run has read that was handed in */
    struct run *handed; /* handed in, and its turn has not come; NULL: none */
};

/* How far a cursor had come, so that a failed transaction can be taken back. */
struct lane_progress {
    uint64_t applied;
    pawl_place place;
    uint64_t checksum;
    uint64_t scanned;
    uint64_t within;
};

/* A staged operation: a batch of the writer's has one for each entry. */
struct lane_staged {
    struct changes changes;
    struct run *run; /* the run that made it, which will be told; NULL: none */
};

/* Runs, in the order in which they came. */
struct runs {
    struct run *first;
    struct run **last;
};

struct lane {
    struct lane_options options;
    struct writer writer;
    pawl_leases *leases;
    uint32_t projections;
    bool *quick;                   /* by projection: the lane runs it itself */
    bool *outside;                 /* by projection: external workers have asked for it */
    struct lane_binding *bindings; /* by number modulo the window */
    struct recent_writes *recent;
    struct schedule schedule;
    uint64_t handed_last; /* the highest number that was handed in */
    uint64_t examined;    /* the last number staged when the runs that were handed in were last examined */
    struct overlay overlay;
    uint8_t *scratch;
    struct operation_maker writes; /* for what the lane explodes itself */
    struct cursor cursor;
    struct lane_progress committed; /* what the store has */
    uint64_t starts;                /* how often it started over: a run is of one start */
    bool paused;
    bool pumping; /* inside lane_pump: a nested call only sets again */
    bool again;
    pawl_task task;

    /* Scanning. */
    pawl_read scan;
    bool scanning;
    uint64_t known;   /* the last offset of the PLog */
    uint64_t seen;    /* events up to here are bound */
    pawl_place place; /* of event seen */
    uint64_t told;    /* the offset that was last told as applied */
    uint64_t skip;    /* matches of the next event that are applied already */
    uint64_t bound;
    uint64_t staged;
    size_t bytes; /* of the events that are bound */
    size_t ready; /* of the runs that wait for their turn */
    int scan_status;
    const struct schema *schema; /* for events of schema schema_of; NULL: not projected */
    uint64_t schema_of;
    bool schema_known;

    /* Turns. */
    struct run *exploding;  /* being exploded again on another thread; it has the last number taken */
    bool exploded;          /* it is done, and its turn can go on */
    size_t exploding_count; /* runs on other threads that will come back, wanted or not */
    pawl_turn exploding_turn;

    struct apply_item moved; /* writes the cursor alone, past events without matches */
    bool moving;
    pawl_timer rest; /* when it is over, the cursor is written */
    bool resting;
    struct runs waiting; /* handed in a second time; or their batch was lost */
    size_t lookups;

    struct lane_figures figures;
};

static inline struct lane_binding *lane_binding(struct lane *lane, uint64_t number)
{
    return &lane->bindings[number & (lane->options.window - 1)];
}

static inline struct state lane_staged_state(struct lane *lane)
{
    return (struct state){
        .overlay = &lane->overlay, .reader = pawl_store_writer(lane->options.store), .scratch = lane->scratch};
}

static inline struct lane_staged *lane_staged(const struct writer_batch *batch)
{
    return batch->staged;
}

static inline struct lane_progress lane_progress(const struct cursor *cursor)
{
    return (struct lane_progress){.applied = cursor->applied,
                                  .place = cursor->place,
                                  .checksum = cursor->checksum,
                                  .scanned = cursor->scanned,
                                  .within = cursor->within};
}

void runs_init(struct runs *runs);
void runs_add(struct runs *runs, struct run *run);
struct run *runs_take(struct runs *runs);

/* lane.c: do whatever can be done now. */
void lane_pump(struct lane *lane);

/* lane_acquire.c: copy the staged rows of a workspace, which a snapshot may not have yet, for a run. PAWL_ETOOBIG: there
 * are more than max; PAWL_ENOMEM. Both leave the run without a base. */
int lane_copy_staged_rows(struct lane *lane, struct run *run, uint64_t wsid, size_t max);

/* lane_acquire.c: give out again what was handed in, and has read what was changed by an operation staged since. one:
 * only this number. */
void lane_examine(struct lane *lane);
void lane_examine_one(struct lane *lane, uint64_t number);

/* lane_acquire.c: whether all that a run has read stands, as far as it can be told now; at its turn: as a whole. */
bool lane_stands(struct lane *lane, const struct reads *reads);

/* lane_acquire.c: a run of this number was handed in: give the next number of its chain out, with what the run promises. */
void lane_promise(struct lane *lane, uint64_t number);

/* lane_acquire.c: this number is given out again. So is what was handed in behind it, if it rests on the promise of a run
 * that counts no more. */
void lane_repeat_what_rests_on(struct lane *lane, uint64_t number);
extern const struct schedule_ops lane_schedule_ops;

/* Free a number: it was applied, or the lane starts over. */
void lane_forget(struct lane *lane, uint64_t number);

void lane_tell_applied(struct lane *lane);

/* lane_scan.c: read on, if there are events to read and room for their numbers. */
void lane_scan(struct lane *lane);

/* lane_stage.c: stage a number at its turn. False: not now; the batch is unchanged. */
bool lane_stage(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn);

/* lane_batch.c: callbacks of the writer. move_cursor: write the cursor past events that have no match, in a
 * while; move_cursor_now: write it now. */
int lane_batch_write(void *ctx, struct writer_batch *batch, pawl_store *store);
void lane_batch_unwrite(void *ctx, struct writer_batch *batch);
void lane_batch_applied(void *ctx, struct writer_batch *batch);
void lane_batch_undo(void *ctx, struct writer_batch *batch);
void lane_move_cursor(struct lane *lane);
void lane_move_cursor_now(struct lane *lane);

/* This number is applied: tell the waiting runs up to it. Those with this id are told that it was theirs, all
 * others that it was another's. id NULL: it was nobody's. */
void lane_tell_waiting(struct lane *lane, uint64_t number, const struct id128 *id);

/* This operation was refused at its turn: tell the runs that wait for it, and why. */
void lane_tell_refused(struct lane *lane, const pawl_turn *turn, int status, const char *words);

/* lane_recover.c: callbacks of the writer. start_over: forget every number that is not applied. */
int lane_position(void *ctx, bool again, struct writer_position *ret_position, pawl_error *error);
int lane_replay(void *ctx, const struct copied_entry *entries, struct arena *memory, pawl_error *error);
bool lane_drained(void *ctx);
void lane_prepare(void *ctx);
void lane_start_over(struct lane *lane);

/* What a run is told that was handed in, and whose operation is not in the log because the lane has started over, or
 * is closed. A worker that may ask again need not know whether its lease is kept: if it is not, the answer to its
 * question is PAWL_EFENCED. */
int lane_status_of_lost(const struct lane *lane, const struct run *run);

#endif
