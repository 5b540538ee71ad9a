/* Leases that outlive their table: what the store is told and when, what it gives back, and what a table makes of
 * rows that are old, wrong or lost. Scripts as in test/lib/lease.h, and a random history at the end. */
#include "test/lib/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "test/lib/lease.h"

static void play_kept(const char *script)
{
    static struct lease_twin twin;
    twin = (struct lease_twin){0};
    pawl_leases_options options = {
        .projections = 2, .window = 8, .store = &lease_twin_store, .store_ctx = &twin};
    play(&options, script);
}

TEST(a_kept_lease_is_the_same_after_a_restart_and_its_time_runs_anew)
{
    play_kept("bind 3            -> 1 2 3\n"
              "keep ab for 100s  -> a=1 b=2\n"
              "settle            -> ok\n"
              "rows              -> 1=a 2=b\n"
              "wait 90s          -> quiet\n"
              "power 1           ->\n"
              "list              -> none\n"
              "awaits a          -> yes\n"
              "bind 3            -> 1 2 3\n"
              "list              -> 1:leased 2:leased 3:bound\n"
              "look 1            -> leased try 1 for 100s\n"
              "acquire c         -> c=3\n"
              "acquire d         -> not found\n"
              "wait 99s          -> changed 1\n" /* c; a and b were granted 189 s ago */
              "ready b           -> ok\n"
              "extend a for 50s  -> ok\n"
              "wait 49s          -> quiet\n"
              "ready a           -> ok\n"
              "take              -> 1=a 2=b\n"
              "commit 2          -> ok\n"
              "rows              -> none\n"
              "figures active expired fenced -> 0 1 0\n");
}

TEST(a_worker_that_does_not_come_back_loses_its_number_as_any_other)
{
    play_kept("bind              -> 1\n"
              "keep a for 10s    -> a=1\n"
              "settle            -> ok\n"
              "power 1           ->\n"
              "wait 3600s        -> quiet\n" /* it runs from the bind on */
              "bind              -> 1\n"
              "wait 9999ms       -> quiet\n"
              "wait 3ms          -> changed 1\n"
              "rows              -> none\n"
              "look 1            -> bound try 1 for 20s \"it took longer than its lease\"\n"
              "keep b            -> b=1\n"
              "look 1            -> leased try 2 for 30s \"it took longer than its lease\"\n"
              "ready a           -> fenced\n"
              "ready b           -> ok\n");
}

TEST(who_works_inside_the_process_does_not_touch_the_store)
{
    static struct lease_twin twin;
    twin = (struct lease_twin){.keep_status = PAWL_EIO, .settle_status = PAWL_EIO};
    pawl_leases_options options = {.store = &lease_twin_store, .store_ctx = &twin};
    play(&options, "bind 4          -> 1 2 3 4\n"
                   "acquire abcd    -> a=1 b=2 c=3 d=4\n"
                   "extend a        -> ok\n"
                   "release b       -> ok\n"
                   "fail c          -> ok\n"
                   "reclaim 4       -> ok\n"
                   "ready a         -> ok\n"
                   "take            -> 1=a\n"
                   "commit 1        -> ok\n");
    assert_int_equal(twin.kept + twin.dropped, 0);
}

TEST(without_a_store_nothing_is_kept)
{
    play(NULL, "bind             -> 1\n"
               "keep a           -> misuse\n"
               "settle           -> ok\n"
               "acquire a        -> a=1\n"
               "awaits a         -> no\n");
}

TEST(a_lease_that_is_over_is_dropped_however_it_ended)
{
    play_kept("bind 8            -> 1 2 3 4 5 6 7 8\n"
              "keep abcdefgh     -> a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8\n"
              "rows              -> 1=a 2=b 3=c 4=d 5=e 6=f 7=g 8=h\n"
              "release a         -> ok\n"
              "rows              -> 2=b 3=c 4=d 5=e 6=f 7=g 8=h\n"
              "fail b            -> ok\n"
              "rows              -> 3=c 4=d 5=e 6=f 7=g 8=h\n"
              "postpone c        -> ok\n"
              "rows              -> 4=d 5=e 6=f 7=g 8=h\n"
              "break d           -> ok\n"
              "rows              -> 5=e 6=f 7=g 8=h\n"
              "reclaim 5         -> ok\n"
              "rows              -> 6=f 7=g 8=h\n"
              "void 6            -> ok\n"
              "rows              -> 7=g 8=h\n"
              "extend g for 60s  -> ok\n"
              "wait 31s          -> changed 3\n" /* h; and b, c, which back off */
              "rows              -> 7=g\n"
              "restart 1         ->\n"
              "bind 8            -> 1 2 3 4 5 6 7 8\n"
              "list              -> 1:bound 2:bound 3:bound 4:bound 5:bound 6:bound 7:leased 8:bound\n");
}

TEST(a_result_that_waits_for_its_turn_leaves_its_lease_in_the_store_until_it_is_committed)
{
    play_kept("bind 2            -> 1 2\n"
              "keep ab           -> a=1 b=2\n"
              "settle            -> ok\n"
              "ready b           -> ok\n"
              "ready a           -> ok\n"
              "take 1            -> 1=a\n"
              "rows              -> 1=a 2=b\n"
              "power 1           ->\n" /* the commit was lost */
              "bind 2            -> 1 2\n"
              "ready b           -> ok\n"
              "ready a           -> ok\n"
              "take              -> 1=a 2=b\n"
              "repeat 2          -> ok\n" /* what it rests on has changed: the attempt is over */
              "rows              -> 1=a\n"
              "commit 1          -> ok\n"
              "rows              -> none\n");
}

TEST(a_committed_number_is_not_leased_again_though_its_row_is_left)
{
    play_kept("bind 3            -> 1 2 3\n"
              "keep abc          -> a=1 b=2 c=3\n"
              "settle            -> ok\n"
              "ready a           -> ok\n"
              "take              -> 1=a\n"
              "commit 1          -> ok\n"
              "rows              -> 2=b 3=c\n"
              "power 3           ->\n" /* 2 was committed too; the store has not heard of either */
              "rows              -> 3=c\n"
              "ready a           -> fenced\n"
              "bind              -> 3\n"
              "list              -> 3:leased\n");
}

TEST(a_restarted_table_that_is_reset_drops_what_was_committed_and_awaits_the_rest)
{
    play_kept("bind 4            -> 1 2 3 4\n"
              "keep abcd         -> a=1 b=2 c=3 d=4\n"
              "settle            -> ok\n"
              "power 1           ->\n"
              "reset 3           -> ok\n"
              "rows              -> 3=c 4=d\n"
              "ready b           -> fenced\n"
              "awaits c          -> yes\n"
              "ready c           -> busy\n"
              "extend c          -> busy\n"
              "release c         -> busy\n"
              "fail c            -> busy\n"
              "bind 2            -> 3 4\n"
              "ready d           -> ok\n"
              "awaits c          -> no\n"
              "reset 3           -> 3 4=d ok\n" /* the log failed, and all begins anew in the same life */
              "rows              -> 3=c 4=d\n"
              "bind 2            -> 3 4\n"
              "list              -> 3:leased 4:leased\n"
              "ready d           -> ok\n"
              "ready c           -> ok\n"
              "take              -> 3=c 4=d\n");
}

TEST(an_attempt_that_was_superseded_does_not_come_back)
{
    play_kept("bind              -> 1\n"
              "keep a for 1s     -> a=1\n"
              "settle            -> ok\n"
              "wait 2s           -> changed 1\n"
              "keep b            -> b=1\n"
              "settle            -> ok\n"
              "power 1           ->\n"
              "bind              -> 1\n"
              "look 1            -> leased try 2 for 30s\n"
              "ready a           -> fenced\n"
              "ready b           -> ok\n");
}

TEST(what_was_granted_and_not_settled_is_given_out_anew)
{
    play_kept("bind              -> 1\n"
              "keep a            -> a=1\n"
              "power 1           ->\n"
              "bind              -> 1\n"
              "look 1            -> bound\n"
              "keep b            -> b=1\n"
              "ready a           -> fenced\n");
}

TEST(a_row_of_another_projection_or_without_sense_is_dropped)
{
    static struct lease_twin twin;
    twin = (struct lease_twin){
        .count = 4,
        .rows = {{.number = 1, .operation = {1, 2}, .projection = 1, .attempt = 1},
                 {.number = 2, .operation = {0, 0}, .attempt = 1},
                 {.number = 3, .operation = {1, 2}, .attempt = 0},
                 {.number = 4, .operation = {1, 2}, .attempt = 7, .failures = 3, .duration = UINT64_MAX}}};
    pawl_leases_options options = {.store = &lease_twin_store, .store_ctx = &twin, .attempts_max = 4};
    play(&options, "forge z 4       ->\n"
                   "bind 4          -> 1 2 3 4\n"
                   "list            -> 1:bound 2:bound 3:bound 4:leased\n"
                   "look 4          -> leased try 7 for 600s\n" /* a bounded time */
                   "rows            -> 4=z\n"
                   "fail z          -> ok\n"
                   "look 4          -> stalled try 7 for 600s\n" /* its fourth failure */
                   "rows            -> none\n");
}

TEST(a_restored_number_that_comes_back_does_not_go_before_a_lower_one_that_nobody_has_had)
{
    play_kept("bind 3            -> 1 2 3\n"
              "keep abc          -> a=1 b=2 c=3\n"
              "release a         -> ok\n"
              "settle            -> ok\n"
              "power 1           ->\n"
              "bind 3            -> 1 2 3\n"
              "release c         -> ok\n"
              "peek              -> 1\n"
              "acquire de        -> d=1 e=3\n");
}

TEST(an_estimate_does_not_learn_from_an_attempt_that_it_has_not_seen_begin)
{
    play_kept("bind              -> 1\n"
              "keep a            -> a=1\n"
              "settle            -> ok\n"
              "power 1           ->\n"
              "bind              -> 1\n"
              "wait 1ms          -> quiet\n"
              "ready a           -> ok\n"
              "estimate          -> 30s\n");
}

TEST(a_late_worker_that_extends_or_hands_in_is_kept_again)
{
    play_kept("bind 2            -> 1 2\n"
              "keep ab for 5s    -> a=1 b=2\n"
              "wait 6s           -> changed 1\n"
              "rows              -> none\n"
              "extend a for 20s  -> ok\n"
              "ready b           -> ok\n"
              "rows              -> 1=a 2=b\n"
              "settle            -> ok\n"
              "power 1           ->\n"
              "bind 2            -> 1 2\n"
              "look 1            -> leased try 1 for 20s\n"
              "list 2            -> 2:leased\n");
}

/* --- a store that fails --- */

static void begin_failing(struct desk *desk, struct lease_twin *twin)
{
    *twin = (struct lease_twin){0};
    desk_open(desk, &(pawl_leases_options){.store = &lease_twin_store, .store_ctx = twin});
}

TEST(a_store_that_refuses_leaves_the_number_as_it_was)
{
    static struct lease_twin twin;
    struct desk desk;
    begin_failing(&desk, &twin);
    desk_play(&desk, "bind 2          -> 1 2\n"
                     "keep a for 1s   -> a=1\n"
                     "wait 2s         -> changed 1\n");
    twin.keep_status = PAWL_EFULL;
    desk_play(&desk, "keep b          -> PAWL_EFULL\n"
                     "look 1          -> bound try 1 for 2s \"it took longer than its lease\"\n"
                     "extend a        -> PAWL_EFULL\n"
                     "look 1          -> bound try 1 for 2s \"it took longer than its lease\"\n"
                     "figures active acquired -> 0 1\n"
                     "ready a         -> ok\n" /* nobody else has begun; a result does not need the store */
                     "take            -> 1=a\n"
                     "acquire c       -> c=2\n"); /* nor does who works inside */
    twin.keep_status = PAWL_OK;
    desk_play(&desk, "release c       -> ok\n"
                     "keep b          -> b=2\n"
                     "rows            -> 2=b\n"
                     "commit 1        -> ok\n");
    desk_close(&desk);
}

TEST(a_lease_that_could_not_be_settled_is_released_and_never_comes_back)
{
    static struct lease_twin twin;
    struct desk desk;
    begin_failing(&desk, &twin);
    twin.settle_status = PAWL_EIO;
    desk_play(&desk, "bind            -> 1\n"
                     "keep a          -> a=1\n"
                     "settle          -> PAWL_EIO\n"
                     "release a       -> ok\n"
                     "look 1          -> bound for 30s\n");
    twin.settle_status = PAWL_OK;
    desk_play(&desk, "keep b          -> b=1\n"
                     "settle          -> ok\n"
                     "power 1         ->\n"
                     "bind            -> 1\n"
                     "rows            -> 1=b\n"
                     "ready a         -> fenced\n"
                     "ready b         -> ok\n");
    desk_close(&desk);
}

/* --- a store that is slow: workers under a lock, each of whom waits for the disk without it --- */

enum { SLOW_WORKERS = 8, SLOW_ROUNDS = 50 };

struct slow {
    pthread_mutex_t lock; /* the table's */
    pawl_leases *leases;
    struct lease_twin twin;

    pthread_mutex_t disk;
    pthread_cond_t synced;
    uint64_t told, durable; /* rows */
    uint64_t syncs;
    bool syncing;
    _Atomic uint64_t answered;
};

static int slow_keep(void *ctx, const pawl_lease_row *row)
{
    struct slow *slow = ctx;
    pthread_mutex_lock(&slow->disk);
    slow->told++;
    int status = lease_twin_store.keep(&slow->twin, row);
    pthread_mutex_unlock(&slow->disk);
    return status;
}

static void slow_drop(void *ctx, uint64_t number)
{
    struct slow *slow = ctx;
    pthread_mutex_lock(&slow->disk);
    lease_twin_store.drop(&slow->twin, number);
    pthread_mutex_unlock(&slow->disk);
}

static bool slow_find(void *ctx, uint64_t from, pawl_lease_row *ret_row)
{
    struct slow *slow = ctx;
    pthread_mutex_lock(&slow->disk);
    bool found = lease_twin_store.find(&slow->twin, from, ret_row);
    pthread_mutex_unlock(&slow->disk);
    return found;
}

/* Whoever comes first syncs for all who have come; the others wait. While it syncs, the table's lock is taken and
 * given back: a store that was called under it would never end. */
static int slow_settle(void *ctx)
{
    struct slow *slow = ctx;
    pthread_mutex_lock(&slow->disk);
    uint64_t mine = slow->told;
    while (slow->durable < mine) {
        if (slow->syncing) {
            pthread_cond_wait(&slow->synced, &slow->disk);
            continue;
        }
        slow->syncing = true;
        pthread_mutex_unlock(&slow->disk);
        pthread_mutex_lock(&slow->lock);
        pthread_mutex_unlock(&slow->lock);
        pthread_mutex_lock(&slow->disk);
        (void)lease_twin_store.settle(&slow->twin);
        slow->durable = slow->told;
        slow->syncs++;
        slow->syncing = false;
        pthread_cond_broadcast(&slow->synced);
    }
    pthread_mutex_unlock(&slow->disk);
    return PAWL_OK;
}

static void *work_slowly(void *arg)
{
    struct slow *slow = arg;
    for (unsigned i = 0; i < SLOW_ROUNDS; i++) {
        pawl_lease lease;
        pawl_lease_row row;
        pawl_turn turn;
        size_t count;
        uint64_t number;
        pthread_mutex_lock(&slow->lock);
        assert_ok(pawl_leases_bind(slow->leases, 0, NULL, 0, &number));
        assert_ok(pawl_leases_acquire_kept(slow->leases, 0, 0, 1, &lease, &count));
        pthread_mutex_unlock(&slow->lock);
        assert_ok(pawl_leases_settle(slow->leases));
        pthread_mutex_lock(&slow->disk); /* it is answered now, so it is durable */
        size_t r = 0;
        while (r < slow->twin.count && slow->twin.rows[r].number != lease.number)
            r++;
        assert_true(r < slow->twin.count);
        row = slow->twin.rows[r];
        pthread_mutex_unlock(&slow->disk);
        assert_true(row.operation.high == lease.operation.high && row.operation.low == lease.operation.low);
        pthread_mutex_lock(&slow->lock);
        assert_ok(pawl_leases_ready(slow->leases, lease.number, lease.operation, slow, NULL));
        while (pawl_leases_take(slow->leases, 1, &turn))
            assert_ok(pawl_leases_commit(slow->leases, turn.number));
        pthread_mutex_unlock(&slow->lock);
        atomic_fetch_add(&slow->answered, 1);
    }
    return NULL;
}

TEST(workers_wait_for_a_slow_store_beside_each_other_and_share_its_syncs)
{
    static const pawl_lease_store store = {slow_keep, slow_drop, slow_find, slow_settle};
    static struct slow slow;
    struct mem_world *world;
    struct mem_env *env;
    pthread_t threads[SLOW_WORKERS];
    pawl_lease_row row;
    slow = (struct slow){0};
    pthread_mutex_init(&slow.lock, NULL);
    pthread_mutex_init(&slow.disk, NULL);
    pthread_cond_init(&slow.synced, NULL);
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = 1}, &world, NULL));
    assert_ok(mem_env_open(world, &(struct mem_env_options){.shards = 1}, &env, NULL));
    pawl_leases_options options = {
        .env = mem_env_port(env), .untimed = true, .store = &store, .store_ctx = &slow};
    assert_ok(pawl_leases_new(&options, &slow.leases, NULL));
    for (unsigned i = 0; i < SLOW_WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_slowly, &slow), 0);
    for (unsigned i = 0; i < SLOW_WORKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(slow.answered, SLOW_WORKERS * SLOW_ROUNDS);
    assert_true(slow.syncs <= slow.told);
    assert_false(slow_find(&slow, 0, &row)); /* it holds what is active, and no more */
    pawl_leases_free(slow.leases);
    mem_world_close(world);
}

/* --- a random history: what was answered and is not over is there again; nothing else is --- */

enum { RANDOM_WINDOW = 8, RANDOM_LIVES = 12, RANDOM_STEPS = 120 };

struct held {
    uint64_t number;
    pawl_operation_id operation;
    uint32_t attempt;
    bool kept;
    bool answered;
    bool over;
};

struct history {
    uint64_t random;
    struct desk desk;
    struct lease_twin twin;
    struct held held[RANDOM_LIVES * RANDOM_STEPS];
    size_t count;
    uint64_t committed; /* as a log has it, which is durable */
    uint64_t restored, superseded;
};

static struct held *some_held(struct history *h)
{
    return h->count ? &h->held[h->count - 1 - test_below(&h->random, h->count < 12 ? h->count : 12)] : NULL;
}

/* Whoever had the number before has it no longer. */
static void take_over(struct history *h, const pawl_lease *lease, bool kept)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->held[i].number == lease->number && !h->held[i].over) {
            h->held[i].over = true;
            h->superseded++;
        }
    h->held[h->count++] = (struct held){
        .number = lease->number, .operation = lease->operation, .attempt = lease->attempt, .kept = kept};
}

static void answer_all(struct history *h)
{
    assert_ok(pawl_leases_settle(h->desk.leases));
    for (size_t i = 0; i < h->count; i++)
        h->held[i].answered = true;
}

static void commit_some(struct history *h)
{
    pawl_turn turn;
    while (pawl_leases_take(h->desk.leases, 1, &turn)) {
        assert_ok(pawl_leases_commit(h->desk.leases, turn.number));
        h->committed = turn.number;
    }
}

static bool is_row(const struct history *h, const struct held *held)
{
    pawl_lease_row row;
    return lease_twin_get(&h->twin, held->number, &row) && row.operation.high == held->operation.high
           && row.operation.low == held->operation.low;
}

/* Late, it is kept again; but it was told nothing yet, so nobody has settled that. */
static void hand_in(struct history *h, struct held *held)
{
    if (!held || held->number <= h->committed)
        return;
    bool was_late = !is_row(h, held);
    if (pawl_leases_ready(h->desk.leases, held->number, held->operation, NULL, NULL) != PAWL_OK)
        return;
    assert_false(held->over);
    held->answered = held->answered && !was_late;
}

static void act(void *arg)
{
    struct history *h = arg;
    pawl_leases *leases = h->desk.leases;
    struct held *held = some_held(h);
    pawl_lease lease;
    uint64_t number;
    size_t count;
    switch (test_below(&h->random, 12)) {
    case 0:
    case 1: (void)pawl_leases_bind(leases, 0, NULL, 0, &number); break;
    case 2:
    case 3:
    case 4:
        if (h->count < sizeof h->held / sizeof h->held[0]
            && pawl_leases_acquire_kept(leases, 0, 5 * PAWL_SECOND, 1, &lease, &count) == PAWL_OK)
            take_over(h, &lease, true);
        break;
    case 5:
        if (h->count < sizeof h->held / sizeof h->held[0]
            && pawl_leases_acquire(leases, 0, 5 * PAWL_SECOND, 1, &lease, &count) == PAWL_OK) {
            take_over(h, &lease, false);
            if (test_below(&h->random, 2)) /* or it hangs */
                (void)pawl_leases_ready(leases, lease.number, lease.operation, NULL, NULL);
        }
        break;
    case 6:
    case 7: answer_all(h); break;
    case 8:
    case 9:
        hand_in(h, held);
        commit_some(h);
        break;
    case 10:
        if (held && pawl_leases_release(leases, held->number, held->operation, "") == PAWL_OK) {
            assert_false(held->over);
            held->over = true;
        }
        break;
    default:
        if (held && pawl_leases_reclaim(leases, held->number) == PAWL_OK)
            for (size_t i = 0; i < h->count; i++)
                h->held[i].over = h->held[i].over || h->held[i].number == held->number;
        break;
    }
}

/* Its lease ran out unnoticed, or was dropped in some other way that the table chose: the store says so. */
static void check_rows(struct history *h)
{
    size_t rows = 0;
    pawl_lease_row row;
    for (uint64_t from = 0; lease_twin_store.find(&h->twin, from, &row); from = row.number + 1)
        rows++;
    assert_true(rows <= RANDOM_WINDOW); /* L5 */
    for (size_t i = 0; i < h->count; i++)
        if (h->held[i].over || h->held[i].number <= h->committed)
            assert_false(is_row(h, &h->held[i]));
}

/* The process ends, and the table begins again behind what is committed. Everything is bound again. */
static void live_again(void *arg)
{
    struct history *h = arg;
    struct desk *desk = &h->desk;
    bool had[sizeof h->held / sizeof h->held[0]] = {false};
    for (size_t i = 0; i < h->count; i++)
        had[i] = is_row(h, &h->held[i]);
    pawl_leases_free(desk->leases);
    size_t survive = test_below(&h->random, 3) ? test_below(&h->random, h->twin.op_count + 1) : 0;
    lease_twin_crash(&h->twin, survive);
    desk->options.next = h->committed + 1;
    assert_ok(pawl_leases_new(&desk->options, &desk->leases, NULL));
    for (uint64_t n = 0, number; n < RANDOM_WINDOW; n++)
        assert_ok(pawl_leases_bind(desk->leases, 0, NULL, 0, &number));
    for (size_t i = 0; i < h->count; i++) {
        struct held *held = &h->held[i];
        bool is_there = held->number > h->committed && is_row(h, held);
        assert_true(held->kept || !is_there);
        if (had[i] && held->answered && !held->over && held->number > h->committed)
            assert_true(is_there); /* W1 of worker.h */
        if (is_there) {
            int status = pawl_leases_extend(desk->leases, held->number, held->operation, 5 * PAWL_SECOND);
            assert_ok(status);
            held->over = false; /* its removal was told, and was lost with the power */
            h->restored++;
        } else if (held->number > h->committed) {
            held->over = true;
            int status = pawl_leases_extend(desk->leases, held->number, held->operation, 5 * PAWL_SECOND);
            assert_status(status, PAWL_EFENCED);
        }
    }
}

static void run_history(uint64_t seed, struct history *totals)
{
    static struct history history;
    struct history *h = &history;
    *h = (struct history){.random = seed};
    desk_open_seeded(
        &h->desk,
        &(pawl_leases_options){.window = RANDOM_WINDOW, .store = &lease_twin_store, .store_ctx = &h->twin},
        seed);
    for (unsigned life = 0; life < RANDOM_LIVES; life++) {
        for (unsigned i = 0; i < RANDOM_STEPS / 2; i++) {
            desk_run(&h->desk, act, h);
            check_rows(h);
            if (test_below(&h->random, 12) == 0)
                mem_world_advance(h->desk.world, test_below(&h->random, 4 * PAWL_SECOND));
        }
        desk_run(&h->desk, live_again, h);
    }
    totals->restored += h->restored;
    totals->superseded += h->superseded;
    desk_close(&h->desk);
}

TEST(what_was_answered_and_is_not_over_is_there_after_any_crash)
{
    uint64_t first = test_seed(1), seeds = TEST_SANITIZED ? 60 : 300;
    static struct history totals;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        run_history(seed, &totals);
    print_message("# restored %" PRIu64 ", superseded %" PRIu64 "\n", totals.restored, totals.superseded);
    assert_true(totals.restored > seeds && totals.superseded > seeds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_kept_lease_is_the_same_after_a_restart_and_its_time_runs_anew),
        RUN(a_worker_that_does_not_come_back_loses_its_number_as_any_other),
        RUN(who_works_inside_the_process_does_not_touch_the_store),
        RUN(without_a_store_nothing_is_kept),
        RUN(a_lease_that_is_over_is_dropped_however_it_ended),
        RUN(a_result_that_waits_for_its_turn_leaves_its_lease_in_the_store_until_it_is_committed),
        RUN(a_committed_number_is_not_leased_again_though_its_row_is_left),
        RUN(a_restarted_table_that_is_reset_drops_what_was_committed_and_awaits_the_rest),
        RUN(an_attempt_that_was_superseded_does_not_come_back),
        RUN(what_was_granted_and_not_settled_is_given_out_anew),
        RUN(a_row_of_another_projection_or_without_sense_is_dropped),
        RUN(a_restored_number_that_comes_back_does_not_go_before_a_lower_one_that_nobody_has_had),
        RUN(an_estimate_does_not_learn_from_an_attempt_that_it_has_not_seen_begin),
        RUN(a_late_worker_that_extends_or_hands_in_is_kept_again),
        RUN(a_store_that_refuses_leaves_the_number_as_it_was),
        RUN(a_lease_that_could_not_be_settled_is_released_and_never_comes_back),
        RUN(workers_wait_for_a_slow_store_beside_each_other_and_share_its_syncs),
        RUN(what_was_answered_and_is_not_over_is_there_after_any_crash),
    };
    return TEST_MAIN(tests);
}
