/* Rows: what is written is read back, equal values have equal bytes, and no byte can be changed without being
 * refused or giving another sound row. */
#include "base/bytes.h"
#include "core/schema/row.h"
#include "test/lib/test.h"

#define FIELDS 40

static struct schema_field fields_of(enum value_type type)
{
    return (struct schema_field){.name = {"f", 1}, .type = type};
}

static struct value random_value(uint64_t *seed, enum value_type type, char *text, size_t room)
{
    static const double reals[] = {0, 1.5, -1.5, 1e300, -1e-300, 5e-324};
    struct value v = {.type = type};
    size_t size = test_below(seed, room);
    switch (type) {
    case VALUE_NULL: break;
    case VALUE_INT64:
    case VALUE_TIMESTAMP: v.integer = (int64_t)test_random(seed); break;
    case VALUE_FLOAT64: v.real = reals[test_below(seed, 6)]; break;
    case VALUE_BOOL: v.boolean = test_below(seed, 2); break;
    case VALUE_QNAME: v.name = (uint16_t)test_random(seed); break;
    case VALUE_REF: v.id = test_random(seed); break;
    case VALUE_STRING:
    case VALUE_BYTES:
        for (size_t i = 0; i < size; i++)
            text[i] = (char)test_below(seed, type == VALUE_STRING ? 128 : 256);
        v.bytes = (pawl_bytes){text, size};
        break;
    }
    return v;
}

static bool same(struct value a, struct value b)
{
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case VALUE_NULL: return true;
    case VALUE_INT64:
    case VALUE_TIMESTAMP: return a.integer == b.integer;
    case VALUE_FLOAT64: return a.real == b.real;
    case VALUE_BOOL: return a.boolean == b.boolean;
    case VALUE_QNAME: return a.name == b.name;
    case VALUE_REF: return a.id == b.id;
    case VALUE_STRING:
    case VALUE_BYTES: return bytes_equal(a.bytes, b.bytes);
    }
    return false;
}

struct sample {
    struct schema_field fields[FIELDS];
    struct value values[FIELDS];
    char texts[FIELDS][24];
    size_t count;
    uint8_t *row;
    size_t size;
};

/* The row has exactly its bytes, so that a sanitizer sees the first one read beyond it. */
static void sample_write(struct sample *s)
{
    assert_ok(row_size(s->values, s->count, &s->size));
    s->row = malloc(s->size);
    assert_non_null(s->row);
    row_write(s->values, s->count, s->row);
}

static void sample_make(struct sample *s, uint64_t *seed)
{
    s->count = test_below(seed, FIELDS + 1);
    for (size_t i = 0; i < s->count; i++) {
        s->fields[i] = fields_of(1 + (enum value_type)test_below(seed, VALUE_TYPE_LAST));
        bool null = test_below(seed, 3) == 0;
        s->values[i] = random_value(seed, null ? VALUE_NULL : s->fields[i].type, s->texts[i], 24);
    }
    sample_write(s);
}

TEST(random_rows_are_read_back)
{
    uint64_t seed = test_seed(1);
    for (int round = 0; round < 3000; round++) {
        struct sample s;
        sample_make(&s, &seed);
        struct row row;
        pawl_error error;
        assert_ok(row_open(s.fields, s.count, (pawl_bytes){s.row, s.size}, &row, &error));
        assert_int_equal(row_fields(row), s.count);
        for (size_t i = 0; i < s.count; i++)
            assert_true(same(row_get(row, i, s.fields[i].type), s.values[i]));
        assert_int_equal(row_get(row, s.count, VALUE_INT64).type, VALUE_NULL);
        free(s.row);
    }
}

/* Read everything that an opened row has, and write it again: the bytes must be the same. */
static void assert_sound(const struct sample *s, const uint8_t *bytes, size_t size)
{
    struct row row;
    pawl_error error;
    int status = row_open(s->fields, s->count, (pawl_bytes){bytes, size}, &row, &error);
    if (status) {
        assert_true(status == PAWL_ECORRUPT || status == PAWL_EVERSION);
        assert_int_equal(error.code, status);
        return;
    }
    if (row_fields(row) > s->count)
        return;
    struct value values[FIELDS];
    for (size_t i = 0; i < row_fields(row); i++)
        values[i] = row_get(row, i, s->fields[i].type);
    size_t again_size;
    assert_ok(row_size(values, row_fields(row), &again_size));
    assert_int_equal(again_size, size);
    uint8_t *again = malloc(size);
    assert_non_null(again);
    row_write(values, row_fields(row), again);
    assert_memory_equal(again, bytes, size);
    free(again);
}

TEST(a_changed_byte_is_refused_or_gives_another_sound_row)
{
    uint64_t seed = test_seed(2);
    for (int round = 0; round < 200; round++) {
        struct sample s;
        sample_make(&s, &seed);
        for (size_t i = 0; i < s.size; i++)
            for (unsigned bit = 0; bit < 8; bit++) {
                s.row[i] ^= (uint8_t)(1u << bit);
                assert_sound(&s, s.row, s.size);
                s.row[i] ^= (uint8_t)(1u << bit);
            }
        free(s.row);
    }
}

/* What row_borrow lets pass: a field is refused, or has bytes that lie in the row. */
static void assert_peeks_inside(const struct sample *s, const uint8_t *bytes, size_t size)
{
    struct row row, checked;
    if (row_borrow((pawl_bytes){bytes, size}, &row, NULL))
        return;
    bool sound = row_open(s->fields, s->count, (pawl_bytes){bytes, size}, &checked, NULL) == PAWL_OK;
    for (size_t i = 0; i < s->count; i++) {
        struct value value;
        int status = row_peek(row, i, s->fields[i].type, &value);
        assert_true(status == PAWL_ECORRUPT || status == PAWL_OK);
        if (sound) {
            assert_ok(status);
            assert_true(same(value, row_get(checked, i, s->fields[i].type)));
        }
        if (status == PAWL_OK && (value.type == VALUE_STRING || value.type == VALUE_BYTES)) {
            const uint8_t *at = value.bytes.data;
            assert_true(at >= bytes && at <= bytes + size);
            assert_true(value.bytes.size <= (size_t)(bytes + size - at));
        }
    }
}

TEST(a_field_of_an_unchecked_row_is_checked_when_it_is_read)
{
    uint64_t seed = test_seed(3);
    for (int round = 0; round < 200; round++) {
        struct sample s;
        sample_make(&s, &seed);
        assert_peeks_inside(&s, s.row, s.size);
        for (size_t i = 0; i < s.size; i++)
            for (unsigned bit = 0; bit < 8; bit++) {
                s.row[i] ^= (uint8_t)(1u << bit);
                assert_peeks_inside(&s, s.row, s.size);
                s.row[i] ^= (uint8_t)(1u << bit);
            }
        free(s.row);
    }
}

TEST(a_row_cut_anywhere_is_refused)
{
    uint64_t seed = test_seed(3);
    for (int round = 0; round < 200; round++) {
        struct sample s;
        sample_make(&s, &seed);
        for (size_t size = 0; size < s.size; size++) {
            uint8_t *cut = malloc(size ? size : 1);
            assert_non_null(cut);
            memcpy(cut, s.row, size);
            struct row row;
            assert_status(row_open(s.fields, s.count, (pawl_bytes){cut, size}, &row, NULL), PAWL_ECORRUPT);
            free(cut);
        }
        free(s.row);
    }
}

TEST(a_type_may_grow_and_old_rows_stay)
{
    struct value values[] = {{.type = VALUE_INT64, .integer = 7}, {.type = VALUE_STRING, .bytes = {"ab", 2}}};
    struct schema_field fields[] = {fields_of(VALUE_INT64), fields_of(VALUE_STRING), fields_of(VALUE_REF)};
    struct sample s = {.count = 2};
    memcpy(s.values, values, sizeof values);
    sample_write(&s);
    struct row row;
    assert_ok(row_open(fields, 3, (pawl_bytes){s.row, s.size}, &row, NULL));
    assert_int_equal(row_get(row, 0, VALUE_INT64).integer, 7);
    assert_int_equal(row_get(row, 2, VALUE_REF).type, VALUE_NULL);
    free(s.row);
}

TEST(a_row_of_a_later_schema_is_read_as_far_as_the_type_goes)
{
    struct value values[] = {{.type = VALUE_STRING, .bytes = {"ab", 2}},
                             {.type = VALUE_BYTES, .bytes = {"xyz", 3}}};
    struct schema_field fields[] = {fields_of(VALUE_STRING)};
    struct sample s = {.count = 2};
    memcpy(s.values, values, sizeof values);
    sample_write(&s);
    struct row row;
    assert_ok(row_open(fields, 1, (pawl_bytes){s.row, s.size}, &row, NULL));
    assert_true(same(row_get(row, 0, VALUE_STRING), values[0]));
    assert_int_equal(row_fields(row), 2);
    free(s.row);
}

TEST(equal_values_have_equal_bytes)
{
    struct value zero = {.type = VALUE_FLOAT64, .real = 0.0}, minus = {.type = VALUE_FLOAT64, .real = -0.0};
    uint8_t a[16], b[16];
    size_t size;
    assert_ok(row_size(&zero, 1, &size));
    assert_int_equal(size, 13);
    row_write(&zero, 1, a);
    row_write(&minus, 1, b);
    assert_memory_equal(a, b, size);
}

/* What a slot may not hold, whatever wrote it. */
TEST(refuses_bytes_that_no_value_has)
{
    static const struct {
        enum value_type type;
        uint64_t slot;
    } cases[] = {
        {VALUE_BOOL, 2},
        {VALUE_QNAME, 65536},
        {VALUE_FLOAT64, UINT64_C(0x7ff0000000000000)}, /* infinite */
        {VALUE_FLOAT64, UINT64_C(0x7ff8000000000000)}, /* NaN */
        {VALUE_FLOAT64, UINT64_C(0x8000000000000000)}, /* -0 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t row[13] = {ROW_VERSION, 0, 1, 0, 1};
        put_u64(row + 5, cases[i].slot);
        struct schema_field field = fields_of(cases[i].type);
        struct row opened;
        pawl_error error;
        assert_status(row_open(&field, 1, (pawl_bytes){row, 13}, &opened, &error), PAWL_ECORRUPT);
        assert_contains(error.text, "field 'f'");
    }
}

TEST(a_string_must_be_utf8)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"plain", PAWL_OK},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb4", PAWL_OK},
        {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", PAWL_OK},
        {"\xc0\x80", PAWL_ECORRUPT},         /* overlong */
        {"\xe0\x9f\xbf", PAWL_ECORRUPT},     /* overlong */
        {"\xf0\x8f\xbf\xbf", PAWL_ECORRUPT}, /* overlong */
        {"\xed\xa0\x80", PAWL_ECORRUPT},     /* surrogate */
        {"\xf4\x90\x80\x80", PAWL_ECORRUPT}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", PAWL_ECORRUPT},
        {"\x80", PAWL_ECORRUPT},
        {"a\xe2\x82", PAWL_ECORRUPT}, /* cut */
        {"\xe2\x82\x41", PAWL_ECORRUPT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample s = {.count = 1, .fields = {fields_of(VALUE_STRING)}};
        s.values[0] = (struct value){.type = VALUE_STRING, .bytes = text_bytes(cases[i].text)};
        sample_write(&s);
        struct row row;
        struct value value;
        assert_status(row_open(s.fields, 1, (pawl_bytes){s.row, s.size}, &row, NULL), cases[i].status);
        assert_ok(row_borrow((pawl_bytes){s.row, s.size}, &row, NULL));
        assert_status(row_peek(row, 0, VALUE_STRING, &value), cases[i].status);
        s.fields[0].type = VALUE_BYTES;
        assert_ok(row_open(s.fields, 1, (pawl_bytes){s.row, s.size}, &row, NULL));
        free(s.row);
    }
}

TEST(a_newer_version_is_not_guessed_at)
{
    uint8_t row[4] = {ROW_VERSION + 1};
    struct row opened;
    assert_status(row_open(NULL, 0, (pawl_bytes){row, 4}, &opened, NULL), PAWL_EVERSION);
}

TEST(a_row_has_a_limit)
{
    struct value v[2] = {{.type = VALUE_BYTES, .bytes = {"", ROW_BYTES_MAX - 13}}, {.type = VALUE_NULL}};
    size_t size = 99;
    assert_ok(row_size(v, 2, &size));
    assert_int_equal(size, ROW_BYTES_MAX);
    v[1] = (struct value){.type = VALUE_BOOL};
    assert_status(row_size(v, 2, &size), PAWL_ETOOBIG);
    v[0].bytes.size = SIZE_MAX;
    assert_status(row_size(v, 2, &size), PAWL_ETOOBIG);
    assert_int_equal(size, ROW_BYTES_MAX);
}

/* Of some of the first fields. In memory of the caller's. */
static struct row some_fields(uint64_t *seed, const struct schema_field *fields, size_t count,
                              struct value *values, char texts[][24], uint8_t *at)
{
    size_t size, written = test_below(seed, count + 1);
    for (size_t i = 0; i < count; i++)
        values[i] = i < written && test_below(seed, 2) ? random_value(seed, fields[i].type, texts[i], 24)
                                                       : (struct value){0};
    assert_ok(row_size(values, written, &size));
    row_write(values, written, at);
    return (struct row){.bytes = {at, size}};
}

TEST(merged_rows_are_what_their_values_would_have_been_written_as)
{
    uint64_t seed = test_seed(23);
    for (int round = 0; round < 5000; round++) {
        struct schema_field fields[FIELDS];
        struct value was[FIELDS], set[FIELDS];
        static char was_texts[FIELDS][24], set_texts[FIELDS][24];
        static uint8_t was_row[4096], set_row[4096], want[4096];
        uint8_t cleared[2 * FIELDS];
        size_t count = 1 + test_below(&seed, FIELDS), clears = 0, size;
        for (size_t i = 0; i < count; i++)
            fields[i] = fields_of((enum value_type)(1 + test_below(&seed, VALUE_TYPE_LAST)));
        struct row a = some_fields(&seed, fields, count, was, was_texts, was_row);
        struct row b = some_fields(&seed, fields, count, set, set_texts, set_row), merged;
        bool covers = true, lacks = false;
        fields[test_below(&seed, count)].required = true;
        for (size_t i = 0; i < count; i++) {
            covers = covers && (was[i].type == VALUE_NULL || set[i].type != VALUE_NULL);
            was[i] = set[i].type != VALUE_NULL ? set[i] : was[i];
            if (test_below(&seed, 6) == 0) {
                put_u16(cleared + 2 * clears++, (uint16_t)i);
                was[i] = (struct value){0};
            }
            lacks = lacks || (fields[i].required && was[i].type == VALUE_NULL);
        }
        uint8_t *at = malloc(row_merge_room(count, a, b));
        int status = row_merge(fields, count, a, b, (pawl_bytes){cleared, 2 * clears}, at, &merged);
        assert_status(status, lacks ? PAWL_EINVAL : PAWL_OK);
        assert_ok(row_size(was, count, &size));
        row_write(was, count, want);
        assert_true(lacks || bytes_equal(merged.bytes, (pawl_bytes){want, size}));
        assert_int_equal(row_covers(b, a), covers);
        free(at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(random_rows_are_read_back),
        RUN(a_changed_byte_is_refused_or_gives_another_sound_row),
        RUN(a_field_of_an_unchecked_row_is_checked_when_it_is_read),
        RUN(a_row_cut_anywhere_is_refused),
        RUN(a_type_may_grow_and_old_rows_stay),
        RUN(a_row_of_a_later_schema_is_read_as_far_as_the_type_goes),
        RUN(equal_values_have_equal_bytes),
        RUN(refuses_bytes_that_no_value_has),
        RUN(a_string_must_be_utf8),
        RUN(a_newer_version_is_not_guessed_at),
        RUN(a_row_has_a_limit),
        RUN(merged_rows_are_what_their_values_would_have_been_written_as),
    };
    return TEST_MAIN(tests);
}
