/* The journal after a failure, in the same process or the next: what readers see meanwhile, what the outcomes
 * of its appends are, and what a second failure may destroy. */
#include <errno.h>
#include <time.h>

#include "adapter/journal/record.h"
#include "adapter/journal/segment.h"
#include "adapter/mem/env.h"
#include "test/lib/bed.h"
#include "test/lib/test.h"

static bool keep_nothing(void *arg, size_t i)
{
    return false;
}

static bool keep_everything(void *arg, size_t i)
{
    return true;
}

static void fail_call(struct bed *bed, uint64_t from_now, int number)
{
    ramdisk_fail_at(bed->disk, ramdisk_calls(bed->disk) + from_now, number);
}

static void open_and_claim(struct bed *bed)
{
    bed_init(bed, ramdisk_new(), 1);
    assert_ok(bed_open(bed));
    assert_ok(bed_claim(bed, 0));
}

/* ---- followers ---- */

struct watcher {
    pawl_follow follow;
    struct bed *bed;
    uint64_t seen;
    bool done;
    bool on_a_shard;
    pawl_error error;
};

static bool watch(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    struct watcher *w = follow->arg;
    w->seen = entry->offset;
    w->on_a_shard |= pawl_env_self(mem_env_port(w->bed->env)) != PAWL_NO_SHARD;
    return true;
}

static void watched(pawl_follow *follow)
{
    ((struct watcher *)follow->arg)->done = true;
}

static void run(struct bed *bed)
{
    assert_true(mem_world_run(bed->world, 100000));
}

static void watch_stream(struct watcher *w, struct bed *bed)
{
    *w = (struct watcher){.bed = bed,
                          .follow = {.stream = bed->model.streams[0].id,
                                     .from = 1,
                                     .visit = watch,
                                     .done = watched,
                                     .arg = w,
                                     .error = &w->error}};
    assert_ok(pawl_log_follow(bed->log, &w->follow));
    run(bed);
}

static void stop_watching(struct watcher *w)
{
    if (w->done)
        fail_msg("the follow ended: %s", w->error.text);
    assert_ok(pawl_log_unfollow(w->bed->log, &w->follow));
    run(w->bed);
    assert_true(w->done);
}

/* The entry is durable, and the file does not say so: recovery copies it, and the follower has passed it. */
TEST(a_follower_that_is_ahead_of_the_witnesses_goes_on_behind_a_failure)
{
    struct bed bed;
    struct watcher w;
    open_and_claim(&bed);
    watch_stream(&w, &bed);
    fail_call(&bed, 3, EIO); /* write, sync, watermark */
    assert_ok(bed_append(&bed, 0, 1, 50));
    run(&bed);
    assert_int_equal(w.seen, 1);
    assert_ok(bed_claim(&bed, 0));
    assert_ok(bed_append(&bed, 0, 1, 50));
    run(&bed);
    stop_watching(&w);
    assert_int_equal(w.seen, 2);
    bed_release(&bed);
}

TEST(a_follower_sees_what_a_claim_has_found_and_made_durable)
{
    struct bed bed;
    struct watcher w;
    open_and_claim(&bed);
    watch_stream(&w, &bed);
    fail_call(&bed, 2, EIO);
    assert_status(bed_append(&bed, 0, 1, 50), PAWL_EUNKNOWN);
    assert_ok(bed_claim(&bed, 1)); /* of another stream, and nothing is ever written to this one again */
    run(&bed);
    assert_int_equal(w.seen, 1);
    stop_watching(&w);
    bed_release(&bed);
}

static void append_alone(pawl_task *task)
{
    struct bed *bed = *(struct bed **)(task + 1);
    assert_ok(bed_append(bed, 0, 1, 50));
}

TEST(a_follower_that_no_shard_started_is_visited_on_no_shard)
{
    struct bed bed;
    struct watcher w;
    struct {
        pawl_task task;
        struct bed *bed;
    } posted = {.task.fn = append_alone, .bed = &bed};
    open_and_claim(&bed);
    watch_stream(&w, &bed);
    assert_ok(pawl_env_post(mem_env_port(bed.env), 0, &posted.task));
    run(&bed);
    assert_int_equal(w.seen, 1);
    assert_false(w.on_a_shard);
    stop_watching(&w);
    bed_release(&bed);
}

static int no_work(pawl_env *env, pawl_work *work)
{
    return PAWL_ECLOSED;
}

TEST(a_follow_that_could_not_start_cannot_be_unfollowed)
{
    struct bed bed;
    open_and_claim(&bed);
    pawl_env *env = mem_env_port(bed.env);
    const struct pawl_env_ops *ops = env->ops;
    struct pawl_env_ops closed = *ops;
    closed.work = no_work;
    struct watcher w = {
        .bed = &bed,
        .follow = {.stream = bed.model.streams[0].id, .from = 1, .visit = watch, .done = watched, .arg = &w}};
    env->ops = &closed;
    assert_status(pawl_log_follow(bed.log, &w.follow), PAWL_ECLOSED);
    assert_status(pawl_log_unfollow(bed.log, &w.follow), PAWL_EMISUSE);
    env->ops = ops;
    assert_false(w.done);
    bed_release(&bed);
}

/* ---- outcomes ---- */

TEST(reads_go_on_when_a_claim_cannot_even_list_the_directory)
{
    struct bed bed;
    open_and_claim(&bed);
    assert_ok(bed_append(&bed, 0, 3, 50));
    fail_call(&bed, 2, EIO);
    assert_status(bed_append(&bed, 0, 1, 50), PAWL_EUNKNOWN);
    fail_call(&bed, 1, EIO);
    assert_status(bed_claim(&bed, 0), PAWL_EIO);
    bed_check(&bed);
    bed_release(&bed);
}

static void never(pawl_append *append)
{
    fail();
}

TEST(an_appends_status_is_that_of_its_first_entry_that_is_not_ok)
{
    struct bed bed;
    open_and_claim(&bed);
    const struct bed_stream *s = &bed.model.streams[0];
    pawl_append_entry entries[2] = {
        {.entry = {.stream = s->id, .epoch = s->epoch, .offset = 1, .body = {"x", 1}}},
        {.entry = {.stream = s->id, .epoch = s->epoch, .offset = 9, .body = {"x", 1}}},
    };
    pawl_error error = {0};
    pawl_append append = {.entries = entries, .count = 2, .alone = true, .done = never, .error = &error};
    fail_call(&bed, 2, EIO);
    assert_int_equal(pawl_log_append(bed.log, &append), PAWL_APPEND_DONE);
    assert_status(entries[0].status, PAWL_EUNKNOWN);
    assert_status(entries[1].status, PAWL_EFENCED);
    assert_status(append.status, PAWL_EUNKNOWN);
    assert_contains(error.text, "cannot sync");
    bed_release(&bed);
}

/* ---- accidents in a row ---- */

static int (*true_rename)(void *ctx, int dir, const char *from, const char *to);

static int rename_and_deny(void *ctx, int dir, const char *from, const char *to)
{
    int rc = true_rename(ctx, dir, from, to);
    return rc < 0 ? rc : -EIO;
}

TEST(a_rename_that_failed_may_have_happened)
{
    struct bed bed;
    open_and_claim(&bed);
    struct disk *disk = (struct disk *)ramdisk_disk(bed.disk);
    true_rename = disk->rename;
    int status = PAWL_OK;
    while (status == PAWL_OK) {
        size_t segments = 0;
        while (ramdisk_name(bed.disk, ".seg", segments))
            segments++;
        disk->rename = segments == 1 ? rename_and_deny : true_rename;
        status = bed_append(&bed, 0, 1, 2000);
    }
    disk->rename = true_rename;
    if (bed_append(&bed, 0, 1, 8) != PAWL_OK) { /* there is room for it where the large one had none */
        assert_ok(bed_claim(&bed, 0));
        bed_check(&bed);
        assert_ok(bed_append(&bed, 0, 1, 8));
    }
    bed_abandon(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    bed_recover(&bed);
    bed_release(&bed);
}

struct killing {
    struct ramdisk *disk;
    uint64_t left;
};

static void kill_at(void *arg, const struct ramdisk_write *write)
{
    struct killing *k = arg;
    if (k->left && --k->left == 0)
        ramdisk_off(k->disk);
}

/* A process is killed while it makes the journal; the next one finishes that, and then the power fails. */
TEST(what_is_acknowledged_in_a_journal_that_another_process_began_survives)
{
    bool reached = true;
    for (uint64_t k = 1; reached; k++) {
        struct bed bed;
        bed_init(&bed, ramdisk_new(), k);
        ramdisk_remove_dir(bed.disk);
        struct killing killing = {.disk = bed.disk, .left = k};
        ramdisk_on_call(bed.disk, kill_at, &killing);
        if (bed_open(&bed) == PAWL_OK)
            bed_abandon(&bed);
        reached = killing.left == 0;
        killing.left = 0;
        ramdisk_kill(bed.disk);
        bed_recover(&bed);
        bed_abandon(&bed);
        ramdisk_crash(bed.disk, keep_nothing, NULL, false);
        bed_recover(&bed);
        bed_release(&bed);
        assert_true(k < 1000);
    }
}

/* The bytes of the newest segment, and where its last entry begins. */
static uint8_t *last_entry(struct bed *bed, size_t *ret_at)
{
    size_t size, last = 0;
    while (ramdisk_name(bed->disk, ".seg", last + 1))
        last++;
    uint8_t *bytes = ramdisk_bytes(bed->disk, ramdisk_name(bed->disk, ".seg", last), &size);
    struct segment_header header;
    struct record r;
    uint64_t fault;
    assert_ok(segment_header_decode((pawl_bytes){bytes, size}, &header, NULL, &fault, NULL));
    *ret_at = 0;
    for (size_t at = header.size, need; at < size; at += need) {
        if (record_decode((pawl_bytes){bytes + at, size - at}, journal_seed(header.journal), &r, &need)
            != RECORD_VALID)
            break;
        if (r.type == RECORD_ENTRY)
            *ret_at = at;
    }
    assert_true(*ret_at != 0);
    return bytes;
}

TEST(damage_to_what_a_recovery_has_copied_is_corruption_although_nothing_was_written_since)
{
    struct bed bed;
    size_t at;
    open_and_claim(&bed);
    assert_ok(bed_append(&bed, 0, 1, 100));
    bed_abandon(&bed);
    ramdisk_crash(bed.disk, keep_nothing, NULL, false); /* with it the watermark */
    assert_ok(bed_open(&bed));
    bed_check(&bed);
    assert_int_equal(bed.model.streams[0].truth, 1);
    bed_abandon(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    last_entry(&bed, &at)[at + 70] ^= 1;
    assert_status(bed_open(&bed), PAWL_ECORRUPT);
    bed_release(&bed);
}

TEST(a_journal_that_has_lost_its_id_is_not_begun_anew_over_a_damaged_record)
{
    struct bed bed;
    size_t at;
    open_and_claim(&bed);
    assert_ok(bed_append(&bed, 0, 2, 100));
    bed_abandon(&bed);
    ramdisk_crash(bed.disk, keep_everything, NULL, true);
    uint8_t *bytes = last_entry(&bed, &at);
    bytes[segment_header_size(0) + 20] ^= 1; /* its first record */
    ramdisk_unlink(bed.disk, "id");
    uint64_t sum = ramdisk_sum(bed.disk);
    assert_status(bed_open(&bed), PAWL_ECORRUPT);
    assert_int_equal(ramdisk_sum(bed.disk), sum);
    bed_release(&bed);
}

/* Small numbers in a body look like lengths of records. Searching it must not sum what they claim. */
TEST(a_torn_entry_of_small_numbers_is_searched_in_linear_time)
{
    struct bed bed;
    open_and_claim(&bed);
    const struct bed_stream *s = &bed.model.streams[0];
    size_t size = (size_t)4 << 20, at;
    uint32_t *body = malloc(size);
    assert_non_null(body);
    for (size_t i = 0; i < size / sizeof *body; i++)
        body[i] = 500000;
    pawl_append_entry entry = {
        .entry = {.stream = s->id, .epoch = s->epoch, .offset = 1, .body = {body, size}}};
    pawl_append append = {.entries = &entry, .count = 1, .alone = true, .done = never};

    assert_int_equal(pawl_log_append(bed.log, &append), PAWL_APPEND_DONE);
    assert_ok(append.status);
    bed_abandon(&bed);
    ramdisk_crash(bed.disk, keep_nothing, NULL, false);
    last_entry(&bed, &at)[at + 70] ^= 1;
    clock_t before = clock();
    assert_ok(bed_open(&bed));
    assert_true((clock() - before) / CLOCKS_PER_SEC < 60); /* of this process; else it takes many minutes */
    free(body);
    bed_release(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_follower_that_is_ahead_of_the_witnesses_goes_on_behind_a_failure),
        RUN(a_follower_sees_what_a_claim_has_found_and_made_durable),
        RUN(a_follower_that_no_shard_started_is_visited_on_no_shard),
        RUN(a_follow_that_could_not_start_cannot_be_unfollowed),
        RUN(reads_go_on_when_a_claim_cannot_even_list_the_directory),
        RUN(an_appends_status_is_that_of_its_first_entry_that_is_not_ok),
        RUN(a_rename_that_failed_may_have_happened),
        RUN(what_is_acknowledged_in_a_journal_that_another_process_began_survives),
        RUN(damage_to_what_a_recovery_has_copied_is_corruption_although_nothing_was_written_since),
        RUN(a_journal_that_has_lost_its_id_is_not_begun_anew_over_a_damaged_record),
        RUN(a_torn_entry_of_small_numbers_is_searched_in_linear_time),
    };
    return TEST_MAIN(tests);
}
