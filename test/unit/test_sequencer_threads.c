/* A sequencer on real threads, as an embedding program uses it: the calls that block, and what other threads
 * may read. */
#include "test/lib/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include <pawl/sequencer.h>

#include "core/sequence/sequencer.h"

enum { KIND = 1, SEQ = 2, WORKSPACES = 16, OBSERVERS = 3 };

static const pawl_sequence sequences[] = {{SEQ, 1, 0}};
static const pawl_workspace_kind kinds[] = {{KIND, sequences, 1}};

/* A storage whose scan waits at a gate, and whose log is long. */
struct store {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool gate_shut;
    bool at_gate;
    uint64_t stored[WORKSPACES + 1];
    uint64_t last;
    uint64_t log_last;
    _Atomic uint64_t shown;
};

static int read_numbers(void *ctx, uint64_t wsid, const uint16_t *seqs, size_t count, uint64_t *ret_numbers,
                        pawl_error *error)
{
    struct store *store = ctx;
    pthread_mutex_lock(&store->lock);
    ret_numbers[0] = store->stored[wsid];
    pthread_mutex_unlock(&store->lock);
    return PAWL_OK;
}

static int read_last_offset(void *ctx, uint64_t *ret_last, pawl_error *error)
{
    *ret_last = ((struct store *)ctx)->last;
    return PAWL_OK;
}

static int write_values_and_offset(void *ctx, const pawl_sequence_row *rows, size_t count, uint64_t last,
                                   pawl_error *error)
{
    struct store *store = ctx;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < count; i++)
        store->stored[rows[i].wsid] = rows[i].number;
    store->last = last;
    pthread_mutex_unlock(&store->lock);
    return PAWL_OK;
}

static void pass_gate(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    store->at_gate = true;
    pthread_cond_broadcast(&store->moved);
    while (store->gate_shut)
        pthread_cond_wait(&store->moved, &store->lock);
    pthread_mutex_unlock(&store->lock);
}

static int scan_log(void *ctx, uint64_t after, pawl_sequence_batcher *batcher, uint64_t *ret_last,
                    pawl_error *error)
{
    struct store *store = ctx;
    pass_gate(store);
    *ret_last = store->log_last;
    for (uint64_t offset = after + 1; offset <= store->log_last; offset++) {
        pawl_sequence_number number = {SEQ, (offset + WORKSPACES - 1) / WORKSPACES};
        pawl_sequence_event event = {offset, (offset - 1) % WORKSPACES + 1, KIND, &number, 1};
        int status = batcher->take(batcher, &event, 1);
        if (status)
            return status;
        atomic_store(&store->shown, offset);
    }
    return PAWL_OK;
}

struct bench {
    pawl_env *env;
    pawl_sequencer *s;
    struct store store;
};

static void open_all(struct bench *b, bool gate_shut, uint64_t log_last)
{
    *b = (struct bench){.store = {.gate_shut = gate_shut, .log_last = log_last}};
    pthread_mutex_init(&b->store.lock, NULL);
    pthread_cond_init(&b->store.moved, NULL);
    assert_ok(pawl_env_open(NULL, &b->env, NULL));
    pawl_sequencer_options options = {
        .env = b->env,
        .storage = {&b->store, read_numbers, read_last_offset, write_values_and_offset, scan_log},
        .kinds = kinds,
        .kind_count = 1,
        .limits.flush_events = 3,
        .kinds_elsewhere = true, /* the storage is a number a workspace */
    };
    assert_ok(pawl_sequencer_new(&options, &b->s, NULL));
}

static void open_gate(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    store->gate_shut = false;
    pthread_cond_broadcast(&store->moved);
    pthread_mutex_unlock(&store->lock);
}

static void close_all(struct bench *b)
{
    assert_ok(pawl_sequencer_free(b->s));
    assert_ok(pawl_env_close(b->env));
    pthread_cond_destroy(&b->store.moved);
    pthread_mutex_destroy(&b->store.lock);
}

struct observer {
    struct bench *bench;
    _Atomic bool *stop;
    uint64_t looks;
};

static void *observe(void *arg)
{
    struct observer *o = arg;
    uint64_t before = 0;
    do {
        pawl_sequencer_figures figures;
        pawl_sequencer_figures_get(o->bench->s, &figures);
        assert_true(figures.state <= PAWL_SEQUENCER_FINISHED);
        assert_true(pawl_sequencer_state_get(o->bench->s) <= PAWL_SEQUENCER_FINISHED);
        assert_true(figures.offset_flushed >= before);
        before = figures.offset_flushed;
        o->looks++;
    } while (!atomic_load(o->stop));
    return NULL;
}

struct cycle {
    struct bench *bench;
    uint64_t wsid;
    uint64_t number;
    int status;
};

static void run_cycle(void *arg)
{
    struct cycle *c = arg;
    uint64_t offset;
    c->status = pawl_sequencer_start(c->bench->s, KIND, c->wsid, &offset);
    if (c->status == PAWL_OK)
        c->status = pawl_sequencer_next(c->bench->s, SEQ, &c->number);
    if (c->status == PAWL_OK)
        c->status = pawl_sequencer_flush(c->bench->s, offset);
}

TEST(others_may_look_while_it_works)
{
    struct bench b;
    pthread_t threads[OBSERVERS];
    struct observer observers[OBSERVERS];
    _Atomic bool stop = false;
    open_all(&b, false, 16 * 500);
    for (int i = 0; i < OBSERVERS; i++) {
        observers[i] = (struct observer){.bench = &b, .stop = &stop};
        assert_int_equal(pthread_create(&threads[i], NULL, observe, &observers[i]), 0);
    }
    assert_ok(pawl_sequencer_wait(b.s, 600 * PAWL_SECOND, NULL));
    for (uint64_t i = 0; i < 2000; i++) {
        struct cycle cycle = {.bench = &b, .wsid = i % WORKSPACES + 1};
        assert_ok(pawl_env_run(b.env, 0, run_cycle, &cycle));
        assert_ok(cycle.status);
        assert_int_equal(cycle.number, 501 + i / WORKSPACES);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < OBSERVERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(observers[i].looks > 0);
    }
    close_all(&b);
    assert_int_equal(b.store.last, 10000); /* free has written the rest */
    assert_int_equal(b.store.stored[1], 625);
}

struct asker {
    pawl_sequencer_waiter waiter;
    struct bench *bench;
    int busy;  /* what start answered before, */
    int again; /* and when it was told */
    uint64_t offset;
    bool told;
};

static void ready_again(pawl_sequencer_waiter *waiter, int status)
{
    struct asker *asker = (struct asker *)waiter;
    struct store *store = &asker->bench->store;
    if (status == PAWL_OK)
        asker->again = pawl_sequencer_start(asker->bench->s, KIND, 1, &asker->offset);
    pthread_mutex_lock(&store->lock);
    asker->told = true;
    pthread_cond_broadcast(&store->moved);
    pthread_mutex_unlock(&store->lock);
}

static void ask(void *arg)
{
    struct asker *asker = arg;
    asker->busy = pawl_sequencer_start(asker->bench->s, KIND, 1, &asker->offset);
    assert_ok(pawl_sequencer_when_ready(asker->bench->s, &asker->waiter));
}

TEST(who_was_busy_is_told_on_the_shard_and_starts)
{
    struct bench b;
    open_all(&b, true, 100);
    struct asker asker = {.waiter.fn = ready_again, .bench = &b, .again = 1};
    assert_ok(pawl_env_run(b.env, 0, ask, &asker));
    assert_status(asker.busy, PAWL_EBUSY);
    open_gate(&b.store);
    pthread_mutex_lock(&b.store.lock);
    while (!asker.told)
        pthread_cond_wait(&b.store.moved, &b.store.lock);
    pthread_mutex_unlock(&b.store.lock);
    assert_ok(asker.again);
    assert_int_equal(asker.offset, 101);
    close_all(&b);
}

TEST(waiting_ends_in_time_and_again_when_it_is_ready)
{
    struct bench b;
    pawl_error error = {0};
    open_all(&b, true, 100);
    assert_status(pawl_sequencer_wait(b.s, 0, &error), PAWL_ETIMEOUT);
    assert_contains(error.text, "recovering");
    assert_status(pawl_sequencer_wait(b.s, 2 * PAWL_MILLISECOND, NULL), PAWL_ETIMEOUT);
    open_gate(&b.store);
    assert_ok(pawl_sequencer_wait(b.s, 600 * PAWL_SECOND, &error));
    assert_ok(pawl_sequencer_wait(b.s, 0, NULL));
    close_all(&b);
}

static void *wait_long(void *arg)
{
    struct cycle *c = arg;
    c->status = pawl_sequencer_wait(c->bench->s, 600 * PAWL_SECOND, NULL);
    return NULL;
}

static void wait_on_the_shard(void *arg)
{
    struct cycle *c = arg;
    c->status = pawl_sequencer_wait(c->bench->s, 0, NULL);
}

static void free_on_the_shard(void *arg)
{
    struct cycle *c = arg;
    c->status = pawl_sequencer_free(c->bench->s);
}

static void run_on_the_shard(void *arg)
{
    struct cycle *c = arg;
    c->status = pawl_env_run(c->bench->env, 0, wait_on_the_shard, c);
}

TEST(what_would_wait_for_itself_is_misuse)
{
    struct bench b;
    open_all(&b, false, 0);
    void (*const calls[])(void *) = {wait_on_the_shard, free_on_the_shard, run_on_the_shard};
    for (size_t i = 0; i < 3; i++) {
        struct cycle cycle = {.bench = &b};
        assert_ok(pawl_env_run(b.env, 0, calls[i], &cycle));
        assert_status(cycle.status, PAWL_EMISUSE);
    }
    assert_status(pawl_env_run(b.env, 1, wait_on_the_shard, NULL), PAWL_EINVAL);
    close_all(&b);
}

static void has_waiter(void *arg)
{
    struct cycle *c = arg;
    c->number = c->bench->s->waiters != NULL;
}

TEST(freeing_tells_those_who_wait_and_ends_a_scan_in_its_middle)
{
    struct bench b;
    open_all(&b, false, UINT64_C(1) << 60);
    pthread_t thread;
    struct cycle cycle = {.bench = &b, .status = 1};
    assert_int_equal(pthread_create(&thread, NULL, wait_long, &cycle), 0);
    struct cycle look = {.bench = &b};
    while (atomic_load(&b.store.shown) < 1000 || !look.number)
        assert_ok(pawl_env_run(b.env, 0, has_waiter, &look));
    close_all(&b);
    pthread_join(thread, NULL);
    assert_status(cycle.status, PAWL_ECLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(others_may_look_while_it_works),
        RUN(who_was_busy_is_told_on_the_shard_and_starts),
        RUN(waiting_ends_in_time_and_again_when_it_is_ready),
        RUN(what_would_wait_for_itself_is_misuse),
        RUN(freeing_tells_those_who_wait_and_ends_a_scan_in_its_middle),
    };
    return TEST_MAIN(tests);
}
