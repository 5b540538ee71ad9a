/* core/state/scope.h: what the names of a projector's expressions stand for, for one event and one row. */
#ifndef CORE_STATE_SCOPE_H
#define CORE_STATE_SCOPE_H

#include "core/schema/row.h"
#include "core/state/derive.h"

struct scope {
    const struct derivation *derivation;
    const struct schema_type *type; /* of the row at hand */
    const struct row *row;          /* NULL: there is none yet, every field is null */
};

/* A source for expr_eval. Borrows the scope. */
struct expr_source scope_source(struct scope *scope);

#endif
