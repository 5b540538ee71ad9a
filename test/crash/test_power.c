/* test_power.c: power is cut under load, and what the disk has then is opened.
 *
 * Clients send commands all the time, and count the answers. The power is cut at random moments, in the middle
 * of a checkpoint's commit, and while a new checkpoint is copied. Each image must have every event that was
 * answered before, replay no more than the lag, and have the state that a full replay gives. */
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>

#include "test/crash/power.h"
#include "test/engine/twice.h"
#include "test/lib/event.h"

#define CLIENTS    3
#define LAG        64
#define IMAGES_MAX 64

struct client {
    pthread_t thread;
    struct twice twice; /* its own request, and one workspace */
    unsigned workspace;
};

static struct client clients[CLIENTS];
static _Atomic uint64_t answered[CLIENTS];
static atomic_bool stop;
static struct twice t;

/* What an image must hold. */
static struct {
    char dir[300];
    uint64_t least[CLIENTS]; /* answered before the cut; and after it, with one more under way */
    uint64_t most[CLIENTS];
} images[IMAGES_MAX];
static _Atomic unsigned image_count; /* raised under the disk's lock */
static _Atomic unsigned wanted;      /* images of the round */
static uint64_t dice;

static void cut(void)
{
    if (image_count == IMAGES_MAX)
        return;
    snprintf(images[image_count].dir, sizeof images[0].dir, "%s/cut-%u", t.base, image_count);
    for (unsigned i = 0; i < CLIENTS; i++)
        images[image_count].least[i] = atomic_load(&answered[i]);
    power_cut(images[image_count].dir);
    for (unsigned i = 0; i < CLIENTS; i++)
        images[image_count].most[i] = atomic_load(&answered[i]) + 1;
    image_count++;
}

static void maybe_cut(void *arg)
{
    if (image_count < wanted && test_below(&dice, *(unsigned *)arg) == 0)
        cut();
}

static void *client_main(void *arg)
{
    struct client *c = arg;
    while (!atomic_load(&stop)) {
        int status = twice_bill(&c->twice, c->workspace);
        if (status == PAWL_OK)
            atomic_fetch_add(&answered[c->workspace], 1);
        else if (status != PAWL_EBUSY)
            abort();
    }
    return NULL;
}

static void clients_start(void)
{
    atomic_store(&stop, false);
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.twice = t, .workspace = i};
        assert_ok(pawl_request_new(t.engine, &clients[i].twice.request));
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
    }
}

static void clients_stop(void)
{
    atomic_store(&stop, true);
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        pawl_request_free(clients[i].twice.request);
        t.billed[i] = atomic_load(&answered[i]);
    }
}

static void wait_for_answers(uint64_t more)
{
    uint64_t from = atomic_load(&answered[0]);
    while (atomic_load(&answered[0]) < from + more)
        twice_pause();
}

static void begin(uint64_t seed)
{
    dice = seed;
    image_count = 0;
    memset((void *)answered, 0, sizeof answered);
    twice_make(&t);
    t.options.checkpoint_lag_max = LAG;
    t.knobs.boot_id = "this boot";
    t.knobs.checkpoint_age = 2 * PAWL_MILLISECOND;
    power_watch(t.dir, seed);
    twice_begin(&t);
}

static bool count_bills(void *arg, const pawl_event *event)
{
    uint64_t *bills = arg;
    if (event_is(event, "t.Bill"))
        bills[event->wsid - 1]++;
    return true;
}

/* Opened as after a boot, used, and compared. */
static uint64_t check_image(unsigned number)
{
    struct twice image = t;
    uint64_t bills[TWICE_WORKSPACES] = {0};
    snprintf(image.dir, sizeof image.dir, "%s", images[number].dir);
    image.knobs = (struct engine_knobs){.boot_id = "the next boot", .checkpoint_age = PAWL_MILLISECOND};
    twice_open(&image);
    pawl_figures figures = twice_figures(&image);
    assert_true(figures.replayed <= LAG * image.options.shards);
    for (uint32_t p = 0; p < pawl_partitions(image.engine); p++)
        assert_ok(
            pawl_events_read(image.engine, (uint16_t)p, 1, SIZE_MAX, count_bills, bills, NULL, &image.error));
    for (unsigned i = 0; i < TWICE_WORKSPACES; i++) {
        if (i < CLIENTS)
            assert_true(bills[i] >= images[number].least[i] && bills[i] <= images[number].most[i]);
        image.billed[i] = bills[i];
    }
    assert_ok(twice_bill(&image, 0));
    (void)twice_wait(&image, 0);
    twice_close(&image);
    twice_check(&image);
    test_dir_remove(image.dir);
    return figures.replayed;
}

static void check_images(const char *what)
{
    uint64_t replayed = 0;
    assert_int_equal(image_count, wanted);
    for (unsigned i = 0; i < image_count; i++)
        replayed += check_image(i);
    struct power_counts counts = power_counts();
    print_message("# %u cuts %s: %" PRIu64 " events replayed; %" PRIu64 " writes, %" PRIu64
                  " syncs; in the images %" PRIu64 " unsynced sectors kept, %" PRIu64 " lost\n",
                  image_count, what, replayed, counts.writes, counts.syncs, counts.kept_sectors,
                  counts.lost_sectors);
    assert_true(counts.lost_sectors > 0);
    image_count = 0;
}

static void end(void)
{
    clients_stop();
    twice_close(&t);
    power_watch(NULL, 0);
    twice_check(&t);
    twice_remove(&t);
}

TEST(the_power_goes_at_any_moment)
{
    begin(test_seed(31));
    clients_start();
    wanted = 8;
    for (unsigned i = 0; i < wanted; i++) {
        wait_for_answers(1 + test_below(&dice, 60));
        cut();
    }
    check_images("at any moment");
    end();
}

TEST(the_power_goes_while_something_is_written)
{
    static const struct {
        const char *part;
        unsigned one_in;
    } cases[] = {{"/checkpoint/", 20}, {"/log/", 40}};
    begin(test_seed(32));
    clients_start();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned one_in = cases[i].one_in;
        wanted = 6;
        power_before_write(cases[i].part, maybe_cut, &one_in);
        while (image_count < wanted)
            wait_for_answers(1);
        power_before_write(NULL, NULL, NULL);
        check_images(cases[i].part);
    }
    end();
}

/* So that the live stores have been written to when the power goes. */
static void copy_behind_commands(void *arg, const char *what)
{
    if (strcmp(what, "a copy begins") == 0)
        wait_for_answers(3);
}

/* The live stores are thrown away, and copies are made while commands are taken: until they are, the live
 * stores are durable themselves. */
TEST(the_power_goes_while_a_new_checkpoint_is_made)
{
    unsigned one_in = 2;
    begin(test_seed(33));
    twice_bill_many(&t, 4 * LAG * t.options.shards); /* more than may be replayed */
    (void)twice_wait(&t, 0);
    twice_close(&t);
    for (unsigned shard = 0; shard < t.options.shards; shard++) {
        char path[400];
        snprintf(path, sizeof path, "%s/state/%u", t.dir, shard);
        test_dir_remove(path);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        atomic_store(&answered[i], t.billed[i]);
    wanted = 4;
    power_before_write(".new/", maybe_cut, &one_in);
    t.knobs.step = copy_behind_commands;
    twice_open(&t);
    t.knobs.step = NULL;
    assert_int_equal(twice_figures(&t).taken_over, t.options.shards);
    clients_start();
    (void)twice_wait(
        &t, UINT64_MAX); /* until they are made: with commands coming in, they need never be at the end */
    wait_for_answers(20);
    wanted = image_count;
    assert_true(wanted > 0);
    check_images("while a checkpoint is made");
    end();
}

TEST(a_disk_that_is_full_for_the_checkpoints_holds_commands_back_at_the_lag_and_lets_them_go_on)
{
    begin(test_seed(34));
    twice_bill_many(&t, 12);
    for (unsigned i = 0; i < CLIENTS; i++)
        atomic_store(&answered[i], t.billed[i]);
    (void)twice_wait(&t, 0);
    power_fill("/checkpoint/");
    clients_start();
    pawl_figures figures = twice_figures(&t);
    while (figures.held == 0 || figures.checkpoint_failures == 0) {
        assert_true(figures.checkpoint_lag <= LAG);
        twice_pause();
        figures = twice_figures(&t);
    }
    assert_true(figures.checkpoint_lag <= LAG);
    wanted = 1;
    cut(); /* and the power goes now, of all moments */
    power_fill(NULL);
    wait_for_answers(2 * LAG);
    check_images("while the disk of the checkpoints is full");
    end();
}

/* What the power cut has left is opened where the checkpoints' disk is full: they are read, and take over. */
TEST(a_disk_that_is_full_for_the_checkpoints_keeps_no_directory_from_being_opened)
{
    begin(test_seed(37));
    twice_bill_many(&t, 4 * LAG * t.options.shards);
    for (unsigned i = 0; i < CLIENTS; i++)
        atomic_store(&answered[i], t.billed[i]);
    (void)twice_wait(&t, 0);
    cut();
    twice_close(&t);
    struct twice image = t;
    snprintf(image.dir, sizeof image.dir, "%s", images[0].dir);
    image.knobs.boot_id = "the next boot";
    power_watch(image.dir, 1);
    power_fill("/checkpoint/");
    twice_open(&image);
    pawl_figures figures = twice_figures(&image);
    assert_int_equal(figures.taken_over, image.options.shards);
    assert_true(figures.replayed <= LAG * image.options.shards);
    twice_bill_many(&image, 12);
    power_fill(NULL);
    (void)twice_wait(&image, 0);
    twice_close(&image);
    power_watch(NULL, 0);
    twice_check(&image);
    twice_remove(&t);
}

/* --- a log that is damaged while it is in use --- */

/* A bit of the log's last segment, so far before its end that it lies among what the checkpoints lack. */
static void find_near_end(off_t before_end, char *path, size_t size, off_t *ret_at)
{
    static uint8_t bytes[1 << 20];
    glob_t found;
    snprintf(path, size, "%s/log/journal/*.seg", t.dir);
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    off_t at = -1;
    for (size_t i = found.gl_pathc; i-- > 0 && at < 0;) { /* there may be an empty one, made ahead */
        snprintf(path, size, "%s", found.gl_pathv[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = pread(fd, bytes, sizeof bytes, 0);
        close(fd);
        while (got > before_end + 4096 && !bytes[got - 1])
            got--;
        at = got > before_end + 4096 ? got - before_end : -1;
    }
    globfree(&found);
    assert_true(at > 0);
    *ret_at = at;
}

static void flip_bit(const char *path, off_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 16;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

TEST(a_bit_that_flips_in_the_log_is_told_with_its_place_and_no_checkpoint_is_thrown_away_for_it)
{
    char path[500];
    off_t at;
    pawl_alert alert;
    size_t alerts;
    begin(test_seed(35));
    t.options.wait = 50 * PAWL_MILLISECOND;
    twice_bill_many(&t, 12);
    for (unsigned i = 0; i < CLIENTS; i++)
        atomic_store(&answered[i], t.billed[i]);
    (void)twice_wait(&t, 0);
    power_fill("/checkpoint/");
    clients_start();
    while (twice_figures(&t).held < t.options.shards)
        twice_pause();
    find_near_end(1500, path, sizeof path, &at);
    flip_bit(path, at);
    power_fill(NULL);
    do {
        twice_pause();
        pawl_alerts(t.engine, &alert, 1, &alerts);
    } while (alerts == 0);
    assert_int_equal(alert.kind, PAWL_ALERT_LOG);
    assert_int_equal(alert.table, 0);
    print_message("# %s\n", alert.text);
    assert_contains(alert.text, ".seg");
    assert_true(twice_figures(&t).checkpoint_lag <= LAG);
    flip_bit(path, at);
    wait_for_answers(2 * LAG);
    pawl_figures figures = twice_figures(&t);
    assert_int_equal(figures.checkpoint_made, 0);
    end();
}

/* --- closing --- */

/* A command that waits for a checkpoint which cannot come on. */
struct held {
    pawl_request *request;
    unsigned workspace;
};

static _Atomic unsigned ended, refused;

static void held_ended(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                       const pawl_error *error)
{
    const struct held *h = arg;
    if (status == PAWL_OK)
        atomic_fetch_add(&answered[h->workspace], 1);
    else if (status == PAWL_ECLOSED)
        atomic_fetch_add(&refused, 1);
    else
        abort();
    atomic_fetch_add(&ended, 1);
    pawl_request_free(request);
}

TEST(closing_while_commands_are_held_back_answers_them_all_and_loses_none)
{
    static struct held held[6 * LAG];
    const unsigned count = sizeof held / sizeof held[0];
    begin(test_seed(36));
    (void)twice_wait(&t, 0);
    power_fill("/checkpoint/");
    atomic_store(&ended, 0);
    atomic_store(&refused, 0);
    for (unsigned i = 0; i < count; i++) {
        held[i].workspace = i % CLIENTS;
        assert_ok(pawl_request_new(t.engine, &held[i].request));
        pawl_request_begin(held[i].request, held[i].workspace + 1, "t.Bill");
        pawl_request_record(held[i].request, 1, "t.Invoice");
        pawl_request_set_int64(held[i].request, "cents", i);
        assert_ok(pawl_command_async(t.engine, held[i].request, held_ended, &held[i], &t.error));
    }
    while (twice_figures(&t).held == 0)
        twice_pause();
    assert_true(ended < count);
    twice_close(&t);
    print_message("# %u of %u were refused\n", refused, count);
    assert_int_equal(ended, count);
    assert_true(refused > 0);
    power_fill(NULL);
    power_watch(NULL, 0);
    for (unsigned i = 0; i < CLIENTS; i++)
        t.billed[i] = atomic_load(&answered[i]);
    twice_check(&t);
    twice_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_power_goes_at_any_moment),
        RUN(the_power_goes_while_something_is_written),
        RUN(the_power_goes_while_a_new_checkpoint_is_made),
        RUN(a_disk_that_is_full_for_the_checkpoints_holds_commands_back_at_the_lag_and_lets_them_go_on),
        RUN(a_disk_that_is_full_for_the_checkpoints_keeps_no_directory_from_being_opened),
        RUN(a_bit_that_flips_in_the_log_is_told_with_its_place_and_no_checkpoint_is_thrown_away_for_it),
        RUN(closing_while_commands_are_held_back_answers_them_all_and_loses_none),
    };
    return TEST_MAIN(tests);
}
