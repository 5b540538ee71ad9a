/* core/project/run.h: one attempt at one number, on any thread.
 *
 *     lane_acquire ──► run: the event, the projector ── handler ──► intents ── run_explode ──► writes, reads
 *        (shard)                                        (any thread)                              │
 *     lane_hand_in ◄──────────────────────────────────────────────────────────────────────────────┘
 *
 * A run holds everything that it needs. It may go on while its lane gives the number to another run, starts
 * over or is gone; then it is refused when it is handed in.
 *
 * A run reads the state from a snapshot, which is at some operation before its own. The run notes the oldest
 * such operation with what it read, and both are validated when its turn comes (reads.h). If a run does not
 * stand, the number is run again. Such a run gets a copy of the rows that are staged and perhaps not yet in the store,
 * so it reads the state as the last operation that was staged then left it, base. If its turn had come, this is the
 * one directly before it: nothing can be staged before the run is done, and it stands. Any other run may also get rows
 * that are not even staged, but promised (promise.h). */
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

/* A row that was staged before a repeated run began. */
struct staged_row {
    struct staged_row *next;
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
    uint64_t start;           /* of the lane, that it was filled in */
    uint64_t base;            /* staged_rows are those up to this operation; 0: it has none */
    bool may_ask_again;       /* its worker has number and ID, and comes back with them: lane_resume */
    struct staged_row *staged_rows;
    bool promises;          /* it keeps what it has made, for the next run of its chain */
    struct promise promise; /* what it was promised; in memory */

    /* What the run makes. memory holds the intents of a handler, and the staged rows. */
    struct arena memory;
    const struct intent *intents;
    size_t intent_count;
    struct operation_maker writes;
    struct promise made; /* what its writes made of the state that it has seen; empty: it promises nothing */
    struct reads seen;   /* what the handler read */
    struct reads used;   /* what exploding read */
    uint64_t rows;       /* how many rows its clauses looked at, in whole slices */
    int status;          /* of exploding: PAWL_OK, or an error that is the projector's fault */
    bool failed;         /* its handler failed; error has the words. permanent: for good */
    bool permanent;
    pawl_error error;

    /* Called once on the shard after lane_hand_in; then the run is its owner's again. PAWL_OK: committed and
     * applied. PAWL_EINVAL, PAWL_ETOOBIG: refused at its turn, and error says why. PAWL_EFENCED,
     * PAWL_ECONFLICT, PAWL_ECLOSED: it was not committed, or nobody knows. PAWL_EBUSY, if it may ask again: the
     * lane has started over, and the lease may be held still. */
    void (*finished)(struct run *run, int status);
    void *arg;
    struct run *next;
    size_t held;              /* run_held, when it was handed in */
    struct lane *lookup_lane; /* the lane that reads the log to find out whose the number was */
    pawl_read lookup;
    bool found;
    const pawl_allocator *alloc;
};

void run_init(struct run *run, const pawl_allocator *alloc);

/* The bytes of memory that it has. */
size_t run_held(const struct run *run);

/* Give it a promise, which lies in its memory, in place of the one that it had. */
void run_promise(struct run *run, struct promise promise);

/* It explodes again, on what is staged: without what it was promised. What its handler has read stays noted. */
void run_unpromise(struct run *run);

/* Forget the attempt, keep the memory. */
void run_reset(struct run *run);
void run_release(struct run *run);

/* What a thread needs to read the state: each thread that runs has its own. */
struct run_buffers {
    struct overlay overlay;
    uint8_t *scratch;
    struct arena memory;
    const pawl_allocator *alloc;

    /* While a snapshot is open. */
    pawl_store *store;
    pawl_reader *snapshot;
    struct changes staged;
    uint64_t slices;
};

int run_buffers_init(struct run_buffers *buffers, const pawl_allocator *alloc); /* PAWL_ENOMEM */
void run_buffers_release(struct run_buffers *buffers);

/* Open a snapshot of the state, for a moment only. *ret_state has the lane's tables as operation reads->at left
 * them, or a later one, and over it what was promised. Until run_close_snapshot the caller notes in reads what it reads. PAWL_ENOMEM; errors
 * of the store. */
int run_open_snapshot(struct run *run, pawl_store *store, struct run_buffers *buffers, struct reads *reads,
                      struct state *ret_state);
void run_close_snapshot(struct run_buffers *buffers);

/* Turn the intents into writes. Any thread. An error that is the projector's fault is kept in run->status: it
 * counts only if it is the same at its turn. Other errors are returned, and the run must be given back:
 * PAWL_ENOMEM, PAWL_EBUSY, PAWL_EIO, PAWL_ECORRUPT. */
int run_explode(struct run *run, pawl_store *store, struct run_buffers *buffers, pawl_error *error);

#endif
