#include "http/exchange/failure.h"

#include <stdio.h>

enum http_status failure_status(int status)
{
    switch (status) {
    case PAWL_OK: return HTTP_OK;
    case PAWL_EINVAL: return HTTP_BAD_REQUEST;
    case PAWL_EACCES:
    case PAWL_EREADONLY: return HTTP_FORBIDDEN;
    case PAWL_ENOTFOUND:
    case PAWL_EUNKNOWN_SEQ: return HTTP_NOT_FOUND;
    case PAWL_EMISUSE:
    case PAWL_EEXISTS:
    case PAWL_EFENCED:
    case PAWL_EEXHAUSTED:
    case PAWL_ELOCKED:
    case PAWL_ECONFLICT: return HTTP_CONFLICT;
    case PAWL_ETOOBIG: return HTTP_TOO_LARGE;
    case PAWL_EBUSY:
    case PAWL_ENOMEM:
    case PAWL_ECLOSED:
    case PAWL_ECANCELED:
    case PAWL_ENOTBUILT: return HTTP_UNAVAILABLE;
    case PAWL_ETIMEOUT: return HTTP_TIMEOUT;
    case PAWL_EFULL: return HTTP_NO_SPACE;
    default: return HTTP_FAILED; /* EUNKNOWN, EIO, ECORRUPT, EFORMAT, EVERSION */
    }
}

bool failure_retry(enum http_status status)
{
    return status == HTTP_UNAVAILABLE;
}

size_t failure_body(const pawl_error *error, char *text)
{
    char json[PAWL_ERROR_JSON_MAX];
    pawl_error_json(error, json);
    int size = snprintf(text, FAILURE_BODY_MAX, "{\"error\":%s}\n", json);
    return (size_t)size;
}
