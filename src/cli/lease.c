/* cli/lease.c: the numbers that lanes work on, figures of their leases, and an operator's decisions.
 *
 * Leases live in the process that has the directory open. These verbs open it themselves, wait until the lanes
 * have done what they can do by themselves, and then read or act. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/lanes.h"

#define LIMIT_DEFAULT 100

/* --- list --- */

static const char *state_text(pawl_lease_state state)
{
    switch (state) {
    case PAWL_LEASE_BOUND: return "bound";
    case PAWL_LEASE_LEASED: return "leased";
    case PAWL_LEASE_BACKING_OFF: return "backing off";
    case PAWL_LEASE_STALLED: return "stalled";
    case PAWL_LEASE_READY: return "ready";
    case PAWL_LEASE_TAKEN: return "taken";
    case PAWL_LEASE_COMMITTED: return "committed";
    }
    return "?";
}

struct listing {
    bool json;
    uint64_t left;
    pawl_engine *engine;
    const pawl_lane_status *lane;
    bool committed; /* only numbers that are committed */
};

/* An instant as text, cut to whole units; "" if there is none. */
static void format_instant(pawl_engine *engine, pawl_instant instant, int64_t unit,
                           char text[PAWL_WALL_TEXT_MAX])
{
    int64_t ns = pawl_engine_wall(engine, instant).ns;
    text[0] = '\0';
    if (ns)
        pawl_wall_format((pawl_wall){ns - ns % unit}, text);
}

/* When the lease ends; none if nobody holds it. */
static pawl_instant end_of(const pawl_lease *l)
{
    return (pawl_instant){l->state == PAWL_LEASE_LEASED ? l->leased_at.ns + l->duration : 0};
}

static void add_instant(const struct listing *list, json_t *object, const char *name, pawl_instant instant)
{
    char text[PAWL_WALL_TEXT_MAX];
    format_instant(list->engine, instant, PAWL_MILLISECOND, text);
    if (text[0])
        json_object_set_new(object, name, json_string(text));
}

static void say_lease(const struct listing *list, const pawl_lease *l, uint64_t event, const char *projector)
{
    char id[33];
    snprintf(id, sizeof id, "%016" PRIx64 "%016" PRIx64, l->operation.high, l->operation.low);
    json_t *object = json_pack("{s:s,s:i,s:i,s:o,s:s,s:s,s:i}", "lane", list->lane->lane, "generation",
                               (int)list->lane->generation, "partition", (int)list->lane->partition, "number",
                               json_u64(l->number), "state", state_text(l->state), "projector", projector,
                               "attempt", (int)l->attempt);
    if (event)
        json_object_set_new(object, "event", json_u64(event));
    if (l->attempt > 0) {
        json_object_set_new(object, "operation", json_string(id));
        json_object_set_new(object, "duration", json_real((double)l->duration / 1e9));
    }
    add_instant(list, object, "leased_at", l->leased_at);
    add_instant(list, object, "ends_at", end_of(l));
    add_instant(list, object, "committed_at", l->committed_at);
    if (l->is_void)
        json_object_set_new(object, "void", json_true());
    if (l->words[0])
        json_object_set_new(object, "words", json_string(l->words));
    say_json(object);
}

static void print_lease(const struct listing *list, const pawl_lease *l, uint64_t event, const char *projector)
{
    char leased[PAWL_WALL_TEXT_MAX], ends[PAWL_WALL_TEXT_MAX], committed[PAWL_WALL_TEXT_MAX], source[24] = "-";
    format_instant(list->engine, l->leased_at, PAWL_SECOND, leased);
    format_instant(list->engine, end_of(l), PAWL_SECOND, ends);
    format_instant(list->engine, l->committed_at, PAWL_SECOND, committed);
    if (event)
        snprintf(source, sizeof source, "%" PRIu64, event);
    printf("%-24s %10" PRIu32 " %9u %9" PRIu64 " %-11s %9s %7" PRIu32 " %-20s %-20s %-20s  %s%s%s%s\n",
           list->lane->lane, list->lane->generation, list->lane->partition, l->number, state_text(l->state),
           source, l->attempt, leased[0] ? leased : "-", ends[0] ? ends : "-", committed[0] ? committed : "-",
           projector, l->is_void || l->words[0] ? ": " : "", l->is_void ? l->words[0] ? "void: " : "void" : "",
           l->words);
}

static bool list_one(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    struct listing *list = arg;
    /* It was committed meanwhile, and was shown as under way already. */
    if (list->committed && lease->number > list->lane->leases.watermark)
        return false;
    if (list->json)
        say_lease(list, lease, event, projector);
    else
        print_lease(list, lease, event, projector);
    list->left--;
    return list->left > 0 && !ferror(stdout);
}

/* List every lane, generation and partition that was asked for; leave out those that have gone meanwhile. */
static int list_some(const struct lanes *lanes, bool one, uint64_t partition, struct listing *list,
                     pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < lanes->count && list->left > 0; i++) {
        list->lane = &lanes->rows[i].status;
        if (one && list->lane->partition != partition)
            continue;
        uint64_t committed = list->lane->leases.watermark;
        uint64_t last = committed > list->left ? committed - list->left + 1 : 1; /* of those, the last ones */
        status = pawl_lane_leases(list->engine, list->lane->partition, list->lane->lane, list->lane->generation,
                                  list->committed ? last : 0, list->left, list_one, list, error);
        status = status == PAWL_ENOTFOUND ? PAWL_OK : status;
    }
    return status;
}

/* Numbers under way come first, because an operator may have to act on them. */
static int list_all(const struct lanes *lanes, bool one, uint64_t partition, struct listing *list,
                    pawl_error *error)
{
    int status = list_some(lanes, one, partition, list, error);
    list->committed = true;
    return status == PAWL_OK ? list_some(lanes, one, partition, list, error) : status;
}

static int run_list(const struct options *options)
{
    struct listing list = {.json = options_get(options, "json") != NULL};
    pawl_error error = {0};
    struct lanes lanes;
    uint64_t partition;
    const char *lane = options->arguments[0];
    if (options_number(options, "partition", 0, 0, &partition, &error) != PAWL_OK
        || options_number(options, "limit", 1, LIMIT_DEFAULT, &list.left, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_WRITE, &list.engine);
    if (code != CLI_OK)
        return code;
    bool one = options_get(options, "partition") != NULL;
    int status = PAWL_OK;
    if (one && partition >= pawl_partitions(list.engine))
        status = pawl_error_set(&error, PAWL_ENOTFOUND, "there is no partition %" PRIu64, partition);
    lanes_settle(list.engine, lane);
    if (status == PAWL_OK)
        status = lanes_load(list.engine, lane, &lanes, &error);
    if (status == PAWL_OK) {
        if (!list.json)
            printf("%-24s %10s %9s %9s %-11s %9s %7s %-20s %-20s %-20s  %s\n", "lane", "generation",
                   "partition", "number", "state", "event", "attempt", "granted", "ends", "committed",
                   "projector");
        status = list_all(&lanes, one, partition, &list, &error);
        lanes_free(&lanes);
    }
    return close_dir(options, list.engine, status, &error);
}

/* --- stats --- */

static const struct {
    pawl_lease_alert alert;
    const char *name;
} alerts[] = {
    {PAWL_LEASE_ALERT_EXPIRED, "expired"}, {PAWL_LEASE_ALERT_WAIT, "wait"},
    {PAWL_LEASE_ALERT_ACTIVE, "active"},   {PAWL_LEASE_ALERT_VOIDS, "voids"},
    {PAWL_LEASE_ALERT_STALLED, "stalled"},
};

#define ALERTS (sizeof alerts / sizeof alerts[0])

static void print_figures(const char *lane, const char *partition, const pawl_lease_figures *f)
{
    char average[DURATION_TEXT_MAX], p99[DURATION_TEXT_MAX];
    duration_format(f->average_wait, average);
    duration_format(f->p99_wait, p99);
    printf("%-28s %9s %10" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %8" PRIu64 " %7" PRIu64 " %6" PRIu64
           " %7" PRIu64 " %8" PRIu64 " %4.0f %% %9s %9s %5.1f %%\n",
           lane, partition, f->committed, f->active, f->waiting, f->stalled, f->expired, f->failed, f->voids,
           f->fenced, f->repeated, 100 * f->utilisation, average, p99, 100 * f->efficiency);
}

/* Alerts belong to the lane: each is in the status of one partition, the one that has most of it. */
static json_t *alerts_json(const struct lane_row *rows, size_t count)
{
    json_t *told = json_array();
    for (size_t i = 0; i < ALERTS; i++)
        for (size_t k = 0; k < count; k++)
            if (rows[k].status.leases.alerts & (uint32_t)alerts[i].alert)
                json_array_append_new(told, json_pack("{s:s,s:s,s:s,s:i}", "alert", alerts[i].name, "text",
                                                      pawl_lease_alert_text(alerts[i].alert), "advice",
                                                      pawl_lease_alert_advice(alerts[i].alert),
                                                      "most_in_partition", (int)rows[k].status.partition));
    return told;
}

/* partition -1: all of them. told: alerts, taken over; NULL: a single partition has none. */
static void say_figures(const pawl_lane_status *lane, int partition, const pawl_lease_figures *f, json_t *told)
{
    json_t *object = json_pack("{s:s,s:i}", "lane", lane->lane, "generation", (int)lane->generation);
    json_object_set_new(object, "partition", partition < 0 ? json_null() : json_integer(partition));
    json_t *figures = json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:f,s:f,s:f,s:f,s:b}", "bound",
        json_u64(f->bound), "watermark", json_u64(f->watermark), "leased", json_u64(f->active), "waiting",
        json_u64(f->waiting), "stalled", json_u64(f->stalled), "acquired", json_u64(f->acquired), "committed",
        json_u64(f->committed), "expired", json_u64(f->expired), "released", json_u64(f->released), "failed",
        json_u64(f->failed), "voids", json_u64(f->voids), "fenced", json_u64(f->fenced), "repeated",
        json_u64(f->repeated), "utilisation", f->utilisation, "average_wait", (double)f->average_wait / 1e9,
        "p99_wait", (double)f->p99_wait / 1e9, "efficiency", f->efficiency, "performing_well",
        (int)f->performing_well);
    if (told)
        json_object_set_new(figures, "alerts", told);
    json_object_update(object, figures);
    json_decref(figures);
    say_json(object);
}

static void print_alerts(const struct lane_row *rows, size_t count)
{
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < ALERTS; i++)
            if (rows[k].status.leases.alerts & (uint32_t)alerts[i].alert)
                printf("alert: lane %s, generation %" PRIu32 ": %s Most of it is in partition %u. %s\n",
                       rows[k].name, rows[k].status.generation, pawl_lease_alert_text(alerts[i].alert),
                       rows[k].status.partition, pawl_lease_alert_advice(alerts[i].alert));
}

static void print_refusals(const struct lane_row *rows, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (rows[k].error)
            printf("refused: lane %s, partition %u: %s\n", rows[k].name, rows[k].status.partition,
                   rows[k].error);
}

static void show_stats(const struct lane_row *rows, size_t count, bool json)
{
    struct lane_sum sum = lanes_sum(rows, count);
    for (size_t i = 0; i < count; i++) {
        char partition[8];
        snprintf(partition, sizeof partition, "%u", rows[i].status.partition);
        if (json)
            say_figures(&rows[i].status, rows[i].status.partition, &rows[i].status.leases, NULL);
        else if (rows[i].status.leases.bound > 0)
            print_figures(rows[i].name, partition, &rows[i].status.leases);
    }
    if (json)
        say_figures(&rows[0].status, -1, &sum.leases, alerts_json(rows, count));
    else
        print_figures(rows[0].name, "all", &sum.leases);
}

static int run_stats(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    struct lanes lanes;
    bool json = options_get(options, "json") != NULL;
    int code = open_dir(options, OPEN_TO_WRITE, &engine);
    if (code != CLI_OK)
        return code;
    lanes_settle(engine, options->arguments[0]);
    int status = lanes_load(engine, options->arguments[0], &lanes, &error);
    if (status != PAWL_OK)
        return close_dir(options, engine, status, &error);
    if (!json)
        printf("%-28s %9s %10s %7s %7s %7s %8s %7s %6s %7s %8s %6s %9s %9s %7s\n", "lane", "partition",
               "committed", "leased", "waiting", "stalled", "expired", "failed", "voids", "fenced", "repeated",
               "used", "wait", "p99", "efficient");
    for (size_t i = 0, count; i < lanes.count; i += count) {
        count = lanes_run(&lanes, i);
        show_stats(&lanes.rows[i], count, json);
    }
    if (!json) {
        print_alerts(lanes.rows, lanes.count);
        print_refusals(lanes.rows, lanes.count);
    }
    lanes_free(&lanes);
    return close_dir(options, engine, PAWL_OK, &error);
}

/* --- decisions --- */

enum decision { RETRY, RECLAIM, VOID };

static int decide(pawl_engine *engine, enum decision decision, uint16_t partition, const char *lane,
                  uint32_t generation, uint64_t number, const char *reason, pawl_error *error)
{
    switch (decision) {
    case RETRY: return pawl_lane_retry(engine, partition, lane, generation, number, error);
    case RECLAIM: return pawl_lane_reclaim(engine, partition, lane, generation, number, error);
    case VOID: return pawl_lane_void(engine, partition, lane, generation, number, reason, error);
    }
    return PAWL_EINVAL;
}

static int run_decision(const struct options *options, enum decision decision, const char *done)
{
    pawl_error error = {0};
    pawl_engine *engine;
    uint64_t partition, number, generation;
    const char *lane = options->arguments[1],
               *reason = decision == VOID ? options_get(options, "reason") : NULL;
    if (options_argument_from(options, 0, 0, "PARTITION", &partition, &error) != PAWL_OK
        || options_argument(options, 2, "N", &number, &error) != PAWL_OK
        || options_number(options, "generation", 1, 0, &generation, &error) != PAWL_OK)
        return say_usage(&error);
    if (generation > UINT32_MAX) {
        pawl_error_set(&error, PAWL_EINVAL, "there is no generation %" PRIu64, generation);
        return say_usage(&error);
    }
    if (decision == VOID && (!reason || reason[0] == '\0' || strlen(reason) > PAWL_LEASE_WORDS_MAX)) {
        pawl_error_set(&error, PAWL_EINVAL,
                       "lease void: for which reason? Say --reason TEXT, of at most %d bytes",
                       PAWL_LEASE_WORDS_MAX);
        return say_usage(&error);
    }
    int code = open_dir(options, OPEN_TO_WRITE, &engine);
    if (code != CLI_OK)
        return code;
    lanes_settle(engine, lane);
    int status =
        partition < pawl_partitions(engine)
            ? decide(engine, decision, (uint16_t)partition, lane, (uint32_t)generation, number, reason, &error)
            : pawl_error_set(&error, PAWL_ENOTFOUND, "there is no partition %" PRIu64, partition);
    if (status == PAWL_OK)
        lanes_settle(engine, lane);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(json_pack("{s:s,s:i,s:o,s:s}", "lane", lane, "partition", (int)partition, "number",
                           json_u64(number), "decided", done));
    else if (status == PAWL_OK)
        printf("number %" PRIu64 " of lane %s in partition %" PRIu64 ": %s\n", number, lane, partition, done);
    return close_dir(options, engine, status, &error);
}

static int run_retry(const struct options *options)
{
    return run_decision(options, RETRY, "tried again");
}

static int run_reclaim(const struct options *options)
{
    return run_decision(options, RECLAIM, "taken back");
}

static int run_void(const struct options *options)
{
    return run_decision(options, VOID, "void");
}

#define ABOUT_OPENS                                                                                            \
    "It opens the directory for writing, and lets the lanes work first until they come to rest.\n"

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
    .options = {OPTION_DIR,
                {"partition", "P", "only of this partition"},
                {"limit", "N", "end after so many (100)"},
                OPTION_JSON},
    .run = run_list,
};

const struct command command_lease_stats = {
    .name = "lease stats",
    .summary = "show what leases come to, and what is alarming",
    .about = "For each lane, by partition and in sum: numbers committed, leased, waiting for their turn and "
             "stalled;\n"
             "leases that expired, failed, were void or fenced; runs that were repeated; how much of the time "
             "that was\n"
             "granted was used; how long results waited for their turn. Alerts come with advice. " ABOUT_OPENS,
    .arguments = {"[LANE]"},
    .options = {OPTION_DIR, OPTION_JSON},
    .run = run_stats,
};

const struct command command_lease_retry = {
    .name = "lease retry",
    .summary = "try a stalled number again",
    .about = "At once, and with all its attempts before it. " ABOUT_OPENS,
    .arguments = {"PARTITION", "LANE", "N"},
    .options = {OPTION_DIR, OPTION_GENERATION, OPTION_JSON},
    .run = run_retry,
};

const struct command command_lease_reclaim = {
    .name = "lease reclaim",
    .summary = "take a lease back",
    .about = "The number is given to another worker; whatever the one that had it still says is "
             "refused. " ABOUT_OPENS,
    .arguments = {"PARTITION", "LANE", "N"},
    .options = {OPTION_DIR, OPTION_GENERATION, OPTION_JSON},
    .run = run_reclaim,
};

const struct command command_lease_void = {
    .name = "lease void",
    .summary = "decide that a number writes nothing",
    .about =
        "The decision and its reason are kept in the operation log, and every replay follows it. " ABOUT_OPENS,
    .arguments = {"PARTITION", "LANE", "N"},
    .options = {OPTION_DIR,
                OPTION_GENERATION,
                {"reason", "TEXT", "why, for whoever reads the log"},
                OPTION_JSON},
    .run = run_void,
};
