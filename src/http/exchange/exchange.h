/* http/exchange/exchange.h: one request and its answer, as the handler of a route sees them.
 *
 *     headers ──► route, access ──► begin ──► body ──► handler ──► answer
 *
 * A handler is called once the whole body is there. It reads what was asked, and answers, in one of four ways:
 *
 *     at once        exchange_answer..., exchange_fail, exchange_refuse
 *     later          exchange_defer: the connection sleeps, without a thread, until exchange_wake; then a step
 *                    of the handler's own answers
 *     on the pool    exchange_on_pool: for a step that blocks; it answers in the ways of "at once"
 *     as a stream    exchange_stream: for SSE and for long texts
 *
 * A handler that returns without having done one of these is answered with 500.
 *
 * Threads. A handler runs on an HTTP thread, which many connections share: it must not block. What blocks runs
 * on the pool: a route with ROUTE_WAITS from its beginning, others by exchange_on_pool. An exchange is used by
 * one thread at a time, except exchange_wake, exchange_hold, exchange_let_go, exchange_stopping and
 * exchange_server, which are for any thread.
 *
 * Life. An exchange ends when its answer was sent, or its client has gone, whatever a handler is doing. Who
 * will call exchange_wake from another thread holds the exchange until then (exchange_hold). While it sleeps by
 * exchange_defer, and while a step runs on the pool, it does not end. */
#ifndef HTTP_EXCHANGE_EXCHANGE_H
#define HTTP_EXCHANGE_EXCHANGE_H

#include <jansson.h>
#include <stdarg.h>

#include <pawl/pawl.h>

#include "http/exchange/access.h"
#include "http/exchange/failure.h"
#include "http/exchange/target.h"

struct exchange;
struct route;
struct server;

typedef void (*exchange_step)(struct exchange *x);

/* --- what was asked --- */

pawl_engine *exchange_engine(const struct exchange *x);
struct pawl_server *exchange_server(const struct exchange *x);

/* The segment that the route's pattern calls {name}; it must have one. */
const char *exchange_path(const struct exchange *x, const char *name);

/* A query parameter, which the route must list; NULL: not given. */
const char *exchange_param(const struct exchange *x, const char *name);

/* Each of these reads one value and checks it. If it is wrong, the request is answered with 400, which names the
 * place, and false is returned: the handler then returns. Outputs are untouched then. A parameter that is not
 * given is fallback. */
bool exchange_path_number(struct exchange *x, const char *name, uint64_t least, uint64_t most,
                          uint64_t *ret_number);
bool exchange_wsid(struct exchange *x, uint64_t *ret_wsid); /* {wsid} */
bool exchange_number(struct exchange *x, const char *name, uint64_t least, uint64_t most, uint64_t fallback,
                     uint64_t *ret_number);
bool exchange_flag(struct exchange *x, const char *name, bool *ret_flag); /* true, false; not given: false */
bool exchange_duration(struct exchange *x, const char *name, pawl_duration most, pawl_duration fallback,
                       pawl_duration *ret_duration);

/* A parameter that must be there; NULL: it is not, and the request was answered. */
const char *exchange_needs(struct exchange *x, const char *name);

/* min_offset and timeout, which a route that reads lists as parameters. */
bool exchange_read_options(struct exchange *x, pawl_read_options *ret_options);

/* The rows of a page: limit, from 1 to PAGE_MAX. */
#define PAGE_DEFAULT 100
#define PAGE_MAX     10000
bool exchange_limit(struct exchange *x, size_t *ret_limit);

/* The parameter cursor; zeros if it is not given. pawl_cursor_free it. */
bool exchange_cursor(struct exchange *x, pawl_cursor *ret_cursor);

/* A key as JSON: an object, an array, or the value of a key of one field, around which brackets are put. *ret_key is
 * in the exchange's memory; without text it has no data. At most EXCHANGE_KEYS_MAX. */
#define EXCHANGE_KEYS_MAX 4
bool exchange_key(struct exchange *x, const char *text, pawl_bytes *ret_key);

/* Call read now; if the parameter min_offset is given, on the pool, because it may wait. */
void exchange_read_maybe_wait(struct exchange *x, exchange_step read);

/* A header, in any case; NULL: not sent. Borrowed until the exchange ends. */
const char *exchange_header(const struct exchange *x, const char *name);

/* Whether the client's Accept header names this media type itself, such as text/event-stream. */
bool exchange_accepts(const struct exchange *x, const char *type);

/* Whether the Content-Type is this one; parameters such as charset are ignored. */
bool exchange_is_type(const struct exchange *x, const char *type);

/* The body, whole, followed by a 0 that size does not count. Borrowed until the exchange ends. */
pawl_bytes exchange_body(const struct exchange *x);

/* The body as a JSON object. NULL: it is none, and the request was answered with 400. json_decref it. */
json_t *exchange_body_json(struct exchange *x);

/* --- the answer --- */

/* Add a header to the answer that follows. At most EXCHANGE_HEADERS_MAX, of up to 4096 bytes each. */
#define EXCHANGE_HEADERS_MAX 12
PAWL_PRINTF(3, 4) void exchange_add_header(struct exchange *x, const char *name, const char *format, ...);

/* Pawl-Offset: what the answer includes, of the partition that was asked. Pawl-Next: the cursor of the next
 * page; without it there is none. A cursor that has come to the end adds none. False: the cursor is too long, and the
 * request was answered. */
void exchange_add_offset(struct exchange *x, uint64_t offset);
bool exchange_add_next(struct exchange *x, const char *cursor);
bool exchange_add_cursor(struct exchange *x, const pawl_cursor *cursor);

#define TYPE_JSON   "application/json"
#define TYPE_NDJSON "application/x-ndjson"
#define TYPE_SSE    "text/event-stream"
#define TYPE_TEXT   "text/plain; charset=utf-8"

/* Each ends the last line with a newline, if there is none. Answer with a text that libpawl has made, and take it;
 * with a tree, and take it (NULL: there was no memory);
 * with bytes that are copied; with bytes that stay as long as the process. */
void exchange_answer_text(struct exchange *x, enum http_status status, const char *type, pawl_text *text);
void exchange_answer_json(struct exchange *x, enum http_status status, json_t *tree);
void exchange_answer_copy(struct exchange *x, enum http_status status, const char *type, pawl_bytes body);
void exchange_answer_constant(struct exchange *x, enum http_status status, const char *type, pawl_bytes body);
void exchange_answer_empty(struct exchange *x, enum http_status status);

/* Answer with an error of libpawl's, by failure_status. */
void exchange_fail(struct exchange *x, const pawl_error *error);

/* Answer with an error that HTTP is concerned with. code: of pawl/status.h. */
PAWL_PRINTF(4, 5)
void exchange_refuse(struct exchange *x, enum http_status status, int code, const char *format, ...);

/* --- later --- */

/* When the handler has returned, the connection sleeps until exchange_wake, which may already have been called,
 * and then step is called on an HTTP thread. */
void exchange_defer(struct exchange *x, exchange_step step);

/* Wake an exchange that sleeps; one that does not sleep will not fall asleep next time. Does nothing if its
 * client has gone. The caller holds the exchange, or knows that it sleeps. */
void exchange_wake(struct exchange *x);

/* Run step on a thread of the pool. 503 if the pool is full. */
void exchange_on_pool(struct exchange *x, exchange_step step);

/* For a step on the pool that does not answer yet: when it has returned, call step on an HTTP thread. */
void exchange_then(struct exchange *x, exchange_step step);

/* Of the time that this request takes, so much was spent waiting because its client asked for it, such as for
 * something to lease: it does not make the request a slow one. A step on the pool that has read min_offset waits on
 * purpose, too, and need not say so. */
void exchange_waited(struct exchange *x, pawl_duration time);

/* Call exchange_wake when the server is stopped: for one that sleeps until something comes. Its step then looks at
 * exchange_stopping. Streams need not ask for it. */
void exchange_wake_at_stop(struct exchange *x);

/* Keep the struct, though its client may go. */
void exchange_hold(struct exchange *x);
void exchange_let_go(struct exchange *x);

/* For one who knows the exchange by a list that it leaves with its last use: hold it, unless that is over. */
bool exchange_try_hold(struct exchange *x);

/* Have the connection cut, soon. For a client that takes nothing of its stream. Any thread. */
void exchange_cut(struct exchange *x);

/* Whether the server is being stopped: what waits for long looks at this now and then, and gives up. */
bool exchange_stopping(const struct exchange *x);

/* Something of the handler's own that belongs to the exchange. release is called once, with the exchange's last
 * use, on any thread that is not a shard. Replaces nothing: once for an exchange. */
void exchange_keep(struct exchange *x, void *state, void (*release)(void *state));
void *exchange_state(const struct exchange *x);

/* --- streams --- */

#define STREAM_END    ((ptrdiff_t)-1) /* there will be nothing more */
#define STREAM_BROKEN ((ptrdiff_t)-2) /* cut the connection, so that the client sees that it is not whole */

/* Answer with 200 and what read puts into memory, piece by piece. read is called on an HTTP thread, whenever the
 * client has room, and returns how many bytes it has put there; 0: nothing now; the connection then sleeps until
 * exchange_wake; or one of the above. A stream ends by itself when the server is stopped. An exchange that
 * streams without ROUTE_STREAM (an answer that ends soon) is not counted against limits.streams. */
typedef ptrdiff_t (*exchange_read)(struct exchange *x, char *memory, size_t room);
void exchange_stream(struct exchange *x, const char *type, exchange_read read);

/* --- bodies that are not kept --- */

/* For a route's begin: hand the body on as it comes, instead of keeping it. take returns how many bytes it has
 * used. If that is not all, the connection sleeps, and take gets the rest after exchange_wake. After an answer
 * was given, the rest of the body is thrown away. */
typedef size_t (*exchange_take)(struct exchange *x, const char *data, size_t size);
void exchange_take_body(struct exchange *x, exchange_take take);

#endif
