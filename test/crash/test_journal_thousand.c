/* A journal on real files that is opened a thousand times: it opens, verifies and reads like one that was
 * opened once. */
#include "adapter/journal/journal.h"
#include "adapter/journal/verify.h"
#include "adapter/mem/env.h"
#include "test/lib/dir.h"
#include "test/lib/test.h"

#define STREAMS       30
#define REAL_OPENINGS (TEST_SANITIZED ? 200 : 1000)

struct real {
    char dir[256];
    struct mem_world *world;
    struct mem_env *env;
    pawl_log *log;
    uint64_t epochs[STREAMS];
    uint64_t nexts[STREAMS];
    pawl_error error;
};

static void real_init(struct real *r)
{
    *r = (struct real){.log = NULL};
    /* Thousands of syncs: in memory, where there is such a place. */
    snprintf(r->dir, sizeof r->dir, "/dev/shm/pawl-test-XXXXXX");
    if (getenv("TMPDIR") || !mkdtemp(r->dir))
        test_dir_make(r->dir, sizeof r->dir);
    struct mem_world_options world = {.seed = 1};
    struct mem_env_options env = {.shards = 1};
    assert_ok(mem_world_open(&world, &r->world, NULL));
    assert_ok(mem_env_open(r->world, &env, &r->env, NULL));
}

static void real_release(struct real *r)
{
    mem_world_close(r->world);
    test_dir_remove(r->dir);
}

static void claimed(pawl_claim *claim)
{
    claim->arg = NULL;
}

/* All streams are claimed, as a node does. */
static void real_open(struct real *r)
{
    struct journal_options options = {
        .dir = r->dir, .env = mem_env_port(r->env), .segment_bytes = 1 << 16, .no_threads = true};
    assert_ok(journal_open(&options, &r->log, &r->error));
    for (uint16_t i = 0; i < STREAMS; i++) {
        pawl_claim claim = {.stream = {.kind = PAWL_STREAM_PLOG, .partition = i},
                            .done = claimed,
                            .arg = r,
                            .error = &r->error};
        assert_ok(pawl_log_claim(r->log, &claim));
        journal_pump(r->log);
        assert_null(claim.arg);
        assert_ok(claim.status);
        r->epochs[i] = claim.epoch;
        r->nexts[i] = claim.next;
    }
}

static void appended(pawl_append *append)
{
    fail();
}

static void real_append(struct real *r, size_t stream)
{
    pawl_append_entry entry = {.entry = {.stream = {.kind = PAWL_STREAM_PLOG, .partition = (uint16_t)stream},
                                         .epoch = r->epochs[stream],
                                         .offset = r->nexts[stream]++,
                                         .body = {"entry", 5}}};
    pawl_append append = {.entries = &entry, .count = 1, .alone = true, .done = appended, .error = &r->error};
    assert_int_equal(pawl_log_append(r->log, &append), PAWL_APPEND_DONE);
    assert_ok(append.status);
}

static void real_close(struct real *r)
{
    assert_ok(pawl_log_close(r->log));
    r->log = NULL;
}

static pawl_log_report real_verified(struct real *r)
{
    struct journal_verify_options options = {.dir = r->dir};
    pawl_log_report report;
    assert_ok(journal_verify(&options, &report, &r->error));
    if (report.faults)
        fail_msg("%s", report.first.error.text);
    pawl_log_report_release(&report);
    assert_true(report.clean);
    return report;
}

TEST(a_directory_that_was_opened_a_thousand_times_is_like_one_that_was_opened_once)
{
    struct real r;
    real_init(&r);
    real_open(&r);
    for (size_t i = 0; i < STREAMS; i++)
        real_append(&r, i);
    real_close(&r);
    pawl_log_report once = real_verified(&r);
    for (int i = 1; i < REAL_OPENINGS; i++) {
        real_open(&r);
        real_close(&r);
    }
    pawl_log_report often = real_verified(&r);
    assert_int_equal(often.segments, once.segments);
    assert_int_equal(often.records, once.records);
    assert_int_equal(often.claims, STREAMS);
    assert_int_equal(often.bytes, once.bytes);
    real_release(&r);
}

TEST(a_thousand_openings_with_an_entry_each_take_the_room_of_their_entries)
{
    struct real r;
    real_init(&r);
    for (size_t i = 0; i < REAL_OPENINGS; i++) {
        real_open(&r);
        real_append(&r, i % STREAMS);
        real_close(&r);
    }
    pawl_log_report report = real_verified(&r);
    assert_int_equal(report.entries, REAL_OPENINGS);
    assert_int_equal(report.claims, REAL_OPENINGS);
    assert_int_equal(report.dead_bytes + report.torn_bytes, 0);
    /* A claim, an entry, a watermark and a seal each; and a header now and then. */
    assert_true(report.bytes < REAL_OPENINGS * 400);
    assert_true(report.segments <= report.bytes / (1 << 15) + 1);
    real_open(&r);
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(r.nexts[i], REAL_OPENINGS / STREAMS + (i < REAL_OPENINGS % STREAMS) + 1);
    real_close(&r);
    real_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_directory_that_was_opened_a_thousand_times_is_like_one_that_was_opened_once),
        RUN(a_thousand_openings_with_an_entry_each_take_the_room_of_their_entries),
    };
    return TEST_MAIN(tests);
}
