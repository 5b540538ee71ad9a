#include "core/stream/copies.h"

static void empty(struct copies *copies)
{
    copies->first = NULL;
    copies->last = &copies->first;
    copies->bytes = 0;
    copies->status = PAWL_OK;
}

void copies_init(struct copies *copies, const pawl_allocator *alloc, size_t chunk_size)
{
    arena_init(&copies->memory, alloc, chunk_size);
    empty(copies);
}

void copies_reset(struct copies *copies)
{
    arena_reset(&copies->memory);
    empty(copies);
}

void copies_release(struct copies *copies)
{
    arena_release(&copies->memory);
    empty(copies);
}

bool copies_take(struct copies *copies, const pawl_entry *entry, pawl_place place, size_t bytes_max)
{
    struct copied_entry *copy = arena_take(&copies->memory, sizeof *copy);
    if (copy)
        *copy = (struct copied_entry){.offset = entry->offset,
                                      .place = place,
                                      .kind = entry->kind,
                                      .body = arena_copy(&copies->memory, entry->body)};
    if (!copy || !copy->body.data) {
        copies->status = PAWL_ENOMEM;
        return false;
    }
    *copies->last = copy;
    copies->last = &copy->next;
    copies->bytes += entry->body.size;
    return copies->bytes < bytes_max;
}
