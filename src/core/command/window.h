/* core/command/window.h: the idempotency keys of a workspace's last WINDOW_EVENTS events.
 *
 * They are read from the rows of the workspace's log when a command with a key comes, and kept for the
 * workspaces that were used last: of each event 32 bits of its key's hash, at the event's offset modulo the
 * window. A search looks through all of them, which is a few cache lines read in a row. What it finds is a
 * suspicion: the row of the workspace's log, and then the event itself, decide. */
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

/* The PLog offset of the latest event among the last WINDOW_EVENTS, up to last, whose key has this hash,
 * which is not 0; 0: none. PAWL_ECORRUPT; those of the store. */
int windows_find(struct windows *windows, const struct state *state, uint64_t wsid, uint64_t last,
                 uint64_t hash, uint64_t *ret_plog_offset);

/* An event of the workspace was staged; hash 0: it has no key. */
void windows_note(struct windows *windows, uint64_t wsid, uint64_t offset, uint64_t hash);

#endif
