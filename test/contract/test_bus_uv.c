/* The bus between nodes of one process, on real threads. */
#include "test/contract/bus_contract.h"

#include "adapter/local/bus.h"
#include "adapter/uv/env.h"

struct nodes {
    struct local_network *network;
    struct uv_env *envs[BUS_NODES];
    struct local_bus *buses[BUS_NODES];
};

static void *open_uv(pawl_env *envs[BUS_NODES], pawl_bus *buses[BUS_NODES])
{
    struct nodes *n = calloc(1, sizeof *n);
    assert_non_null(n);
    assert_ok(local_network_open(&(struct local_network_options){0}, &n->network));
    for (uint32_t i = 0; i < BUS_NODES; i++) {
        struct uv_env_options options = {.shards = BUS_SHARDS, .pool_threads = 1};
        assert_ok(uv_env_open(&options, &n->envs[i], NULL));
        envs[i] = uv_env_port(n->envs[i]);
        assert_ok(local_bus_open(n->network, i + 1, envs[i], &n->buses[i]));
        buses[i] = local_bus_port(n->buses[i]);
    }
    return n;
}

static void leave_uv(void *impl, uint32_t node)
{
    struct nodes *n = impl;
    local_bus_leave(n->buses[node - 1]);
}

static void close_uv(void *impl)
{
    struct nodes *n = impl;
    for (uint32_t i = 0; i < BUS_NODES; i++) {
        local_bus_leave(n->buses[i]);
        assert_ok(uv_env_close(n->envs[i]));
    }
    for (uint32_t i = 0; i < BUS_NODES; i++)
        local_bus_close(n->buses[i]);
    local_network_close(n->network);
    free(n);
}

static const struct bus_contract contract = {.open = open_uv, .leave = leave_uv, .close = close_uv};

int main(void)
{
    const struct CMUnitTest tests[] = {BUS_CONTRACT_TESTS(BUS_CONTRACT_RUN) /* */};
    return TEST_MAIN(tests);
}
