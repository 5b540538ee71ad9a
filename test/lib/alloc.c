#include "test/lib/alloc.h"

#include "test/lib/test.h"

#define MAGIC_LIVE UINT64_C(0x6c697665626c6f63)

/* In front of every block; two words, so that what follows is aligned as malloc aligns. */
struct header {
    uint64_t magic;
    uint64_t size;
};
_Static_assert(sizeof(struct header) % _Alignof(max_align_t) == 0, "blocks stay aligned");

static void note_problem(struct test_alloc *memory, const char *what, size_t given, uint64_t held)
{
    if (memory->problem[0] == '\0')
        snprintf(memory->problem, sizeof memory->problem, "%s: given size %zu, block has %" PRIu64, what, given,
                 held);
}

/* Blocks that were given back wrongly are left alone: what is in front of them cannot be trusted. */
static bool check_block(struct test_alloc *memory, const struct header *block, size_t old_size)
{
    if (block->magic != MAGIC_LIVE) {
        note_problem(memory, "not a live block", old_size, 0);
        return false;
    }
    if (block->size != old_size)
        note_problem(memory, "wrong size given back", old_size, block->size);
    return true;
}

static bool must_fail(struct test_alloc *memory)
{
    memory->calls++;
    bool fail = memory->fail_at
                && (memory->mode == TEST_ALLOC_ONCE ? memory->calls == memory->fail_at
                                                    : memory->calls >= memory->fail_at);
    memory->failures += fail;
    return fail;
}

static struct header *block_new(struct test_alloc *memory, size_t size)
{
    struct header *block = size <= SIZE_MAX - sizeof *block ? malloc(sizeof *block + size) : NULL;
    if (!block)
        return NULL;
    *block = (struct header){.magic = MAGIC_LIVE, .size = size};
    memset(block + 1, 0xa5, size);
    memory->live_blocks++;
    memory->live_bytes += size;
    if (memory->live_bytes > memory->live_bytes_max)
        memory->live_bytes_max = memory->live_bytes;
    return block;
}

static void block_free(struct test_alloc *memory, struct header *block)
{
    memory->live_blocks--;
    memory->live_bytes -= block->size;
    memset(block + 1, 0x5a, block->size);
    block->magic = ~MAGIC_LIVE;
    __asm__ volatile("" : : "r"(block) : "memory"); /* else a compiler leaves out what is freed next */
    free(block);
}

static void *resize_locked(struct test_alloc *memory, struct header *old, size_t old_size, size_t new_size)
{
    if (old && !check_block(memory, old, old_size))
        return NULL;
    if (!old && old_size)
        note_problem(memory, "no block but a size", old_size, 0);
    if (new_size == 0) {
        if (old)
            block_free(memory, old);
        return NULL;
    }
    struct header *block = must_fail(memory) ? NULL : block_new(memory, new_size);
    if (!block)
        return NULL;
    if (old) {
        memcpy(block + 1, old + 1, old->size < new_size ? old->size : new_size);
        block_free(memory, old);
    }
    return block + 1;
}

static void *test_alloc_resize(void *ctx, void *at, size_t old_size, size_t new_size)
{
    struct test_alloc *memory = ctx;
    struct header *old = at ? (struct header *)at - 1 : NULL;
    pthread_mutex_lock(&memory->lock);
    void *result = resize_locked(memory, old, old_size, new_size);
    pthread_mutex_unlock(&memory->lock);
    return result;
}

void test_alloc_init(struct test_alloc *memory)
{
    memset(memory, 0, sizeof *memory);
    memory->allocator = (pawl_allocator){.resize = test_alloc_resize, .ctx = memory};
    pthread_mutex_init(&memory->lock, NULL);
}

void test_alloc_fail(struct test_alloc *memory, uint64_t k, enum test_alloc_mode mode)
{
    pthread_mutex_lock(&memory->lock);
    memory->fail_at = k ? memory->calls + k : 0;
    memory->mode = mode;
    memory->failures = 0;
    pthread_mutex_unlock(&memory->lock);
}

bool test_alloc_failed(struct test_alloc *memory)
{
    pthread_mutex_lock(&memory->lock);
    bool failed = memory->failures > 0;
    pthread_mutex_unlock(&memory->lock);
    return failed;
}

void test_alloc_release(struct test_alloc *memory)
{
    pthread_mutex_destroy(&memory->lock);
    if (memory->problem[0] != '\0')
        fail_msg("%s", memory->problem);
    if (memory->live_blocks)
        fail_msg("%zu blocks with %zu bytes were not freed", memory->live_blocks, memory->live_bytes);
}
