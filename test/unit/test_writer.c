/* The writer of a stream by itself: test/lib/writer_bed.h is its user. */
#include "test/lib/writer_bed.h"

TEST(puts_rows_between_sent_and_durable)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        struct bed bed;
        bed_open(&bed, 1);
        bed.works_ahead = ahead;
        bed_boot(&bed);
        bed_settle(&bed);
        bed_want(&bed, 2);
        assert_string_equal(bed.trace, "s1"); /* and nothing is known yet */
        bed_settle(&bed);
        assert_string_equal(bed.trace, ahead ? "s1 p1 d1 w1 a1" : "s1 d1 w1 a1");
        bed_check_truth(&bed, true);
        bed_halt(&bed);
        bed_close(&bed);
    }
}

TEST(rows_of_an_append_that_fails_are_gone)
{
    struct bed bed;
    bed_open(&bed, 2);
    bed_boot(&bed);
    bed_settle(&bed);
    bed_order(&bed, MEM_LOG_FULL, 1, 0);
    bed_want(&bed, 2);
    bed_settle(&bed);
    assert_string_equal(bed.trace, "s1 p1 u1 -1 -2");
    assert_null(bed.applier.put);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(sends_several_batches_before_the_first_is_durable_and_applies_them_in_order)
{
    struct bed bed;
    bed_open(&bed, 3);
    bed_boot(&bed);
    bed_settle(&bed);
    bed_want(&bed, BATCHES * PER_BATCH + 1);
    assert_string_equal(bed.trace, "s1 s3 s5");
    assert_int_equal(bed.wanted, 1); /* there is no free batch */
    bed_settle(&bed);
    assert_int_equal(bed.applied_to, 7);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

/* Done, failed and unknown, in every order: what is told is true, and the next entries find their place. */
TEST(tells_the_truth_about_every_order_of_outcomes)
{
    static const enum mem_log_fault_kind kinds[] = {
        0, MEM_LOG_FAIL, MEM_LOG_FULL, MEM_LOG_LANDED, MEM_LOG_LOST, MEM_LOG_LATE, MEM_LOG_TORN};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    uint64_t seed = test_seed(1);
    for (unsigned way = 0; way < KINDS * KINDS * KINDS; way++) {
        struct bed bed;
        bed_open(&bed, seed + way);
        bed_boot(&bed);
        bed_settle(&bed);
        bed_order(&bed, kinds[way % KINDS], 1, 1);
        bed_order(&bed, kinds[way / KINDS % KINDS], 2, 1);
        bed_order(&bed, kinds[way / KINDS / KINDS], 3, 1);
        bed_want(&bed, BATCHES * PER_BATCH);
        assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
        assert_true(way == 0 || bed.writer.failures > 0);
        bed_check_truth(&bed, true);
        bed_want(&bed, 3);
        assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
        assert_true(bed.ends[bed.ids] == APPLIED && bed.ends[bed.ids - 2] == APPLIED);
        bed_check_truth(&bed, true);
        bed_halt(&bed);
        bed_close(&bed);
    }
}

TEST(takes_nothing_for_durable_that_lies_behind_a_lost_batch)
{
    struct bed bed;
    bed_open(&bed, 4);
    bed_boot(&bed);
    bed_settle(&bed);
    bed.front.unsure = true; /* and the log is sure of the two behind it */
    bed_want(&bed, BATCHES * PER_BATCH);
    bed_settle(&bed);
    assert_non_null(strstr(bed.trace, "u1 u3 u5"));
    assert_null(strchr(bed.trace, 'd'));
    for (uint64_t id = 1; id <= BATCHES * PER_BATCH; id++)
        assert_int_equal(bed.ends[id], WRITTEN);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(undoes_at_once_a_batch_that_the_log_does_not_take)
{
    struct bed bed;
    bed_open(&bed, 5);
    bed_boot(&bed);
    bed_settle(&bed);
    bed.front.says = PAWL_EINVAL;
    bed_want(&bed, 2);
    assert_string_equal(bed.trace, "u1");
    bed_settle(&bed);
    for (uint64_t id = 1; id <= 2; id++)
        assert_int_equal(bed.ends[id], NOT_WRITTEN);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

/* The log did not take the third, and that is known before the outcomes of the first two. */
TEST(undoes_a_batch_that_was_not_sent_while_those_before_it_are_under_way)
{
    struct bed bed;
    bed_open(&bed, 5);
    bed_boot(&bed);
    bed_settle(&bed);
    bed.front.drops = BATCHES;
    bed_want(&bed, BATCHES * PER_BATCH);
    bed_settle(&bed);
    assert_non_null(strstr(bed.trace, "u5 u1 u3"));
    for (uint64_t id = 1; id <= BATCHES * PER_BATCH; id++)
        assert_int_equal(bed.ends[id], id <= (BATCHES - 1) * PER_BATCH ? WRITTEN : NOT_WRITTEN);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(sends_the_same_batch_again_after_the_log_had_no_room)
{
    struct bed bed;
    bed_open(&bed, 6);
    bed_boot(&bed);
    bed_settle(&bed);
    bed.front.says = PAWL_EBUSY;
    bed_want(&bed, 1);
    assert_string_equal(bed.trace, "");
    assert_true(bed.writer.pausing);
    bed.wanted++; /* it has room for one more meanwhile */
    bed_settle(&bed);
    assert_string_equal(bed.trace, "s1 p1 d1 w1 a1");
    assert_int_equal(bed.applied_to, 2);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(writes_a_durable_batch_again_until_the_store_takes_it)
{
    struct bed bed;
    bed_open(&bed, 7);
    bed_boot(&bed);
    bed_settle(&bed);
    mem_store_disk_fail(bed.store_disk, (struct mem_store_fault){MEM_STORE_COMMIT, 1, 2, PAWL_EFULL});
    bed_want(&bed, 2);
    bed_settle(&bed);
    assert_string_equal(bed.trace, "s1 p1 d1 w1 x1 l1 w1 x1 l1 w1 a1");
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(prepares_again_without_a_claim_when_nothing_was_lost)
{
    struct bed bed;
    bed_open(&bed, 8);
    bed_boot(&bed);
    bed_settle(&bed);
    bed.not_full = true;
    bed_want(&bed, PER_BATCH + 1);
    assert_ok(pawl_env_call(mem_env_port(bed.env), 0, bed_drain_now, &bed));
    assert_int_equal(bed.writer.state, WRITER_DRAINING);
    uint64_t requests = mem_log_requests(bed.log);
    bed.seen = 0;
    bed_settle(&bed);
    assert_int_equal(bed.seen, 1u << WRITER_PREPARING | 1u << WRITER_RUNNING);
    assert_int_equal(mem_log_requests(bed.log), requests);
    assert_int_equal(bed.ends[1], APPLIED);
    assert_int_equal(bed.ends[PER_BATCH + 1], NEVER_SENT);
    assert_int_equal(bed.next, PER_BATCH + 1);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

/* --- claiming --- */

static bool has_retried(void *arg)
{
    return ((struct bed *)arg)->retries > 0;
}

TEST(claims_again_after_ever_longer_pauses)
{
    static const pawl_duration delays[] = {10, 20, 40, 80, 160, 320, 640, 1000, 1000};
    enum { DELAYS = sizeof delays / sizeof delays[0] };
    struct bed bed;
    uint64_t before = 0;
    bed_open(&bed, 9);
    bed_boot(&bed);
    for (uint64_t i = 1; i <= DELAYS; i++)
        bed_order(&bed, i % 2 ? MEM_LOG_FAIL : MEM_LOG_RIVAL, i, 0);
    for (size_t i = 0; i < DELAYS; i++) {
        bed.retries = 0;
        assert_true(mem_world_run_until(bed.world, has_retried, &bed, STEPS_MAX));
        uint64_t now = pawl_env_now(mem_env_port(bed.env)).ns;
        assert_int_equal(bed.writer.retry_delay, delays[i] * PAWL_MILLISECOND);
        assert_true(i == 0 || now - before >= (uint64_t)(delays[i - 1] * PAWL_MILLISECOND));
        before = now;
    }
    assert_int_equal(bed.writer.state, WRITER_CLAIMING);
    assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
    assert_int_equal(bed.writer.retry_delay, 0);
    assert_int_equal(bed.writer.error.code, PAWL_OK);
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(claims_the_stream_again_and_catches_up_when_another_has_taken_it)
{
    struct bed bed;
    bed_open(&bed, 10);
    bed_boot(&bed);
    bed_settle(&bed);
    bed_want(&bed, 2);
    bed_settle(&bed);
    bed_rival_writes(&bed, 3);
    bed_want(&bed, 4); /* at offsets that are the rival's now */
    assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
    assert_int_equal(bed.writer.cause, PAWL_OK);
    assert_int_equal(bed.writer.failures, 1);
    assert_int_equal(bed.position.offset, 5);
    for (uint64_t id = 3; id <= 6; id++)
        assert_int_equal(bed.ends[id], NOT_WRITTEN);
    bed_want(&bed, 1);
    bed_settle(&bed);
    assert_int_equal(bed.applied_to, 6);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

/* --- catching up --- */

TEST(gives_a_stream_up_that_was_taken_on_an_assignment_that_is_not_older)
{
    for (uint64_t newer = 0; newer < 2; newer++) {
        struct bed bed;
        bed_open(&bed, 13);
        bed.assignment = 5;
        bed.rival_assignment = 5 + newer;
        bed_boot(&bed);
        bed_want(&bed, 4);
        assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
        bed_rival_writes(&bed, 3);
        bed_want(&bed, 4);
        assert_int_equal(bed_settle(&bed), WRITER_REFUSED);
        assert_int_equal(bed.writer.error.code, PAWL_EFENCED);
        bed_check_truth(&bed, false);
        bed_halt(&bed);
        bed_close(&bed);
    }
}

/* In whatever state it is, and whatever is under way. */
TEST(gives_up_when_it_is_told_to_and_sends_nothing_more)
{
    for (int steps = 0; steps < 60; steps++) {
        struct bed bed;
        bed_open(&bed, 15);
        bed.assignment = 5;
        bed_boot(&bed);
        bed_want(&bed, 40);
        for (int i = 0; i < steps; i++)
            mem_world_step(bed.world);
        writer_give_up(&bed.writer, "node b has taken over");
        writer_give_up(&bed.writer, "node c, too late");
        assert_int_equal(bed_settle(&bed), WRITER_REFUSED);
        assert_status(bed.writer.error.code, PAWL_EFENCED);
        assert_string_equal(bed.writer.error.text, "node b has taken over");
        bed_check_truth(&bed, false);
        bed_halt(&bed);
        bed_close(&bed);
    }
}

/* A rival on an older assignment cannot take it at all: its claims do not count. */
TEST(takes_a_stream_from_an_owner_whose_assignment_is_older)
{
    struct bed bed;
    bed_open(&bed, 14);
    bed.assignment = 6;
    bed.rival_assignment = 5;
    bed_rival_writes(&bed, 3);
    bed_boot(&bed);
    bed_want(&bed, 4);
    assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(catches_up_with_what_a_predecessor_wrote)
{
    enum { MANY = 20000 };
    struct bed bed;
    bed_open(&bed, 11);
    bed_rival_writes(&bed, MANY);
    bed_boot(&bed);
    assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
    assert_int_equal(bed.replays, 3); /* 8192 entries at a time */
    assert_int_equal(bed.committed.offset, MANY);
    bed_want(&bed, 1);
    bed_settle(&bed);
    assert_int_equal(bed.applied_to, MANY + 1);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed_rival_writes(&bed, 2);
    bed.replays = 0;
    bed_boot(&bed);
    assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
    assert_int_equal(bed.replays, 1);
    assert_int_equal(bed.committed.offset, MANY + 3);
    bed_check_truth(&bed, true);
    bed_halt(&bed);
    bed.replays = 0;
    bed_boot(&bed);
    assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
    assert_int_equal(bed.replays, 0); /* the store has everything */
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(goes_on_from_what_the_store_has_after_a_replay_failed)
{
    for (uint64_t nth = 1; nth <= 8; nth++) {
        struct bed bed;
        bed_open(&bed, 12 + nth);
        bed_rival_writes(&bed, 5);
        bed_boot(&bed);
        mem_store_disk_fail(bed.store_disk, (struct mem_store_fault){MEM_STORE_ANY, nth, 2, PAWL_EIO});
        assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
        assert_int_equal(bed.rereads > 0, nth <= 7); /* five rows, the position, a commit */
        mem_store_disk_fail(bed.store_disk, (struct mem_store_fault){0});
        assert_int_equal(bed.committed.offset, 5);
        bed_check_truth(&bed, true);
        bed_halt(&bed);
        bed_close(&bed);
    }
}

static void assert_refused(struct bed *bed, const char *words)
{
    bed_boot(bed);
    assert_int_equal(bed_settle(bed), WRITER_REFUSED);
    assert_int_equal(bed->writer.error.code, PAWL_ECORRUPT);
    assert_contains(bed->writer.error.text, words);
    bed_halt(bed);
}

static void falsify(struct bed *bed, struct writer_position position)
{
    int status = PAWL_OK;
    assert_ok(
        mem_store_open(bed->store_disk, &(struct mem_store_options){.name = "state"}, NULL, &bed->store, NULL));
    bed->position = position;
    bed_position_put(bed, bed->store, &status);
    assert_ok(status);
    assert_ok(pawl_store_commit(bed->store));
    assert_ok(pawl_store_close(bed->store));
}

TEST(refuses_a_store_that_is_not_made_from_this_log)
{
    struct bed bed;
    bed_open(&bed, 30);
    bed_rival_writes(&bed, 5);
    falsify(&bed, (struct writer_position){.offset = 3, .checksum = 1});
    assert_refused(&bed, "plog/5: the entry at offset 3 is not the one that the state was made from");
    falsify(&bed, (struct writer_position){.offset = 6});
    assert_refused(&bed, "plog/5: the state is at offset 6, the log ends at 5");
    bed_close(&bed);
}

/* --- preparing --- */

static void ready_now(void *arg)
{
    writer_ready(&((struct bed *)arg)->writer);
}

static void retry_now(void *arg)
{
    writer_retry(&((struct bed *)arg)->writer);
}

static bool has_prepared_twice(void *arg)
{
    return ((struct bed *)arg)->prepares == 2;
}

TEST(runs_when_the_user_says_that_it_is_ready)
{
    struct bed bed;
    bed_open(&bed, 31);
    bed.prepare_later = true;
    bed.wanted = 1;
    bed_boot(&bed);
    assert_true(mem_world_run(bed.world, STEPS_MAX));
    assert_int_equal(bed.writer.state, WRITER_PREPARING);
    assert_int_equal(bed.prepares, 1);
    assert_ok(pawl_env_call(mem_env_port(bed.env), 0, retry_now, &bed));
    assert_true(mem_world_run_until(bed.world, has_prepared_twice, &bed, STEPS_MAX));
    assert_ok(pawl_env_call(mem_env_port(bed.env), 0, ready_now, &bed));
    assert_int_equal(bed.writer.state, WRITER_RUNNING);
    bed_settle(&bed);
    assert_int_equal(bed.applied_to, 1);
    bed_halt(&bed);
    bed_close(&bed);
}

/* --- closing --- */

/* A life that comes through every state: there is something to read; the second append of three is lost. */
static void live(struct bed *bed, uint64_t seed)
{
    bed_open(bed, seed);
    bed_rival_writes(bed, 3);
    bed->wanted = BATCHES * PER_BATCH;
    bed_boot(bed);
    bed_order(bed, MEM_LOG_FAIL, 1, 0); /* the claim */
    bed_order(bed, MEM_LOG_LOST, 5, 0); /* behind a claim, a read, and an append */
}

/* The store is full, too, for some of them: what is durable then is given up. */
TEST(closes_in_every_state)
{
    uint64_t seed = test_seed(1);
    unsigned seen = 0;
    for (uint64_t steps = 0; steps < 400; steps++) {
        struct bed bed;
        live(&bed, seed + steps % 3);
        if (steps % 2)
            mem_store_disk_fail(bed.store_disk,
                                (struct mem_store_fault){MEM_STORE_COMMIT, 2, 1000, PAWL_EFULL});
        (void)mem_world_run_until(bed.world, bed_is_closed, &bed, steps);
        seen |= 1u << bed.writer.state;
        bed_halt(&bed);
        bed.writer.state = WRITER_CLAIMING;
        bed.trace[0] = '\0';
        bed_boot(&bed); /* what was bed_durable, or was lost and written, is found */
        assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
        bed_check_truth(&bed, true);
        bed_halt(&bed);
        bed_close(&bed);
    }
    unsigned passing = 1u << WRITER_PREPARING | 1u << WRITER_REFUSED; /* other tests close in these */
    assert_int_equal(seen | passing, (1u << WRITER_CLOSED) - 1);
}

TEST(closes_while_it_prepares)
{
    struct bed bed;
    bed_open(&bed, 40);
    bed.prepare_later = true;
    bed_boot(&bed);
    assert_true(mem_world_run(bed.world, STEPS_MAX));
    assert_int_equal(bed.writer.state, WRITER_PREPARING);
    bed_halt(&bed);
    bed_close(&bed);
}

TEST(may_be_closed_by_any_callback)
{
    for (unsigned call = 0; call < CALLS; call++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct bed bed;
            live(&bed, seed);
            bed.close_in = (enum call)call;
            if (call == ON_LATE)
                mem_store_disk_fail(bed.store_disk,
                                    (struct mem_store_fault){MEM_STORE_COMMIT, 2, 1000, PAWL_EFULL});
            assert_true(mem_world_run_until(bed.world, bed_is_closed, &bed, STEPS_MAX));
            bed.close_in = CALLS;
            bed_halt(&bed);
            bed_boot(&bed);
            assert_int_equal(bed_settle(&bed), WRITER_RUNNING);
            bed_check_truth(&bed, true);
            bed_halt(&bed);
            bed_close(&bed);
        }
}

TEST(needs_no_memory_that_it_keeps_when_there_is_none)
{
    for (uint64_t nth = 1;; nth++) {
        struct mortal memory;
        struct writer writer;
        mortal_init(&memory);
        memory.fails_in = nth;
        memory.fails = 1;
        struct writer_options options = {.ops = &bed_ops,
                                         .batches = BATCHES,
                                         .batch_entries = PER_BATCH,
                                         .staged_size = sizeof(struct staged),
                                         .memory_chunk = 4096,
                                         .allocator = &memory.allocator};
        int status = writer_init(&writer, &options);
        if (status == PAWL_OK)
            writer_deinit(&writer);
        assert_null(memory.blocks);
        if (status == PAWL_OK)
            return;
        assert_status(status, PAWL_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(puts_rows_between_sent_and_durable),
        RUN(rows_of_an_append_that_fails_are_gone),
        RUN(sends_several_batches_before_the_first_is_durable_and_applies_them_in_order),
        RUN(tells_the_truth_about_every_order_of_outcomes),
        RUN(takes_nothing_for_durable_that_lies_behind_a_lost_batch),
        RUN(undoes_at_once_a_batch_that_the_log_does_not_take),
        RUN(undoes_a_batch_that_was_not_sent_while_those_before_it_are_under_way),
        RUN(sends_the_same_batch_again_after_the_log_had_no_room),
        RUN(writes_a_durable_batch_again_until_the_store_takes_it),
        RUN(prepares_again_without_a_claim_when_nothing_was_lost),
        RUN(claims_again_after_ever_longer_pauses),
        RUN(claims_the_stream_again_and_catches_up_when_another_has_taken_it),
        RUN(gives_a_stream_up_that_was_taken_on_an_assignment_that_is_not_older),
        RUN(gives_up_when_it_is_told_to_and_sends_nothing_more),
        RUN(takes_a_stream_from_an_owner_whose_assignment_is_older),
        RUN(catches_up_with_what_a_predecessor_wrote),
        RUN(goes_on_from_what_the_store_has_after_a_replay_failed),
        RUN(refuses_a_store_that_is_not_made_from_this_log),
        RUN(runs_when_the_user_says_that_it_is_ready),
        RUN(closes_in_every_state),
        RUN(closes_while_it_prepares),
        RUN(may_be_closed_by_any_callback),
        RUN(needs_no_memory_that_it_keeps_when_there_is_none),
    };
    return TEST_MAIN(tests);
}
