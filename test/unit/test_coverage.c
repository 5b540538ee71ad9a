/* Coverage against a model: a bitmap over a list of keys that ascend as the store orders them. */
#include "core/view/coverage.h"

#include "core/view/view_state.h"
#include "port/longkey.h"
#include "test/lib/alloc.h"
#include "test/lib/test.h"

#define KEYS 96

/* Short keys, keys that are prefixes of others, and keys beyond what sorts by memcmp. */
struct keys {
    pawl_bytes keys[KEYS];
    uint8_t *memory;
};

static int by_order(const void *a, const void *b)
{
    return longkey_compare_keys(*(const pawl_bytes *)a, *(const pawl_bytes *)b);
}

static void keys_make(struct keys *k, uint64_t *random)
{
    size_t at = 0;
    k->memory = malloc(KEYS * 800);
    assert_non_null(k->memory);
    for (size_t i = 0; i < KEYS; i++) {
        bool is_long = i % 3 == 0;
        size_t size = is_long ? 512 + (size_t)test_below(random, 200) : 1 + (size_t)test_below(random, 30);
        memset(k->memory + at, 'a', size);
        /* Long ones agree in all that sorts, or differ at the end only. */
        put_u16_sorted(k->memory + at + size - (size > 1 ? 2 : 0), (uint16_t)(i + 1));
        if (size < 2)
            k->memory[at] = (uint8_t)(i + 1);
        k->keys[i] = (pawl_bytes){k->memory + at, size};
        at += size < 2 ? 2 : size;
    }
    qsort(k->keys, KEYS, sizeof k->keys[0], by_order);
    for (size_t i = 1; i < KEYS; i++)
        assert_true(longkey_compare_keys(k->keys[i - 1], k->keys[i]) < 0);
}

static void compare(const struct coverage *c, const bool *model, const struct keys *k)
{
    for (size_t i = 0; i < KEYS; i++) {
        assert_int_equal(coverage_has(c, k->keys[i]), model[i]);
        size_t gap = i;
        while (gap < KEYS && model[gap])
            gap++;
        if (gap < KEYS)
            assert_true(bytes_equal(coverage_gap(c, k->keys[i]), k->keys[gap]));
    }
    for (size_t i = 1; i < c->count; i++) /* I1 */
        assert_true(longkey_compare_keys(c->intervals[i - 1].to, c->intervals[i].from) < 0);
    for (size_t i = 0; i < c->count; i++) /* I2 */
        assert_true(longkey_compare_keys(c->intervals[i].from, c->intervals[i].to) < 0);
}

static void compare_bytes(const struct coverage *c, struct test_alloc *memory)
{
    size_t size = coverage_encoded_size(c);
    uint8_t *bytes = malloc(size), *again = malloc(size);
    struct encoder e = encoder_over(bytes, size), f = encoder_over(again, size);
    coverage_encode(c, &e);
    assert_false(e.bad);
    assert_int_equal(e.left, 0);
    struct coverage decoded;
    coverage_init(&decoded, &memory->allocator);
    struct decoder d = decoder_over((pawl_bytes){bytes, size});
    assert_ok(coverage_decode(&decoded, &d));
    assert_int_equal(d.left, 0);
    assert_int_equal(coverage_encoded_size(&decoded), size);
    coverage_encode(&decoded, &f);
    assert_memory_equal(bytes, again, size);
    coverage_release(&decoded);
    for (size_t cut = 0; cut < size; cut += 1 + size / 40) {
        d = decoder_over((pawl_bytes){bytes, cut});
        assert_status(coverage_decode(&decoded, &d), PAWL_ECORRUPT);
        assert_int_equal(decoded.count, 0);
        assert_null(decoded.intervals);
    }
    free(bytes);
    free(again);
}

TEST(is_what_a_bitmap_is)
{
    uint64_t random = test_seed(1);
    for (int round = 0; round < 60; round++) {
        struct test_alloc memory;
        struct keys k;
        struct coverage c, copy;
        bool model[KEYS] = {0};
        test_alloc_init(&memory);
        keys_make(&k, &random);
        coverage_init(&c, &memory.allocator);
        coverage_init(&copy, &memory.allocator);
        for (int step = 0; step < 40; step++) {
            size_t from = (size_t)test_below(&random, KEYS), to = (size_t)test_below(&random, KEYS);
            if (test_below(&random, 3) && from + 3 < KEYS)
                to = from + (size_t)test_below(&random, 3);
            assert_ok(coverage_add(&c, k.keys[from], k.keys[to]));
            for (size_t i = from; i < to; i++)
                model[i] = true;
            compare(&c, model, &k);
            size_t a = (size_t)test_below(&random, KEYS), b = (size_t)test_below(&random, KEYS);
            bool all = true;
            for (size_t i = a; i < b; i++)
                all = all && model[i];
            if (a < b)
                assert_int_equal(coverage_covers(&c, k.keys[a], k.keys[b]), all);
        }
        assert_ok(coverage_copy(&copy, &c));
        coverage_release(&c);
        compare(&copy, model, &k);
        compare_bytes(&copy, &memory);
        coverage_release(&copy);
        free(k.memory);
        test_alloc_release(&memory);
    }
}

#define B(text) ((pawl_bytes){text, sizeof(text) - 1})

TEST(neighbours_are_joined_and_others_are_not)
{
    static const struct {
        const char *from, *to;
        size_t count;
        const char *first_from, *first_to;
    } steps[] = {
        {"d", "f", 1, "d", "f"},  {"f", "f", 1, "d", "f"},  {"g", "f", 1, "d", "f"},   {"f", "h", 1, "d", "h"},
        {"k", "m", 2, "d", "h"},  {"b", "d", 2, "b", "h"},  {"c", "g", 2, "b", "h"},   {"x", "z", 3, "b", "h"},
        {"h0", "k", 3, "b", "h"}, {"h", "h0", 2, "b", "m"}, {"a", "zz", 1, "a", "zz"},
    };
    struct coverage c;
    coverage_init(&c, NULL);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_ok(coverage_add(&c, text_bytes(steps[i].from), text_bytes(steps[i].to)));
        assert_int_equal(c.count, steps[i].count);
        assert_true(bytes_equal(c.intervals[0].from, text_bytes(steps[i].first_from)));
        assert_true(bytes_equal(c.intervals[0].to, text_bytes(steps[i].first_to)));
    }
    coverage_release(&c);
}

TEST(has_a_bound_and_is_unchanged_beyond_it)
{
    struct coverage c;
    uint8_t from[4], to[4];
    coverage_init(&c, NULL);
    for (uint32_t i = 0; i <= COVERAGE_MAX; i++) {
        put_u32_sorted(from, 3 * i);
        put_u32_sorted(to, 3 * i + 1);
        assert_status(coverage_add(&c, (pawl_bytes){from, 4}, (pawl_bytes){to, 4}),
                      i < COVERAGE_MAX ? PAWL_OK : PAWL_ETOOBIG);
    }
    assert_int_equal(c.count, COVERAGE_MAX);
    assert_false(coverage_has(&c, (pawl_bytes){from, 4}));
    put_u32_sorted(from, 0); /* what joins two is not too much */
    put_u32_sorted(to, 3);
    assert_ok(coverage_add(&c, (pawl_bytes){from, 4}, (pawl_bytes){to, 4}));
    assert_int_equal(c.count, COVERAGE_MAX - 1);
    coverage_release(&c);
}

TEST(an_addition_without_memory_changes_nothing)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct coverage c, copy;
        test_alloc_init(&memory);
        coverage_init(&c, &memory.allocator);
        coverage_init(&copy, &memory.allocator);
        assert_ok(coverage_add(&c, B("b"), B("c")));
        assert_ok(coverage_add(&copy, B("m"), B("n")));
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int added = coverage_add(&c, B("d"), B("e"));
        int joined = added == PAWL_OK ? coverage_add(&c, B("c"), B("d")) : added;
        int copied = joined == PAWL_OK ? coverage_copy(&copy, &c) : joined;
        bool failed = test_alloc_failed(&memory);
        assert_status(copied, failed ? PAWL_ENOMEM : PAWL_OK);
        assert_int_equal(c.count, added == PAWL_OK && joined != PAWL_OK ? 2 : 1);
        assert_true(coverage_has(&c, B("b")));
        assert_int_equal(coverage_has(&c, B("d")), added == PAWL_OK);
        assert_int_equal(coverage_has(&copy, B("m")), copied != PAWL_OK);
        coverage_release(&c);
        coverage_release(&copy);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

/* Bytes of sets that break what a set promises. */
TEST(bytes_that_are_no_set_are_refused)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"", 0},
        {"\1\0\0\0", 4},                                      /* nothing behind the count */
        {"\1\0\0\0\1\0\0\0\1\0\0\0aa", 14},                   /* empty */
        {"\1\0\0\0\1\0\0\0\1\0\0\0ba", 14},                   /* ends before it begins */
        {"\2\0\0\0\1\0\0\0\1\0\0\0ab\1\0\0\0\1\0\0\0bc", 24}, /* two that touch */
        {"\2\0\0\0\1\0\0\0\1\0\0\0cd\1\0\0\0\1\0\0\0ab", 24}, /* descending */
        {"\1\0\0\0\377\377\377\377\1\0\0\0ab", 14},           /* a size beyond everything */
        {"\1\0\0\0\0\0\1\0\1\0\0\0ab", 14},                   /* a key that is too long */
        {"\377\377\377\377\1\0\0\0\1\0\0\0ab", 14},           /* too many */
        {"\1\20\0\0\1\0\0\0\1\0\0\0ab", 14},
    };
    struct coverage c;
    coverage_init(&c, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct decoder d = decoder_over((pawl_bytes){cases[i].bytes, cases[i].size});
        assert_status(coverage_decode(&c, &d), PAWL_ECORRUPT);
        assert_int_equal(c.count, 0);
    }
    struct decoder d = decoder_over(B("\1\0\0\0\1\0\0\0\1\0\0\0ab"));
    assert_ok(coverage_decode(&c, &d));
    assert_true(coverage_has(&c, B("a")));
    coverage_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(is_what_a_bitmap_is),
        RUN(neighbours_are_joined_and_others_are_not),
        RUN(has_a_bound_and_is_unchanged_beyond_it),
        RUN(an_addition_without_memory_changes_nothing),
        RUN(bytes_that_are_no_set_are_refused),
    };
    return TEST_MAIN(tests);
}
