/* test/contract/env_contract.h: tests every sentence of port/env.h, over any implementation.
 *
 * Code on a shard only notes values with env_record. The test waits for a number of them with env_await, and
 * judges them on its own thread. */
#ifndef TEST_CONTRACT_ENV_CONTRACT_H
#define TEST_CONTRACT_ENV_CONTRACT_H

#include <pthread.h>

#include "port/env.h"
#include "test/lib/test.h"

struct env_fixture;

struct env_contract {
    void *(*open)(uint32_t shards, pawl_env **ret_env);
    int (*close)(void *impl);
    /* Makes things happen until at least count values were recorded; false if they never will be. NULL: they
     * happen by themselves, in other threads. */
    bool (*drive)(struct env_fixture *f, size_t count);
};

enum { ENV_VALUES_MAX = 20000 };

struct env_fixture {
    const struct env_contract *contract;
    void *impl;
    pawl_env *env;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    size_t count;
    uint64_t values[ENV_VALUES_MAX];
};

struct env_fixture *env_fixture_new(const struct env_contract *contract, uint32_t shards);
void env_fixture_close(struct env_fixture *f); /* the env only: the values stay */
void env_fixture_free(struct env_fixture *f);  /* both */

void env_record(struct env_fixture *f, uint64_t value); /* any thread */
size_t env_recorded(struct env_fixture *f);
void env_await(struct env_fixture *f, size_t count); /* fails the test if they do not come */

#define ENV_CONTRACT_TESTS(X)                                                                                  \
    X(posts_of_one_thread_run_in_their_order_on_the_shard_named)                                               \
    X(posts_of_one_shard_to_another_run_in_their_order)                                                        \
    X(a_task_posted_while_queued_runs_once_where_it_was_queued)                                                \
    X(a_task_may_post_itself_again)                                                                            \
    X(a_task_may_free_itself)                                                                                  \
    X(a_post_to_no_such_shard_is_refused)                                                                      \
    X(a_hundred_thousand_posts_go_back_and_forth)                                                              \
    X(tasks_that_post_themselves_do_not_keep_timers_from_firing)                                               \
    X(self_names_the_shard_and_only_of_this_env)                                                               \
    X(timers_fire_in_the_order_in_which_they_are_due)                                                          \
    X(a_timer_never_fires_early)                                                                               \
    X(setting_a_timer_that_is_set_moves_it)                                                                    \
    X(a_timer_fires_once_and_may_be_set_again_from_its_own_callback)                                           \
    X(a_cancelled_timer_does_not_fire)                                                                         \
    X(a_timer_cancels_another_that_is_due_at_the_same_time)                                                    \
    X(a_timer_may_free_itself)                                                                                 \
    X(a_work_runs_on_no_shard_and_is_done_on_the_shard_that_asked)                                             \
    X(a_work_that_no_shard_asked_for_is_done_in_the_pool)                                                      \
    X(a_work_without_a_done_may_free_itself)                                                                   \
    X(a_work_asks_for_more_work)                                                                               \
    X(a_call_runs_on_the_shard_before_it_returns)                                                              \
    X(a_call_from_a_shard_or_to_no_shard_is_refused)                                                           \
    X(what_was_queued_before_shutdown_is_run)                                                                  \
    X(in_shutdown_posts_and_works_are_refused_and_timers_do_not_fire)                                          \
    X(closing_from_inside_is_misuse)                                                                           \
    X(random_numbers_differ)                                                                                   \
    X(the_boot_clock_does_not_go_back)

#define ENV_CONTRACT_DECLARE(name) void name(void **test_state);
ENV_CONTRACT_TESTS(ENV_CONTRACT_DECLARE)

/* In a list of tests; the file defines a struct env_contract named contract. */
#define ENV_CONTRACT_RUN(name) cmocka_unit_test_prestate(name, (void *)(uintptr_t)&contract),

#endif
