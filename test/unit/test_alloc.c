#include "test/lib/test.h"

#include "base/alloc.h"
#include "test/lib/alloc.h"

TEST(a_product_that_overflows_is_no_memory)
{
    static const struct {
        size_t count, size;
    } cases[] = {{SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2 + 1, 2}, {(size_t)1 << 32, (size_t)1 << 32}};
    struct test_alloc memory;
    test_alloc_init(&memory);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(mem_new(NULL, cases[i].count, cases[i].size));
        assert_null(mem_new(&memory.allocator, cases[i].count, cases[i].size));
        assert_null(mem_take(&memory.allocator, cases[i].count, cases[i].size));
    }
    assert_int_equal(memory.calls, 0);
    test_alloc_release(&memory);
}

TEST(nothing_of_something_is_null)
{
    assert_null(mem_new(NULL, 0, 8));
    assert_null(mem_new(NULL, 8, 0));
    assert_null(mem_take(NULL, 0, 8));
    assert_null(mem_take(NULL, 8, 0));
    mem_free(NULL, NULL, 0);
}

TEST(new_memory_is_zero_whoever_gives_it)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    const pawl_allocator *givers[] = {NULL, &memory.allocator};
    for (size_t i = 0; i < 2; i++) {
        uint8_t *block = mem_new(givers[i], 100, 7);
        assert_non_null(block);
        for (size_t k = 0; k < 700; k++)
            assert_int_equal(block[k], 0);
        mem_free(givers[i], block, 700);
    }
    test_alloc_release(&memory);
}

TEST(resizing_keeps_the_bytes_and_failing_to_keeps_the_block)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    uint8_t *block = mem_resize(&memory.allocator, NULL, 0, 4);
    memcpy(block, "abcd", 4);
    test_alloc_fail(&memory, 1, TEST_ALLOC_ONCE);
    assert_null(mem_resize(&memory.allocator, block, 4, 8));
    assert_memory_equal(block, "abcd", 4);
    block = mem_resize(&memory.allocator, block, 4, 8);
    assert_memory_equal(block, "abcd", 4);
    block = mem_resize(&memory.allocator, block, 8, 2);
    assert_memory_equal(block, "ab", 2);
    assert_int_equal(memory.live_bytes, 2);
    assert_int_equal(memory.live_bytes_max, 4 + 8); /* a resize moves, so both were live */
    assert_null(mem_resize(&memory.allocator, block, 2, 0));
    test_alloc_release(&memory);
}

TEST(the_test_allocator_fails_once_or_from_then_on)
{
    static const struct {
        enum test_alloc_mode mode;
        bool given[5];
    } cases[] = {
        {TEST_ALLOC_ONCE, {true, true, false, true, true}},
        {TEST_ALLOC_FROM_THEN_ON, {true, true, false, false, false}},
    };
    for (size_t i = 0; i < 2; i++) {
        struct test_alloc memory;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, 3, cases[i].mode);
        for (size_t k = 0; k < 5; k++) {
            void *block = mem_new(&memory.allocator, 1, 1);
            assert_int_equal(block != NULL, cases[i].given[k]);
            assert_int_equal(test_alloc_failed(&memory), k >= 2);
            mem_free(&memory.allocator, block, 1);
        }
        test_alloc_release(&memory);
    }
}

TEST(the_test_allocator_sees_a_wrong_size_and_a_leak)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    void *block = mem_new(&memory.allocator, 1, 10);
    assert_int_equal(memory.live_blocks, 1);
    mem_free(&memory.allocator, block, 9);
    assert_int_equal(memory.live_blocks, 0);
    assert_string_equal(memory.problem, "wrong size given back: given size 9, block has 10");
    memory.problem[0] = '\0';
    test_alloc_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_product_that_overflows_is_no_memory),
        RUN(nothing_of_something_is_null),
        RUN(new_memory_is_zero_whoever_gives_it),
        RUN(resizing_keeps_the_bytes_and_failing_to_keeps_the_block),
        RUN(the_test_allocator_fails_once_or_from_then_on),
        RUN(the_test_allocator_sees_a_wrong_size_and_a_leak),
    };
    return TEST_MAIN(tests);
}
