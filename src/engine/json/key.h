/* engine/json/key.h: the key of an entity's or a view's row, as JSON: an object with the fields of the key, or
 * an array of their values in the key's order. */
#ifndef ENGINE_JSON_KEY_H
#define ENGINE_JSON_KEY_H

#include "base/arena.h"
#include "core/schema/schema.h"

#define KEY_JSON_BYTES_MAX ((size_t)1 << 20)

/* The values, in the key's order, in the arena: the entity's key_count. PAWL_EINVAL: "$.customer: ...", "line
 * 1, column 3: ..."; PAWL_ETOOBIG, PAWL_ENOMEM. */
int json_key(pawl_bytes text, const struct schema *schema, const struct schema_type *entity,
             struct arena *arena, struct value **ret_values, pawl_error *error);

/* The same of a view's key, or of its first fields: as many as the text has. Nulls are allowed. */
int json_key_first(pawl_bytes text, const struct schema *schema, const struct schema_type *view,
                   struct arena *arena, struct value **ret_values, size_t *ret_count, pawl_error *error);

#endif
