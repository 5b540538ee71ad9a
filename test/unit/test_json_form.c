/* Integers, reals and bytes as text: one form each, and the way back. */
#include "test/lib/test.h"

#include <float.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "engine/json/form.h"
#include "test/lib/dir.h"

static void expect_real(double real, const char *expected)
{
    char text[FORM_REAL_CHARS + 1];
    text[form_real_write(real, text)] = '\0';
    assert_string_equal(text, expected);
}

TEST(an_integer_has_one_form)
{
    static const struct {
        const char *text;
        bool good;
        int64_t integer;
    } cases[] = {
        {"0", true, 0},
        {"7", true, 7},
        {"-7", true, -7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"-0", false, 0},
        {"00", false, 0},
        {"01", false, 0},
        {"-01", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x1", false, 0},
        {"--1", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t got = 99;
        print_message("# '%s'\n", cases[i].text);
        assert_int_equal(form_integer_read(text_bytes(cases[i].text), &got), cases[i].good);
        assert_true(got == (cases[i].good ? cases[i].integer : 99));
        char text[FORM_INTEGER_CHARS + 1];
        text[form_integer_write(got, text)] = '\0';
        if (cases[i].good)
            assert_string_equal(text, cases[i].text);
    }
}

TEST(integers_come_back)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < 20000; i++) {
        int64_t integer = (int64_t)(test_random(&seed) >> test_below(&seed, 64)), back = 0;
        char text[FORM_INTEGER_CHARS], expected[32];
        integer = i % 2 ? -integer : integer;
        size_t size = form_integer_write(integer, text);
        snprintf(expected, sizeof expected, "%" PRId64, integer);
        assert_int_equal(size, strlen(expected));
        assert_memory_equal(text, expected, size);
        assert_true(form_integer_read((pawl_bytes){text, size}, &back));
        assert_true(back == integer);
    }
    char text[FORM_INTEGER_CHARS];
    assert_int_equal(form_unsigned_write(UINT64_MAX, text), 20);
    assert_memory_equal(text, "18446744073709551615", 20);
}

TEST(a_real_has_as_few_digits_as_read_back)
{
    expect_real(0.0, "0.0");
    expect_real(-0.0, "-0.0");
    expect_real(1.0, "1.0");
    expect_real(-250.0, "-250.0");
    expect_real(0.1, "0.1");
    expect_real(1.0 / 3, "0.3333333333333333");
    expect_real(0.1 + 0.2, "0.30000000000000004");
    expect_real(1e15, "1e+15");
    expect_real(999999999999999.0, "999999999999999.0");
    expect_real(9007199254740993.0, "9007199254740992.0");
    expect_real(1e300, "1e+300");
    expect_real(1e-7, "1e-07");
    expect_real(DBL_MAX, "1.7976931348623157e+308");
    expect_real(-DBL_MAX, "-1.7976931348623157e+308");
    expect_real(DBL_MIN, "2.2250738585072014e-308");
    expect_real(DBL_TRUE_MIN, "5e-324");
}

static void check_reals(uint64_t seed)
{
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = test_random(&seed);
        double real, back;
        memcpy(&real, &bits, sizeof real);
        if (i % 3 == 0)
            real = (double)(int64_t)bits / 100;
        if (!isfinite(real))
            continue;
        char text[FORM_REAL_CHARS + 1];
        size_t size = form_real_write(real, text);
        assert_true(size < FORM_REAL_CHARS);
        text[size] = '\0';
        assert_int_equal(strspn(text, "0123456789.e+-"), size);
        locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), host = uselocale(plain);
        back = strtod(text, NULL);
        uselocale(host);
        assert_true(back == real);
    }
}

TEST(reals_come_back)
{
    check_reals(test_seed(2));
}

/* A locale of the C library's own format, with nothing but a decimal comma: machines that build have none. */
static void write_comma_locale(const char *directory)
{
    enum { FIELDS = 6, TEXTS = 8 + 4 * FIELDS };
    uint8_t file[TEXTS + 24] = {0};
    /* decimal point, thousands separator, grouping, the first two as wide characters, character set */
    const uint32_t at[FIELDS] = {TEXTS, TEXTS + 2, TEXTS + 3, TEXTS + 4, TEXTS + 8, TEXTS + 12};
    put_u32(file, 0x20031115 ^ LC_NUMERIC);
    put_u32(file + 4, FIELDS);
    for (size_t i = 0; i < FIELDS; i++)
        put_u32(file + 8 + 4 * i, at[i]);
    file[TEXTS] = ',';
    put_u32(file + TEXTS + 4, ',');
    memcpy(file + TEXTS + 12, "UTF-8", 6);
    char path[256];
    snprintf(path, sizeof path, "%s/comma", directory);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", directory);
    FILE *to = fopen(path, "wb");
    assert_non_null(to);
    assert_int_equal(fwrite(file, 1, sizeof file, to), sizeof file);
    assert_int_equal(fclose(to), 0);
}

TEST(a_host_with_a_decimal_comma_changes_nothing)
{
    char directory[200];
    test_dir_make(directory, sizeof directory);
    write_comma_locale(directory);
    setenv("LOCPATH", directory, 1);
    bool known = setlocale(LC_NUMERIC, "comma") != NULL;
    test_dir_remove(directory);
    if (!known)
        skip(); /* another C library */
    char text[8];
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5");
    expect_real(0.5, "0.5");
    expect_real(1e-7, "1e-07");
    check_reals(3);
    json_t *json = json_loads("[0.5]", 0, NULL); /* jansson minds it too */
    assert_true(json_real_value(json_array_get(json, 0)) == 0.5);
    json_decref(json);
    setlocale(LC_NUMERIC, "C");
}

TEST(base64_is_that_of_the_standard)
{
    static const struct {
        const char *bytes;
        const char *text;
    } cases[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"\xfb\xff\xfe", "+//+"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[16];
        pawl_bytes bytes = text_bytes(cases[i].bytes);
        form_base64_write(bytes, text);
        assert_int_equal(form_base64_size(bytes.size), strlen(cases[i].text));
        assert_memory_equal(text, cases[i].text, strlen(cases[i].text));
    }
}

TEST(bytes_come_back)
{
    uint64_t seed = test_seed(5);
    for (size_t i = 0; i < 2000; i++) {
        uint8_t bytes[64], back[64];
        char text[88];
        size_t size = test_below(&seed, sizeof bytes), got = 99;
        for (size_t k = 0; k < size; k++)
            bytes[k] = (uint8_t)test_random(&seed);
        form_base64_write((pawl_bytes){bytes, size}, text);
        assert_true(form_base64_read((pawl_bytes){text, form_base64_size(size)}, back, &got));
        assert_int_equal(got, size);
        assert_memory_equal(back, bytes, size);
    }
}

TEST(base64_in_an_address_has_no_padding_and_two_other_digits)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"", ""}, {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"}, {"\xfb\xff", "-_8"}, {"\xff\xef\xbe", "_---"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[8] = {0};
        size_t size = form_base64url_write(text_bytes(cases[i].bytes), text);
        assert_int_equal(size, strlen(cases[i].text));
        assert_memory_equal(text, cases[i].text, size);
    }
}

TEST(what_is_no_base64_is_refused)
{
    static const char *const cases[] = {
        "Z",        "Zg",   "Zg=",  "Zg===", "=",      "====",       "Z===", "=g==", "Zh==",     "Zm9=",
        "Zg==Zg==", "Zm9-", "Zm9_", "Zm 9",  "Zm9v\n", "Zm9vYg==\n", "Z=g=", "Zm=v", "Zm9vZ===", "\xc3\xa9==",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[16];
        size_t size = 77;
        print_message("# case %zu\n", i);
        assert_false(form_base64_read(text_bytes(cases[i]), bytes, &size));
        assert_int_equal(size, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_integer_has_one_form),
        RUN(integers_come_back),
        RUN(a_real_has_as_few_digits_as_read_back),
        RUN(reals_come_back),
        RUN(a_host_with_a_decimal_comma_changes_nothing),
        RUN(base64_is_that_of_the_standard),
        RUN(bytes_come_back),
        RUN(base64_in_an_address_has_no_padding_and_two_other_digits),
        RUN(what_is_no_base64_is_refused),
    };
    return TEST_MAIN(tests);
}
