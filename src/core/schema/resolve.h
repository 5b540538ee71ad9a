/* core/schema/resolve.h: definitions become a schema: names become numbers, references pointers, texts
 * programs.
 *
 * Resolving is a function of what it is given: the same packages, names and lanes give the same schema, on
 * every node and in every replay. */
#ifndef CORE_SCHEMA_RESOLVE_H
#define CORE_SCHEMA_RESOLVE_H

#include "base/hash.h"
#include "core/schema/definition.h"

/* A lane that is, or once was. */
struct known_lane {
    struct schema_lane lane; /* with its newest generation */
    struct hash128 digest;   /* of what its projectors do: if it changes, there is a new generation */
    bool present;
};

struct schema_source {
    uint64_t position;
    uint64_t before;                   /* the position of the schema before it */
    const struct definition *packages; /* checked and settled, in the order in which they first came */
    size_t package_count;
    pawl_bytes subject;              /* the package at hand; complaints about another one name it */
    const struct schema_name *names; /* by ID: all that the packages define, and more */
    size_t name_count;
    const uint16_t *names_by_text;
    const struct known_lane *lanes; /* by ID: 1, 2, 3, ... */
    size_t lane_count;
    uint16_t rebuild; /* a lane that gets a new generation in any case; 0: none */
};

struct compiled; /* an expression, and the next one */

struct resolved {
    struct schema schema;
    struct known_lane *lanes; /* those given, and new ones */
    size_t lane_count;
    struct compiled *compiled;
};

/* Everything is taken from the arena, but for the compiled expressions, which come from its allocator. Borrows
 * the texts of packages and names. PAWL_EINVAL, with the path; PAWL_ENOMEM. */
int schema_resolve(const struct schema_source *source, struct arena *arena, struct resolved *ret_resolved,
                   pawl_error *error);

/* Free the expressions; the rest ends with the arena. */
void resolved_release(struct resolved *resolved);

#endif
