/* core/group0/compat.h: whether a changed package still reads what was stored under the one before it.
 *
 * Adding is fine. A change is refused if stored rows, numbers or references would mean something else by it, or
 * nothing. Projectors and views are not stored in rows: they may change and be removed. docs/SCHEMA.md has the
 * table.
 */
#ifndef CORE_GROUP0_COMPAT_H
#define CORE_GROUP0_COMPAT_H

#include "core/schema/definition.h"

/* Of two definitions of one package, both settled. PAWL_EINVAL, with the path and the reason. */
int compat_check(const struct definition *before, const struct definition *after, pawl_error *error);

#endif
