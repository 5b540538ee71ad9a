/* base/arena.h: memory for many small things that end together.
 *
 * Bytes are taken from chunks, one after the other, and given back all at once; a chunk stays for the next use,
 * so that an arena which is reset allocates no more once it has grown large enough. Bytes that were taken
 * do not move.
 *
 *     point ── take, take, ... ──┬── keep them
 *                                └── rewind(point): as if they had not been taken
 *
 * Caveat: after rewind or reset, bytes taken since the point belong to nobody. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <pawl/types.h>

struct arena_chunk;

struct arena {
    const pawl_allocator *alloc;
    size_t chunk_size;
    struct arena_chunk *first;
    struct arena_chunk *last; /* the one that is taken from */
    size_t used;              /* of it */
    size_t held;              /* bytes of all chunks, taken or not */
};

struct arena_point {
    struct arena_chunk *last;
    size_t used;
};

/* Allocates nothing. chunk_size: what one chunk holds; a larger take gets a chunk of its own size. */
void arena_init(struct arena *arena, const pawl_allocator *alloc, size_t chunk_size);
void arena_release(struct arena *arena);

/* size bytes, aligned for anything, not zeroed; NULL when there is no memory. Taking 0 is
 * allowed and gives a pointer that is not NULL. */
void *arena_take(struct arena *arena, size_t size);

/* The same, copied from bytes. data is NULL when there is no memory. */
pawl_bytes arena_copy(struct arena *arena, pawl_bytes bytes);

struct arena_point arena_point(const struct arena *arena);
void arena_rewind(struct arena *arena, struct arena_point point);

/* Forget everything; keep the chunks, but for those of more than the ordinary size. */
void arena_reset(struct arena *arena);

#endif
