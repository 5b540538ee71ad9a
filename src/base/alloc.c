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

void *mem_new(const pawl_allocator *alloc, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes == 0)
        return NULL;
    if (!alloc)
        return calloc(count, size);
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
