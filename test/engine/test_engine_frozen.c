/* test_engine_frozen.c: a frozen workspace: what it refuses, what goes on, and that it lasts. */
#include <pthread.h>
#include <stdatomic.h>

#include <pawl/pawl.h>

#include "test/lib/beds.h"
#include "test/lib/dir.h"

static const char schema[] = "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"
                             " \"types\": {\"Note\": {\"kind\": \"WDoc\", \"fields\": {\"text\": {\"type\": "
                             "\"string\"}}}},"
                             " \"commands\": {\"Write\": {\"records\": [\"Note\"]}}}";

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
    assert_ok(pawl_workspace_create(b->engine, b->request, 8, "t.tenant", NULL, &b->error));
}

static void end(struct bench *b)
{
    shut(b);
    test_dir_remove(b->dir);
}

static int write_note(pawl_engine *engine, pawl_request *request, uint64_t wsid, const char *key,
                      pawl_answer *ret_answer, pawl_error *error)
{
    pawl_request_begin(request, wsid, "t.Write");
    pawl_request_record(request, 1, "t.Note");
    pawl_request_set_string(request, "text", "x");
    if (key)
        pawl_request_key(request, key);
    return pawl_command(engine, request, ret_answer, error);
}

static bool is_frozen(struct bench *b, uint64_t wsid)
{
    pawl_workspace workspace;
    assert_ok(pawl_workspace_get(b->engine, wsid, NULL, &workspace, &b->error));
    return workspace.frozen;
}

static void freeze(struct bench *b, bool frozen, uint64_t offset)
{
    pawl_answer answer;
    assert_ok(pawl_workspace_freeze(b->engine, b->request, 7, frozen, &answer, &b->error));
    assert_int_equal(answer.workspace_offset, offset);
    assert_int_equal(answer.partition, pawl_partition_of(b->engine, 7));
    assert_int_equal(is_frozen(b, 7), frozen);
}

static void refuses(struct bench *b)
{
    pawl_answer answer;
    assert_status(write_note(b->engine, b->request, 7, NULL, &answer, &b->error), PAWL_EREADONLY);
    assert_contains(b->error.text, "workspace 7 is frozen");
    assert_status(pawl_workspace_create(b->engine, b->request, 7, "t.tenant", NULL, &b->error), PAWL_EEXISTS);
    assert_ok(write_note(b->engine, b->request, 8, NULL, &answer, &b->error)); /* others go on */
}

TEST(a_frozen_workspace_refuses_commands_until_it_is_thawed)
{
    struct bench b;
    pawl_answer answer;
    pawl_text text;
    begin(&b);
    assert_ok(write_note(b.engine, b.request, 7, "k", &answer, &b.error));
    uint64_t id = pawl_request_id(b.request, 1);
    freeze(&b, true, 3);
    refuses(&b);
    freeze(&b, true, 0); /* it is so already: nothing is written */
    assert_ok(write_note(b.engine, b.request, 7, "k", &answer, &b.error));
    assert_true(answer.repeated && answer.workspace_offset == 2);
    assert_ok(pawl_record_get(b.engine, 7, NULL, id, NULL, &text, &b.error));
    pawl_text_free(&text);
    freeze(&b, false, 4);
    freeze(&b, false, 0);
    assert_ok(write_note(b.engine, b.request, 7, NULL, &answer, &b.error));
    assert_int_equal(answer.workspace_offset, 5);
    assert_status(pawl_workspace_freeze(b.engine, b.request, 99, true, NULL, &b.error), PAWL_ENOTFOUND);
    assert_contains(b.error.text, "there is no workspace 99");
    end(&b);
}

TEST(it_stays_frozen_when_the_directory_is_opened_again)
{
    struct bench b;
    begin(&b);
    freeze(&b, true, 2);
    for (int i = 0; i < 3; i++) {
        shut(&b);
        reopen(&b);
        assert_true(is_frozen(&b, 7) && !is_frozen(&b, 8));
        refuses(&b);
    }
    freeze(&b, false, 3);
    shut(&b);
    reopen(&b);
    assert_false(is_frozen(&b, 7));
    end(&b);
}

TEST(replaying_the_log_leads_to_the_same_state)
{
    struct bench b;
    pawl_state_report report;
    begin(&b);
    freeze(&b, true, 2);
    freeze(&b, false, 3);
    freeze(&b, true, 4);
    shut(&b);
    const pawl_replay_options options = {.dir = b.data, .audit = true, .reproject = true};
    assert_ok(pawl_replay(&options, &report, &b.error));
    assert_int_equal(report.live.differences + report.checkpoint.differences, 0);
    assert_true(report.live.compared == 4 && report.rows > 0);
    reopen(&b);
    end(&b);
}

/* --- a race --- */

struct sender {
    struct bench *bench;
    pthread_t thread;
    uint64_t last;       /* offset of the last one that was taken */
    atomic_bool *frozen; /* the freeze was answered */
    bool refused;
};

static void *send_until_refused(void *arg)
{
    struct sender *s = arg;
    pawl_request *request;
    pawl_error error = {0};
    pawl_answer answer;
    int status = PAWL_OK;
    assert_ok(pawl_request_new(s->bench->engine, &request));
    for (bool behind = false; status == PAWL_OK && !behind;) {
        behind = atomic_load(s->frozen); /* then the next one must be refused */
        status = write_note(s->bench->engine, request, 7, NULL, &answer, &error);
        if (status == PAWL_OK)
            s->last = answer.workspace_offset;
    }
    s->refused = status == PAWL_EREADONLY;
    pawl_request_free(request);
    return NULL;
}

TEST(commands_under_way_are_all_before_the_freeze)
{
    enum { SENDERS = 4 };
    struct bench b;
    struct sender senders[SENDERS];
    pawl_answer frozen;
    pawl_workspace workspace;
    atomic_bool answered = false;
    begin(&b);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.bench = &b, .frozen = &answered};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_until_refused, &senders[i]), 0);
    }
    do
        assert_ok(pawl_workspace_get(b.engine, 7, NULL, &workspace, &b.error));
    while (workspace.workspace_offset < 100);
    assert_ok(pawl_workspace_freeze(b.engine, b.request, 7, true, &frozen, &b.error));
    atomic_store(&answered, true);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    for (int i = 0; i < SENDERS; i++)
        assert_true(senders[i].refused && senders[i].last < frozen.workspace_offset);
    assert_ok(pawl_workspace_get(b.engine, 7, NULL, &workspace, &b.error));
    assert_int_equal(workspace.workspace_offset, frozen.workspace_offset); /* nothing came behind it */
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_frozen_workspace_refuses_commands_until_it_is_thawed),
        RUN(it_stays_frozen_when_the_directory_is_opened_again),
        RUN(replaying_the_log_leads_to_the_same_state),
        RUN(commands_under_way_are_all_before_the_freeze),
    };
    return TEST_MAIN(tests);
}
