/* cli/schema.c: apply a schema, and show what is in force. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/open.h"

static int run_apply(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    char *json;
    size_t size;
    uint64_t position;
    int status = read_whole(options->arguments[0], PAWL_SCHEMA_JSON_MAX, &json, &size, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    int code = open_dir(options, OPEN_TO_WRITE, &engine);
    if (code == CLI_OK) {
        if (strlen(json) < size)
            status = pawl_error_set(&error, PAWL_EINVAL, "byte %zu of the schema is zero", strlen(json));
        else
            status = pawl_schema_apply(engine, json, &position, &error);
        if (status == PAWL_OK && options_get(options, "json"))
            say_json(json_pack("{s:o}", "schema", json_u64(position)));
        else if (status == PAWL_OK)
            printf("schema %" PRIu64 " is in force\n", position);
        code = close_dir(options, engine, status, &error);
    }
    free(json);
    return code;
}

static void say_lane(json_t *lane)
{
    const char *name;
    json_int_t generation, serving;
    if (json_unpack(lane, "{s:s, s:I, s:I}", "lane", &name, "generation", &generation, "serving", &serving)
        == 0)
        printf("%s: generation %" JSON_INTEGER_FORMAT ", serving %" JSON_INTEGER_FORMAT "\n", name, generation,
               serving);
    json_decref(lane);
}

/* Print each value of a text that has several JSON values one behind the other. */
static void print_each(const pawl_text *text, void (*say)(json_t *value))
{
    for (size_t at = 0; at < text->size;) {
        json_error_t end;
        json_t *value = json_loadb(text->data + at, text->size - at, JSON_DISABLE_EOF_CHECK, &end);
        if (!value)
            return;
        say(value);
        at += (size_t)end.position;
        while (at < text->size && text->data[at] == '\n')
            at++;
    }
}

static int run_show(const struct options *options)
{
    pawl_error error = {0};
    pawl_engine *engine;
    pawl_text text;
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    bool lanes = options_get(options, "lanes"), json = options_get(options, "json");
    int status =
        lanes ? pawl_schema_lanes_list(engine, &text, &error) : pawl_schema_show(engine, &text, &error);
    if (status == PAWL_OK && lanes != json) {
        print_each(&text, lanes ? say_lane : say_json);
        pawl_text_free(&text);
    } else if (status == PAWL_OK) {
        print_text(&text);
    }
    return close_dir(options, engine, status, &error);
}

const struct command command_schema_apply = {
    .name = "schema apply",
    .summary = "bring a package's schema into force",
    .about =
        "FILE is the package's schema as JSON, or - for stdin. What is so already changes nothing. A change\n"
        "that would break what is stored is refused, and the place in the schema is named.\n",
    .arguments = {"FILE"},
    .options = {OPTION_DIR, OPTION_JSON},
    .run = run_apply,
};

const struct command command_schema_show = {
    .name = "schema show",
    .summary = "show the schema that is in force",
    .about = "All packages, as JSON that can be applied again; with --json one package a line.\n",
    .options = {OPTION_DIR, {"lanes", NULL, "the lanes of its projectors instead"}, OPTION_JSON},
    .run = run_show,
};
