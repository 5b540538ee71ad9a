/* Schemas that are refused, each with where and why. */
#include "test/lib/schema.h"
#include "test/lib/test.h"

/* A package around its members; and one with a few things to refer to. */
#define P(members) "{'schema': 1, 'package': 'p'" members "}"
#define S(members)                                                                                             \
    P(", 'workspaces': {'w': {'sequences': {'s': {}}}},"                                                       \
      "'types': {'C': {'kind': 'CDoc'}, 'CR': {'kind': 'CRecord'},"                                            \
      "          'O': {'kind': 'ODoc', 'fields': {'n': {'type': 'int64'}, 't': {'type': 'string'}}}},"         \
      "'commands': {'Do': {'argument': 'O'}, 'Other': {}},"                                                    \
      "'entities': {'E': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': 'int64'},"            \
      "                                            'x': {'type': 'string'}}}}" members)
#define ACTION(action)   S(", 'projectors': {'q': {'on': ['Do'], 'do': [" action "]}}")
#define HANDLER(members) S(", 'projectors': {'q': {'on': ['Do'], " members "}}")
#define FIELD(field)     P(", 'types': {'T': {'kind': 'CDoc', 'fields': {'f': " field "}}}")
#define TYPE(type)       P(", 'types': {'T': " type "}")

static const struct {
    const char *schema;
    const char *error;
} cases[] = {
    /* Form. */
    {"", "line 1, column 0: "},
    {"{'schema': 1,\n 'package': }", "line 2, column 13: "},
    {"{'schema': 1, 'schema': 1}", "line 1, column 22: duplicate object key"},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "line 1, column 33: brackets are more than 32 deep"},
    {"[]", "$: expected an object, not an array"},
    {"{'package': 'p'}", "$.schema: it must be 1"},
    {"{'schema': 2, 'package': 'p'}", "$.schema: it must be 1"},
    {"{'schema': 1}", "$.package: it is missing"},
    {"{'schema': 1, 'package': ''}", "$.package: it is empty"},
    {"{'schema': 1, 'package': 'a b'}", "$.package: 'a b' is not a name"},
    {"{'schema': 1, 'package': 'sys'}", "$.package: 'sys' is the system's own"},
    {P(", 'tables': {}"), "$.tables: there is no such member"},
    {P(", 'types': []"), "$.types: expected an object, not an array"},
    {TYPE("{'kind': 'CDoc', 'feilds': {}}"), "$.types.T.feilds: there is no such member"},
    {TYPE("{}"), "$.types.T.kind: it is missing"},
    {TYPE("7"), "$.types.T: expected an object, not an integer"},
    {FIELD("{'type': 'int64', 'required': 1}"),
     "$.types.T.fields.f.required: expected true or false, not an integer"},
    {P(", 'workspaces': {'w': {'sequences': {'s': {'first': 0}}}}"),
     "$.workspaces.w.sequences.s.first: it must be at least 1"},
    {P(", 'workspaces': {'w': {'sequences': {'s': {'end': 1.5}}}}"),
     "$.workspaces.w.sequences.s.end: expected an integer, not a number with a fraction"},
    {P(", 'workspaces': {'w': {'sequences': {'s': {'first': 5, 'end': 4}}}}"),
     "$.workspaces.w.sequences.s.end: the last number is below the first"},

    /* Names. */
    {P(", 'types': {'2T': {'kind': 'CDoc'}}"), "$.types[\"2T\"]: '2T' is not a name"},
    {P(", 'types': {'p.T': {'kind': 'CDoc'}}"), "$.types[\"p.T\"]: 'p.T' is not a name"},
    {P(", 'types': {'T': {'kind': 'CDoc'}}, 'commands': {'T': {}}"),
     "$.commands.T: the name is one of the package's types already"},
    {P(", 'types': {'T': {'kind': 'CDoc'}}, 'entities': {'T': {'key': ['k'], 'fields': {'k': {'type': "
       "'bool'}}}}"),
     "$.entities.T: the name is one of the package's types already"},
    {P(", 'workspaces': {'w': {'sequences': {'w': {}}}}"),
     "$.workspaces.w.sequences.w: the name is one of the package's workspaces already"},

    /* Types and fields. */
    {TYPE("{'kind': 'Doc'}"), "$.types.T.kind: 'Doc' is not a kind"},
    {FIELD("{'type': 'int'}"), "$.types.T.fields.f.type: 'int' is not a type"},
    {FIELD("{'type': 'int64', 'to': 'T'}"), "$.types.T.fields.f.to: only a field of type ref"},
    {FIELD("{'type': 'ref', 'to': 'U'}"), "$.types.T.fields.f.to: there is no type 'U'"},
    {FIELD("{'type': 'ref', 'to': 'other.U'}"), "$.types.T.fields.f.to: there is no type 'other.U'"},
    {FIELD("{'type': 'string', 'sequence': 's'}"),
     "$.types.T.fields.f.sequence: a numbered field must be of type int64"},
    {FIELD("{'type': 'int64', 'sequence': 's'}"), "$.types.T.fields.f.sequence: there is no sequence 's'"},
    {FIELD("{'type': 'int64', 'sequence': 'T'}"), "$.types.T.fields.f.sequence: 'T' is a type, not a sequence"},
    {FIELD("{'type': 'int64', 'sequence': 's', 'required': true}"),
     "$.types.T.fields.f.required: a numbered field"},
    {TYPE("{'kind': 'CDoc', 'fields': {'id': {'type': 'int64'}}}"),
     "$.types.T.fields.id: 'id' is the record's own"},
    {TYPE("{'kind': 'CDoc', 'fields': {'and': {'type': 'int64'}}}"), "$.types.T.fields.and: 'and' is a word"},
    {TYPE("{'kind': 'ODoc', 'singleton': true}"), "$.types.T.singleton: only a CDoc or a WDoc"},
    {TYPE("{'kind': 'CRecord', 'singleton': true}"), "$.types.T.singleton: only a CDoc or a WDoc"},

    /* Containers. */
    {TYPE("{'kind': 'CDoc', 'children': {'c': 'U'}}"), "$.types.T.children.c: there is no type 'U'"},
    {TYPE("{'kind': 'CDoc', 'fields': {'c': {'type': 'bool'}}, 'children': {'c': 'T'}}"),
     "$.types.T.children.c: 'c' is a field's name already"},
    {TYPE("{'kind': 'CDoc', 'children': {'c': 'T'}}"),
     "$.types.T.children.c: p.T is of kind CDoc; the children of a CDoc are CRecords"},
    {P(", 'types': {'T': {'kind': 'WDoc', 'children': {'c': 'U'}}, 'U': {'kind': 'ORecord'}}"),
     "$.types.T.children.c: p.U is of kind ORecord; the children of a WDoc are WRecords"},
    {TYPE("{'kind': 'CRecord', 'children': {'c': 'T'}}"), "$.types.T.children: p.T would contain itself"},
    {P(", 'types': {'A': {'kind': 'ODoc', 'children': {'b': 'B'}}, 'B': {'kind': 'ORecord', 'children': {'c': "
       "'C'}},"
       "'C': {'kind': 'ORecord', 'children': {'b': 'B'}}}"),
     "$.types.A.children: p.B would contain itself"},

    /* Commands. */
    {S(", 'views': {}, 'projectors': {'x': {'on': ['Nope'], 'do': []}}"),
     "$.projectors.x.do: a projector needs something"},
    {P(", 'commands': {'Do': {'argument': 'X'}}"), "$.commands.Do.argument: there is no type 'X'"},
    {P(", 'types': {'R': {'kind': 'CRecord'}}, 'commands': {'Do': {'argument': 'R'}}"),
     "$.commands.Do.argument: p.R is of kind CRecord; an argument is a document"},
    {P(", 'types': {'R': {'kind': 'CDoc'}}, 'commands': {'Do': {'records': ['R', 'R']}}"),
     "$.commands.Do.records[1]: 'R' is there twice"},
    {P(", 'types': {'R': {'kind': 'CDoc'}}, 'commands': {'Do': {'records': ['R', 'p.R']}}"),
     "$.commands.Do.records[1]: p.R is there twice"},
    {P(", 'entities': {'E': {'key': ['k'], 'fields': {'k': {'type': 'bool'}}}}, 'commands': {'Do': {'records': "
       "['E']}}"),
     "$.commands.Do.records[0]: 'E' is an entity, not a type"},
    {P(", 'commands': {'Do': {'records': [7]}}"),
     "$.commands.Do.records[0]: expected a string, not an integer"},

    /* Entities. */
    {P(", 'entities': {'E': {'fields': {'k': {'type': 'bool'}}}}"), "$.entities.E.key: an entity needs a key"},
    {P(", 'entities': {'E': {'key': ['j'], 'fields': {'k': {'type': 'bool'}}}}"),
     "$.entities.E.key[0]: there is no field 'j'"},
    {P(", 'entities': {'E': {'key': ['k', 'k'], 'fields': {'k': {'type': 'bool'}}}}"),
     "$.entities.E.key[1]: 'k' is there twice"},
    {P(", 'entities': {'E': {'key': ['k'], 'fields': {'k': {'type': 'bool', 'required': true}}}}"),
     "$.entities.E.fields.k.required: "},
    {P(", 'entities': {'E': {'key': ['k'], 'fields': {'k': {'type': 'int64', 'sequence': 's'}}}}"),
     "$.entities.E.fields.k.sequence: "},

    /* Projectors. */
    {S(", 'projectors': {'q': {'do': [{'delete': 'E'}]}}"), "$.projectors.q.on: a projector needs a command"},
    {S(", 'projectors': {'q': {'on': ['C'], 'do': [{'delete': 'E'}]}}"),
     "$.projectors.q.on[0]: 'C' is a type, not a command"},
    {S(", 'projectors': {'q': {'on': ['Do', 'p.Do'], 'do': [{'delete': 'E'}]}}"),
     "$.projectors.q.on[1]: p.Do is there twice"},
    {S(", 'projectors': {'q': {'on': ['Do'], 'sync': true, 'lane': 'l', 'do': [{'delete': 'E'}]}}"),
     "$.projectors.q.lane: a synchronous projector is in no lane"},
    {HANDLER("'reads': ['E']"),
     "$.projectors.q.do: a projector needs something to do, or says what its handler"},
    {HANDLER("'writes': 'E'"), "$.projectors.q.writes: expected an array of strings, not a string"},
    {HANDLER("'writes': ['E'], 'sync': true"), "$.projectors.q.sync: a handler takes its time"},
    {HANDLER("'writes': ['F']"), "$.projectors.q.writes[0]: there is no entity 'F'"},
    {HANDLER("'writes': ['E', 'C']"), "$.projectors.q.writes[1]: 'C' is a type, not an entity"},
    {HANDLER("'writes': ['E', 'E']"), "$.projectors.q.writes[1]: 'E' is there twice"},
    {HANDLER("'writes': ['E', 'p.E']"), "$.projectors.q.writes[1]: p.E is there twice"},
    {HANDLER("'writes': ['E'], 'reads': ['Do']"), "$.projectors.q.reads[0]: 'Do' is a command, not an entity"},
    {HANDLER("'writes': ['E'], 'do': [{'delete': 'E'}]"), "$.projectors.q.writes: what it does says"},
    {HANDLER("'reads': ['E'], 'do': [{'delete': 'E'}]"), "$.projectors.q.reads: what it does says"},
    {HANDLER("'writes': ['E'], 'on_failure': 'skip'"),
     "$.projectors.q.on_failure: 'skip' is neither stall nor void"},
    {HANDLER("'writes': ['E'], 'on_failure': true"),
     "$.projectors.q.on_failure: expected a string, not a bool"},
    {HANDLER("'writes': ['E'], 'max_attempts': 0"), "$.projectors.q.max_attempts: it must be at least 1"},
    {HANDLER("'writes': ['E'], 'max_attempts': 1001"), "$.projectors.q.max_attempts: it must be at most 1000"},
    {HANDLER("'writes': ['E'], 'workers': -1"), "$.projectors.q.workers: it must be at least 1"},
    {HANDLER("'writes': ['E'], 'workers': 1025"), "$.projectors.q.workers: it must be at most 1024"},
    {HANDLER("'sync': true, 'workers': 4, 'do': [{'delete': 'E'}]"),
     "$.projectors.q.workers: a synchronous projector is run once"},
    {HANDLER("'sync': true, 'max_attempts': 1, 'do': [{'delete': 'E'}]"),
     "$.projectors.q.max_attempts: a synchronous projector is run once"},
    {HANDLER("'sync': true, 'on_failure': 'stall', 'do': [{'delete': 'E'}]"),
     "$.projectors.q.on_failure: a synchronous projector is run once"},
    {S(", 'projectors': {'q': {'on': ['Do'], 'sync': true, 'do': [{'delete': 'E'}]},"
       "'r': {'on': ['Do'], 'writes': ['E']}}"),
     "$.projectors.r.writes: p.E is filled by p.q too, and only one of them is synchronous"},
    {ACTION("{}"), "$.projectors.q.do[0]: an action is an upsert, an update or a delete"},
    {ACTION("{'delete': 'E', 'set': {}}"), "$.projectors.q.do[0].set: there is no such member"},
    {ACTION("{'delete': 'C'}"), "$.projectors.q.do[0].delete: 'C' is a type, not an entity"},
    {ACTION("{'update': 'E'}"), "$.projectors.q.do[0]: an update must set something"},
    {ACTION("{'upsert': 'E', 'set': {'v': '1'}}"),
     "$.projectors.q.do[0].key: 'k', of the key of p.E, is missing"},
    {ACTION("{'upsert': 'E', 'key': {'k': '1', 'v': '1'}}"),
     "$.projectors.q.do[0].key.v: 'v' is not in the key of p.E"},
    {ACTION("{'upsert': 'E', 'key': {'k': '1'}, 'set': {'k': '2'}}"),
     "$.projectors.q.do[0].set.k: 'k' is in the key of p.E, and cannot be set"},
    {ACTION("{'delete': 'E'}, {'update': 'E', 'set': {'y': '2'}}"),
     "$.projectors.q.do[1].set.y: p.E has no field 'y'"},
    {ACTION("{'update': 'E', 'set': {'v': '1 +'}}"), "$.projectors.q.do[0].set.v: line 1, column 4: "},
    {ACTION("{'update': 'E', 'set': {'v': 'x'}}"), "$.projectors.q.do[0].set.v: line 1, column 1: "},
    {ACTION("{'update': 'E', 'set': {'v': '1 + nope'}}"), "$.projectors.q.do[0].set.v: line 1, column 5: "},
    {ACTION("{'update': 'E', 'set': {'v': '$event.argument.nope'}}"),
     "$.projectors.q.do[0].set.v: line 1, column 1: "},
    {ACTION("{'update': 'E', 'where': 'v', 'set': {'v': '1'}}"),
     "$.projectors.q.do[0].where: line 1, column 1: "},
    {ACTION("{'upsert': 'E', 'key': {'k': 'v'}}"), "$.projectors.q.do[0].key.k: line 1, column 1: "},
    {S(", 'projectors': {'q': {'on': ['Do', 'Other'], 'do': [{'update': 'E', 'set': {'v': "
       "'$event.argument.n'}}]}}"),
     "$.projectors.q.do[0].set.v: line 1, column 1: "},
    {S(", 'projectors': {'q': {'on': ['Do'], 'sync': true, 'do': [{'delete': 'E'}]},"
       "'r': {'on': ['Do'], 'do': [{'delete': 'E'}]}}"),
     "$.projectors.r.do: p.E is filled by p.q too, and only one of them is synchronous"},
    {S(", 'projectors': {'q': {'on': ['Do'], 'lane': 'a', 'do': [{'delete': 'E'}]},"
       "'r': {'on': ['Do'], 'lane': 'b', 'do': [{'delete': 'E'}]}}"),
     "$.projectors.r.lane: it is bound to lane p.a"},

    /* Views. */
    {S(", 'views': {'v': {'base': 'E'}}"), "$.views.v.key: a view needs a key"},
    {S(", 'views': {'v': {'base': 'O', 'key': ['n']}}"), "$.views.v.base: p.O lives in its events only"},
    {S(", 'views': {'v': {'base': 'Do', 'key': ['n']}}"), "$.views.v.base: 'Do' is a command, not a type"},
    {S(", 'views': {'v': {'base': 'E', 'key': ['n']}}"), "$.views.v.key[0]: p.E has no field 'n'"},
    {S(", 'views': {'v': {'base': 'E', 'key': ['k'], 'include': ['z']}}"),
     "$.views.v.include[0]: p.E has no field 'z'"},
    {S(", 'views': {'v': {'base': 'E', 'key': ['k'], 'filter': '$event.offset > 1'}}"),
     "$.views.v.filter: line 1, column 1: "},
};

TEST(says_where_and_why)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum group0_outcome outcome;
        pawl_error error = {0};
        int status = schema_check(group0, cases[i].schema, &outcome, &error);
        if (status == PAWL_EINVAL && error.code == status
            && strncmp(error.text, cases[i].error, strlen(cases[i].error)) == 0)
            continue;
        print_error("%s\n    expected %s\n    got      %s %s\n", cases[i].schema, cases[i].error,
                    pawl_status_name(status), error.text);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(group0_position(group0), 0);
    group0_free(group0);
}

/* What S refers to is good by itself: so each case above is refused for what it adds. */
TEST(the_schemas_that_the_cases_change_are_accepted)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &group0));
    assert_ok(schema_check(group0, P(""), &outcome, &error));
    assert_ok(schema_check(group0, S(""), &outcome, &error));
    assert_ok(schema_check(group0, ACTION("{'delete': 'E'}"), &outcome, &error));
    assert_ok(schema_check(group0, FIELD("{'type': 'int64'}"), &outcome, &error));
    group0_free(group0);
}

/* A chain of records T1 in T0, T2 in T1, ... */
static char *nested(size_t types)
{
    size_t room = 200 + types * 80, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room, "{'schema': 1, 'package': 'p', 'types': {");
    for (size_t i = 0; i < types; i++)
        used += (size_t)snprintf(text + used, room - used,
                                 "'T%zu': {'kind': 'ORecord', 'children': {'c': 'T%zu'}},", i, i + 1);
    snprintf(text + used, room - used, "'T%zu': {'kind': 'ORecord'}}}", types);
    return text;
}

TEST(types_nest_sixteen_deep_and_no_deeper)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error;
    assert_ok(group0_new(NULL, &group0));
    char *good = nested(SCHEMA_DEPTH_MAX - 1), *bad = nested(SCHEMA_DEPTH_MAX), *worse = nested(1000);
    assert_ok(schema_check(group0, good, &outcome, &error));
    assert_status(schema_check(group0, bad, &outcome, &error), PAWL_EINVAL);
    assert_string_equal(error.text, "$.types.T0.children: types nest more than 16 deep");
    assert_status(schema_check(group0, worse, &outcome, &error), PAWL_EINVAL);
    free(good);
    free(bad);
    free(worse);
    group0_free(group0);
}

static char *singletons(size_t count)
{
    size_t room = 200 + count * 80, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room, "{'schema': 1, 'package': 'p', 'types': {");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, room - used, "%s'T%zu': {'kind': '%cDoc', 'singleton': true}",
                                 i ? "," : "", i, i % 2 ? 'W' : 'C');
    snprintf(text + used, room - used, "}}");
    return text;
}

TEST(there_are_512_singletons)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error;
    assert_ok(group0_new(NULL, &group0));
    char *good = singletons(512), *bad = singletons(513);
    assert_status(schema_check(group0, bad, &outcome, &error), PAWL_EINVAL);
    assert_contains(error.text, "$.types.T512.singleton: there are 512 singletons already");
    assert_ok(schema_apply(group0, good, &outcome, &error));
    const struct schema_type *last = schema_type_by_name(group0_schema(group0), text_bytes("p.T511"));
    assert_int_equal(last->singleton, 66047);
    const struct schema_type *first = schema_type_by_name(group0_schema(group0), text_bytes("p.T0"));
    assert_int_equal(first->singleton, 65536 | UINT64_C(1) << 50);
    free(good);
    free(bad);
    group0_free(group0);
}

static char *fields(size_t count)
{
    size_t room = 200 + count * 40, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room,
                             "{'schema': 1, 'package': 'p', 'types': {'T': {'kind': 'CDoc', 'fields': {");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, room - used, "%s'f%zu': {'type': 'int64'}", i ? "," : "", i);
    snprintf(text + used, room - used, "}}}}");
    return text;
}

TEST(a_type_has_a_thousand_fields)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error;
    assert_ok(group0_new(NULL, &group0));
    char *good = fields(SCHEMA_FIELDS_MAX), *bad = fields(SCHEMA_FIELDS_MAX + 1);
    assert_ok(schema_check(group0, good, &outcome, &error));
    assert_status(schema_check(group0, bad, &outcome, &error), PAWL_EINVAL);
    assert_string_equal(error.text, "$.types.T.fields: 1001 of them; 1000 are the most");
    free(good);
    free(bad);
    group0_free(group0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(says_where_and_why),
        RUN(the_schemas_that_the_cases_change_are_accepted),
        RUN(types_nest_sixteen_deep_and_no_deeper),
        RUN(there_are_512_singletons),
        RUN(a_type_has_a_thousand_fields),
    };
    return TEST_MAIN(tests);
}
