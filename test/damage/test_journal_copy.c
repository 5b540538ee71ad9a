/* A journal that is copied while its writer goes on: at each call of the copy, the writer goes on to another segment. */
#include <unistd.h>

#include "adapter/journal/copy.h"
#include "adapter/journal/verify.h"
#include "test/damage/scene.h"
#include "test/lib/dir.h"

/* The calls of a copy that look at a file of the journal. */
enum look { LOOK_LIST, LOOK_SIZE, LOOK_READ, LOOKS };

/* A disk that lets a writer fill its segment just before, or just after, the copy looks. */
struct beside {
    struct scene *scene;
    enum look look;
    bool after;
    unsigned at; /* the number of that call */
    unsigned calls[LOOKS];
    bool done;
};

static uint64_t segments_of(struct scene *scene)
{
    struct journal_report report;
    struct journal_stats stats;
    journal_report(scene->log, &report);
    journal_stats(scene->log, &stats);
    return report.segments + stats.segments_made;
}

static void roll(struct scene *scene)
{
    for (uint64_t before = segments_of(scene); segments_of(scene) == before;)
        scene_append(scene, 0, 1, 200);
}

static void go_on(struct beside *b, enum look look, bool after)
{
    b->calls[look] += !after;
    if (look != b->look || after != b->after || b->calls[look] != b->at)
        return;
    roll(b->scene);
    b->done = true;
}

static int list_beside(void *ctx, int dir, void (*visit)(void *arg, const char *name), void *arg)
{
    go_on(ctx, LOOK_LIST, false);
    int rc = disk_real.list(NULL, dir, visit, arg);
    go_on(ctx, LOOK_LIST, true);
    return rc;
}

static int64_t size_beside(void *ctx, int file)
{
    go_on(ctx, LOOK_SIZE, false);
    int64_t size = disk_real.size(NULL, file);
    go_on(ctx, LOOK_SIZE, true);
    return size;
}

static int64_t read_beside(void *ctx, int file, void *data, size_t size, uint64_t at)
{
    go_on(ctx, LOOK_READ, false);
    int64_t n = disk_real.read(NULL, file, data, size, at);
    go_on(ctx, LOOK_READ, true);
    return n;
}

/* Whether the copy got as far as that call. What was there before it must be in it. */
static bool copy_beside(enum look look, bool after, unsigned at)
{
    struct scene scene;
    char to[64];
    uint64_t bytes;
    scene_init(&scene);
    assert_ok(scene_open(&scene));
    roll(&scene);
    scene_append(&scene, 1, 3, 100);
    struct beside beside = {.scene = &scene, .look = look, .after = after, .at = at};
    struct disk disk = disk_real;
    disk.ctx = &beside;
    disk.list = list_beside;
    disk.size = size_beside;
    disk.read = read_beside;
    uint64_t lasts[2] = {scene.nexts[0] - 1, scene.nexts[1] - 1};
    test_dir_make(to, sizeof to);
    const struct journal_copy_options copy = {.from = scene.dir, .to = to, .disk = &disk};
    if (journal_copy(&copy, &bytes, &scene.error) != PAWL_OK)
        fail_msg("%s", scene.error.text);
    scene_close(&scene);

    const struct journal_verify_options options = {.dir = to};
    pawl_log_report r;
    assert_ok(journal_verify(&options, &r, &scene.error));
    if (r.faults)
        fail_msg("the writer goes on %s call %u of kind %d: %s", after ? "after" : "before", at, (int)look,
                 r.first.error.text);
    assert_int_equal(r.stream_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(r.streams[i].last >= lasts[i]);
    pawl_log_report_release(&r);
    test_dir_remove(to);
    scene_release(&scene);
    return beside.done;
}

TEST(a_copy_is_sound_whenever_the_writer_begins_another_segment)
{
    unsigned tried = 0;
    for (int look = 0; look < LOOKS; look++)
        for (int after = 0; after < 2; after++)
            for (unsigned at = 1; copy_beside((enum look)look, after == 1, at); at++)
                tried++;
    assert_true(tried > 2 * LOOKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_copy_is_sound_whenever_the_writer_begins_another_segment),
    };
    return TEST_MAIN(tests);
}
