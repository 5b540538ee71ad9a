#include "cli/talk/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk/courier.h"

#define TOKEN_FILE_MAX ((size_t)4096)
#define BESIDE_MS      5000 /* for a process to answer at the socket of a directory */

/* --- open and close --- */

int session_url(const struct options *options, const char **ret_url, pawl_error *error)
{
    const char *url = options_get(options, "url"), *dir = options_get(options, "dir");
    if (url && dir)
        return pawl_error_set(error, PAWL_EINVAL, "--url and --dir are two places: give one of them");
    if (!url && !dir)
        url = getenv("PAWL_URL");
    bool given = url && url[0] != '\0';
    if (url && !given && options_get(options, "url"))
        return pawl_error_set(error, PAWL_EINVAL,
                              "--url needs the URL of a server, such as http://localhost:7295");
    if (!given && options_get(options, "token-file"))
        return pawl_error_set(error, PAWL_EINVAL, "--token-file is for a server: say --url URL");
    *ret_url = given ? url : NULL;
    return PAWL_OK;
}

/* The secret, without the blanks around it; free() it. NULL: there is none. */
static int read_token(const struct options *options, char **ret_token, pawl_error *error)
{
    const char *file = options_get(options, "token-file"), *given = getenv("PAWL_TOKEN");
    char *text = NULL;
    size_t size = 0;
    int status = PAWL_OK;
    if (file)
        status = read_whole(file, TOKEN_FILE_MAX, &text, &size, error);
    else if (given && given[0])
        text = strdup(given);
    if (status != PAWL_OK)
        return status;
    if (text) {
        size_t blank = strspn(text, " \t\r\n"), length = strcspn(text + blank, " \t\r\n");
        memmove(text, text + blank, length);
        text[length] = '\0';
    }
    *ret_token = text;
    return PAWL_OK;
}

int session_open_url(const struct options *options, const char *url, struct session *ret_session)
{
    pawl_error error = {0};
    char *token = NULL;
    struct remote *remote;
    if (read_token(options, &token, &error) != PAWL_OK)
        return say_failure(options, &error);
    int status = remote_open_url(url, token, &remote, &error);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    if (status == PAWL_EINVAL)
        return say_usage(&error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    *ret_session = (struct session){.remote = remote};
    return CLI_OK;
}

/* Whoever has the directory for writing may serve it: then it is asked, also by verbs that only read, so that they
 * see what was just written. The answer shows that the socket is not one that a killed process has left. */
static int open_beside(const char *dir, struct remote **ret_remote, pawl_error *error)
{
    struct target target;
    struct remote *remote;
    int status = remote_open_socket(dir, &remote, error);
    if (status != PAWL_OK)
        return status;
    target_begin(&target, "/health/live");
    const struct remote_call call = {.method = "GET", .target = &target, .timeout_ms = BESIDE_MS};
    status = remote_ask(remote, &call, NULL, error);
    if (status == PAWL_OK)
        *ret_remote = remote;
    else
        remote_close(remote);
    return status;
}

static int open_directory(const struct options *options, const char *dir, enum opening opening,
                          struct session *ret_session)
{
    pawl_error error = {0}, unserved = {0};
    struct session session = {0};
    int status = open_beside(dir, &session.remote, &unserved);
    if (status != PAWL_OK)
        status = try_open(dir, opening, &session.engine, &error);
    if (status == PAWL_ELOCKED) {
        pawl_error locked = error;
        pawl_error_set(&error, PAWL_ELOCKED, "%.280s. It cannot be asked (%.120s): end it, or use 'pawl serve'",
                       locked.text, unserved.text);
    }
    if (status != PAWL_OK)
        return owner_failure(options, &error);
    *ret_session = session;
    return CLI_OK;
}

/* The place that the options name: a URL, or else a directory. On failure it has said why. */
static int find_place(const struct options *options, const char **ret_url, const char **ret_dir)
{
    pawl_error error = {0};
    if (session_url(options, ret_url, &error) != PAWL_OK)
        return say_usage(&error);
    if (*ret_url || options_dir(options, ret_dir, &error) == PAWL_OK)
        return CLI_OK;
    pawl_error_set(
        &error, PAWL_EINVAL,
        "which directory? Say --dir DIR, or set PAWL_DIR; or which server? Say --url URL, or set PAWL_URL");
    return say_usage(&error);
}

int session_open(const struct options *options, enum opening opening, struct session *ret_session)
{
    const char *url, *dir;
    int code = find_place(options, &url, &dir);
    if (code != CLI_OK)
        return code;
    return url ? session_open_url(options, url, ret_session)
               : open_directory(options, dir, opening, ret_session);
}

int session_open_to_wait(const struct options *options, struct session *ret_session, bool *ret_reading)
{
    const char *url, *dir;
    pawl_error error = {0};
    struct session session = {0};
    int code = find_place(options, &url, &dir);
    if (code != CLI_OK)
        return code;
    *ret_reading = false;
    if (url)
        return session_open_url(options, url, ret_session);
    if (open_beside(dir, &session.remote, &error) != PAWL_OK
        && try_open_to_wait(dir, &session.engine, ret_reading, &error) != PAWL_OK)
        return owner_failure(options, &error);
    *ret_session = session;
    return CLI_OK;
}

int session_close(const struct options *options, struct session *session, int status, pawl_error *error)
{
    if (session->engine)
        return close_dir(options, session->engine, status, error);
    courier_stop(session->courier);
    remote_close(session->remote);
    return end_output(options, status, error);
}

/* --- schema, system --- */

static json_t *parse(const pawl_text *text, pawl_error *error)
{
    json_t *tree = json_loadb(text->data, text->size, JSON_DISABLE_EOF_CHECK, NULL);
    if (!tree)
        pawl_error_set(error, PAWL_EIO, "the server's answer is not JSON");
    return tree;
}

int session_schema_apply(struct session *s, const char *json, uint64_t *ret_position, pawl_error *error)
{
    struct target target;
    struct remote_answer answer;
    if (s->engine)
        return pawl_schema_apply(s->engine, json, ret_position, error);
    target_begin(&target, "/v1/schema");
    const struct remote_call call = {
        .method = "PUT", .target = &target, .type = "application/json", .body = {json, strlen(json)}};
    int status = remote_ask(s->remote, &call, &answer, error);
    if (status != PAWL_OK)
        return status;
    json_t *tree = parse(&answer.text, error);
    *ret_position = json_to_u64(json_object_get(tree, "schema"));
    json_decref(tree);
    remote_answer_release(&answer);
    return tree ? PAWL_OK : PAWL_EIO;
}

/* One package on a line becomes the indented form, as pawl_schema_show makes it. A view that no package declares stays
 * on its line. */
static int indent(const pawl_text *lines, pawl_text *ret_text, pawl_error *error)
{
    struct buffer text = {0};
    bool good = buffer_reserve(&text, 1);
    for (size_t at = 0; good && at < lines->size;) {
        json_error_t end;
        json_t *package = json_loadb(lines->data + at, lines->size - at, JSON_DISABLE_EOF_CHECK, &end);
        size_t form = json_object_get(package, "schema") ? JSON_INDENT(2) : JSON_COMPACT;
        char *shown = package ? json_dumps(package, form | JSON_PRESERVE_ORDER) : NULL;
        size_t size = shown ? strlen(shown) : 0;
        good = shown && buffer_reserve(&text, size + 2);
        if (good) {
            memcpy(text.data + text.size, shown, size);
            text.data[text.size + size] = '\n';
            text.size += size + 1;
            at += (size_t)end.position;
            at += strspn(lines->data + at, "\n");
        }
        free(shown);
        json_decref(package);
    }
    if (!good) {
        free(text.data);
        return pawl_error_set(error, PAWL_EIO, "the server's schema cannot be shown");
    }
    text.data[text.size] = '\0';
    *ret_text = (pawl_text){.data = text.data, .size = text.size, .room = text.room};
    return PAWL_OK;
}

int session_schema_show(struct session *s, enum schema_form form, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    pawl_text lines;
    if (s->engine)
        return form == SCHEMA_LANES   ? pawl_schema_lanes_list(s->engine, ret_text, error)
               : form == SCHEMA_LINES ? pawl_schema_list(s->engine, ret_text, error)
                                      : pawl_schema_show(s->engine, ret_text, error);
    target_begin(&target, "/v1/schema");
    target_add_flag(&target, "lanes", form == SCHEMA_LANES);
    if (form != SCHEMA_TO_READ)
        return remote_get_lines(s->remote, &target, ret_text, error);
    int status = remote_get_lines(s->remote, &target, &lines, error);
    if (status != PAWL_OK)
        return status;
    status = indent(&lines, ret_text, error);
    pawl_text_free(&lines);
    return status;
}

int session_system(struct session *s, const char *table, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_system_read(s->engine, table, ret_text, error);
    target_begin(&target, "/v1/system");
    target_word(&target, table);
    return remote_get_lines(s->remote, &target, ret_text, error);
}

int session_figures(struct session *s, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_figures_json(s->engine, ret_text, error);
    target_begin(&target, "/v1/figures");
    return remote_get(s->remote, &target, ret_text, error);
}

/* --- workspaces --- */

static int create_here(pawl_engine *engine, uint64_t wsid, const char *kind, pawl_text *ret_text,
                       pawl_error *error)
{
    pawl_request *request;
    pawl_answer answer;
    int status = pawl_request_new(engine, &request);
    if (status != PAWL_OK)
        return pawl_error_set(error, status, "no memory for a request");
    status = pawl_workspace_create(engine, request, wsid, kind, &answer, error);
    if (status == PAWL_OK)
        status = pawl_request_answer_json(request, ret_text, error);
    pawl_request_free(request);
    return status;
}

int session_workspace_create(struct session *s, uint64_t wsid, const char *kind, pawl_text *ret_text,
                             pawl_error *error)
{
    struct target target;
    if (s->engine)
        return create_here(s->engine, wsid, kind, ret_text, error);
    json_t *body = json_pack("{s:s}", "kind", kind);
    if (!body)
        return pawl_error_set(error, PAWL_EINVAL, "the name of a kind is UTF-8");
    target_begin(&target, "/v1/ws");
    target_number(&target, wsid);
    return remote_send(s->remote, "PUT", &target, body, ret_text, error);
}

static int freeze_here(pawl_engine *engine, uint64_t wsid, bool frozen, pawl_error *error)
{
    pawl_request *request;
    int status = pawl_request_new(engine, &request);
    if (status != PAWL_OK)
        return pawl_error_set(error, status, "no memory for a request");
    status = pawl_workspace_freeze(engine, request, wsid, frozen, NULL, error);
    pawl_request_free(request);
    return status;
}

int session_workspace_freeze(struct session *s, uint64_t wsid, bool frozen, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return freeze_here(s->engine, wsid, frozen, error);
    target_begin(&target, "/v1/ws");
    target_number(&target, wsid);
    target_word(&target, frozen ? "freeze" : "thaw");
    return remote_send(s->remote, "POST", &target, NULL, NULL, error);
}

int session_workspace_show(struct session *s, uint64_t wsid, const pawl_read_options *read, pawl_text *ret_text,
                           pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_workspace_show(s->engine, wsid, read, ret_text, error);
    target_begin(&target, "/v1/ws");
    target_number(&target, wsid);
    target_add_number(&target, "min_offset", read->min_offset);
    return remote_get(s->remote, &target, ret_text, error);
}

int session_workspaces(struct session *s, uint64_t after, size_t limit, pawl_text *ret_text,
                       uint64_t *ret_after, pawl_error *error)
{
    struct target target;
    struct remote_answer answer;
    if (s->engine)
        return pawl_workspaces_list(s->engine, after, limit, ret_text, ret_after, error);
    target_begin(&target, "/v1/ws");
    target_add_number(&target, "limit", limit);
    target_add_number(&target, "cursor", after);
    const struct remote_call call = {.method = "GET", .target = &target};
    int status = remote_ask(s->remote, &call, &answer, error);
    if (status != PAWL_OK)
        return status;
    *ret_after = answer.next ? strtoull(answer.next, NULL, 10) : 0;
    *ret_text = answer.text;
    free(answer.next);
    return PAWL_OK;
}

/* --- commands --- */

static void done_here(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                      const pawl_error *error)
{
    struct session_command *command = arg;
    (void)request, (void)answer;
    command->status = status;
    if (status != PAWL_OK)
        pawl_error_set(&command->error, status, "%s", error->text[0] ? error->text : pawl_status_text(status));
    command->done(command->arg);
}

static int send_here(struct session *s, const struct command_wish *wish, pawl_bytes json,
                     struct session_command *command, pawl_error *error)
{
    int status = command->request ? PAWL_OK : pawl_request_new(s->engine, &command->request);
    if (status != PAWL_OK)
        return pawl_error_set(error, status, "no memory for a request");
    pawl_request *request = command->request;
    pawl_request_json(request, wish->wsid, json);
    if (wish->key)
        pawl_request_key(request, wish->key);
    if (wish->actor)
        pawl_request_actor(request, wish->actor);
    if (wish->correlation)
        pawl_request_correlation(request, wish->correlation);
    if (wish->causation)
        pawl_request_causation(request, wish->causation);
    if (wish->expects)
        pawl_request_expect(request, wish->expected);
    pawl_request_ack(request, wish->ack);
    return pawl_command_async(s->engine, request, done_here, command, error);
}

/* The members that the options add to every command. NULL: one is not UTF-8, or there is no memory. */
static json_t *members_of(const struct command_wish *wish)
{
    const struct {
        const char *name, *value;
    } texts[] = {{"actor", wish->actor}, {"correlation", wish->correlation}, {"causation", wish->causation}};
    json_t *members = json_object();
    bool good = members != NULL;
    for (size_t i = 0; good && i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].value)
            good = json_object_set_new(members, texts[i].name, json_string(texts[i].value)) == 0;
    if (good && wish->expects)
        good = json_object_set_new(members, "expected_offset", json_u64(wish->expected)) == 0;
    if (good)
        return members;
    json_decref(members);
    return NULL;
}

static bool share_a_name(json_t *a, json_t *b)
{
    const char *name;
    json_t *value;
    json_object_foreach(b, name, value) if (json_object_get(a, name)) return true;
    return false;
}

/* The command with these members; malloc'ed. They are put behind the others, so that a place in it that a refusal
 * names stays right. If it has one of them itself, it is written anew, with the option's value. */
static char *merge(pawl_bytes json, json_t *tree, json_t *members, size_t *ret_size)
{
    const char *text = json.data;
    size_t end = json.size;
    if (share_a_name(tree, members)) {
        json_object_update(tree, members);
        char *merged = json_dumps(tree, JSON_COMPACT);
        *ret_size = merged ? strlen(merged) : 0;
        return merged;
    }
    char *added = json_dumps(members, JSON_COMPACT), *merged = NULL;
    while (end > 0 && text[end - 1] != '}')
        end--;
    if (added && end > 0) {
        size_t more = strlen(added);
        merged = malloc(json.size + more + 1);
        size_t size = end - 1;
        if (merged) {
            memcpy(merged, text, size);
            if (json_object_size(tree) > 0)
                merged[size++] = ',';
            memcpy(merged + size, added + 1, more - 1); /* with its closing brace */
            *ret_size = size + more - 1;
        }
    }
    free(added);
    return merged;
}

/* What is no object is sent as it is: the server says what is wrong with it. */
static char *with_options(const struct command_wish *wish, pawl_bytes json, size_t *ret_size)
{
    json_t *members = members_of(wish), *tree = NULL;
    char *copy = NULL;
    if (members && json_object_size(members) > 0)
        tree = json_loadb(json.data, json.size, 0, NULL);
    if (json_is_object(tree))
        copy = merge(json, tree, members, ret_size);
    else if (members) {
        copy = malloc(json.size + 1);
        *ret_size = json.size;
        if (copy)
            memcpy(copy, json.data, json.size);
    }
    json_decref(tree);
    json_decref(members);
    return copy;
}

static int send_there(struct session *s, const struct command_wish *wish, pawl_bytes json,
                      struct session_command *command, pawl_error *error)
{
    if (!s->courier) {
        int status = courier_start(s->remote, wish, &s->courier, error);
        if (status != PAWL_OK)
            return status;
    }
    command->json = with_options(wish, json, &command->size);
    if (!command->json)
        return pawl_error_set(error, PAWL_EINVAL,
                              "an option is not UTF-8, or there is no memory for a command");
    courier_send(s->courier, command);
    return PAWL_OK;
}

int session_send(struct session *s, const struct command_wish *wish, pawl_bytes json,
                 struct session_command *command, pawl_error *error)
{
    command->status = PAWL_OK;
    command->error = (pawl_error){0};
    return s->engine ? send_here(s, wish, json, command, error) : send_there(s, wish, json, command, error);
}

int session_answer(struct session *s, struct session_command *command, pawl_text *ret_text, pawl_error *error)
{
    if (s->engine)
        return pawl_request_answer_json(command->request, ret_text, error);
    *ret_text = command->answer;
    command->answer = (pawl_text){0};
    return PAWL_OK;
}

void session_command_release(struct session_command *command)
{
    pawl_request_free(command->request);
    pawl_text_free(&command->answer);
    command->request = NULL;
}

void session_give_up(struct session *s)
{
    if (s->remote)
        remote_cancel(s->remote);
}
