#include "test/lib/test.h"

#include "base/id.h"

TEST(an_id_reads_back_as_it_is_written)
{
    static const struct {
        struct id128 id;
        const char *text;
    } cases[] = {
        {{0, 0}, "00000000000000000000000000000000"},
        {{0, 1}, "00000000000000000000000000000001"},
        {{1, 0}, "00000000000000010000000000000000"},
        {{UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)}, "0123456789abcdeffedcba9876543210"},
        {{UINT64_MAX, UINT64_MAX}, "ffffffffffffffffffffffffffffffff"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[ID128_TEXT_SIZE];
        struct id128 id = {7, 7};
        id128_format(cases[i].id, text);
        assert_string_equal(text, cases[i].text);
        assert_ok(id128_parse(text_bytes(text), &id));
        assert_true(id128_equal(id, cases[i].id));
        assert_int_equal(id128_is_zero(id), i == 0);
    }
}

TEST(ids_differ_if_either_half_does)
{
    assert_false(id128_equal((struct id128){1, 2}, (struct id128){1, 3}));
    assert_false(id128_equal((struct id128){1, 2}, (struct id128){3, 2}));
}

TEST(what_format_would_not_write_is_refused)
{
    static const char *const texts[] = {
        "",
        "0",
        "0000000000000000000000000000000",
        "000000000000000000000000000000000",
        "0123456789ABCDEF0123456789abcdef",
        "0123456789abcdef0123456789abcdeg",
        "g123456789abcdef0123456789abcdef",
        " 123456789abcdef0123456789abcdef",
        "0x23456789abcdef0123456789abcdef",
        "-0000000000000000000000000000001",
        "0123456789abcde:0123456789abcdef",
        "0123456789abcdef/123456789abcdef",
        "0123456789abcdef`123456789abcdef",
        "01234567-9abc-ef01-3456-89abcdef",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct id128 id = {7, 7};
        assert_status(id128_parse(text_bytes(texts[i]), &id), PAWL_EINVAL);
        assert_true(id128_equal(id, (struct id128){7, 7}));
    }
}

TEST(a_partition_is_the_top_bits_of_the_token)
{
    static const struct {
        uint64_t token;
        uint32_t partitions;
        uint16_t partition;
    } cases[] = {
        {0, 1, 0},
        {UINT64_MAX, 1, 0},
        {UINT64_MAX / 2, 2, 0},
        {UINT64_MAX / 2 + 1, 2, 1},
        {UINT64_C(0xf000000000000000) - 1, 16, 14},
        {UINT64_C(0xf000000000000000), 16, 15},
        {UINT64_C(0x0000ffffffffffff), 65536, 0},
        {UINT64_C(0x0001000000000000), 65536, 1},
        {UINT64_C(0x1234ffffffffffff), 65536, 0x1234},
        {UINT64_MAX, 65536, 65535},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(partition_of(cases[i].token, cases[i].partitions), cases[i].partition);
}

TEST(twice_the_partitions_split_each_in_two)
{
    uint64_t state = test_seed(1);
    for (int i = 0; i < 1000; i++) {
        uint64_t token = test_random(&state);
        for (uint32_t n = 1; n < PARTITIONS_MAX; n *= 2)
            assert_int_equal(partition_of(token, 2 * n) / 2, partition_of(token, n));
    }
}

TEST(a_record_id_is_its_base_and_its_register)
{
    static const uint64_t bases[] = {0, 1, RECORD_FIRST, RECORD_BASE_MASK};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
        for (int c = 0; c < 2; c++) {
            uint64_t id = record_id(bases[i], c);
            assert_true(record_base(id) == bases[i]);
            assert_int_equal(record_in_c(id), c);
            assert_true(id < UINT64_C(1) << 53);
        }
    assert_true(record_id(1, true) == UINT64_C(0x4000000000001));
    assert_true(RECORD_BASE_MASK == UINT64_C(0x3ffffffffffff));
}

TEST(the_ranges_of_record_ids_do_not_touch)
{
    static const struct {
        uint64_t id;
        bool raw, singleton;
    } cases[] = {
        {0, false, false},
        {1, true, false},
        {65535, true, false},
        {65536, false, true},
        {66047, false, true},
        {66048, false, false},
        {200001, false, false},
        {UINT64_MAX, false, false},
        {RECORD_C_BIT | 1, false, false},
        {RECORD_C_BIT | 65536, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(record_is_raw(cases[i].id), cases[i].raw);
        assert_int_equal(record_is_singleton(cases[i].id), cases[i].singleton);
    }
    assert_true(RECORD_FIRST == 200001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_id_reads_back_as_it_is_written),      RUN(ids_differ_if_either_half_does),
        RUN(what_format_would_not_write_is_refused), RUN(a_partition_is_the_top_bits_of_the_token),
        RUN(twice_the_partitions_split_each_in_two), RUN(a_record_id_is_its_base_and_its_register),
        RUN(the_ranges_of_record_ids_do_not_touch),
    };
    return TEST_MAIN(tests);
}
