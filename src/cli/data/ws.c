/* cli/data/ws.c: create workspaces, list them, look at one, and freeze one. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/talk/session.h"

static int create(const struct options *options, struct session *session, uint64_t wsid, pawl_error *error)
{
    pawl_text text;
    int status = session_workspace_create(session, wsid, options->arguments[1], &text, error);
    if (status != PAWL_OK)
        return status;
    if (options_get(options, "json")) {
        print_text(&text);
        putchar('\n');
        return PAWL_OK;
    }
    json_t *answer = json_loadb(text.data, text.size, 0, NULL);
    printf("workspace %" PRIu64 " is of kind %s, in partition %" PRIu64 ", from offset %" PRIu64 " on\n", wsid,
           options->arguments[1], json_to_u64(json_object_get(answer, "partition")),
           json_to_u64(json_object_get(answer, "offset")));
    json_decref(answer);
    pawl_text_free(&text);
    return PAWL_OK;
}

static int run_create(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    uint64_t wsid;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    return session_close(options, &session, create(options, &session, wsid, &error), &error);
}

static void print_row(const json_t *w)
{
    const char *kind = json_string_value(json_object_get(w, "kind"));
    printf("%20" PRIu64 "  %-32s %9" PRIu64 " %12" PRIu64 "%s\n", json_to_u64(json_object_get(w, "wsid")),
           kind ? kind : "", json_to_u64(json_object_get(w, "partition")),
           json_to_u64(json_object_get(w, "workspace_offset")),
           json_is_true(json_object_get(w, "frozen")) ? "  frozen" : "");
}

/* Page by page, so that a long list is not held in memory. */
static int list(const struct options *options, struct session *session, uint64_t after, uint64_t limit,
                pawl_error *error)
{
    bool json = options_get(options, "json") != NULL, first = true;
    do {
        pawl_text text;
        size_t page = limit < SESSION_PAGE ? (size_t)limit : SESSION_PAGE;
        int status = session_workspaces(session, after, page, &text, &after, error);
        if (status != PAWL_OK)
            return status;
        if (!json && first)
            printf("%20s  %-32s %9s %12s\n", "workspace", "kind", "partition", "events");
        first = false;
        if (!json)
            say_each((pawl_bytes){text.data, text.size}, print_row);
        else
            fwrite(text.data, 1, text.size, stdout);
        pawl_text_free(&text);
        limit -= page;
    } while (after > 0 && limit > 0 && !ferror(stdout));
    return PAWL_OK;
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    uint64_t after, limit;
    if (options_number(options, "after", 1, 0, &after, &error) != PAWL_OK
        || options_number(options, "limit", 1, UINT64_MAX, &limit, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    return session_close(options, &session, list(options, &session, after, limit, &error), &error);
}

static void print_workspace(const json_t *w)
{
    const char *kind = json_string_value(json_object_get(w, "kind")), *sequence;
    json_t *number;
    printf("%-10s %" PRIu64 "\n%-10s %s\n%-10s %" PRIu64 "\n", "workspace",
           json_to_u64(json_object_get(w, "wsid")), "kind", kind ? kind : "", "partition",
           json_to_u64(json_object_get(w, "partition")));
    printf("%-10s %" PRIu64 ", the last at offset %" PRIu64 " of the partition\n", "events",
           json_to_u64(json_object_get(w, "workspace_offset")), json_to_u64(json_object_get(w, "offset")));
    if (json_is_true(json_object_get(w, "frozen")))
        printf("%-10s it takes no commands until 'pawl ws freeze %" PRIu64 " --undo'\n", "frozen",
               json_to_u64(json_object_get(w, "wsid")));
    json_object_foreach(json_object_get(w, "sequences"), sequence, number)
        printf("%-10s %s at %" PRIu64 "\n", "sequence", sequence, json_to_u64(number));
}

static int show(const struct options *options, struct session *session, uint64_t wsid,
                const pawl_read_options *read, pawl_error *error)
{
    pawl_text text;
    int status = session_workspace_show(session, wsid, read, &text, error);
    if (status != PAWL_OK)
        return status;
    if (options_get(options, "json"))
        printf("%s\n", text.data);
    else
        say_each((pawl_bytes){text.data, text.size}, print_workspace);
    pawl_text_free(&text);
    return PAWL_OK;
}

static int run_show(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_read_options read;
    uint64_t wsid;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    return session_close(options, &session, show(options, &session, wsid, &read, &error), &error);
}

static int run_freeze(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    uint64_t wsid;
    bool frozen = options_get(options, "undo") == NULL;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    int status = session_workspace_freeze(&session, wsid, frozen, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(json_pack("{s:o,s:b}", "wsid", json_u64(wsid), "frozen", (int)frozen));
    else if (status == PAWL_OK)
        printf(frozen ? "workspace %" PRIu64 " is frozen\n" : "workspace %" PRIu64 " takes commands\n", wsid);
    return session_close(options, &session, status, &error);
}

const struct command command_ws_freeze = {
    .name = "ws freeze",
    .summary = "let a workspace take no more commands, or let it take them again",
    .about =
        "Commands to it are refused from then on, also after a restart; it is read as before, and lanes go\n"
        "on. It is an event of the workspace. If it is so already, nothing is done.\n",
    .arguments = {"WSID"},
    .options = {OPTIONS_WHERE, {"undo", NULL, "it takes commands again"}, OPTION_JSON},
    .run = run_freeze,
};

const struct command command_ws_create = {
    .name = "ws create",
    .summary = "create a workspace",
    .about = "WSID is a number of your choice, at least 1; KIND the qualified name of a workspace kind of the\n"
             "schema, such as shop.tenant. Creating it is the workspace's first event.\n",
    .arguments = {"WSID", "KIND"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_create,
};

const struct command command_ws_list = {
    .name = "ws list",
    .summary = "list the workspaces",
    .about =
        "Workspaces come in an order that means nothing, but is always the same: --after the last one of a\n"
        "page goes on behind it.\n",
    .options = {OPTIONS_WHERE,
                {"after", "WSID", "begin behind this one"},
                {"limit", "N", "end after so many"},
                OPTION_JSON},
    .run = run_list,
};

const struct command command_ws_show = {
    .name = "ws show",
    .summary = "show a workspace: its kind, its events, the last numbers of its sequences",
    .about =
        "Events of a workspace are numbered without gaps: the last one's number says how many there are.\n",
    .arguments = {"WSID"},
    .options = {OPTIONS_WHERE, OPTION_MIN_OFFSET, OPTION_JSON},
    .run = run_show,
};
