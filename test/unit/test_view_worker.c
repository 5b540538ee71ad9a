/* A worker on one shard, called from another, under virtual time. Its base has so many rows in each tablet; a
 * slice covers some of them for all views of the batch. */
#include "test/lib/test.h"

#include "adapter/local/bus.h"
#include "adapter/mem/env.h"
#include "base/error.h"
#include "core/view/worker.h"
#include "test/lib/alloc.h"

enum { CALLER = 0, WORKER = 1, VIEWS = 3, TABLETS = 4, CALLS = 12, LIMIT = 1000000 };

#define BASE  ((uint32_t)300)
#define OTHER ((uint32_t)301)
#define VIEW  ((uint32_t)0x80000001)

struct scene;

struct asked {
    struct scene *s;
    pawl_bus_call call;
    bool done;
    int status;
    char text[256]; /* "1 FINISHED, 2 GONE"; or the words of a failure */
};

struct scene {
    struct mem_world *world;
    struct mem_env *node;
    struct local_network *network;
    struct local_bus *bus;
    struct worker *worker;
    struct tasks tasks;

    uint64_t rows;                  /* of each tablet */
    uint64_t built[VIEWS][TABLETS]; /* rows that the view covers */
    pawl_duration row_time;         /* what scanning a row takes */
    uint64_t throttle;
    bool not_durable;
    bool not_unique;
    int slice_status;
    uint64_t slices;
    uint32_t slice_rows; /* what the last slice was allowed */
    size_t slice_tasks;  /* how many tasks it was for */
    struct uncovered uncovered[4];
    size_t uncovered_count;
    struct base_rows bases; /* base 0: none */
    uint64_t abort_at;      /* the slice in which all tasks are flagged */

    struct asked asked[CALLS];
    struct arena arena;
    void (*fn)(struct scene *s, void *arg);
    void *arg;
    const pawl_allocator *allocator; /* the worker's */
};

/* group0 and the store, as the worker sees them. */

static int get_task(void *ctx, uint64_t id, struct task *ret_task)
{
    struct scene *s = ctx;
    return tasks_find(&s->tasks, id, ret_task);
}

static int do_slice(void *ctx, const struct task *tasks, size_t count, uint32_t rows_max,
                    struct slice_report *ret_report, pawl_error *error)
{
    struct scene *s = ctx;
    s->slice_rows = rows_max;
    s->slice_tasks = count;
    if (s->slice_status != PAWL_OK)
        return error_set(error, s->slice_status, "the store has no room for view rows");
    s->slices++;
    uint64_t from = s->rows;
    for (size_t i = 0; i < count; i++) {
        uint64_t built = s->built[tasks[i].view - VIEW][tasks[i].tablet];
        from = built < from ? built : from;
    }
    uint64_t rows = s->rows - from < rows_max ? s->rows - from : rows_max;
    for (size_t i = 0; i < count; i++) {
        uint64_t *built = &s->built[tasks[i].view - VIEW][tasks[i].tablet];
        *built = *built > from + rows ? *built : from + rows;
    }
    mem_env_jump(s->node, rows * s->row_time);
    if (s->slices == s->abort_at)
        assert_ok(tasks_abort_all(&s->tasks));
    *ret_report = (struct slice_report){.rows = rows, .covered = from + rows == s->rows};
    return PAWL_OK;
}

static bool covers(void *ctx, const struct task *task)
{
    struct scene *s = ctx;
    return s->built[task->view - VIEW][task->tablet] == s->rows;
}

static enum work_outcome judge(void *ctx, const struct task *task, pawl_error *error)
{
    struct scene *s = ctx;
    if (s->not_unique)
        error_set(error, PAWL_EEXISTS, "records 7 and 9 are equal");
    return s->not_unique ? WORK_FAILED : s->not_durable ? WORK_NOT_DURABLE : WORK_FINISHED;
}

static int list_uncovered(void *ctx, struct arena *arena, struct uncovered_reply *ret_reply)
{
    struct scene *s = ctx;
    *ret_reply = (struct uncovered_reply){.list = s->uncovered,
                                          .count = s->uncovered_count,
                                          .bases = &s->bases,
                                          .base_count = s->bases.base != 0};
    return PAWL_OK;
}

static uint64_t get_throttle(void *ctx)
{
    return ((struct scene *)ctx)->throttle;
}

static const struct worker_ops ops = {
    .task = get_task,
    .slice = do_slice,
    .judge = judge,
    .covers = covers,
    .uncovered = list_uncovered,
    .throttle = get_throttle,
};

/* Shards. */

static void run_fn(void *arg)
{
    struct scene *s = arg;
    s->fn(s, s->arg);
}

static void on_shard(struct scene *s, uint32_t shard, void (*fn)(struct scene *s, void *arg), void *arg)
{
    s->fn = fn;
    s->arg = arg;
    assert_ok(pawl_env_call(mem_env_port(s->node), shard, run_fn, s));
}

static void begin_worker(struct scene *s, void *arg)
{
    struct worker_options options = {
        .env = mem_env_port(s->node),
        .shard = WORKER,
        .bus = local_bus_port(s->bus),
        .ops = &ops,
        .ctx = s,
        .slice_time = 2 * PAWL_MILLISECOND,
        .slice_rows_max = 8192,
        .allocator = s->allocator,
    };
    int status = worker_new(&options, &s->worker);
    if (status != PAWL_OK) { /* the one allocation that fails */
        assert_status(status, PAWL_ENOMEM);
        assert_ok(worker_new(&options, &s->worker));
    }
}

static void end_worker(struct scene *s, void *arg)
{
    worker_free(s->worker);
    s->worker = NULL;
}

static void scene_open(struct scene *s)
{
    uint32_t made;
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = 1}, &s->world, NULL));
    assert_ok(mem_env_open(s->world, &(struct mem_env_options){.shards = 2}, &s->node, NULL));
    assert_ok(local_network_open(&(struct local_network_options){0}, &s->network));
    assert_ok(local_bus_open(s->network, 1, mem_env_port(s->node), &s->bus));
    arena_init(&s->arena, NULL, 4096);
    tasks_init(&s->tasks, NULL);
    for (uint32_t i = 0; i < VIEWS; i++) /* IDs 1 to 4, 5 to 8, 9 to 12 */
        assert_ok(tasks_make(&s->tasks, i == 2 ? OTHER : BASE, VIEW + i, TABLETS, NULL, 0, &made));
    on_shard(s, WORKER, begin_worker, NULL);
}

static void scene_close(struct scene *s)
{
    if (s->worker)
        on_shard(s, WORKER, end_worker, NULL);
    local_bus_close(s->bus);
    local_network_close(s->network);
    mem_world_close(s->world);
    tasks_release(&s->tasks);
    arena_release(&s->arena);
}

static void note_results(struct asked *a, pawl_bytes reply)
{
    static const char *const outcomes[] = {"?", "FINISHED", "NOT_DURABLE", "FAILED", "GONE"};
    struct work_result *results;
    size_t count, at = 0;
    assert_ok(work_reply_decode(reply, &a->s->arena, &results, &count));
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(a->text + at, sizeof a->text - at, "%s%" PRIu64 " %s%s%.*s", i ? ", " : "",
                               results[i].id, outcomes[results[i].outcome], results[i].words.size ? ": " : "",
                               (int)results[i].words.size, (const char *)results[i].words.data);
}

static void note_uncovered(struct asked *a, pawl_bytes bytes)
{
    struct uncovered_reply reply;
    size_t at = 0;
    assert_ok(uncovered_reply_decode(bytes, &a->s->arena, &reply));
    for (size_t i = 0; i < reply.count; i++)
        at += (size_t)snprintf(a->text + at, sizeof a->text - at, "%u/%u/%u ", reply.list[i].base,
                               reply.list[i].view, reply.list[i].tablet);
    for (size_t i = 0; i < reply.base_count; i++)
        at += (size_t)snprintf(a->text + at, sizeof a->text - at, "%u: %" PRIu64 " rows ", reply.bases[i].base,
                               reply.bases[i].rows);
}

static void call_done(pawl_bus_call *call)
{
    struct asked *a = call->arg;
    assert_false(a->done);
    a->done = true;
    a->status = call->status;
    if (call->status == PAWL_OK && call->verb == VERB_WORK)
        note_results(a, call->reply);
    else if (call->status == PAWL_OK)
        note_uncovered(a, call->reply);
    else
        snprintf(a->text, sizeof a->text, "%.*s", (int)call->reply.size, (const char *)call->reply.data);
}

static void begin_call(struct scene *s, void *arg)
{
    struct asked *a = arg;
    assert_ok(pawl_bus_call_begin(local_bus_port(s->bus), &a->call));
}

static struct asked *send(struct scene *s, size_t i, uint16_t verb, pawl_bytes body)
{
    struct asked *a = &s->asked[i];
    *a = (struct asked){.s = s};
    a->call =
        (pawl_bus_call){.node = 1, .shard = WORKER, .verb = verb, .body = body, .done = call_done, .arg = a};
    a->call.timeout = 3600 * PAWL_SECOND;
    on_shard(s, CALLER, begin_call, a);
    return a;
}

static struct asked *call_ids(struct scene *s, size_t i, uint64_t term, const uint64_t *ids, size_t count)
{
    pawl_bytes body;
    assert_ok(work_encode(term, ids, count, &s->arena, &body));
    return send(s, i, VERB_WORK, body);
}

#define CALL(s, i, term, ...)                                                                                  \
    call_ids(s, i, term, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

static bool is_done(void *arg)
{
    return ((struct asked *)arg)->done;
}

static void expect(struct asked *a, const char *text)
{
    assert_true(mem_world_run_until(a->s->world, is_done, a, LIMIT));
    assert_ok(a->status);
    assert_string_equal(a->text, text);
}

static void expect_refused(struct asked *a, int status)
{
    assert_true(mem_world_run_until(a->s->world, is_done, a, LIMIT));
    assert_status(a->status, status);
}

/* Until so many slices were made. */
static void slices(struct scene *s, uint64_t count)
{
    for (int i = 0; i < LIMIT && s->slices < count; i++)
        if (!mem_world_step(s->world))
            mem_world_advance(s->world, PAWL_MILLISECOND);
    assert_int_equal(s->slices, count);
}

static void tell(struct scene *s, void *arg)
{
    worker_changed(s->worker);
}

static void changed(struct scene *s)
{
    on_shard(s, WORKER, tell, NULL);
}

static void cancel_call(struct scene *s, void *arg)
{
    pawl_bus_cancel(local_bus_port(s->bus), &((struct asked *)arg)->call);
}

TEST(a_batch_is_built_slice_by_slice_and_then_answered)
{
    struct scene s = {.rows = 1000};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 1, 5), "1 FINISHED, 5 FINISHED");
    assert_int_equal(s.slices, 4); /* 128 rows of two views, 256, 512, the rest */
    assert_int_equal(s.built[0][0], 1000);
    assert_int_equal(s.built[1][0], 1000);
    assert_int_equal(s.built[0][1], 0);
    assert_int_equal(worker_figures(s.worker)->rows, 1000); /* one scan for both views */
    assert_int_equal(worker_figures(s.worker)->batches, 1);
    assert_int_equal(worker_figures(s.worker)->base, 0);
    scene_close(&s);
}

TEST(a_tablet_without_rows_is_finished_by_one_slice)
{
    struct scene s = {.rows = 0};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 1), "1 FINISHED");
    scene_close(&s);
}

TEST(what_is_covered_already_is_answered_at_once)
{
    struct scene s = {.rows = 1000};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 1), "1 FINISHED");
    uint64_t slices_before = s.slices;
    expect(CALL(&s, 1, 2, 1), "1 FINISHED");
    assert_int_equal(s.slices, slices_before);
    scene_close(&s);
}

TEST(what_is_over_is_told_at_once_and_the_rest_is_called_again)
{
    struct scene s = {.rows = 1000};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 1), "1 FINISHED");
    expect(CALL(&s, 1, 1, 1, 5), "1 FINISHED");
    assert_int_equal(s.built[1][0], 0);
    expect(CALL(&s, 2, 1, 5), "5 FINISHED");
    scene_close(&s);
}

TEST(a_call_for_the_same_tasks_attaches)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *first = CALL(&s, 0, 1, 1, 5);
    slices(&s, 2);
    struct asked *second = CALL(&s, 1, 1, 5); /* some of the same are the same */
    expect(first, "1 FINISHED, 5 FINISHED");
    expect(second, "5 FINISHED");
    assert_int_equal(worker_figures(s.worker)->batches, 1);
    assert_int_equal(worker_figures(s.worker)->attached, 1);
    assert_int_equal(worker_figures(s.worker)->rows, 10000);
    scene_close(&s);
}

TEST(a_new_leader_attaches_and_the_old_one_is_refused)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *old = CALL(&s, 0, 1, 1);
    slices(&s, 2);
    struct asked *new = CALL(&s, 1, 2, 1);
    expect_refused(old, PAWL_EFENCED);
    expect_refused(CALL(&s, 2, 1, 1), PAWL_EFENCED);
    expect(new, "1 FINISHED");
    assert_int_equal(worker_figures(s.worker)->rows, 10000);
    assert_int_equal(worker_figures(s.worker)->attached, 1);
    assert_int_equal(worker_figures(s.worker)->refused, 2);
    scene_close(&s);
}

TEST(an_old_leader_is_not_answered_once_a_new_one_has_asked_anything)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    pawl_bytes body;
    scene_open(&s);
    struct asked *old = CALL(&s, 0, 1, 1);
    slices(&s, 2);
    assert_ok(uncovered_encode(2, &s.arena, &body));
    struct asked *asked = send(&s, 1, VERB_UNCOVERED, body);
    assert_true(mem_world_run_until(s.world, is_done, asked, LIMIT));
    struct asked *new = CALL(&s, 2, 2, 1);
    expect_refused(old, PAWL_EFENCED);
    expect(new, "1 FINISHED");
    assert_int_equal(worker_figures(s.worker)->attached, 1);
    scene_close(&s);
}

TEST(other_tasks_are_refused_while_a_batch_is_built)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *first = CALL(&s, 0, 1, 1);
    slices(&s, 2);
    expect_refused(CALL(&s, 1, 1, 2), PAWL_EBUSY);
    expect_refused(CALL(&s, 2, 1, 1, 5), PAWL_EBUSY);
    expect(first, "1 FINISHED");
    scene_close(&s);
}

TEST(a_new_leader_that_wants_other_tasks_gets_them)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *old = CALL(&s, 0, 1, 1);
    slices(&s, 2);
    struct asked *new = CALL(&s, 1, 2, 2);
    expect_refused(old, PAWL_EFENCED);
    expect(new, "2 FINISHED");
    assert_true(s.built[0][0] < s.rows);
    scene_close(&s);
}

TEST(a_task_that_is_deleted_in_the_middle_leaves_the_batch)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *a = CALL(&s, 0, 1, 1, 5);
    slices(&s, 2);
    assert_int_equal(s.slice_tasks, 2);
    tasks_delete_view(&s.tasks, VIEW + 1);
    changed(&s);
    slices(&s, 3);
    assert_int_equal(s.slice_tasks, 1);
    expect(a, "1 FINISHED, 5 GONE");
    assert_true(s.built[1][0] < s.rows);
    scene_close(&s);
}

TEST(a_batch_ends_with_its_last_task)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *a = CALL(&s, 0, 1, 1, 5);
    slices(&s, 2);
    assert_ok(tasks_abort_all(&s.tasks));
    changed(&s);
    expect(a, "1 GONE, 5 GONE");
    mem_world_advance(s.world, PAWL_SECOND);
    assert_int_equal(s.slices, 2);
    scene_close(&s);
}

/* The broadcast does not come, or comes too late. */
TEST(an_abort_is_noticed_before_the_next_slice_even_if_nobody_tells)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *a = CALL(&s, 0, 1, 1, 5);
    slices(&s, 2);
    assert_ok(tasks_abort_all(&s.tasks));
    expect(a, "1 GONE, 5 GONE");
    assert_int_equal(s.slices, 2);
    scene_close(&s);
}

TEST(a_task_that_is_covered_and_aborted_is_not_called_finished)
{
    struct scene s = {.rows = 1000, .abort_at = 4};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 1, 5), "1 GONE, 5 GONE");
    assert_int_equal(s.built[0][0], s.rows);
    expect(CALL(&s, 1, 1, 1), "1 GONE");
    scene_close(&s);
}

TEST(a_task_that_group0_does_not_have_is_gone)
{
    struct scene s = {.rows = 1000};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 77), "77 GONE");
    expect(CALL(&s, 1, 1, 1, 77), "1 FINISHED, 77 GONE");
    scene_close(&s);
}

TEST(a_cancelled_batch_ends_before_its_next_slice)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *a = CALL(&s, 0, 1, 1);
    slices(&s, 2);
    on_shard(&s, CALLER, cancel_call, a);
    mem_world_advance(s.world, PAWL_SECOND);
    assert_true(s.slices <= 3); /* one may have been ahead of the word */
    assert_int_equal(worker_figures(s.worker)->base, 0);
    assert_false(a->done);
    uint64_t built = s.built[0][0];
    expect(CALL(&s, 1, 1, 1), "1 FINISHED"); /* and goes on where it stopped */
    assert_int_equal(worker_figures(s.worker)->rows, s.rows);
    assert_true(built > 0);
    scene_close(&s);
}

TEST(a_batch_goes_on_as_long_as_one_caller_is_left)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *first = CALL(&s, 0, 1, 1);
    slices(&s, 1);
    struct asked *second = CALL(&s, 1, 1, 1);
    slices(&s, 2);
    on_shard(&s, CALLER, cancel_call, first);
    expect(second, "1 FINISHED");
    assert_int_equal(worker_figures(s.worker)->batches, 1);
    scene_close(&s);
}

TEST(one_that_asks_again_and_again_replaces_its_oldest_question)
{
    struct scene s = {.rows = 100000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *first = CALL(&s, 0, 1, 1);
    for (size_t i = 1; i < 9; i++)
        CALL(&s, i, 1, 1);
    expect_refused(first, PAWL_EBUSY);
    for (size_t i = 1; i < 9; i++)
        expect(&s.asked[i], "1 FINISHED");
    scene_close(&s);
}

TEST(a_full_store_is_told_with_its_words_and_building_goes_on_later)
{
    struct scene s = {.rows = 1000};
    scene_open(&s);
    s.slice_status = PAWL_EFULL;
    struct asked *a = CALL(&s, 0, 1, 1);
    expect_refused(a, PAWL_EFULL);
    assert_string_equal(a->text, "the store has no room for view rows");
    assert_int_equal(worker_figures(s.worker)->error.code, PAWL_EFULL);
    s.slice_status = PAWL_OK;
    expect(CALL(&s, 1, 1, 1), "1 FINISHED");
    assert_int_equal(worker_figures(s.worker)->error.code, PAWL_OK);
    scene_close(&s);
}

TEST(what_is_covered_and_not_durable_is_said_so_and_holds_no_batch)
{
    struct scene s = {.rows = 1000, .not_durable = true};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 1), "1 NOT_DURABLE");
    expect(CALL(&s, 1, 1, 2), "2 NOT_DURABLE"); /* another one is not kept waiting */
    uint64_t slices_before = s.slices;
    s.not_durable = false;
    expect(CALL(&s, 2, 1, 1), "1 FINISHED");
    assert_int_equal(s.slices, slices_before);
    scene_close(&s);
}

TEST(two_rows_that_are_not_unique_are_named)
{
    struct scene s = {.rows = 1000, .not_unique = true};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 1), "1 FAILED: records 7 and 9 are equal");
    scene_close(&s);
}

TEST(tasks_of_two_tablets_or_bases_are_no_batch)
{
    struct scene s = {.rows = 1000};
    scene_open(&s);
    expect_refused(CALL(&s, 5, 1, 1, 1), PAWL_ECORRUPT); /* nor is one task twice */
    expect_refused(CALL(&s, 6, 1, 5, 1), PAWL_ECORRUPT);
    expect_refused(CALL(&s, 0, 1, 1, 2), PAWL_EINVAL);
    expect_refused(CALL(&s, 1, 1, 1, 9), PAWL_EINVAL);
    expect_refused(send(&s, 2, VERB_WORK, text_bytes("?")), PAWL_ECORRUPT);
    expect_refused(send(&s, 3, VERB_UNCOVERED, text_bytes("?")), PAWL_ECORRUPT);
    expect(CALL(&s, 4, 1, 1), "1 FINISHED");
    scene_close(&s);
}

TEST(slices_grow_until_they_take_their_time)
{
    struct scene s = {.rows = 100000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    CALL(&s, 0, 1, 1);
    slices(&s, 1);
    assert_int_equal(s.slice_rows, 256);
    slices(&s, 2);
    assert_int_equal(s.slice_rows, 512);
    slices(&s, 6);
    assert_int_equal(s.slice_rows, 2000); /* 2 ms */
    s.row_time = PAWL_MILLISECOND;
    slices(&s, 20);
    assert_int_equal(s.slice_rows, 16); /* no fewer, however slow */
    s.row_time = 1;
    expect(&s.asked[0], "1 FINISHED");
    scene_close(&s);
}

/* However quick the rows of the batch before were. */
TEST(a_batch_begins_with_few_rows_for_each_of_its_views)
{
    struct scene s = {.rows = 100000};
    scene_open(&s);
    expect(CALL(&s, 0, 1, 1), "1 FINISHED");
    assert_int_equal(s.slice_rows, 8192);
    uint64_t before = s.slices;
    s.row_time = PAWL_MILLISECOND;
    CALL(&s, 1, 1, 2, 6);
    slices(&s, before + 1);
    assert_int_equal(s.slice_tasks, 2);
    assert_int_equal(s.slice_rows, 128);
    slices(&s, before + 8);
    assert_int_equal(s.slice_rows, 8);
    s.row_time = 1;
    expect(&s.asked[1], "2 FINISHED, 6 FINISHED");
    scene_close(&s);
}

TEST(slices_have_an_upper_bound)
{
    struct scene s = {.rows = 100000};
    scene_open(&s);
    CALL(&s, 0, 1, 1);
    slices(&s, 10);
    assert_int_equal(s.slice_rows, 8192);
    scene_close(&s);
}

TEST(a_throttled_shard_scans_so_many_rows_a_second)
{
    struct scene s = {.rows = 100000, .throttle = 1000};
    scene_open(&s);
    CALL(&s, 0, 1, 1);
    mem_world_advance(s.world, 10 * PAWL_SECOND);
    uint64_t built = s.built[0][0];
    assert_true(built >= 10000 && built <= 11000);
    assert_true(worker_figures(s.worker)->rate > 900 && worker_figures(s.worker)->rate < 1100);
    s.throttle = 0; /* it need not wait until its second is over */
    changed(&s);
    expect(&s.asked[0], "1 FINISHED");
    assert_true(worker_figures(s.worker)->rate == 0);
    scene_close(&s);
}

TEST(a_throttle_holds_from_one_batch_to_the_next)
{
    struct scene s = {.rows = 100, .throttle = 100};
    scene_open(&s);
    uint64_t before = pawl_env_now(mem_env_port(s.node)).ns;
    for (uint64_t id = 1; id <= TABLETS; id++)
        assert_true(mem_world_run_until(s.world, is_done, CALL(&s, id, 1, id), LIMIT));
    assert_true(pawl_env_now(mem_env_port(s.node)).ns - before >= 3 * PAWL_SECOND);
    scene_close(&s);
}

TEST(what_is_not_covered_is_listed)
{
    struct scene s = {
        .uncovered = {{BASE, VIEW, 2}, {BASE, VIEW + 1, 3}}, .uncovered_count = 2, .bases = {BASE, 77}};
    char expected[128];
    pawl_bytes body;
    snprintf(expected, sizeof expected, "%u/%u/2 %u/%u/3 %u: 77 rows ", BASE, VIEW, BASE, VIEW + 1, BASE);
    scene_open(&s);
    assert_ok(uncovered_encode(2, &s.arena, &body));
    struct asked *a = send(&s, 0, VERB_UNCOVERED, body);
    assert_true(mem_world_run_until(s.world, is_done, a, LIMIT));
    assert_ok(a->status);
    assert_string_equal(a->text, expected);
    assert_ok(uncovered_encode(1, &s.arena, &body));
    expect_refused(send(&s, 1, VERB_UNCOVERED, body), PAWL_EFENCED);
    expect_refused(CALL(&s, 2, 1, 1), PAWL_EFENCED);
    scene_close(&s);
}

TEST(a_worker_that_ends_in_the_middle_answers_nobody)
{
    struct scene s = {.rows = 10000, .row_time = PAWL_MICROSECOND};
    scene_open(&s);
    struct asked *a = CALL(&s, 0, 1, 1);
    slices(&s, 2);
    on_shard(&s, WORKER, end_worker, NULL);
    mem_world_advance(s.world, PAWL_SECOND);
    assert_false(a->done);
    on_shard(&s, WORKER, begin_worker, NULL);
    expect(CALL(&s, 1, 1, 1), "1 FINISHED");
    scene_close(&s);
}

TEST(an_allocation_that_fails_is_told_and_the_next_call_goes_on)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct scene s = {.rows = 1000, .allocator = &memory.allocator};
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        scene_open(&s);
        struct asked *a = CALL(&s, 0, 1, 1, 5);
        assert_true(mem_world_run_until(s.world, is_done, a, LIMIT));
        assert_true(a->status == PAWL_OK || a->status == PAWL_ENOMEM);
        expect(CALL(&s, 1, 1, 1, 5), "1 FINISHED, 5 FINISHED");
        bool failed = test_alloc_failed(&memory);
        scene_close(&s);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_batch_is_built_slice_by_slice_and_then_answered),
        RUN(a_tablet_without_rows_is_finished_by_one_slice),
        RUN(what_is_covered_already_is_answered_at_once),
        RUN(what_is_over_is_told_at_once_and_the_rest_is_called_again),
        RUN(a_call_for_the_same_tasks_attaches),
        RUN(a_new_leader_attaches_and_the_old_one_is_refused),
        RUN(an_old_leader_is_not_answered_once_a_new_one_has_asked_anything),
        RUN(other_tasks_are_refused_while_a_batch_is_built),
        RUN(a_new_leader_that_wants_other_tasks_gets_them),
        RUN(a_task_that_is_deleted_in_the_middle_leaves_the_batch),
        RUN(a_batch_ends_with_its_last_task),
        RUN(an_abort_is_noticed_before_the_next_slice_even_if_nobody_tells),
        RUN(a_task_that_is_covered_and_aborted_is_not_called_finished),
        RUN(a_task_that_group0_does_not_have_is_gone),
        RUN(a_cancelled_batch_ends_before_its_next_slice),
        RUN(a_batch_goes_on_as_long_as_one_caller_is_left),
        RUN(one_that_asks_again_and_again_replaces_its_oldest_question),
        RUN(a_full_store_is_told_with_its_words_and_building_goes_on_later),
        RUN(what_is_covered_and_not_durable_is_said_so_and_holds_no_batch),
        RUN(two_rows_that_are_not_unique_are_named),
        RUN(tasks_of_two_tablets_or_bases_are_no_batch),
        RUN(slices_grow_until_they_take_their_time),
        RUN(a_batch_begins_with_few_rows_for_each_of_its_views),
        RUN(slices_have_an_upper_bound),
        RUN(a_throttled_shard_scans_so_many_rows_a_second),
        RUN(a_throttle_holds_from_one_batch_to_the_next),
        RUN(what_is_not_covered_is_listed),
        RUN(a_worker_that_ends_in_the_middle_answers_nobody),
        RUN(an_allocation_that_fails_is_told_and_the_next_call_goes_on),
    };
    return TEST_MAIN(tests);
}
