/* test_pool.c: a pool runs what it takes, takes no more than its bound, and ends with everything done. */
#include <pthread.h>
#include <stdatomic.h>

#include "test/lib/test.h"

#include "http/server/pool.h"

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int waiting;
    atomic_int done;
};

static void wait_at_gate(void *arg)
{
    struct gate *gate = arg;
    pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    gate->done++;
}

static void wait_for(struct gate *gate, int waiting)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->waiting < waiting)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

TEST(refuses_what_is_beyond_its_bound_and_finishes_what_it_took)
{
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct pool *pool;
    struct pool_job job = {wait_at_gate, &gate};
    assert_int_equal(pool_new(2, 3, &pool, NULL), PAWL_OK);
    assert_int_equal(pool_submit(pool, job), PAWL_OK);
    assert_int_equal(pool_submit(pool, job), PAWL_OK);
    wait_for(&gate, 2); /* both threads are busy */
    for (int i = 0; i < 3; i++)
        assert_int_equal(pool_submit(pool, job), PAWL_OK);
    assert_int_equal(pool_submit(pool, job), PAWL_EBUSY);
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    pool_free(pool);
    assert_int_equal(gate.done, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(refuses_what_is_beyond_its_bound_and_finishes_what_it_took)};
    return TEST_MAIN(tests);
}
