/* How much of the journal is read: for a stream with few entries, only where they lie; for many streams,
 * everything once. */
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

static bool count_swept(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place)
{
    ++((uint64_t *)sweep->arg)[index];
    return true;
}

/* The same of several streams, each of which must be gone through to its end. */
static void sweep(pawl_log *log, pawl_sweep_stream *streams, size_t count, uint64_t *counts,
                  uint64_t *ret_bytes)
{
    uint64_t before = bytes_read;
    pawl_sweep request = {
        .streams = streams, .count = count, .limit = UINT64_MAX, .visit = count_swept, .arg = counts};
    memset(counts, 0, count * sizeof *counts);
    assert_ok(pawl_log_sweep(log, &request));
    for (size_t i = 0; i < count; i++) {
        assert_true(streams[i].ended);
        assert_int_equal(streams[i].next, streams[i].from + counts[i]);
    }
    *ret_bytes = bytes_read - before;
}

struct files {
    char dir[128];
    struct uv_env *env;
    struct disk disk;
    struct journal_options options;
    pawl_log *log;
};

static void begin(struct files *f)
{
    f->disk = disk_real;
    f->disk.read = count_read;
    test_dir_make(f->dir, sizeof f->dir);
    assert_ok(uv_env_open(&(struct uv_env_options){.shards = 1, .pool_threads = 1}, &f->env, NULL));
    f->options = (struct journal_options){
        .dir = f->dir, .env = uv_env_port(f->env), .disk = &f->disk, .segment_bytes = SEGMENT};
    assert_ok(journal_open(&f->options, &f->log, NULL));
}

static void reopen(struct files *f)
{
    assert_ok(pawl_log_close(f->log));
    assert_ok(journal_open(&f->options, &f->log, NULL));
}

static void end(struct files *f)
{
    assert_ok(pawl_log_close(f->log));
    assert_ok(uv_env_close(f->env));
    test_dir_remove(f->dir);
}

TEST(entries_that_lie_far_apart_are_read_without_what_lies_between)
{
    struct files f;
    struct writer rare, busy;
    uint64_t bytes;
    begin(&f);
    claim_stream(f.log, seldom, &rare);
    claim_stream(f.log, often, &busy);
    for (int i = 0; i < 4; i++) {
        append(f.log, &rare, 1);
        append(f.log, &busy, FILLING);
    }
    for (int opened = 0; opened < 2; opened++) {
        assert_int_equal(read_from(f.log, 1, &bytes), 4);
        assert_true(bytes < 4 * 4 * SEGMENT); /* of 4 * FILLING kB */
        assert_int_equal(read_from(f.log, 4, &bytes), 1);
        assert_true(bytes < 4 * SEGMENT);
        assert_int_equal(read_from(f.log, 5, &bytes), 0);
        assert_true(bytes < SEGMENT);
        reopen(&f);
    }
    end(&f);
}

/* Two streams whose few entries lie far apart, some side by side; and one of which only the end is wanted. */
TEST(a_sweep_leaves_out_what_lies_between)
{
    static const pawl_stream other = {.kind = PAWL_STREAM_RAW, .partition = 1};
    struct files f;
    struct writer rare, less_rare, busy;
    uint64_t counts[3], bytes;
    begin(&f);
    claim_stream(f.log, seldom, &rare);
    claim_stream(f.log, other, &less_rare);
    claim_stream(f.log, often, &busy);
    for (int i = 0; i < 4; i++) {
        append(f.log, &rare, 1);
        append(f.log, &less_rare, 1);
        append(f.log, &busy, FILLING / 2);
        append(f.log, &less_rare, 1);
        append(f.log, &busy, FILLING / 2);
    }
    append(f.log, &rare, 1);
    for (int opened = 0; opened < 2; opened++) {
        pawl_sweep_stream streams[] = {{.stream = often, .from = busy.next - 10},
                                       {.stream = seldom, .from = 1},
                                       {.stream = other, .from = 1}};
        pawl_sweep_stream reversed[] = {streams[2], streams[1], streams[0]};
        sweep(f.log, streams, 3, counts, &bytes);
        assert_int_equal(counts[0], 10);
        assert_int_equal(counts[1], 5);
        assert_int_equal(counts[2], 8);
        assert_true(bytes < 10 * 4 * SEGMENT); /* of 4 * FILLING kB */
        sweep(f.log, reversed, 3, counts, &bytes);
        assert_int_equal(counts[0], 8);
        assert_int_equal(counts[1], 5);
        assert_int_equal(counts[2], 10);
        streams[1].from = 5;
        streams[2].from = 9;
        sweep(f.log, streams, 3, counts, &bytes);
        assert_int_equal(counts[0], 10);
        assert_int_equal(counts[1], 1);
        assert_int_equal(counts[2], 0);
        assert_true(bytes < 8 * SEGMENT);
        reopen(&f);
    }
    end(&f);
}

TEST(a_sweep_of_many_streams_reads_everything_once)
{
    enum { STREAMS = 16, ROUNDS = 50, EACH = 4 };
    struct files f;
    struct writer writers[STREAMS];
    pawl_sweep_stream streams[STREAMS];
    uint64_t counts[STREAMS], bytes;
    begin(&f);
    for (size_t i = 0; i < STREAMS; i++)
        claim_stream(f.log, (pawl_stream){.kind = PAWL_STREAM_PLOG, .partition = (uint16_t)i}, &writers[i]);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < STREAMS; i++)
            append(f.log, &writers[i], EACH);
    for (size_t i = 0; i < STREAMS; i++)
        streams[i] = (pawl_sweep_stream){.stream = writers[i].stream, .from = 1};
    sweep(f.log, streams, STREAMS, counts, &bytes);
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(counts[i], ROUNDS * EACH);
    uint64_t all = (uint64_t)STREAMS * ROUNDS * EACH * 1072;
    assert_true(bytes > all);
    assert_true(bytes < 2 * all); /* once, and to find the places: not STREAMS times */
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(entries_that_lie_far_apart_are_read_without_what_lies_between),
        RUN(a_sweep_leaves_out_what_lies_between),
        RUN(a_sweep_of_many_streams_reads_everything_once),
    };
    return TEST_MAIN(tests);
}
