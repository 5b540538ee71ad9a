/* http/routes/commands.c: POST /v1/ws/{wsid}/commands: one command. Many, as NDJSON, are in batch.c.
 *
 * The body is read into a request on the HTTP thread, the connection sleeps while the command is under way, and
 * the answer is made on an HTTP thread again. Nothing is done on a shard but to wake the connection. A client
 * that goes away meanwhile changes nothing: what became of the command, its idempotency key tells. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "http/routes/commands.h"
#include "http/server/server.h"

struct command_call {
    struct exchange *x;
    pawl_request *request;
    pawl_answer answer;
    int status;
    pawl_error error;
};

static void give_back(struct command_call *call)
{
    if (call->request)
        requests_give(call->x->server->requests, call->request);
    call->request = NULL;
}

static void release_call(void *state)
{
    give_back(state);
    free(state);
}

int command_fill(pawl_request *request, uint64_t wsid, pawl_ack ack, pawl_bytes json, const char *key,
                 pawl_error *error)
{
    int status = pawl_request_json(request, wsid, json);
    if (status == PAWL_OK && key && pawl_request_key(request, key) != PAWL_OK)
        return pawl_error_set(error, pawl_request_error(request)->code, "$header.Idempotency-Key: %s",
                              pawl_request_error(request)->text);
    if (status != PAWL_OK) {
        *error = *pawl_request_error(request);
        return status;
    }
    pawl_request_ack(request, ack);
    return PAWL_OK;
}

bool command_ack(struct exchange *x, pawl_ack *ret_ack)
{
    const char *ack = exchange_param(x, "ack");
    if (ack && strcmp(ack, "applied") != 0 && strcmp(ack, "durable") != 0) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL,
                        "$query.ack: expected applied or durable, not '%.64s'", ack);
        return false;
    }
    *ret_ack = ack && strcmp(ack, "durable") == 0 ? PAWL_ACK_DURABLE : PAWL_ACK_APPLIED;
    return true;
}

static void answer(struct exchange *x)
{
    struct command_call *call = exchange_state(x);
    pawl_text text;
    if (call->status == PAWL_OK)
        call->status = pawl_request_answer_json(call->request, &text, &call->error);
    give_back(call); /* before the client is told, who may send the next one at once */
    if (call->status != PAWL_OK) {
        call->error.code = call->status;
        exchange_fail(x, &call->error);
        return;
    }
    exchange_add_offset(x, call->answer.offset);
    exchange_answer_text(x, HTTP_OK, TYPE_JSON, &text);
}

/* On a shard. */
static void done(void *arg, pawl_request *request, int status, const pawl_answer *ret_answer,
                 const pawl_error *error)
{
    struct command_call *call = arg;
    (void)request;
    call->status = status;
    if (status == PAWL_OK)
        call->answer = *ret_answer;
    else
        call->error = *error;
    exchange_wake(call->x);
}

static int send_command(struct exchange *x, struct command_call *call, uint64_t wsid, pawl_ack ack)
{
    int status = requests_take(x->server->requests, &call->request, &call->error);
    if (status == PAWL_OK)
        status = command_fill(call->request, wsid, ack, exchange_body(x), exchange_header(x, "Idempotency-Key"),
                              &call->error);
    if (status != PAWL_OK)
        return status;
    exchange_defer(x, answer);
    status = pawl_command_async(exchange_engine(x), call->request, done, call, &call->error);
    if (status != PAWL_OK)
        exchange_defer(x, NULL);
    return status;
}

void commands_begin(struct exchange *x)
{
    if (exchange_is_type(x, TYPE_NDJSON))
        batch_begin(x);
}

void commands_post(struct exchange *x)
{
    uint64_t wsid;
    pawl_ack ack;
    if (exchange_is_type(x, TYPE_NDJSON)) {
        batch_answer(x);
        return;
    }
    if (exchange_param(x, "stop_on_error")) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$query.stop_on_error: it is for NDJSON");
        return;
    }
    if (!exchange_wsid(x, &wsid) || !command_ack(x, &ack))
        return;
    struct command_call *call = calloc(1, sizeof *call);
    if (!call) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a command");
        return;
    }
    call->x = x;
    exchange_keep(x, call, release_call);
    if (send_command(x, call, wsid, ack) != PAWL_OK) {
        give_back(call);
        exchange_fail(x, &call->error);
    }
}
