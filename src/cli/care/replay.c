/* cli/care/replay.c: derive the state again, into a directory of its own, and compare it. */
#include <pawl/admin.h>

#include <inttypes.h>
#include <stdio.h>

#include "cli/care/state.h"
#include "cli/show/left_out.h"
#include "cli/show/progress.h"
#include "cli/show/say.h"

static int run(const struct options *options)
{
    pawl_state_report report;
    struct progress progress;
    struct left_out left_out = {0};
    pawl_error error = {0};
    const char *to = options_get(options, "to");
    pawl_replay_options how = {.to = to,
                               .reproject = options_get(options, "reproject") != NULL,
                               .progress = progress_count,
                               .arg = &progress,
                               .left_out = left_out_note,
                               .left_out_arg = &left_out};
    if (options_dir(options, &how.dir, &error) != PAWL_OK
        || options_number(options, "until", 1, 0, &how.until, &error) != PAWL_OK)
        return say_usage(&error);
    if (!to) {
        pawl_error_set(&error, PAWL_EINVAL, "into which directory? Say --to NEWDIR");
        return say_usage(&error);
    }
    progress_begin(&progress, "deriving", "events");
    int status = pawl_replay(&how, &report, &error);
    double seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    json_t *object = state_json(&report);
    if (options_get(options, "json")) {
        json_object_set_new(object, "to", json_string(to));
        json_object_set_new(object, "seconds", json_real(seconds));
        say_json(object);
    } else {
        print_state(object, NULL, seconds);
        json_decref(object);
        printf("%s has the derived state; read it with 'pawl record get --dir %s ...'\n", to, to);
    }
    left_out_say(&left_out);
    status = say_finish(&error);
    if (status != PAWL_OK && status != PAWL_ECLOSED)
        return say_failure(options, &error);
    return report.live.differences == 0 && report.lanes.differences == 0 ? CLI_OK : CLI_CORRUPT;
}

const struct command command_replay = {
    .name = "replay",
    .summary = "derive the state again from the log, into a new directory, and compare",
    .about =
        "Reads the log of DIR, derives records, entities and sequences anew, and compares them with those of "
        "DIR\n"
        "where that stands. Changes nothing in DIR, and may run beside a writer. NEWDIR, which must not "
        "exist,\n"
        "keeps the derived state; it has no log of its own, and can only be read (if the log is on Kafka: it "
        "is a\n"
        "node that may take over). With --until each partition ends with that offset: the state of then. Ends "
        "with exit code 3 if the states differ.\n",
    .options = {OPTION_DIR,
                {"to", "NEWDIR", "where to keep the derived state; must not exist", .needed = true},
                {"until", "OFFSET", "the last offset of each partition"},
                {"reproject", NULL, "work operations of lanes out again, and compare them with the log"},
                OPTION_JSON},
    .run = run,
};
