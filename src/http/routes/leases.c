/* http/routes/leases.c: what external workers do: lease, read, extend, commit, release.
 *
 * A client that waits for a lease, or for its commit's turn, has no thread: its connection sleeps, and the desk
 * (lease_desk.h) wakes it. A commit is handed in at once. While its turn has not come, it is asked for again and
 * again, which is cheap, at growing distances; so no thread of the pool waits for another worker. If the operation that
 * it waits for can be leased, and no worker asks for one, the client is told at once to go on. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "http/routes/body.h"
#include "http/server/server.h"

#define WAIT_MAX     (60 * PAWL_SECOND)
#define DURATION_MAX (24 * 3600 * PAWL_SECOND) /* the lease table grants less */
#define COMMIT_WAIT  (10 * PAWL_SECOND)
#define COMMIT_FIRST (5 * PAWL_MILLISECOND) /* most are durable then */
#define PAUSE_MAX    (100 * PAWL_MILLISECOND)

/* --- POST /v1/leases --- */

static void release_call(void *state)
{
    struct lease_call *call = state;
    bool had = call->status == PAWL_OK && call->lease.memory;
    if (had && !call->x->sent)
        lease_desk_give_back(call->server->leases, &call->lease);
    else if (had)
        pawl_worker_lease_free(&call->lease);
    free(call->projector);
    free(call);
}

static void answer_lease(struct exchange *x)
{
    struct lease_call *call = exchange_state(x);
    pawl_text text;
    exchange_waited(x, server_now() - call->began);
    lease_desk_leave(x->server->leases, call);
    if (call->status == PAWL_OK)
        call->status = pawl_worker_lease_json(exchange_engine(x), &call->lease, &text, &call->error);
    if (call->status == PAWL_OK) {
        exchange_answer_text(x, HTTP_OK, TYPE_JSON, &text);
    } else if (call->status != PAWL_ENOTFOUND) {
        exchange_fail(x, &call->error);
        if (call->lease.memory)
            lease_desk_give_back(x->server->leases, &call->lease);
    } else if (exchange_stopping(x)) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ECLOSED, "the server is being stopped");
    } else {
        exchange_answer_empty(x, HTTP_NO_CONTENT);
    }
}

static bool read_call(struct exchange *x, struct lease_call *call)
{
    struct body body;
    if (!body_begin(x, &body))
        return false;
    const char *projector = body_string(&body, "projector", BODY_NEEDED);
    call->duration = body_duration(&body, "duration", DURATION_MAX, 0);
    call->began = server_now();
    call->deadline = call->began + body_duration(&body, "wait", WAIT_MAX, 0);
    if (!body_end(&body))
        return false;
    call->projector = strdup(projector);
    body_release(&body);
    if (!call->projector)
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a lease");
    return call->projector != NULL;
}

void leases_acquire(struct exchange *x)
{
    pawl_error error;
    struct lease_call *call = calloc(1, sizeof *call);
    if (!call) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a lease");
        return;
    }
    call->x = x;
    call->server = x->server;
    call->status = PAWL_ENOTFOUND;
    exchange_keep(x, call, release_call);
    if (!read_call(x, call))
        return;
    exchange_wake_at_stop(x);
    exchange_defer(x, answer_lease);
    if (lease_desk_join(x->server->leases, call, &error) == PAWL_OK)
        return;
    exchange_defer(x, NULL);
    if (error.code == PAWL_ENOTFOUND)
        pawl_error_wrap(&error, error.code, "$.projector");
    exchange_fail(x, &error);
}

/* --- a lease that a path names --- */

static bool path_lease(struct exchange *x, pawl_worker_lease *ret_lease)
{
    uint64_t partition, number;
    if (!exchange_path_number(x, "partition", 0, UINT16_MAX, &partition)
        || !exchange_path_number(x, "n", 1, UINT64_MAX, &number))
        return false;
    *ret_lease = (pawl_worker_lease){
        .partition = (uint16_t)partition, .lane = exchange_path(x, "lane"), .number = number};
    return true;
}

static void answer_done(struct exchange *x, const pawl_worker_lease *lease, enum http_status status,
                        const char *what, bool done)
{
    exchange_answer_json(x, status,
                         json_pack("{s:i,s:s,s:o,s:b}", "partition", (int)lease->partition, "lane", lease->lane,
                                   "number", json_number64(lease->number), what, (int)done));
}

/* --- commit --- */

struct commit_call {
    pawl_worker_lease lease;
    char *result; /* as JSON */
    uint64_t deadline;
    pawl_duration pause;
    uint64_t paused; /* the instant when the last pause began */
    struct desk_timer timer;
};

static void release_commit(void *state)
{
    struct commit_call *call = state;
    free(call->result);
    free(call);
}

static void pause_commit(struct exchange *x);

/* On the pool. */
static void try_commit(struct exchange *x)
{
    struct commit_call *call = exchange_state(x);
    pawl_error error;
    bool first = call->pause == 0;
    uint64_t began = server_now();
    int status = pawl_worker_commit_json(exchange_engine(x), &call->lease,
                                         (pawl_bytes){call->result, strlen(call->result)},
                                         first ? COMMIT_FIRST : 0, &error);
    bool late = server_now() >= call->deadline || exchange_stopping(x);
    if (status == PAWL_ETIMEOUT) /* its turn has not come */
        exchange_waited(x, server_now() - began);
    if (status == PAWL_OK)
        answer_done(x, &call->lease, HTTP_OK, "committed", true);
    else if (status != PAWL_ETIMEOUT)
        exchange_fail(x, &error);
    else if (late || (!first && pawl_worker_is_needed(exchange_engine(x), &call->lease)))
        answer_done(x, &call->lease, HTTP_ACCEPTED, "committed", false);
    else
        exchange_then(x, pause_commit);
}

static void go_on(struct exchange *x)
{
    const struct commit_call *call = exchange_state(x);
    exchange_waited(x, server_now() - call->paused);
    exchange_on_pool(x, try_commit);
}

static void pause_commit(struct exchange *x)
{
    struct commit_call *call = exchange_state(x);
    call->pause = call->pause ? 2 * call->pause : COMMIT_FIRST;
    call->pause = call->pause < PAUSE_MAX ? call->pause : PAUSE_MAX;
    call->paused = server_now();
    uint64_t at = call->paused + call->pause;
    call->timer = (struct desk_timer){.x = x, .at = at < call->deadline ? at : call->deadline};
    exchange_defer(x, go_on);
    lease_desk_wake_at(x->server->leases, &call->timer);
}

static bool read_commit(struct exchange *x, struct commit_call *call)
{
    struct body body;
    pawl_duration wait;
    if (!path_lease(x, &call->lease) || !exchange_duration(x, "wait", WAIT_MAX, COMMIT_WAIT, &wait)
        || !body_begin(x, &body))
        return false;
    call->deadline = server_now() + wait;
    call->lease.operation = body_operation(&body);
    json_t *writes = body_member(&body, "writes");
    if (!body_end(&body))
        return false;
    json_t *result = json_object();
    if (writes)
        json_object_set(result, "writes", writes);
    call->result = json_dumps(result, JSON_COMPACT);
    json_decref(result);
    body_release(&body);
    if (!call->result)
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a commit");
    return call->result != NULL;
}

void leases_commit(struct exchange *x)
{
    struct commit_call *call = calloc(1, sizeof *call);
    if (!call) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a commit");
        return;
    }
    exchange_keep(x, call, release_commit);
    if (read_commit(x, call))
        exchange_on_pool(x, try_commit);
}

/* --- extend, release --- */

void leases_extend(struct exchange *x)
{
    pawl_worker_lease lease;
    struct body body;
    pawl_error error;
    if (!path_lease(x, &lease) || !body_begin(x, &body))
        return;
    lease.operation = body_operation(&body);
    pawl_duration duration = body_duration(&body, "duration", DURATION_MAX, 0);
    if (!body_end(&body))
        return;
    body_release(&body);
    if (pawl_worker_extend(exchange_engine(x), &lease, duration, &error) == PAWL_OK)
        answer_done(x, &lease, HTTP_OK, "extended", true);
    else
        exchange_fail(x, &error);
}

void leases_release(struct exchange *x)
{
    pawl_worker_lease lease;
    struct body body;
    pawl_error error;
    if (!path_lease(x, &lease) || !body_begin(x, &body))
        return;
    lease.operation = body_operation(&body);
    bool failed = body_flag(&body, "failed"), permanent = body_flag(&body, "permanent");
    const char *words = body_string(&body, "words", BODY_OPTIONAL);
    if (!body_end(&body))
        return;
    int status = pawl_worker_release(exchange_engine(x), &lease, failed, permanent, words, &error);
    body_release(&body);
    if (status == PAWL_OK)
        answer_done(x, &lease, HTTP_OK, "released", true);
    else
        exchange_fail(x, &error);
}

/* --- reads --- */

static bool reading_lease(struct exchange *x, pawl_worker_lease *ret_lease)
{
    pawl_error error;
    const char *operation = exchange_param(x, "operation");
    if (!path_lease(x, ret_lease))
        return false;
    if (!operation) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$query.operation: it is missing");
        return false;
    }
    if (pawl_operation_parse(operation, &ret_lease->operation, &error) == PAWL_OK)
        return true;
    pawl_error_wrap(&error, error.code, "$query.operation");
    exchange_fail(x, &error);
    return false;
}

void leases_get(struct exchange *x)
{
    pawl_worker_lease lease;
    pawl_error error;
    pawl_text text;
    pawl_bytes key;
    if (!reading_lease(x, &lease) || !exchange_key(x, exchange_path(x, "key"), &key))
        return;
    if (pawl_worker_get(exchange_engine(x), &lease, exchange_path(x, "entity"), key, &text, &error) == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_JSON, &text);
    else
        exchange_fail(x, &error);
}

void leases_list(struct exchange *x)
{
    pawl_worker_lease lease;
    pawl_error error;
    pawl_text text;
    pawl_bytes after;
    size_t limit;
    if (!reading_lease(x, &lease) || !exchange_key(x, exchange_param(x, "after"), &after)
        || !exchange_limit(x, &limit))
        return;
    if (pawl_worker_list(exchange_engine(x), &lease, exchange_path(x, "entity"), after, limit, &text, &error)
        == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
    else
        exchange_fail(x, &error);
}
