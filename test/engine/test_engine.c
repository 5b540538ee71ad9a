/* test_engine.c: the engine as its users have it: what it promises, and how it refuses. */
#include <sys/stat.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "base/latch.h"
#include "engine/directory/node_file.h"
#include "test/lib/beds.h"
#include "test/lib/dir.h"

static const char schema[] =
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": "
    "{\"first\": 1}}}},"
    " \"types\": {\"Customer\": {\"kind\": \"CDoc\", \"fields\": {\"name\": {\"type\": \"string\", "
    "\"required\": true}}},"
    "   \"Invoice\": {\"kind\": \"WDoc\", \"fields\": {\"number\": {\"type\": \"int64\", \"sequence\": "
    "\"invoice\"},"
    "     \"customer\": {\"type\": \"ref\", \"to\": \"Customer\"}, \"cents\": {\"type\": \"int64\"},"
    "     \"rate\": {\"type\": \"float64\"}, \"paid\": {\"type\": \"bool\"}, \"at\": {\"type\": \"timestamp\"},"
    "     \"blob\": {\"type\": \"bytes\"}, \"kind\": {\"type\": \"qname\"}}},"
    "   \"Order\": {\"kind\": \"ODoc\", \"fields\": {\"text\": {\"type\": \"string\"}}, \"children\": "
    "{\"lines\": \"Line\"}},"
    "   \"Line\": {\"kind\": \"ORecord\", \"fields\": {\"qty\": {\"type\": \"int64\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\", \"Customer\"]}, \"Place\": {\"argument\": "
    "\"Order\"}}}";

struct bench {
    char dir[256];
    char data[300];
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error;
};

static void reopen(struct bench *b)
{
    pawl_options options = {.partitions = 4, .shards = 2};
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
    reopen(b);
    assert_ok(pawl_schema_apply(b->engine, schema, NULL, &b->error));
    assert_ok(pawl_workspace_create(b->engine, b->request, 7, "t.tenant", NULL, &b->error));
}

static void end(struct bench *b)
{
    shut(b);
    test_dir_remove(b->dir);
}

static void bill(struct bench *b)
{
    pawl_request_begin(b->request, 7, "t.Bill");
    pawl_request_record(b->request, 1, "t.Invoice");
    pawl_request_set_int64(b->request, "cents", 5);
}

TEST(a_command_is_there_after_closing_and_opening_again)
{
    struct bench b;
    pawl_answer answer;
    pawl_text text;
    begin(&b);
    bill(&b);
    assert_ok(pawl_command(b.engine, b.request, &answer, &b.error));
    assert_int_equal(answer.workspace_offset, 2);
    uint64_t id = pawl_request_id(b.request, 1);
    assert_int_equal(id, 200001);
    shut(&b);
    reopen(&b);
    assert_ok(pawl_record_get(b.engine, 7, NULL, id, NULL, &text, &b.error));
    assert_string_equal(
        text.data,
        "{\"id\":200001,\"type\":\"t.Invoice\",\"active\":true,\"fields\":{\"number\":1,\"cents\":5}}");
    pawl_text_free(&text);
    bill(&b);
    assert_ok(pawl_command(b.engine, b.request, &answer, &b.error));
    assert_int_equal(answer.workspace_offset, 3);
    assert_int_equal(pawl_request_id(b.request, 1), 200002);
    end(&b);
}

static bool take_number(void *arg, const pawl_row *record)
{
    assert_ok(pawl_row_int64(record, "number", arg, NULL));
    return true;
}

/* What an answer's event says, in all its ways. */
static void check_event(struct bench *b, const pawl_answer *answer, int64_t number)
{
    const pawl_event *event = NULL;
    pawl_bytes json;
    int64_t found = 0;
    assert_ok(pawl_request_event(b->request, &event, &b->error));
    assert_int_equal(event->partition, answer->partition);
    assert_int_equal(event->offset, answer->offset);
    assert_int_equal(event->workspace_offset, answer->workspace_offset);
    assert_true(event->wsid == 7 && event->command.size == 6 && memcmp(event->command.data, "t.Bill", 6) == 0);
    assert_ok(pawl_event_records(event, "t.Invoice", take_number, &found, &b->error));
    assert_int_equal(found, number);
    assert_ok(pawl_event_json(event, &json, &b->error));
    assert_contains((const char *)json.data, "\"command\":\"t.Bill\"");
}

TEST(an_answer_has_its_event_with_the_numbers_that_were_given)
{
    struct bench b;
    pawl_answer answer;
    const pawl_event *event;
    begin(&b);
    pawl_request_begin(b.request, 7, "t.Bill");
    assert_status(pawl_request_event(b.request, &event, &b.error), PAWL_EMISUSE);
    for (int64_t number = 1; number <= 3; number++) {
        bill(&b);
        pawl_request_key(b.request, number == 1 ? "1" : "2");
        assert_ok(pawl_command(b.engine, b.request, &answer, &b.error));
        assert_int_equal(answer.repeated, number == 3);
        check_event(&b, &answer, number == 3 ? 2 : number); /* the third one is the second one again */
        check_event(&b, &answer, number == 3 ? 2 : number);
    }
    end(&b);
}

static bool take_fields(void *arg, const pawl_row *record)
{
    int64_t number, cents;
    double rate;
    bool paid, null;
    pawl_wall at;
    pawl_bytes blob;
    uint64_t customer;
    assert_ok(pawl_row_int64(record, "number", &number, NULL));
    assert_int_equal(number, 1);
    assert_ok(pawl_row_int64(record, "cents", &cents, &null));
    assert_int_equal(cents, 0);
    assert_true(null);
    assert_ok(pawl_row_float64(record, "rate", &rate, &null));
    assert_true(rate == 0.25 && !null);
    assert_ok(pawl_row_bool(record, "paid", &paid, NULL));
    assert_true(paid);
    assert_ok(pawl_row_time(record, "at", &at, NULL));
    assert_int_equal(at.ns, -5);
    assert_ok(pawl_row_bytes(record, "blob", &blob, NULL));
    assert_int_equal(blob.size, 3);
    assert_memory_equal(blob.data, "a\0b", 3);
    assert_ok(pawl_row_ref(record, "customer", &customer, NULL));
    assert_int_equal(customer, *(uint64_t *)arg);
    assert_status(pawl_row_int64(record, "none", &number, NULL), PAWL_ENOTFOUND);
    assert_status(pawl_row_int64(record, "paid", &number, NULL), PAWL_EINVAL);
    assert_int_equal(pawl_row_id(record), 200001);
    assert_int_equal(pawl_row_parent(record), 0);
    assert_true(pawl_row_active(record));
    return true;
}

TEST(every_type_of_field_is_read_as_it_was_set)
{
    struct bench b;
    begin(&b);
    pawl_request_begin(b.request, 7, "t.Bill");
    pawl_request_record(b.request, 1, "t.Customer");
    pawl_request_set_string(b.request, "name", "Ada");
    pawl_request_record(b.request, 2, "t.Invoice");
    pawl_request_set_ref(b.request, "customer", 1);
    pawl_request_set_float64(b.request, "rate", 0.25);
    pawl_request_set_bool(b.request, "paid", true);
    pawl_request_set_time(b.request, "at", (pawl_wall){-5});
    pawl_request_set_bytes(b.request, "blob", (pawl_bytes){"a\0b", 3});
    pawl_request_set_name(b.request, "kind", "t.Customer");
    pawl_request_set_null(b.request, "cents");
    assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    uint64_t customer = pawl_request_id(b.request, 1);
    assert_ok(pawl_record_read(b.engine, 7, "t.Invoice", 200001, NULL, take_fields, &customer, &b.error));
    assert_status(pawl_record_read(b.engine, 7, "t.Invoice", 200009, NULL, take_fields, NULL, &b.error),
                  PAWL_ENOTFOUND);
    assert_contains(b.error.text, "200009");
    assert_status(pawl_record_read(b.engine, 8, "t.Invoice", 1, NULL, take_fields, NULL, &b.error),
                  PAWL_ENOTFOUND);
    assert_contains(b.error.text, "no workspace 8");
    end(&b);
}

TEST(refusals_name_what_is_wrong_and_use_no_number)
{
    struct bench b;
    pawl_answer answer;
    begin(&b);
    bill(&b);
    pawl_request_set_ref(b.request, "customer", 9);
    assert_status(pawl_command(b.engine, b.request, &answer, &b.error), PAWL_EINVAL);
    assert_contains(b.error.text, "$.records[0].fields.customer");
    bill(&b);
    pawl_request_expect(b.request, 5);
    assert_status(pawl_command(b.engine, b.request, &answer, &b.error), PAWL_ECONFLICT);
    assert_status(pawl_workspace_create(b.engine, b.request, 7, "t.tenant", NULL, &b.error), PAWL_EEXISTS);
    assert_status(pawl_workspace_create(b.engine, b.request, 8, "t.none", NULL, &b.error), PAWL_ENOTFOUND);
    bill(&b);
    pawl_request_expect(b.request, 1);
    assert_ok(pawl_command(b.engine, b.request, &answer, &b.error));
    assert_int_equal(answer.workspace_offset, 2);
    assert_int_equal(pawl_request_id(b.request, 1), 200001);
    end(&b);
}

TEST(a_key_gives_the_first_answer_again_after_opening_too)
{
    struct bench b;
    pawl_answer first, second;
    begin(&b);
    bill(&b);
    pawl_request_key(b.request, "k");
    assert_ok(pawl_command(b.engine, b.request, &first, &b.error));
    for (int i = 0; i < 2; i++) {
        bill(&b);
        pawl_request_key(b.request, "k");
        assert_ok(pawl_command(b.engine, b.request, &second, &b.error));
        assert_true(second.repeated);
        assert_int_equal(second.offset, first.offset);
        assert_int_equal(pawl_request_id(b.request, 1), 200001);
        shut(&b);
        reopen(&b);
    }
    pawl_request_begin(b.request, 7, "t.Bill");
    pawl_request_key(b.request, "k");
    assert_status(pawl_command(b.engine, b.request, &second, &b.error), PAWL_ECONFLICT);
    end(&b);
}

TEST(an_o_document_is_found_in_its_event)
{
    struct bench b;
    pawl_text text;
    begin(&b);
    for (int i = 0; i < 20; i++) {
        bill(&b);
        assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
        pawl_request_begin(b.request, 7, "t.Place");
        pawl_request_argument(b.request, 1);
        pawl_request_child(b.request, 1, "lines", 2);
        pawl_request_set_int64(b.request, "qty", i);
        assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    }
    for (uint64_t i = 0; i < 20; i++) { /* three numbers a turn: invoice, order, line */
        char qty[32];
        assert_ok(pawl_record_get(b.engine, 7, NULL, 200003 + 3 * i, NULL, &text, &b.error));
        snprintf(qty, sizeof qty, "\"qty\":%" PRIu64, i);
        assert_contains(text.data, qty);
        pawl_text_free(&text);
    }
    assert_status(pawl_record_get(b.engine, 7, NULL, 200061, NULL, &text, &b.error), PAWL_ENOTFOUND);
    assert_status(pawl_record_get(b.engine, 7, NULL, 3, NULL, &text, &b.error), PAWL_ENOTFOUND);
    end(&b);
}

static void remove_under(const char *data, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", data, name);
    test_dir_remove(path);
}

TEST(a_state_that_is_gone_is_derived_again)
{
    struct bench b;
    pawl_text before, after;
    begin(&b);
    for (int i = 0; i < 30; i++) {
        bill(&b);
        assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    }
    assert_ok(pawl_record_list(b.engine, 7, "t.Invoice", 0, 100, NULL, &before, &b.error));
    shut(&b);
    remove_under(b.data, "state/0");
    remove_under(b.data, "state/1");
    reopen(&b);
    assert_ok(pawl_record_list(b.engine, 7, "t.Invoice", 0, 100, NULL, &after, &b.error));
    assert_string_equal(before.data, after.data);
    pawl_text_free(&before);
    pawl_text_free(&after);
    bill(&b);
    assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    assert_int_equal(pawl_request_id(b.request, 1), 200031);
    shut(&b);
    pawl_replay_options replay = {.dir = b.data};
    pawl_state_report report;
    assert_ok(pawl_replay(&replay, &report, &b.error));
    assert_int_equal(report.live.differences, 0);
    assert_int_equal(report.events, 32);
    reopen(&b);
    end(&b);
}

TEST(a_state_ahead_of_the_log_is_refused)
{
    struct bench b;
    FOR_FILES_ONLY("it takes the files of the log away; kafka_faults deletes topics");
    begin(&b);
    bill(&b);
    assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    shut(&b);
    remove_under(b.data, "log");
    char log[400];
    snprintf(log, sizeof log, "%s/log", b.data);
    assert_int_equal(mkdir(log, 0700), 0);
    pawl_engine *engine;
    assert_status(beds_open(b.data, NULL, &engine, &b.error), PAWL_ECORRUPT);
    test_dir_remove(b.dir);
}

TEST(a_second_writer_is_refused_and_a_reader_is_not)
{
    struct bench b;
    pawl_engine *other;
    pawl_text text;
    begin(&b);
    bill(&b);
    assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    assert_status(beds_open(b.data, NULL, &other, &b.error), PAWL_ELOCKED);
    shut(&b);
    pawl_options reading = {.read_only = true};
    assert_ok(beds_open(b.data, &reading, &other, &b.error));
    assert_ok(pawl_record_get(other, 7, "t.Invoice", 200001, NULL, &text, &b.error));
    pawl_text_free(&text);
    pawl_read_options late = {.min_offset = 1000, .timeout = 1};
    assert_status(pawl_record_get(other, 7, "t.Invoice", 200001, &late, &text, &b.error), PAWL_ETIMEOUT);
    assert_status(pawl_schema_apply(other, schema, NULL, &b.error), PAWL_EREADONLY);
    pawl_request *request;
    assert_ok(pawl_request_new(other, &request));
    assert_status(pawl_workspace_create(other, request, 9, "t.tenant", NULL, &b.error), PAWL_EREADONLY);
    pawl_request_free(request);
    assert_ok(pawl_close(other));
    reopen(&b);
    end(&b);
}

TEST(a_directory_that_another_process_is_making_is_left_to_it)
{
    char dir[256], data[300], file[320];
    pawl_engine *engine;
    struct node_file made;
    pawl_error error = {0};
    int lock;
    test_dir_make(dir, sizeof dir);
    snprintf(data, sizeof data, "%s/data", dir);
    snprintf(file, sizeof file, "%s/node", data);
    assert_ok(node_directory_make(data, &error));
    assert_ok(node_lock(data, NODE_LOCK, &lock, &error));
    assert_status(beds_open(data, &(pawl_options){.partitions = 64}, &engine, &error), PAWL_ELOCKED);
    assert_int_not_equal(access(file, F_OK), 0);
    close(lock); /* it was killed, and has left what it had */
    assert_ok(beds_open(data, &(pawl_options){.partitions = 4}, &engine, &error));
    assert_ok(node_file_read(data, &made, &error));
    assert_int_equal(made.partitions, 4);
    assert_ok(pawl_close(engine));
    test_dir_remove(dir);
}

static void write_file(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

TEST(a_directory_that_must_be_new_is_made_or_refused)
{
    static const pawl_options new = {.must_be_new = true, .partitions = 4};
    char dir[256], data[300], path[320];
    pawl_engine *engine;
    pawl_error error = {0};
    test_dir_make(dir, sizeof dir);
    snprintf(data, sizeof data, "%s/data", dir);
    assert_ok(beds_open(data, &new, &engine, &error)); /* it is not there */
    assert_ok(pawl_close(engine));
    assert_status(beds_open(data, &new, &engine, &error), PAWL_EEXISTS);
    assert_contains(error.text, data);
    assert_contains(error.text, "not empty");
    assert_ok(beds_open(data, NULL, &engine, &error)); /* and was left as it was */
    assert_int_equal(pawl_partitions(engine), 4);
    assert_ok(pawl_close(engine));

    snprintf(data, sizeof data, "%s/empty", dir);
    snprintf(path, sizeof path, "%s/lock", data);
    assert_ok(node_directory_make(data, &error));
    write_file(path); /* of one that was killed while it made it */
    assert_ok(beds_open(data, &new, &engine, &error));
    assert_ok(pawl_close(engine));

    snprintf(data, sizeof data, "%s/other", dir);
    snprintf(path, sizeof path, "%s/letter", data);
    assert_ok(node_directory_make(data, &error));
    write_file(path);
    assert_status(beds_open(data, &new, &engine, &error), PAWL_EEXISTS);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(data), 0); /* nothing was put there */
    write_file(data);
    assert_status(beds_open(data, &new, &engine, &error), PAWL_EEXISTS);
    assert_contains(error.text, "not a directory");
    test_dir_remove(dir);
}

TEST(options_and_directories_that_make_no_sense_are_refused)
{
    pawl_engine *engine;
    pawl_error error;
    char dir[256], path[300];
    test_dir_make(dir, sizeof dir);
    const pawl_options bad[] = {{.partitions = 3},
                                {.partitions = 1 << 17},
                                {.shards = 65},
                                {.must_be_new = true, .must_exist = true},
                                {.must_be_new = true, .read_only = true},
                                {.mailbox = 3},
                                {.lease_first = 601 * PAWL_SECOND},
                                {.lease_min = 601 * PAWL_SECOND},
                                {.backoff_min = 61 * PAWL_SECOND},
                                {.event_bytes_max = SIZE_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_status(pawl_open(dir, &bad[i], &engine, &error), PAWL_EINVAL);
    assert_status(pawl_open("", NULL, &engine, &error), PAWL_EINVAL);
    assert_status(pawl_open("file://", NULL, &engine, &error), PAWL_EINVAL);
    assert_status(pawl_open("kafka://host:1/x", NULL, &engine, &error), PAWL_EINVAL);
    pawl_options must = {.must_exist = true};
    assert_status(pawl_open(dir, &must, &engine, &error), PAWL_ENOTFOUND);
    snprintf(path, sizeof path, "%s/node", dir);
    static const struct {
        const char *text;
        int status;
    } files[] = {
        {"", PAWL_EFORMAT},
        {"pawl 4\n", PAWL_EVERSION},
        {"pawl 3\npartitions 4\nshards 2\nnode 0123456789abcdef\nlog kafka://h:1/x\n", PAWL_EFORMAT},
        {"pawl 3\npartitions 4\nshards 2\nnode 0123456789abcdef\nkafka \nlog kafka://h:1/x\n", PAWL_EFORMAT},
        {"pawl 3\npartitions 4\nshards 2\nnode 0123456789abcdef\nkafka a b\nlog kafka://h:1/x\n", PAWL_EFORMAT},
        {"pawl 2\npartitions 4\nshards 2\nnode 0123456789abcdef\nkafka a\nlog kafka://h:1/x\n", PAWL_EFORMAT},
        {"pawl 2\npartitions 4\nshards 2\n", PAWL_EFORMAT},
        {"pawl 2\npartitions 4\nshards 2\nnode 0123456789abcdef\n", PAWL_EFORMAT},
        {"pawl 2\npartitions 4\nshards 2\nnode 0123456789abcdef\nlog /data\n", PAWL_EFORMAT},
        {"pawl 2\npartitions 4\nshards 2\nnode 0123456789abcdeg\nlog kafka://h:1/x\n", PAWL_EFORMAT},
        {"pawl 2\npartitions 4\nshards 2\nnode 0000000000000000\nlog kafka://h:1/x\n", PAWL_EFORMAT},
        {"pawl 1\npartitions 4\nshards 2\nlog kafka://h:1/x\n", PAWL_EFORMAT},
        {"pawl 1\npartitions 3\nshards 1\n", PAWL_EFORMAT},
        {"pawl 1\npartitions 4\nshards 8\n", PAWL_EFORMAT},
        {"pawl 1\npartitions 4\nshards 2\nmore", PAWL_EFORMAT}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        FILE *file = fopen(path, "w");
        fputs(files[i].text, file);
        fclose(file);
        assert_status(pawl_open(dir, NULL, &engine, &error), files[i].status);
        assert_contains(error.text, path);
    }
    test_dir_remove(dir);
}

struct inside {
    struct latch latch;
    pawl_engine *engine;
    pawl_request *other;
    int command;
    int close;
};

static void call_from_inside(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                             const pawl_error *error)
{
    struct inside *inside = arg;
    inside->command = pawl_command(inside->engine, inside->other, NULL, NULL);
    inside->close = pawl_close(inside->engine);
    latch_set(&inside->latch);
}

TEST(blocking_calls_from_inside_a_callback_are_misuse)
{
    struct bench b;
    struct inside inside;
    begin(&b);
    bill(&b);
    inside = (struct inside){.engine = b.engine};
    assert_ok(pawl_request_new(b.engine, &inside.other));
    latch_init(&inside.latch);
    assert_ok(pawl_command_async(b.engine, b.request, call_from_inside, &inside, &b.error));
    latch_wait(&inside.latch);
    assert_status(inside.command, PAWL_EMISUSE);
    assert_status(inside.close, PAWL_EMISUSE);
    pawl_request_free(inside.other);
    end(&b);
}

struct following {
    struct latch latch;
    uint64_t expected;
    uint64_t until;
};

static bool follow_one(void *arg, const pawl_event *event)
{
    struct following *f = arg;
    if (event->offset != f->expected++)
        return false;
    if (event->offset == f->until)
        latch_set(&f->latch);
    return true;
}

TEST(a_follower_sees_what_was_and_what_comes_in_order)
{
    struct bench b;
    pawl_events *events;
    struct following f = {.expected = 1, .until = 11};
    begin(&b);
    latch_init(&f.latch);
    for (int i = 0; i < 5; i++) {
        bill(&b);
        assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    }
    assert_ok(
        pawl_events_follow(b.engine, pawl_partition_of(b.engine, 7), 1, follow_one, &f, &events, &b.error));
    for (int i = 0; i < 5; i++) {
        bill(&b);
        pawl_request_ack(b.request, PAWL_ACK_DURABLE);
        assert_ok(pawl_command(b.engine, b.request, NULL, &b.error));
    }
    latch_wait(&f.latch);
    assert_ok(pawl_events_unfollow(events, &b.error));
    assert_status(pawl_events_follow(b.engine, 4, 1, follow_one, &f, &events, &b.error), PAWL_EINVAL);
    assert_status(pawl_events_follow(b.engine, 0, 0, follow_one, &f, &events, &b.error), PAWL_EINVAL);
    end(&b);
}

struct visited {
    struct latch latch;
    struct latch followed; /* events is set */
    pawl_engine *engine;
    pawl_events *events;
    pawl_request *request;
    int unfollow, close, command, read;
};

static bool call_from_a_visit(void *arg, const pawl_event *event)
{
    struct visited *v = arg;
    pawl_workspace workspace;
    latch_wait(&v->followed);
    v->unfollow = pawl_events_unfollow(v->events, NULL);
    v->close = pawl_close(v->engine);
    v->command = pawl_command(v->engine, v->request, NULL, NULL);
    v->read = pawl_workspace_get(v->engine, event->wsid, NULL, &workspace, NULL);
    latch_set(&v->latch);
    return false;
}

static void check_visit(struct visited *v, uint16_t partition)
{
    pawl_error error = {0};
    latch_init(&v->latch);
    latch_init(&v->followed);
    assert_ok(pawl_events_follow(v->engine, partition, 1, call_from_a_visit, v, &v->events, &error));
    latch_set(&v->followed);
    latch_wait(&v->latch);
    assert_status(v->unfollow, PAWL_EMISUSE);
    assert_status(v->close, PAWL_EMISUSE);
    assert_status(v->read, PAWL_EMISUSE);
    assert_ok(pawl_events_unfollow(v->events, &error));
}

TEST(calls_from_inside_a_visit_of_a_follower_are_misuse)
{
    struct bench b;
    pawl_engine *reader;
    begin(&b);
    bill(&b);
    struct visited v = {.engine = b.engine, .request = b.request};
    uint16_t partition = pawl_partition_of(b.engine, 7);
    check_visit(&v, partition);
    assert_status(v.command, PAWL_EMISUSE);
    shut(&b);
    assert_ok(beds_open(b.data, &(pawl_options){.read_only = true}, &reader, &b.error));
    v = (struct visited){.engine = reader};
    check_visit(&v, partition);
    assert_status(v.command, PAWL_EREADONLY);
    assert_ok(pawl_close(reader));
    test_dir_remove(b.dir);
}

/* A package whose one type, or each of 4,096, has so many fields. */
static char *wide_package(size_t types, size_t fields)
{
    size_t room = 100 + types * (50 + fields * 30), size = 0;
    char *text = malloc(room);
    assert_non_null(text);
    size += (size_t)snprintf(text, room, "{\"schema\":1,\"package\":\"w\",\"types\":{");
    for (size_t t = 0; t < types; t++) {
        size += (size_t)snprintf(text + size, room - size, "%s\"T%zu\":{\"kind\":\"WDoc\",\"fields\":{",
                                 t ? "," : "", t);
        for (size_t f = 0; f < fields; f++)
            size +=
                (size_t)snprintf(text + size, room - size, "%s\"f%zu\":{\"type\":\"int64\"}", f ? "," : "", f);
        size += (size_t)snprintf(text + size, room - size, "}}");
    }
    snprintf(text + size, room - size, "}}");
    return text;
}

TEST(a_package_that_is_too_big_is_refused_in_words)
{
    static const struct {
        size_t types, fields;
        int status;
        const char *words;
    } cases[] = {{1, 1001, PAWL_EINVAL, "$.types.T0.fields: 1001 of them; 1000 are the most"},
                 {1, 70000, PAWL_EINVAL, "$.types.T0.fields: 70000 of them; 1000 are the most"},
                 {4097, 0, PAWL_EINVAL, "$.types: 4097 of them; 4096 are the most"},
                 {170, 1000, PAWL_ETOOBIG, "the package would take more than 4194304 bytes"},
                 {300, 1000, PAWL_ETOOBIG, "the text has "}};
    struct bench b;
    begin(&b);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *package = wide_package(cases[i].types, cases[i].fields);
        assert_status(pawl_schema_apply(b.engine, package, NULL, &b.error), cases[i].status);
        assert_contains(b.error.text, cases[i].words);
        free(package);
    }
    end(&b);
}

TEST(a_request_that_was_never_begun_is_refused)
{
    struct bench b;
    pawl_request *fresh;
    begin(&b);
    assert_ok(pawl_request_new(b.engine, &fresh));
    pawl_request_record(fresh, 1, "t.Customer");
    pawl_request_set_string(fresh, "name", "Ada");
    assert_status(pawl_command(b.engine, fresh, NULL, &b.error), PAWL_ENOTFOUND);
    pawl_request_free(fresh);
    end(&b);
}

TEST(an_asynchronous_command_without_anybody_to_tell_is_refused)
{
    struct bench b;
    pawl_answer answer;
    begin(&b);
    bill(&b);
    assert_status(pawl_command_async(b.engine, b.request, NULL, NULL, &b.error), PAWL_EINVAL);
    assert_contains(b.error.text, "no function to call");
    assert_ok(pawl_command(b.engine, b.request, &answer, &b.error));
    assert_int_equal(answer.workspace_offset, 2);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_command_is_there_after_closing_and_opening_again),
        RUN(an_answer_has_its_event_with_the_numbers_that_were_given),
        RUN(every_type_of_field_is_read_as_it_was_set),
        RUN(refusals_name_what_is_wrong_and_use_no_number),
        RUN(a_key_gives_the_first_answer_again_after_opening_too),
        RUN(an_o_document_is_found_in_its_event),
        RUN(a_state_that_is_gone_is_derived_again),
        RUN(a_state_ahead_of_the_log_is_refused),
        RUN(a_second_writer_is_refused_and_a_reader_is_not),
        RUN(a_directory_that_another_process_is_making_is_left_to_it),
        RUN(a_directory_that_must_be_new_is_made_or_refused),
        RUN(options_and_directories_that_make_no_sense_are_refused),
        RUN(blocking_calls_from_inside_a_callback_are_misuse),
        RUN(a_follower_sees_what_was_and_what_comes_in_order),
        RUN(calls_from_inside_a_visit_of_a_follower_are_misuse),
        RUN(a_package_that_is_too_big_is_refused_in_words),
        RUN(a_request_that_was_never_begun_is_refused),
        RUN(an_asynchronous_command_without_anybody_to_tell_is_refused),
    };
    return TEST_MAIN(tests);
}
