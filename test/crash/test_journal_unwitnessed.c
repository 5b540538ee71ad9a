/* What a reader leaves out: entries that are whole in the files while nothing proves that they are durable. The
 * tests make them by writing and syncing entries, and then losing the watermark behind them, which is not
 * synced. */
#include <inttypes.h>

#include "adapter/mem/env.h"
#include "test/lib/alloc.h"
#include "test/lib/bed.h"
#include "test/lib/test.h"

static bool keep_nothing(void *arg, size_t i)
{
    return false;
}

/* Three entries that are witnessed, and one group of seven of the same stream that was synced and is not. */
static void ten_entries(struct bed *bed)
{
    bed_init(bed, ramdisk_new(), 1);
    assert_ok(bed_open(bed));
    for (size_t i = 0; i < BED_STREAMS; i++)
        assert_ok(bed_claim(bed, i));
    assert_ok(bed_append(bed, 1, 2, 100));
    assert_ok(bed_append(bed, 0, 3, 100));
    assert_ok(bed_append(bed, 0, 7, 100));
    bed_abandon(bed);
}

static void cut(struct bed *bed)
{
    ten_entries(bed);
    ramdisk_crash(bed->disk, keep_nothing, NULL, false);
}

static void open_to_read(struct bed *bed, pawl_log **ret_log)
{
    struct journal_options options = {.dir = "/ram",
                                      .env = mem_env_port(bed->env),
                                      .alloc = bed->alloc,
                                      .disk = ramdisk_disk(bed->disk),
                                      .read_only = true,
                                      .no_threads = true};
    assert_ok(journal_open(&options, ret_log, &bed->error));
}

struct seen {
    size_t streams;
    pawl_stream stream;
    uint64_t first;
    uint64_t count;
    pawl_place last; /* of the last entry that is shown */
};

static void note(void *arg, pawl_stream stream, uint64_t first, uint64_t count)
{
    struct seen *seen = arg;
    seen->streams++;
    seen->stream = stream;
    seen->first = first;
    seen->count = count;
}

static struct seen look(struct bed *bed, pawl_log *log)
{
    struct seen seen = {0};
    assert_ok(journal_unwitnessed(log, note, &seen, &bed->error));
    return seen;
}

static bool note_place(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    ((struct seen *)read->arg)->count = entry->offset;
    ((struct seen *)read->arg)->last = place;
    return true;
}

static void never(pawl_read *read)
{
    fail();
}

/* The last offset that is shown, and where it lies. */
static struct seen show(struct bed *bed, pawl_log *log)
{
    struct seen seen = {0};
    pawl_read read = {.stream = bed->model.streams[0].id,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = note_place,
                      .done = never,
                      .arg = &seen};
    assert_int_equal(pawl_log_read(log, &read), PAWL_READ_DONE);
    assert_ok(read.status);
    return seen;
}

TEST(what_is_whole_and_not_witnessed_is_not_shown_but_counted)
{
    struct bed bed;
    pawl_log *log;
    cut(&bed);
    uint64_t sum = ramdisk_sum(bed.disk);
    open_to_read(&bed, &log);
    assert_int_equal(show(&bed, log).count, 3);
    struct seen left_out = look(&bed, log);
    assert_int_equal(left_out.streams, 1);
    assert_true(pawl_stream_equal(left_out.stream, bed.model.streams[0].id));
    assert_int_equal(left_out.first, 4);
    assert_int_equal(left_out.count, 7);
    assert_int_equal(show(&bed, log).count, 3); /* to count them is not to show them */
    assert_ok(pawl_log_close(log));
    assert_int_equal(ramdisk_sum(bed.disk), sum);
    bed_recover(&bed);
    bed_release(&bed);
}

TEST(what_a_witness_names_is_shown_and_the_rest_is_counted)
{
    struct bed bed;
    pawl_log *log;
    cut(&bed);
    open_to_read(&bed, &log);
    pawl_place place = show(&bed, log).last;
    uint64_t shown = 3;
    for (uint64_t more = 1; shown < 10; more++) { /* watermarks have LSNs, too */
        journal_witness(log, (pawl_place){.position = place.position + more});
        struct seen left_out = look(&bed, log);
        uint64_t before = shown;
        shown = show(&bed, log).count;
        assert_in_range(shown, before, before + 1);
        assert_int_equal(left_out.count, 10 - shown);
        assert_int_equal(left_out.streams, shown < 10);
        assert_true(shown == 10 || left_out.first == shown + 1);
        assert_true(more < 100);
    }
    assert_ok(pawl_log_close(log));
    bed_recover(&bed);
    bed_release(&bed);
}

TEST(nothing_is_left_out_once_a_writer_has_recovered_it)
{
    struct bed bed;
    pawl_log *log;
    cut(&bed);
    open_to_read(&bed, &log);
    assert_int_equal(look(&bed, log).count, 7);
    assert_ok(bed_open(&bed));
    assert_int_equal(look(&bed, log).count, 0); /* by the reader that was open all the time */
    assert_int_equal(show(&bed, log).count, 10);
    assert_ok(journal_unwitnessed(bed.log, note, NULL, &bed.error)); /* a writer leaves nothing out */
    bed_close(&bed);
    assert_int_equal(look(&bed, log).count, 0);
    assert_ok(pawl_log_close(log));
    bed_release(&bed);
}

TEST(a_reader_knows_whether_a_writer_lives)
{
    struct bed bed;
    pawl_log *log;
    cut(&bed);
    open_to_read(&bed, &log);
    assert_false(journal_has_writer(log));
    assert_ok(bed_open(&bed));
    assert_true(journal_has_writer(log));
    bed_close(&bed);
    assert_false(journal_has_writer(log));
    assert_ok(pawl_log_close(log));
    bed_release(&bed);
}

TEST(to_count_without_memory_fails_and_may_be_tried_again)
{
    struct bed bed;
    pawl_log *log;
    struct test_alloc memory;
    test_alloc_init(&memory);
    cut(&bed);
    bed.alloc = &memory.allocator;
    open_to_read(&bed, &log);
    bool failed = true;
    for (uint64_t k = 1; failed; k++) {
        struct seen seen = {0};
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = journal_unwitnessed(log, note, &seen, &bed.error);
        failed = test_alloc_failed(&memory);
        test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
        assert_int_equal(status, failed ? PAWL_ENOMEM : PAWL_OK);
        assert_int_equal(seen.count, failed ? 0 : 7);
        assert_int_equal(look(&bed, log).count, 7);
    }
    assert_ok(pawl_log_close(log));
    test_alloc_release(&memory);
    bed.alloc = NULL;
    bed_release(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(what_is_whole_and_not_witnessed_is_not_shown_but_counted),
                                       RUN(what_a_witness_names_is_shown_and_the_rest_is_counted),
                                       RUN(nothing_is_left_out_once_a_writer_has_recovered_it),
                                       RUN(a_reader_knows_whether_a_writer_lives),
                                       RUN(to_count_without_memory_fails_and_may_be_tried_again)};
    return TEST_MAIN(tests);
}
