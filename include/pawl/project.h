/* project.h: projectors in lanes: handlers, workers, and what an operator does with them.
 *
 * A projector that is not synchronous belongs to a lane (docs/SCHEMA.md), and each of its events is one
 * numbered operation of that lane (docs/LEASES.md). Who does the work:
 *
 *     declarative     says in the schema what it does; needs nothing from here
 *     a handler       a function of yours, in this process, on threads that Pawl keeps for its lane
 *     a worker        whoever acquires a lease, works, and commits: a thread of yours, another program
 *
 * All three may run in parallel, fail, hang, be stopped: the tables come to be what a serial run in the order
 * of the log would have made them. That holds for a handler that is a function of its event and of what it
 * reads *through its ctx*; whatever else it looks at (a clock, a file, another database) is its own affair, and
 * a replay that runs it again will tell.
 *
 * Threads. Any of a caller's own, but where it says otherwise. */
#ifndef PAWL_PROJECT_H
#define PAWL_PROJECT_H

#include <pawl/engine.h>
#include <pawl/lease.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- results: what an event shall do to the lane's entities --- */

/* Being put together, write after write; an error is kept, and ends the attempt. PAWL_ETOOBIG: they come to
 * more than an entry of the log may have, 64 MiB, each write counted with one row at least; PAWL_ENOMEM: there
 * is no memory now, and the handler is run again. */
typedef struct pawl_results pawl_results;

/* Begin a write, to rows of the event's workspace.
 *
 *   upsert   the row with this key; it is made if it is not there
 *   update   the rows that match where, an expression over the row's fields (docs/EXPRESSIONS.md). If where is
 *            NULL: the row whose key is set, or all rows if no key is set
 *   delete   the same rows as update
 *
 * Then set the fields of the key, if there is one, and the others. */
PAWL_API int pawl_results_upsert(pawl_results *results, const char *entity);
PAWL_API int pawl_results_update(pawl_results *results, const char *entity, const char *where);
PAWL_API int pawl_results_delete(pawl_results *results, const char *entity, const char *where);

/* The key's fields (all or none) and the others, of the write that was begun last. set_name: of a qname.
 * set_expr: computed for each row, from its fields. Errors: PAWL_EINVAL (no such field, or of another type). */
PAWL_API int pawl_results_set_int64(pawl_results *results, const char *field, int64_t value);
PAWL_API int pawl_results_set_float64(pawl_results *results, const char *field, double value);
PAWL_API int pawl_results_set_bool(pawl_results *results, const char *field, bool value);
PAWL_API int pawl_results_set_string(pawl_results *results, const char *field, const char *text, size_t size);
PAWL_API int pawl_results_set_bytes(pawl_results *results, const char *field, pawl_bytes value);
PAWL_API int pawl_results_set_time(pawl_results *results, const char *field, pawl_wall value);
PAWL_API int pawl_results_set_name(pawl_results *results, const char *field, const char *qname);
PAWL_API int pawl_results_set_ref(pawl_results *results, const char *field, uint64_t id);
PAWL_API int pawl_results_set_null(pawl_results *results, const char *field);
PAWL_API int pawl_results_set_expr(pawl_results *results, const char *field, const char *expression);

/* All of it as JSON: {"writes": [{"upsert": "shop.Total", "key": {…}, "set": {…}},
 * {"update": "shop.Total", "where": "…", "set": {…}}, {"delete": …}]}. A value in a set is what the field
 * becomes, or {"expr": "…"}. docs/API.md. Errors: PAWL_EINVAL, PAWL_ETOOBIG, with the path; PAWL_ENOMEM. */
PAWL_API int pawl_results_json(pawl_results *results, const char *json, size_t size, pawl_error *error);

/* Why the handler fails; permanent: no other attempt would do better, so the operation becomes a void, unless
 * what the handler read turns out to have been too early. Return the status of this, which is PAWL_EINVAL, from
 * the handler. */
PAWL_API int pawl_results_fail(pawl_results *results, bool permanent, const char *words);

/* --- handlers --- */

typedef struct pawl_handler_ctx pawl_handler_ctx;

/* The event is shown as pawl_events_read does. Return PAWL_OK, or anything else to fail this attempt. */
typedef int (*pawl_handler)(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg);

/* Run a projector that has no actions of its own by this function, from now on until close. As many at once as
 * the schema says ("workers"); those that run for longer than a second no longer count, but in no partition
 * does it ever run more often. Its lease is extended while it runs, up to pawl_options.max_run; then the number
 * is given to another attempt, and what this one returns counts for nothing. The function must return some day:
 * close waits for it. It may call the engine, but not pawl_close (PAWL_EMISUSE). Errors: PAWL_ENOTFOUND (no
 * such projector), PAWL_EINVAL (it is declarative), PAWL_EEXISTS. */
PAWL_API int pawl_projector_register(pawl_engine *engine, const char *projector, pawl_handler handler,
                                     void *arg, pawl_error *error);

/* Read rows of the lane's own entities, in the event's workspace, as pawl_entity_get and _list do. What is read
 * is remembered: if an operation before this one changes it, the handler is run again. On the handler's own
 * thread, before it returns. Errors that answer: PAWL_ENOTFOUND (no such row), PAWL_EINVAL (the key; an
 * entity of others, or one that the projector's schema names neither in writes nor in reads), PAWL_ETOOBIG (the
 * key). All others mean that the read failed: PAWL_EBUSY (the store gives
 * out no more snapshots at once), PAWL_ENOMEM, PAWL_EIO, PAWL_ECORRUPT, PAWL_EVERSION. Whatever a handler
 * returns after a read that failed counts for nothing, neither as a result nor as a failure: it is run again
 * after a while, and that counts as the same attempt. So it need not tell these errors apart, and may return at
 * once. */
PAWL_API int pawl_handler_get(pawl_handler_ctx *ctx, const char *entity, pawl_bytes key, pawl_text *ret_text,
                              pawl_error *error);
PAWL_API int pawl_handler_list(pawl_handler_ctx *ctx, const char *entity, pawl_bytes after, size_t limit,
                               pawl_text *ret_text, pawl_error *error);

/* Which attempt this is, from 1; and whether nobody waits for it any more: it was taken back, or the engine is
 * closing. A handler that takes long should look. */
PAWL_API uint32_t pawl_handler_attempt(const pawl_handler_ctx *ctx);
PAWL_API bool pawl_handler_given_up(const pawl_handler_ctx *ctx);

/* --- workers --- */

/* A lease as a worker holds it. Strings are in one allocation: pawl_worker_lease_free. */
typedef struct pawl_worker_lease {
    uint16_t partition;
    char *lane;
    char *projector;
    uint64_t number;
    pawl_operation_id operation;
    uint32_t attempt;
    pawl_duration expires_in;
    uint64_t offset; /* of the event */
    uint64_t wsid;
    char *event; /* as JSON */
    size_t event_size;
    void *memory;
} pawl_worker_lease;

/* Lease an operation of a projector that has neither actions nor a handler here, of whichever partition has
 * one. duration 0: adaptive. wait: how long to wait for one (0: not at all). Leases end with the engine: one
 * that is opened again gives the same numbers to whoever asks. Errors: PAWL_ENOTFOUND (none came, or no such
 * projector), PAWL_EINVAL (it has actions), PAWL_EEXISTS (a handler). */
PAWL_API int pawl_worker_acquire(pawl_engine *engine, const char *projector, pawl_duration duration,
                                 pawl_duration wait, pawl_worker_lease *ret_lease, pawl_error *error);
PAWL_API void pawl_worker_lease_free(pawl_worker_lease *lease);

/* Commit a result (as pawl_results_json takes it), and wait until its turn has come and it is durable and
 * applied. Repeating it is harmless. PAWL_EFENCED: the number is another's. PAWL_ETIMEOUT: it is handed in, and
 * waits for those before it; ask again. PAWL_EBUSY: the lane is recovering, or the store
 * gives out no more snapshots at once; ask again. PAWL_EINVAL, PAWL_ETOOBIG: the result does not make sense;
 * the lease is still held, unless that came out only at its turn ("at its turn: ..."): then the projector's
 * policy decides. Others (PAWL_ENOMEM, PAWL_EIO): what it is about cannot be read; the lease is still held. */
PAWL_API int pawl_worker_commit(pawl_engine *engine, uint16_t partition, const char *lane, uint64_t number,
                                pawl_operation_id operation, const char *json, size_t size, pawl_duration wait,
                                pawl_error *error);
PAWL_API int pawl_worker_extend(pawl_engine *engine, uint16_t partition, const char *lane, uint64_t number,
                                pawl_operation_id operation, pawl_duration duration, pawl_error *error);

/* Give it back (failed: false), or say that the work failed. */
PAWL_API int pawl_worker_release(pawl_engine *engine, uint16_t partition, const char *lane, uint64_t number,
                                 pawl_operation_id operation, bool failed, bool permanent, const char *words,
                                 pawl_error *error);

/* --- lanes --- */

/* A projector, as the schema that is in force has it. Names are borrowed until visit returns. */
typedef struct pawl_projector {
    pawl_bytes name;
    pawl_bytes lane;     /* empty: it is synchronous, and what concerns lanes is 0 */
    uint32_t generation; /* of the lane, the newest */
    uint32_t serving;    /* the one that reads come from */
    bool handler;        /* its work is that of a handler or of workers */
    const pawl_bytes *on;
    size_t on_count;
    const pawl_bytes *writes; /* entities */
    size_t write_count;
    const pawl_bytes *reads; /* entities that a handler reads, besides */
    size_t read_count;
    uint32_t workers;
    uint32_t attempts_max;
    bool voids; /* what fails that often becomes a void; else the lane stalls */
} pawl_projector;

/* All of them, in the order in which they run; return false to stop. */
typedef bool (*pawl_projector_visit)(void *arg, const pawl_projector *projector);
PAWL_API int pawl_projectors_read(pawl_engine *engine, pawl_projector_visit visit, void *arg,
                                  pawl_error *error);

typedef enum pawl_lane_state {
    PAWL_LANE_RECOVERING = 1,
    PAWL_LANE_RUNNING = 2,
    PAWL_LANE_REFUSED = 3, /* its tables and logs contradict each other */
    PAWL_LANE_CLOSED = 4,  /* nobody works on it: this engine only reads */
} pawl_lane_state;

/* A generation of a lane in a partition. */
typedef struct pawl_lane_status {
    const char *lane;
    uint16_t id;
    uint32_t generation;
    bool serving;  /* reads come from it */
    bool building; /* it is to take the place of the one that serves */
    uint16_t partition;
    pawl_lane_state state;
    bool paused;
    uint64_t end;              /* the PLog's last offset */
    uint64_t offset;           /* all operations of events up to here are applied */
    uint64_t operations;       /* the last one applied */
    uint64_t repeated;         /* runs that did not stand, since the engine was opened */
    const char *error;         /* if it is refused */
    pawl_lease_figures leases; /* add up those of all partitions with pawl_lease_figures_add */
} pawl_lane_status;

/* Alerts are judged for a generation of a lane, over all its partitions together, by pawl_options.alerts. Each
 * is in the leases of one partition, the one that has most of it: there is one alert, not one for each
 * partition. What a declarative projector does by key, the lane does itself, without a lease to anybody: it
 * counts as committed, and not in the figures of the last minute. */

/* All of them, or of one lane (NULL: all); return false to stop. PAWL_ENOTFOUND: no such lane. */
typedef bool (*pawl_lane_visit)(void *arg, const pawl_lane_status *status);
PAWL_API int pawl_lanes_read(pawl_engine *engine, const char *lane, pawl_lane_visit visit, void *arg,
                             pawl_error *error);

/* The numbers of a generation of a lane (0: the newest) in a partition, from one on, at most limit. from 0:
 * those under way. The last 1,000 that this process has committed are remembered, too, and shown if from is not
 * above them (1: all); which event they were of is not (event is 0), the operation log knows it.
 * PAWL_ENOTFOUND: that generation is not worked on. */
typedef bool (*pawl_lease_visit)(void *arg, const pawl_lease *lease, uint64_t event, const char *projector);
PAWL_API int pawl_lane_leases(pawl_engine *engine, uint16_t partition, const char *lane, uint32_t generation,
                              uint64_t from, size_t limit, pawl_lease_visit visit, void *arg,
                              pawl_error *error);

/* When such an instant was, or will be, by the wall clock as it stands now; 0 for 0. For people to read:
 * nothing is ordered or ended by it, and setting the wall clock moves what it says of the past. */
PAWL_API pawl_wall pawl_engine_wall(pawl_engine *engine, pawl_instant instant);

/* An operator's: take a lease back; try a stalled number again; decide that a number is void. They wait for
 * nothing. PAWL_ENOTFOUND: there is no such number under way. generation 0: the one in which it is;
 * PAWL_EINVAL: while a lane is rebuilt there may be two of them, where a number need not mean the same. */
PAWL_API int pawl_lease_reclaim(pawl_engine *engine, uint16_t partition, const char *lane, uint32_t generation,
                                uint64_t number, pawl_error *error);
PAWL_API int pawl_lease_retry(pawl_engine *engine, uint16_t partition, const char *lane, uint32_t generation,
                              uint64_t number, pawl_error *error);
PAWL_API int pawl_lease_void(pawl_engine *engine, uint16_t partition, const char *lane, uint32_t generation,
                             uint64_t number, const char *words, pawl_error *error);

/* Pause and resume a lane, in all partitions; it stays so when the directory is opened again. */
PAWL_API int pawl_lane_pause(pawl_engine *engine, const char *lane, bool paused, pawl_error *error);

/* Work a lane's tables out anew, in a new generation, beside the one that goes on serving reads; when it has
 * caught up it takes its place, in one step. Returns once it has begun. PAWL_EBUSY: it is being rebuilt
 * already. */
PAWL_API int pawl_lane_rebuild(pawl_engine *engine, const char *lane, pawl_error *error);

/* Wait until every lane (or this one) has applied all that was in the log when it was called, also what was
 * acknowledged as durable and not yet applied, and no generation is being built; or until nothing goes on any
 * more by itself: stalled, paused, or waiting for workers (PAWL_EBUSY, error says which). PAWL_ETIMEOUT. */
PAWL_API int pawl_lanes_wait(pawl_engine *engine, const char *lane, pawl_duration timeout, pawl_error *error);

/* Work the operations of a lane (NULL: of all) out again, one after the other, by the schema and by the
 * handlers that are registered here, and compare them with those that were logged. A handler whose result
 * depends on anything but its event and what it reads through its ctx is found by this: first names the first
 * operation that differs, and the row by its key as JSON. Handlers are called on this thread. PAWL_OK even with
 * differences. */
#define PAWL_UNCHECKED_MAX 16

/* A projector whose handler is not registered here, and how many of its operations could not be run again. */
typedef struct pawl_unchecked {
    char projector[136];
    uint64_t operations;
} pawl_unchecked;

typedef struct pawl_lane_verdict {
    uint64_t operations;
    uint64_t compared;  /* run again: not those of handlers that are not here, and not voids */
    uint64_t unchecked; /* those of handlers that are not here */
    size_t unchecked_count;
    pawl_unchecked unchecked_by[PAWL_UNCHECKED_MAX]; /* whose they are; further projectors are not named */
    uint64_t differences;
    pawl_error first;
} pawl_lane_verdict;

PAWL_API int pawl_lane_verify(pawl_engine *engine, const char *lane, pawl_lane_verdict *ret_verdict,
                              pawl_error *error);

/* Operations of a lane in a partition, from a number on, at most limit, each as a JSON line. generation 0: the
 * one that serves. ret_next may be NULL. PAWL_ENOTFOUND: there is no such lane, or it has never had this
 * generation. */
typedef struct pawl_operation {
    uint64_t number;
    uint64_t event;
    uint64_t wsid;
    const char *json;
    size_t json_size;
} pawl_operation;
typedef bool (*pawl_operation_visit)(void *arg, const pawl_operation *operation);
PAWL_API int pawl_operations_read(pawl_engine *engine, uint16_t partition, const char *lane,
                                  uint32_t generation, uint64_t from, size_t limit, pawl_operation_visit visit,
                                  void *arg, uint64_t *ret_next, pawl_error *error);

/* The first operation that is of this event of the partition, or of a later one; behind the last operation, if
 * there is none. Reads few operations, however many there are. Errors: as pawl_operations_read. */
PAWL_API int pawl_operations_find(pawl_engine *engine, uint16_t partition, const char *lane,
                                  uint32_t generation, uint64_t event, uint64_t *ret_number, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
