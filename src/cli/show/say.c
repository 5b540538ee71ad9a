#include "cli/show/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int exit_code(int status)
{
    switch (status) {
    case PAWL_ECORRUPT: return CLI_CORRUPT;
    case PAWL_ELOCKED: return CLI_LOCKED;
    default: return CLI_FAILED;
    }
}

int say_failure(const struct options *options, const pawl_error *error)
{
    if (!options_get(options, "json")) {
        fprintf(stderr, "pawl: %s\n", error->text);
        return exit_code(error->code);
    }
    char text[PAWL_ERROR_JSON_MAX];
    pawl_error_json(error, text);
    fprintf(stderr, "{\"error\":%s}\n", text);
    return exit_code(error->code);
}

int say_usage(const pawl_error *error)
{
    fprintf(stderr, "pawl: %s\n", error->text);
    return CLI_USAGE;
}

void say_json(json_t *object)
{
    if (!object)
        return;
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

json_t *json_u64(uint64_t number)
{
    if (number < UINT64_C(1) << 53)
        return json_integer((json_int_t)number);
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return json_string(text);
}

uint64_t json_to_u64(const json_t *value)
{
    if (json_is_integer(value))
        return json_integer_value(value) < 0 ? 0 : (uint64_t)json_integer_value(value);
    return json_is_string(value) ? strtoull(json_string_value(value), NULL, 10) : 0;
}

uint64_t json_u64_in(const json_t *object, const char *name)
{
    return json_to_u64(json_object_get(object, name));
}

const char *json_text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

void say_each(pawl_bytes text, void (*say)(const json_t *value))
{
    const char *data = text.data;
    for (size_t at = 0; at < text.size;) {
        json_error_t end;
        json_t *value = json_loadb(data + at, text.size - at, JSON_DISABLE_EOF_CHECK, &end);
        if (!value)
            return;
        say(value);
        json_decref(value);
        at += (size_t)end.position;
        while (at < text.size && data[at] == '\n')
            at++;
    }
}

int say_finish(pawl_error *error)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return PAWL_OK;
    if (errno == EPIPE)
        return pawl_error_set(error, PAWL_ECLOSED, "nobody reads the output any more");
    return pawl_error_errno(error, errno, "cannot write the output");
}

void bytes_format(uint64_t bytes, char text[BYTES_TEXT_MAX])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    snprintf(text, BYTES_TEXT_MAX, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
