/* core/command/workspaces.h: what the processor must know of a workspace to number its next event.
 *
 * A cache over the state. It includes what is staged, so after a failure it is cleared and read again. */
#ifndef CORE_COMMAND_WORKSPACES_H
#define CORE_COMMAND_WORKSPACES_H

#include "base/lru.h"
#include "core/command/build.h"

struct workspaces {
    struct lru facts; /* wsid -> struct workspace_facts */
};

int workspaces_init(struct workspaces *workspaces, const pawl_allocator *alloc, uint32_t capacity);
void workspaces_release(struct workspaces *workspaces);
void workspaces_clear(struct workspaces *workspaces);

/* Borrowed until the next call. PAWL_ENOTFOUND: there is no such workspace. PAWL_ECORRUPT. */
int workspaces_get(struct workspaces *workspaces, const struct state *state, uint64_t wsid,
                   struct workspace_facts **ret_facts, pawl_error *error);

/* What an event that was just staged has made of a workspace. */
void workspaces_put(struct workspaces *workspaces, uint64_t wsid, struct workspace_facts facts);

#endif
