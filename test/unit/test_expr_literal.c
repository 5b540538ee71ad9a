/* Written numbers and timestamps have one value, whatever the host program did to its locale. */
#include "test/lib/test.h"

#include <float.h>
#include <locale.h>
#include <math.h>

#include "test/lib/expr.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* Stands in front of the C library's: as in a locale with a decimal comma, a number ends at a point. Locales
 * that have one are not installed everywhere. */
static bool comma_locale;

double strtod(const char *text, char **end)
{
    char cut[256];
    locale_t c = newlocale(LC_ALL_MASK, "C", NULL);
    size_t size = comma_locale ? strcspn(text, ".") : strlen(text);
    assert_true(size < sizeof cut);
    memcpy(cut, text, size);
    cut[size] = '\0';
    char *stop;
    double real = strtod_l(cut, &stop, c);
    if (end)
        *end = (char *)(uintptr_t)text + (stop - cut);
    freelocale(c);
    return real;
}

static int evaluate(const char *text, enum value_type want, struct value *ret_value)
{
    struct expr_scope scope = bed_scope(want);
    struct expr_bed bed = {0};
    struct expr_source source = bed_source(&bed);
    struct expr *expr;
    int status = expr_compile(text_bytes(text), &scope, NULL, &expr, NULL);
    if (status != PAWL_OK)
        return status;
    status = expr_eval(expr, &source, NULL, ret_value, NULL);
    expr_free(expr);
    return status;
}

static double real_of(const char *text)
{
    struct value v;
    if (evaluate(text, VALUE_FLOAT64, &v) != PAWL_OK)
        fail_msg("%s is refused", text);
    return v.real;
}

static void assert_same_bits(double a, double b, const char *text)
{
    uint64_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    if (bits[0] != bits[1])
        fail_msg("%s: %a, expected %a", text, a, b);
}

TEST(a_float_is_the_nearest_to_what_is_written)
{
    static const struct {
        const char *text;
        double real;
    } cases[] = {
        {"0.0", 0.0},
        {"-0.0", -0.0},
        {"0.1", 0x1.999999999999ap-4},
        {"1.25", 1.25},
        {"12.5e3", 12500.0},
        {"125E-2", 1.25},
        {"0.000001e+6", 1.0},
        {"000.50", 0.5},
        {"9007199254740993.0", 0x1p53},
        {"9007199254740993.00000000000000000001", 0x1.0000000000001p53},
        {"1.7976931348623157e308", DBL_MAX},
        {"179769313486231570000e288", DBL_MAX},
        {"2.2250738585072014e-308", DBL_MIN},
        {"4.9e-324", 0x1p-1074},
        {"2.4e-324", 0.0},
        {"1e-99999999999999999999", 0.0},
        {"0e99999999999999999999", 0.0},
        {"0.00000000000000000000000000000000000000001e349", 1e308},
    };
    for (int comma = 0; comma < 2; comma++) {
        comma_locale = comma;
        for (size_t i = 0; i < LENGTH(cases); i++)
            assert_same_bits(real_of(cases[i].text), cases[i].real, cases[i].text);
    }
    comma_locale = false;
}

TEST(a_float_that_would_be_infinite_is_refused)
{
    static const char *const cases[] = {"1.8e308", "1e309", "17976931348623159e292", "1e99999999999999999999"};
    struct value v;
    for (size_t i = 0; i < LENGTH(cases); i++)
        assert_status(evaluate(cases[i], VALUE_FLOAT64, &v), PAWL_EINVAL);
}

TEST(any_float_reads_back_from_seventeen_digits)
{
    uint64_t seed = test_seed(7);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = test_random(&seed);
        double real;
        char text[64];
        memcpy(&real, &bits, sizeof real);
        if (!isfinite(real))
            continue;
        snprintf(text, sizeof text, "%.16e", real);
        comma_locale = i % 2;
        assert_same_bits(real_of(text), real, text);
    }
    comma_locale = false;
}

TEST(a_timestamp_is_a_date_or_a_date_and_a_time_in_utc)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"'1970-01-01'", 0},
        {"'1970-01-01T00:00:00Z'", 0},
        {"'1970-01-01T00:00:00.000000001Z'", 1},
        {"'1970-01-01T00:00:00.5Z'", 500000000},
        {"'1969-12-31T23:59:59.999999999Z'", -1},
        {"'2000-02-29'", INT64_C(951782400000000000)},
        {"'2026-11-16T03:20:00Z'", INT64_C(1794799200000000000)},
        {"'1677-09-21T00:12:43.145224192Z'", INT64_MIN},
        {"'1677-09-22'", INT64_C(-9223286400000000000)},
        {"'2262-04-11'", INT64_C(9223286400000000000)},
        {"'2262-04-11T23:47:16.854775807Z'", INT64_MAX},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct value v;
        assert_ok(evaluate(cases[i].text, VALUE_TIMESTAMP, &v));
        if (v.integer != cases[i].ns)
            fail_msg("%s: %" PRId64, cases[i].text, v.integer);
    }
}

TEST(what_is_no_timestamp_is_refused)
{
    static const char *const cases[] = {
        "''",
        "'2026'",
        "'2026-1-1'",
        "'2026-13-01'",
        "'2026-00-01'",
        "'2026-01-00'",
        "'2026-04-31'",
        "'2026-02-29'",
        "'1900-02-29'",
        "'1677-09-21'",
        "'1677-09-21T00:12:43.145224191Z'",
        "'2262-04-11T23:47:16.854775808Z'",
        "'2262-04-12'",
        "'2026-01-01 '",
        "'2026-01-01T'",
        "'2026-01-01T00:00Z'",
        "'2026-01-01T00:00:00'",
        "'2026-01-01 00:00:00Z'",
        "'2026-01-01T24:00:00Z'",
        "'2026-01-01T00:60:00Z'",
        "'2026-01-01T00:00:60Z'",
        "'2026-01-01T00:00:00.Z'",
        "'2026-01-01T00:00:00.0000000001Z'",
        "'2026-01-01T00:00:00+01:00'",
        "'2026-01-01T00:00:00Zz'",
        "'+026-01-01'",
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct value v;
        if (evaluate(cases[i], VALUE_TIMESTAMP, &v) != PAWL_EINVAL)
            fail_msg("%s passes", cases[i]);
    }
}

TEST(the_days_of_eighty_years_follow_each_other)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t expected = INT64_C(-946771200);
    for (int year = 1940; year < 2020; year++)
        for (int month = 1; month <= 12; month++)
            for (int day = 1; day <= lengths[month - 1] + (month == 2 && year % 4 == 0); day++) {
                char text[32];
                struct value v;
                snprintf(text, sizeof text, "'%04d-%02d-%02d'", year, month, day);
                assert_ok(evaluate(text, VALUE_TIMESTAMP, &v));
                assert_int_equal(v.integer / 1000000000, expected);
                expected += 86400;
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_float_is_the_nearest_to_what_is_written),
        RUN(a_float_that_would_be_infinite_is_refused),
        RUN(any_float_reads_back_from_seventeen_digits),
        RUN(a_timestamp_is_a_date_or_a_date_and_a_time_in_utc),
        RUN(what_is_no_timestamp_is_refused),
        RUN(the_days_of_eighty_years_follow_each_other),
    };
    return TEST_MAIN(tests);
}
