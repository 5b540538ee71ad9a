#include "test/lib/test.h"

#include <stdalign.h>

#include "base/arena.h"
#include "test/lib/alloc.h"

#define CHUNK ((size_t)256)

static void open_arena(struct test_alloc *memory, struct arena *arena)
{
    test_alloc_init(memory);
    arena_init(arena, &memory->allocator, CHUNK);
}

static void close_arena(struct test_alloc *memory, struct arena *arena)
{
    arena_release(arena);
    test_alloc_release(memory);
}

TEST(what_is_taken_is_aligned_and_nobody_elses)
{
    struct test_alloc memory;
    struct arena arena;
    uint8_t *taken[200];
    open_arena(&memory, &arena);
    for (size_t i = 0; i < 200; i++) {
        taken[i] = arena_take(&arena, i % 70);
        assert_non_null(taken[i]);
        assert_true((uintptr_t)taken[i] % alignof(max_align_t) == 0);
        memset(taken[i], (int)i, i % 70);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i % 70; k++)
            assert_int_equal(taken[i][k], (uint8_t)i);
    close_arena(&memory, &arena);
}

TEST(a_reset_arena_does_the_same_work_without_allocating)
{
    struct test_alloc memory;
    struct arena arena;
    open_arena(&memory, &arena);
    uint64_t calls = 0;
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < 100; i++)
            memset(arena_take(&arena, 1 + i * 7 % CHUNK), 0xee, 1 + i * 7 % CHUNK);
        assert_true(round == 0 || memory.calls == calls);
        calls = memory.calls;
        arena_reset(&arena);
    }
    assert_true(calls > 10);
    close_arena(&memory, &arena);
}

TEST(a_take_beyond_a_chunk_has_one_of_its_own_until_the_reset)
{
    struct test_alloc memory;
    struct arena arena;
    open_arena(&memory, &arena);
    uint8_t *before = arena_take(&arena, 16);
    uint8_t *large = arena_take(&arena, 100 * CHUNK);
    uint8_t *after = arena_take(&arena, 16);
    memset(before, 1, 16);
    memset(large, 2, 100 * CHUNK);
    memset(after, 3, 16);
    assert_true(before[15] == 1 && large[0] == 2 && large[100 * CHUNK - 1] == 2);
    assert_true(memory.live_bytes > 100 * CHUNK);
    arena_reset(&arena);
    assert_true(memory.live_bytes < 100 * CHUNK);
    assert_true(memory.live_blocks >= 1);
    close_arena(&memory, &arena);
}

TEST(a_chunk_that_is_kept_and_too_small_is_used_by_the_takes_behind)
{
    struct test_alloc memory;
    struct arena arena;
    open_arena(&memory, &arena);
    for (int i = 0; i < 3; i++)
        assert_non_null(arena_take(&arena, CHUNK));
    arena_reset(&arena);
    uint64_t calls = memory.calls;
    assert_non_null(arena_take(&arena, CHUNK));
    assert_non_null(arena_take(&arena, 2 * CHUNK));
    assert_int_equal(memory.calls, calls + 1);
    assert_non_null(arena_take(&arena, CHUNK));
    assert_non_null(arena_take(&arena, CHUNK));
    assert_int_equal(memory.calls, calls + 1);
    close_arena(&memory, &arena);
}

TEST(rewinding_gives_back_what_was_taken_since_the_mark_and_no_more)
{
    struct test_alloc memory;
    struct arena arena;
    open_arena(&memory, &arena);
    uint8_t *kept = arena_take(&arena, 40);
    memset(kept, 0x11, 40);
    struct arena_point start = arena_point(&arena);
    uint8_t *first = arena_take(&arena, 24);
    for (int i = 0; i < 20; i++)
        memset(arena_take(&arena, 200), 0x22, 200);
    arena_rewind(&arena, start);
    uint64_t calls = memory.calls;
    assert_ptr_equal(arena_take(&arena, 24), first);
    for (int i = 0; i < 20; i++)
        memset(arena_take(&arena, 200), 0x33, 200);
    assert_int_equal(memory.calls, calls);
    for (int i = 0; i < 40; i++)
        assert_int_equal(kept[i], 0x11);
    close_arena(&memory, &arena);
}

TEST(a_mark_of_an_empty_arena_rewinds_to_its_first_chunk)
{
    struct test_alloc memory;
    struct arena arena;
    open_arena(&memory, &arena);
    struct arena_point start = arena_point(&arena);
    void *first = arena_take(&arena, 8);
    assert_non_null(arena_take(&arena, 3 * CHUNK));
    arena_rewind(&arena, start);
    assert_ptr_equal(arena_take(&arena, 8), first);
    close_arena(&memory, &arena);
}

TEST(marks_nest)
{
    struct test_alloc memory;
    struct arena arena;
    open_arena(&memory, &arena);
    struct arena_point points[30];
    uint8_t *taken[30];
    for (size_t i = 0; i < 30; i++) {
        points[i] = arena_point(&arena);
        taken[i] = arena_take(&arena, i * 31);
        memset(taken[i], (int)i, i * 31);
    }
    for (size_t i = 30; i-- > 0;) {
        for (size_t k = 0; k < i * 31; k++)
            assert_int_equal(taken[i][k], i);
        arena_rewind(&arena, points[i]);
        memset(arena_take(&arena, 64), 0xff, 64);
        arena_rewind(&arena, points[i]);
    }
    close_arena(&memory, &arena);
}

TEST(nothing_can_be_taken_too_and_is_not_null)
{
    struct test_alloc memory;
    struct arena arena;
    open_arena(&memory, &arena);
    assert_non_null(arena_take(&arena, 0));
    assert_non_null(arena_take(&arena, CHUNK));
    assert_non_null(arena_take(&arena, 0));
    pawl_bytes copy = arena_copy(&arena, (pawl_bytes){0});
    assert_true(copy.data && copy.size == 0);
    close_arena(&memory, &arena);
}

TEST(a_copy_has_the_bytes_and_not_the_place)
{
    struct test_alloc memory;
    struct arena arena;
    char text[] = "as it was";
    open_arena(&memory, &arena);
    pawl_bytes copy = arena_copy(&arena, text_bytes(text));
    memset(text, '-', sizeof text);
    assert_int_equal(copy.size, 9);
    assert_memory_equal(copy.data, "as it was", 9);
    close_arena(&memory, &arena);
}

TEST(sizes_that_no_memory_has_are_refused_and_change_nothing)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15, SIZE_MAX - 16, SIZE_MAX - 64};
    struct test_alloc memory;
    struct arena arena;
    open_arena(&memory, &arena);
    assert_non_null(arena_take(&arena, 16));
    size_t used = arena.used;
    test_alloc_fail(&memory, 1, TEST_ALLOC_FROM_THEN_ON); /* a sanitizer's malloc would not just say no */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_null(arena_take(&arena, sizes[i]));
    assert_int_equal(arena.used, used);
    test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
    assert_non_null(arena_take(&arena, 2 * CHUNK));
    close_arena(&memory, &arena);
}

/* After a refusal the arena goes on, and what was taken before is still there. */
TEST(every_allocation_may_fail)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct arena arena;
        open_arena(&memory, &arena);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        uint64_t refused = 0;
        uint8_t *taken[40];
        for (size_t i = 0; i < 40; i++) {
            size_t size = i % 5 == 0 ? 2 * CHUNK : 60;
            while (!(taken[i] = arena_take(&arena, size)))
                refused++;
            memset(taken[i], (int)i, size);
        }
        for (size_t i = 0; i < 40; i++)
            assert_true(taken[i][0] == i && taken[i][59] == i);
        bool failed = test_alloc_failed(&memory);
        assert_int_equal(refused, failed ? 1 : 0);
        close_arena(&memory, &arena);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(what_is_taken_is_aligned_and_nobody_elses),
        RUN(a_reset_arena_does_the_same_work_without_allocating),
        RUN(a_take_beyond_a_chunk_has_one_of_its_own_until_the_reset),
        RUN(a_chunk_that_is_kept_and_too_small_is_used_by_the_takes_behind),
        RUN(rewinding_gives_back_what_was_taken_since_the_mark_and_no_more),
        RUN(a_mark_of_an_empty_arena_rewinds_to_its_first_chunk),
        RUN(marks_nest),
        RUN(nothing_can_be_taken_too_and_is_not_null),
        RUN(a_copy_has_the_bytes_and_not_the_place),
        RUN(sizes_that_no_memory_has_are_refused_and_change_nothing),
        RUN(every_allocation_may_fail),
    };
    return TEST_MAIN(tests);
}
