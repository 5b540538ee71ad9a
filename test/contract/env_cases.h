/* test/contract/env_cases.h: what the cases of the env suite share.
 *
 *     env_cases_posts.c     posts, and who one is
 *     env_cases_timers.c    timers
 *     env_cases_works.c     works, calls, closing, chance and the clock */
#ifndef TEST_CONTRACT_ENV_CASES_H
#define TEST_CONTRACT_ENV_CASES_H

#include "test/contract/env_contract.h"

#define CONTRACT_TEST(name)          void name(void **test_state)
#define OWNER(member, type, pointer) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline struct env_fixture *open_for(void **test_state, uint32_t shards)
{
    return env_fixture_new(*test_state, shards);
}

static inline void expect(struct env_fixture *f, const uint64_t *values, size_t count)
{
    assert_int_equal(env_recorded(f), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(f->values[i], values[i]);
}

#define EXPECT(f, ...)                                                                                         \
    expect(f, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* One of everything; what a test does not use stays zero. */
struct probe {
    pawl_task task;
    pawl_timer timer;
    pawl_work work;
    struct env_fixture *f;
    uint64_t id;
    uint64_t left;
    uint64_t set_at;
    pawl_duration delay;
    pawl_duration took; /* to set all timers */
    struct probe *others;
};

static inline void record_task(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    env_record(p->f, p->id << 8 | pawl_env_self(p->f->env));
}

static inline void record_timer(pawl_timer *timer)
{
    struct probe *p = OWNER(timer, struct probe, timer);
    env_record(p->f, p->id);
}

/* Runs fn on a shard, with a probe to start from. */
static inline void start(struct env_fixture *f, uint32_t shard, struct probe *p, void (*fn)(pawl_task *task))
{
    p->f = f;
    p->task.fn = fn;
    assert_ok(pawl_env_post(f->env, shard, &p->task));
}

static inline struct probe *probes_new(struct env_fixture *f, size_t count)
{
    struct probe *probes = calloc(count, sizeof *probes);
    assert_non_null(probes);
    for (size_t i = 0; i < count; i++)
        probes[i] = (struct probe){.f = f, .id = i, .task.fn = record_task, .timer.fn = record_timer};
    return probes;
}

/* Its own timer, after its delay. */
static inline void set_own(pawl_task *task)
{
    struct probe *p = OWNER(task, struct probe, task);
    pawl_env_after(p->f->env, &p->timer, p->delay);
}

#endif
