/* test_engine_kinds.c: what the kind of a type decides, wherever a command has its records: from which register
 * their IDs come, whether they have a table, and how they are read back. */
#include <pawl/pawl.h>

#include "base/id.h"
#include "test/lib/beds.h"
#include "test/lib/dir.h"
#include "test/lib/event.h"

static const char schema[] =
    "{'schema': 1, 'package': 't', 'workspaces': {'tenant': {'sequences': {'order': {'first': 1000}}}},"
    " 'types': {"
    "   'Customer': {'kind': 'CDoc', 'fields': {'name': {'type': 'string'}}, 'children': {'mails': 'Mail'}},"
    "   'Mail': {'kind': 'CRecord', 'fields': {'to': {'type': 'string'}}},"
    "   'Order': {'kind': 'ODoc', 'fields': {'text': {'type': 'string'},"
    "     'number': {'type': 'int64', 'sequence': 'order'}}, 'children': {'lines': 'Line'}},"
    "   'Line': {'kind': 'ORecord', 'fields': {'qty': {'type': 'int64'}}, 'children': {'notes': 'Note'}},"
    "   'Note': {'kind': 'ORecord', 'fields': {'said': {'type': 'string'}}},"
    "   'Bill': {'kind': 'WDoc', 'fields': {'order': {'type': 'ref', 'to': 'Order'}}}},"
    " 'entities': {'Seen': {'key': ['text'], 'fields': {'text': {'type': 'string'}, 'times': {'type': 'int64'},"
    "   'order': {'type': 'ref'}, 'qty': {'type': 'int64'}}}},"
    " 'commands': {'PutCustomer': {'argument': 'Customer'}, 'AddCustomer': {'records': ['Customer']},"
    "   'Place': {'argument': 'Order', 'records': ['Order']}, 'Import': {'records': ['Order', 'Bill']}},"
    " 'projectors': {'seen': {'on': ['Import'], 'sync': true, 'do': [{'upsert': 'Seen',"
    "   'key': {'text': '$event.records.Order.text'}, 'set': {'times': 'coalesce(times, 0) + 1',"
    "   'order': '$event.records.Order.id', 'qty': '$event.records.Line.qty'}}]}}}";

struct bench {
    char dir[256];
    char data[300];
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error;
};

/* Single quotes stand for double ones. */
static char *quoted(const char *text)
{
    char *json = strdup(text);
    assert_non_null(json);
    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return json;
}

static void open_it(struct bench *b)
{
    pawl_options options = {.partitions = 1, .shards = 1};
    assert_ok(beds_open(b->data, &options, &b->engine, &b->error));
    assert_ok(pawl_request_new(b->engine, &b->request));
}

static void shut(struct bench *b)
{
    pawl_request_free(b->request);
    assert_ok(pawl_close(b->engine));
}

static void begin(struct bench *b)
{
    *b = (struct bench){0};
    test_dir_make(b->dir, sizeof b->dir);
    snprintf(b->data, sizeof b->data, "%s/data", b->dir);
    open_it(b);
    char *json = quoted(schema);
    assert_ok(pawl_schema_apply(b->engine, json, NULL, &b->error));
    free(json);
    assert_ok(pawl_workspace_create(b->engine, b->request, 7, "t.tenant", NULL, &b->error));
}

static void end(struct bench *b)
{
    shut(b);
    test_dir_remove(b->dir);
}

/* The state is derived again from the log alone. */
static void lose_state(struct bench *b)
{
    static const char *const lost[] = {"state/0", "checkpoint/0"};
    shut(b);
    for (size_t i = 0; i < 2; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", b->data, lost[i]);
        if (access(path, F_OK) == 0)
            test_dir_remove(path);
    }
    open_it(b);
}

static int command(struct bench *b, const char *text)
{
    char *json = quoted(text);
    b->error = (pawl_error){0};
    pawl_request_json(b->request, 7, (pawl_bytes){json, strlen(json)});
    int status = pawl_command(b->engine, b->request, NULL, &b->error);
    free(json);
    return status;
}

static void check_record(struct bench *b, const char *type, uint64_t id, const char *expected)
{
    pawl_text text;
    char *json = quoted(expected);
    assert_ok(pawl_record_get(b->engine, 7, type, id, NULL, &text, &b->error));
    assert_string_equal(text.data, json);
    pawl_text_free(&text);
    free(json);
}

static void check_no_record(struct bench *b, const char *type, uint64_t id)
{
    pawl_text text;
    assert_status(pawl_record_get(b->engine, 7, type, id, NULL, &text, &b->error), PAWL_ENOTFOUND);
}

static bool add_number(void *arg, const pawl_last_number *n)
{
    char *text = arg;
    size_t size = strlen(text);
    snprintf(text + size, 400 - size, "%.*s %" PRIu64 "\n", (int)n->sequence.size,
             (const char *)n->sequence.data, n->number);
    return true;
}

static void check_numbers(struct bench *b, const char *expected)
{
    char text[400] = "";
    assert_ok(pawl_last_numbers_read(b->engine, 0, 7, add_number, text, &b->error));
    assert_string_equal(text, expected);
}

#define C(number) (RECORD_C_BIT | (number))

static void check_customers(struct bench *b)
{
    check_record(b, NULL, C(200001),
                 "{'id':1125899907042625,'type':'t.Customer','active':true,'fields':{'name':'Ann'}}");
    check_record(b, NULL, C(200002),
                 "{'id':1125899907042626,'type':'t.Mail','active':true,'parent':1125899907042625,"
                 "'container':'mails','fields':{'to':'a@b'}}");
    check_record(b, NULL, C(200003),
                 "{'id':1125899907042627,'type':'t.Customer','active':true,'fields':{'name':'Bob'}}");
}

TEST(a_configuration_document_has_an_id_of_the_c_register_as_an_argument_too)
{
    struct bench b;
    begin(&b);
    assert_ok(command(
        &b, "{'command':'t.PutCustomer','argument':{'id':1,'name':'Ann','mails':[{'id':2,'to':'a@b'}]}}"));
    assert_int_equal(pawl_request_id(b.request, 1), C(200001));
    assert_int_equal(pawl_request_id(b.request, 2), C(200002));
    assert_ok(command(
        &b, "{'command':'t.AddCustomer','records':[{'id':1,'type':'t.Customer','fields':{'name':'Bob'}}]}"));
    assert_int_equal(pawl_request_id(b.request, 1), C(200003));
    check_customers(&b);
    check_numbers(&b, "sys.WLogOffsetSeq 3\nsys.CRecIDSeq 200003\n");
    lose_state(&b);
    check_customers(&b);
    check_numbers(&b, "sys.WLogOffsetSeq 3\nsys.CRecIDSeq 200003\n");
    assert_ok(command(&b, "{'command':'t.PutCustomer','argument':{'id':1}}"));
    assert_int_equal(pawl_request_id(b.request, 1), C(200004));
    end(&b);
}

static void check_import(struct bench *b)
{
    check_record(b, NULL, 200001,
                 "{'id':200001,'type':'t.Order','active':true,'fields':{'text':'one','number':1000}}");
    check_record(b, "t.Line", 200002,
                 "{'id':200002,'type':'t.Line','active':true,'parent':200001,'container':'lines',"
                 "'fields':{'qty':5}}");
    check_record(b, NULL, 200003,
                 "{'id':200003,'type':'t.Note','active':true,'parent':200002,'container':'notes',"
                 "'fields':{'said':'x'}}");
    check_record(b, NULL, 200004,
                 "{'id':200004,'type':'t.Line','active':true,'parent':200005,'container':'lines',"
                 "'fields':{'qty':6}}");
    check_record(b, "t.Order", 200005,
                 "{'id':200005,'type':'t.Order','active':true,'fields':{'text':'two','number':1001}}");
    check_record(b, NULL, 200006, "{'id':200006,'type':'t.Bill','active':true,'fields':{'order':200005}}");
    check_numbers(b, "sys.WLogOffsetSeq 2\nsys.RecIDSeq 200006\nt.order 1001\n");
}

static bool check_event(void *arg, const pawl_event *event)
{
    if (event_is(event, "t.Import"))
        assert_string_equal(strstr(event_json(event), "\"records\":"), arg);
    return true;
}

/* A child may come before its parent. */
static const char import[] = "{'command':'t.Import','records':["
                             "{'id':1,'type':'t.Order','fields':{'text':'one'}},"
                             "{'id':2,'type':'t.Line','parent':1,'container':'lines','fields':{'qty':5}},"
                             "{'id':3,'type':'t.Note','parent':2,'container':'notes','fields':{'said':'x'}},"
                             "{'id':4,'type':'t.Line','parent':5,'container':'lines','fields':{'qty':6}},"
                             "{'id':5,'type':'t.Order','fields':{'text':'two'}},"
                             "{'id':6,'type':'t.Bill','fields':{'order':5}}]}";

TEST(operations_among_the_records_are_read_back_with_their_parents)
{
    struct bench b;
    pawl_text text;
    begin(&b);
    assert_ok(command(&b, import));
    check_import(&b);
    assert_ok(pawl_entity_get(b.engine, 7, "t.Seen", (pawl_bytes){"[\"one\"]", 7}, NULL, &text, &b.error));
    assert_string_equal(text.data, "{\"text\":\"one\",\"times\":1,\"order\":200001,\"qty\":5}");
    pawl_text_free(&text);
    char *records = quoted(
        "'records':[{'op':'create','id':200001,'type':'t.Order','fields':{'text':'one','number':1000}},"
        "{'op':'create','id':200002,'type':'t.Line','parent':200001,'container':'lines','fields':{'qty':5}},"
        "{'op':'create','id':200003,'type':'t.Note','parent':200002,'container':'notes',"
        "'fields':{'said':'x'}},"
        "{'op':'create','id':200004,'type':'t.Line','parent':200005,'container':'lines','fields':{'qty':6}},"
        "{'op':'create','id':200005,'type':'t.Order','fields':{'text':'two','number':1001}},"
        "{'op':'create','id':200006,'type':'t.Bill','fields':{'order':200005}}]}");
    assert_ok(pawl_events_read(b.engine, 0, 1, 10, check_event, records, NULL, &b.error));
    free(records);
    lose_state(&b);
    check_import(&b);
    assert_ok(command(&b, import));
    assert_int_equal(pawl_request_id(b.request, 1), 200007);
    shut(&b);
    pawl_replay_options replay = {.dir = b.data};
    pawl_state_report report;
    assert_ok(pawl_replay(&replay, &report, &b.error));
    assert_int_equal(report.live.differences, 0);
    open_it(&b);
    end(&b);
}

TEST(a_record_of_an_o_type_is_found_by_its_own_type_only)
{
    struct bench b;
    begin(&b);
    assert_ok(command(&b, import));
    check_no_record(&b, "t.Line", 200001);
    check_no_record(&b, "t.Order", 200002);
    check_no_record(&b, "t.Order", 200006); /* which is a bill */
    check_no_record(&b, "t.Bill", 200001);
    check_no_record(&b, NULL, 200007);
    end(&b);
}

TEST(what_an_operation_among_the_records_cannot_be_is_refused_with_its_path)
{
    static const struct {
        const char *command;
        const char *words;
    } cases[] = {
        {"{'command':'t.Import','records':[{'id':1,'type':'t.Line'}]}",
         "$.records[0]: a t.Line needs a parent and a container"},
        {"{'command':'t.Import','records':[{'id':1,'type':'t.Line','parent':200001,'container':'lines'}]}",
         "$.records[0]: a t.Line lives in its event: its parent must be a record that this command creates"},
        {"{'command':'t.Import','records':[{'id':1,'type':'t.Order'},"
         "{'id':2,'type':'t.Note','parent':1,'container':'lines'}]}",
         "$.records[1].container: t.Order has no such container for a t.Note"},
        {"{'command':'t.Import','records':[{'id':1,'type':'t.Bill'},"
         "{'id':2,'type':'t.Line','parent':1,'container':'lines'}]}",
         "$.records[1].container: t.Bill has no such container for a t.Line"},
        {"{'command':'t.Import','records':[{'id':1,'type':'t.Order'},"
         "{'id':2,'type':'t.Order','parent':1,'container':'lines'}]}",
         "$.records[1].container: t.Order has no such container for a t.Order"},
        {"{'command':'t.Import','records':[{'id':200001,'type':'t.Order','fields':{'text':'other'}}]}",
         "$.records[0]: a t.Order lives in its event, and never changes"},
        {"{'command':'t.Import','records':[{'id':200002,'type':'t.Line','active':false}]}",
         "$.records[0]: a t.Line lives in its event, and never changes"},
        {"{'command':'t.Place','argument':{'id':1},"
         "'records':[{'id':2,'type':'t.Line','parent':1,'container':'lines'}]}",
         "$.records[0].parent: 1 is not a record that this command creates"},
    };
    struct bench b;
    begin(&b);
    assert_ok(command(&b, import));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = command(&b, cases[i].command);
        if (status != PAWL_EINVAL)
            print_error("instead of '%s': %s\n", cases[i].words, b.error.text);
        assert_status(status, PAWL_EINVAL);
        assert_string_equal(b.error.text, cases[i].words);
    }
    check_import(&b); /* no number was used */
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_configuration_document_has_an_id_of_the_c_register_as_an_argument_too),
        RUN(operations_among_the_records_are_read_back_with_their_parents),
        RUN(a_record_of_an_o_type_is_found_by_its_own_type_only),
        RUN(what_an_operation_among_the_records_cannot_be_is_refused_with_its_path),
    };
    return TEST_MAIN(tests);
}
