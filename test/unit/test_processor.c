/* A processor, one case at a time: which command waits for what, and what becomes of it when the log or the
 * store fails at that moment. test/sim/test_commands.c does everything at once. */
#include "test/lib/customers.h"

TEST(a_refusal_that_rests_on_a_staged_event_waits_for_it)
{
    struct partition p;
    struct ask event, refusal;
    open_partition(&p);
    boot(&p);
    ask_customer(&event, &p, 7);
    ask_customer(&refusal, &p, 7);
    event.request.expects = refusal.request.expects = true;
    event.request.expected = refusal.request.expected = 1;
    order(&p, MEM_LOG_DELAY, 1, 50);
    ask_send(&event);
    ask_send(&refusal);
    steps(&p, 5);
    assert_int_equal(event.answers + refusal.answers, 0);
    assert_ok(ask_wait(&event));
    assert_status(ask_wait(&refusal), PAWL_ECONFLICT);
    assert_contains(refusal.error.text, "is at offset 2, not 1");
    ask_release(&event);
    ask_release(&refusal);
    finish(&p);
}

TEST(a_refusal_that_rested_on_a_lost_event_was_none)
{
    struct partition p;
    struct ask event, refusal;
    open_partition(&p);
    boot(&p);
    ask_customer(&event, &p, 7);
    ask_customer(&refusal, &p, 7);
    event.request.expects = refusal.request.expects = true;
    event.request.expected = refusal.request.expected = 1;
    order(&p, MEM_LOG_LOST, 1, 0);
    ask_send(&event);
    ask_send(&refusal);
    assert_status(ask_wait(&event), PAWL_EIO);
    assert_ok(ask_wait(&refusal));
    assert_int_equal(refusal.call.offset, 2);
    ask_release(&event);
    ask_release(&refusal);
    finish(&p);
}

TEST(an_unknown_outcome_becomes_the_true_one)
{
    static const struct {
        enum mem_log_fault_kind fault;
        bool may_land, may_be_lost;
    } cases[] = {{MEM_LOG_LANDED, true, false}, {MEM_LOG_LOST, false, true}, {MEM_LOG_LATE, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct partition p;
        struct ask ask, next;
        open_partition(&p);
        boot(&p);
        ask_customer(&ask, &p, 7);
        ask_customer(&next, &p, 7);
        order(&p, cases[i].fault, 1, 0);
        int status = ask_and_wait(&ask);
        assert_true((status == PAWL_OK && cases[i].may_land) || (status == PAWL_EIO && cases[i].may_be_lost));
        assert_ok(ask_and_wait(&next));
        assert_int_equal(next.call.offset, status == PAWL_OK ? 3 : 2);
        assert_int_equal(ask_object(&next, 0).id & 0xffffff, status == PAWL_OK ? 200002 : 200001);
        ask_release(&ask);
        ask_release(&next);
        finish(&p);
    }
}

TEST(an_outcome_that_cannot_be_found_out_in_time_is_told_to_be_unknown)
{
    struct partition p;
    struct ask ask, again;
    open_partition(&p);
    p.options.wait = 2 * PAWL_SECOND;
    boot(&p);
    ask_customer(&ask, &p, 7);
    ask_customer(&again, &p, 7);
    ask.request.key = again.request.key = text_bytes("k");
    order(&p, MEM_LOG_LANDED, 1, 0);
    for (uint64_t i = 2; i <= 16; i++)
        order(&p, MEM_LOG_FAIL, i, 0);
    ask_send(&ask);
    mem_world_advance(p.world, 2 * PAWL_SECOND - 10 * PAWL_MILLISECOND);
    assert_int_equal(ask.answers, 0);
    mem_world_advance(p.world, 2 * PAWL_SECOND);
    assert_int_equal(ask.answers, 1);
    assert_status(ask.call.status, PAWL_EUNKNOWN);
    assert_contains(ask.error.text, "not known whether the event was written");
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    assert_ok(ask_and_wait(&again));
    assert_true(again.call.repeated);
    assert_int_equal(ask.answers, 1);
    partition_check_digests(&p);
    ask_release(&ask);
    ask_release(&again);
    finish(&p);
}

TEST(durable_is_answered_before_applied)
{
    struct partition p;
    struct ask durable, applied, late;
    open_partition(&p);
    boot(&p);
    ask_customer(&durable, &p, 7);
    ask_customer(&applied, &p, 7);
    ask_customer(&late, &p, 7);
    durable.call.ack = ACK_DURABLE;
    mem_store_disk_fail(p.store_disk, (struct mem_store_fault){MEM_STORE_COMMIT, 1, 1000, PAWL_EFULL});
    ask_send(&durable);
    ask_send(&applied);
    assert_ok(ask_wait(&durable));
    steps(&p, 100);
    assert_int_equal(applied.answers, 0);
    assert_int_equal(processor_figures(p.processor)->offset, 1);

    /* While the state cannot be written, what is new is refused. */
    assert_status(ask_and_wait(&late), PAWL_EFULL);
    mem_store_disk_fail(p.store_disk, (struct mem_store_fault){0});
    assert_ok(ask_wait(&applied));
    assert_int_equal(processor_figures(p.processor)->offset, 3);
    late.answers = 0;
    assert_ok(ask_and_wait(&late));
    partition_check_digests(&p);
    ask_release(&durable);
    ask_release(&applied);
    ask_release(&late);
    finish(&p);
}

TEST(nobody_waits_for_ever_for_a_state_that_cannot_be_written)
{
    struct partition p;
    struct ask first, again;
    open_partition(&p);
    p.options.wait = 2 * PAWL_SECOND;
    boot(&p);
    ask_customer(&first, &p, 7);
    ask_customer(&again, &p, 7);
    first.request.key = again.request.key = text_bytes("k");
    mem_store_disk_fail(p.store_disk, (struct mem_store_fault){MEM_STORE_COMMIT, 1, 1000, PAWL_EFULL});
    ask_send(&first);
    mem_world_advance(p.world, 2 * PAWL_SECOND - PAWL_MILLISECOND);
    assert_int_equal(first.answers, 0);
    mem_world_advance(p.world, 2 * PAWL_SECOND);
    assert_int_equal(first.answers, 1);
    assert_status(first.call.status, PAWL_EUNKNOWN);
    assert_contains(first.error.text, "the event is in the log");

    assert_status(ask_and_wait(&again), PAWL_EFULL);
    mem_store_disk_fail(p.store_disk, (struct mem_store_fault){0});
    mem_world_advance(p.world, 2 * PAWL_SECOND);
    assert_int_equal(first.answers, 1);
    assert_int_equal(processor_figures(p.processor)->offset, 2);
    again.answers = 0;
    assert_ok(ask_and_wait(&again));
    assert_true(again.call.repeated);
    assert_int_equal(again.call.offset, 2);
    partition_check_digests(&p);
    ask_release(&first);
    ask_release(&again);
    finish(&p);
}

TEST(a_full_log_refuses_and_resumes)
{
    struct partition p;
    struct ask ask[3];
    open_partition(&p);
    boot(&p);
    for (size_t i = 0; i < 3; i++)
        ask_customer(&ask[i], &p, 7);
    order(&p, MEM_LOG_FULL, 1, 0);
    ask_send(&ask[0]);
    ask_send(&ask[1]); /* another batch, under way when the first one fails */
    assert_status(ask_wait(&ask[0]), PAWL_EFULL);
    assert_status(ask_wait(&ask[1]), PAWL_EFULL);
    assert_ok(ask_and_wait(&ask[2]));
    assert_int_equal(ask[2].call.offset, 2);
    for (size_t i = 0; i < 3; i++)
        ask_release(&ask[i]);
    finish(&p);
}

/* A log in front of the log, which does not take the next append. */
struct front {
    pawl_log port;
    struct partition *partition;
    int returned; /* by the call itself; PAWL_OK: it takes it */
    int appends;  /* that it did not take */
};

static struct partition *behind(pawl_log *log)
{
    return ((struct front *)log)->partition;
}

static int front_claim(pawl_log *log, pawl_claim *claim)
{
    return pawl_log_claim(behind(log)->log, claim);
}

static int front_append(pawl_log *log, pawl_append *append)
{
    struct front *front = (struct front *)log;
    if (front->returned == PAWL_OK)
        return pawl_log_append(behind(log)->log, append);
    front->appends++;
    int returned = front->returned;
    front->returned = PAWL_OK;
    return returned;
}

static int front_read(pawl_log *log, pawl_read *read)
{
    return pawl_log_read(behind(log)->log, read);
}

TEST(an_append_that_the_log_does_not_take_is_like_one_that_it_refuses)
{
    static const struct pawl_log_ops ops = {.claim = front_claim, .append = front_append, .read = front_read};
    static const struct {
        int returned, answer;
    } cases[] = {{PAWL_ENOMEM, PAWL_EIO}, {PAWL_EBUSY, PAWL_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct partition p;
        struct front front = {.port.ops = &ops, .partition = &p};
        struct ask ask, next;
        open_partition(&p);
        p.front = &front.port;
        boot(&p);
        ask_customer(&ask, &p, 7);
        ask_customer(&next, &p, 7);
        front.returned = cases[i].returned;
        ask_send(&ask);
        assert_status(ask_wait(&ask), cases[i].answer);
        assert_int_equal(front.appends, 1);
        assert_ok(ask_and_wait(&next));
        assert_int_equal(next.call.offset, cases[i].answer == PAWL_OK ? 3 : 2);
        ask_release(&ask);
        ask_release(&next);
        finish(&p);
    }
}

TEST(no_more_batches_are_under_way_than_allowed)
{
    struct partition p;
    struct ask ask[3];
    open_partition(&p);
    p.options.batches_max = 2;
    boot(&p);
    uint64_t before = processor_figures(p.processor)->batches;
    order(&p, MEM_LOG_DELAY, 1, 50);
    for (size_t i = 0; i < 3; i++) {
        ask_customer(&ask[i], &p, 7);
        ask_send(&ask[i]);
    }
    assert_int_equal(processor_figures(p.processor)->batches, before + 2);
    for (size_t i = 0; i < 3; i++) {
        assert_ok(ask_wait(&ask[i]));
        assert_int_equal(ask[i].call.offset, 2 + i);
        ask_release(&ask[i]);
    }
    finish(&p);
}

TEST(nobody_waits_longer_than_the_time_limit)
{
    struct partition p;
    struct ask ask;
    open_partition(&p);
    p.options.wait = 2 * PAWL_SECOND;
    partition_boot(&p);
    for (uint64_t i = 1; i <= 16; i++)
        order(&p, MEM_LOG_FAIL, i, 0);
    ask_create(&ask, &p, 7, "p.w");
    ask_send(&ask);
    mem_world_advance(p.world, 2 * PAWL_SECOND - PAWL_MILLISECOND);
    assert_int_equal(ask.answers, 0);
    mem_world_advance(p.world, PAWL_MILLISECOND);
    assert_int_equal(ask.answers, 1);
    assert_status(ask.call.status, PAWL_EBUSY);
    assert_contains(ask.error.text, "recovering");
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    ask.answers = 0;
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    finish(&p);
}

enum { WORKS_MANY = 20000 };    /* of a millisecond at most, and some 10 s together */
#define LOOK (PAWL_SECOND / 50) /* how much later it may come than at the deadline */

TEST(nobody_waits_longer_for_a_log_that_does_not_answer)
{
    struct partition p;
    struct ask sent, refused, next, queued, again;
    open_partition(&p);
    p.options.wait = PAWL_SECOND;
    p.options.batches_max = 2;
    boot(&p);
    ask_customer(&sent, &p, 7);
    ask_customer(&again, &p, 7);
    sent.request.key = again.request.key = text_bytes("k");
    ask_create(&refused, &p, 7, "p.w"); /* it is there already, unless what was sent is lost */
    ask_customer(&next, &p, 7);
    ask_customer(&queued, &p, 7);
    order(&p, MEM_LOG_DELAY, 1, WORKS_MANY);
    order(&p, MEM_LOG_DELAY, 2, WORKS_MANY);
    ask_send(&sent);
    ask_send(&refused);
    ask_send(&next);
    ask_send(&queued);
    mem_world_advance(p.world, PAWL_SECOND - PAWL_MILLISECOND);
    assert_int_equal(sent.answers + refused.answers + next.answers + queued.answers, 0);
    mem_world_advance(p.world, LOOK);
    assert_int_equal(sent.answers + refused.answers + next.answers + queued.answers, 4);
    assert_status(sent.call.status, PAWL_EUNKNOWN);
    assert_contains(sent.error.text, "not known whether the event was written");
    assert_status(refused.call.status, PAWL_EBUSY);
    assert_contains(refused.error.text, "does not answer");
    assert_status(next.call.status, PAWL_EUNKNOWN);
    assert_status(queued.call.status, PAWL_EBUSY);
    mem_world_advance(p.world, 60 * PAWL_SECOND);
    assert_ok(ask_and_wait(&again)); /* the log has answered, and the key tells */
    assert_true(again.call.repeated);
    assert_int_equal(again.call.offset, 2);
    assert_int_equal(processor_figures(p.processor)->offset, 3);
    assert_int_equal(sent.answers + refused.answers + next.answers + queued.answers, 4);
    partition_check_digests(&p);
    ask_release(&sent);
    ask_release(&refused);
    ask_release(&next);
    ask_release(&queued);
    ask_release(&again);
    finish(&p);
}

TEST(nobody_waits_longer_for_a_claim_that_does_not_come)
{
    struct partition p;
    struct ask ask, later, again;
    open_partition(&p);
    p.options.wait = PAWL_SECOND;
    boot(&p);
    ask_customer(&ask, &p, 7);
    ask_customer(&later, &p, 7);
    ask_customer(&again, &p, 7);
    ask.request.key = again.request.key = text_bytes("k");
    order(&p, MEM_LOG_LANDED, 1, 0);
    order(&p, MEM_LOG_DELAY, 2, WORKS_MANY);
    ask_send(&ask);
    mem_world_advance(p.world, PAWL_SECOND / 2);
    ask_send(&later);
    mem_world_advance(p.world, PAWL_SECOND / 2 - PAWL_MILLISECOND);
    assert_int_equal(ask.answers, 0);
    mem_world_advance(p.world, LOOK);
    assert_int_equal(ask.answers, 1);
    assert_status(ask.call.status, PAWL_EUNKNOWN);
    mem_world_advance(p.world, PAWL_SECOND / 2);
    assert_int_equal(later.answers, 1);
    assert_status(later.call.status, PAWL_EBUSY);
    assert_contains(later.error.text, "recovering");
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    assert_ok(ask_and_wait(&again));
    assert_true(again.call.repeated);
    ask_release(&ask);
    ask_release(&later);
    ask_release(&again);
    finish(&p);
}

TEST(nobody_waits_longer_for_the_event_of_a_key)
{
    struct partition p;
    struct ask first, again, later;
    open_partition(&p);
    p.options.wait = PAWL_SECOND;
    boot(&p);
    ask_customer(&first, &p, 7);
    ask_customer(&again, &p, 7);
    ask_customer(&later, &p, 7);
    first.request.key = again.request.key = later.request.key = text_bytes("k");
    assert_ok(ask_and_wait(&first));
    order(&p, MEM_LOG_DELAY, 1, WORKS_MANY);
    ask_send(&again);
    mem_world_advance(p.world, PAWL_SECOND - PAWL_MILLISECOND);
    assert_int_equal(again.answers, 0);
    mem_world_advance(p.world, LOOK);
    assert_int_equal(again.answers, 1);
    assert_status(again.call.status, PAWL_EBUSY);
    assert_contains(again.error.text, "idempotency key");
    ask_release(&again); /* the read goes on, and has nothing of it */
    assert_ok(ask_and_wait(&later));
    assert_int_equal(later.call.offset, first.call.offset);
    ask_release(&first);
    ask_release(&later);
    finish(&p);
}

enum { PATIENCE_MS = 100 }; /* no command takes so long that has room */

/* Workspaces are created until there is no room for the numbers of one more; its command is then under way. */
static void fill_sequencer(struct partition *p, struct ask *ask, uint64_t *wsid)
{
    for (;;) {
        ask_create(ask, p, ++*wsid, "p.w");
        ask_send(ask);
        for (int ms = 0; ms < PATIENCE_MS && ask->answers == 0; ms++)
            steps(p, 1);
        if (ask->answers == 0)
            return;
        assert_ok(ask->call.status);
        ask_release(ask);
    }
}

TEST(nobody_waits_longer_for_a_sequencer_that_has_no_room)
{
    struct partition p;
    struct ask first, second;
    uint64_t wsid = 1000;
    open_partition(&p);
    p.options.wait = 2 * PAWL_SECOND;
    boot(&p);
    p.no_flushes = true;
    fill_sequencer(&p, &first, &wsid);
    steps(&p, 1000 - PATIENCE_MS);
    ask_customer(&second, &p, 7);
    ask_send(&second);
    steps(&p, 990);
    assert_int_equal(first.answers + second.answers, 0);
    steps(&p, 20);
    assert_int_equal(first.answers, 1);
    assert_status(first.call.status, PAWL_EBUSY);
    assert_contains(first.error.text, "no room");
    assert_int_equal(second.answers, 0);
    steps(&p, 1000);
    assert_int_equal(second.answers, 1);
    assert_status(second.call.status, PAWL_EBUSY);
    p.no_flushes = false;
    first.answers = second.answers = 0; /* what was refused has left no trace */
    assert_ok(ask_and_wait(&first));
    assert_ok(ask_and_wait(&second));
    assert_int_equal(second.call.offset, first.call.offset + 1);
    ask_release(&first);
    ask_release(&second);
    finish(&p);
}

TEST(a_new_sequence_comes_between_batches)
{
    struct partition p;
    struct ask ask[6];
    open_partition(&p);
    p.log_options.window = 2;
    p.options.batch_events_max = 2;
    boot(&p);
    order(&p, MEM_LOG_DELAY, 1, 20);
    for (size_t i = 0; i < 2; i++) { /* these fill the log's window */
        ask_customer(&ask[i], &p, 7);
        assert_ok(partition_submit(&p, &ask[i].call));
    }
    partition_run(&p);
    ask_create(&ask[2], &p, 8, "p.w"); /* and these are numbered, and cannot be sent */
    ask_customer(&ask[3], &p, 8);
    ask_customer(&ask[4], &p, 8);
    ask_customer(&ask[5], &p, 8);
    for (size_t i = 2; i < 6; i++)
        ask_send(&ask[i]);
    partition_schema(&p, partition_apply(&p, second_schema));
    assert_int_equal(processor_state(p.processor), WRITER_DRAINING);
    for (size_t i = 0; i < 6; i++) {
        assert_ok(ask_wait(&ask[i]));
        assert_int_equal(ask[i].call.offset, 2 + i);
        assert_int_equal(ask[i].at, 1 + i);
        assert_false(ask[i].call.repeated);
        ask_release(&ask[i]);
    }
    partition_check_digests(&p);
    finish(&p);
}

TEST(more_lost_events_than_one_read_shows_are_all_found)
{
    enum { MANY = 1300 }; /* a read shows 1024 */
    struct partition p;
    struct ask *ask = calloc(MANY, sizeof *ask);
    assert_non_null(ask);
    open_partition(&p);
    p.log_options.window = 4096;
    boot(&p);
    for (uint64_t i = 1; i <= 3; i++)
        order(&p, MEM_LOG_LANDED, i, 0);
    for (size_t i = 0; i < MANY; i++) {
        ask_customer(&ask[i], &p, 7);
        assert_ok(partition_submit(&p, &ask[i].call));
    }
    partition_run(&p);
    for (size_t i = 0; i < MANY; i++) {
        assert_ok(ask_wait(&ask[i]));
        assert_int_equal(ask[i].call.offset, 2 + i);
        ask_release(&ask[i]);
    }
    free(ask);
    assert_int_equal(processor_figures(p.processor)->replayed, MANY);
    partition_check_digests(&p);

    /* And so is a state that was thrown away. */
    pawl_bytes live = partition_dump(&p);
    partition_halt(&p);
    partition_forget_state(&p);
    partition_boot(&p);
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    pawl_bytes derived = partition_dump(&p);
    assert_int_equal(live.size, derived.size);
    assert_memory_equal(live.data, derived.data, live.size);
    free((void *)live.data);
    free((void *)derived.data);
    finish(&p);
}

TEST(a_full_queue_is_busy)
{
    struct partition p;
    struct ask ask[3];
    open_partition(&p);
    p.options.queue_max = 2;
    partition_boot(&p);
    for (size_t i = 0; i < 3; i++)
        ask_create(&ask[i], &p, 7 + i, "p.w");
    assert_ok(partition_submit(&p, &ask[0].call));
    assert_ok(partition_submit(&p, &ask[1].call));
    assert_status(partition_submit(&p, &ask[2].call), PAWL_EBUSY);
    assert_contains(ask[2].error.text, "2 commands waiting");
    for (size_t i = 0; i < 3; i++) {
        if (i < 2)
            assert_ok(ask_wait(&ask[i]));
        ask_release(&ask[i]);
    }
    finish(&p);
}

/* --- idempotency --- */

static void ask_keyed(struct ask *ask, struct partition *p, const char *key, int64_t points)
{
    ask_customer(ask, p, 7);
    ask_number(ask, "points", points);
    ask->request.key = text_bytes(key);
}

TEST(a_repeated_key_is_answered_by_the_event_of_then)
{
    struct partition p;
    struct ask first, flying, other, later, again;
    open_partition(&p);
    boot(&p);
    ask_keyed(&first, &p, "k", 1);
    ask_keyed(&flying, &p, "k", 1);
    ask_keyed(&other, &p, "k", 2);
    ask_keyed(&later, &p, "k", 1);
    ask_keyed(&again, &p, "k", 1);
    order(&p, MEM_LOG_DELAY, 1, 20);
    ask_send(&first);
    ask_send(&flying);
    ask_send(&other);
    assert_ok(ask_wait(&first));
    assert_ok(ask_wait(&flying));
    assert_status(ask_wait(&other), PAWL_ECONFLICT);
    assert_contains(other.error.text, "at offset 2");
    assert_ok(ask_and_wait(&later));
    partition_halt(&p);
    partition_boot(&p);
    assert_ok(ask_and_wait(&again));
    assert_false(first.call.repeated);
    const struct ask *const repeats[] = {&flying, &later, &again};
    for (size_t i = 0; i < 3; i++) {
        assert_true(repeats[i]->call.repeated);
        assert_int_equal(repeats[i]->call.offset, first.call.offset);
        assert_int_equal(ask_object(repeats[i], 0).id, ask_object(&first, 0).id);
    }
    assert_int_equal(processor_figures(p.processor)->offset, 2);
    ask_release(&first);
    ask_release(&flying);
    ask_release(&other);
    ask_release(&later);
    ask_release(&again);
    finish(&p);
}

TEST(a_key_is_forgotten_after_1024_events)
{
    struct partition p;
    struct ask ask;
    open_partition(&p);
    boot(&p);
    ask_keyed(&ask, &p, "k", 1);
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    for (int i = 1; i <= 1024; i++) {
        ask_customer(&ask, &p, 7);
        assert_ok(ask_and_wait(&ask));
        ask_release(&ask);
        if (i < 1022)
            continue;
        for (int restarted = 0; restarted < 2; restarted++) {
            if (i == 1024 && restarted)
                break;
            ask_keyed(&ask, &p, "k", 1);
            assert_ok(ask_and_wait(&ask));
            assert_int_equal(ask.call.repeated, i < 1024);
            assert_int_equal(ask.call.offset, i < 1024 ? 2 : 1024 + 3);
            ask_release(&ask);
            partition_halt(&p);
            partition_boot(&p);
        }
    }
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_refusal_that_rests_on_a_staged_event_waits_for_it),
        RUN(a_refusal_that_rested_on_a_lost_event_was_none),
        RUN(an_unknown_outcome_becomes_the_true_one),
        RUN(an_outcome_that_cannot_be_found_out_in_time_is_told_to_be_unknown),
        RUN(durable_is_answered_before_applied),
        RUN(nobody_waits_for_ever_for_a_state_that_cannot_be_written),
        RUN(a_full_log_refuses_and_resumes),
        RUN(an_append_that_the_log_does_not_take_is_like_one_that_it_refuses),
        RUN(no_more_batches_are_under_way_than_allowed),
        RUN(nobody_waits_longer_than_the_time_limit),
        RUN(nobody_waits_longer_for_a_log_that_does_not_answer),
        RUN(nobody_waits_longer_for_a_claim_that_does_not_come),
        RUN(nobody_waits_longer_for_the_event_of_a_key),
        RUN(nobody_waits_longer_for_a_sequencer_that_has_no_room),
        RUN(a_new_sequence_comes_between_batches),
        RUN(more_lost_events_than_one_read_shows_are_all_found),
        RUN(a_full_queue_is_busy),
        RUN(a_repeated_key_is_answered_by_the_event_of_then),
        RUN(a_key_is_forgotten_after_1024_events),
    };
    return TEST_MAIN(tests);
}
