/* test_engine_results.c: results of handlers: wrong ones, long texts, and many. */
#include "test/lib/lanes.h"

#include <stdatomic.h>

#include "test/lib/alloc.h"

/* --- nonsense --- */

struct nonsense {
    const char *name;
    int (*make)(pawl_results *results);
    const char *words;
};

static int unknown_entity(pawl_results *r)
{
    return pawl_results_upsert(r, "t.Nobody");
}

static int anothers_entity(pawl_results *r)
{
    return pawl_results_upsert(r, "t.Total");
}

static int unknown_field(pawl_results *r)
{
    pawl_results_upsert(r, "t.Note");
    return pawl_results_set_int64(r, "nothing", 1);
}

static int wrong_type(pawl_results *r)
{
    pawl_results_upsert(r, "t.Note");
    return pawl_results_set_bool(r, "event", true);
}

static int no_key(pawl_results *r)
{
    return pawl_results_upsert(r, "t.Note");
}

static int bad_where(pawl_results *r)
{
    return pawl_results_update(r, "t.Note", "sum > 'x'");
}

static int nothing_open(pawl_results *r)
{
    return pawl_results_set_int64(r, "event", 1);
}

static int ignored_error(pawl_results *r)
{
    (void)pawl_results_upsert(r, "t.Nobody");
    return PAWL_OK;
}

static int division_by_zero(pawl_results *r)
{
    pawl_results_upsert(r, "t.Note");
    pawl_results_set_int64(r, "event", 1);
    return pawl_results_set_expr(r, "sum", "1 / (coalesce(sum, 0))");
}

static int bad_json(pawl_results *r)
{
    static const char json[] = "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": {\"event\": \"x\"}}]}";
    return pawl_results_json(r, text_bytes(json), NULL);
}

static int too_much(pawl_results *r)
{
    static char text[1 << 20];
    memset(text, 'x', sizeof text);
    int status = PAWL_OK;
    for (int64_t i = 0; i < 80 && status == PAWL_OK; i++) {
        status = pawl_results_upsert(r, "t.Note");
        status = status ? status : pawl_results_set_int64(r, "event", i);
        status = status ? status : pawl_results_set_text(r, "text", (pawl_bytes){text, sizeof text});
    }
    return status;
}

static int only_a_status(pawl_results *r)
{
    (void)r;
    return 17;
}

static const struct nonsense nonsenses[] = {
    {"an entity that is not there", unknown_entity, "there is no entity t.Nobody"},
    {"an entity of others", anothers_entity, "is not an entity that t.notes writes"},
    {"a field that is not there", unknown_field, "t.Note has no field nothing"},
    {"a value of another type", wrong_type, "event is of type int64, not bool"},
    {"no key", no_key, "0 of 1 fields"},
    {"a where that does not compile", bad_where, "where: line 1"},
    {"a field of nothing", nothing_open, "there is no write yet"},
    {"an error that was ignored", ignored_error, "there is no entity t.Nobody"},
    {"a division by zero", division_by_zero, "zero"},
    {"JSON of another type", bad_json, "$.writes[0].key.event"},
    {"more than fits", too_much, "larger than an entry"},
    {"a status of its own", only_a_status, "the handler returned 17"},
};

static int run_nonsense(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    _Atomic(const struct nonsense *) *now = arg;
    const struct nonsense *nonsense = atomic_load(now);
    if (nonsense)
        return nonsense->make(results);
    pawl_results_upsert(results, "t.Note");
    return pawl_results_set_int64(results, "event", (int64_t)event->offset);
}

static bool keep_words(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    snprintf(arg, PAWL_LEASE_WORDS_MAX + 1, "%s", lease->words);
    return false;
}

TEST(nonsense_of_a_handler_is_its_failure_and_nobody_elses)
{
    struct lanes_bed bed = {.options = {.backoff_min = PAWL_MILLISECOND}};
    _Atomic(const struct nonsense *) now = NULL;
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", run_nonsense, &now, &bed.error));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof nonsenses / sizeof *nonsenses; i++) {
        char words[PAWL_LEASE_WORDS_MAX + 1] = "";
        pawl_error error;
        atomic_store(&now, &nonsenses[i]);
        uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 1);
        number++;
        BED_UNTIL(bed_status(&bed, "t.notes", partition, 0).leases.stalled == 1);
        assert_ok(pawl_lane_leases(bed.engine, partition, "t.notes", 0, 0, 1, keep_words, words, &error));
        print_message("# %s: %s\n", nonsenses[i].name, words);
        assert_contains(words, nonsenses[i].words);
        atomic_store(&now, NULL);
        assert_ok(pawl_lane_retry(bed.engine, partition, "t.notes", 0, number, &error));
        bed_row(&bed, 1, "t.Note", "[1]", last);
    }
    assert_int_equal(bed_count(&bed, 1, "t.Note"), number);
    bed_end(&bed);
}

/* --- saying much --- */

static int complain(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    return pawl_results_fail(results, false, arg);
}

TEST(words_that_are_too_long_are_cut_between_characters)
{
    char before[400] = "", words[PAWL_LEASE_WORDS_MAX + 1] = "";
    struct lanes_bed bed = {0};
    for (size_t i = 0; i < 150; i++)
        memcpy(before + 2 * i, "\xc3\xa9", 3);
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", complain, before, &bed.error));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    assert_status(pawl_lanes_wait(bed.engine, "t.notes", BED_PATIENCE, &bed.error), PAWL_EBUSY);
    assert_ok(pawl_lane_leases(bed.engine, pawl_partition_of(bed.engine, 1), "t.notes", 0, 0, 1, keep_words,
                               words, &bed.error));
    assert_int_equal(strlen(words), PAWL_LEASE_WORDS_MAX);
    assert_memory_equal(words, before, PAWL_LEASE_WORDS_MAX);
    bed_end(&bed);
}

/* --- writing much --- */

enum { MUCH = 10000, MUCH_EVENTS = 12 };

struct much {
    _Atomic uint64_t first;
    _Atomic bool go_on;
};

/* All but the first are ready when that is. */
static int write_much(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct much *much = arg;
    uint64_t first = 0;
    if (atomic_compare_exchange_strong(&much->first, &first, event->offset))
        while (!atomic_load(&much->go_on))
            bed_moment();
    for (int64_t i = 0; i < MUCH; i++) {
        pawl_results_upsert(results, "t.Note");
        pawl_results_set_int64(results, "event", i);
        pawl_results_set_int64(results, "sum", (int64_t)event->offset);
    }
    return PAWL_OK;
}

static size_t bytes_of(struct test_alloc *memory)
{
    pthread_mutex_lock(&memory->lock);
    size_t bytes = memory->live_bytes;
    pthread_mutex_unlock(&memory->lock);
    return bytes;
}

TEST(memory_for_much_that_was_written_is_given_back)
{
    static struct test_alloc memory;
    struct much much = {0};
    test_alloc_init(&memory);
    struct lanes_bed bed = {.options = {.partitions = 1, .shards = 1, .allocator = &memory.allocator}};
    bed_begin(&bed, LANES_SCHEMA(", \"workers\": 3"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", write_much, &much, &bed.error));
    size_t before = bytes_of(&memory);
    for (int i = 0; i < MUCH_EVENTS; i++)
        bed_send(&bed, 1, "t.Ask", "ada", i);
    BED_UNTIL(bed_status(&bed, "t.notes", 0, 0).leases.waiting == MUCH_EVENTS - 1);
    size_t most = bytes_of(&memory);
    atomic_store(&much.go_on, true);
    bed_wait(&bed, "t.notes");
    BED_UNTIL(bytes_of(&memory) < before + (most - before) / 3);
    bed_end(&bed);
    test_alloc_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(nonsense_of_a_handler_is_its_failure_and_nobody_elses),
        RUN(words_that_are_too_long_are_cut_between_characters),
        RUN(memory_for_much_that_was_written_is_given_back),
    };
    return TEST_MAIN(tests);
}
