/* What journal_salvage saves of a damaged journal: everything that can be read, and nothing that was not there.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapter/journal/salvage.h"
#include "adapter/journal/verify.h"
#include "adapter/uv/env.h"
#include "base/bytes.h"
#include "test/damage/scene.h"
#include "test/lib/alloc.h"

static pawl_doctor_report surveyed(struct scene *scene)
{
    struct journal_salvage_options options = {.dir = scene->dir};
    pawl_doctor_report report;
    int status = journal_salvage(&options, &report, &scene->error);
    if (status != PAWL_OK)
        fail_msg("%s", scene->error.text);
    return report;
}

static const pawl_doctor_stream *find(const pawl_doctor_report *r, size_t stream)
{
    for (size_t i = 0; i < r->stream_count; i++)
        if (pawl_stream_equal(r->streams[i].id, scene_streams[stream]))
            return &r->streams[i];
    fail_msg("a stream is not there at all");
    return NULL;
}

static bool has(const pawl_doctor_stream *s, uint64_t offset)
{
    for (size_t i = 0; i < s->count; i++)
        if (offset >= s->intact[i].first && offset <= s->intact[i].last)
            return true;
    return false;
}

/* Everything of both streams but one entry (offset 0: nothing) is intact. */
static void assert_lost(struct scene *scene, size_t stream, uint64_t offset)
{
    pawl_doctor_report r = surveyed(scene);
    for (size_t k = 0; k < 2; k++) {
        const pawl_doctor_stream *s = find(&r, k);
        uint64_t all = scene->nexts[k] - 1;
        bool here = offset != 0 && k == stream;
        assert_int_equal(s->entries, all - here);
        assert_int_equal(s->dense, here ? offset - 1 : all);
        for (uint64_t o = 1; o <= all; o++)
            assert_int_equal(has(s, o), !(here && o == offset));
    }
    pawl_doctor_report_release(&r);
}

TEST(a_sound_journal_has_nothing_lost)
{
    for (int killed = 0; killed < 2; killed++) {
        struct scene scene;
        struct picture before;
        scene_init(&scene);
        scene_write(&scene, killed);
        picture_take(&before, scene.journal);
        assert_lost(&scene, 0, 0);
        pawl_doctor_report r = surveyed(&scene);
        assert_int_equal(r.places_damaged + r.headers_damaged + r.segments_missing, 0);
        assert_int_equal(r.first.code, PAWL_OK);
        pawl_doctor_report_release(&r);
        picture_assert(&before, scene.journal);
        picture_release(&before);
        scene_release(&scene);
    }
}

/* Damage each record in turn: in its header, and in its body if it has one. Only that entry may be lost. */
TEST(one_damaged_record_loses_one_entry_and_no_other)
{
    struct scene scene;
    struct picture before;
    static struct live_record records[LIVE_RECORDS_MAX];
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    size_t count = scene_records(&scene, &before, records);
    for (size_t i = 0; i < count; i++)
        for (uint64_t at = 20; at < records[i].size; at += 50) {
            const struct live_record *l = &records[i];
            const uint8_t *bytes = picture_find(&before, l->file)->bytes + l->at;
            bool entry = bytes[36] == 1;
            flip(scene.journal, l->file, l->at + at, 0x10);
            assert_lost(&scene, bytes[38] == PAWL_STREAM_RAW ? 0 : 1, entry ? get_u64(bytes + 48) : 0);
            pawl_doctor_report r = surveyed(&scene);
            assert_int_equal(r.places_damaged, 1);
            assert_contains(r.first.text, l->file);
            pawl_doctor_report_release(&r);
            flip(scene.journal, l->file, l->at + at, 0x10);
        }
    picture_assert(&before, scene.journal);
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_damaged_header_loses_nothing)
{
    struct scene scene;
    struct picture before;
    const struct picture_file *file;
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    for (uint32_t number = 1; (file = picture_segment(&before, number)); number++) {
        flip(scene.journal, file->name, 3 + number, 0x40);
        assert_lost(&scene, 0, 0);
        pawl_doctor_report r = surveyed(&scene);
        assert_int_equal(r.headers_damaged, 1);
        pawl_doctor_report_release(&r);
        picture_put(&before, scene.journal);
    }
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_damaged_or_missing_id_and_exchanged_names_lose_nothing)
{
    struct scene scene;
    struct picture before;
    char path[128];
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    flip(scene.journal, "id", 20, 1);
    assert_lost(&scene, 0, 0);
    snprintf(path, sizeof path, "%s/id", scene.journal);
    assert_int_equal(unlink(path), 0);
    assert_lost(&scene, 0, 0);
    picture_put(&before, scene.journal);

    const struct picture_file *one = picture_segment(&before, 1), *two = picture_segment(&before, 2);
    write_file(scene.journal, one->name, two->bytes, two->size);
    write_file(scene.journal, two->name, one->bytes, one->size);
    assert_lost(&scene, 0, 0);
    picture_release(&before);
    scene_release(&scene);
}

/* A crash tears the beginning of a group; what stands behind the tear is cut, and its numbers are given again.
 * Then the last record before the cut is damaged, and the search for the next one comes by what was cut. */
TEST(what_a_recovery_has_cut_is_not_taken_for_what_was_written)
{
    struct scene scene;
    struct picture before;
    static struct live_record records[LIVE_RECORDS_MAX];
    scene_init(&scene);
    assert_ok(scene_open(&scene));
    scene_append(&scene, 1, 1, 50);
    scene_append(&scene, 0, 2, 50);
    scene_append(&scene, 0, 4, 50);
    picture_take(&before, scene.journal);
    scene_close(&scene);
    picture_put(&before, scene.journal);
    size_t count = scene_records(&scene, &before, records);
    flip(scene.journal, records[count - 1].file, records[count - 1].at + 20, 1); /* the watermark */
    flip(scene.journal, records[count - 5].file, records[count - 5].at + 70, 1); /* the first of the four */
    picture_release(&before);
    assert_ok(scene_open(&scene));
    assert_int_equal(scene.nexts[0], 3);
    scene_append(&scene, 0, 4, 60);
    scene_close(&scene);

    picture_take(&before, scene.journal);
    count = scene_records(&scene, &before, records);
    size_t last = 0;
    while (strcmp(records[last + 1].file, records[0].file) == 0)
        last++;
    const uint8_t *bytes = picture_find(&before, records[last].file)->bytes + records[last].at;
    flip(scene.journal, records[last].file, records[last].at + 20, 1);
    flip(scene.journal, records[last].file, records[last].at + records[last].size + 20,
         1); /* dead, but a hint */
    assert_lost(&scene, 0, bytes[36] == 1 ? get_u64(bytes + 48) : 0);
    picture_release(&before);
    scene_release(&scene);
}

/* The offsets of both streams in a segment's live records. */
static void entries_of(const struct picture *picture, const struct live_record *records, size_t count,
                       const char *file, uint64_t lost[2])
{
    lost[0] = lost[1] = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = picture_find(picture, records[i].file)->bytes + records[i].at;
        if (strcmp(records[i].file, file) == 0 && bytes[36] == 1)
            lost[bytes[38] == PAWL_STREAM_RAW ? 0 : 1]++;
    }
}

TEST(a_missing_segment_loses_its_own_entries_and_says_how_many)
{
    struct scene scene;
    struct picture before;
    static struct live_record records[LIVE_RECORDS_MAX];
    const struct picture_file *file;
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    size_t count = scene_records(&scene, &before, records);
    for (uint32_t number = 1; (file = picture_segment(&before, number)) && file != picture_newest(&before);
         number++) {
        char path[160];
        uint64_t lost[2];
        snprintf(path, sizeof path, "%s/%s", scene.journal, file->name);
        assert_int_equal(unlink(path), 0);
        entries_of(&before, records, count, file->name, lost);
        pawl_doctor_report r = surveyed(&scene);
        assert_int_equal(r.segments_missing, 1);
        assert_contains(r.first.text, "is missing");
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(find(&r, k)->entries, scene.nexts[k] - 1 - lost[k]);
            assert_int_equal(find(&r, k)->next, scene.nexts[k]);
        }
        pawl_doctor_report_release(&r);
        picture_put(&before, scene.journal);
    }
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_newest_segment_cut_short_is_damage_and_keeps_what_is_before_the_cut)
{
    struct scene scene;
    struct picture before;
    static struct live_record records[LIVE_RECORDS_MAX];
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    size_t count = scene_records(&scene, &before, records);
    const struct picture_file *newest = picture_newest(&before);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(records[i].file, newest->name) != 0)
            continue;
        write_file(scene.journal, newest->name, newest->bytes, (size_t)records[i].at);
        pawl_doctor_report r = surveyed(&scene);
        assert_int_equal(r.places_damaged, 1);
        assert_int_equal(r.first.code, PAWL_ECORRUPT);
        for (size_t k = i; k-- > 0;) {
            const uint8_t *bytes = picture_find(&before, records[k].file)->bytes + records[k].at;
            if (bytes[36] == 1)
                assert_true(has(find(&r, bytes[38] == PAWL_STREAM_RAW ? 0 : 1), get_u64(bytes + 48)));
        }
        pawl_doctor_report_release(&r);
    }
    picture_release(&before);
    scene_release(&scene);
}

/* What salvage wrote, read back by other means. */
struct reading {
    struct scene *scene;
    size_t stream;
    uint64_t seen;
    bool done;
};

static bool check_entry(pawl_read *read, const pawl_entry *e, pawl_place place)
{
    struct reading *x = read->arg;
    (void)place;
    x->seen++;
    assert_int_equal(e->offset, x->seen);
    assert_int_equal(e->kind, (uint8_t)(e->offset + 3));
    const uint8_t *body = e->body.data;
    for (size_t i = 0; i < e->body.size; i++)
        assert_int_equal(body[i], scene_body(x->stream, e->offset));
    return true;
}

static void read_done(pawl_read *read)
{
    ((struct reading *)read->arg)->done = true;
}

static uint64_t entries_in(struct scene *scene, const char *dir, size_t stream)
{
    struct journal_options options = {.dir = dir, .env = mem_env_port(scene->env), .read_only = true};
    pawl_log *log;
    assert_ok(journal_open(&options, &log, &scene->error));
    struct reading x = {.scene = scene, .stream = stream};
    pawl_read read = {.stream = scene_streams[stream],
                      .from = 1,
                      .limit = UINT64_MAX,
                      .visit = check_entry,
                      .done = read_done,
                      .arg = &x};
    assert_ok(pawl_log_read(log, &read));
    assert_true(mem_world_run(scene->world, 100000));
    assert_true(x.done);
    assert_ok(read.status);
    assert_ok(pawl_log_close(log));
    return x.seen;
}

static uint64_t lines_in(const char *dir, const char *name, uint64_t first, uint8_t fill)
{
    char path[256], line[2048];
    snprintf(path, sizeof path, "%s/behind-holes/%s", dir, name);
    FILE *file = fopen(path, "r");
    uint64_t lines = 0;
    for (; file && fgets(line, sizeof line, file); lines++) {
        char head[64], hex[8];
        uint64_t offset = first + lines;
        snprintf(head, sizeof head, "{\"offset\":%" PRIu64 ",\"kind\":%u,\"hex\":\"", offset,
                 (unsigned)(uint8_t)(offset + 3));
        assert_int_equal(strncmp(line, head, strlen(head)), 0);
        assert_string_equal(line + strlen(line) - 3, "\"}\n");
        if (lines == 0) {
            snprintf(hex, sizeof hex, "%02x", fill);
            assert_int_equal(strncmp(line + strlen(head), hex, 2), 0);
        }
    }
    if (file)
        fclose(file);
    return lines;
}

TEST(what_is_saved_is_a_journal_and_what_lies_behind_a_hole_is_beside_it)
{
    struct scene scene;
    struct picture before;
    static struct live_record records[LIVE_RECORDS_MAX];
    struct uv_env *env;
    char to[128];
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    size_t count = scene_records(&scene, &before, records);
    assert_ok(uv_env_open(&(struct uv_env_options){.shards = 1, .pool_threads = 1}, &env, NULL));
    snprintf(to, sizeof to, "%s/saved", scene.dir);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = picture_find(&before, records[i].file)->bytes + records[i].at;
        if (bytes[36] == 1 && bytes[38] == PAWL_STREAM_RAW && get_u64(bytes + 48) == 5)
            flip(scene.journal, records[i].file, records[i].at + 70, 1);
    }
    struct journal_salvage_options options = {.dir = scene.dir, .to = to, .env = uv_env_port(env)};
    pawl_doctor_report r;
    assert_ok(journal_salvage(&options, &r, &scene.error));
    assert_int_equal(find(&r, 0)->dense, 4);
    pawl_doctor_report_release(&r);
    assert_int_equal(entries_in(&scene, to, 0), 4);
    assert_int_equal(entries_in(&scene, to, 1), scene.nexts[1] - 1);
    assert_int_equal(lines_in(to, "raw-0.ndjson", 6, scene_body(0, 6)), scene.nexts[0] - 6);
    assert_int_equal(lines_in(to, "oplog-5-7.2.ndjson", 1, 0), 0);
    struct journal_verify_options check = {.dir = to};
    pawl_log_report v;
    assert_ok(journal_verify(&check, &v, NULL));
    assert_int_equal(v.faults, 0);
    assert_true(v.clean);
    pawl_log_report_release(&v);

    assert_status(journal_salvage(&options, &r, &scene.error), PAWL_EEXISTS);
    options.to = scene.dir;
    assert_status(journal_salvage(&options, &r, &scene.error), PAWL_EEXISTS);
    assert_ok(uv_env_close(env));
    picture_release(&before);
    scene_release(&scene);
}

TEST(a_journal_that_nothing_identifies_is_refused)
{
    struct scene scene;
    struct picture before;
    const struct picture_file *file;
    scene_init(&scene);
    scene_write(&scene, false);
    picture_take(&before, scene.journal);
    flip(scene.journal, "id", 20, 1);
    for (uint32_t number = 1; (file = picture_segment(&before, number)); number++)
        flip(scene.journal, file->name, 20, 1);
    struct journal_salvage_options options = {.dir = scene.dir};
    pawl_doctor_report r;
    assert_status(journal_salvage(&options, &r, &scene.error), PAWL_ECORRUPT);
    assert_contains(scene.error.text, "no segment's header says which journal this was");
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
        pawl_doctor_report r;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        struct journal_salvage_options options = {.dir = scene.dir, .alloc = &memory.allocator};
        int status = journal_salvage(&options, &r, &scene.error);
        bool failed = test_alloc_failed(&memory);
        if (status == PAWL_OK)
            pawl_doctor_report_release(&r);
        else
            assert_true(failed);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
    scene_release(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_sound_journal_has_nothing_lost),
        RUN(one_damaged_record_loses_one_entry_and_no_other),
        RUN(a_damaged_header_loses_nothing),
        RUN(a_damaged_or_missing_id_and_exchanged_names_lose_nothing),
        RUN(what_a_recovery_has_cut_is_not_taken_for_what_was_written),
        RUN(a_missing_segment_loses_its_own_entries_and_says_how_many),
        RUN(a_newest_segment_cut_short_is_damage_and_keeps_what_is_before_the_cut),
        RUN(what_is_saved_is_a_journal_and_what_lies_behind_a_hole_is_beside_it),
        RUN(a_journal_that_nothing_identifies_is_refused),
        RUN(running_out_of_memory_is_said_and_leaks_nothing),
    };
    return TEST_MAIN(tests);
}
