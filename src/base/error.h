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
#define error_set(error, status, ...) ((void)pawl_error_set((error), (status), __VA_ARGS__), error_same(status))

/* Put context in front of the text that is there; if there is none, in front of the status's meaning. */
#define error_wrap(error, status, ...)                                                                         \
    ((void)pawl_error_wrap((error), (status), __VA_ARGS__), error_same(status))

/* An errno becomes a status, and its text follows the given one. */
#define error_errno(error, number, ...) pawl_error_errno((error), (number), __VA_ARGS__)
int error_from_errno(int number);

void error_clear(pawl_error *error);

#endif
