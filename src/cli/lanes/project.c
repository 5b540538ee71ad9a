/* cli/lanes/project.c: lists projectors, and shows how far their lanes have come. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/talk/session.h"

#define BAR 20

/* --- list --- */

static void print_names(const char *before, const json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++)
        printf("%s%s", i ? ", " : before, json_string_value(json_array_get(names, i)));
}

static void print_projector(const json_t *p)
{
    printf("%-28s %-11s ", json_text_in(p, "projector"), json_text_in(p, "kind"));
    if (json_is_true(json_object_get(p, "sync")))
        printf("%-28s %10s %7s %-8s", "synchronous", "-", "-", "-");
    else
        printf("%-28s %10" PRIu64 " %7" PRIu64 " %-5s %2" PRIu64, json_text_in(p, "lane"),
               json_u64_in(p, "generation"), json_u64_in(p, "workers"), json_text_in(p, "on_failure"),
               json_u64_in(p, "attempts"));
    print_names("  on ", json_object_get(p, "on"));
    print_names(" -> ", json_object_get(p, "writes"));
    putchar('\n');
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_text text;
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_projectors(&session, &text, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        print_text(&text);
    else if (status == PAWL_OK) {
        printf("%-28s %-11s %-28s %10s %7s %-8s  on what -> writes what\n", "projector", "kind", "lane",
               "generation", "workers", "failing");
        say_each((pawl_bytes){text.data, text.size}, print_projector);
        pawl_text_free(&text);
    }
    return session_close(options, &session, status, &error);
}

/* --- status --- */

static void print_status(const json_t *lane)
{
    const json_t *one = json_object_get(lane, "run_ahead");
    char repeated[24] = "", ahead[24] = ""; /* only the process that works on it knows */
    if (json_is_integer(one)) {
        snprintf(repeated, sizeof repeated, "%" PRIu64, json_u64_in(lane, "repeated"));
        snprintf(ahead, sizeof ahead, "%" PRIu64, json_u64_in(lane, "run_ahead"));
    }
    printf("%-28s %10" PRIu64 " %-8s %10" PRIu64 " %10" PRIu64 " %12" PRIu64 " %10s %6s  %s",
           json_text_in(lane, "lane"), json_u64_in(lane, "generation"),
           json_is_true(json_object_get(lane, "serving")) ? "serves" : "", json_u64_in(lane, "partitions"),
           json_u64_in(lane, "lag"), json_u64_in(lane, "operations"), repeated, ahead,
           json_text_in(lane, "state"));
    if (json_is_true(json_object_get(lane, "building"))) {
        char bar[BAR + 1];
        double done = json_number_value(json_object_get(lane, "progress"));
        memset(bar, ' ', BAR);
        memset(bar, '=', done < 0 ? 0 : done > 1 ? BAR : (size_t)(BAR * done));
        bar[BAR] = '\0';
        printf("  [%s] %d %%", bar, (int)(100 * done));
    }
    putchar('\n');
}

static int run_status(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_text text;
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_lanes(&session, options->arguments[0], &text, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        print_text(&text);
    else if (status == PAWL_OK) {
        printf("%-28s %10s %-8s %10s %10s %12s %10s %6s  %s\n", "lane", "generation", "", "partitions", "lag",
               "operations", "repeated", "ahead", "state");
        say_each((pawl_bytes){text.data, text.size}, print_status);
        pawl_text_free(&text);
    }
    return session_close(options, &session, status, &error);
}

const struct command command_project_list = {
    .name = "project list",
    .summary = "show the projectors: what they see and write, and in which lane",
    .about =
        "In the order in which they run. A declarative one does what the schema says; a handler is a function "
        "of\n"
        "a program that embeds Pawl, or a worker. failing: what happens to an event that fails so many times:\n"
        "its lane stalls and waits for an operator, or it becomes a void.\n",
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_list,
};

const struct command command_project_status = {
    .name = "project status",
    .summary = "show how far the lanes have come",
    .about =
        "A line for each generation of a lane, over all partitions: whether reads are served from it, how "
        "many events\n"
        "it lags behind the log, the operations that it has applied, and whether it is current, behind, "
        "paused, or\n"
        "being built. A server tells, too, how many runs were repeated and how far ahead of its turn work is "
        "begun.\n"
        "Works beside a process that has the directory open; what that one has leased, and "
        "whether a\n"
        "lane of its is stalled, only it knows.\n",
    .arguments = {"[LANE]"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_status,
};
