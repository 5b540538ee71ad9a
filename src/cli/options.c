#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX ((size_t)24)

size_t letters_apart(const char *a, const char *b)
{
    size_t before[WORD_MAX + 1], now[WORD_MAX + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= m; j++)
        before[j] = j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = before[j - 1] + (a[i - 1] != b[j - 1]);
            best = best < before[j] + 1 ? best : before[j] + 1;
            now[j] = best < now[j - 1] + 1 ? best : now[j - 1] + 1;
        }
        memcpy(before, now, sizeof before);
    }
    return before[m];
}

static bool is_end(const struct option_spec *specs, size_t i)
{
    return i == OPTIONS_MAX || !specs[i].name;
}

static int unknown(const struct option_spec *specs, const char *name, size_t length, pawl_error *error)
{
    char word[WORD_MAX + 1] = {0};
    memcpy(word, name, length < WORD_MAX ? length : WORD_MAX);
    const char *near = NULL;
    size_t apart = 3;
    for (size_t i = 0; !is_end(specs, i); i++)
        if (letters_apart(word, specs[i].name) < apart) {
            near = specs[i].name;
            apart = letters_apart(word, near);
        }
    if (strcmp(word, "url") == 0 || strcmp(word, "token-file") == 0)
        return pawl_error_set(error, PAWL_EINVAL,
                              "it works on a directory only, not with a server: say --dir DIR, on its machine");
    if (near)
        return pawl_error_set(error, PAWL_EINVAL, "there is no option --%s; did you mean --%s?", word, near);
    return pawl_error_set(error, PAWL_EINVAL, "there is no option --%s", word);
}

/* The index of the option with this name, which has this length; -1: there is none. */
static int find_spec(const struct option_spec *specs, const char *name, size_t length)
{
    for (size_t i = 0; !is_end(specs, i); i++)
        if (strlen(specs[i].name) == length && memcmp(specs[i].name, name, length) == 0)
            return (int)i;
    return -1;
}

/* Take one option, of one or two words. Then *at is the index of its last word. */
static int take_option(struct options *options, int *at, pawl_error *error)
{
    const char *name = options->argv[*at] + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    int i = find_spec(options->specs, name, length);
    if (i < 0)
        return unknown(options->specs, name, length, error);
    const struct option_spec *spec = &options->specs[i];
    if (options->values[i] && !spec->many)
        return pawl_error_set(error, PAWL_EINVAL, "--%s is given twice", spec->name);
    if (!spec->value && equals)
        return pawl_error_set(error, PAWL_EINVAL, "--%s takes no value", spec->name);
    if (spec->value && !equals && *at + 1 == options->argc)
        return pawl_error_set(error, PAWL_EINVAL, "--%s needs its %s", spec->name, spec->value);
    options->values[i] = !spec->value ? "" : equals ? equals + 1 : options->argv[++*at];
    return PAWL_OK;
}

static bool is_option(const char *word)
{
    return strncmp(word, "--", 2) == 0 && word[2] != '\0';
}

int options_parse(const struct option_spec *specs, const char *const *arguments, int argc, char **argv,
                  struct options *ret_options, pawl_error *error)
{
    struct options options = {.specs = specs, .argc = argc, .argv = argv};
    size_t given = 0;
    for (int k = 0; k < argc; k++) {
        bool more = given < ARGUMENTS_MAX && arguments[given];
        int status = PAWL_OK;
        if (is_option(argv[k]))
            status = take_option(&options, &k, error);
        else if (more)
            options.arguments[given++] = argv[k];
        else
            status = pawl_error_set(error, PAWL_EINVAL,
                                    "'%s' is not an option; a directory is given as --dir DIR", argv[k]);
        if (status != PAWL_OK)
            return status;
    }
    if (given < ARGUMENTS_MAX && arguments[given] && arguments[given][0] != '[')
        return pawl_error_set(error, PAWL_EINVAL, "its %s is missing", arguments[given]);
    *ret_options = options;
    return PAWL_OK;
}

const char *options_next(const struct options *options, const char *name, int *cursor)
{
    while (*cursor < options->argc) {
        const char *word = options->argv[(*cursor)++];
        if (!is_option(word))
            continue;
        const char *equals = strchr(word, '=');
        size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
        int i = find_spec(options->specs, word + 2, length);
        const char *value = equals ? equals + 1 : options->specs[i].value ? options->argv[(*cursor)++] : "";
        if (strcmp(options->specs[i].name, name) == 0)
            return value;
    }
    return NULL;
}

const char *options_get(const struct options *options, const char *name)
{
    size_t i = 0;
    while (!is_end(options->specs, i) && strcmp(options->specs[i].name, name) != 0)
        i++;
    assert(!is_end(options->specs, i));
    return options->values[i];
}

int options_dir(const struct options *options, const char **ret_dir, pawl_error *error)
{
    const char *dir = options_get(options, "dir");
    if (!dir)
        dir = getenv("PAWL_DIR");
    if (!dir || dir[0] == '\0')
        return pawl_error_set(error, PAWL_EINVAL, "which directory? Say --dir DIR, or set PAWL_DIR");
    *ret_dir = dir;
    return PAWL_OK;
}

bool options_is_cluster(const char *log)
{
    return strncmp(log, "kafka://", 8) == 0;
}

int options_log(const struct options *options, const char **ret_log, pawl_error *error)
{
    const char *log = options_get(options, "log");
    if (!log)
        return options_dir(options, ret_log, error);
    if (options_get(options, "dir"))
        return pawl_error_set(error, PAWL_EINVAL,
                              "--log and --dir are two names for one thing: give one of them");
    if (log[0] == '\0')
        return pawl_error_set(error, PAWL_EINVAL, "--log needs the name of a log");
    *ret_log = log;
    return PAWL_OK;
}

bool options_parse_number(const char *text, uint64_t least, uint64_t *ret_number)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < least)
        return false;
    *ret_number = number;
    return true;
}

int options_number(const struct options *options, const char *name, uint64_t least, uint64_t fallback,
                   uint64_t *ret_number, pawl_error *error)
{
    const char *text = options_get(options, name);
    if (!text)
        *ret_number = fallback;
    else if (!options_parse_number(text, least, ret_number))
        return pawl_error_set(error, PAWL_EINVAL, "--%s %s: expected a number of at least %" PRIu64, name, text,
                              least);
    return PAWL_OK;
}

int options_argument_from(const struct options *options, size_t place, uint64_t least, const char *called,
                          uint64_t *ret_number, pawl_error *error)
{
    if (!options_parse_number(options->arguments[place], least, ret_number))
        return pawl_error_set(error, PAWL_EINVAL, "%s '%s': expected a number of at least %" PRIu64, called,
                              options->arguments[place], least);
    return PAWL_OK;
}

int options_argument(const struct options *options, size_t place, const char *called, uint64_t *ret_number,
                     pawl_error *error)
{
    return options_argument_from(options, place, 1, called, ret_number, error);
}

int options_duration(const struct options *options, const char *name, pawl_duration fallback,
                     pawl_duration *ret_duration, pawl_error *error)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } units[] = {
        {"ms", 1000000},
        {"s", 1000000000},
        {"m", UINT64_C(60000000000)},
        {"h", UINT64_C(3600000000000)},
        {"d", UINT64_C(86400000000000)},
    };
    const char *text = options_get(options, name);
    if (!text) {
        *ret_duration = fallback;
        return PAWL_OK;
    }
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; digits > 0 && digits < 10 && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + digits, units[i].text) != 0)
            continue;
        uint64_t count = strtoull(text, NULL, 10);
        if (count == 0 || count > UINT64_MAX / units[i].ns)
            break;
        *ret_duration = count * units[i].ns;
        return PAWL_OK;
    }
    return pawl_error_set(error, PAWL_EINVAL, "--%s %s: expected a duration such as 500ms, 30s, 5m or 30d",
                          name, text);
}

int options_key(const char *text, char *room, pawl_bytes *ret_key, pawl_error *error)
{
    bool whole = text[0] == '{' || text[0] == '[';
    if (text[0] == '\0')
        return pawl_error_set(error, PAWL_EINVAL, "a key that is empty; expected JSON, such as '[\"Ada\"]'");
    int size = snprintf(room, OPTION_KEY_MAX, whole ? "%s" : "[%s]", text);
    if (size < 0 || (size_t)size >= OPTION_KEY_MAX)
        return pawl_error_set(error, PAWL_ETOOBIG, "a key of more than %zu bytes", OPTION_KEY_MAX);
    *ret_key = (pawl_bytes){room, (size_t)size};
    return PAWL_OK;
}
