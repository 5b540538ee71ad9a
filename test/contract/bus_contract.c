#include "test/contract/bus_contract.h"

#include "base/heap.h"
#include "base/wait.h"

/* Far more than any of these needs, on any machine that is alive. */
enum { DEADLINE_S = 120 };

enum { ECHO = 1, SILENT = 2, UNKNOWN = 99 };

void bus_record(struct bus_fixture *f, uint64_t value)
{
    pthread_mutex_lock(&f->mutex);
    if (f->count < BUS_VALUES_MAX)
        f->values[f->count++] = value;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->mutex);
}

void bus_await(struct bus_fixture *f, size_t count)
{
    if (f->contract->drive) {
        assert_true(f->contract->drive(f, count));
        return;
    }
    uint64_t end = wait_deadline(DEADLINE_S * PAWL_SECOND);
    bool in_time = true;
    pthread_mutex_lock(&f->mutex);
    while (f->count < count && in_time)
        in_time = cond_wait_until(&f->cond, &f->mutex, end);
    pthread_mutex_unlock(&f->mutex);
    assert_true(in_time);
}

static struct bus_fixture *fixture_new(void **test_state)
{
    struct bus_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->contract = *test_state;
    pthread_mutex_init(&f->mutex, NULL);
    cond_init(&f->cond);
    f->impl = f->contract->open(f->envs, f->buses);
    return f;
}

static void fixture_free(struct bus_fixture *f)
{
    f->contract->close(f->impl);
    pthread_cond_destroy(&f->cond);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

static void expect(struct bus_fixture *f, const uint64_t *values, size_t count)
{
    assert_int_equal(f->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(f->values[i], values[i]);
}

static bool has(const struct bus_fixture *f, uint64_t value)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->values[i] == value)
            return true;
    return false;
}

#define EXPECT(f, ...)                                                                                         \
    expect(f, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* What is recorded: what happened, where, and a status. */
enum { SERVED = 1, DONE = 2, TOLD = 3, RETURNED = 4, PASSED = 5 };

static uint64_t note(uint64_t what, uint32_t node, uint32_t shard, int status)
{
    return what << 48 | (uint64_t)node << 40 | (uint64_t)shard << 32 | (uint32_t)status;
}

/* A shard of a node, with all that a test does there. */
struct actor {
    struct bus_fixture *f;
    uint32_t node; /* its ID */
    uint32_t shard;
    pawl_task task;
    pawl_timer timer;
    pawl_bus_call call;
    pawl_bus_request *kept;
    int answer;
    uint64_t left;
    char text[64];
    struct actor *other;
};

static pawl_env *env_of(const struct actor *a)
{
    return a->f->envs[a->node - 1];
}

static pawl_bus *bus_of(const struct actor *a)
{
    return a->f->buses[a->node - 1];
}

static void record(struct actor *a, uint64_t what, int status)
{
    bus_record(a->f, note(what, a->node, pawl_env_self(env_of(a)), status));
}

static void run_on(struct actor *a, void (*fn)(pawl_task *task))
{
    a->task.fn = fn;
    assert_ok(pawl_env_post(env_of(a), a->shard, &a->task));
}

static struct actor *actor_of(pawl_task *task)
{
    return heap_entry(task, struct actor, task);
}

/* Answers with the body, turned round. */
static void echo(void *arg, pawl_bus_request *request)
{
    struct actor *a = arg;
    char text[64] = {0};
    record(a, SERVED, (int)request->from);
    for (size_t i = 0; i < request->body.size; i++)
        text[i] = ((const char *)request->body.data)[request->body.size - 1 - i];
    pawl_bus_answer(bus_of(a), request, a->answer, (pawl_bytes){text, request->body.size});
}

static void was_cancelled(pawl_bus_request *request)
{
    struct actor *a = request->arg;
    a->kept = NULL;
    record(a, TOLD, 0);
}

static void keep(void *arg, pawl_bus_request *request)
{
    struct actor *a = arg;
    request->arg = a;
    request->cancelled = was_cancelled;
    a->kept = request;
    record(a, SERVED, (int)request->from);
}

static void serve_both(pawl_task *task)
{
    struct actor *a = actor_of(task);
    int status = pawl_bus_serve(bus_of(a), a->shard, ECHO, echo, a);
    status = status ? status : pawl_bus_serve(bus_of(a), a->shard, SILENT, keep, a);
    record(a, PASSED, status);
}

static void on_done(pawl_bus_call *call)
{
    struct actor *a = call->arg;
    size_t size = call->reply.size < sizeof a->text ? call->reply.size : sizeof a->text - 1;
    if (size)
        memcpy(a->text, call->reply.data, size);
    a->text[size] = 0;
    record(a, DONE, call->status);
}

static void begin(pawl_task *task)
{
    struct actor *a = actor_of(task);
    a->call.done = on_done;
    a->call.arg = a;
    int status = pawl_bus_call_begin(bus_of(a), &a->call);
    record(a, RETURNED, status);
}

/* Two actors: one calls, the other serves; what serving recorded is forgotten. */
static void scene(struct bus_fixture *f, struct actor *caller, struct actor *server)
{
    caller->f = server->f = f;
    run_on(server, serve_both);
    bus_await(f, 1);
    EXPECT(f, note(PASSED, server->node, server->shard, 0));
    f->count = 0;
    caller->call.node = server->node;
    caller->call.shard = server->shard;
}

#define CONTRACT_TEST(name) void name(void **test_state)

CONTRACT_TEST(a_call_is_served_on_the_shard_named_and_done_on_the_shard_that_called)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call.verb = ECHO}, b = {.node = 2, .shard = 1};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 3);
    uint64_t served = note(SERVED, 2, 1, 1), returned = note(RETURNED, 1, 0, 0);
    assert_true((f->values[0] == served && f->values[1] == returned)
                || (f->values[1] == served && f->values[0] == returned));
    assert_int_equal(f->values[2], note(DONE, 1, 0, 0));
    fixture_free(f);
}

CONTRACT_TEST(a_shard_calls_itself_and_done_does_not_come_from_inside_call)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 1, .call.verb = ECHO}, b = {.node = 1, .shard = 1};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 3);
    EXPECT(f, note(RETURNED, 1, 1, 0), note(SERVED, 1, 1, 1), note(DONE, 1, 1, 0));
    fixture_free(f);
}

CONTRACT_TEST(body_and_reply_arrive_as_they_were_sent)
{
    struct bus_fixture *f = fixture_new(test_state);
    char body[] = "regal";
    struct actor a = {.node = 1, .shard = 0, .call = {.verb = ECHO, .body = {body, 5}}};
    struct actor b = {.node = 2, .shard = 0};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 3);
    assert_string_equal(a.text, "lager");
    fixture_free(f);
}

static void answer_with_body(pawl_task *task)
{
    struct actor *a = actor_of(task);
    pawl_bus_answer(bus_of(a), a->kept, PAWL_OK, a->kept->body);
}

CONTRACT_TEST(a_server_may_answer_with_the_body_itself)
{
    struct bus_fixture *f = fixture_new(test_state);
    char body[] = "regal";
    struct actor a = {.node = 1, .shard = 0, .call = {.verb = SILENT, .body = {body, 5}}};
    struct actor b = {.node = 2, .shard = 0};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 2);
    run_on(&b, answer_with_body);
    bus_await(f, 3);
    assert_string_equal(a.text, "regal");
    fixture_free(f);
}

CONTRACT_TEST(an_empty_reply_and_a_refusal_arrive)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call.verb = ECHO};
    struct actor b = {.node = 1, .shard = 1, .answer = PAWL_EFENCED};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 3);
    assert_int_equal(f->values[2], note(DONE, 1, 0, PAWL_EFENCED));
    assert_string_equal(a.text, "");
    fixture_free(f);
}

CONTRACT_TEST(a_body_that_is_too_large_is_refused)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call = {.verb = ECHO, .body = {"", PAWL_BUS_BODY_MAX + 1}}};
    struct actor b = {.node = 2, .shard = 0};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 1);
    EXPECT(f, note(RETURNED, 1, 0, PAWL_ETOOBIG));
    fixture_free(f);
}

CONTRACT_TEST(a_call_that_nobody_answers_ends_in_time)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call = {.verb = SILENT, .timeout = 20 * PAWL_MILLISECOND}};
    struct actor b = {.node = 2, .shard = 0};
    scene(f, &a, &b);
    uint64_t before = pawl_env_now(f->envs[0]).ns;
    run_on(&a, begin);
    bus_await(f, 3);
    assert_true(has(f, note(DONE, 1, 0, PAWL_ETIMEOUT)));
    assert_true(pawl_env_now(f->envs[0]).ns - before >= 20 * PAWL_MILLISECOND);
    assert_non_null(b.kept); /* of a time-out the server is not told */
    fixture_free(f);
}

static void answer_kept(pawl_task *task)
{
    struct actor *a = actor_of(task);
    pawl_bus_answer(bus_of(a), a->kept, PAWL_OK, (pawl_bytes){0});
    record(a, PASSED, 0);
}

CONTRACT_TEST(an_answer_that_comes_too_late_goes_nowhere)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call = {.verb = SILENT, .timeout = PAWL_MILLISECOND}};
    struct actor b = {.node = 2, .shard = 0};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 3);
    run_on(&b, answer_kept);
    bus_await(f, 4);
    a.call.verb = ECHO; /* behind it on the same way */
    a.call.timeout = 60 * PAWL_SECOND;
    run_on(&a, begin);
    bus_await(f, 7);
    assert_int_equal(f->values[6], note(DONE, 1, 0, PAWL_OK));
    fixture_free(f);
}

static void cancel(pawl_task *task)
{
    struct actor *a = actor_of(task);
    pawl_bus_cancel(bus_of(a), &a->call);
    record(a, PASSED, 0);
}

CONTRACT_TEST(a_cancelled_call_is_not_done_and_its_server_is_told)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call = {.verb = SILENT, .timeout = 60 * PAWL_SECOND}};
    struct actor b = {.node = 2, .shard = 1};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 2);
    f->count = 0;
    run_on(&a, cancel);
    bus_await(f, 2);
    assert_true(has(f, note(PASSED, 1, 0, 0)));
    assert_true(has(f, note(TOLD, 2, 1, 0)));
    assert_null(b.kept);
    fixture_free(f);
}

/* On one shard, so that the answer surely lies in the inbox when its call is cancelled. */
static void answer_and_cancel(pawl_task *task)
{
    struct actor *a = actor_of(task);
    pawl_bus_answer(bus_of(a), a->other->kept, PAWL_OK, (pawl_bytes){0});
    pawl_bus_cancel(bus_of(a), &a->call);
    a->call.verb = ECHO;
    record(a, PASSED, pawl_bus_call_begin(bus_of(a), &a->call));
}

CONTRACT_TEST(an_answer_on_its_way_is_not_done_after_cancel)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call.verb = SILENT}, b = {.node = 1, .shard = 0};
    a.other = &b;
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 2);
    run_on(&a, answer_and_cancel);
    bus_await(f, 5);
    EXPECT(f, note(RETURNED, 1, 0, 0), note(SERVED, 1, 0, 1), note(PASSED, 1, 0, 0), note(SERVED, 1, 0, 1),
           note(DONE, 1, 0, 0));
    fixture_free(f);
}

CONTRACT_TEST(cancelling_what_is_not_under_way_does_nothing)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call.verb = ECHO}, b = {.node = 1, .shard = 0};
    scene(f, &a, &b);
    run_on(&a, cancel);
    bus_await(f, 1);
    run_on(&a, begin);
    bus_await(f, 4);
    run_on(&a, cancel);
    bus_await(f, 5);
    EXPECT(f, note(PASSED, 1, 0, 0), note(RETURNED, 1, 0, 0), note(SERVED, 1, 0, 1), note(DONE, 1, 0, 0),
           note(PASSED, 1, 0, 0));
    fixture_free(f);
}

static void again(pawl_bus_call *call)
{
    struct actor *a = call->arg;
    if (a->left-- > 0)
        record(a, RETURNED, pawl_bus_call_begin(bus_of(a), call));
    else
        record(a, DONE, call->status);
}

static void begin_again(pawl_task *task)
{
    struct actor *a = actor_of(task);
    a->call.done = again;
    a->call.arg = a;
    record(a, RETURNED, pawl_bus_call_begin(bus_of(a), &a->call));
}

CONTRACT_TEST(a_call_may_be_made_again_from_its_own_done)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call.verb = ECHO, .left = 1}, b = {.node = 1, .shard = 0};
    scene(f, &a, &b);
    run_on(&a, begin_again);
    bus_await(f, 5);
    EXPECT(f, note(RETURNED, 1, 0, 0), note(SERVED, 1, 0, 1), note(RETURNED, 1, 0, 0), note(SERVED, 1, 0, 1),
           note(DONE, 1, 0, 0));
    fixture_free(f);
}

CONTRACT_TEST(a_call_to_a_node_that_is_not_there_ends)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.f = f, .node = 1, .shard = 0, .call = {.verb = ECHO, .node = 77}};
    run_on(&a, begin);
    bus_await(f, 2);
    EXPECT(f, note(RETURNED, 1, 0, 0), note(DONE, 1, 0, PAWL_EIO));
    a.call.node = 2;
    a.call.shard = BUS_SHARDS;
    run_on(&a, begin);
    bus_await(f, 4);
    assert_int_equal(f->values[3], note(DONE, 1, 0, PAWL_EIO));
    fixture_free(f);
}

CONTRACT_TEST(a_call_to_a_node_that_has_left_ends)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call.verb = ECHO}, b = {.node = 2, .shard = 0};
    scene(f, &a, &b);
    f->contract->leave(f->impl, 2);
    run_on(&a, begin);
    bus_await(f, 2);
    EXPECT(f, note(RETURNED, 1, 0, 0), note(DONE, 1, 0, PAWL_EIO));
    b.call = (pawl_bus_call){.verb = ECHO, .node = 1};
    run_on(&b, begin);
    bus_await(f, 3);
    assert_int_equal(f->values[2], note(RETURNED, 2, 0, PAWL_ECLOSED));
    fixture_free(f);
}

CONTRACT_TEST(a_verb_that_nobody_serves_ends)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call.verb = UNKNOWN}, b = {.node = 2, .shard = 0};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 2);
    EXPECT(f, note(RETURNED, 1, 0, 0), note(DONE, 1, 0, PAWL_EIO));
    fixture_free(f);
}

static void serve_no_longer(pawl_task *task)
{
    struct actor *a = actor_of(task);
    record(a, PASSED, pawl_bus_serve(bus_of(a), a->shard, SILENT, NULL, NULL));
}

CONTRACT_TEST(requests_end_without_a_word_when_they_are_no_longer_served)
{
    struct bus_fixture *f = fixture_new(test_state);
    struct actor a = {.node = 1, .shard = 0, .call = {.verb = SILENT, .timeout = PAWL_SECOND / 2}};
    struct actor b = {.node = 2, .shard = 0};
    scene(f, &a, &b);
    run_on(&a, begin);
    bus_await(f, 2);
    run_on(&b, serve_no_longer);
    bus_await(f, 4);
    assert_true(has(f, note(PASSED, 2, 0, 0)));
    assert_true(has(f, note(DONE, 1, 0, PAWL_ETIMEOUT)));
    fixture_free(f);
}

enum { ROUNDS = 500 };

static void count_down(pawl_bus_call *call)
{
    struct actor *a = call->arg;
    uint64_t text = 0;
    bool right = call->status == PAWL_OK && call->reply.size == sizeof text;
    if (right)
        memcpy(&text, call->reply.data, sizeof text);
    bus_record(a->f, right && text == __builtin_bswap64(a->left) ? DONE : 0);
    if (--a->left == 0)
        return;
    a->call.body = (pawl_bytes){&a->left, sizeof a->left};
    a->call.shard = (a->call.shard + 1) % BUS_SHARDS;
    if (a->call.shard == 0)
        a->call.node = a->call.node % BUS_NODES + 1;
    if (pawl_bus_call_begin(bus_of(a), call) != PAWL_OK)
        bus_record(a->f, 0);
}

static void quiet_echo(void *arg, pawl_bus_request *request)
{
    struct actor *a = arg;
    uint64_t body;
    memcpy(&body, request->body.data, sizeof body);
    body = __builtin_bswap64(body);
    pawl_bus_answer(bus_of(a), request, PAWL_OK, (pawl_bytes){&body, sizeof body});
}

static void serve_quietly(pawl_task *task)
{
    struct actor *a = actor_of(task);
    record(a, PASSED, pawl_bus_serve(bus_of(a), a->shard, ECHO, quiet_echo, a));
}

static void begin_counting(pawl_task *task)
{
    struct actor *a = actor_of(task);
    a->call.done = count_down;
    a->call.arg = a;
    a->call.body = (pawl_bytes){&a->left, sizeof a->left};
    a->call.timeout = 60 * PAWL_SECOND;
    if (pawl_bus_call_begin(bus_of(a), &a->call) != PAWL_OK)
        bus_record(a->f, 0);
}

CONTRACT_TEST(many_calls_between_all_shards_are_all_answered_once)
{
    enum { PLACES = BUS_NODES * BUS_SHARDS, CALLERS = 4 * PLACES };
    struct bus_fixture *f = fixture_new(test_state);
    struct actor servers[PLACES], callers[CALLERS];
    for (uint32_t i = 0; i < PLACES; i++) {
        servers[i] = (struct actor){.f = f, .node = 1 + i / BUS_SHARDS, .shard = i % BUS_SHARDS};
        run_on(&servers[i], serve_quietly);
    }
    bus_await(f, PLACES);
    f->count = 0;
    for (uint32_t i = 0; i < CALLERS; i++) {
        callers[i] = (struct actor){.f = f, .node = 1 + i / BUS_SHARDS % BUS_NODES, .shard = i % BUS_SHARDS};
        callers[i].call = (pawl_bus_call){.verb = ECHO, .node = 1 + i % BUS_NODES};
        callers[i].left = ROUNDS;
        run_on(&callers[i], begin_counting);
    }
    bus_await(f, (size_t)CALLERS * ROUNDS);
    assert_int_equal(f->count, (size_t)CALLERS * ROUNDS);
    for (size_t i = 0; i < f->count; i++)
        assert_int_equal(f->values[i], DONE);
    fixture_free(f);
}
