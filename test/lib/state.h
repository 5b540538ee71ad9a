/* test/lib/state.h: a store in memory and an overlay over it, for tests of what stands on them.
 *
 * The store has memory of its own: alloc counts, and fails, what the overlay and the arena ask for. */
#ifndef TEST_LIB_STATE_H
#define TEST_LIB_STATE_H

#include "adapter/mem/store.h"
#include "core/state/key.h"
#include "core/state/overlay.h"
#include "test/lib/alloc.h"
#include "test/lib/test.h"

struct state_bed {
    struct test_alloc alloc;
    mem_store_disk *disk;
    pawl_store *store;
    struct overlay overlay;
    struct arena memory;
    struct state state;
};

static inline void state_bed_open(struct state_bed *bed)
{
    test_alloc_init(&bed->alloc);
    assert_ok(mem_store_disk_new(NULL, &bed->disk));
    assert_ok(mem_store_open(bed->disk, &(struct mem_store_options){.name = "state"}, NULL, &bed->store, NULL));
    overlay_init(&bed->overlay, &bed->alloc.allocator);
    arena_init(&bed->memory, &bed->alloc.allocator, 4096);
    bed->state = (struct state){.overlay = &bed->overlay, .reader = pawl_store_writer(bed->store)};
}

static inline void state_bed_close(struct state_bed *bed)
{
    overlay_release(&bed->overlay);
    arena_release(&bed->memory);
    mem_store_disk_free(bed->disk);
    test_alloc_release(&bed->alloc);
}

/* Change a row to what it shall be, as whoever derives does: value.data NULL removes it. */
static inline int state_bed_change(struct state_bed *bed, struct arena *memory, struct changes *changes,
                                   pawl_bytes key, pawl_bytes value)
{
    pawl_bytes old = {0};
    int status = state_get(&bed->state, key, &old);
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return status;
    return state_change(&bed->state, memory, changes, key, old, value);
}

/* Put an event's changes into the store's transaction. */
static inline int state_bed_write(pawl_store *store, const struct changes *changes)
{
    int status = PAWL_OK;
    for (const struct row_change *c = changes->first; status == PAWL_OK && c; c = c->next)
        status = c->value.data ? pawl_store_put(store, STATE_SPACE, c->key, c->value)
                               : pawl_store_remove(store, STATE_SPACE, c->key);
    return status;
}

#endif
