/* Transactions, snapshots, openings, crashes: what becomes of a store's rows in time. */
#include "test/contract/store_contract.h"

#include "base/bytes.h"

static void the_writer_sees_its_changes_and_a_snapshot_sees_commits(struct store_rig *rig)
{
    pawl_reader *writer = pawl_store_writer(rig->store);
    rig_put(rig->store, 0, "k", "1");
    pawl_reader *before = rig_snapshot(rig->store);
    assert_string_equal(rig_get(writer, 0, "k"), "1");
    assert_string_equal(rig_get(before, 0, "k"), "-");
    assert_ok(pawl_store_commit(rig->store));
    assert_string_equal(rig_get(writer, 0, "k"), "1");
    assert_string_equal(rig_get(before, 0, "k"), "-");
    pawl_reader *after = rig_snapshot(rig->store);
    assert_string_equal(rig_get(after, 0, "k"), "1");
    pawl_store_release(rig->store, before);
    pawl_store_release(rig->store, after);
}

static void a_snapshot_does_not_change_under_hundreds_of_commits(struct store_rig *rig)
{
    char key[16];
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof key, "k%d", i);
        rig_put(rig->store, 0, key, "old");
    }
    rig_put(rig->store, 1, "borrowed", "borrowed until release");
    assert_ok(pawl_store_commit(rig->store));
    pawl_reader *snapshot = rig_snapshot(rig->store);
    pawl_digest at_first = rig_digest(snapshot);
    pawl_bytes borrowed;
    assert_ok(pawl_store_get(snapshot, 1, text_bytes("borrowed"), &borrowed));
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof key, "k%d", i);
        rig_put(rig->store, 0, key, "new");
        assert_ok(pawl_store_remove_range(rig->store, (pawl_range){.space = 1}));
        rig_put(rig->store, 2, "round", key);
        assert_ok(pawl_store_commit(rig->store));
    }
    pawl_digest at_last = rig_digest(snapshot);
    assert_true(pawl_digest_equal(&at_first, &at_last));
    assert_memory_equal(borrowed.data, "borrowed until release", borrowed.size);
    pawl_store_release(rig->store, snapshot);
    assert_string_equal(rig_get(pawl_store_writer(rig->store), 0, "k299"), "new");
}

static void abort_forgets_what_was_not_committed(struct store_rig *rig)
{
    pawl_reader *writer = pawl_store_writer(rig->store);
    pawl_store_abort(rig->store);
    rig_put(rig->store, 0, "a", "1");
    rig_put(rig->store, 0, "b", "1");
    assert_ok(pawl_store_commit(rig->store));
    rig_put(rig->store, 0, "a", "2");
    rig_put(rig->store, 3, "c", "2");
    assert_ok(pawl_store_remove(rig->store, 0, text_bytes("b")));
    assert_string_equal(rig_keys(writer, 0, "", "", false), "a ");
    pawl_store_abort(rig->store);
    assert_string_equal(rig_get(writer, 0, "a"), "1");
    assert_string_equal(rig_get(writer, 0, "b"), "1");
    assert_string_equal(rig_get(writer, 3, "c"), "-");
    assert_ok(pawl_store_commit(rig->store));
    assert_string_equal(rig_get(writer, 0, "a"), "1");
}

static void removing_what_is_not_there_does_not_spoil_the_rest(struct store_rig *rig)
{
    rig_put(rig->store, 0, "a", "1");
    assert_status(pawl_store_remove(rig->store, 0, text_bytes("b")), PAWL_ENOTFOUND);
    assert_status(pawl_store_remove(rig->store, 0, (pawl_bytes){0}), PAWL_EINVAL);
    rig_put(rig->store, 0, "c", "1");
    assert_ok(pawl_store_commit(rig->store));
    assert_string_equal(rig_keys(pawl_store_writer(rig->store), 0, "", "", false), "a c ");
}

static void the_writers_bytes_stay_until_its_next_change(struct store_rig *rig)
{
    pawl_reader *writer = pawl_store_writer(rig->store);
    pawl_bytes a, b;
    rig_put(rig->store, 0, "a", "first");
    rig_put(rig->store, 0, "b", "second");
    assert_ok(pawl_store_get(writer, 0, text_bytes("a"), &a));
    assert_ok(pawl_store_get(writer, 0, text_bytes("b"), &b));
    assert_string_equal(rig_keys(writer, 0, "", "", false), "a b ");
    assert_true(bytes_equal(a, text_bytes("first")) && bytes_equal(b, text_bytes("second")));
    assert_ok(pawl_store_commit(rig->store));
    assert_ok(pawl_store_get(writer, 0, text_bytes("a"), &a));
    pawl_reader *other = rig_snapshot(rig->store);
    pawl_store_release(rig->store, other);
    assert_string_equal(rig_get(writer, 0, "b"), "second");
    assert_true(bytes_equal(a, text_bytes("first")));
}

static void more_snapshots_than_allowed_are_refused(struct store_rig *rig)
{
    pawl_reader *readers[4], *one_more = NULL;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++)
            readers[i] = rig_snapshot(rig->store);
        assert_status(pawl_store_snapshot(rig->store, &one_more), PAWL_EBUSY);
        assert_null(one_more);
        assert_string_equal(rig_get(pawl_store_writer(rig->store), 0, "k"),
                            "-"); /* the writer's needs no place */
        pawl_store_release(rig->store, readers[round]);
        readers[round] = rig_snapshot(rig->store);
        for (int i = 0; i < 4; i++)
            pawl_store_release(rig->store, readers[i]);
    }
}

static void close_with_an_open_snapshot_is_misuse_and_leaves_it_open(struct store_rig *rig)
{
    rig_put(rig->store, 0, "k", "v");
    pawl_reader *snapshot = rig_snapshot(rig->store);
    assert_status(pawl_store_close(rig->store), PAWL_EMISUSE);
    assert_contains(rig->store->error.text, "not released");
    assert_string_equal(rig_get(pawl_store_writer(rig->store), 0, "k"), "v");
    assert_ok(pawl_store_commit(rig->store));
    pawl_store_release(rig->store, snapshot);
}

static void a_closed_store_opens_with_its_last_commit(struct store_rig *rig)
{
    rig_put(rig->store, 0, "k", "committed");
    assert_ok(pawl_store_commit(rig->store));
    rig_put(rig->store, 0, "k", "not committed");
    assert_ok(pawl_store_close(rig->store));
    /* Closed, it may lose power, and be opened in either mode. */
    rig->kind->power_cut(rig->site);
    for (int i = 0; i < 4; i++) {
        bool discarded = true;
        rig->store = rig_open(rig, "a", i % 2 ? PAWL_STORE_FAST : PAWL_STORE_DURABLE, &discarded);
        assert_false(discarded);
        assert_string_equal(rig_get(pawl_store_writer(rig->store), 0, "k"), "committed");
        rig_put(rig->store, 1, (char[]){(char)('0' + i), 0}, "v");
        assert_ok(pawl_store_commit(rig->store));
        if (i < 3)
            assert_ok(pawl_store_close(rig->store));
    }
    assert_string_equal(rig_keys(pawl_store_writer(rig->store), 1, "", "", false), "0 1 2 3 ");
}

static void a_store_is_opened_once(struct store_rig *rig)
{
    pawl_store *second = NULL;
    pawl_error error = {0};
    for (int mode = 0; mode < 2; mode++) {
        assert_status(rig->kind->open(rig->site, "a", (enum pawl_store_mode)mode, 4, NULL, &second, &error),
                      PAWL_ELOCKED);
        assert_null(second);
        assert_contains(error.text, "open");
    }
    rig_put(rig->store, 0, "k", "v");
    assert_ok(pawl_store_commit(rig->store));
    pawl_store *other = rig_open(rig, "b", rig->kind->mode, NULL);
    assert_string_equal(rig_get(pawl_store_writer(other), 0, "k"), "-");
    assert_ok(pawl_store_close(other));
}

static bool commit_and_change(pawl_store *store)
{
    for (int i = 0; i < 100; i++) {
        char text[8];
        snprintf(text, sizeof text, "%d", i);
        if (pawl_store_put(store, 0, text_bytes("k"), text_bytes(text)) != PAWL_OK
            || pawl_store_put(store, 1, text_bytes(text), text_bytes(text)) != PAWL_OK
            || (i < 99 && pawl_store_commit(store) != PAWL_OK))
            return false;
    }
    return true;
}

static void close_rig(struct store_rig *rig)
{
    assert_ok(pawl_store_close(rig->store));
    rig->store = NULL;
}

static void after_a_crash_the_last_commit_is_there(struct store_rig *rig)
{
    close_rig(rig);
    for (int round = 0; round < 3; round++) {
        rig->kind->die(rig->site, "a", rig->kind->mode, commit_and_change);
        bool discarded = true;
        pawl_store *store = rig_open(rig, "a", rig->kind->mode, &discarded);
        assert_false(discarded);
        assert_string_equal(rig_get(pawl_store_writer(store), 0, "k"), "98");
        assert_string_equal(rig_get(pawl_store_writer(store), 1, "99"), "-");
        assert_string_equal(rig_get(pawl_store_writer(store), 1, "98"), "98");
        assert_ok(pawl_store_close(store));
    }
}

static void after_a_loss_of_power_it_is_there_or_said_to_be_gone(struct store_rig *rig)
{
    close_rig(rig);
    rig->kind->die(rig->site, "a", rig->kind->mode, commit_and_change);
    rig->kind->power_cut(rig->site);
    bool discarded = false;
    pawl_store *store = rig_open(rig, "a", rig->kind->mode, &discarded);
    bool fast = rig->kind->mode == PAWL_STORE_FAST;
    assert_int_equal(discarded, fast);
    assert_string_equal(rig_get(pawl_store_writer(store), 0, "k"), fast ? "-" : "98");
    rig_put(store, 0, "k", "again");
    assert_ok(pawl_store_commit(store));
    assert_ok(pawl_store_close(store));
    store = rig_open(rig, "a", rig->kind->mode, &discarded);
    assert_false(discarded);
    assert_string_equal(rig_get(pawl_store_writer(store), 0, "k"), "again");
    assert_ok(pawl_store_close(store));
}

static bool nothing(pawl_store *store)
{
    return store != NULL;
}

static void opening_as_durable_makes_durable_what_a_fast_one_left(struct store_rig *rig)
{
    close_rig(rig);
    rig->kind->die(rig->site, "a", PAWL_STORE_FAST, commit_and_change);
    rig->kind->die(rig->site, "a", PAWL_STORE_DURABLE, nothing);
    rig->kind->power_cut(rig->site);
    bool discarded = true;
    pawl_store *store = rig_open(rig, "a", rig->kind->mode, &discarded);
    assert_false(discarded);
    assert_string_equal(rig_get(pawl_store_writer(store), 0, "k"), "98");
    assert_ok(pawl_store_close(store));
}

static void a_fast_store_that_lost_power_is_gone_for_a_durable_opening_too(struct store_rig *rig)
{
    close_rig(rig);
    rig->kind->die(rig->site, "a", PAWL_STORE_FAST, commit_and_change);
    rig->kind->power_cut(rig->site);
    bool discarded = false;
    pawl_store *store = rig_open(rig, "a", PAWL_STORE_DURABLE, &discarded);
    assert_true(discarded);
    assert_int_equal(rig_digest(pawl_store_writer(store)).rows, 0);
    assert_ok(pawl_store_close(store));
}

static void opening_for_fast_writes_and_not_writing_risks_nothing(struct store_rig *rig)
{
    rig_put(rig->store, 0, "k", "v");
    assert_ok(pawl_store_commit(rig->store));
    close_rig(rig);
    rig->kind->die(rig->site, "a", PAWL_STORE_FAST, nothing);
    rig->kind->power_cut(rig->site);
    bool discarded = true;
    pawl_store *store = rig_open(rig, "a", rig->kind->mode, &discarded);
    assert_false(discarded);
    assert_string_equal(rig_get(pawl_store_writer(store), 0, "k"), "v");
    assert_ok(pawl_store_close(store));
}

static void a_copy_is_the_last_commit_and_opens_in_either_mode(struct store_rig *rig)
{
    static const char *const names[] = {"copy-fast", "copy-durable"};
    char path[512];
    pawl_error error = {0};
    for (int i = 0; i < 1000; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i);
        rig_put(rig->store, (uint8_t)(i % PAWL_STORE_SPACES), key, key);
    }
    assert_ok(pawl_store_commit(rig->store));
    pawl_digest committed = rig_digest(pawl_store_writer(rig->store));
    rig_put(rig->store, 0, "late", "not committed");
    for (int mode = 0; mode < 2; mode++) {
        rig->kind->path(rig->site, names[mode], path, sizeof path);
        assert_ok(pawl_store_copy(rig->store, path, &error));
        assert_status(pawl_store_copy(rig->store, path, &error), PAWL_EEXISTS);
    }
    assert_ok(pawl_store_commit(rig->store));
    close_rig(rig);
    rig->kind->power_cut(rig->site);
    for (int mode = 0; mode < 2; mode++) {
        bool discarded = true;
        pawl_store *copy = rig_open(rig, names[mode], (enum pawl_store_mode)mode, &discarded);
        assert_false(discarded);
        pawl_digest copied = rig_digest(pawl_store_writer(copy));
        assert_true(pawl_digest_equal(&copied, &committed));
        assert_ok(pawl_store_close(copy));
    }
}

const struct store_test store_state_tests[] = {
#define T(name)                                                                                                \
    {                                                                                                          \
#name, name                                                                                            \
    }
    T(the_writer_sees_its_changes_and_a_snapshot_sees_commits),
    T(a_snapshot_does_not_change_under_hundreds_of_commits),
    T(abort_forgets_what_was_not_committed),
    T(removing_what_is_not_there_does_not_spoil_the_rest),
    T(the_writers_bytes_stay_until_its_next_change),
    T(more_snapshots_than_allowed_are_refused),
    T(close_with_an_open_snapshot_is_misuse_and_leaves_it_open),
    T(a_closed_store_opens_with_its_last_commit),
    T(a_store_is_opened_once),
    T(after_a_crash_the_last_commit_is_there),
    T(after_a_loss_of_power_it_is_there_or_said_to_be_gone),
    T(opening_as_durable_makes_durable_what_a_fast_one_left),
    T(a_fast_store_that_lost_power_is_gone_for_a_durable_opening_too),
    T(opening_for_fast_writes_and_not_writing_risks_nothing),
    T(a_copy_is_the_last_commit_and_opens_in_either_mode),
#undef T
};
const size_t store_state_tests_count = sizeof store_state_tests / sizeof store_state_tests[0];
