/* env.h: the threads that Pawl's objects live on.
 *
 * An env is a few shards and a pool. A shard is one thread with one loop; an object that lives on a shard is
 * used on that thread only, and so needs no locks. The pool is for what blocks. Nothing here is global: a
 * process may have as many envs as it likes, and each ends with its own close.
 *
 *      your threads ── pawl_env_run ──► shard ──► pool
 *
 * A program that embeds a single object of Pawl's, such as a sequencer (pawl/sequencer.h), opens an env with
 * one shard and reaches the object by pawl_env_run: calls of many threads form a queue, and run one after the
 * other. */
#ifndef PAWL_ENV_H
#define PAWL_ENV_H

#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_env pawl_env;

typedef struct pawl_env_options {
    uint32_t shards;                 /* 0: 1; at most 1024 */
    uint32_t pool_threads;           /* 0: 2; at most 1024 */
    const pawl_allocator *allocator; /* NULL: the C library's */
} pawl_env_options;

/* Start the threads. options may be NULL: all defaults. Any thread.
 * Errors: PAWL_EINVAL (too many threads), PAWL_ENOMEM, PAWL_EIO (the system gives no more threads). */
PAWL_API int pawl_env_open(const pawl_env_options *options, pawl_env **ret_env, pawl_error *error);

/* Run what is queued, end the threads, free. Free the objects that live in the env before. NULL is allowed.
 * Errors: PAWL_EMISUSE, and nothing happens, from a thread of this env. */
PAWL_API int pawl_env_close(pawl_env *env);

/* Run fn(arg) on a shard and return when it has returned. What it did is then visible to the caller. Calls of
 * one thread run in their order. Allocates nothing. Any thread that is not a shard of this env.
 * Errors: PAWL_EINVAL (no such shard), PAWL_ECLOSED (close has begun), PAWL_EMISUSE (from a shard of this env:
 * it would wait for itself). fn was then not called. */
PAWL_API int pawl_env_run(pawl_env *env, uint32_t shard, void (*fn)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
