/* cli/show/say.h: how commands print: answers on stdout, errors on stderr, numbers in a form for people. */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include <jansson.h>

#include "cli/command.h"

/* Say on stderr what went wrong, as JSON if that was asked for, and return the exit code for it. */
int say_failure(const struct options *options, const pawl_error *error);

/* The same for a wrong use of the command. */
int say_usage(const pawl_error *error);

/* Print one object on a line of stdout. Takes it. */
void say_json(json_t *object);

/* JSON has numbers up to 2^53 only: larger ones are strings. */
json_t *json_u64(uint64_t number);

/* The number that json_u64 has made; 0: it is none. */
uint64_t json_to_u64(const json_t *value);

/* Members of an object: a number, 0 if there is none; a text, "" if there is none. */
uint64_t json_u64_in(const json_t *object, const char *name);
const char *json_text_in(const json_t *object, const char *name);

/* Say each value of a text that has several one behind the other, such as JSON lines. */
void say_each(pawl_bytes text, void (*say)(const json_t *value));

/* Flush stdout. PAWL_ECLOSED: nobody reads it any more. */
int say_finish(pawl_error *error);

/* "12.3 MB", "640 B". */
#define BYTES_TEXT_MAX 24
void bytes_format(uint64_t bytes, char text[BYTES_TEXT_MAX]);

/* Seconds of a clock that only goes forward. */
double seconds_now(void);

#endif
