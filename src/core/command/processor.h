/* core/command/processor.h: the commands of one partition, from request to answer.
 *
 *     submit ─► queue ─► number, build, derive ─► batch ─► log ─► applier ─► done
 *                          (overlay: what is staged)  │ failed
 *                                                     ▼
 *                                     drain ─► claim ─► catch up ─► number again ─► run
 *
 * A processor lives on one shard and is called there only. It numbers and builds as many commands as are
 * waiting into a batch, sends the batch to the log, and goes on with the next batch while the log syncs: up to
 * batches_max at a time. Each command sees what was staged before it, through the overlay. When a batch is
 * durable, the applier writes its changes to the store with those of other partitions (core/stream/applier.h).
 * Then the processor answers the commands, in order.
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
 *       and read up to the claim. By then its event is durable and applied, or will never be written. If that
 *       takes too long, the command gets the answer that nobody knows (PAWL_EUNKNOWN).
 *   P5  Nothing is numbered unless every event of the log is in the state or in the overlay.
 *   P6  Commands are checked against every unique view that covers the partition, from the commit on that
 *       completes it; what is staged counts.
 *   P7  A command is answered within options.wait, whether or not the log answers. Once it is durable, it has that
 *       time again to be applied. */
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
    bool repeated;   /* the key was used before: this is the earlier answer */
    uint64_t offset; /* the event that answers, and its body: borrowed until done returns */
    uint64_t workspace_offset;
    pawl_bytes body;

    struct call *next;
    uint64_t order; /* of submission */
    pawl_instant deadline;
    struct processor *processor;
    bool not_repeated; /* the event that the window suspected was read: it has another key */
    uint8_t *found;    /* the body of the event that the window suspected, copied */
};

/* Commands that wait, in order. */
struct call_list {
    struct call *first;
    struct call **last;
    size_t count;
};

struct processor_options {
    pawl_env *env;
    uint32_t shard;
    pawl_log *log;
    pawl_store *store;
    struct applier *applier;   /* the shard's */
    struct view_tables *views; /* of the store; NULL: there are none */
    uint16_t partition;
    uint64_t assignment; /* struct writer_options */
    pawl_sequence_storage sequences;
    const struct schema *schema; /* the present one */

    /* The schema at a position of group0; NULL if there is none. */
    const struct schema *(*schema_at)(void *ctx, uint64_t position);

    /* The state has come to this offset. May be NULL. */
    void (*applied)(void *ctx, uint16_t partition, uint64_t offset);

    /* The tables have come to an offset that is a multiple of audit_every. If the transaction is undone, the
     * same offset is told again. May be NULL. */
    void (*audit)(void *ctx, const struct position *position, uint64_t offset);
    uint64_t audit_every;
    void *ctx;

    /* Zero means the default. */
    uint32_t queue_max;        /* 4096 commands waiting; then submit is busy */
    uint32_t batch_events_max; /* 512 */
    size_t batch_bytes_max;    /* 1 MiB: a batch that has reached it takes no more events */
    uint32_t batches_max;      /* 4 between numbered and answered */
    size_t event_bytes_max;    /* 1 MiB */
    uint32_t workspaces_max;   /* 4096 cached */
    uint32_t windows_max;      /* 256 cached, 4 KiB each */

    /* Limits of its sequencer. Their bounds were checked before. These defaults differ from pawl/sequencer.h:
     * flush_events 8192, flush_interval 5 s, unflushed_max and recovery_batch 16384, workspaces_max as
     * above. */
    pawl_sequencer_limits limits;

    /* 10 s: how long a command waits for a processor that is not running, whose sequencer has no room, or whose log
     * does not answer. Then it gets PAWL_EBUSY; or PAWL_EUNKNOWN, if it was already sent, or is durable and cannot
     * be applied. */
    pawl_duration wait;
    const pawl_allocator *allocator;
};

/* Counters and gauges. */
struct processor_figures {
    uint64_t offset;   /* applied */
    uint64_t commands; /* answered with an event */
    uint64_t repeated; /* of them, answered with an earlier event */
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

/* Another node has the log: take no more commands, and be refused, with these words. */
void processor_give_up(struct processor *processor, const char *words);

/* Queue a command; processor_run answers it. PAWL_EBUSY: the queue is full. PAWL_ECLOSED. After an error done
 * is not called. */
int processor_submit(struct processor *processor, struct call *call);

/* Go on with the queued commands. */
void processor_run(struct processor *processor);

/* The present schema is another one from now on. Borrowed until the processor is closed. */
void processor_schema(struct processor *processor, const struct schema *schema);

/* Views of its store have changed: a slice was built, or they were refreshed. So a unique view may bind from
 * now on, or no more. What is staged is not checked again; every command from now on is. On the shard, and not
 * inside a transaction. */
void processor_rebind(struct processor *processor);

/* Whether every event is applied, or gone, that was staged when a unique view last began to bind. Then the
 * view's rows say whether it holds (core/view/unique.h: unique_verdict): no row is there ahead of its commit. */
bool processor_settled(struct processor *processor);

enum writer_state processor_state(const struct processor *processor);
const struct processor_figures *processor_figures(const struct processor *processor);

/* The figures of its sequencer. Counters run since processor_new, although a schema with other sequences needs
 * another sequencer. PAWL_SEQUENCER_NONE: there is no sequencer now, for example before the processor has
 * caught up with the log. ret_error: what failed last, in the sequencer or while one was made; its code is
 * PAWL_OK if nothing has failed. On the shard. */
void processor_numbering(const struct processor *processor, pawl_sequencer_figures *ret_figures,
                         pawl_error *ret_error);

/* The offset of the log's last event when its stream was last claimed. False: it was not claimed yet. */
bool processor_log_end(const struct processor *processor, uint64_t *ret_offset);

const struct position *processor_position(const struct processor *processor);

/* Why it is not running: words for those who wait. */
const pawl_error *processor_error(const struct processor *processor);

/* Set the function that is told when the state becomes RUNNING or REFUSED, and when recovery failed and will
 * try again. There is one watcher; NULL for none. */
void processor_watch(struct processor *processor, void (*changed)(void *arg), void *arg);

/* Finish: commands that wait are refused with PAWL_ECLOSED, and those that were sent are answered. closed is
 * called by a later turn of the loop, when nothing is under way any more; then free the processor. A done may
 * call this. */
void processor_close(struct processor *processor, void (*closed)(void *arg), void *arg);
void processor_free(struct processor *processor);

#endif
