/* test_engine_lanes.c: lanes of an engine: what declarative projectors make, how a lane is paused and goes on,
 * and what is shown of it. */
#include "test/lib/lanes.h"

#include "adapter/lmdb/store.h"
#include "core/project/cursor.h"
#include "core/state/key.h"
#include "engine/node/node.h"

#define NOTES ", \"workers\": 3"

/* --- declarative --- */

TEST(a_lane_fills_its_entities_as_a_serial_run_would)
{
    struct lanes_bed bed = {0};
    uint64_t seed = test_seed(7), last[TENANTS + 1] = {0};
    int64_t expected[TENANTS + 1][3] = {{0}};
    char key[16];
    static const char *const names[] = {"ada", "bob", "cyd"};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    for (int i = 0; i < 400; i++) {
        uint64_t wsid = 1 + test_below(&seed, TENANTS);
        if (test_below(&seed, 4) == 0) {
            last[wsid] = bed_send(&bed, wsid, "t.Raise", "x", 7);
            for (size_t k = 0; k < 3; k++)
                expected[wsid][k] += expected[wsid][k] > 100 ? 7 : 0;
        } else {
            size_t who = test_below(&seed, 3);
            int64_t cents = (int64_t)test_below(&seed, 60);
            last[wsid] = bed_send(&bed, wsid, "t.Bill", names[who], cents);
            expected[wsid][who] += cents;
        }
    }
    for (uint64_t wsid = 1; wsid <= TENANTS; wsid++)
        for (size_t k = 0; k < 3; k++) {
            char cents[32];
            snprintf(key, sizeof key, "[\"%s\"]", names[k]);
            const char *row = bed_row(&bed, wsid, "t.Total", key, last[wsid]);
            snprintf(cents, sizeof cents, "\"cents\":%" PRId64 ",", expected[wsid][k]);
            if (row[0])
                assert_contains(row, cents);
            else
                assert_int_equal(expected[wsid][k], 0);
        }
    bed_wait(&bed, "t.totals");
    bed_end(&bed);
}

TEST(a_lane_goes_on_where_it_was_when_the_engine_is_opened_again)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 50; i++)
            bed_send(&bed, 1, "t.Bill", "ada", 1);
        bed_close(&bed); /* in the middle */
        bed_open(&bed);
    }
    bed_wait(&bed, "t.totals");
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"bills\":200");
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    assert_int_equal(bed_status(&bed, "t.totals", partition, 0).operations, 200);
    BED_UNTIL(bed_status(&bed, "t.totals", partition, 0).state == PAWL_LANE_RUNNING);
    bed_end(&bed);
}

/* --- pausing --- */

TEST(a_lane_stays_paused_when_the_directory_is_opened_again)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    assert_status(pawl_lane_pause(bed.engine, "t.nothing", true, &bed.error), PAWL_ENOTFOUND);
    assert_ok(pawl_lane_pause(bed.engine, "t.totals", true, &bed.error));
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    assert_status(pawl_lanes_wait(bed.engine, "t.totals", BED_PATIENCE, &bed.error), PAWL_EBUSY);
    assert_contains(bed.error.text, "paused");
    bed_close(&bed);
    bed_open(&bed);
    assert_true(bed_status(&bed, "t.totals", 0, 0).paused);
    assert_false(bed_status(&bed, "t.marks", 0, 0).paused);
    assert_status(pawl_lanes_wait(bed.engine, "t.totals", BED_PATIENCE, &bed.error), PAWL_EBUSY);
    assert_int_equal(bed_count(&bed, 1, "t.Total"), 0);
    assert_ok(pawl_lane_pause(bed.engine, "t.totals", false, &bed.error));
    bed_wait(&bed, "t.totals");
    assert_int_equal(bed_count(&bed, 1, "t.Total"), 1);
    bed_close(&bed);
    bed_open(&bed);
    assert_false(bed_status(&bed, "t.totals", 0, 0).paused);
    bed_end(&bed);
}

/* --- what cannot go on --- */

/* The first lane's cursor, in a partition of a directory that is closed. */
static void spoil_cursor(struct lanes_bed *bed, uint16_t partition)
{
    char path[400];
    uint8_t key[CURSOR_KEY];
    struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_FAST};
    pawl_store *store;
    snprintf(path, sizeof path, "%s/state/%u", bed->path, partition % bed->options.shards);
    assert_ok(lmdb_store_open(&options, NULL, &store, &bed->error));
    assert_ok(pawl_store_put(store, STATE_SPACE, cursor_key(partition, 1, 1, key), text_bytes("nonsense")));
    assert_ok(pawl_store_commit(store));
    assert_ok(pawl_store_close(store));
}

struct first_refused {
    pawl_lane_status status;
    char error[200];
};

static bool keep_refused(void *arg, const pawl_lane_status *status)
{
    struct first_refused *refused = arg;
    if (status->state != PAWL_LANE_REFUSED)
        return true;
    refused->status = *status;
    snprintf(refused->error, sizeof refused->error, "%.190s", status->error);
    return false;
}

TEST(a_lane_that_is_refused_refuses_nothing_else)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    bed_wait(&bed, "t.totals");
    bed_close(&bed);
    spoil_cursor(&bed, partition);
    bed_open(&bed);
    struct first_refused refused = {{0}, ""};
    assert_ok(pawl_lanes_read(bed.engine, NULL, keep_refused, &refused, &bed.error));
    assert_int_equal(refused.status.partition, partition);
    assert_int_equal(refused.status.id, 1);
    assert_contains(refused.error, "cursor");
    assert_status(pawl_lanes_wait(bed.engine, "t.totals", BED_PATIENCE, &bed.error), PAWL_EBUSY);
    assert_contains(bed.error.text, "refused");
    uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 1); /* and another lane */
    bed_row(&bed, 1, "t.Mark", "[1]", last);
    assert_int_equal(bed_count(&bed, 1, "t.Mark"), 1);
    bed_end(&bed);
}

/* --- read only --- */

TEST(an_engine_that_only_reads_shows_what_is_there)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    bed_send(&bed, 1, "t.Bill", "ada", 5);
    uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 5); /* in which the lane sees nothing to do */
    bed_wait(&bed, "t.totals");
    bed_close(&bed);
    bed.options.read_only = true;
    assert_ok(pawl_open(bed.path, &bed.options, &bed.engine, &bed.error));
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", last), "\"cents\":5");
    pawl_lane_status status = bed_status(&bed, "t.totals", pawl_partition_of(bed.engine, 1), 0);
    assert_int_equal(status.state, PAWL_LANE_CLOSED);
    assert_int_equal(status.operations, 1);
    assert_int_equal(status.offset, last);
    assert_int_equal(status.end, last);
    assert_status(pawl_lane_rebuild(bed.engine, "t.totals", &bed.error), PAWL_EREADONLY);
    assert_ok(pawl_close(bed.engine));
    bed.engine = NULL;
    bed_end(&bed);
}

/* --- what a handler may read --- */

#define READS_SCHEMA(reads)                                                                                    \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"                                    \
    " \"types\": {\"Item\": {\"kind\": \"WDoc\", \"fields\": {\"who\": {\"type\": \"string\"},"                \
    "   \"cents\": {\"type\": \"int64\"}}}}, \"commands\": {\"Ask\": {\"records\": [\"Item\"]}},"              \
    " \"entities\": {\"Mark\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"}}},"        \
    "   \"Note\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"},"                       \
    "     \"text\": {\"type\": \"string\"}}}},"                                                                \
    " \"projectors\": {"                                                                                       \
    "   \"marks\": {\"on\": [\"Ask\"], \"lane\": \"both\", \"do\": [{\"upsert\": \"Mark\","                    \
    "     \"key\": {\"event\": \"$event.offset\"}, \"set\": {}}]},"                                            \
    "   \"notes\": {\"on\": [\"Ask\"], \"lane\": \"both\", \"writes\": [\"Note\"]" reads "}}}"

/* What it is told when it reads what the other projector of its lane has written for the same event. */
static int read_mark(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    pawl_text row, rows;
    pawl_error error = {0};
    char key[32];
    size_t size = (size_t)snprintf(key, sizeof key, "[%" PRIu64 "]", event->offset);
    int status = pawl_handler_get(ctx, "t.Mark", (pawl_bytes){key, size}, &row, &error);
    if (status == PAWL_OK)
        pawl_text_free(&row);
    if (status == PAWL_EINVAL) /* not if it is only not there yet: then this run does not stand */
        assert_contains(error.text, "projector t.notes may not read t.Mark");
    int listed = pawl_handler_list(ctx, "t.Mark", (pawl_bytes){0}, 10, &rows, &error);
    if (listed == PAWL_OK)
        pawl_text_free(&rows);
    assert_int_equal(listed, status == PAWL_EINVAL ? PAWL_EINVAL : PAWL_OK);
    assert_status(pawl_handler_get(ctx, "t.Note", (pawl_bytes){key, size}, &row, &error), PAWL_ENOTFOUND);
    pawl_results_upsert(results, "t.Note");
    pawl_results_set_int64(results, "event", 1);
    return pawl_results_set_string(results, "text", status == PAWL_OK ? "seen" : "refused");
}

TEST(a_handler_reads_what_its_schema_says_that_it_reads_and_nothing_else)
{
    static const struct {
        const char *schema;
        const char *row;
    } cases[] = {
        {READS_SCHEMA(""), "{\"event\":1,\"text\":\"refused\"}"},
        {READS_SCHEMA(", \"reads\": [\"Mark\"]"), "{\"event\":1,\"text\":\"seen\"}"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct lanes_bed bed = {0};
        bed_begin(&bed, cases[i].schema);
        assert_ok(pawl_projector_register(bed.engine, "t.notes", read_mark, NULL, &bed.error));
        bed_send(&bed, 1, "t.Ask", "ada", 1);
        bed_wait(&bed, NULL);
        assert_string_equal(bed_row(&bed, 1, "t.Note", "[1]", 0), cases[i].row);
        bed_end(&bed);
    }
}

/* --- waiting for what is durable --- */

/* A store with no room: what a shard's applier writes stays in front of it. */
static int full_put(pawl_store *store, uint8_t space, pawl_bytes key, pawl_bytes value)
{
    return PAWL_EFULL;
}

static int full_remove(pawl_store *store, uint8_t space, pawl_bytes key)
{
    return PAWL_EFULL;
}

static int full_commit(pawl_store *store)
{
    return PAWL_EFULL;
}

static void full_abort(pawl_store *store)
{
}

static const struct pawl_store_ops full_ops = {
    .put = full_put, .remove = full_remove, .commit = full_commit, .abort = full_abort};

struct exchange {
    struct shard *shard;
    pawl_store *store;
};

static void exchange_store(void *arg)
{
    struct exchange *x = arg;
    x->shard->applier.store = x->store;
}

TEST(waiting_for_lanes_is_waiting_for_what_was_acknowledged_as_durable)
{
    struct lanes_bed bed = {0};
    pawl_store full = {.ops = &full_ops};
    bed_begin(&bed, LANES_SCHEMA(NOTES));
    bed_wait(&bed, "t.totals");
    struct shard *shard = shard_of(bed.engine, pawl_partition_of(bed.engine, 1));
    struct exchange away = {shard, &full}, back = {shard, shard->store};
    assert_ok(pawl_env_call(bed.engine->env, shard->index, exchange_store, &away));
    pawl_request_begin(bed.request, 1, "t.Bill");
    pawl_request_record(bed.request, 1, "t.Item");
    pawl_request_set_string(bed.request, "who", "ada");
    pawl_request_set_int64(bed.request, "cents", 1);
    pawl_request_ack(bed.request, PAWL_ACK_DURABLE);
    assert_ok(pawl_command(bed.engine, bed.request, NULL, &bed.error));
    assert_status(pawl_lanes_wait(bed.engine, "t.totals", 20 * PAWL_MILLISECOND, &bed.error), PAWL_ETIMEOUT);
    assert_ok(pawl_env_call(bed.engine->env, shard->index, exchange_store, &back));
    bed_wait(&bed, "t.totals");
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"bills\":1");
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_lane_fills_its_entities_as_a_serial_run_would),
        RUN(a_lane_goes_on_where_it_was_when_the_engine_is_opened_again),
        RUN(a_lane_stays_paused_when_the_directory_is_opened_again),
        RUN(a_lane_that_is_refused_refuses_nothing_else),
        RUN(an_engine_that_only_reads_shows_what_is_there),
        RUN(a_handler_reads_what_its_schema_says_that_it_reads_and_nothing_else),
        RUN(waiting_for_lanes_is_waiting_for_what_was_acknowledged_as_durable),
    };
    return TEST_MAIN(tests);
}
