/* cli/project.c: lists projectors, and shows how far their lanes have come. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/lanes.h"

#define BAR 20

/* --- list --- */

static json_t *names_json(const pawl_bytes *names, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_stringn(names[i].data, names[i].size));
    return array;
}

static void say_projector(const pawl_projector *p)
{
    json_t *object = json_pack("{s:s%,s:s,s:o,s:o}", "projector", p->name.data, p->name.size, "kind",
                               p->handler ? "handler" : "declarative", "on", names_json(p->on, p->on_count),
                               "writes", names_json(p->writes, p->write_count));
    if (p->read_count)
        json_object_set_new(object, "reads", names_json(p->reads, p->read_count));
    if (p->lane.size == 0) {
        json_object_set_new(object, "sync", json_true());
    } else {
        json_object_set_new(object, "lane", json_stringn(p->lane.data, p->lane.size));
        json_object_set_new(object, "generation", json_integer(p->generation));
        json_object_set_new(object, "workers", json_integer(p->workers));
        json_object_set_new(object, "attempts", json_integer(p->attempts_max));
        json_object_set_new(object, "on_failure", json_string(p->voids ? "void" : "stall"));
    }
    say_json(object);
}

static void print_names(const char *before, const pawl_bytes *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s%.*s", i ? ", " : before, (int)names[i].size, (const char *)names[i].data);
}

static void print_projector(const pawl_projector *p)
{
    printf("%-28.*s %-11s ", (int)p->name.size, (const char *)p->name.data,
           p->handler ? "handler" : "declarative");
    if (p->lane.size == 0)
        printf("%-28s %10s %7s %-8s", "synchronous", "-", "-", "-");
    else
        printf("%-28.*s %10" PRIu32 " %7" PRIu32 " %-5s %2" PRIu32, (int)p->lane.size,
               (const char *)p->lane.data, p->generation, p->workers, p->voids ? "void" : "stall",
               p->attempts_max);
    print_names("  on ", p->on, p->on_count);
    print_names(" -> ", p->writes, p->write_count);
    putchar('\n');
}

static bool list_one(void *arg, const pawl_projector *projector)
{
    const bool *json = arg;
    if (*json)
        say_projector(projector);
    else
        print_projector(projector);
    return !ferror(stdout);
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    bool json = options_get(options, "json") != NULL;
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    if (!json)
        printf("%-28s %-11s %-28s %10s %7s %-8s  on what -> writes what\n", "projector", "kind", "lane",
               "generation", "workers", "failing");
    int status = pawl_projectors_read(engine, list_one, &json, &error);
    return close_dir(options, engine, status, &error);
}

/* --- status --- */

static double progress_of(const struct lane_sum *sum)
{
    return sum->end ? (double)sum->offset / (double)sum->end : 1;
}

static const char *state_of(const pawl_lane_status *first, const struct lane_sum *sum)
{
    return first->paused             ? "paused"
           : first->building         ? "building"
           : sum->offset >= sum->end ? "current"
                                     : "behind";
}

static void print_status(const struct lane_row *rows, size_t count)
{
    const pawl_lane_status *first = &rows[0].status;
    struct lane_sum sum = lanes_sum(rows, count);
    printf("%-28s %10" PRIu32 " %-8s %10zu %10" PRIu64 " %12" PRIu64 "  %s", first->lane, first->generation,
           first->serving ? "serves" : "", count, sum.end - sum.offset, sum.operations, state_of(first, &sum));
    if (first->building) {
        char bar[BAR + 1];
        double done = progress_of(&sum);
        memset(bar, ' ', BAR);
        memset(bar, '=', (size_t)(BAR * done));
        bar[BAR] = '\0';
        printf("  [%s] %d %%", bar, (int)(100 * done));
    }
    putchar('\n');
}

static void say_status(const struct lane_row *rows, size_t count)
{
    const pawl_lane_status *first = &rows[0].status;
    struct lane_sum sum = lanes_sum(rows, count);
    say_json(json_pack("{s:s,s:i,s:b,s:b,s:s,s:i,s:o,s:o,s:o,s:f}", "lane", first->lane, "generation",
                       (int)first->generation, "serving", (int)first->serving, "building", (int)first->building,
                       "state", state_of(first, &sum), "partitions", (int)count, "events", json_u64(sum.end),
                       "lag", json_u64(sum.end - sum.offset), "operations", json_u64(sum.operations),
                       "progress", progress_of(&sum)));
}

static int run_status(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    struct lanes lanes;
    bool json = options_get(options, "json") != NULL;
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    int status = lanes_load(engine, options->arguments[0], &lanes, &error);
    if (status != PAWL_OK)
        return close_dir(options, engine, status, &error);
    if (!json)
        printf("%-28s %10s %-8s %10s %10s %12s  %s\n", "lane", "generation", "", "partitions", "lag",
               "operations", "state");
    for (size_t i = 0, count; i < lanes.count; i += count) {
        count = lanes_run(&lanes, i);
        if (json)
            say_status(&lanes.rows[i], count);
        else
            print_status(&lanes.rows[i], count);
    }
    lanes_free(&lanes);
    return close_dir(options, engine, PAWL_OK, &error);
}

const struct command command_project_list = {
    .name = "project list",
    .summary = "show the projectors: what they see and write, and in which lane",
    .about =
        "In the order in which they run. A declarative one does what the schema says; a handler is a function "
        "of\n"
        "a program that embeds Pawl, or a worker. failing: what happens to an event that fails so many times:\n"
        "its lane stalls and waits for an operator, or it becomes a void.\n",
    .options = {OPTION_DIR, OPTION_JSON},
    .run = run_list,
};

const struct command command_project_status = {
    .name = "project status",
    .summary = "show how far the lanes have come",
    .about = "A line for each generation of a lane, over all partitions: whether reads are served from it, how "
             "many events\n"
             "it lags behind the log, the operations that it has applied, and whether it is current, behind, "
             "paused, or\n"
             "being built. Works beside a process that has the directory open; what that one has leased, and "
             "whether a\n"
             "lane of its is stalled, only it knows.\n",
    .arguments = {"[LANE]"},
    .options = {OPTION_DIR, OPTION_JSON},
    .run = run_status,
};
