#include "cli/node/serve_settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk/open.h"

#define FILE_BYTES_MAX ((size_t)64 << 10)
#define LINES_MAX      128

enum kind { KIND_TEXT, KIND_FLAG, KIND_COUNT, KIND_BYTES, KIND_MIRROR, KIND_DURATION, KIND_LEVEL, KIND_HOST };

#define OF(member) offsetof(struct serve_settings, member)

/* All settings. Those without an option are for the file and the environment. */
static const struct setting {
    const char *name;
    enum kind kind;
    size_t place;
    bool option;
} settings[] = {
    {"dir", KIND_TEXT, OF(dir), true},
    {"log", KIND_TEXT, OF(log), true},
    {"mirror-bytes-max", KIND_MIRROR, OF(mirror), true},
    {"listen", KIND_TEXT, OF(serve.listen), true},
    {"socket", KIND_TEXT, OF(serve.socket), true},
    {"tls-cert", KIND_TEXT, OF(serve.tls_cert), true},
    {"tls-key", KIND_TEXT, OF(serve.tls_key), true},
    {"host", KIND_HOST, 0, true},
    {"tokens", KIND_FLAG, OF(serve.tokens), true},
    {"insecure", KIND_FLAG, OF(serve.insecure), true},
    {"log-level", KIND_LEVEL, OF(serve.level), true},
    {"backups", KIND_TEXT, OF(serve.backups), true},
    {"slow", KIND_DURATION, OF(serve.slow), true},
    {"threads", KIND_COUNT, OF(serve.limits.threads), false},
    {"waiting-threads", KIND_COUNT, OF(serve.limits.waiting_threads), false},
    {"waiting", KIND_COUNT, OF(serve.limits.waiting), false},
    {"connections", KIND_COUNT, OF(serve.limits.connections), false},
    {"streams", KIND_COUNT, OF(serve.limits.streams), false},
    {"commands", KIND_COUNT, OF(serve.limits.commands), false},
    {"batch-lines", KIND_COUNT, OF(serve.limits.batch_lines), false},
    {"header-bytes", KIND_BYTES, OF(serve.limits.header_bytes), false},
    {"body-bytes", KIND_BYTES, OF(serve.limits.body_bytes), false},
    {"idle", KIND_DURATION, OF(serve.limits.idle), false},
    {"receive", KIND_DURATION, OF(serve.limits.receive), false},
    {"drain", KIND_DURATION, OF(serve.limits.drain), false},
    {"stalled", KIND_DURATION, OF(serve.limits.stalled), false},
};

#define SETTINGS (sizeof settings / sizeof settings[0])

static const struct setting *find(const char *name)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (strcmp(settings[i].name, name) == 0)
            return &settings[i];
    return NULL;
}

static bool read_number(const char *text, const char **ret_rest, uint64_t *ret_number)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) || strlen(text) > 18)
        return false;
    *ret_number = strtoull(text, &end, 10);
    *ret_rest = end;
    return true;
}

static bool read_duration(const char *text, pawl_duration *ret_duration)
{
    static const struct {
        const char *unit;
        pawl_duration ns;
    } units[] = {{"ms", PAWL_MILLISECOND}, {"s", PAWL_SECOND}, {"m", 60 * PAWL_SECOND}};
    const char *rest;
    uint64_t number;
    if (!read_number(text, &rest, &number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(rest, units[i].unit) == 0 && number > 0 && number <= 3600 * PAWL_SECOND / units[i].ns) {
            *ret_duration = number * units[i].ns;
            return true;
        }
    return false;
}

static bool read_level(const char *text, pawl_log_level *ret_level)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret_level = (pawl_log_level)(i + 1);
            return true;
        }
    return false;
}

static int add_host(struct serve_settings *s, const char *name, pawl_error *error)
{
    if (s->serve.host_count == SERVE_HOSTS_MAX)
        return pawl_error_set(error, PAWL_EINVAL, "host: there are more than %d", SERVE_HOSTS_MAX);
    s->hosts[s->serve.host_count++] = name;
    return PAWL_OK;
}

/* from: where it comes from, for the words. */
static int apply(struct serve_settings *s, const struct setting *setting, const char *text, const char *from,
                 pawl_error *error)
{
    char *place = (char *)s + setting->place;
    const char *rest = "", *expected = NULL;
    uint64_t number = 0;
    bool flag = false;
    switch (setting->kind) {
    case KIND_HOST: return add_host(s, text, error);
    case KIND_TEXT: memcpy(place, &text, sizeof text); break;
    case KIND_FLAG:
        flag = text[0] == '\0' || strcmp(text, "true") == 0;
        if (!flag && strcmp(text, "false") != 0)
            expected = "true or false";
        memcpy(place, &flag, sizeof flag);
        break;
    case KIND_COUNT:
    case KIND_BYTES:
        if (!read_number(text, &rest, &number) || *rest || number == 0 || number > UINT32_MAX)
            expected = "a number of at least 1";
        else if (setting->kind == KIND_COUNT)
            memcpy(place, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
        else
            memcpy(place, &(size_t){(size_t)number}, sizeof(size_t));
        break;
    case KIND_MIRROR:
        if (!read_number(text, &rest, &number) || *rest || number == 0)
            expected = "a number of bytes, at least 1";
        memcpy(place, &number, sizeof number);
        break;
    case KIND_DURATION:
        if (!read_duration(text, (pawl_duration *)(void *)place))
            expected = "a duration such as 500ms, 30s or 5m, of at most an hour";
        break;
    case KIND_LEVEL:
        if (!read_level(text, (pawl_log_level *)(void *)place))
            expected = "error, warning, info or debug";
        break;
    }
    return expected ? pawl_error_set(error, PAWL_EINVAL, "%s: expected %s, not '%.64s'", from, expected, text)
                    : PAWL_OK;
}

/* --- the file --- */

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r", text[size - 1]))
        size--;
    text[size] = '\0';
    return text;
}

static int read_line(struct serve_settings *s, char *line, const char *path, int number, pawl_error *error)
{
    char from[512];
    char *comment = strchr(line, '#'), *equal;
    if (comment)
        *comment = '\0';
    line = trim(line);
    if (line[0] == '\0')
        return PAWL_OK;
    snprintf(from, sizeof from, "%s, line %d", path, number);
    equal = strchr(line, '=');
    if (!equal)
        return pawl_error_set(error, PAWL_EINVAL, "%s: expected NAME = VALUE", from);
    *equal = '\0';
    const char *name = trim(line);
    const struct setting *setting = find(name);
    if (!setting)
        return pawl_error_set(error, PAWL_EINVAL, "%s: there is no setting '%.64s'", from, name);
    return apply(s, setting, trim(equal + 1), from, error);
}

static int read_file(struct serve_settings *s, const char *path, pawl_error *error)
{
    size_t size;
    int number = 1, status = read_whole(path, FILE_BYTES_MAX, &s->file, &size, error);
    for (char *at = s->file; status == PAWL_OK && at; number++) {
        char *end = strchr(at, '\n');
        if (end)
            *end = '\0';
        status = read_line(s, at, path, number, error);
        at = end ? end + 1 : NULL;
    }
    return status;
}

/* --- the environment, and the options --- */

static const char *environment(const char *name)
{
    char variable[64] = "PAWL_";
    size_t size = strlen(variable);
    for (; *name && size + 1 < sizeof variable; name++)
        variable[size++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    variable[size] = '\0';
    const char *value = getenv(variable);
    return value && value[0] ? value : NULL;
}

/* PAWL_HOST has several names, with blanks between them. */
static int add_named_hosts(struct serve_settings *s, const char *names, pawl_error *error)
{
    int status = PAWL_OK;
    s->named = strdup(names);
    if (!s->named)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for settings");
    s->serve.host_count = 0;
    for (char *at = s->named; status == PAWL_OK && *at;) {
        size_t size = strcspn(at, " ");
        char *next = at + size + (at[size] != '\0');
        at[size] = '\0';
        if (size > 0)
            status = add_host(s, at, error);
        at = next;
    }
    return status;
}

static int read_environment(struct serve_settings *s, pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < SETTINGS; i++) {
        char from[80];
        const char *value = environment(settings[i].name);
        snprintf(from, sizeof from, "the environment's %s", settings[i].name);
        if (value && settings[i].kind == KIND_HOST)
            status = add_named_hosts(s, value, error);
        else if (value)
            status = apply(s, &settings[i], value, from, error);
    }
    return status;
}

static int read_options(struct serve_settings *s, const struct options *options, pawl_error *error)
{
    int status = PAWL_OK, cursor = 0;
    const char *host;
    for (size_t i = 0; status == PAWL_OK && i < SETTINGS; i++) {
        char from[80];
        const char *value = settings[i].option ? options_get(options, settings[i].name) : NULL;
        snprintf(from, sizeof from, "--%s", settings[i].name);
        if (value && settings[i].kind != KIND_HOST)
            status = apply(s, &settings[i], value, from, error);
    }
    if (options_get(options, "host"))
        s->serve.host_count = 0;
    while (status == PAWL_OK && (host = options_next(options, "host", &cursor)))
        status = add_host(s, host, error);
    return status;
}

int serve_settings_read(const struct options *options, struct serve_settings *ret_settings, pawl_error *error)
{
    const char *path = options_get(options, "config");
    *ret_settings = (struct serve_settings){0};
    path = path ? path : environment("config");
    int status = path ? read_file(ret_settings, path, error) : PAWL_OK;
    if (status == PAWL_OK)
        status = read_environment(ret_settings, error);
    if (status == PAWL_OK)
        status = read_options(ret_settings, options, error);
    if (status == PAWL_OK && !ret_settings->dir)
        status = pawl_error_set(error, PAWL_EINVAL, "which directory? Say --dir DIR, or set PAWL_DIR");
    ret_settings->serve.hosts = ret_settings->hosts;
    if (status != PAWL_OK)
        serve_settings_release(ret_settings);
    return status;
}

void serve_settings_release(struct serve_settings *s)
{
    free(s->file);
    free(s->named);
    s->file = s->named = NULL;
}
