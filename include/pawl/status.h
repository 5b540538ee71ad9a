/* status.h: how every Pawl function says what happened.
 *
 * A function that can fail returns an int: PAWL_OK (0) or one of the negative codes below. A code is
 * enough to act on; the words for a human are in a pawl_error that the caller owns and passes in, or
 * passes as NULL if it does not want them. Outputs named ret_ are untouched when a function fails.
 *
 * Pawl never prints, never logs on its own, and never ends its host process because of what the world
 * or a caller did wrong. */
#ifndef PAWL_STATUS_H
#define PAWL_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(PAWL_BUILDING)
#define PAWL_API __attribute__((visibility("default")))
#else
#define PAWL_API
#endif

/* The compiler checks the arguments of a function like printf. */
#if defined(__GNUC__)
#define PAWL_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define PAWL_PRINTF(text, first)
#endif

/* The one table: name, code, what it means. Codes are part of the ABI: they are never renumbered. */
#define PAWL_STATUS_TABLE(X)                                                                                   \
    X(EINVAL, -1, "an argument is not valid")                                                                  \
    X(EMISUSE, -2, "the call is not allowed in this state")                                                    \
    X(ENOMEM, -3, "out of memory")                                                                             \
    X(EBUSY, -4, "a queue is full or the object is not ready; try again")                                      \
    X(ECLOSED, -5, "closed")                                                                                   \
    X(ETIMEOUT, -6, "timed out")                                                                               \
    X(ENOTFOUND, -7, "not found")                                                                              \
    X(EEXISTS, -8, "exists already")                                                                           \
    X(ETOOBIG, -9, "larger than its limit")                                                                    \
    X(EFENCED, -10, "another writer owns it, or the expected offset is not the next; nothing was written")     \
    X(EUNKNOWN, -11, "the outcome is not known; claim and read again")                                         \
    X(EIO, -12, "an input or output error; nothing was written")                                               \
    X(EFULL, -13, "no space left; nothing was written")                                                        \
    X(ECORRUPT, -14, "stored bytes are not what was written")                                                  \
    X(EFORMAT, -15, "not made by Pawl")                                                                        \
    X(EVERSION, -16, "made by a newer version of Pawl")                                                        \
    X(ELOCKED, -17, "another process has it open for writing")                                                 \
    X(EACCES, -18, "permission denied")                                                                        \
    X(EREADONLY, -19, "read-only")                                                                             \
    X(EUNKNOWN_SEQ, -20, "the workspace's kind has no such sequence")                                          \
    X(EEXHAUSTED, -21, "the sequence has given its last number")                                               \
    X(ECONFLICT, -22,                                                                                          \
      "something else came first: the workspace has moved on, or the key was used differently")                \
    X(ECANCELED, -23, "cancelled")                                                                             \
    X(ENOTBUILT, -24, "the view does not cover everything yet")

enum pawl_status {
    PAWL_OK = 0,
#define X(name, code, text) PAWL_##name = (code),
    PAWL_STATUS_TABLE(X)
#undef X
};

/* What went wrong, in words: always terminated, cut with "..." where it would not fit. */
typedef struct pawl_error {
    int code;
    char text[508];
} pawl_error;

/* The code's name ("PAWL_EFULL"), and its meaning from the table. Never NULL, for any int.
 * Both point to constants. Any thread. */
PAWL_API const char *pawl_status_name(int status);
PAWL_API const char *pawl_status_text(int status);

/* Fill in an error, as Pawl does: for functions of yours that Pawl calls (pawl/sequencer.h), or that speak as
 * Pawl's do. Each returns the status, so that failing is one line, and does nothing else if error is NULL:
 *
 *     return pawl_error_set(error, PAWL_EINVAL, "the name is empty");
 *
 * set replaces what was there. wrap puts words in front of what is there, or of the status' meaning if there is
 * nothing: "cannot open x: permission denied". errno turns an errno into a status, and puts its meaning behind
 * the words. What does not fit is cut. Any thread. */
PAWL_API PAWL_PRINTF(3, 4) int pawl_error_set(pawl_error *error, int status, const char *format, ...);
PAWL_API PAWL_PRINTF(3, 4) int pawl_error_wrap(pawl_error *error, int status, const char *format, ...);
PAWL_API PAWL_PRINTF(3, 4) int pawl_error_errno(pawl_error *error, int number, const char *format, ...);

/* An error as JSON, as the program says it with --json (docs/CLI.md):
 *
 *     {"code":"PAWL_EINVAL","message":"expected an integer, not null","where":"$.records[0].fields.qty"}
 *
 * where is the place in what was said, if the words begin with one: a path, or a line and a column. text has
 * PAWL_ERROR_JSON_MAX bytes, and ends with a zero that the returned size does not count. Allocates nothing, so
 * that PAWL_ENOMEM can be said, too. Any thread. */
#define PAWL_ERROR_JSON_MAX 4096
PAWL_API size_t pawl_error_json(const pawl_error *error, char *text);

#ifdef __cplusplus
}
#endif
#endif
