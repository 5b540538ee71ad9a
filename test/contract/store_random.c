/* A store against a naive model, and readers on threads against a writer. */
#include "test/contract/store_contract.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "port/longkey.h"

#define KEYS       160
#define OPERATIONS 10000
#define VALUE_MAX  6000

/* The model: for each space and key, which of many possible values is there; 0: none. */
struct model {
    uint32_t value[PAWL_STORE_SPACES][KEYS];
};

struct held {
    pawl_reader *reader;
    struct model model;
};

struct play {
    struct store_rig *rig;
    uint64_t seed;
    pawl_bytes keys[KEYS]; /* in the store's order */
    struct model now, committed;
    struct held held[2];
    uint8_t value[VALUE_MAX];
};

static pawl_bytes value_of(struct play *p, uint32_t number)
{
    size_t size = number % 50 == 0 ? number % VALUE_MAX : number % 120;
    memset(p->value, (int)(number & 0xff), size);
    if (size >= 4)
        put_u32(p->value, number);
    return (pawl_bytes){p->value, size};
}

static int compare_keys(const void *a, const void *b)
{
    uint8_t room_a[PAWL_KEY_BYTES_SORTED], room_b[PAWL_KEY_BYTES_SORTED];
    return longkey_compare(longkey_place(*(const pawl_bytes *)a, room_a),
                           longkey_place(*(const pawl_bytes *)b, room_b));
}

/* Short, medium, and around and above the sorted limit, with long common prefixes; all different. */
static void make_keys(struct play *p)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        static const size_t sizes[] = {4, 12, 120, 506, 511, 512, 700, 3000};
        size_t size = sizes[test_below(&p->seed, 8)];
        uint8_t *key = malloc(size);
        memset(key, (int)('a' + test_below(&p->seed, 2)), size);
        put_u32(key + size - 4, i);
        p->keys[i] = (pawl_bytes){key, size};
    }
    qsort(p->keys, KEYS, sizeof p->keys[0], compare_keys);
}

/* A random range, and the indexes of the keys in it. */
static pawl_range choose_range(struct play *p, size_t *ret_first, size_t *ret_end)
{
    size_t a = test_below(&p->seed, KEYS + 1), b = test_below(&p->seed, KEYS + 1);
    pawl_range range = {.space = (uint8_t)test_below(&p->seed, PAWL_STORE_SPACES)};
    range.from = a ? p->keys[a - 1] : (pawl_bytes){0};
    range.to = b ? p->keys[b - 1] : (pawl_bytes){0};
    *ret_first = a ? a - 1 : 0;
    *ret_end = b ? b - 1 : KEYS;
    return range;
}

struct expect {
    struct play *play;
    const uint32_t *value;
    size_t at, end;
    bool reverse;
};

static bool expect_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct expect *e = arg;
    size_t i;
    do {
        assert_true(e->at < e->end);
        i = e->reverse ? --e->end : e->at++;
    } while (!e->value[i]);
    assert_true(bytes_equal(key, e->play->keys[i]));
    assert_true(bytes_equal(value, value_of(e->play, e->value[i])));
    return true;
}

static void check_scan(struct play *p, pawl_reader *reader, const struct model *model)
{
    size_t first, end;
    pawl_range range = choose_range(p, &first, &end);
    struct expect e = {.play = p,
                       .value = model->value[range.space],
                       .at = first,
                       .end = end,
                       .reverse = test_below(&p->seed, 2)};
    assert_ok(pawl_store_scan(reader, range, e.reverse, expect_row, &e));
    for (size_t i = e.at; i < e.end; i++)
        assert_int_equal(e.value[i], 0);
}

static void check_get(struct play *p, pawl_reader *reader, const struct model *model)
{
    size_t i = test_below(&p->seed, KEYS);
    uint8_t space = (uint8_t)test_below(&p->seed, PAWL_STORE_SPACES);
    uint32_t number = model->value[space][i];
    pawl_bytes value;
    assert_status(pawl_store_get(reader, space, p->keys[i], &value), number ? PAWL_OK : PAWL_ENOTFOUND);
    if (number)
        assert_true(bytes_equal(value, value_of(p, number)));
}

static void change(struct play *p)
{
    pawl_store *store = p->rig->store;
    size_t i = test_below(&p->seed, KEYS), first, end;
    uint8_t space = (uint8_t)test_below(&p->seed, PAWL_STORE_SPACES);
    uint32_t *at = &p->now.value[space][i];
    switch (test_below(&p->seed, 40)) {
    case 0: {
        pawl_range range = choose_range(p, &first, &end);
        assert_ok(pawl_store_remove_range(store, range));
        for (size_t k = first; k < end; k++)
            p->now.value[range.space][k] = 0;
        break;
    }
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
        assert_status(pawl_store_remove(store, space, p->keys[i]), *at ? PAWL_OK : PAWL_ENOTFOUND);
        *at = 0;
        break;
    default:
        *at = (uint32_t)test_random(&p->seed) | 1u;
        if (test_below(&p->seed, 30) == 0)
            *at = *at / 50 * 50 + 50;
        if (test_below(&p->seed, 2)) { /* who changes a row has often looked at it */
            pawl_bytes was;
            (void)pawl_store_get(pawl_store_writer(store), space, p->keys[i], &was);
        }
        assert_ok(pawl_store_put(store, space, p->keys[i], value_of(p, *at)));
    }
}

static void hold_or_release(struct play *p)
{
    struct held *h = &p->held[test_below(&p->seed, 2)];
    if (!h->reader) {
        h->reader = rig_snapshot(p->rig->store);
        h->model = p->committed;
        return;
    }
    check_scan(p, h->reader, &h->model);
    check_get(p, h->reader, &h->model);
    pawl_store_release(p->rig->store, h->reader);
    h->reader = NULL;
}

static void reopen(struct play *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->held[i].reader)
            pawl_store_release(p->rig->store, p->held[i].reader);
        p->held[i].reader = NULL;
    }
    bool discarded = true;
    assert_ok(pawl_store_close(p->rig->store));
    p->rig->kind->power_cut(p->rig->site);
    p->rig->store = rig_open(p->rig, "a", p->rig->kind->mode, &discarded);
    assert_false(discarded);
    p->now = p->committed;
}

static void a_random_play_agrees_with_a_naive_model(struct store_rig *rig)
{
    static struct play play;
    memset(&play, 0, sizeof play);
    struct play *p = &play;
    p->rig = rig;
    p->seed = test_seed(15);
    make_keys(p);
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t dice = test_below(&p->seed, 1000);
        if (dice < 700) {
            change(p);
        } else if (dice < 780) {
            check_scan(p, pawl_store_writer(rig->store), &p->now);
        } else if (dice < 880) {
            check_get(p, pawl_store_writer(rig->store), &p->now);
        } else if (dice < 940) {
            hold_or_release(p);
        } else if (dice < 980) {
            assert_ok(pawl_store_commit(rig->store));
            p->committed = p->now;
        } else if (dice < 997) {
            pawl_store_abort(rig->store);
            p->now = p->committed;
        } else {
            reopen(p);
        }
    }
    reopen(p);
    for (size_t i = 0; i < KEYS; i++)
        free((void *)(uintptr_t)p->keys[i].data);
}

/* Readers on threads: each commit writes one number everywhere, so a snapshot with two different ones is torn.
 */

#define READERS 3
#define ROUNDS  150
#define CELLS   50

struct race {
    pawl_store *store;
    atomic_bool done;
    atomic_int snapshots;
    atomic_int failures;
};

struct sight {
    uint32_t number;
    int cells;
    bool torn;
};

static bool look(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct sight *s = arg;
    uint32_t number = value.size >= 4 ? get_u32(value.data) : 0;
    if (s->cells++ == 0)
        s->number = number;
    s->torn |= number != s->number;
    return true;
}

static void *read_along(void *arg)
{
    struct race *race = arg;
    uint32_t last = 0;
    while (!atomic_load(&race->done)) {
        pawl_reader *reader = NULL;
        struct sight sight = {0};
        bool ok = pawl_store_snapshot(race->store, &reader) == PAWL_OK;
        for (uint8_t space = 0; ok && space < 2; space++)
            ok = pawl_store_scan(reader, (pawl_range){.space = space}, space == 1, look, &sight) == PAWL_OK;
        if (!ok || sight.torn || sight.number < last || (sight.cells && sight.cells != 2 * CELLS))
            atomic_fetch_add(&race->failures, 1);
        last = sight.number;
        if (reader)
            pawl_store_release(race->store, reader);
        atomic_fetch_add(&race->snapshots, 1);
    }
    return NULL;
}

static void readers_on_other_threads_see_whole_commits_in_order(struct store_rig *rig)
{
    struct race race = {.store = rig->store};
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_along, &race), 0);
    int status = PAWL_OK;
    /* At least so many commits, and until each reader has most likely had its turns. */
    for (uint32_t round = 1; status == PAWL_OK && (round <= ROUNDS || atomic_load(&race.snapshots) < 200);
         round++) {
        uint8_t value[40] = {0};
        put_u32(value, round);
        for (uint8_t cell = 0; cell < CELLS && status == PAWL_OK; cell++) {
            pawl_bytes key = {&cell, 1}, bytes = {value, sizeof value};
            status = pawl_store_put(rig->store, 0, key, bytes);
            if (status == PAWL_OK)
                status = pawl_store_put(rig->store, 1, key, bytes);
        }
        if (status == PAWL_OK)
            status = pawl_store_commit(rig->store);
    }
    atomic_store(&race.done, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    assert_ok(status);
    assert_int_equal(atomic_load(&race.failures), 0);
}

/* What was committed is seen by every snapshot that is taken behind it, on whichever thread. Readers are told
 * of each commit, look a few times, most likely while the next one is under way, and wait for more; and the
 * writer is never far ahead of any of them. */

#define COMMITS 4000
#define LOOKS   4
#define AHEAD   16

struct chase {
    pawl_store *store;
    atomic_uint committed;
    atomic_bool failed;
    atomic_int stale;
    sem_t heard;
};

struct chaser {
    pthread_t thread;
    struct chase *chase;
    sem_t news;
};

static void look_behind(struct chase *chase)
{
    pawl_reader *reader;
    pawl_bytes value;
    uint32_t committed = atomic_load(&chase->committed), seen = 0;
    if (pawl_store_snapshot(chase->store, &reader) != PAWL_OK)
        return;
    if (pawl_store_get(reader, 0, (pawl_bytes){"n", 1}, &value) == PAWL_OK)
        seen = get_u32(value.data);
    pawl_store_release(chase->store, reader);
    atomic_fetch_add(&chase->stale, seen < committed);
}

static void *chaser_main(void *arg)
{
    struct chaser *chaser = arg;
    for (uint32_t n = 0; n < COMMITS; n++) {
        sem_wait(&chaser->news);
        if (atomic_load(&chaser->chase->failed))
            break;
        for (int i = 0; i < LOOKS; i++)
            look_behind(chaser->chase);
        sem_post(&chaser->chase->heard);
    }
    return NULL;
}

static void a_commit_that_has_returned_is_seen_by_whoever_looks_next(struct store_rig *rig)
{
    struct chase chase = {.store = rig->store};
    struct chaser chasers[READERS];
    sem_init(&chase.heard, 0, READERS * AHEAD);
    for (int i = 0; i < READERS; i++) {
        chasers[i].chase = &chase;
        sem_init(&chasers[i].news, 0, 0);
        assert_int_equal(pthread_create(&chasers[i].thread, NULL, chaser_main, &chasers[i]), 0);
    }
    int status = PAWL_OK;
    for (uint32_t n = 1; status == PAWL_OK && n <= COMMITS; n++) {
        uint8_t value[4];
        put_u32(value, n);
        for (int i = 0; i < READERS; i++)
            sem_wait(&chase.heard);
        status = pawl_store_put(rig->store, 0, (pawl_bytes){"n", 1}, (pawl_bytes){value, sizeof value});
        if (status == PAWL_OK)
            status = pawl_store_commit(rig->store);
        if (status == PAWL_OK)
            atomic_store(&chase.committed, n);
        atomic_store(&chase.failed, status != PAWL_OK);
        for (int i = 0; i < READERS; i++)
            sem_post(&chasers[i].news);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(chasers[i].thread, NULL);
        sem_destroy(&chasers[i].news);
    }
    sem_destroy(&chase.heard);
    assert_ok(status);
    assert_int_equal(atomic_load(&chase.stale), 0);
}

struct copying {
    pawl_store *store;
    char path[512];
    pawl_error error;
    int status;
    atomic_bool done;
};

static void *copy_along(void *arg)
{
    struct copying *c = arg;
    c->status = pawl_store_copy(c->store, c->path, &c->error);
    atomic_store(&c->done, true);
    return NULL;
}

static void a_copy_beside_the_writer_is_one_of_its_commits(struct store_rig *rig)
{
    struct copying c = {.store = rig->store};
    pthread_t thread;
    rig->kind->path(rig->site, "copy", c.path, sizeof c.path);
    assert_int_equal(pthread_create(&thread, NULL, copy_along, &c), 0);
    int status = PAWL_OK;
    for (uint32_t round = 1; status == PAWL_OK && (round < 50 || !atomic_load(&c.done)); round++) {
        uint8_t value[4];
        put_u32(value, round);
        for (uint16_t cell = 0; cell < 2 * CELLS && status == PAWL_OK; cell++) {
            uint8_t key = (uint8_t)(cell / 2);
            status = pawl_store_put(rig->store, cell % 2, (pawl_bytes){&key, 1}, (pawl_bytes){value, 4});
        }
        if (status == PAWL_OK)
            status = pawl_store_commit(rig->store);
    }
    pthread_join(thread, NULL);
    assert_ok(status);
    assert_ok(c.status);
    pawl_store *copy = rig_open(rig, "copy", rig->kind->mode, NULL);
    struct sight sight = {0};
    for (uint8_t space = 0; space < 2; space++)
        assert_ok(pawl_store_scan(pawl_store_writer(copy), (pawl_range){.space = space}, false, look, &sight));
    assert_false(sight.torn);
    assert_true(sight.cells == 0 || sight.cells == 2 * CELLS);
    assert_ok(pawl_store_close(copy));
}

const struct store_test store_random_tests[] = {
#define T(name)                                                                                                \
    {                                                                                                          \
#name, name                                                                                            \
    }
    T(a_random_play_agrees_with_a_naive_model),
    T(readers_on_other_threads_see_whole_commits_in_order),
    T(a_commit_that_has_returned_is_seen_by_whoever_looks_next),
    T(a_copy_beside_the_writer_is_one_of_its_commits),
#undef T
};
const size_t store_random_tests_count = sizeof store_random_tests / sizeof store_random_tests[0];
