#include "test/contract/env_contract.h"

#include <errno.h>
#include <time.h>

/* Far more than any of these needs, on any machine that is alive. */
enum { DEADLINE_S = 120 };

#define CONTRACT_TEST(name)          void name(void **test_state)
#define OWNER(member, type, pointer) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

struct env_fixture *env_fixture_new(const struct env_contract *contract, uint32_t shards)
{
    struct env_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->contract = contract;
    pthread_mutex_init(&f->mutex, NULL);
    pthread_cond_init(&f->cond, NULL);
    f->impl = contract->open(shards, &f->env);
    return f;
}

void env_fixture_close(struct env_fixture *f)
{
    assert_ok(f->contract->close(f->impl));
    f->impl = NULL;
}

void env_fixture_free(struct env_fixture *f)
{
    if (f->impl)
        env_fixture_close(f);
    pthread_cond_destroy(&f->cond);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

void env_record(struct env_fixture *f, uint64_t value)
{
    pthread_mutex_lock(&f->mutex);
    if (f->count < ENV_VALUES_MAX)
        f->values[f->count++] = value;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->mutex);
}

size_t env_recorded(struct env_fixture *f)
{
    pthread_mutex_lock(&f->mutex);
    size_t count = f->count;
    pthread_mutex_unlock(&f->mutex);
    return count;
}

void env_await(struct env_fixture *f, size_t count)
{
    if (f->contract->drive) {
        assert_true(f->contract->drive(f, count));
        return;
    }
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DEADLINE_S;
    int rc = 0;
    pthread_mutex_lock(&f->mutex);
    while (f->count < count && rc == 0)
        rc = pthread_cond_timedwait(&f->cond, &f->mutex, &deadline);
    pthread_mutex_unlock(&f->mutex);
    assert_int_equal(rc, 0);
}

static struct env_fixture *open_for(void **test_state, uint32_t shards)
{
    return env_fixture_new(*test_state, shards);
}

static void expect(struct env_fixture *f, const uint64_t *values, size_t count)
{
    assert_int_equal(env_recorded(f), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(f->values[i], values[i]);
}

#define EXPECT(f, ...)                                                                                         \
    expect(f, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* One of everything; what a test does not use stays zero. */
struct probe {
    pawl_task task;
    pawl_timer timer;
    pawl_work work;
    struct env_fixture *f;
    uint64_t id;
    uint64_t left;
    uint64_t set_at;
    pawl_duration delay;
    pawl_duration took; /* to set all timers */
    struct probe *others;
};

static void record_task(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    env_record(p->f, p->id << 8 | pawl_env_self(p->f->env));
}

static void record_timer(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    env_record(p->f, p->id);
}

/* Runs fn on a shard, with a probe to start from. */
static void start(struct env_fixture *f, uint32_t shard, struct probe *p, void (*fn)(pawl_task *task))
{
    p->f = f;
    p->task.fn = fn;
    assert_ok(pawl_env_post(f->env, shard, &p->task));
}

static struct probe *probes_new(struct env_fixture *f, size_t count)
{
    struct probe *probes = calloc(count, sizeof *probes);
    assert_non_null(probes);
    for (size_t i = 0; i < count; i++)
        probes[i] = (struct probe){.f = f, .id = i, .task.fn = record_task, .timer.fn = record_timer};
    return probes;
}

/* Posts. */

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

/* Timers. Which of two is due first is known only if the thread was not interrupted between setting them: a
 * test of their order is made again until that is so. */

#define APART (2 * PAWL_MILLISECOND)

static void set_others(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    uint64_t began = pawl_env_now(p->f->env).ns;
    for (uint64_t i = 0; i < p->left; i++) {
        p->others[i].set_at = pawl_env_now(p->f->env).ns;
        pawl_env_after(p->f->env, &p->others[i].timer, p->others[i].delay);
    }
    p->took = pawl_env_now(p->f->env).ns - began;
}

static bool fire_in_order(void **test_state)
{
    static const uint64_t delays[] = {4, 1, 6, 3, 0, 2, 5};
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 7);
    struct probe first = {.others = probes, .left = 7};
    for (size_t i = 0; i < 7; i++) {
        probes[i].delay = delays[i] * APART;
        probes[i].id = delays[i];
    }
    start(f, 0, &first, set_others);
    env_await(f, 7);
    bool at_once = first.took < APART;
    if (at_once)
        EXPECT(f, 0, 1, 2, 3, 4, 5, 6);
    env_fixture_free(f);
    free(probes);
    return at_once;
}

CONTRACT_TEST(timers_fire_in_the_order_in_which_they_are_due)
{
    while (!fire_in_order(test_state))
        ;
}

/* 1: early. Otherwise 0. */
static void record_early(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    env_record(p->f, pawl_env_now(p->f->env).ns - p->set_at < p->delay);
}

CONTRACT_TEST(a_timer_never_fires_early)
{
    uint64_t random = test_seed(11);
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 300);
    struct probe first = {.others = probes, .left = 300};
    for (size_t i = 0; i < 300; i++) {
        probes[i].delay = test_below(&random, (i % 2 ? 20000 : 500) * PAWL_MICROSECOND);
        probes[i].timer.fn = record_early;
    }
    start(f, 0, &first, set_others);
    env_await(f, 300);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(f->values[i], 0);
    env_fixture_free(f);
    free(probes);
}

static void set_and_move(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env *env = p->f->env;
    uint64_t began = pawl_env_now(env).ns;
    pawl_env_after(env, &p->others[0].timer, APART);
    pawl_env_after(env, &p->others[1].timer, 2 * APART);
    pawl_env_after(env, &p->others[2].timer, 3600 * PAWL_SECOND);
    pawl_env_after(env, &p->others[0].timer, 3 * APART);
    pawl_env_after(env, &p->others[2].timer, APART);
    p->took = pawl_env_now(env).ns - began;
}

static bool move(void **test_state)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 3);
    struct probe first = {.others = probes};
    start(f, 0, &first, set_and_move);
    env_await(f, 3);
    env_fixture_close(f);
    bool at_once = first.took < APART;
    if (at_once)
        EXPECT(f, 2, 1, 0);
    env_fixture_free(f);
    free(probes);
    return at_once;
}

CONTRACT_TEST(setting_a_timer_that_is_set_moves_it)
{
    while (!move(test_state))
        ;
}

static void fire_again(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    pawl_env_cancel(p->f->env, timer); /* it is no longer set: nothing to do */
    env_record(p->f, p->left);
    if (p->left-- > 0)
        pawl_env_after(p->f->env, timer, p->left * PAWL_MILLISECOND / 2);
}

CONTRACT_TEST(a_timer_fires_once_and_may_be_set_again_from_its_own_callback)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe p = {.f = f, .left = 3, .timer.fn = fire_again}, first = {.others = &p, .left = 1};
    start(f, 0, &first, set_others);
    env_await(f, 4);
    env_fixture_close(f);
    EXPECT(f, 3, 2, 1, 0);
    env_fixture_free(f);
}

static void set_and_cancel(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env *env = p->f->env;
    pawl_env_cancel(env, &p->others[0].timer); /* never set */
    for (int i = 0; i < 4; i++)
        pawl_env_after(env, &p->others[i].timer, (uint64_t)i * PAWL_MILLISECOND);
    pawl_env_after(env, &p->others[4].timer, UINT64_MAX);
    pawl_env_cancel(env, &p->others[0].timer);
    pawl_env_cancel(env, &p->others[2].timer);
    pawl_env_cancel(env, &p->others[2].timer);
}

CONTRACT_TEST(a_cancelled_timer_does_not_fire)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 5);
    struct probe first = {.others = probes};
    start(f, 0, &first, set_and_cancel);
    env_await(f, 2);
    env_fixture_close(f);
    EXPECT(f, 1, 3);
    env_fixture_free(f);
    free(probes);
}

static void cancel_others(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    env_record(p->f, 0);
    for (size_t i = 0; i < 10; i++)
        pawl_env_cancel(p->f->env, &p->others[i].timer);
}

CONTRACT_TEST(a_timer_cancels_another_that_is_due_at_the_same_time)
{
    struct env_fixture *f = open_for(test_state, 1);
    struct probe *probes = probes_new(f, 11);
    struct probe first = {.others = probes, .left = 11};
    for (size_t i = 0; i < 10; i++) {
        probes[i].timer.fn = cancel_others;
        probes[i].others = probes;
    }
    probes[10].delay = 3 * PAWL_MILLISECOND;
    start(f, 0, &first, set_others);
    env_await(f, 2);
    env_fixture_close(f);
    EXPECT(f, 0, 10);
    env_fixture_free(f);
    free(probes);
}

static void free_timer(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    struct env_fixture *f = p->f;
    memset(p, 0xee, sizeof *p);
    free(p);
    env_record(f, 0);
}

static void set_own(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env_after(p->f->env, &p->timer, p->delay);
}

CONTRACT_TEST(a_timer_may_free_itself)
{
    struct env_fixture *f = open_for(test_state, 1);
    for (uint64_t i = 0; i < 100; i++) {
        struct probe *p = probes_new(f, 1);
        p->timer.fn = free_timer;
        p->delay = i % 3 * PAWL_MILLISECOND;
        start(f, 0, p, set_own);
    }
    env_await(f, 100);
    env_fixture_free(f);
}

/* Works. */

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
