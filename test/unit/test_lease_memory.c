/* What a lease table asks of memory, which options it refuses, and that no two attempts have one ID. */
#include "test/lib/test.h"

#include "base/map.h"
#include "test/lib/alloc.h"
#include "test/lib/lease.h"

TEST(new_without_memory_says_so_and_leaves_nothing_behind)
{
    struct desk desk;
    desk_open(&desk, NULL);
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        pawl_leases *leases = NULL;
        pawl_error error;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        pawl_leases_options options = {
            .env = desk.options.env, .untimed = true, .allocator = &memory.allocator};
        int status = pawl_leases_new(&options, &leases, &error);
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        assert_true((leases == NULL) == failed);
        pawl_leases_free(leases);
        test_alloc_release(&memory);
        if (!failed)
            break;
        assert_true(k < 10);
    }
    desk_close(&desk);
}

TEST(options_that_make_no_sense_are_refused_with_words)
{
    struct desk desk;
    desk_open(&desk, NULL);
    pawl_env *env = desk.options.env;
    const struct {
        pawl_leases_options options;
        const char *words;
    } cases[] = {
        {{.env = NULL}, "env"},
        {{.env = env, .window = 3}, "power of two"},
        {{.env = env, .window = 2 * PAWL_LEASE_WINDOW_MAX}, "power of two"},
        {{.env = env, .projections = 65537}, "projections"},
        {{.env = env, .remembered = (1 << 20) + 1}, "remembered"},
        {{.env = env, .duration_min = 601 * PAWL_SECOND}, "duration"},
        {{.env = env, .duration_max = 2 * PAWL_SECOND}, "duration"}, /* below the first, 30 s */
        {{.env = env, .duration_max = UINT64_MAX}, "duration"},
        {{.env = env, .backoff_min = 61 * PAWL_SECOND}, "back-off"},
        {{.env = env, .backoff_max = UINT64_MAX}, "back-off"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pawl_leases *leases = NULL;
        pawl_error error = {0};
        assert_status(pawl_leases_new(&cases[i].options, &leases, &error), PAWL_EINVAL);
        assert_contains(error.text, cases[i].words);
        assert_null(leases);
    }
    pawl_leases_free(NULL);
    desk_close(&desk);
}

enum { BATCH = 64 };

struct rounds {
    struct desk *desk;
    int count;
    uint64_t slow; /* every so many-th is not handed in; 0: none */
};

static void run_rounds(void *arg)
{
    struct rounds *rounds = arg;
    pawl_leases *leases = rounds->desk->leases;
    pawl_lease got[BATCH];
    pawl_turn turns[BATCH];
    for (int i = 0; i < rounds->count; i++) {
        uint64_t number;
        size_t count = 0;
        while (pawl_leases_bind(leases, 0, NULL, 100, &number) == PAWL_OK)
            ;
        assert_ok(pawl_leases_acquire(leases, 0, 0, BATCH, got, &count));
        pawl_handed handed[BATCH] = {0};
        size_t handed_count = 0;
        for (size_t k = 0; k < count; k++)
            if (!rounds->slow || got[k].number % rounds->slow != 0 || got[k].attempt > 1)
                handed[handed_count++] =
                    (pawl_handed){.number = got[k].number, .operation = got[k].operation, .result = rounds};
        pawl_leases_ready_many(leases, handed, handed_count);
        for (size_t k = 0; k < handed_count; k++)
            assert_true(handed[k].status == PAWL_OK && !handed[k].again);
        size_t taken = pawl_leases_take(leases, BATCH, turns);
        if (taken)
            assert_ok(pawl_leases_commit(leases, turns[taken - 1].number));
    }
}

TEST(nothing_is_allocated_once_it_runs)
{
    struct test_alloc memory;
    struct desk desk;
    test_alloc_init(&memory);
    pawl_leases_options options = {.allocator = &memory.allocator, .window = 256};
    desk_open(&desk, &options);
    uint64_t calls = memory.calls;
    struct rounds rounds = {&desk, 1000, 0};
    desk_run(&desk, run_rounds, &rounds);
    rounds = (struct rounds){&desk, 1, 7};
    for (int i = 0; i < 100; i++) {
        desk_run(&desk, run_rounds, &rounds);
        mem_world_advance(desk.world, 2 * PAWL_SECOND);
    }
    pawl_lease_figures f;
    pawl_leases_figures_get(desk.leases, &f);
    assert_true(f.expired > 50 && f.committed > 60000);
    assert_int_equal(memory.calls, calls);
    desk_close(&desk);
    test_alloc_release(&memory);
}

TEST(without_memory_for_words_everything_else_goes_on)
{
    struct test_alloc memory;
    struct desk desk;
    test_alloc_init(&memory);
    pawl_leases_options options = {.allocator = &memory.allocator};
    desk_open(&desk, &options);
    test_alloc_fail(&memory, 1, TEST_ALLOC_FROM_THEN_ON);
    desk_play(&desk, "bind 2       -> 1 2\n"
                     "acquire ab   -> a=1 b=2\n"
                     "fail a words -> ok\n"
                     "look 1       -> backing off try 1 for 30s\n"
                     "void 1 words -> ok\n"
                     "break b words -> ok\n"
                     "take         -> 1=void \"\" 2=void \"\"\n"
                     "commit 2     -> ok\n");
    test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
    desk_play(&desk, "bind         -> 3\n"
                     "void 3 words -> ok\n"
                     "take         -> 3=void \"words\"\n");
    desk_close(&desk);
    test_alloc_release(&memory);
}

struct ids {
    struct map map;
    struct desk *desk;
};

static void gather_ids(void *arg)
{
    struct ids *ids = arg;
    pawl_leases *leases = ids->desk->leases;
    for (int i = 0; i < 20000; i++) {
        pawl_lease lease;
        size_t count;
        void *value;
        bool fresh;
        assert_ok(pawl_leases_acquire(leases, 0, 0, 1, &lease, &count));
        assert_true(lease.operation.high != 0 && lease.operation.low != 0);
        assert_ok(
            map_put(&ids->map, lease.operation.high ^ lease.operation.low, &lease.operation, &value, &fresh));
        assert_true(fresh);
        assert_ok(pawl_leases_release(leases, lease.number, lease.operation, NULL));
    }
}

TEST(no_two_attempts_of_any_table_have_one_id)
{
    struct ids ids;
    map_init(&ids.map, NULL, sizeof(pawl_operation_id), sizeof(uint64_t), SIZE_MAX);
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct desk desk;
        desk_open_seeded(&desk, NULL, seed);
        ids.desk = &desk;
        desk_play(&desk, "bind -> 1\n");
        desk_run(&desk, gather_ids, &ids);
        desk_close(&desk);
    }
    map_release(&ids.map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(new_without_memory_says_so_and_leaves_nothing_behind),
        RUN(options_that_make_no_sense_are_refused_with_words),
        RUN(nothing_is_allocated_once_it_runs),
        RUN(without_memory_for_words_everything_else_goes_on),
        RUN(no_two_attempts_of_any_table_have_one_id),
    };
    return TEST_MAIN(tests);
}
