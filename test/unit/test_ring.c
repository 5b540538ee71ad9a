#include "test/lib/test.h"

#include "base/ring.h"
#include "test/lib/alloc.h"

static void push(struct ring *ring, uint64_t v)
{
    uint64_t *at = ring_push(ring);
    assert_non_null(at);
    *at = v;
}

static uint64_t value_at(const struct ring *ring, size_t i)
{
    return *(const uint64_t *)ring_at(ring, i);
}

TEST(a_full_ring_refuses)
{
    struct ring ring;
    assert_ok(ring_init(&ring, NULL, 4, 8));
    for (uint64_t i = 0; i < 4; i++)
        push(&ring, i);
    assert_null(ring_push(&ring));
    assert_int_equal(ring.count, 4);
    ring_pop(&ring, 1);
    push(&ring, 4);
    assert_null(ring_push(&ring));
    for (uint64_t i = 0; i < 4; i++)
        assert_true(value_at(&ring, i) == i + 1);
    ring_release(&ring);
}

TEST(a_ring_of_one_works)
{
    struct ring ring;
    assert_ok(ring_init(&ring, NULL, 1, 8));
    for (uint64_t i = 0; i < 3; i++) {
        push(&ring, i);
        assert_null(ring_push(&ring));
        assert_true(value_at(&ring, 0) == i);
        ring_pop(&ring, 1);
    }
    ring_release(&ring);
}

TEST(elements_stay_where_they_are_while_others_come_and_go)
{
    struct ring ring;
    assert_ok(ring_init(&ring, NULL, 4, 24));
    ring_push(&ring);
    uint8_t *second = ring_push(&ring);
    memset(second, 0x11, 24);
    ring_pop(&ring, 1);
    for (int i = 0; i < 3; i++)
        memset(ring_push(&ring), 0x22, 24);
    assert_ptr_equal(ring_at(&ring, 0), second);
    for (int i = 0; i < 24; i++)
        assert_int_equal(second[i], 0x11);
    ring_release(&ring);
}

TEST(random_pushes_and_pops_keep_the_window_in_order)
{
    uint64_t state = test_seed(2);
    struct test_alloc memory;
    test_alloc_init(&memory);
    struct ring ring;
    assert_ok(ring_init(&ring, &memory.allocator, 16, 8));
    uint64_t first = 0, next = 0;
    for (int step = 0; step < 100000; step++) {
        uint64_t n = test_below(&state, 6);
        switch (test_below(&state, 64)) {
        case 0:
            ring_clear(&ring);
            first = next;
            break;
        default:
            if (test_below(&state, 2) == 0) {
                for (; n && ring.count < ring.capacity; n--)
                    push(&ring, next++);
            } else {
                n = n < ring.count ? n : ring.count;
                ring_pop(&ring, n);
                first += n;
            }
        }
        assert_true(ring.count == next - first);
        if (ring.count)
            for (uint64_t i = test_below(&state, ring.count); i < ring.count; i += 5)
                assert_true(value_at(&ring, i) == first + i);
    }
    ring_release(&ring);
    test_alloc_release(&memory);
}

TEST(no_memory_leaves_the_ring_untouched)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    test_alloc_fail(&memory, 1, TEST_ALLOC_ONCE);
    struct ring ring = {.count = 99};
    assert_status(ring_init(&ring, &memory.allocator, 16, 8), PAWL_ENOMEM);
    assert_int_equal(ring.count, 99);
    test_alloc_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_full_ring_refuses),
        RUN(a_ring_of_one_works),
        RUN(elements_stay_where_they_are_while_others_come_and_go),
        RUN(random_pushes_and_pops_keep_the_window_in_order),
        RUN(no_memory_leaves_the_ring_untouched),
    };
    return TEST_MAIN(tests);
}
