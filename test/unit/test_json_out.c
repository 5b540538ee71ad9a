/* JSON text that grows: commas, escapes, large numbers, and memory that runs out. */
#include "test/lib/test.h"

#include <jansson.h>

#include "engine/json/out.h"
#include "test/lib/alloc.h"

static void expect(const struct json_out *out, const char *text)
{
    assert_ok(out->status);
    assert_int_equal(out->size, strlen(text));
    assert_memory_equal(out->data, text, out->size);
}

static void write_some_of_everything(struct json_out *out)
{
    out_open(out, '{');
    out_key(out, "list");
    out_open(out, '[');
    out_unsigned(out, 1);
    out_integer(out, -2);
    out_text(out, text_bytes("{["));
    out_text(out, text_bytes(""));
    out_open(out, '{');
    out_close(out, '}');
    out_open(out, '[');
    out_close(out, ']');
    out_null(out);
    out_close(out, ']');
    out_number_name(out, 200017);
    out_flag(out, true);
    out_key(out, "b");
    out_bytes(out, text_bytes("foob"));
    out_key(out, "t");
    out_timestamp(out, 0);
    out_key(out, "r");
    out_real(out, 0.5);
    out_close(out, '}');
}

static const char everything[] = "{\"list\":[1,-2,\"{[\",\"\",{},[],null],\"200017\":true,\"b\":\"Zm9vYg==\","
                                 "\"t\":\"1970-01-01T00:00:00Z\",\"r\":0.5}";

TEST(commas_come_by_themselves)
{
    struct json_out out;
    json_out_init(&out, NULL);
    write_some_of_everything(&out);
    expect(&out, everything);
    json_out_release(&out);
}

TEST(lines_stand_beside_each_other)
{
    struct json_out out;
    json_out_init(&out, NULL);
    for (int i = 0; i < 2; i++) {
        out_open(&out, '{');
        out_close(&out, '}');
        out_raw(&out, text_bytes("\ndata: "));
    }
    expect(&out, "{}\ndata: {}\ndata: ");
    json_out_release(&out);
}

TEST(integers_that_a_double_would_round_are_strings)
{
    struct json_out out;
    json_out_init(&out, NULL);
    out_open(&out, '[');
    out_integer(&out, (INT64_C(1) << 53) - 1);
    out_integer(&out, INT64_C(1) << 53);
    out_integer(&out, 1 - (INT64_C(1) << 53));
    out_integer(&out, -(INT64_C(1) << 53));
    out_integer(&out, INT64_MIN);
    out_unsigned(&out, (UINT64_C(1) << 53) - 1);
    out_unsigned(&out, UINT64_MAX);
    out_close(&out, ']');
    expect(&out, "[9007199254740991,\"9007199254740992\",-9007199254740991,\"-9007199254740992\","
                 "\"-9223372036854775808\",9007199254740991,\"18446744073709551615\"]");
    json_out_release(&out);
}

TEST(text_is_escaped_and_mended)
{
    static const struct {
        pawl_bytes text;
        const char *expected;
    } cases[] = {
        {{NULL, 0}, "\"\""},
        {{"a\"b\\c/", 6}, "\"a\\\"b\\\\c/\""},
        {{"\b\f\n\r\t", 5}, "\"\\b\\f\\n\\r\\t\""},
        {{"\0\x01\x1f\x7f", 4}, "\"\\u0000\\u0001\\u001f\x7f\""},
        {{"gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xbe", 11}, "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xbe\""},
        {{"a\xff"
          "b",
          3},
         "\"a\xef\xbf\xbd"
         "b\""},
        {{"\xc3\xbc\xc3", 3}, "\"\xc3\xbc\xef\xbf\xbd\""},
        {{"\xed\xa0\x80", 3}, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json_out out;
        json_out_init(&out, NULL);
        out_text(&out, cases[i].text);
        expect(&out, cases[i].expected);
        json_out_release(&out);
    }
}

TEST(any_bytes_at_all_become_json)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < 2000; i++) {
        char bytes[40];
        size_t size = test_below(&seed, sizeof bytes);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (char)test_random(&seed);
        struct json_out out;
        json_out_init(&out, NULL);
        out_text(&out, (pawl_bytes){bytes, size});
        json_t *json = json_loadb(out.data, out.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(json);
        json_decref(json);
        json_out_release(&out);
    }
}

TEST(a_failure_to_grow_is_kept_until_the_text_is_taken_back)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct json_out out;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        json_out_init(&out, &memory.allocator);
        for (int i = 0; i < 20; i++)
            write_some_of_everything(&out);
        bool failed = test_alloc_failed(&memory);
        assert_status(out.status, failed ? PAWL_ENOMEM : PAWL_OK);
        json_out_rewind(&out, 0);
        write_some_of_everything(&out);
        expect(&out, everything);
        json_out_release(&out);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

static void check_error(int code, const char *words, const char *expected)
{
    pawl_error error = {.code = code};
    char text[PAWL_ERROR_JSON_MAX];
    snprintf(error.text, sizeof error.text, "%s", words);
    size_t size = pawl_error_json(&error, text);
    assert_int_equal(size, strlen(text));
    assert_string_equal(text, expected);
}

TEST(an_error_is_json_with_its_place)
{
    check_error(PAWL_EINVAL, "$.records[0].fields.qty: expected an integer, not null",
                "{\"code\":\"PAWL_EINVAL\",\"message\":\"expected an integer, not null\","
                "\"where\":\"$.records[0].fields.qty\"}");
    check_error(PAWL_EINVAL, "line 3, column 14: a \"quote\"",
                "{\"code\":\"PAWL_EINVAL\",\"message\":\"a \\\"quote\\\"\",\"where\":\"line 3, column 14\"}");
    check_error(PAWL_ENOMEM, "", "{\"code\":\"PAWL_ENOMEM\",\"message\":\"out of memory\"}");
}

/* All bytes at once that take most room. */
TEST(the_longest_error_fits)
{
    pawl_error error = {.code = PAWL_EUNKNOWN_SEQ};
    char text[PAWL_ERROR_JSON_MAX];
    memset(error.text, 1, sizeof error.text - 1);
    size_t size = pawl_error_json(&error, text);
    assert_true(size > 6 * (sizeof error.text - 1));
    assert_int_equal(size, strlen(text));
    assert_int_equal(text[size - 1], '}');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(commas_come_by_themselves),
        RUN(lines_stand_beside_each_other),
        RUN(integers_that_a_double_would_round_are_strings),
        RUN(text_is_escaped_and_mended),
        RUN(any_bytes_at_all_become_json),
        RUN(a_failure_to_grow_is_kept_until_the_text_is_taken_back),
        RUN(an_error_is_json_with_its_place),
        RUN(the_longest_error_fits),
    };
    return TEST_MAIN(tests);
}
