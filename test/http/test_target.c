/* test_target.c: targets of requests are taken apart, decoded once, and refused if they could mean two things. */
#include "test/lib/test.h"

#include "http/exchange/target.h"

static int parse(const char *text, struct target *target, pawl_error *error)
{
    static char copy[TARGET_BYTES_MAX + 1];
    snprintf(copy, sizeof copy, "%s", text);
    return target_parse(copy, target, error);
}

TEST(takes_a_path_and_its_parameters_apart)
{
    struct target t;
    pawl_error error;
    assert_int_equal(
        parse("/v1/ws/7/entities/shop.Total?limit=10&after=%5B%22a%26b%22%5D&complete", &t, &error), PAWL_OK);
    assert_int_equal(t.segment_count, 5);
    assert_string_equal(t.segments[0], "v1");
    assert_string_equal(t.segments[4], "shop.Total");
    assert_int_equal(t.param_count, 3);
    assert_string_equal(target_param(&t, "limit"), "10");
    assert_string_equal(target_param(&t, "after"), "[\"a&b\"]");
    assert_string_equal(target_param(&t, "complete"), "");
    assert_null(target_param(&t, "from"));
}

TEST(the_root_has_no_segments)
{
    struct target t;
    pawl_error error;
    assert_int_equal(parse("/", &t, &error), PAWL_OK);
    assert_int_equal(t.segment_count, 0);
    assert_int_equal(parse("/?a=1", &t, &error), PAWL_OK);
    assert_int_equal(t.segment_count, 0);
    assert_string_equal(target_param(&t, "a"), "1");
}

TEST(decodes_once)
{
    struct target t;
    pawl_error error;
    assert_int_equal(parse("/a%2520b?x=%2541+c", &t, &error), PAWL_OK);
    assert_string_equal(t.segments[0], "a%20b");
    assert_string_equal(target_param(&t, "x"), "%41 c");
}

TEST(refuses_what_could_mean_two_things)
{
    static const char *const bad[] = {
        "",
        "v1",
        "*",
        "http://x/",
        "//",
        "/v1//ws",
        "/v1/",
        "/.",
        "/..",
        "/v1/../etc",
        "/...",
        "/%2e%2e/x",
        "/a%2Fb",
        "/a%2fb",
        "/a%5cb",
        "/a\\b",
        "/a%00b",
        "/a%0ab",
        "/a%7f",
        "/a b",
        "/a%",
        "/a%4",
        "/a%zz",
        "/a%4g",
        "/a?b=%",
        "/a?b=%0",
        "/a?b=%00",
        "/a?=1",
        "/a?b=1&b=2",
        "/a?%62=1&b=2",
        "/a?b=%g0",
        "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
        "/?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q&r&s&t&u&v&w&x&y",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct target t = {.segment_count = 99};
        pawl_error error = {0};
        if (parse(bad[i], &t, &error) != PAWL_EINVAL)
            fail_msg("'%s' is not refused", bad[i]);
        assert_int_equal(t.segment_count, 99); /* untouched */
        if (error.text[0] != '$')
            fail_msg("'%s': the words name no place: %s", bad[i], error.text);
    }
}

TEST(numbers_are_digits_within_their_bounds)
{
    static const char *const bad[] = {
        "", " 1", "1 ", "+1", "-1", "0x1", "1.0", "18446744073709551616", "99999999999999999999", "4", "101"};
    uint64_t number = 7;
    pawl_error error;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (target_number(bad[i], 5, 100, "$query.n", &number, &error) != PAWL_EINVAL)
            fail_msg("'%s' is not refused", bad[i]);
        assert_int_equal(number, 7);
    }
    assert_int_equal(target_number("18446744073709551615", 0, UINT64_MAX, "", &number, &error), PAWL_OK);
    assert_true(number == UINT64_MAX);
    assert_int_equal(target_number("5", 5, 100, "", &number, &error), PAWL_OK);
    assert_int_equal(number, 5);
    assert_int_equal(target_number("x", 5, 100, "$query.n", &number, &error), PAWL_EINVAL);
    assert_string_equal(error.text, "$query.n: expected a number from 5 to 100, not 'x'");
}

TEST(durations_have_a_unit_and_a_bound)
{
    static const char *const bad[] = {"", "s", "1h", "1.5s", "61s", "2m", "18446744073709551615m", "1 s"};
    pawl_duration d = 7;
    pawl_error error;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (target_duration(bad[i], 60 * PAWL_SECOND, "$query.t", &d, &error) != PAWL_EINVAL)
            fail_msg("'%s' is not refused", bad[i]);
        assert_int_equal(d, 7);
    }
    assert_int_equal(target_duration("1500ms", 60 * PAWL_SECOND, "", &d, &error), PAWL_OK);
    assert_true(d == 1500 * PAWL_MILLISECOND);
    assert_int_equal(target_duration("1m", 60 * PAWL_SECOND, "", &d, &error), PAWL_OK);
    assert_true(d == 60 * PAWL_SECOND);
    assert_int_equal(target_duration("3", 60 * PAWL_SECOND, "", &d, &error), PAWL_OK);
    assert_true(d == 3 * PAWL_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(takes_a_path_and_its_parameters_apart),
        RUN(the_root_has_no_segments),
        RUN(decodes_once),
        RUN(refuses_what_could_mean_two_things),
        RUN(numbers_are_digits_within_their_bounds),
        RUN(durations_have_a_unit_and_a_bound),
    };
    return TEST_MAIN(tests);
}
