/* test_engine_sequences.c: a kind of workspace with as many sequences as a schema may give it, and one more. */
#include <pawl/pawl.h>

#include "base/bytes.h"
#include "test/lib/beds.h"
#include "test/lib/dir.h"

#define MANY 1000
#define FEW  3

#define SCHEMA_BYTES ((size_t)256 * 1024)

struct bench {
    char dir[256];
    char data[300];
    char *schema;
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error;
};

/* Sequences s1, s2, ..., and a document with a field for each of those that are numbered. */
static const char *schema_of(struct bench *b, int sequences, int numbered)
{
    char *at = b->schema, *end = b->schema + SCHEMA_BYTES;
    at += snprintf(at, (size_t)(end - at), "{\"schema\":1,\"package\":\"t\",\"workspaces\":{\"tenant\":{");
    at += snprintf(at, (size_t)(end - at), "\"sequences\":{");
    for (int i = 1; i <= sequences; i++)
        at += snprintf(at, (size_t)(end - at), "%s\"s%d\":{\"first\":%d}", i > 1 ? "," : "", i, i);
    at += snprintf(at, (size_t)(end - at), "}}},\"types\":{\"Doc\":{\"kind\":\"WDoc\",\"fields\":{");
    for (int i = 1; i <= numbered; i++)
        at += snprintf(at, (size_t)(end - at), "%s\"f%d\":{\"type\":\"int64\",\"sequence\":\"s%d\"}",
                       i > 1 ? "," : "", i, i);
    at += snprintf(at, (size_t)(end - at), "}}},\"commands\":{\"Take\":{\"records\":[\"Doc\"]}}}");
    assert_true(at < end);
    return b->schema;
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
    *b = (struct bench){.schema = malloc(SCHEMA_BYTES)};
    assert_non_null(b->schema);
    test_dir_make(b->dir, sizeof b->dir);
    snprintf(b->data, sizeof b->data, "%s/data", b->dir);
    open_it(b);
}

static void end(struct bench *b)
{
    shut(b);
    test_dir_remove(b->dir);
    free(b->schema);
}

static void apply(struct bench *b, int sequences, int numbered)
{
    const char *schema = schema_of(b, sequences, numbered);
    assert_ok(pawl_schema_apply(b->engine, schema, NULL, &b->error));
}

struct reading {
    int fields;
    uint64_t times; /* how often each sequence was asked */
};

/* The sequence i begins with i. */
static bool check_fields(void *arg, const pawl_row *record)
{
    const struct reading *r = arg;
    for (int i = 1; i <= r->fields; i++) {
        char name[16];
        int64_t number;
        snprintf(name, sizeof name, "f%d", i);
        assert_ok(pawl_row_int64(record, name, &number, NULL));
        assert_int_equal(number, i + (int64_t)r->times - 1);
    }
    return true;
}

/* A document of the workspace, the record-th of it, whose fields are each sequence's times-th number. */
static void take(struct bench *b, uint64_t wsid, uint64_t record, int fields, uint64_t times)
{
    struct reading reading = {.fields = fields, .times = times};
    pawl_request_begin(b->request, wsid, "t.Take");
    pawl_request_record(b->request, 1, "t.Doc");
    assert_ok(pawl_command(b->engine, b->request, NULL, &b->error));
    assert_ok(
        pawl_record_read(b->engine, wsid, "t.Doc", 200000 + record, NULL, check_fields, &reading, &b->error));
}

struct listed {
    uint64_t count;
    uint64_t sum;
};

static bool add_number(void *arg, const pawl_last_number *n)
{
    struct listed *listed = arg;
    if (n->sequence.size < 4 || memcmp(n->sequence.data, "t.s", 3) != 0)
        return true;
    listed->count++;
    listed->sum += n->number;
    return true;
}

static void check_list(struct bench *b, uint64_t wsid, uint64_t times)
{
    struct listed listed = {0};
    assert_ok(pawl_last_numbers_read(b->engine, 0, wsid, add_number, &listed, &b->error));
    assert_int_equal(listed.count, MANY);
    assert_int_equal(listed.sum, MANY * (MANY + 1) / 2 + MANY * (times - 1));
}

static void create(struct bench *b, uint64_t wsid)
{
    assert_ok(pawl_workspace_create(b->engine, b->request, wsid, "t.tenant", NULL, &b->error));
}

TEST(one_command_takes_numbers_of_a_thousand_sequences_and_all_go_on_after_a_restart)
{
    struct bench b;
    begin(&b);
    apply(&b, MANY, MANY);
    create(&b, 7);
    create(&b, 8);
    take(&b, 7, 1, MANY, 1);
    take(&b, 7, 2, MANY, 2);
    take(&b, 8, 1, MANY, 1);
    check_list(&b, 7, 2);
    shut(&b);
    open_it(&b);
    check_list(&b, 7, 2);
    take(&b, 7, 3, MANY, 3);
    take(&b, 8, 2, MANY, 2);
    check_list(&b, 7, 3);
    end(&b);
}

/* More values than may be unflushed at once, so that they are written while commands go on. */
TEST(a_lost_storage_of_a_thousand_sequences_is_read_from_the_log_again)
{
    enum { ROUNDS = 20 };
    char state[400];
    struct bench b;
    begin(&b);
    apply(&b, MANY, MANY);
    create(&b, 7);
    for (uint64_t i = 1; i <= ROUNDS; i++)
        take(&b, 7, i, MANY, i);
    shut(&b);
    snprintf(state, sizeof state, "%s/state/0", b.data);
    test_dir_remove(state);
    snprintf(state, sizeof state, "%s/checkpoint", b.data);
    if (access(state, F_OK) == 0)
        test_dir_remove(state);
    open_it(&b);
    check_list(&b, 7, ROUNDS);
    take(&b, 7, ROUNDS + 1, MANY, ROUNDS + 1);
    check_list(&b, 7, ROUNDS + 1);
    end(&b);
}

TEST(sequences_are_added_up_to_a_thousand_while_those_before_go_on)
{
    struct reading old = {.fields = FEW, .times = 3};
    struct bench b;
    begin(&b);
    apply(&b, FEW, FEW);
    create(&b, 7);
    take(&b, 7, 1, FEW, 1);
    take(&b, 7, 2, FEW, 2);
    apply(&b, MANY, MANY);
    pawl_request_begin(b.request, 7, "t.Take");
    pawl_request_record(b.request, 1, "t.Doc");
    assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    assert_ok(pawl_record_read(b.engine, 7, "t.Doc", 200003, NULL, check_fields, &old, &b.error));
    struct listed listed = {0};
    assert_ok(pawl_last_numbers_read(b.engine, 0, 7, add_number, &listed, &b.error));
    assert_int_equal(listed.count, MANY);
    assert_int_equal(listed.sum, MANY * (MANY + 1) / 2 + 2 * FEW);
    end(&b);
}

TEST(one_sequence_more_than_a_thousand_is_refused_with_its_path)
{
    struct bench b;
    begin(&b);
    const char *schema = schema_of(&b, MANY + 1, FEW);
    assert_status(pawl_schema_apply(b.engine, schema, NULL, &b.error), PAWL_EINVAL);
    assert_string_equal(b.error.text, "$.workspaces.tenant.sequences: 1001 of them; 1000 are the most");
    apply(&b, MANY, FEW);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(one_command_takes_numbers_of_a_thousand_sequences_and_all_go_on_after_a_restart),
        RUN(a_lost_storage_of_a_thousand_sequences_is_read_from_the_log_again),
        RUN(sequences_are_added_up_to_a_thousand_while_those_before_go_on),
        RUN(one_sequence_more_than_a_thousand_is_refused_with_its_path),
    };
    return TEST_MAIN(tests);
}
