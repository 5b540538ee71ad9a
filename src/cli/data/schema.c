/* cli/data/schema.c: apply a schema, and show what is in force. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk/session.h"

static int run_apply(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    char *json;
    size_t size;
    uint64_t position;
    int status = read_whole(options->arguments[0], PAWL_SCHEMA_JSON_MAX, &json, &size, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    int code = session_open(options, OPEN_TO_WRITE, &session);
    if (code == CLI_OK) {
        if (strlen(json) < size)
            status = pawl_error_set(&error, PAWL_EINVAL, "byte %zu of the schema is zero", strlen(json));
        else
            status = session_schema_apply(&session, json, &position, &error);
        if (status == PAWL_OK && options_get(options, "json"))
            say_json(json_pack("{s:o}", "schema", json_u64(position)));
        else if (status == PAWL_OK)
            printf("schema %" PRIu64 " is in force\n", position);
        code = session_close(options, &session, status, &error);
    }
    free(json);
    return code;
}

static void say_lane(const json_t *lane)
{
    const char *name;
    json_int_t generation, serving;
    if (json_unpack((json_t *)lane, "{s:s, s:I, s:I}", "lane", &name, "generation", &generation, "serving",
                    &serving)
        == 0)
        printf("%s: generation %" JSON_INTEGER_FORMAT ", serving %" JSON_INTEGER_FORMAT "\n", name, generation,
               serving);
}

static int run_show(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    pawl_text text;
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    bool lanes = options_get(options, "lanes"), json = options_get(options, "json");
    int status = session_schema_show(&session,
                                     lanes  ? SCHEMA_LANES
                                     : json ? SCHEMA_LINES
                                            : SCHEMA_TO_READ,
                                     &text, &error);
    if (status == PAWL_OK && lanes && !json) {
        say_each((pawl_bytes){text.data, text.size}, say_lane);
        pawl_text_free(&text);
    } else if (status == PAWL_OK) {
        print_text(&text);
    }
    return session_close(options, &session, status, &error);
}

const struct command command_schema_apply = {
    .name = "schema apply",
    .summary = "bring a package's schema into force",
    .about =
        "FILE is the package's schema as JSON, or - for stdin. What is so already changes nothing. A change\n"
        "that would break what is stored is refused, and the place in the schema is named.\n",
    .arguments = {"FILE"},
    .options = {OPTIONS_WHERE, OPTION_JSON},
    .run = run_apply,
};

const struct command command_schema_show = {
    .name = "schema show",
    .summary = "show the schema that is in force",
    .about = "All packages, as JSON that can be applied again; with --json one package a line.\n",
    .options = {OPTIONS_WHERE, {"lanes", NULL, "the lanes of its projectors instead"}, OPTION_JSON},
    .run = run_show,
};
