/* cli/talk/session_jobs.c: jobs of a server; access tokens, of an engine or of a server. */
#include <string.h>

#include "cli/talk/remote.h"
#include "cli/talk/session.h"

/* --- jobs --- */

static int parse(pawl_text *text, json_t **ret_tree, pawl_error *error)
{
    json_t *tree = json_loadb(text->data, text->size, 0, NULL);
    explicit_bzero(text->data, text->size); /* it may have a secret */
    pawl_text_free(text);
    if (!tree)
        return pawl_error_set(error, PAWL_EIO, "the server's answer is not JSON");
    *ret_tree = tree;
    return PAWL_OK;
}

int session_job_begin(struct session *s, const char *kind, json_t *body, uint64_t *ret_id, pawl_error *error)
{
    struct target target;
    pawl_text text;
    json_t *job;
    target_begin(&target, "/v1");
    target_word(&target, kind);
    int status = remote_send(s->remote, "POST", &target, body, &text, error);
    if (status == PAWL_OK)
        status = parse(&text, &job, error);
    if (status != PAWL_OK)
        return status;
    *ret_id = json_u64_in(job, "job");
    json_decref(job);
    return PAWL_OK;
}

int session_job_show(struct session *s, uint64_t id, json_t **ret_job, pawl_error *error)
{
    struct target target;
    pawl_text text;
    target_begin(&target, "/v1/jobs");
    target_number(&target, id);
    int status = remote_get(s->remote, &target, &text, error);
    return status == PAWL_OK ? parse(&text, ret_job, error) : status;
}

static int send_delete(struct session *s, struct target *target, pawl_error *error)
{
    const struct remote_call call = {.method = "DELETE", .target = target};
    return remote_ask(s->remote, &call, NULL, error);
}

int session_job_cancel(struct session *s, uint64_t id, pawl_error *error)
{
    struct target target;
    target_begin(&target, "/v1/jobs");
    target_number(&target, id);
    int status = send_delete(s, &target, error);
    return status == PAWL_ECONFLICT ? PAWL_OK : status; /* it has just ended */
}

int session_error(const json_t *tree, pawl_error *error)
{
    return remote_error(tree, error);
}

/* --- tokens --- */

static int create_here(pawl_engine *engine, const pawl_token_definition *definition, json_t **ret_token,
                       pawl_error *error)
{
    pawl_text secret, text;
    pawl_token token;
    json_t *tree = NULL;
    int status = pawl_token_create(engine, definition, &secret, error);
    if (status != PAWL_OK)
        return status;
    status = pawl_token_check(engine, (pawl_bytes){secret.data, secret.size}, &token);
    if (status != PAWL_OK)
        (void)pawl_error_set(error, status, "token %s has expired already", definition->name);
    else
        status = pawl_token_json(engine, &token, &text, error);
    if (status == PAWL_OK)
        status = parse(&text, &tree, error);
    if (status == PAWL_OK) {
        json_object_set_new(tree, "secret", json_stringn(secret.data, secret.size));
        *ret_token = tree;
    }
    explicit_bzero(secret.data, secret.size);
    pawl_text_free(&secret);
    return status;
}

static json_t *definition_json(const pawl_token_definition *d, pawl_duration lasts)
{
    json_t *scopes = json_array(), *wsids = json_array();
    for (unsigned scope = 1; scope <= PAWL_SCOPE_ALL; scope <<= 1)
        if (d->scopes & scope)
            json_array_append_new(scopes, json_string(pawl_scope_name(scope)));
    for (size_t i = 0; i < d->wsid_count; i++)
        json_array_append_new(wsids, json_u64(d->wsids[i]));
    json_t *body = json_pack("{s:s,s:o,s:o}", "name", d->name, "scopes", scopes, "wsids", wsids);
    if (body && lasts)
        json_object_set_new(body, "expires_in", json_real((double)lasts / (double)PAWL_SECOND));
    return body;
}

int session_token_create(struct session *s, const pawl_token_definition *definition, pawl_duration lasts,
                         json_t **ret_token, pawl_error *error)
{
    struct target target;
    pawl_text text;
    if (s->engine)
        return create_here(s->engine, definition, ret_token, error);
    json_t *body = definition_json(definition, lasts);
    if (!body)
        return pawl_error_set(error, PAWL_EINVAL,
                              "the name of a token is of letters, digits, '.', '_' and '-'");
    target_begin(&target, "/v1/tokens");
    int status = remote_send(s->remote, "POST", &target, body, &text, error);
    return status == PAWL_OK ? parse(&text, ret_token, error) : status;
}

int session_tokens(struct session *s, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_tokens_list(s->engine, ret_text, error);
    target_begin(&target, "/v1/tokens");
    return remote_get_lines(s->remote, &target, ret_text, error);
}

int session_token_revoke(struct session *s, const char *name, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_token_revoke(s->engine, name, error);
    target_begin(&target, "/v1/tokens");
    target_word(&target, name);
    return send_delete(s, &target, error);
}
