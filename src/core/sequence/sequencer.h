/* core/sequence/sequencer.h: the parts of a sequencer, and what its files ask of each other.
 *
 *     sequencer.c    the calls: start, next, stage, flush, cancel, actualize; the state machine
 *     table.c        the workspaces in memory            kinds.c      which sequences they have
 *     flusher.c      changed values to the view          actualizer.c the log's tail into memory and the view
 *     lifetime.c     new, ready, close
 *
 * Everything runs on the sequencer's shard, save the two works, which run in the pool: the flusher's touches
 * only the rows it was given, the actualizer's has everything, because the shard touches nothing of it while
 * recovering. The env's hand-over orders the two.
 *
 * Invariants
 *   S1  offset_given = offset_flushed + staged events + (1 if an event is open).
 *   S2  unflushed = the dirty bits of all records, and the rows of the write under way or to be retried.
 *   S3  A row in a write is of durable events only, and the offset written with it is at least that of the
 *       last event which it covers; offset_stored is never above offset_flushed.
 *   S4  At most one work is under way: the flusher's while READY or EVENTING or closing, the actualizer's while
 *       RECOVERING. */
#ifndef CORE_SEQUENCE_SEQUENCER_H
#define CORE_SEQUENCE_SEQUENCER_H

#include "base/map.h"
#include "base/ring.h"
#include "core/sequence/metrics.h"
#include "core/sequence/table.h"
#include "port/env.h"

/* The event between start and its end. */
struct open_event {
    struct record *record;   /* NULL: of workspace 0, or nothing was asked of a workspace that is not cached */
    const struct kind *kind; /* NULL: workspace 0 */
    uint64_t wsid;
    uint64_t *touched; /* a bit a place: whether it gave a number to this event */
    uint64_t *before;  /* by place, where touched: what was given before */
};

/* Events between stage and flush; their offsets follow each other from offset_flushed + 1. */
struct staged_event {
    uint32_t slot; /* NO_SLOT: it took no numbers */
    uint32_t changes;
};

struct change {
    uint64_t number;
    uint32_t place;
};

struct flusher {
    pawl_work work;
    pawl_timer timer; /* the interval since the first event that gathered, or the delay before a retry */
    uint32_t *dirty;  /* slots of records that are RECORD_DIRTY */
    uint32_t dirty_count;
    uint32_t list_room;
    pawl_sequence_row *rows; /* what is being written, or is to be retried */
    size_t row_count;
    uint64_t upto;   /* the offset that goes with it */
    uint64_t events; /* flushed and not yet in rows */
    bool loaded;     /* there are rows, if only the offset: under way, or to be retried */
    bool busy;       /* its work is under way */
    bool retrying;   /* it failed, and waits for the timer */
    pawl_duration delay;
    pawl_instant began;
    int status; /* of the work */
    pawl_error error;
};

struct actualizer {
    pawl_sequence_batcher batcher;
    pawl_work work;
    pawl_timer timer;     /* before a retry */
    struct map strangers; /* numbers of the log that no kind knows */
    uint64_t *numbers;    /* a workspace's, as the storage reads them */
    uint64_t last;        /* the last event that was taken whole */
    bool busy;
    pawl_duration delay;
    pawl_instant began;
    int status;
    pawl_error error;
};

/* Somebody who wants to know when it is ready: PAWL_OK; PAWL_ECORRUPT, if it never will be; PAWL_ECLOSED. */
struct sequencer_waiter {
    void (*fn)(struct sequencer_waiter *waiter, int status);
    struct sequencer_waiter *next;
};

struct pawl_sequencer {
    _Atomic uint32_t status; /* enum pawl_sequencer_state; written on the shard */
    struct open_event open;
    struct table table;
    struct kinds kinds;
    struct sequencer_metrics metrics;
    struct ring staged;
    struct ring changes;
    struct flusher flusher;
    struct actualizer actualizer;
    pawl_sequencer_options options; /* defaults filled in; its kinds are not kept */
    uint64_t unflushed_near;

    pawl_env *env;
    pawl_allocator counting; /* the user's, and the figure memory_bytes */
    pawl_error error;
    struct sequencer_waiter *waiters;
    pawl_task begin;
    pawl_timer close_timer;
    void (*closed)(pawl_sequencer *s, void *arg, int status); /* not NULL: closing */
    void *closed_arg;
    _Atomic bool closing; /* the same for the pool */
    bool begun;
    bool last_flush; /* closing: what is unflushed may be written */
    bool late;       /* closing: close_timeout has passed */
    int refused;     /* why the recovery was; PAWL_OK if it was not */
};

static inline enum pawl_sequencer_state sequencer_state(const pawl_sequencer *s)
{
    return (enum pawl_sequencer_state)atomic_load_explicit(&s->status, memory_order_relaxed);
}

/* sequencer.c: the one place where the status changes. */
void sequencer_move(pawl_sequencer *s, enum pawl_sequencer_state to);

/* Forget the open event and the staged ones; their records are as they are. */
void sequencer_forget_events(pawl_sequencer *s);

/* Read a workspace into the table: durable, of all its sequences (T1). Errors:
 * PAWL_ENOMEM, and those of read_numbers; then nothing has changed, save that another may have been evicted. */
int sequencer_load(pawl_sequencer *s, uint64_t wsid, const struct kind *kind, struct record **ret_record,
                   pawl_error *error);

/* From here on numbers may be given: the next one is the one after durable, or the sequence's first. */
void record_settle(struct record *record, const struct kind *kind);

/* These places of a record have values that the view lacks: bits, in the given word of them. */
void flusher_mark(pawl_sequencer *s, struct record *record, uint32_t word, uint64_t bits);

/* One event more is finished. */
void flusher_gather(pawl_sequencer *s);

void flusher_init(pawl_sequencer *s);
/* Write what there is, unless a write is under way or waits. */
void flusher_kick(pawl_sequencer *s);

/* What is dirty becomes rows, to be written with this offset; what was in rows is in the view. */
void flusher_collect(pawl_sequencer *s, uint64_t upto);
void flusher_written(pawl_sequencer *s);
void flusher_count_time(pawl_sequencer *s, pawl_instant began);

/* Forget everything that is not under way. */
void flusher_drop(pawl_sequencer *s);
bool flusher_has_work(const pawl_sequencer *s);

void actualizer_init(pawl_sequencer *s);

/* Recover, as soon as the flusher's write is over; it calls again then. The status is RECOVERING. */
void actualizer_run(pawl_sequencer *s);

/* lifetime.c: tell the waiters. */
void sequencer_tell(pawl_sequencer *s, int status);

/* Closing: a step was made; go on, or end. Nothing may touch the sequencer after it. */
void sequencer_close_step(pawl_sequencer *s);

/* For the engine, on the shard. wait calls back once, at once if it is known already; unwait before that takes
 * the waiter back. close calls back when nothing is under way any more (PAWL_OK, or PAWL_ETIMEOUT if the last
 * write was not made), and release, on any thread, frees. */
void sequencer_wait(pawl_sequencer *s, struct sequencer_waiter *waiter);
void sequencer_unwait(pawl_sequencer *s, struct sequencer_waiter *waiter);
void sequencer_close(pawl_sequencer *s, void (*closed)(pawl_sequencer *s, void *arg, int status), void *arg);
void sequencer_release(pawl_sequencer *s);

static inline pawl_duration delay_doubled(pawl_duration delay, const pawl_sequencer_options *options)
{
    if (delay == 0)
        return options->retry_min;
    return delay > options->retry_max / 2 ? options->retry_max : 2 * delay;
}

#endif
