/* What only the LMDB store meets: locks, foreign processes, limits of the map, of files and of the disk. */
#include "test/contract/lmdb_site.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/bytes.h"

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
static int small_disk(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return SKIPPED;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
                   && mount("tmpfs", base, "tmpfs", 0, "size=8m") == 0
               ? 0
               : SKIPPED;
}

static int disk_full(enum pawl_store_mode mode)
{
    if (small_disk() == SKIPPED)
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

/* A store as a backup has it: without LMDB's table of readers, which is made by whoever opens it first. */
static int open_where_nothing_fits(void)
{
    static const uint8_t zeros[4096];
    struct lmdb_options options = options_for("s", PAWL_STORE_DURABLE);
    char readers[400], filler[400];
    pawl_store *store;
    pawl_error error = {0};
    if (small_disk() == SKIPPED)
        return SKIPPED;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    put_one(store);
    CHECK(pawl_store_close(store) == PAWL_OK);
    snprintf(readers, sizeof readers, "%s/lock.mdb", options.dir);
    CHECK(unlink(readers) == 0);
    snprintf(filler, sizeof filler, "%s/filler", base);
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, zeros, sizeof zeros) > 0)
        ;
    close(fd);
    options.read_only = true;
    CHECK(lmdb_store_open(&options, NULL, &store, &error) == PAWL_EFULL);
    CHECK(strstr(error.text, options.dir));
    CHECK(unlink(filler) == 0);
    CHECK(lmdb_store_open(&options, NULL, &store, &error) == PAWL_OK);
    CHECK(has_one(store));
    return pawl_store_close(store);
}

TEST(on_a_full_disk_a_store_that_cannot_be_opened_says_so)
{
    int result = in_child(open_where_nothing_fits);
    if (result == SKIPPED)
        skip();
    assert_int_equal(result, 0);
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

/* As one that is killed: it has a snapshot, and releases nothing. */
static int reader_that_dies(void)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    pawl_store *store;
    pawl_reader *snapshot;
    options.read_only = true;
    CHECK(lmdb_store_open(&options, NULL, &store, NULL) == PAWL_OK);
    CHECK(pawl_store_snapshot(store, &snapshot) == PAWL_OK);
    return 0;
}

/* Four times the map's size goes through it. */
TEST(a_reader_that_died_holds_no_pages)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    options.map_bytes = 8 << 20;
    pawl_store *store = open_ok(options, NULL);
    for (uint32_t i = 0; i < 512; i++) {
        put_large(store, i);
        assert_ok(pawl_store_commit(store));
        if (i % 128 == 5)
            assert_int_equal(in_child(reader_that_dies), 0);
    }
    assert_int_equal(get_large(store), 511);
    assert_ok(pawl_store_close(store));
}

/* More of them than LMDB's table has places for, while nothing is written. */
TEST(readers_that_died_leave_their_places_to_others)
{
    struct lmdb_options options = options_for("s", PAWL_STORE_FAST);
    options.max_snapshots = 4;
    pawl_store *store = open_ok(options, NULL);
    put_large(store, 1);
    assert_ok(pawl_store_commit(store));
    for (unsigned i = 0; i < 80; i++)
        assert_int_equal(in_child(reader_that_dies), 0);
    assert_int_equal(get_large(store), 1);
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
    const struct CMUnitTest tests[] = {
        EDGE(another_process_may_read_and_not_write),
        EDGE(reading_only_makes_nothing),
        EDGE(a_directory_that_cannot_be_made_is_named),
        EDGE(a_copy_that_fails_leaves_nothing),
#if !TEST_SANITIZED
        EDGE(little_address_space_makes_the_map_smaller_unless_its_size_was_asked_for),
#endif
        EDGE(where_no_file_may_grow_writes_are_refused_and_resume),
        EDGE(on_a_full_disk_writes_are_refused_and_resume),
        EDGE(on_a_full_disk_a_store_that_cannot_be_opened_says_so),
        EDGE(a_full_map_refuses_writes_and_takes_them_again_after_a_removal),
        EDGE(a_released_snapshot_holds_no_pages_and_the_next_sees_the_last_commit),
        EDGE(a_reader_that_died_holds_no_pages),
        EDGE(readers_that_died_leave_their_places_to_others),
        EDGE(as_many_snapshots_as_there_are_may_be_held_whoever_released_them),
    };
    return TEST_MAIN(tests);
}
