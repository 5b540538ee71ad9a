/* The bus between nodes of a simulated world: the contract, and faults to order. */
#include "test/contract/bus_contract.h"

#include "adapter/local/bus.h"
#include "adapter/mem/env.h"
#include "base/heap.h"
#include "test/lib/links.h"

enum { LIMIT = 1000000 };

struct nodes {
    struct mem_world *world;
    struct local_network *network;
    struct mem_env *envs[BUS_NODES];
    struct local_bus *buses[BUS_NODES];
    struct links links;
};

static void node_open(struct nodes *n, uint32_t i)
{
    assert_ok(mem_env_open(n->world, &(struct mem_env_options){.shards = BUS_SHARDS}, &n->envs[i], NULL));
    assert_ok(local_bus_open(n->network, i + 1, mem_env_port(n->envs[i]), &n->buses[i]));
}

static struct nodes *nodes_new(uint64_t seed)
{
    struct nodes *n = calloc(1, sizeof *n);
    assert_non_null(n);
    n->links.random = seed;
    struct local_network_options options = {.fate = links_fate, .ctx = &n->links};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = seed}, &n->world, NULL));
    assert_ok(local_network_open(&options, &n->network));
    for (uint32_t i = 0; i < BUS_NODES; i++)
        node_open(n, i);
    return n;
}

static void nodes_free(struct nodes *n)
{
    for (uint32_t i = 0; i < BUS_NODES; i++)
        local_bus_close(n->buses[i]);
    local_network_close(n->network);
    mem_world_close(n->world);
    free(n);
}

static void *open_mem(pawl_env *envs[BUS_NODES], pawl_bus *buses[BUS_NODES])
{
    struct nodes *n = nodes_new(1);
    for (uint32_t i = 0; i < BUS_NODES; i++) {
        envs[i] = mem_env_port(n->envs[i]);
        buses[i] = local_bus_port(n->buses[i]);
    }
    return n;
}

static void leave_mem(void *impl, uint32_t node)
{
    struct nodes *n = impl;
    local_bus_leave(n->buses[node - 1]);
}

static void close_mem(void *impl)
{
    nodes_free(impl);
}

struct goal {
    struct bus_fixture *f;
    size_t count;
};

static bool reached(void *arg)
{
    struct goal *goal = arg;
    return goal->f->count >= goal->count;
}

static bool drive_mem(struct bus_fixture *f, size_t count)
{
    struct nodes *n = f->impl;
    return mem_world_run_until(n->world, reached, &(struct goal){f, count}, LIMIT);
}

static const struct bus_contract contract = {
    .open = open_mem, .leave = leave_mem, .close = close_mem, .drive = drive_mem};

/* Node 1 calls node 2, shard 0 of each. */
struct scene {
    struct nodes *n;
    pawl_task task;
    pawl_bus_call call;
    uint32_t served, done, cancelled;
    int status;
    pawl_bus_request *kept[4];
    bool silent;
};

static void told(pawl_bus_request *request)
{
    struct scene *s = request->arg;
    s->cancelled++;
}

static void serve(void *arg, pawl_bus_request *request)
{
    struct scene *s = arg;
    request->arg = s;
    request->cancelled = told;
    if (s->silent)
        s->kept[s->served++ % 4] = request;
    else
        s->served++, pawl_bus_answer(local_bus_port(s->n->buses[1]), request, PAWL_OK, (pawl_bytes){0});
}

static void begin_serving(void *arg)
{
    struct scene *s = arg;
    assert_ok(pawl_bus_serve(local_bus_port(s->n->buses[1]), 0, 7, serve, s));
}

static void on_done(pawl_bus_call *call)
{
    struct scene *s = call->arg;
    s->done++;
    s->status = call->status;
}

static void begin_call(void *arg)
{
    struct scene *s = arg;
    s->call = (pawl_bus_call){.node = 2, .verb = 7, .timeout = 10 * PAWL_SECOND, .done = on_done, .arg = s};
    assert_ok(pawl_bus_call_begin(local_bus_port(s->n->buses[0]), &s->call));
}

static void begin_cancel(void *arg)
{
    struct scene *s = arg;
    pawl_bus_cancel(local_bus_port(s->n->buses[0]), &s->call);
}

static void on_node(struct scene *s, uint32_t node, void (*fn)(void *arg))
{
    assert_ok(pawl_env_call(mem_env_port(s->n->envs[node - 1]), 0, fn, s));
}

static void scene_open(struct scene *s)
{
    s->n = nodes_new(1);
    on_node(s, 2, begin_serving);
}

TEST(a_lost_call_ends_in_time)
{
    struct scene s = {0};
    scene_open(&s);
    s.n->links.lose_percent = 100;
    on_node(&s, 1, begin_call);
    mem_world_advance(s.n->world, 9 * PAWL_SECOND);
    assert_int_equal(s.done, 0);
    mem_world_advance(s.n->world, 2 * PAWL_SECOND);
    assert_int_equal(s.served, 0);
    assert_int_equal(s.status, PAWL_ETIMEOUT);
    nodes_free(s.n);
}

TEST(a_call_that_arrives_twice_is_served_twice_and_done_once)
{
    struct scene s = {0};
    scene_open(&s);
    s.n->links.twice_percent = 100;
    on_node(&s, 1, begin_call);
    assert_true(mem_world_run(s.n->world, LIMIT));
    assert_int_equal(s.served, 2);
    assert_int_equal(s.done, 1);
    assert_ok(s.status);
    nodes_free(s.n);
}

TEST(a_call_that_arrived_twice_is_cancelled_in_both_places)
{
    struct scene s = {.silent = true};
    scene_open(&s);
    s.n->links.twice_percent = 100;
    on_node(&s, 1, begin_call);
    mem_world_advance(s.n->world, PAWL_SECOND);
    assert_int_equal(s.served, 2);
    on_node(&s, 1, begin_cancel);
    assert_true(mem_world_run(s.n->world, LIMIT));
    assert_int_equal(s.cancelled, 2);
    assert_int_equal(s.done, 0);
    nodes_free(s.n);
}

TEST(a_delayed_call_and_answer_arrive_late)
{
    struct scene s = {0};
    scene_open(&s);
    s.n->links.delay_max = PAWL_SECOND;
    uint64_t before = pawl_env_now(mem_env_port(s.n->envs[0])).ns;
    on_node(&s, 1, begin_call);
    assert_true(mem_world_run(s.n->world, LIMIT));
    uint64_t took = pawl_env_now(mem_env_port(s.n->envs[0])).ns - before;
    assert_int_equal(s.done, 1);
    assert_true(took > 0 && took <= 2 * PAWL_SECOND);
    nodes_free(s.n);
}

TEST(nothing_gets_through_a_link_that_is_cut)
{
    struct scene s = {0};
    scene_open(&s);
    links_cut(&s.n->links, 1, 2, true);
    on_node(&s, 1, begin_call);
    assert_true(mem_world_run(s.n->world, LIMIT));
    assert_int_equal(s.status, PAWL_ETIMEOUT);
    links_cut(&s.n->links, 1, 2, false);
    on_node(&s, 1, begin_call);
    assert_true(mem_world_run(s.n->world, LIMIT));
    assert_ok(s.status);
    nodes_free(s.n);
}

static void node_dies(struct nodes *n, uint32_t node)
{
    mem_env_kill(n->envs[node - 1]);
    local_bus_close(n->buses[node - 1]);
    node_open(n, node - 1);
}

TEST(a_server_that_dies_keeps_its_caller_waiting_and_serves_in_its_next_life)
{
    struct scene s = {.silent = true};
    scene_open(&s);
    on_node(&s, 1, begin_call);
    mem_world_advance(s.n->world, PAWL_SECOND);
    assert_int_equal(s.served, 1);
    node_dies(s.n, 2);
    assert_true(mem_world_run(s.n->world, LIMIT));
    assert_int_equal(s.status, PAWL_ETIMEOUT);
    s.silent = false;
    on_node(&s, 2, begin_serving);
    on_node(&s, 1, begin_call);
    assert_true(mem_world_run(s.n->world, LIMIT));
    assert_ok(s.status);
    nodes_free(s.n);
}

static void answer_kept(void *arg)
{
    struct scene *s = arg;
    pawl_bus_answer(local_bus_port(s->n->buses[1]), s->kept[0], PAWL_OK, (pawl_bytes){0});
}

/* The first call of each life would have the same number if numbers were a node's own. */
TEST(an_answer_to_a_former_life_of_the_caller_is_not_taken_for_another)
{
    struct scene s = {.silent = true};
    scene_open(&s);
    on_node(&s, 1, begin_call);
    mem_world_advance(s.n->world, PAWL_SECOND);
    node_dies(s.n, 1);
    on_node(&s, 1, begin_call);
    mem_world_advance(s.n->world, PAWL_SECOND);
    assert_int_equal(s.served, 2);
    on_node(&s, 2, answer_kept);
    mem_world_advance(s.n->world, PAWL_SECOND);
    assert_int_equal(s.done, 0);
    nodes_free(s.n);
}

TEST(a_node_that_is_killed_with_messages_on_their_way_frees_them)
{
    struct scene s = {0};
    scene_open(&s);
    s.n->links.delay_max = PAWL_SECOND;
    s.n->links.twice_percent = 100;
    on_node(&s, 1, begin_call);
    mem_env_kill(s.n->envs[1]);
    mem_world_advance(s.n->world, PAWL_MILLISECOND);
    nodes_free(s.n); /* the sanitizers look for what is left */
}

TEST(a_node_joins_once)
{
    struct nodes *n = nodes_new(1);
    struct local_bus *bus = NULL;
    assert_status(local_bus_open(n->network, 1, mem_env_port(n->envs[0]), &bus), PAWL_EEXISTS);
    assert_null(bus);
    nodes_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BUS_CONTRACT_TESTS(BUS_CONTRACT_RUN) /* */
        RUN(a_lost_call_ends_in_time),
        RUN(a_call_that_arrives_twice_is_served_twice_and_done_once),
        RUN(a_call_that_arrived_twice_is_cancelled_in_both_places),
        RUN(a_delayed_call_and_answer_arrive_late),
        RUN(nothing_gets_through_a_link_that_is_cut),
        RUN(a_server_that_dies_keeps_its_caller_waiting_and_serves_in_its_next_life),
        RUN(an_answer_to_a_former_life_of_the_caller_is_not_taken_for_another),
        RUN(a_node_that_is_killed_with_messages_on_their_way_frees_them),
        RUN(a_node_joins_once),
    };
    return TEST_MAIN(tests);
}
