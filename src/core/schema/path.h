/* core/schema/path.h: what is wrong with a schema, and where: "$.types.Order.fields.qty: ...".
 *
 * A path is a chain of steps on the stack of whoever walks the definition; it becomes text only when something
 * is wrong. A verdict keeps the first complaint and ignores all further ones, so that a walk need not check
 * it after each step: it is checked once, at the end. */
#ifndef CORE_SCHEMA_PATH_H
#define CORE_SCHEMA_PATH_H

#include <pawl/types.h>

struct path {
    const struct path *up; /* NULL: this is the root, "$" */
    pawl_bytes name;       /* data NULL: index counts */
    size_t index;
};

struct verdict {
    int status;
    pawl_error *error;  /* may be NULL */
    pawl_bytes package; /* the package that paths are in, if it is not the one at hand; else empty */
};

static inline struct path path_name(const struct path *up, pawl_bytes name)
{
    return (struct path){.up = up, .name = name};
}

static inline struct path path_member(const struct path *up, const char *name)
{
    return (struct path){.up = up, .name = {name, __builtin_strlen(name)}};
}

static inline struct path path_index(const struct path *up, size_t index)
{
    return (struct path){.up = up, .index = index};
}

/* At most size - 1 bytes and their end. */
void path_format(const struct path *path, char *text, size_t size);

/* The path, a colon, and what is wrong; PAWL_EINVAL. Does nothing if something was wrong before. */
__attribute__((format(printf, 3, 4))) void verdict_refuse(struct verdict *verdict, const struct path *path,
                                                          const char *format, ...);

/* Something else failed, and has filled in the error itself, if there is more to say than the status does. */
void verdict_fail(struct verdict *verdict, int status);

/* For printf's %.*s: as much of a text as goes well into a message. */
#define TEXT(bytes)                                                                                            \
    (int)((bytes).size > SHOWN_MAX ? SHOWN_MAX : (bytes).size), (bytes).data ? (const char *)(bytes).data : ""
#define SHOWN_MAX 130

#endif
