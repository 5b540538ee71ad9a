/* engine/json/show_impl.h: what the files that make JSON share. */
#ifndef ENGINE_JSON_SHOW_IMPL_H
#define ENGINE_JSON_SHOW_IMPL_H

#include "core/event/event.h"
#include "engine/json/show.h"

struct show {
    struct json_out *out;
    const struct schema *schema;
    pawl_error *error;
    size_t before; /* the size of the text before this line */
};

/* A text that has failed before stays failed. */
int show_begin(struct show *show, struct json_out *out, const struct schema *schema, pawl_error *error);

/* Returns the status; if that is PAWL_OK, the text's. On failure the text is cut to before. */
int show_end(struct show *show, int status);

int show_type(const struct show *show, uint16_t id, const struct schema_type **ret_type);

/* A member whose value is a name's text. */
int show_name(const struct show *show, const char *key, uint16_t id);

int show_value(const struct show *show, const struct value *value);

/* A member for each field that has a value or becomes null. cleared: the places of the latter, u16 each,
 * ascending. */
int show_fields(const struct show *show, const struct schema_type *type, pawl_bytes row, pawl_bytes cleared);

/* The name of a container; place is its place in the parent's type, plus 1. parent NULL: the name that all
 * types with such a container agree on. {NULL, 0}: they do not agree. */
pawl_bytes show_container(const struct show *show, const struct schema_type *parent, uint16_t child,
                          uint16_t place);

/* The argument, with its children nested in it. */
int show_argument(const struct show *show, const struct event *event);

#endif
