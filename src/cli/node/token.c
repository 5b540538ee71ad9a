/* cli/node/token.c: access tokens: make one, list them, revoke one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/talk/session.h"

#define SCOPES_TEXT_MAX 32 /* all scopes, with commas */

static pawl_wall wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (pawl_wall){(int64_t)now.tv_sec * (int64_t)PAWL_SECOND + now.tv_nsec};
}

/* --- how a token is shown --- */

/* "read,write" */
static void format_scopes(const json_t *token, char text[SCOPES_TEXT_MAX])
{
    const json_t *scopes = json_object_get(token, "scopes"), *scope;
    size_t size = 0, i;
    text[0] = '\0';
    json_array_foreach(scopes, i, scope)
    {
        int more = snprintf(text + size, SCOPES_TEXT_MAX - size, "%s%s", size ? "," : "",
                            json_string_value(scope) ? json_string_value(scope) : "");
        if (more < 0 || (size_t)more >= SCOPES_TEXT_MAX - size)
            return;
        size += (size_t)more;
    }
}

/* To the second: nobody needs more of it, and it is easier to read. */
static void format_wall(const char *wall, char text[PAWL_WALL_TEXT_MAX])
{
    size_t size = strcspn(wall, ".Z");
    snprintf(text, PAWL_WALL_TEXT_MAX, "%.*sZ", (int)(size < PAWL_WALL_TEXT_MAX - 2 ? size : 0), wall);
}

/* --- create --- */

struct wanted {
    pawl_token_definition definition;
    pawl_duration lasts; /* 0: for ever */
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
    *w = (struct wanted){.definition = {.name = options->arguments[0]}};
    if (!scopes)
        return pawl_error_set(error, PAWL_EINVAL,
                              "what is it good for? Say --scope, with read, write, project or admin");
    int status = pawl_scopes_parse(scopes, &w->definition.scopes, error);
    if (status != PAWL_OK)
        return pawl_error_wrap(error, status, "--scope");
    status = want_workspaces(options, w, error);
    if (status == PAWL_OK)
        status = options_duration(options, "expires", 0, &w->lasts, error);
    if (status != PAWL_OK || w->lasts == 0)
        return status;
    pawl_wall now = wall_now();
    if (w->lasts > (uint64_t)(INT64_MAX - now.ns))
        return pawl_error_set(error, PAWL_EINVAL, "--expires %s: that is after the year 2262",
                              options_get(options, "expires"));
    w->definition.expires.ns = now.ns + (int64_t)w->lasts;
    return PAWL_OK;
}

/* The secret alone on stdout, for whoever keeps it in a variable or a file. Takes the token. */
static void say_created(const struct options *options, json_t *token)
{
    char scopes[SCOPES_TEXT_MAX], expires[PAWL_WALL_TEXT_MAX];
    const json_t *until = json_object_get(token, "expires");
    size_t bound = json_array_size(json_object_get(token, "wsids"));
    json_object_del(token, "expired");
    if (options_get(options, "json")) {
        say_json(token);
        return;
    }
    format_scopes(token, scopes);
    puts(json_text_in(token, "secret"));
    fflush(stdout); /* before what is said about it */
    fprintf(stderr, "token %s (%s) is good for %s in ", json_text_in(token, "name"), json_text_in(token, "id"),
            scopes);
    if (bound)
        fprintf(stderr, "%zu workspace%s", bound, bound > 1 ? "s" : "");
    else
        fputs("all workspaces", stderr);
    if (json_is_string(until)) {
        format_wall(json_string_value(until), expires);
        fprintf(stderr, ", until %s", expires);
    }
    fputs(". Its secret is shown only now.\n", stderr);
    json_decref(token);
}

static int run_create(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    struct wanted wanted;
    json_t *token;
    if (want(options, &wanted, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    int status = session_token_create(&session, &wanted.definition, wanted.lasts, &token, &error);
    if (status == PAWL_OK)
        say_created(options, token);
    if (status != PAWL_EINVAL)
        return session_close(options, &session, status, &error);
    code = say_usage(&error);
    (void)session_close(options, &session, PAWL_OK, &error);
    return code;
}

/* --- list and revoke --- */

static void print_token(const json_t *token)
{
    char scopes[SCOPES_TEXT_MAX], created[PAWL_WALL_TEXT_MAX], expires[PAWL_WALL_TEXT_MAX];
    const json_t *wsids = json_object_get(token, "wsids"), *wsid;
    size_t i;
    bool ends = json_is_string(json_object_get(token, "expires"));
    format_scopes(token, scopes);
    format_wall(json_text_in(token, "created"), created);
    format_wall(json_text_in(token, "expires"), expires);
    printf("%-20s  %s  %-24s  %-20s  %-20s  ", json_text_in(token, "name"), json_text_in(token, "id"), scopes,
           created,
           !ends                                             ? "never"
           : json_is_true(json_object_get(token, "expired")) ? "expired"
                                                             : expires);
    json_array_foreach(wsids, i, wsid) printf("%s%" PRIu64, i ? "," : "", json_to_u64(wsid));
    puts(json_array_size(wsids) ? "" : "all");
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_text text;
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_tokens(&session, &text, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        print_text(&text);
    else if (status == PAWL_OK) {
        printf("%-20s  %-16s  %-24s  %-20s  %-20s  %s\n", "token", "id", "scopes", "created", "expires",
               "workspaces");
        say_each((pawl_bytes){text.data, text.size}, print_token);
        pawl_text_free(&text);
    }
    return session_close(options, &session, status, &error);
}

static int run_revoke(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    const char *name = options->arguments[0];
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    int status = session_token_revoke(&session, name, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(json_pack("{s:s,s:b}", "name", name, "revoked", 1));
    else if (status == PAWL_OK)
        printf("token %s is revoked\n", name);
    return session_close(options, &session, status, &error);
}

const struct command command_token_create = {
    .name = "token create",
    .summary = "make an access token, for clients of a server; its secret is shown once",
    .about =
        "NAME has up to 64 letters, digits, '.', '_' and '-'. No scope includes another: read is reading;\n"
        "write is commands and new workspaces; project is the work of projectors outside; admin is schemas,\n"
        "views, lanes and the node itself. The secret goes to stdout, alone.\n",
    .arguments = {"NAME"},
    .options = {OPTIONS_WHERE,
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
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_list,
};

const struct command command_token_revoke = {
    .name = "token revoke",
    .summary = "take an access token away",
    .about = "It is not accepted any more, and its name is free again.\n",
    .arguments = {"NAME"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_revoke,
};
