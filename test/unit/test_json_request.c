/* Commands as JSON: what is understood, in every form, and what is refused, where and with which words. */
#include "test/lib/test.h"

#include "base/bytes.h"
#include "test/lib/alloc.h"
#include "test/lib/json.h"

static const struct value *field(const struct request *r, size_t object, uint16_t place)
{
    const struct request_object *o = &r->objects[object];
    for (uint32_t i = 0; i < o->field_count; i++)
        if (r->fields[o->field_first + i].place == place)
            return &r->fields[o->field_first + i].value;
    return NULL;
}

static void expect_bytes(pawl_bytes bytes, const char *text)
{
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.size);
}

TEST(a_command_with_everything_is_understood)
{
    struct json_bed bed;
    struct request r;
    pawl_error error;
    json_bed_open(&bed, NULL);
    assert_ok(json_bed_read(&bed,
                            "{'command':'t.PlaceOrder','argument':{'id':1,'customer':1125899907042625,"
                            "'notes':[{'id':5,'said':'n'}],"
                            "'lines':[{'id':2,'sku':'A','qty':2,'notes':[{'id':6}]},{'id':4}]},"
                            "'records':[{'id':3,'type':'t.Invoice','fields':{'order':1,'cents':500}}],"
                            "'expected_offset':41,'actor':'till-3','correlation':'c-7','causation':'e-9',"
                            "'idempotency_key':'k'}",
                            &r, &error));
    assert_int_equal(r.wsid, 7);
    assert_int_equal(r.command, schema_name_id(bed.schema, text_bytes("t.PlaceOrder")));
    assert_true(r.expects);
    assert_int_equal(r.expected, 41);
    expect_bytes(r.actor, "till-3");
    expect_bytes(r.correlation, "c-7");
    expect_bytes(r.causation, "e-9");
    expect_bytes(r.key, "k");
    assert_int_equal(r.argument_count, 5);
    assert_int_equal(r.object_count, 6);
    static const struct {
        uint64_t id;
        const char *type;
        uint32_t parent;
        uint16_t container;
    } objects[] = {{1, "t.Order", REQUEST_NO_PARENT, 0},
                   {2, "t.Line", 0, 1},
                   {6, "t.Note", 1, 1},
                   {4, "t.Line", 0, 1},
                   {5, "t.Note", 0, 2},
                   {3, "t.Invoice", REQUEST_NO_PARENT, 0}};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(r.objects[i].id, objects[i].id);
        assert_int_equal(r.objects[i].type, json_bed_type(&bed, objects[i].type)->id);
        assert_int_equal(r.objects[i].parent, objects[i].parent);
        assert_int_equal(r.objects[i].container, objects[i].container);
        assert_int_equal(r.objects[i].active, ACTIVE_UNSAID);
    }
    assert_int_equal(field(&r, 0, 0)->id, UINT64_C(1125899907042625));
    expect_bytes(field(&r, 1, 0)->bytes, "A");
    assert_int_equal(field(&r, 1, 1)->integer, 2);
    assert_null(field(&r, 1, 2));
    assert_int_equal(field(&r, 5, 1)->type, VALUE_REF);
    assert_int_equal(field(&r, 5, 2)->integer, 500);
    json_bed_close(&bed);
}

static struct value read_every(struct json_bed *bed, const char *name, const char *value)
{
    char text[512];
    struct request r;
    pawl_error error = {0};
    snprintf(text, sizeof text, "{'command':'t.Put','records':[{'id':1,'type':'t.Every','fields':{'%s':%s}}]}",
             name, value);
    int status = json_bed_read(bed, text, &r, &error);
    print_message("# %s: %s %s\n", name, value, error.text);
    assert_ok(status);
    return r.fields[0].value;
}

TEST(every_form_of_a_value_is_read)
{
    static const struct {
        const char *text;
        int64_t integer;
    } integers[] = {{"0", 0},
                    {"-0", 0},
                    {"'-5'", -5},
                    {"9007199254740991", INT64_C(9007199254740991)},
                    {"-9007199254740991", -INT64_C(9007199254740991)},
                    {"'9007199254740993'", INT64_C(9007199254740993)},
                    {"'9223372036854775807'", INT64_MAX},
                    {"'-9223372036854775808'", INT64_MIN}};
    static const struct {
        const char *text;
        double real;
    } reals[] = {
        {"0.1", 0.1}, {"1", 1}, {"-2.5e3", -2500}, {"1e308", 1e308}, {"9007199254740993", 9007199254740992.0}};
    struct json_bed bed;
    json_bed_open(&bed, NULL);
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        assert_true(read_every(&bed, "i", integers[i].text).integer == integers[i].integer);
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        assert_true(read_every(&bed, "f", reals[i].text).real == reals[i].real);
    assert_true(read_every(&bed, "b", "true").boolean);
    assert_false(read_every(&bed, "b", "false").boolean);
    expect_bytes(read_every(&bed, "s", "'gr\\u00fc\xc3\x9f'").bytes, "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(read_every(&bed, "s", "'a\\u0000b'").bytes.size, 3);
    assert_int_equal(read_every(&bed, "s", "''").bytes.size, 0);
    expect_bytes(read_every(&bed, "x", "'Zm9vYg=='").bytes, "foob");
    assert_int_equal(read_every(&bed, "x", "''").type, VALUE_BYTES);
    assert_true(read_every(&bed, "t", "'1970-01-01T00:00:01.5Z'").integer == 1500000000);
    assert_int_equal(read_every(&bed, "q", "'t.Order'").name, json_bed_type(&bed, "t.Order")->id);
    assert_int_equal(read_every(&bed, "r", "200001").id, 200001);
    assert_int_equal(read_every(&bed, "r", "'200001'").id, 200001);
    static const char *const names[] = {"i", "f", "b", "s", "x", "t", "q", "r"};
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(read_every(&bed, names[i], "null").type, VALUE_NULL);
    json_bed_close(&bed);
}

TEST(records_say_parent_container_and_activity)
{
    struct json_bed bed;
    struct request r;
    json_bed_open(&bed, NULL);
    assert_ok(json_bed_read(&bed,
                            "{'command':'t.Put','records':["
                            "{'id':1,'type':'t.Part','parent':9,'container':'parts'},"
                            "{'id':2,'type':'t.Part','parent':200001,'container':'parts','active':true},"
                            "{'id':3,'type':'t.Bit','parent':200002,'container':'bits'},"
                            "{'id':200003,'type':'t.Part','active':false},"
                            "{'id':200002,'type':'t.Box'},"
                            "{'id':9,'type':'t.Invoice'}]}",
                            &r, NULL));
    assert_int_equal(r.objects[0].parent_id, 9);
    assert_int_equal(r.objects[0].container, 1);
    assert_int_equal(r.objects[1].parent_id, 200001);
    assert_int_equal(r.objects[1].container, 1);
    assert_int_equal(r.objects[1].active, ACTIVE_YES);
    assert_int_equal(r.objects[2].container, 2); /* the Box is named, so its place of bits counts */
    assert_int_equal(r.objects[3].active, ACTIVE_NO);
    assert_int_equal(r.objects[3].container, 0);
    json_bed_close(&bed);
}

TEST(the_order_of_members_does_not_change_what_is_asked)
{
    static const char *const texts[] = {
        "{'command':'t.PlaceOrder','argument':{'id':1,'customer':5,'lines':[{'id':2,'sku':'A','qty':2,'cents':"
        "3}],"
        "'notes':[{'id':3}]}}",
        "{'argument':{'notes':[{'id':3}],'lines':[{'cents':3,'qty':2,'id':2,'sku':'A'}],'customer':'5','id':1},"
        "'command':'t.PlaceOrder','records':[]}",
    };
    struct json_bed bed;
    struct request r[2];
    json_bed_open(&bed, NULL);
    for (size_t i = 0; i < 2; i++)
        assert_ok(json_bed_read(&bed, texts[i], &r[i], NULL));
    assert_true(request_digest(&r[0]) == request_digest(&r[1]));
    json_bed_close(&bed);
}

TEST(a_key_may_come_from_beside_but_not_a_second_one)
{
    struct json_bed bed;
    struct request r;
    pawl_error error;
    json_bed_open(&bed, NULL);
    assert_ok(json_bed_read(&bed, "{'command':'t.Put'}", &r, NULL));
    assert_ok(json_request_key(&r, text_bytes("k"), &error));
    expect_bytes(r.key, "k");
    assert_ok(json_bed_read(&bed, "{'command':'t.Put','idempotency_key':'k'}", &r, NULL));
    assert_ok(json_request_key(&r, text_bytes("k"), &error));
    assert_status(json_request_key(&r, text_bytes("other"), &error), PAWL_EINVAL);
    assert_contains(error.text, "$.idempotency_key: ");
    expect_bytes(r.key, "k");
    json_bed_close(&bed);
}

#define EVERY(field) "{'command':'t.Put','records':[{'id':1,'type':'t.Every','fields':{" field "}}]}"
#define RECORD(body) "{'command':'t.Put','records':[" body "]}"
#define ORDER(body)  "{'command':'t.PlaceOrder','argument':" body "}"

static const struct {
    const char *text;
    int status;
    const char *words;
} bad[] = {
    /* not JSON */
    {"", PAWL_EINVAL, "line 1, column 0: "},
    {"7", PAWL_EINVAL, "line 1, column 1: "},
    {"{'command':'t.Put'", PAWL_EINVAL, "line 1, column 18: "},
    {"{'command':'t.Put'} x", PAWL_EINVAL, "line 1, column 21: "},
    {"{\n 'command':'t.Put',\n}", PAWL_EINVAL, "line 3, column 1: "},
    {"{'command':'t.Put','command':'t.Put'}", PAWL_EINVAL, "duplicate object key"},
    {EVERY("'i':1,'i':1"), PAWL_EINVAL, "duplicate object key"},
    {EVERY("'f':NaN"), PAWL_EINVAL, "line 1, column "},
    {EVERY("'f':Infinity"), PAWL_EINVAL, "line 1, column "},
    {EVERY("'f':1e999"), PAWL_EINVAL, "real number overflow"},
    {EVERY("'f':.5"), PAWL_EINVAL, "line 1, column "},
    {EVERY("'i':9223372036854775808"), PAWL_EINVAL, "too big integer"},
    {EVERY("'s':'\xff'"), PAWL_EINVAL, "unable to decode byte 0xff"},
    {EVERY("'s':'\xed\xa0\x80'"), PAWL_EINVAL, "unable to decode byte 0xed"},
    {EVERY("'s':'\\ud800'"), PAWL_EINVAL, "invalid Unicode"},
    {EVERY("'s':'a\tb'"), PAWL_EINVAL, "control character 0x9"},
    {EVERY("'a\\u0000':1"), PAWL_EINVAL, "NUL byte in object key"},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", PAWL_EINVAL,
     "line 1, column 35: brackets are more than 34 deep"},
    /* the command's own members */
    {"[]", PAWL_EINVAL, "$: expected an object, not an array"},
    {"{}", PAWL_EINVAL, "$.command: it is missing"},
    {"{'command':7}", PAWL_EINVAL, "$.command: expected the qualified name of a command, not an integer"},
    {"{'command':'t.Nothing'}", PAWL_ENOTFOUND, "$.command: there is no command 't.Nothing'"},
    {"{'command':'t.Order'}", PAWL_ENOTFOUND, "$.command: there is no command 't.Order'"},
    {"{'command':'sys.CreateWorkspace'}", PAWL_ENOTFOUND,
     "$.command: there is no command 'sys.CreateWorkspace'"},
    {"{'command':'t.Put','wsid':7}", PAWL_EINVAL, "$.wsid: there is no such member"},
    {"{'command':'t.Put','a b':7}", PAWL_EINVAL, "$[\"a b\"]: there is no such member"},
    {"{'command':'t.Put','actor':7}", PAWL_EINVAL, "$.actor: expected a string, not an integer"},
    {"{'command':'t.Put','correlation':null}", PAWL_EINVAL, "$.correlation: expected a string, not null"},
    {"{'command':'t.Put','causation':[]}", PAWL_EINVAL, "$.causation: expected a string, not an array"},
    {"{'command':'t.Put','idempotency_key':''}", PAWL_EINVAL, "$.idempotency_key: it is empty"},
    {"{'command':'t.Put','expected_offset':-1}", PAWL_EINVAL, "$.expected_offset: expected an offset"},
    {"{'command':'t.Put','expected_offset':1.0}", PAWL_EINVAL, "$.expected_offset: expected an offset"},
    {"{'command':'t.Put','expected_offset':'x'}", PAWL_EINVAL, "$.expected_offset: expected an offset"},
    {"{'command':'t.Put','expected_offset':'-1'}", PAWL_EINVAL, "$.expected_offset: expected an offset"},
    {"{'command':'t.Put','expected_offset':9007199254740992}", PAWL_EINVAL, "$.expected_offset: expected"},
    {"{'command':'t.Put','argument':{'id':1}}", PAWL_EINVAL, "$.argument: t.Put takes none"},
    {"{'command':'t.Put','records':{}}", PAWL_EINVAL, "$.records: expected an array of objects, not an object"},
    /* the argument */
    {ORDER("[]"), PAWL_EINVAL, "$.argument: expected an object, not an array"},
    {ORDER("null"), PAWL_EINVAL, "$.argument: expected an object, not null"},
    {ORDER("{}"), PAWL_EINVAL, "$.argument.id: it is missing"},
    {ORDER("{'id':0}"), PAWL_EINVAL, "$.argument.id: 0 is not an ID: those are 1 to 2^53 - 1"},
    {ORDER("{'id':'1'}"), PAWL_EINVAL, "$.argument.id: expected an integer, not a string"},
    {ORDER("{'id':1,'custommer':5}"), PAWL_EINVAL,
     "$.argument.custommer: t.Order has no such field or container"},
    {ORDER("{'id':1,'lines':{}}"), PAWL_EINVAL,
     "$.argument.lines: expected an array of objects, not an object"},
    {ORDER("{'id':1,'lines':null}"), PAWL_EINVAL, "$.argument.lines: expected an array of objects, not null"},
    {ORDER("{'id':1,'lines':[{'id':2},7]}"), PAWL_EINVAL,
     "$.argument.lines[1]: expected an object, not an integer"},
    {ORDER("{'id':1,'lines':[{'id':2},{}]}"), PAWL_EINVAL, "$.argument.lines[1].id: it is missing"},
    {ORDER("{'id':1,'lines':[{'id':2,'qty':'x'}]}"), PAWL_EINVAL,
     "$.argument.lines[0].qty: the string is not an integer of 64 bits"},
    {ORDER("{'id':1,'lines':[{'id':2,'notes':[{'id':3,'said':false}]}]}"), PAWL_EINVAL,
     "$.argument.lines[0].notes[0].said: expected a string, not a bool"},
    /* records */
    {RECORD("7"), PAWL_EINVAL, "$.records[0]: expected an object, not an integer"},
    {RECORD("{'id':1,'type':'t.Every'},{'type':'t.Every'}"), PAWL_EINVAL, "$.records[1].id: it is missing"},
    {RECORD("{'id':-1,'type':'t.Every'}"), PAWL_EINVAL, "$.records[0].id: -1 is not an ID"},
    {RECORD("{'id':9007199254740992,'type':'t.Every'}"), PAWL_EINVAL,
     "$.records[0].id: 9007199254740992 is not an ID"},
    {RECORD("{'id':1.0,'type':'t.Every'}"), PAWL_EINVAL,
     "$.records[0].id: expected an integer, not a number with a fraction"},
    {RECORD("{'id':1}"), PAWL_EINVAL, "$.records[0].type: it is missing"},
    {RECORD("{'id':1,'type':3}"), PAWL_EINVAL, "$.records[0].type: expected the qualified name of a type"},
    {RECORD("{'id':1,'type':'Every'}"), PAWL_ENOTFOUND, "$.records[0].type: there is no type 'Every'"},
    {RECORD("{'id':1,'type':'t.Put'}"), PAWL_ENOTFOUND, "$.records[0].type: there is no type 't.Put'"},
    {RECORD("{'id':1,'type':'t.Total'}"), PAWL_EINVAL, "$.records[0].type: t.Total is an entity"},
    {RECORD("{'id':1,'type':'t.Every','feilds':{}}"), PAWL_EINVAL,
     "$.records[0].feilds: there is no such member"},
    {RECORD("{'id':1,'type':'t.Every','fields':[]}"), PAWL_EINVAL,
     "$.records[0].fields: expected an object, not an array"},
    {RECORD("{'id':1,'type':'t.Every','active':1}"), PAWL_EINVAL,
     "$.records[0].active: expected true or false"},
    {RECORD("{'id':1,'type':'t.Every','fields':{'id':7}}"), PAWL_EINVAL,
     "$.records[0].fields.id: t.Every has no such field"},
    {RECORD("{'id':1,'type':'t.Invoice','fields':{'parts':[]}}"), PAWL_EINVAL,
     "$.records[0].fields.parts: t.Invoice has no such field"},
    /* parents */
    {RECORD("{'id':1,'type':'t.Part','parent':'x','container':'parts'}"), PAWL_EINVAL,
     "$.records[0].parent: expected an integer, not a string"},
    {RECORD("{'id':1,'type':'t.Part','parent':200001}"), PAWL_EINVAL, "$.records[0].container: it is missing"},
    {RECORD("{'id':1,'type':'t.Part','container':'parts'}"), PAWL_EINVAL,
     "$.records[0].container: a container belongs to a parent, and there is none"},
    {RECORD("{'id':1,'type':'t.Part','parent':200001,'container':1}"), PAWL_EINVAL,
     "$.records[0].container: expected the name of a container, not an integer"},
    {RECORD("{'id':1,'type':'t.Part','parent':200001,'container':'bits'}"), PAWL_EINVAL,
     "$.records[0].container: no type has such a container for a t.Part"},
    {RECORD("{'id':1,'type':'t.Part','parent':2,'container':'parts'}"), PAWL_EINVAL,
     "$.records[0].parent: 2 is not a record that this command creates"},
    {RECORD("{'id':1,'type':'t.Part','parent':2,'container':'parts'},{'id':2,'type':'t.Crate'}"), PAWL_EINVAL,
     "$.records[0].container: t.Crate has no such container for a t.Part"},
    /* values */
    {EVERY("'zz':1"), PAWL_EINVAL, "$.records[0].fields.zz: t.Every has no such field"},
    {EVERY("'i':1.0"), PAWL_EINVAL, "$.records[0].fields.i: expected an integer, not a number with a fraction"},
    {EVERY("'i':1e3"), PAWL_EINVAL, "$.records[0].fields.i: expected an integer, not a number with a fraction"},
    {EVERY("'i':true"), PAWL_EINVAL, "$.records[0].fields.i: expected an integer, not a bool"},
    {EVERY("'i':9007199254740992"), PAWL_EINVAL,
     "$.records[0].fields.i: 9007199254740992 may have been rounded"},
    {EVERY("'i':-9007199254740992"), PAWL_EINVAL,
     "$.records[0].fields.i: -9007199254740992 may have been rounded"},
    {EVERY("'i':'9223372036854775808'"), PAWL_EINVAL, "$.records[0].fields.i: the string is not an integer"},
    {EVERY("'i':'07'"), PAWL_EINVAL, "$.records[0].fields.i: the string is not an integer"},
    {EVERY("'f':'1'"), PAWL_EINVAL, "$.records[0].fields.f: expected a number, not a string"},
    {EVERY("'b':0"), PAWL_EINVAL, "$.records[0].fields.b: expected true or false, not an integer"},
    {EVERY("'s':1"), PAWL_EINVAL, "$.records[0].fields.s: expected a string, not an integer"},
    {EVERY("'x':'Zg='"), PAWL_EINVAL, "$.records[0].fields.x: this is not base64"},
    {EVERY("'x':[1]"), PAWL_EINVAL, "$.records[0].fields.x: expected a string of base64, not an array"},
    {EVERY("'t':'2026-11-15'"), PAWL_EINVAL, "$.records[0].fields.t: this is not a time such as "},
    {EVERY("'t':0"), PAWL_EINVAL, "$.records[0].fields.t: expected a time as a string, not an integer"},
    {EVERY("'q':'t.Nothing'"), PAWL_EINVAL, "$.records[0].fields.q: there is no name 't.Nothing'"},
    {EVERY("'q':300"), PAWL_EINVAL,
     "$.records[0].fields.q: expected a qualified name as a string, not an integer"},
    {EVERY("'r':0"), PAWL_EINVAL, "$.records[0].fields.r: 0 is not an ID"},
    {EVERY("'r':-3"), PAWL_EINVAL, "$.records[0].fields.r: -3 is not an ID"},
    {EVERY("'r':9007199254740992"), PAWL_EINVAL, "$.records[0].fields.r: 9007199254740992 is not an ID"},
    {EVERY("'r':'9007199254740992'"), PAWL_EINVAL, "$.records[0].fields.r: 9007199254740992 is not an ID"},
    {EVERY("'r':'x'"), PAWL_EINVAL, "$.records[0].fields.r: the string is not an integer"},
    {EVERY("'r':1.5"), PAWL_EINVAL, "$.records[0].fields.r: expected an ID, not a number with a fraction"},
};

TEST(what_is_wrong_is_refused_with_its_place)
{
    struct json_bed bed;
    json_bed_open(&bed, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct request r = {.wsid = 99};
        pawl_error error = {0};
        int status = json_bed_read(&bed, bad[i].text, &r, &error);
        print_message("# case %zu\n", i);
        assert_status(status, bad[i].status);
        assert_int_equal(error.code, status);
        assert_contains(error.text, bad[i].words);
        assert_int_equal(r.wsid, 99);
        assert_status(json_bed_read(&bed, bad[i].text, &r, NULL), bad[i].status);
    }
    json_bed_close(&bed);
}

TEST(too_many_objects_are_refused)
{
    static const char head[] = "{\"command\":\"t.PlaceOrder\",\"argument\":{\"id\":1,\"lines\":[";
    static const char line[] = "{\"id\":2},";
    size_t room = sizeof head + (size_t)REQUEST_OBJECTS_MAX * sizeof line, used = sizeof head - 1;
    char *text = malloc(room);
    assert_non_null(text);
    memcpy(text, head, used);
    for (size_t i = 0; i < REQUEST_OBJECTS_MAX; i++, used += sizeof line - 1)
        memcpy(text + used, line, sizeof line - 1);
    memcpy(text + used - 1, "]}}", 3);
    struct json_bed bed;
    struct request r;
    pawl_error error;
    json_bed_open(&bed, NULL);
    assert_status(json_request((pawl_bytes){text, used + 2}, 7, bed.schema, &bed.arena, &r, &error),
                  PAWL_ETOOBIG);
    assert_contains(error.text, "$.argument.lines[65534]: a command has at most 65535 objects");
    /* One less is just right. */
    memcpy(text + used - sizeof line, "]}}", 3);
    assert_ok(json_request((pawl_bytes){text, used - sizeof line + 3}, 7, bed.schema, &bed.arena, &r, &error));
    assert_int_equal(r.object_count, REQUEST_OBJECTS_MAX);
    json_bed_close(&bed);
    free(text);
}

TEST(a_text_beyond_all_bounds_is_not_read)
{
    struct json_bed bed;
    struct request r;
    json_bed_open(&bed, NULL);
    assert_status(
        json_request((pawl_bytes){"", REQUEST_JSON_BYTES_MAX + 1}, 7, bed.schema, &bed.arena, &r, NULL),
        PAWL_ETOOBIG);
    json_bed_close(&bed);
}

/* jansson's own memory takes no part: its functions would have to be replaced for the whole process. */
TEST(every_allocation_may_fail)
{
    static const char text[] =
        "{'command':'t.Put','actor':'a','correlation':'c','causation':'d','idempotency_key':'k','records':["
        "{'id':1,'type':'t.Every','fields':{'s':'a string that is long','x':'Zm9vYmFy','i':1}},"
        "{'id':2,'type':'t.Part','parent':3,'container':'parts','fields':{'qty':1}},"
        "{'id':3,'type':'t.Invoice'},{'id':4,'type':'t.Every'},{'id':5,'type':'t.Every'},{'id':6,'type':'t."
        "Every'},"
        "{'id':7,'type':'t.Every'},{'id':8,'type':'t.Every'},{'id':9,'type':'t.Every'},{'id':10,'type':'t."
        "Every'}]}";
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct json_bed bed;
        struct request r = {0};
        pawl_error error = {0};
        test_alloc_init(&memory);
        json_bed_open(&bed, &memory.allocator);
        bed.arena.chunk_size = 16; /* so that each thing that is taken is an allocation */
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = json_bed_read(&bed, text, &r, &error);
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        assert_int_equal(error.code, status);
        if (failed) {
            assert_int_equal(bed.arena.used, 0);
            assert_ok(json_bed_read(&bed, text, &r, &error));
        }
        assert_int_equal(r.object_count, 10);
        json_bed_close(&bed);
        test_alloc_release(&memory);
        if (!failed)
            break;
        assert_true(k < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_command_with_everything_is_understood),
        RUN(every_form_of_a_value_is_read),
        RUN(records_say_parent_container_and_activity),
        RUN(the_order_of_members_does_not_change_what_is_asked),
        RUN(a_key_may_come_from_beside_but_not_a_second_one),
        RUN(what_is_wrong_is_refused_with_its_place),
        RUN(too_many_objects_are_refused),
        RUN(a_text_beyond_all_bounds_is_not_read),
        RUN(every_allocation_may_fail),
    };
    return TEST_MAIN(tests);
}
