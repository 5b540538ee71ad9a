/* engine/json/tree.h: parses JSON text into a jansson tree, with limits, and checks values of the tree.
 *
 * An error of syntax names line and column; a value that is wrong, or in the wrong place, is named by its
 * path. */
#ifndef ENGINE_JSON_TREE_H
#define ENGINE_JSON_TREE_H

#include <jansson.h>

#include "core/schema/path.h"

struct tree_limits {
    size_t bytes_max;
    size_t depth_max; /* brackets inside each other */
    bool zeros;       /* whether a string may have U+0000 in it; a name never may */
};

/* Parse an array or an object; free it with json_decref. PAWL_EINVAL: not JSON, not UTF-8, a member twice, too
 * deep, a number too large: "line 3, column 14: ...". PAWL_ETOOBIG, PAWL_ENOMEM. */
int tree_read(pawl_bytes text, const struct tree_limits *limits, json_t **ret_json, pawl_error *error);

/* If good is false, refuse the value: "expected an object, not null". Returns good. */
bool tree_expect(struct verdict *v, const struct path *at, const json_t *json, bool good, const char *what);

/* Check that it is an object with no other members than these. The list ends with NULL. */
bool tree_expect_members(struct verdict *v, const struct path *at, json_t *json, const char *const *members);

static inline pawl_bytes tree_text(const json_t *string)
{
    return (pawl_bytes){json_string_value(string), json_string_length(string)};
}

#endif
