/* What events do to rows: records that are updated and cleared, and what synchronous projectors make of them,
 * live and derived again. */
#include "base/bytes.h"
#include "core/schema/row.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"
#include "test/lib/ask.h"
#include "test/lib/test.h"

static const char schema_text[] =
    "{'schema': 1, 'package': 'p', 'workspaces': {'w': {'sequences': {'s': {'first': 1}}}},"
    "'types': {'Doc': {'kind': 'CDoc', 'fields': {'a': {'type': 'string'}, 'n': {'type': 'int64'},"
    "                  'number': {'type': 'int64', 'sequence': 's'}}},"
    "          'Blow': {'kind': 'ODoc', 'fields': {'k': {'type': 'int64'}, 'by': {'type': 'int64'}}}},"
    "'commands': {'Put': {'records': ['Doc']}, 'Hit': {'argument': 'Blow', 'records': ['Doc']},"
    "             'Trim': {'argument': 'Blow'}, 'Swap': {'argument': 'Blow'}, 'Join': {'argument': 'Blow'}},"
    "'entities': {'Sum': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'x': {'type': 'int64'},"
    "                     'y': {'type': 'int64'}, 'text': {'type': 'string'}}}},"
    "'projectors': {"
    "  'hit': {'on': ['Hit'], 'sync': true, 'do': ["
    "    {'upsert': 'Sum', 'key': {'k': '$event.argument.k'}, 'set': {'x': 'coalesce(x, 0) + "
    "$event.argument.by',"
    "      'text': '$event.actor'}},"
    "    {'upsert': 'Sum', 'key': {'k': '$event.argument.k'}, 'set': {'y': 'x * 2'}}]},"
    "  'trim': {'on': ['Trim'], 'sync': true, 'do': ["
    "    {'update': 'Sum', 'where': 'x > $event.argument.by', 'set': {'x': '$event.argument.by'}},"
    "    {'delete': 'Sum', 'where': 'y < $event.argument.by'}]},"
    "  'swap': {'on': ['Swap'], 'sync': true, 'do': [{'update': 'Sum', 'set': {'x': 'y', 'y': 'x'}}]},"
    "  'join': {'on': ['Join'], 'sync': true, 'do': [{'update': 'Sum', 'set': {'text': 'text || text'}}]}}}";

static void open_rows(struct partition *p)
{
    struct ask ask;
    partition_open(p, 1);
    partition_apply(p, schema_text);
    partition_boot(p);
    ask_create(&ask, p, 7, "p.w");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
}

/* Derived again from the log, the rows have the same bytes. */
static void close_rows(struct partition *p)
{
    partition_check_digests(p);
    pawl_bytes live = partition_dump(p);
    partition_halt(p);
    partition_forget_state(p);
    partition_boot(p);
    assert_int_equal(partition_wait(p), WRITER_RUNNING);
    pawl_bytes derived = partition_dump(p);
    assert_true(bytes_equal(live, derived));
    free((void *)live.data);
    free((void *)derived.data);
    partition_check_digests(p);
    partition_halt(p);
    partition_close(p);
}

#define NONE INT64_MIN /* null */

static int hit(struct partition *p, const char *command, int64_t k, int64_t by)
{
    struct ask ask;
    ask_init(&ask, p, 7, command);
    ask_argument(&ask, 1, "p.Blow");
    if (k != NONE)
        ask_number(&ask, "k", k);
    if (by != NONE)
        ask_number(&ask, "by", by);
    int status = ask_and_wait(&ask);
    ask_release(&ask);
    return status;
}

struct looking {
    struct partition *partition;
    pawl_bytes key;
    const struct schema_type *type;
    size_t skip; /* bytes in front of the row */
    size_t place;
    struct value value;
    bool found;
};

static void look(void *arg)
{
    struct looking *l = arg;
    pawl_bytes bytes;
    struct row row;
    l->found = pawl_store_get(pawl_store_writer(l->partition->store), STATE_SPACE, l->key, &bytes) == PAWL_OK;
    if (!l->found)
        return;
    bytes = (pawl_bytes){(const uint8_t *)bytes.data + l->skip, bytes.size - l->skip};
    assert_ok(row_open(l->type->fields, l->type->field_count, bytes, &row, NULL));
    l->value = row_get(row, l->place, l->type->fields[l->place].type);
}

/* NONE: the field is null; NONE + 1: there is no row. */
static int64_t field(struct partition *p, const char *type, uint64_t id, const char *name)
{
    const struct schema *schema = group0_schema(p->group0);
    struct looking l = {.partition = p, .type = schema_type_by_name(schema, text_bytes(type))};
    uint8_t key[64];
    bool entity = l.type->kind == TYPE_ENTITY;
    struct value k = {.type = VALUE_INT64, .integer = (int64_t)id};
    l.key = key_numbered(l.type->table, 7, id, key);
    if (entity)
        l.key.size = KEY_WORKSPACE + row_key_write(&k, 1, key + KEY_WORKSPACE, sizeof key - KEY_WORKSPACE);
    l.skip = entity ? 0 : RECORD_BYTES;
    l.place = (size_t)schema_field_place(l.type, text_bytes(name));
    partition_call(p, look, &l);
    return !l.found ? NONE + 1 : l.value.type == VALUE_NULL ? NONE : l.value.integer;
}

TEST(an_update_changes_what_it_names_and_clears_what_it_makes_null)
{
    struct partition p;
    struct ask ask;
    open_rows(&p);
    ask_init(&ask, &p, 7, "p.Put");
    ask_record(&ask, 1, "p.Doc");
    ask_text(&ask, "a", "x");
    ask_number(&ask, "n", 5);
    assert_ok(ask_and_wait(&ask));
    uint64_t id = ask_object(&ask, 0).id;
    ask_release(&ask);
    assert_int_equal(field(&p, "p.Doc", id, "n"), 5);
    assert_int_equal(field(&p, "p.Doc", id, "number"), 1);

    ask_init(&ask, &p, 7, "p.Put");
    ask_record(&ask, id, "p.Doc");
    ask_null(&ask, "n");
    assert_ok(ask_and_wait(&ask));
    assert_int_equal(ask_object(&ask, 0).cleared_count, 1);
    ask_release(&ask);
    assert_int_equal(field(&p, "p.Doc", id, "n"), NONE);
    assert_int_not_equal(field(&p, "p.Doc", id, "a"), NONE);
    assert_int_equal(field(&p, "p.Doc", id, "number"), 1);
    close_rows(&p);
}

TEST(an_action_sees_what_those_before_it_did)
{
    struct partition p;
    open_rows(&p);
    assert_ok(hit(&p, "p.Hit", 1, 10));
    assert_ok(hit(&p, "p.Hit", 1, 5));
    assert_int_equal(field(&p, "p.Sum", 1, "x"), 15);
    assert_int_equal(field(&p, "p.Sum", 1, "y"), 30);
    assert_int_equal(field(&p, "p.Sum", 1, "text"), NONE);
    close_rows(&p);
}

TEST(the_sets_of_one_action_see_the_row_as_it_was)
{
    struct partition p;
    open_rows(&p);
    assert_ok(hit(&p, "p.Hit", 1, 10));
    assert_ok(hit(&p, "p.Swap", NONE, NONE));
    assert_int_equal(field(&p, "p.Sum", 1, "x"), 20);
    assert_int_equal(field(&p, "p.Sum", 1, "y"), 10);
    close_rows(&p);
}

TEST(a_clause_that_is_null_matches_nothing)
{
    struct partition p;
    open_rows(&p);
    assert_ok(hit(&p, "p.Hit", 1, 10));
    assert_ok(hit(&p, "p.Hit", 2, 3));
    assert_ok(hit(&p, "p.Trim", NONE, NONE));
    assert_int_equal(field(&p, "p.Sum", 1, "x"), 10);
    assert_int_equal(field(&p, "p.Sum", 2, "x"), 3);
    assert_ok(hit(&p, "p.Trim", NONE, 7));
    assert_int_equal(field(&p, "p.Sum", 1, "x"), 7);
    assert_int_equal(field(&p, "p.Sum", 2, "x"), NONE + 1);
    close_rows(&p);
}

TEST(a_projector_that_cannot_refuses_the_command_and_no_number_is_used)
{
    struct partition p;
    struct ask ask;
    open_rows(&p);
    assert_ok(hit(&p, "p.Hit", 1, INT64_MAX / 2 - 1));
    static const struct {
        int64_t k, by;
        const char *words;
    } cases[] = {{1, INT64_MAX, "projector p.hit, action 0: "},         /* x + by */
                 {2, INT64_MAX / 2 + 1, "projector p.hit, action 1: "}, /* x * 2: what action 0 did goes too */
                 {NONE, 1, "the key's field k would be null"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask_init(&ask, &p, 7, "p.Hit");
        ask_argument(&ask, 1, "p.Blow");
        if (cases[i].k != NONE)
            ask_number(&ask, "k", cases[i].k);
        ask_number(&ask, "by", cases[i].by);
        ask_record(&ask, 2, "p.Doc");
        assert_status(ask_and_wait(&ask), PAWL_EINVAL);
        assert_contains(ask.error.text, cases[i].words);
        ask_release(&ask);
    }
    assert_int_equal(field(&p, "p.Sum", 1, "x"), INT64_MAX / 2 - 1);
    assert_int_equal(field(&p, "p.Sum", 2, "x"), NONE + 1);
    ask_init(&ask, &p, 7, "p.Hit");
    ask_argument(&ask, 1, "p.Blow");
    ask_number(&ask, "k", 3);
    ask_number(&ask, "by", 1);
    ask_record(&ask, 2, "p.Doc");
    assert_ok(ask_and_wait(&ask));
    assert_int_equal(ask.call.offset, 3);
    assert_int_equal(event_numbers_of(&ask.event, SEQ_WLOG_OFFSET).first, 3);
    assert_int_equal(ask_object(&ask, 0).id, 200002);
    assert_int_equal(field(&p, "p.Doc", ask_object(&ask, 1).id, "number"), 1);
    ask_release(&ask);
    close_rows(&p);
}

TEST(a_string_that_outgrows_its_room_refuses_the_command)
{
    struct partition p;
    struct ask ask;
    open_rows(&p);
    ask_init(&ask, &p, 7, "p.Hit");
    ask_argument(&ask, 1, "p.Blow");
    ask_number(&ask, "k", 1);
    ask_number(&ask, "by", 1);
    ask.request.actor = text_bytes("0123456789012345678901234567890123456789012345678901234567890123");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    int status = PAWL_OK, times = 0;
    for (; status == PAWL_OK && times < 20; times++)
        status = hit(&p, "p.Join", NONE, NONE);
    assert_status(status, PAWL_ETOOBIG);
    assert_in_range(times, 10, 12); /* 64 bytes doubled, up to 64 KiB */
    close_rows(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_update_changes_what_it_names_and_clears_what_it_makes_null),
        RUN(an_action_sees_what_those_before_it_did),
        RUN(the_sets_of_one_action_see_the_row_as_it_was),
        RUN(a_clause_that_is_null_matches_nothing),
        RUN(a_projector_that_cannot_refuses_the_command_and_no_number_is_used),
        RUN(a_string_that_outgrows_its_room_refuses_the_command),
    };
    return TEST_MAIN(tests);
}
