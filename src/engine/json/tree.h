/* engine/json/tree.h: JSON text as a tree of jansson's, with limits, and what is asked of a tree's parts.
 *
 * Syntax is refused by line and column; what is at the wrong place, or of the wrong kind, by its path. */
#ifndef ENGINE_JSON_TREE_H
#define ENGINE_JSON_TREE_H

#include <jansson.h>

#include "core/schema/path.h"

struct tree_limits {
    size_t bytes_max;
    size_t depth_max; /* brackets inside each other */
    bool zeros;       /* whether a string may have U+0000 in it; a name never may */
};

/* An array or an object; give it back with json_decref. PAWL_EINVAL: not JSON, not UTF-8, a member twice, too
 * deep, a number beyond all bounds: "line 3, column 14: ...". PAWL_ETOOBIG, PAWL_ENOMEM. */
int tree_read(pawl_bytes text, const struct tree_limits *limits, json_t **ret_json, pawl_error *error);

/* Refuse unless it is good: "expected an object, not null". Returns good. */
bool tree_expect(struct verdict *v, const struct path *at, const json_t *json, bool good, const char *what);

/* An object with no other members than these, the last of which is NULL. */
bool tree_expect_members(struct verdict *v, const struct path *at, json_t *json, const char *const *members);

static inline pawl_bytes tree_text(const json_t *string)
{
    return (pawl_bytes){json_string_value(string), json_string_length(string)};
}

#endif
