/* core/command/processor.h: the commands of one partition, from request to answer.
 *
 *     submit ─► queue ─► number, build, derive ─► batch ─► log ─► applier ─► done
 *                          (overlay: what is staged)  │ failed
 *                                                     ▼
 *                                     drain ─► claim ─► catch up ─► number again ─► run
 *
 * A processor lives on one shard and is called there only. It numbers and builds as many commands as are
 * waiting into a batch, sends the batch to the log, and goes on with the next while that is being synced: up to
 * batches_max at a time. What is staged is seen by what comes after, through the overlay. When a batch is
 * durable its changes go to the store with those of other partitions (core/stream/applier.h), and then the
 * answers go out, in order.
 *
 * The log is written by a writer (core/stream/writer.h), whose states are the processor's. PREPARING means
 * numbering: the sequencer reads the log's tail for itself, or another one is made for the sequences of a new
 * schema.
 *
 * Invariants
 *   P1  Events are staged in the sequencer, in the overlay and in the batches in one order; a batch is sent
 *       whole.
 *   P2  An answer that was computed while something was staged and not durable (a refusal, a repeated key)
 *       waits until that is durable; if it is lost, the command is processed again.
 *   P3  The state is a prefix of the log: its position is written with the changes, in one transaction.
 *   P4  A command whose batch failed with an unknown outcome is answered only after the log was claimed again
 *       and read up to the claim: durable and applied, or never written. If that takes too long, it is told
 *       that it is not known.
 *   P5  Nothing is numbered unless the state has every event of the log, or the overlay has. */
#ifndef CORE_COMMAND_PROCESSOR_H
#define CORE_COMMAND_PROCESSOR_H

#include <pawl/sequencer.h>

#include "core/command/window.h"
#include "core/command/workspaces.h"
#include "core/event/event.h"
#include "core/sequence/sequencer.h"
#include "core/state/position.h"
#include "core/stream/writer.h"

enum call_ack { ACK_APPLIED, ACK_DURABLE };

/* One command under way. The caller owns it, and what it points to, until done. */
struct call {
    const struct request *request;
    enum call_ack ack;
    void (*done)(struct call *call); /* on the shard; may submit others */
    pawl_error *error;               /* may be NULL */

    int status;
    bool repeated;   /* the key was used before: this is the answer of then */
    uint64_t offset; /* the event that answers, and its body: borrowed until done returns */
    pawl_bytes body;

    struct call *next;
    uint64_t order; /* of submission */
    pawl_instant deadline;
    struct processor *processor;
    bool not_repeated; /* a suspicion of the window was looked into: it was another key */
    pawl_read read;    /* of the event that the window suspects */
    uint8_t *found;    /* its body, copied */
};

/* A list of calls, in order. */
struct calls {
    struct call *first;
    struct call **last;
    size_t count;
};

struct processor_options {
    pawl_env *env;
    uint32_t shard;
    pawl_log *log;
    pawl_store *store;
    struct applier *applier; /* the shard's */
    uint16_t partition;
    pawl_sequence_storage sequences;
    const struct schema *schema; /* the present one */

    /* The schema at a position of group0; NULL if there is none. */
    const struct schema *(*schema_at)(void *ctx, uint64_t position);

    /* The state has come to this offset. May be NULL. */
    void (*applied)(void *ctx, uint16_t partition, uint64_t offset);

    /* Its tables have come to an offset that is a multiple of audit_every; it may be undone, and come once
     * more. May be NULL. */
    void (*audit)(void *ctx, const struct position *position, uint64_t offset);
    uint64_t audit_every;
    void *ctx;

    /* Zero means the default. */
    uint32_t queue_max;        /* 4096 commands waiting; then submit is busy */
    uint32_t batch_events_max; /* 512 */
    size_t batch_bytes_max;    /* 1 MiB: where a batch ends, if it has an event at all */
    uint32_t batches_max;      /* 4 between numbered and answered */
    size_t event_bytes_max;    /* 1 MiB */
    uint32_t workspaces_max;   /* 4096 cached */
    uint32_t windows_max;      /* 256 cached, 4 KiB each */

    /* Of its sequencer. Other defaults than pawl/sequencer.h has: flush_events 8192, flush_interval 5 s,
     * unflushed_max and recovery_batch 16384, workspaces_max as above. Their bounds are checked before. */
    pawl_sequencer_limits limits;

    /* 10 s: how long a command waits for a processor that is not running, or whose sequencer has no room:
     * PAWL_EBUSY then; or PAWL_EUNKNOWN, if it was sent by then, or is durable and cannot be applied. */
    pawl_duration wait;
    const pawl_allocator *allocator;
};

/* Counters and gauges. */
struct processor_figures {
    uint64_t offset;   /* applied */
    uint64_t commands; /* answered with an event */
    uint64_t repeated; /* of them, by an event of before */
    uint64_t refused;  /* answered with an error */
    uint64_t events;   /* applied, those of catching up included */
    uint64_t batches;
    uint64_t puts; /* rows written or removed for events */
    uint64_t failures;
    uint64_t replayed;
};

struct processor;

/* Makes one, which begins to claim its stream. On the shard.
 * PAWL_ENOMEM; PAWL_ECORRUPT, PAWL_EVERSION: the state's position. */
int processor_new(const struct processor_options *options, struct processor **ret_processor, pawl_error *error);

/* Queue a command; run answers it. PAWL_EBUSY: the queue is full. PAWL_ECLOSED. done is then not called. */
int processor_submit(struct processor *processor, struct call *call);

/* Go on with what is queued. alone: nothing else waits for this shard, so that a lone event may be written on
 * the spot.
 */
void processor_run(struct processor *processor, bool alone);

/* The present schema is another one from now on. Borrowed until the processor is closed. */
void processor_schema(struct processor *processor, const struct schema *schema);

enum writer_state processor_state(const struct processor *processor);
const struct processor_figures *processor_figures(const struct processor *processor);

/* What its sequencer tells; counters are since processor_new, because a schema with other sequences needs
 * another sequencer. PAWL_SEQUENCER_NONE: it has none now, as before it has caught up with the log. ret_error:
 * what failed last, in the sequencer or on the way to it; its code is PAWL_OK if nothing has. On the shard. */
void processor_numbering(const struct processor *processor, pawl_sequencer_figures *ret_figures,
                         pawl_error *ret_error);

const struct position *processor_position(const struct processor *processor);

/* Why it is not running: words for whoever waits. */
const pawl_error *processor_error(const struct processor *processor);

/* Be told whenever the state becomes RUNNING or REFUSED, or recovery stumbles and will try again later. One
 * watcher; NULL for none. */
void processor_watch(struct processor *processor, void (*changed)(void *arg), void *arg);

/* Finish: what waits is refused with PAWL_ECLOSED, what was sent is answered. closed is called, not from
 * inside, when nothing is under way any more; then free it. A done may call this. */
void processor_close(struct processor *processor, void (*closed)(void *arg), void *arg);
void processor_free(struct processor *processor);

#endif
