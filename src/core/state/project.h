/* core/state/project.h: a synchronous projector, run as a part of deriving its event. */
#ifndef CORE_STATE_PROJECT_H
#define CORE_STATE_PROJECT_H

#include "core/state/derive.h"

/* Whether it runs synchronously, and on this command. */
bool projector_is_on(const struct schema_projector *projector, uint16_t command);

/* Do its actions, in order, each on the state that the one before left. Errors as derive: an error names the
 * projector and the action. */
int project(const struct derivation *derivation, const struct schema_projector *projector,
            const struct state *state, struct arena *memory, struct changes *changes, pawl_error *error);

#endif
