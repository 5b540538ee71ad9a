/* The sets of a checkpoint over several partitions: how large a transaction gets, how much memory they take,
 * and that whatever is committed is the state at the positions. */
#include "test/lib/test.h"

#include "adapter/mem/store.h"
#include "core/sequence/storage.h"
#include "core/state/checkpoint.h"
#include "core/state/scrub.h"
#include "test/lib/alloc.h"
#include "test/lib/plog.h"
#include "test/lib/schema.h"

#define PARTITIONS 4
#define EVENTS_MAX 2000 /* of a partition */
#define EVENT_ROWS 4    /* an event changes at most so many, in both spaces */

static const char schema_text[] =
    "{'schema': 1, 'package': 't', 'workspaces': {'w': {}},"
    "'types': {'Arg': {'kind': 'ODoc', 'fields': {'k': {'type': 'int64'}, 'by': {'type': 'int64'}}}},"
    "'commands': {'Add': {'argument': 'Arg'}, 'Sweep': {'argument': 'Arg'}},"
    "'entities': {'Sum': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'x': {'type': 'int64'}}}},"
    "'projectors': {"
    "  'add': {'sync': true, 'on': ['Add'], 'do': [{'upsert': 'Sum', 'key': {'k': '$event.argument.k'},"
    "    'set': {'x': 'coalesce(x, 0) + $event.argument.by'}}]},"
    "  'sweep': {'sync': true, 'on': ['Sweep'], 'do': [{'update': 'Sum', 'where': 'k = $event.argument.k',"
    "    'set': {'x': 'x + 1'}}]}}}";

/* A store that counts what goes into a transaction, and looks at what was committed. */
struct watched {
    pawl_store store;
    pawl_store *inner;
    mem_store_disk *disk;
    uint64_t *faults; /* something fails now and then, by this seed; or NULL */
    uint64_t changes, changes_max, commits;
};

static struct watched watched;

static int watched_put(pawl_store *store, uint8_t space, pawl_bytes key, pawl_bytes value)
{
    watched.changes++;
    return pawl_store_put(watched.inner, space, key, value);
}

static int watched_remove(pawl_store *store, uint8_t space, pawl_bytes key)
{
    watched.changes++;
    return pawl_store_remove(watched.inner, space, key);
}

static pawl_reader *watched_writer(pawl_store *store)
{
    return pawl_store_writer(watched.inner);
}

static void watched_abort(pawl_store *store)
{
    watched.changes = 0;
    pawl_store_abort(watched.inner);
}

static void arm(bool armed)
{
    struct mem_store_fault fault = {.op = MEM_STORE_ANY, .times = 1, .status = PAWL_EFULL};
    if (armed && watched.faults)
        fault.countdown = 1 + test_below(watched.faults, 600);
    else
        fault = (struct mem_store_fault){0};
    mem_store_disk_fail(watched.disk, fault);
}

/* C1: every table of every partition is what its position says of it. */
static void check_committed(void)
{
    for (uint16_t p = 0; p < PARTITIONS; p++) {
        struct scrub scrub = {.partition = p, .partitions = PARTITIONS, .bytes_max = SIZE_MAX};
        struct scrubbed found = {0};
        do {
            assert_ok(scrub_table(&scrub, watched.inner, &found));
            assert_true(found.verdict == SCRUB_RIGHT || found.verdict == SCRUB_NOTHING);
            scrub.table = found.table;
        } while (found.verdict != SCRUB_NOTHING);
    }
}

static int watched_commit(pawl_store *store)
{
    int status = pawl_store_commit(watched.inner);
    watched.changes_max = watched.changes > watched.changes_max ? watched.changes : watched.changes_max;
    watched.changes = 0;
    watched.commits++;
    arm(false);
    check_committed();
    arm(true);
    return status;
}

static const struct pawl_store_ops watched_ops = {.writer = watched_writer,
                                                  .put = watched_put,
                                                  .remove = watched_remove,
                                                  .commit = watched_commit,
                                                  .abort = watched_abort};

/* --- a log of each partition, and a checkpoint --- */

struct bed {
    struct group0 *group0;
    const struct schema *schema;
    uint64_t events;                               /* of each partition */
    pawl_bytes bodies[PARTITIONS][EVENTS_MAX + 1]; /* by offset */
    mem_store_disk *disk;
    struct checkpoint_options options;
    struct checkpoint *checkpoint;
    pawl_error error;
};

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct bed *bed = ctx;
    return bed->schema;
}

/* The n-th workspace of a partition. */
static uint64_t workspace_in(uint16_t partition, uint64_t n)
{
    uint64_t wsid = 1;
    for (;; wsid++)
        if (hash_token(wsid) >> 62 == partition && n-- == 0)
            return wsid;
}

/* sweeps: one event in so many looks at all rows of its workspace. */
static void bed_open(struct bed *bed, uint64_t *random, uint64_t events, uint64_t workspaces, uint64_t sweeps)
{
    enum group0_outcome outcome;
    memset(bed, 0, sizeof *bed);
    watched = (struct watched){0};
    bed->events = events;
    assert_ok(group0_new(NULL, &bed->group0));
    assert_ok(schema_apply(bed->group0, schema_text, &outcome, &bed->error));
    bed->schema = group0_schema(bed->group0);
    for (uint16_t p = 0; p < PARTITIONS; p++)
        for (uint64_t offset = 1; offset <= events; offset++) {
            bool sweep = sweeps && test_below(random, sweeps) == 0;
            struct plog_event event = {.wsid = workspace_in(p, test_below(random, workspaces)),
                                       .command = sweep ? "t.Sweep" : "t.Add",
                                       .argument = "t.Arg",
                                       .k = (int64_t)test_below(random, 40),
                                       .by = (int64_t)test_below(random, 9)};
            bed->bodies[p][offset] = plog_body(bed->schema, offset, &event);
        }
    assert_ok(mem_store_disk_new(NULL, &bed->disk));
    bed->options = (struct checkpoint_options){.store = &watched.store,
                                               .partitions = {0, 1, PARTITIONS},
                                               .events_max = UINT64_MAX,
                                               .bytes_max = SIZE_MAX,
                                               .rows_max = UINT64_MAX,
                                               .schema_at = schema_at,
                                               .ctx = bed};
}

static void bed_close(struct bed *bed)
{
    for (uint16_t p = 0; p < PARTITIONS; p++)
        for (uint64_t offset = 1; offset <= bed->events; offset++)
            free((void *)bed->bodies[p][offset].data);
    mem_store_disk_free(bed->disk);
    group0_free(bed->group0);
}

static void begin(struct bed *bed, const char *name)
{
    watched.store.ops = &watched_ops;
    watched.disk = bed->disk;
    watched.changes = 0;
    arm(false);
    assert_ok(mem_store_open(bed->disk, &(struct mem_store_options){.name = name, .mode = PAWL_STORE_DURABLE},
                             NULL, &watched.inner, &bed->error));
    assert_ok(checkpoint_new(&bed->options, &bed->checkpoint, &bed->error));
}

static void end(struct bed *bed)
{
    checkpoint_free(bed->checkpoint);
    assert_ok(pawl_store_close(watched.inner));
}

static int take(struct bed *bed, size_t partition)
{
    uint64_t offset = checkpoint_next(bed->checkpoint, partition);
    if (offset > bed->events)
        return PAWL_OK;
    return checkpoint_take(bed->checkpoint, partition, offset, (pawl_place){0}, bed->bodies[partition][offset],
                           &bed->error);
}

static bool is_over(const struct bed *bed)
{
    for (size_t p = 0; p < PARTITIONS; p++)
        if (checkpoint_next(bed->checkpoint, p) <= bed->events)
            return false;
    return true;
}

static int take_all(struct bed *bed, uint64_t *random)
{
    uint64_t rows;
    int status = PAWL_OK;
    while (status == PAWL_OK && !is_over(bed)) {
        status = take(bed, test_below(random, PARTITIONS));
        if (status == PAWL_OK && checkpoint_is_full(bed->checkpoint))
            status = checkpoint_commit(bed->checkpoint, &rows, &bed->error);
    }
    return status == PAWL_OK ? checkpoint_commit(bed->checkpoint, &rows, &bed->error) : status;
}

static pawl_digest digest_of(uint8_t space)
{
    pawl_digest digest;
    assert_ok(pawl_store_digest(pawl_store_writer(watched.inner), (pawl_range){.space = space}, &digest));
    return digest;
}

/* --- how large a transaction gets --- */

TEST(no_transaction_has_more_rows_than_it_may_and_each_leaves_the_state_at_the_positions)
{
    static const struct {
        uint64_t rows_max, workspaces, sweeps;
    } cases[] = {{1, 3, 0},    {20, 1, 0},   {20, 50, 0},        {100, 50, 5},
                 {100, 50, 1}, {300, 2, 50}, {UINT64_MAX, 50, 0}};
    uint64_t random = test_seed(11);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct bed bed;
        bed_open(&bed, &random, 300, cases[i].workspaces, cases[i].sweeps);
        begin(&bed, "whole");
        assert_ok(take_all(&bed, &random));
        pawl_digest state = digest_of(STATE_SPACE), numbers = digest_of(SEQUENCE_SPACE);
        end(&bed);

        watched.changes_max = watched.commits = 0;
        bed.options.rows_max = cases[i].rows_max;
        begin(&bed, "bounded");
        assert_ok(take_all(&bed, &random));
        pawl_digest state_again = digest_of(STATE_SPACE), numbers_again = digest_of(SEQUENCE_SPACE);
        assert_true(pawl_digest_equal(&state, &state_again) && pawl_digest_equal(&numbers, &numbers_again));
        end(&bed);
        uint64_t own = 2 * PARTITIONS; /* rows of the positions */
        print_message("# at most %" PRIu64 " rows: %" PRIu64 " in a transaction, %" PRIu64 " transactions\n",
                      cases[i].rows_max, watched.changes_max, watched.commits);
        if (cases[i].rows_max < UINT64_MAX)
            assert_true(watched.changes_max <= cases[i].rows_max + EVENT_ROWS + own);
        else
            assert_int_equal(watched.commits, 1);
        bed_close(&bed);
    }
}

TEST(a_failure_between_two_transactions_leaves_partitions_that_go_on_each_from_its_own_position)
{
    uint64_t random = test_seed(12), failures = 0, partial = 0;
    static struct bed bed;
    bed_open(&bed, &random, 300, 20, 30);
    begin(&bed, "whole");
    assert_ok(take_all(&bed, &random));
    pawl_digest state = digest_of(STATE_SPACE), numbers = digest_of(SEQUENCE_SPACE);
    end(&bed);
    bed.options.rows_max = 60;
    watched.faults = &random;
    begin(&bed, "failing");
    for (bool over = false; !over;) {
        uint64_t commits = watched.commits;
        arm(true);
        over = take_all(&bed, &random) == PAWL_OK;
        arm(false);
        failures += !over;
        partial += !over && watched.commits > commits;
        if (!over && test_below(&random, 2))
            assert_ok(checkpoint_forget(bed.checkpoint, &bed.error));
        else if (!over) {
            checkpoint_free(bed.checkpoint);
            mem_store_disk_power_cut(bed.disk);
            begin(&bed, "failing");
        }
    }
    pawl_digest state_again = digest_of(STATE_SPACE), numbers_again = digest_of(SEQUENCE_SPACE);
    assert_true(pawl_digest_equal(&state, &state_again) && pawl_digest_equal(&numbers, &numbers_again));
    assert_true(failures > 2 && partial > 0);
    end(&bed);
    bed_close(&bed);
}

/* --- memory --- */

TEST(the_sets_take_no_more_memory_than_they_may_however_many_events_there_are)
{
    static const size_t bounds[] = {(size_t)1 << 20, (size_t)2 << 20};
    uint64_t random = test_seed(13);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        static struct bed bed;
        struct test_alloc alloc;
        bed_open(&bed, &random, EVENTS_MAX, 60, 0);
        test_alloc_init(&alloc);
        bed.options.alloc = &alloc.allocator;
        bed.options.bytes_max = bounds[i];
        begin(&bed, "bounded");
        size_t fixed = alloc.live_bytes;
        assert_ok(take_all(&bed, &random));
        print_message("# at most %zu bytes: %zu\n", bounds[i], alloc.live_bytes_max - fixed);
        /* A map that grows is there twice for a moment; and what is put is sorted first. */
        assert_in_range(alloc.live_bytes_max - fixed, bounds[i] / 2, bounds[i] + bounds[i] / 2);
        end(&bed);
        test_alloc_release(&alloc);
        bed_close(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(no_transaction_has_more_rows_than_it_may_and_each_leaves_the_state_at_the_positions),
        RUN(a_failure_between_two_transactions_leaves_partitions_that_go_on_each_from_its_own_position),
        RUN(the_sets_take_no_more_memory_than_they_may_however_many_events_there_are),
    };
    return TEST_MAIN(tests);
}
