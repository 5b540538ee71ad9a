/* test_engine_reads.c: reads of a handler that fail: the handler is run again, whatever it returned. */
#include "test/lib/lanes.h"

#include <stdatomic.h>

#include "engine/node/node.h"

#define SNAPSHOTS_MAX 4096
#define NOTES         ", \"max_attempts\": 2, \"on_failure\": \"void\""

/* --- no snapshot is to be had --- */

enum reading { READ_GET, READ_LIST, READ_AND_FAIL };

struct blind {
    enum reading reading;
    _Atomic unsigned calls;
    _Atomic int failed_with;  /* the status of the read that failed */
    _Atomic bool go_on;       /* the test has given the snapshots back */
    _Atomic unsigned attempt; /* of the last call */
};

static int read_note(pawl_handler_ctx *ctx, enum reading reading, pawl_text *ret_text)
{
    pawl_error error;
    return reading == READ_LIST
               ? pawl_handler_list(ctx, "t.Note", (pawl_bytes){0}, 10, ret_text, &error)
               : pawl_handler_get(ctx, "t.Note", text_bytes("{\"event\": -1}"), ret_text, &error);
}

/* The first event writes the row that all others read. To one that cannot read it there is none. */
static int note_what_is_there(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct blind *b = arg;
    pawl_text text = {0};
    bool first = atomic_fetch_add(&b->calls, 1) == 0;
    atomic_store(&b->attempt, pawl_handler_attempt(ctx));
    int status = first ? PAWL_OK : read_note(ctx, b->reading, &text);
    bool there = status == PAWL_OK && !first && text.size > 0;
    if (text.data)
        pawl_text_free(&text);
    if (status != PAWL_OK && atomic_load(&b->failed_with) == PAWL_OK) {
        atomic_store(&b->failed_with, status);
        while (!atomic_load(&b->go_on))
            bed_moment();
        if (b->reading == READ_AND_FAIL)
            return pawl_results_fail(results, true, "there is no such note");
    }
    pawl_results_upsert(results, "t.Note");
    pawl_results_set_int64(results, "event", first ? -1 : (int64_t)event->offset);
    return pawl_results_set_int64(results, "sum", there);
}

/* All that there are; returns how many. */
static size_t hold_snapshots(pawl_store *store, pawl_reader **held)
{
    size_t count = 0;
    while (count < SNAPSHOTS_MAX && pawl_store_snapshot(store, &held[count]) == PAWL_OK)
        count++;
    assert_in_range(count, 1, SNAPSHOTS_MAX - 1);
    return count;
}

TEST(a_run_whose_read_failed_counts_for_nothing_and_is_tried_again)
{
    static const enum reading readings[] = {READ_GET, READ_LIST, READ_AND_FAIL};
    static pawl_reader *held[SNAPSHOTS_MAX];
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        struct lanes_bed bed = {.options = {.backoff_min = PAWL_MILLISECOND}};
        struct blind blind = {.reading = readings[i]};
        char key[32];
        bed_begin(&bed, LANES_SCHEMA(NOTES));
        assert_ok(pawl_projector_register(bed.engine, "t.notes", note_what_is_there, &blind, &bed.error));
        uint16_t partition = pawl_partition_of(bed.engine, 1);
        pawl_store *store = shard_of(bed.engine, partition)->store;
        bed_row(&bed, 1, "t.Note", "[1]", bed_send(&bed, 1, "t.Ask", "ada", 1));
        size_t count = hold_snapshots(store, held);
        uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 1);
        BED_UNTIL(atomic_load(&blind.failed_with) != PAWL_OK);
        assert_status(atomic_load(&blind.failed_with), PAWL_EBUSY);
        while (count > 0)
            pawl_store_release(store, held[--count]);
        atomic_store(&blind.go_on, true);
        snprintf(key, sizeof key, "[%" PRIu64 "]", last);
        assert_contains(bed_row(&bed, 1, "t.Note", key, last), "\"sum\":1}");
        assert_int_equal(atomic_load(&blind.attempt), 1); /* what was not to blame did not count */
        pawl_lane_status status = bed_status(&bed, "t.notes", partition, 0);
        assert_int_equal(status.leases.failed, 0);
        assert_int_equal(status.leases.voids, 0);
        bed_end(&bed);
    }
}

/* What a worker's result is about is read when it is committed. */
TEST(a_commit_that_cannot_read_says_so_and_leaves_the_lease_with_its_worker)
{
    static pawl_reader *held[SNAPSHOTS_MAX];
    static const char json[] = "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": [1], \"set\": {\"sum\": 1}}]}";
    struct lanes_bed bed = {0};
    pawl_worker_lease lease;
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    assert_ok(pawl_worker_acquire(bed.engine, "t.notes", BED_PATIENCE, BED_PATIENCE, &lease, &bed.error));
    pawl_store *store = shard_of(bed.engine, lease.partition)->store;
    size_t count = hold_snapshots(store, held);
    assert_status(pawl_worker_commit_json(bed.engine, &lease, text_bytes(json), BED_PATIENCE, &bed.error),
                  PAWL_EBUSY);
    assert_contains(bed.error.text, "cannot read");
    while (count > 0)
        pawl_store_release(store, held[--count]);
    assert_ok(pawl_worker_commit_json(bed.engine, &lease, text_bytes(json), BED_PATIENCE, &bed.error));
    assert_contains(bed_row(&bed, 1, "t.Note", "[1]", 0), "\"sum\":1}");
    pawl_worker_lease_free(&lease);
    bed_end(&bed);
}

/* --- no memory --- */

/* Memory that fails on one thread, once. */
static _Thread_local uint64_t fails_in;

static void *allocate(void *ctx, void *old, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (new_size > old_size && fails_in > 0 && --fails_in == 0)
        return NULL;
    if (new_size == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, new_size);
}

struct hungry {
    enum reading reading;
    _Atomic unsigned calls;
    _Atomic uint64_t fails_in; /* of the next read; 0: it fails no more */
    _Atomic bool fed;          /* a read came to its end before that */
};

static int note_hungrily(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct hungry *h = arg;
    pawl_text text = {0};
    bool first = atomic_fetch_add(&h->calls, 1) == 0;
    uint64_t k = atomic_exchange(&h->fails_in, 0);
    fails_in = k;
    int status = first ? PAWL_OK : read_note(ctx, h->reading, &text);
    if (k > 0 && fails_in == 0)
        assert_status(status, PAWL_ENOMEM);
    else if (k > 0)
        atomic_store(&h->fed, true);
    fails_in = 0;
    bool there = status == PAWL_OK && text.size > 0;
    if (text.data)
        pawl_text_free(&text);
    pawl_results_upsert(results, "t.Note");
    pawl_results_set_int64(results, "event", first ? -1 : (int64_t)event->offset);
    return pawl_results_set_int64(results, "sum", there);
}

TEST(a_read_that_lacks_memory_at_any_step_is_one_that_failed)
{
    static const enum reading readings[] = {READ_GET, READ_LIST};
    pawl_allocator allocator = {.resize = allocate};
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        struct lanes_bed bed = {.options = {.backoff_min = PAWL_MILLISECOND, .allocator = &allocator}};
        struct hungry hungry = {.reading = readings[i]};
        bed_begin(&bed, LANES_SCHEMA(NOTES));
        assert_ok(pawl_projector_register(bed.engine, "t.notes", note_hungrily, &hungry, &bed.error));
        bed_row(&bed, 1, "t.Note", "[1]", bed_send(&bed, 1, "t.Ask", "ada", 1));
        uint64_t k = 0;
        while (!atomic_load(&hungry.fed)) {
            char key[32];
            atomic_store(&hungry.fails_in, ++k);
            uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 1);
            snprintf(key, sizeof key, "[%" PRIu64 "]", last);
            assert_contains(bed_row(&bed, 1, "t.Note", key, last), "\"sum\":1}");
        }
        print_message("# %" PRIu64 " allocations\n", k - 1);
        assert_true(k > 1);
        assert_int_equal(bed_status(&bed, "t.notes", pawl_partition_of(bed.engine, 1), 0).leases.failed, 0);
        bed_end(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_run_whose_read_failed_counts_for_nothing_and_is_tried_again),
        RUN(a_commit_that_cannot_read_says_so_and_leaves_the_lease_with_its_worker),
        RUN(a_read_that_lacks_memory_at_any_step_is_one_that_failed),
    };
    return TEST_MAIN(tests);
}
