/* http/exchange/dispatch.c: from the headers of a request to the handler of its route. */
#include <inttypes.h>
#include <string.h>

#include "http/server/server.h"

static bool check_origin(struct exchange *x)
{
    struct pawl_server *server = x->server;
    const char *host = exchange_header(x, MHD_HTTP_HEADER_HOST);
    if (x->peer->trusted)
        return true;
    if (!host)
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$header.Host: it is missing");
    else if (!access_host(host, (const char *const *)server->hosts, server->host_count))
        exchange_refuse(x, HTTP_MISDIRECTED, PAWL_EACCES,
                        "$header.Host: this server is not called '%.128s'; --host adds a name", host);
    else if (!access_origin(exchange_header(x, MHD_HTTP_HEADER_ORIGIN), host, server->tls))
        exchange_refuse(x, HTTP_FORBIDDEN, PAWL_EACCES, "$header.Origin: pages of other sites may not ask");
    return !x->answered;
}

static bool find_route(struct exchange *x)
{
    unsigned allowed = 0;
    char text[METHODS_TEXT_MAX];
    if (x->target_bad) {
        exchange_fail(x, &x->refusal);
        return false;
    }
    x->route = route_find(method_of(x->method), &x->target, &allowed);
    if (x->route)
        return true;
    if (!allowed) {
        exchange_refuse(x, HTTP_NOT_FOUND, PAWL_ENOTFOUND, "$path: there is nothing at this path");
        return false;
    }
    methods_format(allowed, text);
    exchange_add_header(x, MHD_HTTP_HEADER_ALLOW, "%s", text);
    exchange_refuse(x, HTTP_METHOD_NOT_ALLOWED, PAWL_EINVAL, "this path takes %s, not %.32s", text, x->method);
    return false;
}

static bool refuse_token(struct exchange *x, const char *words)
{
    exchange_add_header(x, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    exchange_refuse(x, HTTP_UNAUTHORIZED, PAWL_EACCES, "$header.Authorization: %s", words);
    return false;
}

/* Who asks. A token that was sent counts, even where none is needed. */
static bool find_grant(struct exchange *x)
{
    const char *authorization = exchange_header(x, MHD_HTTP_HEADER_AUTHORIZATION);
    pawl_bytes secret;
    pawl_error error;
    x->grant = (struct grant){.scopes = SCOPE_ALL};
    if (x->peer->trusted || x->route->scope == SCOPE_NONE)
        return true;
    if (!authorization)
        return x->server->need_token ? refuse_token(x, "a token is needed: Bearer SECRET") : true;
    if (!access_bearer(authorization, &secret))
        return refuse_token(x, "expected Bearer SECRET");
    int status = access_token(x->server->engine, secret, &x->grant, &error);
    if (status == PAWL_OK)
        return true;
    if (status == PAWL_EACCES)
        return refuse_token(x, "there is no such token");
    exchange_fail(x, &error);
    return false;
}

static bool check_grant(struct exchange *x)
{
    uint64_t wsid = 0;
    if (!access_allows(&x->grant, x->route->scope)) {
        exchange_refuse(x, HTTP_FORBIDDEN, PAWL_EACCES, "$header.Authorization: the token may not do this");
        return false;
    }
    if (route_place(x->route, "wsid") != SIZE_MAX && !exchange_wsid(x, &wsid))
        return false;
    if (x->route->scope != SCOPE_NONE && !access_reaches(&x->grant, wsid)) {
        exchange_refuse(x, HTTP_FORBIDDEN, PAWL_EACCES,
                        "$header.Authorization: the token is for other workspaces");
        return false;
    }
    return true;
}

static bool check_params(struct exchange *x)
{
    for (size_t i = 0; i < x->target.param_count; i++)
        if (!route_lists(x->route->params, x->target.params[i].name)) {
            exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$query.%.64s: there is no such parameter%s%s",
                            x->target.params[i].name, x->route->params ? "; there are: " : "",
                            x->route->params ? x->route->params : "");
            return false;
        }
    return true;
}

static bool has_body(const struct exchange *x)
{
    const char *length = exchange_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return exchange_header(x, MHD_HTTP_HEADER_TRANSFER_ENCODING) || (length && strcmp(length, "0") != 0);
}

static bool check_type(struct exchange *x)
{
    bool writes = x->route->method == METHOD_POST || x->route->method == METHOD_PUT;
    if ((writes || has_body(x)) && !access_written_type(exchange_header(x, MHD_HTTP_HEADER_CONTENT_TYPE))) {
        exchange_refuse(x, HTTP_WRONG_TYPE, PAWL_EINVAL,
                        "$header.Content-Type: expected " TYPE_JSON " or, for several, " TYPE_NDJSON);
        return false;
    }
    return true;
}

/* A body that is taken as it comes has no length that counts. */
static bool check_length(struct exchange *x)
{
    const char *length = exchange_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    size_t most = x->server->options.limits.body_bytes;
    uint64_t size = 0;
    if (x->take || !length
        || (target_number(length, 0, UINT64_MAX, "", &size, NULL) == PAWL_OK && size <= most))
        return true;
    exchange_refuse(x, HTTP_TOO_LARGE, PAWL_ETOOBIG, "$header.Content-Length: a body has at most %zu bytes",
                    most);
    return false;
}

void dispatch_begin(struct exchange *x)
{
    if (!check_origin(x) || !find_route(x) || !find_grant(x) || !check_grant(x) || !check_params(x)
        || !check_type(x))
        return;
    if (x->route->begin)
        x->route->begin(x);
    if (!x->answered)
        (void)check_length(x);
}

void dispatch_run(struct exchange *x)
{
    x->phase = PHASE_RUN;
    if (x->route->flags & ROUTE_WAITS)
        exchange_on_pool(x, x->route->handler);
    else
        x->route->handler(x);
}
