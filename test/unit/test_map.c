#include "test/lib/test.h"

#include "base/map.h"
#include "test/lib/alloc.h"

/* The invariants of map.h, checked on every slot. */
static void check_invariants(const struct map *map)
{
    size_t full = 0;
    for (size_t i = 0; map->slots && i <= map->mask; i++) {
        if (i < 15)
            assert_int_equal(map->tags[i], map->tags[map->mask + 1 + i]);
        if (map->tags[i] == 0)
            continue;
        uint64_t hash;
        memcpy(&hash, map->slots + i * map->slot_size, sizeof hash);
        assert_int_equal(map->tags[i], 0x80 | hash >> 57);
        for (uint64_t at = hash & map->mask; at != i; at = (at + 1) & map->mask)
            assert_int_not_equal(map->tags[at], 0);
        full++;
    }
    assert_int_equal(full, map->count);
    assert_true(map->count <= map->room);
    assert_true(map->count <= map->limit);
}

static void put(struct map *map, uint64_t hash, uint64_t key, uint64_t v, bool expect_new)
{
    void *value;
    bool is_new;
    assert_ok(map_put(map, hash, &key, &value, &is_new));
    assert_int_equal(is_new, expect_new);
    memcpy(value, &v, sizeof v);
}

static bool has(const struct map *map, uint64_t hash, uint64_t key, uint64_t v)
{
    const uint64_t *value = map_get(map, hash, &key);
    return value && *value == v;
}

TEST(an_empty_map_has_nothing_and_no_memory)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    struct map map;
    map_init(&map, &memory.allocator, 8, 8, 10);
    assert_null(map_get_u64(&map, 1));
    assert_false(map_remove_u64(&map, 1));
    map_clear(&map);
    size_t cursor = 0;
    const void *key;
    void *value;
    assert_false(map_next(&map, &cursor, &key, &value));
    assert_int_equal(memory.calls, 0);
    map_release(&map);
    test_alloc_release(&memory);
}

TEST(a_new_value_is_zero_even_where_another_lay)
{
    struct map map;
    map_init(&map, NULL, 8, 20, SIZE_MAX);
    for (int round = 0; round < 2; round++) {
        void *value;
        bool is_new;
        assert_ok(map_put_u64(&map, 5, &value, &is_new));
        assert_true(is_new);
        for (int i = 0; i < 20; i++)
            assert_int_equal(((uint8_t *)value)[i], 0);
        memset(value, 0xff, 20);
        assert_true(map_remove_u64(&map, 5));
    }
    map_release(&map);
}

TEST(keys_of_every_size_differ_in_every_byte)
{
    for (size_t size = 1; size <= 40; size++) {
        struct map map;
        map_init(&map, NULL, size, 1, SIZE_MAX);
        uint8_t key[40] = {0};
        void *value;
        bool is_new;
        assert_ok(map_put(&map, 1, key, &value, &is_new));
        for (size_t i = 0; i < size; i++) {
            key[i] = 1;
            assert_null(map_get(&map, 1, key));
            assert_ok(map_put(&map, 1, key, &value, &is_new));
            assert_true(is_new);
            key[i] = 0;
        }
        assert_int_equal(map.count, size + 1);
        check_invariants(&map);
        map_release(&map);
    }
}

TEST(values_are_aligned_and_slots_lie_on_cache_lines)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    struct map map;
    map_init(&map, &memory.allocator, 9, 12, SIZE_MAX);
    for (uint8_t i = 0; i < 100; i++) {
        uint8_t key[9] = {i};
        void *value;
        bool is_new;
        assert_ok(map_put(&map, hash_mix(i), key, &value, &is_new));
        assert_int_equal((uintptr_t)value % 8, 0);
        assert_int_equal((uintptr_t)map.slots % 64, 0);
    }
    map_release(&map);
    test_alloc_release(&memory);
}

TEST(equal_hashes_are_slow_but_right)
{
    struct map map;
    map_init(&map, NULL, 8, 8, SIZE_MAX);
    for (uint64_t i = 0; i < 500; i++)
        put(&map, UINT64_MAX, i, i * 3, true);
    check_invariants(&map);
    for (uint64_t i = 0; i < 500; i += 2)
        assert_true(map_remove(&map, UINT64_MAX, &i));
    check_invariants(&map);
    for (uint64_t i = 0; i < 500; i++)
        assert_int_equal(has(&map, UINT64_MAX, i, i * 3), i % 2 == 1);
    map_release(&map);
}

TEST(a_run_wraps_around_the_end_and_shrinks_back)
{
    struct map map;
    map_init(&map, NULL, 8, 8, 12);
    assert_ok(map_reserve(&map, 12));
    assert_int_equal(map.mask, 15);
    for (uint64_t i = 0; i < 6; i++)
        put(&map, 14, 100 + i, i, true);
    for (uint64_t i = 0; i < 3; i++)
        put(&map, i, 200 + i, i, true); /* those that wrapped have taken their homes */
    put(&map, 15, 300, 0, true);
    put(&map, 8, 400, 0, true); /* at home at the end of the run: it stays when others move back */
    check_invariants(&map);
    uint64_t key = 102;
    assert_true(map_remove(&map, 14, &key));
    check_invariants(&map);
    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(has(&map, 14, 100 + i, i), i != 2);
    for (uint64_t i = 0; i < 3; i++)
        assert_true(has(&map, i, 200 + i, i));
    assert_true(has(&map, 15, 300, 0));
    assert_true(has(&map, 8, 400, 0));
    map_release(&map);
}

TEST(the_limit_holds_and_known_keys_can_still_be_put)
{
    struct map map;
    map_init(&map, NULL, 8, 8, 5);
    for (uint64_t i = 0; i < 5; i++)
        put(&map, hash_mix(i), i, i, true);
    void *value = &map;
    bool is_new = true;
    assert_status(map_put_u64(&map, 5, &value, &is_new), PAWL_ETOOBIG);
    assert_status(map_reserve(&map, 6), PAWL_ETOOBIG);
    assert_ptr_equal(value, &map);
    put(&map, hash_mix(3), 3, 33, false);
    assert_true(map_remove_u64(&map, 0));
    put(&map, hash_mix(5), 5, 5, true);
    map_release(&map);
}

TEST(what_is_reserved_needs_no_more_memory)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    struct map map;
    map_init(&map, &memory.allocator, 8, 8, SIZE_MAX);
    assert_ok(map_reserve(&map, 1000));
    test_alloc_fail(&memory, 1, TEST_ALLOC_FROM_THEN_ON);
    for (uint64_t i = 0; i < 1000; i++)
        put(&map, hash_mix(i), i, i, true);
    assert_status(map_reserve(&map, SIZE_MAX), PAWL_ENOMEM);
    assert_status(map_reserve(&map, SIZE_MAX / 4), PAWL_ENOMEM);
    map_clear(&map);
    assert_null(map_get_u64(&map, 1));
    for (uint64_t i = 0; i < 1000; i++)
        put(&map, hash_mix(i), i, i, true);
    check_invariants(&map);
    map_release(&map);
    test_alloc_release(&memory);
}

TEST(every_allocation_may_fail_once_and_nothing_changes)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        struct map map;
        map_init(&map, &memory.allocator, 8, 8, SIZE_MAX);
        for (uint64_t i = 0; i < 400; i++) {
            void *value = &map;
            bool is_new = false;
            int status = map_put_u64(&map, i, &value, &is_new);
            if (status) {
                assert_status(status, PAWL_ENOMEM);
                assert_ptr_equal(value, &map);
                assert_false(is_new);
                assert_int_equal(map.count, i);
                check_invariants(&map);
                assert_ok(map_put_u64(&map, i, &value, &is_new));
            }
            *(uint64_t *)value = i + 1;
        }
        for (uint64_t i = 0; i < 400; i++)
            assert_true(has(&map, hash_mix(i), i, i + 1));
        bool failed = test_alloc_failed(&memory);
        map_release(&map);
        test_alloc_release(&memory);
        if (!failed) {
            assert_true(k > 5);
            break;
        }
    }
}

/* The model: an array indexed by key. Its hash keeps a few bits only, so that homes collide. */
#define KEYS 3000

struct model {
    uint64_t values[KEYS]; /* 0: not there */
    size_t count;
    uint64_t hash_mask;
};

static void step(struct map *map, struct model *m, uint64_t *state)
{
    uint64_t key = test_below(state, KEYS);
    uint64_t hash = hash_mix(key) & m->hash_mask;
    uint64_t *there = &m->values[key];
    switch (test_below(state, 8)) {
    case 0:
    case 1:
    case 2:
        assert_int_equal(map_remove(map, hash, &key), *there != 0);
        m->count -= *there != 0;
        *there = 0;
        break;
    case 3:
    case 4: assert_int_equal(*there ? has(map, hash, key, *there) : !map_get(map, hash, &key), 1); break;
    default: {
        uint64_t v = test_random(state) | 1;
        put(map, hash, key, v, *there == 0);
        m->count += *there == 0;
        *there = v;
    }
    }
    assert_int_equal(map->count, m->count);
}

static void check_iteration(const struct map *map, const struct model *m)
{
    size_t cursor = 0, seen = 0;
    const void *key;
    void *value;
    while (map_next(map, &cursor, &key, &value)) {
        assert_true(*(const uint64_t *)value == m->values[*(const uint64_t *)key]);
        seen++;
    }
    assert_int_equal(seen, m->count);
}

TEST(random_histories_agree_with_an_array)
{
    uint64_t state = test_seed(4);
    static const uint64_t masks[] = {UINT64_MAX, 1023, UINT64_MAX << 60 | 63};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        struct test_alloc memory;
        test_alloc_init(&memory);
        struct map map;
        static struct model m;
        m = (struct model){.hash_mask = masks[i]};
        map_init(&map, &memory.allocator, 8, 8, SIZE_MAX);
        for (int n = 0; n < 100000; n++) {
            step(&map, &m, &state);
            if (n % 5000 == 0) {
                check_invariants(&map);
                check_iteration(&map, &m);
            }
        }
        map_release(&map);
        test_alloc_release(&memory);
    }
}

TEST(equal_histories_iterate_in_equal_order)
{
    struct map maps[2];
    for (int i = 0; i < 2; i++) {
        static struct model m;
        uint64_t state = 5;
        m = (struct model){.hash_mask = 255};
        map_init(&maps[i], NULL, 8, 8, SIZE_MAX);
        for (int n = 0; n < 5000; n++)
            step(&maps[i], &m, &state);
    }
    size_t cursors[2] = {0, 0};
    const void *keys[2];
    void *values[2];
    while (map_next(&maps[0], &cursors[0], &keys[0], &values[0])) {
        assert_true(map_next(&maps[1], &cursors[1], &keys[1], &values[1]));
        assert_memory_equal(keys[0], keys[1], 8);
    }
    assert_false(map_next(&maps[1], &cursors[1], &keys[1], &values[1]));
    map_release(&maps[0]);
    map_release(&maps[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_empty_map_has_nothing_and_no_memory),
        RUN(a_new_value_is_zero_even_where_another_lay),
        RUN(keys_of_every_size_differ_in_every_byte),
        RUN(values_are_aligned_and_slots_lie_on_cache_lines),
        RUN(equal_hashes_are_slow_but_right),
        RUN(a_run_wraps_around_the_end_and_shrinks_back),
        RUN(the_limit_holds_and_known_keys_can_still_be_put),
        RUN(what_is_reserved_needs_no_more_memory),
        RUN(every_allocation_may_fail_once_and_nothing_changes),
        RUN(random_histories_agree_with_an_array),
        RUN(equal_histories_iterate_in_equal_order),
    };
    return TEST_MAIN(tests);
}
