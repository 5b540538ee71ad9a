/* What a sequencer keeps in memory, and when it writes the storage. */
#include "test/lib/test.h"

#include "test/lib/alloc.h"
#include "test/lib/sequence.h"

TEST(the_storage_is_written_when_enough_events_have_gathered)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.flush_events = 10;
    bed_new_ready(&bed);
    for (int i = 0; i < 9; i++)
        bed_cycle(&bed, KIND_SHOP, 5 + (uint64_t)i % 3, SEQ_WLOG);
    assert_int_equal(bed.mock.calls[MOCK_WRITE], 0);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_REC);
    mem_world_advance(bed.world, 2 * PAWL_MILLISECOND);
    assert_int_equal(bed.mock.stored_last, 10);
    assert_int_equal(bed.mock.rows_last, 7); /* four values, each once, unchanged ones not; and three kinds */
    assert_int_equal(bed_figures(&bed).unflushed, 0);
    bed_release(&bed);
}

TEST(the_storage_is_written_when_nearly_too_many_values_are_unflushed)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.flush_events = 1000;
    bed.options.limits.unflushed_max = 16;
    bed_new_ready(&bed);
    for (uint64_t i = 0; i < 6; i++) /* a value and a kind each */
        bed_cycle(&bed, KIND_SHOP, 100 + i, SEQ_WLOG);
    mem_world_advance(bed.world, 2 * PAWL_MILLISECOND);
    assert_int_equal(bed.mock.stored_last, 6);
    bed_release(&bed);
}

TEST(a_value_that_changes_during_the_write_stays_to_be_flushed)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.flush_events = 1;
    bed_new_ready(&bed);
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG); /* its write is now under way */
    bed_cycle(&bed, KIND_SHOP, 5, SEQ_WLOG);
    assert_int_equal(bed_figures(&bed).unflushed, 3); /* and the kind, once */
    bed_stored(&bed, 1);
    assert_int_equal(mock_stored(&bed.mock, 5, SEQ_WLOG), 1);
    bed_stored(&bed, 2);
    assert_int_equal(mock_stored(&bed.mock, 5, SEQ_WLOG), 2);
    assert_int_equal(bed_figures(&bed).unflushed, 0);
    bed_release(&bed);
}

TEST(evicting_never_loses_an_unflushed_value)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.workspaces_max = 2;
    bed_new_ready(&bed);
    for (int round = 0; round < 3; round++)
        for (uint64_t ws = 1; ws <= 20; ws++)
            bed_cycle(&bed, KIND_SHOP, ws, SEQ_WLOG);
    assert_int_equal(bed_figures(&bed).workspaces, 20); /* all pinned */
    assert_int_equal(bed_figures(&bed).evictions, 0);
    assert_int_equal(bed.mock.calls[MOCK_READ], 20);
    bed_stored(&bed, 60);
    assert_int_equal(bed_figures(&bed).workspaces, 2);
    assert_int_equal(bed_figures(&bed).evictions, 18);
    for (uint64_t ws = 1; ws <= 20; ws++) {
        uint64_t offset;
        assert_ok(bed_start(&bed, KIND_SHOP, ws, &offset));
        bed_expect_next(&bed, SEQ_WLOG, 4);
        assert_ok(bed_cancel(&bed));
    }
    assert_true(bed_figures(&bed).workspaces <= 2);
    bed_release(&bed);
}

TEST(fetching_ahead_changes_nothing_whenever_it_is_done)
{
    struct bed bed;
    uint64_t wsids[40];
    for (uint64_t i = 0; i < 40; i++)
        wsids[i] = i; /* 0 and 39 among them, most of them not there */
    bed_open(&bed, 1);
    mock_append_one(&bed.mock, 1, KIND_SHOP, 5, SEQ_WLOG, 1);
    assert_ok(bed_new(&bed));
    pawl_sequencer_prefetch(bed.s, wsids, 40); /* before it is ready */
    bed_ready(&bed);
    pawl_sequencer_prefetch(bed.s, wsids, 40);
    pawl_sequencer_prefetch(bed.s, wsids, 0);
    bed_expect_start(&bed, KIND_SHOP, 5, 2);
    bed_expect_next(&bed, SEQ_WLOG, 2);
    pawl_sequencer_prefetch(bed.s, wsids, 40); /* with an event open */
    bed_expect_next(&bed, SEQ_WLOG, 3);
    assert_ok(bed_actualize(&bed));
    pawl_sequencer_prefetch(bed.s, wsids, 40); /* while the log is read */
    bed_ready(&bed);
    assert_int_equal(bed_figures(&bed).workspaces, 0);
    assert_int_equal(bed_figures(&bed).cache_hits, 1);
    assert_int_equal(bed_figures(&bed).cache_misses, 0);
    assert_int_equal(bed.mock.calls[MOCK_READ], 1); /* by the first recovery */
    bed_release(&bed);
}

TEST(a_staged_event_keeps_its_workspace_in_memory)
{
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.limits.workspaces_max = 1;
    bed_new_ready(&bed);
    bed_expect_start(&bed, KIND_SHOP, 1, 1);
    bed_expect_next(&bed, SEQ_WLOG, 1);
    assert_ok(bed_stage(&bed));
    for (uint64_t ws = 2; ws <= 9; ws++) {
        bed_expect_start(&bed, KIND_SHOP, ws, 2);
        bed_expect_next(&bed, SEQ_WLOG, 1);
        assert_ok(bed_cancel(&bed));
    }
    bed_expect_start(&bed, KIND_SHOP, 1, 2);
    bed_expect_next(&bed, SEQ_WLOG, 2);
    assert_ok(bed_cancel(&bed));
    assert_ok(bed_flush(&bed, 1));
    bed_release(&bed);
}

TEST(a_workspace_may_have_806_sequences)
{
    const uint16_t many_count = 806;
    static pawl_sequence many[806];
    for (uint16_t i = 0; i < many_count; i++)
        many[i] = (pawl_sequence){(uint16_t)(i * 79 + 3), i + 1u, 0};
    const pawl_workspace_kind kinds[] = {{KIND_SHOP, many, many_count}, {KIND_BANK, NULL, 0}};
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.kinds = kinds;
    bed.options.limits.flush_events = 1;
    bed_new_ready(&bed);
    for (int round = 0; round < 3; round++) {
        bed_expect_start(&bed, KIND_SHOP, 5, (uint64_t)round + 1);
        for (uint16_t i = 0; i < many_count; i++)
            bed_expect_next(&bed, many[i].seq, i + 1u + (uint64_t)round);
        if (round == 1)
            assert_ok(bed_stage(&bed));
        assert_ok(bed_flush(&bed, (uint64_t)round + 1));
    }
    bed_stored(&bed, 3);
    for (uint16_t i = 0; i < many_count; i++)
        assert_int_equal(mock_stored(&bed.mock, 5, many[i].seq), i + 3u);
    bed_expect_start(&bed, KIND_BANK, 6, 4); /* a kind without any */
    uint64_t number;
    assert_status(bed_next(&bed, 3, &number), PAWL_EUNKNOWN_SEQ);
    assert_ok(bed_flush(&bed, 4));
    bed_release(&bed);
}

TEST(no_memory_is_taken_in_a_steady_cycle)
{
    struct test_alloc memory;
    test_alloc_init(&memory);
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.allocator = &memory.allocator;
    bed.options.limits.workspaces_max = 50;
    bed_new_ready(&bed);
    uint64_t calls = 0;
    for (int i = 0; i < 8000; i++) {
        bed_cycle(&bed, i % 3 ? KIND_SHOP : KIND_BANK, (uint64_t)i % 300 + 1, SEQ_WLOG);
        if (i % 100 == 0)
            mem_world_advance(bed.world, 2 * PAWL_MILLISECOND);
        if (i == 2000)
            calls = memory.calls;
    }
    assert_int_equal(memory.calls, calls);
    assert_int_equal(bed_figures(&bed).memory_bytes, memory.live_bytes);
    assert_true(bed_figures(&bed).evictions > 1000);
    bed_release(&bed);
    test_alloc_release(&memory);
}

/* What so many workspaces of a small kind take, beside another kind. */
static uint64_t memory_of_small(const pawl_workspace_kind *other)
{
    enum { WORKSPACES = 2000 };
    static const pawl_sequence few[] = {{.seq = SEQ_WLOG}, {.seq = SEQ_REC}, {.seq = SEQ_CREC}};
    const pawl_workspace_kind kinds[] = {{KIND_SHOP, few, 3}, *other};
    struct bed bed;
    bed_open(&bed, 1);
    bed.options.kinds = kinds;
    bed.options.kind_count = 2;
    bed_new_ready(&bed);
    uint64_t before = bed_figures(&bed).memory_bytes;
    for (uint64_t wsid = 1; wsid <= WORKSPACES; wsid++)
        bed_cycle(&bed, KIND_SHOP, wsid, SEQ_WLOG);
    assert_int_equal(bed_figures(&bed).workspaces, WORKSPACES);
    uint64_t taken = bed_figures(&bed).memory_bytes - before;
    bed_release(&bed);
    return taken;
}

TEST(a_workspace_of_few_sequences_takes_no_more_memory_beside_a_kind_of_a_thousand)
{
    pawl_sequence many[1000];
    for (uint16_t i = 0; i < 1000; i++)
        many[i] = (pawl_sequence){.seq = (uint16_t)(1000 + i)};
    const pawl_workspace_kind one = {KIND_BANK, many, 1}, thousand = {KIND_BANK, many, 1000};
    assert_int_equal(memory_of_small(&thousand), memory_of_small(&one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_storage_is_written_when_enough_events_have_gathered),
        RUN(the_storage_is_written_when_nearly_too_many_values_are_unflushed),
        RUN(a_value_that_changes_during_the_write_stays_to_be_flushed),
        RUN(evicting_never_loses_an_unflushed_value),
        RUN(fetching_ahead_changes_nothing_whenever_it_is_done),
        RUN(a_staged_event_keeps_its_workspace_in_memory),
        RUN(a_workspace_may_have_806_sequences),
        RUN(no_memory_is_taken_in_a_steady_cycle),
        RUN(a_workspace_of_few_sequences_takes_no_more_memory_beside_a_kind_of_a_thousand),
    };
    return TEST_MAIN(tests);
}
