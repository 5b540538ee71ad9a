#include "core/schema/path.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "core/schema/text.h"

static size_t put_step(const struct path *path, char *text, size_t size)
{
    int length;
    if (!path->up)
        length = snprintf(text, size, "$");
    else if (!path->name.data)
        length = snprintf(text, size, "[%zu]", path->index);
    else if (text_is_name(path->name))
        length = snprintf(text, size, ".%.*s", TEXT(path->name));
    else
        length = snprintf(text, size, "[\"%.*s\"]", TEXT(path->name));
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

void path_format(const struct path *path, char *text, size_t size)
{
    size_t steps = 0, used = 0;
    for (const struct path *p = path; p; p = p->up)
        steps++;
    while (steps-- > 0) {
        const struct path *p = path;
        for (size_t i = 0; i < steps; i++)
            p = p->up;
        used += put_step(p, text + used, size - used);
    }
}

void verdict_refuse(struct verdict *verdict, const struct path *path, const char *format, ...)
{
    if (verdict->status)
        return;
    verdict->status = PAWL_EINVAL;
    char where[400], what[400];
    path_format(path, where, sizeof where);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (length < 0)
        what[0] = '\0';
    if (verdict->package.size)
        error_set(verdict->error, PAWL_EINVAL, "package %.*s: %s: %s", TEXT(verdict->package), where, what);
    else
        error_set(verdict->error, PAWL_EINVAL, "%s: %s", where, what);
}

void verdict_fail(struct verdict *verdict, int status)
{
    if (verdict->status)
        return;
    verdict->status = status;
    if (verdict->error && verdict->error->code != status)
        error_set(verdict->error, status, "%s", pawl_status_text(status));
}
