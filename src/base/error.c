#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* vsnprintf, but a text that does not fit ends with a sign that it was cut. */
__attribute__((format(printf, 3, 0))) static void format_text(char *text, size_t size, const char *format,
                                                              va_list args)
{
    int need = vsnprintf(text, size, format, args);
    if (need < 0)
        text[0] = '\0';
    else if ((size_t)need >= size)
        memcpy(text + size - 4, "...", 4);
}

static void append_text(pawl_error *error, const char *tail)
{
    size_t used = strlen(error->text);
    size_t room = sizeof error->text - used;
    int need = snprintf(error->text + used, room, ": %s", tail);
    if (need >= 0 && (size_t)need >= room)
        memcpy(error->text + sizeof error->text - 4, "...", 4);
}

int pawl_error_set(pawl_error *error, int status, const char *format, ...)
{
    if (!error)
        return status;
    va_list args;
    va_start(args, format);
    format_text(error->text, sizeof error->text, format, args);
    va_end(args);
    error->code = status;
    return status;
}

int pawl_error_wrap(pawl_error *error, int status, const char *format, ...)
{
    if (!error)
        return status;
    char inner[sizeof error->text];
    memcpy(inner, error->text, sizeof inner);
    bool empty = error->code == PAWL_OK || inner[0] == '\0';
    va_list args;
    va_start(args, format);
    format_text(error->text, sizeof error->text, format, args);
    va_end(args);
    append_text(error, empty ? pawl_status_text(status) : inner);
    error->code = status;
    return status;
}

int pawl_error_errno(pawl_error *error, int number, const char *format, ...)
{
    int status = error_from_errno(number);
    if (!error)
        return status;
    va_list args;
    va_start(args, format);
    format_text(error->text, sizeof error->text, format, args);
    va_end(args);
    append_text(error, strerrordesc_np(number) ? strerrordesc_np(number) : "unknown error");
    error->code = status;
    return status;
}

int error_from_errno(int number)
{
    switch (number) {
    case ENOMEM: return PAWL_ENOMEM;
    case ENOSPC:
    case EDQUOT: return PAWL_EFULL;
    case EACCES:
    case EPERM: return PAWL_EACCES;
    case EROFS: return PAWL_EREADONLY;
    case ENOENT: return PAWL_ENOTFOUND;
    case EEXIST: return PAWL_EEXISTS;
    case EINVAL: return PAWL_EINVAL;
    case ECANCELED: return PAWL_ECANCELED;
    default: return PAWL_EIO;
    }
}

void error_clear(pawl_error *error)
{
    if (!error)
        return;
    error->code = PAWL_OK;
    error->text[0] = '\0';
}

const char *pawl_status_name(int status)
{
    switch (status) {
    case PAWL_OK: return "PAWL_OK";
#define X(name, code, text)                                                                                    \
    case PAWL_##name: return "PAWL_" #name;
        PAWL_STATUS_TABLE(X)
#undef X
    default: return "PAWL_?";
    }
}

const char *pawl_status_text(int status)
{
    switch (status) {
    case PAWL_OK: return "no error";
#define X(name, code, text)                                                                                    \
    case PAWL_##name: return text;
        PAWL_STATUS_TABLE(X)
#undef X
    default: return "no such status";
    }
}
