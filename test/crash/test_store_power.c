/* The LMDB store on a disk that forgets: power is cut at random effects of its calls, and what is left is
 * opened. */
#include "test/lib/dir.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "adapter/lmdb/store.h"
#include "base/bytes.h"
#include "test/crash/disk.h"

#define CUTS    400 /* for each mode */
#define PENDING 64
#define MAKINGS 6 /* for each mode */

static const char *const ignored[] = {"lock.mdb", "pawl.lock", NULL};

/* What an image may hold, as of its cut. */
struct image {
    char dir[400];
    pawl_digest last;        /* the last commit that was acknowledged */
    pawl_digest in_progress; /* the one under way, or last again */
    bool making;             /* the store was being made: it may be gone, there is nothing in it */
    bool exposed;            /* fast writes were under way: it must be gone */
    bool closing;            /* it may be gone */
};

struct play {
    enum pawl_store_mode mode;
    uint64_t seed;
    char base[256], dir[300];
    pawl_store *store;
    struct image now; /* as it would be */
    struct image images[PENDING];
    size_t pending;
    unsigned cuts, kept, gone, in_progress;
    bool always; /* cut at every effect */
};

static void maybe_cut(void *arg)
{
    struct play *p = arg;
    unsigned one_in = p->always ? 1 : p->now.making || p->now.closing ? 4 : 12;
    if (p->pending == PENDING || test_below(&p->seed, one_in) != 0)
        return;
    struct image *image = &p->images[p->pending++];
    *image = p->now;
    snprintf(image->dir, sizeof image->dir, "%s/cut-%u", p->base, p->cuts++);
    disk_cut(image->dir);
}

static pawl_digest digest_of(pawl_store *store)
{
    pawl_digest all = {0};
    for (uint8_t space = 0; space < PAWL_STORE_SPACES; space++) {
        pawl_digest one;
        assert_ok(pawl_store_digest(pawl_store_writer(store), (pawl_range){.space = space}, &one));
        all.low = all.low * 3 + one.low;
        all.high = all.high * 3 + one.high;
        all.rows += one.rows;
    }
    return all;
}

static void check_image(struct play *p, const struct image *image)
{
    static const pawl_digest empty;
    struct lmdb_options options = {.dir = image->dir, .mode = p->mode, .boot_id = "the next boot"};
    struct lmdb_opened opened;
    pawl_store *store = NULL;
    pawl_error error = {0};
    int status = lmdb_store_open(&options, &opened, &store, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    pawl_digest found = digest_of(store);
    if (opened.discarded) {
        assert_true(image->making || image->exposed || image->closing);
        assert_true(pawl_digest_equal(&found, &empty));
        p->gone++;
    } else {
        assert_false(image->exposed);
        bool last = pawl_digest_equal(&found, &image->last);
        assert_true(last || pawl_digest_equal(&found, &image->in_progress));
        p->kept++;
        p->in_progress += !last;
    }
    /* What came back can be written to again. */
    assert_ok(pawl_store_put(store, 0, text_bytes("after"), text_bytes("the cut")));
    assert_ok(pawl_store_commit(store));
    assert_ok(pawl_store_close(store));
    test_dir_remove(image->dir);
}

static void check_images(struct play *p)
{
    disk_pause(true);
    for (size_t i = 0; i < p->pending; i++)
        check_image(p, &p->images[i]);
    p->pending = 0;
    disk_pause(false);
}

static void open_play(struct play *p)
{
    struct lmdb_options options = {.dir = p->dir, .mode = p->mode, .boot_id = "this boot"};
    struct lmdb_opened opened;
    assert_ok(lmdb_store_open(&options, &opened, &p->store, NULL));
    assert_false(opened.discarded);
    p->now.making = false;
    check_images(p);
}

static void close_play(struct play *p)
{
    p->now.closing = p->now.exposed;
    p->now.exposed = false;
    assert_ok(pawl_store_close(p->store));
    p->now.closing = false;
    check_images(p);
}

/* Rows of few keys, so that old pages are freed and used again; now and then of several pages. */
static void change(struct play *p)
{
    static uint8_t value[20000];
    uint8_t key[40] = {0};
    uint8_t space = (uint8_t)test_below(&p->seed, PAWL_STORE_SPACES);
    put_u32(key, (uint32_t)test_below(&p->seed, 500));
    size_t size = test_below(&p->seed, 20) ? test_below(&p->seed, 200) : test_below(&p->seed, sizeof value);
    memset(value, (int)test_below(&p->seed, 256), size);
    bool first = p->mode == PAWL_STORE_FAST && !p->now.exposed;
    p->now.closing = first; /* while the mark is being made dirty, the store may be there or gone */
    int status = test_below(&p->seed, 6)
                     ? pawl_store_put(p->store, space, (pawl_bytes){key, sizeof key}, (pawl_bytes){value, size})
                     : pawl_store_remove(p->store, space, (pawl_bytes){key, sizeof key});
    assert_true(status == PAWL_OK || status == PAWL_ENOTFOUND);
    p->now.closing = false;
    p->now.exposed = p->mode == PAWL_STORE_FAST;
    if (p->now.exposed)
        maybe_cut(p); /* a write through the map is no call */
}

static void commit(struct play *p)
{
    p->now.in_progress = digest_of(p->store);
    assert_ok(pawl_store_commit(p->store));
    p->now.last = p->now.in_progress;
    if (p->now.exposed)
        maybe_cut(p);
    check_images(p);
}

static void cut_power(enum pawl_store_mode mode)
{
    static struct play play;
    struct play *p = &play;
    memset(p, 0, sizeof *p);
    p->mode = mode;
    p->seed = test_seed(7 + (uint64_t)mode);
    p->now.making = true;
    test_dir_make(p->base, sizeof p->base);
    assert_true(snprintf(p->dir, sizeof p->dir, "%s/store", p->base) < (int)sizeof p->dir);
    disk_watch(p->dir, ignored, p->seed);
    disk_on_effect(maybe_cut, p);
    open_play(p);
    while (p->cuts < CUTS) {
        for (uint64_t n = 1 + test_below(&p->seed, 12); n > 0; n--)
            change(p);
        if (test_below(&p->seed, 10))
            commit(p);
        else
            pawl_store_abort(p->store);
        if (test_below(&p->seed, mode == PAWL_STORE_FAST ? 4 : 12) == 0) {
            close_play(p);
            open_play(p);
        }
    }
    close_play(p);
    struct disk_counts counts = disk_counts();
    print_message("# %u cuts: %u kept (%u with the commit under way), %u gone; %" PRIu64 " writes, %" PRIu64
                  " syncs; in the images %" PRIu64 " unsynced sectors kept, %" PRIu64 " lost\n",
                  p->cuts, p->kept, p->in_progress, p->gone, counts.writes, counts.syncs, counts.kept_sectors,
                  counts.lost_sectors);
    assert_int_equal(counts.mapped_writes > 0, mode == PAWL_STORE_FAST);
    assert_true(counts.lost_sectors > 0 && counts.kept_sectors > 0);
    assert_true(mode == PAWL_STORE_DURABLE
                || counts.lost_names > 0); /* a durable one renames while it is made */
    assert_true(p->kept > 0);
    disk_on_effect(NULL, NULL);
    disk_watch(NULL, NULL, 0);
    test_dir_remove(p->base);
}

TEST(a_durable_store_has_its_last_commit_after_any_power_cut)
{
    cut_power(PAWL_STORE_DURABLE);
}

TEST(a_fast_store_is_whole_or_gone_after_any_power_cut)
{
    cut_power(PAWL_STORE_FAST);
}

/* Made and closed again and again, and cut at every effect of that. */
TEST(a_store_that_is_being_made_is_there_or_not_after_any_power_cut)
{
    static struct play play;
    struct play *p = &play;
    for (uint64_t round = 0; round < 2 * MAKINGS; round++) {
        memset(p, 0, sizeof *p);
        p->mode = round % 2 ? PAWL_STORE_FAST : PAWL_STORE_DURABLE;
        p->seed = test_seed(11) + round;
        p->now.making = p->always = true;
        test_dir_make(p->base, sizeof p->base);
        assert_true(snprintf(p->dir, sizeof p->dir, "%s/store", p->base) < (int)sizeof p->dir);
        disk_watch(p->dir, ignored, p->seed);
        disk_on_effect(maybe_cut, p);
        open_play(p);
        close_play(p);
        assert_true(p->kept > 0);
        disk_on_effect(NULL, NULL);
        disk_watch(NULL, NULL, 0);
        test_dir_remove(p->base);
    }
}

/* The child counts its commits up into a pipe; the parent kills it in their midst. Each commit writes its
 * number into so many rows of random sizes, and removes others. */
struct labour {
    uint32_t rows;
    size_t value_bytes_max;
    uint64_t acknowledged_max; /* commits before it is killed */
    uint64_t delay_ns_max;     /* and then, from anywhere in the next one */
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint32_t last_number(pawl_store *store)
{
    pawl_bytes value;
    int status = pawl_store_get(pawl_store_writer(store), 0, text_bytes("n"), &value);
    return status == PAWL_OK ? get_u32(value.data) : 0;
}

/* All rows of a commit follow from its number. */
static size_t make_row(const struct labour *l, uint32_t n, uint32_t i, uint8_t key[4], uint8_t *value)
{
    uint64_t seed = (uint64_t)n << 32 | i;
    put_u32(key, (uint32_t)test_below(&seed, l->rows * 8));
    size_t size = 4 + test_below(&seed, test_below(&seed, 10) ? 60 : l->value_bytes_max);
    memset(value, (int)n, size);
    put_u32(value, n);
    return size;
}

static void commit_for_ever(const char *dir, const struct labour *l, int report)
{
    static uint8_t value[1 << 20];
    struct lmdb_options options = {.dir = dir, .mode = PAWL_STORE_FAST};
    struct lmdb_opened opened;
    pawl_store *store;
    if (lmdb_store_open(&options, &opened, &store, NULL) != PAWL_OK || opened.discarded)
        _exit(1);
    for (uint32_t n = last_number(store) + 1;; n++) {
        uint8_t key[4], number[4];
        put_u32(number, n);
        for (uint32_t i = 0; i < l->rows; i++) {
            size_t size = make_row(l, n, i, key, value);
            if (pawl_store_put(store, 1, (pawl_bytes){key, 4}, (pawl_bytes){value, size}) != PAWL_OK)
                _exit(2);
            key[0] ^= 1;
            int status = i % 3 ? PAWL_OK : pawl_store_remove(store, 2, (pawl_bytes){key, 4});
            if (status == PAWL_ENOTFOUND)
                status = pawl_store_put(store, 2, (pawl_bytes){key, 4}, (pawl_bytes){value, size});
            if (status != PAWL_OK)
                _exit(2);
        }
        if (pawl_store_put(store, 0, text_bytes("n"), (pawl_bytes){number, 4}) != PAWL_OK
            || pawl_store_commit(store) != PAWL_OK || write(report, number, 4) != 4)
            _exit(3);
    }
}

/* Returns the number of the last commit that the child acknowledged. */
static uint32_t kill_in_the_midst(const char *dir, const struct labour *l, uint64_t *seed)
{
    int report[2], how;
    uint8_t bytes[4] = {0};
    uint32_t acknowledged = 0;
    assert_int_equal(pipe(report), 0);
    pid_t child = fork();
    if (child == 0) {
        close(report[0]);
        commit_for_ever(dir, l, report[1]);
    }
    close(report[1]);
    for (uint64_t n = 1 + test_below(seed, l->acknowledged_max); n > 0 && read(report[0], bytes, 4) == 4; n--)
        acknowledged = get_u32(bytes);
    uint64_t until = now_ns() + test_below(seed, l->delay_ns_max);
    while (now_ns() < until)
        continue;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    while (read(report[0], bytes, 4) == 4)
        acknowledged = get_u32(bytes);
    close(report[0]);
    return acknowledged;
}

/* The rows of the last commit are all there: each of its number, unless the same commit wrote it twice, of some
 * size. Reading the digests reads every page. */
static void check_last(pawl_store *store, const struct labour *l, uint32_t found)
{
    static uint8_t value[1 << 20];
    uint8_t key[4];
    pawl_bytes row;
    for (uint32_t i = 0; i < l->rows; i++) {
        make_row(l, found, i, key, value);
        assert_ok(pawl_store_get(pawl_store_writer(store), 1, (pawl_bytes){key, 4}, &row));
        assert_int_equal(get_u32(row.data), found);
    }
    digest_of(store);
}

TEST(a_fast_store_has_its_last_commit_after_kill_9)
{
    static const struct labour labours[] = {
        {20, 3000, 300, 200000},
        {2000, 20000, 5, 20000000},
        {15000, 300, 3, 60000000},
        {40, 1 << 20, 10, 10000000},
    };
    uint64_t seed = test_seed(3);
    for (size_t i = 0; i < sizeof labours / sizeof labours[0]; i++) {
        const struct labour *l = &labours[i];
        char base[256], dir[300];
        test_dir_make(base, sizeof base);
        snprintf(dir, sizeof dir, "%s/store", base);
        unsigned ahead = 0;
        for (int round = 0; round < 12; round++) {
            uint32_t acknowledged = kill_in_the_midst(dir, l, &seed);
            struct lmdb_options options = {.dir = dir,
                                           .mode = round % 2 ? PAWL_STORE_DURABLE : PAWL_STORE_FAST};
            struct lmdb_opened opened;
            pawl_store *store;
            assert_ok(lmdb_store_open(&options, &opened, &store, NULL));
            assert_false(opened.discarded);
            uint32_t found = last_number(store);
            assert_true(found == acknowledged || found == acknowledged + 1);
            ahead += found != acknowledged;
            check_last(store, l, found);
            assert_ok(pawl_store_close(store));
        }
        print_message("# %u rows a commit: %u of 12 kills came between a commit and its report\n", l->rows,
                      ahead);
        test_dir_remove(base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_durable_store_has_its_last_commit_after_any_power_cut),
        RUN(a_fast_store_is_whole_or_gone_after_any_power_cut),
        RUN(a_store_that_is_being_made_is_there_or_not_after_any_power_cut),
        RUN(a_fast_store_has_its_last_commit_after_kill_9),
    };
    return TEST_MAIN(tests);
}
