/* http/exchange/failure.h: which HTTP status a failure has.
 *
 * The body of every failure is {"error":{"code":"PAWL_ENOTFOUND","message":"...","where":"$.command"}}, as the
 * program prints it with --json. What HTTP itself complains of has a code of the same table: PAWL_ENOTFOUND for
 * a path that is not there, PAWL_EINVAL for a wrong method or type, PAWL_EACCES for a missing token. */
#ifndef HTTP_EXCHANGE_FAILURE_H
#define HTTP_EXCHANGE_FAILURE_H

#include <pawl/types.h>

enum http_status {
    HTTP_OK = 200,
    HTTP_CREATED = 201,
    HTTP_ACCEPTED = 202,
    HTTP_NO_CONTENT = 204,
    HTTP_NOT_MODIFIED = 304,
    HTTP_BAD_REQUEST = 400,
    HTTP_UNAUTHORIZED = 401,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_METHOD_NOT_ALLOWED = 405,
    HTTP_NOT_ACCEPTABLE = 406,
    HTTP_CONFLICT = 409,
    HTTP_GONE = 410,
    HTTP_TOO_LARGE = 413,
    HTTP_WRONG_TYPE = 415,
    HTTP_MISDIRECTED = 421,
    HTTP_FAILED = 500,
    HTTP_UNAVAILABLE = 503,
    HTTP_TIMEOUT = 504,
    HTTP_NO_SPACE = 507,
};

/* 500 for a status that is not in the table. */
enum http_status failure_status(int status);

/* Whether the same request may succeed a little later without anything else being done: the answer then has
 * Retry-After. */
bool failure_retry(enum http_status status);

/* The body, which ends with a newline and a 0 that the returned size does not count. text has FAILURE_BODY_MAX
 * bytes. */
#define FAILURE_BODY_MAX (PAWL_ERROR_JSON_MAX + 16)
size_t failure_body(const pawl_error *error, char *text);

#endif
