#include "test/contract/env_contract.h"

#include "base/wait.h"

/* Far more than any of these needs, on any machine that is alive. */
enum { DEADLINE_S = 120 };

struct env_fixture *env_fixture_new(const struct env_contract *contract, uint32_t shards)
{
    struct env_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->contract = contract;
    pthread_mutex_init(&f->mutex, NULL);
    cond_init(&f->cond);
    f->impl = contract->open(shards, &f->env);
    return f;
}

void env_fixture_close(struct env_fixture *f)
{
    assert_ok(f->contract->close(f->impl));
    f->impl = NULL;
}

void env_fixture_free(struct env_fixture *f)
{
    if (f->impl)
        env_fixture_close(f);
    pthread_cond_destroy(&f->cond);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

void env_record(struct env_fixture *f, uint64_t value)
{
    pthread_mutex_lock(&f->mutex);
    if (f->count < ENV_VALUES_MAX)
        f->values[f->count++] = value;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->mutex);
}

size_t env_recorded(struct env_fixture *f)
{
    pthread_mutex_lock(&f->mutex);
    size_t count = f->count;
    pthread_mutex_unlock(&f->mutex);
    return count;
}

void env_await(struct env_fixture *f, size_t count)
{
    if (f->contract->drive) {
        assert_true(f->contract->drive(f, count));
        return;
    }
    uint64_t end = wait_deadline(DEADLINE_S * PAWL_SECOND);
    bool in_time = true;
    pthread_mutex_lock(&f->mutex);
    while (f->count < count && in_time)
        in_time = cond_wait_until(&f->cond, &f->mutex, end);
    pthread_mutex_unlock(&f->mutex);
    assert_true(in_time);
}
