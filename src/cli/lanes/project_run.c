/* cli/lanes/project_run.c: open the node and wait until its lanes have caught up, or until a lane that is rebuilt has
 * replaced the old one.
 *
 * A lane works whenever its directory is open for writing. These verbs only wait for it, and show its
 * progress. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/talk/feed.h"
#include "cli/talk/session.h"

#define SLICE    ((pawl_duration)200 * 1000 * 1000) /* between two reads of the status */
#define SECOND   ((double)1000 * 1000 * 1000)
#define LINE_GAP 10.0 /* seconds between lines, if stderr is no terminal */

struct waiting {
    struct session session;
    const char *lane; /* NULL: all */
    pawl_duration timeout;
    struct feed feed;
    int signal;
    bool terminal;
    bool drawn;
    double begun;
    double said;
    struct lane_totals totals;
};

static bool was_signalled(struct waiting *w)
{
    struct pollfd fd = {.fd = w->feed.signals, .events = POLLIN};
    struct signalfd_siginfo info;
    if (poll(&fd, 1, 0) == 1 && read(w->feed.signals, &info, sizeof info) == (ssize_t)sizeof info)
        w->signal = (int)info.ssi_signo;
    return w->signal != 0;
}

/* Show progress on stderr: a moving line on a terminal, otherwise a plain line now and then. */
static void show_progress(struct waiting *w)
{
    double now = seconds_now();
    if (now - w->said < (w->terminal ? 0 : LINE_GAP))
        return;
    fprintf(stderr,
            w->terminal ? "\r%" PRIu64 " operations, %" PRIu64 " leased, %" PRIu64 " waiting, lag %" PRIu64
                          " \033[K"
                        : "%" PRIu64 " operations, %" PRIu64 " leased, %" PRIu64 " waiting, lag %" PRIu64 "\n",
            w->totals.operations, w->totals.leased, w->totals.waiting, w->totals.lag);
    fflush(stderr);
    w->said = now;
    w->drawn = w->terminal;
}

/* PAWL_OK also if a signal ended it. */
static int wait_for_lanes(struct waiting *w, pawl_error *error)
{
    int status;
    w->begun = w->said = seconds_now();
    w->terminal = isatty(STDERR_FILENO);
    do {
        double left = (double)w->timeout / SECOND - (seconds_now() - w->begun);
        if (w->timeout && left <= 0) {
            status = PAWL_ETIMEOUT;
            break;
        }
        pawl_duration slice =
            w->timeout && left * SECOND < (double)SLICE ? (pawl_duration)(left * SECOND) + 1 : SLICE;
        *error = (pawl_error){0};
        status = session_lanes_wait(&w->session, w->lane, slice, &w->totals, error);
        if (status == PAWL_ETIMEOUT)
            show_progress(w);
    } while (status == PAWL_ETIMEOUT && !was_signalled(w));
    if (w->drawn)
        fputs("\r\033[K", stderr);
    if (w->signal)
        return PAWL_OK;
    if (status == PAWL_ETIMEOUT)
        pawl_error_set(error, status,
                       "the time is over, and the lanes have not caught up: 'pawl project status'");
    return status;
}

static void say_caught_up(const struct options *options, const struct waiting *w)
{
    const struct lane_totals *sum = &w->totals;
    double seconds = seconds_now() - w->begun;
    if (options_get(options, "json"))
        say_json(json_pack("{s:b,s:o,s:o,s:o,s:f}", "caught_up", 1, "lanes", json_u64(sum->lanes), "operations",
                           json_u64(sum->operations), "repeated", json_u64(sum->repeated), "seconds", seconds));
    else
        printf("%" PRIu64 " %s caught up after %.3f s: %" PRIu64 " operations\n", sum->lanes,
               sum->lanes == 1 ? "lane has" : "lanes have", seconds, sum->operations);
}

static int close_after(const struct options *options, struct waiting *w, int status, pawl_error *error)
{
    int code = session_close(options, &w->session, status, error);
    feed_release(&w->feed);
    return code == CLI_OK && w->signal ? 128 + w->signal : code;
}

static int begin(const struct options *options, struct waiting *w)
{
    pawl_error error = {0};
    if (feed_init(&w->feed, -1, &error) != PAWL_OK)
        return say_failure(options, &error);
    int code = session_open(options, OPEN_TO_WRITE, &w->session);
    if (code != CLI_OK)
        feed_release(&w->feed);
    return code;
}

static int run_run(const struct options *options)
{
    struct waiting w = {0};
    pawl_error error = {0};
    if (options_duration(options, "timeout", 0, &w.timeout, &error) != PAWL_OK)
        return say_usage(&error);
    int code = begin(options, &w);
    if (code != CLI_OK)
        return code;
    int status = wait_for_lanes(&w, &error);
    if (status == PAWL_OK && !w.signal)
        say_caught_up(options, &w);
    return close_after(options, &w, status, &error);
}

static void say_rebuilding(const struct options *options, const char *lane)
{
    if (options_get(options, "json"))
        say_json(json_pack("{s:s,s:b}", "lane", lane, "building", 1));
    else
        printf("lane %s is being built anew; it goes on whenever the directory is open: 'pawl project run'\n",
               lane);
}

static int run_rebuild(const struct options *options)
{
    struct waiting w = {.lane = options->arguments[0]};
    pawl_error error = {0};
    bool wait = options_get(options, "wait") != NULL;
    if (options_duration(options, "timeout", 0, &w.timeout, &error) != PAWL_OK)
        return say_usage(&error);
    int code = begin(options, &w);
    if (code != CLI_OK)
        return code;
    int status = session_lane_rebuild(&w.session, w.lane, &error);
    if (status == PAWL_OK && wait)
        status = wait_for_lanes(&w, &error);
    if (status == PAWL_OK && wait && !w.signal)
        say_caught_up(options, &w);
    else if (status == PAWL_OK)
        say_rebuilding(options, w.lane);
    return close_after(options, &w, status, &error);
}

static int set_paused(const struct options *options, bool paused)
{
    pawl_error error = {0};
    struct session session;
    const char *lane = options->arguments[0];
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    int status = session_lane_pause(&session, lane, paused, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(json_pack("{s:s,s:b}", "lane", lane, "paused", (int)paused));
    else if (status == PAWL_OK)
        printf(paused ? "lane %s is paused\n" : "lane %s goes on\n", lane);
    return session_close(options, &session, status, &error);
}

static int run_pause(const struct options *options)
{
    return set_paused(options, true);
}

static int run_resume(const struct options *options)
{
    return set_paused(options, false);
}

#define OPTION_TIMEOUT                                                                                         \
    {                                                                                                          \
        "timeout", "D", "give up after this long: 500ms, 30s, 5m"                                              \
    }

const struct command command_project_run = {
    .name = "project run",
    .summary = "let the lanes work until they have caught up",
    .about = "Opens the directory for writing, or asks the server that has it, and waits until every lane has "
             "applied\n"
             "what the log has. If a lane cannot go on by itself it says which, and why: it is stalled, it is "
             "paused, or its events wait for a "
             "handler\n"
             "or a worker, which only a program that embeds Pawl has.\n",
    .options = {OPTIONS_WHERE, OPTION_TIMEOUT, OPTION_JSON},
    .run = run_run,
};

const struct command command_project_rebuild = {
    .name = "project rebuild",
    .summary = "work a lane's tables out anew, beside those that are there",
    .about =
        "A new generation of the lane works its way through the log; reads are served from the old one until\n"
        "the new one has caught up and takes its place, in one step.\n",
    .arguments = {"LANE"},
    .options = {OPTIONS_WHERE,
                {"wait", NULL, "until it has taken the old one's place"},
                OPTION_TIMEOUT,
                OPTION_JSON},
    .run = run_rebuild,
};

const struct command command_project_pause = {
    .name = "project pause",
    .summary = "let a lane rest, until it is resumed",
    .about =
        "In all partitions; commands and other lanes go on. It stays so when the directory is opened again.\n",
    .arguments = {"LANE"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_pause,
};

const struct command command_project_resume = {
    .name = "project resume",
    .summary = "let a paused lane go on",
    .about = "It works on where it was, whenever the directory is open for writing.\n",
    .arguments = {"LANE"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_resume,
};
