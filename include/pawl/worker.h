/* worker.h: work of projectors that is done outside: a thread of yours, another program.
 *
 *     pawl_worker_acquire ──► a lease: the event, a number ──► work ──► pawl_worker_commit, or release
 *
 * A worker that is late, or gone, loses its lease: the number is given to another, and what the first one says
 * of it is PAWL_EFENCED from then on (pawl/lease.h). */
#ifndef PAWL_WORKER_H
#define PAWL_WORKER_H

#include <pawl/event.h>
#include <pawl/lease.h>
#include <pawl/project.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A lease as a worker holds it. What it points to is the worker's until pawl_worker_lease_free. The event is as
 * handlers have it: read it field by field, or ask for its JSON (pawl_event_json), by one thread at a time,
 * before the engine is closed.
 *
 * What a worker says of its lease, by commit, extend and release, goes by four members: partition, lane, number
 * and operation. Nothing else of it is looked at. A worker in another process, which has only these four, fills
 * in a pawl_worker_lease of its own with them, leaves the rest zero, and does not free it. */
typedef struct pawl_worker_lease {
    uint16_t partition;
    const char *lane;
    const char *projector;
    uint64_t number;
    pawl_operation_id operation;
    uint32_t attempt;
    pawl_duration expires_in;
    const pawl_event *event;
    void *memory; /* Pawl's own */
} pawl_worker_lease;

/* Lease an operation of a projector that has neither actions nor a handler here, of whichever partition has
 * one. duration 0: adaptive. wait: how long to wait for one (0: not at all). Leases end with the engine: one
 * that is opened again gives the same numbers to whoever asks. Errors: PAWL_ENOTFOUND (none came, or no such
 * projector), PAWL_EINVAL (it has actions), PAWL_EEXISTS (a handler). */
PAWL_API int pawl_worker_acquire(pawl_engine *engine, const char *projector, pawl_duration duration,
                                 pawl_duration wait, pawl_worker_lease *ret_lease, pawl_error *error);
PAWL_API void pawl_worker_lease_free(pawl_worker_lease *lease);

/* What shall be written for the event: put it into results (pawl/project.h). Called on the worker's own thread,
 * from inside commit. Return PAWL_OK; anything else ends the commit with that status. */
typedef int (*pawl_results_fill)(void *arg, pawl_results *results);

/* Commit a result, and wait until its turn has come and it is durable and applied. Repeating it is harmless:
 * fill is not called if the result was handed in before. PAWL_EFENCED: the number is another's. PAWL_ETIMEOUT:
 * it is handed in, and waits for those before it; ask again. PAWL_EBUSY: the lane is recovering, or the store
 * gives out no more snapshots at once; ask again. PAWL_EINVAL, PAWL_ETOOBIG: the result does not make sense;
 * the lease is still held, unless that came out only at its turn ("at its turn: ..."): then the projector's
 * policy decides. Others (PAWL_ENOMEM, PAWL_EIO, what fill returned): the lease is still held. */
PAWL_API int pawl_worker_commit(pawl_engine *engine, const pawl_worker_lease *lease, pawl_results_fill fill,
                                void *arg, pawl_duration wait, pawl_error *error);

/* The same, with a result as pawl_results_json takes it. */
PAWL_API int pawl_worker_commit_json(pawl_engine *engine, const pawl_worker_lease *lease, pawl_bytes json,
                                     pawl_duration wait, pawl_error *error);

/* From now on this long (0: adaptive). PAWL_EFENCED: the number is another's. expires_in of the lease stays as
 * it was. */
PAWL_API int pawl_worker_extend(pawl_engine *engine, const pawl_worker_lease *lease, pawl_duration duration,
                                pawl_error *error);

/* Give it back (failed: false), or say that the work failed; permanent: no other attempt would do better. words
 * may be NULL. PAWL_EFENCED: the number is another's. */
PAWL_API int pawl_worker_release(pawl_engine *engine, const pawl_worker_lease *lease, bool failed,
                                 bool permanent, const char *words, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
