/* cli/lanes/lease.c: the numbers that lanes work on, figures of their leases, and an operator's decisions.
 *
 * Leases live in the process that has the directory open. These verbs ask it, if it serves the directory. If nobody
 * has it open, they open it themselves, wait until the lanes have done what they can do by themselves, and then read
 * or act. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/talk/lanes.h"
#include "cli/talk/session.h"

#define LIMIT_DEFAULT 100

static uint64_t number_in(const json_t *object, const char *name)
{
    return json_to_u64(json_object_get(object, name));
}

static const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* An engine that was just opened is given time, so that what is under way is what an operator asks about. A server
 * has been at work all the time. */
static void settle(struct session *session, const char *lane)
{
    if (session->engine)
        lanes_settle(session->engine, lane);
}

/* --- list --- */

/* A time without its parts of a second; "-" if there is none. */
static void format_time(const json_t *lease, const char *name, char text[PAWL_WALL_TEXT_MAX])
{
    pawl_wall wall;
    if (pawl_wall_parse(text_in(lease, name), &wall, NULL) == PAWL_OK)
        pawl_wall_format((pawl_wall){wall.ns - wall.ns % (int64_t)PAWL_SECOND}, text);
    else
        snprintf(text, PAWL_WALL_TEXT_MAX, "-");
}

static void print_lease(const json_t *l)
{
    char leased[PAWL_WALL_TEXT_MAX], ends[PAWL_WALL_TEXT_MAX], committed[PAWL_WALL_TEXT_MAX], source[24] = "-";
    const char *words = text_in(l, "words");
    bool is_void = json_is_true(json_object_get(l, "void"));
    format_time(l, "leased_at", leased);
    format_time(l, "ends_at", ends);
    format_time(l, "committed_at", committed);
    if (number_in(l, "event"))
        snprintf(source, sizeof source, "%" PRIu64, number_in(l, "event"));
    printf("%-24s %10" PRIu64 " %9" PRIu64 " %9" PRIu64 " %-11s %9s %7" PRIu64 " %-20s %-20s %-20s  %s%s%s%s\n",
           text_in(l, "lane"), number_in(l, "generation"), number_in(l, "partition"), number_in(l, "number"),
           text_in(l, "state"), source, number_in(l, "attempt"), leased, ends, committed,
           text_in(l, "projector"), is_void || words[0] ? ": " : "",
           is_void ? words[0] ? "void: " : "void" : "", words);
}

static int list(const struct options *options, struct session *session, const pawl_lease_query *query,
                uint64_t partition, pawl_error *error)
{
    pawl_text text;
    settle(session, query->lane);
    int status = partition > UINT16_MAX ? PAWL_ENOTFOUND : session_leases(session, query, &text, error);
    if (partition > UINT16_MAX)
        pawl_error_set(error, status, "there is no partition %" PRIu64, partition);
    if (status != PAWL_OK)
        return status;
    if (!options_get(options, "json")) {
        printf("%-24s %10s %9s %9s %-11s %9s %7s %-20s %-20s %-20s  %s\n", "lane", "generation", "partition",
               "number", "state", "event", "attempt", "granted", "ends", "committed", "projector");
        say_each((pawl_bytes){text.data, text.size}, print_lease);
        pawl_text_free(&text);
    } else
        print_text(&text);
    return PAWL_OK;
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    uint64_t partition, limit;
    if (options_number(options, "partition", 0, 0, &partition, &error) != PAWL_OK
        || options_number(options, "limit", 1, LIMIT_DEFAULT, &limit, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    const pawl_lease_query query = {.lane = options->arguments[0],
                                    .one_partition = options_get(options, "partition") != NULL,
                                    .partition = (uint16_t)partition,
                                    .limit = (size_t)limit};
    return session_close(options, &session, list(options, &session, &query, partition, &error), &error);
}

/* --- stats --- */

static void print_figures(const json_t *f)
{
    const json_t *one = json_object_get(f, "partition");
    char average[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX], repeated[DURATION_TEXT_MAX], partition[24] = "all";
    if (!json_is_null(one) && number_in(f, "bound") == 0)
        return;
    if (!json_is_null(one))
        snprintf(partition, sizeof partition, "%" PRIu64, json_to_u64(one));
    duration_format((pawl_duration)(json_number_value(json_object_get(f, "average_wait")) * 1e9 + 0.5),
                    average);
    duration_format((pawl_duration)(json_number_value(json_object_get(f, "p99_wait")) * 1e9 + 0.5), p99);
    duration_format((pawl_duration)(json_number_value(json_object_get(f, "repeated_time")) * 1e9 + 0.5),
                    repeated);
    printf("%-28s %9s %10" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %8" PRIu64 " %7" PRIu64 " %6" PRIu64
           " %7" PRIu64 " %8" PRIu64 " %9s %5" PRIu64 " %4.0f %% %9s %9s %5.1f %%\n",
           text_in(f, "lane"), partition, number_in(f, "committed"), number_in(f, "leased"),
           number_in(f, "waiting"), number_in(f, "stalled"), number_in(f, "expired"), number_in(f, "failed"),
           number_in(f, "voids"), number_in(f, "fenced"), number_in(f, "repeated"), repeated,
           number_in(f, "run_ahead"), 100 * json_number_value(json_object_get(f, "utilisation")), average, p99,
           100 * json_number_value(json_object_get(f, "efficiency")));
}

static void print_alerts(const json_t *f)
{
    const json_t *alerts = json_object_get(f, "alerts");
    for (size_t i = 0; i < json_array_size(alerts); i++) {
        const json_t *alert = json_array_get(alerts, i);
        printf("alert: lane %s, generation %" PRIu64 ": %s Most of it is in partition %" PRIu64 ". %s\n",
               text_in(f, "lane"), number_in(f, "generation"), text_in(alert, "text"),
               number_in(alert, "most_in_partition"), text_in(alert, "advice"));
    }
}

/* Why a lane refuses to work, an engine tells; a server has it in its log. */
static int print_refusals(pawl_engine *engine, const char *lane, pawl_error *error)
{
    struct lanes lanes;
    int status = lanes_load(engine, lane, &lanes, error);
    if (status != PAWL_OK)
        return status;
    for (size_t k = 0; k < lanes.count; k++)
        if (lanes.rows[k].error)
            printf("refused: lane %s, partition %u: %s\n", lanes.rows[k].name, lanes.rows[k].status.partition,
                   lanes.rows[k].error);
    lanes_free(&lanes);
    return PAWL_OK;
}

static int run_stats(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_text text;
    const char *lane = options->arguments[0];
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    settle(&session, lane);
    int status = session_lane_stats(&session, lane, &text, &error);
    if (status != PAWL_OK)
        return session_close(options, &session, status, &error);
    if (options_get(options, "json"))
        print_text(&text);
    else {
        printf("%-28s %9s %10s %7s %7s %7s %8s %7s %6s %7s %8s %9s %5s %6s %9s %9s %7s\n", "lane", "partition",
               "committed", "leased", "waiting", "stalled", "expired", "failed", "voids", "fenced", "repeated",
               "for", "ahead", "used", "wait", "p99", "efficient");
        say_each((pawl_bytes){text.data, text.size}, print_figures);
        say_each((pawl_bytes){text.data, text.size}, print_alerts);
        pawl_text_free(&text);
        if (session.engine)
            status = print_refusals(session.engine, lane, &error);
    }
    return session_close(options, &session, status, &error);
}

/* --- decisions --- */

static int run_decision(const struct options *options, enum lease_decision_kind kind, const char *done)
{
    pawl_error error = {0};
    struct session session;
    uint64_t partition, number, generation;
    const char *lane = options->arguments[1],
               *reason = kind == DECIDE_VOID ? options_get(options, "reason") : NULL;
    if (options_argument_from(options, 0, 0, "PARTITION", &partition, &error) != PAWL_OK
        || options_argument(options, 2, "N", &number, &error) != PAWL_OK
        || options_number(options, "generation", 1, 0, &generation, &error) != PAWL_OK)
        return say_usage(&error);
    if (generation > UINT32_MAX) {
        pawl_error_set(&error, PAWL_EINVAL, "there is no generation %" PRIu64, generation);
        return say_usage(&error);
    }
    if (kind == DECIDE_VOID && (!reason || reason[0] == '\0' || strlen(reason) > PAWL_LEASE_WORDS_MAX)) {
        pawl_error_set(&error, PAWL_EINVAL,
                       "lease void: for which reason? Say --reason TEXT, of at most %d bytes",
                       PAWL_LEASE_WORDS_MAX);
        return say_usage(&error);
    }
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    const struct lease_decision decision = {.kind = kind,
                                            .partition = (uint16_t)partition,
                                            .lane = lane,
                                            .generation = (uint32_t)generation,
                                            .number = number,
                                            .reason = reason};
    settle(&session, lane);
    int status = PAWL_OK;
    if (partition > UINT16_MAX || (session.engine && partition >= pawl_partitions(session.engine)))
        status = pawl_error_set(&error, PAWL_ENOTFOUND, "there is no partition %" PRIu64, partition);
    if (status == PAWL_OK)
        status = session_decide(&session, &decision, &error);
    if (status == PAWL_OK)
        settle(&session, lane);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(json_pack("{s:s,s:i,s:o,s:s}", "lane", lane, "partition", (int)partition, "number",
                           json_u64(number), "decided", done));
    else if (status == PAWL_OK)
        printf("number %" PRIu64 " of lane %s in partition %" PRIu64 ": %s\n", number, lane, partition, done);
    return session_close(options, &session, status, &error);
}

static int run_retry(const struct options *options)
{
    return run_decision(options, DECIDE_RETRY, "tried again");
}

static int run_reclaim(const struct options *options)
{
    return run_decision(options, DECIDE_RECLAIM, "taken back");
}

static int run_void(const struct options *options)
{
    return run_decision(options, DECIDE_VOID, "void");
}

#define ABOUT_OPENS                                                                                            \
    "If no process serves the directory, it opens it for writing, and lets the lanes work first until they\n"  \
    "come to rest.\n"

#define OPTION_GENERATION                                                                                      \
    {                                                                                                          \
        "generation", "G", "of the lane, if the number is under way in two"                                    \
    }

const struct command command_lease_list = {
    .name = "lease list",
    .summary = "show the numbers that lanes are working on, and the last ones committed",
    .about =
        "First those that wait for a worker or for their turn, that failed and are tried again, or that stall "
        "their\n"
        "lane, with the words of the last failure; then those that were committed, as far as they are\n"
        "remembered. With the times at which leases were granted, end, and were committed. " ABOUT_OPENS,
    .arguments = {"[LANE]"},
    .options = {OPTIONS_WHERE,
                {"partition", "P", "only of this partition"},
                {"limit", "N", "end after so many (100)"},
                OPTION_JSON},
    .run = run_list,
};

const struct command command_lease_stats = {
    .name = "lease stats",
    .summary = "show what leases come to, and what is alarming",
    .about =
        "For each lane, by partition and in sum: numbers committed, leased, waiting for their turn and "
        "stalled;\n"
        "leases that expired, failed, were void or fenced; runs that were repeated, and the time that they "
        "had taken;\n"
        "how far ahead of its turn work is begun now; how much of the time that was granted was used; how "
        "long\n"
        "results waited for their turn. Alerts come with advice. " ABOUT_OPENS,
    .arguments = {"[LANE]"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_stats,
};

const struct command command_lease_retry = {
    .name = "lease retry",
    .summary = "try a stalled number again",
    .about = "At once, and with all its attempts before it. " ABOUT_OPENS,
    .arguments = {"PARTITION", "LANE", "N"},
    .options = {OPTIONS_WHERE, OPTION_GENERATION, OPTION_JSON},
    .run = run_retry,
};

const struct command command_lease_reclaim = {
    .name = "lease reclaim",
    .summary = "take a lease back",
    .about = "The number is given to another worker; whatever the one that had it still says is "
             "refused. " ABOUT_OPENS,
    .arguments = {"PARTITION", "LANE", "N"},
    .options = {OPTIONS_WHERE, OPTION_GENERATION, OPTION_JSON},
    .run = run_reclaim,
};

const struct command command_lease_void = {
    .name = "lease void",
    .summary = "decide that a number writes nothing",
    .about =
        "The decision and its reason are kept in the operation log, and every replay follows it. " ABOUT_OPENS,
    .arguments = {"PARTITION", "LANE", "N"},
    .options = {OPTIONS_WHERE,
                OPTION_GENERATION,
                {"reason", "TEXT", "why, for whoever reads the log", .needed = true},
                OPTION_JSON},
    .run = run_void,
};
