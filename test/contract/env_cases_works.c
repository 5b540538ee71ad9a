/* The env suite: works, calls, closing, chance and the clock. */
#include "test/contract/env_cases.h"

static void work_fn(pawl_work *work)
{
    struct probe *p = OWNER(work, struct probe, work);
    p->set_at = pawl_env_self(p->f->env);
}

/* Whether fn had been run, on no shard, and which shard this is. */
static void work_done(pawl_work *work)
{
    struct probe *p = OWNER(work, struct probe, work);
    env_record(p->f, (uint64_t)(p->set_at == PAWL_NO_SHARD) << 32 | pawl_env_self(p->f->env));
}

static void ask_for_work(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    p->work.fn = work_fn;
    p->work.done = work_done;
    pawl_env_work(p->f->env, &p->work);
}

CONTRACT_TEST(a_work_runs_on_no_shard_and_is_done_on_the_shard_that_asked)
{
    struct env_fixture *f = open_for(test_state, 3);
    struct probe *probes = probes_new(f, 300);
    for (uint32_t i = 0; i < 300; i++)
        start(f, i % 3, &probes[i], ask_for_work);
    env_await(f, 300);
    size_t by_shard[3] = {0};
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(f->values[i] >> 32, 1);
        assert_true((uint32_t)f->values[i] < 3);
        by_shard[(uint32_t)f->values[i]]++;
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(by_shard[i], 100);
    env_fixture_free(f);
    free(probes);
}

CONTRACT_TEST(a_work_that_no_shard_asked_for_is_done_in_the_pool)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe p = {.f = f, .work = {.fn = work_fn, .done = work_done}};
    assert_ok(pawl_env_work(f->env, &p.work));
    env_await(f, 1);
    env_fixture_close(f);
    EXPECT(f, (uint64_t)1 << 32 | PAWL_NO_SHARD);
    env_fixture_free(f);
}

static void free_work(pawl_work *work)
{
    struct probe *p = OWNER(work, struct probe, work);
    struct env_fixture *f = p->f;
    memset(p, 0xee, sizeof *p);
    free(p);
    env_record(f, 0);
}

CONTRACT_TEST(a_work_without_a_done_may_free_itself)
{
    struct env_fixture *f = open_for(test_state, 1);
    for (int i = 0; i < 100; i++) {
        struct probe *p = probes_new(f, 1);
        p->work.fn = free_work;
        assert_ok(pawl_env_work(f->env, &p->work));
    }
    env_await(f, 100);
    env_fixture_free(f);
}

static void ask_again(pawl_work *work)
{
    struct probe *p = OWNER(work, struct probe, work);
    env_record(p->f, p->left);
    if (p->left-- > 0)
        pawl_env_work(p->f->env, work);
}

/* A work is free to be used again once its done, or, without one, its fn has begun. */
CONTRACT_TEST(a_work_asks_for_more_work)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe p = {.f = f, .left = 3, .work.fn = ask_again};
    assert_ok(pawl_env_work(f->env, &p.work));
    env_await(f, 4);
    env_fixture_close(f);
    EXPECT(f, 3, 2, 1, 0);
    env_fixture_free(f);
}

/* Shutdown. */

static void record_self(void *arg)
{
    struct env_fixture *f = arg;
    env_record(f, pawl_env_self(f->env));
}

static void call_from_work(pawl_work *work)
{
    struct probe *p = (struct probe *)((char *)work - offsetof(struct probe, work));
    env_record(p->f, (uint64_t)pawl_env_call(p->f->env, 1, record_self, p->f));
}

CONTRACT_TEST(a_call_runs_on_the_shard_before_it_returns)
{
    struct env_fixture *f = open_for(test_state, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_ok(pawl_env_call(f->env, i, record_self, f));
        assert_int_equal(env_recorded(f), i + 1);
    }
    struct probe p = {.f = f, .work.fn = call_from_work};
    assert_ok(pawl_env_work(f->env, &p.work));
    env_await(f, 5);
    EXPECT(f, 0, 1, 2, 1, PAWL_OK);
    env_fixture_free(f);
}

static void call_another(void *arg)
{
    struct env_fixture *f = arg;
    env_record(f, pawl_env_call(f->env, 1, record_self, f) == PAWL_EMISUSE);
}

CONTRACT_TEST(a_call_from_a_shard_or_to_no_shard_is_refused)
{
    struct env_fixture *f = open_for(test_state, 2);
    assert_status(pawl_env_call(f->env, 2, record_self, f), PAWL_EINVAL);
    assert_ok(pawl_env_call(f->env, 0, call_another, f));
    EXPECT(f, true);
    env_fixture_free(f);
}

CONTRACT_TEST(what_was_queued_before_shutdown_is_run)
{
    struct env_fixture *f = open_for(test_state, 3);
    struct probe *probes = probes_new(f, 3000);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_ok(pawl_env_post(f->env, i % 3, &probes[i].task));
        probes[1000 + i].work = (pawl_work){.fn = work_fn, .done = work_done};
        assert_ok(pawl_env_work(f->env, &probes[1000 + i].work));
        probes[2000 + i].delay = 3600 * PAWL_SECOND;
        start(f, i % 3, &probes[2000 + i], set_own);
    }
    env_fixture_close(f);
    assert_int_equal(env_recorded(f), 2000);
    env_fixture_free(f);
    free(probes);
}

/* Goes on until shutdown has begun, with a timer due and a work asked for before. */
static void outlast(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env *env = p->f->env;
    int status;
    pawl_env_after(env, &p->timer, 0);
    do
        status = pawl_env_post(env, 1, &p->others->task);
    while (status == PAWL_OK);
    env_record(p->f, (uint64_t)-status);
    env_record(p->f, (uint64_t)-pawl_env_work(env, &p->work));
    env_record(p->f, (uint64_t)-pawl_env_post(env, 0, task));
    pawl_env_after(env, &p->timer, 0);
}

static void ignore_task(pawl_task *task)
{
}

CONTRACT_TEST(in_shutdown_posts_and_works_are_refused_and_timers_do_not_fire)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe other = {.task.fn = ignore_task}, p = {.others = &other, .timer.fn = record_timer};
    start(f, 0, &p, outlast);
    env_fixture_close(f);
    EXPECT(f, (uint64_t)-PAWL_ECLOSED, (uint64_t)-PAWL_ECLOSED, (uint64_t)-PAWL_ECLOSED);
    env_fixture_free(f);
}

static void close_from_task(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    env_record(p->f, (uint64_t)-p->f->contract->close(p->f->impl));
}

static void close_from_work(pawl_work *work)
{
    struct probe *p = OWNER(work, struct probe, work);
    env_record(p->f, (uint64_t)-p->f->contract->close(p->f->impl));
}

CONTRACT_TEST(closing_from_inside_is_misuse)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe p = {.f = f, .work.fn = close_from_work};
    start(f, 0, &p, close_from_task);
    assert_ok(pawl_env_work(f->env, &p.work));
    env_await(f, 2);
    env_fixture_close(f);
    EXPECT(f, (uint64_t)-PAWL_EMISUSE, (uint64_t)-PAWL_EMISUSE);
    env_fixture_free(f);
}

/* Chance and clocks. */

static void record_randoms(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    for (int i = 0; i < 500; i++)
        env_record(p->f, pawl_env_random(p->f->env));
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

CONTRACT_TEST(random_numbers_differ)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe p[2] = {0};
    start(f, 0, &p[0], record_randoms);
    start(f, 1, &p[1], record_randoms);
    env_await(f, 1000);
    for (int i = 0; i < 500; i++)
        env_record(f, pawl_env_random(f->env));
    qsort(f->values, 1500, sizeof f->values[0], compare_u64);
    for (size_t i = 1; i < 1500; i++)
        assert_int_not_equal(f->values[i - 1], f->values[i]);
    env_fixture_free(f);
}

static void record_now(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    env_record(p->f, pawl_env_now(p->f->env).ns);
    if (p->left-- > 0)
        pawl_env_post(p->f->env, 1 - pawl_env_self(p->f->env), task);
}

CONTRACT_TEST(the_boot_clock_does_not_go_back)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe p = {.left = 999};
    assert_true(pawl_env_wall_now(f->env).ns > INT64_C(1577836800) * (int64_t)PAWL_SECOND); /* 2020 */
    start(f, 0, &p, record_now);
    env_await(f, 1000);
    for (size_t i = 1; i < 1000; i++)
        assert_true(f->values[i - 1] <= f->values[i]);
    env_fixture_free(f);
}
