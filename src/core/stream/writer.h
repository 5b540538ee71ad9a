/* core/stream/writer.h: the one writer of a stream of the log, and the store that follows the stream.
 *
 *     user ── stages entries ──► batch ── send ──► log ── durable ──► applier ──► store ──► applied
 *                                                   │ failed, or nobody knows
 *                                                   ▼
 *                              undo ─► drain ─► claim the stream again ─► catch up ─► prepare ─► run
 *
 * A partition's processor writes events with it, and a lane writes operations: each is a user. A user knows
 * what an entry means. It stages entries into batches and sends them; the writer finds out what became of them,
 * and calls the user back (struct writer_ops) to apply or to undo them. A writer lives on one shard: all calls
 * and all callbacks are made there.
 *
 *                  claimed                 read all               writer_ready
 *     CLAIMING ─────────────► CATCHING_UP ──────────► PREPARING ────────────────► RUNNING
 *      ▲ │  ▲                    │   ▲                 │  ▲  ▲                       │
 *      │ └──┘ tried again        └───┘ read on,        └──┘  │ nothing was lost      │ a batch was lost,
 *      │      after a while            or tried again        │                       │ or writer_drain
 *      │                                                     │                       ▼
 *      └─────────────────────────────────────────────────────┴─────────────────── DRAINING
 *
 *     CLAIMING      it becomes the stream's one writer. From then on nothing that was sent before can appear.
 *     CATCHING_UP   it checks that the store is a prefix of this log, then reads what the store lacks and has
 *                   that replayed. It learns the fate of lost entries here.
 *     PREPARING     the user prepares whatever it needs, and says writer_ready.
 *     RUNNING       batches may be filled and sent.
 *     DRAINING      it waits until no batch is SENT or DURABLE.
 *     REFUSED       store and log contradict each other, the stream was taken by another node (PAWL_EFENCED), or
 *                   the user called writer_refuse or writer_give_up. For good.
 *     CLOSED        writer_close was called. From any state.
 *
 * A batch:
 *
 *     FREE ─► FILLING ─► SENT ─┬─► DURABLE ─► FREE      applied
 *                              └─► LOST ────► FREE      undone at once; free when all fates are known
 *
 * Invariants
 *   W1  Batches are sent in the order in which they were filled, each whole, and their entries have the next
 *       offsets of the stream. At most one batch is FILLING, and it is the last.
 *   W2  When a batch was lost, every batch that is not durable by then is lost too, whatever the log says about it:
 *       until the stream is claimed again, and read up to the claim.
 *   W3  Each batch that was staged into ends with exactly one of applied and undo. undo comes before the batch
 *       is used again, and before the stream is claimed again.
 *   W4  For one batch: sent, then durable, then applied; or sent, then undo. The first three come to batches in
 *       the order of sending. A batch may be undone while one before it waits for the store, or for the log: if the
 *       log did not take it, that is known at once.
 *   W5  The fate of a lost entry is told only when the log was claimed again and read: as far as that entry,
 *       or to the end.
 *   W6  It is RUNNING only if the store has every entry of the log, but for those of its own batches.
 *   W7  closed is called once, by a turn of the loop of its own, and nothing comes back to the writer then.
 *
 * A callback may call code of others (an answer, a finished run). So each may call writer_close, writer_drain
 * and writer_pause; only run may call writer_fill and writer_send, and only prepare what is for PREPARING. */
#ifndef CORE_STREAM_WRITER_H
#define CORE_STREAM_WRITER_H

#include "core/stream/applier.h"
#include "core/stream/copies.h"

enum writer_state {
    WRITER_CLAIMING,
    WRITER_CATCHING_UP,
    WRITER_PREPARING,
    WRITER_RUNNING,
    WRITER_DRAINING,
    WRITER_REFUSED,
    WRITER_CLOSED,
};

enum batch_state { BATCH_FREE, BATCH_FILLING, BATCH_SENT, BATCH_DURABLE, BATCH_LOST };

/* What became of an entry of a lost batch. */
enum writer_fate {
    FATE_WRITTEN,     /* the log has it, and the store too */
    FATE_NOT_WRITTEN, /* and it never will be */
    FATE_UNKNOWN,     /* the writer was refused or closed before it was found out */
};

struct writer;

struct writer_batch {
    struct apply_item item;
    struct writer *writer;
    enum batch_state state;
    struct writer_batch *next; /* in the order in which they were filled */
    uint32_t index;            /* among the writer's batches: for what a user keeps beside it */
    struct arena memory;       /* for what is staged; reset when the batch is free */
    pawl_append append;
    pawl_append_entry *entries;
    void *staged; /* the user's, staged_size for each entry */
    size_t count;
    size_t bytes;
    size_t settled;       /* of a lost batch: how many entries' fate was told */
    pawl_instant durable; /* when it became durable */
    pawl_error error;
};

/* Whether the rows of a batch were put ahead. */
static inline bool batch_is_put(const struct writer_batch *batch)
{
    return batch->item.ahead_state == APPLY_PUT;
}

/* How far the store has come. */
struct writer_position {
    uint64_t offset;   /* of the last entry that it has; 0: none */
    pawl_place place;  /* of that entry */
    uint64_t checksum; /* of its body */
};

/* The user's part. Those that may be NULL say so. */
struct writer_ops {
    /* --- the store --- */

    /* Where the store stands. again: read it from the store, because a transaction failed. Otherwise the user
     * has it at hand, and this cannot fail. */
    int (*position)(void *ctx, bool again, struct writer_position *ret_position, pawl_error *error);

    /* Apply entries of the log that the store lacks, all of them, with the position, by one applier_write.
     * memory is for this call. After an error the writer asks for the position again. PAWL_ECORRUPT,
     * PAWL_EVERSION, PAWL_EINVAL, PAWL_ETOOBIG: it can never be done, and the writer is refused. After any
     * other error the writer tries again. */
    int (*replay)(void *ctx, const struct copied_entry *entries, struct arena *memory, pawl_error *error);

    /* --- a batch --- */

    /* Put the rows of a batch, and nothing else, into the store's transaction, while the log syncs it. PAWL_ECANCELED: not
     * this one. NULL: of none. If the transaction is aborted, write finds them not put: batch_is_put. */
    int (*ahead)(void *ctx, struct writer_batch *batch, pawl_store *store);

    /* The log has it for good. May be NULL. */
    void (*durable)(void *ctx, struct writer_batch *batch);

    /* As in struct apply_item. write: put the rows, if they are not ahead, and the position, into the store's transaction. unwrite:
     * the transaction was aborted; write will be called again. late: another attempt has failed (may be
     * NULL). */
    int (*write)(void *ctx, struct writer_batch *batch, pawl_store *store);
    void (*unwrite)(void *ctx, struct writer_batch *batch);
    void (*late)(void *ctx, struct writer_batch *batch);

    /* The store has it for good. The batch is free when this returns. */
    void (*applied)(void *ctx, struct writer_batch *batch);

    /* It will not be applied as it was staged: take back what staging did. Its state says what
     * happened:
     *     LOST      It was sent. A status of an entry other than PAWL_OK and PAWL_EUNKNOWN says that this
     *               entry was certainly not written; fate tells of the others.
     *     FILLING   It was never sent.
     *     DURABLE   It was sent, and the writer is closed before the store could be written. It is applied when
     *               the stream is opened again. */
    void (*undo)(void *ctx, struct writer_batch *batch);

    /* What became of an entry of a LOST batch; once for each, in order. May be NULL. */
    void (*fate)(void *ctx, struct writer_batch *batch, size_t index, enum writer_fate fate);

    /* --- the states --- */

    /* The writer has a new state; from is the one before. May be NULL. */
    void (*moved)(void *ctx, enum writer_state from);

    /* Something failed, and the writer will try again in a while. Its error says what. May be NULL. */
    void (*will_retry)(void *ctx);

    /* The writer is DRAINING, and no batch is under way. False: the user itself has something under way, and
     * will call writer_step when that is over. NULL: the user has nothing of its own. */
    bool (*drained)(void *ctx);

    /* PREPARING: nothing is staged. Prepare, and call writer_ready, writer_retry or writer_refuse: here, or
     * later. Called again for every writer_step. */
    void (*prepare)(void *ctx);

    /* RUNNING, and there may be something to do: it has begun, or a batch is free again, or a pause is over. */
    void (*run)(void *ctx);

    /* The writer is CLOSED and has nothing under way. False: the user itself has something under way, and will
     * call writer_step when that is over. */
    bool (*end)(void *ctx);
};

struct writer_options {
    pawl_env *env;
    uint32_t shard;
    pawl_log *log;
    struct applier *applier; /* the shard's */
    pawl_stream stream;
    uint64_t assignment; /* its position in group0: claims rest on it, and a stream that was lost to an
                            assignment that is not older is not claimed again. 0: none */
    const struct writer_ops *ops;
    void *ctx;
    uint32_t batches;     /* between filled and applied */
    size_t batch_entries; /* of one batch, at most */
    size_t staged_size;   /* what the user keeps for each entry */
    size_t memory_chunk;  /* of a batch's arena */
    const pawl_allocator *allocator;
};

struct writer {
    struct writer_options options;
    enum writer_state state;
    pawl_error error; /* why it is not running: words for those who wait */
    struct writer_batch *batches;
    struct writer_batch *first; /* not FREE, in order */
    struct writer_batch **last;
    uint64_t failures; /* how often batches were lost; all that were lost together count once */
    int cause;         /* why the first batch was lost; PAWL_OK: none was since it last caught up */
    pawl_instant lost; /* and when */

    pawl_timer pause;
    bool pausing; /* no batch is filled or sent until the pause is over; then run is called */

    pawl_claim claim;
    bool claiming;
    uint64_t epoch;
    uint64_t next; /* the log's next offset when it was claimed */
    pawl_timer retry;
    pawl_duration retry_delay;
    bool retrying;
    pawl_read read;
    bool reading;
    bool unread;   /* the known position may be wrong: a transaction of catching up failed */
    bool verified; /* the entry at the store's position was compared with the log's */
    struct copies copies;

    pawl_task step; /* a step at the loop's next turn */
    pawl_task close_task;
    void (*closed)(void *arg);
    void *closed_arg;
    bool told;     /* closed will be called by a task that is posted */
    bool given_up; /* it becomes REFUSED as soon as that is possible */
    pawl_error given_up_to;
};

/* Borrows what options point to until deinit. Nothing happens before begin. PAWL_ENOMEM: nothing needs to be
 * released. */
int writer_init(struct writer *writer, const struct writer_options *options);
void writer_deinit(struct writer *writer);

/* Begin to claim, at the loop's next turn. PAWL_ECLOSED: the env is closed. */
int writer_begin(struct writer *writer);

/* Go on as far as possible now. Called when something is over that drained, prepare or end waited for. The
 * caller of writer_send may also call it afterwards; otherwise the writer goes on at the loop's next turn. */
void writer_step(struct writer *writer);

/* --- RUNNING --- */

/* The batch to go on filling: one that could not be sent, or a free one. NULL: all are under way. */
struct writer_batch *writer_fill(struct writer *writer);

/* Put an entry into a batch that is FILLING and has room for it. Borrows body until the batch is free. The user
 * sets staged[count], its own part of the entry, before. */
static inline void writer_add(struct writer_batch *batch, uint64_t offset, pawl_bytes body)
{
    batch->entries[batch->count++] = (pawl_append_entry){.entry = {.stream = batch->writer->options.stream,
                                                                   .epoch = batch->writer->epoch,
                                                                   .offset = offset,
                                                                   .body = body}};
    batch->bytes += body.size;
}

/* Send a batch that has entries. False: the log has no room; the batch stays as it is, and a pause has
 * begun. */
bool writer_send(struct writer *writer, struct writer_batch *batch);

/* Give a batch back that has no entries. */
void writer_unfill(struct writer_batch *batch);

/* The log, or what the user depends on, has no room now: call run again after this delay. */
void writer_pause(struct writer *writer, pawl_duration delay);

/* Stop, apply what was sent, and prepare again. Does nothing unless it is RUNNING. */
void writer_drain(struct writer *writer);

/* --- PREPARING --- */

/* Preparing is done: the writer is RUNNING from now on. Does nothing if it was closed meanwhile. */
void writer_ready(struct writer *writer);

/* It could not be prepared. The writer calls prepare again after a delay, which doubles with each failure up to
 * a limit. */
void writer_retry(struct writer *writer);

/* --- the end --- */

/* The writer can never run. Its error has the words. Not while DRAINING. */
void writer_refuse(struct writer *writer, int status);

/* Another node has the log: from the loop's next turn on send nothing more, and be REFUSED, with PAWL_EFENCED and these
 * words, when what is under way is over. Copies words. Does nothing if it is refused or closed already. */
void writer_give_up(struct writer *writer, const char *words);

/* Close. The writer waits for the log's answers, and writes durable batches to the store if that is possible
 * now. closed: see W7; release the writer then, or later. Call this once. */
void writer_close(struct writer *writer, void (*closed)(void *arg), void *arg);

#endif
