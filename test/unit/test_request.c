#include "test/lib/test.h"

#include "core/command/request.h"
#include "test/lib/alloc.h"

/* Orders have lines, lines have notes; and a type whose name is as long as names may be holds itself. */
enum { ORDER, LINE, NOTE, DEEP };
static const struct schema_type types[4];
static const char long_name[] = "a_name_of_sixty_four_bytes_of_which_these_are_the_first_and_last";
static const struct schema_field order_fields[] = {{.name = {"number", 6}}};
static const struct schema_field line_fields[] = {{.name = {"sku", 3}}, {.name = {"qty", 3}}};
static const struct schema_field note_fields[] = {{.name = {"text", 4}}};
static const struct schema_container order_containers[] = {{.name = {"lines", 5}, .type = &types[LINE]},
                                                           {.name = {"gifts", 5}, .type = &types[LINE]}};
static const struct schema_container line_containers[] = {{.name = {"notes", 5}, .type = &types[NOTE]}};
static const struct schema_container deep_containers[] = {{.name = {long_name, 64}, .type = &types[DEEP]}};
static const struct schema_type types[4] = {
    {.id = 300, .fields = order_fields, .field_count = 1, .containers = order_containers, .container_count = 2},
    {.id = 301, .fields = line_fields, .field_count = 2, .containers = line_containers, .container_count = 1},
    {.id = 302, .fields = note_fields, .field_count = 1},
    {.id = 303, .containers = deep_containers, .container_count = 1},
};
static const struct schema some_schema = {.types = types, .type_count = 4};

struct request_bed {
    struct test_alloc alloc;
    struct arena memory;
    struct request request;
};

static void open_bed(struct request_bed *bed)
{
    test_alloc_init(&bed->alloc);
    arena_init(&bed->memory, &bed->alloc.allocator, 1024);
    request_init(&bed->request, &bed->memory);
}

static void close_bed(struct request_bed *bed)
{
    arena_release(&bed->memory);
    test_alloc_release(&bed->alloc);
}

static struct value integer(int64_t v)
{
    return (struct value){.type = VALUE_INT64, .integer = v};
}

static struct value string(const char *text)
{
    return (struct value){.type = VALUE_STRING, .bytes = text_bytes(text)};
}

TEST(objects_and_their_fields_are_kept_while_it_grows)
{
    struct request_bed bed;
    open_bed(&bed);
    struct request *r = &bed.request;
    assert_ok(request_add_argument(r, 1, 300, REQUEST_NO_PARENT, 0));
    for (uint64_t i = 1; i <= 200; i++)
        assert_ok(i <= 100 ? request_add_argument(r, 1 + i, 301, 0, 1) : request_add_record(r, 1 + i, 302));
    for (uint16_t place = 0; place < 300; place++)
        assert_ok(request_set(r, place, integer(place * 7)));
    assert_int_equal(r->object_count, 201);
    assert_int_equal(r->argument_count, 101);
    for (size_t i = 1; i <= 200; i++) {
        const struct request_object *o = &r->objects[i];
        assert_true(o->id == 1 + i && o->type == (i <= 100 ? 301 : 302));
        assert_true(o->parent == (i <= 100 ? 0 : REQUEST_NO_PARENT) && o->container == (i <= 100 ? 1 : 0));
        assert_int_equal(o->field_count, i == 200 ? 300 : 0);
    }
    for (uint16_t place = 0; place < 300; place++) {
        const struct request_field *f = &r->fields[r->objects[200].field_first + place];
        assert_true(f->place == place && f->value.integer == place * 7);
    }
    close_bed(&bed);
}

TEST(fields_belong_to_the_object_that_was_added_last)
{
    struct request_bed bed;
    open_bed(&bed);
    struct request *r = &bed.request;
    for (uint16_t id = 1; id <= 5; id++) {
        assert_ok(request_add_record(r, id, 300));
        for (uint16_t place = 0; place < id; place++)
            assert_ok(request_set(r, place, integer(id)));
    }
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(r->objects[i].field_count, i + 1);
        for (uint32_t f = 0; f < r->objects[i].field_count; f++)
            assert_int_equal(r->fields[r->objects[i].field_first + f].value.integer, i + 1);
    }
    close_bed(&bed);
}

TEST(a_field_that_is_set_twice_is_refused_and_keeps_its_value)
{
    struct request_bed bed;
    open_bed(&bed);
    struct request *r = &bed.request;
    assert_ok(request_add_record(r, 1, 300));
    assert_ok(request_set(r, 3, integer(1)));
    assert_ok(request_set(r, 4, (struct value){.type = VALUE_NULL}));
    assert_status(request_set(r, 3, integer(2)), PAWL_EEXISTS);
    assert_status(request_set(r, 4, integer(2)), PAWL_EEXISTS);
    assert_int_equal(r->field_count, 2);
    assert_int_equal(r->fields[0].value.integer, 1);
    assert_ok(request_add_record(r, 2, 300));
    assert_ok(request_set(r, 3, integer(2)));
    close_bed(&bed);
}

TEST(bytes_are_copied)
{
    struct request_bed bed;
    char text[] = "before";
    open_bed(&bed);
    assert_ok(request_add_record(&bed.request, 1, 300));
    assert_ok(request_set(&bed.request, 0, string(text)));
    assert_ok(request_set(&bed.request, 1, (struct value){.type = VALUE_BYTES}));
    memset(text, 'x', sizeof text);
    assert_memory_equal(bed.request.fields[0].value.bytes.data, "before", 6);
    assert_non_null(bed.request.fields[1].value.bytes.data);
    close_bed(&bed);
}

TEST(one_object_more_than_are_allowed_is_refused)
{
    struct request_bed bed;
    open_bed(&bed);
    for (uint64_t i = 1; i <= REQUEST_OBJECTS_MAX; i++)
        assert_ok(request_add_record(&bed.request, i, 300));
    assert_status(request_add_record(&bed.request, 1, 300), PAWL_ETOOBIG);
    assert_int_equal(bed.request.object_count, REQUEST_OBJECTS_MAX);
    close_bed(&bed);
}

TEST(every_allocation_may_fail_and_then_nothing_was_added)
{
    for (uint64_t k = 1;; k++) {
        struct request_bed bed;
        open_bed(&bed);
        struct request *r = &bed.request;
        char text[500];
        size_t refused = 0;
        memset(text, 't', sizeof text);
        test_alloc_fail(&bed.alloc, k, TEST_ALLOC_ONCE);
        for (uint64_t i = 1; i <= 60; i++) {
            while (request_add_record(r, i, 300) != PAWL_OK)
                refused++;
            struct value value = {.type = VALUE_BYTES, .bytes = {text, sizeof text}};
            while (request_set(r, 0, value) != PAWL_OK)
                refused++;
            while (request_set(r, 1, integer(5)) != PAWL_OK)
                refused++;
            assert_true(r->object_count == i && r->field_count == 2 * i);
        }
        bool failed = test_alloc_failed(&bed.alloc);
        assert_int_equal(refused, failed ? 1 : 0);
        for (size_t i = 0; i < 60; i++)
            assert_true(r->objects[i].field_count == 2 && r->fields[2 * i].value.bytes.size == sizeof text);
        close_bed(&bed);
        if (!failed)
            break;
    }
}

/* A request with something of everything; each variant changes one thing that it asks. */
enum { VARIANTS = 33, THE_SAME = 0 };

static uint64_t digest_of_variant(int variant)
{
    struct request_bed bed;
    open_bed(&bed);
    struct request *r = &bed.request;
#define V(n, other, usual) (variant == (n) ? (other) : (usual))
    r->wsid = V(1, 78, 77);
    r->command = V(2, 401, 400);
    r->kind = V(3, 1, 0);
    assert_ok(request_add_argument(r, V(4, 2, 1), V(5, 301, 300), REQUEST_NO_PARENT, 0));
    assert_ok(request_add_argument(r, 2, 301, 0, V(6, 2, 1)));
    assert_ok(request_add_argument(r, 3, 302, V(7, 0, 1), 1));
    if (variant == 8)
        assert_ok(request_add_argument(r, 4, 300, REQUEST_NO_PARENT, 0));
    else
        assert_ok(request_add_record(r, 4, 300));
    r->objects[r->object_count - 1].parent_id = V(9, 1, 0);
    r->objects[r->object_count - 1].active = V(10, ACTIVE_YES, V(11, ACTIVE_NO, ACTIVE_UNSAID));
    if (variant != 12)
        assert_ok(request_set(r, V(13, 20, 0), integer(V(14, 6, 5))));
    assert_ok(request_set(r, 1, V(15, ((struct value){.type = VALUE_TIMESTAMP, .integer = 9}), integer(9))));
    assert_ok(request_set(r, 2, string(V(16, "texu", V(17, "tex", V(18, "", "text"))))));
    struct value bytes = string("text");
    bytes.type = V(19, VALUE_BYTES, VALUE_STRING);
    assert_ok(request_set(r, 3, bytes));
    assert_ok(request_set(r, 4, (struct value){.type = VALUE_FLOAT64, .real = V(20, 1.5, 1.25)}));
    assert_ok(request_set(r, 5, (struct value){.type = VALUE_BOOL, .boolean = V(21, true, false)}));
    assert_ok(request_set(r, 6, (struct value){.type = VALUE_QNAME, .name = V(22, 301, 300)}));
    assert_ok(request_set(r, 7, (struct value){.type = VALUE_REF, .id = V(23, 2, 1)}));
    if (variant != 24)
        assert_ok(request_set(r, 8, (struct value){.type = VALUE_NULL}));
    /* values that change places, or sides */
    assert_ok(request_set(r, 9, integer(V(25, 2, 1))));
    assert_ok(request_set(r, 10, integer(V(25, 1, 2))));
    assert_ok(request_set(r, 11, string(V(26, "ab", "a"))));
    assert_ok(request_set(r, 12, string(V(26, "c", "bc"))));
    if (variant == 27)
        assert_ok(request_set(r, 13, (struct value){.type = VALUE_NULL}));
    /* a field that belongs to the next object */
    if (variant != 28)
        assert_ok(request_set(r, 14, integer(1)));
    assert_ok(request_add_record(r, V(29, 6, 5), V(30, 302, 301)));
    if (variant == 28)
        assert_ok(request_set(r, 14, integer(1)));
    if (variant == 31)
        assert_ok(request_add_record(r, 6, 301));
    if (variant == 32)
        assert_ok(request_set(r, 0, (struct value){.type = VALUE_NULL}));
#undef V
    uint64_t digest = request_digest(r);
    close_bed(&bed);
    return digest;
}

TEST(requests_that_differ_have_digests_that_differ)
{
    uint64_t digests[VARIANTS];
    for (int i = 0; i < VARIANTS; i++)
        digests[i] = digest_of_variant(i);
    for (int i = 0; i < VARIANTS; i++)
        for (int k = 0; k < i; k++) {
            if (digests[i] == digests[k])
                print_error("variants %d and %d\n", i, k);
            assert_true(digests[i] != digests[k]);
        }
    assert_true(digest_of_variant(THE_SAME) == digests[THE_SAME]);
}

static uint64_t digest_in_order(const uint16_t *places, size_t count)
{
    struct request_bed bed;
    open_bed(&bed);
    bed.request.wsid = 7;
    assert_ok(request_add_record(&bed.request, 1, 300));
    for (size_t i = 0; i < count; i++)
        assert_ok(request_set(&bed.request, places[i], places[i] % 2 ? integer(places[i]) : string("text")));
    uint64_t digest = request_digest(&bed.request);
    close_bed(&bed);
    return digest;
}

/* JSON does not order the members of an object, and neither do clients that repeat a command. */
TEST(the_order_in_which_fields_are_said_does_not_matter)
{
    uint64_t digest = digest_in_order((const uint16_t[]){1, 2, 3}, 3);
    assert_true(digest_in_order((const uint16_t[]){3, 1, 2}, 3) == digest);
    assert_true(digest_in_order((const uint16_t[]){2, 3, 1}, 3) == digest);
    assert_true(digest_in_order((const uint16_t[]){1, 2, 5}, 3) != digest);
    assert_true(digest_in_order((const uint16_t[]){1, 2}, 2) != digest);
}

/* It is in the events of every log. */
TEST(the_digest_of_a_request_never_changes)
{
    assert_true(digest_of_variant(THE_SAME) == UINT64_C(3237643367616099734));
}

TEST(who_asks_and_under_which_key_and_condition_is_not_in_the_digest)
{
    struct request_bed bed;
    open_bed(&bed);
    assert_ok(request_add_record(&bed.request, 1, 300));
    uint64_t digest = request_digest(&bed.request);
    bed.request.actor = text_bytes("ann");
    bed.request.correlation = text_bytes("c");
    bed.request.causation = text_bytes("d");
    bed.request.key = text_bytes("key");
    bed.request.expects = true;
    bed.request.expected = 5;
    assert_true(request_digest(&bed.request) == digest);
    close_bed(&bed);
}

TEST(a_path_says_where_a_user_wrote_it)
{
    static const struct {
        size_t object;
        int place;
        const char *path;
    } cases[] = {
        {0, -1, "$.argument"},
        {0, 0, "$.argument.number"},
        {1, -1, "$.argument.lines[0]"},
        {1, 1, "$.argument.lines[0].qty"},
        {2, 0, "$.argument.gifts[0].sku"},
        {3, 1, "$.argument.lines[1].qty"},
        {4, 0, "$.argument.lines[1].notes[0].text"},
        {5, 0, "$.argument.lines[1].notes[1].text"},
        {6, 0, "$.argument.lines[0].notes[0].text"},
        {7, -1, "$.records[0]"},
        {7, 0, "$.records[0].fields.number"},
        {8, 1, "$.records[1].fields.qty"},
        {8, 2, "$.records[1]"}, /* a place that the type does not have */
        {9, 0, "$.records[2]"}, /* a type that the schema does not have */
    };
    struct request_bed bed;
    open_bed(&bed);
    struct request *r = &bed.request;
    assert_ok(request_add_argument(r, 1, 300, REQUEST_NO_PARENT, 0));
    assert_ok(request_add_argument(r, 2, 301, 0, 1));
    assert_ok(request_add_argument(r, 3, 301, 0, 2));
    assert_ok(request_add_argument(r, 4, 301, 0, 1));
    assert_ok(request_add_argument(r, 5, 302, 3, 1));
    assert_ok(request_add_argument(r, 6, 302, 3, 1));
    assert_ok(request_add_argument(r, 7, 302, 1, 1));
    assert_ok(request_add_record(r, 8, 300));
    assert_ok(request_add_record(r, 9, 301));
    assert_ok(request_add_record(r, 10, 999));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[REQUEST_PATH_MAX];
        assert_ptr_equal(request_path(r, &some_schema, cases[i].object, cases[i].place, text), text);
        assert_string_equal(text, cases[i].path);
    }
    close_bed(&bed);
}

TEST(a_path_through_containers_that_no_type_has_or_too_deep_is_still_one)
{
    struct request_bed bed;
    char text[REQUEST_PATH_MAX];
    open_bed(&bed);
    struct request *r = &bed.request;
    assert_ok(request_add_argument(r, 1, 300, REQUEST_NO_PARENT, 0));
    assert_ok(request_add_argument(r, 2, 301, 0, 0));
    assert_ok(request_add_argument(r, 3, 301, 0, 3));
    assert_string_equal(request_path(r, &some_schema, 1, -1, text), "$.argument[0]");
    assert_string_equal(request_path(r, &some_schema, 2, 0, text), "$.argument[0].sku");
    for (uint32_t depth = 0; depth < 3 * SCHEMA_DEPTH_MAX; depth++)
        assert_ok(request_add_argument(r, 4, 300, 2 + depth, 1));
    assert_contains(request_path(r, &some_schema, r->object_count - 1, 0, text), "$.argument.lines[0]");
    close_bed(&bed);
}

TEST(a_path_that_is_too_long_is_cut)
{
    struct request_bed bed;
    open_bed(&bed);
    struct request *r = &bed.request;
    assert_ok(request_add_argument(r, 1, 303, REQUEST_NO_PARENT, 0));
    for (uint32_t depth = 0; depth < SCHEMA_DEPTH_MAX; depth++)
        assert_ok(request_add_argument(r, 2, 303, depth, 1));
    char *text = malloc(REQUEST_PATH_MAX); /* so that a sanitizer sees a byte written too much */
    for (size_t object = 0; object <= SCHEMA_DEPTH_MAX; object++) {
        size_t whole = strlen("$.argument") + object * (1 + 64 + 3);
        request_path(r, &some_schema, object, -1, text);
        assert_int_equal(strlen(text), whole < REQUEST_PATH_MAX ? whole : REQUEST_PATH_MAX - 1);
    }
    free(text);
    close_bed(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(objects_and_their_fields_are_kept_while_it_grows),
        RUN(fields_belong_to_the_object_that_was_added_last),
        RUN(a_field_that_is_set_twice_is_refused_and_keeps_its_value),
        RUN(bytes_are_copied),
        RUN(one_object_more_than_are_allowed_is_refused),
        RUN(every_allocation_may_fail_and_then_nothing_was_added),
        RUN(requests_that_differ_have_digests_that_differ),
        RUN(the_order_in_which_fields_are_said_does_not_matter),
        RUN(the_digest_of_a_request_never_changes),
        RUN(who_asks_and_under_which_key_and_condition_is_not_in_the_digest),
        RUN(a_path_says_where_a_user_wrote_it),
        RUN(a_path_through_containers_that_no_type_has_or_too_deep_is_still_one),
        RUN(a_path_that_is_too_long_is_cut),
    };
    return TEST_MAIN(tests);
}
