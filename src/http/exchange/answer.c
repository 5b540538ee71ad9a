/* http/exchange/answer.c: what a handler answers, until libmicrohttpd has it. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/server/server.h"

#define STREAM_BLOCK     ((size_t)16 << 10)
#define HEADER_VALUE_MAX 4096
#define CURSOR_MAX       ((size_t)8 << 10) /* it comes back in a target */

/* On every answer, unless the handler has set its own. A page of the server's sets its own policy. */
static const struct {
    const char *name;
    const char *value;
} common[] = {
    {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cache-Control", "no-store"},
};

/* --- what handlers call --- */

void exchange_add_header(struct exchange *x, const char *name, const char *format, ...)
{
    char value[HEADER_VALUE_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    assert(size >= 0 && (size_t)size < sizeof value && x->header_count < EXCHANGE_HEADERS_MAX);
    struct header *header = &x->headers[x->header_count];
    header->name = name;
    header->value = strdup(value);
    if (header->value)
        x->header_count++;
}

void exchange_add_offset(struct exchange *x, uint64_t offset)
{
    exchange_add_header(x, "Pawl-Offset", "%" PRIu64, offset);
}

bool exchange_add_next(struct exchange *x, const char *cursor)
{
    char *copy = strlen(cursor) <= CURSOR_MAX ? strdup(cursor) : NULL;
    if (!copy) {
        exchange_refuse(x, HTTP_TOO_LARGE, PAWL_ETOOBIG, "the key of the last row is too long for a cursor");
        return false;
    }
    assert(x->header_count < EXCHANGE_HEADERS_MAX);
    x->headers[x->header_count++] = (struct header){"Pawl-Next", copy};
    return true;
}

bool exchange_add_cursor(struct exchange *x, const pawl_cursor *cursor)
{
    pawl_text text;
    pawl_error error;
    if (cursor->done)
        return true;
    if (pawl_cursor_format(cursor, &text, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return false;
    }
    bool added = exchange_add_next(x, text.data);
    pawl_text_free(&text);
    return added;
}

static void set_answer(struct exchange *x, enum http_status status, const char *type, pawl_bytes bytes)
{
    assert(!x->answered);
    x->answered = true;
    x->status = status;
    x->type = type;
    x->bytes = bytes;
}

static void fail_without_memory(struct exchange *x)
{
    static const char words[] = "{\"error\":{\"code\":\"PAWL_ENOMEM\",\"message\":\"out of memory\"}}\n";
    set_answer(x, HTTP_UNAVAILABLE, TYPE_JSON, (pawl_bytes){words, sizeof words - 1});
}

void exchange_answer_text(struct exchange *x, enum http_status status, const char *type, pawl_text *text)
{
    x->text = *text;
    *text = (pawl_text){.allocator = x->text.allocator};
    size_t size = x->text.size;
    if (size > 0 && x->text.data[size - 1] != '\n')
        x->text.data[size++] = '\n'; /* in place of the 0, which the answer does not need */
    set_answer(x, status, type, (pawl_bytes){x->text.data, size});
}

void exchange_answer_copy(struct exchange *x, enum http_status status, const char *type, pawl_bytes body)
{
    x->copy = malloc(body.size ? body.size : 1);
    if (!x->copy) {
        fail_without_memory(x);
        return;
    }
    memcpy(x->copy, body.data, body.size);
    set_answer(x, status, type, (pawl_bytes){x->copy, body.size});
}

void exchange_answer_json(struct exchange *x, enum http_status status, json_t *tree)
{
    char *text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
    json_decref(tree);
    size_t size = text ? strlen(text) : 0;
    if (!text) {
        fail_without_memory(x);
        return;
    }
    text[size] = '\n'; /* in place of the 0, which the answer does not need */
    x->copy = text;
    set_answer(x, status, TYPE_JSON, (pawl_bytes){text, size + 1});
}

void exchange_answer_constant(struct exchange *x, enum http_status status, const char *type, pawl_bytes body)
{
    set_answer(x, status, type, body);
}

void exchange_answer_empty(struct exchange *x, enum http_status status)
{
    set_answer(x, status, NULL, (pawl_bytes){"", 0});
}

static void answer_failure(struct exchange *x, enum http_status status, const pawl_error *error)
{
    char text[FAILURE_BODY_MAX];
    if (failure_retry(status))
        exchange_add_header(x, "Retry-After", "1");
    exchange_answer_copy(x, status, TYPE_JSON, (pawl_bytes){text, failure_body(error, text)});
    if ((int)status >= HTTP_FAILED && status != HTTP_UNAVAILABLE)
        server_log(x->server, PAWL_LOG_ERROR, "request failed",
                   json_pack("{s:s,s:i,s:s,s:s}", "method", x->method ? x->method : "", "status", (int)status,
                             "code", pawl_status_name(error->code), "words", error->text));
}

void exchange_fail(struct exchange *x, const pawl_error *error)
{
    answer_failure(x, failure_status(error->code), error);
}

void exchange_refuse(struct exchange *x, enum http_status status, int code, const char *format, ...)
{
    pawl_error error = {.code = code};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    answer_failure(x, status, &error);
}

/* From now on the exchange is woken when the server is stopped. counted: against limits.streams; false: there are
 * as many already. */
static bool join_streams(struct exchange *x, bool counted)
{
    struct pawl_server *server = x->server;
    pthread_mutex_lock(&server->lock);
    bool fits = !counted || server->stream_count < server->options.limits.streams;
    if (fits && counted) {
        x->counted = true;
        server->stream_count++;
    }
    if (fits && !x->joined) {
        x->joined = true;
        x->next_stream = server->streams;
        x->stream_link = &server->streams;
        if (x->next_stream)
            x->next_stream->stream_link = &x->next_stream;
        server->streams = x;
    }
    pthread_mutex_unlock(&server->lock);
    return fits;
}

void exchange_wake_at_stop(struct exchange *x)
{
    (void)join_streams(x, false);
}

void exchange_stream(struct exchange *x, const char *type, exchange_read read)
{
    if (!join_streams(x, x->route->flags & ROUTE_STREAM)) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_EBUSY, "%u clients follow something already",
                        x->server->options.limits.streams);
        return;
    }
    x->read = read;
    set_answer(x, HTTP_OK, type, (pawl_bytes){NULL, 0});
}

/* --- to libmicrohttpd --- */

static ssize_t read_stream(void *arg, uint64_t at, char *memory, size_t room)
{
    struct exchange *x = arg;
    (void)at;
    for (;;) {
        ptrdiff_t size = x->read(x, memory, room);
        if (size > 0)
            return size;
        if (size == STREAM_BROKEN)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (size == STREAM_END || ((x->route->flags & ROUTE_STREAM) && exchange_stopping(x)))
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (exchange_sleep(x))
            return 0;
    }
}

static bool has_header(const struct exchange *x, const char *name)
{
    for (size_t i = 0; i < x->header_count; i++)
        if (strcasecmp(x->headers[i].name, name) == 0)
            return true;
    return false;
}

static void add_headers(const struct exchange *x, struct MHD_Response *response)
{
    for (size_t i = 0; i < x->header_count; i++)
        MHD_add_response_header(response, x->headers[i].name, x->headers[i].value);
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (!has_header(x, common[i].name))
            MHD_add_response_header(response, common[i].name, common[i].value);
    if (x->type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, x->type);
    if (exchange_stopping(x))
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

static void log_answer(struct exchange *x)
{
    uint64_t took = server_now() - x->began;
    uint64_t waited = x->waited < took ? x->waited : took;
    bool slow = took - waited >= x->server->options.slow && x->phase == PHASE_RUN && !x->read && !x->take;
    if (!slow && !server_logs(x->server, PAWL_LOG_DEBUG))
        return;
    server_log(x->server, slow ? PAWL_LOG_WARNING : PAWL_LOG_DEBUG, slow ? "slow request" : "request",
               json_pack("{s:s,s:s,s:i,s:f,s:f,s:s}", "method", x->method, "route",
                         x->route ? x->route->pattern : "", "status", (int)x->status, "ms", (double)took / 1e6,
                         "waited_ms", (double)waited / 1e6, "token", x->grant.name));
}

static enum MHD_Result queue_answer(struct exchange *x)
{
    struct MHD_Response *response;
    if (x->read)
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, x, NULL);
    else
        response = MHD_create_response_from_buffer(x->bytes.size, (void *)(uintptr_t)x->bytes.data,
                                                   MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    add_headers(x, response);
    log_answer(x);
    x->phase = PHASE_SENT;
    enum MHD_Result result = MHD_queue_response(x->connection, (unsigned)x->status, response);
    MHD_destroy_response(response);
    return result;
}

static void run_step(struct exchange *x)
{
    exchange_step step = x->step;
    x->step = NULL;
    step(x);
}

enum MHD_Result answer_woken(struct exchange *x)
{
    run_step(x);
    return answer_settle(x);
}

/* A step that waits is looked at first: while it does, another thread may be writing the answer. */
enum MHD_Result answer_settle(struct exchange *x)
{
    while (x->step) {
        if (exchange_sleep(x))
            return MHD_YES;
        run_step(x);
    }
    if (!x->answered)
        exchange_refuse(x, HTTP_FAILED, PAWL_EMISUSE, "the route has given no answer");
    return queue_answer(x);
}
