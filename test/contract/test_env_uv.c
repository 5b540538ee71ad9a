/* The env port on libuv: the contract, and what only real threads can get wrong. */
#include "test/contract/env_contract.h"

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>

#include "adapter/uv/env.h"

static uint32_t threads; /* that run the shards; 0: one for each */

static void *open_uv(uint32_t shards, pawl_env **ret_env)
{
    struct uv_env *env;
    struct uv_env_options options = {.shards = shards, .threads = threads, .pool_threads = 3};
    assert_ok(uv_env_open(&options, &env, NULL));
    *ret_env = uv_env_port(env);
    return env;
}

static int close_uv(void *impl)
{
    return uv_env_close(impl);
}

static const struct env_contract contract = {.open = open_uv, .close = close_uv};

enum { THREADS = 4, EACH = 4000 };

struct mail {
    pawl_task task;
    struct env_fixture *f;
    uint64_t id;
};

struct sender {
    pthread_t thread;
    struct env_fixture *f;
    uint64_t index;
    struct mail *mails;
    uint64_t accepted;
    _Atomic uint64_t *refused; /* how many senders were */
};

static void record_mail(pawl_task *task)
{
    struct mail *m = (struct mail *)task;
    env_record(m->f, m->id);
}

static void senders_start(struct sender *senders, struct env_fixture *f, void *(*run)(void *arg))
{
    for (uint64_t t = 0; t < THREADS; t++) {
        senders[t].f = f;
        senders[t].index = t;
        senders[t].mails = calloc(EACH, sizeof(struct mail));
        assert_non_null(senders[t].mails);
        for (uint64_t i = 0; i < EACH; i++)
            senders[t].mails[i] = (struct mail){.task.fn = record_mail, .f = f, .id = t << 32 | i};
        assert_int_equal(pthread_create(&senders[t].thread, NULL, run, &senders[t]), 0);
    }
}

static void senders_join(struct sender *senders)
{
    for (int t = 0; t < THREADS; t++)
        pthread_join(senders[t].thread, NULL);
}

static void senders_free(struct sender *senders)
{
    for (int t = 0; t < THREADS; t++)
        free(senders[t].mails);
}

static void *send_all(void *arg)
{
    struct sender *s = arg;
    for (uint64_t i = 0; i < EACH; i++)
        s->accepted += pawl_env_post(s->f->env, 0, &s->mails[i].task) == PAWL_OK;
    return NULL;
}

TEST(posts_of_many_threads_all_run_each_threads_in_their_order)
{
    struct env_fixture *f = env_fixture_new(&contract, 1);
    struct sender senders[THREADS] = {0};
    senders_start(senders, f, send_all);
    env_await(f, THREADS * EACH);
    senders_join(senders);
    uint64_t next[THREADS] = {0};
    for (size_t i = 0; i < THREADS * EACH; i++) {
        uint64_t t = f->values[i] >> 32;
        assert_int_equal((uint32_t)f->values[i], next[t]);
        next[t]++;
    }
    env_fixture_free(f);
    senders_free(senders);
}

/* The second post finds the task queued, and is all that orders the note before the run: the shard is let go by
 * a store that orders nothing. TSan sees it if the order is missing. */
struct reader {
    pawl_task task;
    struct env_fixture *f;
    uint64_t note;
};

struct blocker {
    pawl_task task;
    _Atomic bool go;
};

static void block(pawl_task *task)
{
    struct blocker *b = (struct blocker *)task;
    while (!atomic_load_explicit(&b->go, memory_order_relaxed))
        sched_yield();
}

static void read_note(pawl_task *task)
{
    struct reader *r = (struct reader *)task;
    env_record(r->f, r->note);
}

TEST(a_run_sees_what_was_written_before_a_post_that_found_the_task_queued)
{
    struct env_fixture *f = env_fixture_new(&contract, 1);
    struct blocker blocker = {.task.fn = block};
    struct reader reader = {.task.fn = read_note, .f = f};
    assert_ok(pawl_env_post(f->env, 0, &blocker.task));
    assert_ok(pawl_env_post(f->env, 0, &reader.task));
    reader.note = 7;
    assert_ok(pawl_env_post(f->env, 0, &reader.task));
    atomic_store_explicit(&blocker.go, true, memory_order_relaxed);
    env_await(f, 1);
    env_fixture_close(f);
    assert_int_equal(env_recorded(f), 1);
    assert_int_equal(f->values[0], 7);
    env_fixture_free(f);
}

/* All threads post one task, each after it has written its own number: the last run sees the last of all. */
struct shared {
    pawl_task task;
    struct env_fixture *f;
    _Atomic uint64_t numbers[THREADS];
    bool complete;
};

struct teller {
    pthread_t thread;
    struct shared *shared;
    int index;
};

static void look(pawl_task *task)
{
    struct shared *s = (struct shared *)task;
    bool complete = true;
    for (int t = 0; t < THREADS; t++)
        complete &= atomic_load_explicit(&s->numbers[t], memory_order_relaxed) == EACH;
    if (complete && !s->complete)
        env_record(s->f, 1);
    s->complete = complete;
}

static void *tell(void *arg)
{
    struct teller *t = arg;
    for (uint64_t i = 1; i <= EACH; i++) {
        atomic_store_explicit(&t->shared->numbers[t->index], i, memory_order_relaxed);
        pawl_env_post(t->shared->f->env, 0, &t->shared->task);
    }
    return NULL;
}

TEST(no_post_is_lost_when_many_threads_post_one_task)
{
    struct env_fixture *f = env_fixture_new(&contract, 1);
    for (size_t round = 1; round <= 20; round++) {
        struct shared shared = {.task.fn = look, .f = f};
        struct teller tellers[THREADS];
        for (int t = 0; t < THREADS; t++) {
            tellers[t] = (struct teller){.shared = &shared, .index = t};
            assert_int_equal(pthread_create(&tellers[t].thread, NULL, tell, &tellers[t]), 0);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(tellers[t].thread, NULL);
        env_await(f, round);
        struct mail fence = {.task.fn = record_mail, .f = f}; /* the task may be queued once more */
        assert_ok(pawl_env_post(f->env, 0, &fence.task));
        env_await(f, round + 1);
        f->count--;
    }
    env_fixture_free(f);
}

static void *send_until_refused(void *arg)
{
    struct sender *s = arg;
    int status = PAWL_OK;
    for (uint64_t i = 0; i < EACH && status == PAWL_OK; i++) {
        status = pawl_env_post(s->f->env, (uint32_t)(i % 2), &s->mails[i].task);
        s->accepted += status == PAWL_OK;
    }
    atomic_fetch_add(s->refused, 1);
    return NULL;
}

struct gate {
    pawl_task task;
    _Atomic uint64_t *refused;
};

static void hold_until_refused(pawl_task *task)
{
    struct gate *gate = (struct gate *)task;
    while (atomic_load(gate->refused) < THREADS)
        sched_yield();
}

TEST(every_post_that_was_accepted_while_closing_is_run)
{
    for (int round = 0; round < 20; round++) {
        struct env_fixture *f = env_fixture_new(&contract, 2);
        struct sender senders[THREADS] = {0};
        _Atomic uint64_t refused = 0;
        struct gate gate = {.task.fn = hold_until_refused, .refused = &refused};
        for (int t = 0; t < THREADS; t++)
            senders[t].refused = &refused;
        senders_start(senders, f, send_until_refused);
        assert_ok(pawl_env_post(f->env, 1, &gate.task)); /* keeps the env open until all have done with it */
        env_fixture_close(f);
        senders_join(senders);
        uint64_t accepted = 0;
        for (int t = 0; t < THREADS; t++)
            accepted += senders[t].accepted;
        assert_int_equal(env_recorded(f), accepted);
        env_fixture_free(f);
        senders_free(senders);
    }
}

/* Two timers that are due together: the first goes on until shutdown has begun. */
struct late {
    pawl_task set, other;
    pawl_timer first, second;
    struct env_fixture *f;
};

static void late_other(pawl_task *task)
{
}

static void late_set(pawl_task *task)
{
    struct late *l = (struct late *)task;
    pawl_env_after(l->f->env, &l->first, 0);
    pawl_env_after(l->f->env, &l->second, 0);
}

static void late_first(pawl_timer *timer)
{
    struct late *l = (struct late *)(void *)((char *)timer - offsetof(struct late, first));
    env_record(l->f, 1);
    while (pawl_env_post(l->f->env, 0, &l->other) == PAWL_OK)
        sched_yield();
}

static void late_second(pawl_timer *timer)
{
    struct late *l = (struct late *)(void *)((char *)timer - offsetof(struct late, second));
    env_record(l->f, 2);
}

TEST(a_timer_that_is_due_when_shutdown_begins_does_not_fire)
{
    struct env_fixture *f = env_fixture_new(&contract, 1);
    struct late l = {.set.fn = late_set, .other.fn = late_other, .f = f};
    l.first.fn = late_first;
    l.second.fn = late_second;
    assert_ok(pawl_env_post(f->env, 0, &l.set));
    env_await(f, 1);
    env_fixture_close(f);
    assert_int_equal(env_recorded(f), 1);
    assert_int_equal(f->values[0], 1);
    env_fixture_free(f);
}

struct cross {
    pawl_task task;
    pawl_env *to;
    pawl_task *next;
};

static void pass_on(pawl_task *task)
{
    struct cross *c = (struct cross *)task;
    pawl_env_post(c->to, 0, c->next);
}

TEST(a_shard_of_one_env_posts_to_another)
{
    struct env_fixture *a = env_fixture_new(&contract, 1);
    struct env_fixture *b = env_fixture_new(&contract, 1);
    struct mail last = {.task.fn = record_mail, .f = a, .id = 42};
    struct cross back = {.task.fn = pass_on, .to = a->env, .next = &last.task};
    struct cross there = {.task.fn = pass_on, .to = b->env, .next = &back.task};
    assert_ok(pawl_env_post(a->env, 0, &there.task));
    env_await(a, 1);
    assert_int_equal(a->values[0], 42);
    env_fixture_free(a);
    env_fixture_free(b);
}

/* A shard waits awake for a moment before it sleeps: posts that come about when that is over. */
TEST(a_post_to_a_shard_that_is_falling_asleep_is_run)
{
    enum { POSTS = 8000, PAUSES = 100 };
    struct env_fixture *f = env_fixture_new(&contract, 1);
    struct mail mail = {.task.fn = record_mail, .f = f};
    for (size_t i = 0; i < POSTS; i++) {
        uint64_t until = pawl_env_now(f->env).ns + i % PAUSES * PAWL_MICROSECOND;
        while (pawl_env_now(f->env).ns < until)
            ;
        mail.id = i;
        assert_ok(pawl_env_post(f->env, 0, &mail.task));
        env_await(f, i + 1);
    }
    env_fixture_free(f);
}

/* The stop is put while the shard is busy with the last work's done, so it need not be woken for it. */
struct last_work {
    pawl_work work;
    pawl_task start, other;
    struct env_fixture *f;
    uint64_t busy_ns;
};

static void last_other(pawl_task *task)
{
}

/* Until shutdown has begun, so that nothing but the stop comes behind done. */
static void last_fn(pawl_work *work)
{
    struct last_work *l = (struct last_work *)work;
    env_record(l->f, 1);
    while (pawl_env_post(l->f->env, 0, &l->other) == PAWL_OK)
        sched_yield();
}

static void last_done(pawl_work *work)
{
    const struct last_work *l = (const struct last_work *)work;
    uint64_t until = pawl_env_now(l->f->env).ns + l->busy_ns;
    while (pawl_env_now(l->f->env).ns < until)
        ;
    env_record(l->f, 2);
}

static void last_start(pawl_task *task)
{
    struct last_work *l = (struct last_work *)(void *)((char *)task - offsetof(struct last_work, start));
    assert_ok(pawl_env_work(l->f->env, &l->work));
}

TEST(a_shard_is_closed_while_it_is_busy_with_the_last_of_its_mail)
{
    for (uint64_t round = 0; round < 400; round++) {
        struct env_fixture *f = env_fixture_new(&contract, 1);
        struct last_work last = {.work = {.fn = last_fn, .done = last_done},
                                 .start.fn = last_start,
                                 .other.fn = last_other,
                                 .f = f,
                                 .busy_ns = round % 100 * 10 * PAWL_MICROSECOND};
        assert_ok(pawl_env_post(f->env, 0, &last.start));
        env_await(f, 1);
        env_fixture_close(f);
        assert_int_equal(env_recorded(f), 2);
        env_fixture_free(f);
    }
}

static size_t count_entries(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

TEST(an_env_leaves_no_descriptor_behind)
{
    env_fixture_free(env_fixture_new(&contract, 1));
    size_t descriptors = count_entries("/proc/self/fd");
    for (int i = 0; i < 20; i++)
        env_fixture_free(env_fixture_new(&contract, 4));
    assert_int_equal(count_entries("/proc/self/fd"), descriptors);
}

static void *counted_resize(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    int *left = ctx;
    if (new_size && (*left)-- <= 0)
        return NULL;
    if (new_size)
        return realloc(memory, new_size);
    free(memory);
    return NULL;
}

TEST(opening_without_memory_leaves_nothing_behind)
{
    pawl_error error;
    for (int allowed = 0; allowed < 2; allowed++) {
        int left = allowed;
        pawl_allocator allocator = {counted_resize, &left};
        struct uv_env_options options = {.shards = 2, .pool_threads = 2, .allocator = &allocator};
        struct uv_env *env = NULL;
        assert_status(uv_env_open(&options, &env, &error), PAWL_ENOMEM);
        assert_null(env);
    }
}

TEST(an_env_without_threads_is_refused)
{
    static const struct uv_env_options options[] = {
        {.shards = 0, .pool_threads = 1},
        {.shards = 1, .pool_threads = 0},
        {.shards = 1025, .pool_threads = 1},
        {.shards = 1, .pool_threads = UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        struct uv_env *env = NULL;
        assert_status(uv_env_open(&options[i], &env, NULL), PAWL_EINVAL);
        assert_null(env);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENV_CONTRACT_TESTS(ENV_CONTRACT_RUN) /* */
        RUN(posts_of_many_threads_all_run_each_threads_in_their_order),
        RUN(a_run_sees_what_was_written_before_a_post_that_found_the_task_queued),
        RUN(no_post_is_lost_when_many_threads_post_one_task),
        RUN(a_timer_that_is_due_when_shutdown_begins_does_not_fire),
        RUN(every_post_that_was_accepted_while_closing_is_run),
        RUN(a_shard_of_one_env_posts_to_another),
        RUN(a_post_to_a_shard_that_is_falling_asleep_is_run),
        RUN(a_shard_is_closed_while_it_is_busy_with_the_last_of_its_mail),
        RUN(an_env_leaves_no_descriptor_behind),
        RUN(opening_without_memory_leaves_nothing_behind),
        RUN(an_env_without_threads_is_refused),
    };
    const char *shared = getenv("PAWL_THREADS");
    threads = shared ? (uint32_t)strtoul(shared, NULL, 10) : 0;
    return TEST_MAIN(tests);
}
