/* What a view is, and what row it makes of a row of its base. */
#include "core/view/view.h"

#include "base/bytes.h"
#include "base/error.h"
#include "core/state/key.h"
#include "test/lib/alloc.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"
#include "test/lib/views.h"

static const char schema_all[] =
    "{'schema': 1, 'package': 'p',"
    "'types': {'All': {'kind': 'CDoc', 'fields': {'i': {'type': 'int64'}, 'f': {'type': 'float64'}, 'o': "
    "{'type': "
    "'bool'}, 's': {'type': 'string'}, 'y': {'type': 'bytes'}, 't': {'type': 'timestamp'}, 'q': {'type': "
    "'qname'}, 'r': "
    "{'type': 'ref'}}, 'children': {'parts': 'Part'}},"
    "'Part': {'kind': 'CRecord', 'fields': {'active': {'type': 'string'}, 'n': {'type': 'int64'}}},"
    "'Odd': {'kind': 'ODoc', 'fields': {'n': {'type': 'int64'}}}},"
    "'commands': {'Do': {'records': ['All']}},"
    "'entities': {'E': {'key': ['k'], 'fields': {'k': {'type': 'string'}, 'n': {'type': 'int64'}}}},"
    "'projectors': {'q': {'on': ['Do'], 'do': [{'upsert': 'E', 'key': {'k': '`x`'}, 'set': {'n': '1'}}]}}}";

enum { I, F, O, S, Y, T, Q, R, FIELDS };

struct bed {
    struct test_alloc alloc;
    struct group0 *group0;
    struct view *view;
    struct view_room room;
    struct view_row row;
    pawl_error why;
};

static struct group0 *with_schema(void)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    assert_ok(group0_new(NULL, &group0));
    assert_ok(schema_apply(group0, schema_all, &outcome, NULL));
    return group0;
}

static int resolve(const struct group0 *group0, const struct view_text *text, const pawl_allocator *alloc,
                   struct view **ret_view, pawl_error *error)
{
    struct arena arena;
    struct definition_view definition;
    struct definition package;
    arena_init(&arena, NULL, 1024);
    views_definition(text, &arena, &definition, &package);
    int status =
        view_resolve(group0_schema(group0), package.package, &definition, 9, NULL, alloc, ret_view, error);
    arena_release(&arena);
    return status;
}

static void bed_open(struct bed *bed, const struct view_text *text)
{
    *bed = (struct bed){0};
    test_alloc_init(&bed->alloc);
    bed->group0 = with_schema();
    bed->room.alloc = &bed->alloc.allocator;
    assert_ok(resolve(bed->group0, text, &bed->alloc.allocator, &bed->view, &bed->why));
}

static void bed_close(struct bed *bed)
{
    view_room_release(&bed->room);
    view_drop(view_hold(bed->view));
    view_drop(bed->view);
    group0_free(bed->group0);
    test_alloc_release(&bed->alloc);
}

#define TEXT_VALUE(t) ((struct value){.type = VALUE_STRING, .bytes = text_bytes(t)})
#define INT(n)        ((struct value){.type = VALUE_INT64, .integer = (n)})

/* Evaluate a record of these fields, in workspace 3, of ID 5 and parent 4. */
static void evaluate(struct bed *bed, const struct value *values, size_t count, uint64_t parent, bool active)
{
    uint8_t key[KEY_NUMBERED];
    size_t size;
    assert_ok(row_size(values, count, &size));
    uint8_t *value = malloc(RECORD_BYTES + size);
    struct record_row head = {.active = active, .type = 300, .parent = parent};
    record_head_write(&head, value);
    row_write(values, count, value + RECORD_BYTES);
    error_clear(&bed->why);
    assert_ok(view_evaluate(bed->view, key_numbered(bed->view->base->table, 3, 5, key),
                            (pawl_bytes){value, RECORD_BYTES + size}, &bed->room, &bed->row, &bed->why));
    free(value);
}

/* The fields of the row that was made. */
static struct value field(const struct bed *bed, size_t place)
{
    pawl_bytes own, bytes;
    bool null;
    struct row row;
    assert_true(bed->row.there);
    assert_ok(view_row_read(bed->row.key, bed->row.value, &own, &bytes, &null));
    assert_int_equal(null, bed->row.has_null);
    assert_ok(row_open(bed->view->row.fields, bed->view->row.field_count, bytes, &row, NULL));
    return row_get(row, place, bed->view->row.fields[place].type);
}

TEST(complaints_name_what_is_wrong)
{
    static const struct {
        struct view_text text;
        const char *words;
    } cases[] = {
        {{.base = "Nope", .key = "i"}, "$.base: there is no 'Nope'"},
        {{.base = "p2.All", .key = "i"}, "$.base: there is no 'p2.All'"},
        {{.base = "Do", .key = "i"}, "$.base: 'Do' is a command, not a type"},
        {{.base = "Odd", .key = "n"}, "$.base: p.Odd lives in its events only, and has no rows to view"},
        {{.base = "E", .key = "n", .unique = true}, "$.unique: p.E is an entity"},
        {{.base = "All", .key = ""}, "$.key: a view needs a key of at least one field"},
        {{.base = "All", .key = "i z"}, "$.key[1]: p.All has no field 'z'"},
        {{.base = "All", .key = "i", .include = "s z"}, "$.include[1]: p.All has no field 'z'"},
        {{.base = "E", .key = "id"}, "$.key[0]: p.E has no field 'id'"},
        {{.base = "E", .key = "active"}, "$.key[0]: p.E has no field 'active'"},
        {{.base = "All", .key = "i i"}, "$.key[1]: 'i' is there twice"},
        {{.base = "All", .key = "i", .include = "i"}, "$.include[0]: 'i' is there twice"},
        {{.base = "All", .key = "i", .filter = "i"}, "$.filter: "},
        {{.base = "All", .key = "i", .filter = "z = 1"}, "$.filter: "},
        {{.base = "All", .key = "i", .filter = "$event.offset > 1"}, "$.filter: "},
        {{.base = "E", .key = "n", .filter = "active"}, "$.filter: "},
        {{.base = "All", .key = "i", .filter = "i ="}, "$.filter: line 1, column "},
    };
    struct group0 *group0 = with_schema();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct view_text text = cases[i].text;
        struct view *view = NULL;
        pawl_error error = {0};
        text.package = "p";
        text.name = "v";
        assert_status(resolve(group0, &text, NULL, &view, &error), PAWL_EINVAL);
        assert_contains(error.text, cases[i].words);
        assert_null(view);
    }
    group0_free(group0);
}

TEST(resolving_survives_every_failed_allocation)
{
    struct group0 *group0 = with_schema();
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct view *view = NULL;
        pawl_error error = {0};
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = resolve(group0,
                             &(struct view_text){.package = "p",
                                                 .name = "v",
                                                 .base = "All",
                                                 .key = "s i",
                                                 .include = "parent active",
                                                 .filter = "active and i > 1"},
                             &memory.allocator, &view, &error);
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        view_drop(view);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
    group0_free(group0);
}

static const struct view_text everything = {
    .package = "p", .name = "v", .base = "All", .key = "s i", .include = "f o y t q r id parent active"};

TEST(a_row_has_values_of_all_types_and_tells_its_base_row)
{
    struct bed bed;
    bed_open(&bed, &everything);
    struct value values[FIELDS] = {
        [I] = INT(-7),
        [F] = {.type = VALUE_FLOAT64, .real = 2.5},
        [O] = {.type = VALUE_BOOL, .boolean = true},
        [S] = TEXT_VALUE("text"),
        [Y] = {.type = VALUE_BYTES, .bytes = {"\0\1", 2}},
        [T] = {.type = VALUE_TIMESTAMP, .integer = 99},
        [Q] = {.type = VALUE_QNAME, .name = 300},
        [R] = {.type = VALUE_REF, .id = 12},
    };
    evaluate(&bed, values, FIELDS, 4, true);
    assert_false(bed.row.failed);
    assert_false(bed.row.has_null);
    assert_true(bytes_equal(field(&bed, 0).bytes, text_bytes("text")));
    assert_int_equal(field(&bed, 1).integer, -7);
    assert_true(field(&bed, 2).real > 2.4 && field(&bed, 2).real < 2.6);
    assert_true(field(&bed, 3).boolean);
    assert_int_equal(field(&bed, 4).bytes.size, 2);
    assert_int_equal(field(&bed, 5).integer, 99);
    assert_int_equal(field(&bed, 6).name, 300);
    assert_int_equal(field(&bed, 7).id, 12);
    assert_int_equal(field(&bed, 8).id, 5);
    assert_int_equal(field(&bed, 9).id, 4);
    assert_true(field(&bed, 10).boolean);
    pawl_bytes own, row;
    bool null;
    assert_ok(view_row_read(bed.row.key, bed.row.value, &own, &row, &null));
    assert_int_equal(own.size, 8);
    assert_int_equal(get_u64_sorted(own.data), 5);
    assert_int_equal(key_table(bed.row.key), view_table(9, 0));
    assert_int_equal(key_wsid(bed.row.key), 3);
    assert_int_equal(bed.row.key.size, bed.row.key_fields + 8);
    assert_int_equal(view_number(view_table(9, 5)), 9);
    assert_int_equal(view_generation(view_table(9, 5)), 5);
    bed_close(&bed);
}

TEST(nulls_are_noted_in_the_key_only)
{
    struct bed bed;
    bed_open(&bed, &everything);
    struct value values[FIELDS] = {[I] = INT(1), [S] = TEXT_VALUE("")};
    evaluate(&bed, values, FIELDS, 0, false);
    assert_false(bed.row.has_null);
    assert_int_equal(field(&bed, 4).type, VALUE_NULL);
    assert_int_equal(field(&bed, 9).type, VALUE_NULL); /* it has no parent */
    assert_false(field(&bed, 10).boolean);
    evaluate(&bed, values, 2, 0, false); /* a row of an older schema: s was not there yet */
    assert_true(bed.row.there && bed.row.has_null);
    assert_int_equal(field(&bed, 0).type, VALUE_NULL);
    struct value newer[FIELDS + 2] = {
        [I] = INT(1), [S] = TEXT_VALUE("s"), [FIELDS] = INT(5), [FIELDS + 1] = INT(6)};
    evaluate(&bed, newer, FIELDS + 2, 0, false);
    assert_true(bed.row.there);
    assert_int_equal(field(&bed, 1).integer, 1);
    bed_close(&bed);
}

TEST(a_field_shadows_a_part_of_the_head)
{
    struct bed bed;
    bed_open(&bed, &(struct view_text){.package = "p",
                                       .name = "v",
                                       .base = "Part",
                                       .key = "active",
                                       .include = "parent id",
                                       .filter = "active = 'yes' and parent = 4"});
    struct value values[] = {TEXT_VALUE("yes"), INT(1)};
    evaluate(&bed, values, 2, 4, false);
    assert_true(bytes_equal(field(&bed, 0).bytes, text_bytes("yes")));
    assert_int_equal(field(&bed, 1).id, 4);
    values[0] = TEXT_VALUE("no");
    evaluate(&bed, values, 2, 4, true);
    assert_false(bed.row.there);
    bed_close(&bed);
}

TEST(a_filter_that_is_not_true_or_fails_leaves_the_row_out)
{
    struct bed bed;
    bed_open(&bed,
             &(struct view_text){
                 .package = "p", .name = "v", .base = "All", .key = "i", .filter = "10 / i > 1 and id = 5"});
    static const struct {
        struct value i;
        bool there, failed;
    } cases[] = {{{.type = VALUE_INT64, .integer = 2}, true, false},
                 {{.type = VALUE_INT64, .integer = 20}, false, false},
                 {{.type = VALUE_NULL}, false, false},
                 {{.type = VALUE_INT64, .integer = 0}, false, true}};
    for (size_t i = 0; i < 4; i++) {
        evaluate(&bed, &cases[i].i, 1, 0, true);
        assert_int_equal(bed.row.there, cases[i].there);
        assert_int_equal(bed.row.failed, cases[i].failed);
        assert_int_equal(bed.why.text[0] != 0, cases[i].failed);
    }
    bed_close(&bed);
}

TEST(what_is_no_row_fails_and_is_not_there)
{
    struct bed bed;
    bed_open(&bed, &(struct view_text){.package = "p", .name = "v", .base = "All", .key = "s"});
    uint8_t key[KEY_NUMBERED], value[200];
    struct value values[FIELDS] = {[S] = TEXT_VALUE("text")};
    struct record_row head = {.active = true, .type = 300};
    size_t size;
    assert_ok(row_size(values, FIELDS, &size));
    record_head_write(&head, value);
    row_write(values, FIELDS, value + RECORD_BYTES);
    pawl_bytes whole = key_numbered(bed.view->base->table, 3, 5, key);
    for (size_t cut = 0; cut < RECORD_BYTES + size; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        memcpy(copy, value, cut);
        assert_ok(view_evaluate(bed.view, whole, (pawl_bytes){copy, cut}, &bed.room, &bed.row, &bed.why));
        assert_true(bed.row.failed && !bed.row.there);
        free(copy);
    }
    for (size_t bit = 0; bit < (RECORD_BYTES + size) * 8; bit++) { /* never an error, whatever it says */
        value[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_ok(view_evaluate(bed.view, whole, (pawl_bytes){value, RECORD_BYTES + size}, &bed.room, &bed.row,
                                NULL));
        value[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_ok(view_evaluate(bed.view, (pawl_bytes){key, KEY_WORKSPACE},
                            (pawl_bytes){value, RECORD_BYTES + size}, &bed.room, &bed.row, NULL));
    assert_true(bed.row.failed);
    bed_close(&bed);
}

TEST(a_prefix_is_the_first_bytes_of_the_key)
{
    uint64_t random = test_seed(21);
    for (int round = 0; round < 300; round++) {
        struct bed bed;
        bed_open(&bed, &(struct view_text){.package = "p", .name = "v", .base = "All", .key = "s i y"});
        uint8_t prefix[KEY_WORKSPACE + VIEW_KEY_BYTES_MAX];
        char text[600], bytes[600];
        size_t size, s = (size_t)test_below(&random, 420), y = (size_t)test_below(&random, 420);
        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = (char)('a' + test_below(&random, 3));
            bytes[i] = (char)test_below(&random, 3);
        }
        struct value values[FIELDS] = {[S] = {.type = VALUE_STRING, .bytes = {text, s}},
                                       [I] = INT((int64_t)test_below(&random, 9)),
                                       [Y] = {.type = VALUE_BYTES, .bytes = {bytes, y}}};
        if (test_below(&random, 5) == 0)
            values[I] = (struct value){.type = VALUE_NULL};
        struct value keys[] = {values[S], values[I], values[Y]};
        evaluate(&bed, values, FIELDS, 0, true);
        assert_true(bed.row.there);
        assert_true(bed.row.key_fields <= KEY_WORKSPACE + VIEW_KEY_BYTES_MAX);
        assert_ok(view_prefix(bed.view, view_table(9, 0), 3, keys, 3, prefix, &size));
        assert_int_equal(size, bed.row.key_fields);
        assert_memory_equal(prefix, bed.row.key.data, size);
        for (size_t count = 0; count < 3; count++) {
            int status = view_prefix(bed.view, view_table(9, 0), 3, keys, count, prefix, &size);
            if (status == PAWL_OK)
                assert_memory_equal(prefix, bed.row.key.data, size);
            else
                assert_status(status, PAWL_ETOOBIG);
            assert_true(status == PAWL_OK || s > 370);
        }
        bed_close(&bed);
    }
}

/* Beyond 400 bytes keys enter as prefix and hash: equal ones are equal, others differ, also in the last byte. */
TEST(long_keys_are_told_apart)
{
    struct bed bed;
    bed_open(&bed, &(struct view_text){.package = "p", .name = "v", .base = "All", .key = "s"});
    char text[3][1001];
    uint8_t keys[3][KEY_WORKSPACE + VIEW_KEY_BYTES_MAX];
    for (size_t i = 0; i < 3; i++) {
        memset(text[i], 'x', 1000);
        text[i][1000] = 0;
        text[i][999] = i == 2 ? 'y' : 'x';
        struct value values[FIELDS] = {[S] = TEXT_VALUE(text[i])};
        evaluate(&bed, values, FIELDS, 0, true);
        assert_int_equal(bed.row.key_fields, KEY_WORKSPACE + VIEW_KEY_BYTES_MAX);
        memcpy(keys[i], bed.row.key.data, sizeof keys[i]);
        assert_true(bytes_equal(field(&bed, 0).bytes, text_bytes(text[i]))); /* the value has it all */
    }
    assert_memory_equal(keys[0], keys[1], sizeof keys[0]);
    assert_memory_not_equal(keys[0], keys[2], sizeof keys[0]);
    bed_close(&bed);
}

TEST(a_row_of_an_entity_keeps_its_generation_and_its_key)
{
    struct bed bed;
    bed_open(&bed, &(struct view_text){.package = "p", .name = "v", .base = "E", .key = "n", .include = "k"});
    uint8_t key[KEY_WORKSPACE + 64], value[128];
    struct value values[] = {TEXT_VALUE("name"), INT(8)};
    size_t size;
    assert_ok(row_size(values, 2, &size));
    row_write(values, 2, value);
    key_of_workspace(view_base_table(bed.view, 6), 3, key);
    size_t own_size = row_key_write(values, 1, key + KEY_WORKSPACE, 64);
    assert_ok(view_evaluate(bed.view, (pawl_bytes){key, KEY_WORKSPACE + own_size}, (pawl_bytes){value, size},
                            &bed.room, &bed.row, NULL));
    assert_int_equal(key_table(bed.row.key), view_table(9, 6));
    assert_int_equal(field(&bed, 0).integer, 8);
    pawl_bytes own, row;
    bool null;
    assert_ok(view_row_read(bed.row.key, bed.row.value, &own, &row, &null));
    assert_true(bytes_equal(own, (pawl_bytes){key + KEY_WORKSPACE, own_size}));
    bed_close(&bed);
}

TEST(bytes_that_are_no_row_of_a_view_are_refused)
{
    uint8_t key[30] = {0}, value[] = {1, 1, 10, 0, 77};
    pawl_bytes own, row, whole = {key, sizeof key};
    bool null;
    assert_ok(view_row_read(whole, (pawl_bytes){value, 5}, &own, &row, &null));
    assert_true(null && own.size == 10 && row.size == 1);
    assert_status(view_row_read(whole, (pawl_bytes){value, 3}, &own, &row, &null), PAWL_ECORRUPT);
    assert_status(view_row_read((pawl_bytes){key, 29}, (pawl_bytes){value, 5}, &own, &row, &null),
                  PAWL_ECORRUPT);
    for (size_t i = 0; i < 2; i++) {
        value[i] = 2;
        assert_status(view_row_read(whole, (pawl_bytes){value, 5}, &own, &row, &null), PAWL_ECORRUPT);
        value[i] = 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(complaints_name_what_is_wrong),
        RUN(resolving_survives_every_failed_allocation),
        RUN(a_row_has_values_of_all_types_and_tells_its_base_row),
        RUN(nulls_are_noted_in_the_key_only),
        RUN(a_field_shadows_a_part_of_the_head),
        RUN(a_filter_that_is_not_true_or_fails_leaves_the_row_out),
        RUN(what_is_no_row_fails_and_is_not_there),
        RUN(a_prefix_is_the_first_bytes_of_the_key),
        RUN(long_keys_are_told_apart),
        RUN(a_row_of_an_entity_keeps_its_generation_and_its_key),
        RUN(bytes_that_are_no_row_of_a_view_are_refused),
    };
    return TEST_MAIN(tests);
}
