/* engine/node/snapshot.c: a snapshot of group0 in DIR/local, the node's own durable store.
 *
 * group0's stream has an entry for every step of every build there ever was. With a snapshot, opening reads only
 * what came behind it. A snapshot is never needed: without one, or if it cannot be read, all entries are read. */
#include "engine/node/node.h"

#define KEY       "group0/snapshot"
#define DUE_AFTER 4096 /* commands while the engine is open */
#define WORTH     256  /* commands when it is closed */
#define CHUNK     ((size_t)64 * 1024)

static pawl_bytes key(void)
{
    return (pawl_bytes){KEY, sizeof KEY - 1};
}

/* Into a fresh group0: one that was restored by half is of no use. */
static void restore(pawl_engine *e, pawl_bytes bytes)
{
    struct group0 *fresh;
    if (group0_new(e->options.allocator, &fresh) != PAWL_OK)
        return;
    group0_configure(fresh, e->file.partitions, 1, e->file.shards);
    if (group0_restore(fresh, bytes, NULL) != PAWL_OK) {
        group0_free(fresh);
        return;
    }
    group0_free(e->group0);
    e->group0 = fresh;
    e->group0_saved = group0_position(fresh);
}

static bool load_row(void *arg, pawl_bytes name, pawl_bytes value)
{
    (void)name;
    restore(arg, value);
    return false;
}

void group0_snapshot_load(pawl_engine *e)
{
    (void)local_scan(e->local, key(), load_row, e, NULL);
}

int group0_snapshot_forget(pawl_engine *e)
{
    struct group0 *fresh;
    int status = group0_new(e->options.allocator, &fresh);
    if (status != PAWL_OK)
        return status;
    group0_configure(fresh, e->file.partitions, 1, e->file.shards);
    group0_free(e->group0);
    e->group0 = fresh;
    e->group0_saved = 0;
    e->local_is_foreign = true;
    return PAWL_OK;
}

/* Failing costs nothing but time at the next opening. */
static void save(pawl_engine *e)
{
    if (e->file_is_ahead)
        return;
    struct arena arena;
    pawl_bytes bytes;
    arena_init(&arena, e->options.allocator, CHUNK);
    if (group0_snapshot(e->group0, &arena, &bytes) == PAWL_OK
        && local_put(e->local, key(), bytes, NULL) == PAWL_OK)
        e->group0_saved = group0_position(e->group0);
    arena_release(&arena);
}

void group0_snapshot_if_due(pawl_engine *e)
{
    if (group0_position(e->group0) >= e->group0_saved + DUE_AFTER)
        save(e);
}

void group0_snapshot_save(pawl_engine *e)
{
    if (e->lock_fd >= 0 && group0_position(e->group0) >= e->group0_saved + WORTH)
        save(e);
}
