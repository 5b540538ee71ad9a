/* core/schema/compile.h: an expression's text against a schema's types. compile.c says what names mean. */
#ifndef CORE_SCHEMA_COMPILE_H
#define CORE_SCHEMA_COMPILE_H

#include "core/schema/schema.h"

/* What an expression may name, and what it must give. */
struct compile_scope {
    const struct schema_type *row; /* NULL: no row is at hand */
    bool record; /* the row at hand is a record: id, parent and active, unless these are fields */
    bool event;  /* whether there is one */
    const struct schema_type *argument; /* the event's; NULL: none */
    enum value_type want;
};

/* What a text refers to: qualified, or of the package. NULL: nothing. */
const struct schema_name *schema_name_from(const struct schema *schema, pawl_bytes package, pawl_bytes text);

/* Bare names are the package's. Errors as expr_compile. */
int schema_compile(const struct schema *schema, pawl_bytes package, pawl_bytes text,
                   const struct compile_scope *scope, const pawl_allocator *alloc, struct expr **ret_expr,
                   pawl_error *error);

#endif
