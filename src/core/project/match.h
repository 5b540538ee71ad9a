/* core/project/match.h: which projectors an event is for. */
#ifndef CORE_PROJECT_MATCH_H
#define CORE_PROJECT_MATCH_H

#include "core/schema/schema.h"

static inline bool projector_matches(const struct schema_projector *projector, uint16_t command)
{
    for (size_t i = 0; i < projector->on_count; i++)
        if (projector->on[i] == command)
            return true;
    return false;
}

#endif
