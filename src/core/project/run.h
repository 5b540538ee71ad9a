/* core/project/run.h: one attempt at one number, away from the lane's shard.
 *
 *     lane_acquire ──► run: the event, the projector ── handler ──► intents ── run_explode ──► writes, reads
 *        (shard)                                        (any thread)                              │
 *     lane_hand_in ◄──────────────────────────────────────────────────────────────────────────────┘
 *
 * A run holds all that it needs: it may go on while its lane gives the number to another, starts anew or is
 * gone, and is refused when it comes back.
 *
 * What it reads is what the store has come to when it looks, at some operation before its own: the oldest of
 * these is noted with what was read, and validated when its turn comes (reads.h). A run that is repeated
 * because it did not stand begins when its turn has come, so nothing can be staged before it is done: it gets
 * what is staged and perhaps not yet applied in front of it along, and stands whatever it reads. */
#ifndef CORE_PROJECT_RUN_H
#define CORE_PROJECT_RUN_H

#include <pawl/lease.h>

#include <stdatomic.h>

#include "core/event/event.h"
#include "core/project/explode.h"
#include "core/project/reads.h"
#include "port/log.h"
#include "port/store.h"

/* An event that numbers are bound to, shared by their runs. */
struct lane_event {
    atomic_size_t references;
    const pawl_allocator *alloc;
    uint64_t offset;
    size_t size;
    uint8_t bytes[];
};

/* A copy, with one reference. NULL: no memory. */
struct lane_event *lane_event_new(const pawl_allocator *alloc, uint64_t offset, pawl_bytes body);
struct lane_event *lane_event_hold(struct lane_event *event);
void lane_event_drop(struct lane_event *event); /* NULL is allowed; any thread */

/* A row that is staged in front of a repeated run. */
struct front_row {
    struct front_row *next;
    pawl_bytes key;
    pawl_bytes value; /* data NULL: removed */
};

struct run {
    /* What lane_acquire gives. */
    uint64_t number;
    pawl_operation_id id;
    uint32_t projection;
    uint32_t attempt;
    pawl_duration duration;
    uint16_t partition;
    uint16_t lane;
    uint32_t generation;
    const struct schema *schema;
    const struct schema_projector *projector;
    struct lane_event *event; /* held */
    bool at_turn;
    struct front_row *front;

    /* What is made of it. memory holds the intents of a handler, and the rows in front. */
    struct arena memory;
    const struct intent *intents;
    size_t intent_count;
    struct operation_maker writes;
    struct reads seen; /* by the handler itself */
    struct reads used; /* by exploding */
    uint64_t rows;     /* that its clauses looked at, in whole slices */
    int status;        /* of exploding: PAWL_OK, or what is the projector's fault */
    bool failed;       /* its handler, with the words of error; permanent: for good */
    bool permanent;
    pawl_error error;

    /* Between lane_hand_in and its end, which is told on the shard: PAWL_OK, committed and applied;
     * PAWL_EINVAL, PAWL_ETOOBIG: refused at its turn, and error says why; else it was not, or is not known to
     * be: PAWL_EFENCED, PAWL_ECONFLICT, PAWL_ECLOSED. The run is its owner's again. */
    void (*finished)(struct run *run, int status);
    void *arg;
    struct run *next;
    size_t held;          /* run_held, when it was handed in */
    struct lane *looking; /* whether the log has it */
    pawl_read look;
    bool found;
    const pawl_allocator *alloc;
};

void run_init(struct run *run, const pawl_allocator *alloc);

/* The bytes that it keeps hold of. */
size_t run_held(const struct run *run);

/* Forget the attempt, keep the memory. */
void run_reset(struct run *run);
void run_release(struct run *run);

/* What a thread needs to look at the state: one for each thread that runs. */
struct run_room {
    struct overlay overlay;
    uint8_t *scratch;
    struct arena memory;
    const pawl_allocator *alloc;

    /* While it looks. */
    pawl_store *store;
    pawl_reader *snapshot;
    struct changes front;
    uint64_t slices;
};

int run_room_init(struct run_room *room, const pawl_allocator *alloc); /* PAWL_ENOMEM */
void run_room_release(struct run_room *room);

/* Look at the state, for at most a moment: the tables of the lane as its operation number reads->at left them,
 * or a later one. Between begin and end reads are recorded by whoever makes them. PAWL_ENOMEM; those of the
 * store. */
int run_look(struct run *run, pawl_store *store, struct run_room *room, struct reads *reads,
             struct state *ret_state);
void run_look_away(struct run_room *room);

/* Turn the intents into writes. Any thread. Whatever is the projector's fault is kept in run->status and counts
 * when its turn comes, if it is so then, too; other failures are returned, and the run is to be given back:
 * PAWL_ENOMEM, PAWL_EBUSY, PAWL_EIO, PAWL_ECORRUPT. */
int run_explode(struct run *run, pawl_store *store, struct run_room *room, pawl_error *error);

#endif
