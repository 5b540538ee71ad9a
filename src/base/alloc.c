#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void *mem_resize(const pawl_allocator *alloc, void *memory, size_t old_size, size_t new_size)
{
    if (alloc)
        return alloc->resize(alloc->ctx, memory, old_size, new_size);
    if (new_size == 0) {
        free(memory);
        return NULL;
    }
    return realloc(memory, new_size);
}

static bool is_some(size_t count, size_t size, size_t *ret_bytes)
{
    return !__builtin_mul_overflow(count, size, ret_bytes) && *ret_bytes > 0;
}

void *mem_take(const pawl_allocator *alloc, size_t count, size_t size)
{
    size_t bytes;
    return is_some(count, size, &bytes) ? mem_resize(alloc, NULL, 0, bytes) : NULL;
}

void *mem_new(const pawl_allocator *alloc, size_t count, size_t size)
{
    size_t bytes;
    if (!is_some(count, size, &bytes))
        return NULL;
    if (!alloc)
        return calloc(1, bytes);
    void *memory = alloc->resize(alloc->ctx, NULL, 0, bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void mem_free(const pawl_allocator *alloc, void *memory, size_t size)
{
    if (memory)
        mem_resize(alloc, memory, size, 0);
}
