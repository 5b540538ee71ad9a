/* cli/ws.c: create workspaces, list them, and look at one. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/open.h"

static int create(const struct options *options, pawl_engine *engine, uint64_t wsid, pawl_error *error)
{
    pawl_request *request;
    pawl_answer answer;
    pawl_text text;
    int status = pawl_request_new(engine, &request);
    if (status != PAWL_OK)
        return pawl_error_set(error, status, "no memory for a request");
    status = pawl_workspace_create(engine, request, wsid, options->arguments[1], &answer, error);
    if (status == PAWL_OK && options_get(options, "json")) {
        status = pawl_request_answer_json(request, &text, error);
        if (status == PAWL_OK) {
            print_text(&text);
            putchar('\n');
        }
    } else if (status == PAWL_OK)
        printf("workspace %" PRIu64 " is of kind %s, in partition %u, from offset %" PRIu64 " on\n", wsid,
               options->arguments[1], answer.partition, answer.offset);
    pawl_request_free(request);
    return status;
}

static int run_create(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    uint64_t wsid;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_WRITE, &engine);
    if (code != CLI_OK)
        return code;
    return close_dir(options, engine, create(options, engine, wsid, &error), &error);
}

static json_t *workspace_json(const pawl_workspace *w)
{
    return json_pack("{s:o,s:s%,s:i,s:o,s:o}", "wsid", json_u64(w->wsid), "kind", w->kind.data, w->kind.size,
                     "partition", (int)w->partition, "offset", json_u64(w->offset), "workspace_offset",
                     json_u64(w->workspace_offset));
}

static bool print_row(void *arg, const pawl_workspace *w)
{
    const struct options *options = arg;
    if (options_get(options, "json"))
        say_json(workspace_json(w));
    else
        printf("%20" PRIu64 "  %-32.*s %9u %12" PRIu64 "\n", w->wsid, (int)w->kind.size,
               (const char *)w->kind.data, w->partition, w->workspace_offset);
    return !ferror(stdout);
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    uint64_t after, limit;
    if (options_number(options, "after", 1, 0, &after, &error) != PAWL_OK
        || options_number(options, "limit", 1, UINT64_MAX, &limit, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    if (!options_get(options, "json"))
        printf("%20s  %-32s %9s %12s\n", "workspace", "kind", "partition", "events");
    int status = pawl_workspaces_read(engine, after, limit, print_row, (void *)options, &error);
    return close_dir(options, engine, status, &error);
}

static bool print_number(void *arg, const pawl_last_number *n)
{
    printf("%-10s %.*s at %" PRIu64 "\n", "sequence", (int)n->sequence.size, (const char *)n->sequence.data,
           n->number);
    return true;
}

static bool add_number(void *arg, const pawl_last_number *n)
{
    json_t *sequences = arg;
    json_object_setn_new(sequences, n->sequence.data, n->sequence.size, json_u64(n->number));
    return true;
}

static int show(const struct options *options, pawl_engine *engine, uint64_t wsid,
                const pawl_read_options *read, pawl_error *error)
{
    pawl_workspace w;
    int status = pawl_workspace_get(engine, wsid, read, &w, error);
    if (status != PAWL_OK)
        return status;
    if (options_get(options, "json")) {
        json_t *object = workspace_json(&w), *sequences = json_object();
        status = pawl_last_numbers_read(engine, w.partition, wsid, add_number, sequences, error);
        json_object_set_new(object, "sequences", sequences);
        if (status == PAWL_OK)
            say_json(object);
        else
            json_decref(object);
        return status;
    }
    printf("%-10s %" PRIu64 "\n%-10s %.*s\n%-10s %u\n", "workspace", w.wsid, "kind", (int)w.kind.size,
           (const char *)w.kind.data, "partition", w.partition);
    printf("%-10s %" PRIu64 ", the last at offset %" PRIu64 " of the partition\n", "events", w.workspace_offset,
           w.offset);
    return pawl_last_numbers_read(engine, w.partition, wsid, print_number, NULL, error);
}

static int run_show(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    pawl_read_options read;
    uint64_t wsid;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    return close_dir(options, engine, show(options, engine, wsid, &read, &error), &error);
}

const struct command command_ws_create = {
    .name = "ws create",
    .summary = "create a workspace",
    .about = "WSID is a number of your choice, at least 1; KIND the qualified name of a workspace kind of the\n"
             "schema, such as shop.tenant. Creating it is the workspace's first event.\n",
    .arguments = {"WSID", "KIND"},
    .options = {OPTION_DIR, OPTION_JSON},
    .run = run_create,
};

const struct command command_ws_list = {
    .name = "ws list",
    .summary = "list the workspaces",
    .about =
        "Workspaces come in an order that means nothing, but is always the same: --after the last one of a\n"
        "page goes on behind it.\n",
    .options = {OPTION_DIR,
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
    .options = {OPTION_DIR, OPTION_MIN_OFFSET, OPTION_JSON},
    .run = run_show,
};
