/* cli/options.h: tables of a command's options and arguments, and the words that were given for them.
 *
 * Options are written --name VALUE or --name=VALUE; one without a value is a flag. There are no short options.
 * Arguments are words without a name, in the table's order, before, between or behind the options.
 *
 * What a value is called says what it is, in the help, in the manual, and to a shell that completes it: FILE is the
 * name of a file; DIR, NEWDIR, BACKUP and LOG are names of directories (cli/words/completion.h). */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <pawl/types.h>

#define OPTIONS_MAX   20
#define ARGUMENTS_MAX 4

struct option_spec {
    const char *name;  /* without its dashes; NULL ends a table that is not full */
    const char *value; /* what its value is called in the help; NULL: a flag */
    const char *help;
    bool many;   /* may be given more than once */
    bool needed; /* the command is wrong use without it; the command itself says so */
};

struct options {
    const struct option_spec *specs;
    const char
        *values[OPTIONS_MAX]; /* by spec; NULL: not given; a flag that was given is ""; the last of many */
    const char *arguments[ARGUMENTS_MAX]; /* NULL: not given */
    int argc;                             /* the words themselves */
    char **argv;
};

/* Options that many commands have, for their tables. */
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

/* arguments: what they are called, the optional ones in brackets and last; NULL ends a table that is not full.
 * Errors: PAWL_EINVAL, with words that say what to write instead. */
int options_parse(const struct option_spec *specs, const char *const *arguments, int argc, char **argv,
                  struct options *ret_options, pawl_error *error);

/* NULL: not given. The name must be in the table. */
const char *options_get(const struct options *options, const char *name);

/* The data directory, from the option or from PAWL_DIR. */
int options_dir(const struct options *options, const char **ret_dir, pawl_error *error);

/* Whether the words name a log on Kafka. */
bool options_is_cluster(const char *log);

/* The log, from --log, or the data directory as above. */
int options_log(const struct options *options, const char **ret_log, pawl_error *error);

/* The values of an option that may be given more than once, one after the other; NULL: no more. Begin with a
 * cursor of 0. */
const char *options_next(const struct options *options, const char *name, int *cursor);

/* A whole word as a number of at least least; false: it is none. */
bool options_parse_number(const char *text, uint64_t least, uint64_t *ret_number);

/* A number of at least least, or fallback if it is not given. */
int options_number(const struct options *options, const char *name, uint64_t least, uint64_t fallback,
                   uint64_t *ret_number, pawl_error *error);

/* An argument that is a number of at least 1. called: its name in error messages. */
int options_argument(const struct options *options, size_t place, const char *called, uint64_t *ret_number,
                     pawl_error *error);

/* The same, of at least least. */
int options_argument_from(const struct options *options, size_t place, uint64_t least, const char *called,
                          uint64_t *ret_number, pawl_error *error);

/* A duration such as 500ms, 30s, 5m, 12h or 30d, or fallback if it is not given. */
int options_duration(const struct options *options, const char *name, pawl_duration fallback,
                     pawl_duration *ret_duration, pawl_error *error);

/* A key as JSON. An object or an array is taken as it is; the value of a key of one field gets brackets around
 * it. room has OPTION_KEY_MAX bytes, and must stay. */
#define OPTION_KEY_MAX ((size_t)128 << 10)
int options_key(const char *text, char *room, pawl_bytes *ret_key, pawl_error *error);

/* How many letters must change to make a into b; for suggestions. */
size_t letters_apart(const char *a, const char *b);

#endif
