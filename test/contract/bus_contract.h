/* test/contract/bus_contract.h: tests every sentence of port/bus.h, over any implementation.
 *
 * Code on a shard only notes values with bus_record. The test waits for a number of them with bus_await, and
 * judges them on its own thread. */
#ifndef TEST_CONTRACT_BUS_CONTRACT_H
#define TEST_CONTRACT_BUS_CONTRACT_H

#include <pthread.h>

#include "port/bus.h"
#include "port/env.h"
#include "test/lib/test.h"

enum { BUS_NODES = 2, BUS_SHARDS = 2, BUS_VALUES_MAX = 100000 };

struct bus_fixture;

struct bus_contract {
    /* BUS_NODES nodes with the IDs 1, 2, ..., of BUS_SHARDS shards each. */
    void *(*open)(pawl_env *envs[BUS_NODES], pawl_bus *buses[BUS_NODES]);
    void (*leave)(void *impl, uint32_t node); /* it is down for the others */
    void (*close)(void *impl);
    /* Makes things happen until at least count values were recorded; false if they never will be. NULL: they
     * happen by themselves, in other threads. */
    bool (*drive)(struct bus_fixture *f, size_t count);
};

struct bus_fixture {
    const struct bus_contract *contract;
    void *impl;
    pawl_env *envs[BUS_NODES];
    pawl_bus *buses[BUS_NODES];
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    size_t count;
    uint64_t values[BUS_VALUES_MAX];
};

void bus_record(struct bus_fixture *f, uint64_t value); /* any thread */
void bus_await(struct bus_fixture *f, size_t count);    /* fails the test if they do not come */

#define BUS_CONTRACT_TESTS(X)                                                                                  \
    X(a_call_is_served_on_the_shard_named_and_done_on_the_shard_that_called)                                   \
    X(a_shard_calls_itself_and_done_does_not_come_from_inside_call)                                            \
    X(body_and_reply_arrive_as_they_were_sent)                                                                 \
    X(a_server_may_answer_with_the_body_itself)                                                                \
    X(an_empty_reply_and_a_refusal_arrive)                                                                     \
    X(a_body_that_is_too_large_is_refused)                                                                     \
    X(a_call_that_nobody_answers_ends_in_time)                                                                 \
    X(an_answer_that_comes_too_late_goes_nowhere)                                                              \
    X(a_cancelled_call_is_not_done_and_its_server_is_told)                                                     \
    X(an_answer_on_its_way_is_not_done_after_cancel)                                                           \
    X(cancelling_what_is_not_under_way_does_nothing)                                                           \
    X(a_call_may_be_made_again_from_its_own_done)                                                              \
    X(a_call_to_a_node_that_is_not_there_ends)                                                                 \
    X(a_call_to_a_node_that_has_left_ends)                                                                     \
    X(a_verb_that_nobody_serves_ends)                                                                          \
    X(requests_end_without_a_word_when_they_are_no_longer_served)                                              \
    X(many_calls_between_all_shards_are_all_answered_once)

#define BUS_CONTRACT_DECLARE(name) void name(void **test_state);
BUS_CONTRACT_TESTS(BUS_CONTRACT_DECLARE)

/* In a list of tests; the file defines a struct bus_contract named contract. */
#define BUS_CONTRACT_RUN(name) cmocka_unit_test_prestate(name, (void *)(uintptr_t)&contract),

#endif
