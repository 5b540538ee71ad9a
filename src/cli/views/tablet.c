/* cli/views/tablet.c: the tablets of a directory, and the tables in which group0 shows what it knows. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/talk/session.h"

static uint64_t number_in(const json_t *object, const char *name)
{
    return json_to_u64(json_object_get(object, name));
}

static void print_tablet(const json_t *t)
{
    const char *stage = json_string_value(json_object_get(t, "stage"));
    printf("%9" PRIu64 " %9" PRIu64 " %6" PRIu64 " %6" PRIu64 "  %016" PRIx64 "  %016" PRIx64 " %6" PRIu64
           "  %s\n",
           number_in(t, "tablet"), number_in(t, "partition"), number_in(t, "node"), number_in(t, "shard"),
           number_in(t, "first_token"), number_in(t, "last_token"), number_in(t, "tasks"), stage ? stage : "");
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_text text;
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_tablets(&session, &text, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        print_text(&text);
    else if (status == PAWL_OK) {
        printf("%9s %9s %6s %6s  %-16s  %-16s %6s  %s\n", "tablet", "partition", "node", "shard", "first token",
               "last token", "tasks", "stage");
        say_each((pawl_bytes){text.data, text.size}, print_tablet);
        pawl_text_free(&text);
    }
    return session_close(options, &session, status, &error);
}

struct tablet_count {
    uint64_t tablets;
    uint64_t first; /* of these, in partition 0 */
};

static bool count_tablet(void *arg, pawl_bytes line)
{
    struct tablet_count *count = arg;
    json_t *tablet = json_loadb(line.data, line.size, 0, NULL);
    count->tablets++;
    count->first += number_in(tablet, "partition") == 0;
    json_decref(tablet);
    return true;
}

static int resize(const struct options *options, bool split)
{
    pawl_error error = {0};
    struct session session;
    struct tablet_count count = {0};
    pawl_text text;
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    int status = session_tablets_resize(&session, split, &error);
    if (status == PAWL_OK)
        status = session_tablets(&session, &text, &error);
    if (status == PAWL_OK) {
        (void)lines_visit(&text, count_tablet, &count);
        pawl_text_free(&text);
        if (options_get(options, "json"))
            say_json(json_pack("{s:o}", "tablets", json_u64(count.tablets)));
        else
            printf("there are %" PRIu64 " tablets, %" PRIu64 " a partition\n", count.tablets, count.first);
    }
    return session_close(options, &session, status, &error);
}

static int run_split(const struct options *options)
{
    return resize(options, true);
}

static int run_merge(const struct options *options)
{
    return resize(options, false);
}

static int run_system(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_text text;
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_system(&session, options->arguments[0], &text, &error);
    if (status == PAWL_OK)
        print_text(&text);
    return session_close(options, &session, status, &error);
}

const struct command command_tablet_list = {
    .name = "tablet list",
    .summary = "show the tablets: slices of a partition's tokens, by which views are built",
    .about = "Where each is, its tokens, and how many tasks of view building it has left.\n",
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_list,
};

const struct command command_tablet_split = {
    .name = "tablet split",
    .summary = "cut every tablet in two",
    .about = "A partition has at most 64. Builds of views go on where they were.\n",
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_split,
};

const struct command command_tablet_merge = {
    .name = "tablet merge",
    .summary = "join the tablets in pairs",
    .about = "A partition has at least one. Builds of views go on where they were.\n",
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_merge,
};

const struct command command_system = {
    .name = "system",
    .summary = "show a system table, as JSON lines",
    .about = "TABLE is nodes, tablets, views, view_building_tasks, view_build_status, built_views or\n"
             "view_building_processing_base.\n",
    .arguments = {"TABLE"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .choices = {{"TABLE", "nodes tablets views view_building_tasks view_build_status built_views "
                          "view_building_processing_base"}},
    .run = run_system,
};
