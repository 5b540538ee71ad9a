/* test_backup.c: a directory is saved while another process writes to it, and brought back. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <pawl/admin.h>

#include "test/engine/twice.h"
#include "test/lib/child.h"
#include "test/lib/event.h"

static struct twice t;

/* --- calls that change names, seen on their way to the kernel --- */

static struct {
    bool seen;           /* the checks below are wanted */
    bool no_exchange;    /* the file system does not know it */
    unsigned die_before; /* the process ends before the call of this number; 0: it does not */
    unsigned calls;
    bool missing;  /* there was no t.dir after a call */
    bool unsynced; /* names around t.dir that may not last */
    bool early;    /* what makes a directory unfinished went while names were unsynced */
} names;

#define STAND_IN(type, name, ...)                                                                              \
    __attribute__((visibility("default"))) type seen_##name(__VA_ARGS__) __asm__(#name);                       \
    type seen_##name(__VA_ARGS__)

static void before_call(void)
{
    if (names.die_before && ++names.calls == names.die_before)
        _exit(0);
}

static int after_call(int rc, bool around)
{
    int failed = errno;
    if (names.seen) {
        names.missing |= access(t.dir, F_OK) != 0;
        names.unsynced |= around;
    }
    errno = failed;
    return rc;
}

STAND_IN(int, rename, const char *from, const char *to)
{
    before_call();
    return after_call((int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0),
                      strncmp(to, t.dir, strlen(t.dir)) == 0 && !strchr(to + strlen(t.dir), '/'));
}

STAND_IN(int, renameat2, int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    before_call();
    if (names.no_exchange) {
        errno = EINVAL;
        return -1;
    }
    return after_call((int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags), true);
}

STAND_IN(int, unlink, const char *path)
{
    before_call();
    if (names.seen && names.unsynced && strstr(path, "/unfinished"))
        names.early = true;
    return after_call((int)syscall(SYS_unlinkat, AT_FDCWD, path, 0), false);
}

STAND_IN(int, fsync, int fd)
{
    char link[64], path[400] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0 && strcmp(path, t.base) == 0)
        names.unsynced = false;
    return (int)syscall(SYS_fsync, fd);
}

/* Writes, and says after each hundred answers how many there were, until it is killed. */
static int write_for_ever(int tell)
{
    twice_open(&t);
    for (uint64_t answers = 0;;) {
        for (unsigned i = 0; i < 100; i++)
            CHECK(twice_bill(&t, i % TWICE_WORKSPACES) == PAWL_OK);
        if (answers == 0)
            (void)twice_wait(&t, 0); /* before that a checkpoint may not have been written to */
        answers += 100;
        CHECK(write(tell, &answers, sizeof answers) == sizeof answers);
    }
}

static void begin(void)
{
    twice_make(&t);
    twice_begin(&t);
    twice_bill_many(&t, 120);
    (void)twice_wait(&t, 0);
    twice_close(&t);
}

static bool count_bills(void *arg, const pawl_event *event)
{
    *(uint64_t *)arg += event_is(event, "t.Bill");
    return true;
}

/* Open it for writing, and see that it is what its own log says. */
static uint64_t check(const char *dir, bool taken_over)
{
    struct twice found = t;
    uint64_t bills = 0;
    pawl_replay_options replay = {.dir = dir, .audit = true};
    pawl_state_report report;
    snprintf(found.dir, sizeof found.dir, "%s", dir);
    twice_open(&found);
    assert_int_equal(twice_figures(&found).taken_over, taken_over ? found.options.shards : 0);
    for (uint32_t p = 0; p < pawl_partitions(found.engine); p++)
        assert_ok(
            pawl_events_read(found.engine, (uint16_t)p, 1, SIZE_MAX, count_bills, &bills, NULL, &found.error));
    assert_ok(twice_bill(&found, 0));
    (void)twice_wait(&found, 0);
    twice_close(&found);
    assert_ok(pawl_replay(&replay, &report, &found.error));
    assert_int_equal(report.live.differences + report.checkpoint.differences, 0);
    assert_int_equal(report.live.compared, found.options.partitions);
    assert_int_equal(report.checkpoint.compared, found.options.partitions);
    return bills;
}

TEST(a_backup_of_a_directory_in_use_has_what_was_answered_before_it_began)
{
    int pipes[2];
    uint64_t answers = 0;
    begin();
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t writer = fork();
    if (writer == 0)
        _exit(write_for_ever(pipes[1]));
    for (unsigned i = 0; i < 3; i++) {
        char to[400];
        pawl_backup_report report;
        pawl_error error = {0};
        assert_int_equal(read(pipes[0], &answers, sizeof answers), sizeof answers);
        snprintf(to, sizeof to, "%s/backup-%u", t.base, i);
        pawl_backup_options options = {.dir = t.dir, .to = to};
        int status = pawl_backup(&options, &report, &error);
        if (status != PAWL_OK)
            print_error("%s\n", error.text);
        assert_ok(status);
        assert_status(pawl_backup(&options, &report, &error), PAWL_EEXISTS);
        assert_true(check(to, true) >= 120 + answers);
    }
    kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    close(pipes[0]);
    close(pipes[1]);
    twice_remove(&t);
}

/* cp -r: of each file another moment. Then neither store can be trusted, and of the log there may be less than
 * a later record says: that is refused, and never taken for an end. */
TEST(a_directory_that_was_copied_while_in_use_is_derived_anew_or_refused)
{
    int pipes[2];
    uint64_t answers = 0;
    unsigned opened = 0;
    begin();
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t writer = fork();
    if (writer == 0)
        _exit(write_for_ever(pipes[1]));
    for (unsigned i = 0; i < 4; i++) {
        struct twice copy = t;
        pawl_error error = {0};
        assert_int_equal(read(pipes[0], &answers, sizeof answers), sizeof answers);
        snprintf(copy.dir, sizeof copy.dir, "%s/copy-%u", t.base, i);
        test_dir_copy(t.dir, copy.dir);
        int status = engine_open(copy.dir, &copy.options, &copy.knobs, &copy.engine, &error);
        if (status == PAWL_ECORRUPT) {
            assert_contains(error.text, ".seg");
            continue;
        }
        assert_ok(status);
        pawl_figures figures = twice_figures(&copy);
        assert_int_equal(figures.taken_over, 0);
        assert_true(figures.replayed >= 120 + answers);
        assert_ok(pawl_close(copy.engine));
        assert_true(check(copy.dir, false) >= 120 + answers);
        opened++;
    }
    print_message("# %u of 4 could be opened\n", opened);
    kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    close(pipes[0]);
    close(pipes[1]);
    twice_remove(&t);
}

static void make_backup(char *to, size_t size)
{
    pawl_backup_report report;
    snprintf(to, size, "%s/backup", t.base);
    pawl_backup_options options = {.dir = t.dir, .to = to};
    assert_ok(pawl_backup(&options, &report, &t.error));
    assert_int_equal(report.events, 120 + TWICE_WORKSPACES);
}

TEST(a_restore_checks_keeps_what_was_there_and_ends_where_it_is_told)
{
    char backup[300], before[400], log[500];
    pawl_backup_report report;
    pawl_error error;
    begin();
    make_backup(backup, sizeof backup);
    pawl_backup_options options = {.dir = backup, .to = t.dir};
    assert_status(pawl_restore(&options, &report, &error), PAWL_EEXISTS);
    options.replace = true;
    assert_ok(pawl_restore(&options, &report, &error));
    snprintf(before, sizeof before, "%s.before", t.dir);
    assert_int_equal(access(before, F_OK), 0);
    assert_int_equal(check(t.dir, false), 120);
    assert_status(pawl_restore(&options, &report, &error), PAWL_EEXISTS); /* DIR.before is not lost */
    test_dir_remove(before);

    options.until = 11;
    assert_ok(pawl_restore(&options, &report, &error));
    uint64_t bills = check(t.dir, false);
    assert_true(bills > 0 && bills <= 11 * t.options.partitions);
    snprintf(log, sizeof log, "%s/backup.new", t.base);
    assert_int_not_equal(access(log, F_OK), 0);
    twice_remove(&t);
}

/* NEW.new and DIR.new are where it is made: only what an interrupted one has left is removed. */
TEST(a_foreign_directory_beside_the_target_is_left_alone)
{
    char backup[300], beside[500], path[400];
    pawl_backup_report report;
    pawl_error error;
    struct twice other;
    begin();
    make_backup(backup, sizeof backup);
    other = t;
    snprintf(other.dir, sizeof other.dir, "%s/back.new", t.base);
    memset(other.billed, 0, sizeof other.billed);
    twice_begin(&other);
    twice_bill_many(&other, 12);
    twice_close(&other);

    snprintf(path, sizeof path, "%s/back", t.base);
    pawl_backup_options options = {.dir = backup, .to = path};
    assert_status(pawl_restore(&options, &report, &error), PAWL_EEXISTS);
    assert_contains(error.text, "back.new");
    options.dir = t.dir;
    assert_status(pawl_backup(&options, &report, &error), PAWL_EEXISTS);
    twice_check(&other);

    snprintf(beside, sizeof beside, "%s/unfinished", other.dir);
    int fd = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    assert_status(pawl_backup(&options, &report, &error), PAWL_ELOCKED); /* another is making it */
    close(fd);
    assert_ok(pawl_backup(&options, &report, &error));
    assert_int_not_equal(access(other.dir, F_OK), 0);
    snprintf(beside, sizeof beside, "%s/unfinished", path);
    assert_int_not_equal(access(beside, F_OK), 0);
    assert_int_equal(check(path, true), 120);
    twice_remove(&t);
}

TEST(a_directory_that_is_replaced_is_there_all_the_time_and_finished_after_its_name_lasts)
{
    char backup[300];
    pawl_backup_report report;
    pawl_error error;
    begin();
    make_backup(backup, sizeof backup);
    pawl_backup_options options = {.dir = backup, .to = t.dir, .replace = true};
    memset(&names, 0, sizeof names);
    names.seen = true;
    int status = pawl_restore(&options, &report, &error);
    names.seen = false;
    assert_ok(status);
    assert_false(names.missing);
    assert_false(names.early);
    assert_int_equal(check(t.dir, false), 120);
    twice_remove(&t);
}

TEST(a_file_system_that_cannot_exchange_directories_is_told_and_nothing_is_changed)
{
    char backup[300], beside[400];
    pawl_backup_report report;
    pawl_error error;
    begin();
    make_backup(backup, sizeof backup);
    pawl_backup_options options = {.dir = backup, .to = t.dir, .replace = true};
    names.no_exchange = true;
    int status = pawl_restore(&options, &report, &error);
    names.no_exchange = false;
    assert_status(status, PAWL_EINVAL);
    assert_contains(error.text, "cannot exchange");
    static const char *const suffixes[] = {".new", ".before"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(beside, sizeof beside, "%s%s", t.dir, suffixes[i]);
        assert_int_not_equal(access(beside, F_OK), 0);
    }
    assert_int_equal(check(t.dir, false), 120);
    twice_remove(&t);
}

static void make_leftover(const char *dir)
{
    char path[500];
    assert_int_equal(mkdir(dir, 0700), 0);
    for (unsigned i = 0; i < 24; i++) {
        snprintf(path, sizeof path, i ? "%s/file-%u" : "%s/unfinished", dir, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
    }
}

/* A process ends at each step of removing what another has left; the one after it is not stopped by that. */
TEST(a_removal_that_is_interrupted_at_any_step_is_done_by_the_next)
{
    char backup[300], beside[400];
    pawl_backup_report report;
    pawl_error error;
    begin();
    snprintf(backup, sizeof backup, "%s/saved", t.base);
    snprintf(beside, sizeof beside, "%s.new", backup);
    pawl_backup_options options = {.dir = t.dir, .to = backup};
    for (unsigned step = 1; step <= 26; step += 5) {
        make_leftover(beside);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            names.calls = 0;
            names.die_before = step;
            (void)pawl_backup(&options, &report, &error);
            _exit(1);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
        int status = pawl_backup(&options, &report, &error);
        if (status != PAWL_OK)
            print_error("%s\n", error.text);
        assert_ok(status);
        test_dir_remove(backup);
    }
    twice_remove(&t);
}

static void flip_byte(const char *path, off_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

TEST(a_backup_whose_log_is_damaged_is_not_restored)
{
    char backup[300], path[500], to[400];
    pawl_backup_report report;
    pawl_error error;
    begin();
    make_backup(backup, sizeof backup);
    snprintf(path, sizeof path, "%s/log/journal/00000001-0000000000000001.seg", backup);
    flip_byte(path, 400);
    snprintf(to, sizeof to, "%s/restored", t.base);
    pawl_backup_options options = {.dir = backup, .to = to};
    assert_status(pawl_restore(&options, &report, &error), PAWL_ECORRUPT);
    assert_contains(error.text, "00000001-0000000000000001.seg");
    assert_int_not_equal(access(to, F_OK), 0);
    twice_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_backup_of_a_directory_in_use_has_what_was_answered_before_it_began),
        RUN(a_directory_that_was_copied_while_in_use_is_derived_anew_or_refused),
        RUN(a_restore_checks_keeps_what_was_there_and_ends_where_it_is_told),
        RUN(a_foreign_directory_beside_the_target_is_left_alone),
        RUN(a_directory_that_is_replaced_is_there_all_the_time_and_finished_after_its_name_lasts),
        RUN(a_file_system_that_cannot_exchange_directories_is_told_and_nothing_is_changed),
        RUN(a_removal_that_is_interrupted_at_any_step_is_done_by_the_next),
        RUN(a_backup_whose_log_is_damaged_is_not_restored),
    };
    return TEST_MAIN(tests);
}
