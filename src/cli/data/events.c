/* cli/data/events.c: prints events of a partition or of a workspace, present ones and, if asked, those to come.
 *
 * A workspace is followed in two steps. First the events that the state knows of are read. Then the partition
 * is followed from behind the last of them, and events of other workspaces are left out. The thread that reads
 * events prints them; the main thread only waits for a reason to stop. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/talk/feed.h"
#include "cli/talk/follow.h"
#include "cli/talk/session.h"

struct reading {
    struct session session;
    uint64_t wsid; /* 0: all of the partition */
    uint16_t partition;
    uint64_t from;
    uint64_t left;
    uint64_t next; /* workspace: the offset in the partition behind the last event seen */
    bool following;
    int bell;         /* following: there is nothing more to do */
    pawl_error error; /* an event that could not be shown */
};

static bool print_line(void *arg, pawl_bytes json)
{
    struct reading *r = arg;
    fwrite(json.data, 1, json.size, stdout);
    putchar('\n');
    if (r->following)
        fflush(stdout);
    return --r->left > 0 && !ferror(stdout);
}

static bool print(void *arg, const pawl_event *event)
{
    struct reading *r = arg;
    if (!event) {
        feed_ring(r->bell);
        return false;
    }
    r->next = event->offset + 1;
    if (r->wsid && (event->wsid != r->wsid || event->workspace_offset < r->from))
        return true;
    pawl_bytes json;
    bool more = pawl_event_json(event, &json, &r->error) == PAWL_OK && print_line(r, json);
    if (r->following && !more)
        feed_ring(r->bell);
    return more;
}

static int prepare(struct reading *r, const struct options *options, pawl_error *error)
{
    uint64_t partition;
    int status = options_number(options, "ws", 1, 0, &r->wsid, error);
    if (status == PAWL_OK)
        status = options_number(options, "partition", 0, 0, &partition, error);
    if (status == PAWL_OK && partition > UINT16_MAX)
        status = pawl_error_set(error, PAWL_EINVAL, "there is no partition %" PRIu64, partition);
    if (status == PAWL_OK && !r->wsid == !options_get(options, "partition"))
        status =
            pawl_error_set(error, PAWL_EINVAL, "events of what? Say --ws WSID or --partition P, one of them");
    if (status == PAWL_OK)
        status = options_number(options, "from", 1, 1, &r->from, error);
    if (status == PAWL_OK)
        status = options_number(options, "limit", 1, UINT64_MAX, &r->left, error);
    if (status == PAWL_OK)
        r->partition = (uint16_t)partition;
    return status;
}

/* The status of a reading; an event that could not be shown counts as a failure. */
static int judge(const struct reading *r, int status, pawl_error *error)
{
    if (status != PAWL_OK || r->error.code == PAWL_OK)
        return status;
    *error = r->error;
    return r->error.code;
}

static int read_workspace(struct reading *r, pawl_error *error)
{
    int status =
        pawl_workspace_events_read(r->session.engine, r->wsid, r->from, r->left, print, r, NULL, error);
    return judge(r, status, error);
}

static struct event_range range_of(const struct reading *r)
{
    return (struct event_range){.wsid = r->wsid, .partition = r->partition, .from = r->from, .limit = r->left};
}

static int run_read(const struct options *options)
{
    struct reading r = {0};
    pawl_error error = {0};
    if (prepare(&r, options, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &r.session);
    if (code != CLI_OK)
        return code;
    const struct event_range range = range_of(&r);
    int status = session_events(&r.session, &range, print_line, &r, &error);
    return session_close(options, &r.session, status, &error);
}

/* Print the events that exist, and find where in the partition to go on: behind the last event printed, or, if
 * only later events are asked for, behind the workspace's last. print() leaves out events before --from. */
static int read_then_find(struct reading *r, pawl_error *error)
{
    pawl_workspace workspace;
    int status = pawl_workspace_get(r->session.engine, r->wsid, NULL, &workspace, error);
    if (status != PAWL_OK)
        return status;
    bool to_come = r->from > workspace.workspace_offset;
    r->partition = workspace.partition;
    r->next = to_come ? workspace.offset + 1 : 1;
    return to_come ? PAWL_OK : read_workspace(r, error);
}

/* Wait until a signal comes, and return it; or until there is nothing more to do: 0. Also notices that nobody
 * reads stdout any more, even while there is nothing to print. */
static int wait_for_end(const struct feed *feed)
{
    struct pollfd fds[] = {
        {.fd = feed->signals, .events = POLLIN}, {.fd = feed->bell, .events = POLLIN}, {.fd = STDOUT_FILENO}};
    struct signalfd_siginfo info;
    while (poll(fds, sizeof fds / sizeof fds[0], -1) < 0) {
    }
    if (fds[0].revents && read(feed->signals, &info, sizeof info) == (ssize_t)sizeof info)
        return (int)info.ssi_signo;
    return 0;
}

/* From now on signals end the process, even if nobody reads what is being printed. */
static void let_signals_end_it(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int follow(struct reading *r, const struct feed *feed, int *ret_signal, pawl_error *error)
{
    pawl_events *events;
    int status = r->wsid ? read_then_find(r, error) : PAWL_OK;
    fflush(stdout);
    if (status != PAWL_OK || r->left == 0 || ferror(stdout))
        return status;
    r->following = true;
    r->bell = feed->bell;
    status = pawl_events_follow(r->session.engine, r->partition, r->wsid ? r->next : r->from, print, r, &events,
                                error);
    if (status != PAWL_OK)
        return status;
    *ret_signal = wait_for_end(feed);
    let_signals_end_it();
    return judge(r, pawl_events_unfollow(events, error), error);
}

/* A server does all of that. */
static int follow_there(struct reading *r, const struct feed *feed, int *ret_signal, pawl_error *error)
{
    struct follow *follow;
    const struct event_range range = range_of(r);
    r->following = true;
    int status = follow_start(&r->session, &range, print_line, r, feed->bell, &follow, error);
    if (status != PAWL_OK)
        return status;
    *ret_signal = wait_for_end(feed);
    let_signals_end_it();
    return follow_stop(follow, error);
}

static int run_follow(const struct options *options)
{
    struct reading r = {0};
    struct feed feed;
    pawl_error error = {0};
    int signal = 0;
    if (prepare(&r, options, &error) != PAWL_OK)
        return say_usage(&error);
    if (feed_init(&feed, -1, &error) != PAWL_OK)
        return say_failure(options, &error);
    int code = session_open(options, OPEN_TO_READ, &r.session);
    if (code == CLI_OK) {
        if (r.session.engine)
            say_left_out(r.session.engine);
        int status =
            r.session.engine ? follow(&r, &feed, &signal, &error) : follow_there(&r, &feed, &signal, &error);
        code = session_close(options, &r.session, status, &error);
    }
    feed_release(&feed);
    return code == CLI_OK && signal ? 128 + signal : code;
}

#define EVENT_OPTIONS                                                                                          \
    {"ws", "WSID", "of this workspace, by its own offsets"}, {"partition", "P", "of this partition"},          \
        {"from", "N", "begin with this offset (1)"},                                                           \
    {                                                                                                          \
        "limit", "N", "end after so many"                                                                      \
    }

const struct command command_events_read = {
    .name = "events read",
    .summary = "show events, as JSON lines",
    .about =
        "Works beside a process that writes, and shows what is durable; of a workspace, what is applied.\n",
    .options = {OPTIONS_WHERE, EVENT_OPTIONS, OPTION_JSON},
    .run = run_read,
};

const struct command command_events_follow = {
    .name = "events follow",
    .summary = "show events, and go on as they come",
    .about = "Goes on until SIGINT or SIGTERM, or until nobody reads the output any more.\n",
    .options = {OPTIONS_WHERE, EVENT_OPTIONS, OPTION_JSON},
    .run = run_follow,
};
