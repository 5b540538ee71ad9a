/* engine/json/tree.h: reads JSON text into a tree, with limits, and checks values of the tree.
 *
 *     text ── tree_read ──► nodes in an arena ── tree_get, tree_at, tree_expect ──► what a reader makes of it
 *
 * Nothing of a tree is freed by itself: it ends with the arena. A node does not move, and strings have a 0 behind them.
 * An error of syntax names line and column; a value that is wrong, or in the wrong place, is named by its
 * path. */
#ifndef ENGINE_JSON_TREE_H
#define ENGINE_JSON_TREE_H

#include <string.h>

#include "base/arena.h"
#include "core/schema/path.h"

struct tree_limits {
    size_t bytes_max;
    size_t depth_max; /* brackets inside each other */
    bool zeros;       /* whether a string may have U+0000 in it; a name never may */
};

enum tree_kind { TREE_NULL, TREE_BOOL, TREE_INTEGER, TREE_REAL, TREE_STRING, TREE_ARRAY, TREE_OBJECT };

struct tree {
    enum tree_kind kind;
    pawl_bytes name; /* of a member; its data is a string of C's */
    union {
        bool boolean;
        int64_t integer;
        double real;
        pawl_bytes text;
        struct {
            struct tree **items; /* elements, or members, in their order */
            size_t count;
        };
    };
};

/* Read an array or an object. PAWL_EINVAL: not JSON, not UTF-8, a member twice, too deep, a number too large: "line 3,
 * column 14: ...". PAWL_ETOOBIG, PAWL_ENOMEM. */
int tree_read(pawl_bytes text, const struct tree_limits *limits, struct arena *memory, struct tree **ret_tree,
              pawl_error *error);

/* If good is false, refuse the value: "expected an object, not null". Returns good. */
bool tree_expect(struct verdict *v, const struct path *at, const struct tree *tree, bool good,
                 const char *what);

/* Check that it is an object with no other members than these. The list ends with NULL. */
bool tree_expect_members(struct verdict *v, const struct path *at, const struct tree *tree,
                         const char *const *members);

/* A member by its name; NULL: there is none, or this is no object. */
const struct tree *tree_get_named(const struct tree *tree, pawl_bytes name);

static inline const struct tree *tree_get(const struct tree *tree, const char *name)
{
    return tree_get_named(tree, (pawl_bytes){name, __builtin_strlen(name)});
}

static inline bool tree_is(const struct tree *tree, enum tree_kind kind)
{
    return tree && tree->kind == kind;
}

/* How many elements or members it has, and one of them. */
static inline size_t tree_count(const struct tree *tree)
{
    return tree_is(tree, TREE_ARRAY) || tree_is(tree, TREE_OBJECT) ? tree->count : 0;
}

static inline const struct tree *tree_at(const struct tree *tree, size_t i)
{
    return tree->items[i];
}

static inline const char *tree_name(const struct tree *member)
{
    return member->name.data;
}

/* Of a string; the 0 behind it is not counted. */
static inline pawl_bytes tree_text(const struct tree *string)
{
    return string->text;
}

#endif
