/* test_admin.c: what pawl/admin.h says of progress, of cancelling and of what is left behind. */
#include <pawl/admin.h>

#include <dirent.h>
#include <unistd.h>

#include "test/engine/twice.h"

#define BILLS 120

static struct twice t;

/* Sees how far it has come; cancels at a call of this number. */
struct watch {
    uint64_t calls;
    uint64_t cancel_at; /* 0: never */
    uint64_t done, total;
    bool went_back; /* done did, or it passed a total that was known */
    bool called_after;
};

static bool look(void *arg, uint64_t done, uint64_t total)
{
    struct watch *w = arg;
    w->went_back |= done < w->done || (total > 0 && done > total);
    w->called_after |= w->cancel_at && w->calls >= w->cancel_at;
    w->done = done;
    w->total = total;
    return ++w->calls != w->cancel_at;
}

/* How many things lie beside the directory, itself among them. */
static size_t neighbours(void)
{
    size_t count = 0;
    DIR *dir = opendir(t.base);
    assert_non_null(dir);
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void begin(void)
{
    twice_make(&t);
    twice_begin(&t);
    twice_bill_many(&t, BILLS);
    twice_wait(&t, 0);
    twice_close(&t);
}

/* One of the functions, as a caller that watches it. */
typedef int (*action)(struct watch *watch, pawl_error *error);

static char target[400], saved[400];

static int verify_log(struct watch *watch, pawl_error *error)
{
    pawl_log_report report = {0};
    int status = pawl_verify_log(t.dir, look, watch, &report, error);
    if (status == PAWL_OK) {
        assert_int_equal(report.faults, 0);
        assert_true(report.entries >= BILLS);
        assert_int_equal(watch->done, report.bytes);
    }
    pawl_log_report_release(&report);
    return status;
}

static int doctor(struct watch *watch, pawl_error *error)
{
    pawl_doctor_report report = {0};
    int status = pawl_doctor(t.dir, NULL, look, watch, &report, error);
    if (status == PAWL_OK)
        assert_int_equal(report.first.code, PAWL_OK);
    pawl_doctor_report_release(&report);
    return status;
}

static int replay(struct watch *watch, pawl_error *error)
{
    pawl_state_report report;
    pawl_replay_options options = {.dir = t.dir, .to = target, .audit = true, .progress = look, .arg = watch};
    int status = pawl_replay(&options, &report, error);
    if (status == PAWL_OK) {
        assert_int_equal(report.events, BILLS + TWICE_WORKSPACES);
        assert_int_equal(report.live.differences + report.checkpoint.differences, 0);
        assert_int_equal(watch->done, report.events);
    }
    return status;
}

static int backup(struct watch *watch, pawl_error *error)
{
    pawl_backup_report report;
    pawl_backup_options options = {.dir = t.dir, .to = target, .progress = look, .arg = watch};
    int status = pawl_backup(&options, &report, error);
    if (status == PAWL_OK)
        assert_int_equal(report.events, BILLS + TWICE_WORKSPACES);
    return status;
}

static int restore(struct watch *watch, pawl_error *error)
{
    pawl_backup_report report;
    pawl_backup_options options = {.dir = saved, .to = target, .progress = look, .arg = watch};
    return pawl_restore(&options, &report, error);
}

static int restore_until(struct watch *watch, pawl_error *error)
{
    pawl_backup_report report;
    pawl_backup_options options = {.dir = saved, .to = target, .until = 5, .progress = look, .arg = watch};
    return pawl_restore(&options, &report, error);
}

static void remove_target(void)
{
    if (access(target, F_OK) == 0)
        test_dir_remove(target);
}

/* At the first, at a middle and at the last call: nothing is left behind, and then it can be done. */
static void check(action act)
{
    struct watch whole = {0};
    pawl_error error = {0};
    snprintf(target, sizeof target, "%s/target", t.base);
    assert_ok(act(&whole, &error));
    assert_true(whole.calls > 0 && !whole.went_back);
    assert_true(whole.total == 0 || whole.done == whole.total);
    remove_target();
    size_t before = neighbours();
    uint64_t calls[] = {1, whole.calls / 2 + 1, whole.calls};
    for (size_t i = 0; i < 3; i++) {
        struct watch watch = {.cancel_at = calls[i]};
        assert_status(act(&watch, &error), PAWL_ECANCELED);
        assert_int_equal(error.code, PAWL_ECANCELED);
        assert_contains(error.text, "cancelled");
        assert_false(watch.called_after);
        assert_int_equal(neighbours(), before);
    }
    assert_ok(act(&(struct watch){0}, &error));
    remove_target();
}

TEST(a_log_that_is_verified_tells_its_bytes_and_can_be_cancelled)
{
    begin();
    check(verify_log);
    twice_check(&t);
    twice_remove(&t);
}

TEST(a_doctor_that_only_looks_can_be_cancelled)
{
    begin();
    check(doctor);
    twice_remove(&t);
}

TEST(a_doctor_that_is_cancelled_leaves_what_it_has_saved)
{
    pawl_doctor_report report = {0};
    pawl_error error = {0};
    struct watch first = {.cancel_at = 1};
    begin();
    snprintf(target, sizeof target, "%s/target", t.base);
    assert_status(pawl_doctor(t.dir, target, look, &first, &report, &error), PAWL_ECANCELED);
    assert_status(pawl_doctor(t.dir, target, NULL, NULL, &report, &error), PAWL_EEXISTS);
    test_dir_remove(target);
    assert_ok(pawl_doctor(t.dir, target, NULL, NULL, &report, &error));
    pawl_doctor_report_release(&report);
    twice_remove(&t);
}

TEST(a_replay_tells_its_events_and_when_cancelled_leaves_nothing)
{
    begin();
    check(replay);
    twice_check(&t);
    twice_remove(&t);
}

TEST(a_backup_and_a_restore_tell_how_far_they_are_and_when_cancelled_leave_nothing)
{
    pawl_backup_report report;
    begin();
    check(backup);
    snprintf(saved, sizeof saved, "%s/saved", t.base);
    assert_ok(pawl_backup(&(pawl_backup_options){.dir = t.dir, .to = saved}, &report, &t.error));
    check(restore);
    check(restore_until);
    twice_check(&t);
    twice_remove(&t);
}

TEST(a_restore_that_is_cancelled_leaves_the_directory_that_it_was_to_replace)
{
    pawl_backup_report report;
    pawl_error error = {0};
    begin();
    snprintf(saved, sizeof saved, "%s/saved", t.base);
    assert_ok(pawl_backup(&(pawl_backup_options){.dir = t.dir, .to = saved}, &report, &t.error));
    size_t before = neighbours();
    pawl_backup_options options = {.dir = saved, .to = t.dir, .replace = true, .progress = look};
    for (uint64_t at = 1; at < 1000; at++) {
        struct watch watch = {.cancel_at = at};
        options.arg = &watch;
        int status = pawl_restore(&options, &report, &error);
        if (status == PAWL_OK)
            break; /* it had fewer calls */
        assert_int_equal(status, PAWL_ECANCELED);
        assert_int_equal(neighbours(), before);
    }
    assert_int_equal(neighbours(), before + 1); /* DIR.before */
    twice_check(&t);
    twice_remove(&t);
}

TEST(a_directory_that_does_not_exist_is_refused)
{
    pawl_log_report log;
    pawl_doctor_report found;
    pawl_error error = {0};
    begin();
    snprintf(target, sizeof target, "%s/nowhere", t.base);
    assert_status(pawl_verify_log(target, NULL, NULL, &log, &error), PAWL_ENOTFOUND);
    assert_status(pawl_verify_log("kafka://host:1/x", NULL, NULL, &log, &error), PAWL_EINVAL);
    assert_status(pawl_doctor(target, NULL, NULL, NULL, &found, &error), PAWL_ENOTFOUND);
    assert_status(pawl_replay(&(pawl_replay_options){.dir = target}, &(pawl_state_report){0}, &error),
                  PAWL_ENOTFOUND);
    assert_status(
        pawl_replay(&(pawl_replay_options){.dir = t.dir, .to = t.base}, &(pawl_state_report){0}, &error),
        PAWL_EEXISTS);
    twice_remove(&t);
}

TEST(a_directory_says_what_it_was_made_with_and_where_its_log_is)
{
    pawl_directory directory = {.partitions = 77};
    pawl_error error = {0};
    char log[400];
    begin();
    snprintf(target, sizeof target, "%s/target", t.base);
    assert_status(pawl_directory_get(target, &directory, &error), PAWL_ENOTFOUND);
    assert_status(pawl_directory_get(t.base, &directory, &error), PAWL_ENOTFOUND);
    assert_status(pawl_directory_get("kafka://host:1/x", &directory, &error), PAWL_EINVAL);
    assert_int_equal(directory.partitions, 77);

    snprintf(log, sizeof log, "%s/log", t.dir);
    assert_ok(pawl_directory_get(t.dir, &directory, &error));
    assert_int_equal(directory.partitions, t.options.partitions);
    assert_int_equal(directory.shards, t.options.shards);
    assert_false(directory.derived);
    assert_string_equal(directory.log, log);
    assert_status(pawl_directory_get(log, &directory, &error), PAWL_ENOTFOUND);

    pawl_state_report report;
    assert_ok(pawl_replay(&(pawl_replay_options){.dir = t.dir, .to = target}, &report, &error));
    assert_ok(pawl_directory_get(target, &directory, &error));
    assert_true(directory.derived);
    char *real = realpath(log, NULL);
    assert_string_equal(directory.log, real);
    free(real);
    twice_remove(&t);
}

TEST(directories_are_named_by_the_same_words_everywhere)
{
    char dir[400], to[400], other[400];
    pawl_error error = {0};
    pawl_directory directory;
    pawl_engine *engine;
    pawl_backup_report backup_report;
    pawl_state_report state_report;
    begin();
    snprintf(dir, sizeof dir, "file://%s", t.dir);
    snprintf(to, sizeof to, "file://%s/saved", t.base);
    snprintf(other, sizeof other, "file://%s/other", t.base);
    assert_ok(pawl_open(dir, &(pawl_options){.must_exist = true}, &engine, &error));
    assert_ok(pawl_close(engine));
    assert_ok(pawl_directory_get(dir, &directory, &error));
    assert_ok(pawl_backup(&(pawl_backup_options){.dir = dir, .to = to}, &backup_report, &error));
    assert_ok(pawl_restore(&(pawl_backup_options){.dir = to, .to = other}, &backup_report, &error));
    assert_int_equal(access(other + strlen("file://"), F_OK), 0);
    snprintf(other, sizeof other, "file://%s/derived", t.base);
    assert_ok(pawl_replay(&(pawl_replay_options){.dir = dir, .to = other}, &state_report, &error));
    assert_int_equal(access(other + strlen("file://"), F_OK), 0);
    assert_status(
        pawl_backup(&(pawl_backup_options){.dir = dir, .to = "kafka://host:1/x"}, &backup_report, &error),
        PAWL_EINVAL);
    twice_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_log_that_is_verified_tells_its_bytes_and_can_be_cancelled),
        RUN(a_doctor_that_only_looks_can_be_cancelled),
        RUN(a_doctor_that_is_cancelled_leaves_what_it_has_saved),
        RUN(a_replay_tells_its_events_and_when_cancelled_leaves_nothing),
        RUN(a_backup_and_a_restore_tell_how_far_they_are_and_when_cancelled_leave_nothing),
        RUN(a_restore_that_is_cancelled_leaves_the_directory_that_it_was_to_replace),
        RUN(a_directory_that_does_not_exist_is_refused),
        RUN(a_directory_says_what_it_was_made_with_and_where_its_log_is),
        RUN(directories_are_named_by_the_same_words_everywhere),
    };
    return TEST_MAIN(tests);
}
