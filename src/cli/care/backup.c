/* cli/care/backup.c: save a directory while it is in use, and restore it. */
#include <pawl/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/show/say.h"
#include "cli/talk/job.h"
#include "cli/talk/session.h"

static json_t *report_json(const pawl_backup_options *how, const pawl_backup_report *report, bool restored,
                           double seconds)
{
    json_t *json = json_pack("{s:s,s:o,s:o,s:f}", "to", how->to, "events", json_u64(report->events),
                             "log_bytes", json_u64(report->log_bytes), "seconds", seconds);
    if (json && restored) {
        (void)json_object_set_new(json, "derived", json_u64(report->derived));
        (void)json_object_set_new(json, "records", json_u64(report->records));
    }
    return json;
}

static int say_done(const struct options *options, const pawl_backup_options *how,
                    const pawl_backup_report *report, bool restored, double seconds)
{
    pawl_error error = {0};
    char bytes[BYTES_TEXT_MAX];
    const char *verb = restored ? "restored" : "saved";
    bytes_format(report->log_bytes, bytes);
    if (options_get(options, "json"))
        say_json(report_json(how, report, restored, seconds));
    else if (how->until)
        printf("%s up to offset %" PRIu64
               " of each partition in %.3f s; its state is derived at the first opening\n",
               verb, how->until, seconds);
    else
        printf("%s in %.3f s: the state of %" PRIu64 " events, and %s of log\n", verb, seconds, report->events,
               bytes);
    int status = say_finish(&error);
    return status == PAWL_OK || status == PAWL_ECLOSED ? CLI_OK : say_failure(options, &error);
}

/* A server keeps its backups in a directory of its own, so that no client chooses where it writes. */
static int backup_there(const struct options *options, const char *name)
{
    pawl_error error = {0};
    json_t *result;
    if (strchr(name, '/')) {
        pawl_error_set(&error, PAWL_EINVAL,
                       "a server keeps backups in a directory of its own: --to is a name there, without a "
                       "slash");
        return say_usage(&error);
    }
    int code = job_run(options, "backup", json_pack("{s:s}", "name", name), &result);
    if (code != CLI_OK)
        return code;
    const pawl_backup_options how = {.to = json_text_in(result, "to")};
    const pawl_backup_report report = {.events = json_u64_in(result, "events"),
                                       .log_bytes = json_u64_in(result, "log_bytes")};
    code = say_done(options, &how, &report, false, json_number_value(json_object_get(result, "seconds")));
    json_decref(result);
    return code;
}

static int run_backup(const struct options *options)
{
    pawl_error error = {0};
    pawl_backup_report report;
    pawl_backup_options how = {.to = options_get(options, "to")};
    const char *url;
    double begun = seconds_now();
    if (session_url(options, &url, &error) != PAWL_OK
        || (!url && options_dir(options, &how.dir, &error) != PAWL_OK))
        return say_usage(&error);
    if (!how.to) {
        pawl_error_set(&error, PAWL_EINVAL, "into which directory? Say --to NEWDIR");
        return say_usage(&error);
    }
    if (url)
        return backup_there(options, how.to);
    int status = pawl_backup(&how, &report, &error);
    return status == PAWL_OK ? say_done(options, &how, &report, false, seconds_now() - begun)
                             : say_failure(options, &error);
}

static int run_restore(const struct options *options)
{
    pawl_error error = {0};
    pawl_backup_report report;
    pawl_backup_options how = {.dir = options_get(options, "from"),
                               .replace = options_get(options, "replace") != NULL,
                               .derive = options_get(options, "derive") != NULL};
    double begun = seconds_now();
    if (options_dir(options, &how.to, &error) != PAWL_OK
        || options_number(options, "until", 1, 0, &how.until, &error) != PAWL_OK)
        return say_usage(&error);
    if (!how.dir) {
        pawl_error_set(&error, PAWL_EINVAL, "from which backup? Say --from BACKUP");
        return say_usage(&error);
    }
    int status = pawl_restore(&how, &report, &error);
    return status == PAWL_OK ? say_done(options, &how, &report, true, seconds_now() - begun)
                             : say_failure(options, &error);
}

const struct command command_backup = {
    .name = "backup",
    .summary = "save a directory into a new one, while it is in use",
    .about = "Copies the checkpoint stores, and then the log, which has all that they have and what came "
             "meanwhile.\n"
             "NEWDIR, which must not exist, is there whole or not at all; it can be opened, or restored. A log "
             "that is\n"
             "on Kafka stays there.\n",
    .options = {OPTIONS_WHERE,
                {"to", "NEWDIR", "where the backup goes; must not exist. Of a server: its name there",
                 .needed = true},
                OPTION_JSON},
    .run = run_backup,
};

const struct command command_restore = {
    .name = "restore",
    .summary = "bring a backup back, after checking it",
    .about =
        "Checks the backup's log, derives the state from it and compares it with the stores of the backup; "
        "only\n"
        "then makes DIR from it. Of a log on Kafka it reads no more than it must, unless --derive is given. A "
        "DIR that\n"
        "is there is refused, or with --replace kept as DIR.before. With --until each partition ends with "
        "that\n"
        "offset.\n",
    .options = {OPTION_DIR,
                {"from", "BACKUP", "the backup, which is only read", .needed = true},
                {"until", "OFFSET", "the last offset of each partition"},
                {"replace", NULL, "DIR may exist: it is renamed to DIR.before"},
                {"derive", NULL, "of a log on Kafka: derive the whole state, and compare"},
                OPTION_JSON},
    .run = run_restore,
};
