/* A stream that is seldom written, among others that fill the segments: it is read without them. */
#include <stdatomic.h>

#include "adapter/journal/journal.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "test/lib/dir.h"
#include "test/lib/test.h"

#define SEGMENT 65536
#define FILLING 2000 /* entries of the other stream between two of the seldom one: some thirty segments */

static const pawl_stream seldom = {.kind = PAWL_STREAM_RAW}, often = {.kind = PAWL_STREAM_PLOG, .partition = 1};

struct writer {
    pawl_stream stream;
    uint64_t epoch;
    uint64_t next;
};

static _Atomic uint64_t bytes_read;

static int64_t count_read(void *ctx, int file, void *data, size_t size, uint64_t at)
{
    int64_t got = disk_real.read(ctx, file, data, size, at);
    if (got > 0)
        atomic_fetch_add(&bytes_read, (uint64_t)got);
    return got;
}

static void claimed(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static void never_done(pawl_append *append)
{
    fail();
}

static void never_read(pawl_read *read)
{
    fail();
}

static void claim_stream(pawl_log *log, pawl_stream stream, struct writer *writer)
{
    struct latch latch;
    pawl_claim claim = {.stream = stream, .done = claimed, .arg = &latch};
    latch_init(&latch);
    assert_ok(pawl_log_claim(log, &claim));
    latch_wait(&latch);
    assert_ok(claim.status);
    *writer = (struct writer){.stream = stream, .epoch = claim.epoch, .next = claim.next};
}

static void append(pawl_log *log, struct writer *w, size_t count)
{
    static const uint8_t body[1000];
    pawl_append_entry entries[100];
    while (count > 0) {
        size_t some = count < 100 ? count : 100;
        for (size_t i = 0; i < some; i++)
            entries[i] = (pawl_append_entry){
                .entry = {
                    .stream = w->stream, .epoch = w->epoch, .offset = w->next++, .body = {body, sizeof body}}};
        pawl_append request = {.entries = entries, .count = some, .alone = true, .done = never_done};
        assert_status(pawl_log_append(log, &request), PAWL_APPEND_DONE);
        assert_ok(request.status);
        count -= some;
    }
}

static bool count_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    ++*(uint64_t *)read->arg;
    return true;
}

/* How many entries there are from an offset on, and how much is read to find them. */
static uint64_t read_from(pawl_log *log, uint64_t from, uint64_t *ret_bytes)
{
    uint64_t count = 0, before = bytes_read;
    pawl_read read = {.stream = seldom,
                      .from = from,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = count_entry,
                      .done = never_read,
                      .arg = &count};
    assert_status(pawl_log_read(log, &read), PAWL_READ_DONE);
    assert_ok(read.status);
    assert_int_equal(read.next, from + count);
    *ret_bytes = bytes_read - before;
    return count;
}

TEST(entries_that_lie_far_apart_are_read_without_what_lies_between)
{
    char dir[128];
    struct uv_env *env;
    struct disk disk = disk_real;
    struct writer rare, busy;
    pawl_log *log;
    uint64_t bytes;
    disk.read = count_read;
    test_dir_make(dir, sizeof dir);
    assert_ok(uv_env_open(&(struct uv_env_options){.shards = 1, .pool_threads = 1}, &env, NULL));
    struct journal_options options = {
        .dir = dir, .env = uv_env_port(env), .disk = &disk, .segment_bytes = SEGMENT};
    assert_ok(journal_open(&options, &log, NULL));
    claim_stream(log, seldom, &rare);
    claim_stream(log, often, &busy);
    for (int i = 0; i < 4; i++) {
        append(log, &rare, 1);
        append(log, &busy, FILLING);
    }
    for (int opened = 0; opened < 2; opened++) {
        assert_int_equal(read_from(log, 1, &bytes), 4);
        assert_true(bytes < 4 * 4 * SEGMENT); /* of 4 * FILLING kB */
        assert_int_equal(read_from(log, 4, &bytes), 1);
        assert_true(bytes < 4 * SEGMENT);
        assert_int_equal(read_from(log, 5, &bytes), 0);
        assert_true(bytes < SEGMENT);
        assert_ok(pawl_log_close(log));
        assert_ok(journal_open(&options, &log, NULL));
    }
    assert_ok(pawl_log_close(log));
    assert_ok(uv_env_close(env));
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(entries_that_lie_far_apart_are_read_without_what_lies_between),
    };
    return TEST_MAIN(tests);
}
