/* What a processor does with one thing after the other: who waits for what, and what becomes of it when the log
 * or the store fails at that moment. test/sim/test_commands.c does everything at once. */
#include "test/lib/ask.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

#define CUSTOMERS                                                                                              \
    "'types': {'Customer': {'kind': 'CDoc', 'fields': {'name': {'type': 'string', 'required': true},"          \
    "          'points': {'type': 'int64'}}}}, 'commands': {'Add': {'records': ['Customer']}}}"

static const char first_schema[] = "{'schema': 1, 'package': 'p', 'workspaces': {'w': {}}, " CUSTOMERS;

/* With another sequence, so that the sequencer has to be another too. */
static const char second_schema[] =
    "{'schema': 1, 'package': 'p', 'workspaces': {'w': {'sequences': {'s': {'first': 1}}}}, " CUSTOMERS;

static void open_partition(struct partition *p)
{
    partition_open(p, 1);
    partition_apply(p, first_schema);
    p->options.workspaces_max = p->options.windows_max = 8; /* small, because there are many lives */
}

/* Running, with workspace 7. */
static void boot(struct partition *p)
{
    struct ask ask;
    partition_boot(p);
    assert_int_equal(partition_wait(p), PROCESSOR_RUNNING);
    ask_create(&ask, p, 7, "p.w");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
}

static void finish(struct partition *p)
{
    partition_halt(p);
    partition_close(p);
}

static void ask_customer(struct ask *ask, struct partition *p, uint64_t wsid)
{
    ask_init(ask, p, wsid, "p.Add");
    ask_record(ask, 1, "p.Customer");
    ask_text(ask, "name", "Ann");
}

static void order(struct partition *p, enum mem_log_fault_kind kind, uint64_t after, uint32_t n)
{
    struct mem_log_fault fault = {kind, mem_log_requests(p->log) + after, n};
    assert_ok(mem_log_order(p->log, &fault));
}

static void steps(struct partition *p, int count)
{
    for (int i = 0; i < count; i++)
        mem_world_advance(p->world, PAWL_MILLISECOND);
}

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
    assert_int_equal(partition_wait(&p), PROCESSOR_RUNNING);
    ask.answers = 0;
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
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
    assert_int_equal(processor_state(p.processor), PROCESSOR_DRAINING);
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

static const char *const shown[] = {"claiming", "catching up", "numbering", "running",
                                    "draining", "refused",     "closed"};

/* Commands, a schema, a fault; and after so many steps of the world the end. */
static unsigned close_after(uint64_t count, enum mem_log_fault_kind fault, enum mem_store_op broken,
                            bool inside)
{
    struct partition p;
    struct ask ask[8];
    size_t sent = 0;
    open_partition(&p);
    p.options.batch_events_max = 2;
    boot(&p);
    partition_halt(&p);
    partition_forget_state(&p);
    partition_boot(&p);
    if (fault)
        for (uint64_t i = 0; i < 4; i++)
            order(&p, fault, 1 + 2 * i, 1);
    if (broken)
        mem_store_disk_fail(p.store_disk, (struct mem_store_fault){broken, 3, 1000, PAWL_EIO});
    for (uint64_t step = 0; step < count; step++) {
        if (step % 5 == 0 && sent < 8) {
            if (sent == 0)
                ask_create(&ask[sent], &p, 8, "p.w");
            else
                ask_customer(&ask[sent], &p, 8);
            ask[sent].closes = inside && sent == 3;
            ask_send(&ask[sent++]);
        }
        if (step == 30)
            partition_schema(&p, partition_apply(&p, second_schema));
        if (!mem_world_step(p.world))
            mem_world_advance(p.world, PAWL_MILLISECOND);
    }
    unsigned state = 1u << processor_state(p.processor);
    partition_halt(&p);
    for (size_t i = 0; i < sent; i++) {
        if (ask[i].answers != 1)
            print_error("closed after %" PRIu64 " steps, when %s\n", count, shown[__builtin_ctz(state)]);
        assert_int_equal(ask[i].answers, 1);
        ask_release(&ask[i]);
    }
    partition_boot(&p); /* and all is well afterwards */
    assert_int_equal(partition_wait(&p), PROCESSOR_RUNNING);
    partition_check_digests(&p);
    finish(&p);
    return state;
}

TEST(everybody_is_answered_once_whenever_it_is_closed)
{
    static const enum mem_log_fault_kind faults[] = {
        0, MEM_LOG_FAIL, MEM_LOG_LANDED, MEM_LOG_LOST, MEM_LOG_FULL, MEM_LOG_DELAY};
    unsigned seen = 0;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        for (uint64_t count = 0; count < 90; count += 1 + count / 30) {
            seen |= close_after(count, faults[i], 0, false);
            seen |= close_after(count, faults[i], 0, true);
            seen |= close_after(count, faults[i], MEM_STORE_COMMIT, false);
        }
    assert_int_equal(seen | 1u << PROCESSOR_REFUSED,
                     (1u << PROCESSOR_CLOSED << 1) - 1); /* in every state; refused is below */
}

TEST(who_waits_for_a_lost_event_is_told_when_the_state_is_refused)
{
    struct partition p;
    struct ask lost, queued;
    open_partition(&p);
    boot(&p);
    ask_customer(&lost, &p, 7);
    ask_customer(&queued, &p, 7);
    order(&p, MEM_LOG_LANDED, 1, 0);
    p.no_schemas = true;
    ask_send(&lost);
    assert_status(ask_wait(&lost), PAWL_EUNKNOWN);
    assert_int_equal(processor_state(p.processor), PROCESSOR_REFUSED);
    assert_contains(lost.error.text, "which is not known");
    assert_status(ask_and_wait(&queued), PAWL_ECORRUPT);
    ask_release(&lost);
    ask_release(&queued);
    finish(&p);
}

TEST(a_done_may_close)
{
    static const enum mem_log_fault_kind faults[] = {0, MEM_LOG_FAIL, MEM_LOG_LANDED, MEM_LOG_LOST};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct partition p;
        struct ask ask[4];
        open_partition(&p);
        p.options.batch_events_max = 2;
        boot(&p);
        if (faults[i])
            order(&p, faults[i], 1, 0);
        for (size_t k = 0; k < 4; k++) {
            ask_customer(&ask[k], &p, 7);
            ask[k].closes = k == 0;
            assert_ok(partition_submit(&p, &ask[k].call));
        }
        partition_run(&p);
        (void)ask_wait(&ask[0]);
        partition_end_halt(&p);
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(ask[k].answers, 1);
            ask_release(&ask[k]);
        }
        partition_close(&p);
    }
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
        RUN(durable_is_answered_before_applied),
        RUN(a_full_log_refuses_and_resumes),
        RUN(no_more_batches_are_under_way_than_allowed),
        RUN(nobody_waits_longer_than_the_time_limit),
        RUN(a_new_sequence_comes_between_batches),
        RUN(everybody_is_answered_once_whenever_it_is_closed),
        RUN(who_waits_for_a_lost_event_is_told_when_the_state_is_refused),
        RUN(a_done_may_close),
        RUN(a_repeated_key_is_answered_by_the_event_of_then),
        RUN(a_key_is_forgotten_after_1024_events),
    };
    return TEST_MAIN(tests);
}
