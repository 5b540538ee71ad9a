/* adapter/uv/env.h: the env port on real threads and clocks, with libuv.
 *
 *      any thread ── post ──► mailbox ──► runner: a thread with one uv_loop  (mailbox.h, runner.c)
 *      any thread ── work ──► queue   ──► pool: threads of this env alone    (pool.c)
 *
 * A runner runs one shard; or several, by turns, if there are fewer threads than shards.
 *
 * now is CLOCK_BOOTTIME, wall_now CLOCK_REALTIME, random what the kernel gives. Several envs may live in one
 * process. The env's threads block signals, so that the host's handlers run on the host's own threads.
 *
 * Caveats
 *   - Timers wake with the loop's resolution, a millisecond: one never fires early, and on an idle shard fires
 *     at most about a millisecond late. While the machine is suspended the wake-up stands still, so that after
 *     it a timer may come late by what was left of it. */
#ifndef ADAPTER_UV_ENV_H
#define ADAPTER_UV_ENV_H

#include "port/env.h"

struct uv_env;

struct uv_env_options {
    uint32_t shards;
    uint32_t threads; /* that run them; 0: one for each */
    uint32_t pool_threads;
    const pawl_allocator *allocator;
};

/* Errors: PAWL_EINVAL (none, or more than 1024, of either kind of thread), PAWL_ENOMEM, PAWL_EIO (the system
 * gives no more threads or descriptors). */
int uv_env_open(const struct uv_env_options *options, struct uv_env **ret_env, pawl_error *error);

/* Shut down as port/env.h says, wait until all is run and the threads have ended, and free. Call it once, when
 * no one will use the env after it returns; other threads may still be calling post and work while it begins.
 * Errors: PAWL_EMISUSE, and nothing happens, from a shard or pool thread of this env. */
int uv_env_close(struct uv_env *env);

pawl_env *uv_env_port(struct uv_env *env);

#endif
