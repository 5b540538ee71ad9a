/* A request becomes an event, or is refused with the path of what is wrong, and then takes no number. */
#include "base/id.h"
#include "core/sequence/storage.h"
#include "test/lib/ask.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

/* Beside the shop: children that are records, a singleton, what a workspace of another kind has no sequence
 * for. */
static const char more[] =
    "{'schema': 1, 'package': 'm', 'workspaces': {'bare': {'sequences': {'few': {'first': 5, 'end': 6}}}},"
    "'types': {'Doc': {'kind': 'CDoc', 'fields': {'a': {'type': 'string', 'required': true},"
    "                  'n': {'type': 'int64'}, 'real': {'type': 'float64'}, 'to': {'type': 'ref', 'to': 'Doc'},"
    "                  'any': {'type': 'ref'}, 'name': {'type': 'qname'}}, 'children': {'parts': 'Part'}},"
    "          'Part': {'kind': 'CRecord', 'fields': {'b': {'type': 'bool'}}, 'children': {'bits': 'Bit'}},"
    "          'Bit': {'kind': 'CRecord'},"
    "          'Ticket': {'kind': 'WDoc', 'fields': {'no': {'type': 'int64', 'sequence': 'few'}}},"
    "          'Only': {'kind': 'CDoc', 'singleton': true, 'fields': {'x': {'type': 'int64'}}}},"
    "'commands': {'Do': {'records': ['Doc', 'Only', 'Ticket', 'shop.Invoice']}, 'Set': {'argument': 'Only'}},"
    "'entities': {'Sum': {'key': ['k'], 'fields': {'k': {'type': 'int64'}}}}}";

static void open_shop(struct partition *p)
{
    struct ask ask;
    partition_open(p, 1);
    partition_apply(p, schema_shop);
    partition_apply(p, more);
    p->options.event_bytes_max = 4096;
    partition_boot(p);
    assert_int_equal(partition_wait(p), WRITER_RUNNING);
    for (uint64_t wsid = 7; wsid <= 8; wsid++) {
        ask_create(&ask, p, wsid, wsid == 7 ? "shop.tenant" : "m.bare");
        assert_ok(ask_and_wait(&ask));
        ask_release(&ask);
    }
}

static void close_shop(struct partition *p)
{
    partition_halt(p);
    partition_close(p);
}

static uint64_t add_customer(struct partition *p)
{
    struct ask ask;
    ask_init(&ask, p, 7, "shop.AddCustomer");
    ask_record(&ask, 1, "shop.Customer");
    ask_text(&ask, "name", "Ann");
    assert_ok(ask_and_wait(&ask));
    uint64_t id = ask_object(&ask, 0).id;
    ask_release(&ask);
    return id;
}

TEST(records_are_numbered_before_the_argument_and_its_children)
{
    struct partition p;
    struct ask ask;
    open_shop(&p);
    uint64_t customer = add_customer(&p);
    assert_int_equal(customer, RECORD_C_BIT | 200001);
    for (uint64_t round = 0; round < 2; round++) {
        ask_init(&ask, &p, 7, "shop.PlaceOrder");
        ask_argument(&ask, 1, "shop.Order");
        ask_ref(&ask, "customer", customer);
        ask_child(&ask, 2, "shop.OrderLine", 0);
        ask_text(&ask, "sku", "A");
        ask_record(&ask, 3, "shop.Invoice");
        ask_ref(&ask, "order", 1);
        ask_number(&ask, "cents", 500);
        ask.request.expects = true;
        ask.request.expected = 2 + round;
        assert_ok(ask_and_wait(&ask));
        struct event_object order = ask_object(&ask, 0), line = ask_object(&ask, 1),
                            invoice = ask_object(&ask, 2);
        assert_int_equal(invoice.id, 200001 + 3 * round);
        assert_int_equal(order.id, 200002 + 3 * round);
        assert_int_equal(line.id, 200003 + 3 * round);
        assert_int_equal(line.parent, order.id);
        assert_int_equal(line.container, 1);
        assert_int_equal(invoice.raw, 3);
        assert_int_equal(ask.event.head.record, line.id);
        const struct schema *schema = group0_schema(p.group0);
        uint16_t orders = schema_name_id(schema, text_bytes("shop.order"));
        uint16_t invoices = schema_name_id(schema, text_bytes("shop.invoice"));
        assert_int_equal(event_numbers_of(&ask.event, SEQ_WLOG_OFFSET).first, 3 + round);
        assert_int_equal(event_numbers_of(&ask.event, orders).first, 1000 + round);
        assert_int_equal(event_numbers_of(&ask.event, invoices).first, 1 + round);
        assert_int_equal(event_numbers_of(&ask.event, SEQ_REC_ID).count, 3);
        ask_release(&ask);
    }
    close_shop(&p);
}

/* --- bad requests: each spoils a good one --- */

static void set_value(struct ask *ask, uint16_t place, struct value value)
{
    assert_ok(request_set(&ask->request, place, value));
}

static struct request_object *last(struct ask *ask)
{
    return &ask->request.objects[ask->request.object_count - 1];
}

static void doc(struct ask *ask)
{
    ask->request.command = schema_name_id(group0_schema(ask->partition->group0), text_bytes("m.Do"));
    ask_record(ask, 1, "m.Doc");
    ask_text(ask, "a", "x");
}

static void unknown_command(struct ask *ask)
{
    ask->request.command = 999;
}
static void unknown_workspace(struct ask *ask)
{
    doc(ask), ask->request.wsid = 99;
}
static void workspace_zero(struct ask *ask)
{
    ask->request.command = NAME_WS_CREATE, ask->request.wsid = 0;
}
static void unknown_kind(struct ask *ask)
{
    ask->request.command = NAME_WS_CREATE, ask->request.wsid = 55, ask->request.kind = 998;
}
static void create_again(struct ask *ask)
{
    ask->request.command = NAME_WS_CREATE;
    ask->request.kind = schema_name_id(group0_schema(ask->partition->group0), text_bytes("m.bare"));
}
static void long_actor(struct ask *ask)
{
    static const char text[300] = {'a'};
    doc(ask), ask->request.actor = (pawl_bytes){text, sizeof text};
}
static void bad_correlation(struct ask *ask)
{
    doc(ask), ask->request.correlation = (pawl_bytes){"\xc0", 1};
}
static void argument_missing(struct ask *ask)
{
    ask->request.command = schema_name_id(group0_schema(ask->partition->group0), text_bytes("shop.PlaceOrder"));
}
static void argument_unwanted(struct ask *ask)
{
    ask_argument(ask, 1, "m.Only");
    ask->request.command = schema_name_id(group0_schema(ask->partition->group0), text_bytes("m.Do"));
}
static void argument_of_other_type(struct ask *ask)
{
    argument_missing(ask), ask_argument(ask, 1, "m.Only");
}
static void argument_not_raw(struct ask *ask)
{
    argument_missing(ask), ask_argument(ask, 70000, "shop.Order");
}
static void child_in_no_container(struct ask *ask)
{
    argument_missing(ask), ask_argument(ask, 1, "shop.Order"), ask_child(ask, 2, "shop.OrderLine", 0);
    ask_child(ask, 3, "shop.OrderLine", 0), last(ask)->container = 2;
}
static void wrong_line(struct ask *ask)
{
    argument_missing(ask), ask_argument(ask, 1, "shop.Order"), ask_child(ask, 2, "shop.OrderLine", 0);
    ask_child(ask, 3, "shop.OrderLine", 0);
    set_value(ask, 1, (struct value){.type = VALUE_BOOL});
}
static void unknown_type(struct ask *ask)
{
    doc(ask), last(ask)->type = 997;
}
static void entity(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "m.Sum");
}
static void other_commands_type(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "shop.Customer");
}
static void id_twice(struct ask *ask)
{
    doc(ask), ask_record(ask, 1, "m.Doc"), ask_text(ask, "a", "");
}
static void id_missing(struct ask *ask)
{
    doc(ask), last(ask)->id = 0;
}
static void born_inactive(struct ask *ask)
{
    doc(ask), last(ask)->active = ACTIVE_NO;
}
static void required_missing(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "m.Doc");
}
static void required_null(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "m.Doc"), ask_null(ask, "a");
}
static void no_such_field(struct ask *ask)
{
    doc(ask), set_value(ask, 77, (struct value){.type = VALUE_BOOL});
}
static void wrong_type(struct ask *ask)
{
    doc(ask), set_value(ask, 1, (struct value){.type = VALUE_BOOL});
}
static void not_finite(struct ask *ask)
{
    doc(ask), set_value(ask, 2, (struct value){.type = VALUE_FLOAT64, .real = __builtin_inf()});
}
static void not_utf8(struct ask *ask)
{
    doc(ask), ask->request.fields[0].value.bytes = (pawl_bytes){"\xff", 1};
}
static void no_such_name(struct ask *ask)
{
    doc(ask), set_value(ask, 5, (struct value){.type = VALUE_QNAME, .name = 4000});
}
static void raw_not_made(struct ask *ask)
{
    doc(ask), ask_ref(ask, "to", 2);
}
static void raw_of_other_type(struct ask *ask)
{
    doc(ask), ask_ref(ask, "to", 2), ask_record(ask, 2, "m.Only");
}
static void ref_to_nothing(struct ask *ask)
{
    doc(ask), ask_ref(ask, "to", RECORD_C_BIT | 200099);
}
static void ref_is_no_id(struct ask *ask)
{
    doc(ask), ask_ref(ask, "any", UINT64_C(1) << 53);
}
static void update_of_nothing(struct ask *ask)
{
    doc(ask), ask_record(ask, RECORD_C_BIT | 200099, "m.Doc");
}
static void child_without_parent(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "m.Part");
}
static void document_with_parent(struct ask *ask)
{
    doc(ask), ask_parent(ask, 1, 1);
}
static void container_without_parent(struct ask *ask)
{
    doc(ask), ask_parent(ask, 0, 1);
}
static void parent_not_made(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "m.Part"), ask_parent(ask, 9, 1);
}
static void parent_not_there(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "m.Part"), ask_parent(ask, RECORD_C_BIT | 200099, 1);
}
static void parent_of_other_type(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "m.Bit"), ask_parent(ask, 1, 1);
}
static void singleton_twice(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "m.Only"), ask_record(ask, 3, "m.Only");
}
static void numbered_field(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "shop.Invoice"), ask_number(ask, "number", 1);
}
static void no_such_sequence(struct ask *ask)
{
    doc(ask), ask_record(ask, 2, "shop.Invoice"), ask->request.wsid = 8;
}
static void too_big(struct ask *ask)
{
    static char text[5001];
    memset(text, 'a', sizeof text - 1);
    doc(ask), ask->request.fields[0].value.bytes = text_bytes(text);
}
static void behind(struct ask *ask)
{
    doc(ask), ask->request.expects = true;
}

TEST(a_wrong_request_is_refused_naming_the_path_and_takes_no_number)
{
    static const struct {
        void (*spoil)(struct ask *ask);
        int status;
        const char *words;
    } cases[] = {
        {unknown_command, PAWL_ENOTFOUND, "$.command: there is no command 999"},
        {unknown_workspace, PAWL_ENOTFOUND, "there is no workspace 99"},
        {workspace_zero, PAWL_EINVAL, "workspace 0 is the partition itself"},
        {unknown_kind, PAWL_ENOTFOUND, "there is no workspace kind 998"},
        {create_again, PAWL_EEXISTS, "workspace 7 exists already"},
        {long_actor, PAWL_ETOOBIG, "$.actor: 300 bytes; at most 255"},
        {bad_correlation, PAWL_EINVAL, "$.correlation: not valid UTF-8"},
        {argument_missing, PAWL_EINVAL, "$.argument: shop.PlaceOrder needs one"},
        {argument_unwanted, PAWL_EINVAL, "$.argument: m.Do takes none"},
        {argument_of_other_type, PAWL_EINVAL, "$.argument: the argument is of type shop.Order, not m.Only"},
        {argument_not_raw, PAWL_EINVAL, "$.argument: id 70000: an argument's ids are raw, 1 to 65535"},
        {child_in_no_container, PAWL_EINVAL, "$.argument[0]: shop.Order has no such children"},
        {wrong_line, PAWL_EINVAL, "$.argument.lines[1].qty: the value is not of the field's type"},
        {unknown_type, PAWL_ENOTFOUND, "$.records[0]: there is no type of records 997"},
        {entity, PAWL_ENOTFOUND, "$.records[1]: there is no type of records"},
        {other_commands_type, PAWL_EINVAL, "$.records[1]: m.Do does not take a shop.Customer"},
        {id_twice, PAWL_EINVAL, "$.records[1]: id 1 is used twice"},
        {id_missing, PAWL_EINVAL, "$.records[0]: an id is missing"},
        {born_inactive, PAWL_EINVAL, "$.records[0]: a record cannot be created inactive"},
        {required_missing, PAWL_EINVAL, "$.records[1].fields.a: the field is required"},
        {required_null, PAWL_EINVAL, "$.records[1].fields.a: the field is required"},
        {no_such_field, PAWL_EINVAL, "$.records[0]: m.Doc has no field at place 77"},
        {wrong_type, PAWL_EINVAL, "$.records[0].fields.n: the value is not of the field's type"},
        {not_finite, PAWL_EINVAL, "$.records[0].fields.real: the number is not finite"},
        {not_utf8, PAWL_EINVAL, "$.records[0].fields.a: not valid UTF-8"},
        {no_such_name, PAWL_EINVAL, "$.records[0].fields.name: there is no name 4000"},
        {raw_not_made, PAWL_EINVAL, "$.records[0].fields.to: id 2 is not one that this command creates"},
        {raw_of_other_type, PAWL_EINVAL, "$.records[0].fields.to: id 2 is a m.Only"},
        {ref_to_nothing, PAWL_ENOTFOUND, "$.records[0].fields.to: there is no m.Doc 1125899907042723"},
        {ref_is_no_id, PAWL_EINVAL, "$.records[0].fields.any: 9007199254740992 is not the ID of a record"},
        {update_of_nothing, PAWL_ENOTFOUND, "$.records[1]: there is no m.Doc 1125899907042723"},
        {child_without_parent, PAWL_EINVAL, "$.records[1]: a m.Part needs a parent and a container"},
        {document_with_parent, PAWL_EINVAL, "$.records[0]: a m.Doc is a document: it has no parent"},
        {container_without_parent, PAWL_EINVAL, "$.records[0]: it names a container, but no parent"},
        {parent_not_made, PAWL_EINVAL, "$.records[1]: parent 9 is not a record that this command creates"},
        {parent_not_there, PAWL_ENOTFOUND, "$.records[1]: there is no record 1125899907042723 that could be"},
        {parent_of_other_type, PAWL_EINVAL, "$.records[1]: m.Doc has no such container for a m.Bit"},
        {singleton_twice, PAWL_EEXISTS, "$.records[2]: m.Only is a singleton"},
        {numbered_field, PAWL_EINVAL, "$.records[1].fields.number: the field is numbered"},
        {no_such_sequence, PAWL_EINVAL, "$.records[1].fields.number: workspaces of this kind do not have"},
        {too_big, PAWL_ETOOBIG, "at most 4096"},
        {behind, PAWL_ECONFLICT, "$.expected_offset: workspace 7 is at offset 2, not 0"},
    };
    struct partition p;
    struct ask ask;
    open_shop(&p);
    add_customer(&p);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask_init(&ask, &p, 7, "m.Set");
        cases[i].spoil(&ask);
        int status = ask_and_wait(&ask);
        if (status != cases[i].status)
            print_error("instead of '%s': %s\n", cases[i].words, ask.error.text);
        assert_status(status, cases[i].status);
        assert_contains(ask.error.text, cases[i].words);
        ask_release(&ask);
    }
    assert_int_equal(processor_figures(p.processor)->offset, 3);

    /* Nothing was consumed. */
    ask_init(&ask, &p, 7, "m.Do");
    ask_record(&ask, 1, "m.Doc");
    ask_text(&ask, "a", "x");
    ask_record(&ask, 2, "shop.Invoice");
    assert_ok(ask_and_wait(&ask));
    assert_int_equal(ask.call.offset, 4);
    assert_int_equal(event_numbers_of(&ask.event, SEQ_WLOG_OFFSET).first, 3);
    assert_int_equal(ask_object(&ask, 0).id, RECORD_C_BIT | 200002);
    assert_int_equal(ask_object(&ask, 1).id, 200001);
    uint16_t invoices = schema_name_id(group0_schema(p.group0), text_bytes("shop.invoice"));
    assert_int_equal(event_numbers_of(&ask.event, invoices).first, 1);
    ask_release(&ask);
    close_shop(&p);
}

TEST(a_sequence_that_has_ended_is_named_and_nothing_is_taken)
{
    struct partition p;
    struct ask ask;
    open_shop(&p);
    for (uint64_t i = 0; i < 3; i++) {
        bool too_many = i == 1; /* the first of two would have got a number */
        ask_init(&ask, &p, 8, "m.Do");
        ask_record(&ask, 1, "m.Ticket");
        if (too_many)
            ask_record(&ask, 2, "m.Ticket");
        assert_status(ask_and_wait(&ask), too_many ? PAWL_EEXHAUSTED : PAWL_OK);
        if (too_many)
            assert_string_equal(ask.error.text,
                                "$.records[1].fields.no: the sequence m.few has given its last number");
        else
            assert_int_equal(ask_object(&ask, 0).id, RECORD_FIRST + i / 2);
        ask_release(&ask);
    }
    close_shop(&p);
}

/* The place that is said beside a container's name is another after a change of the schema, or is not said. */
TEST(a_repeated_command_is_the_same_however_its_container_is_said)
{
    static const uint16_t places[][2] = {{1, 1}, {1, 0}, {0, 1}, {1, 7}};
    struct partition p;
    struct ask ask;
    open_shop(&p);
    ask_init(&ask, &p, 8, "m.Do");
    ask_record(&ask, 1, "m.Doc");
    ask_text(&ask, "a", "x");
    assert_ok(ask_and_wait(&ask));
    uint64_t doc = ask_object(&ask, 0).id;
    ask_release(&ask);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char key[] = {'k', (char)('0' + i), '\0'};
        uint64_t offset = 0;
        for (int again = 0; again < 4; again++) {
            ask_init(&ask, &p, 8, "m.Do");
            ask_record(&ask, 1, "m.Part");
            ask_parent(&ask, again == 2 ? doc + 1 : doc, places[i][again > 0]);
            ask.request.objects[0].container_name = text_bytes(again == 3 ? "bits" : "parts");
            ask.request.key = text_bytes(key);
            assert_status(ask_and_wait(&ask), again < 2 ? PAWL_OK : PAWL_ECONFLICT);
            assert_int_equal(ask.call.repeated, again == 1);
            if (again == 0)
                offset = ask.call.offset;
            assert_int_equal(ask.call.offset, offset);
            ask_release(&ask);
        }
    }
    close_shop(&p);
}

TEST(a_singleton_exists_once_however_it_is_asked_for)
{
    struct partition p;
    struct ask first, argument, record, update;
    open_shop(&p);
    ask_init(&first, &p, 7, "m.Set");
    ask_argument(&first, 1, "m.Only");
    assert_ok(ask_and_wait(&first));
    uint64_t id = ask_object(&first, 0).id;
    assert_true(record_is_singleton(record_base(id)) && record_in_c(id));

    ask_init(&argument, &p, 7, "m.Set");
    ask_argument(&argument, 1, "m.Only");
    assert_status(ask_and_wait(&argument), PAWL_EEXISTS);
    assert_contains(argument.error.text, "$.argument: m.Only is a singleton and exists already");
    ask_init(&record, &p, 7, "m.Do");
    ask_record(&record, 1, "m.Only");
    assert_status(ask_and_wait(&record), PAWL_EEXISTS);
    ask_init(&update, &p, 7, "m.Do");
    ask_record(&update, id, "m.Only");
    ask_number(&update, "x", 5);
    assert_ok(ask_and_wait(&update));
    partition_check_digests(&p);
    ask_release(&first);
    ask_release(&argument);
    ask_release(&record);
    ask_release(&update);
    close_shop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(records_are_numbered_before_the_argument_and_its_children),
        RUN(a_wrong_request_is_refused_naming_the_path_and_takes_no_number),
        RUN(a_sequence_that_has_ended_is_named_and_nothing_is_taken),
        RUN(a_repeated_command_is_the_same_however_its_container_is_said),
        RUN(a_singleton_exists_once_however_it_is_asked_for),
    };
    return TEST_MAIN(tests);
}
