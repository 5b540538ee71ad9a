/* Leases on real threads and a real clock: the timer on its shard, and workers that share a lock. */
#include "test/lib/test.h"

#include <pthread.h>
#include <sched.h>

#include <pawl/lease.h>

#include "base/latch.h"

enum { WORKERS = 4, COUNT = 20000, BATCH = 16 };

struct shard {
    pawl_env *env;
    pawl_leases *leases;
    struct latch came_back;
    pawl_lease lease;
    int status;
};

static void on_changed(void *ctx)
{
    latch_set(&((struct shard *)ctx)->came_back);
}

static void begin(void *arg)
{
    struct shard *shard = arg;
    pawl_leases_options options = {.env = shard->env, .changed = on_changed, .ctx = shard};
    uint64_t number;
    size_t count;
    assert_ok(pawl_leases_new(&options, &shard->leases, NULL));
    assert_ok(pawl_leases_bind(shard->leases, 0, NULL, 0, &number));
    assert_ok(pawl_leases_acquire(shard->leases, 0, 5 * PAWL_MILLISECOND, 1, &shard->lease, &count));
}

static void end(void *arg)
{
    struct shard *shard = arg;
    pawl_lease again;
    size_t count;
    assert_ok(pawl_leases_acquire(shard->leases, 0, 600 * PAWL_SECOND, 1, &again, &count));
    assert_int_equal(again.attempt, 2);
    shard->status = pawl_leases_ready(shard->leases, 1, shard->lease.operation, NULL, NULL);
    pawl_leases_free(shard->leases); /* with its timer set */
}

TEST(a_lease_expires_by_the_timer_of_its_shard)
{
    struct shard shard = {0};
    latch_init(&shard.came_back);
    assert_ok(pawl_env_open(NULL, &shard.env, NULL));
    assert_ok(pawl_env_run(shard.env, 0, begin, &shard));
    latch_wait(&shard.came_back);
    assert_ok(pawl_env_run(shard.env, 0, end, &shard));
    assert_status(shard.status, PAWL_EFENCED);
    assert_ok(pawl_env_close(shard.env));
}

struct shop {
    pthread_mutex_t lock;
    pawl_leases *leases;
    uint64_t done;
    bool is_wrong;
};

static void leave(struct shop *shop)
{
    pawl_turn turns[BATCH];
    for (size_t n; (n = pawl_leases_take(shop->leases, BATCH, turns)) > 0;) {
        for (size_t i = 0; i < n; i++) {
            shop->is_wrong |= turns[i].number != ++shop->done;
            shop->is_wrong |= *(uint64_t *)turns[i].result != turns[i].number * 3;
        }
        shop->is_wrong |= pawl_leases_commit(shop->leases, shop->done) != PAWL_OK;
    }
}

/* One attempt in some is given back, so that numbers change hands; what was worked out is in the work itself.
 */
static void *work(void *arg)
{
    struct shop *shop = arg;
    uint64_t turn = 0;
    pthread_mutex_lock(&shop->lock);
    while (shop->done < COUNT) {
        pawl_lease got[BATCH];
        size_t count = 0;
        if (pawl_leases_acquire(shop->leases, 0, 0, 1 + turn++ % BATCH, got, &count)) {
            pthread_mutex_unlock(&shop->lock);
            sched_yield();
            pthread_mutex_lock(&shop->lock);
            continue;
        }
        pthread_mutex_unlock(&shop->lock);
        for (size_t i = 0; i < count; i++)
            *(uint64_t *)got[i].work = got[i].number * 3;
        pthread_mutex_lock(&shop->lock);
        for (size_t i = 0; i < count; i++) {
            int status =
                (turn + i) % 37 == 0
                    ? pawl_leases_release(shop->leases, got[i].number, got[i].operation, NULL)
                    : pawl_leases_ready(shop->leases, got[i].number, got[i].operation, got[i].work, NULL);
            shop->is_wrong |= status != PAWL_OK;
        }
        leave(shop);
    }
    pthread_mutex_unlock(&shop->lock);
    return NULL;
}

TEST(workers_that_share_a_lock_leave_in_order)
{
    struct shop shop = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[WORKERS];
    pawl_leases_options options = {.untimed = true,
                                   .window = 1 << 15,
                                   .duration_first = 600 * PAWL_SECOND, /* nobody is to be fenced for being */
                                   .duration_min = 600 * PAWL_SECOND};  /* forgotten by a busy machine */
    uint64_t *results = calloc(COUNT, sizeof *results);
    assert_non_null(results);
    assert_ok(pawl_env_open(NULL, &options.env, NULL));
    assert_ok(pawl_leases_new(&options, &shop.leases, NULL));
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t number;
        assert_ok(pawl_leases_bind(shop.leases, 0, &results[i], 8, &number));
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &shop), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    assert_false(shop.is_wrong);
    assert_int_equal(shop.done, COUNT);
    pawl_leases_free(shop.leases);
    assert_ok(pawl_env_close(options.env));
    free(results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_lease_expires_by_the_timer_of_its_shard),
        RUN(workers_that_share_a_lock_leave_in_order),
    };
    return TEST_MAIN(tests);
}
