/* base/error.h: filling in a pawl_error.
 *
 * Every function here returns the code it was given, so that failing is one line:
 *     return error_set(error, PAWL_EINVAL, "the offset must be at least 1");
 * and context is added on the way up:
 *     return error_wrap(error, status, "cannot open %s", path);   ->  "cannot open x: the lock is taken" */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

#include <pawl/status.h>

static inline int error_same(int status)
{
    return status;
}

/* Set code and text. error may be NULL. (A macro, so that compilers and analyzers see at the call that it
 * returns the code it was given.) */
#define error_set(error, status, ...) (error_set_text((error), (status), __VA_ARGS__), error_same(status))
__attribute__((format(printf, 3, 4))) void error_set_text(pawl_error *error, int status, const char *format,
                                                          ...);

/* Put context in front of the text that is there; if there is none, in front of the status's meaning. */
#define error_wrap(error, status, ...) (error_wrap_text((error), (status), __VA_ARGS__), error_same(status))
__attribute__((format(printf, 3, 4))) void error_wrap_text(pawl_error *error, int status, const char *format,
                                                           ...);

/* An errno becomes a status, and its text follows the given one. */
__attribute__((format(printf, 3, 4))) int error_errno(pawl_error *error, int number, const char *format, ...);
int error_from_errno(int number);

void error_clear(pawl_error *error);

#endif
