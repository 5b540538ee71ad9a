/* engine/json/show_impl.h: what the parts of showing share. */
#ifndef ENGINE_JSON_SHOW_IMPL_H
#define ENGINE_JSON_SHOW_IMPL_H

#include "core/event/event.h"
#include "engine/json/show.h"

struct show {
    struct json_out *out;
    const struct schema *schema;
    pawl_error *error;
    size_t before; /* where the text began */
};

/* A text that failed before stays so. */
int show_begin(struct show *show, struct json_out *out, const struct schema *schema, pawl_error *error);

/* Returns the status, or the text's own failure. */
int show_end(struct show *show, int status);

int show_type(const struct show *show, uint16_t id, const struct schema_type **ret_type);

/* A member whose value is a name's text. */
int show_name(const struct show *show, const char *key, uint16_t id);

int show_value(const struct show *show, const struct value *value);

/* Members, of those fields that have a value, and of those that become null: their places, u16 each, ascending.
 */
int show_fields(const struct show *show, const struct schema_type *type, pawl_bytes row, pawl_bytes cleared);

/* The name of a place, plus 1, in a parent's type. parent NULL: in all that have such children there; if they
 * do not agree, nothing: {NULL, 0}. */
pawl_bytes show_container(const struct show *show, const struct schema_type *parent, uint16_t child,
                          uint16_t place);

/* The argument and its children, as they lie in each other. */
int show_argument(const struct show *show, const struct event *event);

#endif
