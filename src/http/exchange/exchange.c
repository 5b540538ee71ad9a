#include "http/exchange/exchange.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "http/server/server.h"

uint64_t server_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * PAWL_SECOND + (uint64_t)now.tv_nsec;
}

/* --- life --- */

#define SPARE_ROOM ((size_t)256) /* of a target */
#define SPARE_MAX  256           /* exchanges that have ended, kept for others */

/* Counts an exchange that begins: S1, S2. Whoever has closed lets none begin. The memory is that of one that has ended, if
 * its target fits: an exchange is too large for the fast ways of malloc. */
static bool begin(struct pawl_server *server, size_t room, struct exchange **ret_spare)
{
    pthread_mutex_lock(&server->lock);
    bool closed = server->closed;
    struct exchange *spare = !closed && room <= SPARE_ROOM ? server->spare : NULL;
    if (spare) {
        server->spare = spare->next_stream;
        server->spare_count--;
    }
    server->exchanges += !closed;
    pthread_mutex_unlock(&server->lock);
    *ret_spare = spare;
    return !closed;
}

static void end(struct pawl_server *server, struct exchange *x)
{
    pthread_mutex_lock(&server->lock);
    bool keep = x && x->room == SPARE_ROOM && server->spare_count < SPARE_MAX;
    if (keep) {
        x->next_stream = server->spare;
        server->spare = x;
        server->spare_count++;
    }
    if (--server->exchanges == 0)
        pthread_cond_broadcast(&server->idle);
    pthread_mutex_unlock(&server->lock);
    if (!keep)
        free(x);
}

void exchange_free_spare(struct pawl_server *server)
{
    while (server->spare) {
        struct exchange *x = server->spare;
        server->spare = x->next_stream;
        free(x);
    }
}

struct exchange *exchange_new(struct pawl_server *server, struct MHD_Connection *connection, struct peer *peer,
                              const char *target)
{
    size_t size = strlen(target), room = SPARE_ROOM;
    bool long_one = size > TARGET_BYTES_MAX;
    if (size >= room && !long_one)
        room = size + 1;
    struct exchange *x;
    if (!begin(server, room, &x))
        return NULL;
    if (x)
        memset(x, 0, sizeof *x);
    else
        x = calloc(1, sizeof *x + room);
    if (!x) {
        end(server, NULL);
        return NULL;
    }
    x->room = room;
    x->server = server;
    x->connection = connection;
    x->peer = peer;
    x->holders = 1;
    x->began = server_now();
    pthread_mutex_init(&x->lock, NULL);
    if (long_one) {
        x->target_bad = true;
        pawl_error_set(&x->refusal, PAWL_ETOOBIG, "$path: the target has more than %zu bytes",
                       TARGET_BYTES_MAX);
    } else {
        memcpy(x->raw, target, size + 1);
        x->target_bad = target_parse(x->raw, &x->target, &x->refusal) != PAWL_OK;
    }
    return x;
}

void exchange_hold(struct exchange *x)
{
    atomic_fetch_add_explicit(&x->holders, 1, memory_order_relaxed);
}

bool exchange_try_hold(struct exchange *x)
{
    uint32_t holders = atomic_load_explicit(&x->holders, memory_order_relaxed);
    while (holders > 0)
        if (atomic_compare_exchange_weak_explicit(&x->holders, &holders, holders + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

void exchange_let_go(struct exchange *x)
{
    struct pawl_server *server = x->server;
    if (atomic_fetch_sub_explicit(&x->holders, 1, memory_order_acq_rel) != 1)
        return;
    if (x->release)
        x->release(x->state);
    if (x->text.data)
        pawl_text_free(&x->text);
    for (size_t i = 0; i < x->header_count; i++)
        free(x->headers[i].value);
    for (size_t i = 0; i < x->key_count; i++)
        free(x->keys[i]);
    free(x->copy);
    free(x->body);
    pthread_mutex_destroy(&x->lock);
    end(server, x);
}

static void leave_streams(struct exchange *x)
{
    if (!x->joined)
        return;
    pthread_mutex_lock(&x->server->lock);
    *x->stream_link = x->next_stream;
    if (x->next_stream)
        x->next_stream->stream_link = x->stream_link;
    x->server->stream_count -= x->counted;
    pthread_mutex_unlock(&x->server->lock);
}

void exchange_gone(struct exchange *x)
{
    leave_streams(x);
    pthread_mutex_lock(&x->lock);
    x->gone = true;
    x->connection = NULL;
    x->peer = NULL;
    pthread_mutex_unlock(&x->lock);
    exchange_let_go(x);
}

bool exchange_sleep(struct exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool woken = x->woken;
    x->woken = false;
    if (!woken) {
        x->asleep = true;
        MHD_suspend_connection(x->connection);
    }
    pthread_mutex_unlock(&x->lock);
    return !woken;
}

/* Holds the exchange: once it is resumed, its connection may be over at any time. */
void exchange_wake(struct exchange *x)
{
    exchange_hold(x);
    pthread_mutex_lock(&x->lock);
    if (x->asleep) {
        x->asleep = false;
        MHD_resume_connection(x->connection);
    } else if (!x->gone) {
        x->woken = true;
    }
    pthread_mutex_unlock(&x->lock);
    exchange_let_go(x);
}

/* The watcher does it: it knows that the descriptor is still that of this connection. */
void exchange_cut(struct exchange *x)
{
    pthread_mutex_lock(&x->lock);
    if (x->peer)
        x->peer->deadline = 1;
    pthread_mutex_unlock(&x->lock);
}

void exchange_defer(struct exchange *x, exchange_step step)
{
    x->step = step;
}

static void run_on_pool(void *arg)
{
    struct exchange *x = arg;
    uint64_t began = server_now();
    x->pool_step(x);
    if (x->patient)
        exchange_waited(x, server_now() - began);
    exchange_wake(x);
}

void exchange_waited(struct exchange *x, pawl_duration time)
{
    x->waited += time;
}

void exchange_then(struct exchange *x, exchange_step step)
{
    x->then = step;
}

/* The answer was given on the pool, or there is more to do. */
static void come_back(struct exchange *x)
{
    exchange_step then = x->then;
    x->then = NULL;
    if (then)
        then(x);
}

void exchange_on_pool(struct exchange *x, exchange_step step)
{
    x->pool_step = step;
    x->step = come_back; /* before the job is there: it may be done at once */
    int status = pool_submit(x->server->pool, (struct pool_job){run_on_pool, x});
    if (status == PAWL_OK)
        return;
    x->step = NULL;
    exchange_refuse(x, HTTP_UNAVAILABLE, status, "too many requests are waiting already");
}

bool exchange_stopping(const struct exchange *x)
{
    return atomic_load_explicit(&x->server->stopping, memory_order_acquire);
}

void exchange_keep(struct exchange *x, void *state, void (*release)(void *state))
{
    assert(!x->release);
    x->state = state;
    x->release = release;
}

void *exchange_state(const struct exchange *x)
{
    return x->state;
}

void exchange_take_body(struct exchange *x, exchange_take take)
{
    x->take = take;
}

/* --- what was asked --- */

pawl_engine *exchange_engine(const struct exchange *x)
{
    return x->server->engine;
}

struct pawl_server *exchange_server(const struct exchange *x)
{
    return x->server;
}

const char *exchange_path(const struct exchange *x, const char *name)
{
    size_t place = route_place(x->route, name);
    assert(place < x->target.segment_count);
    return x->target.segments[place];
}

const char *exchange_param(const struct exchange *x, const char *name)
{
    assert(route_lists(x->route->params, name));
    return target_param(&x->target, name);
}

const char *exchange_needs(struct exchange *x, const char *name)
{
    const char *text = exchange_param(x, name);
    if (!text)
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$query.%s: it is missing", name);
    return text;
}

bool exchange_path_number(struct exchange *x, const char *name, uint64_t least, uint64_t most,
                          uint64_t *ret_number)
{
    pawl_error error;
    char where[64];
    snprintf(where, sizeof where, "$path.%s", name);
    if (target_number(exchange_path(x, name), least, most, where, ret_number, &error) == PAWL_OK)
        return true;
    exchange_fail(x, &error);
    return false;
}

bool exchange_wsid(struct exchange *x, uint64_t *ret_wsid)
{
    return exchange_path_number(x, "wsid", 1, UINT64_MAX, ret_wsid);
}

bool exchange_number(struct exchange *x, const char *name, uint64_t least, uint64_t most, uint64_t fallback,
                     uint64_t *ret_number)
{
    pawl_error error;
    char where[64];
    const char *text = exchange_param(x, name);
    snprintf(where, sizeof where, "$query.%s", name);
    if (!text)
        *ret_number = fallback;
    if (!text || target_number(text, least, most, where, ret_number, &error) == PAWL_OK)
        return true;
    exchange_fail(x, &error);
    return false;
}

bool exchange_flag(struct exchange *x, const char *name, bool *ret_flag)
{
    const char *text = exchange_param(x, name);
    bool yes = text && strcmp(text, "true") == 0;
    if (text && !yes && strcmp(text, "false") != 0) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$query.%s: expected true or false, not '%.64s'",
                        name, text);
        return false;
    }
    *ret_flag = yes;
    return true;
}

bool exchange_duration(struct exchange *x, const char *name, pawl_duration most, pawl_duration fallback,
                       pawl_duration *ret_duration)
{
    pawl_error error;
    char where[64];
    const char *text = exchange_param(x, name);
    snprintf(where, sizeof where, "$query.%s", name);
    if (!text)
        *ret_duration = fallback;
    if (!text || target_duration(text, most, where, ret_duration, &error) == PAWL_OK)
        return true;
    exchange_fail(x, &error);
    return false;
}

#define READ_TIMEOUT_MAX (60 * PAWL_SECOND)

bool exchange_read_options(struct exchange *x, pawl_read_options *ret_options)
{
    pawl_read_options options = {0};
    if (!exchange_number(x, "min_offset", 1, UINT64_MAX, 0, &options.min_offset)
        || !exchange_duration(x, "timeout", READ_TIMEOUT_MAX, 0, &options.timeout))
        return false;
    x->patient = options.min_offset > 0;
    *ret_options = options;
    return true;
}

bool exchange_limit(struct exchange *x, size_t *ret_limit)
{
    uint64_t limit;
    if (!exchange_number(x, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit))
        return false;
    *ret_limit = (size_t)limit;
    return true;
}

bool exchange_cursor(struct exchange *x, pawl_cursor *ret_cursor)
{
    const char *text = exchange_param(x, "cursor");
    pawl_error error;
    pawl_cursor cursor = {0};
    int status = text ? pawl_cursor_parse(exchange_engine(x), text, &cursor, &error) : PAWL_OK;
    if (status != PAWL_OK) {
        pawl_error_wrap(&error, status, "$query.cursor");
        exchange_fail(x, &error);
        return false;
    }
    *ret_cursor = cursor;
    return true;
}

bool exchange_key(struct exchange *x, const char *text, pawl_bytes *ret_key)
{
    if (!text) {
        *ret_key = (pawl_bytes){NULL, 0};
        return true;
    }
    const char *first = text + strspn(text, " \t\r\n");
    bool whole = *first == '{' || *first == '[';
    size_t room = strlen(text) + 3;
    char *key = malloc(room);
    assert(x->key_count < EXCHANGE_KEYS_MAX);
    if (!key) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a key");
        return false;
    }
    int size = snprintf(key, room, whole ? "%s" : "[%s]", text);
    x->keys[x->key_count++] = key;
    *ret_key = (pawl_bytes){key, (size_t)size};
    return true;
}

void exchange_read_maybe_wait(struct exchange *x, exchange_step read)
{
    if (exchange_param(x, "min_offset"))
        exchange_on_pool(x, read);
    else
        read(x);
}

const char *exchange_header(const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

bool exchange_accepts(const struct exchange *x, const char *type)
{
    const char *at = exchange_header(x, "Accept");
    size_t size = strlen(type);
    while (at && *at) {
        at += strspn(at, " \t,");
        if (strncasecmp(at, type, size) == 0 && strchr(" \t,;", at[size]))
            return true;
        at += strcspn(at, ",");
    }
    return false;
}

bool exchange_is_type(const struct exchange *x, const char *type)
{
    return access_is_type(exchange_header(x, "Content-Type"), type);
}

pawl_bytes exchange_body(const struct exchange *x)
{
    return (pawl_bytes){x->body ? x->body : "", x->body_size};
}

json_t *exchange_body_json(struct exchange *x)
{
    json_error_t place;
    pawl_bytes body = exchange_body(x);
    json_t *tree = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, &place);
    if (json_is_object(tree))
        return tree;
    if (tree)
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$: expected an object");
    else
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "line %d, column %d: %.200s", place.line,
                        place.column, place.text);
    json_decref(tree);
    return NULL;
}
