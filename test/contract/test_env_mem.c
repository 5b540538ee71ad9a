/* The env port in memory: the contract, and what only a simulated world can do. */
#include "test/contract/env_contract.h"

#include "adapter/mem/env.h"

enum { LIMIT = 1000000 };

struct lone_node {
    struct mem_world *world;
    struct mem_env *env;
};

static void *open_mem(uint32_t shards, pawl_env **ret_env)
{
    struct lone_node *n = calloc(1, sizeof *n);
    assert_non_null(n);
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = 1}, &n->world, NULL));
    assert_ok(mem_env_open(n->world, &(struct mem_env_options){.shards = shards}, &n->env, NULL));
    *ret_env = mem_env_port(n->env);
    return n;
}

static int close_mem(void *impl)
{
    struct lone_node *n = impl;
    int status = mem_env_close(n->env);
    if (status != PAWL_OK)
        return status;
    mem_world_close(n->world);
    free(n);
    return PAWL_OK;
}

struct goal {
    struct env_fixture *f;
    size_t count;
};

static bool reached(void *arg)
{
    struct goal *goal = arg;
    return goal->f->count >= goal->count;
}

static bool drive_mem(struct env_fixture *f, size_t count)
{
    struct lone_node *n = f->impl;
    return mem_world_run_until(n->world, reached, &(struct goal){f, count}, LIMIT);
}

static const struct env_contract contract = {.open = open_mem, .close = close_mem, .drive = drive_mem};

/* A world that writes down what ran in it. */
struct fixture {
    struct mem_world *world;
    size_t size;
    char text[1 << 16];
};

static void record(void *ctx, const struct mem_trace *trace)
{
    struct fixture *f = ctx;
    char line[MEM_TRACE_TEXT_MAX];
    mem_trace_format(trace, line);
    int n = snprintf(f->text + f->size, sizeof f->text - f->size, "%s\n", line);
    assert_true(n > 0 && (size_t)n < sizeof f->text - f->size);
    f->size += (size_t)n;
}

static struct fixture *fixture_new(uint64_t seed)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    struct mem_world_options options = {.seed = seed, .trace = record, .trace_ctx = f};
    assert_ok(mem_world_open(&options, &f->world, NULL));
    return f;
}

static void fixture_free(struct fixture *f)
{
    mem_world_close(f->world);
    free(f);
}

static struct mem_env *node_new(struct fixture *f, uint32_t shards)
{
    struct mem_env *node;
    struct mem_env_options options = {.shards = shards};
    assert_ok(mem_env_open(f->world, &options, &node, NULL));
    return node;
}

/* Runs once on a shard, sets a timer there, asks for a work there, and counts all that comes. */
struct actor {
    pawl_task task;
    pawl_timer timer;
    pawl_work work;
    pawl_env *env;
    pawl_duration delay;
    uint64_t set_at, fired_at;
    int started, fired, worked, done;
    bool with_work;
    struct mem_env *kill; /* in the work's fn */
};

static void actor_worked(pawl_work *work)
{
    struct actor *a = (struct actor *)((char *)work - offsetof(struct actor, work));
    assert_int_equal(pawl_env_self(a->env), PAWL_NO_SHARD);
    a->worked++;
    if (a->kill)
        mem_env_kill(a->kill);
}

static void actor_done(pawl_work *work)
{
    struct actor *a = (struct actor *)((char *)work - offsetof(struct actor, work));
    a->done++;
}

static void actor_fired(pawl_timer *timer)
{
    struct actor *a = (struct actor *)((char *)timer - offsetof(struct actor, timer));
    a->fired++;
    a->fired_at = pawl_env_now(a->env).ns;
}

static void actor_start(pawl_task *task)
{
    struct actor *a = (struct actor *)task;
    a->started++;
    a->set_at = pawl_env_now(a->env).ns;
    if (a->delay)
        pawl_env_after(a->env, &a->timer, a->delay);
    if (a->with_work)
        assert_ok(pawl_env_work(a->env, &a->work));
}

static void actor_post(struct actor *a, struct mem_env *node, uint32_t shard)
{
    a->env = mem_env_port(node);
    a->task.fn = actor_start;
    a->timer.fn = actor_fired;
    a->work.fn = actor_worked;
    a->work.done = actor_done;
    assert_ok(pawl_env_post(a->env, shard, &a->task));
}

/* Two nodes of three shards, each with actors that post, wait and work. */
static struct fixture *busy_world(uint64_t seed)
{
    struct fixture *f = fixture_new(seed);
    struct actor actors[24] = {0};
    struct mem_env *nodes[2] = {node_new(f, 3), node_new(f, 3)};
    for (uint32_t i = 0; i < 24; i++) {
        actors[i].delay = 1 + i % 5 * PAWL_MILLISECOND;
        actors[i].with_work = i % 3 == 0;
        actor_post(&actors[i], nodes[i % 2], i % 3);
    }
    assert_true(mem_world_run(f->world, LIMIT));
    for (uint32_t i = 0; i < 24; i++) {
        assert_int_equal(actors[i].started, 1);
        assert_int_equal(actors[i].fired, 1);
        assert_int_equal(actors[i].done, i % 3 == 0);
    }
    return f;
}

TEST(one_seed_gives_one_run)
{
    uint64_t seed = test_seed(7);
    struct fixture *a = busy_world(seed);
    struct fixture *b = busy_world(seed);
    assert_string_equal(a->text, b->text);
    fixture_free(a);
    fixture_free(b);
}

TEST(another_seed_gives_another_run)
{
    struct fixture *a = busy_world(1);
    struct fixture *b = busy_world(2);
    assert_string_not_equal(a->text, b->text);
    fixture_free(a);
    fixture_free(b);
}

TEST(the_trace_reads_as_who_ran_what_and_when)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 2);
    struct actor a = {.delay = 1500 * PAWL_MICROSECOND};
    actor_post(&a, node, 1);
    assert_true(mem_world_run(f->world, LIMIT));
    assert_string_equal(f->text, "0.000000000 n0/1 post 1\n0.001500000 n0/1 timer 1\n");
    fixture_free(f);
}

TEST(time_passes_only_when_nothing_is_ready)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 1);
    struct actor a = {.delay = PAWL_SECOND};
    uint64_t start = pawl_env_now(mem_env_port(node)).ns;
    actor_post(&a, node, 0);
    assert_true(mem_world_step(f->world));
    assert_false(mem_world_step(f->world));
    assert_int_equal(pawl_env_now(mem_env_port(node)).ns, start);
    mem_world_advance(f->world, PAWL_SECOND - 1);
    assert_int_equal(a.fired, 0);
    mem_world_advance(f->world, 1);
    assert_int_equal(a.fired, 1);
    assert_int_equal(a.fired_at, start + PAWL_SECOND);
    fixture_free(f);
}

static bool fired_three_times(void *arg)
{
    return ((struct actor *)arg)->fired == 3;
}

static void fire_again(pawl_timer *timer)
{
    struct actor *a = (struct actor *)((char *)timer - offsetof(struct actor, timer));
    actor_fired(timer);
    pawl_env_after(a->env, timer, PAWL_SECOND);
}

TEST(a_run_ends_at_its_predicate_or_its_limit)
{
    struct fixture *f = fixture_new(1);
    struct actor a = {.delay = PAWL_SECOND};
    actor_post(&a, node_new(f, 1), 0);
    a.timer.fn = fire_again;
    assert_false(mem_world_run_until(f->world, fired_three_times, &a, 3));
    assert_int_equal(a.fired, 2);
    assert_true(mem_world_run_until(f->world, fired_three_times, &a, LIMIT));
    assert_false(mem_world_run(f->world, 100));
    fixture_free(f);
}

TEST(a_paused_shard_runs_nothing_and_then_everything)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 2);
    struct actor early = {.delay = PAWL_MILLISECOND, .with_work = true}, late = {0}, other = {.delay = 1};
    actor_post(&early, node, 0);
    assert_true(mem_world_step(f->world));
    mem_env_pause(node, 0);
    actor_post(&late, node, 0);
    actor_post(&other, node, 1);
    mem_world_advance(f->world, PAWL_SECOND);
    assert_int_equal(early.fired, 0);
    assert_int_equal(early.worked, 1); /* the pool is not the shard */
    assert_int_equal(early.done, 0);
    assert_int_equal(late.started, 0);
    assert_int_equal(other.fired, 1);
    mem_env_resume(node, 0);
    assert_true(mem_world_run(f->world, LIMIT));
    assert_int_equal(early.fired, 1);
    assert_int_equal(early.done, 1);
    assert_int_equal(late.started, 1);
    assert_int_equal(early.fired_at, early.set_at + PAWL_SECOND);
    fixture_free(f);
}

TEST(a_paused_node_stops_its_pool_too_but_not_the_other_node)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *nodes[2] = {node_new(f, 2), node_new(f, 2)};
    struct actor a[2] = {{.with_work = true}, {.with_work = true}};
    for (int i = 0; i < 2; i++)
        actor_post(&a[i], nodes[i], 0);
    while (mem_world_step(f->world))
        ;
    mem_env_pause(nodes[0], PAWL_NO_SHARD);
    assert_true(mem_world_run(f->world, LIMIT));
    assert_int_equal(a[0].worked, 0);
    assert_int_equal(a[1].done, 1);
    mem_env_resume(nodes[0], PAWL_NO_SHARD);
    assert_true(mem_world_run(f->world, LIMIT));
    assert_int_equal(a[0].done, 1);
    fixture_free(f);
}

TEST(nothing_of_a_killed_node_runs)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 1);
    struct mem_env *survivor = node_new(f, 1);
    struct actor *begun = calloc(1, sizeof *begun), *posted = calloc(1, sizeof *posted), other = {.delay = 1};
    assert_true(begun && posted);
    begun->delay = 1;
    begun->with_work = true;
    actor_post(begun, node, 0);
    assert_true(mem_world_step(f->world));
    actor_post(posted, node, 0);
    actor_post(&other, survivor, 0);
    mem_env_kill(node);
    assert_int_equal(begun->fired + begun->worked + posted->started, 0);
    assert_status(pawl_env_post(mem_env_port(node), 0, &begun->task), PAWL_ECLOSED);
    assert_status(pawl_env_work(mem_env_port(node), &begun->work), PAWL_ECLOSED);
    free(begun); /* what is dropped is not looked at again */
    free(posted);
    assert_true(mem_world_run(f->world, LIMIT));
    assert_int_equal(other.fired, 1);
    assert_ok(mem_env_close(node));
    fixture_free(f);
}

TEST(a_node_killed_by_its_own_work_gets_no_done)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 1);
    struct actor a = {.with_work = true, .kill = node};
    actor_post(&a, node, 0);
    assert_true(mem_world_run(f->world, LIMIT));
    assert_int_equal(a.worked, 1);
    assert_int_equal(a.done, 0);
    fixture_free(f);
}

TEST(a_jump_of_the_boot_clock_makes_the_timers_of_that_node_due)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *nodes[2] = {node_new(f, 1), node_new(f, 1)};
    struct actor a[2] = {{.delay = PAWL_SECOND}, {.delay = PAWL_SECOND}};
    for (int i = 0; i < 2; i++)
        actor_post(&a[i], nodes[i], 0);
    while (mem_world_step(f->world))
        ;
    int64_t wall = pawl_env_wall_now(mem_env_port(nodes[0])).ns;
    mem_env_jump(nodes[0], 5 * PAWL_SECOND);
    assert_true(mem_world_step(f->world));
    assert_false(mem_world_step(f->world));
    assert_int_equal(a[0].fired, 1);
    assert_int_equal(a[0].fired_at, a[0].set_at + 5 * PAWL_SECOND);
    assert_int_equal(a[1].fired, 0);
    assert_int_equal(pawl_env_wall_now(mem_env_port(nodes[0])).ns, wall);
    fixture_free(f);
}

TEST(a_jump_of_the_wall_clock_moves_no_timer)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 1);
    pawl_env *env = mem_env_port(node);
    struct actor a = {.delay = PAWL_SECOND};
    actor_post(&a, node, 0);
    assert_true(mem_world_step(f->world));
    int64_t wall = pawl_env_wall_now(env).ns;
    mem_env_jump_wall(node, 3600 * (int64_t)PAWL_SECOND);
    assert_int_equal(pawl_env_wall_now(env).ns, wall + 3600 * (int64_t)PAWL_SECOND);
    mem_env_jump_wall(node, -7200 * (int64_t)PAWL_SECOND);
    assert_int_equal(pawl_env_wall_now(env).ns, wall - 3600 * (int64_t)PAWL_SECOND);
    assert_false(mem_world_step(f->world));
    fixture_free(f);
}

TEST(two_nodes_do_not_share_a_boot_clock_or_chance)
{
    struct fixture *f = fixture_new(1);
    pawl_env *a = mem_env_port(node_new(f, 1));
    pawl_env *b = mem_env_port(node_new(f, 1));
    assert_int_not_equal(pawl_env_now(a).ns, pawl_env_now(b).ns);
    assert_int_not_equal(pawl_env_random(a), pawl_env_random(b));
    fixture_free(f);
}

struct asker {
    pawl_task task;
    pawl_env *own, *other;
    uint32_t own_self, other_self;
};

static void ask_selves(pawl_task *task)
{
    struct asker *a = (struct asker *)task;
    a->own_self = pawl_env_self(a->own);
    a->other_self = pawl_env_self(a->other);
}

TEST(a_shard_of_one_node_is_none_of_another)
{
    struct fixture *f = fixture_new(1);
    pawl_env *own = mem_env_port(node_new(f, 2));
    pawl_env *other = mem_env_port(node_new(f, 2));
    struct asker a = {.task.fn = ask_selves, .own = own, .other = other};
    assert_ok(pawl_env_post(own, 1, &a.task));
    assert_true(mem_world_run(f->world, LIMIT));
    assert_int_equal(a.own_self, 1);
    assert_int_equal(a.other_self, PAWL_NO_SHARD);
    fixture_free(f);
}

TEST(the_kth_of_a_kind_comes_later_when_ordered)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 2);
    struct actor a[4] = {{.delay = 1}, {.delay = 2, .with_work = true}, {.with_work = true}, {.delay = 3}};
    mem_env_delay(node, MEM_POST, 3, PAWL_SECOND);
    mem_env_delay(node, MEM_TIMER, 2, 2 * PAWL_SECOND);
    mem_env_delay(node, MEM_WORK, 1, 3 * PAWL_SECOND);
    for (int i = 0; i < 4; i++)
        actor_post(&a[i], node, i < 3 ? 0 : 1);
    mem_world_advance(f->world, PAWL_SECOND / 2);
    assert_int_equal(a[0].fired + a[1].fired + a[3].fired, 2);
    assert_int_equal(a[1].started, 1);
    assert_int_equal(a[1].worked, 0);
    assert_int_equal(a[2].started, 0);
    mem_world_advance(f->world, PAWL_SECOND);
    assert_int_equal(a[2].started, 1);
    assert_int_equal(a[2].done, 1);
    mem_world_advance(f->world, PAWL_SECOND);
    assert_int_equal(a[0].fired + a[1].fired + a[3].fired, 3);
    assert_int_equal(a[1].done, 0);
    assert_true(mem_world_run(f->world, LIMIT));
    assert_int_equal(a[1].done, 1);
    fixture_free(f);
}

TEST(later_posts_wait_behind_a_delayed_one)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 1);
    struct actor a[2] = {0};
    mem_env_delay(node, MEM_POST, 1, PAWL_SECOND);
    actor_post(&a[0], node, 0);
    actor_post(&a[1], node, 0);
    assert_false(mem_world_step(f->world));
    assert_true(mem_world_run(f->world, LIMIT));
    assert_string_equal(f->text, "1.000000000 n0/0 post 1\n1.000000000 n0/0 post 2\n");
    fixture_free(f);
}

TEST(a_work_takes_as_long_as_the_range_says)
{
    struct fixture *f = fixture_new(test_seed(3));
    struct mem_env *node;
    struct mem_env_options options = {.shards = 1, .work_min = 10 * PAWL_SECOND, .work_max = 11 * PAWL_SECOND};
    assert_ok(mem_env_open(f->world, &options, &node, NULL));
    struct actor a[50] = {0};
    for (int i = 0; i < 50; i++) {
        a[i].with_work = true;
        actor_post(&a[i], node, 0);
    }
    mem_world_advance(f->world, 10 * PAWL_SECOND - 1);
    int early = 0, all = 0;
    for (int i = 0; i < 50; i++)
        early += a[i].worked;
    mem_world_advance(f->world, PAWL_SECOND + 1);
    for (int i = 0; i < 50; i++)
        all += a[i].done;
    assert_int_equal(early, 0);
    assert_int_equal(all, 50);
    fixture_free(f);
}

TEST(closing_runs_what_is_queued_even_when_paused_and_lets_no_time_pass)
{
    struct fixture *f = fixture_new(1);
    struct mem_env *node = node_new(f, 2);
    struct mem_env *other = node_new(f, 1);
    struct actor begun = {.delay = 1, .with_work = true}, posted = {0}, stranger = {0};
    actor_post(&begun, node, 0);
    assert_true(mem_world_step(f->world));
    mem_env_pause(node, PAWL_NO_SHARD);
    actor_post(&posted, node, 1);
    actor_post(&stranger, other, 0);
    uint64_t now = pawl_env_now(mem_env_port(other)).ns;
    assert_ok(mem_env_close(node));
    assert_int_equal(begun.done, 1);
    assert_int_equal(begun.fired, 0);
    assert_int_equal(posted.started, 1);
    assert_int_equal(stranger.started, 0);
    assert_int_equal(pawl_env_now(mem_env_port(other)).ns, now);
    fixture_free(f);
}

static void *no_memory(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    int *left = ctx;
    if (new_size && (*left)-- <= 0)
        return NULL;
    if (new_size)
        return realloc(memory, new_size);
    free(memory);
    return NULL;
}

TEST(opening_without_memory_leaves_nothing_behind)
{
    int left = 0;
    pawl_allocator allocator = {no_memory, &left};
    struct mem_world_options options = {.allocator = &allocator};
    struct mem_world *world = NULL;
    struct mem_env *node = NULL;
    pawl_error error;
    assert_status(mem_world_open(&options, &world, &error), PAWL_ENOMEM);
    assert_null(world);
    left = 1;
    assert_ok(mem_world_open(&options, &world, &error));
    assert_status(mem_env_open(world, &(struct mem_env_options){.shards = 1}, &node, &error), PAWL_ENOMEM);
    assert_status(mem_env_open(world, &(struct mem_env_options){0}, &node, &error), PAWL_EINVAL);
    assert_null(node);
    mem_world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENV_CONTRACT_TESTS(ENV_CONTRACT_RUN) /* */
        RUN(one_seed_gives_one_run),
        RUN(another_seed_gives_another_run),
        RUN(the_trace_reads_as_who_ran_what_and_when),
        RUN(time_passes_only_when_nothing_is_ready),
        RUN(a_run_ends_at_its_predicate_or_its_limit),
        RUN(a_paused_shard_runs_nothing_and_then_everything),
        RUN(a_paused_node_stops_its_pool_too_but_not_the_other_node),
        RUN(nothing_of_a_killed_node_runs),
        RUN(a_node_killed_by_its_own_work_gets_no_done),
        RUN(a_jump_of_the_boot_clock_makes_the_timers_of_that_node_due),
        RUN(a_jump_of_the_wall_clock_moves_no_timer),
        RUN(two_nodes_do_not_share_a_boot_clock_or_chance),
        RUN(a_shard_of_one_node_is_none_of_another),
        RUN(the_kth_of_a_kind_comes_later_when_ordered),
        RUN(later_posts_wait_behind_a_delayed_one),
        RUN(a_work_takes_as_long_as_the_range_says),
        RUN(closing_runs_what_is_queued_even_when_paused_and_lets_no_time_pass),
        RUN(opening_without_memory_leaves_nothing_behind),
    };
    return TEST_MAIN(tests);
}
