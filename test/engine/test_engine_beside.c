/* test_engine_beside.c: an engine that only reads, for as long as it likes, beside a process that writes. */
#include <pawl/pawl.h>

#include "test/lib/child.h"
#include "test/lib/dir.h"

#define TYPES(more, kinds, sequence)                                                                           \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}" kinds "}, \"types\": {"              \
    " \"Doc\": {\"kind\": \"CDoc\", \"fields\": {\"a\": {\"type\": \"int64\"}, \"q\": {\"type\": "             \
    "\"qname\"}" sequence "}}" more "}, \"commands\": {\"Do\": {\"records\": [\"Doc\"]}"

static const char first_schema[] = TYPES("", "", "") "}}";
static const char second_schema[] =
    TYPES(", \"New\": {\"kind\": \"CDoc\"}", ", \"club\": {\"sequences\": {\"member\": {\"first\": 1}}}",
          ", \"number\": {\"type\": \"int64\", \"sequence\": \"member\"}") ", \"Make\": {\"records\": "
                                                                           "[\"New\", \"Doc\"]}}}";

static char data[300];

static int send_json(pawl_engine *engine, uint64_t wsid, const char *json)
{
    pawl_request *request;
    int status = pawl_request_new(engine, &request);
    if (status != PAWL_OK)
        return status;
    pawl_request_json(request, wsid, text_bytes(json));
    status = pawl_command(engine, request, NULL, NULL);
    pawl_request_free(request);
    return status;
}

static int create(pawl_engine *engine, uint64_t wsid, const char *kind)
{
    pawl_request *request;
    int status = pawl_request_new(engine, &request);
    if (status != PAWL_OK)
        return status;
    status = pawl_workspace_create(engine, request, wsid, kind, NULL, NULL);
    pawl_request_free(request);
    return status;
}

static int make_it(void)
{
    pawl_engine *engine;
    CHECK(pawl_open(data, &(pawl_options){.partitions = 1, .shards = 1}, &engine, NULL) == PAWL_OK);
    CHECK(pawl_schema_apply(engine, first_schema, NULL, NULL) == PAWL_OK);
    CHECK(create(engine, 7, "t.tenant") == PAWL_OK);
    CHECK(pawl_close(engine) == PAWL_OK);
    return 0;
}

/* Things of a schema that the reader has not seen: a type, a kind, a sequence, a name as a value. */
static int go_on(void)
{
    pawl_engine *engine;
    CHECK(pawl_open(data, NULL, &engine, NULL) == PAWL_OK);
    CHECK(pawl_schema_apply(engine, second_schema, NULL, NULL) == PAWL_OK);
    CHECK(create(engine, 8, "t.club") == PAWL_OK);
    CHECK(send_json(engine, 8,
                    "{\"command\":\"t.Make\",\"records\":[{\"id\":1,\"type\":\"t.New\"},"
                    "{\"id\":2,\"type\":\"t.Doc\",\"fields\":{\"a\":1,\"q\":\"t.New\"}}]}")
          == PAWL_OK);
    CHECK(pawl_close(engine) == PAWL_OK);
    return 0;
}

static void assert_record(pawl_engine *reader, const char *type, uint64_t id, const char *expected)
{
    pawl_error error = {0};
    pawl_text text;
    assert_ok(pawl_record_get(reader, 8, type, id, NULL, &text, &error));
    assert_string_equal(text.data, expected);
    pawl_text_free(&text);
    if (!type)
        return;
    assert_ok(pawl_record_list(reader, 8, type, 0, 10, NULL, &text, &error));
    assert_int_equal(text.size, strlen(expected) + 1);
    assert_memory_equal(text.data, expected, strlen(expected));
    pawl_text_free(&text);
}

static bool check_number(void *arg, const pawl_row *record)
{
    assert_ok(pawl_row_int64(record, "number", arg, NULL));
    return true;
}

static bool take_kind(void *arg, const pawl_workspace *workspace)
{
    if (workspace->wsid == 8)
        *(pawl_bytes *)arg = workspace->kind;
    return true;
}

static bool take_sequence(void *arg, const pawl_last_number *last)
{
    *(pawl_bytes *)arg = last->sequence;
    return true;
}

static void assert_text(pawl_bytes bytes, const char *expected)
{
    assert_int_equal(bytes.size, strlen(expected));
    assert_memory_equal(bytes.data, expected, bytes.size);
}

static const uint64_t FIRST = (UINT64_C(1) << 50) + 200001; /* of the C register */

/* Each of the reads may be the first to meet what is new. */
static void read_record(pawl_engine *reader)
{
    assert_record(
        reader, NULL, FIRST + 1,
        "{\"id\":1125899907042626,\"type\":\"t.Doc\",\"active\":true,\"fields\":{\"a\":1,\"q\":\"t.New\","
        "\"number\":1}}");
}

static void read_type(pawl_engine *reader)
{
    assert_record(reader, "t.New", FIRST,
                  "{\"id\":1125899907042625,\"type\":\"t.New\",\"active\":true,\"fields\":{}}");
}

static void read_field(pawl_engine *reader)
{
    int64_t number = 0;
    assert_ok(pawl_record_read(reader, 8, "t.Doc", FIRST + 1, NULL, check_number, &number, NULL));
    assert_int_equal(number, 1);
}

static void read_workspace(pawl_engine *reader)
{
    pawl_workspace workspace;
    assert_ok(pawl_workspace_get(reader, 8, NULL, &workspace, NULL));
    assert_text(workspace.kind, "t.club");
}

static void read_workspaces(pawl_engine *reader)
{
    pawl_bytes kind = {0};
    assert_ok(pawl_workspaces_read(reader, 0, 10, take_kind, &kind, NULL));
    assert_text(kind, "t.club");
}

static void read_sequences(pawl_engine *reader)
{
    pawl_bytes sequence = {0};
    assert_ok(pawl_last_numbers_read(reader, 0, 8, take_sequence, &sequence, NULL));
    assert_text(sequence, "t.member");
}

static void read_schema(pawl_engine *reader)
{
    pawl_text text;
    assert_ok(pawl_schema_show(reader, &text, NULL));
    assert_contains(text.data, "member");
    pawl_text_free(&text);
}

/* The other process is started first, because a process with threads had better not be doubled, and goes on
 * when it is told. */
static pid_t start_waiting(int *ret_tell)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(read(ends[0], &byte, 1) == 1 ? go_on() : 1);
    close(ends[0]);
    *ret_tell = ends[1];
    return child;
}

TEST(a_reader_that_stays_open_learns_what_the_schema_has_become)
{
    void (*const reads[])(pawl_engine * reader) = {read_record,     read_type,      read_field, read_workspace,
                                                   read_workspaces, read_sequences, read_schema};
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        char dir[256];
        pawl_engine *reader;
        int tell, how = 0;
        test_dir_make(dir, sizeof dir);
        snprintf(data, sizeof data, "%s/data", dir);
        assert_int_equal(in_child(make_it), 0);
        pid_t writer = start_waiting(&tell);
        assert_ok(pawl_open(data, &(pawl_options){.read_only = true}, &reader, NULL));
        assert_int_equal(write(tell, "", 1), 1);
        assert_int_equal(waitpid(writer, &how, 0), writer);
        assert_int_equal(how, 0);
        close(tell);
        reads[i](reader);
        assert_ok(pawl_close(reader));
        test_dir_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(a_reader_that_stays_open_learns_what_the_schema_has_become)};
    return TEST_MAIN(tests);
}
