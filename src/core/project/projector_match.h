/* core/project/projector_match.h: which projectors an event concerns. */
#ifndef CORE_PROJECT_PROJECTOR_MATCH_H
#define CORE_PROJECT_PROJECTOR_MATCH_H

#include "core/schema/schema.h"

static inline bool projector_matches(const struct schema_projector *projector, uint16_t command)
{
    for (size_t i = 0; i < projector->on_count; i++)
        if (projector->on[i] == command)
            return true;
    return false;
}

#endif
