#include "test/lib/test.h"

#include "core/command/window.h"
#include "test/lib/state.h"

#define WSID ((uint64_t)77)

struct window_bed {
    struct state_bed state;
    struct windows windows;
};

static void open_bed(struct window_bed *bed, uint32_t workspaces)
{
    state_bed_open(&bed->state);
    assert_ok(windows_init(&bed->windows, &bed->state.alloc.allocator, workspaces));
}

static void close_bed(struct window_bed *bed)
{
    windows_release(&bed->windows);
    state_bed_close(&bed->state);
}

static uint64_t plog_of(uint64_t offset)
{
    return 1000000 + 3 * offset;
}

static void store_row(struct window_bed *bed, uint64_t wsid, uint64_t offset, uint64_t hash)
{
    uint8_t key[KEY_NUMBERED], value[WLOG_BYTES];
    struct wlog_row row = {.plog_offset = plog_of(offset), .key_hash = hash};
    assert_ok(pawl_store_put(bed->state.store, STATE_SPACE, key_numbered(TABLE_WLOG, wsid, offset, key),
                             wlog_row_write(row, value)));
}

/* An event is staged: its row is in the overlay, and the window is told. */
static void stage_row(struct window_bed *bed, struct changes *changes, uint64_t wsid, uint64_t offset,
                      uint64_t hash)
{
    uint8_t key[KEY_NUMBERED], value[WLOG_BYTES];
    struct wlog_row row = {.plog_offset = plog_of(offset), .key_hash = hash};
    assert_ok(state_bed_change(&bed->state, &bed->state.memory, changes,
                               key_numbered(TABLE_WLOG, wsid, offset, key), wlog_row_write(row, value)));
    windows_note(&bed->windows, wsid, offset, hash);
}

/* A hash for each event, whose halves both tell them apart. */
static uint64_t hash_of(uint64_t offset)
{
    return offset << 32 | offset;
}

static uint64_t find(struct window_bed *bed, uint64_t wsid, uint64_t last, uint64_t hash)
{
    uint64_t found = 12345;
    assert_ok(windows_find(&bed->windows, &bed->state.state, wsid, last, hash, &found));
    return found;
}

/* Of all events up to last, those of the window are found, and no other. */
static void assert_window(struct window_bed *bed, uint64_t last)
{
    for (uint64_t offset = 1; offset <= last + 2; offset++) {
        bool inside = offset <= last && offset + WINDOW_EVENTS > last;
        uint64_t found = find(bed, WSID, last, hash_of(offset));
        if (found != (inside ? plog_of(offset) : 0))
            print_error("last %" PRIu64 ", offset %" PRIu64 "\n", last, offset);
        assert_true(found == (inside ? plog_of(offset) : 0));
    }
}

TEST(the_last_1024_keys_are_found_in_the_store_and_no_older_one)
{
    static const uint64_t lasts[] = {1, 2, 1022, 1023, 1024, 1025, 1026, 2047, 2048, 2049, 3000};
    for (size_t i = 0; i < sizeof lasts / sizeof lasts[0]; i++) {
        struct window_bed bed;
        open_bed(&bed, 2);
        for (uint64_t offset = 1; offset <= lasts[i]; offset++)
            store_row(&bed, WSID, offset, hash_of(offset));
        assert_window(&bed, lasts[i]);
        close_bed(&bed);
    }
}

TEST(a_window_that_is_kept_follows_what_is_staged_around_its_end)
{
    struct window_bed bed;
    struct changes changes = {0};
    open_bed(&bed, 2);
    for (uint64_t last = 1; last <= 2100; last++) {
        if (last > 1)
            assert_true(find(&bed, WSID, last - 1, hash_of(last)) == 0);
        stage_row(&bed, &changes, WSID, last, hash_of(last));
        if (last % 341 == 0 || last == 1023 || last == 1024 || last == 1025)
            assert_window(&bed, last);
    }
    close_bed(&bed);
}

TEST(a_window_that_was_dropped_is_read_again_from_store_and_overlay)
{
    struct window_bed bed;
    struct changes changes = {0};
    open_bed(&bed, 2);
    for (uint64_t offset = 1; offset <= 1500; offset++)
        store_row(&bed, WSID, offset, hash_of(offset));
    for (uint64_t offset = 1501; offset <= 1600; offset++)
        stage_row(&bed, &changes, WSID, offset, hash_of(offset));
    assert_window(&bed, 1600);
    windows_clear(&bed.windows);
    assert_window(&bed, 1600);
    for (uint64_t wsid = 1; wsid <= 2; wsid++) { /* pushes it out */
        store_row(&bed, wsid, 1, 55);
        assert_true(find(&bed, wsid, 1, 55) == plog_of(1));
    }
    assert_null(lru_peek(&bed.windows.used, WSID));
    assert_window(&bed, 1600);
    close_bed(&bed);
}

/* As after a batch was lost: the offsets are given again, to events with other keys. */
TEST(a_cleared_window_knows_nothing_of_events_that_were_undone)
{
    struct window_bed bed;
    struct changes kept = {0}, lost = {0}, again = {0};
    open_bed(&bed, 1);
    stage_row(&bed, &kept, WSID, 1, 11);
    assert_true(find(&bed, WSID, 1, 11) == plog_of(1));
    stage_row(&bed, &lost, WSID, 2, 22);
    assert_true(find(&bed, WSID, 2, 22) == plog_of(2));
    overlay_remove(&bed.state.overlay, &lost);
    windows_clear(&bed.windows);
    assert_true(find(&bed, WSID, 1, 22) == 0);
    stage_row(&bed, &again, WSID, 2, 33);
    assert_true(find(&bed, WSID, 2, 22) == 0);
    assert_true(find(&bed, WSID, 2, 33) == plog_of(2));
    close_bed(&bed);
}

TEST(workspaces_do_not_see_each_others_keys)
{
    struct window_bed bed;
    open_bed(&bed, 4);
    for (uint64_t wsid = 1; wsid <= 3; wsid++)
        for (uint64_t offset = 1; offset <= 5; offset++)
            store_row(&bed, wsid, offset, 100 * wsid + offset);
    for (uint64_t wsid = 1; wsid <= 3; wsid++)
        for (uint64_t of = 1; of <= 3; of++)
            assert_true(find(&bed, wsid, 5, 100 * of + 2) == (of == wsid ? plog_of(2) : 0));
    close_bed(&bed);
}

TEST(hashes_that_agree_in_what_is_kept_of_them_are_told_apart_by_the_row)
{
    const uint64_t high = UINT64_C(0xabcdef01) << 32;
    struct window_bed bed;
    open_bed(&bed, 1);
    for (uint64_t offset = 1; offset <= 20; offset++)
        store_row(&bed, WSID, offset, high | offset);
    for (uint64_t offset = 1; offset <= 20; offset++)
        assert_true(find(&bed, WSID, 20, high | offset) == plog_of(offset));
    assert_true(find(&bed, WSID, 20, high | 21) == 0);
    close_bed(&bed);
}

TEST(a_hash_with_a_high_half_of_zero_is_not_taken_for_no_key)
{
    struct window_bed bed;
    open_bed(&bed, 1);
    store_row(&bed, WSID, 1, 0);
    store_row(&bed, WSID, 2, 5);
    store_row(&bed, WSID, 3, (uint64_t)1 << 32);
    assert_true(find(&bed, WSID, 3, 5) == plog_of(2));
    assert_true(find(&bed, WSID, 3, (uint64_t)1 << 32) == plog_of(3));
    assert_true(find(&bed, WSID, 3, 6) == 0);
    close_bed(&bed);
}

TEST(of_several_events_with_a_key_the_latest_is_found)
{
    struct window_bed bed;
    open_bed(&bed, 1);
    for (uint64_t offset = 1; offset <= 1030; offset++)
        store_row(&bed, WSID, offset, offset % 400 == 7 ? 99 : 0);
    assert_true(find(&bed, WSID, 1030, 99) == plog_of(807));
    close_bed(&bed);
}

TEST(rows_that_are_none_are_reported_and_not_kept)
{
    struct window_bed bed;
    uint8_t key[KEY_NUMBERED];
    uint64_t found = 4;
    open_bed(&bed, 1);
    store_row(&bed, WSID, 1, 11);
    assert_ok(pawl_store_put(bed.state.store, STATE_SPACE, key_numbered(TABLE_WLOG, WSID, 2, key),
                             text_bytes("not a row")));
    assert_status(windows_find(&bed.windows, &bed.state.state, WSID, 2, 11, &found), PAWL_ECORRUPT);
    assert_true(found == 4);
    store_row(&bed, WSID, 2, 22);
    assert_true(find(&bed, WSID, 2, 11) == plog_of(1));
    close_bed(&bed);
}

TEST(a_row_that_is_gone_behind_its_tag_is_corruption)
{
    struct window_bed bed;
    uint8_t key[KEY_NUMBERED];
    uint64_t found = 4;
    open_bed(&bed, 1);
    store_row(&bed, WSID, 1, 11);
    assert_true(find(&bed, WSID, 1, 11) == plog_of(1));
    assert_ok(pawl_store_remove(bed.state.store, STATE_SPACE, key_numbered(TABLE_WLOG, WSID, 1, key)));
    assert_status(windows_find(&bed.windows, &bed.state.state, WSID, 1, 11, &found), PAWL_ECORRUPT);
    assert_true(found == 4);
    close_bed(&bed);
}

TEST(a_store_that_cannot_be_read_is_asked_again_the_next_time)
{
    static const enum mem_store_op ops[] = {MEM_STORE_SCAN, MEM_STORE_GET};
    for (size_t i = 0; i < 2; i++) {
        struct window_bed bed;
        uint64_t found = 4;
        open_bed(&bed, 1);
        store_row(&bed, WSID, 1, 11);
        mem_store_disk_fail(bed.state.disk, (struct mem_store_fault){ops[i], 1, 1, PAWL_EIO});
        assert_status(windows_find(&bed.windows, &bed.state.state, WSID, 1, 11, &found), PAWL_EIO);
        assert_true(found == 4);
        assert_true(find(&bed, WSID, 1, 11) == plog_of(1));
        close_bed(&bed);
    }
}

TEST(a_miss_in_a_window_that_is_kept_reads_nothing)
{
    struct window_bed bed;
    open_bed(&bed, 1);
    store_row(&bed, WSID, 1, 11);
    assert_true(find(&bed, WSID, 1, (uint64_t)9 << 32) == 0);
    mem_store_disk_fail(bed.state.disk, (struct mem_store_fault){MEM_STORE_ANY, 1, UINT64_MAX, PAWL_EIO});
    for (uint64_t i = 10; i < 20; i++)
        assert_true(find(&bed, WSID, 1, i << 32) == 0);
    close_bed(&bed);
}

/* A scan of the state gathers all that is staged, of whichever workspace, in memory of its own: too much for a
 * command that comes to a workspace which was not used for a while. */
TEST(a_window_is_read_without_going_through_what_others_have_staged)
{
    struct window_bed bed;
    struct changes changes = {0};
    open_bed(&bed, 1);
    store_row(&bed, WSID, 1, 11);
    stage_row(&bed, &changes, WSID, 2, 22);
    for (uint64_t wsid = 100; wsid < 1100; wsid++)
        stage_row(&bed, &changes, wsid, 1, wsid);
    test_alloc_fail(&bed.state.alloc, 1, TEST_ALLOC_FROM_THEN_ON);
    for (uint64_t offset = 1; offset <= 2; offset++) {
        uint64_t found = 0;
        windows_clear(&bed.windows);
        assert_ok(windows_find(&bed.windows, &bed.state.state, WSID, 2, 11 * offset, &found));
        assert_true(found == plog_of(offset));
    }
    close_bed(&bed);
}

TEST(a_log_that_ends_before_the_workspaces_last_event_is_corruption)
{
    struct window_bed bed;
    uint64_t found = 4;
    open_bed(&bed, 1);
    store_row(&bed, WSID, 1, 11);
    assert_status(windows_find(&bed.windows, &bed.state.state, WSID, 2, 11, &found), PAWL_ECORRUPT);
    assert_true(found == 4);
    close_bed(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_last_1024_keys_are_found_in_the_store_and_no_older_one),
        RUN(a_window_that_is_kept_follows_what_is_staged_around_its_end),
        RUN(a_window_that_was_dropped_is_read_again_from_store_and_overlay),
        RUN(a_cleared_window_knows_nothing_of_events_that_were_undone),
        RUN(workspaces_do_not_see_each_others_keys),
        RUN(hashes_that_agree_in_what_is_kept_of_them_are_told_apart_by_the_row),
        RUN(a_hash_with_a_high_half_of_zero_is_not_taken_for_no_key),
        RUN(of_several_events_with_a_key_the_latest_is_found),
        RUN(rows_that_are_none_are_reported_and_not_kept),
        RUN(a_row_that_is_gone_behind_its_tag_is_corruption),
        RUN(a_store_that_cannot_be_read_is_asked_again_the_next_time),
        RUN(a_miss_in_a_window_that_is_kept_reads_nothing),
        RUN(a_window_is_read_without_going_through_what_others_have_staged),
        RUN(a_log_that_ends_before_the_workspaces_last_event_is_corruption),
    };
    return TEST_MAIN(tests);
}
