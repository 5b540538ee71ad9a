/* cli/entity.c: rows of entities, one or many. */
#include <stdio.h>

#include "cli/open.h"

#define KEY_BYTES_MAX ((size_t)128 << 10)
#define LIMIT_DEFAULT 1000

/* Read a key. An object or an array is taken as it is; the value of a key of one field gets brackets around it.
 * key has KEY_BYTES_MAX bytes. */
static int read_key(const char *text, char *key, pawl_bytes *ret_key, pawl_error *error)
{
    bool whole = text[0] == '{' || text[0] == '[';
    int size = snprintf(key, KEY_BYTES_MAX, whole ? "%s" : "[%s]", text);
    if (size < 0 || (size_t)size >= KEY_BYTES_MAX)
        return pawl_error_set(error, PAWL_ETOOBIG, "a key of more than %zu bytes", KEY_BYTES_MAX);
    *ret_key = (pawl_bytes){key, (size_t)size};
    return PAWL_OK;
}

static int run_get(const struct options *options)
{
    static char room[KEY_BYTES_MAX];
    pawl_error error = {0};
    pawl_engine *engine;
    pawl_read_options read;
    pawl_bytes key;
    pawl_text text;
    uint64_t wsid;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK
        || read_key(options->arguments[2], room, &key, &error) != PAWL_OK
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    int status = pawl_entity_get(engine, wsid, options->arguments[1], key, &read, &text, &error);
    if (status == PAWL_OK) {
        print_text(&text);
        putchar('\n');
    }
    return close_dir(options, engine, status, &error);
}

static int run_list(const struct options *options)
{
    static char room[KEY_BYTES_MAX];
    pawl_error error = {0};
    pawl_engine *engine;
    pawl_read_options read;
    pawl_bytes after = {0};
    pawl_text text;
    uint64_t wsid, limit;
    if (options_argument(options, 0, "WSID", &wsid, &error) != PAWL_OK
        || options_number(options, "limit", 1, LIMIT_DEFAULT, &limit, &error) != PAWL_OK
        || (options_get(options, "after")
            && read_key(options_get(options, "after"), room, &after, &error) != PAWL_OK)
        || options_read(options, &read, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    int status = pawl_entity_list(engine, wsid, options->arguments[1], after, limit, &read, &text, &error);
    if (status == PAWL_OK)
        print_text(&text);
    return close_dir(options, engine, status, &error);
}

#define ABOUT_KEYS                                                                                             \
    "A key is JSON: an object with the key's fields, an array of their values, or, if it has one field, the\n" \
    "value itself ('7', '\"card\"').\n"

const struct command command_entity_get = {
    .name = "entity get",
    .summary = "show a row of an entity, as JSON",
    .about = "ENTITY is a qualified name of the schema, such as shop.CustomerTotal. " ABOUT_KEYS,
    .arguments = {"WSID", "ENTITY", "KEY"},
    .options = {OPTION_DIR, OPTION_MIN_OFFSET, OPTION_JSON},
    .run = run_get,
};

const struct command command_entity_list = {
    .name = "entity list",
    .summary = "show the rows of an entity, as JSON lines",
    .about = "In the order of their keys. " ABOUT_KEYS,
    .arguments = {"WSID", "ENTITY"},
    .options = {OPTION_DIR,
                {"after", "KEY", "begin behind this one"},
                {"limit", "N", "end after so many (1000)"},
                OPTION_MIN_OFFSET,
                OPTION_JSON},
    .run = run_list,
};
