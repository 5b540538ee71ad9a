/* A journal that is opened often: what each opening leaves behind, who may write, and what a crash makes of a
 * segment that was closed and goes on. */
#include <errno.h>

#include "adapter/journal/index.h"
#include "adapter/journal/verify.h"
#include "adapter/mem/env.h"
#include "test/lib/bed.h"
#include "test/lib/test.h"

#define FIRST_SEGMENT "00000001-0000000000000001.seg"
#define FIRST_INDEX   "00000001.idx"
#define RAM_OPENINGS  (TEST_SANITIZED ? 5000 : 100000)

static bool keep_nothing(void *arg, size_t i)
{
    return false;
}

static size_t segments_of(const struct bed *bed)
{
    size_t count = 0;
    while (ramdisk_name(bed->disk, ".seg", count))
        count++;
    return count;
}

static void open_and_claim(struct bed *bed)
{
    assert_ok(bed_open(bed));
    for (size_t i = 0; i < BED_STREAMS; i++)
        assert_ok(bed_claim(bed, i));
}

/* A new journal with entries in both streams, closed. */
static void write_and_close(struct bed *bed)
{
    bed_init(bed, ramdisk_new(), 1);
    open_and_claim(bed);
    assert_ok(bed_append(bed, 0, 2, 50));
    assert_ok(bed_append(bed, 1, 1, 300));
    bed_close(bed);
}

static void kill_process(struct bed *bed)
{
    bed_abandon(bed);
    ramdisk_kill(bed->disk);
}

static pawl_log_report verified(struct bed *bed)
{
    struct journal_verify_options options = {.dir = "/ram", .disk = ramdisk_disk(bed->disk)};
    pawl_log_report report;
    assert_ok(journal_verify(&options, &report, &bed->error));
    if (report.faults)
        fail_msg("%s", report.first.error.text);
    pawl_log_report_release(&report);
    return report;
}

/* ---- an extension that was cut short ---- */

/* The first segment gets this size; what is new is zeros. */
static void extend_to(struct bed *bed, size_t size)
{
    ramdisk_resize(bed->disk, FIRST_SEGMENT, size);
}

TEST(a_closed_segment_that_was_extended_to_any_size_is_sound)
{
    struct bed bed;
    size_t sealed;
    write_and_close(&bed);
    ramdisk_bytes(bed.disk, FIRST_SEGMENT, &sealed);
    for (size_t more = 1; more < 600; more += 7) {
        extend_to(&bed, sealed + more);
        verified(&bed);
        bed_recover(&bed);
        bed_check(&bed);
        assert_int_equal(segments_of(&bed), 2);
        bed_release(&bed);
        write_and_close(&bed);
    }
    bed_release(&bed);
}

TEST(a_short_segment_with_anything_but_zeros_behind_its_seal_is_damaged)
{
    struct bed bed;
    size_t size;
    write_and_close(&bed);
    ramdisk_bytes(bed.disk, FIRST_SEGMENT, &size);
    extend_to(&bed, size + 100);
    ramdisk_bytes(bed.disk, FIRST_SEGMENT, &size)[size - 50] = 1;
    assert_status(bed_open(&bed), PAWL_ECORRUPT);
    assert_contains(bed.error.text, "without a seal");
    bed_release(&bed);
}

/* Where the records end. A watermark ends with a sum, of which one byte at least is not zero. */
static size_t records_end(struct bed *bed)
{
    size_t size;
    const uint8_t *bytes = ramdisk_bytes(bed->disk, FIRST_SEGMENT, &size);
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    return (size + 7) / 8 * 8;
}

TEST(a_segment_that_was_cut_behind_a_watermark_is_not_one_that_was_closed)
{
    static const size_t more[] = {0, 64, 200};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        struct bed bed;
        bed_init(&bed, ramdisk_new(), 1);
        open_and_claim(&bed);
        assert_ok(bed_append(&bed, 0, 2, 50)); /* nothing waits behind it: a watermark follows */
        kill_process(&bed);
        extend_to(&bed, records_end(&bed) + more[i]);
        assert_status(bed_open(&bed), PAWL_ECORRUPT);
        assert_contains(bed.error.text, "without a seal");
        bed_release(&bed);
    }
}

/* ---- what an opening leaves ---- */

TEST(opening_claiming_and_closing_a_hundred_thousand_times_changes_no_byte)
{
    struct bed bed;
    write_and_close(&bed);
    uint64_t sum = ramdisk_sum(bed.disk);
    for (int i = 0; i < RAM_OPENINGS; i++) {
        open_and_claim(&bed);
        bed_close(&bed);
    }
    assert_int_equal(ramdisk_sum(bed.disk), sum);
    pawl_log_report report = verified(&bed);
    assert_int_equal(report.segments, 1);
    assert_int_equal(report.claims, 2);
    assert_true(report.clean);
    bed_recover(&bed);
    bed_release(&bed);
}

TEST(an_opening_that_writes_goes_on_in_the_segment_that_was_closed)
{
    struct bed bed;
    write_and_close(&bed);
    for (int i = 0; i < 5; i++) {
        open_and_claim(&bed);
        assert_ok(bed_append(&bed, 0, 1, 30));
        bed_check(&bed);
        bed_close(&bed);
    }
    pawl_log_report report = verified(&bed);
    assert_int_equal(report.segments, 1);
    assert_int_equal(report.claims, 2 + 5); /* those of the other stream were never written under */
    assert_int_equal(report.entries, 3 + 5);
    assert_true(report.clean);
    assert_int_equal(report.dead_bytes + report.torn_bytes, 0);
    bed_recover(&bed);
    bed_release(&bed);
}

TEST(what_does_not_fit_into_the_closed_segment_begins_the_next)
{
    struct bed bed;
    write_and_close(&bed);
    open_and_claim(&bed);
    for (int i = 0; i < 3; i++)
        assert_ok(bed_append(&bed, 0, 1, 4000));
    bed_check(&bed);
    bed_close(&bed);
    assert_true(segments_of(&bed) > 1);
    verified(&bed);
    open_and_claim(&bed);
    assert_ok(bed_append(&bed, 1, 1, 30));
    bed_check(&bed);
    bed_release(&bed);
}

TEST(a_segment_that_was_not_closed_is_never_written_to_again)
{
    struct bed bed;
    size_t size, after;
    write_and_close(&bed);
    open_and_claim(&bed);
    assert_ok(bed_append(&bed, 0, 1, 30)); /* it goes on behind its seal */
    kill_process(&bed);
    const uint8_t *bytes = ramdisk_bytes(bed.disk, FIRST_SEGMENT, &size);
    uint8_t *before = malloc(size);
    assert_non_null(before);
    memcpy(before, bytes, size);
    for (size_t i = 2; i < 5; i++) {
        bed_recover(&bed);
        bed_check(&bed);
        assert_int_equal(segments_of(&bed), i);
        kill_process(&bed);
    }
    bytes = ramdisk_bytes(bed.disk, FIRST_SEGMENT, &after);
    assert_int_equal(after, size);
    assert_memory_equal(bytes, before, size);
    free(before);
    verified(&bed);
    bed_release(&bed);
}

/* ---- who may write ---- */

static int append_under(struct bed *bed, uint64_t epoch)
{
    struct bed_stream *s = &bed->model.streams[0];
    uint64_t present = s->epoch;
    s->epoch = epoch;
    int status = bed_append(bed, 0, 1, 40);
    s->epoch = present;
    return status;
}

TEST(a_claim_is_written_before_the_next_claim_of_its_stream_and_fences)
{
    struct bed bed;
    bed_init(&bed, ramdisk_new(), 1);
    open_and_claim(&bed);
    uint64_t first = bed.model.streams[0].epoch;
    assert_int_equal(first, 1);
    assert_ok(bed_claim(&bed, 0));
    assert_int_equal(bed.model.streams[0].epoch, first + 1);
    assert_status(append_under(&bed, first), PAWL_EFENCED);
    assert_contains(bed.error.text, "at epoch 2, the entry is of epoch 1");
    assert_ok(append_under(&bed, first + 1));
    bed_close(&bed);
    pawl_log_report report = verified(&bed);
    assert_int_equal(report.claims, 2);
    bed_release(&bed);
}

TEST(an_epoch_without_a_record_is_given_again_only_after_the_journal_was_closed)
{
    struct bed bed;
    write_and_close(&bed);
    open_and_claim(&bed);
    assert_int_equal(bed.model.streams[0].epoch, 2);
    bed_close(&bed);
    open_and_claim(&bed);
    assert_int_equal(bed.model.streams[0].epoch, 2);
    assert_ok(bed_append(&bed, 0, 1, 30));
    kill_process(&bed);
    open_and_claim(&bed);
    assert_int_equal(bed.model.streams[0].epoch, 3);
    bed_release(&bed);
}

/* The write of the first entry under a claim fails, and the claim's record is nowhere. Who had that epoch is
 * still there, and the next one must not get the same. */
TEST(an_epoch_is_not_given_twice_in_one_process_although_its_record_was_lost)
{
    struct bed bed;
    write_and_close(&bed);
    open_and_claim(&bed);
    assert_ok(bed_append(&bed, 1, 1, 30)); /* the segment has its full size from here on */
    uint64_t lost = bed.model.streams[0].epoch;
    for (uint64_t i = 1; i < 4; i++) {
        ramdisk_fail_at(bed.disk, ramdisk_calls(bed.disk) + 1, EIO); /* the write */
        assert_status(bed_append(&bed, 0, 1, 40), PAWL_EUNKNOWN);
        assert_ok(bed_claim(&bed, 0));
        assert_int_equal(bed.model.streams[0].epoch, lost + i);
        bed_check(&bed);
    }
    assert_status(append_under(&bed, lost), PAWL_EFENCED);
    assert_ok(bed_append(&bed, 0, 1, 40));
    bed_check(&bed);
    bed_close(&bed);
    verified(&bed);
    open_and_claim(&bed);
    assert_int_equal(bed.model.streams[0].epoch, lost + 4);
    bed_release(&bed);
}

/* ---- accidents ---- */

TEST(a_full_disk_refuses_to_extend_leaves_the_segment_closed_and_writing_resumes)
{
    struct bed bed;
    write_and_close(&bed);
    uint64_t sum = ramdisk_sum(bed.disk);
    open_and_claim(&bed);
    ramdisk_set_full(bed.disk, true);
    assert_status(bed_append(&bed, 0, 1, 30), PAWL_EFULL);
    assert_contains(bed.error.text, "No space left");
    assert_int_equal(ramdisk_sum(bed.disk), sum);
    bed_close(&bed);
    assert_int_equal(ramdisk_sum(bed.disk), sum);
    open_and_claim(&bed);
    assert_status(bed_append(&bed, 0, 1, 30), PAWL_EFULL);
    ramdisk_set_full(bed.disk, false);
    assert_ok(bed_append(&bed, 0, 1, 30));
    assert_int_equal(segments_of(&bed), 1);
    bed_check(&bed);
    bed_abandon(&bed);
    ramdisk_crash(bed.disk, keep_nothing, NULL, false);
    bed_recover(&bed);
    bed_release(&bed);
}

TEST(a_segment_that_cannot_be_extended_is_left_alone_and_a_new_one_is_begun)
{
    for (uint64_t call = 1; call <= 4; call++) { /* size, space, zeros, sync */
        struct bed bed;
        write_and_close(&bed);
        open_and_claim(&bed);
        ramdisk_fail_at(bed.disk, ramdisk_calls(bed.disk) + call, EIO);
        assert_ok(bed_append(&bed, 0, 1, 30));
        assert_int_equal(segments_of(&bed), 2);
        bed_check(&bed);
        bed_abandon(&bed);
        ramdisk_crash(bed.disk, keep_nothing, NULL, false);
        bed_recover(&bed);
        bed_release(&bed);
    }
}

/* How far the index of the first segment goes. */
static uint64_t index_end(struct bed *bed)
{
    const struct disk *disk = ramdisk_disk(bed->disk);
    size_t size;
    const uint8_t *bytes = ramdisk_bytes(bed->disk, FIRST_SEGMENT, &size);
    struct segment_header header;
    uint64_t fault;
    assert_ok(segment_header_decode((pawl_bytes){bytes, size}, &header, NULL, &fault, NULL));
    int dir = disk->open_dir(disk->ctx, "/ram/journal");
    assert_true(dir >= 0);
    uint64_t witness = index_witness(disk, dir, header.journal, 1, NULL);
    disk->close(disk->ctx, dir);
    return witness + 1;
}

TEST(an_index_that_its_segment_has_outgrown_is_made_again)
{
    struct bed bed;
    uint32_t number;
    uint64_t second_begins;
    write_and_close(&bed);
    uint64_t old = index_end(&bed);
    open_and_claim(&bed);
    for (int i = 0; i < 4; i++)
        assert_ok(bed_append(&bed, 0, 1, 60));
    bed_check(&bed); /* beside the writer, whose own index is in memory */
    assert_int_equal(index_end(&bed), old);
    kill_process(&bed);
    assert_ok(bed_open(&bed));
    assert_int_equal(segments_of(&bed), 2);
    bed_check(&bed);
    assert_true(segment_name_parse(ramdisk_name(bed.disk, ".seg", 1), &number, &second_begins));
    assert_true(second_begins > old);
    assert_int_equal(index_end(&bed), second_begins);
    bed_release(&bed);
}

TEST(a_newest_segment_that_ends_at_an_older_seal_has_lost_what_its_index_knows)
{
    struct bed bed;
    size_t sealed, size;
    write_and_close(&bed);
    (void)ramdisk_bytes(bed.disk, FIRST_SEGMENT, &sealed);
    open_and_claim(&bed);
    assert_ok(bed_append(&bed, 0, 1, 60));
    bed_close(&bed);
    (void)ramdisk_bytes(bed.disk, FIRST_SEGMENT, &size);
    assert_true(size > sealed);
    ramdisk_resize(bed.disk, FIRST_SEGMENT, sealed);
    uint64_t sum = ramdisk_sum(bed.disk);
    assert_status(bed_open(&bed), PAWL_ECORRUPT);
    assert_contains(bed.error.text, FIRST_SEGMENT);
    struct journal_verify_options options = {.dir = "/ram", .disk = ramdisk_disk(bed.disk)};
    pawl_log_report report;
    assert_ok(journal_verify(&options, &report, &bed.error));
    assert_true(report.faults > 0);
    pawl_log_report_release(&report);
    assert_int_equal(ramdisk_sum(bed.disk), sum);
    bed_release(&bed);
}

static uint64_t entries_shown(struct bed *bed, pawl_log *log);

/* It has the segment open while that is closed, and while it goes on. */
TEST(a_reader_beside_it_follows_a_segment_that_was_closed_and_goes_on)
{
    struct bed bed;
    pawl_log *reader;
    write_and_close(&bed);
    struct journal_options options = {.dir = "/ram",
                                      .env = mem_env_port(bed.env),
                                      .disk = ramdisk_disk(bed.disk),
                                      .read_only = true,
                                      .no_threads = true};
    assert_ok(journal_open(&options, &reader, &bed.error));
    assert_int_equal(entries_shown(&bed, reader), 2);
    for (uint64_t i = 3; i < 8; i++) {
        open_and_claim(&bed);
        assert_ok(bed_append(&bed, 0, 1, 60));
        assert_int_equal(entries_shown(&bed, reader), i);
        bed_close(&bed);
        assert_int_equal(entries_shown(&bed, reader), i);
    }
    assert_ok(pawl_log_close(reader));
    bed_release(&bed);
}

static bool count_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    ++*(uint64_t *)read->arg;
    return true;
}

static void never(pawl_read *read)
{
    fail();
}

static uint64_t entries_shown(struct bed *bed, pawl_log *log)
{
    uint64_t count = 0;
    pawl_read read = {.stream = bed->model.streams[0].id,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = count_entry,
                      .done = never,
                      .arg = &count};
    assert_int_equal(pawl_log_read(log, &read), PAWL_READ_DONE);
    assert_ok(read.status);
    return count;
}

/* Before each call of the writer: what another process finds that looks at the files now. */
static void look(void *arg, const struct ramdisk_write *write)
{
    struct bed *bed = arg, seen = *bed;
    pawl_log *reader;
    seen.disk = ramdisk_clone(bed->disk);
    verified(&seen);
    struct journal_options options = {.dir = "/ram",
                                      .env = mem_env_port(bed->env),
                                      .disk = ramdisk_disk(seen.disk),
                                      .read_only = true,
                                      .no_threads = true};
    assert_ok(journal_open(&options, &reader, &bed->error));
    /* The last one may have nothing behind it yet that says it is durable. */
    assert_true(entries_shown(bed, reader) + 1 >= bed->model.streams[0].truth);
    assert_ok(pawl_log_close(reader));
    ramdisk_free(seen.disk);
}

TEST(another_process_finds_a_sound_journal_at_every_step_of_going_on)
{
    struct bed bed;
    write_and_close(&bed);
    ramdisk_on_call(bed.disk, look, &bed);
    for (int i = 0; i < 6; i++) {
        open_and_claim(&bed);
        assert_ok(bed_append(&bed, 0, 1, 60));
        assert_ok(bed_append(&bed, 0, 1, 1500)); /* at last into the next segment */
        bed_close(&bed);
    }
    ramdisk_on_call(bed.disk, NULL, NULL);
    assert_true(segments_of(&bed) > 1);
    bed_recover(&bed);
    bed_release(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_closed_segment_that_was_extended_to_any_size_is_sound),
        RUN(a_short_segment_with_anything_but_zeros_behind_its_seal_is_damaged),
        RUN(a_segment_that_was_cut_behind_a_watermark_is_not_one_that_was_closed),
        RUN(opening_claiming_and_closing_a_hundred_thousand_times_changes_no_byte),
        RUN(an_opening_that_writes_goes_on_in_the_segment_that_was_closed),
        RUN(what_does_not_fit_into_the_closed_segment_begins_the_next),
        RUN(a_segment_that_was_not_closed_is_never_written_to_again),
        RUN(a_claim_is_written_before_the_next_claim_of_its_stream_and_fences),
        RUN(an_epoch_without_a_record_is_given_again_only_after_the_journal_was_closed),
        RUN(an_epoch_is_not_given_twice_in_one_process_although_its_record_was_lost),
        RUN(a_full_disk_refuses_to_extend_leaves_the_segment_closed_and_writing_resumes),
        RUN(a_segment_that_cannot_be_extended_is_left_alone_and_a_new_one_is_begun),
        RUN(an_index_that_its_segment_has_outgrown_is_made_again),
        RUN(a_newest_segment_that_ends_at_an_older_seal_has_lost_what_its_index_knows),
        RUN(a_reader_beside_it_follows_a_segment_that_was_closed_and_goes_on),
        RUN(another_process_finds_a_sound_journal_at_every_step_of_going_on),
    };
    return TEST_MAIN(tests);
}
