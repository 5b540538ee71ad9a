/* test_engine_threads.c: many clients at once, for TSan: blocking and asynchronous commands, readers, a
 * follower, and a schema that changes meanwhile. */
#include <pthread.h>
#include <stdatomic.h>

#include <pawl/pawl.h>

#include "base/latch.h"
#include "test/lib/beds.h"
#include "test/lib/dir.h"

#define CLIENTS  6
#define COMMANDS 60 /* of each */
#define FLIGHTS  8

#define SCHEMA(more)                                                                                           \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": "          \
    "{\"first\": 1}" more "}}},"                                                                               \
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {\"number\": {\"type\": \"int64\", "           \
    "\"sequence\": \"invoice\"},"                                                                              \
    "   \"cents\": {\"type\": \"int64\"}}}}, \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}}}"

static void bill(pawl_request *r, uint64_t wsid)
{
    pawl_request_begin(r, wsid, "t.Bill");
    pawl_request_record(r, 1, "t.Invoice");
    pawl_request_set_int64(r, "cents", 5);
}

struct client {
    pthread_t thread;
    pawl_engine *engine;
    uint64_t wsid;
    int status;
    pawl_error error;
};

static void *client_main(void *arg)
{
    struct client *c = arg;
    pawl_request *r;
    c->status = pawl_request_new(c->engine, &r);
    for (unsigned i = 0; c->status == PAWL_OK && i < COMMANDS; i++) {
        pawl_answer answer = {0};
        pawl_text text;
        bill(r, c->wsid);
        c->status = pawl_command(c->engine, r, &answer, &c->error);
        pawl_read_options options = {.min_offset = answer.offset};
        if (c->status == PAWL_OK)
            c->status = pawl_record_get(c->engine, c->wsid, "t.Invoice", pawl_request_id(r, 1), &options, &text,
                                        &c->error);
        if (c->status == PAWL_OK)
            pawl_text_free(&text);
    }
    pawl_request_free(r);
    return NULL;
}

struct flight {
    pawl_engine *engine;
    pawl_request *request;
    uint64_t wsid;
    unsigned left;
    int status;
    _Atomic unsigned *flying;
    struct latch *landed;
};

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error)
{
    struct flight *f = arg;
    f->status = status;
    if (status == PAWL_OK && --f->left > 0) {
        bill(request, f->wsid);
        f->status = pawl_command_async(f->engine, request, flown, f, NULL);
    }
    if (f->status == PAWL_OK && f->left > 0)
        return;
    if (atomic_fetch_sub(f->flying, 1) == 1)
        latch_set(f->landed);
}

static bool count_event(void *arg, const pawl_event *event)
{
    atomic_fetch_add((_Atomic uint64_t *)arg, 1);
    return true;
}

TEST(many_clients_get_dense_numbers_while_the_schema_changes)
{
    char dir[256], path[300];
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error = {0};
    pawl_options options = {.partitions = 4, .shards = 2};
    static struct client clients[CLIENTS];
    static struct flight flights[FLIGHTS];
    _Atomic unsigned flying = FLIGHTS;
    _Atomic uint64_t followed[4] = {0};
    pawl_events *events[4];
    struct latch landed;
    test_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/data", dir);
    assert_ok(beds_open(path, &options, &engine, &error));
    assert_ok(pawl_schema_apply(engine, SCHEMA(""), NULL, &error));
    assert_ok(pawl_request_new(engine, &request));
    for (uint64_t i = 0; i < CLIENTS + FLIGHTS; i++)
        assert_ok(pawl_workspace_create(engine, request, i + 1, "t.tenant", NULL, &error));
    for (uint16_t p = 0; p < 4; p++)
        assert_ok(pawl_events_follow(engine, p, 1, count_event, &followed[p], &events[p], &error));

    latch_init(&landed);
    for (unsigned i = 0; i < FLIGHTS; i++) {
        flights[i] = (struct flight){
            .engine = engine, .wsid = CLIENTS + i + 1, .left = COMMANDS, .flying = &flying, .landed = &landed};
        assert_ok(pawl_request_new(engine, &flights[i].request));
        bill(flights[i].request, flights[i].wsid);
        assert_ok(pawl_command_async(engine, flights[i].request, flown, &flights[i], &error));
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.engine = engine, .wsid = i + 1};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
    }
    uint64_t position;
    assert_ok(pawl_schema_apply(engine, SCHEMA(", \"order\": {\"first\": 10}"), &position, &error));
    assert_int_equal(position, beds_are_on_kafka() ? 3 : 2); /* group0 begins with an assignment there */
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_ok(clients[i].status);
    }
    latch_wait(&landed);

    for (uint64_t wsid = 1; wsid <= CLIENTS + FLIGHTS; wsid++) {
        pawl_text list;
        char number[32];
        unsigned found = 0;
        assert_ok(pawl_record_list(engine, wsid, "t.Invoice", 0, 1000, NULL, &list, &error));
        for (char *line = list.data; *line; line = strchr(line, '\n') + 1) {
            snprintf(number, sizeof number, "\"number\":%u,", ++found);
            char *end = strchr(line, '\n');
            *end = '\0';
            assert_contains(line, number);
            *end = '\n';
        }
        assert_int_equal(found, COMMANDS);
        pawl_text_free(&list);
    }
    uint64_t seen = 0;
    for (uint16_t p = 0; p < 4; p++) {
        assert_ok(pawl_events_unfollow(events[p], &error));
        seen += followed[p];
    }
    assert_true(seen <= (CLIENTS + FLIGHTS) * (COMMANDS + 1));
    assert_true(seen > 0);
    for (unsigned i = 0; i < FLIGHTS; i++) {
        assert_ok(flights[i].status);
        pawl_request_free(flights[i].request);
    }
    pawl_request_free(request);
    assert_ok(pawl_close(engine));
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(many_clients_get_dense_numbers_while_the_schema_changes)};
    return TEST_MAIN(tests);
}
