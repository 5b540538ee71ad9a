/* core/command/window.h: the idempotency keys of a workspace's last WINDOW_EVENTS events.
 *
 * A window is read from the rows of the workspace's log when a command with a key comes, and is kept for the
 * workspaces that were used last. It has 32 bits of each key's hash, at the event's offset modulo the window. A
 * search looks through all of them, which is a few cache lines read in a row. A hit is only a suspicion: the
 * row of the workspace's log, and then the event itself, decide. */
#ifndef CORE_COMMAND_WINDOW_H
#define CORE_COMMAND_WINDOW_H

#include "base/lru.h"
#include "core/state/overlay.h"

#define WINDOW_EVENTS 1024

struct windows {
    struct lru used; /* wsid -> struct window */
};

/* workspaces: how many are kept, at 4 KiB each. PAWL_ENOMEM. */
int windows_init(struct windows *windows, const pawl_allocator *alloc, uint32_t workspaces);
void windows_release(struct windows *windows);
void windows_clear(struct windows *windows);

/* Find the latest event whose key has this hash, which is not 0, among the last WINDOW_EVENTS events up to
 * workspace offset last. Gives its PLog offset; 0: there is none. PAWL_ECORRUPT; errors of the store. */
int windows_find(struct windows *windows, const struct state *state, uint64_t wsid, uint64_t last,
                 uint64_t hash, uint64_t *ret_plog_offset);

/* An event of the workspace was staged; hash 0: it has no key. */
void windows_note(struct windows *windows, uint64_t wsid, uint64_t offset, uint64_t hash);

#endif
