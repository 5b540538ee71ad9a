/* The expression language: which texts are expressions, of which types, and how all others are refused. */
#include "test/lib/test.h"

#include "test/lib/alloc.h"
#include "test/lib/expr.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* One byte less than a message shows. */
#define LONG "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghi"

struct pair {
    const char *text;
    const char *expected;
};

TEST(the_type_is_known_when_it_is_compiled)
{
    static const struct {
        const char *text;
        enum value_type type;
    } cases[] = {
        {"null", VALUE_NULL},
        {"1", VALUE_INT64},
        {"i + null", VALUE_INT64},
        {"null + null", VALUE_NULL},
        {"i + 1.0", VALUE_FLOAT64},
        {"-f", VALUE_FLOAT64},
        {"null || null", VALUE_STRING},
        {"null = null", VALUE_BOOL},
        {"null and null", VALUE_BOOL},
        {"not null", VALUE_BOOL},
        {"null in (null)", VALUE_BOOL},
        {"null is null", VALUE_BOOL},
        {"starts_with(null, null)", VALUE_BOOL},
        {"coalesce(null, i)", VALUE_INT64},
        {"coalesce(i, f)", VALUE_FLOAT64},
        {"coalesce(null, null)", VALUE_NULL},
        {"y", VALUE_BYTES},
        {"at", VALUE_TIMESTAMP},
        {"kind", VALUE_QNAME},
        {"owner", VALUE_REF},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct expr *expr;
        assert_ok(bed_compile(cases[i].text, VALUE_NULL, &expr, NULL));
        if (expr_type(expr) != cases[i].type)
            fail_msg("%s is of type %d", cases[i].text, expr_type(expr));
        expr_free(expr);
    }
}

static void check_refusals(const struct pair *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct expr *expr = NULL;
        pawl_error error = {0};
        int status = bed_compile(cases[i].text, VALUE_NULL, &expr, &error);
        if (status != PAWL_EINVAL || strcmp(error.text, cases[i].expected) != 0)
            fail_msg("%s\n      is %s: %s\nexpected %s", cases[i].text, pawl_status_name(status), error.text,
                     cases[i].expected);
        assert_int_equal(error.code, status);
        assert_null(expr);
    }
}

TEST(what_is_no_expression_is_refused_with_its_place)
{
    static const struct pair cases[] = {
        {"", "line 1, column 1: expected a value, found the end"},
        {"  \n ", "line 2, column 2: expected a value, found the end"},
        {"1 +", "line 1, column 4: expected a value, found the end"},
        {"1 + * 2", "line 1, column 5: expected a value, found '*'"},
        {"(1", "line 1, column 3: expected ')', found the end"},
        {"1)", "line 1, column 2: expected an operator or the end, found ')'"},
        {"1 2", "line 1, column 3: expected an operator or the end, found '2'"},
        {"i 'x'", "line 1, column 3: expected an operator or the end, found a string"},
        {"i $event.doc.i", "line 1, column 3: expected an operator or the end, found '$event.doc.i'"},
        {"i in ()", "line 1, column 7: expected a value, found ')'"},
        {"i in 1", "line 1, column 6: expected '(', found '1'"},
        {"i in (1,)", "line 1, column 9: expected a value, found ')'"},
        {"i in (1 2)", "line 1, column 9: expected ')', found '2'"},
        {"i not 1", "line 1, column 7: expected 'in', found '1'"},
        {"i is 1", "line 1, column 6: expected 'null', found '1'"},
        {"i is not", "line 1, column 9: expected 'null', found the end"},
        {"i <> 1", "line 1, column 4: expected a value, found '>'"},
        {"i == 1", "line 1, column 4: expected a value, found '='"},
        {"not", "line 1, column 4: expected a value, found the end"},
        {"and", "line 1, column 1: expected a value, found 'and'"},
        {"coalesce(1)", "line 1, column 11: expected ',', found ')'"},
        {"coalesce()", "line 1, column 10: expected a value, found ')'"},
        {"coalesce", "line 1, column 9: expected '(', found the end"},
        {"coalesce(null, 1", "line 1, column 17: expected ')', found the end"},
        {"starts_with(s)", "line 1, column 14: expected ',', found ')'"},
        {"starts_with(s, s, s)", "line 1, column 17: expected ')', found ','"},
        {"1 < 2 < 3", "line 1, column 7: expected 'and', 'or' or the end, as comparisons do not chain without "
                      "brackets, found '<'"},
        {"1 in (1) in (true)",
         "line 1, column 10: expected 'and', 'or' or the end, as comparisons do not chain "
         "without brackets, found 'in'"},
        {"i = 1\n  and\n  j ! 2", "line 3, column 5: '!' means nothing here"},
        {"'\xc3\xa4\xc3\xa4' # 1", "line 1, column 6: '#' means nothing here"},
        {"\xc3\xa4", "line 1, column 1: the byte 0xc3 means nothing outside a string"},
        {"1 = 'abc", "line 1, column 5: the string that begins here has no end"},
        {"'a''", "line 1, column 1: the string that begins here has no end"},
        {"'ab\xff'", "line 1, column 4: the string is not valid UTF-8"},
        {"'\xc0\x80'", "line 1, column 2: the string is not valid UTF-8"},
        {"'\xed\xa0\x80'", "line 1, column 2: the string is not valid UTF-8"},
        {"'\xf4\x90\x80\x80'", "line 1, column 2: the string is not valid UTF-8"},
        {"'\xe0\x9f\xbf'", "line 1, column 2: the string is not valid UTF-8"},
        {"'\xc3", "line 1, column 2: the string is not valid UTF-8"},
        {"1.", "line 1, column 3: expected a digit"},
        {".5", "line 1, column 1: '.' means nothing here"},
        {"1e", "line 1, column 3: expected a digit"},
        {"1e+", "line 1, column 4: expected a digit"},
        {"1x", "line 1, column 2: a number does not go on with 'x'"},
        {"1.2.3", "line 1, column 4: a number does not go on with '.'"},
        {"9223372036854775808", "line 1, column 1: the number is too large for an int64"},
        {"-9223372036854775809", "line 1, column 2: the number is too large for an int64"},
        {"-(9223372036854775808)", "line 1, column 3: the number is too large for an int64"},
        {"1e309", "line 1, column 1: the number is too large for a float64"},
        {"i.", "line 1, column 3: expected a name behind the dot"},
        {"$event.", "line 1, column 8: expected a name behind the dot"},
        {"$event", "line 1, column 1: expected $event.NAME: no other name begins with '$'"},
        {"$evening.x", "line 1, column 1: expected $event.NAME: no other name begins with '$'"},
        {"1 = nope", "line 1, column 5: there is no field 'nope'"},
        {"doc.i", "line 1, column 1: there is no field 'doc.i'"},
        {"$event.i", "line 1, column 1: there is no value '$event.i'"},
        {LONG "xyz", "line 1, column 1: there is no field '" LONG "x'"},
        {"'" LONG "\xc3\xa4' = kind", "line 1, column 1: there is no qualified name '" LONG "'"},
        {"kind = 'shop.nope'", "line 1, column 8: there is no qualified name 'shop.nope'"},
    };
    check_refusals(cases, LENGTH(cases));
}

TEST(what_does_not_fit_together_is_refused_with_its_place)
{
    static const struct pair cases[] = {
        {"1 + 'a'", "line 1, column 5: + takes numbers, and this is a string"},
        {"s - 1", "line 1, column 1: - takes numbers, and this is a string"},
        {"at + 1", "line 1, column 1: + takes numbers, and this is a timestamp"},
        {"1 * owner", "line 1, column 5: * takes numbers, and this is a ref"},
        {"b / 1", "line 1, column 1: / takes numbers, and this is a bool"},
        {"-s", "line 1, column 2: - takes numbers, and this is a string"},
        {"s || 1", "line 1, column 6: || takes a string, and this is an int64"},
        {"y || s", "line 1, column 1: || takes a string, and this is bytes"},
        {"1 and true", "line 1, column 1: and takes a bool, and this is an int64"},
        {"true or 's'", "line 1, column 9: or takes a bool, and this is a string"},
        {"not 1", "line 1, column 5: not takes a bool, and this is an int64"},
        {"starts_with(s, 1)", "line 1, column 16: starts_with takes a string, and this is an int64"},
        {"starts_with(y, s)", "line 1, column 13: starts_with takes a string, and this is bytes"},
        {"s = 1", "line 1, column 3: a string does not compare with an int64"},
        {"s = y", "line 1, column 3: a string does not compare with bytes"},
        {"b = 1", "line 1, column 3: a bool does not compare with an int64"},
        {"b < c", "line 1, column 3: a bool has no order: only = and !="},
        {"null >= c", "line 1, column 6: a bool has no order: only = and !="},
        {"kind < 'shop.item'", "line 1, column 6: a qualified name has no order: only = and !="},
        {"kind = s", "line 1, column 6: a qualified name does not compare with a string"},
        {"kind = 1", "line 1, column 6: a qualified name does not compare with an int64"},
        {"at = s", "line 1, column 4: a timestamp does not compare with a string"},
        {"at = 1", "line 1, column 4: a timestamp does not compare with an int64"},
        {"at = '2026-02-29'", "line 1, column 6: expected a timestamp from 1677-09-21 to 2262-04-11, such as "
                              "'2026-11-16' or '2026-11-16T03:20:00.5Z'"},
        {"owner = 1.0", "line 1, column 7: a ref does not compare with a float64"},
        {"owner = 's'", "line 1, column 7: a ref does not compare with a string"},
        {"i in (1, 's')", "line 1, column 10: an int64 does not compare with a string"},
        {"'shop.item' in ('x', kind)", "line 1, column 22: a string does not compare with a qualified name"},
        {"coalesce(i, s)", "line 1, column 13: expected an int64, as before, and this is a string"},
        {"coalesce(null, at, i)", "line 1, column 20: expected a timestamp, as before, and this is an int64"},
        {"coalesce(owner, i)", "line 1, column 17: expected a ref, as before, and this is an int64"},
        {"1 = (null is null) is null", "line 1, column 3: an int64 does not compare with a bool"},
    };
    check_refusals(cases, LENGTH(cases));
}

/* text = count times head, then middle, then count times tail. */
static int compile_repeated(const char *head, size_t count, const char *middle, const char *tail,
                            pawl_error *error)
{
    size_t size = count * (strlen(head) + strlen(tail)) + strlen(middle) + 1, used = 0;
    char *text = malloc(size);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s", head);
    used += (size_t)snprintf(text + used, size - used, "%s", middle);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s", tail);
    struct expr *expr = NULL;
    int status = bed_compile(text, VALUE_NULL, &expr, error);
    if (status == PAWL_OK) {
        struct expr_bed bed = {0};
        struct expr_source source = bed_source(&bed);
        struct value v;
        assert_ok(expr_eval(expr, &source, NULL, &v, NULL));
    }
    expr_free(expr);
    free(text);
    return status;
}

TEST(the_limits_hold_and_are_named)
{
    static const struct {
        const char *head;
        const char *middle;
        const char *tail;
        size_t most;
        const char *words;
    } cases[] = {
        {"(", "i", ")", 100, "line 1, column 102: nested deeper than 100 levels"},
        {"not ", "b", "", 100, "nested deeper than 100 levels"},
        {"- ", "i", "", 100, "nested deeper than 100 levels"},
        {"coalesce(null, ", "i", ")", 100, "nested deeper than 100 levels"},
        {"0 + (", "i", ")", 100, "nested deeper than 100 levels"},
        {"", "0", " + i * 0", 249, "an expression has at most 1000 names, literals and operators"},
        {"", "b", " and b", 333, "an expression has at most 1000 names, literals and operators"},
        {"true = (", "true", ")", 100, "nested deeper than 100 levels"},
        {"false or true and (", "b", ")", 63, "nested too deeply: more than 128 values wait"},
        {" ", "i", "", EXPR_TEXT_BYTES_MAX - 1, "an expression has at most 65536 bytes, not 65537"},
        {"", "1", "0", 18, "the number is too large"},
        {"", "0.0", "0", 97, "line 1, column 1: a number has at most 100 characters"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        pawl_error error = {0};
        if (compile_repeated(cases[i].head, cases[i].most, cases[i].middle, cases[i].tail, &error) != PAWL_OK)
            fail_msg("case %zu: %s", i, error.text);
        int status = compile_repeated(cases[i].head, cases[i].most + 1, cases[i].middle, cases[i].tail, &error);
        if (status == PAWL_OK)
            fail_msg("case %zu passes", i);
        assert_contains(error.text, cases[i].words);
    }
}

TEST(a_list_is_as_long_as_the_instructions_allow)
{
    pawl_error error = {0};
    for (size_t n = 498; n <= 499; n++) {
        char text[2048];
        size_t used = (size_t)snprintf(text, sizeof text, "i in (1");
        for (size_t i = 1; i < n; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, ",1");
        snprintf(text + used, sizeof text - used, ")");
        struct expr *expr = NULL;
        assert_status(bed_compile(text, VALUE_NULL, &expr, &error), n == 498 ? PAWL_OK : PAWL_ETOOBIG);
        expr_free(expr);
    }
}

static int note_slot(void *ctx, uint32_t slot)
{
    char *text = ctx;
    size_t used = strlen(text);
    snprintf(text + used, 64 - used, "%s%u", used ? " " : "", slot);
    return slot == VAR_C ? -77 : 0;
}

TEST(the_slots_it_uses_are_told_once_each)
{
    static const struct {
        const char *text;
        const char *slots;
        int status;
    } cases[] = {
        {"1 + 2", "", 0},
        {"i + j * i", "0 1", 0},
        {"false and s = 'x' or $event.doc.i > i", "6 13 0", 0},
        {"coalesce(s, t, s)", "6 7", 0},
        {"b or c or i = 1", "4 5", -77},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char slots[64] = "";
        struct expr *expr;
        assert_ok(bed_compile(cases[i].text, VALUE_NULL, &expr, NULL));
        assert_int_equal(expr_uses(expr, note_slot, slots), cases[i].status);
        assert_string_equal(slots, cases[i].slots);
        expr_free(expr);
    }
}

static int resolve_badly(void *ctx, enum expr_name kind, pawl_bytes path, uint32_t *ret_slot,
                         enum value_type *ret_type)
{
    return PAWL_EIO;
}

TEST(a_scopes_own_error_is_handed_on)
{
    struct expr_scope scope = {.resolve = resolve_badly};
    struct expr *expr = NULL;
    pawl_error error = {0};
    assert_status(expr_compile(text_bytes("1 = i"), &scope, NULL, &expr, &error), PAWL_EIO);
    assert_contains(error.text, "line 1, column 5: cannot look up 'i': ");
    assert_null(expr);

    scope = bed_scope(VALUE_NULL);
    scope.resolve_qname = NULL;
    assert_status(expr_compile(text_bytes("kind = 'shop.item'"), &scope, NULL, &expr, &error), PAWL_EINVAL);
    assert_contains(error.text, "there is no qualified name");
}

TEST(keywords_are_reserved_in_any_case)
{
    static const char *const words[] = {"and",  "OR",   "Not",   "in",          "is",
                                        "null", "true", "false", "starts_with", "Coalesce"};
    for (size_t i = 0; i < LENGTH(words); i++)
        assert_true(expr_is_reserved(text_bytes(words[i])));
    static const char *const names[] = {"", "an", "android", "event", "nulls", "x"};
    for (size_t i = 0; i < LENGTH(names); i++)
        assert_false(expr_is_reserved(text_bytes(names[i])));
    assert_false(expr_is_reserved((pawl_bytes){"and\0and", 7}));
}

TEST(memory_may_be_refused_at_any_point)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct expr_scope scope = bed_scope(VALUE_BOOL);
        struct expr *expr = NULL;
        pawl_error error = {0};
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = expr_compile(text_bytes("s || 's' in ('abcx', 'it''s') and i > 1"), &scope,
                                  &memory.allocator, &expr, &error);
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        if (failed)
            assert_null(expr);
        if (!failed) {
            struct expr_bed bed = {.values = {[VAR_S] = {.type = VALUE_STRING, .bytes = text_bytes("it'")},
                                              [VAR_I] = {.type = VALUE_INT64, .integer = 2}}};
            struct expr_source source = bed_source(&bed);
            uint8_t room[16];
            struct expr_scratch scratch = {.data = room, .size = sizeof room};
            struct value v;
            uint64_t calls = memory.calls;
            assert_ok(expr_eval(expr, &source, &scratch, &v, NULL));
            assert_true(v.type == VALUE_BOOL && v.boolean);
            assert_int_equal(memory.calls, calls);
        }
        expr_free(expr);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

TEST(a_text_that_was_refused_leaves_no_memory_behind)
{
    struct test_alloc memory;
    struct expr_scope scope = bed_scope(VALUE_NULL);
    struct expr *expr = NULL;
    test_alloc_init(&memory);
    assert_status(expr_compile(text_bytes("i + 'x'"), &scope, &memory.allocator, &expr, NULL), PAWL_EINVAL);
    assert_status(expr_compile((pawl_bytes){NULL, 0}, &scope, &memory.allocator, &expr, NULL), PAWL_EINVAL);
    test_alloc_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_type_is_known_when_it_is_compiled),
        RUN(what_is_no_expression_is_refused_with_its_place),
        RUN(what_does_not_fit_together_is_refused_with_its_place),
        RUN(the_limits_hold_and_are_named),
        RUN(a_list_is_as_long_as_the_instructions_allow),
        RUN(the_slots_it_uses_are_told_once_each),
        RUN(a_scopes_own_error_is_handed_on),
        RUN(keywords_are_reserved_in_any_case),
        RUN(memory_may_be_refused_at_any_point),
        RUN(a_text_that_was_refused_leaves_no_memory_behind),
    };
    return TEST_MAIN(tests);
}
