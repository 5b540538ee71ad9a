/* Keys: bytes sort as the values do, and are read back. */
#include <float.h>

#include "base/bytes.h"
#include "core/schema/row.h"
#include "test/lib/test.h"

#define INTEGER(n)                                                                                             \
    {                                                                                                          \
        .type = VALUE_INT64, .integer = (n)                                                                    \
    }
#define TIME(n)                                                                                                \
    {                                                                                                          \
        .type = VALUE_TIMESTAMP, .integer = (n)                                                                \
    }
#define REAL(n)                                                                                                \
    {                                                                                                          \
        .type = VALUE_FLOAT64, .real = (n)                                                                     \
    }
#define BOOL(n)                                                                                                \
    {                                                                                                          \
        .type = VALUE_BOOL, .boolean = (n)                                                                     \
    }
#define NAME(n)                                                                                                \
    {                                                                                                          \
        .type = VALUE_QNAME, .name = (n)                                                                       \
    }
#define REF(n)                                                                                                 \
    {                                                                                                          \
        .type = VALUE_REF, .id = (n)                                                                           \
    }
#define TEXT(s)                                                                                                \
    {                                                                                                          \
        .type = VALUE_STRING, .bytes = { s, sizeof(s) - 1 }                                                    \
    }
#define BYTES(s)                                                                                               \
    {                                                                                                          \
        .type = VALUE_BYTES, .bytes = { s, sizeof(s) - 1 }                                                     \
    }
#define NOTHING                                                                                                \
    {                                                                                                          \
        .type = VALUE_NULL                                                                                     \
    }

/* Each list ascends. */
static const struct value lists[][12] = {
    {NOTHING, INTEGER(INT64_MIN), INTEGER(-256), INTEGER(-1), INTEGER(0), INTEGER(1), INTEGER(255),
     INTEGER(256), INTEGER(INT64_MAX)},
    {NOTHING, TIME(INT64_MIN), TIME(-1), TIME(0), TIME(1), TIME(INT64_MAX)},
    {NOTHING, REAL(-DBL_MAX), REAL(-1.5), REAL(-1), REAL(-DBL_MIN), REAL(-5e-324), REAL(0), REAL(5e-324),
     REAL(1), REAL(1.5), REAL(DBL_MAX)},
    {NOTHING, BOOL(false), BOOL(true)},
    {NOTHING, NAME(0), NAME(1), NAME(255), NAME(256), NAME(65535)},
    {NOTHING, REF(0), REF(1), REF(200001), REF(UINT64_C(1) << 50), REF(UINT64_MAX)},
    {NOTHING, TEXT(""), TEXT("\0"), TEXT("\0\0"), TEXT("\0\1"), TEXT("\1"), TEXT("a"), TEXT("a\0"),
     TEXT("a\0b"), TEXT("aa"), TEXT("b"), TEXT("\xc3\xa4")},
    {NOTHING, BYTES(""), BYTES("\0"), BYTES("\0\0"), BYTES("\0\xff"), BYTES("\1"), BYTES("a"), BYTES("a\0"),
     BYTES("a\xff"), BYTES("b"), BYTES("\xff"), BYTES("\xff\0")},
};
static const size_t sizes[] = {9, 6, 11, 3, 6, 6, 12, 12};

#define LISTS (sizeof lists / sizeof *lists)
#define ROOM  64

static pawl_bytes key(const struct value *values, size_t count, uint8_t *room)
{
    size_t size = row_key_write(values, count, room, ROOM);
    assert_true(size <= ROOM);
    return (pawl_bytes){room, size};
}

static int order(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

TEST(keys_sort_as_values_do)
{
    uint8_t a[ROOM], b[ROOM];
    for (size_t list = 0; list < LISTS; list++)
        for (size_t i = 0; i < sizes[list]; i++)
            for (size_t k = 0; k < sizes[list]; k++)
                assert_int_equal(sign(bytes_compare(key(&lists[list][i], 1, a), key(&lists[list][k], 1, b))),
                                 order(i, k));
}

/* Whatever types two fields have, the first decides, and only if they are equal the second. */
TEST(the_first_field_decides_before_the_second)
{
    uint64_t seed = test_seed(1);
    uint8_t a[ROOM], b[ROOM];
    for (int round = 0; round < 20000; round++) {
        size_t one = test_below(&seed, LISTS), two = test_below(&seed, LISTS);
        size_t a1 = test_below(&seed, sizes[one]), a2 = test_below(&seed, sizes[two]);
        size_t b1 = test_below(&seed, sizes[one]), b2 = test_below(&seed, sizes[two]);
        struct value x[] = {lists[one][a1], lists[two][a2]}, y[] = {lists[one][b1], lists[two][b2]};
        int expected = order(a1, b1) ? order(a1, b1) : order(a2, b2);
        assert_int_equal(sign(bytes_compare(key(x, 2, a), key(y, 2, b))), expected);
    }
}

TEST(minus_zero_is_zero)
{
    struct value zero = REAL(0.0), minus = REAL(-0.0);
    uint8_t a[ROOM], b[ROOM];
    assert_true(bytes_equal(key(&zero, 1, a), key(&minus, 1, b)));
}

TEST(keys_are_read_back_and_no_other_bytes_are)
{
    uint64_t seed = test_seed(2);
    for (int round = 0; round < 5000; round++) {
        struct value in[3], out[3];
        enum value_type types[3];
        for (size_t i = 0; i < 3; i++) {
            size_t list = test_below(&seed, LISTS);
            types[i] = lists[list][1].type;
            in[i] = lists[list][test_below(&seed, sizes[list])];
        }
        uint8_t a[ROOM], b[ROOM], scratch[ROOM];
        pawl_bytes bytes = key(in, 3, a);
        assert_ok(row_key_read(bytes, types, 3, scratch, out));
        assert_true(bytes_equal(key(out, 3, b), bytes));
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(out[i].type, in[i].type);

        assert_status(row_key_read((pawl_bytes){a, bytes.size - 1}, types, 3, scratch, out), PAWL_ECORRUPT);
        a[bytes.size] = 0;
        assert_status(row_key_read((pawl_bytes){a, bytes.size + 1}, types, 3, scratch, out), PAWL_ECORRUPT);
        a[test_below(&seed, bytes.size)] ^= (uint8_t)(1 + test_below(&seed, 255));
        if (row_key_read(bytes, types, 3, scratch, out) == PAWL_OK)
            assert_true(bytes_equal(key(out, 3, b), bytes));
    }
}

TEST(a_key_that_does_not_fit_says_its_size)
{
    struct value values[] = {TEXT("a\0b"), REF(1)};
    uint8_t whole[ROOM], at[ROOM];
    size_t size = row_key_write(values, 2, whole, ROOM);
    for (size_t room = 0; room <= size; room++) {
        memset(at, 0xee, sizeof at);
        assert_int_equal(row_key_write(values, 2, at, room), size);
        assert_memory_equal(at, whole, room);
        assert_int_equal(at[room], 0xee);
    }
}

TEST(a_failed_read_leaves_the_values_alone)
{
    struct value values[] = {REF(1), REF(2)}, out[] = {BOOL(true), BOOL(true)};
    const enum value_type types[] = {VALUE_REF, VALUE_REF};
    uint8_t at[ROOM], scratch[ROOM];
    pawl_bytes bytes = key(values, 2, at);
    bytes.size--;
    assert_status(row_key_read(bytes, types, 2, scratch, out), PAWL_ECORRUPT);
    assert_int_equal(out[0].type, VALUE_BOOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(keys_sort_as_values_do),
        RUN(the_first_field_decides_before_the_second),
        RUN(minus_zero_is_zero),
        RUN(keys_are_read_back_and_no_other_bytes_are),
        RUN(a_key_that_does_not_fit_says_its_size),
        RUN(a_failed_read_leaves_the_values_alone),
    };
    return TEST_MAIN(tests);
}
