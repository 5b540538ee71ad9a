/* bench/project.c: what lanes cost, and what they bring.
 *
 * Slow handlers in parallel against the same handlers one after the other; operations through the journal
 * against the commands that they follow from; and operations applied again against LMDB that is given the same
 * rows bare. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <lmdb.h>
#include <pawl/pawl.h>

#include "adapter/lmdb/store.h"
#include "base/alloc.h"
#include "bench/lib/bench.h"
#include "bench/lib/crowd.h"
#include "bench/peers/lmdb_version.h"
#include "bench/project/conflicts.h"
#include "core/project/redo.h"
#include "core/state/key.h"
#include "engine/node/node.h"
#include "engine/read/read.h"

#define WORKSPACES    1000
#define WORKERS       64
#define HANDLER       20 /* ms */
#define PER_COMMIT    4096
#define MAP_BYTES     ((size_t)8 << 30)
#define HANDLED       ((uint64_t)64 * 50 * 4)
#define HANDLED_ALONE ((uint64_t)100)
#define PROJECTED     ((uint64_t)200000)

/* Four invoices of a workspace share a row: so rows are many, and scattered, and written more than once. */
static const char schema[] =
    "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {\"cents\": {\"type\": \"int64\"},"
    "   \"text\": {\"type\": \"string\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}},"
    " \"entities\": {"
    "   \"Total\": {\"key\": [\"day\"], \"fields\": {\"day\": {\"type\": \"int64\"}, \"cents\": {\"type\": "
    "\"int64\"},"
    "     \"text\": {\"type\": \"string\"}}},"
    "   \"Letter\": {\"key\": [\"invoice\"], \"fields\": {\"invoice\": {\"type\": \"int64\"},"
    "     \"cents\": {\"type\": \"int64\"}}}},"
    " \"projectors\": {%s}}";

static const char totals[] = "\"totals\": {\"on\": [\"Bill\"], \"do\": [{\"upsert\": \"Total\", \"key\": "
                             "{\"day\": \"$event.workspace_offset / 4\"},"
                             " \"set\": {\"cents\": \"coalesce(cents, 0) + $event.records.Invoice.cents\","
                             " \"text\": \"$event.records.Invoice.text\"}}]}";

/* --- a directory with invoices --- */

static void bill(void *arg, pawl_request *r, uint64_t n)
{
    pawl_request_begin(r, n % WORKSPACES + 1, "bench.Bill");
    pawl_request_record(r, 1, "bench.Invoice");
    pawl_request_set_int64(r, "cents", 12345);
    pawl_request_set_string(r, "text", "Consulting in November, as agreed");
}

static bool send_commands(pawl_engine *engine, uint64_t count)
{
    return crowd_run(&(struct crowd){.engine = engine, .make = bill, .most = count}) == count;
}

static bool open_shop(const struct bench_round *round, uint32_t partitions, const char *projectors,
                      pawl_engine **ret_engine)
{
    pawl_options options = {.partitions = partitions, .shards = partitions > 1 ? 2 : 1};
    char text[4096];
    pawl_error error = {0};
    pawl_answer answer;
    pawl_request *request;
    snprintf(text, sizeof text, schema, projectors);
    if (pawl_open(round->dir, &options, ret_engine, &error) != PAWL_OK)
        return bench_failed("open", &error) > 0;
    int status = pawl_schema_apply(*ret_engine, text, NULL, &error);
    if (status == PAWL_OK)
        status = pawl_request_new(*ret_engine, &request);
    if (status != PAWL_OK)
        return bench_failed("schema", &error) > 0;
    for (uint64_t wsid = 1; status == PAWL_OK && wsid <= WORKSPACES; wsid++)
        status = pawl_workspace_create(*ret_engine, request, wsid, "bench.tenant", &answer, &error);
    pawl_request_free(request);
    return status == PAWL_OK || bench_failed("workspace", &error) > 0;
}

/* --- slow handlers --- */

static int slow(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct timespec pause = {.tv_nsec = HANDLER * 1000 * 1000};
    (void)ctx;
    (void)arg;
    nanosleep(&pause, NULL);
    int status = pawl_results_upsert(results, "bench.Letter");
    status = status ? status : pawl_results_set_int64(results, "invoice", (int64_t)event->workspace_offset);
    return status ? status : pawl_results_set_int64(results, "cents", 1);
}

/* Operations a second: every one of them takes 20 ms. */
static double handle(const struct bench_round *round, unsigned workers, uint64_t count)
{
    pawl_engine *engine;
    pawl_error error = {0};
    char projector[200];
    snprintf(projector, sizeof projector,
             "\"letters\": {\"on\": [\"Bill\"], \"writes\": [\"Letter\"], \"workers\": %u}", workers);
    if (!open_shop(round, 1, projector, &engine) || !send_commands(engine, count))
        return 0;
    uint64_t began = bench_begin();
    int status = pawl_projector_register(engine, "bench.letters", slow, NULL, &error);
    if (status == PAWL_OK)
        status = pawl_lanes_wait(engine, NULL, 120 * PAWL_SECOND, &error);
    double rate = bench_per_second(count, began);
    pawl_close(engine);
    return status == PAWL_OK ? rate : bench_failed("handlers", &error);
}

static double handle_in_parallel(const struct bench_round *round)
{
    return handle(round, WORKERS, round->quick ? HANDLED / 4 : HANDLED);
}

static double handle_one_by_one(const struct bench_round *round)
{
    return WORKERS * handle(round, 1, HANDLED_ALONE);
}

/* --- operations through the journal --- */

static double projected(const struct bench_round *round)
{
    uint64_t count = round->quick ? PROJECTED / 10 : PROJECTED;
    pawl_engine *engine;
    pawl_error error = {0};
    if (!open_shop(round, 16, totals, &engine)
        || pawl_lane_pause(engine, "bench.totals", true, &error) != PAWL_OK || !send_commands(engine, count))
        return bench_failed("pause", &error);
    uint64_t began = bench_begin();
    int status = pawl_lane_pause(engine, "bench.totals", false, &error);
    if (status == PAWL_OK)
        status = pawl_lanes_wait(engine, NULL, 120 * PAWL_SECOND, &error);
    double rate = bench_per_second(count, began);
    pawl_close(engine);
    return status == PAWL_OK ? rate : bench_failed("projecting", &error);
}

static double commanded(const struct bench_round *round)
{
    uint64_t count = round->quick ? PROJECTED / 10 : PROJECTED;
    pawl_engine *engine;
    if (!open_shop(round, 16, "", &engine))
        return 0;
    uint64_t began = bench_begin();
    bool sent = send_commands(engine, count);
    double rate = bench_per_second(count, began);
    pawl_close(engine);
    return sent ? rate : 0;
}

/* --- operations applied again --- */

struct again {
    pawl_engine *engine;
    struct redo redo;
    struct cursor cursor;
    struct gathered gathered;
    struct arena memory;
    uint64_t count;
    int status;
};

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    return engine_schema_at(ctx, position);
}

/* As pawl_replay does it. */
static bool apply_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct again *a = read->arg;
    a->status = redo_operation(&a->redo, entry->offset, place, entry->body, read->error);
    if (a->status == PAWL_OK && ++a->count % PER_COMMIT == 0)
        a->status = redo_commit(&a->redo, read->error);
    return a->status == PAWL_OK;
}

/* Applies the logs of all partitions to one store. There is only one partition: to read one stream of a journal
 * means to step over all others, and that is not the question here. */
static bool apply_again(pawl_engine *engine, pawl_store *store, uint64_t *ret_count)
{
    struct again a = {.engine = engine};
    pawl_error error = {0};
    int status = PAWL_OK;
    gathered_init(&a.gathered, NULL);
    arena_init(&a.memory, NULL, (size_t)256 * 1024);
    uint8_t *scratch = mem_new(NULL, 1, STATE_SCRATCH_BYTES);
    for (uint32_t p = 0; status == PAWL_OK && p < pawl_partitions(engine); p++) {
        pawl_stream oplog = {.kind = PAWL_STREAM_OPLOG, .partition = (uint16_t)p, .lane = 1, .generation = 1};
        cursor_init(&a.cursor, NULL, (uint16_t)p, 1, 1);
        a.redo = (struct redo){.store = store,
                               .cursor = &a.cursor,
                               .gathered = &a.gathered,
                               .memory = &a.memory,
                               .scratch = scratch,
                               .schema_at = schema_at,
                               .ctx = engine};
        status = engine_read_log(engine, oplog, 1, UINT64_MAX, apply_entry, &a, NULL, &error);
        status = status == PAWL_OK ? a.status : status;
        status = status == PAWL_OK ? redo_commit(&a.redo, &error) : status;
        cursor_release(&a.cursor);
    }
    mem_free(NULL, scratch, STATE_SCRATCH_BYTES);
    arena_release(&a.memory);
    gathered_release(&a.gathered);
    *ret_count = a.count;
    return status == PAWL_OK || bench_failed("applying", &error) > 0;
}

/* Opens the directory read-only, so that nothing else works in it. */
static bool make_operations(const struct bench_round *round, pawl_engine **ret_engine)
{
    pawl_options reading = {.read_only = true};
    pawl_engine *engine;
    pawl_error error = {0};
    if (!open_shop(round, 1, totals, &engine)
        || !send_commands(engine, round->quick ? PROJECTED / 10 : PROJECTED))
        return false;
    int status = pawl_lanes_wait(engine, NULL, 120 * PAWL_SECOND, &error);
    pawl_close(engine);
    if (status == PAWL_OK)
        status = pawl_open(round->dir, &reading, ret_engine, &error);
    return status == PAWL_OK || bench_failed("projecting", &error) > 0;
}

static double apply_ours(const struct bench_round *round)
{
    pawl_engine *engine;
    char dir[4200];
    uint64_t count = 0;
    snprintf(dir, sizeof dir, "%s/again", round->dir);
    struct lmdb_options options = {.dir = dir, .mode = PAWL_STORE_FAST};
    pawl_store *store;
    pawl_error error = {0};
    if (!make_operations(round, &engine))
        return 0;
    if (lmdb_store_open(&options, NULL, &store, &error) != PAWL_OK)
        return bench_failed("store", &error);
    bool applied = apply_again(engine, store, &count); /* the file has its size now, and every row is there */
    count = 0;
    uint64_t began = bench_begin();
    applied = applied && apply_again(engine, store, &count);
    double rate = bench_per_second(count, began);
    pawl_store_close(store);
    pawl_close(engine);
    return applied ? rate : 0;
}

/* What a row of Total takes: its key's field is a byte and eight more, and it has three fields, of which one is
 * a text. */
#define TOTAL_KEY (KEY_WORKSPACE + 9)
#define TOTAL_ROW ((size_t)4 + 1 + 3 * 8 + 33)

/* The same number of rows of the same size, at the same keys, in transactions of the same length, and no more
 * durable. To put them is all there is to do: no log to be read and checked, nothing decoded, no row merged
 * with what it was, no digest. */
static double apply_bare(const struct bench_round *round)
{
    uint64_t count = round->quick ? PROJECTED / 10 : PROJECTED;
    uint8_t key[TOTAL_KEY] = {0}, value[TOTAL_ROW] = {1};
    MDB_env *env;
    MDB_txn *txn = NULL;
    MDB_dbi dbi;
    lmdb_note_version();
    int rc = mdb_env_create(&env);
    rc = rc ? rc : mdb_env_set_mapsize(env, MAP_BYTES);
    rc = rc ? rc : mdb_env_open(env, round->dir, MDB_NOSYNC | MDB_NOTLS | MDB_WRITEMAP, 0600);
    rc = rc ? rc : mdb_txn_begin(env, NULL, 0, &txn);
    rc = rc ? rc : mdb_dbi_open(txn, NULL, MDB_CREATE, &dbi);
    uint64_t began = 0;
    for (uint64_t i = 0; rc == 0 && i < 2 * count; i++) {
        uint64_t n = i % count;
        if (i == count) /* every row is there now */
            began = bench_begin();
        uint64_t wsid = n % WORKSPACES + 1;
        key_of_workspace(256, wsid, key);
        put_u64_sorted(key + KEY_WORKSPACE + 1, (n / WORKSPACES + 2) / 4);
        memcpy(value + 8, &i, sizeof i);
        MDB_val k = {sizeof key, key}, v = {sizeof value, value};
        rc = mdb_put(txn, dbi, &k, &v, 0);
        if (rc == 0 && (i + 1) % PER_COMMIT == 0) {
            rc = mdb_txn_commit(txn);
            rc = rc ? rc : mdb_txn_begin(env, NULL, 0, &txn);
        }
    }
    rc = rc ? rc : mdb_txn_commit(txn);
    double rate = bench_per_second(count, began);
    mdb_env_close(env);
    if (rc)
        fprintf(stderr, "LMDB: %s\n", mdb_strerror(rc));
    return rc ? 0 : rate;
}

/* A question about handlers of 20 ms that read what earlier operations write. */
#define CONFLICTS(text, of_ideal, how, by, events)                                                             \
    {                                                                                                          \
        .question = text, .unit = "op/s", .better = BENCH_MORE, .goal = of_ideal, .ours = conflicts_handle,    \
        .peer = conflicts_ideal, .arg = &(struct conflicts)                                                    \
        {                                                                                                      \
            .keys = how, .workers = by, .count = events                                                        \
        }                                                                                                      \
    }

static const struct bench_question questions[] = {
    {.question = "handlers of 20 ms, 64 workers (peer: 64 times one worker)",
     .unit = "op/s",
     .better = BENCH_MORE,
     .goal = 0.95,
     .ours = handle_in_parallel,
     .peer = handle_one_by_one},
    CONFLICTS("20 ms handlers of one key, 1 worker (peer: ideal)", 0.95, KEYS_ONE, 1, 200),
    CONFLICTS("20 ms handlers of one key, 64 workers (peer: ideal)", 0.9, KEYS_ONE, 64, 200),
    CONFLICTS("20 ms handlers of 8 keys by turns, 64 workers (peer: ideal)", 0.7, KEYS_BY_TURNS, 64, 1600),
    CONFLICTS("20 ms handlers of 8 random keys, 64 workers (peer: ideal)", 0.7, KEYS_EIGHT, 64, 1600),
    CONFLICTS("20 ms handlers of 1,000 random keys, 1 worker (peer: ideal)", 0.95, KEYS_RANDOM, 1, 200),
    CONFLICTS("20 ms handlers of 1,000 random keys, 16 workers (peer: ideal)", 0.93, KEYS_RANDOM, 16, 3200),
    CONFLICTS("20 ms handlers of 1,000 random keys, 64 workers (peer: ideal)", 0.55, KEYS_RANDOM, 64, 12800),
    CONFLICTS("20 ms handlers of Zipf keys, 64 workers (peer: ideal)", 0.7, KEYS_ZIPF, 64, 1600),
    CONFLICTS("20 ms handlers, statements of the demo, 64 workers (peer: ideal)", 0.67, KEYS_DEMO, 64, 9600),
    {.question = "20 ms handlers, statements of the demo: runs repeated",
     .unit = "%",
     .better = BENCH_LESS,
     .goal = 10,
     .ours = conflicts_repeated,
     .arg = &(struct conflicts){.keys = KEYS_DEMO, .workers = 64, .count = 9600}},
    {.question = "durable operations (peer: commands, 64 outstanding)",
     .unit = "op/s",
     .better = BENCH_MORE,
     .goal = 0.6,
     .ours = projected,
     .peer = commanded},
    {.question = "operations applied again (peer: the same rows, LMDB bare)",
     .unit = "op/s",
     .better = BENCH_MORE,
     .goal = 0.7,
     .ours = apply_ours,
     .peer = apply_bare},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof questions[0]);
}
