/* project.h: handlers: functions of yours that do the work of projectors.
 *
 * A projector that is not synchronous belongs to a lane (docs/SCHEMA.md), and each of its events is one
 * numbered operation of that lane (docs/LEASES.md). Who does the work:
 *
 *     declarative     says in the schema what it does; needs nothing from here
 *     a handler       a function of yours, in this process, on threads that Pawl keeps for its lane
 *     a worker        whoever acquires a lease, works, and commits: pawl/worker.h
 *
 * All three may run in parallel, fail, hang, be stopped: the tables come to be what a serial run in the order
 * of the log would have made them. That holds for a handler that is a function of its event and of what it
 * reads *through its ctx*; whatever else it looks at (a clock, a file, another database) is its own affair, and
 * a replay that runs it again will tell.
 *
 * Threads. Any of a caller's own, but where it says otherwise. */
#ifndef PAWL_PROJECT_H
#define PAWL_PROJECT_H

#include <pawl/event.h>

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

/* The key's fields (all or none) and the others, of the write that was begun last. set_text: a string, too: one
 * that does not end in a 0. set_name: of a qname. set_expr: computed for each row, from its fields. Errors:
 * PAWL_EINVAL (no such field, or of another type). */
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

/* All of it as JSON: {"writes": [{"upsert": "shop.Total", "key": {…}, "set": {…}},
 * {"update": "shop.Total", "where": "…", "set": {…}}, {"delete": …}]}. A value in a set is what the field
 * becomes, or {"expr": "…"}. docs/API.md. Errors: PAWL_EINVAL, PAWL_ETOOBIG, with the path; PAWL_ENOMEM. */
PAWL_API int pawl_results_json(pawl_results *results, pawl_bytes json, pawl_error *error);

/* Why the handler fails; permanent: no other attempt would do better, so the operation becomes a void, unless
 * what the handler read turns out to have been too early. Return the status of this, which is PAWL_EINVAL, from
 * the handler. */
PAWL_API int pawl_results_fail(pawl_results *results, bool permanent, const char *words);

/* --- handlers --- */

typedef struct pawl_handler_ctx pawl_handler_ctx;

/* The event is as pawl_events_read has it: read it field by field, or ask for its JSON. Return PAWL_OK, or
 * anything else to fail this attempt. */
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

/* The same two, as rows, as pawl_entity_read and _scan do. What is read is remembered in the same way: by read
 * the row, by scan all rows of the entity in the workspace. visit must not read through the ctx (PAWL_EMISUSE).
 */
PAWL_API int pawl_handler_read(pawl_handler_ctx *ctx, const char *entity, pawl_key key, pawl_row_visit visit,
                               void *arg, pawl_error *error);
PAWL_API int pawl_handler_scan(pawl_handler_ctx *ctx, const char *entity, pawl_key after, pawl_cursor *cursor,
                               size_t limit, pawl_row_visit visit, void *arg, pawl_error *error);

/* Which attempt this is, from 1; and whether nobody waits for it any more: it was taken back, or the engine is
 * closing. A handler that takes long should look. */
PAWL_API uint32_t pawl_handler_attempt(const pawl_handler_ctx *ctx);
PAWL_API bool pawl_handler_given_up(const pawl_handler_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
