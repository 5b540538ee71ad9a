/* The log for a program that embeds only the log: pawl/log.h and pawl/env.h, linked with libpawl and nothing
 * else, on real files. test/contract tests that each log keeps its promises; this tests that the headers are
 * enough. */
#include <pawl/log.h>

#include <fcntl.h>
#include <semaphore.h>

#include "test/lib/child.h"
#include "test/lib/dir.h"

static const pawl_stream stream = {.kind = PAWL_STREAM_RAW};

struct bed {
    char dir[256];
    pawl_env *env;
    pawl_log *log;
    pawl_error error;
};

static void open_log(struct bed *b, bool read_only)
{
    pawl_log_options options = {.read_only = read_only};
    assert_ok(pawl_env_open(NULL, &b->env, &b->error));
    options.env = b->env;
    assert_ok(pawl_log_open(b->dir, &options, &b->log, &b->error));
}

static void close_log(struct bed *b)
{
    assert_ok(pawl_log_close(b->log));
    assert_ok(pawl_env_close(b->env));
}

static void wait_for(sem_t *done)
{
    while (sem_wait(done)) {
    }
}

static void claimed(pawl_claim *claim)
{
    sem_post(claim->arg);
}

static int claim_stream(pawl_log *log, uint64_t *ret_epoch, uint64_t *ret_next)
{
    sem_t done;
    sem_init(&done, 0, 0);
    pawl_claim claim = {.stream = stream, .done = claimed, .arg = &done};
    int status = pawl_log_claim(log, &claim);
    if (status != PAWL_OK)
        return status;
    wait_for(&done);
    *ret_epoch = claim.epoch;
    *ret_next = claim.next;
    return claim.status;
}

static void appended(pawl_append *append)
{
    sem_post(append->arg);
}

/* "entry N", of each offset from first on. */
static int append_some(pawl_log *log, uint64_t epoch, uint64_t first, size_t count)
{
    char bodies[8][32];
    pawl_append_entry entries[8] = {0};
    sem_t done;
    sem_init(&done, 0, 0);
    for (size_t i = 0; i < count; i++) {
        int size = snprintf(bodies[i], sizeof bodies[i], "entry %" PRIu64, first + i);
        entries[i].entry = (pawl_entry){
            .stream = stream, .epoch = epoch, .offset = first + i, .body = {bodies[i], (size_t)size}};
    }
    pawl_append append = {.entries = entries, .count = count, .done = appended, .arg = &done};
    int status = pawl_log_append(log, &append);
    if (status == PAWL_OK)
        wait_for(&done);
    return status == PAWL_OK ? append.status : status;
}

/* Counts entries that are what append_some writes, from offset 1 on. */
static bool is_next(uint64_t *seen, const pawl_entry *entry)
{
    char body[32];
    int size = snprintf(body, sizeof body, "entry %" PRIu64, *seen + 1);
    bool good = entry->offset == *seen + 1 && entry->body.size == (size_t)size
                && memcmp(entry->body.data, body, (size_t)size) == 0;
    *seen += good;
    return good;
}

static bool visit(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return is_next(read->arg, entry);
}

static void check_entries(struct bed *b, uint64_t expected)
{
    uint64_t seen = 0;
    pawl_read read = {
        .stream = stream, .from = 1, .limit = UINT64_MAX, .alone = true, .visit = visit, .arg = &seen};
    assert_status(pawl_log_read(b->log, &read), PAWL_READ_DONE);
    assert_ok(read.status);
    assert_int_equal(seen, expected);
    assert_int_equal(read.next, expected + 1);
}

TEST(entries_are_read_as_they_were_appended_and_stay)
{
    struct bed b = {0};
    uint64_t epoch, next;
    test_dir_make(b.dir, sizeof b.dir);
    open_log(&b, false);
    assert_ok(claim_stream(b.log, &epoch, &next));
    assert_int_equal(next, 1);
    assert_ok(append_some(b.log, epoch, 1, 5));
    check_entries(&b, 5);
    close_log(&b);
    open_log(&b, true);
    check_entries(&b, 5);
    assert_status(claim_stream(b.log, &epoch, &next), PAWL_EREADONLY);
    close_log(&b);
    test_dir_remove(b.dir);
}

TEST(a_claim_fences_the_one_before_it)
{
    struct bed b = {0};
    uint64_t old, epoch, next;
    test_dir_make(b.dir, sizeof b.dir);
    open_log(&b, false);
    assert_ok(claim_stream(b.log, &old, &next));
    assert_ok(append_some(b.log, old, 1, 2));
    assert_ok(claim_stream(b.log, &epoch, &next));
    assert_int_equal(next, 3);
    assert_status(append_some(b.log, old, 3, 1), PAWL_EFENCED);
    assert_ok(append_some(b.log, epoch, 3, 1));
    check_entries(&b, 3);
    close_log(&b);
    test_dir_remove(b.dir);
}

struct following {
    struct bed *bed;
    pawl_follow follow;
    uint64_t seen;
    int status;
    sem_t came;
    sem_t done;
};

static bool came(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    struct following *f = follow->arg;
    if (is_next(&f->seen, entry))
        sem_post(&f->came);
    return true;
}

static void ended(pawl_follow *follow)
{
    struct following *f = follow->arg;
    sem_post(&f->done);
}

static void start_following(void *arg)
{
    struct following *f = arg;
    f->follow = (pawl_follow){.stream = stream, .from = 1, .visit = came, .done = ended, .arg = f};
    f->status = pawl_log_follow(f->bed->log, &f->follow);
}

static void stop_following(void *arg)
{
    struct following *f = arg;
    f->status = pawl_log_unfollow(f->bed->log, &f->follow);
}

TEST(a_follower_sees_what_is_appended_after_it_began)
{
    struct bed b = {0};
    struct following f = {.bed = &b};
    uint64_t epoch, next;
    test_dir_make(b.dir, sizeof b.dir);
    sem_init(&f.came, 0, 0);
    sem_init(&f.done, 0, 0);
    open_log(&b, false);
    assert_ok(pawl_env_run(b.env, 0, start_following, &f));
    assert_ok(f.status);
    assert_status(pawl_log_close(b.log), PAWL_EMISUSE);
    assert_ok(claim_stream(b.log, &epoch, &next));
    for (uint64_t offset = 1; offset <= 3; offset++) {
        assert_ok(append_some(b.log, epoch, offset, 1));
        wait_for(&f.came);
    }
    assert_ok(pawl_env_run(b.env, 0, stop_following, &f));
    assert_ok(f.status);
    wait_for(&f.done);
    assert_status(f.follow.status, PAWL_ECLOSED);
    assert_int_equal(f.seen, 3);
    close_log(&b);
    test_dir_remove(b.dir);
}

/* --- a writer that was killed --- */

static char left_by_child[256];

/* Appends, and is gone without closing anything. */
static int append_and_end(void)
{
    pawl_env *env;
    pawl_log *log;
    uint64_t epoch, next;
    CHECK(pawl_env_open(NULL, &env, NULL) == PAWL_OK);
    CHECK(pawl_log_open(left_by_child, &(pawl_log_options){.env = env}, &log, NULL) == PAWL_OK);
    CHECK(claim_stream(log, &epoch, &next) == PAWL_OK);
    CHECK(append_some(log, epoch, 1, 4) == PAWL_OK);
    return 0;
}

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Write zeros over the watermarks behind the last entry, as if the writer had been killed before it wrote them.
 * docs/FORMAT.md has the places of a header's size, a record's size and a record's type. */
static void forget_watermarks(const char *dir)
{
    enum { HEADER_SIZE = 12, RECORD_SIZE = 32, RECORD_TYPE = 36, RECORD_LEAST = 64, WATERMARK = 3 };
    static uint8_t bytes[1 << 16];
    char path[400];
    snprintf(path, sizeof path, "%s/journal/00000001-0000000000000001.seg", dir);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    ssize_t size = pread(fd, bytes, sizeof bytes, 0);
    assert_true(size > RECORD_LEAST);
    size_t behind = 0, end = 0;
    for (size_t at = number_at(bytes + HEADER_SIZE); at + RECORD_LEAST <= (size_t)size; at = end) {
        if (number_at(bytes + at + RECORD_SIZE) == 0)
            break;
        end = at + (number_at(bytes + at + RECORD_SIZE) + 7) / 8 * 8;
        if (bytes[at + RECORD_TYPE] != WATERMARK)
            behind = end;
    }
    assert_true(behind > 0);
    memset(bytes + behind, 0, end - behind);
    assert_int_equal(pwrite(fd, bytes + behind, end - behind, (off_t)behind), end - behind);
    close(fd);
}

static void count(void *arg, const char *name, uint64_t first, uint64_t entries)
{
    uint64_t *left_out = arg;
    assert_string_equal(name, "raw/0");
    *left_out += entries;
}

TEST(what_a_killed_writer_left_is_counted_and_then_recovered)
{
    struct bed b = {0};
    uint64_t left_out = 0;
    test_dir_make(b.dir, sizeof b.dir);
    snprintf(left_by_child, sizeof left_by_child, "%s", b.dir);
    assert_int_equal(in_child(append_and_end), 0);
    forget_watermarks(b.dir);
    open_log(&b, true);
    assert_ok(pawl_log_unwitnessed(b.log, count, &left_out, &b.error));
    assert_true(left_out > 0 && left_out <= 4);
    check_entries(&b, 4 - left_out);
    close_log(&b);

    assert_ok(pawl_log_recover(b.dir, &b.error));
    left_out = 0;
    open_log(&b, true);
    assert_ok(pawl_log_unwitnessed(b.log, count, &left_out, &b.error));
    assert_int_equal(left_out, 0);
    check_entries(&b, 4);
    close_log(&b);
    test_dir_remove(b.dir);
}

TEST(a_name_that_is_no_log_is_refused)
{
    struct bed b = {0};
    pawl_log *log;
    test_dir_make(b.dir, sizeof b.dir);
    assert_ok(pawl_env_open(NULL, &b.env, &b.error));
    pawl_log_options options = {.env = b.env, .read_only = true};
    assert_status(pawl_log_open(b.dir, &options, &log, &b.error), PAWL_ENOTFOUND);
    assert_status(pawl_log_open("http://host/", &options, &log, &b.error), PAWL_EINVAL);
    assert_contains(b.error.text, "http://host/");
    assert_status(pawl_log_recover("kafka://host:1/x", &b.error), PAWL_EINVAL);
    assert_ok(pawl_env_close(b.env));
    test_dir_remove(b.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(entries_are_read_as_they_were_appended_and_stay),
        RUN(a_claim_fences_the_one_before_it),
        RUN(a_follower_sees_what_is_appended_after_it_began),
        RUN(what_a_killed_writer_left_is_counted_and_then_recovered),
        RUN(a_name_that_is_no_log_is_refused),
    };
    return TEST_MAIN(tests);
}
