/* base/alloc.h: memory through a pawl_allocator, where NULL means the C library's.
 *
 * Sizes are given back on freeing, so that an allocator can count without keeping its own. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <pawl/types.h>

/* NULL when there is no memory, or when count * size overflows. mem_new's bytes are zero. mem_take's are undefined:
 * room that is written before it is read costs nothing until it is used. */
void *mem_new(const pawl_allocator *alloc, size_t count, size_t size);
void *mem_take(const pawl_allocator *alloc, size_t count, size_t size);
void *mem_resize(const pawl_allocator *alloc, void *memory, size_t old_size, size_t new_size);
void mem_free(const pawl_allocator *alloc, void *memory, size_t size);

#endif
