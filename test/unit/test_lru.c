#include "test/lib/test.h"

#include "base/lru.h"
#include "test/lib/alloc.h"

static void put(struct lru *lru, uint64_t key, uint64_t v, uint64_t evicts)
{
    struct lru_evicted evicted;
    uint64_t *value = lru_put(lru, key, &evicted);
    *value = v;
    assert_int_equal(evicted.value != NULL, evicts != 0);
    if (evicts)
        assert_true(evicted.key == evicts);
}

TEST(the_least_recently_used_has_to_go)
{
    struct lru lru;
    assert_ok(lru_init(&lru, NULL, 3, 8));
    put(&lru, 1, 10, 0);
    put(&lru, 2, 20, 0);
    put(&lru, 3, 30, 0);
    assert_non_null(lru_get(&lru, 1));
    assert_non_null(lru_peek(&lru, 2));
    put(&lru, 4, 40, 2);
    put(&lru, 3, 31, 0);
    put(&lru, 5, 50, 1);
    assert_null(lru_get(&lru, 1));
    assert_true(*(uint64_t *)lru_get(&lru, 3) == 31);
    lru_release(&lru);
}

TEST(what_was_evicted_can_be_read_while_the_new_value_is_filled)
{
    struct lru lru;
    assert_ok(lru_init(&lru, NULL, 1, 40));
    struct lru_evicted evicted;
    memset(lru_put(&lru, 7, &evicted), 0x77, 40);
    for (uint8_t round = 0; round < 5; round++) {
        uint8_t expect = round == 0 ? 0x77 : round;
        uint8_t *value = lru_put(&lru, 100 + round, &evicted);
        for (int i = 0; i < 40; i++)
            assert_int_equal(value[i], 0);
        memset(value, round + 1, 40);
        for (int i = 0; i < 40; i++)
            assert_int_equal(((uint8_t *)evicted.value)[i], expect);
    }
    lru_release(&lru);
}

TEST(removing_makes_room_and_clearing_all_of_it)
{
    struct lru lru;
    assert_ok(lru_init(&lru, NULL, 2, 8));
    put(&lru, 1, 10, 0);
    put(&lru, 2, 20, 0);
    assert_true(lru_remove(&lru, 1));
    assert_false(lru_remove(&lru, 1));
    put(&lru, 3, 30, 0);
    put(&lru, 4, 40, 2);
    lru_clear(&lru);
    assert_int_equal(lru.count, 0);
    assert_null(lru_peek(&lru, 3));
    put(&lru, 5, 50, 0);
    put(&lru, 6, 60, 0);
    put(&lru, 7, 70, 5);
    lru_release(&lru);
}

/* The model: an array in order of use, newest first. */
#define CAPACITY 13
#define KEYS     40

struct model {
    uint64_t keys[CAPACITY + 1];
    uint64_t values[CAPACITY + 1];
    size_t count;
};

static size_t model_find(const struct model *m, uint64_t key)
{
    size_t i = 0;
    while (i < m->count && m->keys[i] != key)
        i++;
    return i;
}

static void model_remove(struct model *m, size_t at)
{
    m->count--;
    for (size_t i = at; i < m->count; i++) {
        m->keys[i] = m->keys[i + 1];
        m->values[i] = m->values[i + 1];
    }
}

static void model_push(struct model *m, uint64_t key, uint64_t value)
{
    for (size_t i = m->count; i > 0; i--) {
        m->keys[i] = m->keys[i - 1];
        m->values[i] = m->values[i - 1];
    }
    m->keys[0] = key;
    m->values[0] = value;
    m->count++;
}

static void check_value(const struct model *m, size_t at, const uint64_t *value)
{
    assert_int_equal(value != NULL, at < m->count);
    if (value)
        assert_true(*value == m->values[at]);
}

static void step_put(struct lru *lru, struct model *m, uint64_t key, uint64_t v)
{
    size_t at = model_find(m, key);
    struct lru_evicted evicted;
    uint64_t *value = lru_put(lru, key, &evicted);
    assert_non_null(value);
    assert_true(*value == (at < m->count ? m->values[at] : 0));
    if (at < m->count)
        model_remove(m, at);
    bool full = m->count == CAPACITY;
    assert_int_equal(evicted.value != NULL, full);
    if (full) {
        assert_true(evicted.key == m->keys[CAPACITY - 1]);
        assert_true(*(uint64_t *)evicted.value == m->values[CAPACITY - 1]);
        model_remove(m, CAPACITY - 1);
    }
    *value = v;
    model_push(m, key, v);
}

static void step_get(struct lru *lru, struct model *m, uint64_t key)
{
    size_t at = model_find(m, key);
    check_value(m, at, lru_get(lru, key));
    if (at < m->count) {
        uint64_t v = m->values[at];
        model_remove(m, at);
        model_push(m, key, v);
    }
}

TEST(random_histories_agree_with_a_list)
{
    uint64_t state = test_seed(3);
    struct test_alloc memory;
    test_alloc_init(&memory);
    struct lru lru;
    assert_ok(lru_init(&lru, &memory.allocator, CAPACITY, 8));
    uint64_t calls = memory.calls;
    struct model m = {0};
    for (int step = 0; step < 100000; step++) {
        uint64_t key = test_below(&state, KEYS) * UINT64_C(0x100000001);
        size_t at = model_find(&m, key);
        switch (test_below(&state, 10)) {
        case 0:
            assert_int_equal(lru_remove(&lru, key), at < m.count);
            if (at < m.count)
                model_remove(&m, at);
            break;
        case 1: check_value(&m, at, lru_peek(&lru, key)); break;
        case 2:
        case 3:
        case 4: step_get(&lru, &m, key); break;
        default: step_put(&lru, &m, key, test_random(&state));
        }
        if (test_below(&state, 5000) == 0) {
            lru_clear(&lru);
            m.count = 0;
        }
        assert_int_equal(lru.count, m.count);
    }
    assert_int_equal(memory.calls, calls);
    lru_release(&lru);
    test_alloc_release(&memory);
}

TEST(no_memory_at_init_leaves_nothing_behind)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        struct lru lru = {.count = 99};
        int status = lru_init(&lru, &memory.allocator, 100, 8);
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        if (failed)
            assert_int_equal(lru.count, 99);
        else
            lru_release(&lru);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_least_recently_used_has_to_go),
        RUN(what_was_evicted_can_be_read_while_the_new_value_is_filled),
        RUN(removing_makes_room_and_clearing_all_of_it),
        RUN(random_histories_agree_with_a_list),
        RUN(no_memory_at_init_leaves_nothing_behind),
    };
    return TEST_MAIN(tests);
}
