/* test_engine_kept.c: leases of external workers after the engine was closed and opened again. What a crash leaves
 * is test_engine_kept_kill.c's part, and a loss of power test/crash/test_leases_power.c's. */
#include "test/lib/kept.h"

#include <pthread.h>
#include <sys/stat.h>

#include "engine/lanes/impl.h"

static void reopen(struct lanes_bed *bed)
{
    bed_close(bed);
    bed_open(bed);
}

static bool count_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    (void)key;
    (void)value;
    ++*(size_t *)arg;
    return true;
}

/* How many rows of leases the store has. */
static size_t rows(struct lanes_bed *bed)
{
    size_t count = 0;
    assert_ok(local_scan(bed->engine->local, text_bytes("lease/"), count_row, &count, &bed->error));
    return count;
}

static void put_row(struct lanes_bed *bed, const char *key, size_t size, const char *value, size_t value_size)
{
    assert_ok(
        local_put(bed->engine->local, (pawl_bytes){key, size}, (pawl_bytes){value, value_size}, &bed->error));
}

TEST(a_lease_is_held_by_the_same_worker_after_the_engine_was_opened_again)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    struct ticket t = kept_acquire(&bed, 0);
    for (int i = 0; i < 3; i++) {
        reopen(&bed);
        kept_wait_bound(&bed, t.partition, 1);
        assert_true(kept_is_nothing_left(&bed));
        assert_ok(kept_extend(&bed, &t, 0));
    }
    pawl_operation_id mine = t.operation;
    t.operation.low ^= 1;
    assert_status(kept_commit(&bed, &t, BED_PATIENCE), PAWL_EFENCED);
    t.operation = mine;
    assert_ok(kept_commit(&bed, &t, BED_PATIENCE));
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    reopen(&bed);
    assert_ok(kept_commit(&bed, &t, BED_PATIENCE)); /* the log knows */
    assert_int_equal(rows(&bed), 0);
    bed_end(&bed);
}

TEST(attempts_lanes_and_partitions_are_the_same)
{
    struct lanes_bed bed = {0};
    struct ticket tickets[8];
    bed_begin(&bed, LANES_SCHEMA(""));
    for (uint64_t wsid = 1; wsid <= 8; wsid++)
        bed_send(&bed, wsid, "t.Ask", "ada", 1);
    for (unsigned i = 0; i < 8; i++)
        tickets[i] = kept_acquire(&bed, 0);
    assert_ok(kept_release(&bed, &tickets[3], true, false)); /* it backs off, and is tried again */
    tickets[3] = kept_acquire(&bed, 0);
    assert_int_equal(tickets[3].attempt, 2);
    assert_int_equal(rows(&bed), 8);
    reopen(&bed);
    for (unsigned i = 0; i < 8; i++) {
        pawl_lane_status status;
        assert_ok(kept_extend(&bed, &tickets[i], 0));
        status = bed_status(&bed, "t.notes", tickets[i].partition, 0);
        assert_true(status.leases.active > 0);
    }
    assert_true(kept_is_nothing_left(&bed));
    for (unsigned i = 8; i-- > 0;)
        (void)kept_commit(&bed, &tickets[i], 0);
    for (unsigned i = 0; i < 8; i++)
        assert_ok(kept_commit(&bed, &tickets[i], BED_PATIENCE));
    bed_wait(&bed, "t.notes");
    bed_end(&bed);
}

TEST(a_worker_that_does_not_come_back_loses_its_lease_some_time_after_the_opening)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    struct ticket t = kept_acquire(&bed, PAWL_SECOND / 2);
    reopen(&bed);
    struct ticket next = kept_acquire(&bed, 0); /* waits until the first one has expired */
    assert_int_equal(next.number, t.number);
    assert_status(kept_commit(&bed, &t, BED_PATIENCE), PAWL_EFENCED);
    reopen(&bed);
    assert_status(kept_commit(&bed, &t, BED_PATIENCE), PAWL_EFENCED);
    assert_ok(kept_commit(&bed, &next, BED_PATIENCE));
    bed_end(&bed);
}

static bool take_lease(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    (void)event;
    (void)projector;
    *(pawl_lease *)arg = *lease;
    return false;
}

static pawl_lease lease_of(struct lanes_bed *bed, const struct ticket *t)
{
    pawl_lease lease = {0};
    kept_wait_bound(bed, t->partition, t->number);
    assert_ok(pawl_lane_leases(bed->engine, t->partition, "t.notes", 0, t->number, 1, take_lease, &lease,
                               &bed->error));
    assert_int_equal(lease.number, t->number);
    return lease;
}

/* The whole duration runs again: one that was near its end when the engine was closed is not near its end. */
TEST(the_time_of_a_lease_runs_anew_from_the_opening)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    struct ticket t = kept_acquire(&bed, 200 * PAWL_SECOND);
    bed_close(&bed);
    uint64_t closed = clock_boot_ns();
    bed_open(&bed);
    pawl_lease lease = lease_of(&bed, &t);
    assert_int_equal(lease.state, PAWL_LEASE_LEASED);
    assert_true(lease.leased_at.ns >= closed);
    assert_int_equal(lease.duration, 200 * PAWL_SECOND);
    assert_int_equal(lease.attempt, t.attempt);
    assert_ok(kept_commit(&bed, &t, BED_PATIENCE));
    bed_end(&bed);
}

TEST(what_is_released_failed_reclaimed_or_void_does_not_come_back)
{
    struct lanes_bed bed = {0};
    struct ticket t[4];
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    for (unsigned i = 0; i < 4; i++)
        bed_send(&bed, 1, "t.Ask", "ada", 1);
    for (unsigned i = 0; i < 4; i++)
        t[i] = kept_acquire(&bed, 0);
    assert_int_equal(rows(&bed), 4);
    assert_ok(kept_release(&bed, &t[0], false, false));
    assert_int_equal(rows(&bed), 3); /* at once: it is durable when the call returns */
    assert_ok(kept_release(&bed, &t[1], true, false));
    assert_int_equal(rows(&bed), 2);
    assert_ok(pawl_lane_reclaim(bed.engine, t[2].partition, "t.notes", 0, t[2].number, &bed.error));
    assert_int_equal(rows(&bed), 1);
    assert_ok(pawl_lane_void(bed.engine, t[3].partition, "t.notes", 0, t[3].number, "no", &bed.error));
    assert_int_equal(rows(&bed), 0);
    reopen(&bed);
    for (unsigned i = 0; i < 4; i++)
        assert_status(kept_commit(&bed, &t[i], BED_PATIENCE), PAWL_EFENCED);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(kept_acquire(&bed, 0).number, i + 1);
    bed_end(&bed);
}

TEST(a_longer_time_is_kept_and_a_shorter_one_changes_nothing)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    struct ticket t = kept_acquire(&bed, 60 * PAWL_SECOND);
    assert_ok(kept_extend(&bed, &t, 400 * PAWL_SECOND));
    assert_ok(kept_extend(&bed, &t, 100 * PAWL_SECOND));
    reopen(&bed);
    assert_int_equal(lease_of(&bed, &t).duration, 400 * PAWL_SECOND);
    bed_end(&bed);
}

TEST(a_result_that_waits_for_its_turn_is_handed_in_again)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    struct ticket first = kept_acquire(&bed, 0), second = kept_acquire(&bed, 0);
    assert_status(kept_commit(&bed, &second, 0), PAWL_ETIMEOUT);
    reopen(&bed);
    assert_status(kept_commit(&bed, &second, 0), PAWL_ETIMEOUT);
    assert_ok(kept_commit(&bed, &first, BED_PATIENCE));
    assert_ok(kept_commit(&bed, &second, BED_PATIENCE));
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 2);
    bed_end(&bed);
}

TEST(a_generation_that_is_over_takes_its_leases_with_it)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    struct ticket done = kept_acquire(&bed, 0);
    assert_ok(kept_commit(&bed, &done, BED_PATIENCE));
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    struct ticket old = kept_acquire(&bed, 0);
    assert_ok(pawl_lane_rebuild(bed.engine, "t.notes",
                                &bed.error)); /* it takes over when it has done the first one */
    struct ticket new = kept_acquire(&bed, 0);
    assert_int_equal(old.number, 2);
    assert_int_equal(new.number, 1);
    BED_UNTIL(rows(&bed) == 2);
    reopen(&bed);
    assert_ok(kept_extend(&bed, &old, 0));
    assert_ok(kept_extend(&bed, &new, 0));
    assert_int_equal(rows(&bed), 2);
    assert_ok(kept_commit(&bed, &new, BED_PATIENCE));
    BED_UNTIL(bed_status(&bed, "t.notes", old.partition, 0).generation == 2);
    BED_UNTIL(rows(&bed) == 0);
    assert_status(kept_commit(&bed, &old, BED_PATIENCE), PAWL_EFENCED);
    reopen(&bed);
    assert_status(kept_commit(&bed, &old, BED_PATIENCE), PAWL_EFENCED);
    assert_int_equal(kept_acquire(&bed, 0).number, 2);
    bed_end(&bed);
}

/* What a worker has read is in memory only, so its lease must not outlive it: nobody could validate the result. */
TEST(a_lease_that_has_read_is_not_held_after_the_engine_was_opened_again)
{
    struct lanes_bed bed = {0};
    pawl_text text;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    struct ticket first = kept_acquire(&bed, 0), second = kept_acquire(&bed, 0);
    pawl_worker_lease lease = ticket_lease(&second);
    assert_int_equal(rows(&bed), 2);
    assert_status(pawl_worker_get(bed.engine, &lease, "t.Note", text_bytes("[0]"), &text, &bed.error),
                  PAWL_ENOTFOUND);
    assert_int_equal(rows(&bed), 1);
    assert_ok(kept_extend(&bed, &second, 2 * BED_PATIENCE));
    assert_int_equal(rows(&bed), 1);
    reopen(&bed);
    kept_wait_bound(&bed, first.partition, 1);
    assert_status(kept_commit(&bed, &second, 0), PAWL_EFENCED);
    struct ticket again = kept_acquire(&bed, 0);
    assert_int_equal(again.number, second.number);
    assert_ok(kept_commit(&bed, &first, BED_PATIENCE));
    assert_ok(kept_commit(&bed, &again, BED_PATIENCE));
    bed_end(&bed);
}

static const char key_of_another_generation[] = "lease/\0\1\0\0\0\143\0\0\0\0\0\0\0\0\0\1";
static const char value_of_something[37] = "\1abcdefghijklmnop\0\0\0\0\1\0\0\0\0\0\0\0\377\377\377\377\377\377";

TEST(rows_that_nobody_can_have_are_removed_at_opening)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    put_row(&bed, key_of_another_generation, sizeof key_of_another_generation - 1, value_of_something,
            sizeof value_of_something);
    put_row(&bed, "lease/", 6, "x", 1);
    put_row(&bed, "lease/and a name that is far too long for a key of a lease", 57, value_of_something, 37);
    put_row(&bed, key_of_another_generation, sizeof key_of_another_generation - 2, "\1", 1);
    assert_int_equal(rows(&bed), 4);
    struct ticket t = kept_acquire(&bed, 0);
    reopen(&bed);
    BED_UNTIL(rows(&bed) == 1);
    assert_ok(kept_commit(&bed, &t, BED_PATIENCE));
    bed_end(&bed);
}

static int note_handler(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    (void)ctx;
    (void)arg;
    pawl_results_upsert(results, "t.Note");
    return pawl_results_set_int64(results, "event", (int64_t)event->offset);
}

TEST(handlers_inside_the_process_leave_the_node_store_alone)
{
    struct lanes_bed bed = {0};
    struct stat there;
    char path[400];
    bed_begin(&bed, LANES_SCHEMA(""));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note_handler, NULL, &bed.error));
    for (unsigned i = 0; i < 100; i++)
        bed_send(&bed, 1 + i % 8, "t.Ask", "ada", 1);
    bed_wait(&bed, NULL);
    snprintf(path, sizeof path, "%s/local", bed.path);
    assert_int_not_equal(stat(path, &there), 0);
    bed_end(&bed);
}

/* Workers of a pool of many: each lease is durable when it is answered, and few syncs do for all. */
enum { MANY = 16, EACH = 25 };

struct many {
    struct lanes_bed *bed;
    pthread_t thread;
};

static void *work_many(void *arg)
{
    struct many *m = arg;
    for (unsigned i = 0; i < EACH; i++) {
        pawl_worker_lease lease;
        pawl_error error;
        static const char json[] = "{\"writes\": []}";
        assert_ok(pawl_worker_acquire(m->bed->engine, "t.notes", 0, BED_PATIENCE, &lease, &error));
        int status = pawl_worker_commit_json(m->bed->engine, &lease, text_bytes(json), BED_PATIENCE, &error);
        assert_true(status == PAWL_OK
                    || status == PAWL_ETIMEOUT); /* or it is handed in, and a worker is needed */
        pawl_worker_lease_free(&lease);
    }
    return NULL;
}

TEST(the_store_holds_no_more_than_is_leased_however_many_come_and_go)
{
    struct lanes_bed bed = {0};
    struct many many[MANY];
    bed_begin(&bed, LANES_SCHEMA(""));
    for (unsigned i = 0; i < MANY * EACH; i++)
        bed_send(&bed, 1 + i % 8, "t.Ask", "ada", 1);
    for (unsigned i = 0; i < MANY; i++) {
        many[i].bed = &bed;
        assert_int_equal(pthread_create(&many[i].thread, NULL, work_many, &many[i]), 0);
    }
    for (unsigned i = 0; i < MANY; i++)
        pthread_join(many[i].thread, NULL);
    bed_wait(&bed, "t.notes");
    BED_UNTIL(rows(&bed) == 0);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_lease_is_held_by_the_same_worker_after_the_engine_was_opened_again),
        RUN(attempts_lanes_and_partitions_are_the_same),
        RUN(a_worker_that_does_not_come_back_loses_its_lease_some_time_after_the_opening),
        RUN(the_time_of_a_lease_runs_anew_from_the_opening),
        RUN(what_is_released_failed_reclaimed_or_void_does_not_come_back),
        RUN(a_longer_time_is_kept_and_a_shorter_one_changes_nothing),
        RUN(a_result_that_waits_for_its_turn_is_handed_in_again),
        RUN(a_generation_that_is_over_takes_its_leases_with_it),
        RUN(a_lease_that_has_read_is_not_held_after_the_engine_was_opened_again),
        RUN(rows_that_nobody_can_have_are_removed_at_opening),
        RUN(handlers_inside_the_process_leave_the_node_store_alone),
        RUN(the_store_holds_no_more_than_is_leased_however_many_come_and_go),
    };
    return TEST_MAIN(tests);
}
