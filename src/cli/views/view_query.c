/* cli/views/view_query.c: rows of a view, one or many. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk/session.h"

#define LIMIT_DEFAULT 1000

struct view_question {
    const char *view;
    pawl_view_query query;
    uint64_t left;
    pawl_bytes prefix, from, to; /* as JSON */
    char *cursor;                /* NULL: at the beginning, or behind the end */
    bool built;
    double covered;
};

/* --from and --after are one bound, and so are --to and --before: the second one leaves out what is equal. */
static int read_bound(const struct options *options, const char *inclusive, const char *exclusive, char *room,
                      pawl_bytes *ret_key, bool *ret_exclusive, pawl_error *error)
{
    const char *with = options_get(options, inclusive), *without = options_get(options, exclusive);
    if (with && without)
        return pawl_error_set(error, PAWL_EINVAL, "--%s and --%s are one bound: give one of them", inclusive,
                              exclusive);
    *ret_exclusive = without != NULL;
    return with || without ? options_key(with ? with : without, room, ret_key, error) : PAWL_OK;
}

static int read_options(const struct options *options, struct view_question *q, pawl_error *error)
{
    static char rooms[3][OPTION_KEY_MAX];
    const char *prefix = options_get(options, "prefix");
    pawl_read_options read = {0};
    q->view = options->arguments[0];
    q->query.descending = options_get(options, "descending") != NULL;
    q->query.complete = options_get(options, "complete") != NULL;
    int status = options_number(options, "ws", 1, 0, &q->query.wsid, error);
    if (status == PAWL_OK)
        status = options_number(options, "limit", 1, LIMIT_DEFAULT, &q->left, error);
    if (status == PAWL_OK)
        status = options_read(options, &read, error);
    if (status == PAWL_OK && prefix)
        status = options_key(prefix, rooms[0], &q->prefix, error);
    if (status == PAWL_OK)
        status = read_bound(options, "from", "after", rooms[1], &q->from, &q->query.from_exclusive, error);
    if (status == PAWL_OK)
        status = read_bound(options, "to", "before", rooms[2], &q->to, &q->query.to_exclusive, error);
    if (status == PAWL_OK && read.min_offset && !q->query.wsid)
        status =
            pawl_error_set(error, PAWL_EINVAL, "--min-offset is of a workspace's partition: say --ws WSID");
    if (status == PAWL_OK)
        q->query.min_offset = read.min_offset;
    return status;
}

static int print_rows(struct session *session, struct view_question *q, pawl_error *error)
{
    q->built = true;
    q->covered = 1;
    do {
        pawl_text text;
        pawl_view_answer answer;
        q->query.limit = q->left < SESSION_PAGE ? (size_t)q->left : SESSION_PAGE;
        int status = session_view_list(session, q->view, &q->query, q->prefix, q->from, q->to, &q->cursor,
                                       &text, &answer, error);
        if (status != PAWL_OK)
            return status;
        print_text(&text);
        q->left -= answer.rows;
        q->built = q->built && answer.built;
        q->covered = answer.covered < q->covered ? answer.covered : q->covered;
    } while (q->left > 0 && q->cursor && !ferror(stdout));
    return PAWL_OK;
}

/* Where it stopped, and whether that was all. */
static void say_end(const struct options *options, const struct view_question *q)
{
    if (options_get(options, "json"))
        say_json(json_pack("{s:o,s:b,s:f}", "cursor", q->cursor ? json_string(q->cursor) : json_null(), "built",
                           (int)q->built, "covered", q->covered));
    else {
        if (!q->built)
            fprintf(stderr, "pawl: %s is being built: %.1f %% of what was asked for is covered\n", q->view,
                    100 * q->covered);
        if (q->cursor)
            fprintf(stderr, "pawl: there may be more: --cursor %s\n", q->cursor);
    }
}

static int run_query(const struct options *options)
{
    struct view_question q = {0};
    pawl_error error = {0};
    struct session session;
    const char *cursor = options_get(options, "cursor");
    if (read_options(options, &q, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = PAWL_OK;
    if (cursor && !(q.cursor = strdup(cursor)))
        status = pawl_error_set(&error, PAWL_ENOMEM, "no memory for a cursor");
    if (status == PAWL_OK)
        status = print_rows(&session, &q, &error);
    if (status == PAWL_OK) {
        fflush(stdout);
        say_end(options, &q);
    }
    free(q.cursor);
    return session_close(options, &session, status, &error);
}

static int run_get(const struct options *options)
{
    static char room[OPTION_KEY_MAX];
    pawl_error error = {0};
    struct session session;
    pawl_read_options read;
    pawl_bytes key;
    pawl_text text;
    uint64_t wsid;
    if (options_argument(options, 1, "WSID", &wsid, &error) != PAWL_OK
        || options_key(options->arguments[2], room, &key, &error) != PAWL_OK
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_view_get(&session, options->arguments[0], wsid, key, &read, &text, &error);
    if (status == PAWL_OK) {
        print_text(&text);
        putchar('\n');
    }
    return session_close(options, &session, status, &error);
}

#define ABOUT_KEYS                                                                                             \
    "Keys are JSON: an array of values, an object with the key's fields, or, of one field, the value "         \
    "itself.\n"

const struct command command_view_query = {
    .name = "view query",
    .summary = "show rows of a view, as JSON lines",
    .about =
        "In the order of their keys, of one workspace or of all. A prefix and bounds are the first fields of\n"
        "a key, as many as are given. " ABOUT_KEYS
        "If there is more, stderr has the cursor to go on with; with --json the last line has it, and says\n"
        "whether the view is built.\n",
    .arguments = {"NAME"},
    .options = {OPTIONS_WHERE,
                {"ws", "WSID", "only of this workspace"},
                {"prefix", "JSON", "rows whose key begins with this"},
                {"from", "JSON", "and is not before this"},
                {"after", "JSON", "and is behind this"},
                {"to", "JSON", "and is not behind this"},
                {"before", "JSON", "and is before this"},
                {"descending", NULL, "the last ones first"},
                {"limit", "N", "end after so many (1000)"},
                {"cursor", "TEXT", "go on where that query has stopped"},
                {"complete", NULL, "fail unless the view covers all that is asked for"},
                OPTION_MIN_OFFSET,
                OPTION_JSON},
    .run = run_query,
};

const struct command command_view_get = {
    .name = "view get",
    .summary = "show the row of a view with this key, as JSON",
    .about = "If several rows have it, the first. " ABOUT_KEYS,
    .arguments = {"NAME", "WSID", "KEY"},
    .options = {OPTIONS_WHERE, OPTION_MIN_OFFSET, OPTION_JSON},
    .run = run_get,
};
