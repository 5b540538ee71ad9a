/* A processor that is closed, or refused, or shares its shard with another one: whoever waits is answered,
 * once. */
#include "test/lib/customers.h"

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
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
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
        for (uint64_t count = i % 3; count < 90; count += 3 + count / 10) {
            seen |= close_after(count, faults[i], 0, false);
            seen |= close_after(count, faults[i], 0, true);
            seen |= close_after(count, faults[i], MEM_STORE_COMMIT, false);
        }
    assert_int_equal(seen | 1u << WRITER_REFUSED,
                     (1u << WRITER_CLOSED << 1) - 1); /* in every state; refused is below */
}

/* Something of another partition of the shard. */
struct stranger {
    struct apply_item item;
    struct partition *partition;
    int status;
    bool done;
};

static int stranger_write(struct apply_item *item, pawl_store *store)
{
    return ((struct stranger *)item)->status;
}

static void stranger_undo(struct apply_item *item)
{
}

static void stranger_done(struct apply_item *item)
{
    ((struct stranger *)item)->done = true;
}

static void add_stranger(void *arg)
{
    struct stranger *s = arg;
    applier_add(&s->partition->applier, &s->item);
    applier_soon(&s->partition->applier);
}

static void remove_stranger(void *arg)
{
    struct stranger *s = arg;
    assert_true(applier_remove(&s->partition->applier, &s->item));
}

static bool one_waits(void *arg)
{
    const struct partition *p = arg;
    return p->applier.first != NULL;
}

static bool two_wait(void *arg)
{
    return one_waits(arg) && ((const struct partition *)arg)->applier.first->next != NULL;
}

TEST(partitions_of_a_shard_are_written_together_and_close_by_themselves)
{
    for (int first = 0; first < 2; first++)
        for (int closes = 0; closes < 2; closes++) {
            struct partition p;
            struct ask ask;
            struct stranger stranger = {
                {.write = stranger_write, .undo = stranger_undo, .done = stranger_done}, &p, PAWL_EIO, false};
            open_partition(&p);
            boot(&p);
            if (first)
                partition_call(&p, add_stranger, &stranger);
            ask_customer(&ask, &p, 7);
            ask.call.ack = ACK_APPLIED;
            ask_send(&ask);
            assert_true(mem_world_run_until(p.world, first ? two_wait : one_waits, &p, PARTITION_STEPS_MAX));
            if (!first)
                partition_call(&p, add_stranger, &stranger);
            steps(&p, first ? 200 : 0);
            if (closes) {
                partition_begin_halt(&p);
                assert_ok(ask_wait(&ask));
                steps(&p, 20);
                assert_true(p.closed);
                if (!stranger.done && p.applier.first)
                    partition_call(&p, remove_stranger, &stranger);
                partition_end_halt(&p);
                partition_close(&p);
            } else {
                stranger.status = PAWL_OK;
                assert_ok(ask_wait(&ask));
                steps(&p, 10);
                assert_true(stranger.done);
                partition_check_digests(&p);
                finish(&p);
            }
            ask_release(&ask);
        }
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
    assert_int_equal(processor_state(p.processor), WRITER_REFUSED);
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

TEST(a_done_may_close_when_it_was_refused_because_the_state_cannot_be_written)
{
    struct partition p;
    struct ask stuck, late;
    open_partition(&p);
    boot(&p);
    ask_customer(&stuck, &p, 7);
    ask_customer(&late, &p, 7);
    mem_store_disk_fail(p.store_disk, (struct mem_store_fault){MEM_STORE_COMMIT, 1, 1000, PAWL_EFULL});
    ask_send(&stuck);
    steps(&p, 100);
    assert_int_equal(stuck.answers, 0);
    late.closes = true;
    assert_status(ask_and_wait(&late), PAWL_EFULL);
    partition_end_halt(&p);
    assert_int_equal(stuck.answers, 1); /* it is in the log */
    assert_ok(stuck.call.status);
    ask_release(&stuck);
    ask_release(&late);
    partition_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(everybody_is_answered_once_whenever_it_is_closed),
        RUN(partitions_of_a_shard_are_written_together_and_close_by_themselves),
        RUN(who_waits_for_a_lost_event_is_told_when_the_state_is_refused),
        RUN(a_done_may_close),
        RUN(a_done_may_close_when_it_was_refused_because_the_state_cannot_be_written),
    };
    return TEST_MAIN(tests);
}
