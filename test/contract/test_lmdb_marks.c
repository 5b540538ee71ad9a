/* What an LMDB store's mark says after each kind of end: which store is trusted at the next opening, and which
 * is thrown away. */
#include "test/contract/lmdb_site.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "adapter/lmdb/mark.h"
#include "base/bytes.h"

enum harm {
    NO_HARM,
    NO_MARK,
    MARK_GARBLED,
    MARK_CUT,
    MARK_NEWER,
    MAKING, /* it was killed while it made the store */
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
    case MAKING: {
        int fd = open(dir, O_RDONLY | O_DIRECTORY);
        assert_ok(mark_write(fd, &(struct mark){.state = MARK_VOID}, NULL));
        close(fd);
        break;
    }
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
        {MAKING, false, GONE, GONE, PAWL_ENOTFOUND},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        EDGE(what_a_directory_holds_is_used_discarded_or_refused),
        EDGE(a_commit_that_was_killed_between_its_last_two_stores_discards_the_store),
        EDGE(a_durable_store_that_was_relaxed_is_trusted_as_a_fast_one_is),
        EDGE(a_fast_store_that_was_tightened_survives_a_loss_of_power),
        EDGE(a_durable_store_that_was_copied_while_it_was_in_use_is_not_trusted),
    };
    return TEST_MAIN(tests);
}
