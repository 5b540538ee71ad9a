#include "test/lib/test.h"

#include "base/heap.h"

enum { COUNT = 300 };

/* The least of what is in, found the slow way. */
static size_t least(const struct heap_node *nodes, const bool *in)
{
    size_t found = COUNT;
    for (size_t i = 0; i < COUNT; i++) {
        if (!in[i])
            continue;
        if (found == COUNT || nodes[i].key < nodes[found].key
            || (nodes[i].key == nodes[found].key && nodes[i].seq < nodes[found].seq))
            found = i;
    }
    return found;
}

TEST(the_least_is_on_top_whatever_comes_and_goes)
{
    uint64_t random = test_seed(1);
    struct heap heap = {0};
    struct heap_node nodes[COUNT];
    bool in[COUNT] = {false};
    for (uint64_t step = 0; step < 20000; step++) {
        size_t i = (size_t)test_below(&random, COUNT);
        if (test_below(&random, 4) == 0)
            i = least(nodes, in) < COUNT ? least(nodes, in) : i;
        if (in[i]) {
            heap_remove(&heap, &nodes[i]);
        } else {
            nodes[i].key = test_below(&random, 50);
            nodes[i].seq = step;
            heap_insert(&heap, &nodes[i]);
        }
        in[i] = !in[i];
        size_t expected = least(nodes, in);
        assert_ptr_equal(heap_min(&heap), expected == COUNT ? NULL : &nodes[expected]);
    }
}

TEST(equal_keys_leave_in_the_order_of_their_seq)
{
    struct heap heap = {0};
    struct heap_node nodes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        nodes[i].key = 7;
        nodes[i].seq = (i * 7) % COUNT;
        heap_insert(&heap, &nodes[i]);
    }
    for (uint64_t seq = 0; seq < COUNT; seq++) {
        assert_int_equal(heap_min(&heap)->seq, seq);
        heap_remove(&heap, heap_min(&heap));
    }
    assert_null(heap_min(&heap));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_least_is_on_top_whatever_comes_and_goes),
        RUN(equal_keys_leave_in_the_order_of_their_seq),
    };
    return TEST_MAIN(tests);
}
