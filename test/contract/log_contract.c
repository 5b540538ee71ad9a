#include "test/contract/log_contract.h"

#include "test/contract/log_cases.h"

struct run {
    const struct log_contract *contract;
    bool foreign;
    struct log_fixture *f;
};

static int open_run(void **state)
{
    struct run *run = *state;
    run->f = log_fixture_open(run->contract, run->foreign);
    return 0;
}

static int close_run(void **state)
{
    struct run *run = *state;
    log_fixture_close(run->f);
    return 0;
}

#define X(name)                                                                                                \
    static void run_##name(void **state)                                                                       \
    {                                                                                                          \
        name(((struct run *)*state)->f);                                                                       \
    }
LOG_CASES(X)
#undef X

int log_contract_run(const char *name, const struct log_contract *contract)
{
    static struct run shard, foreign;
    shard = (struct run){contract, false, NULL};
    foreign = (struct run){contract, true, NULL};
    const struct CMUnitTest tests[] = {
#define X(test) {#test "_from_a_shard", run_##test, open_run, close_run, &shard},
        LOG_CASES(X)
#undef X
#define X(test) {#test "_from_elsewhere", run_##test, open_run, close_run, &foreign},
            LOG_CASES(X)
#undef X
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
