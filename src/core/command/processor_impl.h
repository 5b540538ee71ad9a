/* core/command/processor_impl.h: what the files of the processor share.
 *
 *     processor.c   the queue and numbering: what happens while it runs
 *     batch.c       what becomes of a batch: durable, applied and answered; or undone
 *     calls.c       lists of commands that wait
 *     repeat.c      a key that was used before
 *     recover.c     catching up, and numbering
 *     lifetime.c    how it begins and ends */
#ifndef CORE_COMMAND_PROCESSOR_IMPL_H
#define CORE_COMMAND_PROCESSOR_IMPL_H

#include "core/command/processor.h"

/* An event of a batch, and who waits for it: a batch of the writer's has one for each entry. */
struct staged {
    struct changes changes;
    struct calls calls; /* who asked first, and then those who asked the same again */
};

struct processor {
    struct processor_options options;
    struct writer writer;
    const struct schema *schema;
    bool resequence; /* the schema's sequences are not the sequencer's */
    pawl_sequencer *sequencer;
    struct sequencer_waiter ready;
    bool sequencer_waits; /* ready is known to it */
    bool sequencer_closing;
    pawl_sequencer_figures ended; /* what the sequencers before this one have counted */

    struct overlay overlay;
    uint8_t *scratch;
    struct position position;
    struct workspaces workspaces;
    struct windows windows;

    struct calls queue; /* in the order of submission, whatever came back to it */
    uint64_t submitted;
    pawl_timer queue_timer; /* at the first one's deadline */
    size_t repeats;         /* reads of suspected events that are under way */
    struct calls *waiting;  /* by a batch's index: answers that are true once it is durable (P2) */

    struct processor_figures figures;
    void (*changed)(void *arg);
    void *changed_arg;
};

static inline struct staged *batch_staged(const struct writer_batch *batch)
{
    return batch->staged;
}

void calls_init(struct calls *calls);
void calls_add(struct calls *calls, struct call *call);
struct call *calls_take(struct calls *calls); /* NULL: empty */

/* All of from, in order, before all of to. */
void calls_prepend(struct calls *to, struct calls *from);

/* All of from, each to its place in to, which is in the order of submission. */
void calls_return(struct calls *to, struct calls *from);

/* The call is over. */
void call_finish(struct call *call, int status);

/* The same, but by the words of an error, for all of a list. */
void calls_refuse(struct calls *calls, int status, const char *words);

static inline struct state processor_view(const struct processor *p)
{
    return (struct state){.overlay = (struct overlay *)&p->overlay,
                          .reader = pawl_store_writer(p->options.store),
                          .scratch = p->scratch};
}

/* processor.c. queue_watch: nobody waits for ever; from now on the first of the queue is looked at when its
 * time is over. processor_answer: as soon as that which the answer rests on is durable (P2). */
void queue_watch(struct processor *p);
void processor_answer(struct processor *p, struct call *call, int status);

/* batch.c: callbacks of the writer; and telling whoever asked how far the state has come. */
void batch_durable(void *ctx, struct writer_batch *batch);
int batch_write(void *ctx, struct writer_batch *batch, pawl_store *store);
void batch_unwrite(void *ctx, struct writer_batch *batch);
void batch_late(void *ctx, struct writer_batch *batch);
void batch_applied(void *ctx, struct writer_batch *batch);
void batch_undo(void *ctx, struct writer_batch *batch);
void batch_fate(void *ctx, struct writer_batch *batch, size_t index, enum writer_fate fate);
void processor_tell_applied(struct processor *p);
void processor_audit(struct processor *p, uint64_t offset);

/* repeat.c: read the event at this offset, and answer with it, or process the call after all. */
void repeat_look(struct processor *p, struct call *call, uint64_t offset);

/* recover.c: callbacks of the writer. */
int recover_position(void *ctx, bool again, struct writer_position *ret_position, pawl_error *error);
int recover_replay(void *ctx, const struct copied_entry *entries, struct arena *memory, pawl_error *error);
void recover_stumbled(void *ctx);
void recover_prepare(void *ctx);
void recover_close_sequencer(struct processor *p);

#endif
