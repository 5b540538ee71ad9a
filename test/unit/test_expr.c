/* The expression language: what texts mean. */
#include "test/lib/test.h"

#include "test/lib/expr.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static uint8_t room[256];

static struct value integer(int64_t v)
{
    return (struct value){.type = VALUE_INT64, .integer = v};
}

static struct value string(const char *text)
{
    return (struct value){.type = VALUE_STRING, .bytes = text_bytes(text)};
}

/* i=7 j=-2 f=0.5 g=4.0 b=true c=false s='abc' t='' y=01 02 at=2026-11-16 kind=shop.item owner=200001; of
 * $event, i=70 and s='event', all else null. */
static struct expr_bed some_values(void)
{
    struct expr_bed bed = {0};
    bed.values[VAR_I] = integer(7);
    bed.values[VAR_J] = integer(-2);
    bed.values[VAR_F] = (struct value){.type = VALUE_FLOAT64, .real = 0.5};
    bed.values[VAR_G] = (struct value){.type = VALUE_FLOAT64, .real = 4};
    bed.values[VAR_B] = (struct value){.type = VALUE_BOOL, .boolean = true};
    bed.values[VAR_C] = (struct value){.type = VALUE_BOOL, .boolean = false};
    bed.values[VAR_S] = string("abc");
    bed.values[VAR_T] = string("");
    bed.values[VAR_BYTES] = (struct value){.type = VALUE_BYTES, .bytes = {"\1\2", 2}};
    bed.values[VAR_TIME] = (struct value){.type = VALUE_TIMESTAMP, .integer = INT64_C(1794787200000000000)};
    bed.values[VAR_NAME] = (struct value){.type = VALUE_QNAME, .name = 2};
    bed.values[VAR_REF] = (struct value){.type = VALUE_REF, .id = 200001};
    bed.values[EXPR_VARIABLES + VAR_I] = integer(70);
    bed.values[EXPR_VARIABLES + VAR_S] = string("event");
    return bed;
}

/* A value as a text that shows its type. */
static const char *show(const struct value *v, char *text, size_t size)
{
    switch (v->type) {
    case VALUE_NULL: return "null";
    case VALUE_BOOL: return v->boolean ? "true" : "false";
    case VALUE_INT64: snprintf(text, size, "%" PRId64, v->integer); break;
    case VALUE_FLOAT64: snprintf(text, size, "float %.17g", v->real); break;
    case VALUE_TIMESTAMP: snprintf(text, size, "time %" PRId64, v->integer); break;
    case VALUE_QNAME: snprintf(text, size, "name %d", v->name); break;
    case VALUE_REF: snprintf(text, size, "ref %" PRIu64, v->id); break;
    case VALUE_STRING:
    case VALUE_BYTES: snprintf(text, size, "'%.*s'", (int)v->bytes.size, (const char *)v->bytes.data); break;
    }
    return text;
}

/* What the text gives, or what the evaluation says against it. */
static const char *result_of(const char *text, enum value_type want, char *shown, size_t size)
{
    struct expr_bed bed = some_values();
    struct expr_source source = bed_source(&bed);
    struct expr_scratch scratch = {.data = room, .size = sizeof room};
    struct expr *expr;
    struct value v;
    pawl_error error = {0};
    if (bed_compile(text, want, &expr, &error) != PAWL_OK)
        fail_msg("%s\n%s", text, error.text);
    if (expr_eval(expr, &source, &scratch, &v, &error) != PAWL_OK) {
        snprintf(shown, size, "%s", error.text);
    } else {
        const char *words = show(&v, shown, size);
        if (words != shown)
            snprintf(shown, size, "%s", words);
        if (v.type != VALUE_NULL)
            assert_int_equal(v.type, expr_type(expr));
    }
    expr_free(expr);
    return shown;
}

struct pair {
    const char *text;
    const char *expected;
};

static void check_results(const struct pair *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char shown[sizeof(pawl_error)];
        const char *result = result_of(cases[i].text, VALUE_NULL, shown, sizeof shown);
        if (strcmp(result, cases[i].expected) != 0)
            fail_msg("%s\n   gives %s\nexpected %s", cases[i].text, result, cases[i].expected);
    }
}

TEST(literals_and_names_give_their_values)
{
    static const struct pair cases[] = {
        {"0", "0"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"007", "7"},
        {"0.5", "float 0.5"},
        {"1e2", "float 100"},
        {"12.5E-1", "float 1.25"},
        {"2e+0", "float 2"},
        {"true", "true"},
        {"FALSE", "false"},
        {"Null", "null"},
        {"''", "''"},
        {"'it''s'", "'it's'"},
        {"''''", "'''"},
        {"'line\nbreak'", "'line\nbreak'"},
        {"'gr\xc3\xbc\xc3\x9f'", "'gr\xc3\xbc\xc3\x9f'"},
        {" i ", "7"},
        {"\t\r\n(((i)))\n", "7"},
        {"$event.doc.i", "70"},
        {"$EVENT.doc.s", "'event'"},
        {"$event.doc.f", "null"},
        {"y", "'\1\2'"},
        {"at", "time 1794787200000000000"},
        {"kind", "name 2"},
        {"owner", "ref 200001"},
    };
    check_results(cases, LENGTH(cases));
}

TEST(operators_bind_as_in_sql)
{
    static const struct pair cases[] = {
        {"1 + 2 * 3", "7"},
        {"(1 + 2) * 3", "9"},
        {"10 - 3 - 2", "5"},
        {"10 - (3 - 2)", "9"},
        {"100 / 10 / 5", "2"},
        {"100 / (10 / 5)", "50"},
        {"2 * 7 / 4", "3"},
        {"2 * (7 / 4)", "2"},
        {"-i + 1", "-6"},
        {"-(i + 1)", "-8"},
        {"- - i", "7"},
        {"--5", "5"},
        {"3--5", "8"},
        {"-i * -j", "-14"},
        {"1 + 1 = 2", "true"},
        {"not 1 = 2", "true"},
        {"not false and false", "false"},
        {"not (false and false)", "true"},
        {"true or false and false", "true"},
        {"(true or false) and false", "false"},
        {"not not b", "true"},
        {"not i in (7)", "false"},
        {"i not in (7)", "false"},
        {"i + 1 in (8)", "true"},
        {"1 = null is null", "true"},
        {"null is null is null", "false"},
        {"not null is null", "false"},
        {"'a' || 'b' = 'ab'", "true"},
        {"'a' || 'b' || 'c'", "'abc'"},
        {"s || ('x' || s)", "'abcxabc'"},
    };
    check_results(cases, LENGTH(cases));
}

TEST(arithmetic_is_exact_or_refused)
{
    static const struct pair cases[] = {
        {"7 / 2", "3"},
        {"-7 / 2", "-3"},
        {"7 / -2", "-3"},
        {"-7 / -2", "3"},
        {"7 / 2.0", "float 3.5"},
        {"7.0 / 2", "float 3.5"},
        {"i + f", "float 7.5"},
        {"f * g", "float 2"},
        {"-f", "float -0.5"},
        {"9007199254740993 + 0.0", "float 9007199254740992"},
        {"9223372036854775807 + 1", "line 1, column 21: + overflows an int64"},
        {"9223372036854775806 + 1", "9223372036854775807"},
        {"-9223372036854775808 - 1", "line 1, column 22: - overflows an int64"},
        {"1\n+ 9223372036854775807", "line 2, column 1: + overflows an int64"},
        {"3037000500 * 3037000500", "line 1, column 12: * overflows an int64"},
        {"3037000499 * 3037000499", "9223372030926249001"},
        {"-9223372036854775808 / -1", "line 1, column 22: / overflows an int64"},
        {"-9223372036854775808 * -1", "line 1, column 22: * overflows an int64"},
        {"-(-9223372036854775808)", "line 1, column 1: - overflows an int64"},
        {"-9223372036854775808 / 1", "-9223372036854775808"},
        {"i / 0", "line 1, column 3: division by zero"},
        {"i / 0.0", "line 1, column 3: division by zero"},
        {"f / -0.0", "line 1, column 3: division by zero"},
        {"0 / 0", "line 1, column 3: division by zero"},
        {"1e308 * 10", "line 1, column 7: * overflows a float64"},
        {"1e308 + 1e308", "line 1, column 7: + overflows a float64"},
        {"-1e308 - 1e308", "line 1, column 8: - overflows a float64"},
        {"1e300 / 1e-300", "line 1, column 7: / overflows a float64"},
        {"1e-300 * 1e-300", "float 0"},
        {"null / 0", "null"},
        {"0 / null", "null"},
        {"9223372036854775807 + null", "null"},
        {"-null", "null"},
        {"null + null", "null"},
    };
    check_results(cases, LENGTH(cases));
}

TEST(values_compare_by_their_types_order)
{
    static const struct pair cases[] = {
        {"1 < 2", "true"},
        {"2 < 2", "false"},
        {"2 <= 2", "true"},
        {"3 > 2", "true"},
        {"2 > 2", "false"},
        {"2 >= 2", "true"},
        {"1 >= 2", "false"},
        {"1 != 2", "true"},
        {"1 != 1", "false"},
        {"1 = 1.0", "true"},
        {"1.5 > 1", "true"},
        {"9007199254740993 = 9007199254740992.0", "true"},
        {"0.0 = -0.0", "true"},
        {"'a' < 'b'", "true"},
        {"'a' < 'ab'", "true"},
        {"'' < 'a'", "true"},
        {"'Z' < 'a'", "true"},
        {"'z' < '\xc3\xa4'", "true"},
        {"b = true", "true"},
        {"b != c", "true"},
        {"y = y", "true"},
        {"y < y", "false"},
        {"at = at", "true"},
        {"at = '2026-11-16'", "true"},
        {"'2026-11-16T00:00:00.000000001Z' > at", "true"},
        {"at in ('2026-11-15', '2026-11-16T00:00:00Z')", "true"},
        {"kind = 'shop.item'", "true"},
        {"('shop.order') = kind", "false"},
        {"kind in ('shop.order', 'shop.item')", "true"},
        {"'shop.item' in (kind)", "true"},
        {"kind != $event.doc.kind", "null"},
        {"owner = 200001", "true"},
        {"200000 < owner", "true"},
        {"owner > -1", "true"},
        {"owner > j", "true"},
        {"j < owner", "true"},
        {"owner = i * 0 + 200001", "true"},
        {"owner >= owner", "true"},
        {"starts_with(s, 'ab')", "true"},
        {"starts_with(s, '')", "true"},
        {"starts_with(s, 'abcd')", "false"},
        {"starts_with(s, 'b')", "false"},
        {"STARTS_WITH ( '' , s )", "false"},
    };
    check_results(cases, LENGTH(cases));
}

TEST(logic_with_null_is_sqls)
{
    static const char *const words[] = {"true", "false", "null"};
    static const char *const conjunction[3][3] = {
        {"true", "false", "null"}, {"false", "false", "false"}, {"null", "false", "null"}};
    static const char *const disjunction[3][3] = {
        {"true", "true", "true"}, {"true", "false", "null"}, {"true", "null", "null"}};
    static const char *const equality[3][3] = {
        {"true", "false", "null"}, {"false", "true", "null"}, {"null", "null", "null"}};
    static const char *const negation[3] = {"false", "true", "null"};
    static const struct {
        const char *sign;
        const char *const (*table)[3];
    } tables[] = {{"and", conjunction}, {"or", disjunction}, {"=", equality}};
    for (size_t k = 0; k < LENGTH(tables); k++)
        for (size_t a = 0; a < 3; a++)
            for (size_t b = 0; b < 3; b++) {
                char text[64];
                snprintf(text, sizeof text, "%s %s %s", words[a], tables[k].sign, words[b]);
                check_results(&(struct pair){text, tables[k].table[a][b]}, 1);
            }
    for (size_t a = 0; a < 3; a++) {
        char text[64];
        snprintf(text, sizeof text, "not %s", words[a]);
        check_results(&(struct pair){text, negation[a]}, 1);
    }
}

TEST(null_goes_through_everything_but_is_and_coalesce)
{
    static const struct pair cases[] = {
        {"null = null", "null"},
        {"null != 1", "null"},
        {"1 < null", "null"},
        {"null >= 'a'", "null"},
        {"i = $event.doc.j", "null"},
        {"null + 1", "null"},
        {"1.5 - null", "null"},
        {"null * null", "null"},
        {"null || 'a'", "null"},
        {"'a' || null", "null"},
        {"'' || null", "null"},
        {"null || ''", "null"},
        {"starts_with(null, 'a')", "null"},
        {"starts_with('a', null)", "null"},
        {"1 in (1, null)", "true"},
        {"1 in (null, 1)", "true"},
        {"1 in (2, null)", "null"},
        {"1 in (null, 2)", "null"},
        {"1 in (2, 3)", "false"},
        {"null in (1, 2)", "null"},
        {"null in (null)", "null"},
        {"1 not in (1, null)", "false"},
        {"1 not in (2, null)", "null"},
        {"1 not in (2, 3)", "true"},
        {"null not in (1)", "null"},
        {"null is null", "true"},
        {"null is not null", "false"},
        {"i is null", "false"},
        {"i is not null", "true"},
        {"$event.doc.at is null", "true"},
        {"(1 = null) is null", "true"},
        {"coalesce(null, 1)", "1"},
        {"coalesce(null, null)", "null"},
        {"coalesce($event.doc.j, $event.doc.i, 5)", "70"},
        {"coalesce(i, 2.5)", "float 7"},
        {"coalesce(null, 2.5, i)", "float 2.5"},
        {"coalesce($event.doc.f, i) / 2", "float 3.5"},
        {"coalesce($event.doc.kind, 'shop.order')", "name 1"},
        {"coalesce($event.doc.at, '1970-01-01')", "time 0"},
        {"coalesce($event.doc.owner, 5)", "ref 5"},
        {"coalesce(null, 'a') || 'b'", "'ab'"},
    };
    check_results(cases, LENGTH(cases));
}

TEST(what_follows_a_decision_is_not_evaluated)
{
    static const struct {
        const char *text;
        int status;
        size_t loads;
    } cases[] = {
        {"c and boom = 1", PAWL_OK, 1},      {"b and boom = 1", PAWL_EIO, 2},
        {"null and boom = 1", PAWL_EIO, 1},  {"boom = 1 and c", PAWL_EIO, 1},
        {"b or boom = 1", PAWL_OK, 1},       {"c or boom = 1", PAWL_EIO, 2},
        {"null or boom = 1", PAWL_EIO, 1},   {"c and boom = 1 and boom = 2 or b or boom = 3", PAWL_OK, 2},
        {"i in (1, 7, boom)", PAWL_OK, 1},   {"i in (boom, 7)", PAWL_EIO, 2},
        {"i in (null, boom)", PAWL_EIO, 2},  {"null in (1, boom)", PAWL_EIO, 1},
        {"i in (j, i, j)", PAWL_OK, 3},      {"coalesce(null, i, boom)", PAWL_OK, 1},
        {"coalesce(boom, i)", PAWL_EIO, 1},  {"c and 1 / 0 = 1", PAWL_OK, 1},
        {"1 / 0 = 1 and c", PAWL_EINVAL, 0}, {"null + boom", PAWL_EIO, 1},
        {"null = boom", PAWL_EIO, 1},        {"i + j + i", PAWL_OK, 3},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct expr_bed bed = some_values();
        struct expr_source source = bed_source(&bed);
        struct expr *expr;
        struct value v = integer(99);
        assert_ok(bed_compile(cases[i].text, VALUE_NULL, &expr, NULL));
        int status = expr_eval(expr, &source, NULL, &v, NULL);
        if (status != cases[i].status || bed.load_count != cases[i].loads)
            fail_msg("%s: %s after %zu loads", cases[i].text, pawl_status_name(status), bed.load_count);
        if (status != PAWL_OK)
            assert_true(v.type == VALUE_INT64 && v.integer == 99);
        expr_free(expr);
    }
}

TEST(a_wanted_type_fits_the_result_or_refuses_it)
{
    static const struct {
        const char *text;
        enum value_type want;
        const char *expected;
    } good[] = {
        {"i", VALUE_FLOAT64, "float 7"},
        {"i + 1", VALUE_FLOAT64, "float 8"},
        {"'shop.item'", VALUE_QNAME, "name 2"},
        {"'1970-01-01T00:00:01Z'", VALUE_TIMESTAMP, "time 1000000000"},
        {"5", VALUE_REF, "ref 5"},
        {"null", VALUE_REF, "null"},
        {"i = 7", VALUE_BOOL, "true"},
        {"'x'", VALUE_STRING, "'x'"},
    };
    static const struct {
        const char *text;
        enum value_type want;
        const char *words;
    } bad[] = {
        {"i", VALUE_BOOL,
         "line 1, column 1: expected an expression that gives a bool, and this gives an int64"},
        {" f", VALUE_INT64, "line 1, column 2: expected an expression that gives an int64"},
        {"-5", VALUE_REF, "gives a ref, and this gives an int64"},
        {"i", VALUE_REF, "gives a ref, and this gives an int64"},
        {"s", VALUE_QNAME, "gives a qualified name, and this gives a string"},
        {"'x'", VALUE_QNAME, "line 1, column 1: there is no qualified name 'x'"},
        {"'soon'", VALUE_TIMESTAMP, "line 1, column 1: expected a timestamp"},
        {"s", VALUE_BYTES, "gives bytes, and this gives a string"},
    };
    for (size_t i = 0; i < LENGTH(good); i++) {
        char shown[sizeof(pawl_error)];
        struct expr *expr;
        assert_string_equal(result_of(good[i].text, good[i].want, shown, sizeof shown), good[i].expected);
        assert_ok(bed_compile(good[i].text, good[i].want, &expr, NULL));
        assert_int_equal(expr_type(expr), good[i].want);
        expr_free(expr);
    }
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct expr *expr = NULL;
        pawl_error error = {0};
        assert_status(bed_compile(bad[i].text, bad[i].want, &expr, &error), PAWL_EINVAL);
        assert_contains(error.text, bad[i].words);
        assert_null(expr);
    }
}

TEST(made_strings_lie_in_the_scratch_and_no_further)
{
    struct expr_bed bed = some_values();
    struct expr_source source = bed_source(&bed);
    struct expr *expr;
    struct value first, second;
    pawl_error error = {0};
    uint8_t data[16];
    struct expr_scratch scratch = {.data = data, .size = 9};
    assert_ok(bed_compile("s || '-' || t || s", VALUE_NULL, &expr, NULL));

    assert_ok(expr_eval(expr, &source, &scratch, &first, NULL));
    assert_int_equal(scratch.used, 7);
    assert_status(expr_eval(expr, &source, &scratch, &second, &error), PAWL_ETOOBIG);
    assert_string_equal(error.text, "line 1, column 3: the string is longer than the room for it");
    assert_int_equal(scratch.used, 7);
    assert_memory_equal(first.bytes.data, "abc-abc", 7);

    scratch.size = 14;
    assert_ok(expr_eval(expr, &source, &scratch, &second, NULL));
    assert_int_equal(scratch.used, 14);
    assert_memory_equal(first.bytes.data, "abc-abc", 7);
    assert_memory_equal(second.bytes.data, "abc-abc", 7);
    scratch = (struct expr_scratch){.data = data, .size = 6};
    assert_status(expr_eval(expr, &source, &scratch, &second, NULL), PAWL_ETOOBIG);
    assert_int_equal(scratch.used, 0);
    assert_status(expr_eval(expr, &source, NULL, &second, NULL), PAWL_ETOOBIG);
    expr_free(expr);
}

TEST(a_made_string_that_is_loaded_again_is_not_written_over)
{
    struct expr_bed bed = some_values();
    struct expr_source source = bed_source(&bed);
    struct expr *expr;
    struct value longer, longest;
    uint8_t data[32];
    struct expr_scratch scratch = {.data = data, .size = sizeof data};
    assert_ok(bed_compile("s || 'x'", VALUE_NULL, &expr, NULL));
    assert_ok(expr_eval(expr, &source, &scratch, &longer, NULL));
    bed.values[VAR_S] = longer;
    assert_ok(expr_eval(expr, &source, &scratch, &longest, NULL));
    assert_ok(expr_eval(expr, &source, &scratch, &longest, NULL));
    assert_int_equal(longer.bytes.size, 4);
    assert_memory_equal(longer.bytes.data, "abcx", 4);
    assert_int_equal(longest.bytes.size, 5);
    assert_memory_equal(longest.bytes.data, "abcxx", 5);
    expr_free(expr);
}

TEST(a_string_that_happens_to_lie_before_the_scratch_is_copied)
{
    struct expr_bed bed = some_values();
    struct expr_source source = bed_source(&bed);
    struct expr *expr;
    struct value v;
    uint8_t data[16] = "abc";
    struct expr_scratch scratch = {.data = data + 3, .size = 8};
    bed.values[VAR_S].bytes = (pawl_bytes){data, 3};
    assert_ok(bed_compile("s || 'x'", VALUE_NULL, &expr, NULL));
    assert_ok(expr_eval(expr, &source, &scratch, &v, NULL));
    assert_ptr_equal(v.bytes.data, scratch.data);
    assert_memory_equal(v.bytes.data, "abcx", 4);
    expr_free(expr);
}

TEST(an_empty_side_needs_no_room)
{
    static const struct pair cases[] = {{"t || s", "'abc'"}, {"s || t", "'abc'"}, {"t || t", "''"}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct expr_bed bed = some_values();
        struct expr_source source = bed_source(&bed);
        struct expr *expr;
        struct value v;
        char shown[64];
        bed.values[VAR_T].bytes.data = NULL;
        assert_ok(bed_compile(cases[i].text, VALUE_NULL, &expr, NULL));
        assert_ok(expr_eval(expr, &source, NULL, &v, NULL));
        assert_string_equal(show(&v, shown, sizeof shown), cases[i].expected);
        expr_free(expr);
    }
}

TEST(a_source_that_breaks_its_word_is_found_out)
{
    struct expr_bed bed = some_values();
    struct expr_source source = bed_source(&bed);
    struct expr *expr;
    struct value v;
    pawl_error error = {0};
    bed.values[VAR_I] = string("seven");
    assert_ok(bed_compile("1 + i", VALUE_NULL, &expr, NULL));
    assert_status(expr_eval(expr, &source, NULL, &v, &error), PAWL_EMISUSE);
    assert_string_equal(error.text, "line 1, column 5: the value is not of the type that was declared");
    expr_free(expr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(literals_and_names_give_their_values),
        RUN(operators_bind_as_in_sql),
        RUN(arithmetic_is_exact_or_refused),
        RUN(values_compare_by_their_types_order),
        RUN(logic_with_null_is_sqls),
        RUN(null_goes_through_everything_but_is_and_coalesce),
        RUN(what_follows_a_decision_is_not_evaluated),
        RUN(a_wanted_type_fits_the_result_or_refuses_it),
        RUN(made_strings_lie_in_the_scratch_and_no_further),
        RUN(a_made_string_that_is_loaded_again_is_not_written_over),
        RUN(a_string_that_happens_to_lie_before_the_scratch_is_copied),
        RUN(an_empty_side_needs_no_room),
        RUN(a_source_that_breaks_its_word_is_found_out),
    };
    return TEST_MAIN(tests);
}
