/* http/routes/tokens.c: access tokens: made, listed, revoked.
 *
 * Whoever may make a token may make one that is good for everything. So it is not enough that the server asks for no
 * token on loopback: the client shows a token with the scope admin that is bound to no workspace, or comes by
 * the Unix socket, whose mode says who may open it.
 *
 * A secret is in the answer to the request that made it, and nowhere else: bodies of answers are not logged. */
#include <string.h>
#include <time.h>

#include "http/routes/body.h"
#include "http/server/server.h"

static bool may_manage(struct exchange *x)
{
    if (x->peer->trusted || x->grant.name[0])
        return true;
    exchange_refuse(x, HTTP_FORBIDDEN, PAWL_EACCES,
                    "$header.Authorization: tokens are managed with a token of scope admin, or by the Unix "
                    "socket of the directory");
    return false;
}

static pawl_wall wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (pawl_wall){(int64_t)now.tv_sec * (int64_t)PAWL_SECOND + now.tv_nsec};
}

void tokens_list(struct exchange *x)
{
    pawl_text text;
    pawl_error error;
    if (!may_manage(x))
        return;
    if (pawl_tokens_list(exchange_engine(x), &text, &error) == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
    else
        exchange_fail(x, &error);
}

/* --- create --- */

struct wish {
    pawl_token_definition definition;
    uint64_t wsids[PAWL_TOKEN_WSIDS_MAX];
};

static unsigned read_scopes(struct body *body)
{
    const char *names[4];
    unsigned scopes = 0, scope;
    size_t count = body_strings(body, "scopes", sizeof names / sizeof names[0], BODY_NEEDED, names);
    for (size_t i = 0; i < count; i++) {
        if (strchr(names[i], ',') || pawl_scopes_parse(names[i], &scope, NULL) != PAWL_OK) {
            body_complain(body, "scopes", "expected read, write, project or admin, not '%.32s'", names[i]);
            return 0;
        }
        scopes |= scope;
    }
    return scopes;
}

static void read_wsids(struct body *body, struct wish *wish)
{
    const json_t *member = body_member(body, "wsids");
    size_t count = json_array_size(member);
    if (member && (!json_is_array(member) || count > PAWL_TOKEN_WSIDS_MAX)) {
        body_complain(body, "wsids", "expected a list of at most %d workspaces", PAWL_TOKEN_WSIDS_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!body_value_number(json_array_get(member, i), 1, UINT64_MAX, &wish->wsids[i])) {
            body_complain(body, "wsids", "expected a list of numbers of at least 1");
            return;
        }
    wish->definition.wsids = wish->wsids;
    wish->definition.wsid_count = count;
}

static void read_expiry(struct body *body, struct wish *wish)
{
    pawl_wall now = wall_now();
    pawl_duration lasts = body_duration(body, "expires_in", (pawl_duration)(INT64_MAX - now.ns), 0);
    if (body_has(body, "expires_in") && lasts == 0)
        body_complain(body, "expires_in", "expected a time that is still to come");
    if (lasts)
        wish->definition.expires.ns = now.ns + (int64_t)lasts;
}

static void answer_created(struct exchange *x, pawl_text *secret)
{
    pawl_token token;
    pawl_text text;
    pawl_error error = {0};
    json_t *shown = NULL;
    int status = pawl_token_check(exchange_engine(x), (pawl_bytes){secret->data, secret->size}, &token);
    if (status != PAWL_OK)
        (void)pawl_error_set(&error, status, "the token has expired already");
    else
        status = pawl_token_json(exchange_engine(x), &token, &text, &error);
    if (status != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    shown = json_loadb(text.data, text.size, 0, NULL);
    pawl_text_free(&text);
    json_object_set_new(shown, "secret", json_stringn(secret->data, secret->size));
    exchange_answer_json(x, HTTP_CREATED, shown);
}

/* {"name":"till-3","scopes":["read","write"],"wsids":[7],"expires_in":"30d"} */
void tokens_create(struct exchange *x)
{
    struct wish wish = {0};
    struct body body;
    pawl_text secret;
    pawl_error error;
    if (!may_manage(x) || !body_begin(x, &body))
        return;
    wish.definition.name = body_string(&body, "name", BODY_NEEDED);
    wish.definition.scopes = read_scopes(&body);
    read_wsids(&body, &wish);
    read_expiry(&body, &wish);
    if (!body_end(&body))
        return;
    int status = pawl_token_create(exchange_engine(x), &wish.definition, &secret, &error);
    body_release(&body);
    if (status != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    answer_created(x, &secret);
    explicit_bzero(secret.data, secret.size);
    pawl_text_free(&secret);
}

void tokens_revoke(struct exchange *x)
{
    pawl_error error;
    const char *name = exchange_path(x, "name");
    if (!may_manage(x))
        return;
    if (pawl_token_revoke(exchange_engine(x), name, &error) == PAWL_OK)
        exchange_answer_json(x, HTTP_OK, json_pack("{s:s,s:b}", "name", name, "revoked", 1));
    else
        exchange_fail(x, &error);
}
