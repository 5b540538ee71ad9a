#include "test/lib/test.h"

#include "base/histogram.h"

static pawl_instant at(uint64_t second)
{
    return (pawl_instant){second * PAWL_SECOND + 5};
}

static size_t bucket_with(const pawl_histogram *h)
{
    size_t i = 0;
    while (i < PAWL_HISTOGRAM_BUCKETS && h->buckets[i] == 0)
        i++;
    return i;
}

TEST(a_value_is_in_the_bucket_whose_bounds_enclose_it)
{
    const unsigned scales[] = {HISTOGRAM_NS, HISTOGRAM_COUNT};
    uint64_t random = test_seed(1);
    for (size_t s = 0; s < 2; s++)
        for (unsigned i = 0; i < 4000; i++) {
            struct histogram h = {.scale = scales[s]};
            pawl_histogram sum = {0};
            uint64_t value = test_random(&random) >> test_below(&random, 64);
            histogram_add(&h, at(1), value);
            histogram_sum(&h, at(1), 0, &sum);
            size_t bucket = bucket_with(&sum);
            assert_true(bucket < PAWL_HISTOGRAM_BUCKETS);
            assert_int_equal(sum.count, 1);
            assert_int_equal(sum.sum, value);
            if (bucket < PAWL_HISTOGRAM_BUCKETS - 1)
                assert_true(value < histogram_bound(scales[s], bucket));
            if (bucket > 0)
                assert_true(value >= histogram_bound(scales[s], bucket - 1));
        }
}

TEST(bounds_only_grow_and_small_numbers_have_their_own)
{
    for (size_t i = 1; i < PAWL_HISTOGRAM_BUCKETS; i++) {
        assert_true(histogram_bound(HISTOGRAM_NS, i) > histogram_bound(HISTOGRAM_NS, i - 1));
        assert_true(histogram_bound(HISTOGRAM_COUNT, i) >= histogram_bound(HISTOGRAM_COUNT, i - 1));
    }
    assert_int_equal(histogram_bound(HISTOGRAM_NS, 0), 1024);
    assert_int_equal(histogram_bound(HISTOGRAM_NS, 1), 1280);
    assert_int_equal(histogram_bound(HISTOGRAM_NS, 4), 2048);
    assert_int_equal(histogram_bound(HISTOGRAM_COUNT, 1), 2);
    assert_true(histogram_bound(HISTOGRAM_NS, PAWL_HISTOGRAM_BUCKETS - 2) > 30 * PAWL_SECOND);
    assert_true(histogram_bound(HISTOGRAM_NS, PAWL_HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
}

TEST(the_last_seconds_are_whole_ones_and_old_ones_are_forgotten)
{
    struct histogram h = {.scale = HISTOGRAM_COUNT};
    pawl_histogram one = {0}, ten = {0}, none = {0}, all = {0};
    for (uint64_t second = 100; second <= 120; second++)
        for (uint64_t i = 0; i < second; i++)
            histogram_add(&h, at(second), 1);
    histogram_sum(&h, at(120), 1, &one);
    assert_int_equal(one.count, 119); /* not the present second */
    histogram_sum(&h, at(120), 10, &ten);
    assert_int_equal(ten.count, 110 + 111 + 112 + 113 + 114 + 115 + 116 + 117 + 118 + 119);
    assert_int_equal(ten.sum, ten.count);
    histogram_sum(&h, at(160), 10, &none);
    assert_int_equal(none.count, 0);
    histogram_sum(&h, at(160), 0, &all);
    assert_int_equal(all.count, 21 * 110);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_value_is_in_the_bucket_whose_bounds_enclose_it),
        RUN(bounds_only_grow_and_small_numbers_have_their_own),
        RUN(the_last_seconds_are_whole_ones_and_old_ones_are_forgotten),
    };
    return TEST_MAIN(tests);
}
