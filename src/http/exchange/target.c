#include "http/exchange/target.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that %XX stands for, or -1. */
static int escaped(const char *at)
{
    int high = digit_of(at[1]);
    int low = high < 0 ? -1 : digit_of(at[2]);
    return low < 0 ? -1 : high << 4 | low;
}

/* Whether a path may not have this byte in the form %XX. */
static bool is_trick(int byte)
{
    return byte < 0x20 || byte == 0x7f || byte == '/' || byte == '\\' || byte == '.';
}

static int decode_segment(char *text, pawl_error *error)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        int byte = (unsigned char)*from;
        if (byte == '%') {
            byte = escaped(from);
            if (byte < 0)
                return pawl_error_set(error, PAWL_EINVAL, "$path: %% is not followed by two digits");
            if (is_trick(byte))
                return pawl_error_set(error, PAWL_EINVAL,
                                      "$path: %%%.2s is not allowed: a slash, a dot or a control character",
                                      from + 1);
            from += 2;
        } else if (byte < 0x21 || byte == 0x7f || byte == '\\') {
            return pawl_error_set(error, PAWL_EINVAL, "$path: it has a byte that must be written as %%%02X",
                                  (unsigned)byte);
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    if (text[strspn(text, ".")] == '\0')
        return pawl_error_set(error, PAWL_EINVAL, "$path: a segment is empty, or has only dots");
    return PAWL_OK;
}

static int parse_path(char *path, struct target *target, pawl_error *error)
{
    if (path[0] != '/')
        return pawl_error_set(error, PAWL_EINVAL, "$path: it does not begin with /");
    if (path[1] == '\0')
        return PAWL_OK;
    for (char *at = path + 1; at;) {
        char *end = strchr(at, '/');
        if (end)
            *end = '\0';
        if (target->segment_count == TARGET_SEGMENTS_MAX)
            return pawl_error_set(error, PAWL_EINVAL, "$path: it has more than %d segments",
                                  TARGET_SEGMENTS_MAX);
        int status = decode_segment(at, error);
        if (status != PAWL_OK)
            return status;
        target->segments[target->segment_count++] = at;
        at = end ? end + 1 : NULL;
    }
    return PAWL_OK;
}

/* Query parameters are values, not names of places, so all bytes but 0 are allowed in them. */
static int decode_param(char *text, pawl_error *error)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        int byte = *from == '+' ? ' ' : (unsigned char)*from;
        if (byte == '%') {
            byte = escaped(from);
            if (byte < 0)
                return pawl_error_set(error, PAWL_EINVAL, "$query: %% is not followed by two digits");
            if (byte == 0)
                return pawl_error_set(error, PAWL_EINVAL, "$query: %%00 is not allowed");
            from += 2;
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    return PAWL_OK;
}

static int add_param(char *text, struct target *target, pawl_error *error)
{
    char *value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    int status = decode_param(text, error);
    if (status == PAWL_OK && value)
        status = decode_param(value, error);
    if (status != PAWL_OK)
        return status;
    if (text[0] == '\0')
        return pawl_error_set(error, PAWL_EINVAL, "$query: a parameter has no name");
    if (target_param(target, text))
        return pawl_error_set(error, PAWL_EINVAL, "$query.%.64s: it is given twice", text);
    if (target->param_count == TARGET_PARAMS_MAX)
        return pawl_error_set(error, PAWL_EINVAL, "$query: it has more than %d parameters", TARGET_PARAMS_MAX);
    target->params[target->param_count++] = (struct target_param){text, value ? value : ""};
    return PAWL_OK;
}

static int parse_query(char *query, struct target *target, pawl_error *error)
{
    for (char *at = query; at;) {
        char *end = strchr(at, '&');
        if (end)
            *end = '\0';
        int status = at[0] ? add_param(at, target, error) : PAWL_OK;
        if (status != PAWL_OK)
            return status;
        at = end ? end + 1 : NULL;
    }
    return PAWL_OK;
}

int target_parse(char *text, struct target *ret_target, pawl_error *error)
{
    struct target target = {.segment_count = 0};
    char *query = strchr(text, '?');
    if (query)
        *query++ = '\0';
    int status = parse_path(text, &target, error);
    if (status == PAWL_OK && query)
        status = parse_query(query, &target, error);
    if (status == PAWL_OK)
        *ret_target = target;
    return status;
}

const char *target_param(const struct target *target, const char *name)
{
    for (size_t i = 0; i < target->param_count; i++)
        if (strcmp(target->params[i].name, name) == 0)
            return target->params[i].value;
    return NULL;
}

/* Reads digits from the beginning of text; NULL: there are none, or too many. */
static const char *read_digits(const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return NULL;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return at == text ? NULL : at;
}

int target_number(const char *text, uint64_t least, uint64_t most, const char *where, uint64_t *ret_number,
                  pawl_error *error)
{
    uint64_t number = 0;
    const char *end = read_digits(text, &number);
    if (!end || *end || number < least || number > most) {
        if (most == UINT64_MAX)
            return pawl_error_set(error, PAWL_EINVAL,
                                  "%s: expected a number of at least %" PRIu64 ", not '%.64s'", where, least,
                                  text);
        return pawl_error_set(error, PAWL_EINVAL,
                              "%s: expected a number from %" PRIu64 " to %" PRIu64 ", not '%.64s'", where,
                              least, most, text);
    }
    *ret_number = number;
    return PAWL_OK;
}

int target_duration(const char *text, pawl_duration most, const char *where, pawl_duration *ret_duration,
                    pawl_error *error)
{
    static const struct {
        const char *unit;
        pawl_duration ns;
    } units[] = {{"", PAWL_SECOND},       {"s", PAWL_SECOND},        {"ms", PAWL_MILLISECOND},
                 {"m", 60 * PAWL_SECOND}, {"h", 3600 * PAWL_SECOND}, {"d", 86400 * PAWL_SECOND}};
    uint64_t number = 0;
    const char *unit = read_digits(text, &number);
    for (size_t i = 0; unit && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].unit) == 0 && number <= most / units[i].ns) {
            *ret_duration = number * units[i].ns;
            return PAWL_OK;
        }
    return pawl_error_set(error, PAWL_EINVAL,
                          "%s: expected a duration such as 500ms, 30s or 5m, of at most %" PRIu64
                          " s, not '%.64s'",
                          where, most / PAWL_SECOND, text);
}
