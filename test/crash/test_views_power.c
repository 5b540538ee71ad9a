/* test_views_power.c: the power is cut, or the disk is full, in every phase of building and changing views. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "test/crash/power.h"
#include "test/crash/views_scene.h"

#define IMAGES_MAX  24
#define EACH_IMAGES 4

/* --- a disk without room for live stores: their blocks are reserved by this call --- */

static atomic_bool no_blocks;

int fallocate(int fd, int mode, off_t at, off_t size)
{
    char link[64], path[600];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    if (atomic_load(&no_blocks) && strstr(path, "/state/")) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, at, size);
}

/* From now on the disk is watched. */
static void begin_watched(uint64_t seed)
{
    begin();
    power_watch(bed.path, seed);
}

static void end_watched(void)
{
    power_watch(NULL, 0);
    end();
}

/* --- power --- */

static struct {
    const char *_Atomic step;
    unsigned one_in;
    uint64_t dice;
    pthread_mutex_t lock;
    unsigned count;
} cutting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void image_path(unsigned number, char *path, size_t size)
{
    snprintf(path, size, "%.200s/cut-%u", bed.dir, number);
}

static void cut(void)
{
    char path[300];
    pthread_mutex_lock(&cutting.lock);
    if (cutting.count < IMAGES_MAX) {
        image_path(cutting.count++, path, sizeof path);
        power_cut(path);
    }
    pthread_mutex_unlock(&cutting.lock);
}

static void cut_at_step(void *arg, const char *what)
{
    (void)arg;
    if (strcmp(what, cutting.step) != 0)
        return;
    pthread_mutex_lock(&cutting.lock);
    bool now =
        cutting.count == 0 || (cutting.count < EACH_IMAGES && test_below(&cutting.dice, cutting.one_in) == 0);
    pthread_mutex_unlock(&cutting.lock);
    if (now)
        cut();
}

/* What the power has left, after the next boot. */
static void check_image(unsigned number)
{
    struct view_bed image = bed;
    image.knobs = (struct engine_knobs){
        .boot_id = "the next boot", .checkpoint_age = 2 * PAWL_MILLISECOND, .slice_rows = SLICE};
    image_path(number, image.path, sizeof image.path);

    /* Before anybody can mend it: what group0 calls built is complete in what is durable. */
    char live[400], aside[400];
    snprintf(live, sizeof live, "%s/state", image.path);
    snprintf(aside, sizeof aside, "%s/aside", image.path);
    pawl_options reading = {.read_only = true};
    image.knobs.backup = true; /* the checkpoints are read */
    assert_int_equal(rename(live, aside), 0);
    assert_bed_ok(&image, engine_open(image.path, &reading, &image.knobs, &image.engine, &image.error));
    uint16_t lacking[VIEWS_MAX];
    size_t count = list_incomplete(&image, false, lacking);
    view_bed_check(&image);
    assert_ok(pawl_close(image.engine));
    assert_int_equal(rename(aside, live), 0);
    image.knobs.backup = false;

    /* Whoever only reads does not trust the last command yet: a view may lack what that one has dropped. */
    view_bed_open(&image);
    for (size_t i = 0; i < count; i++)
        assert_null(view_list_by_table(engine_views(image.engine), view_table(lacking[i], 0)));
    view_bed_check(&image);
    finish_and_check(&image);
    test_dir_remove(image.path);
}

static void check_images(const char *what)
{
    assert_true(cutting.count > 0);
    for (unsigned i = 0; i < cutting.count; i++)
        check_image(i);
    print_message("# %u cuts when %s\n", cutting.count, what);
    cutting.count = 0;
}

TEST(the_power_goes_in_every_phase_of_a_build)
{
    uint64_t seed = test_seed(41);
    for (size_t i = 0; i < STEPS; i++) {
        begin_watched(seed + i);
        cutting.step = steps[i];
        cutting.one_in = i < 2 ? 6 : i < 6 ? 2 : 1;
        cutting.dice = seed + i;
        bed.knobs.step = cut_at_step;
        view_bed_open(&bed);
        create_views(&bed);
        view_bed_fill(&bed, 1);
        assert_bed_ok(&bed, pawl_tablets_split(bed.engine, &bed.error));
        wait_for_views(&bed);
        cut(); /* they are built, and stay so */
        cutting.step = "";
        view_bed_close(&bed);
        check_images(steps[i]);
        end_watched();
    }
}

TEST(the_power_goes_while_a_view_is_rebuilt_and_exchanged_and_another_is_dropped)
{
    uint64_t seed = test_seed(45);
    for (size_t i = 0; i < CHANGES; i++) {
        begin_watched(seed + i);
        cutting.step = "";
        cutting.one_in = i == 1 ? 6 : 2;
        cutting.dice = seed + i;
        bed.knobs.step = cut_at_step;
        view_bed_open(&bed);
        create_views(&bed);
        wait_for_views(&bed);
        cutting.step = changes[i];
        change_views(&bed);
        cutting.step = "";
        cut();
        assert_int_equal(engine_views(bed.engine)->count, 2);
        view_bed_close(&bed);
        check_images(changes[i]);
        end_watched();
    }
}

/* The checkpoints' slices wait for the test. */
static atomic_bool held;

static void hold_checkpoints(void *arg, const char *what)
{
    (void)arg;
    while (strcmp(what, "slices of a checkpoint are built") == 0 && atomic_load(&held))
        wait_pause(PAWL_MILLISECOND);
}

static void count_calls(void *arg)
{
    *(uint64_t *)arg = coordinator_figures(bed.engine->views->coordinator)->calls;
}

static uint64_t calls(void)
{
    uint64_t count = 0;
    assert_ok(pawl_env_call(bed.engine->env, 0, count_calls, &count));
    return count;
}

TEST(a_view_is_not_built_before_what_is_durable_covers_it)
{
    begin_watched(test_seed(42));
    bed.knobs.step = hold_checkpoints;
    atomic_store(&held, true);
    view_bed_open(&bed);
    assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
    until_complete(&bed); /* the live stores */
    uint64_t before = calls();
    while (calls() < before + 2 * 8 && view_bed_status(&bed, "t.v").state == PAWL_VIEW_BUILDING)
        wait_pause(PAWL_MILLISECOND); /* each task was asked for again */
    cut();
    assert_int_equal(view_bed_status(&bed, "t.v").state, PAWL_VIEW_BUILDING);
    atomic_store(&held, false);
    view_bed_wait(&bed, "t.v");
    cut();
    view_bed_close(&bed);
    check_images("the checkpoints lack what the live stores have");
    end_watched();
}

/* --- a full disk --- */

static bool keep_words(void *arg, const pawl_view_status *status)
{
    snprintf(arg, 400, "%s", status->words);
    return true;
}

static void wait_for_words(const char *view, const char *part)
{
    char words[400] = "";
    uint64_t until = clock_boot_ns() + VIEW_PATIENCE;
    while (!strstr(words, part) && clock_boot_ns() < until) {
        wait_pause(PAWL_MILLISECOND);
        assert_bed_ok(&bed, pawl_view_status_read(bed.engine, view, keep_words, words, &bed.error));
    }
    print_message("# %s\n", words);
    assert_contains(words, part);
}

TEST(a_build_says_that_the_disk_of_the_checkpoints_is_full_and_goes_on_when_there_is_room)
{
    begin_watched(test_seed(44));
    view_bed_open(&bed);
    power_fill("/checkpoint/");
    create_views(&bed);
    wait_for_words("t.v", "the checkpoint of shard ");
    assert_int_equal(view_bed_status(&bed, "t.v").state, PAWL_VIEW_BUILDING);
    cut();
    power_fill(NULL);
    wait_for_views(&bed);
    wait_for_words("t.v", "");
    finish_and_check(&bed);
    check_images("the disk is full");
    end_watched();
}

static void jot(uint64_t wsid, size_t size)
{
    static char text[50000];
    pawl_answer answer;
    memset(text, 'x', size);
    text[size] = '\0';
    (void)pawl_request_begin(bed.request, wsid, "t.Jot");
    (void)pawl_request_record(bed.request, 1, "t.Note");
    (void)pawl_request_set_string(bed.request, "text", text);
    assert_bed_ok(&bed, pawl_command(bed.engine, bed.request, &answer, &bed.error));
}

/* Blocks are reserved 16 MiB at a time: a view has to be larger. */
TEST(a_build_says_that_the_disk_of_the_live_stores_is_full_and_goes_on_when_there_is_room)
{
    static const char *const key[] = {"id"}, *const include[] = {"text"};
    pawl_view_definition definition = {.name = "t.notes",
                                       .base = "t.Note",
                                       .key = key,
                                       .key_count = 1,
                                       .include = include,
                                       .include_count = 1};
    begin();
    view_bed_open(&bed);
    for (unsigned i = 0; i < 1200; i++)
        jot(1, 40000);
    atomic_store(&no_blocks, true);
    assert_bed_ok(&bed, pawl_view_create(bed.engine, &definition, &bed.error));
    wait_for_words("t.notes", "data.mdb cannot grow by ");
    assert_int_equal(view_bed_status(&bed, "t.notes").state, PAWL_VIEW_BUILDING);
    atomic_store(&no_blocks, false);
    view_bed_wait(&bed, "t.notes");
    assert_int_equal(view_bed_status(&bed, "t.notes").rows, 1200);
    finish_and_check(&bed);
    end_watched();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_power_goes_in_every_phase_of_a_build),
        RUN(the_power_goes_while_a_view_is_rebuilt_and_exchanged_and_another_is_dropped),
        RUN(a_view_is_not_built_before_what_is_durable_covers_it),
        RUN(a_build_says_that_the_disk_of_the_checkpoints_is_full_and_goes_on_when_there_is_room),
        RUN(a_build_says_that_the_disk_of_the_live_stores_is_full_and_goes_on_when_there_is_room),
    };
    return TEST_MAIN(tests);
}
