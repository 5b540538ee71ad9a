/* What only the LMDB store meets: marks, locks, foreign files, limits of the map, of files and of the disk. */
#include "test/lib/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "adapter/lmdb/store.h"
#include "base/bytes.h"
#include "test/lib/child.h"

static char base[256];

static int set_up(void **state)
{
    test_dir_make(base, sizeof base);
    return 0;
}

static int tear_down(void **state)
{
    test_dir_remove(base);
    return 0;
}

static struct lmdb_options options_for(const char *name, enum pawl_store_mode mode)
{
    static char dir[300];
    snprintf(dir, sizeof dir, "%s/%s", base, name);
    return (struct lmdb_options){.dir = dir, .mode = mode, .boot_id = "this boot"};
}

static pawl_store *open_ok(struct lmdb_options options, struct lmdb_opened *ret_opened)
{
    pawl_store *store = NULL;
    pawl_error error = {0};
    int status = lmdb_store_open(&options, ret_opened, &store, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    return store;
}

static void put_one(pawl_store *store)
{
    assert_ok(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")));
    assert_ok(pawl_store_commit(store));
}

static bool has_one(pawl_store *store)
{
    pawl_bytes value;
    return pawl_store_get(pawl_store_writer(store), 0, text_bytes("k"), &value) == PAWL_OK;
}

/* Marks. */

enum harm {
    NO_HARM,
    NO_MARK,
    MARK_GARBLED,
    MARK_CUT,
    MARK_NEWER,
    NO_DATA,
    DATA_CUT,
    DATA_FOREIGN,
    DATA_MOVED, /* the same bytes in another file */
    OTHER_BOOT,
};

static void overwrite(const char *dir, const char *file, off_t at, const void *bytes, size_t size)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, at), size);
    close(fd);
}

static void harm_store(const char *dir, enum harm harm)
{
    char mark[400], data[400], moved[400];
    static const uint8_t garbage[8192] = {1, 2, 3};
    snprintf(mark, sizeof mark, "%s/pawl.mark", dir);
    snprintf(data, sizeof data, "%s/data.mdb", dir);
    snprintf(moved, sizeof moved, "%s/moved", dir);
    switch (harm) {
    case NO_HARM:
    case OTHER_BOOT: break;
    case NO_MARK: assert_int_equal(unlink(mark), 0); break;
    case MARK_GARBLED: overwrite(dir, "pawl.mark", 20, "?", 1); break;
    case MARK_CUT: assert_int_equal(truncate(mark, 50), 0); break;
    case MARK_NEWER: overwrite(dir, "pawl.mark", 8, "\2", 1); break;
    case NO_DATA: assert_int_equal(unlink(data), 0); break;
    case DATA_CUT: assert_int_equal(truncate(data, 0), 0); break;
    case DATA_FOREIGN: overwrite(dir, "data.mdb", 0, garbage, sizeof garbage); break;
    case DATA_MOVED: {
        assert_int_equal(rename(data, moved), 0);
        int from = open(moved, O_RDONLY), to = open(data, O_WRONLY | O_CREAT | O_EXCL, 0600);
        while (copy_file_range(from, NULL, to, NULL, 1 << 20, 0) > 0)
            continue;
        close(from);
        close(to);
        break;
    }
    }
}

static int die_writing(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    return 0; /* without closing */
}

TEST(what_a_directory_holds_is_used_discarded_or_refused)
{
    enum { KEPT = 1000, GONE };
    static const struct {
        enum harm harm;
        bool dirty; /* a fast writer died in it; otherwise it was closed */
        int fast, durable, read_only;
    } cases[] = {
        {NO_HARM, false, KEPT, KEPT, KEPT},
        {NO_HARM, true, KEPT, KEPT, KEPT},
        {OTHER_BOOT, false, KEPT, KEPT, KEPT},
        {OTHER_BOOT, true, GONE, GONE, PAWL_ECORRUPT},
        {DATA_MOVED, false, KEPT, KEPT, KEPT},
        {DATA_MOVED, true, GONE, GONE, PAWL_ECORRUPT},
        {NO_MARK, false, GONE, PAWL_ECORRUPT, PAWL_ECORRUPT},
        {MARK_GARBLED, true, GONE, PAWL_ECORRUPT, PAWL_ECORRUPT},
        {MARK_CUT, false, GONE, PAWL_ECORRUPT, PAWL_ECORRUPT},
        {MARK_NEWER, false, PAWL_EVERSION, PAWL_EVERSION, PAWL_EVERSION},
        {NO_DATA, false, GONE, PAWL_ECORRUPT, PAWL_ECORRUPT},
        {DATA_CUT, false, GONE, PAWL_ECORRUPT, PAWL_ECORRUPT},
        {DATA_FOREIGN, false, PAWL_EFORMAT, PAWL_EFORMAT, PAWL_EFORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int expected[] = {cases[i].fast, cases[i].durable, cases[i].read_only};
        for (int how = 0; how < 3; how++) {
            struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
            assert_ok(pawl_store_close(open_ok(options, NULL)));
            assert_int_equal(in_child(die_writing), 0);
            if (!cases[i].dirty)
                assert_ok(pawl_store_close(open_ok(options, NULL)));
            harm_store(options.dir, cases[i].harm);

            options.mode = how == 1 ? PAWL_STORE_DURABLE : PAWL_STORE_FAST;
            options.read_only = how == 2;
            options.boot_id = cases[i].harm == OTHER_BOOT ? "another boot" : "this boot";
            struct lmdb_opened opened = {0};
            pawl_store *store = NULL;
            pawl_error error = {0};
            int status = lmdb_store_open(&options, &opened, &store, &error);
            if (expected[how] >= KEPT) {
                assert_ok(status);
                assert_int_equal(opened.discarded, expected[how] == GONE);
                assert_int_equal(opened.why[0] != 0, opened.discarded);
                assert_int_equal(has_one(store), expected[how] == KEPT);
                assert_ok(pawl_store_close(store));
            } else {
                assert_status(status, expected[how]);
                assert_contains(error.text, options.dir);
            }
            test_dir_remove(options.dir);
        }
    }
}

/* The last commit of three dies between the two stores of its meta page that Debian's LMDB has in the wrong
 * order.
 */
static int die_in_the_last_step(bool in_the_first_commit, bool torn)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    uint8_t metas[2][4096], last[2][4096];
    char path[400];
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    snprintf(path, sizeof path, "%s/data.mdb", options.dir);
    int fd = open(path, O_RDWR);
    CHECK(pread(fd, metas, sizeof metas, 0) == sizeof metas);
    for (int i = in_the_first_commit ? 2 : 0; i < 3; i++) {
        if (i == 1)
            CHECK(pread(fd, metas, sizeof metas, 0) == sizeof metas);
        CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
        CHECK(pawl_store_commit(store) == PAWL_OK);
    }
    CHECK(pread(fd, last, sizeof last, 0) == sizeof last);
    int newest = get_u64(last[1] + 16 + 128) > get_u64(last[0] + 16 + 128);
    CHECK(get_u64(metas[newest] + 16 + 128) + 2 == get_u64(last[newest] + 16 + 128));
    if (torn)
        CHECK(pwrite(fd, metas[newest] + 16 + 104, 16, newest * 4096 + 16 + 104) == 16);
    return 0;
}

static int die_whole(void)
{
    return die_in_the_last_step(false, false);
}

static int die_torn(void)
{
    return die_in_the_last_step(false, true);
}

static int die_torn_at_first(void)
{
    return die_in_the_last_step(true, true);
}

TEST(a_commit_that_was_killed_between_its_last_two_stores_discards_the_store)
{
    static int (*const deaths[])(void) = {die_whole, die_torn, die_torn_at_first};
    for (int mode = PAWL_STORE_FAST; mode <= PAWL_STORE_DURABLE; mode++)
        for (size_t i = 0; i < 3; i++) {
            struct lmdb_options options = options_for("s", (enum pawl_store_mode)mode);
            struct lmdb_opened opened = {0};
            assert_int_equal(in_child(deaths[i]), 0);
            pawl_store *store = open_ok(options, &opened);
            assert_int_equal(opened.discarded, i > 0);
            assert_string_equal(opened.why, i > 0 ? "its last commit was cut short" : "");
            assert_int_equal(has_one(store), i == 0);
            put_one(store);
            assert_ok(pawl_store_close(store));
            test_dir_remove(options.dir);
        }
}

/* After it was relaxed, or before; without closing. */
static int die_durable(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_DURABLE);
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(lmdb_store_relax(store) == PAWL_EMISUSE);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    return 0;
}

static int die_relaxed(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_DURABLE);
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    CHECK(lmdb_store_relax(store) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("l"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    return 0;
}

TEST(a_durable_store_that_was_relaxed_is_trusted_as_a_fast_one_is)
{
    static int (*const deaths[])(void) = {die_durable, die_relaxed, die_relaxed};
    for (size_t i = 0; i < 3; i++) {
        struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
        struct lmdb_opened opened = {0};
        assert_int_equal(in_child(deaths[i]), 0);
        options.boot_id = i == 1 ? "this boot" : "another boot";
        pawl_store *store = open_ok(options, &opened);
        assert_int_equal(opened.discarded, i == 2);
        assert_int_equal(has_one(store), i < 2);
        assert_ok(pawl_store_close(store));
        test_dir_remove(options.dir);
    }
}

/* After it was tightened; without closing. */
static int die_tightened(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(lmdb_store_tighten(store) == PAWL_EMISUSE);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    CHECK(lmdb_store_tighten(store) == PAWL_OK);
    return 0;
}

static int die_tightened_and_written(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(lmdb_store_tighten(store) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    return 0;
}

static int die_tightened_and_relaxed(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(lmdb_store_tighten(store) == PAWL_OK);
    CHECK(lmdb_store_relax(store) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    return 0;
}

TEST(a_fast_store_that_was_tightened_survives_a_loss_of_power)
{
    static int (*const deaths[])(void) = {die_tightened, die_tightened_and_written, die_tightened_and_relaxed};
    for (size_t i = 0; i < 3; i++) {
        struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
        struct lmdb_opened opened = {0};
        assert_int_equal(in_child(deaths[i]), 0);
        options.boot_id = "another boot";
        pawl_store *store = open_ok(options, &opened);
        assert_int_equal(opened.discarded, i == 2);
        assert_int_equal(has_one(store), i < 2);
        assert_ok(pawl_store_close(store));
        test_dir_remove(options.dir);
    }
}

static int die_durable_in_this_boot(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_DURABLE);
    pawl_store *store;
    options.boot_id = NULL;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    return 0;
}

TEST(a_durable_store_that_was_copied_while_it_was_in_use_is_not_trusted)
{
    for (int mode = PAWL_STORE_FAST; mode <= PAWL_STORE_DURABLE; mode++)
        for (int copied = 0; copied < 2; copied++) {
            struct lmdb_options options = options_for("s", (enum pawl_store_mode)mode);
            struct lmdb_opened opened = {0};
            pawl_store *store;
            pawl_error error;
            assert_int_equal(in_child(die_durable_in_this_boot), 0);
            if (copied)
                harm_store(options.dir, DATA_MOVED);
            options.boot_id = NULL;
            options.read_only = true;
            assert_status(lmdb_store_open(&options, NULL, &store, &error), copied ? PAWL_ECORRUPT : PAWL_OK);
            if (!copied)
                assert_ok(pawl_store_close(store));
            options.read_only = false;
            store = open_ok(options, &opened);
            assert_int_equal(opened.discarded, copied);
            assert_string_equal(opened.why, copied ? "it was copied while it was in use" : "");
            assert_int_equal(has_one(store), !copied);
            put_one(store);
            assert_ok(pawl_store_close(store));
            harm_store(options.dir, DATA_MOVED); /* closed, it may go anywhere */
            store = open_ok(options, &opened);
            assert_true(!opened.discarded && has_one(store));
            assert_ok(pawl_store_close(store));
            test_dir_remove(options.dir);
        }
}

/* Locks and read-only. */

static int second_process(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    pawl_store *store = NULL;
    pawl_error error = {0};
    CHECK(lmdb_store_open(&options, NULL, &store, &error) == PAWL_ELOCKED);
    CHECK(strstr(error.text, "another process"));
    options.read_only = true;
    CHECK(lmdb_store_open(&options, NULL, &store, &error) == PAWL_OK);
    CHECK(has_one(store));
    CHECK(pawl_store_put(store, 0, text_bytes("x"), text_bytes("y")) == PAWL_EREADONLY);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    return pawl_store_close(store);
}

TEST(another_process_may_read_and_not_write)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    pawl_store *store = open_ok(options, NULL), *again = NULL;
    pawl_error error = {0};
    put_one(store);
    assert_int_equal(in_child(second_process), 0);
    options.read_only = true;
    assert_status(lmdb_store_open(&options, NULL, &again, &error), PAWL_ELOCKED);
    assert_contains(error.text, "this process");
    put_one(store);
    assert_ok(pawl_store_close(store));
}

TEST(reading_only_makes_nothing)
{
    struct lmdb_options options = options_for("none", PAWL_STORE_DURABLE);
    pawl_store *store = NULL;
    options.read_only = true;
    assert_status(lmdb_store_open(&options, NULL, &store, NULL), PAWL_ENOTFOUND);
    assert_int_equal(access(options.dir, F_OK), -1);
    assert_int_equal(mkdir(options.dir, 0700), 0);
    assert_status(lmdb_store_open(&options, NULL, &store, NULL), PAWL_ENOTFOUND);
}

TEST(a_directory_that_cannot_be_made_is_named)
{
    struct lmdb_options options = options_for("no/such/parent", PAWL_STORE_FAST);
    pawl_store *store = NULL;
    pawl_error error = {0};
    assert_status(lmdb_store_open(&options, NULL, &store, &error), PAWL_ENOTFOUND);
    assert_contains(error.text, options.dir);
}

TEST(a_copy_that_fails_leaves_nothing)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    pawl_store *store = open_ok(options, NULL);
    pawl_error error = {0};
    put_one(store);
    char dir[400];
    snprintf(dir, sizeof dir, "%s/no/such", base);
    assert_status(pawl_store_copy(store, dir, &error), PAWL_ENOTFOUND);
    assert_contains(error.text, dir);
    assert_status(pawl_store_copy(store, options.dir, &error), PAWL_EEXISTS);
    assert_true(has_one(store));
    assert_ok(pawl_store_close(store));
}

/* Limits. */

/* A sanitizer's own shadow needs more. */
#if !TEST_SANITIZED
static int little_address_space(void)
{
    struct lmdb_opened opened;
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    struct rlimit limit = {.rlim_cur = (rlim_t)1 << 30, .rlim_max = (rlim_t)1 << 30};
    pawl_store *store;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return SKIPPED;
    CHECK(lmdb_store_open(&options, &opened, &store, NULL) == PAWL_OK);
    CHECK(opened.map_bytes < (uint64_t)1 << 30 && opened.map_bytes >= (uint64_t)64 << 20);
    CHECK(pawl_store_close(store) == PAWL_OK);
    options.map_bytes = (uint64_t)1 << 40;
    CHECK(lmdb_store_open(&options, &opened, &store, NULL) == PAWL_ENOMEM);
    return 0;
}

TEST(little_address_space_makes_the_map_smaller_unless_its_size_was_asked_for)
{
    int result = in_child(little_address_space);
    if (result == SKIPPED)
        skip();
    assert_int_equal(result, 0);
}
#endif

/* Puts until it fails, one commit for each; then what a full store must still do. Rows of 100 kB go to the disk
 * in writes of many pages, which a full disk cuts short. With each go a hundred small rows at scattered keys.
 */
static int fill_up(pawl_store *store, uint32_t *ret_rows)
{
    static uint8_t value[100000];
    uint32_t rows = 0;
    int status = PAWL_OK;
    while (status == PAWL_OK && rows < 5000) {
        uint8_t key[4];
        uint64_t seed = rows;
        for (int i = 0; i < 100 && status == PAWL_OK; i++) {
            put_u32(key, (uint32_t)test_below(&seed, 3000));
            status = pawl_store_put(store, 2, (pawl_bytes){key, 4}, (pawl_bytes){value, 200});
        }
        put_u32(key, rows);
        if (status == PAWL_OK)
            status = pawl_store_put(store, 0, (pawl_bytes){key, 4}, (pawl_bytes){value, sizeof value});
        if (status == PAWL_OK)
            status = pawl_store_commit(store);
        else
            pawl_store_abort(store);
        rows += status == PAWL_OK;
    }
    *ret_rows = rows;
    return status;
}

static int full_then_room(pawl_store *store, int (*make_room)(void))
{
    uint32_t rows = 0, more = 0;
    pawl_digest digest;
    pawl_reader *snapshot;
    CHECK(fill_up(store, &rows) == PAWL_EFULL);
    CHECK(store->error.code == PAWL_EFULL && rows > 5);
    for (int i = 0; i < 3; i++) { /* it stays full, and readable */
        CHECK(fill_up(store, &more) == PAWL_EFULL);
        CHECK(pawl_store_snapshot(store, &snapshot) == PAWL_OK);
        CHECK(pawl_store_digest(snapshot, (pawl_range){0}, &digest) == PAWL_OK);
        CHECK(digest.rows >= rows && digest.rows <= rows + 1);
        pawl_store_release(store, snapshot);
    }
    CHECK(make_room() == 0);
    CHECK(pawl_store_put(store, 1, text_bytes("after"), text_bytes("v")) == PAWL_OK);
    CHECK(pawl_store_commit(store) == PAWL_OK);
    fill_up(store, &more);
    CHECK(more > rows);
    int status = pawl_store_close(store); /* full again: there may be no room for the mark */
    CHECK(status == PAWL_OK || status == PAWL_EFULL);
    return 0;
}

static int raise_file_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur *= 3;
    return setrlimit(RLIMIT_FSIZE, &limit);
}

static int files_limited(enum pawl_store_mode mode)
{
    struct lmdb_options options = options_for("s", mode);
    struct rlimit limit = {.rlim_cur = 3000000, .rlim_max = RLIM_INFINITY};
    pawl_store *store;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    return full_then_room(store, raise_file_limit);
}

static int files_limited_fast(void)
{
    return files_limited(PAWL_STORE_FAST);
}

static int files_limited_durable(void)
{
    return files_limited(PAWL_STORE_DURABLE);
}

/* A file that may not grow is cut short by the kernel as on a full disk, and this needs no privilege. */
TEST(where_no_file_may_grow_writes_are_refused_and_resume)
{
    assert_int_equal(in_child(files_limited_fast), 0);
    test_dir_remove(options_for("s", PAWL_STORE_FAST).dir);
    assert_int_equal(in_child(files_limited_durable), 0);
}

static int grow_disk(void)
{
    return mount(NULL, base, NULL, MS_REMOUNT, "size=24m");
}

/* In a mount namespace of its own, as root, or as the root of a user namespace. */
static int disk_full(enum pawl_store_mode mode)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return SKIPPED;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || mount("tmpfs", base, "tmpfs", 0, "size=8m") != 0)
        return SKIPPED;
    struct lmdb_options options = options_for("s", mode);
    pawl_store *store;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    return full_then_room(store, grow_disk);
}

static int disk_full_fast(void)
{
    return disk_full(PAWL_STORE_FAST);
}

static int disk_full_durable(void)
{
    return disk_full(PAWL_STORE_DURABLE);
}

TEST(on_a_full_disk_writes_are_refused_and_resume)
{
    int fast = in_child(disk_full_fast), durable = in_child(disk_full_durable);
    if (fast == SKIPPED || durable == SKIPPED) {
        print_message("# no privilege to mount a small disk\n");
        skip();
    }
    assert_int_equal(fast, 0);
    assert_int_equal(durable, 0);
}

TEST(a_full_map_refuses_writes_and_takes_them_again_after_a_removal)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    options.map_bytes = 4 << 20;
    struct lmdb_opened opened;
    pawl_store *store = open_ok(options, &opened);
    assert_int_equal(opened.map_bytes, 4 << 20);
    uint32_t rows = 0, more = 0;
    assert_status(fill_up(store, &rows), PAWL_EFULL);
    assert_contains(store->error.text, options.dir);
    assert_true(rows > 10);
    assert_ok(pawl_store_remove_range(store, (pawl_range){.space = 0}));
    assert_ok(pawl_store_commit(store));
    for (int i = 0; i < 3; i++) { /* LMDB gives removed rows' pages to the commit after the next */
        assert_ok(pawl_store_put(store, 1, text_bytes("k"), text_bytes("v")));
        assert_ok(pawl_store_commit(store));
    }
    assert_status(fill_up(store, &more), PAWL_EFULL);
    assert_true(more > rows / 2); /* free pages are not all side by side */
    assert_ok(pawl_store_close(store));
}

static void put_large(pawl_store *store, uint32_t number)
{
    static uint8_t large[64 << 10];
    put_u32(large, number);
    assert_ok(pawl_store_put(store, 0, text_bytes("k"), (pawl_bytes){large, sizeof large}));
}

static uint32_t get_large(pawl_store *store)
{
    pawl_reader *snapshot;
    pawl_bytes value;
    assert_ok(pawl_store_snapshot(store, &snapshot));
    assert_ok(pawl_store_get(snapshot, 0, text_bytes("k"), &value));
    uint32_t number = get_u32(value.data);
    pawl_store_release(store, snapshot);
    return number;
}

/* Twice the map's size goes through it for each snapshot. What a released one still held would fill it. */
TEST(a_released_snapshot_holds_no_pages_and_the_next_sees_the_last_commit)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    options.map_bytes = 4 << 20;
    pawl_store *store = open_ok(options, NULL);
    for (uint32_t i = 0; i < 500; i++) {
        pawl_reader *amid;
        put_large(store, i);
        assert_ok(pawl_store_snapshot(store, &amid));
        if (i % 2)
            pawl_store_release(store, amid);
        assert_ok(pawl_store_commit(store));
        if (i % 2 == 0)
            pawl_store_release(store, amid);
        assert_int_equal(get_large(store), i);
        for (uint32_t k = 0; i % 50 == 0 && k < 128; k++) {
            put_large(store, i);
            assert_ok(pawl_store_commit(store));
        }
    }
    assert_ok(pawl_store_close(store));
}

TEST(as_many_snapshots_as_there_are_may_be_held_whoever_released_them)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    options.max_snapshots = 4;
    pawl_store *store = open_ok(options, NULL);
    pawl_reader *held[4], *more;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 4; i++)
            assert_ok(pawl_store_snapshot(store, &held[i]));
        assert_status(pawl_store_snapshot(store, &more), PAWL_EBUSY);
        assert_status(pawl_store_close(store), PAWL_EMISUSE);
        assert_contains(store->error.text, "4 snapshots");
        for (size_t i = 0; i < 4; i++)
            pawl_store_release(store, held[i]);
        put_one(store);
    }
    assert_ok(pawl_store_close(store));
}

int main(void)
{
#define EDGE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        EDGE(what_a_directory_holds_is_used_discarded_or_refused),
        EDGE(a_commit_that_was_killed_between_its_last_two_stores_discards_the_store),
        EDGE(a_durable_store_that_was_relaxed_is_trusted_as_a_fast_one_is),
        EDGE(a_fast_store_that_was_tightened_survives_a_loss_of_power),
        EDGE(a_durable_store_that_was_copied_while_it_was_in_use_is_not_trusted),
        EDGE(another_process_may_read_and_not_write),
        EDGE(reading_only_makes_nothing),
        EDGE(a_directory_that_cannot_be_made_is_named),
        EDGE(a_copy_that_fails_leaves_nothing),
#if !TEST_SANITIZED
        EDGE(little_address_space_makes_the_map_smaller_unless_its_size_was_asked_for),
#endif
        EDGE(where_no_file_may_grow_writes_are_refused_and_resume),
        EDGE(on_a_full_disk_writes_are_refused_and_resume),
        EDGE(a_full_map_refuses_writes_and_takes_them_again_after_a_removal),
        EDGE(a_released_snapshot_holds_no_pages_and_the_next_sees_the_last_commit),
        EDGE(as_many_snapshots_as_there_are_may_be_held_whoever_released_them),
    };
    return TEST_MAIN(tests);
}
