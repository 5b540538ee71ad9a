/* engine/node/env.c: the public face of the env on real threads. */
#include <pawl/env.h>

#include "adapter/uv/env.h"

int pawl_env_open(const pawl_env_options *options, pawl_env **ret_env, pawl_error *error)
{
    static const pawl_env_options defaults = {0};
    options = options ? options : &defaults;
    struct uv_env_options threads = {
        .shards = options->shards ? options->shards : 1,
        .pool_threads = options->pool_threads ? options->pool_threads : 2,
        .allocator = options->allocator,
    };
    struct uv_env *env;
    int status = uv_env_open(&threads, &env, error);
    if (status == PAWL_OK)
        *ret_env = uv_env_port(env);
    return status;
}

/* Every pawl_env that a user has is pawl_env_open's, and an implementation has its port first. */
int pawl_env_close(pawl_env *env)
{
    return uv_env_close((struct uv_env *)env);
}

int pawl_env_run(pawl_env *env, uint32_t shard, void (*fn)(void *arg), void *arg)
{
    return pawl_env_call(env, shard, fn, arg);
}
