/* engine/show/tokens.c: access tokens as JSON, without their secrets. */
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/show/show.h"

static void put_scopes(struct json_out *out, unsigned scopes)
{
    put_open(out, "scopes", '[');
    for (unsigned scope = 1; scope <= PAWL_SCOPE_ALL; scope <<= 1)
        if (scopes & scope) {
            const char *name = pawl_scope_name(scope);
            out_text(out, (pawl_bytes){name, strlen(name)});
        }
    out_close(out, ']');
}

static void put_wall(struct json_out *out, const char *key, pawl_wall wall)
{
    char text[PAWL_WALL_TEXT_MAX];
    if (wall.ns) {
        pawl_wall_format(wall, text);
        put_text(out, key, text);
        return;
    }
    out_key(out, key);
    out_null(out);
}

static void put_token(struct json_out *out, const pawl_token *token, pawl_wall now)
{
    out_open(out, '{');
    put_text(out, "name", token->name);
    put_text(out, "id", token->id);
    put_scopes(out, token->scopes);
    put_open(out, "wsids", '[');
    for (size_t i = 0; i < token->wsid_count; i++)
        out_unsigned(out, token->wsids[i]);
    out_close(out, ']');
    put_wall(out, "created", token->created);
    put_wall(out, "expires", token->expires);
    put_flag(out, "expired", token->expires.ns && token->expires.ns <= now.ns);
    end_line(out);
}

struct listing {
    struct json_out out;
    pawl_wall now;
};

static bool list_token(void *arg, const pawl_token *token)
{
    struct listing *l = arg;
    put_token(&l->out, token, l->now);
    return l->out.status == PAWL_OK;
}

int pawl_tokens_list(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
{
    struct listing l = {.now = pawl_env_wall_now(e->env)};
    json_out_init(&l.out, e->options.allocator);
    int status = pawl_token_list(e, list_token, &l, error);
    return text_take(&l.out, status, ret_text, error);
}

int pawl_token_json(pawl_engine *e, const pawl_token *token, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    json_out_init(&out, e->options.allocator);
    put_token(&out, token, pawl_env_wall_now(e->env));
    return text_take(&out, PAWL_OK, ret_text, error);
}
