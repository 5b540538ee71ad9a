/* Operations as JSON: their writes with keys as fields, what becomes null, voids; and damage. Single quotes
 * stand for double ones. */
#include "test/lib/test.h"

#include <jansson.h>

#include "core/project/operation.h"
#include "core/schema/row.h"
#include "engine/json/show.h"
#include "test/lib/alloc.h"
#include "test/lib/schema.h"

static const char schema_text[] =
    "{ 'schema': 1, 'package': 'p', 'workspaces': { 'w': {} },"
    "  'types': { 'Doc': { 'kind': 'CDoc', 'fields': { 'n': {'type': 'int64'} } } },"
    "  'commands': { 'Put': { 'records': ['Doc'] } },"
    "  'entities': {"
    "    'Pair': { 'key': ['name', 'id'], 'fields': { 'id': {'type': 'ref'}, 'name': {'type': 'string'},"
    "              'n': {'type': 'int64'}, 'q': {'type': 'qname'}, 'f': {'type': 'float64'} } } },"
    "  'projectors': { 'one': { 'on': ['Put'], 'do': ["
    "    { 'upsert': 'Pair', 'key': { 'id': '$event.records.Doc.id', 'name': '$event.actor' } } ] } } }";

/* Places of its fields, by the names that the schema gave them. */
struct bed {
    struct group0 *group0;
    const struct schema *schema;
    const struct schema_type *pair;
    struct operation_maker maker;
    struct arena arena;
};

static void bed_open(struct bed *bed)
{
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &bed->group0));
    int status = schema_apply(bed->group0, schema_text, &outcome, &error);
    print_message("# %s\n", error.text);
    assert_ok(status);
    bed->schema = group0_schema(bed->group0);
    bed->pair = schema_type_by_name(bed->schema, text_bytes("p.Pair"));
    operation_maker_init(&bed->maker, NULL);
    arena_init(&bed->arena, NULL, 4096);
}

static void bed_close(struct bed *bed)
{
    arena_release(&bed->arena);
    operation_maker_release(&bed->maker);
    group0_free(bed->group0);
}

static size_t place(const struct bed *bed, const char *field)
{
    int place = schema_field_place(bed->pair, text_bytes(field));
    assert_true(place >= 0);
    return (size_t)place;
}

/* A row of the open write; n, q and f: their values, each NULL if it is not set. Of a delete all are. */
static void add_row(struct bed *bed, bool deleted, const char *name, uint64_t id, const struct value *n,
                    const struct value *q, const struct value *f)
{
    const struct value key[] = {{.type = VALUE_STRING, .bytes = text_bytes(name)},
                                {.type = VALUE_REF, .id = id}};
    struct value values[8] = {{.type = VALUE_NULL}};
    uint64_t set = 0;
    uint8_t room[128];
    size_t size = row_key_write(key, 2, room, sizeof room);
    const struct value *given[] = {n, q, f};
    static const char *const fields[] = {"n", "q", "f"};
    assert_true(size <= sizeof room && bed->pair->field_count <= 8);
    for (size_t i = 0; i < 3; i++) {
        if (!given[i])
            continue;
        values[place(bed, fields[i])] = *given[i];
        set |= UINT64_C(1) << place(bed, fields[i]);
    }
    operation_maker_row(&bed->maker, (pawl_bytes){room, size}, deleted ? NULL : values, deleted ? NULL : &set,
                        bed->pair->field_count);
}

/* Encoded, and decoded again. */
static pawl_bytes encode(struct bed *bed, enum operation_kind kind, const char *reason)
{
    struct operation operation = {.kind = kind,
                                  .projector = schema_name_id(bed->schema, text_bytes("p.one")),
                                  .attempt = 2,
                                  .number = 12,
                                  .id = {UINT64_C(0x0123456789abcdef), 10},
                                  .event = 1204,
                                  .wsid = UINT64_C(1) << 60,
                                  .schema = bed->schema->position,
                                  .time = {INT64_C(1763200800123456000)},
                                  .reason = text_bytes(reason)};
    pawl_bytes bytes;
    assert_ok(operation_maker_writes(&bed->maker, &operation.writes, &operation.count));
    assert_ok(operation_encode(&operation, &bed->arena, &bytes));
    return bytes;
}

static int show(const struct bed *bed, pawl_bytes bytes, struct json_out *out, pawl_error *error)
{
    struct operation operation;
    int status = operation_decode(bytes, &operation, error);
    return status ? status : json_operation(out, 5, bed->schema, &operation, error);
}

#define HEAD                                                                                                   \
    "{'partition':5,'number':12,'operation':'0123456789abcdef000000000000000a','event':1204,'wsid':'"          \
    "1152921504606846976',"                                                                                    \
    "'projector':'p.one','schema':1,'attempt':2,'time':'2025-11-15T10:00:00.123456Z',"

static void expect(const struct json_out *out, const char *expected)
{
    char text[2048];
    assert_true(strlen(expected) < sizeof text);
    snprintf(text, sizeof text, "%s", expected);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    if (out->size != strlen(text) || memcmp(out->data, text, out->size) != 0)
        print_message("# got      %.*s\n# expected %s\n", (int)out->size, out->data, text);
    assert_int_equal(out->size, strlen(text));
    assert_memory_equal(out->data, text, out->size);
}

static const struct value seven = {.type = VALUE_INT64, .integer = 7}, none = {.type = VALUE_NULL};

static pawl_bytes three_writes(struct bed *bed)
{
    const struct value name = {.type = VALUE_QNAME, .name = bed->pair->id};
    operation_maker_reset(&bed->maker);
    operation_maker_write(&bed->maker, ACTION_UPSERT, bed->pair->id);
    add_row(bed, false, "a\"\xc3\xbc", 200001, &seven, &name, NULL);
    operation_maker_write(&bed->maker, ACTION_UPDATE, bed->pair->id);
    add_row(bed, false, "", 1, &none, NULL, &none);
    add_row(bed, false, "b", 2, NULL, NULL, NULL);
    operation_maker_write(&bed->maker, ACTION_DELETE, bed->pair->id);
    add_row(bed, true, "a much longer name than those before it", 3, NULL, NULL, NULL);
    return encode(bed, OPERATION_WRITES, "");
}

TEST(writes_are_shown_row_by_row)
{
    struct bed bed;
    struct json_out out;
    pawl_error error;
    bed_open(&bed);
    json_out_init(&out, NULL);
    assert_ok(show(&bed, three_writes(&bed), &out, &error));
    expect(
        &out, HEAD
        "'writes':["
        "{'upsert':'p.Pair','rows':[{'key':{'name':'a\\'\xc3\xbc','id':200001},'set':{'n':7,'q':'p.Pair'}}]},"
        "{'update':'p.Pair','rows':[{'key':{'name':'','id':1},'set':{'n':null,'f':null}},"
        "{'key':{'name':'b','id':2},'set':{}}]},"
        "{'delete':'p.Pair','rows':[{'key':{'name':'a much longer name than those before it','id':3}}]}]}");
    json_out_release(&out);
    bed_close(&bed);
}

TEST(nothing_to_do_is_no_void)
{
    struct bed bed;
    struct json_out out;
    pawl_error error;
    bed_open(&bed);
    json_out_init(&out, NULL);
    operation_maker_reset(&bed.maker);
    assert_ok(show(&bed, encode(&bed, OPERATION_WRITES, ""), &out, &error));
    expect(&out, HEAD "'writes':[]}");
    json_out_rewind(&out, 0);
    assert_ok(show(&bed, encode(&bed, OPERATION_VOID, "the customer is gone"), &out, &error));
    expect(&out, HEAD "'void':'the customer is gone'}");
    json_out_release(&out);
    bed_close(&bed);
}

/* Whatever a bit becomes, it is shown as JSON or refused, and a refusal leaves the text as it was. */
TEST(a_damaged_operation_is_shown_whole_or_not_at_all)
{
    struct bed bed;
    struct json_out out;
    uint64_t seed = test_seed(1);
    unsigned refused = 0;
    bed_open(&bed);
    json_out_init(&out, NULL);
    pawl_bytes bytes = three_writes(&bed);
    uint8_t *copy = malloc(bytes.size);
    assert_non_null(copy);
    for (size_t i = 0; i < 8 * bytes.size; i++) {
        pawl_error error = {0};
        memcpy(copy, bytes.data, bytes.size);
        copy[i / 8] ^= (uint8_t)(1u << i % 8);
        if (test_below(&seed, 2))
            copy[test_below(&seed, bytes.size)] = (uint8_t)test_random(&seed);
        json_out_rewind(&out, 0);
        out_raw(&out, text_bytes("data: "));
        int status = show(&bed, (pawl_bytes){copy, bytes.size}, &out, &error);
        assert_true(status == PAWL_OK || status == PAWL_ECORRUPT || status == PAWL_EVERSION);
        assert_int_equal(error.code, status);
        assert_true(status == PAWL_OK || out.size == 6);
        refused += status != PAWL_OK;
        json_t *json = status ? NULL : json_loadb(out.data + 6, out.size - 6, JSON_ALLOW_NUL, NULL);
        assert_true(status || json);
        json_decref(json);
    }
    assert_true(refused > 0);
    free(copy);
    json_out_release(&out);
    bed_close(&bed);
}

TEST(every_allocation_may_fail)
{
    struct bed bed;
    bed_open(&bed);
    pawl_bytes bytes = three_writes(&bed);
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct json_out out;
        pawl_error error = {0};
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        json_out_init(&out, &memory.allocator);
        int status = show(&bed, bytes, &out, &error);
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        assert_int_equal(error.code, status);
        json_out_release(&out);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(writes_are_shown_row_by_row),
        RUN(nothing_to_do_is_no_void),
        RUN(a_damaged_operation_is_shown_whole_or_not_at_all),
        RUN(every_allocation_may_fail),
    };
    return TEST_MAIN(tests);
}
