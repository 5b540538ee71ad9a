/* project.h: handlers: functions of yours that do the work of projectors.
 *
 * A projector that is not synchronous belongs to a lane (docs/SCHEMA.md), and each of its events is one
 * numbered operation of that lane (docs/LEASES.md). Who does the work:
 *
 *     Pawl itself     if the projector has actions in the schema; it needs nothing from here
 *     a handler       a function of yours, in this process, on threads that Pawl keeps for its lane
 *     a worker        acquires a lease, works, and commits: pawl/worker.h
 *
 * All three may run in parallel, fail, hang or be stopped: the tables become the same as if all operations had
 * run one after the other, in the order of the log. This holds for a handler whose results depend only on its
 * event and on what it reads *through its ctx*. If they depend on anything else (a clock, a file, another
 * database), a replay that runs the handler again will find differences.
 *
 * Threads. Call these on any thread of your own, unless it says otherwise. */
#ifndef PAWL_PROJECT_H
#define PAWL_PROJECT_H

#include <pawl/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- results: the writes to the lane's entities that one event leads to --- */

/* Results are put together write by write. They keep the first error, and then the run fails. PAWL_ETOOBIG:
 * they are larger than an entry of the log may be, 64 MiB, where each write counts as one row at least.
 * PAWL_ENOMEM: there is no memory now; the handler is run again. */
typedef struct pawl_results pawl_results;

/* Begin a write to rows in the event's workspace.
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

/* Set a field of the write that was begun last. Of the fields of the key, set all or none. set_text: a string that
 * does not end in a 0. set_name: a field of type qname. set_expr: the value is computed for each row, from the
 * row's fields. Errors: PAWL_EINVAL (no such field, or it has another type). */
PAWL_API int pawl_results_set_int64(pawl_results *results, const char *field, int64_t value);
PAWL_API int pawl_results_set_float64(pawl_results *results, const char *field, double value);
PAWL_API int pawl_results_set_bool(pawl_results *results, const char *field, bool value);
PAWL_API int pawl_results_set_string(pawl_results *results, const char *field, const char *value);
PAWL_API int pawl_results_set_text(pawl_results *results, const char *field, pawl_bytes value);
PAWL_API int pawl_results_set_bytes(pawl_results *results, const char *field, pawl_bytes value);
PAWL_API int pawl_results_set_time(pawl_results *results, const char *field, pawl_wall value);
PAWL_API int pawl_results_set_name(pawl_results *results, const char *field, const char *qname);
PAWL_API int pawl_results_set_ref(pawl_results *results, const char *field, uint64_t id);
PAWL_API int pawl_results_set_null(pawl_results *results, const char *field);
PAWL_API int pawl_results_set_expr(pawl_results *results, const char *field, const char *expression);

/* Add writes from JSON: {"writes": [{"upsert": "shop.Total", "key": {…}, "set": {…}},
 * {"update": "shop.Total", "where": "…", "set": {…}}, {"delete": …}]}. A member of "set" is the new value of
 * the field, or {"expr": "…"}. docs/API.md. Errors: PAWL_EINVAL, PAWL_ETOOBIG, with the path; PAWL_ENOMEM. */
PAWL_API int pawl_results_json(pawl_results *results, pawl_bytes json, pawl_error *error);

/* Say that the handler fails, and why. permanent: another run would fail too, so the operation becomes a void;
 * except if rows that the handler has read were changed by an earlier operation: then it is run again. Return
 * the status of this call, PAWL_EINVAL, from the handler. */
PAWL_API int pawl_results_fail(pawl_results *results, bool permanent, const char *words);

/* --- handlers --- */

typedef struct pawl_handler_ctx pawl_handler_ctx;

/* The event is the same as pawl_events_read shows: read it field by field, or ask for its JSON. Return PAWL_OK;
 * any other value means that this run failed. */
typedef int (*pawl_handler)(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg);

/* From now on until close, run this function for a projector that has no actions in the schema. The schema's
 * "workers" says how many runs there may be at once. A run that takes longer than a second no longer counts,
 * but one partition never has more runs at once than that. The lease is extended while the function runs, up to
 * pawl_options.max_run; then the operation is given to another run, and the results of this one do not count.
 * The function must return at some time: close waits for it. It may call the engine, but not pawl_close
 * (PAWL_EMISUSE). Errors: PAWL_ENOTFOUND (no such projector), PAWL_EINVAL (it has actions), PAWL_EEXISTS (it
 * has a handler). */
PAWL_API int pawl_projector_register(pawl_engine *engine, const char *projector, pawl_handler handler,
                                     void *arg, pawl_error *error);

/* Read rows of the lane's own entities, in the event's workspace, as pawl_entity_get and _list do. Call these
 * on the handler's thread, before the handler returns. Pawl remembers what was read: if an operation before
 * this one changes it, the handler is run again.
 *
 * Some errors are answers: PAWL_ENOTFOUND (no such row), PAWL_EINVAL (the key is wrong, or the entity is of
 * another lane, or the schema has it neither in the projector's writes nor in its reads), PAWL_ETOOBIG (the
 * key). All others mean that the read failed: PAWL_EBUSY (all snapshots are in use), PAWL_ENOMEM, PAWL_EIO,
 * PAWL_ECORRUPT, PAWL_EVERSION. After a failed read the handler's results do not count, and its failure does
 * not count either: it is run again after a while, as the same attempt. So a handler need not tell these errors
 * apart, and may return at once. */
PAWL_API int pawl_handler_get(pawl_handler_ctx *ctx, const char *entity, pawl_bytes key, pawl_text *ret_text,
                              pawl_error *error);
PAWL_API int pawl_handler_list(pawl_handler_ctx *ctx, const char *entity, pawl_bytes after, size_t limit,
                               pawl_text *ret_text, pawl_error *error);

/* The same two, as rows, as pawl_entity_read and _scan do. What is read is remembered in the same way: of read
 * the row, of scan all rows of the entity in the workspace. visit must not read through the ctx
 * (PAWL_EMISUSE). */
PAWL_API int pawl_handler_read(pawl_handler_ctx *ctx, const char *entity, pawl_key key, pawl_row_visit visit,
                               void *arg, pawl_error *error);
PAWL_API int pawl_handler_scan(pawl_handler_ctx *ctx, const char *entity, pawl_key after, pawl_cursor *cursor,
                               size_t limit, pawl_row_visit visit, void *arg, pawl_error *error);

/* attempt: which run of the operation this is, from 1. given_up: the results of this run will not be used,
 * because its lease was taken back or the engine is closing. A handler that takes long should check this. */
PAWL_API uint32_t pawl_handler_attempt(const pawl_handler_ctx *ctx);
PAWL_API bool pawl_handler_given_up(const pawl_handler_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
