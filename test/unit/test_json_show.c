/* Answers, events, records and rows as JSON: what was asked, with real IDs and numbers. Single quotes stand for
 * double ones. */
#include "test/lib/test.h"

#include <jansson.h>

#include "adapter/mem/store.h"
#include "base/bytes.h"
#include "core/command/build.h"
#include "core/event/event.h"
#include "core/schema/row.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"
#include "engine/json/show.h"
#include "test/lib/alloc.h"
#include "test/lib/json.h"
#include "test/lib/sequence.h"

#define WSID 7

/* Makes events as a processor does, over a state in memory. */
struct maker {
    struct json_bed json;
    struct bed numbers;
    pawl_sequence sequences[8];
    pawl_workspace_kind kind;
    mem_store_disk *disk;
    pawl_store *store;
    struct state state;
    struct workspace_facts facts;
    struct arena arena;

    pawl_task task;
    struct build build;
    struct built built;
    pawl_error error;
    int status;
    bool done;
};

static void maker_open(struct maker *m)
{
    *m = (struct maker){0};
    json_bed_open(&m->json, NULL);
    const struct schema_workspace *w = schema_workspace_by_name(m->json.schema, text_bytes("t.tenant"));
    size_t count = 0;
    m->sequences[count++] = (pawl_sequence){.seq = SEQ_WLOG_OFFSET, .first = 42};
    m->sequences[count++] = (pawl_sequence){.seq = SEQ_REC_ID, .first = 200017};
    m->sequences[count++] = (pawl_sequence){.seq = SEQ_CREC_ID, .first = 200001};
    for (size_t i = 0; i < w->sequence_count; i++)
        m->sequences[count++] = (pawl_sequence){.seq = w->sequences[i].id, .first = w->sequences[i].first};
    m->kind = (pawl_workspace_kind){.kind = w->id, .sequences = m->sequences, .count = count};
    bed_open(&m->numbers, 1);
    m->numbers.options.kinds = &m->kind;
    m->numbers.options.kind_count = 1;
    bed_new_ready(&m->numbers);
    assert_ok(mem_store_disk_new(NULL, &m->disk));
    struct mem_store_options options = {.name = "state"};
    assert_ok(mem_store_open(m->disk, &options, NULL, &m->store, NULL));
    m->state.reader = pawl_store_writer(m->store);
    m->facts = (struct workspace_facts){.kind = w->id, .last = 41};
    arena_init(&m->arena, NULL, 4096);
}

static void maker_close(struct maker *m)
{
    arena_release(&m->arena);
    assert_ok(pawl_store_close(m->store));
    mem_store_disk_free(m->disk);
    bed_release(&m->numbers);
    json_bed_close(&m->json);
}

/* So that a record exists, with nothing in it. */
static void store_record(struct maker *m, const char *name, uint64_t id)
{
    const struct schema_type *type = json_bed_type(&m->json, name);
    struct record_row head = {.active = true, .type = type->id};
    uint8_t value[RECORD_BYTES + 64], key[KEY_NUMBERED];
    size_t size;
    record_head_write(&head, value);
    assert_ok(row_size(NULL, 0, &size));
    row_write(NULL, 0, value + RECORD_BYTES);
    assert_ok(pawl_store_put(m->store, STATE_SPACE, key_numbered(type->table, WSID, id, key),
                             (pawl_bytes){value, RECORD_BYTES + size}));
}

static void build_on_shard(pawl_task *task)
{
    struct maker *m = (struct maker *)(void *)((char *)task - offsetof(struct maker, task));
    m->status = build_event(&m->build, &m->built, &m->error);
    m->done = true;
}

static bool is_built(void *arg)
{
    return ((struct maker *)arg)->done;
}

static void assert_same(pawl_bytes a, pawl_bytes b)
{
    assert_ptr_equal(a.data, b.data);
    assert_int_equal(a.size, b.size);
}

/* What building says of the event is what decoding would find. */
static void check_built(const struct built *built)
{
    const struct event *told = &built->event;
    struct event found;
    pawl_error error;
    assert_ok(event_decode(built->body, &found, &error));
    assert_int_equal(told->envelope.kind, found.envelope.kind);
    assert_int_equal(told->envelope.wsid, found.envelope.wsid);
    assert_int_equal(told->envelope.count, found.envelope.count);
    assert_ptr_equal(told->envelope.numbers, found.envelope.numbers);
    assert_same(told->envelope.content, found.envelope.content);
    assert_int_equal(told->head.command, found.head.command);
    assert_int_equal(told->head.object_count, found.head.object_count);
    assert_int_equal(told->head.argument_count, found.head.argument_count);
    assert_int_equal(told->head.schema, found.head.schema);
    assert_int_equal(told->head.time.ns, found.head.time.ns);
    assert_int_equal(told->head.record, found.head.record);
    assert_int_equal(told->head.digest, found.head.digest);
    assert_same(told->head.actor, found.head.actor);
    assert_same(told->head.correlation, found.head.correlation);
    assert_same(told->head.causation, found.head.causation);
    assert_same(told->head.key, found.head.key);
    assert_same(told->objects, found.objects);
}

static struct json_source make(struct maker *m, const char *text)
{
    struct request request;
    assert_ok(json_bed_read(&m->json, text, &request, &m->error));
    m->build = (struct build){.schema = m->json.schema,
                              .request = &request,
                              .workspace = &m->facts,
                              .state = &m->state,
                              .sequencer = m->numbers.s,
                              .now = {INT64_C(1763200800123456000)},
                              .event_bytes_max = (size_t)64 << 20,
                              .memory = &m->arena};
    m->done = false;
    m->task = (pawl_task){.fn = build_on_shard};
    assert_ok(pawl_env_post(mem_env_port(m->numbers.env), 0, &m->task));
    assert_true(mem_world_run_until(m->numbers.world, is_built, m, 100000));
    if (m->status)
        print_message("# %s\n", m->error.text);
    assert_ok(m->status);
    check_built(&m->built);
    return (struct json_source){
        .partition = 5, .offset = 1204, .schema = m->json.schema, .body = m->built.body};
}

static void expect(const struct json_out *out, const char *expected)
{
    char *text = strdup(expected);
    assert_non_null(text);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    assert_ok(out->status);
    if (out->size != strlen(text) || memcmp(out->data, text, out->size) != 0)
        print_message("# got      %.*s\n# expected %s\n", (int)out->size, out->data, text);
    assert_int_equal(out->size, strlen(text));
    assert_memory_equal(out->data, text, out->size);
    free(text);
}

static const char place_order[] =
    "{'command':'t.PlaceOrder','argument':{'id':1,'customer':1125899907042625,"
    "'lines':[{'id':2,'sku':'A','qty':2,'cents':250,'notes':[{'id':4,'said':'x'},{'id':5}]},{'id':6}],"
    "'notes':[{'id':7,'said':'y'}]},"
    "'records':[{'id':3,'type':'t.Invoice','fields':{'order':1,'cents':500}}],'expected_offset':41,"
    "'actor':'till-3','correlation':'c-7','causation':'e-9','idempotency_key':'secret'}";

TEST(an_event_shows_what_was_asked_with_real_ids)
{
    struct maker m;
    struct json_out out;
    maker_open(&m);
    json_out_init(&out, NULL);
    struct json_source source = make(&m, place_order);
    assert_ok(json_event(&out, &source, NULL));
    expect(&out, "{'partition':5,'offset':1204,'wsid':7,'workspace_offset':42,'command':'t.PlaceOrder',"
                 "'time':'2025-11-15T10:00:00.123456Z','actor':'till-3','correlation':'c-7','causation':'e-9',"
                 "'schema':1,'argument':{'id':200018,'customer':1125899907042625,'number':1007,"
                 "'lines':[{'id':200019,'sku':'A','qty':2,'cents':250,"
                 "'notes':[{'id':200020,'said':'x'},{'id':200021}]},{'id':200022}],"
                 "'notes':[{'id':200023,'said':'y'}]},"
                 "'records':[{'op':'create','id':200017,'type':'t.Invoice',"
                 "'fields':{'number':38,'order':200018,'cents':500}}]}");
    json_out_release(&out);
    maker_close(&m);
}

TEST(an_answer_has_the_ids_in_the_order_they_were_given)
{
    struct maker m;
    struct json_out out;
    maker_open(&m);
    json_out_init(&out, NULL);
    struct json_source source = make(&m, place_order);
    assert_ok(json_answer(&out, &source, false, NULL));
    expect(&out, "{'partition':5,'offset':1204,'workspace_offset':42,"
                 "'ids':{'3':200017,'1':200018,'2':200019,'4':200020,'5':200021,'6':200022,'7':200023},"
                 "'numbers':{'200018':{'number':1007},'200017':{'number':38}}}");
    json_out_rewind(&out, 0);
    source.offset = UINT64_MAX;
    assert_ok(json_answer(&out, &source, true, NULL));
    static const char large[] = "{\"partition\":5,\"offset\":\"18446744073709551615\",";
    assert_memory_equal(out.data, large, sizeof large - 1);
    assert_memory_equal(out.data + out.size - 18, "},\"repeated\":true}", 18);
    json_out_release(&out);
    maker_close(&m);
}

TEST(an_update_shows_what_it_changes_and_what_it_makes_null)
{
    struct maker m;
    struct json_out out;
    maker_open(&m);
    json_out_init(&out, NULL);
    store_record(&m, "t.Every", 200001);
    store_record(&m, "t.Every", 200002);
    struct json_source source =
        make(&m, "{'command':'t.Put','records':["
                 "{'id':200001,'type':'t.Every','fields':{'s':null,'i':1,'f':null,'q':'t.Order'}},"
                 "{'id':200002,'type':'t.Every','active':false},"
                 "{'id':1,'type':'t.Every','active':true,'fields':{'s':null}}]}");
    assert_ok(json_event(&out, &source, NULL));
    expect(&out,
           "{'partition':5,'offset':1204,'wsid':7,'workspace_offset':42,'command':'t.Put',"
           "'time':'2025-11-15T10:00:00.123456Z','schema':1,'records':["
           "{'op':'update','id':200001,'type':'t.Every','fields':{'i':1,'f':null,'s':null,'q':'t.Order'}},"
           "{'op':'update','id':200002,'type':'t.Every','active':false,'fields':{}},"
           "{'op':'create','id':200017,'type':'t.Every','active':true,'fields':{}}]}");
    json_out_rewind(&out, 0);
    assert_ok(json_answer(&out, &source, false, NULL));
    expect(&out, "{'partition':5,'offset':1204,'workspace_offset':42,'ids':{'1':200017},'numbers':{}}");
    json_out_release(&out);
    maker_close(&m);
}

TEST(every_form_of_a_value_comes_back)
{
    static const char fields[] = "'fields':{'i':'-9223372036854775808','f':0.30000000000000004,'b':false,"
                                 "'s':'gr\xc3\xbc\xc3\x9f \\n \\u0000','x':'Zm9vYg==',"
                                 "'t':'1677-09-21T00:12:43.145224192Z','q':'t.Order','r':200001}}]}";
    struct maker m;
    struct json_out out;
    char text[512];
    maker_open(&m);
    json_out_init(&out, NULL);
    snprintf(text, sizeof text, "{'command':'t.Put','records':[{'id':1,'type':'t.Every',%s", fields);
    struct json_source source = make(&m, text);
    assert_ok(json_event(&out, &source, NULL));
    snprintf(text, sizeof text,
             "{'partition':5,'offset':1204,'wsid':7,'workspace_offset':42,'command':'t.Put',"
             "'time':'2025-11-15T10:00:00.123456Z','schema':1,'records':["
             "{'op':'create','id':200017,'type':'t.Every',%s",
             fields);
    expect(&out, text);
    json_out_release(&out);
    maker_close(&m);
}

TEST(a_child_shows_its_parent_and_where_it_lies_in_it)
{
    struct maker m;
    struct json_out out;
    maker_open(&m);
    json_out_init(&out, NULL);
    store_record(&m, "t.Invoice", 200001);
    store_record(&m, "t.Pole", 200002);
    struct json_source source = make(&m, "{'command':'t.Put','records':["
                                         "{'id':1,'type':'t.Part','parent':200001,'container':'parts'},"
                                         "{'id':2,'type':'t.Bit','parent':3,'container':'bits'},"
                                         "{'id':3,'type':'t.Box'},"
                                         "{'id':4,'type':'t.Leaf','parent':5,'container':'twigs'},"
                                         "{'id':5,'type':'t.Rod'},"
                                         "{'id':6,'type':'t.Leaf','parent':200002,'container':'leaves'}]}");
    assert_ok(json_event(&out, &source, NULL));
    /* Of the last one only the parent's type would tell whether it lies in leaves or in twigs. */
    expect(&out, "{'partition':5,'offset':1204,'wsid':7,'workspace_offset':42,'command':'t.Put',"
                 "'time':'2025-11-15T10:00:00.123456Z','schema':1,'records':["
                 "{'op':'create','id':200017,'type':'t.Part','parent':200001,'container':'parts','fields':{}},"
                 "{'op':'create','id':200018,'type':'t.Bit','parent':200019,'container':'bits','fields':{}},"
                 "{'op':'create','id':200019,'type':'t.Box','fields':{}},"
                 "{'op':'create','id':200020,'type':'t.Leaf','parent':200021,'container':'twigs','fields':{}},"
                 "{'op':'create','id':200021,'type':'t.Rod','fields':{}},"
                 "{'op':'create','id':200022,'type':'t.Leaf','parent':200002,'fields':{}}]}");
    json_out_release(&out);
    maker_close(&m);
}

TEST(an_argument_of_many_objects_is_nested_again)
{
    enum { LINES = 300 };
    struct maker m;
    struct json_out out;
    char *text = malloc(LINES * 64 + 128);
    assert_non_null(text);
    int used = snprintf(text, 128, "{'command':'t.PlaceOrder','argument':{'id':1,'lines':[");
    for (int i = 0; i < LINES; i++)
        used += snprintf(text + used, 64, "%s{'id':%d,'qty':%d,'notes':[{'id':%d}]}", i ? "," : "", 2 * i + 2,
                         i, 2 * i + 3);
    snprintf(text + used, 8, "]}}");
    maker_open(&m);
    json_out_init(&out, NULL);
    struct json_source source = make(&m, text);
    assert_ok(json_event(&out, &source, NULL));
    json_t *json = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *lines = json_object_get(json_object_get(json, "argument"), "lines");
    assert_int_equal(json_array_size(lines), LINES);
    for (size_t i = 0; i < LINES; i++) {
        const json_t *line = json_array_get(lines, i), *notes = json_object_get(line, "notes");
        assert_int_equal(json_integer_value(json_object_get(line, "qty")), i);
        assert_int_equal(json_integer_value(json_object_get(line, "id")), 200018 + 2 * i);
        assert_int_equal(json_array_size(notes), 1);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(notes, 0), "id")), 200019 + 2 * i);
    }
    json_decref(json);
    json_out_release(&out);
    maker_close(&m);
    free(text);
}

TEST(the_birth_of_a_workspace_says_its_kind)
{
    struct json_bed bed;
    struct json_out out;
    struct event_numbers first = {.seq = SEQ_WLOG_OFFSET, .first = 1, .count = 1};
    struct event_head head = {.command = NAME_WS_CREATE, .schema = 1};
    uint8_t body[256];
    json_bed_open(&bed, NULL);
    json_out_init(&out, NULL);
    uint16_t kind = schema_workspace_by_name(bed.schema, text_bytes("t.tenant"))->id;
    envelope_encode(kind, UINT64_C(1) << 60, &first, 1, body);
    const uint8_t *end = event_head_write(&head, body + envelope_size(1));
    struct json_source source = {
        .partition = 1, .offset = 2, .schema = bed.schema, .body = {body, (size_t)(end - body)}};
    assert_ok(json_event(&out, &source, NULL));
    expect(&out, "{'partition':1,'offset':2,'wsid':'1152921504606846976','workspace_offset':1,"
                 "'command':'sys.CreateWorkspace','time':'1970-01-01T00:00:00Z','schema':1,'kind':'t.tenant',"
                 "'records':[]}");
    json_out_release(&out);
    json_bed_close(&bed);
}

static pawl_bytes row_of(const struct value *values, size_t count, uint8_t *room)
{
    size_t size;
    assert_ok(row_size(values, count, &size));
    row_write(values, count, room);
    return (pawl_bytes){room, size};
}

TEST(a_stored_record_shows_its_fields)
{
    const struct value values[] = {{.type = VALUE_STRING, .bytes = {"Ann", 3}}, {.type = VALUE_NULL}};
    struct json_bed bed;
    struct json_out out;
    uint8_t room[128];
    json_bed_open(&bed, NULL);
    json_out_init(&out, NULL);
    struct record_row record = {
        .active = true, .type = json_bed_type(&bed, "t.Customer")->id, .row = row_of(values, 2, room)};
    assert_ok(json_record(&out, bed.schema, UINT64_C(1125899907042625), &record, NULL, NULL));
    expect(&out, "{'id':1125899907042625,'type':'t.Customer','active':true,'fields':{'name':'Ann'}}");

    json_out_rewind(&out, 0);
    record = (struct record_row){.type = json_bed_type(&bed, "t.Leaf")->id,
                                 .parent = 200001,
                                 .container = 1,
                                 .row = row_of(NULL, 0, room)};
    const struct schema_type *rod = json_bed_type(&bed, "t.Rod");
    assert_ok(json_record(&out, bed.schema, 200002, &record, NULL, NULL));
    out_raw(&out, text_bytes("\n"));
    assert_ok(json_record(&out, bed.schema, 200002, &record, rod, NULL));
    expect(&out,
           "{'id':200002,'type':'t.Leaf','active':false,'parent':200001,'fields':{}}\n"
           "{'id':200002,'type':'t.Leaf','active':false,'parent':200001,'container':'twigs','fields':{}}");
    json_out_release(&out);
    json_bed_close(&bed);
}

TEST(a_row_of_an_entity_is_an_object_of_its_fields)
{
    const struct value values[] = {{.type = VALUE_REF, .id = 200001}, {.type = VALUE_INT64, .integer = 3}};
    struct json_bed bed;
    struct json_out out;
    pawl_error error;
    uint8_t room[128];
    json_bed_open(&bed, NULL);
    json_out_init(&out, NULL);
    const struct schema_type *total = json_bed_type(&bed, "t.Total");
    out_open(&out, '[');
    assert_ok(json_row(&out, bed.schema, total, row_of(values, 2, room), NULL));
    assert_status(json_row(&out, bed.schema, total, (pawl_bytes){room, 3}, &error), PAWL_ECORRUPT);
    assert_ok(json_row(&out, bed.schema, total, row_of(values, 1, room), NULL));
    out_close(&out, ']');
    expect(&out, "[{'customer':200001,'orders':3},{'customer':200001}]");
    json_out_release(&out);
    json_bed_close(&bed);
}

/* Whatever a bit in an event becomes, it is shown as JSON or refused, and a refusal leaves the text as it was.
 */
TEST(a_damaged_event_is_shown_whole_or_not_at_all)
{
    struct maker m;
    struct json_out out;
    uint64_t seed = test_seed(1);
    maker_open(&m);
    json_out_init(&out, NULL);
    struct json_source source = make(&m, place_order);
    uint8_t *copy = malloc(source.body.size);
    assert_non_null(copy);
    unsigned refused = 0;
    for (size_t i = 0; i < 8 * source.body.size; i++) {
        memcpy(copy, source.body.data, source.body.size);
        copy[i / 8] ^= (uint8_t)(1u << i % 8);
        if (test_below(&seed, 2))
            copy[test_below(&seed, source.body.size)] = (uint8_t)test_random(&seed);
        struct json_source damaged = source;
        damaged.body = (pawl_bytes){copy, source.body.size};
        for (int answer = 0; answer < 2; answer++) {
            pawl_error error = {0};
            json_out_rewind(&out, 0);
            out_raw(&out, text_bytes("data: "));
            int status =
                answer ? json_answer(&out, &damaged, false, &error) : json_event(&out, &damaged, &error);
            assert_true(status == PAWL_OK || status == PAWL_ECORRUPT || status == PAWL_EVERSION);
            assert_int_equal(error.code, status);
            refused += status != PAWL_OK;
            assert_true(status == PAWL_OK || out.size == 6);
            json_t *json = status ? NULL : json_loadb(out.data + 6, out.size - 6, JSON_ALLOW_NUL, NULL);
            assert_true(status || json);
            json_decref(json);
        }
    }
    assert_true(refused > 0);
    free(copy);
    json_out_release(&out);
    maker_close(&m);
}

TEST(every_allocation_may_fail)
{
    struct maker m;
    maker_open(&m);
    char text[2048] = "{'command':'t.PlaceOrder','argument':{'id':1,'lines':[{'id':2}";
    for (int i = 3; i < 30; i++)
        snprintf(text + strlen(text), 32, ",{'id':%d}", i);
    snprintf(text + strlen(text), 8, "]}}");
    struct json_source nested = make(&m, text);
    assert_ok(bed_cancel(&m.numbers));
    struct json_source children = make(&m, "{'command':'t.Put','records':[{'id':5,'type':'t.Rod'},"
                                           "{'id':4,'type':'t.Leaf','parent':5,'container':'twigs'}]}");
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct json_out out;
        pawl_error error = {0};
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        json_out_init(&out, &memory.allocator);
        int status = json_event(&out, &nested, &error);
        if (status == PAWL_OK)
            status = json_event(&out, &children, &error);
        if (status == PAWL_OK)
            status = json_answer(&out, &nested, false, &error);
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        assert_int_equal(error.code, status);
        test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
        json_out_rewind(&out, 0);
        assert_ok(json_event(&out, &nested, &error));
        json_out_release(&out);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
    maker_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_event_shows_what_was_asked_with_real_ids),
        RUN(an_answer_has_the_ids_in_the_order_they_were_given),
        RUN(an_update_shows_what_it_changes_and_what_it_makes_null),
        RUN(every_form_of_a_value_comes_back),
        RUN(a_child_shows_its_parent_and_where_it_lies_in_it),
        RUN(an_argument_of_many_objects_is_nested_again),
        RUN(the_birth_of_a_workspace_says_its_kind),
        RUN(a_stored_record_shows_its_fields),
        RUN(a_row_of_an_entity_is_an_object_of_its_fields),
        RUN(a_damaged_event_is_shown_whole_or_not_at_all),
        RUN(every_allocation_may_fail),
    };
    return TEST_MAIN(tests);
}
