/* core/command/processor_impl.h: what the files of the processor share.
 *
 *     processor.c   the queue and numbering: what happens while it runs
 *     batch.c       what becomes of a batch once it was sent
 *     calls.c       lists of commands that wait
 *     repeat.c      a key that was used before
 *     recover.c     claiming, catching up, finding out what became of lost events
 *     lifetime.c    how it begins and ends */
#ifndef CORE_COMMAND_PROCESSOR_IMPL_H
#define CORE_COMMAND_PROCESSOR_IMPL_H

#include "core/command/processor.h"

/* An event of a batch, and who waits for it. */
struct staged {
    uint64_t offset;
    pawl_bytes body;
    struct changes changes;
    struct calls calls; /* who asked first, and then those who asked the same again */
};

/*     FREE ─► FILLING ─► SENT ─┬─► DURABLE ─► FREE
 *                              └─► LOST ────► FREE        what became of it is found out by recover.c */
enum batch_state { BATCH_FREE, BATCH_FILLING, BATCH_SENT, BATCH_DURABLE, BATCH_LOST };

struct batch {
    struct apply_item item;
    struct processor *processor;
    enum batch_state state;
    struct batch *next; /* in the order in which they were filled */
    struct arena memory;
    pawl_append append;
    pawl_append_entry *entries;
    struct staged *events;
    size_t count;
    size_t bytes;
    struct calls waiting; /* answers that are true once this is durable (P2) */
    pawl_instant durable; /* since when it is */
    pawl_error error;
};

/* An entry of the log that catching up has read. */
struct replayed {
    struct replayed *next;
    uint64_t offset;
    pawl_place place;
    pawl_bytes body;
};

struct processor {
    struct processor_options options;
    enum processor_state state;
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
    pawl_timer pause;       /* the sequencer was busy: look again */
    bool pausing;
    size_t repeats; /* reads of suspected events that are under way */

    struct batch *batches; /* batches_max of them */
    struct batch *first;   /* not FREE, in order */
    struct batch **last;

    pawl_claim claim;
    pawl_timer retry;
    pawl_duration retry_delay;
    bool retrying;
    bool claiming;
    uint64_t epoch;
    uint64_t next;     /* of the log, when it was claimed */
    int cause;         /* why the first batch failed */
    pawl_instant lost; /* and when */

    pawl_read read;
    bool reading;
    bool unread;   /* the position is not the store's: a transaction of catching up failed */
    bool verified; /* the event at the state's position is the log's */
    struct arena replay;
    struct replayed *replayed;
    struct replayed **replayed_last;
    size_t replayed_bytes;
    int replay_status;

    struct processor_figures figures;
    pawl_error error;
    void (*changed)(void *arg);
    void *changed_arg;
    void (*closed)(void *arg);
    void *closed_arg;
    bool closing_told;
    pawl_task begin;
    pawl_task close_task;
};

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
void processor_move(struct processor *p, enum processor_state to);
void processor_answer(struct processor *p, struct call *call, int status);

/* batch.c. batch_fill: a free one, to be filled; NULL if all are under way. batch_free: off the list; its
 * changes have left the overlay. staged_answer: durable, and applied if that was asked. */
struct batch *batch_fill(struct processor *p);
void batch_free(struct batch *batch);
void batch_sent_done(struct batch *batch);
void staged_answer(struct staged *staged);
void processor_tell_applied(struct processor *p);
void processor_audit(struct processor *p, uint64_t offset);

/* repeat.c: read the event at this offset, and answer with it, or process the call after all. */
void repeat_look(struct processor *p, struct call *call, uint64_t offset);

/* recover.c: as far as it can go now. */
void recover_step(struct processor *p);
void recover_close_sequencer(struct processor *p);

/* lifetime.c */
void close_step(struct processor *p);

#endif
