/* What a sequencer refuses for good, because going on would give a number twice; and that a refusal lasts. */
#include "test/lib/test.h"

#include "test/lib/sequence.h"

/* It never gets ready, says these words, and gives no numbers. */
static void expect_refused(struct bed *bed, const char *first, const char *second)
{
    uint64_t offset;
    assert_ok(bed_new(bed));
    mem_world_advance(bed->world, 10 * PAWL_SECOND);
    assert_int_equal(pawl_sequencer_status(bed->s), PAWL_SEQUENCER_FINISHED);
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
        bed.options.recovery_batch = batch;
        bed.options.workspaces_max = 1;
        for (uint64_t i = 1; i <= 9; i++)
            mock_append_one(&bed.mock, i, KIND_SHOP, i % 3 + 4, SEQ_WLOG, (i + 2) / 3);
        mock_put(&bed.mock, 5, SEQ_WLOG, 17);
        for (int opening = 0; opening < 3; opening++)
            expect_refused(&bed, "17", "3");
        assert_int_equal(bed.mock.view_last, 0);
        bed_release(&bed);
    }
}

TEST(a_log_out_of_order_is_refused_at_every_opening)
{
    for (uint32_t batch = 1; batch <= 8; batch++) {
        struct bed bed;
        bed_open(&bed, 1);
        bed.options.recovery_batch = batch;
        for (uint64_t i = 1; i <= 6; i++)
            mock_append_one(&bed.mock, i, KIND_SHOP, i, SEQ_WLOG, 1);
        mock_append_one(&bed.mock, 3, KIND_SHOP, 3, SEQ_WLOG, 2);
        for (int opening = 0; opening < 3; opening++)
            expect_refused(&bed, "offset 3", "after 6");
        assert_int_equal(bed.mock.view_last, 0);
        bed_release(&bed);
    }
}

TEST(a_scan_that_ignores_a_failed_write_loses_no_event)
{
    for (uint32_t failures = 1; failures <= 3; failures++)
        for (size_t at_once = 1; at_once <= 3; at_once++) {
            struct bed bed;
            bed_open(&bed, failures);
            bed.options.recovery_batch = 4;
            bed.mock.batch = at_once;
            bed.mock.scan_is_deaf = true;
            bed.mock.fail[MOCK_WRITE] = failures;
            for (uint64_t i = 1; i <= 20; i++)
                mock_append_one(&bed.mock, i, KIND_SHOP, i, SEQ_WLOG, 1);
            bed_new_ready(&bed);
            assert_int_equal(bed_figures(&bed).recovery_retries, failures);
            for (uint64_t ws = 1; ws <= 20; ws++)
                assert_int_equal(mock_view(&bed.mock, ws, SEQ_WLOG), 1);
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

/* The view lags, or it would know too. */
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
            assert_int_equal(bed.mock.view_last, 0);
        }
        bed_release(&bed);
    }
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
    };
    return TEST_MAIN(tests);
}
