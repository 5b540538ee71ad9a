/* A storage that fails, is slow, or holds what it should not; and an end in every state. */
#include "test/lib/test.h"

#include "test/lib/alloc.h"
#include "test/lib/sequence.h"

static void expect_after(struct bed *bed, uint64_t offset, uint64_t wsid, uint64_t wlog)
{
    bed_expect_start(bed, KIND_SHOP, wsid, offset);
    bed_expect_next(bed, SEQ_WLOG, wlog);
    assert_ok(bed_cancel(bed));
}

TEST(a_read_that_fails_is_the_answer_of_next_and_the_event_stays_open)
{
    struct bed bed;
    bed_open(&bed, 1);
    mock_put(&bed.mock, 5, SEQ_WLOG, 7);
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 5, 1);
    bed.mock.fail[MOCK_READ] = 2;
    uint64_t number = 77;
    for (int i = 0; i < 2; i++) {
        assert_status(bed_next(&bed, SEQ_WLOG, &number), PAWL_EIO);
        assert_int_equal(number, 77);
        assert_contains(pawl_sequencer_error(bed.s)->text, "workspace 5");
        assert_contains(pawl_sequencer_error(bed.s)->text, "ordered failure");
    }
    bed_expect_next(&bed, SEQ_WLOG, 8);
    assert_ok(bed_cancel(&bed));
    bed.mock.fail[MOCK_READ] = MOCK_FOR_EVER;
    bed_expect_start(&bed, KIND_SHOP, 6, 1);
    assert_status(bed_next(&bed, SEQ_WLOG, &number), PAWL_EIO);
    assert_ok(bed_cancel(&bed));
    expect_after(&bed, 1, 5, 8); /* what is cached needs no storage */
    bed_release(&bed);
}

TEST(a_write_that_fails_is_tried_again_with_doubling_delays)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.flush_events = 1;
    bed.options.limits.retry_min = 100 * PAWL_MILLISECOND;
    bed.options.limits.retry_max = 400 * PAWL_MILLISECOND;
    bed_new_ready(&bed);
    bed.mock.fail[MOCK_WRITE] = 5;
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    static const struct {
        uint64_t ms;
        uint64_t calls;
    } expected[] = {{50, 1}, {100, 2}, {200, 3}, {400, 4}, {400, 5}, {400, 6}};
    for (size_t i = 0; i < 6; i++) {
        mem_world_advance(bed.world, expected[i].ms * PAWL_MILLISECOND);
        assert_int_equal(bed.mock.calls[MOCK_WRITE], expected[i].calls);
    }
    assert_int_equal(bed.mock.stored_last, 1);
    assert_int_equal(bed_figures(&bed).flush_failures, 5);
    assert_int_equal(bed_figures(&bed).unflushed, 0);
    bed_release(&bed);
}

TEST(a_write_of_an_offset_alone_is_tried_again_too)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.flush_events = 1;
    bed_new_ready(&bed);
    bed.mock.fail[MOCK_WRITE] = 3;
    bed_expect_start(&bed, KIND_SHOP, 0, 1);
    assert_ok(bed_flush(&bed, 1));
    bed_stored(&bed, 1);
    assert_int_equal(bed.mock.stored_last, 1);
    bed_release(&bed);
}

TEST(writing_that_fails_for_ever_ends_in_busy_and_nothing_is_lost_when_it_heals)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.unflushed_max = 50;
    bed.options.kinds_elsewhere = true; /* values are counted below */
    bed.options.limits.flush_events = 10;
    bed.options.limits.workspaces_max = 3;
    bed_new_ready(&bed);
    bed.mock.fail[MOCK_WRITE] = MOCK_FOR_EVER;
    uint64_t offset;
    uint64_t number;
    uint64_t done = 0;
    for (;; done++) {
        mem_world_advance(bed.world, 20 * PAWL_MILLISECOND);
        int status = bed_start(&bed, KIND_SHOP, done % 40 + 1, &offset);
        if (status == PAWL_EBUSY)
            break;
        assert_ok(status);
        assert_ok(bed_next(&bed, SEQ_WLOG, &number));
        mock_append_one(&bed.mock, offset, KIND_SHOP, done % 40 + 1, SEQ_WLOG, number);
        assert_ok(bed_flush(&bed, offset));
    }
    assert_true(done >= 45 && done <= 60);
    assert_int_equal(bed_figures(&bed).unflushed, 50);
    assert_int_equal(bed.mock.stored_last, 0);
    mem_world_advance(bed.world, 60 * PAWL_SECOND);
    assert_status(bed_start(&bed, KIND_SHOP, 1, &offset), PAWL_EBUSY);
    bed.mock.fail[MOCK_WRITE] = 0;
    bed_stored(&bed, done);
    assert_int_equal(bed_figures(&bed).unflushed, 0);
    for (uint64_t ws = 1; ws <= 40; ws++) {
        assert_int_equal(mock_stored(&bed.mock, ws, SEQ_WLOG), mock_replay(&bed.mock, ws, SEQ_WLOG));
        expect_after(&bed, done + 1, ws, mock_replay(&bed.mock, ws, SEQ_WLOG) + 1);
    }
    bed_release(&bed);
}

TEST(a_torn_write_before_a_crash_leaves_no_gap_and_no_double)
{
    static const enum mock_tear tears[] = {MOCK_WHOLE, MOCK_NO_OFFSET, MOCK_HALF};
    for (size_t t = 0; t < 3; t++) {
        struct bed bed;
        bed_open(&bed, t);
        bed.options.limits.flush_events = 8;
        bed_new_ready(&bed);
        for (uint64_t i = 0; i < 8; i++)
            bed_cycle(&bed, KIND_SHOP, i % 4 + 1, SEQ_WLOG);
        bed_stored(&bed, 8);
        bed.mock.fail[MOCK_WRITE] = MOCK_FOR_EVER;
        bed.mock.tear = tears[t];
        for (uint64_t i = 0; i < 8; i++)
            bed_cycle(&bed, KIND_SHOP, i % 4 + 1, SEQ_WLOG);
        mem_world_advance(bed.world, 100 * PAWL_MILLISECOND);
        assert_true(bed.mock.calls[MOCK_WRITE] > 2);
        assert_int_equal(bed.mock.stored_last, 8);
        bed_crash(&bed);
        bed.mock.fail[MOCK_WRITE] = 0;
        bed_new_ready(&bed);
        for (uint64_t ws = 1; ws <= 4; ws++)
            expect_after(&bed, 17, ws, 5);
        assert_int_equal(bed.mock.stored_last, 16);
        bed_release(&bed);
    }
}

TEST(a_recovery_survives_failures_of_every_call)
{
    static const uint32_t times[] = {1, 5};
    for (int call = 0; call < MOCK_CALLS; call++)
        for (size_t t = 0; t < 2; t++)
            for (uint32_t after = 0; after < 3; after++) {
                struct bed bed;
                bed_open(&bed, after);
                bed.options.limits.recovery_batch = 4;
                for (uint64_t i = 1; i <= 20; i++)
                    mock_append_one(&bed.mock, i, KIND_SHOP, (i - 1) % 5 + 1, SEQ_WLOG, (i - 1) / 5 + 1);
                bed.mock.fail[call] = times[t];
                bed.mock.scan_fails_after = after * 6;
                bed.mock.tear = (enum mock_tear)after;
                bed_new_ready(&bed);
                assert_int_equal(bed_figures(&bed).recovery_retries, times[t]);
                assert_int_equal(bed_figures(&bed).recoveries, 1);
                for (uint64_t ws = 1; ws <= 5; ws++)
                    expect_after(&bed, 21, ws, 5);
                assert_int_equal(bed.mock.stored_last, 20);
                bed_release(&bed);
            }
}

TEST(a_recovery_that_fails_for_ever_is_busy_and_can_be_closed)
{
    for (int call = 0; call < MOCK_CALLS; call++) {
        struct bed bed;
        bed_open(&bed, 1);
        mock_append_one(&bed.mock, 1, KIND_SHOP, 5, SEQ_WLOG, 1);
        bed.mock.fail[call] = MOCK_FOR_EVER;
        assert_ok(bed_new(&bed));
        mem_world_advance(bed.world, 30 * PAWL_SECOND);
        uint64_t offset;
        assert_status(bed_start(&bed, KIND_SHOP, 5, &offset), PAWL_EBUSY);
        assert_int_equal(pawl_sequencer_state_get(bed.s), PAWL_SEQUENCER_RECOVERING);
        assert_true(bed_figures(&bed).recovery_retries >= 30);
        assert_ok(bed_close(&bed));
        bed_release(&bed);
    }
}

struct told {
    struct sequencer_waiter waiter;
    int status;
};

static void tell(struct sequencer_waiter *waiter, int status)
{
    ((struct told *)waiter)->status = status;
}

static void expect_refused(struct bed *bed, const char *first, const char *second)
{
    struct told told = {.waiter.fn = tell, .status = 1};
    uint64_t offset;
    assert_ok(bed_new(bed));
    sequencer_wait(bed->s, &told.waiter);
    mem_world_advance(bed->world, 10 * PAWL_SECOND);
    assert_status(told.status, PAWL_ECORRUPT);
    assert_int_equal(pawl_sequencer_state_get(bed->s), PAWL_SEQUENCER_FINISHED);
    assert_contains(pawl_sequencer_error(bed->s)->text, first);
    assert_contains(pawl_sequencer_error(bed->s)->text, second);
    assert_status(bed_start(bed, KIND_SHOP, 5, &offset), PAWL_ECORRUPT);
    assert_status(bed_actualize(bed), PAWL_EMISUSE);
    told.status = 1;
    sequencer_wait(bed->s, &told.waiter);
    assert_status(told.status, PAWL_ECORRUPT);
    assert_ok(bed_close(bed));
}

TEST(a_storage_whose_offset_is_ahead_of_the_log_is_refused)
{
    struct bed bed;
    bed_open(&bed, 1);
    mock_append_one(&bed.mock, 42, KIND_SHOP, 5, SEQ_WLOG, 13);
    bed.mock.stored_last = 50;
    expect_refused(&bed, "50", "42");
    assert_int_equal(bed.mock.calls[MOCK_WRITE], 0);
    bed_release(&bed);
}

TEST(a_storage_whose_value_is_ahead_of_the_log_is_refused)
{
    for (int unknown = 0; unknown < 2; unknown++)
        for (uint32_t batch = 1; batch <= 8; batch++) {
            struct bed bed;
            bed_open(&bed, 1);
            bed.options.limits.recovery_batch = batch;
            bed.options.limits.workspaces_max = 1;
            for (uint64_t i = 1; i <= 9; i++)
                mock_append_one(&bed.mock, i, unknown ? 99 : KIND_SHOP, i % 3 + 4, SEQ_WLOG, (i + 2) / 3);
            mock_put(&bed.mock, 5, SEQ_WLOG, 17);
            expect_refused(&bed, "17", "3");
            bed_release(&bed);
        }
}

TEST(a_storage_that_is_ahead_of_its_own_offset_only_is_as_a_torn_write_leaves_it)
{
    for (uint32_t batch = 1; batch <= 8; batch++) {
        struct bed bed;
        bed_open(&bed, 1);
        bed.options.limits.recovery_batch = batch;
        bed.options.limits.workspaces_max = 1;
        for (uint64_t i = 1; i <= 9; i++)
            mock_append_one(&bed.mock, i, i % 3 == 1 ? 99 : KIND_SHOP, i % 3 + 4, SEQ_WLOG, (i + 2) / 3);
        for (uint64_t ws = 4; ws <= 6; ws++)
            mock_put(&bed.mock, ws, SEQ_WLOG, 3);
        bed.mock.stored_last = 3;
        bed_new_ready(&bed);
        expect_after(&bed, 10, 4, 4);
        expect_after(&bed, 10, 6, 4);
        assert_int_equal(bed.mock.stored_last, 9);
        bed_release(&bed);
    }
}

TEST(a_log_that_cannot_be_read_is_refused)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.mock.fail[MOCK_SCAN] = 1;
    bed.mock.fail_with = PAWL_ECORRUPT;
    expect_refused(&bed, "after offset 0", "ordered failure");
    bed_release(&bed);
}

TEST(a_log_out_of_order_or_with_two_kinds_of_one_workspace_is_refused)
{
    struct bed bed;
    bed_open(&bed, 1);
    mock_append_one(&bed.mock, 2, KIND_SHOP, 5, SEQ_WLOG, 1);
    mock_append_one(&bed.mock, 1, KIND_SHOP, 5, SEQ_WLOG, 2);
    expect_refused(&bed, "offset 1", "after 2");
    bed.mock.log[1].offset = 3;
    bed.mock.log[1].kind = KIND_BANK;
    expect_refused(&bed, "kind 7", "kind 3");
    bed_release(&bed);
}

TEST(numbers_of_unknown_kinds_and_sequences_are_kept_until_they_are_known_again)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.recovery_batch = 3;
    for (uint64_t i = 1; i <= 10; i++) {
        mock_append_one(&bed.mock, 3 * i - 2, KIND_BANK, 7, SEQ_INVOICE, 999 + i);
        mock_append_one(&bed.mock, 3 * i - 1, KIND_SHOP, 5, SEQ_WLOG, i);
        mock_append_one(&bed.mock, 3 * i, KIND_SHOP, 5, 4242, i);
    }
    bed.options.kind_count = 1; /* the bank is not known */
    bed_new_ready(&bed);
    assert_int_equal(mock_stored(&bed.mock, 7, SEQ_INVOICE), 1009);
    assert_int_equal(mock_stored(&bed.mock, 5, 4242), 10);
    expect_after(&bed, 31, 5, 11);
    assert_int_equal(bed_figures(&bed).unflushed, 0);
    assert_ok(bed_close(&bed));
    bed.options.kind_count = 2;
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_BANK, 7, 31);
    bed_expect_next(&bed, SEQ_INVOICE, 1010);
    bed_release(&bed);
}

/* The second event has more numbers than there is room for, and its last is of a sequence seen before. */
TEST(a_write_amid_an_event_loses_no_number_of_an_unknown_kind)
{
    enum { UNKNOWN = 99 };
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.unflushed_max = 4;
    bed.options.limits.recovery_batch = 4;
    struct mock_event event = {.offset = 2, .wsid = 5, .kind = UNKNOWN, .count = 7};
    for (uint16_t i = 0; i < 7; i++)
        event.numbers[i] = (pawl_sequence_number){(uint16_t)(107 - i), 2};
    mock_append_one(&bed.mock, 1, UNKNOWN, 5, 101, 1);
    mock_append(&bed.mock, &event);
    bed_new_ready(&bed);
    assert_int_equal(bed.mock.calls[MOCK_WRITE], 2);
    for (uint16_t seq = 101; seq <= 107; seq++)
        assert_int_equal(mock_stored(&bed.mock, 5, seq), 2);
    assert_int_equal(bed_figures(&bed).unflushed, 0);
    bed_release(&bed);
}

TEST(any_tail_up_to_ten_times_the_limit_is_recovered_in_bounded_memory)
{
    enum { LIMIT = 32 };
    size_t least = 0;
    for (uint64_t events = 0; events <= 10 * LIMIT; events += events < 3 * LIMIT ? 1 : 29) {
        struct bed bed;
        bed_open(&bed, events);
        bed.options.limits.unflushed_max = LIMIT;
        bed.options.limits.recovery_batch = LIMIT;
        bed.options.kinds_elsewhere = true; /* writes are counted below */
        bed.options.limits.workspaces_max = 8;
        bed.mock.batch = events % 9 + 1;
        for (uint64_t i = 0; i < events; i++)
            mock_append_one(&bed.mock, i + 1, KIND_SHOP, i % 45 + 1, SEQ_WLOG, i / 45 + 1);
        bed_new_ready(&bed);
        pawl_sequencer_figures figures = bed_figures(&bed);
        assert_int_equal(figures.events_replayed, events);
        assert_true(figures.workspaces <= 8);
        assert_int_equal(bed.mock.stored_last, events);
        assert_int_equal(bed.mock.calls[MOCK_WRITE],
                         events / LIMIT + (events > 0)); /* the offset alone, last */
        if (events == 3 * LIMIT - 1)
            least = figures.memory_bytes;
        if (least)
            assert_int_equal(figures.memory_bytes, least);
        for (uint64_t ws = 1; ws <= 45; ws++)
            expect_after(&bed, events + 1, ws, mock_replay(&bed.mock, ws, SEQ_WLOG) + 1);
        bed_release(&bed);
    }
}

TEST(actualizing_waits_for_the_write_that_is_under_way)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.flush_events = 1;
    bed_new_ready(&bed);
    mem_env_delay(bed.env, MEM_WORK, 2, 3 * PAWL_SECOND);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    bed_expect_start(&bed, KIND_SHOP, 5, 2);
    bed_expect_next(&bed, SEQ_WLOG, 2);
    assert_ok(bed_actualize(&bed));
    mem_world_advance(bed.world, 2 * PAWL_SECOND);
    assert_int_equal(pawl_sequencer_state_get(bed.s), PAWL_SEQUENCER_RECOVERING);
    assert_int_equal(bed.mock.calls[MOCK_SCAN], 1);
    mem_world_advance(bed.world, 2 * PAWL_SECOND);
    assert_int_equal(pawl_sequencer_state_get(bed.s), PAWL_SEQUENCER_READY);
    expect_after(&bed, 2, 5, 2);
    bed_release(&bed);
}

/* The last flush, by the state in which the end begins. */

enum situation {
    JUST_NEW,
    SCANNING,
    BACKING_OFF,
    IDLE,
    DIRTY,
    WRITING,
    WRITING_AND_DIRTY,
    RETRYING,
    OPEN,
    STAGED,
    ACTUALIZING,
    SITUATIONS
};

static void get_into(struct bed *bed, enum situation situation)
{
    uint64_t offset;
    bed->options.limits.flush_events =
        situation == WRITING || situation == WRITING_AND_DIRTY || situation == RETRYING;
    if (situation == BACKING_OFF)
        bed->mock.fail[MOCK_SCAN] = 3;
    assert_ok(bed_new(bed));
    if (situation == JUST_NEW)
        return;
    while (pawl_sequencer_state_get(bed->s) != PAWL_SEQUENCER_RECOVERING)
        assert_true(mem_world_step(bed->world));
    if (situation == BACKING_OFF)
        mem_world_advance(bed->world, 5 * PAWL_MILLISECOND);
    if (situation == SCANNING || situation == BACKING_OFF)
        return;
    bed_ready(bed);
    if (situation == IDLE)
        return;
    if (situation == RETRYING)
        bed->mock.fail[MOCK_WRITE] = 2;
    bed_cycle(bed, KIND_SHOP, 5, SEQ_WLOG);
    if (situation == WRITING_AND_DIRTY)
        bed_cycle(bed, KIND_SHOP, 5, SEQ_WLOG);
    if (situation == RETRYING)
        mem_world_advance(bed->world, 5 * PAWL_MILLISECOND);
    if (situation >= OPEN) {
        assert_ok(bed_start(bed, KIND_SHOP, 6, &offset));
        bed_expect_next(bed, SEQ_WLOG, 1);
    }
    if (situation == STAGED)
        assert_ok(bed_stage(bed));
    if (situation == ACTUALIZING)
        assert_ok(bed_actualize(bed));
}

TEST(closing_ends_well_in_every_state_and_writes_what_is_unflushed)
{
    for (int situation = 0; situation < SITUATIONS; situation++) {
        struct bed bed;
        bed_open(&bed, (uint64_t)situation);
        get_into(&bed, (enum situation)situation);
        struct told told = {.waiter.fn = tell, .status = 1};
        bool waits = situation == SCANNING || situation == BACKING_OFF || situation == ACTUALIZING;
        if (waits)
            sequencer_wait(bed.s, &told.waiter);
        bed_close_begin(&bed);
        if (waits)
            assert_status(told.status, PAWL_ECLOSED);
        assert_int_equal(pawl_sequencer_state_get(bed.s), PAWL_SEQUENCER_FINISHED);
        assert_ok(bed_close(&bed));
        uint64_t flushed = situation == WRITING_AND_DIRTY ? 2 : situation >= DIRTY ? 1 : 0;
        if (situation != ACTUALIZING)
            assert_int_equal(bed.mock.stored_last, flushed);
        assert_int_equal(mock_stored(&bed.mock, 6, SEQ_WLOG), 0);
        bed.mock.fail[MOCK_SCAN] = bed.mock.fail[MOCK_WRITE] = 0;
        bed_new_ready(&bed);
        expect_after(&bed, flushed + 1, 5, flushed + 1);
        bed_release(&bed);
    }
}

TEST(closing_gives_up_a_write_that_fails_for_ever_when_its_time_is_over)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.close_timeout = 2 * PAWL_SECOND;
    bed_new_ready(&bed);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    bed.mock.fail[MOCK_WRITE] = MOCK_FOR_EVER;
    bed_close_begin(&bed);
    mem_world_advance(bed.world, 1990 * PAWL_MILLISECOND);
    assert_false(bed.closed);
    assert_true(bed.mock.calls[MOCK_WRITE] >= 5);
    mem_world_advance(bed.world, 20 * PAWL_MILLISECOND);
    assert_true(bed.closed);
    assert_status(bed_close(&bed), PAWL_ETIMEOUT);
    bed.mock.fail[MOCK_WRITE] = 0;
    bed_new_ready(&bed);
    expect_after(&bed, 2, 5, 2);
    bed_release(&bed);
}

TEST(closing_waits_for_a_write_that_is_slower_than_its_time)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.close_timeout = PAWL_SECOND;
    bed_new_ready(&bed);
    mem_env_delay(bed.env, MEM_WORK, 2, 5 * PAWL_SECOND);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    bed_close_begin(&bed);
    mem_world_advance(bed.world, 4 * PAWL_SECOND);
    assert_false(bed.closed);
    assert_ok(bed_close(&bed));
    assert_int_equal(bed.mock.stored_last, 1);
    bed_release(&bed);
}

static void close_now(void *arg, enum mock_call call)
{
    struct bed *bed = arg;
    if (call == MOCK_READ)
        atomic_store(&bed->s->closing, true);
}

TEST(closing_ends_a_scan_at_the_next_event)
{
    struct bed bed;
    bed_open(&bed, 1);
    for (uint64_t i = 1; i <= 1000; i++)
        mock_append_one(&bed.mock, i, KIND_SHOP, i, SEQ_WLOG, 1);
    bed.mock.during = close_now;
    bed.mock.during_arg = &bed;
    assert_ok(bed_new(&bed));
    mem_world_advance(bed.world, 5 * PAWL_MILLISECOND);
    assert_int_equal(bed.mock.calls[MOCK_READ], 1);
    assert_ok(bed_close(&bed));
    bed_release(&bed);
}

/* A script of pipelined events; the process dies after each of its steps. */
TEST(a_crash_at_any_point_leaves_exactly_what_the_log_holds)
{
    enum { STEPS = 60 };
    for (int seed = 0; seed < 4; seed++)
        for (int die_at = 0; die_at <= STEPS; die_at++) {
            struct bed bed;
            struct mock_event staged[STEPS];
            size_t staged_count = 0;
            size_t logged = 0;
            bed_open(&bed, (uint64_t)seed);
            bed.options.limits.flush_events = 2;
            bed.options.limits.workspaces_max = 2;
            bed_new_ready(&bed);
            for (int step = 0; step < die_at; step++) {
                struct mock_event *event = &staged[staged_count];
                if (step % 6 < 3) {
                    *event = (struct mock_event){.kind = KIND_SHOP, .wsid = (uint64_t)step % 4 + 1, .count = 1};
                    event->numbers[0].seq = SEQ_WLOG;
                    assert_ok(bed_start(&bed, KIND_SHOP, event->wsid, &event->offset));
                    assert_ok(bed_next(&bed, SEQ_WLOG, &event->numbers[0].number));
                    assert_ok(bed_stage(&bed));
                    staged_count++;
                } else if (step % 6 < 5 && logged < staged_count) {
                    mock_append(&bed.mock, &staged[logged++]);
                } else if (logged > bed_figures(&bed).offset_flushed) {
                    assert_ok(bed_flush(&bed, logged));
                }
                mem_world_advance(bed.world, 300 * PAWL_MICROSECOND);
            }
            bed_crash(&bed);
            bed_new_ready(&bed);
            for (uint64_t ws = 1; ws <= 4; ws++)
                expect_after(&bed, logged + 1, ws, mock_replay(&bed.mock, ws, SEQ_WLOG) + 1);
            bed_release(&bed);
        }
}

TEST(memory_that_fails_at_any_point_breaks_nothing)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct bed bed;
        test_alloc_init(&memory);
        bed_open(&bed, 1);
        for (uint64_t i = 1; i <= 30; i++)
            mock_append_one(&bed.mock, i, i % 2 ? KIND_SHOP : 99, i % 2 ? i : i + 1000, SEQ_WLOG, 1);
        bed.options.allocator = &memory.allocator;
        bed.options.limits.workspaces_max = 20;
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = bed_new(&bed);
        if (status) {
            assert_status(status, PAWL_ENOMEM);
            assert_null(bed.s);
            assert_true(test_alloc_failed(&memory));
        } else {
            bed_ready(&bed);
            for (uint64_t ws = 1; ws <= 400; ws++) {
                uint64_t offset;
                uint64_t number;
                assert_ok(bed_start(&bed, ws % 2 ? KIND_SHOP : KIND_BANK, ws, &offset));
                assert_int_equal(offset, 30 + ws);
                status = bed_next(&bed, SEQ_WLOG, &number);
                if (status) {
                    assert_status(status, PAWL_ENOMEM);
                    assert_ok(bed_next(&bed, SEQ_WLOG, &number));
                }
                assert_int_equal(number, ws <= 30 && ws % 2 ? 2 : 1);
                assert_ok(bed_flush(&bed, offset));
            }
        }
        bed_release(&bed);
        bool failed = test_alloc_failed(&memory);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_read_that_fails_is_the_answer_of_next_and_the_event_stays_open),
        RUN(a_write_that_fails_is_tried_again_with_doubling_delays),
        RUN(a_write_of_an_offset_alone_is_tried_again_too),
        RUN(writing_that_fails_for_ever_ends_in_busy_and_nothing_is_lost_when_it_heals),
        RUN(a_torn_write_before_a_crash_leaves_no_gap_and_no_double),
        RUN(a_recovery_survives_failures_of_every_call),
        RUN(a_recovery_that_fails_for_ever_is_busy_and_can_be_closed),
        RUN(a_storage_whose_offset_is_ahead_of_the_log_is_refused),
        RUN(a_storage_whose_value_is_ahead_of_the_log_is_refused),
        RUN(a_storage_that_is_ahead_of_its_own_offset_only_is_as_a_torn_write_leaves_it),
        RUN(a_log_that_cannot_be_read_is_refused),
        RUN(a_log_out_of_order_or_with_two_kinds_of_one_workspace_is_refused),
        RUN(numbers_of_unknown_kinds_and_sequences_are_kept_until_they_are_known_again),
        RUN(a_write_amid_an_event_loses_no_number_of_an_unknown_kind),
        RUN(any_tail_up_to_ten_times_the_limit_is_recovered_in_bounded_memory),
        RUN(actualizing_waits_for_the_write_that_is_under_way),
        RUN(closing_ends_well_in_every_state_and_writes_what_is_unflushed),
        RUN(closing_gives_up_a_write_that_fails_for_ever_when_its_time_is_over),
        RUN(closing_waits_for_a_write_that_is_slower_than_its_time),
        RUN(closing_ends_a_scan_at_the_next_event),
        RUN(a_crash_at_any_point_leaves_exactly_what_the_log_holds),
        RUN(memory_that_fails_at_any_point_breaks_nothing),
    };
    return TEST_MAIN(tests);
}
