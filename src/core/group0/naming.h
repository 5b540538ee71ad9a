/* core/group0/naming.h: numbers for what a package newly names (version.h, V1 and V2). */
#ifndef CORE_GROUP0_NAMING_H
#define CORE_GROUP0_NAMING_H

#include "core/schema/resolve.h"

struct naming {
    struct schema_name *names; /* by ID */
    size_t count;
    uint16_t *by_text; /* places in names */
};

/* All names of before, copied, and behind them those that the package (NULL: none) newly defines. All is taken
 * from the arena. PAWL_EINVAL, with the path, if a name was given to something else, or if there are no numbers
 * left; PAWL_ENOMEM. */
int naming_extend(const struct schema *before, const struct definition *package, struct arena *arena,
                  struct naming *ret_naming, pawl_error *error);

#endif
