/* Results as JSON: which calls they become, and what is refused, where and with which words. Single quotes
 * stand for double ones. */
#include "test/lib/test.h"

#include "base/error.h"
#include "engine/json/results.h"
#include "test/lib/schema.h"

static const char schema_text[] =
    "{ 'schema': 1, 'package': 'p', 'workspaces': { 'w': {} },"
    "  'types': { 'Doc': { 'kind': 'CDoc', 'fields': { 'n': {'type': 'int64'} } } },"
    "  'commands': { 'Put': { 'records': ['Doc'] } },"
    "  'entities': {"
    "    'Every': { 'key': ['s', 'i'], 'fields': { 'i': {'type': 'int64'}, 'f': {'type': 'float64'},"
    "               'b': {'type': 'bool'}, 's': {'type': 'string'}, 'x': {'type': 'bytes'},"
    "               't': {'type': 'timestamp'}, 'q': {'type': 'qname'}, 'r': {'type': 'ref'},"
    "               'n': {'type': 'int64'}, 'name': {'type': 'string'} } },"
    "    'Far': { 'key': ['i'], 'fields': { 'i': {'type': 'int64'} } } } }";

/* Notes what is called, and refuses what has "bad" in it, or is about p.Far. */
struct pawl_results {
    const struct schema *schema;
    const struct schema_type *entity;
    char said[2048];
    pawl_error error;
};

__attribute__((format(printf, 2, 3))) static int note(pawl_results *r, const char *format, ...)
{
    size_t used = strlen(r->said);
    va_list args;
    va_start(args, format);
    vsnprintf(r->said + used, sizeof r->said - used, format, args);
    va_end(args);
    if (strstr(r->said + used, "bad") || strstr(r->said + used, "p.Far"))
        return error_set(&r->error, PAWL_EINVAL, "this is bad");
    return PAWL_OK;
}

static int note_begin(pawl_results *r, const char *kind, const char *entity, const char *where)
{
    r->entity = schema_type_by_name(r->schema, text_bytes(entity));
    return note(r, "%s %s%s%s; ", kind, entity, where ? " where " : "", where ? where : "");
}

int pawl_results_upsert(pawl_results *r, const char *entity)
{
    return note_begin(r, "upsert", entity, NULL);
}

int pawl_results_update(pawl_results *r, const char *entity, const char *where)
{
    return note_begin(r, "update", entity, where);
}

int pawl_results_delete(pawl_results *r, const char *entity, const char *where)
{
    return note_begin(r, "delete", entity, where);
}

int pawl_results_set_int64(pawl_results *r, const char *field, int64_t value)
{
    return note(r, "%s=%" PRId64 "; ", field, value);
}

int pawl_results_set_float64(pawl_results *r, const char *field, double value)
{
    return note(r, "%s=%g; ", field, value);
}

int pawl_results_set_bool(pawl_results *r, const char *field, bool value)
{
    return note(r, "%s=%s; ", field, value ? "true" : "false");
}

int pawl_results_set_text(pawl_results *r, const char *field, pawl_bytes value)
{
    return note(r, "%s='%.*s'%zu; ", field, (int)value.size, (const char *)value.data, value.size);
}

int pawl_results_set_bytes(pawl_results *r, const char *field, pawl_bytes value)
{
    return note(r, "%s=<%.*s>; ", field, (int)value.size, (const char *)value.data);
}

int pawl_results_set_time(pawl_results *r, const char *field, pawl_wall value)
{
    return note(r, "%s=@%" PRId64 "; ", field, value.ns);
}

int pawl_results_set_name(pawl_results *r, const char *field, const char *qname)
{
    return note(r, "%s=%s; ", field, qname);
}

int pawl_results_set_ref(pawl_results *r, const char *field, uint64_t id)
{
    return note(r, "%s=#%" PRIu64 "; ", field, id);
}

int pawl_results_set_null(pawl_results *r, const char *field)
{
    return note(r, "%s=null; ", field);
}

int pawl_results_set_expr(pawl_results *r, const char *field, const char *expression)
{
    return note(r, "%s:=%s; ", field, expression);
}

const struct schema *results_schema(pawl_results *r)
{
    return r->schema;
}

const struct schema_type *results_entity(pawl_results *r)
{
    return r->entity;
}

const pawl_error *results_error(pawl_results *r)
{
    return &r->error;
}

static int read_text(struct group0 *group0, const char *text, struct pawl_results *results, pawl_error *error)
{
    char json[1024];
    size_t size = strlen(text);
    assert_true(size < sizeof json);
    for (size_t i = 0; i < size; i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    *results = (pawl_results){.schema = group0_schema(group0)};
    *error = (pawl_error){0};
    return json_results_read(json, size, results, error);
}

static struct group0 *open_schema(void)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &group0));
    assert_ok(schema_apply(group0, schema_text, &outcome, &error));
    return group0;
}

TEST(writes_become_calls_in_their_order)
{
    static const struct {
        const char *json, *calls;
    } cases[] = {
        {"{'writes':[]}", ""},
        {"{'writes':[{'upsert':'p.Every','key':{'i':7,'s':'a'}}]}", "upsert p.Every; s='a'1; i=7; "},
        {"{'writes':[{'set':{'n':1},'key':['a','9223372036854775807'],'upsert':'p.Every'}]}",
         "upsert p.Every; s='a'1; i=9223372036854775807; n=1; "},
        {"{'writes':[{'upsert':'p.Every','key':['',1],'set':{'f':0.5,'b':true,'x':'Zm9v','t':'1970-01-01T00:00:"
         "01Z',"
         "'q':'p.Doc','r':200001,'n':null,'name':'x'}}]}",
         "upsert p.Every; s=''0; i=1; f=0.5; b=true; x=<foo>; t=@1000000000; q=p.Doc; r=#200001; n=null; "
         "name='x'1; "},
        {"{'writes':[{'upsert':'p.Every','key':['a',1],'set':{'n':{'expr':'n + 1'}}}]}",
         "upsert p.Every; s='a'1; i=1; n:=n + 1; "},
        {"{'writes':[{'update':'p.Every','where':'n > 1','set':{'b':false}}]}",
         "update p.Every where n > 1; b=false; "},
        {"{'writes':[{'update':'p.Every','key':['a',1],'set':{'b':false}}]}",
         "update p.Every; s='a'1; i=1; b=false; "},
        {"{'writes':[{'update':'p.Every','set':{}}]}", "update p.Every; "},
        {"{'writes':[{'delete':'p.Every'},{'delete':'p.Every','where':'b'},{'delete':'p.Every','key':['a',1]}]"
         "}",
         "delete p.Every; delete p.Every where b; delete p.Every; s='a'1; i=1; "},
    };
    struct group0 *group0 = open_schema();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pawl_results results;
        pawl_error error;
        int status = read_text(group0, cases[i].json, &results, &error);
        print_message("# %s %s\n", cases[i].json, error.text);
        assert_ok(status);
        assert_string_equal(results.said, cases[i].calls);
    }
    group0_free(group0);
}

TEST(what_is_wrong_is_named_by_its_place)
{
    static const struct {
        const char *json, *words;
    } cases[] = {
        {"", "line 1, column 0"},
        {"[]", "$: expected an object, not an array"},
        {"{}", "$.writes: it is missing"},
        {"{'writes':{}}", "$.writes: expected an array of objects, not an object"},
        {"{'writes':[],'more':1}", "$.more: there is no such member"},
        {"{'writes':[],'writes':[]}", "line 1, column 21: duplicate object key"},
        {"{'writes':[1]}", "$.writes[0]: expected an object, not an integer"},
        {"{'writes':[{}]}", "$.writes[0]: a write is an upsert, an update or a delete"},
        {"{'writes':[{'upsert':'p.Every','update':'p.Every'}]}", "$.writes[0].update: there is no such member"},
        {"{'writes':[{'upsert':'p.Every'}]}", "$.writes[0].key: it is missing"},
        {"{'writes':[{'update':'p.Every'}]}", "$.writes[0].set: it is missing"},
        {"{'writes':[{'delete':'p.Every','set':{}}]}", "$.writes[0].set: there is no such member"},
        {"{'writes':[{'upsert':'p.Every','key':['a',1],'where':'b'}]}",
         "$.writes[0].where: there is no such member"},
        {"{'writes':[{'delete':'p.Every','key':['a',1],'where':'b'}]}",
         "$.writes[0].where: rows are named by a key or by a clause, not by both"},
        {"{'writes':[{'delete':1}]}",
         "$.writes[0].delete: expected the qualified name of an entity, not an integer"},
        {"{'writes':[{'delete':'p.Evry'}]}", "$.writes[0].delete: there is no entity 'p.Evry'"},
        {"{'writes':[{'delete':'p.Doc'}]}", "$.writes[0].delete: there is no entity 'p.Doc'"},
        {"{'writes':[{'delete':'p.Every\\u0000'}]}", "$.writes[0].delete: it has a zero in it"},
        {"{'writes':[{'delete':'p.Far'}]}", "$.writes[0].delete: this is bad"},
        {"{'writes':[{'delete':'p.Every','where':'bad'}]}", "$.writes[0].where: this is bad"},
        {"{'writes':[{'delete':'p.Every','where':null}]}",
         "$.writes[0].where: expected an expression as a string, not null"},
        {"{'writes':[{'delete':'p.Every','key':null}]}",
         "$.writes[0].key: expected an object, or an array of values, not null"},
        {"{'writes':[{'delete':'p.Every','key':['a']}]}",
         "$.writes[0].key: the key of p.Every has 2 fields, not 1"},
        {"{'writes':[{'delete':'p.Every','key':['a',null]}]}", "$.writes[0].key[1]: a key has no nulls"},
        {"{'writes':[{'delete':'p.Every','key':{'s':'a'}}]}", "$.writes[0].key.i: it is missing"},
        {"{'writes':[{'delete':'p.Every','key':{'s':'a','i':1,'n':1}}]}",
         "$.writes[0].key.n: the key of p.Every has no such field"},
        {"{'writes':[{'delete':'p.Every','key':['bad',1]}]}", "$.writes[0].key.s: this is bad"},
        {"{'writes':[{'update':'p.Every','set':[]}]}", "$.writes[0].set: expected an object, not an array"},
        {"{'writes':[{'update':'p.Every','set':{'z':1}}]}", "$.writes[0].set.z: p.Every has no such field"},
        {"{'writes':[{'update':'p.Every','set':{'s':'a'}}]}", "$.writes[0].set.s: it is of the key"},
        {"{'writes':[{'update':'p.Every','set':{'n':'x'}}]}",
         "$.writes[0].set.n: the string is not an integer of 64 bits"},
        {"{'writes':[{'update':'p.Every','set':{'n':1.5}}]}",
         "$.writes[0].set.n: expected an integer, not a number with a fraction"},
        {"{'writes':[{'update':'p.Every','set':{'n':9007199254740992}}]}",
         "$.writes[0].set.n: 9007199254740992 may"},
        {"{'writes':[{'update':'p.Every','set':{'n':NaN}}]}", "line 1, column 45"},
        {"{'writes':[{'update':'p.Every','set':{'f':1e999}}]}", "line 1, column 4"},
        {"{'writes':[{'update':'p.Every','set':{'name':'\xff'}}]}", "line 1, column 4"},
        {"{'writes':[{'update':'p.Every','set':{'q':'p.No'}}]}", "$.writes[0].set.q: there is no name 'p.No'"},
        {"{'writes':[{'update':'p.Every','set':{'n':{}}}]}", "$.writes[0].set.n.expr: it is missing"},
        {"{'writes':[{'update':'p.Every','set':{'n':{'expr':1}}}]}",
         "$.writes[0].set.n.expr: expected an expression as a string, not an integer"},
        {"{'writes':[{'update':'p.Every','set':{'n':{'expr':'1','more':1}}}]}",
         "$.writes[0].set.n.more: there is no such member"},
        {"{'writes':[{'update':'p.Every','set':{'n':{'expr':'bad'}}}]}", "$.writes[0].set.n.expr: this is bad"},
        {"{'writes':[{'update':'p.Every','set':{'name':'bad'}}]}", "$.writes[0].set.name: this is bad"},
        {"{'writes':[{'update':'p.Every','set':{'n':{'expr':[[]]}}}]}", "brackets are more than 5 deep"},
        {"{'writes':[{'delete':'p.Every'},{'delete':'p.No'}]}",
         "$.writes[1].delete: there is no entity 'p.No'"},
    };
    struct group0 *group0 = open_schema();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pawl_results results;
        pawl_error error;
        int status = read_text(group0, cases[i].json, &results, &error);
        print_message("# %s\n", cases[i].json);
        assert_status(status, PAWL_EINVAL);
        assert_int_equal(error.code, PAWL_EINVAL);
        assert_contains(error.text, cases[i].words);
    }
    group0_free(group0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(writes_become_calls_in_their_order),
        RUN(what_is_wrong_is_named_by_its_place),
    };
    return TEST_MAIN(tests);
}
