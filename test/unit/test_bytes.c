#include "test/lib/test.h"

#include "base/bytes.h"

#define FIELDS_SIZE 18 /* one of each width, and three raw bytes */

static void encode_all(struct encoder *e, uint8_t a, uint16_t b, uint32_t c, uint64_t d)
{
    encode_u8(e, a);
    encode_u16(e, b);
    encode_u32(e, c);
    encode_u64(e, d);
    encode_raw(e, text_bytes("xyz"));
}

/* A copy of exactly this size, so that a sanitizer sees a read past the end. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    return copy;
}

TEST(integers_are_little_endian)
{
    uint8_t bytes[FIELDS_SIZE];
    struct encoder e = encoder_over(bytes, sizeof bytes);
    encode_all(&e, 0x01, 0x0302, 0x07060504, UINT64_C(0x0f0e0d0c0b0a0908));
    assert_false(e.bad);
    assert_int_equal(encoder_size(&e), FIELDS_SIZE);
    for (uint8_t i = 0; i < 15; i++)
        assert_int_equal(bytes[i], i + 1);
    assert_memory_equal(bytes + 15, "xyz", 3);
}

TEST(extremes_come_back)
{
    static const uint64_t values[] = {0,      1,      0x7f,       0x80,           0xff,
                                      0x7fff, 0x8000, 0x80000000, UINT64_MAX / 2, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint64_t v = values[i];
        uint8_t bytes[FIELDS_SIZE];
        struct encoder e = encoder_over(bytes, sizeof bytes);
        encode_all(&e, (uint8_t)v, (uint16_t)v, (uint32_t)v, v);
        struct decoder d = decoder_over((pawl_bytes){bytes, sizeof bytes});
        assert_int_equal(decode_u8(&d), (uint8_t)v);
        assert_int_equal(decode_u16(&d), (uint16_t)v);
        assert_int_equal(decode_u32(&d), (uint32_t)v);
        assert_true(decode_u64(&d) == v);
        assert_memory_equal(decode_raw(&d, 3), "xyz", 3);
        assert_false(d.bad);
        assert_int_equal(d.left, 0);
    }
}

TEST(every_truncation_is_bad_and_gives_zeros)
{
    uint8_t bytes[FIELDS_SIZE];
    memset(bytes, 0xff, sizeof bytes);
    static const size_t ends[] = {1, 3, 7, 15, 18};
    for (size_t size = 0; size < FIELDS_SIZE; size++) {
        uint8_t *copy = exact_copy(bytes, size);
        struct decoder d = decoder_over((pawl_bytes){copy, size});
        assert_int_equal(decode_u8(&d), size >= ends[0] ? 0xff : 0);
        assert_int_equal(decode_u16(&d), size >= ends[1] ? 0xffff : 0);
        assert_true(decode_u32(&d) == (size >= ends[2] ? UINT32_MAX : 0));
        assert_true(decode_u64(&d) == (size >= ends[3] ? UINT64_MAX : 0));
        assert_null(decode_raw(&d, 3));
        assert_true(d.bad);
        assert_int_equal(decode_u8(&d), 0);
        free(copy);
    }
}

TEST(a_length_from_outside_cannot_overflow_the_cursor)
{
    uint8_t bytes[4] = {1, 2, 3, 4};
    struct decoder d = decoder_over((pawl_bytes){bytes, sizeof bytes});
    assert_null(decode_raw(&d, SIZE_MAX));
    assert_true(d.bad);
    assert_int_equal(d.left, 4);

    struct encoder e = encoder_over(bytes, sizeof bytes);
    assert_null(encode_room(&e, SIZE_MAX));
    assert_true(e.bad);
    assert_int_equal(encoder_size(&e), 0);
}

TEST(every_room_too_small_is_bad_and_nothing_is_written_past_it)
{
    for (size_t size = 0; size < FIELDS_SIZE; size++) {
        uint8_t bytes[FIELDS_SIZE + 1];
        memset(bytes, 0xee, sizeof bytes);
        struct encoder e = encoder_over(bytes, size);
        encode_all(&e, 1, 1, 1, 1);
        assert_true(e.bad);
        assert_true(encoder_size(&e) <= size);
        for (size_t i = encoder_size(&e); i < sizeof bytes; i++)
            assert_int_equal(bytes[i], 0xee);
    }
}

TEST(nothing_can_be_written_and_read)
{
    uint8_t byte = 7;
    struct encoder e = encoder_over(&byte, 0);
    encode_raw(&e, (pawl_bytes){NULL, 0});
    assert_false(e.bad);
    struct decoder d = decoder_over((pawl_bytes){&byte, 0});
    assert_non_null(decode_raw(&d, 0));
    assert_false(d.bad);
}

TEST(sorted_integers_sort_as_bytes)
{
    static const uint64_t values[] = {
        0, 1, 255, 256, 65535, 65536, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
    uint8_t before[8], bytes[8];
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        put_u64_sorted(bytes, values[i]);
        assert_true(get_u64_sorted(bytes) == values[i]);
        if (i > 0)
            assert_true(memcmp(before, bytes, 8) < 0);
        memcpy(before, bytes, 8);
    }
}

TEST(bytes_compare_as_memcmp_with_a_prefix_first)
{
    static const char *const sorted[] = {"", "a", "aa", "ab", "b", "\xff"};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) {
            pawl_bytes a = text_bytes(sorted[i]), b = text_bytes(sorted[k]);
            int order = bytes_compare(a, b);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
            assert_int_equal(bytes_equal(a, b), i == k);
        }
    assert_true(bytes_equal((pawl_bytes){NULL, 0}, text_bytes("")));
    assert_int_equal(bytes_compare((pawl_bytes){NULL, 0}, text_bytes("")), 0);
}

TEST(all_zero_means_all)
{
    uint8_t bytes[17] = {0};
    assert_true(bytes_all_zero(bytes, 0));
    assert_true(bytes_all_zero(bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        assert_false(bytes_all_zero(bytes, sizeof bytes));
        assert_true(bytes_all_zero(bytes, i));
        bytes[i] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(integers_are_little_endian),
        RUN(extremes_come_back),
        RUN(every_truncation_is_bad_and_gives_zeros),
        RUN(a_length_from_outside_cannot_overflow_the_cursor),
        RUN(every_room_too_small_is_bad_and_nothing_is_written_past_it),
        RUN(nothing_can_be_written_and_read),
        RUN(sorted_integers_sort_as_bytes),
        RUN(bytes_compare_as_memcmp_with_a_prefix_first),
        RUN(all_zero_means_all),
    };
    return TEST_MAIN(tests);
}
