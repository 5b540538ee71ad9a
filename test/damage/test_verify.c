/* What journal_verify, and opening for writing, say of a journal with one thing wrong in it. */
#include <unistd.h>

#include "adapter/journal/verify.h"
#include "base/bytes.h"
#include "test/damage/scene.h"
#include "test/lib/alloc.h"

static pawl_log_report verified(struct scene *scene)
{
    struct journal_verify_options options = {.dir = scene->dir};
    pawl_log_report report;
    assert_ok(journal_verify(&options, &report, &scene->error));
    return report;
}

/* Nothing wrong: returns with the report released. */
static void assert_sound(struct scene *scene)
{
    pawl_log_report report = verified(scene);
    if (report.faults)
        fail_msg("%s", report.first.error.text);
    pawl_log_report_release(&report);
}

static pawl_log_fault found(struct scene *scene)
{
    pawl_log_report report = verified(scene);
    assert_true(report.faults > 0);
    assert_int_equal(report.first.error.code, PAWL_ECORRUPT);
    pawl_log_report_release(&report);
    return report.first;
}

TEST(a_sound_journal_is_told_as_it_is)
{
    struct scene scene;
    scene_init(&scene);
    scene_write(&scene, false);
    struct picture before;
    picture_take(&before, scene.journal);
    pawl_log_report r = verified(&scene);
    assert_int_equal(r.faults, 0);
    assert_true(r.clean);
    assert_true(r.segments >= 3);
    assert_int_equal(r.stream_count, 2);
    assert_int_equal(r.claims, 6);
    assert_int_equal(r.streams[0].first, 1);
    assert_int_equal(r.streams[0].last, scene.nexts[0] - 1);
    assert_int_equal(r.streams[0].entries, scene.nexts[0] - 1);
    assert_int_equal(r.streams[0].epoch, 3);
    assert_int_equal(r.streams[1].last, scene.nexts[1] - 1);
    assert_int_equal(r.entries, scene.nexts[0] + scene.nexts[1] - 2);
    assert_int_equal(r.records, r.entries + r.claims + r.watermarks);
    assert_int_equal(r.unwitnessed, 0);
    assert_true(r.dead_bytes > 0);
    assert_int_equal(r.torn_bytes, 0);
    assert_int_equal(r.bad_indexes, 0);
    picture_assert(&before, scene.journal);
    pawl_log_report_release(&r);
    picture_release(&before);
    scene_release(&scene);
}

struct told {
    uint64_t last;
    uint64_t total;
    bool wrong;
};

static bool hear(void *arg, uint64_t done, uint64_t total)
{
    struct told *told = arg;
    told->wrong |= done < told->last || done > total;
    told->last = done;
    told->total = total;
    return true;
}

TEST(progress_grows_to_its_end)
{
    struct scene scene;
    struct told told = {0};
    pawl_log_report r;
    scene_init(&scene);
    scene_write(&scene, true);
    struct journal_verify_options options = {.dir = scene.dir, .progress = hear, .arg = &told};
    assert_ok(journal_verify(&options, &r, NULL));
    assert_false(told.wrong);
    assert_int_equal(told.last, told.total);
    assert_int_equal(told.last, r.bytes);
    pawl_log_report_release(&r);
    scene_release(&scene);
}

/* Every byte of every live record and header, one bit of it at a time, each of the eight in turn. */
static void flip_everything(bool killed)
{
    struct scene scene;
    struct picture before;
    static struct live_record records[LIVE_RECORDS_MAX];
    scene_init(&scene);
    scene_write(&scene, killed);
    picture_take(&before, scene.journal);
    const char *newest = picture_newest(&before)->name;
    size_t count = scene_records(&scene, &before, records);
    assert_true(count > 30);
    for (size_t i = 0; i < count; i++)
        for (uint64_t b = 0; b < records[i].size; b++) {
            const struct live_record *l = &records[i];
            uint8_t bits = (uint8_t)(1 << (b + l->lsn) % 8);
            bool is_newest = strcmp(l->file, newest) == 0;
            flip(scene.journal, l->file, l->at + b, bits);
            if (!l->witnessed) {
                assert_sound(&scene);
            } else {
                pawl_log_fault f = found(&scene);
                if (strcmp(f.file, l->file) != 0 || f.at != l->at || f.lsn != l->lsn)
                    fail_msg("%s byte %" PRIu64 ", record %" PRIu64 ": %s", l->file, l->at + b, l->lsn,
                             f.error.text);
                assert_contains(f.error.text, l->file);
                if (is_newest) {
                    assert_status(scene_open(&scene), PAWL_ECORRUPT);
                    assert_contains(scene.error.text, l->file);
                }
            }
            flip(scene.journal, l->file, l->at + b, bits);
        }
    picture_assert(&before, scene.journal);
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_flipped_bit_in_a_record_of_a_closed_journal_is_found_at_that_record)
{
    flip_everything(false);
}

TEST(a_flipped_bit_in_a_witnessed_record_of_a_killed_journal_is_found_at_that_record)
{
    flip_everything(true);
}

TEST(a_flipped_bit_in_a_header_is_found_in_that_header)
{
    struct scene scene;
    struct picture before;
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    const struct picture_file *newest = picture_newest(&before), *file;
    for (uint32_t number = 1; (file = picture_segment(&before, number)); number++) {
        uint32_t size = get_u32(file->bytes + 12);
        for (uint64_t at = 0; at < size; at++) {
            uint8_t bits = (uint8_t)(1 << (at + number) % 8);
            flip(scene.journal, file->name, at, bits);
            pawl_log_report r = verified(&scene);
            assert_true(r.faults > 0);
            assert_string_equal(r.first.file, file->name);
            assert_true(r.first.at < size);
            assert_contains(r.first.error.text, file->name);
            pawl_log_report_release(&r);
            if (file == newest) {
                int status = scene_open(&scene);
                assert_true(status == PAWL_ECORRUPT || status == PAWL_EVERSION);
                assert_contains(scene.error.text, file->name);
            }
            flip(scene.journal, file->name, at, bits);
        }
    }
    picture_assert(&before, scene.journal);
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_flipped_bit_in_the_id_is_told_and_nothing_is_changed)
{
    struct scene scene;
    struct picture before;
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    struct journal_verify_options options = {.dir = scene.dir};
    pawl_log_report r;
    for (uint64_t at = 0; at < picture_find(&before, "id")->size; at++) {
        flip(scene.journal, "id", at, (uint8_t)(1 << at % 8));
        int expected = at < 8 ? PAWL_EFORMAT : at < 12 ? PAWL_EVERSION : PAWL_ECORRUPT;
        if (at == 8)
            expected = PAWL_ECORRUPT; /* version 1 becomes 0 */
        assert_status(journal_verify(&options, &r, &scene.error), expected);
        assert_contains(scene.error.text, "/id, byte ");
        assert_status(scene_open(&scene), expected);
        assert_contains(scene.error.text, "/id, byte ");
        flip(scene.journal, "id", at, (uint8_t)(1 << at % 8));
    }
    picture_assert(&before, scene.journal);
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_missing_id_is_told_and_not_taken_for_a_new_journal)
{
    struct scene scene;
    struct picture before;
    scene_init(&scene);
    scene_write(&scene, false);
    char path[128];
    snprintf(path, sizeof path, "%s/id", scene.journal);
    assert_int_equal(unlink(path), 0);
    picture_take(&before, scene.journal);
    struct journal_verify_options options = {.dir = scene.dir};
    pawl_log_report r;
    assert_status(journal_verify(&options, &r, &scene.error), PAWL_ECORRUPT);
    assert_contains(scene.error.text, "id is missing");
    assert_status(scene_open(&scene), PAWL_ECORRUPT);
    assert_contains(scene.error.text, "id is missing");
    picture_assert(&before, scene.journal);
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_missing_segment_is_named_whichever_it_is)
{
    struct scene scene;
    struct picture before, after;
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    const struct picture_file *file;
    for (uint32_t number = 1; (file = picture_segment(&before, number)); number++) {
        char path[160], name[16];
        snprintf(path, sizeof path, "%s/%s", scene.journal, file->name);
        snprintf(name, sizeof name, "%08" PRIx32, number);
        assert_int_equal(unlink(path), 0);
        picture_take(&after, scene.journal);
        pawl_log_fault f = found(&scene);
        assert_contains(f.error.text, name);
        assert_contains(f.error.text, "is missing");
        assert_status(scene_open(&scene), PAWL_ECORRUPT);
        assert_contains(scene.error.text, name);
        picture_assert(&after, scene.journal);
        picture_release(&after);
        picture_put(&before, scene.journal);
    }
    picture_release(&before);
    scene_release(&scene);
}

TEST(no_segment_at_all_is_told)
{
    struct scene scene;
    struct picture before;
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    struct picture only_id = {.count = 1, .files = {*picture_find(&before, "id")}};
    picture_put(&only_id, scene.journal);
    struct journal_verify_options options = {.dir = scene.dir};
    pawl_log_report r;
    assert_status(journal_verify(&options, &r, &scene.error), PAWL_ECORRUPT);
    assert_contains(scene.error.text, "all of them are missing");
    assert_status(scene_open(&scene), PAWL_ECORRUPT);
    picture_release(&before);
    scene_release(&scene);
}

/* Cut at every multiple of eight, and once in between. */
static void cut_everywhere(uint32_t which)
{
    struct scene scene;
    struct picture before, after;
    static struct live_record records[LIVE_RECORDS_MAX];
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    const struct picture_file *newest = picture_newest(&before);
    const struct picture_file *file = which ? picture_segment(&before, which) : newest;
    size_t count = scene_records(&scene, &before, records);
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(records[i].file, file->name) == 0)
            end = records[i].at + records[i].size;
    for (uint64_t size = 0; size < end; size += size % 8 == 0 ? 5 : 3) {
        write_file(scene.journal, file->name, file->bytes, (size_t)size);
        picture_take(&after, scene.journal);
        pawl_log_fault f = found(&scene);
        assert_string_equal(f.file, file->name);
        assert_true(f.at <= size || size < get_u32(file->bytes + 12));
        assert_contains(f.error.text, file->name);
        if (file == newest) {
            assert_status(scene_open(&scene), PAWL_ECORRUPT);
            assert_contains(scene.error.text, file->name);
        }
        picture_assert(&after, scene.journal);
        picture_release(&after);
    }
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_segment_cut_short_is_named)
{
    cut_everywhere(1);
    cut_everywhere(2);
}

TEST(a_newest_segment_cut_short_is_named_and_not_written_to)
{
    cut_everywhere(0);
}

/* Put the bytes of one file under the name of another. */
static void assert_foreign(struct scene *scene, const struct picture *before, const struct picture_file *name,
                           const struct picture_file *bytes, const char *words)
{
    struct picture after;
    write_file(scene->journal, name->name, bytes->bytes, bytes->size);
    picture_take(&after, scene->journal);
    pawl_log_fault f = found(scene);
    assert_string_equal(f.file, name->name);
    assert_contains(f.error.text, words);
    if (strcmp(name->name, picture_newest(&after)->name) == 0) {
        assert_status(scene_open(scene), PAWL_ECORRUPT);
        assert_contains(scene->error.text, words);
    }
    picture_assert(&after, scene->journal);
    picture_release(&after);
    picture_put(before, scene->journal);
}

TEST(exchanged_copied_and_foreign_segments_are_each_told_for_what_they_are)
{
    struct scene scene, other;
    struct picture before, theirs;
    scene_init(&scene);
    scene_init(&other);
    mem_env_jump(other.env, PAWL_SECOND);
    (void)pawl_env_random(mem_env_port(other.env)); /* so that it has another ID */
    scene_write(&scene, false);
    scene_write(&other, false);
    picture_take(&before, scene.journal);
    picture_take(&theirs, other.journal);
    const struct picture_file *one = picture_segment(&before, 1), *two = picture_segment(&before, 2);
    const struct picture_file *newest = picture_newest(&before);

    write_file(scene.journal, two->name, one->bytes, one->size);
    assert_foreign(&scene, &before, one, two, "it is segment 2 by its header");
    assert_foreign(&scene, &before, newest, one, "it is segment 1 by its header");
    assert_foreign(&scene, &before, two, picture_segment(&theirs, 2), "it belongs to journal ");
    assert_foreign(&scene, &before, newest, picture_newest(&theirs), "it belongs to journal ");

    struct picture_file copy = {.size = 0}, next = {.size = 0};
    uint32_t number;
    uint64_t lsn;
    assert_true(segment_name_parse(newest->name, &number, &lsn));
    segment_name(2, 1234567, copy.name);
    segment_name(number + 1, lsn, next.name);
    write_file(scene.journal, copy.name, two->bytes, two->size);
    assert_status(scene_open(&scene), PAWL_ECORRUPT);
    assert_contains(scene.error.text, "the same number");
    assert_contains(found(&scene).error.text, "the same number");
    picture_put(&before, scene.journal);
    assert_foreign(&scene, &before, &next, newest, "by its header");
    assert_sound(&scene);
    picture_release(&before);
    picture_release(&theirs);
    scene_release(&scene);
    scene_release(&other);
}

TEST(a_damaged_index_is_a_note_and_no_fault)
{
    struct scene scene;
    scene_init(&scene);
    scene_write(&scene, false);
    flip(scene.journal, "00000001.idx", 50, 1);
    pawl_log_report r = verified(&scene);
    assert_int_equal(r.faults, 0);
    assert_int_equal(r.bad_indexes, 1);
    pawl_log_report_release(&r);
    scene_release(&scene);
}

TEST(a_torn_tail_is_told_and_no_fault)
{
    struct scene scene;
    struct picture before;
    static struct live_record records[LIVE_RECORDS_MAX];
    scene_init(&scene);
    scene_write(&scene, true);
    picture_take(&before, scene.journal);
    size_t count = scene_records(&scene, &before, records);
    const struct live_record *last = &records[count - 1];
    assert_false(last->witnessed);
    flip(scene.journal, last->file, last->at + 9, 1);
    pawl_log_report r = verified(&scene);
    assert_int_equal(r.faults, 0);
    assert_string_equal(r.torn_file, last->file);
    assert_int_equal(r.torn_at, last->at);
    assert_true(r.torn_bytes > 0 && r.torn_bytes <= last->size);
    assert_false(r.clean);
    pawl_log_report_release(&r);
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_journal_that_is_being_written_is_sound_at_every_step)
{
    struct scene scene;
    scene_init(&scene);
    assert_ok(scene_open(&scene));
    for (size_t i = 0; i < 40; i++) {
        scene_append(&scene, i % 2, 1 + i % 4, 10 * i);
        assert_sound(&scene);
    }
    scene_close(&scene);
    assert_sound(&scene);
    scene_release(&scene);
}

/* A disk on which, at the first look, one record is not all there yet. */
struct late {
    const struct live_record *record;
    bool seen;
};

static int64_t read_late(void *ctx, int file, void *data, size_t size, uint64_t at)
{
    struct late *late = ctx;
    int64_t n = disk_real.read(NULL, file, data, size, at);
    char path[64], name[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ssize_t length = readlink(path, name, sizeof name - 1);
    uint64_t body = late->record->at + 40;
    if (late->seen || length < 0 || n <= 0 || at > body || at + (uint64_t)n <= body || at == 0)
        return n;
    name[length] = '\0';
    if (strstr(name, late->record->file)) {
        late->seen = true;
        memset((uint8_t *)data + (body - at), 0, (size_t)(late->record->at + late->record->size - body));
    }
    return n;
}

TEST(a_record_that_a_writer_finishes_while_we_look_is_not_taken_for_damage)
{
    struct scene scene;
    struct picture before;
    static struct live_record records[LIVE_RECORDS_MAX];
    scene_init(&scene);
    scene_write(&scene, true);
    picture_take(&before, scene.journal);
    size_t count = scene_records(&scene, &before, records), i = count;
    while (!records[i - 1].witnessed)
        i--;
    struct late late = {.record = &records[i - 1]};
    assert_string_equal(late.record->file, picture_newest(&before)->name);
    struct disk disk = disk_real;
    disk.ctx = &late;
    disk.read = read_late;
    struct journal_verify_options options = {.dir = scene.dir, .disk = &disk};
    pawl_log_report r;
    assert_ok(journal_verify(&options, &r, NULL));
    assert_true(late.seen);
    if (r.faults)
        fail_msg("%s", r.first.error.text);
    pawl_log_report_release(&r);
    picture_release(&before);
    scene_release(&scene);
}

TEST(running_out_of_memory_is_said_and_leaks_nothing)
{
    struct scene scene;
    scene_init(&scene);
    scene_write(&scene, false);
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        pawl_log_report r;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        struct journal_verify_options options = {.dir = scene.dir, .alloc = &memory.allocator};
        int status = journal_verify(&options, &r, &scene.error);
        bool failed = test_alloc_failed(&memory);
        if (status == PAWL_OK) {
            assert_int_equal(r.faults, 0);
            pawl_log_report_release(&r);
        } else {
            assert_true(failed);
            assert_status(status, PAWL_ENOMEM);
        }
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
    scene_release(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_sound_journal_is_told_as_it_is),
        RUN(progress_grows_to_its_end),
        RUN(a_flipped_bit_in_a_record_of_a_closed_journal_is_found_at_that_record),
        RUN(a_flipped_bit_in_a_witnessed_record_of_a_killed_journal_is_found_at_that_record),
        RUN(a_flipped_bit_in_a_header_is_found_in_that_header),
        RUN(a_flipped_bit_in_the_id_is_told_and_nothing_is_changed),
        RUN(a_missing_id_is_told_and_not_taken_for_a_new_journal),
        RUN(a_missing_segment_is_named_whichever_it_is),
        RUN(no_segment_at_all_is_told),
        RUN(a_segment_cut_short_is_named),
        RUN(a_newest_segment_cut_short_is_named_and_not_written_to),
        RUN(exchanged_copied_and_foreign_segments_are_each_told_for_what_they_are),
        RUN(a_damaged_index_is_a_note_and_no_fault),
        RUN(a_torn_tail_is_told_and_no_fault),
        RUN(a_journal_that_is_being_written_is_sound_at_every_step),
        RUN(a_record_that_a_writer_finishes_while_we_look_is_not_taken_for_damage),
        RUN(running_out_of_memory_is_said_and_leaks_nothing),
    };
    return TEST_MAIN(tests);
}
