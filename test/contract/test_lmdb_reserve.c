/* Blocks are reserved before pages are taken: the bound of adapter/lmdb/reserve.h, held against what LMDB does.
 */
#include "test/lib/dir.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "adapter/lmdb/impl.h"
#include "base/bytes.h"
#include "test/lib/child.h"

#define VALUE_MAX ((size_t)3 << 20)
#define KEYS_MAX  60000
#define HELD_MAX  3

static char base[256], dir[300];
static uint8_t value[VALUE_MAX];

static int set_up(void **state)
{
    test_dir_make(base, sizeof base);
    snprintf(dir, sizeof dir, "%s/s", base);
    return 0;
}

static int tear_down(void **state)
{
    test_dir_remove(base);
    return 0;
}

static struct lmdb_store *open_mode(enum pawl_store_mode mode)
{
    struct lmdb_options options = {.dir = dir, .mode = mode};
    struct lmdb_opened opened;
    pawl_store *store = NULL;
    pawl_error error = {0};
    int status = lmdb_store_open(&options, &opened, &store, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    assert_string_equal(opened.unmapped, "");
    return (struct lmdb_store *)store;
}

static struct stat data_file(void)
{
    char path[400];
    struct stat st;
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    assert_int_equal(stat(path, &st), 0);
    return st;
}

static uint64_t pages_committed(struct lmdb_store *s)
{
    MDB_envinfo info;
    assert_int_equal(mdb_env_info(s->env, &info), 0);
    return info.me_last_pgno + 1;
}

/* One way to use a store. */
struct habit {
    const char *name;
    uint64_t seed;
    uint64_t step; /* bytes; 0: the usual */
    uint32_t commits;
    uint32_t changes_max; /* a transaction */
    uint32_t keys;
    size_t key_bytes_max;
    size_t value_bytes_max; /* of one in twenty; the others are small */
    uint32_t removals;      /* of a hundred changes */
    bool held;              /* snapshots are kept, so that hardly a page is used twice */
};

struct play {
    const struct habit *habit;
    uint64_t seed;
    struct lmdb_store *s;
    pawl_reader *held[HELD_MAX];
    double tightest; /* the largest share of what was charged that was taken */
    uint64_t largest;
};

/* A key of a length of its own, so that separators differ in length too. */
static pawl_bytes key_of(const struct habit *h, uint32_t n, uint8_t *room)
{
    uint64_t mixed = n;
    uint64_t r = test_random(&mixed);
    size_t size = 5 + r % (h->key_bytes_max - 4);
    memset(room, (int)(r >> 32 & 3), size);
    put_u32(room + (r >> 40) % (size - 4), n);
    return (pawl_bytes){room, size};
}

static void change(struct play *p)
{
    static uint8_t a[1000], b[1000];
    const struct habit *h = p->habit;
    pawl_store *store = &p->s->store;
    uint8_t space = (uint8_t)test_below(&p->seed, PAWL_STORE_SPACES);
    pawl_bytes key = key_of(h, (uint32_t)test_below(&p->seed, h->keys), a);
    int status;
    if (test_below(&p->seed, 100) >= h->removals) {
        size_t most = test_below(&p->seed, 20) ? 300 : h->value_bytes_max;
        status = pawl_store_put(store, space, key, (pawl_bytes){value, test_below(&p->seed, most)});
    } else if (test_below(&p->seed, 600)) {
        status = pawl_store_remove(store, space, key);
    } else {
        pawl_bytes to = key_of(h, (uint32_t)test_below(&p->seed, h->keys), b);
        bool swap = bytes_compare(key, to) > 0;
        status = pawl_store_remove_range(store, (pawl_range){space, swap ? to : key, swap ? key : to});
    }
    assert_true(status == PAWL_OK || status == PAWL_ENOTFOUND);
}

/* R1 and R2, and after the commit R3. */
static void commit(struct play *p)
{
    const struct reserve *r = &p->s->reserve;
    if (!p->s->write)
        return;
    struct stat st = data_file();
    uint64_t need = reserve_need(r), before = pages_committed(p->s);
    assert_int_equal(before, r->base);
    assert_true(need * r->page_bytes <= r->frontier);
    assert_int_equal(st.st_size, r->frontier);
    assert_true((uint64_t)st.st_blocks * 512 >= r->frontier);
    assert_ok(pawl_store_commit(&p->s->store));
    uint64_t after = pages_committed(p->s);
    assert_true(after <= need);
    double share = (double)(after - before) / (double)(need - before);
    p->tightest = share > p->tightest ? share : p->tightest;
    p->largest = after - before > p->largest ? after - before : p->largest;
}

static void hold(struct play *p)
{
    pawl_reader **slot = &p->held[test_below(&p->seed, HELD_MAX)];
    if (*slot)
        pawl_store_release(&p->s->store, *slot);
    *slot = NULL;
    if (p->habit->held)
        assert_ok(pawl_store_snapshot(&p->s->store, slot));
}

static void release_all(struct play *p)
{
    for (size_t i = 0; i < HELD_MAX; i++)
        if (p->held[i])
            pawl_store_release(&p->s->store, p->held[i]);
    memset(p->held, 0, sizeof p->held);
}

/* Now and then a durable writer is at work: it writes without a map, and leaves holes. */
static void reopen(struct play *p)
{
    release_all(p);
    uint64_t used = pages_committed(p->s) * p->s->reserve.page_bytes;
    assert_ok(pawl_store_close(&p->s->store));
    assert_int_equal(data_file().st_size, used);
    if (test_below(&p->seed, 2)) {
        p->s = open_mode(PAWL_STORE_DURABLE);
        for (int i = 0; i < 100; i++)
            change(p);
        assert_ok(pawl_store_commit(&p->s->store));
        assert_ok(pawl_store_close(&p->s->store));
    }
    p->s = open_mode(PAWL_STORE_FAST);
    if (p->habit->step)
        p->s->reserve.step = p->habit->step;
}

static void follow(const struct habit *h)
{
    struct play play = {.habit = h, .seed = test_seed(h->seed)}, *p = &play;
    p->s = open_mode(PAWL_STORE_FAST);
    reopen(p);
    for (uint32_t i = 0; i < h->commits; i++) {
        for (uint64_t n = 1 + test_below(&p->seed, h->changes_max); n > 0; n--)
            change(p);
        if (test_below(&p->seed, 15))
            commit(p);
        else
            pawl_store_abort(&p->s->store);
        if (test_below(&p->seed, 5) == 0)
            hold(p);
        if (test_below(&p->seed, 60) == 0)
            reopen(p);
    }
    release_all(p);
    print_message("# %s: up to %" PRIu64 " pages a commit, up to %.0f %% of what was reserved for it; %" PRIu64
                  " pages in the end\n",
                  h->name, p->largest, 100 * p->tightest, pages_committed(p->s));
    assert_ok(pawl_store_close(&p->s->store));
    test_dir_remove(dir);
}

TEST(no_transaction_takes_more_pages_than_were_reserved_for_it)
{
    static const struct habit habits[] = {
        {"small rows, one by one", 1, 4096, 400, 1, 5000, 40, 1500, 20, false},
        {"small rows, snapshots held", 2, 4096, 300, 40, 5000, 60, 1500, 30, true},
        {"long keys", 3, 65536, 200, 300, 3000, 480, 1500, 45, false},
        {"long keys, snapshots held", 4, 4096, 150, 200, 3000, 480, 1500, 45, true},
        {"shelves", 5, 4096, 150, 60, 500, 900, 20000, 40, true},
        {"large values", 6, 4096, 100, 12, 60, 40, VALUE_MAX, 40, false},
        {"large values, snapshots held", 7, 65536, 60, 8, 60, 40, VALUE_MAX, 40, true},
        {"large transactions", 8, 0, 10, 60000, KEYS_MAX, 40, 6000, 30, false},
        {"large transactions, long keys", 9, 0, 8, 30000, KEYS_MAX, 480, 3000, 49, true},
        {"mostly removals", 10, 4096, 200, 400, 4000, 200, 9000, 55, false},
    };
    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++)
        follow(&habits[i]);
}

static void put_number(pawl_store *store, uint32_t n, size_t bytes)
{
    uint8_t key[8];
    uint64_t mixed = n;
    put_u64_sorted(key, test_random(&mixed));
    assert_ok(pawl_store_put(store, 0, (pawl_bytes){key, sizeof key}, (pawl_bytes){value, bytes}));
}

/* Nothing but copies: rows of their old size, each on another page, none of which is free. */
TEST(copied_pages_are_reserved_and_not_many_more)
{
    struct play play = {.s = open_mode(PAWL_STORE_FAST)}, *p = &play;
    p->s->reserve.step = 4096;
    for (uint32_t i = 0; i < 30000; i++)
        put_number(&p->s->store, i, 500);
    commit(p);
    assert_ok(pawl_store_snapshot(&p->s->store, &p->held[0]));
    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 1000; i++)
            put_number(&p->s->store, i * 29, 500);
        p->tightest = 0;
        commit(p);
    }
    release_all(p);
    print_message("# %.0f %% of what was reserved\n", 100 * p->tightest);
    assert_true(p->tightest > 0.25);
    assert_ok(pawl_store_close(&p->s->store));
}

/* Nothing but a free list: a removal changes two pages, and frees many. */
TEST(the_list_of_freed_pages_has_its_blocks)
{
    static uint8_t large[PAWL_VALUE_BYTES_MAX];
    struct play play = {.s = open_mode(PAWL_STORE_FAST)}, *p = &play;
    p->s->reserve.step = 4096;
    for (uint8_t space = 0; space < PAWL_STORE_SPACES; space++)
        assert_ok(pawl_store_put(&p->s->store, space, text_bytes("k"), (pawl_bytes){large, sizeof large}));
    commit(p);
    assert_ok(pawl_store_snapshot(&p->s->store, &p->held[0]));
    for (uint8_t space = 0; space < PAWL_STORE_SPACES; space++)
        assert_ok(pawl_store_remove(&p->s->store, space, text_bytes("k")));
    commit(p);
    assert_true(p->largest > 4 * sizeof large / 4096 / 512);
    release_all(p);
    for (int i = 0; i < 20; i++) { /* and when it is read and written again */
        put_number(&p->s->store, (uint32_t)i, i % 5 ? 100 : 100000);
        commit(p);
    }
    assert_ok(pawl_store_close(&p->s->store));
}

/* Free pages of a file that was copied by a clever tool. */
static uint64_t punch_holes(uint8_t what)
{
    char path[400];
    uint8_t page[4096], same[4096];
    uint64_t holes = 0;
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    memset(same, what, sizeof same);
    int fd = open(path, O_RDWR);
    for (off_t at = 0; pread(fd, page, sizeof page, at) == sizeof page; at += (off_t)sizeof page)
        if (memcmp(page, same, sizeof page) == 0
            && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, sizeof page) == 0)
            holes++;
    close(fd);
    return holes;
}

TEST(holes_in_the_file_are_filled_before_the_first_change)
{
    struct play play = {.s = open_mode(PAWL_STORE_FAST)}, *p = &play;
    memset(value, 0xab, sizeof value);
    put_number(&p->s->store, 1, sizeof value);
    commit(p);
    put_number(&p->s->store, 1, 10);
    commit(p);
    assert_ok(pawl_store_close(&p->s->store));
    assert_true(punch_holes(0xab) > 500);
    assert_true(data_file().st_blocks * 512 < data_file().st_size - (1 << 20));
    p->s = open_mode(PAWL_STORE_FAST);
    put_number(&p->s->store, 2, 10);
    commit(p);
    assert_ok(pawl_store_close(&p->s->store));
    memset(value, 0, sizeof value);
}

static int die_with_a_long_file(void)
{
    struct lmdb_options options = {.dir = dir, .mode = PAWL_STORE_FAST};
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    return 0;
}

TEST(a_file_that_was_left_long_is_used_and_cut_when_closed)
{
    for (int mode = PAWL_STORE_FAST; mode <= PAWL_STORE_DURABLE; mode++) {
        assert_int_equal(in_child(die_with_a_long_file), 0);
        assert_true(data_file().st_size > 16 << 20);
        struct lmdb_store *s = open_mode((enum pawl_store_mode)mode);
        pawl_bytes found;
        assert_ok(pawl_store_get(pawl_store_writer(&s->store), 0, text_bytes("k"), &found));
        assert_ok(pawl_store_close(&s->store));
        assert_ok(pawl_store_close(&open_mode(PAWL_STORE_FAST)->store));
        assert_true(data_file().st_size < 1 << 20);
    }
}

/* Signals keep their default here: that of a file which would grow too long ends the process. */
static int may_not_grow(void)
{
    struct lmdb_options options = {.dir = dir, .mode = PAWL_STORE_FAST};
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
    pawl_store *store;
    pawl_bytes found;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(pawl_store_close(store) == PAWL_OK);
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), (pawl_bytes){value, 2 << 20}) == PAWL_EFULL);
    CHECK(strstr(store->error.text, "data.mdb cannot grow by ") && strstr(store->error.text, dir));
    CHECK(pawl_store_put(store, 0, text_bytes("j"), text_bytes("v")) == PAWL_EFULL);
    CHECK(pawl_store_commit(store) == PAWL_EFULL);
    CHECK(pawl_store_get(pawl_store_writer(store), 0, text_bytes("k"), &found) == PAWL_OK && found.size == 1);
    CHECK(pawl_store_put(store, 0, text_bytes("j"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    limit.rlim_cur = RLIM_INFINITY;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), (pawl_bytes){value, 2 << 20}) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    CHECK(pawl_store_close(store) == PAWL_OK);
    return 0;
}

TEST(a_file_that_may_not_grow_refuses_the_change_in_words_and_takes_smaller_ones)
{
    assert_int_equal(in_child(may_not_grow), 0);
}

static int may_never_be_long(void)
{
    struct lmdb_options options = {.dir = dir, .mode = PAWL_STORE_FAST};
    struct rlimit limit = {.rlim_cur = 1 << 30, .rlim_max = RLIM_INFINITY};
    struct lmdb_opened opened;
    pawl_store *store;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(lmdb_store_open(&options, &opened, &store, NULL) == PAWL_OK);
    CHECK(strcmp(opened.unmapped, "no file may be as long as the map") == 0);
    CHECK(((struct lmdb_store *)store)->reserve.fd < 0);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    CHECK(pawl_store_close(store) == PAWL_OK);
    return 0;
}

TEST(where_no_file_may_be_as_long_as_the_map_a_store_says_so_and_does_without)
{
    assert_int_equal(in_child(may_never_be_long), 0);
}

TEST(what_a_large_transaction_reserved_is_given_back_with_the_next)
{
    struct lmdb_store *s = open_mode(PAWL_STORE_FAST);
    assert_ok(pawl_store_put(&s->store, 0, text_bytes("k"), text_bytes("v")));
    s->reserve.taken += ((uint64_t)1 << 30) / 4096;
    assert_ok(pawl_store_put(&s->store, 0, text_bytes("k"), text_bytes("v")));
    assert_ok(pawl_store_commit(&s->store));
    assert_true(data_file().st_size > 1 << 30);
    assert_ok(pawl_store_put(&s->store, 0, text_bytes("k"), text_bytes("w")));
    assert_ok(pawl_store_commit(&s->store));
    assert_true(data_file().st_size < 64 << 20);
    assert_int_equal(data_file().st_size, s->reserve.frontier);
    assert_ok(pawl_store_close(&s->store));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(no_transaction_takes_more_pages_than_were_reserved_for_it),
        CASE(copied_pages_are_reserved_and_not_many_more),
        CASE(the_list_of_freed_pages_has_its_blocks),
        CASE(holes_in_the_file_are_filled_before_the_first_change),
        CASE(a_file_that_was_left_long_is_used_and_cut_when_closed),
        CASE(a_file_that_may_not_grow_refuses_the_change_in_words_and_takes_smaller_ones),
        CASE(where_no_file_may_be_as_long_as_the_map_a_store_says_so_and_does_without),
        CASE(what_a_large_transaction_reserved_is_given_back_with_the_next),
    };
    return TEST_MAIN(tests);
}
