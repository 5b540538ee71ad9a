/* What may change in a package, and what may not. */
#include "test/lib/schema.h"
#include "test/lib/test.h"

static const char before[] =
    "{'schema': 1, 'package': 'p',"
    "'workspaces': {'w': {'sequences': {'s': {'first': 5, 'end': 100}, 'u': {}}}},"
    "'types': {'A': {'kind': 'CDoc', 'fields': {'a': {'type': 'int64'}, 'b': {'type': 'string', 'required': "
    "true},"
    "                                           'r': {'type': 'ref', 'to': 'B'}, 'n': {'type': 'int64', "
    "'sequence': 's'}, 'y': {'type': 'ref'}},"
    "                'children': {'c': 'K'}},"
    "          'B': {'kind': 'WDoc', 'singleton': true}, 'K': {'kind': 'CRecord'}, 'L': {'kind': 'CRecord'}},"
    "'commands': {'Do': {'records': ['A']}, 'Undo': {}, 'Set': {'argument': 'A'}},"
    "'entities': {'E': {'key': ['k', 'j'], 'fields': {'k': {'type': 'int64'}, 'j': {'type': 'int64'}, 'v': "
    "{'type': 'int64'}}},"
    "             'H': {'key': ['k'], 'fields': {'k': {'type': 'int64'}}}},"
    "'projectors': {'q': {'on': ['Do'], 'do': [{'update': 'E', 'set': {'v': 'v + 1'}}]},"
    "               'h': {'on': ['Do'], 'writes': ['H'], 'reads': ['E']}},"
    "'views': {'x': {'base': 'A', 'key': ['a']}}}";

/* Each replaces one text of the package by another. error NULL: that is fine. */
static const struct {
    const char *from;
    const char *to;
    const char *error;
} cases[] = {
    /* Adding. */
    {"'a': {'type': 'int64'}", "'a': {'type': 'int64'}, 'z': {'type': 'bool'}", NULL},
    {"'types': {", "'types': {'New': {'kind': 'ODoc', 'fields': {'f': {'type': 'bool', 'required': true}}},",
     NULL},
    {"'children': {", "'children': {'d': 'L', ", NULL},
    {"'sequences': {", "'sequences': {'t': {},", NULL},
    {"'commands': {", "'commands': {'Redo': {},", NULL},
    {"'v': {'type': 'int64'}", "'v': {'type': 'int64'}, 'v2': {'type': 'int64'}", NULL},
    /* Loosening. */
    {"'required': true", "'required': false", NULL},
    {"'end': 100", "'end': 101", NULL},
    {", 'end': 100", "", NULL},
    {"'type': 'ref', 'to': 'B'", "'type': 'ref'", NULL},
    {"'records': ['A']", "'records': ['A', 'B']", NULL},
    {"'records': ['A']", "'argument': 'A'", NULL},
    /* Not stored. */
    {"'projectors': {'q': {'on': ['Do'], 'do': [{'update': 'E', 'set': {'v': 'v + 1'}}]},",
     "'projectors': {'q': {'on': ['Do'], 'writes': ['E']},", NULL},
    {", 'reads': ['E']", ", 'on_failure': 'void'", NULL},
    {"'h': {'on': ['Do'], 'writes': ['H'], 'reads': ['E']}", "'h': {'on': ['Do'], 'do': [{'delete': 'H'}]}",
     NULL},
    {"'views': {'x': {'base': 'A', 'key': ['a']}}", "'views': {}", NULL},
    {"'key': ['a']", "'key': ['b']", NULL},

    {", 'L': {'kind': 'CRecord'}", "", "$.types.L: the type was removed"},
    {"'a': {'type': 'int64'}, ", "", "$.types.A.fields.a: the field was removed"},
    {"'children': {'c': 'K'}", "'children': {}", "$.types.A.children.c: the container was removed"},
    {"'children': {'c': 'K'}", "'children': {'c': 'L'}", "$.types.A.children.c: it held K and cannot hold L"},
    {", 'u': {}", "", "$.workspaces.w.sequences.u: the sequence was removed"},
    {"'workspaces': {'w': {", "'workspaces': {'w2': {", "$.workspaces.w: the workspace kind was removed"},
    {", 'Undo': {}", "", "$.commands.Undo: the command was removed"},
    {"'entities': {'E'", "'entities': {'E2'", "$.entities.E: the entity was removed"},
    {"'a': {'type': 'int64'}", "'a': {'type': 'float64'}",
     "$.types.A.fields.a.type: it was int64 and cannot become float64"},
    {"'a': {'type': 'int64'}", "'a': {'type': 'int64', 'required': true}",
     "$.types.A.fields.a.required: the field was optional"},
    {"'a': {'type': 'int64'}", "'a': {'type': 'int64'}, 'z': {'type': 'bool', 'required': true}",
     "$.types.A.fields.z.required: a field that is new cannot be required"},
    {"'a': {'type': 'int64'}", "'a': {'type': 'int64', 'sequence': 's'}",
     "$.types.A.fields.a.sequence: a field's sequence"},
    {"'type': 'int64', 'sequence': 's'", "'type': 'int64'", "$.types.A.fields.n.sequence: a field's sequence"},
    {"'sequence': 's'", "'sequence': 'u'", "$.types.A.fields.n.sequence: a field's sequence"},
    {"'to': 'B'", "'to': 'A'", "$.types.A.fields.r.to: what a ref refers to"},
    {"'y': {'type': 'ref'}", "'y': {'type': 'ref', 'to': 'B'}", "$.types.A.fields.y.to: what a ref refers to"},
    {"'argument': 'A'", "'argument': 'B'", "$.commands.Set.argument: a command's argument"},
    {"'argument': 'A'", "'records': ['A']", "$.commands.Set.argument: a command's argument"},
    {"'L': {'kind': 'CRecord'}", "'L': {'kind': 'WRecord'}",
     "$.types.L.kind: it was CRecord and cannot become WRecord"},
    {"'key': ['k', 'j']", "'key': ['j', 'k']", "$.entities.E.key: an entity's key cannot change"},
    {"'key': ['k', 'j']", "'key': ['k']", "$.entities.E.key: an entity's key cannot change"},
    {"'v': {'type': 'int64'}", "'v': {'type': 'string'}", "$.entities.E.fields.v.type: it was int64"},
    {"'first': 5", "'first': 6", "$.workspaces.w.sequences.s.first: a sequence's first"},
    {"'u': {}", "'u': {'first': 2}", "$.workspaces.w.sequences.u.first: a sequence's first"},
    {"'end': 100", "'end': 99", "$.workspaces.w.sequences.s.end: a sequence's end"},
    {"'u': {}", "'u': {'end': 7}", "$.workspaces.w.sequences.u.end: a sequence's end"},
    {", 'singleton': true", "", "$.types.B.singleton: whether a type is a singleton"},
    {"'L': {'kind': 'CRecord'}", "'L': {'kind': 'CRecord'}, 'x': {'kind': 'CDoc'}",
     "$.views.x: the name is one of the package's types already"},
    {"'views': {'x': {'base': 'A', 'key': ['a']}}", "'views': {'q': {'base': 'A', 'key': ['a']}}",
     "$.views.q: the name is one of the package's projectors already"},
    {"'projectors': {'q': {'on': ['Do'],", "'projectors': {'q2': {'on': ['Do'], 'sync': true,",
     "$.projectors.q2.do: p.E was filled by a lane before"},
    {"'h': {'on': ['Do'], 'writes': ['H'], 'reads': ['E']}",
     "'h': {'on': ['Do'], 'sync': true, 'do': [{'delete': 'H'}]}",
     "$.projectors.h.do: p.H was filled by a lane before"},
    {"'reads': ['E']", "'reads': ['A']", "$.projectors.h.reads[0]: 'A' is a type, not an entity"},
    {"'q': {'on': ['Do'], 'do': [{'update': 'E', 'set': {'v': 'v + 1'}}]},", "",
     "$.projectors.h.reads: no lane fills p.E: what a handler reads is filled by its own lane"},
};

static char *replaced(const char *from, const char *to)
{
    const char *at = strstr(before, from);
    assert_non_null(at);
    size_t head = (size_t)(at - before), size = strlen(before) + strlen(to) + 1;
    char *text = malloc(size);
    assert_non_null(text);
    snprintf(text, size, "%.*s%s%s", (int)head, before, to, at + strlen(from));
    return text;
}

TEST(adding_is_fine_and_breaking_is_refused_with_the_reason)
{
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct group0 *group0;
        enum group0_outcome outcome;
        pawl_error error = {0};
        assert_ok(group0_new(NULL, &group0));
        assert_ok(schema_apply(group0, before, &outcome, &error));
        struct hash128 digest = group0_digest(group0);
        char *after = replaced(cases[i].from, cases[i].to);
        int status = schema_check(group0, after, &outcome, &error);
        const char *expected = cases[i].error;
        bool good = expected ? status == PAWL_EINVAL && strncmp(error.text, expected, strlen(expected)) == 0
                             : status == PAWL_OK && outcome == GROUP0_CHANGED;
        if (!good) {
            print_error("%s -> %s\n    expected %s\n    got      %s %s\n", cases[i].from, cases[i].to,
                        expected ? expected : "a change", pawl_status_name(status), error.text);
            wrong++;
        }
        assert_int_equal(group0_digest(group0).low, digest.low);
        free(after);
        group0_free(group0);
    }
    assert_int_equal(wrong, 0);
}

/* Saying the same in other words, or in another order, is no change. */
TEST(the_same_in_other_words_changes_nothing)
{
    static const char *const same[][2] = {
        {"'to': 'B'", "'to': 'p.B'"},
        {"'c': 'K'", "'c': 'p.K'"},
        {"'records': ['A']", "'records': ['p.A']"},
        {"'on': ['Do']", "'on': ['p.Do']"},
        {"'update': 'E'", "'update': 'p.E'"},
        {"'q': {", "'q': {'on_failure': 'stall', 'max_attempts': 5, 'workers': 4, "},
        {"'h': {", "'h': {'on_failure': 'stall', 'max_attempts': 5, 'workers': 4, "},
        {"'writes': ['H'], 'reads': ['E']", "'writes': ['p.H'], 'reads': ['p.E']"},
        {"'sequence': 's'", "'sequence': 'p.s'"},
        {"'base': 'A'", "'base': 'p.A'"},
        {"'u': {}", "'u': {'first': 1}"},
        {"'u': {}", "'u': {'end': 9223372036854775807}"},
        {"'a': {'type': 'int64'}, 'b': {'type': 'string', 'required': true}",
         "'b': {'type': 'string', 'required': true}, 'a': {'type': 'int64', 'required': false}"},
        {"'Do': {'records': ['A']}, 'Undo': {}", "'Undo': {}, 'Do': {'records': ['A']}"},
        {"'K': {'kind': 'CRecord'}, 'L': {'kind': 'CRecord'}",
         "'L': {'kind': 'CRecord'}, 'K': {'kind': 'CRecord'}"},
    };
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &group0));
    assert_ok(schema_apply(group0, before, &outcome, &error));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char *after = replaced(same[i][0], same[i][1]);
        outcome = GROUP0_CHANGED;
        assert_ok(schema_apply(group0, after, &outcome, &error));
        if (outcome != GROUP0_UNCHANGED)
            print_error("%s -> %s\n", same[i][0], same[i][1]);
        assert_int_equal(outcome, GROUP0_UNCHANGED);
        free(after);
    }
    assert_int_equal(group0_schema(group0)->position, 1);
    group0_free(group0);
}

TEST(fields_keep_their_places_whatever_order_they_are_written_in)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &group0));
    assert_ok(schema_apply(group0, before, &outcome, &error));
    char *after = replaced("'a': {'type': 'int64'}, 'b'", "'z': {'type': 'bool'}, 'b'");
    const char *tail = "'r': {'type': 'ref', 'to': 'B'}";
    char *at = strstr(after, tail);
    size_t size = strlen(after) + 100;
    char *text = malloc(size);
    assert_non_null(text);
    snprintf(text, size, "%.*s'a': {'type': 'int64'}, %s", (int)(at - after), after, at);
    assert_ok(schema_apply(group0, text, &outcome, &error));
    const struct schema_type *type = schema_type_by_name(group0_schema(group0), text_bytes("p.A"));
    static const char *const places[] = {"a", "b", "r", "n", "y", "z"};
    assert_int_equal(type->field_count, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(schema_field_place(type, text_bytes(places[i])), i);
    free(after);
    free(text);
    group0_free(group0);
}

/* A name that was taken away keeps its meaning and its number. */
TEST(a_name_keeps_its_meaning)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &group0));
    assert_ok(schema_apply(group0, before, &outcome, &error));
    uint16_t id = schema_name_id(group0_schema(group0), text_bytes("p.x"));
    char *without = replaced("'views': {'x': {'base': 'A', 'key': ['a']}}", "'views': {}");
    assert_ok(schema_apply(group0, without, &outcome, &error));
    assert_int_equal(group0_building(group0)->views->count, 0);
    assert_int_equal(schema_name_id(group0_schema(group0), text_bytes("p.x")), id);
    char *other = replaced("'Undo': {},", "'Undo': {}, 'x': {},");
    char *end = strstr(other, ",'views'");
    snprintf(end, strlen(end) + 1, "}");
    assert_status(schema_check(group0, other, &outcome, &error), PAWL_EINVAL);
    assert_string_equal(error.text, "$.commands.x: the name was given to a view, and keeps its meaning");
    assert_ok(schema_apply(group0, before, &outcome, &error));
    assert_int_equal(schema_name_id(group0_schema(group0), text_bytes("p.x")), id);
    assert_true(bytes_equal(group0_building(group0)->views->entries[0].view->name, text_bytes("p.x")));
    free(without);
    free(other);
    group0_free(group0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(adding_is_fine_and_breaking_is_refused_with_the_reason),
        RUN(the_same_in_other_words_changes_nothing),
        RUN(fields_keep_their_places_whatever_order_they_are_written_in),
        RUN(a_name_keeps_its_meaning),
    };
    return TEST_MAIN(tests);
}
