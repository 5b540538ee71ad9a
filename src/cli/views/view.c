/* cli/views/view.c: makes, drops and rebuilds views, stops and resumes their building, and waits for it.
 *
 * A view is built whenever its directory is open for writing. So these verbs only wait for it, and whoever ends
 * them loses nothing: the next process that opens the directory goes on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk/session.h"
#include "cli/views/view_progress.h"

#define FIELDS_MAX 1000

/* "a,b" cut into words. The copy and the list are freed together. */
struct words {
    char *copy;
    const char **list;
    size_t count;
};

static void words_free(struct words *words)
{
    free(words->copy);
    free(words->list);
}

static int words_cut(const char *text, const char *option, struct words *ret_words, pawl_error *error)
{
    struct words words = {.copy = strdup(text ? text : ""), .list = calloc(FIELDS_MAX, sizeof *words.list)};
    int status = PAWL_OK;
    if (!words.copy || !words.list) {
        words_free(&words);
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for --%s", option);
    }
    for (char *at = words.copy; status == PAWL_OK && text && at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (*at == '\0' || words.count == FIELDS_MAX)
            status = pawl_error_set(error, PAWL_EINVAL, "--%s %s: expected names of fields, such as a,b",
                                    option, text);
        else
            words.list[words.count++] = at;
        at = comma ? comma + 1 : NULL;
    }
    if (status == PAWL_OK)
        *ret_words = words;
    else
        words_free(&words);
    return status;
}

static int look_again(struct view_waiting *w, pawl_error *error)
{
    const char *dir;
    pawl_engine *engine = w->session.engine;
    w->session.engine = NULL;
    int status = pawl_close(engine);
    if (status != PAWL_OK)
        pawl_error_set(error, status, "cannot close it, to look again");
    if (status == PAWL_OK)
        status = options_dir(w->options, &dir, error);
    return status == PAWL_OK ? try_open_to_wait(dir, &w->session.engine, &w->reading, error) : status;
}

/* Whoever only waits also waits beside a process that builds, and does not serve. */
static int begin(const struct options *options, struct view_waiting *w, bool only_wait)
{
    pawl_error error = {0};
    w->options = options;
    w->look_again = look_again;
    if (feed_init(&w->feed, -1, &error) != PAWL_OK)
        return say_failure(options, &error);
    int code = only_wait ? session_open_to_wait(options, &w->session, &w->reading)
                         : session_open(options, OPEN_TO_WRITE, &w->session);
    if (code != CLI_OK)
        feed_release(&w->feed);
    return code;
}

static int end(const struct options *options, struct view_waiting *w, int status, pawl_error *error)
{
    int code = session_close(options, &w->session, status, error);
    feed_release(&w->feed);
    if (code != CLI_OK || !w->signal)
        return code;
    fprintf(stderr,
            "pawl: %s is not built yet; whoever opens the directory for writing goes on: 'pawl view wait %s'\n",
            w->view, w->view);
    return 128 + w->signal;
}

static bool keep_rows(void *arg, const pawl_view_status *status)
{
    *(uint64_t *)arg = status->rows;
    return true;
}

static int say_built(const struct options *options, struct view_waiting *w, double seconds, pawl_error *error)
{
    uint64_t rows = 0;
    int status = session_views(&w->session, w->view, keep_rows, &rows, error);
    if (status != PAWL_OK)
        return status;
    if (options_get(options, "json"))
        say_json(json_pack("{s:s,s:b,s:o,s:f}", "view", w->view, "built", 1, "rows", json_u64(rows), "seconds",
                           seconds));
    else
        printf("%s is built: %" PRIu64 " rows, after %.3f s\n", w->view, rows, seconds);
    return PAWL_OK;
}

static int wait_and_say(const struct options *options, struct view_waiting *w, pawl_error *error)
{
    double begun = seconds_now();
    int status = view_progress_wait(w, error);
    return status == PAWL_OK && !w->signal ? say_built(options, w, seconds_now() - begun, error) : status;
}

static void say_building(const struct options *options, const char *view)
{
    if (options_get(options, "json"))
        say_json(json_pack("{s:s,s:b}", "view", view, "built", 0));
    else
        printf(
            "%s is being built; it goes on whenever the directory is open for writing: 'pawl view wait %s'\n",
            view, view);
}

static int create(const struct options *options, const struct words *key, const struct words *include)
{
    struct view_waiting w = {.view = options->arguments[0]};
    pawl_error error = {0};
    pawl_view_definition definition = {.name = w.view,
                                       .base = options_get(options, "base"),
                                       .key = key->list,
                                       .key_count = key->count,
                                       .include = include->list,
                                       .include_count = include->count,
                                       .filter = options_get(options, "filter"),
                                       .unique = options_get(options, "unique") != NULL};
    int code = begin(options, &w, false);
    if (code != CLI_OK)
        return code;
    int status = session_view_create(&w.session, &definition, &error);
    if (status == PAWL_OK && !options_get(options, "no-wait"))
        status = wait_and_say(options, &w, &error);
    else if (status == PAWL_OK)
        say_building(options, w.view);
    return end(options, &w, status, &error);
}

static int run_create(const struct options *options)
{
    struct words key = {0}, include = {0};
    pawl_error error = {0};
    if (!options_get(options, "base") || !options_get(options, "key")) {
        pawl_error_set(&error, PAWL_EINVAL, "over what? Say --base TYPE and --key FIELD,FIELD");
        return say_usage(&error);
    }
    if (words_cut(options_get(options, "key"), "key", &key, &error) != PAWL_OK)
        return say_usage(&error);
    if (words_cut(options_get(options, "include"), "include", &include, &error) != PAWL_OK) {
        words_free(&key);
        return say_usage(&error);
    }
    int code = create(options, &key, &include);
    words_free(&include);
    words_free(&key);
    return code;
}

static int run_rebuild(const struct options *options)
{
    struct view_waiting w = {.view = options->arguments[0]};
    pawl_error error = {0};
    if (options_duration(options, "timeout", 0, &w.timeout, &error) != PAWL_OK)
        return say_usage(&error);
    int code = begin(options, &w, false);
    if (code != CLI_OK)
        return code;
    int status = session_view_rebuild(&w.session, w.view, &error);
    if (status == PAWL_OK && options_get(options, "wait"))
        status = wait_and_say(options, &w, &error);
    else if (status == PAWL_OK)
        say_building(options, w.view);
    return end(options, &w, status, &error);
}

static int run_wait(const struct options *options)
{
    struct view_waiting w = {.view = options->arguments[0]};
    pawl_error error = {0};
    if (options_duration(options, "timeout", 0, &w.timeout, &error) != PAWL_OK)
        return say_usage(&error);
    int code = begin(options, &w, true);
    return code == CLI_OK ? end(options, &w, wait_and_say(options, &w, &error), &error) : code;
}

static int run_drop(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    const char *view = options->arguments[0];
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    int status = session_view_drop(&session, view, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(json_pack("{s:s,s:b}", "view", view, "dropped", 1));
    else if (status == PAWL_OK)
        printf("%s is dropped\n", view);
    return session_close(options, &session, status, &error);
}

static int set_paused(const struct options *options, bool paused)
{
    pawl_error error = {0};
    struct session session;
    const char *view = options->arguments[0];
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    int status = session_view_pause(&session, view, paused, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(view ? json_pack("{s:s,s:b}", "view", view, "paused", (int)paused)
                      : json_pack("{s:b}", "paused", (int)paused));
    else if (status == PAWL_OK)
        printf(paused ? "building %s is paused\n" : "building %s goes on\n", view ? view : "views");
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

static int run_throttle(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    uint64_t rows;
    if (options_argument_from(options, 0, 0, "ROWS_PER_SECOND", &rows, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code != CLI_OK)
        return code;
    int status = session_view_throttle(&session, rows, &error);
    if (status == PAWL_OK && options_get(options, "json"))
        say_json(json_pack("{s:o}", "rows_per_second", json_u64(rows)));
    else if (status == PAWL_OK && rows == 0)
        puts("views are built as fast as possible");
    else if (status == PAWL_OK)
        printf("views are built at up to %" PRIu64 " rows a second\n", rows);
    return session_close(options, &session, status, &error);
}

#define OPTION_TIMEOUT                                                                                         \
    {                                                                                                          \
        "timeout", "D", "give up after this long: 500ms, 30s, 5m"                                              \
    }

const struct command command_view_create = {
    .name = "view create",
    .summary = "make a view, and wait until it is built",
    .about = "NAME is qualified: shop.invoices_by_customer. Building goes on while the directory is open for "
             "writing; if\n"
             "this program is ended before, the next process that opens it resumes. Besides the fields of its "
             "base a\n"
             "view over records may name id, parent and active.\n",
    .arguments = {"NAME"},
    .options = {OPTIONS_WHERE,
                {"base", "TYPE", "a record type or an entity: shop.Invoice", .needed = true},
                {"key", "A,B", "the fields that its rows are ordered by", .needed = true},
                {"include", "C,D", "further fields that its rows have"},
                {"filter", "EXPR", "only base rows for which this is true"},
                {"unique", NULL, "refuse commands that would make two rows with equal keys"},
                {"no-wait", NULL, "end when it is made; others build it"},
                OPTION_JSON},
    .run = run_create,
};

const struct command command_view_drop = {
    .name = "view drop",
    .summary = "drop a view that was made at run time",
    .about = "A view that a package declares goes when a version of the package without it is applied.\n",
    .arguments = {"NAME"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_drop,
};

const struct command command_view_rebuild = {
    .name = "view rebuild",
    .summary = "build a view anew, beside the present one",
    .about = "Reads are served from the present one until the new one is built and takes its place.\n",
    .arguments = {"NAME"},
    .options = {OPTIONS_WHERE,
                {"wait", NULL, "until it has taken the old one's place"},
                OPTION_TIMEOUT,
                OPTION_JSON},
    .run = run_rebuild,
};

const struct command command_view_wait = {
    .name = "view wait",
    .summary = "wait until a view is built",
    .about = "Opens the directory for writing, so that building goes on; or waits for the process that has it\n"
             "open. A view that is paused, or that cannot be unique, is not waited for.\n",
    .arguments = {"NAME"},
    .options = {OPTIONS_WHERE, OPTION_TIMEOUT, OPTION_JSON},
    .run = run_wait,
};

const struct command command_view_pause = {
    .name = "view pause",
    .summary = "stop building a view, or all views",
    .about = "Until it is resumed, also when the directory is opened again. What is covered stays current.\n",
    .arguments = {"[NAME]"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_pause,
};

const struct command command_view_resume = {
    .name = "view resume",
    .summary = "go on building a view, or all views",
    .about = "Without NAME it takes back a pause of all views; a view that is paused itself stays so.\n",
    .arguments = {"[NAME]"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_resume,
};

const struct command command_view_throttle = {
    .name = "view throttle",
    .summary = "bound the rows that building views reads in a second",
    .about = "On all shards together; 0 is no bound. It lasts until it is changed.\n",
    .arguments = {"ROWS_PER_SECOND"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_throttle,
};
