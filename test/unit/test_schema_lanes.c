/* Lanes: which projectors are together, what they are called, and when a generation is new. */
#include "base/bytes.h"
#include "core/schema/resolve.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

#define BASE                                                                                                   \
    "'commands': {'Do': {}, 'Undo': {}},"                                                                      \
    "'entities': {'A': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': 'int64'}}},"            \
    "             'B': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': 'int64'}}},"            \
    "             'C': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': 'int64'}}}}"
#define P(projectors) "{'schema': 1, 'package': 'p'," BASE ", 'projectors': {" projectors "}}"
#define Q(name, more, entity)                                                                                  \
    "'" name "': {'on': ['Do'], " more "'do': [{'update': '" entity "', 'set': {'v': '1'}}]}"
#define H(name, writes, reads) "'" name "': {'on': ['Do'], 'writes': [" writes "], 'reads': [" reads "]}"
#define AB(name)               "'" name "': {'on': ['Do'], 'do': [{'delete': 'A'}, {'delete': 'B'}]}"

static void apply(struct group0 *group0, const char *text)
{
    enum group0_outcome outcome;
    pawl_error error = {0};
    int status = schema_apply(group0, text, &outcome, &error);
    if (status)
        print_error("%s\n", error.text);
    assert_ok(status);
}

/* "p.x.1: x y; p.z.2: z": each lane's name, generation and projectors. */
static void describe(const struct schema *s, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < s->lane_count; i++) {
        const struct schema_lane *lane = &s->lanes[i];
        used += (size_t)snprintf(text + used, size - used, "%s%u=%.*s.%u:", i ? "; " : "", lane->id,
                                 (int)lane->name.size, (const char *)lane->name.data, lane->generation);
        for (size_t k = 0; k < s->projector_count; k++)
            if (s->projectors[k].lane == lane->id)
                used += (size_t)snprintf(text + used, size - used, " %.*s", (int)s->projectors[k].name.size,
                                         (const char *)s->projectors[k].name.data);
    }
}

static void assert_lanes(struct group0 *group0, const char *expected)
{
    char text[512];
    describe(group0_schema(group0), text, sizeof text);
    assert_string_equal(text, expected);
}

TEST(projectors_are_together_by_what_they_fill_or_by_name)
{
    static const struct {
        const char *schema;
        const char *lanes;
    } cases[] = {
        {P(Q("x", "", "A")), "1=p.x.1: p.x"},
        {P(Q("x", "", "A") "," Q("y", "", "B")), "1=p.x.1: p.x; 2=p.y.1: p.y"},
        {P(Q("x", "", "A") "," Q("y", "", "A")), "1=p.x.1: p.x p.y"},
        {P(Q("x", "", "A") "," Q("y", "", "C") "," Q("z", "", "B") "," AB("w")),
         "1=p.x.1: p.x p.z p.w; 2=p.y.1: p.y"},
        {P(Q("x", "'lane': 'l',", "A") "," Q("y", "'lane': 'l',", "B")), "1=p.l.1: p.x p.y"},
        {P(Q("x", "", "A") "," Q("y", "'lane': 'l',", "B") "," AB("w")), "1=p.l.1: p.x p.y p.w"},
        {P(Q("x", "'sync': true,", "A") "," Q("y", "", "B")), "1=p.y.1: p.y"},
        {P(Q("x", "'sync': true,", "A") "," Q("y", "'sync': true,", "A")), ""},
        /* Handlers: by what they write or read of what another one writes; to read the same binds nobody. */
        {P(H("x", "'A'", "") "," H("y", "'B'", "")), "1=p.x.1: p.x; 2=p.y.1: p.y"},
        {P(H("x", "'A', 'B'", "") "," H("y", "'B'", "")), "1=p.x.1: p.x p.y"},
        {P(H("x", "'A'", "'B'") "," H("y", "'C'", "") "," H("z", "'B'", "")), "1=p.x.1: p.x p.z; 2=p.y.1: p.y"},
        {P(H("x", "'A'", "'A'") "," H("y", "'B'", "")), "1=p.x.1: p.x; 2=p.y.1: p.y"},
        {P(H("x", "'A'", "'C'") "," H("y", "'B'", "'C'") "," Q("z", "", "C")), "1=p.x.1: p.x p.y p.z"},
        {P(Q("x", "", "A") "," H("y", "'B'", "'A'")), "1=p.x.1: p.x p.y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct group0 *group0;
        assert_ok(group0_new(NULL, &group0));
        apply(group0, cases[i].schema);
        assert_lanes(group0, cases[i].lanes);
        group0_free(group0);
    }
}

TEST(a_lane_whose_projectors_change_gets_a_new_generation)
{
    static const struct {
        const char *schema;
        const char *lanes;
    } steps[] = {
        {P(Q("x", "", "A") "," Q("y", "", "B")), "1=p.x.1: p.x; 2=p.y.1: p.y"},
        /* Another command, another action, another text, one projector more: a new generation. The other lane
           stays. */
        {P("'x': {'on': ['Do', 'Undo'], 'do': [{'update': 'A', 'set': {'v': '1'}}]}," Q("y", "", "B")),
         "1=p.x.2: p.x; 2=p.y.1: p.y"},
        {P("'x': {'on': ['Do', 'Undo'], 'do': [{'update': 'A', 'set': {'v': '2'}}]}," Q("y", "", "B")),
         "1=p.x.3: p.x; 2=p.y.1: p.y"},
        {P("'x': {'on': ['Do', 'Undo'], 'do': [{'update': 'A', 'where': 'k = 1', 'set': {'v': '2'}}]}," Q(
             "y", "", "B")),
         "1=p.x.4: p.x; 2=p.y.1: p.y"},
        {P("'x': {'on': ['Do', 'Undo'], 'do': [{'update': 'A', 'where': 'k = 1', 'set': {'v': '2'}}]}," Q(
             "y", "", "B") "," Q("z", "", "A")),
         "1=p.x.5: p.x p.z; 2=p.y.1: p.y"},
        /* Their order is the order of their numbers. */
        {P(Q("x", "", "A") "," Q("z", "", "A") "," Q("y", "", "B")), "1=p.x.6: p.x p.z; 2=p.y.1: p.y"},
        {P(Q("y", "", "B") "," Q("x", "", "A") "," Q("z", "", "A")), "1=p.x.6: p.x p.z; 2=p.y.1: p.y"},
        {P(Q("y", "", "B") "," Q("z", "", "A") "," Q("x", "", "A")), "2=p.y.1: p.y; 3=p.z.7: p.z p.x"},
        /* A lane that comes back is a new generation of itself. */
        {P(Q("x", "", "A") "," Q("z", "", "A")), "1=p.x.8: p.x p.z"},
        {P(Q("x", "", "A") "," Q("z", "", "A") "," Q("y", "", "B")), "1=p.x.8: p.x p.z; 2=p.y.2: p.y"},
        /* Two lanes become one. */
        {P(Q("x", "", "A") "," Q("z", "", "A") "," Q("y", "", "B") "," AB("w")), "1=p.x.9: p.x p.z p.y p.w"},
    };
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        apply(group0, steps[i].schema);
        assert_lanes(group0, steps[i].lanes);
    }
    group0_free(group0);
}

TEST(a_handlers_generation_is_new_when_it_reads_or_writes_something_else)
{
    static const struct {
        const char *schema;
        uint32_t generation;
    } steps[] = {
        {P(H("x", "'A', 'B'", "")), 1},
        {P(H("x", "'B', 'A'", "")), 1},
        {P(H("x", "'A', 'B'", "'B'")), 2},
        {P(H("x", "'A', 'B', 'C'", "'B'")), 3},
        {P("'x': {'on': ['Undo'], 'writes': ['A', 'B', 'C'], 'reads': ['B']}"), 4},
        {P("'x': {'on': ['Undo'], 'writes': ['A', 'B', 'C'], 'reads': ['B'], 'workers': 9}"), 4},
        {P("'x': {'on': ['Undo'], 'writes': ['A', 'B', 'C'], 'reads': ['B'], 'max_attempts': 1}"), 4},
        {P("'x': {'on': ['Undo'], 'writes': ['A', 'B', 'C'], 'reads': ['B'], 'on_failure': 'void'}"), 4},
        {P("'x': {'on': ['Undo'], 'do': [{'delete': 'A'}, {'delete': 'B'}, {'delete': 'C'}]}"), 5},
    };
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        apply(group0, steps[i].schema);
        assert_int_equal(group0_schema(group0)->lanes[0].generation, steps[i].generation);
    }
    group0_free(group0);
}

TEST(a_handler_says_how_it_is_run)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    apply(group0, P("'x': {'on': ['Do'], 'writes': ['B', 'A'], 'reads': ['C', 'A'], 'on_failure': 'void',"
                    "      'max_attempts': 1000, 'workers': 1024}," Q(
                        "y", "", "C") ","
                                      "'s': {'on': ['Do'], 'writes': ['C']}"));
    const struct schema *s = group0_schema(group0);
    const struct schema_type *a = schema_type_by_name(s, text_bytes("p.A"));
    const struct schema_projector *x = &s->projectors[0], *y = &s->projectors[1], *z = &s->projectors[2];
    assert_true(x->handler && !y->handler && z->handler);
    assert_int_equal(x->action_count, 0);
    assert_int_equal(x->write_count, 2);
    assert_ptr_equal(x->writes[0], a);
    assert_ptr_equal(x->writes[1], a + 1);
    assert_int_equal(x->read_count, 2);
    assert_ptr_equal(x->reads[1], a + 2);
    assert_int_equal(x->on_failure, ON_FAILURE_VOID);
    assert_int_equal(x->attempts_max, 1000);
    assert_int_equal(x->workers, 1024);
    assert_int_equal(y->write_count, 1);
    assert_ptr_equal(y->writes[0], a + 2);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(s->projectors[i].on_failure, ON_FAILURE_STALL);
        assert_int_equal(s->projectors[i].attempts_max, 5);
        assert_int_equal(s->projectors[i].workers, 4);
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(a[i].lane, 1);
    group0_free(group0);
}

TEST(what_does_not_concern_a_lane_leaves_its_generation)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    apply(group0, P(Q("x", "", "A")));
    apply(group0, "{'schema': 1, 'package': 'p'," BASE ", 'types': {'T': {'kind': 'CDoc'}},"
                  "'projectors': {" Q("x", "", "A") "}, 'views': {'v': {'base': 'A', 'key': ['v']}}}");
    assert_int_equal(group0_schema(group0)->position, 2);
    assert_lanes(group0, "1=p.x.1: p.x");
    group0_free(group0);
}

TEST(another_package_may_join_a_lane)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    apply(group0, P(Q("x", "", "A")));
    apply(group0,
          "{'schema': 1, 'package': 'o', 'projectors': {'y': {'on': ['p.Do'], 'do': [{'delete': 'p.A'}]}}}");
    assert_lanes(group0, "1=p.x.2: p.x o.y");
    group0_free(group0);
}

static uint32_t served(const struct schema *s, const char *entity)
{
    const struct schema_type *type = schema_type_by_name(s, text_bytes(entity));
    uint32_t table = schema_serving_table(s, type);
    assert_int_equal(table & 0xffff, type->table);
    return table >> SCHEMA_TABLE_BITS;
}

/* "p.x: 2 from 2, 1 from 1 to 1; A1 B0 C0": each lane's newest generation and what serves, with the positions
 * of schemas; and the generation that each entity's reads are served from. */
static void assert_serving(struct group0 *group0, const char *expected)
{
    char text[512];
    size_t used = 0;
    const struct schema *s = group0_schema(group0);
    for (size_t i = 0; i < s->lane_count; i++) {
        const struct schema_lane *lane = &s->lanes[i];
        assert_ptr_equal(schema_lane_by_id(s, lane->id), lane);
        assert_ptr_equal(schema_lane_by_name(s, lane->name), lane);
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s: %u from %" PRIu64 ", %u from %" PRIu64,
                                 (int)lane->name.size, (const char *)lane->name.data, lane->generation,
                                 lane->born, lane->serving, lane->serving_born);
        if (lane->serving_last != UINT64_MAX)
            used += (size_t)snprintf(text + used, sizeof text - used, " to %" PRIu64, lane->serving_last);
        used += (size_t)snprintf(text + used, sizeof text - used, "; ");
    }
    snprintf(text + used, sizeof text - used, "A%u B%u C%u", served(s, "p.A"), served(s, "p.B"),
             served(s, "p.C"));
    assert_string_equal(text, expected);
}

TEST(the_serving_generation_goes_on_beside_a_new_one)
{
    static const struct {
        const char *schema;
        const char *serving;
    } steps[] = {
        {P(Q("x", "", "A")), "p.x: 1 from 1, 1 from 1; A1 B0 C0"},
        /* A generation that nothing was switched to is given up for the next. */
        {P(Q("x", "", "A") "," Q("y", "", "A")), "p.x: 2 from 2, 1 from 1 to 1; A1 B0 C0"},
        {P(Q("x", "", "A") "," Q("y", "", "A") "," Q("s", "'sync': true,", "B")),
         "p.x: 2 from 2, 1 from 1 to 1; A1 B0 C0"},
        {P(Q("y", "'lane': 'x',", "A") "," Q("s", "'sync': true,", "B")),
         "p.x: 3 from 4, 1 from 1 to 1; A1 B0 C0"},
        /* Gone, and back. */
        {P(Q("s", "'sync': true,", "B")), "A1 B0 C0"},
        {P(Q("x", "", "A")), "p.x: 4 from 6, 1 from 1 to 1; A1 B0 C0"},
        /* An entity that had no rows is served by the newest. */
        {P(Q("x", "'lane': 'x',", "A") "," Q("y", "'lane': 'x',", "C")),
         "p.x: 5 from 7, 1 from 1 to 1; A1 B0 C5"},
        {P(Q("x", "'lane': 'x',", "A") "," Q("y", "'lane': 'x',", "C") "," Q("z", "", "C")),
         "p.x: 6 from 8, 1 from 1 to 1; A1 B0 C6"},
        /* Another lane's generation of the same entity is another table, and what there was is served. */
        {P(Q("z", "", "A")), "p.z: 7 from 9, 0 from 0 to 0; A1 B0 C6"},
        {P(Q("z", "", "A") "," Q("y", "", "C")),
         "p.z: 7 from 9, 0 from 0 to 0; p.y: 7 from 10, 7 from 10; A1 B0 C7"},
    };
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        apply(group0, steps[i].schema);
        assert_serving(group0, steps[i].serving);
    }
    group0_free(group0);
}

TEST(a_lane_that_goes_ends_with_the_last_schema_that_had_it)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    apply(group0, P(Q("x", "", "A")));
    apply(group0, P(Q("x", "", "A") "," Q("y", "", "B")));
    assert_serving(group0, "p.x: 1 from 1, 1 from 1; p.y: 1 from 2, 1 from 2; A1 B1 C0");
    apply(group0, P(Q("y", "", "B")));
    apply(group0, P(Q("y", "", "B") "," Q("z", "'sync': true,", "C")));
    assert_int_equal(schema_type_by_name(group0_schema(group0), text_bytes("p.A"))->lane, 0);
    assert_int_equal(schema_type_by_name(group0_schema(group0), text_bytes("p.B"))->lane, 2);
    assert_int_equal(schema_type_by_name(group0_schema(group0), text_bytes("p.C"))->lane, 0);
    apply(group0, P(Q("x", "", "A") "," Q("y", "", "B")));
    assert_serving(group0, "p.x: 2 from 5, 1 from 1 to 2; p.y: 1 from 2, 1 from 2; A1 B1 C0");
    group0_free(group0);
}

/* Resolving by itself, because nobody waits for so many. */
TEST(a_lane_has_no_more_generations_than_tables_can_be_told_apart)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    apply(group0, P(Q("x", "", "A")));
    const struct schema *s = group0_schema(group0);
    for (uint32_t had = SCHEMA_GENERATIONS - 2; had < SCHEMA_GENERATIONS; had++) {
        struct arena arena;
        struct resolved resolved;
        pawl_error error = {0};
        struct known_lane known = {.lane = {.id = 1, .generation = had, .name = text_bytes("p.x")}};
        struct schema_source source = {.position = 2,
                                       .before = 1,
                                       .packages = schema_package(s, 0),
                                       .package_count = 1,
                                       .subject = text_bytes("p"),
                                       .names = s->names,
                                       .name_count = s->name_count,
                                       .names_by_text = s->names_by_text,
                                       .lanes = &known,
                                       .lane_count = 1};
        arena_init(&arena, NULL, 4096);
        int status = schema_resolve(&source, &arena, &resolved, &error);
        if (had + 1 < SCHEMA_GENERATIONS) {
            assert_ok(status);
            assert_int_equal(resolved.schema.lanes[0].generation, SCHEMA_GENERATIONS - 1);
            resolved_release(&resolved);
        } else {
            assert_status(status, PAWL_EINVAL);
            assert_string_equal(error.text, "$.projectors.x: lane p.x has had all of its 32766 generations");
        }
        arena_release(&arena);
    }
    group0_free(group0);
}

TEST(two_lanes_cannot_have_one_name)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error;
    assert_ok(group0_new(NULL, &group0));
    assert_status(schema_check(group0, P(Q("x", "", "A") "," Q("y", "'lane': 'x',", "B")), &outcome, &error),
                  PAWL_EINVAL);
    assert_string_equal(error.text, "$.projectors.y.lane: p.x is the name of another lane already");
    group0_free(group0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(projectors_are_together_by_what_they_fill_or_by_name),
        RUN(a_lane_whose_projectors_change_gets_a_new_generation),
        RUN(a_handlers_generation_is_new_when_it_reads_or_writes_something_else),
        RUN(a_handler_says_how_it_is_run),
        RUN(what_does_not_concern_a_lane_leaves_its_generation),
        RUN(another_package_may_join_a_lane),
        RUN(the_serving_generation_goes_on_beside_a_new_one),
        RUN(a_lane_that_goes_ends_with_the_last_schema_that_had_it),
        RUN(a_lane_has_no_more_generations_than_tables_can_be_told_apart),
        RUN(two_lanes_cannot_have_one_name),
    };
    return TEST_MAIN(tests);
}
