/* core/project/lane_impl.h: what the files of a lane share.
 *
 *     lane.c           numbers: binding, leasing, and whose turn it is
 *     lane_scan.c      from the PLog to matches
 *     lane_stage.c     a number's turn: does it stand, what does it write
 *     lane_batch.c     what becomes of staged operations: applied, or undone
 *     lane_recover.c   starting over, and catching up
 *     lane_life.c      how it begins and ends */
#ifndef CORE_PROJECT_LANE_IMPL_H
#define CORE_PROJECT_LANE_IMPL_H

#include "core/project/lane.h"

/* What a number is for. */
struct lane_work {
    struct lane_event *event; /* held; NULL: the number is not bound */
    const struct schema *schema;
    const struct schema_projector *projector;
    uint64_t wsid;
    uint32_t index; /* which match of its event it is, from 1 */
    bool last;      /* of its event's */
    bool at_turn;   /* it is being repeated: whoever gets it next gets what is in front of it, too */
};

/* Where the cursor stood. */
struct lane_mark {
    uint64_t applied;
    pawl_place place;
    uint64_t checksum;
    uint64_t scanned;
    uint64_t within;
};

/* A staged operation: a batch of the writer's has one for each entry. */
struct lane_staged {
    struct changes changes;
    struct run *run; /* who made it, and is to be told; NULL: nobody */
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
    bool *quick;             /* by projection: run here */
    struct lane_work *works; /* by number, window of them */
    struct recent *recent;
    struct overlay overlay;
    uint8_t *scratch;
    struct operation_maker writes; /* of what is exploded here */
    struct cursor cursor;
    struct lane_mark committed; /* what the store has */
    bool paused;
    bool pumping; /* inside pump: whoever calls it from there is served by the loop that is running */
    bool again;
    pawl_task task;

    /* Scanning. */
    pawl_read scan;
    bool scanning;
    uint64_t known;   /* the PLog has come to here */
    uint64_t seen;    /* events up to here are bound */
    pawl_place place; /* of event seen */
    uint64_t told;    /* that the tables have all of events up to here */
    uint64_t skip;    /* matches of the next event that were applied before */
    uint64_t bound;
    uint64_t staged;
    size_t bytes; /* of the events that are bound */
    size_t ready; /* of the runs that wait for their turn */
    int scan_status;
    const struct schema *schema; /* under which events of the last one's schema are projected, or NULL */
    uint64_t schema_of;
    bool schema_known;

    /* Turns. */
    struct run *redoing; /* being exploded again elsewhere; its number is the last one taken */
    bool redo_back;      /* and done */
    size_t redos;        /* runs that will come back from there, whether they are still wanted or not */
    pawl_turn redone;

    struct apply_item moved; /* the cursor alone, over events without matches */
    bool moving;
    pawl_timer rest; /* until the cursor is written in any case */
    bool resting;
    struct runs waiting; /* handed in again, while the first is on its way; or lost from sight */
    size_t looks;

    struct lane_figures figures;
};

static inline struct lane_work *lane_work(struct lane *lane, uint64_t number)
{
    return &lane->works[number & (lane->options.window - 1)];
}

static inline struct state lane_view(struct lane *lane)
{
    return (struct state){
        .overlay = &lane->overlay, .reader = pawl_store_writer(lane->options.store), .scratch = lane->scratch};
}

static inline struct lane_staged *lane_staged(const struct writer_batch *batch)
{
    return batch->staged;
}

static inline struct lane_mark lane_mark(const struct cursor *cursor)
{
    return (struct lane_mark){.applied = cursor->applied,
                              .place = cursor->place,
                              .checksum = cursor->checksum,
                              .scanned = cursor->scanned,
                              .within = cursor->within};
}

void runs_init(struct runs *runs);
void runs_add(struct runs *runs, struct run *run);
struct run *runs_take(struct runs *runs);

/* lane.c: go on with whatever can be done. */
void lane_pump(struct lane *lane);

/* Rows of a workspace that are staged, and that a snapshot may not have: for a run whose turn it is. */
int lane_copy_front(struct lane *lane, struct run *run, uint64_t wsid);

/* The number is over: it was applied, or forgotten. */
void lane_forget(struct lane *lane, uint64_t number);

void lane_tell_applied(struct lane *lane);

/* lane_scan.c: read on, if there is something to read and room for it. */
void lane_scan(struct lane *lane);

/* lane_stage.c: take the turn of a number. False: not now; the batch is as it was. */
bool lane_stage(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn);

/* lane_batch.c: callbacks of the writer. move_cursor: over events that the lane has nothing to do for; in a
 * while, or now. */
int lane_batch_write(void *ctx, struct writer_batch *batch, pawl_store *store);
void lane_batch_unwrite(void *ctx, struct writer_batch *batch);
void lane_batch_applied(void *ctx, struct writer_batch *batch);
void lane_batch_undo(void *ctx, struct writer_batch *batch);
void lane_move_cursor(struct lane *lane);
void lane_move_cursor_now(struct lane *lane);

/* Waiting runs up to this number, which is applied: those whose operation it was are told so. id NULL: it was
 * another's, whichever they had. */
void lane_tell_waiting(struct lane *lane, uint64_t number, const struct id128 *id);

/* Waiting runs of this operation, which was refused at its turn: they are told so, and why. */
void lane_tell_refused(struct lane *lane, const pawl_turn *turn, int status, const char *words);

/* lane_recover.c: callbacks of the writer. start_over: forget all that is not applied. */
int lane_position(void *ctx, bool again, struct writer_position *ret_position, pawl_error *error);
int lane_replay(void *ctx, const struct copied_entry *entries, struct arena *memory, pawl_error *error);
bool lane_drained(void *ctx);
void lane_prepare(void *ctx);
void lane_start_over(struct lane *lane);

#endif
