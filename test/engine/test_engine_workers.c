/* test_engine_workers.c: external workers: what they lease, how they commit, and whose number it is. */
#include "test/lib/lanes.h"

#include <pthread.h>
#include <stdatomic.h>

#include "engine/lanes/impl.h"

#define SECOND PAWL_SECOND

static void result_of(const pawl_worker_lease *lease, char *json, size_t size)
{
    snprintf(json, size,
             "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": {\"event\": %" PRIu64
             "}, \"set\": {\"text\": \"%s\"}}]}",
             lease->event->offset, lease->projector);
}

static int commit(struct lanes_bed *bed, const pawl_worker_lease *lease, pawl_duration wait)
{
    char json[256];
    result_of(lease, json, sizeof json);
    return pawl_worker_commit_json(bed->engine, lease, text_bytes(json), wait, &bed->error);
}

/* A commit on a thread of its own, which waits for its turn. */
struct committing {
    struct lanes_bed *bed;
    const pawl_worker_lease *lease;
    const char *json;
    pthread_t thread;
    int status;
    pawl_error error;
};

static void *committing_main(void *arg)
{
    struct committing *c = arg;
    c->status = pawl_worker_commit_json(c->bed->engine, c->lease, text_bytes(c->json), BED_PATIENCE, &c->error);
    return NULL;
}

static void committing_begin(struct committing *c)
{
    assert_int_equal(pthread_create(&c->thread, NULL, committing_main, c), 0);
}

static int committing_end(struct committing *c)
{
    pthread_join(c->thread, NULL);
    return c->status;
}

TEST(a_worker_leases_works_and_commits)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease lease;
    bed_begin(&bed, LANES_SCHEMA(""));
    assert_status(pawl_worker_acquire(bed.engine, "t.nobody", 0, 0, &lease, &bed.error), PAWL_ENOTFOUND);
    assert_status(pawl_worker_acquire(bed.engine, "t.totals", 0, 0, &lease, &bed.error), PAWL_EINVAL);
    assert_status(pawl_worker_acquire(bed.engine, "t.notes", 0, 0, &lease, &bed.error), PAWL_ENOTFOUND);
    uint64_t offset = bed_send(&bed, 3, "t.Ask", "ada", 1);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &lease, &bed.error));
    assert_int_equal(lease.partition, pawl_partition_of(bed.engine, 3));
    assert_string_equal(lease.lane, "t.notes");
    assert_string_equal(lease.projector, "t.notes");
    assert_int_equal(lease.number, 1);
    assert_int_equal(lease.attempt, 1);
    assert_int_equal(lease.event->offset, offset);
    assert_int_equal(lease.event->wsid, 3);
    assert_status(pawl_lanes_wait(bed.engine, "t.notes", 50 * PAWL_MILLISECOND, &bed.error), PAWL_ETIMEOUT);
    assert_ok(pawl_worker_extend(bed.engine, &lease, BED_PATIENCE, &bed.error));
    assert_ok(commit(&bed, &lease, BED_PATIENCE));
    assert_int_equal(bed_count(&bed, 3, "t.Note"), 1);
    pawl_worker_lease_free(&lease);
    bed_end(&bed);
}

/* It has handed in 2, and waits for 1, which was given back and which nobody else asks for. */
TEST(a_worker_that_waits_in_commit_is_sent_to_do_what_it_waits_for)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second, waited;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 3, "t.Ask", "ada", 1);
    bed_send(&bed, 3, "t.Ask", "ada", 2);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", BED_PATIENCE, BED_PATIENCE, &first, &bed.error));
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", BED_PATIENCE, BED_PATIENCE, &second, &bed.error));
    assert_int_equal(second.number, 2);
    assert_false(pawl_worker_is_needed(bed.engine, &second)); /* 1 is leased */
    assert_status(commit(&bed, &second, 300 * PAWL_MILLISECOND), PAWL_ETIMEOUT);
    assert_ok(pawl_worker_release(bed.engine, &first, false, false, NULL, &bed.error));
    assert_true(pawl_worker_is_needed(bed.engine, &second));
    pawl_instant began = pawl_env_now(bed.engine->env);
    assert_status(commit(&bed, &second, 2 * BED_PATIENCE), PAWL_ETIMEOUT);
    assert_true(pawl_env_now(bed.engine->env).ns - began.ns < BED_PATIENCE);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, 0, &waited, &bed.error));
    assert_int_equal(waited.number, 1);
    assert_false(pawl_worker_is_needed(bed.engine, &second));
    assert_ok(commit(&bed, &waited, BED_PATIENCE));
    assert_ok(commit(&bed, &second, BED_PATIENCE));
    assert_int_equal(bed_count(&bed, 3, "t.Note"), 2);
    pawl_worker_lease_free(&first);
    pawl_worker_lease_free(&second);
    pawl_worker_lease_free(&waited);
    bed_end(&bed);
}

static bool take_item(void *arg, const pawl_row *record)
{
    pawl_bytes who;
    assert_ok(pawl_row_string(record, "who", &who, NULL));
    assert_true(who.size == 3 && memcmp(who.data, "ada", 3) == 0);
    assert_ok(pawl_row_int64(record, "cents", arg, NULL));
    return true;
}

static void *read_lease(void *arg)
{
    const pawl_worker_lease *lease = arg;
    pawl_bytes json, again;
    int64_t cents = 0;
    assert_true(lease->event->command.size == 5 && memcmp(lease->event->command.data, "t.Ask", 5) == 0);
    assert_null(pawl_event_argument(lease->event));
    assert_ok(pawl_event_records(lease->event, "t.Item", take_item, &cents, NULL));
    assert_int_equal(cents, 77);
    assert_ok(pawl_event_json(lease->event, &json, NULL));
    assert_ok(pawl_event_json(lease->event, &again, NULL));
    assert_true(json.data == again.data);
    assert_contains((const char *)json.data, "\"cents\":77");
    return NULL;
}

/* What is given back is overwritten, so that whoever still looks at it notices. */
static void *resize_and_overwrite(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    void *moved = new_size ? malloc(new_size) : NULL;
    (void)ctx;
    if (new_size && !moved)
        return NULL;
    if (memory && moved)
        memcpy(moved, memory, old_size < new_size ? old_size : new_size);
    if (memory)
        explicit_bzero(memory, old_size); /* which no compiler leaves out */
    free(memory);
    return moved;
}

TEST(the_event_of_a_lease_is_read_field_by_field_as_long_as_the_lease_is_kept)
{
    static const pawl_allocator overwriting = {.resize = resize_and_overwrite};
    struct lanes_bed bed = {.options = {.allocator = &overwriting}};
    pawl_worker_lease lease;
    pthread_t thread;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 3, "t.Ask", "ada", 77);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &lease, &bed.error));
    (void)read_lease(&lease);
    assert_ok(commit(&bed, &lease, BED_PATIENCE)); /* its number is over */
    assert_int_equal(pthread_create(&thread, NULL, read_lease, &lease), 0);
    pthread_join(thread, NULL);
    pawl_worker_lease_free(&lease);
    bed_end(&bed);
}

struct filling {
    int calls;
    int status; /* to return before anything is written */
    const char *entity;
};

static int fill_note(void *arg, pawl_results *results)
{
    struct filling *f = arg;
    f->calls++;
    if (f->status != PAWL_OK)
        return f->status;
    pawl_results_upsert(results, f->entity);
    pawl_results_set_int64(results, "event", 5);
    return pawl_results_set_string(results, "text", "by hand");
}

TEST(a_worker_commits_field_by_field)
{
    struct lanes_bed bed = {0};
    struct filling f = {.entity = "t.Note"}, failing = {.status = PAWL_EIO}, wrong = {.entity = "t.Nothing"};
    pawl_worker_lease lease;
    bed_begin(&bed, LANES_SCHEMA(""));
    uint64_t offset = bed_send(&bed, 3, "t.Ask", "ada", 1);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &lease, &bed.error));
    assert_status(pawl_worker_commit(bed.engine, &lease, fill_note, &failing, BED_PATIENCE, &bed.error),
                  PAWL_EIO);
    assert_contains(bed.error.text, "the worker's function says: ");
    assert_status(pawl_worker_commit(bed.engine, &lease, fill_note, &wrong, BED_PATIENCE, &bed.error),
                  PAWL_EINVAL);
    assert_contains(bed.error.text, "t.Nothing");
    assert_ok(pawl_worker_commit(bed.engine, &lease, fill_note, &f, BED_PATIENCE, &bed.error));
    assert_ok(pawl_worker_commit(bed.engine, &lease, fill_note, &f, BED_PATIENCE, &bed.error));
    assert_int_equal(f.calls, 1);
    assert_string_equal(bed_row(&bed, 3, "t.Note", "[5]", offset), "{\"event\":5,\"text\":\"by hand\"}");
    pawl_worker_lease_free(&lease);
    bed_end(&bed);
}

TEST(a_commit_counts_once_and_is_harmless_to_repeat)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease lease;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &lease, &bed.error));
    assert_ok(commit(&bed, &lease, BED_PATIENCE));
    assert_ok(commit(&bed, &lease, BED_PATIENCE));
    pawl_operation_id mine = lease.operation;
    lease.operation.low ^= 1;
    assert_status(commit(&bed, &lease, BED_PATIENCE), PAWL_EFENCED);
    lease.operation = mine;
    bed_close(&bed);
    bed_open(&bed); /* nothing is remembered but the log */
    int status;
    BED_UNTIL((status = commit(&bed, &lease, BED_PATIENCE)) != PAWL_EBUSY);
    assert_ok(status);
    assert_ok(commit(&bed, &lease, 0)); /* the log knows, and nobody has to wait for others */
    lease.operation.high ^= 1;
    assert_status(commit(&bed, &lease, BED_PATIENCE), PAWL_EFENCED);
    assert_status(commit(&bed, &lease, 0), PAWL_EFENCED);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    pawl_worker_lease_free(&lease);
    bed_end(&bed);
}

TEST(a_worker_that_is_late_is_fenced_once_another_has_begun)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease late, next;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", PAWL_MILLISECOND, BED_PATIENCE, &late, &bed.error));
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &next, &bed.error));
    assert_int_equal(next.number, late.number);
    assert_status(commit(&bed, &late, BED_PATIENCE), PAWL_EFENCED);
    assert_ok(commit(&bed, &next, BED_PATIENCE));
    assert_status(commit(&bed, &late, BED_PATIENCE), PAWL_EFENCED);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    pawl_worker_lease_free(&late);
    pawl_worker_lease_free(&next);
    bed_end(&bed);
}

TEST(a_commit_waits_for_those_before_it)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &first, &bed.error));
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &second, &bed.error));
    assert_int_equal(first.number, 1);
    assert_int_equal(second.number, 2);
    assert_status(commit(&bed, &second, 5 * PAWL_MILLISECOND), PAWL_ETIMEOUT);
    assert_status(commit(&bed, &second, 0), PAWL_ETIMEOUT);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 0);
    assert_ok(commit(&bed, &first, BED_PATIENCE));
    assert_ok(commit(&bed, &second, BED_PATIENCE));
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 2);
    pawl_worker_lease_free(&first);
    pawl_worker_lease_free(&second);
    bed_end(&bed);
}

TEST(nonsense_leaves_the_lease_with_its_worker)
{
    static const struct {
        const char *json;
        const char *words;
    } cases[] = {
        {"", "line 1"},
        {"{}", "$.writes"},
        {"{\"writes\": [{\"upsert\": \"t.Total\", \"key\": [\"x\"], \"set\": {}}]}", "not an entity that"},
        {"{\"writes\": [{\"update\": \"t.Note\", \"where\": \"sum >\", \"set\": {}}]}", "$.writes[0].where"},
        {"{\"writes\": [{\"upsert\": \"t.Note\", \"key\": [1], \"set\": {\"x\": 1}}]}", "$.writes[0].set.x"},
    };
    struct lanes_bed bed = {0};
    pawl_worker_lease lease;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &lease, &bed.error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_status(
            pawl_worker_commit_json(bed.engine, &lease, text_bytes(cases[i].json), SECOND, &bed.error),
            PAWL_EINVAL);
        assert_contains(bed.error.text, cases[i].words);
    }
    assert_ok(commit(&bed, &lease, BED_PATIENCE));
    pawl_worker_lease_free(&lease);
    bed_end(&bed);
}

/* The second result divides by what the first one leaves. */
TEST(a_result_that_fails_at_its_turn_says_why)
{
    static const char zero[] = "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": [7], \"set\": {\"sum\": 0}}]}";
    static const char share[] = "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": [7],"
                                " \"set\": {\"sum\": {\"expr\": \"100 / coalesce(sum, 1)\"}}}]}";
    struct lanes_bed bed = {0};
    pawl_worker_lease first, second;
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", BED_PATIENCE, BED_PATIENCE, &first, &bed.error));
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", BED_PATIENCE, BED_PATIENCE, &second, &bed.error));
    struct committing waits = {.bed = &bed, .lease = &second, .json = share};
    committing_begin(&waits);
    BED_UNTIL(bed_status(&bed, "t.notes", second.partition, 0).leases.waiting == 1);
    assert_ok(pawl_worker_commit_json(bed.engine, &first, text_bytes(zero), BED_PATIENCE, &bed.error));
    assert_status(committing_end(&waits), PAWL_EINVAL);
    assert_contains(waits.error.text, "at its turn: ");
    assert_contains(waits.error.text, "zero");
    pawl_worker_lease_free(&first);
    pawl_worker_lease_free(&second);
    bed_end(&bed);
}

/* What a worker could make up, having been given nothing: also the ID that a number has before its first lease.
 */
TEST(a_worker_that_was_given_no_lease_is_refused)
{
    static const uint64_t numbers[] = {0, 1, 2, UINT64_MAX};
    static const pawl_operation_id ids[] = {{0, 0}, {1, 2}};
    static const char json[] = "{\"writes\": []}";
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    for (int is_bound = 0; is_bound < 2; is_bound++) {
        if (is_bound)
            bed_send(&bed, 1, "t.Ask", "ada", 1);
        BED_UNTIL(bed_status(&bed, "t.notes", partition, 0).leases.bound == (uint64_t)is_bound
                  && bed_status(&bed, "t.notes", partition, 0).state == PAWL_LANE_RUNNING);
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
                pawl_engine *e = bed.engine;
                pawl_worker_lease lease = {
                    .partition = partition, .lane = "t.notes", .number = numbers[i], .operation = ids[k]};
                assert_status(pawl_worker_commit_json(e, &lease, text_bytes(json), SECOND, &bed.error),
                              PAWL_EFENCED);
                assert_status(pawl_worker_extend(e, &lease, SECOND, &bed.error), PAWL_EFENCED);
                assert_status(pawl_worker_release(e, &lease, true, true, "", &bed.error), PAWL_EFENCED);
            }
    }
    bed_end(&bed);
}

/* A worker in another process has a lease by its four parts. */
TEST(a_lease_that_was_filled_in_by_hand_is_as_good)
{
    static const char json[] = "{\"writes\": []}";
    struct lanes_bed bed = {0};
    pawl_worker_lease lease, none = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    for (int i = 0; i < 2; i++) {
        assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &lease, &bed.error));
        char lane[] = "t.notes";
        pawl_worker_lease by_hand = {
            .partition = lease.partition, .lane = lane, .number = lease.number, .operation = lease.operation};
        pawl_worker_lease_free(&lease);
        assert_ok(pawl_worker_extend(bed.engine, &by_hand, BED_PATIENCE, &bed.error));
        if (i == 0)
            assert_ok(pawl_worker_release(bed.engine, &by_hand, false, false, NULL, &bed.error));
        else
            assert_ok(
                pawl_worker_commit_json(bed.engine, &by_hand, text_bytes(json), BED_PATIENCE, &bed.error));
    }
    bed_wait(&bed, "t.notes");
    assert_status(pawl_worker_commit_json(bed.engine, &none, text_bytes(json), SECOND, &bed.error),
                  PAWL_EINVAL);
    assert_contains(bed.error.text, "the lease names no lane");
    assert_status(pawl_worker_extend(bed.engine, &none, SECOND, &bed.error), PAWL_EINVAL);
    assert_status(pawl_worker_release(bed.engine, &none, false, false, "", &bed.error), PAWL_EINVAL);
    bed_end(&bed);
}

TEST(a_number_that_is_given_back_or_fails_comes_again)
{
    struct lanes_bed bed = {.options = {.backoff_min = PAWL_MILLISECOND}};
    pawl_worker_lease lease;
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 2"));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    for (unsigned i = 0; i < 3; i++) { /* given back, failed, failed for good */
        assert_ok(pawl_worker_acquire(bed.engine, "t.notes", 0, BED_PATIENCE, &lease, &bed.error));
        assert_int_equal(lease.number, 1);
        assert_ok(pawl_worker_release(bed.engine, &lease, i > 0, i == 2, "no", &bed.error));
        assert_status(pawl_worker_release(bed.engine, &lease, false, false, "", &bed.error), PAWL_EFENCED);
        pawl_worker_lease_free(&lease);
    }
    bed_wait(&bed, "t.notes");
    assert_int_equal(bed_status(&bed, "t.notes", pawl_partition_of(bed.engine, 1), 0).leases.voids, 1);
    bed_end(&bed);
}

static void *wait_main(void *arg)
{
    struct lanes_bed *bed = arg;
    pawl_worker_lease lease;
    pawl_error error;
    return (void *)(intptr_t)pawl_worker_acquire(bed->engine, "t.notes", 0, BED_PATIENCE, &lease, &error);
}

TEST(closing_ends_the_wait_for_something_to_lease)
{
    struct lanes_bed bed = {0};
    pthread_t threads[3];
    bed_begin(&bed, LANES_SCHEMA(""));
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_main, &bed), 0);
    BED_UNTIL(atomic_load(&bed.engine->lanes->waiting) == 3);
    bed_close(&bed);
    for (int i = 0; i < 3; i++) {
        void *status;
        pthread_join(threads[i], &status);
        assert_status((int)(intptr_t)status, PAWL_ECLOSED);
    }
    bed_end(&bed);
}

/* --- many --- */

#define WORKERS 6
#define EVENTS  120

struct worker {
    pthread_t thread;
    struct lanes_bed *bed;
    _Atomic unsigned *left;
    int status;
    pawl_error error;
};

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    pawl_engine *engine = w->bed->engine;
    w->status = PAWL_OK;
    while (w->status == PAWL_OK && atomic_load(w->left) > 0) {
        pawl_worker_lease lease;
        char json[256];
        int status = pawl_worker_acquire(engine, "t.notes", 0, 20 * PAWL_MILLISECOND, &lease, &w->error);
        if (status == PAWL_ENOTFOUND)
            continue;
        w->status = status;
        if (status != PAWL_OK)
            break;
        result_of(&lease, json, sizeof json);
        w->status = pawl_worker_commit_json(engine, &lease, text_bytes(json), BED_PATIENCE, &w->error);
        pawl_worker_lease_free(&lease);
        if (w->status == PAWL_OK)
            atomic_fetch_sub(w->left, 1);
    }
    return NULL;
}

TEST(many_workers_share_the_work_of_all_partitions)
{
    struct lanes_bed bed = {0};
    static struct worker workers[WORKERS];
    _Atomic unsigned left = EVENTS;
    size_t rows = 0;
    bed_begin(&bed, LANES_SCHEMA(""));
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.bed = &bed, .left = &left};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    }
    for (unsigned i = 0; i < EVENTS; i++)
        bed_send(&bed, 1 + i % TENANTS, "t.Ask", "ada", 1);
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].status != PAWL_OK)
            print_error("%s\n", workers[i].error.text);
        assert_ok(workers[i].status);
    }
    bed_wait(&bed, NULL);
    for (uint64_t wsid = 1; wsid <= TENANTS; wsid++)
        rows += bed_count(&bed, wsid, "t.Note");
    assert_int_equal(rows, EVENTS);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_worker_leases_works_and_commits),
        RUN(a_worker_that_waits_in_commit_is_sent_to_do_what_it_waits_for),
        RUN(the_event_of_a_lease_is_read_field_by_field_as_long_as_the_lease_is_kept),
        RUN(a_worker_commits_field_by_field),
        RUN(a_commit_counts_once_and_is_harmless_to_repeat),
        RUN(a_worker_that_is_late_is_fenced_once_another_has_begun),
        RUN(a_commit_waits_for_those_before_it),
        RUN(nonsense_leaves_the_lease_with_its_worker),
        RUN(a_result_that_fails_at_its_turn_says_why),
        RUN(a_worker_that_was_given_no_lease_is_refused),
        RUN(a_lease_that_was_filled_in_by_hand_is_as_good),
        RUN(a_number_that_is_given_back_or_fails_comes_again),
        RUN(closing_ends_the_wait_for_something_to_lease),
        RUN(many_workers_share_the_work_of_all_partitions),
    };
    return TEST_MAIN(tests);
}
