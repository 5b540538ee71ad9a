/* test_engine_handlers.c: handlers of an engine's lanes: how they fail and hang, what they read,
 * and what an operator does about it. */
#include "test/lib/lanes.h"

#include <stdatomic.h>

#include "test/lib/event.h"

#define NOTES ", \"workers\": 3"

struct notes {
    _Atomic unsigned calls;
    _Atomic unsigned running, most;
    _Atomic unsigned fail; /* so many attempts of each event */
    _Atomic bool permanent;
    _Atomic bool hold; /* handlers wait until it is taken away */
    _Atomic unsigned held;
    _Atomic unsigned given_up;
    uint64_t hold_wsid; /* only of this workspace; 0: of all */
    bool zombie;        /* the first attempt is held, the others are not */
};

static int note(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct notes *n = arg;
    atomic_fetch_add(&n->calls, 1);
    unsigned running = atomic_fetch_add(&n->running, 1) + 1, most = atomic_load(&n->most);
    while (running > most && !atomic_compare_exchange_weak(&n->most, &most, running))
        ;
    if (atomic_load(&n->hold) && (n->hold_wsid == 0 || n->hold_wsid == event->wsid)
        && (!n->zombie || pawl_handler_attempt(ctx) == 1)) {
        atomic_fetch_add(&n->held, 1);
        bool told = false;
        while (atomic_load(&n->hold)) {
            if (!told && pawl_handler_given_up(ctx)) {
                told = true;
                atomic_fetch_add(&n->given_up, 1);
            }
            bed_moment();
        }
    }
    atomic_fetch_sub(&n->running, 1);
    if (pawl_handler_attempt(ctx) <= atomic_load(&n->fail))
        return pawl_results_fail(results, atomic_load(&n->permanent), "it rains");
    pawl_results_upsert(results, "t.Note");
    pawl_results_set_int64(results, "event", (int64_t)event->offset);
    return pawl_results_set_text(results, "text",
                                 (pawl_bytes){event_json(event), strnlen(event_json(event), 20)});
}

TEST(a_handler_makes_rows_of_its_events_several_at_once)
{
    struct lanes_bed bed = {0};
    struct notes notes = {0};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    atomic_store(&notes.hold, true);
    uint64_t last = 0;
    for (int i = 0; i < 30; i++)
        last = bed_send(&bed, 1, "t.Ask", "ada", i);
    BED_UNTIL(atomic_load(&notes.held) == 3);
    pawl_read_options options = {.min_offset = last, .timeout = PAWL_MILLISECOND};
    pawl_text text;
    assert_status(pawl_entity_get(bed.engine, 1, "t.Note", text_bytes("[1]"), &options, &text, &bed.error),
                  PAWL_ETIMEOUT);
    atomic_store(&notes.hold, false);
    char key[32];
    snprintf(key, sizeof key, "[%" PRIu64 "]", last);
    assert_contains(bed_row(&bed, 1, "t.Note", key, last), "\"text\":\"{\\\"partition\\\"");
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 30);
    assert_int_equal(atomic_load(&notes.most), 3);
    bed_end(&bed);
}

TEST(registering_refuses_what_makes_no_sense)
{
    struct lanes_bed bed = {0};
    struct notes notes = {0};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_status(pawl_projector_register(bed.engine, "t.nobody", note, &notes, &bed.error), PAWL_ENOTFOUND);
    assert_status(pawl_projector_register(bed.engine, "t.totals", note, &notes, &bed.error), PAWL_EINVAL);
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    assert_status(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error), PAWL_EEXISTS);
    bed_end(&bed);
}

TEST(a_handler_that_fails_is_tried_again)
{
    struct lanes_bed bed = {.options = {.backoff_min = PAWL_MILLISECOND}};
    struct notes notes = {.fail = 2};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_row(&bed, 1, "t.Note", "[1]", last);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    assert_int_equal(atomic_load(&notes.calls), 3);
    bed_end(&bed);
}

static bool keep_operation(void *arg, const pawl_operation *operation)
{
    pawl_bytes json;
    assert_ok(pawl_operation_json(operation, &json, NULL));
    snprintf(arg, 512, "%s", (const char *)json.data);
    return true;
}

TEST(a_handler_that_fails_for_good_makes_a_void)
{
    struct lanes_bed bed = {0};
    struct notes notes = {.fail = 1000, .permanent = true};
    char json[512] = "";
    uint64_t next;
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_wait(&bed, "t.notes");
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    assert_ok(pawl_operations_read(bed.engine, partition, "t.notes", 0, 1, 10, keep_operation, json, &next,
                                   &bed.error));
    assert_int_equal(next, 2);
    assert_contains(json, "\"void\":\"it rains\"");
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 0);
    assert_int_equal(bed_status(&bed, "t.notes", partition, 0).leases.voids, 1);
    bed_end(&bed);
}

struct seen_lease {
    unsigned count;
    pawl_lease_state state;
    uint64_t number, event;
    char words[64];
    char projector[64];
};

static bool see_lease(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    struct seen_lease *seen = arg;
    if (seen->count++ == 0) {
        seen->state = lease->state;
        seen->number = lease->number;
        seen->event = event;
        snprintf(seen->words, sizeof seen->words, "%.60s", lease->words);
        snprintf(seen->projector, sizeof seen->projector, "%.60s", projector);
    }
    return true;
}

TEST(a_stalled_number_waits_for_an_operator)
{
    struct lanes_bed bed = {.options = {.backoff_min = PAWL_MILLISECOND}};
    struct notes notes = {.fail = 1000};
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 2"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    uint64_t first = bed_send(&bed, 1, "t.Ask", "ada", 1), second = bed_send(&bed, 1, "t.Ask", "ada", 2);
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    assert_status(pawl_lanes_wait(bed.engine, "t.notes", BED_PATIENCE, &bed.error), PAWL_EBUSY);
    assert_contains(bed.error.text, "stalled");
    bed_wait(&bed, "t.totals"); /* which is another lane */
    struct seen_lease seen = {0};
    assert_ok(pawl_lane_leases(bed.engine, partition, "t.notes", 0, 0, 10, see_lease, &seen, &bed.error));
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.state, PAWL_LEASE_STALLED);
    assert_int_equal(seen.event, first);
    assert_string_equal(seen.words, "it rains");
    assert_string_equal(seen.projector, "t.notes");
    assert_status(pawl_lane_void(bed.engine, partition, "t.notes", 0, 99, "no", &bed.error), PAWL_ENOTFOUND);
    assert_ok(pawl_lane_void(bed.engine, partition, "t.notes", 0, 1, "nobody asked", &bed.error));
    atomic_store(&notes.fail, 0);
    assert_ok(pawl_lane_retry(bed.engine, partition, "t.notes", 0, 2, &bed.error));
    bed_row(&bed, 1, "t.Note", "[1]", second);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    bed_end(&bed);
}

TEST(a_handler_that_hangs_past_its_lease_is_fenced)
{
    struct lanes_bed bed = {.options = {.max_run = 400 * PAWL_MILLISECOND,
                                        .lease_first = 160 * PAWL_MILLISECOND,
                                        .lease_min = 80 * PAWL_MILLISECOND}};
    struct notes notes = {.hold = true, .zombie = true};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_row(&bed, 1, "t.Note", "[1]", last); /* by another attempt */
    BED_UNTIL(atomic_load(&notes.given_up) == 1);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    atomic_store(&notes.hold, false);
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    BED_UNTIL(atomic_load(&notes.running) == 0);
    last = bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_row(&bed, 1, "t.Note", "[1]", last);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 2);
    assert_true(bed_status(&bed, "t.notes", partition, 0).leases.expired >= 1);
    bed_end(&bed);
}

TEST(a_lease_that_is_taken_back_goes_to_another)
{
    struct lanes_bed bed = {0};
    struct notes notes = {.hold = true, .zombie = true};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 1);
    BED_UNTIL(atomic_load(&notes.held) == 1);
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    assert_ok(pawl_lane_reclaim(bed.engine, partition, "t.notes", 0, 1, &bed.error));
    BED_UNTIL(atomic_load(&notes.given_up) == 1);
    bed_row(&bed, 1, "t.Note", "[1]", last);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    atomic_store(&notes.hold, false);
    bed_end(&bed);
}

struct successor {
    bool fails; /* the first attempt; else it is there until somebody has decided */
    _Atomic bool begun, decided, succeeded, given_up;
};

static int succeed(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct successor *s = arg;
    bool first = pawl_handler_attempt(ctx) == 1;
    atomic_store(&s->begun, true);
    if (first && s->fails)
        return pawl_results_fail(results, false, "it rains");
    while (!atomic_load(&s->decided))
        bed_moment();
    if (!first) {
        atomic_store(&s->given_up, pawl_handler_given_up(ctx));
        atomic_store(&s->succeeded, true);
    }
    pawl_results_upsert(results, "t.Note");
    return pawl_results_set_int64(results, "event", (int64_t)event->offset);
}

TEST(a_decision_waits_for_the_run_that_gets_the_number)
{
    for (int fails = 0; fails < 2; fails++) {
        struct lanes_bed bed = {0};
        struct successor s = {.fails = fails};
        bed_begin(&bed, LANES_SCHEMA(NOTES ", \"max_attempts\": 1"));
        assert_ok(pawl_projector_register(bed.engine, "t.notes", succeed, &s, &bed.error));
        uint16_t partition = pawl_partition_of(bed.engine, 1);
        bed_send(&bed, 1, "t.Ask", "ada", 1);
        BED_UNTIL(fails ? bed_status(&bed, "t.notes", partition, 0).leases.stalled == 1
                        : atomic_load(&s.begun));
        assert_ok(fails ? pawl_lane_retry(bed.engine, partition, "t.notes", 0, 1, &bed.error)
                        : pawl_lane_reclaim(bed.engine, partition, "t.notes", 0, 1, &bed.error));
        atomic_store(&s.decided, true);
        BED_UNTIL(atomic_load(&s.succeeded));
        assert_false(atomic_load(&s.given_up));
        bed_wait(&bed, "t.notes");
        assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
        bed_end(&bed);
    }
}

TEST(the_options_say_what_is_alarming)
{
    for (int asked = 0; asked < 2; asked++) {
        struct lanes_bed bed = {.options = {.thresholds = {.active = (uint64_t)asked}}};
        struct notes notes = {.hold = true};
        bed_begin(&bed, LANES_SCHEMA(NOTES));
        assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
        for (int i = 0; i < 3; i++)
            bed_send(&bed, 1, "t.Ask", "ada", i);
        BED_UNTIL(atomic_load(&notes.held) == 3);
        assert_int_equal(bed_status(&bed, "t.notes", pawl_partition_of(bed.engine, 1), 0).leases.alerts,
                         asked ? PAWL_LEASE_ALERT_ACTIVE : 0);
        atomic_store(&notes.hold, false);
        bed_end(&bed);
    }
}

/* --- reading in a handler --- */

/* A running sum over the rows that are there: right only if each sees all before it. */
static int sum_up(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    pawl_text text;
    pawl_error error;
    int64_t rows = 0;
    (void)arg;
    int status = pawl_handler_list(ctx, "t.Note", (pawl_bytes){0}, 100000, &text, &error);
    if (status != PAWL_OK)
        return pawl_results_fail(results, false, error.text);
    for (const char *at = text.data; (at = strchr(at, '\n')); at++)
        rows++;
    pawl_text_free(&text);
    assert_status(pawl_handler_get(ctx, "t.Total", text_bytes("[\"x\"]"), &text, &error), PAWL_EINVAL);
    pawl_results_upsert(results, "t.Note");
    pawl_results_set_int64(results, "event", (int64_t)event->offset);
    return pawl_results_set_int64(results, "sum", rows);
}

TEST(what_a_handler_reads_is_what_a_serial_run_would_have_read)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", sum_up, NULL, &bed.error));
    uint64_t offsets[60];
    for (size_t i = 0; i < 60; i++)
        offsets[i] = bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_row(&bed, 1, "t.Note", "[1]", offsets[59]);
    for (size_t i = 0; i < 60; i++) {
        char key[32], sum[32];
        snprintf(key, sizeof key, "{\"event\": %" PRIu64 "}", offsets[i]);
        snprintf(sum, sizeof sum, "\"sum\":%zu}", i);
        assert_contains(bed_row(&bed, 1, "t.Note", key, 0), sum);
    }
    bed_end(&bed);
}

/* --- what hangs, and what does not --- */

TEST(a_lane_that_hangs_holds_up_neither_another_nor_commands)
{
    struct lanes_bed bed = {0};
    struct notes notes = {.hold = true};
    bed_begin(&bed, LANES_SCHEMA(", \"workers\": 1"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    uint64_t last = 0;
    for (int i = 0; i < 50; i++)
        last = bed_send(&bed, 1, "t.Ask", "ada", 1);
    BED_UNTIL(atomic_load(&notes.held) >= 1);
    bed_row(&bed, 1, "t.Mark", "[1]", last);
    assert_int_equal(bed_count(&bed, 1, "t.Mark"), 50);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 0);
    atomic_store(&notes.hold, false);
    bed_wait(&bed, NULL);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 50);
    bed_end(&bed);
}

TEST(a_handler_that_hangs_in_one_partition_leaves_the_others_running)
{
    struct lanes_bed bed = {0};
    struct notes notes = {.hold = true, .hold_wsid = 1};
    bed_begin(&bed, LANES_SCHEMA(", \"workers\": 1"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", note, &notes, &bed.error));
    for (int i = 0; i < 5; i++)
        bed_send(&bed, 1, "t.Ask", "ada", 1);
    BED_UNTIL(atomic_load(&notes.held) == 1);
    for (uint64_t wsid = 2; wsid <= TENANTS; wsid++) {
        if (pawl_partition_of(bed.engine, wsid) == pawl_partition_of(bed.engine, 1))
            continue;
        uint64_t last = bed_send(&bed, wsid, "t.Ask", "bob", 1);
        bed_row(&bed, wsid, "t.Note", "[1]", last);
        assert_int_equal(bed_count(&bed, wsid, "t.Note"), 1);
    }
    atomic_store(&notes.hold, false);
    bed_wait(&bed, NULL);
    bed_end(&bed);
}

struct closing {
    pawl_engine *engine;
    _Atomic int status;
};

static int close_it(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct closing *c = arg;
    (void)ctx;
    (void)event;
    (void)results;
    atomic_store(&c->status, pawl_close(c->engine));
    return PAWL_OK;
}

TEST(closing_from_inside_a_handler_is_refused)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    struct closing closing = {.engine = bed.engine};
    assert_ok(pawl_projector_register(bed.engine, "t.notes", close_it, &closing, &bed.error));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_wait(&bed, "t.notes");
    assert_status(atomic_load(&closing.status), PAWL_EMISUSE);
    bed_end(&bed);
}

/* --- beside each other --- */

TEST(two_engines_in_one_process_know_nothing_of_each_other)
{
    static struct lanes_bed beds[2];
    struct notes notes[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        bed_begin(&beds[i], LANES_SCHEMA(NOTES));
        assert_ok(pawl_projector_register(beds[i].engine, "t.notes", note, &notes[i], &beds[i].error));
    }
    for (int i = 0; i < 40; i++)
        bed_send(&beds[i % 2], 1, "t.Ask", "ada", 1);
    bed_send(&beds[0], 1, "t.Ask", "ada", 1);
    for (int i = 0; i < 2; i++) {
        bed_wait(&beds[i], NULL);
        assert_int_equal(bed_count(&beds[i], 1, "t.Note"), 21 - i);
        assert_int_equal(atomic_load(&notes[i].calls), 21 - i);
    }
    for (int i = 0; i < 2; i++)
        bed_end(&beds[i]);
}

/* --- failing too early --- */

struct follower {
    _Atomic uint64_t first; /* the event that the other one follows */
    _Atomic bool looked;
    bool permanent;
};

/* The first event makes a row, when the second has looked for it; the second cannot be without it. */
static int follow(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct follower *f = arg;
    uint64_t first = 0;
    if (atomic_compare_exchange_strong(&f->first, &first, event->offset) || first == event->offset) {
        while (!atomic_load(&f->looked))
            bed_moment();
    } else {
        char key[32];
        pawl_text text;
        pawl_error error;
        int size = snprintf(key, sizeof key, "[%" PRIu64 "]", first);
        int status = pawl_handler_get(ctx, "t.Note", (pawl_bytes){key, (size_t)size}, &text, &error);
        atomic_store(&f->looked, true);
        if (status != PAWL_OK)
            return pawl_results_fail(results, f->permanent, "nobody goes before it");
        pawl_text_free(&text);
    }
    pawl_results_upsert(results, "t.Note");
    return pawl_results_set_int64(results, "event", (int64_t)event->offset);
}

TEST(a_failure_that_rests_on_what_was_read_too_early_decides_nothing)
{
    static const struct {
        const char *notes;
        bool permanent;
    } cases[] = {
        {NOTES, true},
        {NOTES ", \"max_attempts\": 1", false},
        {NOTES ", \"max_attempts\": 1, \"on_failure\": \"void\"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lanes_bed bed = {0};
        struct follower follower = {.permanent = cases[i].permanent};
        char schema[4096];
        snprintf(schema, sizeof schema, LANES_SCHEMA("%s"), cases[i].notes);
        bed_begin(&bed, schema);
        assert_ok(pawl_projector_register(bed.engine, "t.notes", follow, &follower, &bed.error));
        bed_send(&bed, 1, "t.Ask", "ada", 1);
        BED_UNTIL(atomic_load(&follower.first) != 0);
        bed_send(&bed, 1, "t.Ask", "ada", 2);
        bed_wait(&bed, "t.notes");
        assert_int_equal(bed_count(&bed, 1, "t.Note"), 2);
        assert_int_equal(bed_status(&bed, "t.notes", pawl_partition_of(bed.engine, 1), 0).leases.voids, 0);
        bed_end(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_handler_makes_rows_of_its_events_several_at_once),
        RUN(registering_refuses_what_makes_no_sense),
        RUN(a_handler_that_fails_is_tried_again),
        RUN(a_handler_that_fails_for_good_makes_a_void),
        RUN(a_stalled_number_waits_for_an_operator),
        RUN(a_handler_that_hangs_past_its_lease_is_fenced),
        RUN(a_lease_that_is_taken_back_goes_to_another),
        RUN(a_decision_waits_for_the_run_that_gets_the_number),
        RUN(the_options_say_what_is_alarming),
        RUN(what_a_handler_reads_is_what_a_serial_run_would_have_read),
        RUN(a_lane_that_hangs_holds_up_neither_another_nor_commands),
        RUN(a_handler_that_hangs_in_one_partition_leaves_the_others_running),
        RUN(closing_from_inside_a_handler_is_refused),
        RUN(two_engines_in_one_process_know_nothing_of_each_other),
        RUN(a_failure_that_rests_on_what_was_read_too_early_decides_nothing),
    };
    return TEST_MAIN(tests);
}
