/* cli/data/record.c: records, one or many of a type. */
#include <stdio.h>

#include "cli/talk/session.h"

static int run_get(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_read_options read;
    pawl_text text;
    uint64_t wsid, id;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK
        || options_argument(options, 1, "ID", &id, &error) != PAWL_OK
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_record_get(&session, wsid, options_get(options, "type"), id, &read, &text, &error);
    if (status == PAWL_OK) {
        print_text(&text);
        putchar('\n');
    }
    return session_close(options, &session, status, &error);
}

/* The "id" of the last line, which is its first member. */
static uint64_t last_id(const pawl_text *text)
{
    size_t at = text->size - 1;
    while (at > 0 && text->data[at - 1] != '\n')
        at--;
    json_t *record = json_loadb(text->data + at, text->size - at, 0, NULL);
    uint64_t id = (uint64_t)json_integer_value(json_object_get(record, "id"));
    json_decref(record);
    return id;
}

/* Page by page, so that a long list is not held in memory and its first rows are shown at once. */
static int list(const struct options *options, struct session *session, uint64_t wsid, uint64_t after,
                uint64_t limit, const pawl_read_options *read, pawl_error *error)
{
    while (limit > 0 && !ferror(stdout)) {
        size_t page = limit < SESSION_PAGE ? (size_t)limit : SESSION_PAGE, lines = 0;
        pawl_text text;
        int status =
            session_record_list(session, wsid, options_get(options, "type"), after, page, read, &text, error);
        if (status != PAWL_OK)
            return status;
        for (size_t i = 0; i < text.size; i++)
            lines += text.data[i] == '\n';
        after = lines > 0 ? last_id(&text) : 0;
        print_text(&text);
        if (lines < page)
            break;
        limit -= lines;
    }
    return PAWL_OK;
}

static int run_list(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_read_options read;
    uint64_t wsid, after, limit;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK
        || options_number(options, "after", 1, 0, &after, &error) != PAWL_OK
        || options_number(options, "limit", 1, UINT64_MAX, &limit, &error) != PAWL_OK
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    if (!options_get(options, "type")) {
        pawl_error_set(&error, PAWL_EINVAL, "of which type? Say --type shop.Customer");
        return say_usage(&error);
    }
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = list(options, &session, wsid, after, limit, &read, &error);
    return session_close(options, &session, status, &error);
}

const struct command command_record_get = {
    .name = "record get",
    .summary = "show a record, as JSON",
    .about = "A record of any kind, as its last event left it; an O record as its event has it.\n",
    .arguments = {"WSID", "ID"},
    .options = {OPTIONS_WHERE,
                {"type", "TYPE", "its qualified type, if it must be that"},
                OPTION_MIN_OFFSET,
                OPTION_JSON},
    .run = run_get,
};

const struct command command_record_list = {
    .name = "record list",
    .summary = "show the records of a type, as JSON lines",
    .about = "By ascending ID. Records of O types are in their events, and cannot be listed.\n",
    .arguments = {"WSID"},
    .options = {OPTIONS_WHERE,
                {"type", "TYPE", "the qualified type, such as shop.Customer", .needed = true},
                {"after", "ID", "begin behind this one"},
                {"limit", "N", "end after so many"},
                OPTION_MIN_OFFSET,
                OPTION_JSON},
    .run = run_list,
};
