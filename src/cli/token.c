/* cli/token.c: access tokens: make one, list them, revoke one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/open.h"

#define SCOPES_TEXT_MAX 32 /* all scopes, with commas */

static pawl_wall wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (pawl_wall){(int64_t)now.tv_sec * (int64_t)PAWL_SECOND + now.tv_nsec};
}

/* --- how a token is shown --- */

/* "read,write" */
static void format_scopes(unsigned scopes, char text[SCOPES_TEXT_MAX])
{
    size_t size = 0;
    text[0] = '\0';
    for (unsigned scope = 1; scope <= PAWL_SCOPE_ALL; scope <<= 1)
        if (scopes & scope)
            size += (size_t)snprintf(text + size, SCOPES_TEXT_MAX - size, "%s%s", size ? "," : "",
                                     pawl_scope_name(scope));
}

/* To the second: nobody needs more of it, and it is easier to read. */
static void format_wall(pawl_wall wall, char text[PAWL_WALL_TEXT_MAX])
{
    pawl_wall_format((pawl_wall){wall.ns - wall.ns % (int64_t)PAWL_SECOND}, text);
}

static json_t *scopes_json(unsigned scopes)
{
    json_t *array = json_array();
    for (unsigned scope = 1; scope <= PAWL_SCOPE_ALL; scope <<= 1)
        if (scopes & scope)
            json_array_append_new(array, json_string(pawl_scope_name(scope)));
    return array;
}

static json_t *wsids_json(const pawl_token *token)
{
    json_t *array = json_array();
    for (size_t i = 0; i < token->wsid_count; i++)
        json_array_append_new(array, json_u64(token->wsids[i]));
    return array;
}

static json_t *token_json(const pawl_token *token)
{
    char created[PAWL_WALL_TEXT_MAX], expires[PAWL_WALL_TEXT_MAX];
    pawl_wall_format(token->created, created);
    pawl_wall_format(token->expires, expires);
    return json_pack("{s:s,s:s,s:o,s:o,s:s,s:o}", "name", token->name, "id", token->id, "scopes",
                     scopes_json(token->scopes), "wsids", wsids_json(token), "created", created, "expires",
                     token->expires.ns ? json_string(expires) : json_null());
}

/* --- create --- */

struct wanted {
    pawl_token_definition definition;
    uint64_t wsids[PAWL_TOKEN_WSIDS_MAX];
};

static int want_workspaces(const struct options *options, struct wanted *wanted, pawl_error *error)
{
    int cursor = 0;
    size_t count = 0;
    for (const char *text; (text = options_next(options, "ws", &cursor)) != NULL; count++) {
        if (count == PAWL_TOKEN_WSIDS_MAX)
            return pawl_error_set(error, PAWL_EINVAL, "a token is bound to at most %d workspaces",
                                  PAWL_TOKEN_WSIDS_MAX);
        if (!options_parse_number(text, 1, &wanted->wsids[count]))
            return pawl_error_set(error, PAWL_EINVAL, "--ws %s: expected a number of at least 1", text);
    }
    wanted->definition.wsids = wanted->wsids;
    wanted->definition.wsid_count = count;
    return PAWL_OK;
}

static int want(const struct options *options, struct wanted *ret_wanted, pawl_error *error)
{
    struct wanted *w = ret_wanted;
    const char *scopes = options_get(options, "scope");
    pawl_duration lasts;
    *w = (struct wanted){.definition = {.name = options->arguments[0]}};
    if (!scopes)
        return pawl_error_set(error, PAWL_EINVAL,
                              "what is it good for? Say --scope, with read, write, project or admin");
    int status = pawl_scopes_parse(scopes, &w->definition.scopes, error);
    if (status != PAWL_OK)
        return pawl_error_wrap(error, status, "--scope");
    status = want_workspaces(options, w, error);
    if (status == PAWL_OK)
        status = options_duration(options, "expires", 0, &lasts, error);
    if (status != PAWL_OK || lasts == 0)
        return status;
    pawl_wall now = wall_now();
    if (lasts > (uint64_t)(INT64_MAX - now.ns))
        return pawl_error_set(error, PAWL_EINVAL, "--expires %s: that is after the year 2262",
                              options_get(options, "expires"));
    w->definition.expires.ns = now.ns + (int64_t)lasts;
    return PAWL_OK;
}

/* The secret alone on stdout, for whoever keeps it in a variable or a file. */
static void say_created(const struct options *options, const pawl_token *token, const char *secret)
{
    char scopes[SCOPES_TEXT_MAX], expires[PAWL_WALL_TEXT_MAX];
    if (options_get(options, "json")) {
        json_t *object = token_json(token);
        json_object_set_new(object, "secret", json_string(secret));
        say_json(object);
        return;
    }
    format_scopes(token->scopes, scopes);
    format_wall(token->expires, expires);
    puts(secret);
    fflush(stdout); /* before what is said about it */
    fprintf(stderr, "token %s (%s) is good for %s in ", token->name, token->id, scopes);
    if (token->wsid_count)
        fprintf(stderr, "%zu workspace%s", token->wsid_count, token->wsid_count > 1 ? "s" : "");
    else
        fputs("all workspaces", stderr);
    fprintf(stderr, "%s%s. Its secret is shown only now.\n", token->expires.ns ? ", until " : "",
            token->expires.ns ? expires : "");
}

static int run_create(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    struct wanted wanted;
    pawl_text secret;
    pawl_token token;
    if (want(options, &wanted, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_WRITE, &engine);
    if (code != CLI_OK)
        return code;
    int status = pawl_token_create(engine, &wanted.definition, &secret, &error);
    if (status == PAWL_EINVAL) {
        (void)pawl_close(engine);
        return say_usage(&error);
    }
    if (status == PAWL_OK) {
        status = pawl_token_check(engine, (pawl_bytes){secret.data, secret.size}, &token);
        if (status == PAWL_OK)
            say_created(options, &token, secret.data);
        else
            (void)pawl_error_set(&error, status, "token %s has expired already", wanted.definition.name);
        explicit_bzero(secret.data, secret.size);
        pawl_text_free(&secret);
    }
    return close_dir(options, engine, status, &error);
}

/* --- list and revoke --- */

struct listing {
    bool json;
    pawl_wall now;
};

static bool print_token(void *arg, const pawl_token *token)
{
    const struct listing *list = arg;
    char scopes[SCOPES_TEXT_MAX], created[PAWL_WALL_TEXT_MAX], expires[PAWL_WALL_TEXT_MAX];
    bool expired = token->expires.ns && token->expires.ns <= list->now.ns;
    if (list->json) {
        json_t *object = token_json(token);
        json_object_set_new(object, "expired", json_boolean(expired));
        say_json(object);
        return !ferror(stdout);
    }
    format_scopes(token->scopes, scopes);
    format_wall(token->created, created);
    format_wall(token->expires, expires);
    printf("%-20s  %s  %-24s  %-20s  %-20s  ", token->name, token->id, scopes, created,
           !token->expires.ns ? "never"
           : expired          ? "expired"
                              : expires);
    for (size_t i = 0; i < token->wsid_count; i++)
        printf("%s%" PRIu64, i ? "," : "", token->wsids[i]);
    puts(token->wsid_count ? "" : "all");
    return !ferror(stdout);
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    struct listing list = {.json = options_get(options, "json") != NULL, .now = wall_now()};
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    if (!list.json)
        printf("%-20s  %-16s  %-24s  %-20s  %-20s  %s\n", "token", "id", "scopes", "created", "expires",
               "workspaces");
    int status = pawl_token_list(engine, print_token, &list, &error);
    return close_dir(options, engine, status, &error);
}

static int run_revoke(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    const char *name = options->arguments[0];
    int code = open_dir(options, OPEN_TO_WRITE, &engine);
    if (code != CLI_OK)
        return code;
    int status = pawl_token_revoke(engine, name, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(json_pack("{s:s,s:b}", "name", name, "revoked", 1));
    else if (status == PAWL_OK)
        printf("token %s is revoked\n", name);
    return close_dir(options, engine, status, &error);
}

const struct command command_token_create = {
    .name = "token create",
    .summary = "make an access token, for clients of a server; its secret is shown once",
    .about =
        "NAME has up to 64 letters, digits, '.', '_' and '-'. No scope includes another: read is reading;\n"
        "write is commands and new workspaces; project is the work of projectors outside; admin is schemas,\n"
        "views, lanes and the node itself. The secret goes to stdout, alone.\n",
    .arguments = {"NAME"},
    .options = {OPTION_DIR,
                {"scope", "LIST", "what it is good for: some of read,write,project,admin", .needed = true},
                {"ws", "WSID", "only for this workspace; may be given again, up to 64 times", true},
                {"expires", "D", "good for so long, such as 12h or 30d (for ever)"},
                OPTION_JSON},
    .run = run_create,
};

const struct command command_token_list = {
    .name = "token list",
    .summary = "list the access tokens, without their secrets",
    .about = "The ID is the beginning of the SHA-256 of the secret: it tells which token a secret is of.\n",
    .options = {OPTION_DIR, OPTION_JSON},
    .run = run_list,
};

const struct command command_token_revoke = {
    .name = "token revoke",
    .summary = "take an access token away",
    .about = "It is not accepted any more, and its name is free again.\n",
    .arguments = {"NAME"},
    .options = {OPTION_DIR, OPTION_JSON},
    .run = run_revoke,
};
