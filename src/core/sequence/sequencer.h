/* core/sequence/sequencer.h: the parts of a sequencer, and what its files ask of each other.
 *
 *     sequencer.c    the calls: start, next, stage, flush, cancel, actualize; the state machine
 *     table.c        the workspaces in memory            kinds.c      which sequences they have
 *     flusher.c      changed values to the storage       actualizer.c the log's tail into memory and storage
 *     lifetime.c     new, recovered, close               ready.c      telling who was answered PAWL_EBUSY
 *
 * Everything runs on the sequencer's shard, save the two works, which run in the pool: the flusher's work
 * touches only the rows it was given; the actualizer's may touch everything, because the shard touches nothing
 * while the sequencer recovers. The env orders what a work does and what the shard does.
 *
 * Invariants
 *   S1  offset_given = offset_flushed + staged events + (1 if an event is open).
 *   S2  unflushed = the rows that gather, and those of the write under way or to be retried.
 *   S3  A row in a write is of durable events only. The offset written with it is at least that of the last
 *       event which it covers, but in the middle of a recovery it is the one that was there before.
 *       offset_stored is never above offset_flushed.
 *   S4  At most one work is under way: the flusher's while READY or EVENTING or closing, the actualizer's while
 *       RECOVERING.
 *   S5  A workspace that has a number in the storage has its kind there too, unless the options say that kinds
 *       are kept elsewhere, or the storage was written before kinds were. */
#ifndef CORE_SEQUENCE_SEQUENCER_H
#define CORE_SEQUENCE_SEQUENCER_H

#include <assert.h>

#include "base/map.h"
#include "base/ring.h"
#include "core/sequence/figures.h"
#include "core/sequence/table.h"
#include "port/env.h"

/* The event between start and its end. */
struct open_event {
    struct record *record;   /* NULL: of workspace 0, or nothing was asked of a workspace that is not cached */
    const struct kind *kind; /* NULL: workspace 0 */
    uint64_t wsid;
    uint64_t *before;                          /* by place, where touched: what was given before */
    uint64_t touched[PAWL_SEQUENCES_MAX / 64]; /* a bit a place: whether it gave a number to this event */
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
    pawl_sequence_row *gathered; /* the batch that gathers: what durable events gave and the storage lacks */
    uint32_t gathered_count;
    uint32_t room;           /* of each of the two */
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
    pawl_timer timer;  /* before a retry */
    struct map asides; /* numbers of the log that no kind knows, or that the storage is ahead of */
    uint64_t *numbers; /* a workspace's, as the storage reads them */
    uint64_t stored;   /* the offset that the storage had when the recovery began */
    uint64_t last;     /* the last event that was taken whole */
    int refusal;       /* why an event of this scan was not taken; PAWL_OK if all were */
    pawl_error refusal_words;
    bool busy;
    pawl_duration delay;
    pawl_instant began;
    int status;
    pawl_error error;
};

/* Those who want to know when start is worth another try, in the order in which they came. */
struct ready {
    pawl_sequencer_waiter *first;
    size_t count;
    pawl_timer timer; /* of no delay: to tell them from the loop */
};

/* Somebody who waits for the recovery: PAWL_OK; PAWL_ECORRUPT, if it never succeeds; PAWL_ECLOSED. */
struct sequencer_waiter {
    void (*fn)(struct sequencer_waiter *waiter, int status);
    struct sequencer_waiter *next;
};

struct pawl_sequencer {
    _Atomic uint32_t status; /* enum pawl_sequencer_state; written on the shard */
    struct open_event open;
    struct table table;
    struct kinds kinds;
    struct sequencer_figures figures;
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
    struct ready ready;
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

/* Read a workspace into the table: given, of all its sequences (T1). Errors: other_kind, if the storage says
 * that it is of another kind; PAWL_ENOMEM, and those of read_numbers. Then nothing has changed, save that
 * another may have been evicted. */
int sequencer_load(pawl_sequencer *s, uint64_t wsid, const struct kind *kind, int other_kind,
                   struct record **ret_record, pawl_error *error);

/* From here on numbers may be given: the next is given + 1, or the sequence's first. */
void record_settle(struct record *record, const struct kind *kind);

void flusher_init(pawl_sequencer *s);

/* A row that says of what kind the workspace is: with the first rows of its numbers. */
void flusher_put_kind(pawl_sequencer *s, struct record *record);

/* Write the gathered rows, unless a write is under way or waits to be retried. */
void flusher_kick(pawl_sequencer *s);

/* Take the gathered rows, to be written with this offset; the write has succeeded. */
void flusher_collect(pawl_sequencer *s, uint64_t upto);
void flusher_written(pawl_sequencer *s);
void flusher_count_time(pawl_sequencer *s, pawl_instant began);

/* Forget everything that is not under way. */
void flusher_drop(pawl_sequencer *s);
bool flusher_has_work(const pawl_sequencer *s);

/* Events have gathered: the first, so that the interval begins, or so many that it may be time to write. */
void flusher_due(pawl_sequencer *s);

/* One event more is finished. */
static inline void flusher_gather(pawl_sequencer *s)
{
    uint64_t events = ++s->flusher.events;
    if (events == 1 || events >= s->options.limits.flush_events
        || figure_get(&s->figures.unflushed) >= s->unflushed_near)
        flusher_due(s);
}

/* Putting the numbers of a durable event into rows: begin, put each, end. What it needs of the sequencer is
 * held in between, because the compiler cannot know that storing a row changes none of it. */
struct putter {
    pawl_sequence_row *gathered;
    uint64_t wsid;
    uint32_t *rows; /* the record's, by place */
    const uint16_t *seqs;
    struct record *record;
    uint32_t count; /* of gathered */
    uint32_t room;
    bool known; /* the record is in the batch already, so some of its rows may be of it */
};

static inline struct putter flusher_begin(const pawl_sequencer *s, struct record *record,
                                          const struct kind *kind)
{
    return (struct putter){.gathered = s->flusher.gathered,
                           .wsid = record->wsid,
                           .rows = record_rows(record, kind),
                           .seqs = kind->seqs,
                           .record = record,
                           .count = s->flusher.gathered_count,
                           .room = s->flusher.room,
                           .known = record->batch == s->table.batch};
}

/* A row of the record's may still be of an older batch, so the row in the batch must say whose it is. */
static inline void flusher_put(struct putter *putter, uint32_t place, uint64_t number)
{
    uint16_t seq = putter->seqs[place];
    uint32_t at = putter->rows[place] - 1;
    if (putter->known && at < putter->count && putter->gathered[at].wsid == putter->wsid
        && putter->gathered[at].seq == seq) {
        putter->gathered[at].number = number;
        return;
    }
    assert(putter->count < putter->room);
    putter->gathered[putter->count] = (pawl_sequence_row){putter->wsid, number, seq};
    putter->rows[place] = ++putter->count;
}

static inline void flusher_end(pawl_sequencer *s, const struct putter *putter)
{
    uint32_t fresh = putter->count - s->flusher.gathered_count;
    if (fresh == 0)
        return;
    putter->record->batch = s->table.batch; /* T4 */
    s->flusher.gathered_count = putter->count;
    figure_add(&s->figures.unflushed, fresh);
    if (!putter->record->known)
        flusher_put_kind(s, putter->record);
}

/* A kind as a number of the storage: 0 is none. */
static inline uint64_t kind_number(uint16_t kind)
{
    return (uint64_t)kind + 1;
}

void actualizer_init(pawl_sequencer *s);

/* Recover, as soon as the flusher's write is over; it calls again then. The status is RECOVERING. */
void actualizer_run(pawl_sequencer *s);

/* ready.c. Look whether those who wait can be told; tell all of them now that it never will be ready. */
void ready_init(pawl_sequencer *s);
void ready_look(pawl_sequencer *s);
void ready_tell_all(pawl_sequencer *s, int status);

/* lifetime.c: what a sequencer that has ended has counted, added to what others have; no gauges. */
void sequencer_figures_keep(pawl_sequencer_figures *sum, const pawl_sequencer_figures *ended);

/* Put defaults in place of zeros. PAWL_EINVAL: one is out of its bounds; error names it. */
int sequencer_limits_fill(pawl_sequencer_limits *limits, pawl_error *error);

/* The recovery is over, or will never be: tell those who wait for it, and look at the others. */
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

static inline pawl_duration delay_doubled(pawl_duration delay, const pawl_sequencer_limits *limits)
{
    if (delay == 0)
        return limits->retry_min;
    return delay > limits->retry_max / 2 ? limits->retry_max : 2 * delay;
}

#endif
