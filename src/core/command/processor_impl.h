/* core/command/processor_impl.h: what the files of the processor share.
 *
 *     processor.c   the queue and numbering: what happens while it runs
 *     batch.c       what becomes of a batch: durable, applied and answered; or undone
 *     bind.c        unique views: which bind here, and what staged events do to their keys
 *     call_list.c       lists of commands that wait
 *     repeat.c      a key that was used before
 *     late.c        commands whose time is over
 *     recover.c     catching up, and numbering
 *     lifetime.c    how it begins and ends */
#ifndef CORE_COMMAND_PROCESSOR_IMPL_H
#define CORE_COMMAND_PROCESSOR_IMPL_H

#include "core/command/processor.h"
#include "core/view/unique.h"

/* An event of a batch, and who waits for it: a batch of the writer's has one for each entry. */
struct staged {
    struct changes changes;
    struct changes keys;    /* of unique views */
    struct call_list calls; /* the first caller, then those who repeated the same command */
};

struct processor {
    struct processor_options options;
    struct writer writer;
    const struct schema *schema;
    bool resequence; /* the schema's sequences are not the sequencer's */
    pawl_sequencer *sequencer;
    struct sequencer_waiter ready;
    bool sequencer_waits; /* ready is registered with the sequencer */
    bool sequencer_closing;
    pawl_sequencer_figures ended; /* what the sequencers before this one have counted */

    struct overlay overlay;
    struct unique unique;
    uint64_t bound_behind; /* the last event that was staged when a unique view began to bind; 0: none */
    uint8_t *scratch;
    struct position position;
    struct workspaces workspaces;
    struct windows windows;

    struct call_list queue; /* in the order of submission, also for calls that came back to it */
    uint64_t submitted;
    pawl_timer late_timer; /* at the first deadline of a command that is under way */
    bool late_watching;
    struct repeat *repeats;    /* reads of suspected events that are under way */
    struct call_list *waiting; /* by a batch's index: calls whose answer waits until it is durable (P2) */

    struct processor_figures figures;
    void (*changed)(void *arg);
    void *changed_arg;
};

static inline struct staged *batch_staged(const struct writer_batch *batch)
{
    return batch->staged;
}

void call_list_init(struct call_list *calls);
void call_list_add(struct call_list *calls, struct call *call);
struct call *call_list_take(struct call_list *calls); /* NULL: empty */

/* Move all of from to the front of to, in order. */
void call_list_prepend(struct call_list *to, struct call_list *from);

/* Move each call of from to its place in to, by the order of submission. */
void call_list_return(struct call_list *to, struct call_list *from);

/* Answer the call. Its owner has it back from then on. */
void call_finish(struct call *call, int status);

/* Answer all calls of a list with an error, in these words. */
void call_list_refuse(struct call_list *calls, int status, const char *words);

/* The same for those whose deadline is over. */
void call_list_refuse_late(struct call_list *calls, pawl_instant now, int status, const char *words);

/* The state as the next command sees it: staged changes over the store. */
static inline struct state processor_staged_state(const struct processor *p)
{
    return (struct state){.overlay = (struct overlay *)&p->overlay,
                          .reader = pawl_store_writer(p->options.store),
                          .scratch = p->scratch};
}

/* processor.c: answer the call as soon as everything is durable that was staged when the answer was computed
 * (P2). */
void processor_answer(struct processor *p, struct call *call, int status);

/* batch.c: callbacks of the writer; and telling the node how far the state has come. */
void batch_durable(void *ctx, struct writer_batch *batch);
int batch_ahead(void *ctx, struct writer_batch *batch, pawl_store *store);
int batch_write(void *ctx, struct writer_batch *batch, pawl_store *store);
void batch_unwrite(void *ctx, struct writer_batch *batch);
void batch_late(void *ctx, struct writer_batch *batch);
void batch_applied(void *ctx, struct writer_batch *batch);
void batch_undo(void *ctx, struct writer_batch *batch);
void batch_fate(void *ctx, struct writer_batch *batch, size_t index, enum writer_fate fate);
void processor_tell_applied(struct processor *p);
void processor_audit(struct processor *p, uint64_t offset);

/* bind.c: make sure that it is known which unique views bind, and which keys staged events give up and take. This
 * takes memory of their batches, so nobody may rewind that memory to a point before the call. PAWL_ENOMEM; those
 * of the store. */
int bind_current(struct processor *p, pawl_error *error);

/* late.c: a command was submitted: see to it that it is answered in time (P7). */
void late_watch(struct processor *p);

/* repeat.c: read the event at this offset. Answer the call with it, or process the call if the key is
 * another. */
void repeat_check(struct processor *p, struct call *call, uint64_t offset);

/* Refuse calls whose event is being read and whose time is over; the first deadline of the others, or *ret_next as
 * it is if there are none before it. */
void repeat_late(struct processor *p, pawl_instant now, pawl_instant *ret_next);

/* recover.c: callbacks of the writer. */
int recover_position(void *ctx, bool again, struct writer_position *ret_position, pawl_error *error);
int recover_replay(void *ctx, const struct copied_entry *entries, struct arena *memory, pawl_error *error);
void recover_will_retry(void *ctx);
void recover_prepare(void *ctx);
void recover_close_sequencer(struct processor *p);

#endif
