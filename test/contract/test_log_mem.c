/* The log in memory under the contract of all logs, and the faults that it can be told to have. */
#include "test/contract/log_contract.h"

#include "adapter/mem/env.h"
#include "adapter/mem/log.h"
#include "test/contract/log_fixture.h"

struct mem_impl {
    struct mem_world *world;
    struct mem_env *env;
    struct mem_log_disk *disk;
    struct mem_log_options options;
    pawl_log *log;
};

/* Small messages, so that most entries go in fragments; and room for the largest all the same. */
static bool in_fragments;

static void open_log(struct mem_impl *impl, pawl_env **ret_env, pawl_log **ret_log)
{
    const struct mem_env_options options = {.shards = 2};
    assert_ok(mem_env_open(impl->world, &options, &impl->env, NULL));
    *ret_env = mem_env_port(impl->env);
    assert_ok(mem_log_open(impl->disk, *ret_env, &impl->options, ret_log));
    impl->log = *ret_log;
}

static void *mem_open(pawl_env **ret_env, pawl_log **ret_log)
{
    struct mem_impl *impl = calloc(1, sizeof *impl);
    assert_non_null(impl);
    const struct mem_world_options world = {.seed = 7};
    assert_ok(mem_world_open(&world, &impl->world, NULL));
    assert_ok(mem_log_disk_open(7, NULL, &impl->disk));
    impl->options = (struct mem_log_options){.node = 1};
    if (in_fragments) {
        impl->options.message_bytes = 4000;
        impl->options.window = 20000;
    }
    open_log(impl, ret_env, ret_log);
    return impl;
}

static void mem_reopen(void *arg, pawl_env **ret_env, pawl_log **ret_log)
{
    struct mem_impl *impl = arg;
    assert_ok(mem_env_close(impl->env));
    open_log(impl, ret_env, ret_log);
}

static void mem_crash(void *arg, pawl_env **ret_env, pawl_log **ret_log)
{
    struct mem_impl *impl = arg;
    mem_env_kill(impl->env);
    mem_log_kill(impl->log);
    mem_log_disk_crash(impl->disk);
    mem_reopen(impl, ret_env, ret_log);
}

static pawl_log *mem_rival(void *arg)
{
    struct mem_impl *impl = arg;
    struct mem_log_options options = impl->options;
    options.node = 2;
    pawl_log *log;
    assert_ok(mem_log_open(impl->disk, mem_env_port(impl->env), &options, &log));
    return log;
}

static void mem_free_all(void *arg)
{
    struct mem_impl *impl = arg;
    mem_world_close(impl->world);
    mem_log_disk_close(impl->disk);
    free(impl);
}

static bool mem_drive(void *arg, bool (*holds)(void *arg), void *holds_arg)
{
    struct mem_impl *impl = arg;
    return mem_world_run_until(impl->world, holds, holds_arg, 1000000);
}

static const struct log_contract contract = {
    .open = mem_open,
    .reopen = mem_reopen,
    .crash = mem_crash,
    .rival = mem_rival,
    .free = mem_free_all,
    .drive = mem_drive,
};

/* Faults. */

static void order(struct log_fixture *f, enum mem_log_fault_kind kind, uint32_t n)
{
    assert_ok(mem_log_order(f->log, &(struct mem_log_fault){kind, mem_log_requests(f->log) + 1, n}));
}

static int append_three(struct log_fixture *f, uint64_t epoch, uint64_t from, struct job **ret_job)
{
    struct job *job = job_new(f, JOB_APPEND, raw(1));
    for (uint64_t i = 0; i < 3; i++)
        job_add(job, raw(1), epoch, from + i, 20, from + i);
    int status = job_run(job);
    if (ret_job)
        *ret_job = job;
    else
        job_free(job);
    return status;
}

TEST(an_append_with_a_fault_ends_as_ordered_and_the_next_claim_tells_the_truth)
{
    static const struct {
        enum mem_log_fault_kind kind;
        uint32_t n;
        int status;
        uint64_t least, most; /* entries that are there afterwards */
    } cases[] = {
        {MEM_LOG_FAIL, 0, PAWL_EIO, 2, 2},      {MEM_LOG_FULL, 0, PAWL_EFULL, 2, 2},
        {MEM_LOG_DELAY, 9, PAWL_OK, 5, 5},      {MEM_LOG_LANDED, 0, PAWL_EUNKNOWN, 5, 5},
        {MEM_LOG_LOST, 0, PAWL_EUNKNOWN, 2, 2}, {MEM_LOG_LATE, 0, PAWL_EUNKNOWN, 2, 5},
        {MEM_LOG_TORN, 0, PAWL_EUNKNOWN, 2, 2}, {MEM_LOG_TORN, 2, PAWL_EUNKNOWN, 4, 4},
        {MEM_LOG_TWICE, 0, PAWL_OK, 5, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct log_fixture *f = log_fixture_open(&contract, i % 2);
        uint64_t epoch, next;
        log_claim_stream(f, raw(1), &epoch, NULL);
        log_append_some(f, raw(1), epoch, 1, 2);
        order(f, cases[i].kind, cases[i].n);
        assert_status(append_three(f, epoch, 3, NULL), cases[i].status);
        if (cases[i].status == PAWL_EUNKNOWN || cases[i].status == PAWL_EIO) /* until claimed again */
            assert_status(append_three(f, epoch, 3, NULL), PAWL_EFENCED);
        if (cases[i].status == PAWL_EFULL)
            assert_ok(append_three(f, epoch, 3, NULL));
        log_claim_stream(f, raw(1), &epoch, &next);
        if (cases[i].status != PAWL_EFULL)
            assert_in_range(next - 1, cases[i].least, cases[i].most);
        log_append_some(f, raw(1), epoch, next, 4);
        log_append_some(f, raw(1), epoch, next + 4, 4);
        assert_int_equal(log_tail_of(f, raw(1)), next + 7);
        log_fixture_close(f);
    }
}

TEST(appends_behind_a_lost_one_are_unknown_too)
{
    struct log_fixture *f = log_fixture_open(&contract, false);
    uint64_t epoch, next;
    log_claim_stream(f, raw(1), &epoch, NULL);
    order(f, MEM_LOG_LOST, 0);
    struct job *jobs[4];
    for (uint64_t i = 0; i < 4; i++) {
        jobs[i] = job_new(f, JOB_APPEND, raw(1));
        job_add(jobs[i], raw(1), epoch, i + 1, 10, i);
        assert_ok(job_start(jobs[i]));
    }
    for (int i = 0; i < 4; i++) {
        job_await(jobs[i]);
        assert_status(job_status(jobs[i]), PAWL_EUNKNOWN);
        job_free(jobs[i]);
    }
    log_claim_stream(f, raw(1), &epoch, &next);
    assert_int_equal(next, 1);
    log_fixture_close(f);
}

TEST(an_append_in_flight_ends_though_the_claim_that_would_resolve_it_gets_lost)
{
    struct log_fixture *f = log_fixture_open(&contract, false);
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    struct job *append = job_new(f, JOB_APPEND, raw(1)), *claim = job_new(f, JOB_CLAIM, raw(1));
    job_add(append, raw(1), epoch, 1, 10, 1);
    order(f, MEM_LOG_LOST, 0);
    assert_ok(job_start(append));
    order(f, MEM_LOG_LOST, 0);
    assert_status(job_run(claim), PAWL_EIO);
    job_await(append);
    assert_status(job_status(append), PAWL_EUNKNOWN);
    job_free(append);
    job_free(claim);
    log_fixture_close(f);
}

TEST(a_claim_can_lose_fail_or_get_lost)
{
    static const struct {
        enum mem_log_fault_kind kind;
        int status;
        uint64_t epoch; /* of the claim after it */
    } cases[] = {{MEM_LOG_RIVAL, PAWL_EFENCED, 3},
                 {MEM_LOG_FAIL, PAWL_EIO, 2},
                 {MEM_LOG_LOST, PAWL_EIO, 2},
                 {MEM_LOG_DELAY, PAWL_OK, 3},
                 {MEM_LOG_TWICE, PAWL_OK, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct log_fixture *f = log_fixture_open(&contract, i % 2);
        uint64_t epoch, next;
        log_claim_stream(f, raw(1), &epoch, NULL);
        log_append_some(f, raw(1), epoch, 1, 2);
        order(f, cases[i].kind, 5);
        struct job *claim = job_new(f, JOB_CLAIM, raw(1));
        assert_status(job_run(claim), cases[i].status);
        if (cases[i].status != PAWL_OK)
            assert_true(strlen(claim->error.text) > 0);
        job_free(claim);
        log_claim_stream(f, raw(1), &epoch, &next);
        assert_int_equal(epoch, cases[i].epoch);
        assert_int_equal(next, 3);
        log_append_some(f, raw(1), epoch, next, 2);
        log_fixture_close(f);
    }
}

TEST(a_claim_on_an_older_assignment_than_the_owners_is_fenced)
{
    struct log_fixture *f = log_fixture_open(&contract, false);
    struct job *newer = job_new(f, JOB_CLAIM, raw(1)), *older = job_new(f, JOB_CLAIM, raw(1));
    newer->claim.group0 = 9;
    older->claim.group0 = 8;
    assert_ok(job_run(newer));
    assert_status(job_run(older), PAWL_EFENCED);
    job_free(newer);
    job_free(older);
    log_fixture_close(f);
}

TEST(reads_follows_and_tails_can_be_made_to_fail)
{
    struct log_fixture *f = log_fixture_open(&contract, true);
    for (enum job_kind kind = JOB_READ; kind <= JOB_TAIL; kind++) {
        struct job *job = job_new(f, kind, raw(1));
        order(f, MEM_LOG_FAIL, 0);
        assert_status(job_run(job), PAWL_EIO);
        job_free(job);
    }
    log_fixture_close(f);
}

TEST(too_many_requests_and_too_many_records_are_busy)
{
    struct log_fixture *f = log_fixture_open(&contract, true);
    uint64_t epoch;
    struct job *jobs[300], *more = job_new(f, JOB_APPEND, raw(1));
    uint64_t started = 0;
    log_claim_stream(f, raw(1), &epoch, NULL);
    for (uint64_t i = 0; i < 300; i++) {
        jobs[i] = job_new(f, JOB_TAIL, raw(1));
        int status = job_start(jobs[i]);
        if (status != PAWL_OK) {
            assert_status(status, PAWL_EBUSY);
            job_free(jobs[i]);
            break;
        }
        started++;
    }
    assert_int_equal(started, 256);
    for (uint64_t i = 0; i < started; i++) {
        job_await(jobs[i]);
        job_free(jobs[i]);
    }
    for (uint64_t i = 0; i < 5; i++) {
        jobs[i] = job_new(f, JOB_APPEND, raw(1));
        for (uint64_t n = 0; n < 60; n++)
            job_add(jobs[i], raw(1), epoch, 1 + i * 60 + n, 1, n);
        assert_status(job_start(jobs[i]), i < 4 ? PAWL_OK : PAWL_EBUSY);
    }
    job_add(more, raw(1), epoch, 241, 1, 1); /* what was busy has left no trace */
    assert_ok(job_run(more));
    for (uint64_t i = 0; i < 5; i++)
        job_free(jobs[i]);
    job_free(more);
    log_fixture_close(f);
}

TEST(a_log_may_be_closed_with_records_on_the_wire_that_nobody_waits_for)
{
    struct log_fixture *f = log_fixture_open(&contract, false);
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    struct job *lost = job_new(f, JOB_APPEND, raw(1)), *held = job_new(f, JOB_APPEND, raw(1));
    job_add(lost, raw(1), epoch, 1, 10, 1);
    job_add(held, raw(1), epoch, 2, 10, 1);
    order(f, MEM_LOG_LOST, 0);
    assert_ok(mem_log_order(f->log, &(struct mem_log_fault){MEM_LOG_DELAY, mem_log_requests(f->log) + 2, 20}));
    assert_ok(job_start(lost));
    assert_ok(job_start(held));
    job_await(held);
    assert_status(job_status(held), PAWL_EUNKNOWN);
    job_free(lost);
    job_free(held);
    log_fixture_reopen(f);
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_fixture_close(f);
}

static void *fail_after(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    if (new_size == 0) {
        free(memory);
        return NULL;
    }
    uint64_t *left = ctx;
    if (*left == 0)
        return NULL;
    --*left;
    return realloc(memory, new_size);
}

/* Every allocation fails once, and all after it: no request hangs, nothing leaks, and what is told is true. */
TEST(every_allocation_may_fail)
{
    for (uint64_t allowed = 0; allowed < 60; allowed++) {
        uint64_t left = allowed;
        pawl_allocator allocator = {fail_after, &left};
        struct mem_impl impl = {0};
        const struct mem_world_options world = {.seed = 3};
        const struct mem_env_options env = {.shards = 1};
        assert_ok(mem_world_open(&world, &impl.world, NULL));
        assert_ok(mem_env_open(impl.world, &env, &impl.env, NULL));
        if (mem_log_disk_open(1, &allocator, &impl.disk) == PAWL_OK) {
            impl.options = (struct mem_log_options){.message_bytes = 8, .window = 8, .allocator = &allocator};
            if (mem_log_open(impl.disk, mem_env_port(impl.env), &impl.options, &impl.log) == PAWL_OK) {
                struct log_fixture f = {.contract = &contract,
                                        .impl = &impl,
                                        .env = mem_env_port(impl.env),
                                        .log = impl.log,
                                        .foreign = true};
                pthread_mutex_init(&f.mutex, NULL);
                pthread_cond_init(&f.cond, NULL);
                struct job *claim = job_new(&f, JOB_CLAIM, raw(1)), *append = job_new(&f, JOB_APPEND, raw(1)),
                           *read = job_new(&f, JOB_READ, raw(1));
                bool claimed = job_run(claim) == PAWL_OK, written = false;
                for (uint64_t i = 1; claimed && i <= 2; i++)
                    job_add(append, raw(1), claim->claim.epoch, i, 20, i);
                if (claimed)
                    written = job_run(append) == PAWL_OK;
                if (job_run(read) == PAWL_OK)
                    assert_true(!written || read->visited == 2);
                job_free(claim);
                job_free(append);
                job_free(read);
                assert_ok(pawl_log_close(impl.log));
                mem_world_run(impl.world, 1000);
            }
            mem_log_disk_close(impl.disk);
        }
        mem_world_close(impl.world);
    }
}

static int run_faults(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_append_with_a_fault_ends_as_ordered_and_the_next_claim_tells_the_truth),
        RUN(appends_behind_a_lost_one_are_unknown_too),
        RUN(an_append_in_flight_ends_though_the_claim_that_would_resolve_it_gets_lost),
        RUN(a_claim_can_lose_fail_or_get_lost),
        RUN(a_claim_on_an_older_assignment_than_the_owners_is_fenced),
        RUN(reads_follows_and_tails_can_be_made_to_fail),
        RUN(too_many_requests_and_too_many_records_are_busy),
        RUN(a_log_may_be_closed_with_records_on_the_wire_that_nobody_waits_for),
        RUN(every_allocation_may_fail),
    };
    return TEST_MAIN(tests);
}

/* One group a program, as TAP wants it. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "faults") == 0)
        return run_faults();
    in_fragments = argc > 1 && strcmp(argv[1], "fragments") == 0;
    return log_contract_run(in_fragments ? "log_mem_fragments" : "log_mem", &contract);
}
