/* What a mirror keeps, how much of it, and when it throws it away. The log behind it is on files. */
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <unistd.h>

#include "adapter/journal/journal.h"
#include "adapter/mirror/mirror.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "test/lib/test.h"

#define BODY    400
#define LONG_NS UINT64_C(3600000000000)

static const pawl_stream stream = {.kind = PAWL_STREAM_RAW, .partition = 3};

struct scene {
    char dir[64], files[80];
    struct uv_env *env;
    pawl_log *log;
    const char *boot, *id;
    uint64_t epoch, next, retry_ns;
};

static void scene_open(struct scene *s)
{
    char log[80];
    pawl_error error = {0};
    const struct uv_env_options options = {.shards = 1, .pool_threads = 2};
    snprintf(log, sizeof log, "%s/log", s->dir);
    assert_ok(uv_env_open(&options, &s->env, NULL));
    const struct journal_options journal = {.dir = log, .env = uv_env_port(s->env)};
    struct mirror_options mirror = {.dir = s->files,
                                    .id = s->id ? s->id : "one",
                                    .boot_id = s->boot ? s->boot : "first",
                                    .bytes_max = MIRROR_BYTES_MIN,
                                    .retry_ns = s->retry_ns,
                                    .env = uv_env_port(s->env)};
    int status = journal_open(&journal, &mirror.log, &error);
    if (status == PAWL_OK)
        status = mirror_open(&mirror, &s->log, &error);
    if (status != PAWL_OK)
        fail_msg("%s", error.text);
}

static void scene_close(struct scene *s)
{
    assert_ok(pawl_log_close(s->log));
    assert_ok(uv_env_close(s->env));
}

static void scene_reopen(struct scene *s)
{
    scene_close(s);
    scene_open(s);
}

static void claim_done(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static void claim(struct scene *s)
{
    struct latch latch;
    latch_init(&latch);
    pawl_claim request = {.stream = stream, .done = claim_done, .arg = &latch};
    assert_ok(pawl_log_claim(s->log, &request));
    latch_wait(&latch);
    assert_ok(request.status);
    s->epoch = request.epoch;
    s->next = request.next;
}

static void append_done(pawl_append *append)
{
    latch_set(append->arg);
}

static void body_of(uint64_t offset, char body[BODY])
{
    memset(body, (int)('a' + offset % 26), BODY);
    memcpy(body, &offset, sizeof offset);
}

static void append(struct scene *s, uint64_t count)
{
    char body[BODY];
    for (uint64_t i = 0; i < count; i++) {
        struct latch latch;
        latch_init(&latch);
        body_of(s->next, body);
        pawl_append_entry entry = {.entry = {.stream = stream,
                                             .epoch = s->epoch,
                                             .offset = s->next++,
                                             .kind = 7,
                                             .body = {body, sizeof body}}};
        pawl_append request = {.entries = &entry, .count = 1, .done = append_done, .arg = &latch};
        assert_ok(pawl_log_append(s->log, &request));
        latch_wait(&latch);
        assert_ok(request.status);
    }
}

static struct scene *scene_begin(uint64_t entries)
{
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    snprintf(s->dir, sizeof s->dir, "/tmp/pawl-mirror-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->files, sizeof s->files, "%s/mirror", s->dir);
    scene_open(s);
    claim(s);
    append(s, entries);
    return s;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void scene_end(struct scene *s)
{
    scene_close(s);
    assert_int_equal(nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(s);
}

static pawl_mirror_figures figures_of(struct scene *s)
{
    pawl_mirror_figures figures;
    mirror_figures(s->log, &figures);
    return figures;
}

struct reading {
    pawl_read read;
    uint64_t next;
    struct latch latch;
    struct scene *scene;
};

static bool visit(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct reading *r = read->arg;
    char body[BODY];
    body_of(entry->offset, body);
    assert_int_equal(entry->offset, r->next++);
    assert_int_equal(entry->kind, 7);
    assert_int_equal(entry->body.size, BODY);
    assert_memory_equal(entry->body.data, body, BODY);
    assert_true(place.position > 0);
    return true;
}

static void read_done(pawl_read *read)
{
    latch_set(&((struct reading *)read->arg)->latch);
}

static void start_read(void *arg)
{
    struct reading *r = arg;
    assert_ok(pawl_log_read(r->scene->log, &r->read));
}

/* On this thread, or on a shard. */
static void read_some(struct scene *s, uint64_t from, uint64_t limit, bool alone)
{
    struct reading r = {.next = from, .scene = s};
    r.read = (pawl_read){.stream = stream,
                         .from = from,
                         .limit = limit,
                         .alone = alone,
                         .visit = visit,
                         .done = read_done,
                         .arg = &r};
    latch_init(&r.latch);
    if (alone) {
        assert_int_equal(pawl_log_read(s->log, &r.read), PAWL_READ_DONE);
    } else {
        assert_ok(pawl_env_call(uv_env_port(s->env), 0, start_read, &r));
        latch_wait(&r.latch);
    }
    assert_ok(r.read.status);
    uint64_t end = limit < s->next - from ? from + limit : s->next;
    assert_int_equal(r.read.next, end);
    assert_int_equal(r.next, end);
}

TEST(what_was_acknowledged_is_read_here_also_after_another_opening)
{
    struct scene *s = scene_begin(500);
    for (int alone = 0; alone < 2; alone++) {
        read_some(s, 1, 10, alone);
        read_some(s, 490, 11, alone);
        read_some(s, 1, 500, alone);
    }
    assert_int_equal(figures_of(s).hits, 2 * 521);
    assert_int_equal(figures_of(s).misses, 0);
    read_some(s, 400, 1000, false); /* past its end: the log says that there is no more */
    assert_int_equal(figures_of(s).misses, 1);
    scene_reopen(s);
    read_some(s, 1, 500, true);
    read_some(s, 77, 1, false);
    assert_int_equal(figures_of(s).hits, 501);
    assert_int_equal(figures_of(s).misses, 0);
    claim(s);
    append(s, 300); /* and it goes on */
    read_some(s, 100, 600, false);
    assert_int_equal(figures_of(s).misses, 0);
    scene_end(s);
}

TEST(it_is_bounded_and_what_is_older_comes_from_the_log)
{
    struct scene *s = scene_begin(8000); /* three times what it may hold */
    for (int round = 0; round < 2; round++) {
        pawl_mirror_figures figures = figures_of(s);
        assert_true(figures.bytes <= MIRROR_BYTES_MIN);
        read_some(s, 1, 100, true);
        read_some(s, 7900, 100, false);
        assert_int_equal(figures_of(s).hits, figures.hits + 100);
        assert_int_equal(figures_of(s).misses, figures.misses + 1);
        read_some(s, 1, 8000, true);
        scene_reopen(s);
    }
    assert_int_equal(figures_of(s).discarded, 0);
    scene_end(s);
}

TEST(it_is_thrown_away_after_another_boot_and_for_another_log)
{
    struct scene *s = scene_begin(300);
    s->boot = "second";
    scene_reopen(s);
    assert_int_equal(figures_of(s).discarded, 1);
    assert_int_equal(figures_of(s).bytes, 0);
    read_some(s, 1, 300, true);
    assert_int_equal(figures_of(s).hits, 0);
    read_some(s, 1, 300, true); /* what was read is kept */
    assert_int_equal(figures_of(s).hits, 300);
    s->id = "another";
    scene_reopen(s);
    assert_int_equal(figures_of(s).discarded, 1);
    read_some(s, 1, 300, false);
    assert_int_equal(figures_of(s).hits, 0);
    scene_end(s);
}

/* Change what lies in the files; returns how many there are. */
static int change_files(struct scene *s, void (*change)(int fd, off_t size))
{
    int count = 0;
    for (unsigned n = 1; n < 100; n++) {
        char path[140];
        struct stat there;
        snprintf(path, sizeof path, "%s/%016x.seg", s->files, n);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            continue;
        assert_int_equal(fstat(fd, &there), 0);
        change(fd, there.st_size);
        close(fd);
        count++;
    }
    return count;
}

static void flip_a_bit(int fd, off_t size)
{
    uint8_t byte;
    assert_int_equal(pread(fd, &byte, 1, size / 3), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, size / 3), 1);
}

static void cut_off(int fd, off_t size)
{
    assert_int_equal(ftruncate(fd, size - 100), 0);
}

TEST(it_is_thrown_away_when_a_block_is_damaged)
{
    struct scene *s = scene_begin(1000);
    scene_reopen(s);
    assert_true(change_files(s, flip_a_bit) > 0);
    read_some(s, 1, 1000, true); /* the log has it */
    assert_int_equal(figures_of(s).discarded, 1);
    claim(s);
    append(s, 200); /* it begins anew */
    read_some(s, 1001, 200, false);
    assert_true(figures_of(s).hits >= 200);
    scene_end(s);
}

TEST(a_block_that_was_written_by_half_is_left_out)
{
    struct scene *s = scene_begin(1000);
    scene_close(s);
    assert_true(change_files(s, cut_off) > 0);
    scene_open(s);
    read_some(s, 1, 1000, true);
    pawl_mirror_figures figures = figures_of(s);
    assert_int_equal(figures.discarded, 0);
    assert_true(figures.hits > 0 && figures.hits < 1000 && figures.misses > 0);
    scene_end(s);
}

/* Its first segment is a device on which every write fails for want of room. */
TEST(a_disk_that_is_full_hurts_nobody)
{
    char path[140];
    struct stat there;
    struct scene *s = scene_begin(0);
    s->retry_ns = LONG_NS;
    scene_reopen(s);
    claim(s);
    snprintf(path, sizeof path, "%s/%016x.seg", s->files, 1);
    assert_int_equal(symlink("/dev/full", path), 0);
    append(s, 2000);
    while (figures_of(s).discarded == 0)
        sched_yield();
    append(s, 10);
    read_some(s, 1, 2010, true);
    read_some(s, 1990, 20, false);
    pawl_mirror_figures figures = figures_of(s);
    assert_int_equal(figures.bytes, 0);
    assert_true(figures.off && figures.dropped >= 10);
    assert_contains(figures.why, s->files);
    assert_contains(figures.why, "No space left");
    scene_close(s);
    assert_int_not_equal(lstat(path, &there), 0);
    scene_open(s);
    read_some(s, 1, 2010, true);
    scene_end(s);
}

/* The first three tries fail, and then there is room. */
TEST(it_goes_on_when_the_disk_has_room_again_though_nothing_is_appended)
{
    char path[140];
    struct scene *s = scene_begin(0);
    s->retry_ns = 1000 * 1000;
    scene_reopen(s);
    claim(s);
    for (int i = 1; i <= 3; i++) {
        snprintf(path, sizeof path, "%s/%016x.seg", s->files, i);
        assert_int_equal(symlink("/dev/full", path), 0);
    }
    append(s, 500);
    while (figures_of(s).discarded == 0 || figures_of(s).off)
        sched_yield();
    assert_int_equal(figures_of(s).discarded, 1); /* once, however often it was tried */
    uint64_t dropped = figures_of(s).dropped;
    append(s, 500);
    assert_int_equal(figures_of(s).dropped, dropped);
    read_some(s, 501, 500, true);
    assert_true(figures_of(s).hits >= 500);
    scene_end(s);
}

TEST(its_figures_say_how_much_it_holds_and_what_it_has_not_written)
{
    struct scene *s = scene_begin(10);
    pawl_mirror_figures figures = figures_of(s);
    assert_true(figures.unwritten == 10 && figures.bytes == 0 && !figures.off);
    assert_int_equal(figures.bytes_max, MIRROR_BYTES_MIN);
    append(s, 1000);
    while (figures_of(s).bytes == 0)
        sched_yield();
    assert_true(figures_of(s).unwritten < 1010);
    scene_reopen(s); /* closing writes all of it */
    assert_int_equal(figures_of(s).unwritten, 0);
    assert_true(figures_of(s).bytes > 1010 * BODY);
    scene_end(s);
}

TEST(a_directory_that_cannot_be_used_is_said)
{
    struct scene *s = scene_begin(0);
    scene_close(s);
    snprintf(s->files, sizeof s->files, "%s/none/mirror", s->dir);
    scene_open(s);
    claim(s);
    append(s, 10);
    pawl_mirror_figures figures = figures_of(s);
    assert_true(figures.off && figures.dropped == 10);
    assert_contains(figures.why, s->files);
    read_some(s, 1, 10, true);
    scene_end(s);
}

/* In its place lies a file. */
TEST(it_begins_when_its_directory_can_be_made)
{
    struct scene *s = scene_begin(0);
    scene_close(s);
    s->retry_ns = 1000 * 1000;
    snprintf(s->files, sizeof s->files, "%s/other", s->dir);
    int file = open(s->files, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0 && close(file) == 0);
    scene_open(s);
    claim(s);
    append(s, 10);
    assert_true(figures_of(s).off);
    assert_int_equal(unlink(s->files), 0);
    while (figures_of(s).off)
        sched_yield();
    assert_int_equal(figures_of(s).discarded, 0);
    append(s, 500);
    read_some(s, 11, 500, true);
    assert_true(figures_of(s).hits >= 500);
    scene_reopen(s); /* the mark is there, too */
    read_some(s, 11, 500, true);
    assert_true(figures_of(s).hits >= 500);
    scene_end(s);
}

TEST(it_goes_on_when_somebody_has_removed_its_directory)
{
    char command[160];
    struct scene *s = scene_begin(0);
    s->retry_ns = 1000 * 1000;
    scene_reopen(s);
    claim(s);
    append(s, 500);
    snprintf(command, sizeof command, "%s.old", s->files);
    assert_int_equal(rename(s->files, command), 0);
    while (figures_of(s).discarded == 0) /* until the segment that is open is full */
        append(s, 500);
    while (figures_of(s).off)
        sched_yield();
    uint64_t next = s->next;
    append(s, 500);
    read_some(s, next, 500, true);
    scene_reopen(s);
    read_some(s, next, 500, true);
    assert_true(figures_of(s).hits >= 500);
    scene_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_acknowledged_is_read_here_also_after_another_opening),
        cmocka_unit_test(it_is_bounded_and_what_is_older_comes_from_the_log),
        cmocka_unit_test(it_is_thrown_away_after_another_boot_and_for_another_log),
        cmocka_unit_test(it_is_thrown_away_when_a_block_is_damaged),
        cmocka_unit_test(a_block_that_was_written_by_half_is_left_out),
        cmocka_unit_test(a_disk_that_is_full_hurts_nobody),
        cmocka_unit_test(it_goes_on_when_the_disk_has_room_again_though_nothing_is_appended),
        cmocka_unit_test(its_figures_say_how_much_it_holds_and_what_it_has_not_written),
        cmocka_unit_test(a_directory_that_cannot_be_used_is_said),
        cmocka_unit_test(it_begins_when_its_directory_can_be_made),
        cmocka_unit_test(it_goes_on_when_somebody_has_removed_its_directory),
    };
    return TEST_MAIN(tests);
}
