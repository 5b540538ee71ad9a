/* test_engine_worker_reads.c: what external workers read under a lease is remembered, and validated when their
 * result's turn comes; and those who watch are told when there is something to lease. */
#include "test/lib/lanes.h"

#include <pthread.h>
#include <stdatomic.h>

#include "engine/lanes/impl.h"

/* Every note carries the sum of all notes before it, which its worker must read. */
#define SUM_KEY "[0]"

static void lease(struct lanes_bed *bed, pawl_worker_lease *ret_lease)
{
    assert_ok(pawl_worker_acquire(bed->engine, "t.notes", BED_PATIENCE, BED_PATIENCE, ret_lease, &bed->error));
}

/* The sum that the row has; 0 if it is not there. */
static int read_sum(struct lanes_bed *bed, const pawl_worker_lease *lease, int64_t *ret_sum)
{
    pawl_text text;
    long long sum = 0;
    int status = pawl_worker_get(bed->engine, lease, "t.Note", text_bytes(SUM_KEY), &text, &bed->error);
    if (status == PAWL_OK) {
        const char *at = strstr(text.data, "\"sum\":");
        assert_non_null(at);
        sum = strtoll(at + strlen("\"sum\":"), NULL, 10);
        pawl_text_free(&text);
    }
    *ret_sum = sum;
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

static int commit_sum(struct lanes_bed *bed, const pawl_worker_lease *lease, int64_t sum, pawl_duration wait,
                      pawl_error *error)
{
    char json[160];
    snprintf(json, sizeof json,
             "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": " SUM_KEY ", \"set\": {\"sum\": %" PRId64 "}}]}",
             sum);
    return pawl_worker_commit_json(bed->engine, lease, text_bytes(json), wait, error);
}

static void two_leases(struct lanes_bed *bed, pawl_worker_lease *first, pawl_worker_lease *second)
{
    bed_begin(bed, LANES_SCHEMA(""));
    bed_send(bed, 1, "t.Ask", "ada", 1);
    bed_send(bed, 1, "t.Ask", "ada", 2);
    lease(bed, first);
    lease(bed, second);
    assert_int_equal(first->number, 1);
    assert_int_equal(second->number, 2);
}

static void free_two(struct lanes_bed *bed, pawl_worker_lease *first, pawl_worker_lease *second)
{
    pawl_worker_lease_free(first);
    pawl_worker_lease_free(second);
    bed_end(bed);
}

/* Both have read that there is no row. The first one makes it, so the second one's result rests on what is not so
 * any more. */
TEST(a_commit_whose_read_is_stale_is_repeated)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second, again;
    int64_t one, two;
    two_leases(&bed, &first, &second);
    assert_ok(read_sum(&bed, &second, &two));
    assert_ok(read_sum(&bed, &first, &one));
    assert_ok(commit_sum(&bed, &first, one + 1, BED_PATIENCE, &bed.error));
    assert_status(commit_sum(&bed, &second, two + 2, BED_PATIENCE, &bed.error), PAWL_ECONFLICT);
    assert_contains(bed.error.text, "given out again");
    assert_status(commit_sum(&bed, &second, two + 2, BED_PATIENCE, &bed.error), PAWL_EFENCED);
    assert_int_equal(bed_status(&bed, "t.notes", second.partition, 0).repeated, 1);
    lease(&bed, &again);
    assert_int_equal(again.number, 2);
    assert_ok(read_sum(&bed, &again, &two));
    assert_int_equal(two, 1);
    assert_ok(commit_sum(&bed, &again, two + 2, BED_PATIENCE, &bed.error));
    assert_string_equal(bed_row(&bed, 1, "t.Note", SUM_KEY, 0), "{\"event\":0,\"sum\":3}");
    pawl_worker_lease_free(&again);
    free_two(&bed, &first, &second);
}

/* The second one is handed in before the first one, and waits. */
TEST(a_result_that_waits_for_its_turn_is_judged_then)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second, again;
    int64_t two;
    two_leases(&bed, &first, &second);
    assert_ok(read_sum(&bed, &second, &two));
    assert_status(commit_sum(&bed, &second, two + 2, 0, &bed.error), PAWL_ETIMEOUT);
    assert_ok(commit_sum(&bed, &first, 1, BED_PATIENCE, &bed.error));
    lease(&bed, &again);
    assert_int_equal(again.number, 2);
    assert_status(commit_sum(&bed, &second, two + 2, BED_PATIENCE, &bed.error), PAWL_EFENCED);
    assert_ok(read_sum(&bed, &again, &two));
    assert_ok(commit_sum(&bed, &again, two + 2, BED_PATIENCE, &bed.error));
    assert_string_equal(bed_row(&bed, 1, "t.Note", SUM_KEY, 0), "{\"event\":0,\"sum\":3}");
    pawl_worker_lease_free(&again);
    free_two(&bed, &first, &second);
}

TEST(a_commit_stands_if_others_wrote_what_it_did_not_read)
{
    static const char other[] = "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": [9], \"set\": {\"sum\": 9}}]}";
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second;
    int64_t two;
    two_leases(&bed, &first, &second);
    assert_ok(read_sum(&bed, &second, &two));
    assert_ok(pawl_worker_commit_json(bed.engine, &first, text_bytes(other), BED_PATIENCE, &bed.error));
    assert_ok(commit_sum(&bed, &second, two + 2, BED_PATIENCE, &bed.error));
    assert_int_equal(bed_status(&bed, "t.notes", second.partition, 0).repeated, 0);
    free_two(&bed, &first, &second);
}

static bool count_row(void *arg, const pawl_row *row)
{
    (void)row;
    ++*(int *)arg;
    return true;
}

/* A list is a read of all rows of the entity: the row that the first one makes was not in it. */
TEST(a_list_and_a_scan_are_stale_when_a_row_has_come)
{
    static const char other[] = "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": [9], \"set\": {\"sum\": 9}}]}";
    for (int typed = 0; typed < 2; typed++) {
        struct lanes_bed bed = {0};
        pawl_worker_lease first, second;
        pawl_text text;
        int rows = 0;
        two_leases(&bed, &first, &second);
        if (typed) {
            assert_ok(pawl_worker_scan(bed.engine, &second, "t.Note", (pawl_key){0}, NULL, 10, count_row, &rows,
                                       &bed.error));
            assert_int_equal(rows, 0);
        } else {
            assert_ok(pawl_worker_list(bed.engine, &second, "t.Note", (pawl_bytes){0}, 10, &text, &bed.error));
            assert_int_equal(text.size, 0);
            pawl_text_free(&text);
        }
        assert_ok(pawl_worker_commit_json(bed.engine, &first, text_bytes(other), BED_PATIENCE, &bed.error));
        assert_status(commit_sum(&bed, &second, 2, BED_PATIENCE, &bed.error), PAWL_ECONFLICT);
        free_two(&bed, &first, &second);
    }
}

TEST(a_row_that_was_read_by_its_key_is_remembered_too)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second;
    pawl_value zero = pawl_value_int64(0);
    int rows = 0;
    two_leases(&bed, &first, &second);
    assert_status(
        pawl_worker_read(bed.engine, &second, "t.Note", (pawl_key){&zero, 1}, count_row, &rows, &bed.error),
        PAWL_ENOTFOUND);
    assert_ok(commit_sum(&bed, &first, 1, BED_PATIENCE, &bed.error));
    assert_status(commit_sum(&bed, &second, 2, BED_PATIENCE, &bed.error), PAWL_ECONFLICT);
    free_two(&bed, &first, &second);
}

/* A worker that fails for good because of what it read is not believed if that has changed. */
TEST(a_failure_counts_only_if_what_was_read_stands)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second, again;
    int64_t two;
    two_leases(&bed, &first, &second);
    assert_ok(read_sum(&bed, &second, &two));
    assert_ok(pawl_worker_release(bed.engine, &second, true, true, "there is no sum", &bed.error));
    assert_ok(commit_sum(&bed, &first, 1, BED_PATIENCE, &bed.error));
    lease(&bed, &again);
    assert_int_equal(again.number, 2);
    assert_ok(read_sum(&bed, &again, &two));
    assert_int_equal(two, 1);
    assert_ok(pawl_worker_release(bed.engine, &again, true, true, "this time for good", &bed.error));
    bed_wait(&bed, "t.notes");
    assert_int_equal(bed_status(&bed, "t.notes", second.partition, 0).leases.voids, 1);
    pawl_worker_lease_free(&again);
    free_two(&bed, &first, &second);
}

TEST(what_a_worker_may_not_read_is_refused)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease mine, none = {0};
    pawl_text text;
    pawl_bytes key = text_bytes(SUM_KEY);
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    lease(&bed, &mine);
    pawl_engine *e = bed.engine;
    assert_status(pawl_worker_get(e, &none, "t.Note", key, &text, &bed.error), PAWL_EINVAL);
    assert_status(pawl_worker_get(e, &mine, "t.Nothing", key, &text, &bed.error), PAWL_EINVAL);
    assert_status(pawl_worker_get(e, &mine, "t.Total", text_bytes("[\"a\"]"), &text, &bed.error), PAWL_EINVAL);
    assert_status(pawl_worker_get(e, &mine, "t.Note", text_bytes("[\"a\"]"), &text, &bed.error), PAWL_EINVAL);
    assert_status(pawl_worker_get(e, &mine, "t.Note", text_bytes("{"), &text, &bed.error), PAWL_EINVAL);
    pawl_worker_lease wrong = mine;
    wrong.operation.low ^= 1;
    assert_status(pawl_worker_get(e, &wrong, "t.Note", key, &text, &bed.error), PAWL_EFENCED);
    wrong = mine;
    wrong.number = 77;
    assert_status(pawl_worker_list(e, &wrong, "t.Note", (pawl_bytes){0}, 1, &text, &bed.error), PAWL_EFENCED);
    assert_ok(commit_sum(&bed, &mine, 1, BED_PATIENCE, &bed.error));
    assert_status(pawl_worker_get(e, &mine, "t.Note", key, &text, &bed.error), PAWL_EFENCED);
    pawl_worker_lease_free(&mine);
    bed_end(&bed);
}

/* The next process does not know what was read: it would take the result unseen. */
TEST(a_lease_under_which_something_was_read_ends_with_the_engine)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second, again;
    int64_t sum;
    int status;
    two_leases(&bed, &first, &second);
    assert_ok(read_sum(&bed, &second, &sum));
    assert_ok(
        pawl_worker_extend(bed.engine, &second, BED_PATIENCE, &bed.error)); /* is not kept again by this */
    bed_close(&bed);
    bed_open(&bed);
    BED_UNTIL((status = commit_sum(&bed, &first, 1, BED_PATIENCE, &bed.error)) != PAWL_EBUSY);
    assert_ok(status); /* it has read nothing */
    BED_UNTIL((status = commit_sum(&bed, &second, sum + 2, BED_PATIENCE, &bed.error)) != PAWL_EBUSY);
    assert_status(status, PAWL_EFENCED);
    lease(&bed, &again);
    assert_ok(read_sum(&bed, &again, &sum));
    assert_ok(commit_sum(&bed, &again, sum + 2, BED_PATIENCE, &bed.error));
    assert_string_equal(bed_row(&bed, 1, "t.Note", SUM_KEY, 0), "{\"event\":0,\"sum\":3}");
    pawl_worker_lease_free(&again);
    free_two(&bed, &first, &second);
}

/* The records go with their numbers. */
TEST(nothing_is_remembered_of_what_is_applied)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease mine;
    int64_t sum;
    bed_begin(&bed, LANES_SCHEMA(""));
    for (int i = 0; i < 3; i++) {
        bed_send(&bed, 1, "t.Ask", "ada", 1);
        lease(&bed, &mine);
        assert_ok(read_sum(&bed, &mine, &sum));
        assert_int_equal(sum, i);
        assert_ok(commit_sum(&bed, &mine, sum + 1, BED_PATIENCE, &bed.error));
        pawl_worker_lease_free(&mine);
    }
    bed_end(&bed);
}

/* --- many workers: each adds its event's cents to the sum that it has read --- */

#define WORKERS 4
#define EVENTS  60

struct adding {
    struct lanes_bed *bed;
    pthread_t thread;
    atomic_int *left;
    int status;
    pawl_error error;
};

/* PAWL_EFENCED and PAWL_ECONFLICT: another does it. */
static int add_one(struct lanes_bed *bed, const pawl_worker_lease *mine, pawl_error *error)
{
    pawl_text text;
    int64_t sum = 0;
    int status;
    do
        status = pawl_worker_get(bed->engine, mine, "t.Note", text_bytes(SUM_KEY), &text, error);
    while (status == PAWL_EBUSY);
    if (status == PAWL_OK) {
        sum = strtoll(strstr(text.data, "\"sum\":") + strlen("\"sum\":"), NULL, 10);
        pawl_text_free(&text);
    } else if (status != PAWL_ENOTFOUND)
        return status;
    do
        status = commit_sum(bed, mine, sum + 1, BED_PATIENCE, error);
    while (status == PAWL_EBUSY || status == PAWL_ETIMEOUT);
    return status;
}

static void *adding_main(void *arg)
{
    struct adding *a = arg;
    while (a->status == PAWL_OK && atomic_load(a->left) > 0) {
        pawl_worker_lease mine;
        int status = pawl_worker_acquire(a->bed->engine, "t.notes", BED_PATIENCE, 10 * PAWL_MILLISECOND, &mine,
                                         &a->error);
        if (status == PAWL_ENOTFOUND)
            continue;
        if (status == PAWL_OK) {
            status = add_one(a->bed, &mine, &a->error);
            pawl_worker_lease_free(&mine);
        }
        if (status == PAWL_OK)
            atomic_fetch_sub(a->left, 1);
        else if (status != PAWL_ECONFLICT && status != PAWL_EFENCED)
            a->status = status;
    }
    return NULL;
}

TEST(workers_that_read_and_add_come_to_the_sum_of_a_serial_run)
{
    struct lanes_bed bed = {0};
    struct adding workers[WORKERS] = {0};
    atomic_int left = EVENTS;
    char want[64];
    bed_begin(&bed, LANES_SCHEMA(""));
    for (int i = 0; i < EVENTS; i++)
        bed_send(&bed, 1, "t.Ask", "ada", 1);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct adding){.bed = &bed, .left = &left};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, adding_main, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].status != PAWL_OK)
            print_error("%s\n", workers[i].error.text);
        assert_ok(workers[i].status);
    }
    snprintf(want, sizeof want, "{\"event\":0,\"sum\":%d}", EVENTS);
    assert_string_equal(bed_row(&bed, 1, "t.Note", SUM_KEY, 0), want);
    bed_end(&bed);
}

/* --- watches --- */

static void count_call(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST(whoever_watches_is_told_once_for_each_time_it_is_armed)
{
    struct lanes_bed bed = {0};
    pawl_worker_watch *watch;
    pawl_worker_lease mine;
    atomic_int calls = 0;
    bed_begin(&bed, LANES_SCHEMA(""));
    pawl_engine *e = bed.engine;
    assert_status(pawl_worker_watch_new(e, "t.nobody", count_call, &calls, &watch, &bed.error), PAWL_ENOTFOUND);
    assert_status(pawl_worker_watch_new(e, "t.totals", count_call, &calls, &watch, &bed.error), PAWL_EINVAL);
    assert_ok(pawl_worker_watch_new(e, "t.notes", count_call, &calls, &watch, &bed.error));
    pawl_worker_watch_arm(watch);
    assert_int_equal(atomic_load(&calls), 0);
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    BED_UNTIL(atomic_load(&calls) == 1);
    bed_send(&bed, 1, "t.Ask", "ada", 1); /* it is not armed */
    lease(&bed, &mine);
    assert_ok(commit_sum(&bed, &mine, 1, BED_PATIENCE, &bed.error));
    pawl_worker_lease_free(&mine);
    lease(&bed, &mine);
    assert_ok(commit_sum(&bed, &mine, 1, BED_PATIENCE, &bed.error));
    pawl_worker_lease_free(&mine);
    assert_int_equal(atomic_load(&calls), 1);
    pawl_worker_watch_arm(watch);
    bed_send(&bed, 2, "t.Ask", "ada", 1);
    BED_UNTIL(atomic_load(&calls) == 2);
    pawl_worker_watch_arm(watch);
    pawl_worker_watch_free(watch);
    bed_send(&bed, 2, "t.Ask", "ada", 1);
    pawl_worker_watch_free(NULL);
    assert_int_equal(atomic_load(&bed.engine->lanes->armed), 0);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_commit_whose_read_is_stale_is_repeated),
        RUN(a_result_that_waits_for_its_turn_is_judged_then),
        RUN(a_commit_stands_if_others_wrote_what_it_did_not_read),
        RUN(a_list_and_a_scan_are_stale_when_a_row_has_come),
        RUN(a_row_that_was_read_by_its_key_is_remembered_too),
        RUN(a_failure_counts_only_if_what_was_read_stands),
        RUN(what_a_worker_may_not_read_is_refused),
        RUN(a_lease_under_which_something_was_read_ends_with_the_engine),
        RUN(nothing_is_remembered_of_what_is_applied),
        RUN(workers_that_read_and_add_come_to_the_sum_of_a_serial_run),
        RUN(whoever_watches_is_told_once_for_each_time_it_is_armed),
    };
    return TEST_MAIN(tests);
}
