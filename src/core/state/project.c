#include "core/state/project.h"

#include "base/error.h"
#include "core/state/acting.h"

bool projector_is_on(const struct schema_projector *projector, uint16_t command)
{
    if (!projector->sync)
        return false;
    for (size_t i = 0; i < projector->on_count; i++)
        if (projector->on[i] == command)
            return true;
    return false;
}

int project(const struct derivation *derivation, const struct schema_projector *projector,
            const struct state *state, struct arena *memory, struct changes *changes, pawl_error *error)
{
    struct acting acting = {
        .derivation = derivation, .state = *state, .memory = memory, .changes = changes, .error = error};
    for (size_t i = 0; i < projector->action_count; i++) {
        struct intent intent = intent_of(&projector->actions[i]);
        int status = act(&acting, &intent);
        if (status != PAWL_OK && status != PAWL_ENOMEM)
            return error_wrap(error, status, "projector %.*s, action %zu", (int)projector->name.size,
                              (const char *)projector->name.data, i);
        if (status != PAWL_OK)
            return status;
    }
    return PAWL_OK;
}
