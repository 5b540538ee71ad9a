/* cli/options.h: a command's options, as a table, and what was given of them.
 *
 * Options are written --name VALUE or --name=VALUE; one without a value is a flag. There are no others: no
 * short ones, no bare arguments. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <pawl/types.h>

#define OPTIONS_MAX 8

struct option_spec {
    const char *name;  /* without its dashes; NULL ends a table that is not full */
    const char *value; /* what its value is called in the help; NULL: a flag */
    const char *help;
};

struct options {
    const struct option_spec *specs;
    const char *values[OPTIONS_MAX]; /* by spec; NULL: not given; a flag that was given is "" */
};

/* The options every command has are in its table as these. */
#define OPTION_DIR                                                                                             \
    {                                                                                                          \
        "dir", "DIR", "the data directory; or the environment's PAWL_DIR"                                      \
    }
#define OPTION_LOG                                                                                             \
    {                                                                                                          \
        "log", "LOG", "instead of a directory: file://DIR, or kafka://HOST:PORT/CLUSTER"                       \
    }
#define OPTION_JSON                                                                                            \
    {                                                                                                          \
        "json", NULL, "say it for machines"                                                                    \
    }

/* Errors: PAWL_EINVAL, with words that say what to write instead. */
int options_parse(const struct option_spec *specs, int argc, char **argv, struct options *ret_options,
                  pawl_error *error);

/* NULL: not given. The name must be in the table. */
const char *options_get(const struct options *options, const char *name);

/* The data directory, from the option or from PAWL_DIR. */
int options_dir(const struct options *options, const char **ret_dir, pawl_error *error);

/* The log, from --log, or the data directory as above. */
int options_log(const struct options *options, const char **ret_log, pawl_error *error);

/* A number of at least 1, or fallback if it is not given. */
int options_number(const struct options *options, const char *name, uint64_t fallback, uint64_t *ret_number,
                   pawl_error *error);

/* How many letters must change to make a into b; for suggestions. */
size_t letters_apart(const char *a, const char *b);

#endif
