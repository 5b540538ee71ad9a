/* cli/care/cluster_move.c: moves the log of a directory into a cluster on Kafka, and back. */
#include <pawl/cluster.h>

#include <inttypes.h>
#include <stdio.h>

#include "cli/show/progress.h"
#include "cli/show/say.h"

static int prepare(const struct options *options, pawl_cluster_move_options *how, pawl_error *error)
{
    how->url = options_get(options, "log");
    how->dir = options->arguments[0];
    if (!how->url)
        return pawl_error_set(error, PAWL_EINVAL, "which cluster? Say --log kafka://HOST:PORT/CLUSTER");
    if (!options_is_cluster(how->url))
        return pawl_error_set(error, PAWL_EINVAL, "--log %s: a cluster's log is kafka://HOST:PORT/CLUSTER",
                              how->url);
    return PAWL_OK;
}

static json_t *report_json(const pawl_cluster_move_options *how, const pawl_cluster_move_report *r,
                           double seconds)
{
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:f}", "dir", how->dir, "log", how->url, "streams",
                     json_u64(r->streams), "entries", json_u64(r->entries), "copied", json_u64(r->copied),
                     "seconds", seconds);
}

static int finish(const struct options *options)
{
    pawl_error error = {0};
    int status = say_finish(&error);
    return status == PAWL_OK || status == PAWL_ECLOSED ? CLI_OK : say_failure(options, &error);
}

static void say_import(const pawl_cluster_move_options *how, const pawl_cluster_move_report *r, double seconds)
{
    if (r->ended_before) {
        printf("%s was imported before: %" PRIu64 " entries; nothing was done\n", how->dir, r->entries);
        return;
    }
    printf("imported in %.3f s: %" PRIu64 " entries of %" PRIu64 " streams, %" PRIu64
           " of them copied now; all were compared\n",
           seconds, r->entries, r->streams, r->copied);
    if (r->compared > 0)
        printf("the state of %" PRIu32 " partitions, derived from %" PRIu64
               " events of the cluster, is that of %s\n",
               r->compared, r->events, how->dir);
    printf("open it with 'pawl serve --dir %s --log %s'. What is written to it without --log is not in the "
           "cluster\n",
           how->dir, how->url);
}

static int run_import(const struct options *options)
{
    struct progress progress;
    pawl_cluster_move_options how = {.progress = progress_count, .arg = &progress};
    pawl_cluster_move_report report;
    pawl_error error = {0};
    if (prepare(options, &how, &error) != PAWL_OK)
        return say_usage(&error);
    progress_begin(&progress, "importing", "entries");
    int status = pawl_cluster_import(&how, &report, &error);
    double seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (!options_get(options, "json")) {
        say_import(&how, &report, seconds);
        return finish(options);
    }
    json_t *object = report_json(&how, &report, seconds);
    json_object_set_new(object, "events", json_u64(report.events));
    json_object_set_new(object, "compared", json_integer(report.compared));
    json_object_set_new(object, "ended_before", json_boolean(report.ended_before));
    say_json(object);
    return finish(options);
}

static int run_export(const struct options *options)
{
    struct progress progress;
    pawl_cluster_move_options how = {.progress = progress_count, .arg = &progress};
    pawl_cluster_move_report report;
    pawl_error error = {0};
    uint64_t shards = 0;
    int status = prepare(options, &how, &error);
    if (status == PAWL_OK)
        status = options_number(options, "shards", 1, 0, &shards, &error);
    if (status == PAWL_OK && shards > 64)
        status = pawl_error_set(&error, PAWL_EINVAL, "--shards: at most 64");
    if (status != PAWL_OK)
        return say_usage(&error);
    how.shards = (uint32_t)shards;
    progress_begin(&progress, "exporting", "entries");
    status = pawl_cluster_export(&how, &report, &error);
    double seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (options_get(options, "json"))
        say_json(report_json(&how, &report, seconds));
    else
        printf("exported in %.3f s: %" PRIu64 " entries of %" PRIu64 " streams, %" PRIu64
               " of them copied now; all were compared. The state is derived at the first opening\n",
               seconds, report.entries, report.streams, report.copied);
    return finish(options);
}

const struct command command_cluster_import = {
    .name = "cluster import",
    .summary = "copy the log of a directory into an empty cluster on Kafka",
    .about =
        "Verifies the log of DIR, which no process may have open for writing, and copies all its streams with\n"
        "their offsets unchanged. Then compares every entry, derives the state from the cluster and compares "
        "it\n"
        "with that of DIR. Until that is done, nodes refuse to open on the cluster. Run it again if it was\n"
        "interrupted: it goes on where it was. DIR itself stays as it is; 'pawl serve --dir DIR --log URL' "
        "makes it\n"
        "a node of the cluster.\n",
    .arguments = {"DIR"},
    .options = {{"log", "URL", "kafka://HOST:PORT[,HOST:PORT...]/CLUSTER", .needed = true}, OPTION_JSON},
    .run = run_import,
};

const struct command command_cluster_export = {
    .name = "cluster export",
    .summary = "copy the log of a cluster on Kafka into a new directory",
    .about = "Copies all streams with their offsets unchanged into DIR, which must not exist or be empty, and "
             "compares\n"
             "every entry. DIR then opens as any other, with a log of its own in files. The cluster is only "
             "read; stop\n"
             "the node that writes to it. Run it again if it was interrupted: it goes on in DIR.exporting.\n",
    .arguments = {"DIR"},
    .options = {{"log", "URL", "kafka://HOST:PORT[,HOST:PORT...]/CLUSTER", .needed = true},
                {"shards", "N", "what DIR is made with, at most 64 (2)"},
                OPTION_JSON},
    .run = run_export,
};
