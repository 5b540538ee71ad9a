/* Timestamps as text, and the way back. */
#include "base/timestamp.h"

#include "base/bytes.h"
#include "test/lib/test.h"

static void expect_timestamp(int64_t ns, const char *expected)
{
    char text[TIMESTAMP_CHARS + 1];
    int64_t back = 0;
    text[timestamp_write(ns, text)] = '\0';
    assert_string_equal(text, expected);
    assert_true(timestamp_read(text_bytes(text), &back));
    assert_true(back == ns);
}

TEST(a_timestamp_is_exact_over_the_whole_range)
{
    expect_timestamp(0, "1970-01-01T00:00:00Z");
    expect_timestamp(1, "1970-01-01T00:00:00.000000001Z");
    expect_timestamp(-1, "1969-12-31T23:59:59.999999999Z");
    expect_timestamp(500000000, "1970-01-01T00:00:00.500Z");
    expect_timestamp(INT64_C(1763200800123456000), "2025-11-15T10:00:00.123456Z");
    expect_timestamp(INT64_C(951782400000000000), "2000-02-29T00:00:00Z");
    expect_timestamp(-INT64_C(2208988800000000000), "1900-01-01T00:00:00Z");
    expect_timestamp(INT64_MAX, "2262-04-11T23:47:16.854775807Z");
    expect_timestamp(INT64_MIN, "1677-09-21T00:12:43.145224192Z");
    expect_timestamp(INT64_MIN + 1, "1677-09-21T00:12:43.145224193Z");
}

TEST(timestamps_come_back)
{
    uint64_t seed = test_seed(4);
    for (int i = 0; i < 50000; i++) {
        int64_t ns = (int64_t)test_random(&seed), back = 0;
        if (i % 4 == 0)
            ns -= ns % 86400000000000 - (i % 8 ? 1 : -1); /* beside a midnight */
        char text[TIMESTAMP_CHARS];
        size_t size = timestamp_write(ns, text);
        assert_true(timestamp_read((pawl_bytes){text, size}, &back));
        assert_true(back == ns);
    }
}

TEST(a_timestamp_may_have_one_to_nine_digits_of_a_second)
{
    char text[TIMESTAMP_CHARS + 1] = "1970-01-01T00:00:00.";
    int64_t expected = 0, unit = 100000000;
    for (size_t digits = 1; digits <= 9; digits++, unit /= 10) {
        text[19 + digits] = (char)('0' + digits);
        text[20 + digits] = 'Z';
        expected += unit * (int64_t)digits;
        int64_t got = 0;
        assert_true(timestamp_read((pawl_bytes){text, 21 + digits}, &got));
        assert_true(got == expected);
    }
}

TEST(what_is_no_timestamp_is_refused)
{
    static const char *const cases[] = {
        "",
        "Z",
        "2026-11-15",
        "2026-11-15T10:00:00",
        "2026-11-15T10:00:00+00:00",
        "2026-11-15T10:00:00+01:00",
        "2026-11-15T10:00:00-01:00",
        "2026-11-15T10:00:00.5+01:00",
        "2026-11-15t10:00:00Z",
        "2026-11-15T10:00:00z",
        "2026-11-15 10:00:00Z",
        "2026-11-15T10:00Z",
        "2026-11-15T10:00:00.Z",
        "2026-11-15T10:00:00.1234567890Z",
        "2026-11-15T10:00:00,5Z",
        "2026-11-15T10:00:00.+5Z",
        "2026-11-15T10:00:00.5-Z",
        "2026-11-15T10:00:00.5 Z",
        "2026-11-15T24:00:00Z",
        "2026-11-15T23:60:00Z",
        "2026-11-15T23:59:60Z",
        "2026-00-15T10:00:00Z",
        "2026-13-15T10:00:00Z",
        "2026-11-00T10:00:00Z",
        "2026-11-31T10:00:00Z",
        "2026-02-29T10:00:00Z",
        "2100-02-29T10:00:00Z",
        "2024-02-30T10:00:00Z",
        "+026-11-15T10:00:00Z",
        " 2026-11-15T10:00:00Z",
        "2026-11-15T10:00:00Z ",
        "1677-09-21T00:12:43.145224191Z",
        "1677-09-21T00:12:42Z",
        "2262-04-11T23:47:16.854775808Z",
        "2262-04-11T23:47:17Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ns = 77;
        if (timestamp_read(text_bytes(cases[i]), &ns))
            fail_msg("'%s' passes", cases[i]);
        assert_int_equal(ns, 77);
    }
}

/* Of a century only every fourth year is a leap year. */
TEST(leap_days_are_there_in_leap_years_only)
{
    for (int year = 1678; year <= 2261; year++) {
        char text[TIMESTAMP_CHARS + 1];
        int64_t ns, next;
        bool leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
        snprintf(text, sizeof text, "%04d-02-29T12:00:00Z", year);
        assert_int_equal(timestamp_read(text_bytes(text), &ns), leap);
        snprintf(text, sizeof text, "%04d-02-29", year);
        assert_int_equal(timestamp_read_date(text_bytes(text), &ns), leap);
        snprintf(text, sizeof text, "%04d-02-28", year);
        assert_true(timestamp_read_date(text_bytes(text), &ns));
        snprintf(text, sizeof text, "%04d-03-01", year);
        assert_true(timestamp_read_date(text_bytes(text), &next));
        assert_int_equal((next - ns) / INT64_C(86400000000000), leap ? 2 : 1);
    }
}

TEST(a_date_is_its_midnight_wherever_that_is_in_the_range)
{
    static const struct {
        const char *date;
        int64_t ns;
    } cases[] = {
        {"1970-01-01", 0},
        {"1969-12-31", INT64_C(-86400000000000)},
        {"2000-02-29", INT64_C(951782400000000000)},
        {"1677-09-22", INT64_C(-9223286400000000000)},
        {"2262-04-11", INT64_C(9223286400000000000)},
    };
    static const char *const bad[] = {
        "",           "1677-09-21", "2262-04-12",  "0000-01-01",  "9999-12-31",  "2026-02-29",  "2026-00-01",
        "2026-01-00", "2026-13-01", "2026-04-31",  "2026-1-01",   "2026-01-1",   "+026-01-01",  "2026/01/01",
        "2026-01-0a", "26-01-01",   "2026-01-01Z", "2026-01-01 ", " 2026-01-01", "2026-01-01T",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ns;
        assert_true(timestamp_read_date(text_bytes(cases[i].date), &ns));
        assert_int_equal(ns, cases[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t ns = 77;
        if (timestamp_read_date(text_bytes(bad[i]), &ns))
            fail_msg("'%s' passes", bad[i]);
        assert_int_equal(ns, 77);
    }
}

TEST(a_wall_time_is_text_and_comes_back)
{
    static const pawl_wall times[] = {{0},  {INT64_MIN},           {INT64_MAX}, {INT64_C(1763200000123000000)},
                                      {-1}, {INT64_C(-1000000000)}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[PAWL_WALL_TEXT_MAX];
        pawl_wall back = {7};
        memset(text, 'x', sizeof text);
        pawl_wall_format(times[i], text);
        assert_non_null(memchr(text, '\0', sizeof text));
        assert_ok(pawl_wall_parse(text, &back, NULL));
        assert_int_equal(back.ns, times[i].ns);
    }
    char text[PAWL_WALL_TEXT_MAX];
    pawl_wall_format((pawl_wall){INT64_C(1763200000123000000)}, text);
    assert_string_equal(text, "2025-11-15T09:46:40.123Z");

    pawl_error error = {0};
    pawl_wall kept = {7};
    assert_status(pawl_wall_parse("2026-02-30T00:00:00Z", &kept, &error), PAWL_EINVAL);
    assert_contains(error.text, "2026-02-30");
    assert_status(pawl_wall_parse("", &kept, NULL), PAWL_EINVAL);
    assert_int_equal(kept.ns, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_timestamp_is_exact_over_the_whole_range),
        RUN(timestamps_come_back),
        RUN(a_timestamp_may_have_one_to_nine_digits_of_a_second),
        RUN(what_is_no_timestamp_is_refused),
        RUN(leap_days_are_there_in_leap_years_only),
        RUN(a_date_is_its_midnight_wherever_that_is_in_the_range),
        RUN(a_wall_time_is_text_and_comes_back),
    };
    return TEST_MAIN(tests);
}
