#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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
    if (near)
        return error_set(error, PAWL_EINVAL, "there is no option --%s; did you mean --%s?", word, near);
    return error_set(error, PAWL_EINVAL, "there is no option --%s", word);
}

int options_parse(const struct option_spec *specs, int argc, char **argv, struct options *ret_options,
                  pawl_error *error)
{
    struct options options = {.specs = specs};
    for (int k = 0; k < argc; k++) {
        const char *word = argv[k];
        if (strncmp(word, "--", 2) != 0 || word[2] == '\0')
            return error_set(error, PAWL_EINVAL, "'%s' is not an option; a directory is given as --dir DIR",
                             word);
        const char *name = word + 2;
        const char *equals = strchr(name, '=');
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        size_t i = 0;
        while (!is_end(specs, i)
               && (strlen(specs[i].name) != length || memcmp(specs[i].name, name, length) != 0))
            i++;
        if (is_end(specs, i))
            return unknown(specs, name, length, error);
        if (options.values[i])
            return error_set(error, PAWL_EINVAL, "--%s is given twice", specs[i].name);
        if (!specs[i].value && equals)
            return error_set(error, PAWL_EINVAL, "--%s takes no value", specs[i].name);
        if (specs[i].value && !equals && k + 1 == argc)
            return error_set(error, PAWL_EINVAL, "--%s needs its %s", specs[i].name, specs[i].value);
        options.values[i] = !specs[i].value ? "" : equals ? equals + 1 : argv[++k];
    }
    *ret_options = options;
    return PAWL_OK;
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
        return error_set(error, PAWL_EINVAL, "which directory? Say --dir DIR, or set PAWL_DIR");
    *ret_dir = dir;
    return PAWL_OK;
}

int options_log(const struct options *options, const char **ret_log, pawl_error *error)
{
    const char *log = options_get(options, "log");
    if (!log)
        return options_dir(options, ret_log, error);
    if (options_get(options, "dir"))
        return error_set(error, PAWL_EINVAL, "--log and --dir are two names for one thing: give one of them");
    if (log[0] == '\0')
        return error_set(error, PAWL_EINVAL, "--log needs the name of a log");
    *ret_log = log;
    return PAWL_OK;
}

int options_number(const struct options *options, const char *name, uint64_t fallback, uint64_t *ret_number,
                   pawl_error *error)
{
    const char *text = options_get(options, name);
    if (!text) {
        *ret_number = fallback;
        return PAWL_OK;
    }
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number == 0)
        return error_set(error, PAWL_EINVAL, "--%s %s: expected a number of at least 1", name, text);
    *ret_number = number;
    return PAWL_OK;
}
