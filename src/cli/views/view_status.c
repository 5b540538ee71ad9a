/* cli/views/view_status.c: which views there are, and how far their building is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/talk/session.h"
#include "cli/views/view_progress.h"

static const char *state_of(const pawl_view_status *v)
{
    if (v->rebuilding)
        return v->paused ? "rebuild paused" : "rebuilding";
    if (v->state == PAWL_VIEW_FAILED)
        return "failed";
    if (v->state == PAWL_VIEW_BUILT)
        return "built";
    return v->paused ? "paused" : "building";
}

/* --- list --- */

static bool list_one(void *arg, const pawl_view_status *v)
{
    const bool *json = arg;
    if (*json)
        say_json(json_pack("{s:s,s:s,s:s,s:b,s:b,s:o}", "view", v->name, "base", v->base, "state", state_of(v),
                           "declared", (int)v->declared, "unique", (int)v->unique, "rows", json_u64(v->rows)));
    else
        printf("%-32s %-28s %-14s %-8s %-6s %12" PRIu64 "\n", v->name, v->base, state_of(v),
               v->declared ? "package" : "run time", v->unique ? "unique" : "", v->rows);
    return !ferror(stdout);
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    bool json = options_get(options, "json") != NULL;
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    if (!json)
        printf("%-32s %-28s %-14s %-8s %-6s %12s\n", "view", "base", "state", "made by", "", "rows");
    int status = session_views(&session, NULL, list_one, &json, &error);
    return session_close(options, &session, status, &error);
}

/* --- status --- */

struct status_sum {
    size_t views;
    size_t built;
    uint64_t tasks_left;
    uint64_t rows_done;
    uint64_t rows_total;
    uint64_t rows_failed;
    double rate;
    pawl_duration eta;
};

static void print_line(const char *name, const char *state, double percent, uint64_t done, uint64_t total,
                       double rate, pawl_duration eta, uint64_t tasks, uint64_t failed)
{
    char bar[VIEW_BAR + 1], left[VIEW_ETA_MAX];
    view_bar_format(percent, bar);
    view_eta_format(eta, left);
    printf("%-32s %-14s [%s] %5.1f %% %12" PRIu64 " %12" PRIu64 " %10.0f %8s %7" PRIu64 " %8" PRIu64 "\n", name,
           state, bar, percent, done, total, rate, percent < 100 ? left : "", tasks, failed);
}

static bool status_one(void *arg, const pawl_view_status *v)
{
    struct status_sum *sum = arg;
    sum->views++;
    sum->built += v->state == PAWL_VIEW_BUILT && !v->rebuilding;
    sum->tasks_left += v->tasks_left;
    sum->rows_done += v->rows_done < v->rows_total ? v->rows_done : v->rows_total;
    sum->rows_total += v->rows_total;
    sum->rows_failed += v->rows_failed;
    sum->rate += v->rate;
    sum->eta = v->eta > sum->eta ? v->eta : sum->eta;
    print_line(v->name, state_of(v), v->percent, v->rows_done, v->rows_total, v->rate, v->eta, v->tasks_left,
               v->rows_failed);
    if (v->words[0] && strcmp(v->words, "paused") != 0)
        printf("    %s\n", v->words);
    if (v->rows_failed)
        printf("    left out: %s\n", v->first_failed);
    return !ferror(stdout);
}

static void print_total(const struct status_sum *sum)
{
    double percent = sum->built == sum->views ? 100
                     : sum->rows_total        ? 100.0 * (double)sum->rows_done / (double)sum->rows_total
                                              : 0;
    char built[32];
    snprintf(built, sizeof built, "%zu built", sum->built);
    print_line("all", built, percent, sum->rows_done, sum->rows_total, sum->rate, sum->eta, sum->tasks_left,
               sum->rows_failed);
}

static int run_status(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    struct status_sum sum = {0};
    pawl_text text;
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    if (options_get(options, "json")) {
        int listed = session_view_lines(&session, options->arguments[0], &text, &error);
        if (listed == PAWL_OK)
            print_text(&text);
        return session_close(options, &session, listed, &error);
    }
    printf("%-32s %-14s %-*s %12s %12s %10s %8s %7s %8s\n", "view", "state", VIEW_BAR + 10, "progress",
           "rows read", "of", "rows/s", "left", "tasks", "left out");
    int status = session_views(&session, options->arguments[0], status_one, &sum, &error);
    if (status == PAWL_OK && sum.views > 1)
        print_total(&sum);
    return session_close(options, &session, status, &error);
}

const struct command command_view_list = {
    .name = "view list",
    .summary = "show the views, and whether they are built",
    .about = "What each is made of, 'pawl schema show' has.\n",
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_list,
};

const struct command command_view_status = {
    .name = "view status",
    .summary = "show how far the building of views is",
    .about =
        "Of all views and their sum, or of one: base rows that were read, rate and time left; tasks that are\n"
        "left; base rows that are left out because an expression fails on them, with the first of them; why\n"
        "a view failed, or does not go on. The rate is known to the process that builds.\n",
    .arguments = {"[NAME]"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_status,
};
