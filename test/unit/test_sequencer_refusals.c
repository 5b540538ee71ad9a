/* What a sequencer refuses for good, because going on would give a number twice; and that a refusal lasts. */
#include "test/lib/test.h"

#include "test/lib/sequence.h"

/* It never gets ready, says these words, and gives no numbers. */
static void expect_refused(struct bed *bed, const char *first, const char *second)
{
    uint64_t offset;
    assert_ok(bed_new(bed));
    mem_world_advance(bed->world, 10 * PAWL_SECOND);
    assert_int_equal(pawl_sequencer_state_get(bed->s), PAWL_SEQUENCER_FINISHED);
    assert_contains(pawl_sequencer_error(bed->s)->text, first);
    assert_contains(pawl_sequencer_error(bed->s)->text, second);
    assert_status(bed_start(bed, KIND_SHOP, 5, &offset), PAWL_ECORRUPT);
    assert_ok(bed_close(bed));
}

/* The batches are small, so that much is written before the corruption is met. */
TEST(a_value_ahead_of_the_log_is_refused_at_every_opening)
{
    for (uint32_t batch = 1; batch <= 8; batch++) {
        struct bed bed;
        bed_open(&bed, 1);
        bed.options.limits.recovery_batch = batch;
        bed.options.limits.workspaces_max = 1;
        for (uint64_t i = 1; i <= 9; i++)
            mock_append_one(&bed.mock, i, KIND_SHOP, i % 3 + 4, SEQ_WLOG, (i + 2) / 3);
        mock_put(&bed.mock, 5, SEQ_WLOG, 17);
        for (int opening = 0; opening < 3; opening++)
            expect_refused(&bed, "17", "3");
        assert_int_equal(bed.mock.stored_last, 0);
        bed_release(&bed);
    }
}

TEST(a_log_out_of_order_is_refused_at_every_opening)
{
    for (uint32_t batch = 1; batch <= 8; batch++) {
        struct bed bed;
        bed_open(&bed, 1);
        bed.options.limits.recovery_batch = batch;
        for (uint64_t i = 1; i <= 6; i++)
            mock_append_one(&bed.mock, i, KIND_SHOP, i, SEQ_WLOG, 1);
        mock_append_one(&bed.mock, 3, KIND_SHOP, 3, SEQ_WLOG, 2);
        for (int opening = 0; opening < 3; opening++)
            expect_refused(&bed, "offset 3", "after 6");
        assert_int_equal(bed.mock.stored_last, 0);
        bed_release(&bed);
    }
}

TEST(a_scan_that_ignores_a_failed_write_loses_no_event)
{
    for (uint32_t failures = 1; failures <= 3; failures++)
        for (size_t at_once = 1; at_once <= 3; at_once++) {
            struct bed bed;
            bed_open(&bed, failures);
            bed.options.limits.recovery_batch = 4;
            bed.mock.batch = at_once;
            bed.mock.scan_is_deaf = true;
            bed.mock.fail[MOCK_WRITE] = failures;
            for (uint64_t i = 1; i <= 20; i++)
                mock_append_one(&bed.mock, i, KIND_SHOP, i, SEQ_WLOG, 1);
            bed_new_ready(&bed);
            assert_int_equal(bed_figures(&bed).recovery_retries, failures);
            for (uint64_t ws = 1; ws <= 20; ws++)
                assert_int_equal(mock_stored(&bed.mock, ws, SEQ_WLOG), 1);
            bed_expect_start(&bed, KIND_SHOP, 20, 21);
            bed_expect_next(&bed, SEQ_WLOG, 2);
            bed_release(&bed);
        }
}

TEST(a_scan_that_ignores_a_failed_read_loses_no_event)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.mock.batch = 1;
    bed.mock.scan_is_deaf = true;
    bed.mock.fail[MOCK_READ] = 1;
    mock_append_one(&bed.mock, 1, KIND_SHOP, 5, SEQ_WLOG, 1);
    mock_append_one(&bed.mock, 2, KIND_SHOP, 6, SEQ_WLOG, 1);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 3);
    bed_expect_next(&bed, SEQ_WLOG, 2);
    bed_release(&bed);
}

TEST(a_scan_that_ignores_a_refusal_does_not_undo_it)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.mock.batch = 1;
    bed.mock.scan_is_deaf = true;
    mock_append_one(&bed.mock, 2, KIND_SHOP, 5, SEQ_WLOG, 1);
    mock_append_one(&bed.mock, 1, KIND_SHOP, 5, SEQ_WLOG, 2);
    mock_append_one(&bed.mock, 3, KIND_SHOP, 5, SEQ_WLOG, 3);
    for (int opening = 0; opening < 2; opening++)
        expect_refused(&bed, "offset 1", "after 2");
    bed_release(&bed);
}

/* The storage lags, or it would know too. */
TEST(actualizing_refuses_a_log_that_is_shorter_than_what_was_flushed)
{
    for (size_t left = 0; left <= 3; left++) {
        struct bed bed;
        uint64_t offset;
        bed_open(&bed, left);
        bed_new_ready(&bed);
        for (int i = 0; i < 3; i++)
            bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
        bed_expect_start(&bed, KIND_SHOP, 5, 4);
        bed_expect_next(&bed, SEQ_WLOG, 4);
        bed.mock.log_count = left;
        assert_ok(bed_actualize(&bed));
        mem_world_advance(bed.world, 10 * PAWL_SECOND);
        if (left == 3) {
            bed_expect_start(&bed, KIND_SHOP, 5, 4);
            bed_expect_next(&bed, SEQ_WLOG, 4);
        } else {
            assert_status(bed_start(&bed, KIND_SHOP, 5, &offset), PAWL_ECORRUPT);
            assert_contains(pawl_sequencer_error(bed.s)->text, "offset 3 was flushed");
            assert_int_equal(bed.mock.stored_last, 0);
        }
        bed_release(&bed);
    }
}

/* So that nothing else of a workspace is in memory. */
static void evict(struct bed *bed)
{
    bed_cycle(bed, KIND_SHOP, 1000, SEQ_WLOG);
    bed_stored(bed, bed->mock.log_count);
    bed_cycle(bed, KIND_SHOP, 1001, SEQ_WLOG);
    bed_stored(bed, bed->mock.log_count);
}

/* The workspace is a shop; as a bank it gets no number, and goes on as a shop. */
static void expect_a_shop(struct bed *bed, uint64_t wsid, uint64_t wlog)
{
    uint64_t offset, number = 77;
    assert_ok(bed_start(bed, KIND_BANK, wsid, &offset));
    assert_status(bed_next(bed, SEQ_WLOG, &number), PAWL_EMISUSE);
    assert_contains(pawl_sequencer_error(bed->s)->text, "is of kind 3, not 7");
    assert_status(bed_next(bed, SEQ_INVOICE, &number), PAWL_EMISUSE);
    assert_int_equal(number, 77);
    assert_ok(bed_cancel(bed));
    bed_expect_start(bed, KIND_SHOP, wsid, offset);
    bed_expect_next(bed, SEQ_WLOG, wlog);
    assert_ok(bed_cancel(bed));
}

TEST(a_workspace_that_is_not_cached_keeps_its_kind)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.workspaces_max = 1;
    bed_new_ready(&bed);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    evict(&bed);
    expect_a_shop(&bed, 5, 2);
    bed_release(&bed);
}

TEST(a_workspace_keeps_its_kind_when_it_is_opened_again)
{
    struct bed bed;
    uint64_t offset, number;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    assert_ok(bed_close(&bed));
    bed_new_ready(&bed);
    expect_a_shop(&bed, 5, 2);
    assert_ok(bed_close(&bed));
    bed.options.kinds = &test_kinds[1]; /* there are no shops any more */
    bed.options.kind_count = 1;
    bed_new_ready(&bed);
    assert_ok(bed_start(&bed, KIND_BANK, 5, &offset));
    assert_status(bed_next(&bed, SEQ_WLOG, &number), PAWL_EMISUSE);
    bed_release(&bed);
}

/* The shop is of an unknown kind in every second round. */
TEST(a_workspace_keeps_its_kind_when_the_storage_is_lost)
{
    for (int unknown = 0; unknown < 2; unknown++) {
        struct bed bed;
        uint64_t offset, number;
        bed_open(&bed, 1);
        bed.options.limits.recovery_batch = 1;
        for (uint64_t i = 1; i <= 5; i++)
            mock_append_one(&bed.mock, i, KIND_SHOP, 5, SEQ_WLOG, i);
        bed.options.kinds = &test_kinds[unknown];
        bed.options.kind_count = 2 - (size_t)unknown;
        bed_new_ready(&bed);
        assert_ok(bed_close(&bed));
        bed_new_ready(&bed);
        assert_ok(bed_start(&bed, KIND_BANK, 5, &offset));
        assert_status(bed_next(&bed, SEQ_WLOG, &number), PAWL_EMISUSE);
        bed_release(&bed);
    }
}

/* Kinds 98 and 99 are not known. The cache is too small for any workspace to stay, and everything is written at
 * once; or all stays, and is written at the end. */
TEST(a_log_in_which_a_workspace_changes_its_kind_is_refused_at_every_opening)
{
    static const uint16_t changes[][2] = {{KIND_SHOP, KIND_BANK}, {KIND_SHOP, 99}, {99, KIND_SHOP}, {98, 99}};
    for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++)
        for (uint32_t small = 0; small < 2; small++) {
            struct bed bed;
            bed_open(&bed, c);
            bed.options.limits.recovery_batch = small ? 1 : 100;
            bed.options.limits.workspaces_max = small ? 1 : 100;
            mock_append_one(&bed.mock, 1, changes[c][0], 5, SEQ_WLOG, 1);
            for (uint64_t i = 2; i <= 9; i++)
                mock_append_one(&bed.mock, i, KIND_SHOP, 100 + i, SEQ_WLOG, 1);
            mock_append_one(&bed.mock, 10, changes[c][1], 5, SEQ_WLOG, 2);
            for (int opening = 0; opening < 3; opening++)
                expect_refused(&bed, "workspace 5", "offset 10");
            bed_release(&bed);
        }
}

TEST(a_workspace_whose_first_event_never_was_has_no_kind)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 1);
    bed_expect_next(&bed, SEQ_WLOG, 1);
    assert_ok(bed_cancel(&bed));
    bed_expect_start(&bed, KIND_SHOP, 5, 1);
    bed_expect_next(&bed, SEQ_WLOG, 1);
    assert_ok(bed_stage(&bed));
    assert_ok(bed_actualize(&bed));
    bed_ready(&bed);
    bed_expect_start(&bed, KIND_BANK, 5, 1);
    bed_expect_next(&bed, SEQ_WLOG, 1);
    mock_append_one(&bed.mock, 1, KIND_BANK, 5, SEQ_WLOG, 1);
    assert_ok(bed_flush(&bed, 1));
    bed_stored(&bed, 1);
    assert_int_equal(mock_stored(&bed.mock, 5, PAWL_SEQUENCE_KIND), KIND_BANK + 1);
    bed_release(&bed);
}

TEST(a_storage_that_was_written_without_kinds_learns_them)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.workspaces_max = 1;
    mock_put(&bed.mock, 5, SEQ_WLOG, 7);
    bed_new_ready(&bed);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    evict(&bed);
    expect_a_shop(&bed, 5, 9);
    bed_release(&bed);
}

TEST(a_storage_has_no_kinds_if_they_are_kept_elsewhere)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.kinds_elsewhere = true;
    mock_append_one(&bed.mock, 1, KIND_SHOP, 4, SEQ_WLOG, 1);
    mock_append_one(&bed.mock, 2, 99, 6, SEQ_WLOG, 1);
    bed_new_ready(&bed);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    bed_stored(&bed, 3);
    for (uint64_t ws = 4; ws <= 6; ws++) {
        assert_int_equal(mock_stored(&bed.mock, ws, SEQ_WLOG), 1);
        assert_int_equal(mock_stored(&bed.mock, ws, PAWL_SEQUENCE_KIND), 0);
    }
    bed_release(&bed);
}

/* Many staged events of new workspaces: each brings a row for its kind beside its number. */
TEST(there_is_room_for_the_kinds_of_all_that_is_staged)
{
    enum { STAGED = 64 };
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.staged_max = STAGED;
    bed.options.limits.unflushed_max = STAGED;
    bed.options.limits.recovery_batch = STAGED;
    bed_new_ready(&bed);
    for (uint64_t ws = 1; ws <= STAGED; ws++) {
        bed_expect_start(&bed, KIND_SHOP, ws, ws);
        bed_expect_next(&bed, SEQ_WLOG, 1);
        if (ws == STAGED) {
            bed_expect_next(&bed, SEQ_REC, 200001);
            bed_expect_next(&bed, SEQ_CREC, 200001);
        }
        assert_ok(bed_stage(&bed));
    }
    assert_ok(bed_flush(&bed, STAGED));
    bed_stored(&bed, STAGED);
    for (uint64_t ws = 1; ws <= STAGED; ws++)
        assert_int_equal(mock_stored(&bed.mock, ws, PAWL_SEQUENCE_KIND), KIND_SHOP + 1);
    bed_release(&bed);
}

TEST(no_sequence_has_the_name_that_stands_for_the_kind)
{
    static const pawl_sequence named[] = {{PAWL_SEQUENCE_KIND, 1, 0}};
    static const pawl_workspace_kind kinds[] = {{KIND_SHOP, named, 1}};
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.kinds = kinds;
    bed.options.kind_count = 1;
    assert_status(bed_new(&bed), PAWL_EINVAL);
    bed.options.kinds = test_kinds;
    mock_append_one(&bed.mock, 1, KIND_SHOP, 5, PAWL_SEQUENCE_KIND, 8);
    expect_refused(&bed, "sequence 0", "workspace 5");
    bed_release(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_value_ahead_of_the_log_is_refused_at_every_opening),
        RUN(a_log_out_of_order_is_refused_at_every_opening),
        RUN(a_scan_that_ignores_a_failed_write_loses_no_event),
        RUN(a_scan_that_ignores_a_failed_read_loses_no_event),
        RUN(a_scan_that_ignores_a_refusal_does_not_undo_it),
        RUN(actualizing_refuses_a_log_that_is_shorter_than_what_was_flushed),
        RUN(a_workspace_that_is_not_cached_keeps_its_kind),
        RUN(a_workspace_keeps_its_kind_when_it_is_opened_again),
        RUN(a_workspace_keeps_its_kind_when_the_storage_is_lost),
        RUN(a_log_in_which_a_workspace_changes_its_kind_is_refused_at_every_opening),
        RUN(a_workspace_whose_first_event_never_was_has_no_kind),
        RUN(a_storage_that_was_written_without_kinds_learns_them),
        RUN(a_storage_has_no_kinds_if_they_are_kept_elsewhere),
        RUN(there_is_room_for_the_kinds_of_all_that_is_staged),
        RUN(no_sequence_has_the_name_that_stands_for_the_kind),
    };
    return TEST_MAIN(tests);
}
