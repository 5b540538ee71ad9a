#include "engine/json/tree.h"

static const char *kind_words(const struct tree *tree)
{
    switch (tree->kind) {
    case TREE_OBJECT: return "an object";
    case TREE_ARRAY: return "an array";
    case TREE_STRING: return "a string";
    case TREE_INTEGER: return "an integer";
    case TREE_REAL: return "a number with a fraction";
    case TREE_BOOL: return "a bool";
    case TREE_NULL: return "null";
    }
    return "something else";
}

bool tree_expect(struct verdict *v, const struct path *at, const struct tree *tree, bool good, const char *what)
{
    if (!good)
        verdict_refuse(v, at, "expected %s, not %s", what, kind_words(tree));
    return good;
}

bool tree_expect_members(struct verdict *v, const struct path *at, const struct tree *tree,
                         const char *const *members)
{
    if (!tree_expect(v, at, tree, tree_is(tree, TREE_OBJECT), "an object"))
        return false;
    for (size_t m = 0; m < tree->count; m++) {
        pawl_bytes name = tree_at(tree, m)->name;
        size_t i = 0;
        while (members[i] && strcmp(members[i], name.data) != 0)
            i++;
        if (members[i])
            continue;
        struct path here = path_name(at, name);
        verdict_refuse(v, &here, "there is no such member");
        return false;
    }
    return true;
}

const struct tree *tree_get_named(const struct tree *tree, pawl_bytes name)
{
    if (!tree_is(tree, TREE_OBJECT))
        return NULL;
    for (size_t i = 0; i < tree->count; i++) {
        const struct tree *member = tree_at(tree, i);
        if (member->name.size == name.size && memcmp(member->name.data, name.data, name.size) == 0)
            return member;
    }
    return NULL;
}
