#include "base/arena.h"

#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"

#define ALIGNMENT alignof(max_align_t)

struct arena_chunk {
    struct arena_chunk *next;
    size_t size;
    alignas(max_align_t) uint8_t bytes[];
};

static void chunk_free(struct arena *arena, struct arena_chunk *chunk)
{
    arena->held -= sizeof *chunk + chunk->size;
    mem_free(arena->alloc, chunk, sizeof *chunk + chunk->size);
}

void arena_init(struct arena *arena, const pawl_allocator *alloc, size_t chunk_size)
{
    *arena = (struct arena){.alloc = alloc, .chunk_size = chunk_size};
}

void arena_release(struct arena *arena)
{
    while (arena->first) {
        struct arena_chunk *chunk = arena->first;
        arena->first = chunk->next;
        chunk_free(arena, chunk);
    }
    arena->last = NULL;
    arena->used = 0;
}

/* Make last a chunk with room for size bytes: the next one if it has the room, or a new one before it. */
static bool next_chunk(struct arena *arena, size_t size)
{
    struct arena_chunk **link = arena->last ? &arena->last->next : &arena->first;
    struct arena_chunk *chunk = *link;
    if (!chunk || chunk->size < size) {
        size_t room = size > arena->chunk_size ? size : arena->chunk_size;
        if (room > SIZE_MAX - sizeof *chunk)
            return false;
        chunk = mem_resize(arena->alloc, NULL, 0, sizeof *chunk + room);
        if (!chunk)
            return false;
        chunk->size = room;
        arena->held += sizeof *chunk + room;
        chunk->next = *link;
        *link = chunk;
    }
    arena->last = chunk;
    arena->used = 0;
    return true;
}

void *arena_take(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX - ALIGNMENT)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if ((!arena->last || arena->last->size - arena->used < size) && !next_chunk(arena, size))
        return NULL;
    void *taken = arena->last->bytes + arena->used;
    arena->used += size;
    return taken;
}

pawl_bytes arena_copy(struct arena *arena, pawl_bytes bytes)
{
    void *copy = arena_take(arena, bytes.size);
    if (copy && bytes.size)
        memcpy(copy, bytes.data, bytes.size);
    return (pawl_bytes){copy, bytes.size};
}

struct arena_point arena_point(const struct arena *arena)
{
    return (struct arena_point){.last = arena->last, .used = arena->used};
}

void arena_rewind(struct arena *arena, struct arena_point point)
{
    arena->last = point.last;
    arena->used = point.used;
}

void arena_reset(struct arena *arena)
{
    for (struct arena_chunk **link = &arena->first; *link;) {
        struct arena_chunk *chunk = *link;
        if (chunk->size > arena->chunk_size) {
            *link = chunk->next;
            chunk_free(arena, chunk);
        } else
            link = &chunk->next;
    }
    arena->last = NULL;
    arena->used = 0;
}
