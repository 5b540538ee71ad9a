/* http/routes/workspaces.c: workspaces: made, listed, shown, frozen. */
#include <inttypes.h>
#include <stdio.h>

#include "http/routes/body.h"
#include "http/server/server.h"

/* It reads the events that the sequence storage lacks, from the log: so it is not for an HTTP thread. */
void workspaces_show(struct exchange *x)
{
    uint64_t wsid;
    pawl_read_options options;
    pawl_text text;
    pawl_error error;
    if (!exchange_wsid(x, &wsid) || !exchange_read_options(x, &options))
        return;
    if (pawl_workspace_show(exchange_engine(x), wsid, &options, &text, &error) == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_JSON, &text);
    else
        exchange_fail(x, &error);
}

void workspaces_list(struct exchange *x)
{
    uint64_t after;
    size_t limit;
    pawl_text text;
    pawl_error error;
    char next[24];
    if (!exchange_number(x, "cursor", 1, UINT64_MAX, 0, &after) || !exchange_limit(x, &limit))
        return;
    if (pawl_workspaces_list(exchange_engine(x), after, limit, &text, &after, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    snprintf(next, sizeof next, "%" PRIu64, after);
    if (after)
        (void)exchange_add_next(x, next);
    exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
}

/* {"kind":"shop.tenant"} */
void workspaces_create(struct exchange *x)
{
    uint64_t wsid;
    pawl_request *request;
    pawl_answer answer;
    pawl_text text;
    pawl_error error;
    if (!exchange_wsid(x, &wsid))
        return;
    json_t *body = exchange_body_json(x);
    if (!body)
        return;
    const char *kind = json_string_value(json_object_get(body, "kind"));
    if (!kind || json_object_size(body) != 1) {
        json_decref(body);
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$.kind: expected {\"kind\": NAME}");
        return;
    }
    int status = requests_take(x->server->requests, &request, &error);
    if (status == PAWL_OK) {
        status = pawl_workspace_create(exchange_engine(x), request, wsid, kind, &answer, &error);
        if (status == PAWL_OK)
            status = pawl_request_answer_json(request, &text, &error);
        requests_give(x->server->requests, request);
    }
    json_decref(body);
    if (status != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    exchange_add_offset(x, answer.offset);
    exchange_answer_text(x, HTTP_CREATED, TYPE_JSON, &text);
}

static void freeze(struct exchange *x, bool frozen)
{
    uint64_t wsid;
    struct body body;
    pawl_request *request;
    pawl_answer answer;
    pawl_error error;
    if (!exchange_wsid(x, &wsid) || !body_begin(x, &body) || !body_end(&body))
        return;
    body_release(&body);
    int status = requests_take(x->server->requests, &request, &error);
    if (status == PAWL_OK) {
        status = pawl_workspace_freeze(exchange_engine(x), request, wsid, frozen, &answer, &error);
        requests_give(x->server->requests, request);
    }
    if (status != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    if (answer.offset)
        exchange_add_offset(x, answer.offset);
    exchange_answer_json(x, HTTP_OK,
                         json_pack("{s:o,s:b}", "wsid", json_number64(wsid), "frozen", (int)frozen));
}

void workspaces_freeze(struct exchange *x)
{
    freeze(x, true);
}

void workspaces_thaw(struct exchange *x)
{
    freeze(x, false);
}
