#include "test/lib/mortal.h"

#include "test/lib/test.h"

struct mortal_block {
    struct mortal_block *next, **link;
    size_t size;
    size_t pad; /* what follows is aligned as malloc aligns */
};

static void unlink_block(struct mortal_block *block)
{
    *block->link = block->next;
    if (block->next)
        block->next->link = block->link;
}

static void *resize(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    struct mortal *m = ctx;
    struct mortal_block *old = memory ? (struct mortal_block *)memory - 1 : NULL, *block = NULL;
    assert_int_equal(old ? old->size : 0, old_size);
    if (new_size > 0 && m->fails_in > 0 && --m->fails_in == 0) {
        m->fails_in = --m->fails > 0;
        return NULL;
    }
    if (new_size > 0) {
        block = malloc(sizeof *block + new_size);
        if (!block)
            abort();
        *block = (struct mortal_block){.next = m->blocks, .link = &m->blocks, .size = new_size};
        if (m->blocks)
            m->blocks->link = &block->next;
        m->blocks = block;
        memset(block + 1, 0xa5, new_size);
        if (old)
            memcpy(block + 1, memory, old_size < new_size ? old_size : new_size);
    }
    if (old) {
        unlink_block(old);
        memset(old, 0x5a, sizeof *old + old_size);
        free(old);
    }
    return block ? block + 1 : NULL;
}

void mortal_init(struct mortal *memory)
{
    *memory = (struct mortal){.allocator = {.resize = resize, .ctx = memory}};
}

void mortal_drop(struct mortal *memory)
{
    while (memory->blocks) {
        struct mortal_block *block = memory->blocks;
        unlink_block(block);
        free(block);
    }
}
