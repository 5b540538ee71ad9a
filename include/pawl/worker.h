/* worker.h: work of projectors that is done outside: a thread of yours, another program.
 *
 *     pawl_worker_acquire ──► a lease: the event, a number ──► work ──► pawl_worker_commit, or release
 *
 * A worker that is late, or gone, loses its lease: the number is given to another, and what the first one says
 * of it is PAWL_EFENCED from then on (pawl/lease.h).
 *
 * A lease outlives the engine. It is durable in the node's own store before acquire returns. Whether the engine is
 * closed, killed, or loses its power: opened again, it has the lease with the same number, operation ID and
 * attempt, and its time runs anew. Nobody else is given the number meanwhile. If the worker does not come back,
 * the lease expires as any other. Until the lane has come as far as the number, which is soon, the worker is told
 * PAWL_EBUSY: ask again. What does not come with it: a result that was handed in and not committed; commit it
 * again. A backup has no leases, and neither has another node.
 *
 * Promises
 *   W1  A lease that acquire returned is there after any restart, unless it was committed, released or failed, has
 *       expired, was taken back or made void by an operator, or its generation of the lane is gone; or something was
 *       read under it: what was read is remembered in this process only.
 *   W2  None of those brings it back: a commit is in the operation log, which decides; for release, fail, reclaim
 *       and void the row is gone from the disk before the call returns; an expired lease is removed from the disk
 *       within a fraction of a second, and replaced there before another worker is told of the number.
 *   W3  Work that nobody leases from outside costs nothing of this: handlers and declarative projectors. */
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
 * commit, extend, release and the reads use only four members: partition, lane, number and operation. A worker in another
 * process, which has only these four, fills them into a pawl_worker_lease of its own, leaves the rest zero, and
 * does not free it. */
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
 * one. duration 0: adaptive. wait: how long to wait for one (0: not at all). The lease is durable when this
 * returns: it waits for one sync, which many workers share. Errors: PAWL_ENOTFOUND (none came, or no such
 * projector), PAWL_EINVAL (it has actions), PAWL_EEXISTS (a handler); PAWL_EBUSY, PAWL_EFULL, PAWL_EIO: the lease
 * could not be kept, and was given back. */
PAWL_API int pawl_worker_acquire(pawl_engine *engine, const char *projector, pawl_duration duration,
                                 pawl_duration wait, pawl_worker_lease *ret_lease, pawl_error *error);
PAWL_API void pawl_worker_lease_free(pawl_worker_lease *lease);

/* A lease as JSON, for a worker in another process (docs/HTTP.md), with its event. Errors: PAWL_ENOMEM, those of
 * pawl_event_json. */
PAWL_API int pawl_worker_lease_json(pawl_engine *engine, const pawl_worker_lease *lease, pawl_text *ret_text,
                                    pawl_error *error);

/* An operation's ID as text of 32 digits, 0 to f, and back. PAWL_EINVAL: it is no such text. */
#define PAWL_OPERATION_TEXT_MAX 33
PAWL_API void pawl_operation_format(pawl_operation_id id, char text[PAWL_OPERATION_TEXT_MAX]);
PAWL_API int pawl_operation_parse(const char *text, pawl_operation_id *ret_id, pawl_error *error);

/* --- to be told instead of waiting --- */

/* For one that serves many workers: ready is called when an operation of the projector may be leased, so that no
 * thread must wait in acquire for each worker. A watch begins unarmed. arm it, and then try to acquire once with
 * wait 0: what was there before is found so, and for what comes later ready is called, once; then arm it again.
 * ready is called on any thread, under a lock of the engine's: it must not call the engine, and must not block.
 * After free it is not called any more; free all watches before the engine is closed. free takes NULL. Errors:
 * those of acquire, and PAWL_EREADONLY. */
typedef struct pawl_worker_watch pawl_worker_watch;
PAWL_API int pawl_worker_watch_new(pawl_engine *engine, const char *projector, void (*ready)(void *arg),
                                   void *arg, pawl_worker_watch **ret_watch, pawl_error *error);
PAWL_API void pawl_worker_watch_arm(pawl_worker_watch *watch);
PAWL_API void pawl_worker_watch_free(pawl_worker_watch *watch);

/* --- reading --- */

/* Read rows of the lane's own entities, in the event's workspace, as a handler does (pawl_handler_get, _list, _read,
 * _scan): of entities that the projector writes or reads. Pawl remembers under the lease what was read: if an
 * operation before this one changes it, the commit ends with PAWL_ECONFLICT, and the number is given out again; a
 * run that began again like that sees all that is before it, and stands. A failure that decides (release) counts
 * only if what was read stands, too. A row that is not there was read as well. What was visited counts only if
 * the call returns PAWL_OK. Errors: those of the handler's, and PAWL_EFENCED (the number is another's, or the
 * result was handed in); PAWL_EBUSY (the lane is recovering, or no snapshot is free; ask again). */
PAWL_API int pawl_worker_get(pawl_engine *engine, const pawl_worker_lease *lease, const char *entity,
                             pawl_bytes key, pawl_text *ret_text, pawl_error *error);
PAWL_API int pawl_worker_list(pawl_engine *engine, const pawl_worker_lease *lease, const char *entity,
                              pawl_bytes after, size_t limit, pawl_text *ret_text, pawl_error *error);
PAWL_API int pawl_worker_read(pawl_engine *engine, const pawl_worker_lease *lease, const char *entity,
                              pawl_key key, pawl_row_visit visit, void *arg, pawl_error *error);
PAWL_API int pawl_worker_scan(pawl_engine *engine, const pawl_worker_lease *lease, const char *entity,
                              pawl_key after, pawl_cursor *cursor, size_t limit, pawl_row_visit visit,
                              void *arg, pawl_error *error);

/* --- committing --- */

/* What shall be written for the event: put it into results (pawl/project.h). Called on the worker's own thread,
 * from inside commit. Return PAWL_OK; anything else ends the commit with that status. */
typedef int (*pawl_results_fill)(void *arg, pawl_results *results);

/* Commit a result, and wait until its turn has come and it is durable and applied. Repeating it is harmless:
 * fill is not called if the result was handed in before. PAWL_EFENCED: the number is another's. PAWL_ETIMEOUT:
 * it is handed in, and will be committed at its turn, or given out again, without the worker. Ask again to know how
 * it ended, or go on with other work. This is said before the time is over, too, if the operation that all others
 * wait for can be leased, and no worker waits for one: then acquire it. PAWL_EBUSY: the lane is recovering, or the store
 * gives out no more snapshots at once; ask again. PAWL_ECONFLICT: what it read has changed; the number is given
 * out again, to whoever acquires it. PAWL_EINVAL, PAWL_ETOOBIG: the result does not make sense;
 * the lease is still held, unless this was found only at the operation's turn ("at its turn: ..."): then the
 * projector's policy decides. Others (PAWL_ENOMEM, PAWL_EIO, what fill returned): the lease is still held. */
PAWL_API int pawl_worker_commit(pawl_engine *engine, const pawl_worker_lease *lease, pawl_results_fill fill,
                                void *arg, pawl_duration wait, pawl_error *error);

/* The same, with a result as pawl_results_json takes it. */
PAWL_API int pawl_worker_commit_json(pawl_engine *engine, const pawl_worker_lease *lease, pawl_bytes json,
                                     pawl_duration wait, pawl_error *error);

/* Whether the operation that all later ones of the lease's lane and partition wait for can be leased, and no worker waits
 * for one: a worker that has handed in its result had better acquire now than wait for its turn. */
PAWL_API bool pawl_worker_is_needed(pawl_engine *engine, const pawl_worker_lease *lease);

/* Extend the lease: it ends this long from now (0: adaptive). After a restart it has this long again, if that is
 * longer than what it was granted before; only then a sync is waited for. PAWL_EFENCED: the number is another's.
 * PAWL_EBUSY: the lane is recovering; ask again. PAWL_EFULL, PAWL_EIO: the longer time could not be kept. Does
 * not change lease->expires_in. */
PAWL_API int pawl_worker_extend(pawl_engine *engine, const pawl_worker_lease *lease, pawl_duration duration,
                                pawl_error *error);

/* Give it back (failed: false), or say that the work failed; permanent: no other attempt would do better. words
 * may be NULL. PAWL_EFENCED: the number is another's. PAWL_EBUSY: the lane is recovering; ask again. PAWL_EFULL,
 * PAWL_EIO: it is given back, but the node's store has failed: after a restart the lease may be there again. */
PAWL_API int pawl_worker_release(pawl_engine *engine, const pawl_worker_lease *lease, bool failed,
                                 bool permanent, const char *words, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
