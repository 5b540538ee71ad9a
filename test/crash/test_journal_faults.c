/* The journal on a disk that refuses, is full, or lies; and without memory. */
#include <errno.h>

#include "adapter/journal/record.h"
#include "adapter/journal/segment.h"
#include "adapter/mem/env.h"
#include "test/lib/alloc.h"
#include "test/lib/bed.h"
#include "test/lib/test.h"

static bool keep_nothing(void *arg, size_t i)
{
    return false;
}

/* Power cut with everything unsynced lost; what was acknowledged must be there, and the journal must go on. */
static void cut_and_recover(struct bed *bed)
{
    bed_abandon(bed);
    ramdisk_crash(bed->disk, keep_nothing, NULL, false);
    bed_recover(bed);
}

/* After a failure: claim, read, and so learn what is true. */
static void settle(struct bed *bed)
{
    for (size_t i = 0; i < BED_STREAMS; i++) {
        int status = bed_claim(bed, i);
        if (status != PAWL_OK)
            status = bed_claim(bed, i);
        assert_ok(status);
    }
    bed_check(bed);
    for (size_t i = 0; i < BED_STREAMS; i++)
        assert_int_equal(bed->model.streams[i].next, bed->model.streams[i].truth + 1);
}

static void open_somehow(struct bed *bed)
{
    if (bed_open(bed) != PAWL_OK)
        assert_ok(bed_open(bed));
    settle(bed);
}

/* A life in which any one call may fail. Nothing that failed may have left a doubt. */
static void live_on(struct bed *bed)
{
    static const struct {
        size_t stream, count, bytes;
    } steps[] = {{0, 1, 30}, {0, 3, 90},  {1, 2, 700}, {0, 4, 1500},
                 {1, 1, 8},  {0, 5, 900}, {1, 3, 64},  {0, 1, 20}};
    open_somehow(bed);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int status = bed_append(bed, steps[i].stream, steps[i].count, steps[i].bytes);
        if (status != PAWL_OK)
            settle(bed);
        if (i == 4) {
            bed_close(bed);
            open_somehow(bed);
        }
    }
    bed_check(bed);
}

static void sweep_failures(int number, bool seen)
{
    uint64_t failures = 0;
    for (uint64_t k = 1;; k++) {
        struct bed bed;
        bed_init(&bed, ramdisk_new(), k);
        ramdisk_fail_at(bed.disk, k, number);
        live_on(&bed);
        bool reached = ramdisk_calls(bed.disk) >= k;
        failures += bed.error.text[0] != '\0';
        ramdisk_fail_at(bed.disk, 0, 0);
        cut_and_recover(&bed);
        bed_release(&bed);
        if (!reached)
            break;
        assert_true(k < 10000);
    }
    assert_true(seen == (failures > 0));
}

TEST(an_io_error_at_any_call_loses_nothing)
{
    sweep_failures(EIO, true);
}

TEST(a_full_disk_at_any_call_loses_nothing)
{
    sweep_failures(ENOSPC, true);
}

TEST(a_signal_at_any_call_is_not_even_seen)
{
    sweep_failures(EINTR, false);
}

TEST(a_short_read_or_write_is_gone_on_with)
{
    sweep_failures(RAMDISK_SHORT, false);
}

TEST(a_full_disk_refuses_before_a_byte_is_written_and_writing_resumes)
{
    struct bed bed;
    bed_init(&bed, ramdisk_new(), 1);
    assert_ok(bed_open(&bed));
    assert_ok(bed_claim(&bed, 0));
    ramdisk_set_full(bed.disk, true);
    int status = PAWL_OK;
    for (int i = 0; i < 100 && status == PAWL_OK; i++)
        status = bed_append(&bed, 0, 1, 500);
    assert_status(status, PAWL_EFULL);
    assert_contains(bed.error.text, "No space left");
    size_t truth = bed.model.streams[0].truth;
    bed_check(&bed);
    assert_int_equal(bed.model.streams[0].truth, truth);
    assert_status(bed_append(&bed, 0, 1, 500), PAWL_EFULL);
    ramdisk_set_full(bed.disk, false);
    assert_ok(bed_append(&bed, 0, 1, 500));
    cut_and_recover(&bed);
    bed_release(&bed);
}

TEST(a_failed_journal_writes_nothing_until_it_is_claimed_again)
{
    struct bed bed;
    bed_init(&bed, ramdisk_new(), 1);
    assert_ok(bed_open(&bed));
    assert_ok(bed_claim(&bed, 0));
    assert_ok(bed_append(&bed, 0, 1, 50));
    ramdisk_fail_at(bed.disk, ramdisk_calls(bed.disk) + 2, EIO); /* the sync */
    assert_status(bed_append(&bed, 0, 1, 50), PAWL_EUNKNOWN);
    assert_contains(bed.error.text, "cannot sync segment");
    assert_status(bed_append(&bed, 0, 1, 50), PAWL_EIO);
    assert_contains(bed.error.text, "claim again");
    settle(&bed);
    /* It was written, and the claim made it durable, although its own sync failed and no later one would have.
     */
    assert_int_equal(bed.model.streams[0].truth, 2);
    cut_and_recover(&bed);
    bed_release(&bed);
}

/* A journal with three acknowledged entries, not closed. */
static void three_entries(struct bed *bed)
{
    bed_init(bed, ramdisk_new(), 1);
    assert_ok(bed_open(bed));
    assert_ok(bed_claim(bed, 0));
    for (int i = 0; i < 3; i++)
        assert_ok(bed_append(bed, 0, 1, 100));
    bed_abandon(bed);
}

static bool keep_everything(void *arg, size_t i)
{
    return true;
}

/* The bytes of the newest segment, and where the entry with this offset begins. */
static uint8_t *entry_bytes(struct bed *bed, uint64_t offset, size_t *ret_at, struct record *ret_record)
{
    size_t size, last = 0;
    while (ramdisk_name(bed->disk, ".seg", last + 1))
        last++;
    uint8_t *bytes = ramdisk_bytes(bed->disk, ramdisk_name(bed->disk, ".seg", last), &size);
    struct segment_header header;
    uint64_t fault;
    assert_ok(segment_header_decode((pawl_bytes){bytes, size}, &header, NULL, &fault, NULL));
    for (size_t at = header.size, need; at < size; at += need) {
        if (record_decode((pawl_bytes){bytes + at, size - at}, journal_seed(header.journal), ret_record, &need)
            != RECORD_VALID)
            break;
        if (ret_record->type == RECORD_ENTRY && ret_record->offset == offset) {
            *ret_at = at;
            return bytes;
        }
    }
    fail_msg("there is no entry %" PRIu64, offset);
    return NULL;
}

TEST(a_flipped_bit_in_the_last_acknowledged_entry_is_corruption_and_not_a_torn_tail)
{
    struct bed bed;
    struct record r;
    size_t at;
    three_entries(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    entry_bytes(&bed, 3, &at, &r)[at + 70] ^= 1;
    uint64_t sum = ramdisk_sum(bed.disk);
    assert_status(bed_open(&bed), PAWL_ECORRUPT);
    char place[64];
    snprintf(place, sizeof place, "byte %zu", at);
    assert_contains(bed.error.text, place);
    assert_contains(bed.error.text, "00000001-0000000000000001.seg");
    assert_int_equal(ramdisk_sum(bed.disk), sum);
    bed_release(&bed);
}

TEST(a_lost_tail_that_another_knows_durable_is_corruption)
{
    struct bed bed;
    struct record r;
    size_t at, size;
    three_entries(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    uint8_t *bytes = entry_bytes(&bed, 3, &at, &r);
    ramdisk_bytes(bed.disk, ramdisk_name(bed.disk, ".seg", 0), &size);
    memset(bytes + at, 0, size - at); /* as if it had never been written */
    struct mem_env *env = bed.env;
    pawl_place witness = {.position = r.lsn};
    struct journal_options options = {.dir = "/ram",
                                      .env = (pawl_env *)env,
                                      .disk = ramdisk_disk(bed.disk),
                                      .witnesses = &witness,
                                      .witness_count = 1,
                                      .segment_bytes = 8192,
                                      .no_threads = true};
    pawl_log *log = NULL;
    assert_status(journal_open(&options, &log, &bed.error), PAWL_ECORRUPT);
    assert_contains(bed.error.text, "is known elsewhere");
    assert_null(log);
    bed.model.streams[0].truth = 2; /* nothing in the files themselves says that there was a third */
    bed_recover(&bed);
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

/* The last entry was synced, and what would say so was not. */
TEST(a_reader_is_shown_what_a_witness_knows_to_be_durable)
{
    struct bed bed;
    struct record r;
    size_t at;
    three_entries(&bed);
    ramdisk_crash(bed.disk, keep_nothing, NULL, false);
    entry_bytes(&bed, 3, &at, &r);
    pawl_place last = {.position = r.lsn}, beyond = {.position = r.lsn + 1000};
    struct journal_options options = {.dir = "/ram",
                                      .env = mem_env_port(bed.env),
                                      .disk = ramdisk_disk(bed.disk),
                                      .read_only = true,
                                      .no_threads = true};
    pawl_log *log;
    uint64_t sum = ramdisk_sum(bed.disk);
    assert_ok(journal_open(&options, &log, &bed.error));
    assert_int_equal(entries_shown(&bed, log), 2);
    journal_witness(log, last);
    assert_int_equal(entries_shown(&bed, log), 3);
    journal_witness(log, beyond);
    assert_int_equal(entries_shown(&bed, log), 3);
    assert_ok(pawl_log_close(log));

    options.witnesses = &last;
    options.witness_count = 1;
    assert_ok(journal_open(&options, &log, &bed.error));
    assert_int_equal(entries_shown(&bed, log), 3);
    assert_ok(pawl_log_close(log));
    assert_int_equal(ramdisk_sum(bed.disk), sum);
    bed_recover(&bed);
    bed_release(&bed);
}

/* Two pasts of one journal: an entry that was never acknowledged and was lost in a crash, and the one that took
 * its LSN afterwards. */
TEST(a_record_of_another_past_does_not_continue_this_one)
{
    struct bed bed;
    struct record lost, kept;
    size_t lost_at, kept_at;
    uint8_t ghost[512];
    three_entries(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);

    struct ramdisk *other = ramdisk_clone(bed.disk); /* the past that will be lost */
    struct bed dead;
    bed_init(&dead, other, 2);
    dead.model = bed.model;
    assert_ok(bed_open(&dead));
    assert_ok(bed_claim(&dead, 0));
    for (int i = 0; i < 3; i++)
        assert_ok(bed_append(&dead, 0, 1, 100));
    bed_abandon(&dead);
    ramdisk_crash(dead.disk, keep_everything, NULL, true);
    memcpy(ghost, entry_bytes(&dead, 5, &lost_at, &lost) + lost_at, record_size(100));
    bed_release(&dead);

    assert_ok(bed_open(&bed));
    assert_ok(bed_claim(&bed, 0));
    bed.model.attempts += 10; /* another past, other texts */
    for (int i = 0; i < 3; i++)
        assert_ok(bed_append(&bed, 0, 1, 100));
    bed_abandon(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    uint8_t *bytes = entry_bytes(&bed, 5, &kept_at, &kept);
    assert_int_equal(kept.lsn, lost.lsn);
    assert_int_equal(kept_at, lost_at);
    memcpy(bytes + kept_at, ghost, record_size(100));
    assert_status(bed_open(&bed), PAWL_ECORRUPT);
    bed_release(&bed);
}

TEST(a_body_that_looks_like_a_record_is_only_a_body)
{
    struct bed bed;
    struct record r;
    size_t at;
    uint8_t copy[512];
    three_entries(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    size_t size = record_size(100);
    memcpy(copy, entry_bytes(&bed, 3, &at, &r) + at, size);
    bed_recover(&bed);
    /* A user writes the very bytes of a record, and a crash loses the first sector of it all. */
    struct bed_stream *s = &bed.model.streams[0];
    uint8_t body[1024];
    memset(body, 'x', sizeof body);
    memcpy(body + 448, copy, size);
    memcpy(body + 448 + size, copy, size);
    pawl_append_entry entry = {
        .entry = {.stream = s->id, .epoch = s->epoch, .offset = s->next, .body = {body, sizeof body}}};
    ramdisk_fail_at(bed.disk, ramdisk_calls(bed.disk) + 2, EIO);
    pawl_append append = {.entries = &entry, .count = 1, .alone = true, .done = (void (*)(pawl_append *))abort};
    assert_int_equal(pawl_log_append(bed.log, &append), PAWL_APPEND_DONE);
    assert_status(append.status, PAWL_EUNKNOWN);
    bed_abandon(&bed);
    struct ramdisk *whole = ramdisk_clone(bed.disk);
    ramdisk_free(bed.disk);
    bed.disk = whole;
    ramdisk_crash(bed.disk, keep_nothing, NULL, true);
    bed_recover(&bed);
    bed_release(&bed);
}

/* ---- without memory ---- */

TEST(every_allocation_may_fail_once)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct bed bed;
        test_alloc_init(&memory);
        bed_init(&bed, ramdisk_new(), k);
        bed.alloc = &memory.allocator;
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = bed_open(&bed);
        if (status != PAWL_OK) {
            assert_status(status, PAWL_ENOMEM);
            assert_ok(bed_open(&bed));
        }
        for (size_t i = 0; i < BED_STREAMS; i++)
            if ((status = bed_claim(&bed, i)) != PAWL_OK) {
                assert_status(status, PAWL_ENOMEM);
                assert_ok(bed_claim(&bed, i));
            }
        for (int i = 0; i < 6; i++)
            if ((status = bed_append(&bed, 0, 4, 800)) != PAWL_OK) {
                assert_status(status, PAWL_ENOMEM);
                settle(&bed);
            }
        bool failed = test_alloc_failed(&memory);
        test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
        bed_check(&bed);
        bed_close(&bed);
        bed_recover(&bed);
        bed_release(&bed);
        test_alloc_release(&memory);
        if (!failed)
            break;
        assert_true(k < 10000);
    }
}

static void note_status(pawl_read *read)
{
    *(bool *)read->arg = true;
}

static bool count_entries(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return true;
}

static bool count_swept(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place)
{
    return true;
}

static pawl_sweep sweep_of_all(struct bed *bed, pawl_sweep_stream streams[BED_STREAMS])
{
    for (size_t i = 0; i < BED_STREAMS; i++)
        streams[i] = (pawl_sweep_stream){.stream = bed->model.streams[i].id, .from = 1};
    return (pawl_sweep){.streams = streams,
                        .count = BED_STREAMS,
                        .limit = UINT64_MAX,
                        .visit = count_swept,
                        .error = &bed->error};
}

TEST(a_sweep_shows_what_lies_before_damage_and_names_it_as_a_read_does)
{
    struct bed bed;
    struct record r;
    size_t at;
    pawl_sweep_stream streams[BED_STREAMS];
    pawl_error words = {0};
    bed_init(&bed, ramdisk_new(), 1);
    assert_ok(bed_open(&bed));
    for (size_t i = 0; i < BED_STREAMS; i++)
        assert_ok(bed_claim(&bed, i));
    for (size_t n = 0; n < 5; n++)
        for (size_t i = 0; i < BED_STREAMS; i++)
            assert_ok(bed_append(&bed, i, 1, 100));
    uint8_t *bytes = entry_bytes(&bed, 3, &at, &r); /* of the first stream */
    bytes[at + 70] ^= 1;
    pawl_sweep sweep = sweep_of_all(&bed, streams);
    assert_status(pawl_log_sweep(bed.log, &sweep), PAWL_ECORRUPT);
    assert_int_equal(streams[0].next, 3);
    assert_int_equal(streams[1].next, 3);
    assert_false(streams[0].ended || streams[1].ended);
    pawl_read read = {.stream = streams[0].stream,
                      .from = 1,
                      .limit = 10,
                      .alone = true,
                      .visit = count_entries,
                      .done = note_status,
                      .error = &words};
    assert_int_equal(pawl_log_read(bed.log, &read), PAWL_READ_DONE);
    assert_status(read.status, PAWL_ECORRUPT);
    assert_string_equal(words.text, bed.error.text);
    assert_contains(words.text, ".seg, byte ");
    bytes[at + 70] ^= 1;
    assert_ok(pawl_log_sweep(bed.log, &sweep));
    assert_int_equal(streams[0].next, 6);
    assert_true(streams[0].ended && streams[1].ended);
    bed_release(&bed);
}

TEST(a_sweep_without_memory_says_so)
{
    struct bed bed;
    three_entries(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    bool failed = true;
    for (uint64_t k = 1; failed; k++) {
        struct test_alloc memory;
        pawl_sweep_stream streams[BED_STREAMS];
        test_alloc_init(&memory);
        bed.alloc = &memory.allocator;
        assert_ok(bed_open(&bed));
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        pawl_sweep sweep = sweep_of_all(&bed, streams);
        int status = pawl_log_sweep(bed.log, &sweep);
        failed = test_alloc_failed(&memory);
        if (!failed || status != PAWL_OK)
            assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        if (status == PAWL_OK)
            assert_int_equal(streams[0].next, 4);
        test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
        bed_close(&bed);
        test_alloc_release(&memory);
    }
    bed.alloc = NULL;
    bed_release(&bed);
}

TEST(a_read_without_memory_says_so)
{
    struct bed bed;
    three_entries(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        test_alloc_init(&memory);
        bed.alloc = &memory.allocator;
        assert_ok(bed_open(&bed));
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        bool done = false;
        pawl_read read = {.stream = bed.model.streams[0].id,
                          .from = 1,
                          .limit = 10,
                          .visit = count_entries,
                          .done = note_status,
                          .arg = &done};
        int status = pawl_log_read(bed.log, &read);
        if (status == PAWL_OK) {
            assert_true(mem_world_run(bed.world, 1000));
            assert_true(done);
            status = read.status;
        }
        bool failed = test_alloc_failed(&memory);
        if (!failed || status != PAWL_OK)
            assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        if (status == PAWL_OK)
            assert_int_equal(read.next, 4);
        test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
        bed_close(&bed);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
    bed.alloc = NULL;
    bed_release(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_io_error_at_any_call_loses_nothing),
        RUN(a_full_disk_at_any_call_loses_nothing),
        RUN(a_signal_at_any_call_is_not_even_seen),
        RUN(a_short_read_or_write_is_gone_on_with),
        RUN(a_full_disk_refuses_before_a_byte_is_written_and_writing_resumes),
        RUN(a_failed_journal_writes_nothing_until_it_is_claimed_again),
        RUN(a_flipped_bit_in_the_last_acknowledged_entry_is_corruption_and_not_a_torn_tail),
        RUN(a_lost_tail_that_another_knows_durable_is_corruption),
        RUN(a_reader_is_shown_what_a_witness_knows_to_be_durable),
        RUN(a_record_of_another_past_does_not_continue_this_one),
        RUN(a_body_that_looks_like_a_record_is_only_a_body),
        RUN(every_allocation_may_fail_once),
        RUN(a_sweep_shows_what_lies_before_damage_and_names_it_as_a_read_does),
        RUN(a_sweep_without_memory_says_so),
        RUN(a_read_without_memory_says_so),
    };
    return TEST_MAIN(tests);
}
