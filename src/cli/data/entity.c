/* cli/data/entity.c: rows of entities, one or many. */
#include <stdio.h>

#include "cli/talk/session.h"

#define LIMIT_DEFAULT 1000

static int run_get(const struct options *options)
{
    static char room[OPTION_KEY_MAX];
    pawl_error error = {0};
    struct session session;
    pawl_read_options read;
    pawl_bytes key;
    pawl_text text;
    uint64_t wsid;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK
        || options_key(options->arguments[2], room, &key, &error) != PAWL_OK
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_entity_get(&session, wsid, options->arguments[1], key, &read, &text, &error);
    if (status == PAWL_OK) {
        print_text(&text);
        putchar('\n');
    }
    return session_close(options, &session, status, &error);
}

static int run_list(const struct options *options)
{
    static char room[OPTION_KEY_MAX];
    pawl_error error = {0};
    struct session session;
    pawl_read_options read;
    pawl_bytes after = {0};
    pawl_text text;
    uint64_t wsid, limit;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK
        || options_number(options, "limit", 1, LIMIT_DEFAULT, &limit, &error) != PAWL_OK
        || (options_get(options, "after")
            && options_key(options_get(options, "after"), room, &after, &error) != PAWL_OK)
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_entity_list(&session, wsid, options->arguments[1], after, limit, &read, &text, &error);
    if (status == PAWL_OK)
        print_text(&text);
    return session_close(options, &session, status, &error);
}

#define ABOUT_KEYS                                                                                             \
    "A key is JSON: an object with the key's fields, an array of their values, or, if it has one field, the\n" \
    "value itself ('7', '\"card\"').\n"

const struct command command_entity_get = {
    .name = "entity get",
    .summary = "show a row of an entity, as JSON",
    .about = "ENTITY is a qualified name of the schema, such as shop.CustomerTotal. " ABOUT_KEYS,
    .arguments = {"WSID", "ENTITY", "KEY"},
    .options = {OPTIONS_WHERE, OPTION_MIN_OFFSET, OPTION_JSON},
    .run = run_get,
};

const struct command command_entity_list = {
    .name = "entity list",
    .summary = "show the rows of an entity, as JSON lines",
    .about = "In the order of their keys. " ABOUT_KEYS,
    .arguments = {"WSID", "ENTITY"},
    .options = {OPTIONS_WHERE,
                {"after", "KEY", "begin behind this one"},
                {"limit", "N", "end after so many (1000)"},
                OPTION_MIN_OFFSET,
                OPTION_JSON},
    .run = run_list,
};
