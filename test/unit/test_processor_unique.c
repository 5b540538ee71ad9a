/* Unique views as commands meet them: in one command, in one batch, across what the log does, and while a view
 * begins to bind. test/sim/test_unique.c does everything at once. */
#include "test/lib/codes.h"
#include "test/lib/customers.h"

static uint64_t wsid;

static void begin(struct partition *p, const char *schema)
{
    wsid = partition_workspace(0);
    codes_open(p, schema);
    partition_boot(p);
    assert_int_equal(partition_wait(p), WRITER_RUNNING);
    codes_create(p, wsid);
}

static uint64_t made(const struct ask *ask)
{
    return ask_object(ask, 0).id;
}

/* An item that is there. */
static uint64_t add(struct partition *p, const char *code)
{
    struct ask ask;
    codes_put(&ask, p, wsid, 1, code);
    assert_ok(ask_and_wait(&ask));
    uint64_t id = made(&ask);
    ask_release(&ask);
    return id;
}

static void assert_refused(struct ask *ask, const char *view, uint64_t other)
{
    char words[128];
    assert_status(ask_wait(ask), PAWL_EEXISTS);
    snprintf(words, sizeof words, "%s: record %" PRIu64 " has the same key", view, other);
    assert_contains(ask->error.text, words);
}

static void refuse(struct partition *p, const char *code, uint64_t other)
{
    struct ask ask;
    codes_put(&ask, p, wsid, 1, code);
    ask_send(&ask);
    assert_refused(&ask, "p.codes", other);
    ask_release(&ask);
}

static uint64_t next_offset(struct partition *p)
{
    return processor_figures(p->processor)->offset + 1;
}

TEST(a_key_that_a_record_has_is_refused_and_uses_no_number)
{
    struct partition p;
    struct ask ask;
    begin(&p, codes_schema);
    uint64_t first = add(&p, "a");
    uint64_t offset = next_offset(&p);
    for (int i = 0; i < 3; i++) {
        codes_put(&ask, &p, wsid, 1, "a");
        ask_record(&ask, 2, "p.Note");
        ask_send(&ask);
        assert_refused(&ask, "p.codes", first);
        ask_release(&ask);
    }
    codes_put(&ask, &p, wsid, 1, "b");
    ask_record(&ask, 2, "p.Note");
    assert_ok(ask_and_wait(&ask));
    assert_int_equal(ask.call.offset, offset);
    assert_int_equal(made(&ask), first + 1);
    const struct envelope *numbers = &ask.event.envelope; /* the last sequence is that of the note */
    assert_int_equal(envelope_numbers(numbers, numbers->count - 1).first, 1);
    ask_release(&ask);
    partition_check_digests(&p);
    finish(&p);
}

TEST(another_workspace_may_have_the_same_key)
{
    struct partition p;
    struct ask ask;
    begin(&p, codes_schema);
    add(&p, "a");
    uint64_t other = partition_workspace(wsid);
    codes_create(&p, other);
    codes_put(&ask, &p, other, 1, "a");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    finish(&p);
}

TEST(two_new_records_of_one_command_collide)
{
    struct partition p;
    struct ask ask;
    begin(&p, codes_schema);
    uint64_t offset = next_offset(&p);
    codes_put(&ask, &p, wsid, 1, "a");
    codes_item(&ask, 2, "a");
    assert_status(ask_and_wait(&ask), PAWL_EEXISTS);
    assert_contains(ask.error.text, "p.codes: record ");
    ask_release(&ask);
    codes_put(&ask, &p, wsid, 1, "a");
    codes_item(&ask, 2, "b");
    assert_ok(ask_and_wait(&ask));
    assert_int_equal(ask.call.offset, offset);
    ask_release(&ask);
    finish(&p);
}

/* Both in the queue before the processor runs. */
static void submit_two(struct partition *p, struct ask *first, struct ask *second)
{
    assert_ok(partition_submit(p, &first->call));
    assert_ok(partition_submit(p, &second->call));
    partition_run(p);
}

TEST(two_commands_of_one_batch_collide_and_the_refusal_waits_for_the_event)
{
    struct partition p;
    struct ask first, second;
    begin(&p, codes_schema);
    codes_put(&first, &p, wsid, 1, "a");
    codes_put(&second, &p, wsid, 1, "a");
    order(&p, MEM_LOG_DELAY, 1, 50);
    submit_two(&p, &first, &second);
    steps(&p, 5);
    assert_int_equal(first.answers + second.answers, 0);
    assert_ok(ask_wait(&first));
    assert_refused(&second, "p.codes", made(&first));
    ask_release(&first);
    ask_release(&second);
    finish(&p);
}

TEST(two_records_exchange_their_keys)
{
    struct partition p;
    struct ask ask;
    begin(&p, codes_schema);
    uint64_t a = add(&p, "a"), b = add(&p, "b");
    codes_put(&ask, &p, wsid, a, "b");
    codes_item(&ask, b, "a");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    refuse(&p, "a", b);
    refuse(&p, "b", a);
    finish(&p);
}

TEST(a_key_that_an_update_frees_is_free_in_the_same_batch)
{
    struct partition p;
    struct ask frees, takes;
    begin(&p, codes_schema);
    uint64_t a = add(&p, "a");
    codes_put(&frees, &p, wsid, a, "b");
    codes_put(&takes, &p, wsid, 1, "a");
    submit_two(&p, &frees, &takes);
    assert_ok(ask_wait(&frees));
    assert_ok(ask_wait(&takes));
    refuse(&p, "a", made(&takes));
    refuse(&p, "b", a);
    ask_release(&frees);
    ask_release(&takes);
    finish(&p);
}

TEST(a_filter_lets_go_of_what_is_not_active)
{
    struct partition p;
    struct ask first, off, second, on;
    begin(&p, codes_schema);
    codes_put(&first, &p, wsid, 1, NULL);
    ask_number(&first, "rank", 1);
    assert_ok(ask_and_wait(&first));
    codes_put(&off, &p, wsid, made(&first), "");
    codes_active(&off, false);
    codes_put(&second, &p, wsid, 1, NULL);
    ask_number(&second, "rank", 1);
    submit_two(&p, &off, &second);
    assert_ok(ask_wait(&off));
    assert_ok(ask_wait(&second));
    codes_put(&on, &p, wsid, made(&first), "");
    codes_active(&on, true);
    ask_send(&on);
    assert_refused(&on, "p.live", made(&second));
    ask_release(&first);
    ask_release(&off);
    ask_release(&second);
    ask_release(&on);
    finish(&p);
}

TEST(an_inactive_record_counts_unless_the_filter_leaves_it_out)
{
    struct partition p;
    struct ask off;
    begin(&p, codes_schema);
    uint64_t a = add(&p, "a");
    codes_put(&off, &p, wsid, a, "");
    codes_active(&off, false);
    assert_ok(ask_and_wait(&off));
    ask_release(&off);
    refuse(&p, "a", a);
    finish(&p);
}

TEST(records_without_a_key_are_not_held_to_it)
{
    struct partition p;
    struct ask ask;
    begin(&p, codes_schema);
    uint64_t first = add(&p, NULL);
    add(&p, NULL);
    codes_put(&ask, &p, wsid, first, "a");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    refuse(&p, "a", first);
    codes_put(&ask, &p, wsid, first, NULL);
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    add(&p, "a");
    finish(&p);
}

TEST(a_record_may_be_changed_without_its_key)
{
    struct partition p;
    struct ask ask;
    begin(&p, codes_schema);
    codes_put(&ask, &p, wsid, add(&p, "a"), "a");
    ask_number(&ask, "rank", 5);
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    finish(&p);
}

TEST(a_refusal_across_an_unknown_outcome_is_the_true_one)
{
    static const enum mem_log_fault_kind faults[] = {MEM_LOG_LANDED, MEM_LOG_LOST, MEM_LOG_LATE};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct partition p;
        struct ask first, second;
        begin(&p, codes_schema);
        codes_put(&first, &p, wsid, 1, "a");
        codes_put(&second, &p, wsid, 1, "a");
        order(&p, faults[i], 1, 0);
        submit_two(&p, &first, &second);
        int status = ask_wait(&first);
        if (status == PAWL_OK)
            assert_refused(&second, "p.codes", made(&first));
        else {
            assert_status(status, PAWL_EIO);
            assert_ok(ask_wait(&second)); /* what it rested on was lost: it is processed again */
            refuse(&p, "a", made(&second));
        }
        ask_release(&first);
        ask_release(&second);
        finish(&p);
    }
}

TEST(what_a_lost_batch_took_and_freed_is_as_it_was)
{
    struct partition p;
    struct ask moves, next;
    begin(&p, codes_schema);
    uint64_t a = add(&p, "a");
    codes_put(&moves, &p, wsid, a, "b");
    order(&p, MEM_LOG_LOST, 1, 0);
    assert_status(ask_and_wait(&moves), PAWL_EIO);
    refuse(&p, "a", a);
    codes_put(&next, &p, wsid, 1, "b");
    assert_ok(ask_and_wait(&next));
    ask_release(&moves);
    ask_release(&next);
    finish(&p);
}

TEST(what_is_durable_and_not_applied_counts)
{
    struct partition p;
    struct ask first, second;
    begin(&p, codes_schema);
    codes_put(&first, &p, wsid, 1, "a");
    first.call.ack = ACK_DURABLE;
    mem_store_disk_fail(p.store_disk, (struct mem_store_fault){MEM_STORE_COMMIT, 1, 3, PAWL_EIO});
    assert_ok(ask_and_wait(&first));
    codes_put(&second, &p, wsid, 1, "a");
    second.answers = 0;
    ask_send(&second);
    int status = ask_wait(&second);
    assert_true(status == PAWL_EEXISTS || status == PAWL_EIO); /* refused, or the state could not be written */
    steps(&p, 2000);
    refuse(&p, "a", made(&first));
    ask_release(&first);
    ask_release(&second);
    finish(&p);
}

TEST(a_store_that_is_made_again_from_the_log_binds_at_once)
{
    struct partition p;
    begin(&p, codes_schema);
    uint64_t a = add(&p, "a");
    partition_crash(&p, true);
    partition_boot(&p);
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    refuse(&p, "a", a);
    partition_halt(&p);
    partition_forget_state(&p);
    partition_boot(&p);
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    refuse(&p, "a", a);
    add(&p, "b");
    assert_ok(partition_verdict(&p, partition_view(&p, "p.codes"), NULL));
    finish(&p);
}

/* --- a view that begins to bind --- */

/* The view is made over rows that are there, and its last slice is still to come. */
static uint32_t make_view(struct partition *p)
{
    bool covered = true;
    partition_apply(p, CODES_PACKAGE CODES_CODES "}}");
    assert_ok(partition_refresh(p));
    uint32_t view = partition_view(p, "p.codes");
    assert_ok(partition_slice(p, view, 1, &covered));
    assert_false(covered);
    return view;
}

static void complete_view(struct partition *p, uint32_t view)
{
    for (bool covered = false; !covered;)
        assert_ok(partition_slice(p, view, 1, &covered));
}

TEST(a_view_binds_from_its_last_slice_on)
{
    struct partition p;
    begin(&p, codes_without);
    uint64_t a = add(&p, "a"), b = add(&p, "b");
    uint32_t view = make_view(&p);
    uint64_t again = add(&p, "c");
    struct ask ask;
    codes_put(&ask, &p, wsid, again, "b"); /* two have it now */
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    codes_put(&ask, &p, wsid, again, "d");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    assert_status(partition_verdict(&p, view, NULL), PAWL_EBUSY);
    complete_view(&p, view);
    assert_true(partition_settled(&p));
    assert_ok(partition_verdict(&p, view, NULL));
    refuse(&p, "a", a);
    refuse(&p, "b", b);
    refuse(&p, "d", again);
    finish(&p);
}

/* A batch is staged and not durable when the last slice commits. */
TEST(what_was_staged_before_a_view_binds_is_not_refused_and_the_next_ones_are)
{
    struct partition p;
    struct ask staged, next;
    pawl_error error = {0};
    begin(&p, codes_without);
    uint64_t a = add(&p, "a");
    add(&p, "z");
    uint32_t view = make_view(&p);
    codes_put(&staged, &p, wsid, 1, "b");
    codes_item(&staged, a, "c");
    codes_put(&next, &p, wsid, 1, "b");
    order(&p, MEM_LOG_DELAY, 1, 50);
    ask_send(&staged);
    complete_view(&p, view);
    assert_false(partition_settled(&p));
    ask_send(&next);
    assert_ok(ask_wait(&staged));
    assert_refused(&next, "p.codes", made(&staged));
    assert_true(partition_settled(&p));
    assert_status(partition_verdict(&p, view, &error), PAWL_OK);
    add(&p, "a"); /* which the staged one freed */
    refuse(&p, "c", a);
    ask_release(&staged);
    ask_release(&next);
    finish(&p);
}

TEST(the_verdict_names_two_that_collided_before_the_view_bound)
{
    struct partition p;
    struct ask staged;
    pawl_error error = {0};
    char words[128];
    begin(&p, codes_without);
    uint64_t a = add(&p, "a");
    add(&p, "b");
    uint32_t view = make_view(&p);
    codes_put(&staged, &p, wsid, 1, "a");
    order(&p, MEM_LOG_DELAY, 1, 50);
    ask_send(&staged);
    complete_view(&p, view);
    assert_false(partition_settled(&p));
    assert_ok(ask_wait(&staged));
    assert_true(partition_settled(&p));
    assert_status(partition_verdict(&p, view, &error), PAWL_EEXISTS);
    snprintf(words, sizeof words, "p.codes: workspace %" PRIu64 ": records %" PRIu64 " and %" PRIu64 " have",
             wsid, a, made(&staged));
    assert_contains(error.text, words);
    /* Each may be changed without its key, and one may give it up. */
    struct ask ask;
    codes_put(&ask, &p, wsid, a, "a");
    ask_number(&ask, "rank", 3);
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    codes_put(&ask, &p, wsid, a, "c");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
    assert_ok(partition_verdict(&p, view, NULL));
    ask_release(&staged);
    finish(&p);
}

/* The log has no room, so that a batch stays open; then a view begins to bind, and it is a command of that batch
 * which finds that out, and is refused. What was noted of the batch's events then must outlast the refusal. */
TEST(a_refused_command_leaves_what_was_noted_of_its_batch)
{
    struct partition p;
    struct ask sent, open, refused[2], large;
    char text[2001];
    wsid = partition_workspace(0);
    codes_open(&p, codes_without);
    p.log_options.requests = 1;
    partition_boot(&p);
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    codes_create(&p, wsid);
    add(&p, "a");
    add(&p, "z");
    uint32_t view = make_view(&p);
    codes_put(&sent, &p, wsid, 1, "c");
    codes_put(&open, &p, wsid, 1, "b");
    order(&p, MEM_LOG_DELAY, 1, 50);
    ask_send(&sent);
    ask_send(&open); /* the log has its one request */
    p.untold = true;
    complete_view(&p, view);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i < 2; i++)
        codes_put(&refused[i], &p, wsid, 1, "b");
    codes_put(&large, &p, wsid, 1, text); /* it takes the memory that the refusal gave back */
    ask_send(&refused[0]);
    ask_send(&large);
    ask_send(&refused[1]);
    assert_ok(ask_wait(&sent));
    assert_ok(ask_wait(&open));
    assert_ok(ask_wait(&large));
    for (size_t i = 0; i < 2; i++) {
        assert_refused(&refused[i], "p.codes", made(&open));
        ask_release(&refused[i]);
    }
    ask_release(&sent);
    ask_release(&open);
    ask_release(&large);
    finish(&p);
}

TEST(a_staged_batch_that_is_lost_settles_too)
{
    struct partition p;
    struct ask staged;
    begin(&p, codes_without);
    add(&p, "a");
    add(&p, "b");
    uint32_t view = make_view(&p);
    codes_put(&staged, &p, wsid, 1, "a");
    order(&p, MEM_LOG_LOST, 1, 0);
    ask_send(&staged);
    complete_view(&p, view);
    assert_false(partition_settled(&p));
    assert_status(ask_wait(&staged), PAWL_EIO);
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    assert_true(partition_settled(&p));
    assert_ok(partition_verdict(&p, view, NULL));
    ask_release(&staged);
    finish(&p);
}

TEST(a_staged_batch_of_unknown_outcome_settles_when_it_is_known)
{
    struct partition p;
    struct ask staged;
    begin(&p, codes_without);
    add(&p, "a");
    add(&p, "b");
    uint32_t view = make_view(&p);
    codes_put(&staged, &p, wsid, 1, "a");
    order(&p, MEM_LOG_LANDED, 1, 0);
    for (uint64_t i = 2; i <= 4; i++)
        order(&p, MEM_LOG_FAIL, i, 0);
    ask_send(&staged);
    complete_view(&p, view);
    while (processor_state(p.processor) == WRITER_RUNNING || processor_state(p.processor) == WRITER_DRAINING) {
        assert_false(partition_settled(&p));
        steps(&p, 1);
    }
    assert_false(partition_settled(&p)); /* the batch is undone, but its event may be in the log */
    assert_ok(ask_wait(&staged));
    assert_int_equal(partition_wait(&p), WRITER_RUNNING);
    assert_true(partition_settled(&p));
    assert_status(partition_verdict(&p, view, NULL), PAWL_EEXISTS);
    ask_release(&staged);
    finish(&p);
}

/* Rows that are ahead of their commit, of an event that was staged after the view began to bind. */
TEST(a_view_that_binds_is_settled_though_rows_are_ahead)
{
    struct partition p;
    struct ask later;
    begin(&p, codes_without);
    add(&p, "a");
    add(&p, "b");
    uint32_t view = make_view(&p);
    complete_view(&p, view);
    codes_put(&later, &p, wsid, 1, "c");
    order(&p, MEM_LOG_DELAY, 1, 50);
    ask_send(&later);
    steps(&p, 1);
    assert_non_null(p.applier.put);
    assert_true(partition_settled(&p));
    assert_null(p.applier.put);
    assert_ok(partition_verdict(&p, view, NULL));
    assert_ok(ask_wait(&later));
    ask_release(&later);
    finish(&p);
}

TEST(a_view_that_is_dropped_binds_no_more)
{
    struct partition p;
    begin(&p, codes_schema);
    uint64_t a = add(&p, "a");
    refuse(&p, "a", a);
    partition_apply(&p, codes_without);
    assert_ok(partition_refresh(&p));
    add(&p, "a");
    finish(&p);
}

TEST(while_views_are_not_known_nothing_is_staged)
{
    struct partition p;
    struct ask ask;
    begin(&p, codes_schema);
    uint64_t a = add(&p, "a");
    partition_apply(&p, CODES_PACKAGE CODES_CODES "}}");
    mem_store_disk_fail(p.store_disk, (struct mem_store_fault){MEM_STORE_COMMIT, 1, 1000, PAWL_EFULL});
    assert_status(partition_refresh(&p), PAWL_EFULL);
    assert_false(partition_settled(&p));
    codes_put(&ask, &p, wsid, 1, "a");
    assert_status(ask_and_wait(&ask), PAWL_EFULL);
    ask_release(&ask);
    mem_store_disk_fail(p.store_disk, (struct mem_store_fault){0});
    refuse(&p, "a", a);
    add(&p, "b");
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_key_that_a_record_has_is_refused_and_uses_no_number),
        RUN(another_workspace_may_have_the_same_key),
        RUN(two_new_records_of_one_command_collide),
        RUN(two_commands_of_one_batch_collide_and_the_refusal_waits_for_the_event),
        RUN(two_records_exchange_their_keys),
        RUN(a_key_that_an_update_frees_is_free_in_the_same_batch),
        RUN(a_filter_lets_go_of_what_is_not_active),
        RUN(an_inactive_record_counts_unless_the_filter_leaves_it_out),
        RUN(records_without_a_key_are_not_held_to_it),
        RUN(a_record_may_be_changed_without_its_key),
        RUN(a_refusal_across_an_unknown_outcome_is_the_true_one),
        RUN(what_a_lost_batch_took_and_freed_is_as_it_was),
        RUN(what_is_durable_and_not_applied_counts),
        RUN(a_store_that_is_made_again_from_the_log_binds_at_once),
        RUN(a_view_binds_from_its_last_slice_on),
        RUN(what_was_staged_before_a_view_binds_is_not_refused_and_the_next_ones_are),
        RUN(the_verdict_names_two_that_collided_before_the_view_bound),
        RUN(a_refused_command_leaves_what_was_noted_of_its_batch),
        RUN(a_staged_batch_that_is_lost_settles_too),
        RUN(a_staged_batch_of_unknown_outcome_settles_when_it_is_known),
        RUN(a_view_that_binds_is_settled_though_rows_are_ahead),
        RUN(a_view_that_is_dropped_binds_no_more),
        RUN(while_views_are_not_known_nothing_is_staged),
    };
    return TEST_MAIN(tests);
}
