/* test_engine_beside.c: an engine that only reads, for as long as it likes, beside a process that writes. */
#include <sys/mman.h>

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

/* --- views --- */

#define DOC(a) "{\"command\":\"t.Do\",\"records\":[{\"id\":1,\"type\":\"t.Doc\",\"fields\":{\"a\":" a "}}]}"

static int make_view(void)
{
    pawl_engine *engine;
    const char *key[] = {"a"};
    pawl_view_definition view = {.name = "t.by_a", .base = "t.Doc", .key = key, .key_count = 1};
    CHECK(pawl_open(data, NULL, &engine, NULL) == PAWL_OK);
    for (int i = 0; i < 3; i++)
        CHECK(send_json(engine, 7, DOC("5")) == PAWL_OK);
    CHECK(pawl_view_create(engine, &view, NULL) == PAWL_OK);
    CHECK(pawl_view_wait(engine, "t.by_a", 0, NULL) == PAWL_OK);
    CHECK(pawl_close(engine) == PAWL_OK);
    return 0;
}

static int rebuild_view(void)
{
    pawl_engine *engine;
    CHECK(pawl_open(data, NULL, &engine, NULL) == PAWL_OK);
    CHECK(pawl_view_rebuild(engine, "t.by_a", NULL) == PAWL_OK);
    CHECK(pawl_view_wait(engine, "t.by_a", 0, NULL) == PAWL_OK);
    CHECK(send_json(engine, 7, DOC("6")) == PAWL_OK);
    CHECK(pawl_close(engine) == PAWL_OK);
    return 0;
}

static int drop_view(void)
{
    pawl_engine *engine;
    CHECK(pawl_open(data, NULL, &engine, NULL) == PAWL_OK);
    CHECK(pawl_view_drop(engine, "t.by_a", NULL) == PAWL_OK);
    CHECK(pawl_close(engine) == PAWL_OK);
    return 0;
}

static bool count_row(void *arg, const pawl_row *row)
{
    (void)row;
    ++*(size_t *)arg;
    return true;
}

static int count_view(pawl_engine *reader, size_t *ret_count)
{
    pawl_view_query query = {.complete = true};
    *ret_count = 0;
    return pawl_view_scan(reader, "t.by_a", &query, count_row, ret_count, NULL, NULL);
}

TEST(views_of_the_writing_process_are_seen_as_they_come_change_and_go)
{
    char dir[256];
    size_t count;
    pawl_engine *reader;
    pawl_error error = {0};
    test_dir_make(dir, sizeof dir);
    snprintf(data, sizeof data, "%s/data", dir);
    assert_int_equal(in_child(make_it), 0);
    assert_ok(pawl_open(data, &(pawl_options){.read_only = true}, &reader, &error));
    assert_int_equal(count_view(reader, &count), PAWL_ENOTFOUND);
    assert_int_equal(in_child(make_view), 0);
    assert_ok(count_view(reader, &count));
    assert_int_equal(count, 3);
    assert_int_equal(in_child(rebuild_view), 0);
    assert_ok(count_view(reader, &count));
    assert_int_equal(count, 4);
    pawl_text text;
    assert_ok(pawl_view_get(reader, "t.by_a", 7, text_bytes("[6]"), NULL, &text, &error));
    assert_contains(text.data, "\"a\":6}");
    pawl_text_free(&text);
    assert_int_equal(in_child(drop_view), 0);
    assert_int_equal(count_view(reader, &count), PAWL_ENOTFOUND);
    assert_ok(pawl_close(reader));
    test_dir_remove(dir);
}

/* --- access tokens --- */

/* The secret of the token that a writer makes; memory that the processes share. */
static char *secret;

static int make_token(void)
{
    pawl_engine *engine;
    pawl_text text;
    CHECK(pawl_open(data, NULL, &engine, NULL) == PAWL_OK);
    CHECK(
        pawl_token_create(engine, &(pawl_token_definition){.name = "a", .scopes = PAWL_SCOPE_READ}, &text, NULL)
        == PAWL_OK);
    memcpy(secret, text.data, text.size);
    pawl_text_free(&text);
    CHECK(pawl_close(engine) == PAWL_OK);
    return 0;
}

static int revoke_token(void)
{
    pawl_engine *engine;
    CHECK(pawl_open(data, NULL, &engine, NULL) == PAWL_OK);
    CHECK(pawl_token_revoke(engine, "a", NULL) == PAWL_OK);
    CHECK(pawl_close(engine) == PAWL_OK);
    return 0;
}

static bool count_token(void *arg, const pawl_token *token)
{
    (void)token;
    ++*(size_t *)arg;
    return true;
}

static size_t listed(pawl_engine *reader)
{
    size_t count = 0;
    assert_ok(pawl_token_list(reader, count_token, &count, NULL));
    assert_int_equal(pawl_token_count(reader), count);
    return count;
}

TEST(a_reader_knows_the_tokens_of_its_last_list)
{
    char dir[256];
    pawl_engine *reader;
    pawl_token token;
    secret = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(secret != MAP_FAILED);
    pawl_bytes shown = {secret, PAWL_TOKEN_SECRET_SIZE};
    test_dir_make(dir, sizeof dir);
    snprintf(data, sizeof data, "%s/data", dir);
    assert_int_equal(in_child(make_it), 0);
    assert_ok(pawl_open(data, &(pawl_options){.read_only = true}, &reader, NULL));
    assert_int_equal(in_child(make_token), 0);
    assert_status(pawl_token_check(reader, shown, &token), PAWL_EACCES);
    assert_int_equal(listed(reader), 1);
    assert_ok(pawl_token_check(reader, shown, &token));
    assert_int_equal(in_child(revoke_token), 0);
    assert_ok(pawl_token_check(reader, shown, &token));
    assert_int_equal(listed(reader), 0);
    assert_status(pawl_token_check(reader, shown, &token), PAWL_EACCES);
    assert_ok(pawl_close(reader));
    test_dir_remove(dir);
    munmap(secret, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_reader_that_stays_open_learns_what_the_schema_has_become),
        RUN(views_of_the_writing_process_are_seen_as_they_come_change_and_go),
        RUN(a_reader_knows_the_tokens_of_its_last_list),
    };
    return TEST_MAIN(tests);
}
