/* sequencer.h: numbers without gaps.
 *
 * A sequencer numbers the events of one log. Each event gets the log's next offset, and as many further numbers
 * as it needs from the sequences of the workspace (the tenant) that it belongs to: the workspace's own offset,
 * record IDs, invoice numbers. Every sequence is dense: 1, 2, 3, ..., no gap and no number twice, whatever
 * fails, because a number counts as used only when an event that carries it is durable in the log.
 *
 * Giving a number touches memory only and takes some ten nanoseconds. The last numbers are written in the
 * background to a storage of yours (the *sequence storage*). After a crash the sequencer reads the log from the
 * offset that the storage has, so that it is ready after a time that depends on that tail alone.
 *
 * The cycle
 *
 *     start ──► next, next, ... ──► write the event to your log ──┬─ durable ──► flush
 *       ▲                                                         ├─ not sent ─► cancel: its numbers come again
 *       └─────────────────────────────────────────────────────────┴─ who knows ► actualize: the log is read
 *
 *     uint64_t offset, invoice;
 *     pawl_sequencer_start(s, KIND_SHOP, tenant, &offset);
 *     pawl_sequencer_next(s, SEQ_INVOICE, &invoice);
 *     if (append_and_sync(log, offset, tenant, invoice))
 *         pawl_sequencer_flush(s, offset);
 *     else
 *         pawl_sequencer_actualize(s);
 *
 * The pipelined cycle: stage closes the open event and lets the next one start before the first is durable.
 * flush(upto) then finishes all staged events up to that offset, as one sync of the log does for many.
 *
 *     start next stage   start next stage   start next stage   ── one write, one sync ──►   flush(last)
 *
 * States
 *
 *               new               the log is read              start
 *      NONE ──────────► RECOVERING ──────────────► READY ─────────────────► EVENTING
 *                           ▲                      │   ◄──────────────────      │
 *                           │      actualize       │    stage, flush, cancel    │
 *                           └──────────────────────┴────────────────────────────┘
 *      FINISHED: from any of them, once free has begun or the recovery was refused (PAWL_ECORRUPT).
 *
 * Misuse answers PAWL_EMISUSE and changes nothing:
 *     start       while an event is open; of an unknown workspace kind, or of another than before if the
 *                 workspace is cached
 *     next        with no event open, or with one of workspace 0: a system event takes its offset only;
 *                 with one whose workspace is of another kind, as the storage says. Cancel the event then.
 *     stage       with no event open
 *     cancel      with no event open
 *     flush       with nothing open and nothing staged; above the last staged offset; below the last flushed.
 *                 With an event open and nothing staged, flush(its offset) stages and finishes it.
 *     actualize   with nothing open and nothing staged
 *     anything    after free has begun
 *
 * Threads. A sequencer lives on a shard of an env (pawl/env.h): start, next, stage, flush, cancel, actualize,
 * prefetch, when_ready, unwait and error are called there, for instance by pawl_env_run. state_get and
 * figures_get are for any thread, at any time, and take no lock. new, wait and free are for any thread outside
 * the env's shards.
 *
 * Ownership. The options are copied, the kinds and their sequences too. The env, the allocator and the
 * storage's ctx are borrowed until free has returned.
 *
 * Caveats
 *   - Be the one writer of the log. Two sequencers over one log give numbers twice; the log must fence the
 *     second.
 *   - Between start and the event's end (flush, stage, cancel, actualize) its numbers are promises, not facts:
 *     show them to nobody before the event is durable.
 *   - flush says that the event is durable in *your log*. Saying so of one that is not breaks density at the
 *     next crash.
 *   - After actualize the log is the truth: an event that did arrive after all keeps its numbers.
 *   - The cache drops what was not used for long, by second chance: nearly, not exactly, the least recently
 *     used. */
#ifndef PAWL_SEQUENCER_H
#define PAWL_SEQUENCER_H

#include <pawl/env.h>
#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_sequencer pawl_sequencer;

/* A sequence of the workspaces of one kind. */
typedef struct pawl_sequence {
    uint16_t seq;   /* its name, as a number; not 0, see PAWL_SEQUENCE_KIND */
    uint64_t first; /* the first number it gives; 0: 1 */
    uint64_t end;   /* the last number it gives; 0: no end before 2^64 - 1 */
} pawl_sequence;

#define PAWL_SEQUENCES_MAX 4096 /* of one kind */

/* No sequence has this name. In the storage it stands for the workspace's kind, its number for the kind plus
 * one. */
#define PAWL_SEQUENCE_KIND 0

typedef struct pawl_workspace_kind {
    uint16_t kind;
    const pawl_sequence *sequences;
    size_t count;
} pawl_workspace_kind;

/* A row of the sequence storage: the last number of a sequence of a workspace that a durable event has; or,
 * once a workspace, its kind. Its key is (wsid, seq). */
typedef struct pawl_sequence_row {
    uint64_t wsid;
    uint64_t number;
    uint16_t seq;
} pawl_sequence_row;

/* What an event of the log says of numbers: of each sequence that it took numbers from, the last. */
typedef struct pawl_sequence_number {
    uint16_t seq;
    uint64_t number;
} pawl_sequence_number;

typedef struct pawl_sequence_event {
    uint64_t offset;
    uint64_t wsid; /* 0: a system event; it has no numbers */
    uint16_t
        kind; /* of the workspace. An unknown one, or an unknown seq below, is kept too: in the storage only */
    const pawl_sequence_number *numbers;
    size_t count;
} pawl_sequence_event;

/* Takes events of the log, in their order, any number at a time; borrows them until it returns. Anything but
 * PAWL_OK ends the scan: return it. */
typedef struct pawl_sequence_batcher {
    int (*take)(struct pawl_sequence_batcher *batcher, const pawl_sequence_event *events, size_t count);
} pawl_sequence_batcher;

/* Where the numbers are kept, and the log that they come from: your database. The functions block. One that
 * fails returns a code of pawl/status.h, and may put words into error, which is never NULL: error->code must
 * then be that code, because words without a code are not kept. None is called from inside another but write
 * and read_numbers from inside scan_log's take.
 *
 * If your own writes go to the same database, use two connections: one for the thread that appends events, one
 * for these functions, with a lock around the latter. They run in the background, at any time: on one
 * connection a write of the storage would fall into a transaction of yours, be rolled back with it, or commit
 * half of it. Take the numbers before you begin your transaction: next may read the storage on your thread, and
 * would wait for a write of the storage that waits for you.
 *
 * read_numbers runs on the thread that called pawl_sequencer_next, and during recovery on a thread of the pool;
 * the other three run on threads of the pool, one at a time. So read_numbers may run while a write is under
 * way, but never for a workspace which that write is about.
 *
 * A failure of next's read is next's answer. In the background any failure is retried, after a delay that
 * doubles, until it succeeds or free is called; but PAWL_ECORRUPT from read_last_offset or scan_log ends the
 * recovery for good. */
typedef struct pawl_sequence_storage {
    void *ctx;

    /* The storage's number of each of these sequences of a workspace, 0 for what it does not have. */
    int (*read_numbers)(void *ctx, uint64_t wsid, const uint16_t *seqs, size_t count, uint64_t *ret_numbers,
                        pawl_error *error);

    /* The last offset that was written; 0: none. */
    int (*read_last_offset)(void *ctx, uint64_t *ret_last, pawl_error *error);

    /* Put these rows, each replacing what is there, and then the offset: either all at once, or so that whoever
     * finds the offset after a crash finds the rows too. count may be 0: the offset is written all the same.
     * A recovery writes the old offset with the new rows, until it has judged the whole log.
     * No two rows have the same key. When a write fails it is not known what it did; the same or a later one
     * follows. */
    int (*write_values_and_offset)(void *ctx, const pawl_sequence_row *rows, size_t count, uint64_t last,
                                   pawl_error *error);

    /* Give every event above an offset to the batcher, and say what the log's last offset is; 0: it is empty.
     * The last offset is the log's own, also if nothing is above the offset that was asked for: a smaller one
     * means that the log has lost events, and is refused. If take returns anything but PAWL_OK, return that.
     * The scan has failed then, also if this function says PAWL_OK. */
    int (*scan_log)(void *ctx, uint64_t after, pawl_sequence_batcher *batcher, uint64_t *ret_last,
                    pawl_error *error);
} pawl_sequence_storage;

/* How much is kept in memory, and when it is written. Zero means the default. A count whose name ends
 * in _max or _batch is at most 2^28. */
typedef struct pawl_sequencer_limits {
    /* The storage is written when so many events have gathered, or so much time has passed since the first of
     * them, or three quarters of the values that may be unflushed are. */
    uint32_t flush_events;        /* 100 */
    pawl_duration flush_interval; /* 500 ms */

    uint32_t unflushed_max;      /* 65536 values, kinds too, that the storage lacks; then start is busy */
    uint32_t staged_max;         /* 4096 events between start and flush; then start is busy. A power of two. */
    uint32_t workspaces_max;     /* 100000 in the cache. Those with unflushed values are kept beyond it. */
    uint32_t recovery_batch;     /* 65536 values that recovery gathers before it writes them */
    pawl_duration retry_min;     /* 10 ms: the delay after the first failure; at most retry_max */
    pawl_duration retry_max;     /* 1 s: where doubling it ends */
    pawl_duration close_timeout; /* 5 s: how long free tries to write what is unflushed */
} pawl_sequencer_limits;

/* Zero means the default, of everything that has one. */
typedef struct pawl_sequencer_options {
    pawl_env *env;
    uint32_t shard;
    pawl_sequence_storage storage;
    const pawl_workspace_kind *kinds;
    size_t kind_count;

    /* A workspace keeps its kind for ever: kinds may share sequences, and a workspace that changed its kind
     * would bring numbers twice. So the storage keeps the kind of each workspace, in a row of its own, and
     * another one is refused. True: you keep the kinds elsewhere, and never give a workspace another one. Then
     * the storage has no such rows, and nothing is checked but what is cached. */
    bool kinds_elsewhere;

    pawl_sequencer_limits limits;
    const pawl_allocator *allocator; /* NULL: the C library's */
} pawl_sequencer_options;

typedef enum pawl_sequencer_state {
    PAWL_SEQUENCER_NONE,
    PAWL_SEQUENCER_RECOVERING,
    PAWL_SEQUENCER_READY,
    PAWL_SEQUENCER_EVENTING,
    PAWL_SEQUENCER_FINISHED,
} pawl_sequencer_state;

/* Each number is true of some moment; together they need not be of the same one. */
typedef struct pawl_sequencer_figures {
    pawl_sequencer_state state;

    /* Gauges. offset_given >= offset_flushed >= offset_stored while ready. */
    uint64_t offset_given;   /* the last that start gave, and that was not given back */
    uint64_t offset_flushed; /* the last that is known durable in the log */
    uint64_t offset_stored;  /* the last that the storage has */
    uint64_t staged;         /* events staged and not yet flushed */
    uint64_t unflushed;      /* values changed by flushed events that the storage does not have */
    uint64_t workspaces;     /* in the cache */
    uint64_t memory_bytes;   /* all that the sequencer has allocated */

    /* Counters, since new. */
    uint64_t cache_hits;       /* starts of events whose workspace was cached */
    uint64_t cache_misses;     /* workspaces read from the storage for an event */
    uint64_t evictions;        /* workspaces dropped from the cache */
    uint64_t busy;             /* starts refused with PAWL_EBUSY */
    uint64_t flushes;          /* writes to the storage that succeeded, those of recovery too */
    uint64_t flush_failures;   /* and that failed */
    uint64_t rows_written;     /* by the former */
    uint64_t flush_ns_total;   /* time that the former took, in all, */
    uint64_t flush_ns_last;    /* the last one, */
    uint64_t flush_ns_max;     /* and the longest */
    uint64_t recoveries;       /* that succeeded, the first one too */
    uint64_t recovery_retries; /* attempts that failed and were, or will be, made again */
    uint64_t recovery_ns_last; /* from its beginning to ready, failed attempts included */
    uint64_t events_replayed;  /* events of the log that recoveries read */
} pawl_sequencer_figures;

/* Several sequencers as one. Of flush_ns_last, flush_ns_max and recovery_ns_last the longest is kept, the state
 * stays that of to, and all others are added. Begin with figures that are zero. */
PAWL_API void pawl_sequencer_figures_add(pawl_sequencer_figures *to, const pawl_sequencer_figures *more);

/* Make a sequencer and let it begin to recover; it is ready later (wait).
 * Errors: PAWL_EINVAL (no such shard; a missing function; a limit out of range; a kind or a sequence twice, a
 * first above its end, more than PAWL_SEQUENCES_MAX; error names it), PAWL_ENOMEM, PAWL_ECLOSED (the env is).
 * From any thread, the shard's own too. */
PAWL_API int pawl_sequencer_new(const pawl_sequencer_options *options, pawl_sequencer **ret_sequencer,
                                pawl_error *error);

/* Wait until it is ready. Any thread that is not of the env.
 * Errors: PAWL_ETIMEOUT (error says what recovery last stumbled over), PAWL_ECORRUPT (a value or an offset of
 * the storage is ahead of the log; error names both), PAWL_ECLOSED (free has begun), PAWL_EMISUSE (from a shard
 * of the env). */
PAWL_API int pawl_sequencer_wait(pawl_sequencer *sequencer, pawl_duration timeout, pawl_error *error);

/* Somebody who wants to be told when start is worth another try. Put it into a struct of your own, and set fn.
 */
typedef struct pawl_sequencer_waiter pawl_sequencer_waiter;
struct pawl_sequencer_waiter {
    void (*fn)(pawl_sequencer_waiter *waiter, int status);
    pawl_sequencer_waiter *next; /* the sequencer's, while it waits */
};

/* Call waiter->fn once, when start would accept an event of any workspace: the log is read, there is room for
 * values and for staged events, and no event is open. That may be so already.
 *
 *     start ── PAWL_EBUSY ──► when_ready ── ... ──► fn(waiter, PAWL_OK): start again
 *
 * fn is called on the shard, from its loop: never from inside this or another call of the sequencer but free.
 * Those who wait are called in their order, each as long as there is room; still start may be busy again, if
 * others came first, and then wait again. fn may call everything that is called on the shard. Borrows the
 * waiter until fn is called; from then on it is the caller's, who may free it or wait with it again.
 *
 * fn's status: PAWL_OK; PAWL_ECORRUPT (the recovery was refused, it never will be ready: pawl_sequencer_error
 * says why); PAWL_ECLOSED (free has begun; free does not return before fn has).
 * On the shard. Errors: PAWL_EMISUSE (free has begun): fn is not called. */
PAWL_API int pawl_sequencer_when_ready(pawl_sequencer *sequencer, pawl_sequencer_waiter *waiter);

/* Take a waiter back: fn will not be called. False: it does not wait, or not any more. On the shard. */
PAWL_API bool pawl_sequencer_unwait(pawl_sequencer *sequencer, pawl_sequencer_waiter *waiter);

/* Open an event of a workspace, and give it the log's next offset. For workspace 0 the kind is ignored.
 * Errors: PAWL_EMISUSE; PAWL_EBUSY (below); PAWL_ECORRUPT (recovery was refused); PAWL_EEXHAUSTED (offsets end
 * at 2^64 - 1).
 *
 * What ends PAWL_EBUSY depends on its reason; pawl_sequencer_error says which it is.
 *     recovering               the log is read, in the background
 *     unflushed_max reached    the storage is written, in the background; it stays as long as that fails
 *     staged_max reached       your own flush, or actualize: nothing in the background helps
 * pawl_sequencer_when_ready tells you of all three. */
PAWL_API int pawl_sequencer_start(pawl_sequencer *sequencer, uint16_t ws_kind, uint64_t wsid,
                                  uint64_t *ret_offset);

/* Events of these workspaces will start soon: fetch what is known of them from memory meanwhile. Changes
 * nothing but the time that start takes, and that only with tens of thousands of workspaces, too many for the
 * processor's caches. For a caller with a mailbox: 8 to 32 at a time, before the first of them starts; what is
 * beyond the 32nd, or not cached, is ignored. On the shard, at any time. */
PAWL_API void pawl_sequencer_prefetch(const pawl_sequencer *sequencer, const uint64_t *wsids, size_t count);

/* The next number of a sequence of the open event's workspace. The first number of a workspace that is not in
 * the cache reads all of its sequences from the storage.
 * Errors: PAWL_EMISUSE, PAWL_EUNKNOWN_SEQ, PAWL_EEXHAUSTED, PAWL_ENOMEM, and those of read_numbers. The event
 * stays open and nothing is consumed. */
PAWL_API int pawl_sequencer_next(pawl_sequencer *sequencer, uint16_t seq, uint64_t *ret_number);

/* Close the open event without knowing yet whether it will be durable. Errors: PAWL_EMISUSE. */
PAWL_API int pawl_sequencer_stage(pawl_sequencer *sequencer);

/* All events up to this offset are durable in the log. Flushing the last flushed offset again changes nothing.
 * Errors: PAWL_EMISUSE. */
PAWL_API int pawl_sequencer_flush(pawl_sequencer *sequencer, uint64_t upto);

/* The open event will not be: its offset and its numbers are given back. Staged ones are as before.
 * Errors: PAWL_EMISUSE. */
PAWL_API int pawl_sequencer_cancel(pawl_sequencer *sequencer);

/* What the log holds may differ from what was staged: forget all that is not known durable, and recover. The
 * next start gives the offset after the log's last. A log that ends before what was flushed is refused
 * (PAWL_ECORRUPT, from start). Errors: PAWL_EMISUSE. */
PAWL_API int pawl_sequencer_actualize(pawl_sequencer *sequencer);

PAWL_API pawl_sequencer_state pawl_sequencer_state_get(const pawl_sequencer *sequencer);
PAWL_API void pawl_sequencer_figures_get(const pawl_sequencer *sequencer, pawl_sequencer_figures *ret_figures);

/* The words for the last call on the shard, or attempt in the background, that failed. Borrowed until the next
 * call. Never NULL; its code is 0 if nothing has failed. */
PAWL_API const pawl_error *pawl_sequencer_error(const pawl_sequencer *sequencer);

/* Finish: an open event and staged ones are forgotten, what is unflushed is written within close_timeout, and
 * everything is freed. Waits for a call of the storage that is under way, however long that takes; a scan is
 * ended at its next take. Any thread that is not of the env; no other call may begin once this one has, save on
 * the shard, where it is refused. NULL is allowed.
 * Errors: PAWL_ETIMEOUT (the storage was not written in time. It is freed all the same, and nothing is lost:
 * the log has it, and the next recovery reads that much more), PAWL_EMISUSE (from a shard of the env) and
 * PAWL_ECLOSED (the env is closed): then it is not freed. */
PAWL_API int pawl_sequencer_free(pawl_sequencer *sequencer);

#ifdef __cplusplus
}
#endif
#endif
