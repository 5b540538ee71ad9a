/* test_engine_numbering.c: the figures of an engine's sequencers, and the limits that the engine's options
 * set. */
#include "test/lib/lanes.h"

#include "engine/node/node.h"

#define NEVER (1000000 * PAWL_SECOND)

/* Nothing is written to the sequence storage but where a test wants it. */
static const pawl_sequencer_limits patient = {.flush_events = 1 << 30, .flush_interval = NEVER};

static pawl_figures figures_of(struct lanes_bed *bed)
{
    pawl_figures figures;
    assert_ok(pawl_figures_get(bed->engine, &figures, &bed->error));
    return figures;
}

static pawl_numbering numbering_of(struct lanes_bed *bed, uint16_t partition)
{
    pawl_numbering numbering;
    assert_ok(pawl_numbering_get(bed->engine, partition, &numbering, &bed->error));
    return numbering;
}

/* --- figures --- */

TEST(figures_tell_how_many_sequencers_are_ready_and_what_their_storage_lacks)
{
    struct lanes_bed bed = {.options = {.partitions = 4, .shards = 2, .sequences = patient}};
    bed_begin(&bed, LANES_SCHEMA(""));
    for (uint64_t wsid = 1; wsid <= TENANTS; wsid++)
        bed_send(&bed, wsid, "t.Bill", "ada", 1);
    BED_UNTIL(figures_of(&bed).sequencer_states[PAWL_SEQUENCER_READY] == 4); /* also those without workspaces */
    pawl_figures figures = figures_of(&bed);
    for (int i = 0; i <= PAWL_SEQUENCER_FINISHED; i++)
        assert_int_equal(figures.sequencer_states[i], i == PAWL_SEQUENCER_READY ? 4 : 0);
    assert_int_equal(figures.sequencers.offset_flushed, 2 * TENANTS);
    assert_int_equal(figures.sequencers.unflushed, 2 * TENANTS); /* each one's last offset and last record ID */
    assert_int_equal(figures.sequencers.flush_failures, 0);
    assert_true(figures.sequencers.memory_bytes > 0);

    uint64_t events = 0, unflushed = 0;
    for (uint32_t i = 0; i < pawl_partitions(bed.engine); i++) {
        pawl_numbering numbering = numbering_of(&bed, (uint16_t)i);
        assert_int_equal(numbering.figures.state, PAWL_SEQUENCER_READY);
        assert_int_equal(numbering.error.code, PAWL_OK);
        events += numbering.figures.offset_flushed;
        unflushed += numbering.figures.unflushed;
    }
    assert_int_equal(events, figures.sequencers.offset_flushed);
    assert_int_equal(unflushed, figures.sequencers.unflushed);
    bed_end(&bed);
}

TEST(figures_go_on_when_a_new_schema_needs_other_sequencers)
{
    struct lanes_bed bed = {.options = {.partitions = 4, .shards = 2, .sequences = patient}};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    BED_UNTIL(figures_of(&bed).sequencer_states[PAWL_SEQUENCER_READY] == 4);
    pawl_figures before = figures_of(&bed);
    assert_true(before.sequencers.recoveries >= 4 && before.sequencers.cache_hits > 0);
    bed_apply(&bed,
              "{\"schema\": 1, \"package\": \"u\", \"workspaces\": {\"other\": {\"sequences\": {\"s\": {}}}}}");
    BED_UNTIL(figures_of(&bed).sequencers.recoveries == before.sequencers.recoveries + 4);
    BED_UNTIL(figures_of(&bed).sequencer_states[PAWL_SEQUENCER_READY] == 4);
    pawl_figures after = figures_of(&bed);
    assert_true(after.sequencers.cache_hits >= before.sequencers.cache_hits);
    assert_true(after.sequencers.rows_written >= before.sequencers.rows_written + before.sequencers.unflushed);
    assert_int_equal(after.sequencers.unflushed, 0);
    bed_end(&bed);
}

/* A store in front of a shard's, to which nothing can be written for a while. */
struct failing {
    pawl_store store;
    pawl_store *inner;
    struct applier applier; /* of this store, in place of the shard's */
    struct sequences *sequences;
    bool full;
};

static int failing_snapshot(pawl_store *store, pawl_reader **ret_reader)
{
    return pawl_store_snapshot(((struct failing *)store)->inner, ret_reader);
}

static void failing_release(pawl_store *store, pawl_reader *snapshot)
{
    pawl_store_release(((struct failing *)store)->inner, snapshot);
}

static int failing_put(pawl_store *store, uint8_t space, pawl_bytes key, pawl_bytes value)
{
    const struct failing *f = (struct failing *)store;
    return f->full ? PAWL_EFULL : pawl_store_put(f->inner, space, key, value);
}

static int failing_commit(pawl_store *store)
{
    return pawl_store_commit(((struct failing *)store)->inner);
}

static void failing_abort(pawl_store *store)
{
    pawl_store_abort(((struct failing *)store)->inner);
}

static const struct pawl_store_ops failing_ops = {.snapshot = failing_snapshot,
                                                  .release = failing_release,
                                                  .put = failing_put,
                                                  .commit = failing_commit,
                                                  .abort = failing_abort};

/* On the shard, which writes the sequence storage. */
static void begin_to_fail(void *arg)
{
    struct failing *f = arg;
    f->inner = f->sequences->store;
    f->full = true;
    f->applier = *f->sequences->applier;
    f->applier.store = &f->store;
    f->sequences->applier = &f->applier;
}

static void fail_no_more(void *arg)
{
    ((struct failing *)arg)->full = false;
}

TEST(a_sequence_storage_that_cannot_be_written_shows_in_the_figures_with_its_reason)
{
    struct lanes_bed bed = {.options = {.partitions = 1, .shards = 1, .sequences = {.flush_events = 1}}};
    struct failing failing = {.store = {.ops = &failing_ops}};
    bed_begin(&bed, LANES_SCHEMA(""));
    BED_UNTIL(figures_of(&bed).sequencers.unflushed == 0);
    failing.sequences = &bed.engine->partitions[0].sequences;
    assert_ok(pawl_env_call(bed.engine->env, 0, begin_to_fail, &failing));
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    BED_UNTIL(figures_of(&bed).sequencers.flush_failures > 0);
    pawl_numbering numbering = numbering_of(&bed, 0);
    assert_int_equal(numbering.figures.state, PAWL_SEQUENCER_READY);
    assert_int_equal(numbering.figures.unflushed, 2);
    assert_int_equal(numbering.error.code, PAWL_EFULL);
    assert_non_null(strstr(numbering.error.text, "cannot write the sequence storage"));
    assert_ok(pawl_env_call(bed.engine->env, 0, fail_no_more, &failing));
    BED_UNTIL(figures_of(&bed).sequencers.unflushed == 0);
    bed_end(&bed);
}

TEST(an_engine_that_only_reads_numbers_nothing)
{
    struct lanes_bed bed = {.options = {.partitions = 2, .shards = 1}};
    pawl_numbering numbering;
    bed_begin(&bed, LANES_SCHEMA(""));
    assert_status(pawl_numbering_get(bed.engine, 2, &numbering, &bed.error), PAWL_EINVAL);
    bed_close(&bed);
    bed.options.read_only = true;
    bed_open(&bed);
    assert_status(pawl_numbering_get(bed.engine, 0, &numbering, &bed.error), PAWL_EREADONLY);
    pawl_figures figures = figures_of(&bed);
    assert_int_equal(figures.sequencer_states[PAWL_SEQUENCER_READY], 0);
    bed_end(&bed);
}

/* --- limits --- */

TEST(a_small_cache_of_workspaces_still_numbers_without_gaps)
{
    enum { ROUNDS = 5 };
    struct lanes_bed bed = {
        .options = {.partitions = 1, .shards = 1, .sequences = {.workspaces_max = 2, .flush_events = 1}}};
    bed_begin(&bed, LANES_SCHEMA(""));
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (uint64_t wsid = 1; wsid <= TENANTS; wsid++) {
            pawl_answer answer;
            assert_ok(bed_command(bed.engine, bed.request, wsid, "t.Bill", "ada", 1, &answer, &bed.error));
            assert_int_equal(answer.workspace_offset, round + 2);
            assert_int_equal(pawl_request_id(bed.request, 1), 200001 + round);
        }
    BED_UNTIL(figures_of(&bed).sequencers.unflushed == 0);
    pawl_figures figures = figures_of(&bed);
    assert_true(figures.sequencers.evictions > 0 && figures.sequencers.cache_misses > TENANTS);
    bed_end(&bed);
}

TEST(a_limit_of_unflushed_values_is_kept)
{
    enum { LIMIT = 8, OF_ONE_EVENT = 2, WORKSPACES = 100 };
    struct lanes_bed bed = {.options = {.partitions = 1, .shards = 1, .sequences = patient}};
    bed.options.sequences.unflushed_max = LIMIT;
    bed_begin(&bed, LANES_SCHEMA(""));
    for (uint64_t i = 0; i < WORKSPACES; i++) {
        uint64_t wsid = 1000 + i;
        assert_ok(pawl_workspace_create(bed.engine, bed.request, wsid, "t.tenant", NULL, &bed.error));
        bed_send(&bed, wsid, "t.Bill", "ada", 1);
        assert_true(figures_of(&bed).sequencers.unflushed < LIMIT + OF_ONE_EVENT);
    }
    pawl_figures figures = figures_of(&bed);
    assert_int_equal(figures.sequencers.offset_flushed, TENANTS + 2 * WORKSPACES);
    assert_true(figures.sequencers.flushes >= 2 * WORKSPACES / LIMIT);
    bed_end(&bed);
}

TEST(commands_go_on_with_room_for_one_staged_event)
{
    enum { COMMANDS = 50 };
    struct lanes_bed bed = {.options = {.partitions = 1, .shards = 1, .sequences = patient}};
    bed.options.sequences.staged_max = 1;
    bed_begin(&bed, LANES_SCHEMA(""));
    for (uint64_t i = 1; i <= COMMANDS; i++)
        assert_int_equal(bed_send(&bed, 1, "t.Bill", "ada", 1), TENANTS + i);
    bed_end(&bed);
}

TEST(a_limit_that_is_out_of_its_bounds_is_named)
{
    static const struct {
        pawl_sequencer_limits limits;
        const char *words;
    } cases[] = {
        {{.unflushed_max = UINT32_MAX}, "sequences: unflushed_max is 4294967295; at most 268435456"},
        {{.staged_max = 1u << 29}, "sequences: staged_max is 536870912; at most 268435456"},
        {{.staged_max = 100}, "sequences: staged_max is 100; it must be a power of two, at most 268435456"},
        {{.workspaces_max = 268435457}, "sequences: workspaces_max is 268435457; at most 268435456"},
        {{.recovery_batch = 268435457}, "sequences: recovery_batch is 268435457; at most 268435456"},
        {{.retry_min = 2 * PAWL_SECOND},
         "sequences: retry_min is 2000000000 ns; at most retry_max, which is 1000000000 ns"},
    };
    char dir[256], path[300];
    test_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/data", dir);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pawl_options options = {.sequences = cases[i].limits};
        pawl_engine *engine = NULL;
        pawl_error error = {0};
        assert_status(pawl_open(path, &options, &engine, &error), PAWL_EINVAL);
        assert_string_equal(error.text, cases[i].words);
        assert_null(engine);
    }
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(figures_tell_how_many_sequencers_are_ready_and_what_their_storage_lacks),
        RUN(figures_go_on_when_a_new_schema_needs_other_sequencers),
        RUN(a_sequence_storage_that_cannot_be_written_shows_in_the_figures_with_its_reason),
        RUN(an_engine_that_only_reads_numbers_nothing),
        RUN(a_small_cache_of_workspaces_still_numbers_without_gaps),
        RUN(a_limit_of_unflushed_values_is_kept),
        RUN(commands_go_on_with_room_for_one_staged_event),
        RUN(a_limit_that_is_out_of_its_bounds_is_named),
    };
    return TEST_MAIN(tests);
}
