/* http/server/pool.h: a fixed number of threads that run jobs, and a bounded queue of those that wait for one. */
#ifndef HTTP_SERVER_POOL_H
#define HTTP_SERVER_POOL_H

#include <pawl/types.h>

struct pool;

struct pool_job {
    void (*run)(void *arg);
    void *arg;
};

/* Errors: PAWL_ENOMEM, and those of starting a thread. */
int pool_new(uint32_t threads, uint32_t queue, struct pool **ret_pool, pawl_error *error);

/* Any thread. PAWL_EBUSY: the queue is full. PAWL_ECLOSED: free has begun. */
int pool_submit(struct pool *pool, struct pool_job job);

/* Runs what is in the queue, waits for it, and ends the threads. NULL is allowed. */
void pool_free(struct pool *pool);

#endif
