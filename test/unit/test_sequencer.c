/* The calls of a sequencer: the cycle, the pipeline, and every misuse. */
#include "test/lib/test.h"

#include "test/lib/sequence.h"

TEST(the_basic_cycle_continues_the_log_and_reaches_the_storage)
{
    struct bed bed;
    bed_open(&bed, 1);
    mock_append_one(&bed.mock, 42, KIND_SHOP, 5, SEQ_WLOG, 13);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 43);
    bed_expect_next(&bed, SEQ_WLOG, 14);
    assert_ok(bed_flush(&bed, 43));
    assert_int_equal(mock_stored(&bed.mock, 5, SEQ_WLOG), 13);
    mem_world_advance(bed.world, 499 * PAWL_MILLISECOND);
    assert_int_equal(bed.mock.stored_last, 42);
    mem_world_advance(bed.world, 3 * PAWL_MILLISECOND);
    assert_int_equal(mock_stored(&bed.mock, 5, SEQ_WLOG), 14);
    assert_int_equal(bed.mock.stored_last, 43);
    bed_release(&bed);
}

TEST(actualizing_gives_the_same_numbers_again)
{
    struct bed bed;
    bed_open(&bed, 1);
    mock_append_one(&bed.mock, 1, KIND_SHOP, 5, SEQ_WLOG, 1);
    bed_new_ready(&bed);
    for (int round = 0; round < 3; round++) {
        bed_expect_start(&bed, KIND_SHOP, 5, 2);
        bed_expect_next(&bed, SEQ_WLOG, 2);
        bed_expect_next(&bed, SEQ_REC, 200001);
        bed_expect_next(&bed, SEQ_REC, 200002);
        mem_world_advance(bed.world, PAWL_SECOND);
        assert_int_equal(bed.mock.stored_last, 1);
        assert_int_equal(mock_stored(&bed.mock, 5, SEQ_REC), 0);
        assert_ok(bed_actualize(&bed));
        assert_int_equal(pawl_sequencer_state_get(bed.s), PAWL_SEQUENCER_RECOVERING);
        bed_ready(&bed);
    }
    assert_int_equal(bed_figures(&bed).recoveries, 4);
    bed_release(&bed);
}

TEST(a_recovery_takes_the_greatest_number_of_each_sequence)
{
    struct bed bed;
    bed_open(&bed, 1);
    mock_append_one(&bed.mock, 1, KIND_SHOP, 5, SEQ_WLOG, 1);
    mock_append_one(&bed.mock, 2, KIND_SHOP, 5, SEQ_REC, 200009);
    mock_append_one(&bed.mock, 3, KIND_BANK, 6, SEQ_INVOICE, 1000);
    mock_append_one(&bed.mock, 4, KIND_SHOP, 5, SEQ_REC, 200004); /* later and smaller: does not win */
    mock_append_one(&bed.mock, 5, KIND_SHOP, 0, 0, 0);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 6);
    bed_expect_next(&bed, SEQ_WLOG, 2);
    bed_expect_next(&bed, SEQ_REC, 200010);
    bed_expect_next(&bed, SEQ_CREC, 200001);
    assert_ok(bed_cancel(&bed));
    bed_expect_start(&bed, KIND_BANK, 6, 6);
    bed_expect_next(&bed, SEQ_INVOICE, 1001);
    bed_expect_next(&bed, SEQ_WLOG, 1);
    /* The workspaces of the tail are cached: nothing was read but in the recovery. */
    assert_int_equal(bed_figures(&bed).cache_misses, 0);
    assert_int_equal(bed_figures(&bed).events_replayed, 5);
    bed_release(&bed);
}

TEST(an_empty_log_begins_with_the_first_numbers)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_BANK, 9, 1);
    bed_expect_next(&bed, SEQ_INVOICE, 1000);
    bed_expect_next(&bed, SEQ_INVOICE, 1001);
    assert_ok(bed_flush(&bed, 1));
    bed_release(&bed);
}

TEST(all_sequences_of_a_workspace_are_read_at_once)
{
    struct bed bed;
    bed_open(&bed, 1);
    mock_put(&bed.mock, 5, SEQ_WLOG, 7);
    mock_put(&bed.mock, 5, SEQ_CREC, 200003);
    bed.mock.stored_last = bed.mock.log_last = 20;
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 21);
    assert_int_equal(bed.mock.calls[MOCK_READ], 0);
    bed_expect_next(&bed, SEQ_WLOG, 8);
    bed_expect_next(&bed, SEQ_CREC, 200004);
    bed_expect_next(&bed, SEQ_REC, 200001);
    assert_int_equal(bed.mock.calls[MOCK_READ], 1);
    assert_ok(bed_flush(&bed, 21));
    bed_expect_start(&bed, KIND_SHOP, 5, 22);
    bed_expect_next(&bed, SEQ_REC, 200002);
    assert_int_equal(bed.mock.calls[MOCK_READ], 1);
    assert_int_equal(bed_figures(&bed).cache_hits, 1);
    assert_int_equal(bed_figures(&bed).cache_misses, 1);
    bed_release(&bed);
}

TEST(cancelling_gives_back_the_open_event_and_nothing_else)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 1);
    bed_expect_next(&bed, SEQ_WLOG, 1);
    bed_expect_next(&bed, SEQ_REC, 200001);
    assert_ok(bed_stage(&bed));
    bed_expect_start(&bed, KIND_SHOP, 5, 2);
    bed_expect_next(&bed, SEQ_WLOG, 2);
    bed_expect_next(&bed, SEQ_REC, 200002);
    bed_expect_next(&bed, SEQ_REC, 200003);
    assert_ok(bed_cancel(&bed));
    bed_expect_start(&bed, KIND_SHOP, 5, 2);
    bed_expect_next(&bed, SEQ_REC, 200002);
    bed_expect_next(&bed, SEQ_WLOG, 2);
    assert_ok(bed_stage(&bed));
    assert_ok(bed_flush(&bed, 2));
    bed_stored(&bed, 2);
    assert_int_equal(mock_stored(&bed.mock, 5, SEQ_REC), 200002);
    bed_release(&bed);
}

TEST(only_what_is_flushed_of_a_pipeline_reaches_the_storage)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    for (uint64_t i = 1; i <= 5; i++) {
        bed_expect_start(&bed, KIND_SHOP, 5, i);
        bed_expect_next(&bed, SEQ_WLOG, i);
        assert_ok(bed_stage(&bed));
    }
    bed_expect_start(&bed, KIND_SHOP, 5, 6);
    bed_expect_next(&bed, SEQ_WLOG, 6);
    assert_ok(bed_flush(&bed, 3));
    bed_stored(&bed, 3);
    assert_int_equal(mock_stored(&bed.mock, 5, SEQ_WLOG), 3);
    assert_int_equal(bed_figures(&bed).staged, 2);
    assert_int_equal(bed_figures(&bed).offset_given, 6);
    assert_ok(bed_flush(&bed, 3)); /* again: nothing */
    assert_ok(bed_stage(&bed));
    assert_ok(bed_flush(&bed, 6));
    bed_stored(&bed, 6);
    assert_int_equal(mock_stored(&bed.mock, 5, SEQ_WLOG), 6);
    bed_release(&bed);
}

TEST(actualizing_a_pipeline_keeps_what_the_log_holds_and_drops_the_rest)
{
    for (uint64_t arrived = 0; arrived <= 4; arrived++) {
        struct bed bed;
        bed_open(&bed, arrived);
        bed_new_ready(&bed);
        for (uint64_t i = 1; i <= 3; i++) {
            bed_expect_start(&bed, KIND_SHOP, 5, i);
            bed_expect_next(&bed, SEQ_WLOG, i);
            assert_ok(bed_stage(&bed));
        }
        bed_expect_start(&bed, KIND_SHOP, 5, 4);
        bed_expect_next(&bed, SEQ_WLOG, 4);
        for (uint64_t i = 1; i <= arrived; i++)
            mock_append_one(&bed.mock, i, KIND_SHOP, 5, SEQ_WLOG, i);
        if (arrived >= 2)
            assert_ok(bed_flush(&bed, 1));
        assert_ok(bed_actualize(&bed));
        bed_ready(&bed);
        bed_expect_start(&bed, KIND_SHOP, 5, arrived + 1);
        bed_expect_next(&bed, SEQ_WLOG, arrived + 1);
        assert_ok(bed_cancel(&bed));
        assert_int_equal(mock_stored(&bed.mock, 5, SEQ_WLOG), arrived);
        bed_release(&bed);
    }
}

enum op {
    NEW,
    READY,
    START,
    START_ZERO,
    START_UNKNOWN,
    START_OTHER,
    NEXT,
    STAGE,
    FLUSH,
    CANCEL,
    ACTUALIZE,
    CLOSE
};

static int perform(struct bed *bed, enum op op, uint64_t number)
{
    uint64_t ret = 0;
    switch (op) {
    case NEW:
        assert_ok(bed_new(bed));
        while (pawl_sequencer_state_get(bed->s) != PAWL_SEQUENCER_RECOVERING)
            assert_true(mem_world_step(bed->world));
        return PAWL_OK;
    case READY: bed_ready(bed); return PAWL_OK;
    case START: return bed_start(bed, KIND_SHOP, 5, &ret);
    case START_ZERO: return bed_start(bed, KIND_SHOP, 0, &ret);
    case START_UNKNOWN: return bed_start(bed, 99, 5, &ret);
    case START_OTHER: return bed_start(bed, KIND_BANK, 5, &ret);
    case NEXT: return bed_next(bed, SEQ_WLOG, &ret);
    case STAGE: return bed_stage(bed);
    case FLUSH: return bed_flush(bed, number);
    case CANCEL: return bed_cancel(bed);
    case ACTUALIZE: return bed_actualize(bed);
    case CLOSE: bed_close_begin(bed); return PAWL_OK;
    }
    return PAWL_EINVAL;
}

/* What led there, then the call that is refused. Each row starts from NEW. */
static const struct {
    enum op before[8];
    enum op call;
    uint64_t number;
    int status;
} misuses[] = {
    {{NEW, READY, START}, START, 0, PAWL_EMISUSE},
    {{NEW, READY, START}, START_UNKNOWN, 0, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT, STAGE}, START_UNKNOWN, 0, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT, STAGE}, START_OTHER, 0, PAWL_EMISUSE},
    {{NEW}, START_UNKNOWN, 0, PAWL_EMISUSE},
    {{NEW}, START, 0, PAWL_EBUSY},
    {{NEW}, NEXT, 0, PAWL_EMISUSE},
    {{NEW}, FLUSH, 0, PAWL_EMISUSE},
    {{NEW}, ACTUALIZE, 0, PAWL_EMISUSE},
    {{NEW, READY}, NEXT, 0, PAWL_EMISUSE},
    {{NEW, READY}, STAGE, 0, PAWL_EMISUSE},
    {{NEW, READY}, CANCEL, 0, PAWL_EMISUSE},
    {{NEW, READY}, FLUSH, 0, PAWL_EMISUSE},
    {{NEW, READY}, FLUSH, 1, PAWL_EMISUSE},
    {{NEW, READY}, ACTUALIZE, 0, PAWL_EMISUSE},
    {{NEW, READY, START_ZERO}, NEXT, 0, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT}, FLUSH, 2, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT, STAGE}, NEXT, 0, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT, STAGE}, STAGE, 0, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT, STAGE}, CANCEL, 0, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT, STAGE}, FLUSH, 2, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT, STAGE}, FLUSH, UINT64_MAX, PAWL_EMISUSE},
    {{NEW, READY, START, NEXT, STAGE, START}, FLUSH, 2, PAWL_EMISUSE}, /* open above a staged one */
    {{NEW, READY, START, NEXT, STAGE, START}, START, 0, PAWL_EMISUSE},
    {{NEW, READY, START, ACTUALIZE}, ACTUALIZE, 0, PAWL_EMISUSE},
    {{NEW, READY, START, ACTUALIZE}, FLUSH, 1, PAWL_EMISUSE},
    {{NEW, READY, START, ACTUALIZE}, CANCEL, 0, PAWL_EMISUSE},
    {{NEW, READY, START, ACTUALIZE}, START, 0, PAWL_EBUSY},
    {{NEW, READY, CLOSE}, START, 0, PAWL_EMISUSE},
    {{NEW, READY, START, CLOSE}, START, 0, PAWL_EMISUSE},
    {{NEW, READY, START, CLOSE}, NEXT, 0, PAWL_EMISUSE},
    {{NEW, READY, START, CLOSE}, STAGE, 0, PAWL_EMISUSE},
    {{NEW, READY, START, CLOSE}, FLUSH, 1, PAWL_EMISUSE},
    {{NEW, READY, START, CLOSE}, CANCEL, 0, PAWL_EMISUSE},
    {{NEW, READY, START, STAGE, CLOSE}, ACTUALIZE, 0, PAWL_EMISUSE},
    {{NEW, READY, START, STAGE, CLOSE}, FLUSH, 1, PAWL_EMISUSE},
    {{NEW, CLOSE}, START, 0, PAWL_EMISUSE},
};

/* What a caller could see of the state. */
static void assert_same_state(const pawl_sequencer_figures *a, const pawl_sequencer_figures *b)
{
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->offset_given, b->offset_given);
    assert_int_equal(a->offset_flushed, b->offset_flushed);
    assert_int_equal(a->staged, b->staged);
    assert_int_equal(a->unflushed, b->unflushed);
    assert_int_equal(a->workspaces, b->workspaces);
}

TEST(every_misuse_is_refused_and_changes_nothing)
{
    for (size_t m = 0; m < sizeof misuses / sizeof misuses[0]; m++) {
        struct bed bed;
        bed_open(&bed, m);
        for (size_t i = 0; i < 8 && (i == 0 || misuses[m].before[i] != NEW); i++)
            assert_ok(perform(&bed, misuses[m].before[i], 0));
        pawl_sequencer_figures before = bed_figures(&bed);
        if (perform(&bed, misuses[m].call, misuses[m].number) != misuses[m].status)
            fail_msg("row %zu was not refused", m);
        pawl_sequencer_figures after = bed_figures(&bed);
        assert_same_state(&before, &after);
        assert_int_equal(pawl_sequencer_error(bed.s)->code, misuses[m].status);
        bed_release(&bed);
    }
}

TEST(a_flush_below_the_last_flushed_is_misuse)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    bed_expect_start(&bed, KIND_SHOP, 5, 3);
    assert_status(bed_flush(&bed, 1), PAWL_EMISUSE);
    assert_ok(bed_flush(&bed, 2));
    assert_int_equal(pawl_sequencer_state_get(bed.s), PAWL_SEQUENCER_EVENTING);
    assert_ok(bed_flush(&bed, 3));
    bed_release(&bed);
}

TEST(an_unknown_sequence_is_refused_and_the_event_goes_on)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 1);
    uint64_t number = 77;
    static const uint16_t unknown[] = {0, SEQ_WLOG - 1, SEQ_CREC + 1, SEQ_INVOICE, UINT16_MAX};
    for (size_t i = 0; i < 5; i++)
        assert_status(bed_next(&bed, unknown[i], &number), PAWL_EUNKNOWN_SEQ);
    assert_int_equal(number, 77);
    bed_expect_next(&bed, SEQ_WLOG, 1);
    assert_ok(bed_flush(&bed, 1));
    bed_release(&bed);
}

TEST(a_sequence_ends_at_its_end_and_nothing_wraps)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    uint64_t offset = 0;
    for (uint64_t i = 1; i <= 20; i++)
        bed_cycle(&bed, KIND_SHOP, 5, SEQ_CREC);
    uint64_t number = 77;
    assert_ok(bed_start(&bed, KIND_SHOP, 5, &offset));
    assert_status(bed_next(&bed, SEQ_CREC, &number), PAWL_EEXHAUSTED);
    assert_int_equal(number, 77);
    assert_status(bed_next(&bed, SEQ_CREC, &number), PAWL_EEXHAUSTED);
    bed_expect_next(&bed, SEQ_REC, 200001);
    assert_ok(bed_cancel(&bed));
    assert_ok(bed_close(&bed));
    /* And so it is after a recovery, and at the end of all numbers. */
    mock_put(&bed.mock, 6, SEQ_WLOG, UINT64_MAX);
    bed_new_ready(&bed);
    assert_ok(bed_start(&bed, KIND_SHOP, 5, &offset));
    assert_status(bed_next(&bed, SEQ_CREC, &number), PAWL_EEXHAUSTED);
    assert_ok(bed_cancel(&bed));
    assert_ok(bed_start(&bed, KIND_SHOP, 6, &offset));
    assert_status(bed_next(&bed, SEQ_WLOG, &number), PAWL_EEXHAUSTED);
    bed_release(&bed);
}

TEST(the_last_offset_of_all_can_be_given_but_none_after_it)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.mock.stored_last = bed.mock.log_last = UINT64_MAX - 1;
    bed_new_ready(&bed);
    uint64_t offset;
    bed_expect_start(&bed, KIND_SHOP, 0, UINT64_MAX);
    assert_ok(bed_flush(&bed, UINT64_MAX));
    assert_status(bed_start(&bed, KIND_SHOP, 0, &offset), PAWL_EEXHAUSTED);
    bed_release(&bed);
}

TEST(a_system_event_takes_its_offset_only_and_the_storage_follows)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_expect_start(&bed, 99, 0, 1);
    assert_ok(bed_flush(&bed, 1));
    bed_expect_start(&bed, 99, 0, 2);
    assert_ok(bed_stage(&bed));
    assert_ok(bed_flush(&bed, 2));
    bed_stored(&bed, 2);
    assert_int_equal(bed.mock.stored_last, 2);
    assert_int_equal(bed.mock.rows_last, 0);
    bed_release(&bed);
}

TEST(start_is_busy_while_as_much_is_staged_as_may_be)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.staged_max = 4;
    bed_new_ready(&bed);
    uint64_t offset = 0;
    for (uint64_t i = 1; i <= 4; i++) {
        bed_expect_start(&bed, KIND_SHOP, 5, i);
        bed_expect_next(&bed, SEQ_WLOG, i);
        bed_expect_next(&bed, SEQ_REC, 200000 + i);
        bed_expect_next(&bed, SEQ_CREC, 200000 + i);
        assert_ok(bed_stage(&bed));
    }
    assert_status(bed_start(&bed, KIND_SHOP, 5, &offset), PAWL_EBUSY);
    assert_int_equal(bed_figures(&bed).busy, 1);
    assert_ok(bed_flush(&bed, 1));
    bed_expect_start(&bed, KIND_SHOP, 5, 5);
    assert_ok(bed_cancel(&bed));
    bed_release(&bed);
}

TEST(options_that_make_no_sense_are_refused)
{
    static const pawl_sequence twice[] = {{SEQ_WLOG, 0, 0}, {SEQ_WLOG, 5, 0}};
    static const pawl_sequence backward[] = {{SEQ_WLOG, 10, 9}};
    static pawl_sequence many[PAWL_SEQUENCES_MAX + 1];
    static const pawl_workspace_kind kinds_twice[] = {{1, NULL, 0}, {1, NULL, 0}};
    static const pawl_workspace_kind seq_twice = {1, twice, 2};
    static const pawl_workspace_kind end_first = {1, backward, 1};
    static const pawl_workspace_kind too_many = {1, many, PAWL_SEQUENCES_MAX + 1};
    struct bed bed;
    bed_open(&bed, 1);
    const pawl_sequencer_options good = {
        .env = mem_env_port(bed.env), .storage = mock_storage(&bed.mock), .kinds = test_kinds, .kind_count = 2};
    pawl_sequencer_options bad[10];
    for (int i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].shard = 1;
    bad[1].storage.read_numbers = NULL;
    bad[2].storage.scan_log = NULL;
    bad[3].limits.staged_max = 100;
    bad[4].limits.retry_min = 2 * PAWL_SECOND;
    bad[5].kinds = kinds_twice;
    bad[6].kinds = &seq_twice, bad[6].kind_count = 1;
    bad[7].kinds = &end_first, bad[7].kind_count = 1;
    bad[8].kinds = &too_many, bad[8].kind_count = 1;
    bad[9].limits.unflushed_max = UINT32_MAX;
    for (int i = 0; i < 10; i++) {
        pawl_sequencer *s = NULL;
        pawl_error error = {0};
        assert_status(pawl_sequencer_new(&bad[i], &s, &error), PAWL_EINVAL);
        assert_null(s);
        assert_true(error.text[0] != '\0');
    }
    bed_release(&bed);
}

TEST(a_workspace_whose_first_event_was_cancelled_is_of_no_kind_yet)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 1);
    bed_expect_next(&bed, SEQ_WLOG, 1);
    assert_ok(bed_cancel(&bed));
    bed_cycle(&bed, KIND_BANK, 5, SEQ_INVOICE);
    uint64_t offset;
    assert_status(bed_start(&bed, KIND_SHOP, 5, &offset), PAWL_EMISUSE);
    assert_ok(bed_close(&bed));
    bed_release(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_basic_cycle_continues_the_log_and_reaches_the_storage),
        RUN(actualizing_gives_the_same_numbers_again),
        RUN(a_recovery_takes_the_greatest_number_of_each_sequence),
        RUN(an_empty_log_begins_with_the_first_numbers),
        RUN(all_sequences_of_a_workspace_are_read_at_once),
        RUN(cancelling_gives_back_the_open_event_and_nothing_else),
        RUN(only_what_is_flushed_of_a_pipeline_reaches_the_storage),
        RUN(actualizing_a_pipeline_keeps_what_the_log_holds_and_drops_the_rest),
        RUN(every_misuse_is_refused_and_changes_nothing),
        RUN(a_flush_below_the_last_flushed_is_misuse),
        RUN(an_unknown_sequence_is_refused_and_the_event_goes_on),
        RUN(a_sequence_ends_at_its_end_and_nothing_wraps),
        RUN(the_last_offset_of_all_can_be_given_but_none_after_it),
        RUN(a_system_event_takes_its_offset_only_and_the_storage_follows),
        RUN(start_is_busy_while_as_much_is_staged_as_may_be),
        RUN(options_that_make_no_sense_are_refused),
        RUN(a_workspace_whose_first_event_was_cancelled_is_of_no_kind_yet),
    };
    return TEST_MAIN(tests);
}
