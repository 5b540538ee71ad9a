/* The env suite: posts, and on which shard a thread is. */
#include "test/contract/env_cases.h"

CONTRACT_TEST(posts_of_one_thread_run_in_their_order_on_the_shard_named)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe *probes = probes_new(f, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_ok(pawl_env_post(f->env, 1, &probes[i].task));
    env_await(f, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(f->values[i], i << 8 | 1);
    env_fixture_free(f);
    free(probes);
}

static void post_others(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    for (uint64_t i = 0; i < p->left; i++)
        pawl_env_post(p->f->env, 1, &p->others[i].task);
}

CONTRACT_TEST(posts_of_one_shard_to_another_run_in_their_order)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe *probes = probes_new(f, 1000);
    struct probe first = {.others = probes, .left = 1000};
    start(f, 0, &first, post_others);
    env_await(f, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(f->values[i], i << 8 | 1);
    env_fixture_free(f);
    free(probes);
}

/* The shard is busy here, so what is posted to it stays queued. */
static void post_thrice(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env *env = p->f->env;
    int status = pawl_env_post(env, 0, &p->others[0].task);
    status += pawl_env_post(env, 0, &p->others[0].task);
    status += pawl_env_post(env, 1, &p->others[0].task);
    status += pawl_env_post(env, 0, &p->others[1].task);
    env_record(p->f, (uint64_t)-status);
}

CONTRACT_TEST(a_task_posted_while_queued_runs_once_where_it_was_queued)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe *probes = probes_new(f, 2);
    struct probe first = {.others = probes};
    start(f, 0, &first, post_thrice);
    env_await(f, 3);
    env_fixture_close(f);
    EXPECT(f, 0, 0, 1 << 8);
    env_fixture_free(f);
    free(probes);
}

static void post_again(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    env_record(p->f, p->left);
    if (p->left-- > 0)
        pawl_env_post(p->f->env, 0, task);
}

CONTRACT_TEST(a_task_may_post_itself_again)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe p = {.left = 1000};
    start(f, 0, &p, post_again);
    env_await(f, 1001);
    env_fixture_close(f);
    assert_int_equal(env_recorded(f), 1001);
    for (size_t i = 0; i <= 1000; i++)
        assert_int_equal(f->values[i], 1000 - i);
    env_fixture_free(f);
}

static void free_task(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    struct env_fixture *f = p->f;
    uint64_t id = p->id;
    memset(p, 0xee, sizeof *p);
    free(p);
    env_record(f, id);
}

CONTRACT_TEST(a_task_may_free_itself)
{
    struct env_fixture *f = open_for(test_state, 1);
    for (uint64_t i = 0; i < 1000; i++) {
        struct probe *p = probes_new(f, 1);
        p->id = i;
        start(f, 0, p, free_task);
    }
    env_await(f, 1000);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(f->values[i], i);
    env_fixture_free(f);
}

CONTRACT_TEST(a_post_to_no_such_shard_is_refused)
{
    struct env_fixture *f = open_for(test_state, 3);
    struct probe p = {.f = f, .task.fn = record_task, .id = 9};
    assert_int_equal(pawl_env_shards(f->env), 3);
    assert_status(pawl_env_post(f->env, 3, &p.task), PAWL_EINVAL);
    assert_status(pawl_env_post(f->env, PAWL_NO_SHARD, &p.task), PAWL_EINVAL);
    assert_ok(pawl_env_post(f->env, 2, &p.task));
    env_await(f, 1);
    env_fixture_close(f);
    EXPECT(f, 9 << 8 | 2);
    env_fixture_free(f);
}

static void ping(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    if (p->left-- == 0)
        env_record(p->f, p->id);
    else
        pawl_env_post(p->f->env, 1 - pawl_env_self(p->f->env), task);
}

CONTRACT_TEST(a_hundred_thousand_posts_go_back_and_forth)
{
    struct env_fixture *f = open_for(test_state, 2);
    struct probe balls[4] = {{.id = 0}, {.id = 1}, {.id = 2}, {.id = 3}};
    for (uint32_t i = 0; i < 4; i++) {
        balls[i].left = 25000;
        start(f, i % 2, &balls[i], ping);
    }
    env_await(f, 4);
    env_fixture_free(f);
}

static void spin(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    if (env_recorded(p->f) == 0)
        pawl_env_post(p->f->env, 0, task);
}

static void set_and_spin(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env_after(p->f->env, &p->timer, p->delay);
    p->task.fn = spin;
    pawl_env_post(p->f->env, 0, task);
}

static bool time_is_virtual(struct env_fixture *f)
{
    return f->contract->drive != NULL;
}

/* Where time is virtual a task that never rests stops it, so there the timer is due at once. */
CONTRACT_TEST(tasks_that_post_themselves_do_not_keep_timers_from_firing)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe p = {
        .id = 5, .timer.fn = record_timer, .delay = time_is_virtual(f) ? 0 : 2 * PAWL_MILLISECOND};
    start(f, 0, &p, set_and_spin);
    env_await(f, 1);
    env_fixture_close(f);
    EXPECT(f, 5);
    env_fixture_free(f);
}

static void record_selves(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    env_record(p->f, pawl_env_self(p->f->env));
    env_record(p->f, pawl_env_self(p->others->f->env));
}

CONTRACT_TEST(self_names_the_shard_and_only_of_this_env)
{
    struct env_fixture *f = open_for(test_state, 3);
    struct env_fixture *stranger = open_for(test_state, 3);
    struct probe other = {.f = stranger}, p = {.others = &other};
    assert_int_equal(pawl_env_self(f->env), PAWL_NO_SHARD);
    start(f, 2, &p, record_selves);
    env_await(f, 2);
    env_fixture_close(f);
    EXPECT(f, 2, PAWL_NO_SHARD);
    env_fixture_free(stranger);
    env_fixture_free(f);
}
