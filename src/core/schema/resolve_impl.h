/* core/schema/resolve_impl.h: what the files that resolve a schema share.
 *
 *     resolve.c          names, workspaces, types, commands
 *     resolve_project.c  projectors
 *     resolve_lanes.c    which projectors belong together
 *     compile.c          expressions
 *
 * Like a decoder, a resolver keeps its first error: the verdict holds the first complaint, and the walk goes on
 * until it is convenient to stop. */
#ifndef CORE_SCHEMA_RESOLVE_IMPL_H
#define CORE_SCHEMA_RESOLVE_IMPL_H

#include "core/schema/compile.h"
#include "core/schema/path.h"
#include "core/schema/resolve.h"

struct compiled {
    struct expr *expr;
    struct compiled *next;
};

/* Where a projector comes from. */
struct origin {
    const struct definition *package;
    const struct definition_projector *projector;
};

struct resolver {
    struct verdict v;
    const struct schema_source *source;
    const struct definition *package; /* at hand: bare names are its */
    struct arena *arena;
    struct resolved *out;

    /* out->schema's lists, while they can still be written. */
    struct schema_type *types;
    struct schema_command *commands;
    struct schema_projector *projectors;
    struct origin *origins; /* of the projectors */
};

/* Let this be the package at hand. */
void resolver_enter(struct resolver *r, const struct definition *package);

/* Zeroed; NULL, and a verdict, when there is no memory. To take 0 bytes is allowed, and does not give NULL. */
void *resolver_take(struct resolver *r, size_t count, size_t size);

/* A name of the package at hand as it is in the names; of one that is known to be there. */
const struct schema_name *resolver_own(const struct resolver *r, pawl_bytes name);

/* What a text refers to, qualified or of the package at hand; NULL, and a complaint, unless it is of this kind.
 */
const struct schema_name *resolver_refer(struct resolver *r, const struct path *at, pawl_bytes text,
                                         enum named_kind kind);
/* The same without complaint, of any kind. */
const struct schema_name *resolver_look(const struct resolver *r, pawl_bytes text);

/* NULL, and a complaint at the path, if it does not compile. */
const struct expr *resolver_compile(struct resolver *r, const struct path *at, pawl_bytes text,
                                    const struct compile_scope *scope);

void resolve_projectors(struct resolver *r);
void resolve_lanes(struct resolver *r);

#endif
