/* bench/commands.c: what a command costs, from request to durable, applied and answered.
 *
 * The peer of writing is the plainest program that is as durable (bench/lib/raw.h), with as many bytes a record
 * as an event has in the journal, one record a sync or 64. Commands go to 10,000 workspaces in turn, each makes
 * an event of about 300 bytes and writes one record. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lmdb.h>
#include <sqlite3.h>

#include <pawl/pawl.h>

#include "bench/lib/bench.h"
#include "bench/lib/crowd.h"
#include "bench/lib/raw.h"
#include "engine/knobs.h"

#define WORKSPACES 10000
#define RECORD     ((size_t)360) /* an event's bytes in the journal */

static const char schema[] =
    "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": "
    "{\"first\": 1}}}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {"
    "   \"number\": {\"type\": \"int64\", \"sequence\": \"invoice\"}, \"cents\": {\"type\": \"int64\"},"
    "   \"text\": {\"type\": \"string\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}}}";

/* 84 bytes: with heads, numbers and the row an event has 300. */
static const char text[] = "Consulting in the month of November, as agreed: 3 days on site and 2 days remote";

static uint64_t duration_of(const struct bench_round *round)
{
    return (round->quick ? 300 : 1500) * UINT64_C(1000000);
}

static void bill(pawl_request *r, uint64_t wsid, pawl_ack ack)
{
    pawl_request_begin(r, wsid, "bench.Bill");
    pawl_request_record(r, 1, "bench.Invoice");
    pawl_request_set_int64(r, "cents", 12345);
    pawl_request_set_string(r, "text", text);
    pawl_request_ack(r, ack);
}

static void bill_in_turn(void *arg, pawl_request *request, uint64_t n)
{
    bill(request, n % WORKSPACES + 1, *(const pawl_ack *)arg);
}

static uint64_t workspaces = WORKSPACES;

static bool make_workspaces(pawl_engine *engine, uint64_t first, uint64_t step)
{
    pawl_request *request;
    pawl_error error = {0};
    if (pawl_request_new(engine, &request) != PAWL_OK)
        return false;
    bool ok = true;
    for (uint64_t wsid = first; ok && wsid <= workspaces; wsid += step)
        ok = pawl_workspace_create(engine, request, wsid, "bench.tenant", NULL, &error) == PAWL_OK;
    pawl_request_free(request);
    if (!ok)
        bench_failed("workspace", &error);
    return ok;
}

struct maker {
    pthread_t thread;
    pawl_engine *engine;
    uint64_t first;
    bool ok;
};

static void *maker_main(void *arg)
{
    struct maker *m = arg;
    m->ok = make_workspaces(m->engine, m->first, CROWD);
    return NULL;
}

static pawl_engine *open_engine(const char *dir)
{
    pawl_engine *engine;
    pawl_error error = {0};
    struct maker makers[CROWD];
    bool ok = true;
    char path[PATH_MAX];
    const pawl_options defaults = {0};
    const struct engine_knobs knobs = {.no_checkpoint = getenv("PAWL_BENCH_ALONE") != NULL};
    snprintf(path, sizeof path, "%s/pawl", dir);
    if (engine_open(path, &defaults, &knobs, &engine, &error) != PAWL_OK) {
        bench_failed(path, &error);
        return NULL;
    }
    if (pawl_schema_apply(engine, schema, NULL, &error) != PAWL_OK) {
        bench_failed("schema", &error);
        pawl_close(engine);
        return NULL;
    }
    for (unsigned i = 0; i < CROWD; i++) {
        makers[i] = (struct maker){.engine = engine, .first = i + 1};
        pthread_create(&makers[i].thread, NULL, maker_main, &makers[i]);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        pthread_join(makers[i].thread, NULL);
        ok = ok && makers[i].ok;
    }
    if (ok)
        return engine;
    pawl_close(engine);
    return NULL;
}

static uint64_t bill_blocking(pawl_engine *engine, uint64_t first, uint64_t deadline)
{
    pawl_request *request;
    pawl_error error = {0};
    uint64_t count = 0;
    if (pawl_request_new(engine, &request) != PAWL_OK)
        return 0;
    for (; bench_now() < deadline; count++) {
        bill(request, (first + count * CROWD) % WORKSPACES + 1, PAWL_ACK_APPLIED);
        if (pawl_command(engine, request, NULL, &error) != PAWL_OK) {
            bench_failed("command", &error);
            count = 0;
            break;
        }
    }
    pawl_request_free(request);
    return count;
}

static double alone(const struct bench_round *round)
{
    pawl_engine *engine = open_engine(round->dir);
    if (!engine)
        return 0;
    uint64_t began = bench_begin();
    double rate = bench_per_second(bill_blocking(engine, 0, bench_now() + duration_of(round)), began);
    pawl_close(engine);
    return rate;
}

static double outstanding(const struct bench_round *round)
{
    pawl_engine *engine = open_engine(round->dir);
    if (!engine)
        return 0;
    uint64_t began = bench_begin();
    struct crowd crowd = {
        .engine = engine, .make = bill_in_turn, .arg = round->arg, .deadline = began + duration_of(round)};
    double rate = bench_per_second(crowd_run(&crowd), began);
    pawl_close(engine);
    return rate;
}

struct blocking {
    pthread_t thread;
    pawl_engine *engine;
    uint64_t first;
    uint64_t deadline;
    uint64_t count;
};

static void *blocking_main(void *arg)
{
    struct blocking *b = arg;
    b->count = bill_blocking(b->engine, b->first, b->deadline);
    return NULL;
}

static double threads(const struct bench_round *round)
{
    static struct blocking all[CROWD];
    pawl_engine *engine = open_engine(round->dir);
    if (!engine)
        return 0;
    uint64_t began = bench_begin(), deadline = bench_now() + duration_of(round), count = 0;
    for (unsigned i = 0; i < CROWD; i++) {
        all[i] = (struct blocking){.engine = engine, .first = i, .deadline = deadline};
        pthread_create(&all[i].thread, NULL, blocking_main, &all[i]);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        pthread_join(all[i].thread, NULL);
        count += all[i].count;
    }
    double rate = bench_per_second(count, began);
    pawl_close(engine);
    return rate;
}

static double raw_alone(const struct bench_round *round)
{
    return raw_append(round, RECORD, 1, duration_of(round));
}

static double raw_crowd(const struct bench_round *round)
{
    return raw_append(round, RECORD, CROWD, duration_of(round));
}

/* --- SQLite: one row a transaction, in a WAL that is synced for each --- */

static double sqlite(const struct bench_round *round)
{
    static const char prepare[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE invoice(id INTEGER PRIMARY KEY, wsid INTEGER, number INTEGER, body BLOB);"
        "CREATE INDEX by_number ON invoice(wsid, number);";
    static const char event[300] = "an event";
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    snprintf(path, sizeof path, "%s/sqlite", round->dir);
    bool ok =
        sqlite3_open(path, &db) == SQLITE_OK && sqlite3_exec(db, prepare, NULL, NULL, NULL) == SQLITE_OK
        && sqlite3_prepare_v2(db, "INSERT INTO invoice(wsid, number, body) VALUES (?, ?, ?)", -1, &insert, NULL)
               == SQLITE_OK;
    uint64_t count = 0, deadline = bench_now() + duration_of(round), began = bench_begin();
    for (; ok && bench_now() < deadline; count++) {
        sqlite3_bind_int64(insert, 1, (sqlite3_int64)(count % WORKSPACES));
        sqlite3_bind_int64(insert, 2, (sqlite3_int64)(count / WORKSPACES));
        sqlite3_bind_blob(insert, 3, event, sizeof event, SQLITE_STATIC);
        ok = sqlite3_step(insert) == SQLITE_DONE;
        sqlite3_reset(insert);
    }
    double rate = bench_per_second(count, began);
    if (!ok)
        fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(db));
    sqlite3_finalize(insert);
    sqlite3_close(db);
    return ok ? rate : 0;
}

/* --- reading a record, beside LMDB bare --- */

#define READS 400000

static bool see_cents(void *arg, const pawl_row *record)
{
    int64_t cents = 0;
    (void)pawl_row_int64(record, "cents", &cents, NULL);
    *(int64_t *)arg += cents;
    return true;
}

static double read_records(const struct bench_round *round)
{
    pawl_engine *engine = open_engine(round->dir);
    pawl_error error = {0};
    if (!engine)
        return 0;
    pawl_request *request;
    bool ok = pawl_request_new(engine, &request) == PAWL_OK;
    for (uint64_t wsid = 1; ok && wsid <= CROWD; wsid++) {
        bill(request, wsid, PAWL_ACK_APPLIED);
        ok = pawl_command(engine, request, NULL, &error) == PAWL_OK;
    }
    pawl_request_free(request);
    if (!ok)
        return bench_failed("command", &error);
    uint64_t reads = round->quick ? READS / 10 : READS, began = bench_begin();
    int64_t sum = 0;
    for (uint64_t i = 0; i < reads; i++)
        if (pawl_record_read(engine, i % CROWD + 1, "bench.Invoice", 200001, NULL, see_cents, &sum, &error)
            != PAWL_OK)
            return bench_failed("read", &error);
    double rate = bench_per_second(reads, began);
    pawl_close(engine);
    return sum == (int64_t)reads * 12345 ? rate : 0;
}

/* LMDB has as many rows as the engine has for the records, under keys of the same length. Each get renews a
 * transaction, as a server's would. */
static double read_lmdb(const struct bench_round *round)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    uint8_t key_bytes[28] = {0}, value_bytes[160] = {0};
    MDB_val key = {.mv_size = sizeof key_bytes, .mv_data = key_bytes}, value;
    bool ok = mdb_env_create(&env) == 0 && mdb_env_set_mapsize(env, (size_t)1 << 30) == 0
              && mdb_env_open(env, round->dir, MDB_NOSYNC | MDB_NOTLS, 0600) == 0
              && mdb_txn_begin(env, NULL, 0, &txn) == 0 && mdb_dbi_open(txn, NULL, 0, &dbi) == 0;
    for (uint32_t i = 0; ok && i < 2 * WORKSPACES; i++) {
        uint64_t mixed = i * UINT64_C(0x9e3779b97f4a7c15);
        memcpy(key_bytes + 4, &mixed, sizeof mixed);
        value = (MDB_val){.mv_size = sizeof value_bytes, .mv_data = value_bytes};
        ok = mdb_put(txn, dbi, &key, &value, 0) == 0;
    }
    ok = ok && mdb_txn_commit(txn) == 0 && mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0;
    if (!ok)
        return bench_failed("lmdb", NULL);
    mdb_txn_reset(txn);
    uint64_t reads = round->quick ? READS / 10 : READS, began = bench_begin(), sum = 0;
    for (uint64_t i = 0; ok && i < reads; i++) {
        uint64_t mixed = i % CROWD * UINT64_C(0x9e3779b97f4a7c15);
        memcpy(key_bytes + 4, &mixed, sizeof mixed);
        ok = mdb_txn_renew(txn) == 0 && mdb_get(txn, dbi, &key, &value) == 0;
        sum += ok ? value.mv_size : 0;
        mdb_txn_reset(txn);
    }
    double rate = bench_per_second(reads, began);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return ok && sum == reads * sizeof value_bytes ? rate : bench_failed("lmdb", NULL);
}

/* --- opening after a kill, with many events in the log --- */

#define EVENTS UINT64_C(10000000)

static void write_events(const char *dir, uint64_t events, int told)
{
    pawl_ack applied = PAWL_ACK_APPLIED;
    pawl_engine *engine = open_engine(dir);
    struct crowd crowd = {.engine = engine, .make = bill_in_turn, .arg = &applied, .most = events};
    if (!engine || crowd_run(&crowd) == 0)
        _exit(1);
    (void)!write(told, "x", 1);
    for (;;)
        pause();
}

static double restart(const struct bench_round *round)
{
    int pipes[2];
    char path[PATH_MAX], byte;
    pawl_engine *engine;
    pawl_error error = {0};
    pid_t child = pipe(pipes) == 0 ? fork() : -1;
    if (child == 0)
        write_events(round->dir, round->quick ? EVENTS / 100 : EVENTS, pipes[1]);
    close(pipes[1]);
    bool ok = child > 0 && read(pipes[0], &byte, 1) == 1;
    close(pipes[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    snprintf(path, sizeof path, "%s/pawl", round->dir);
    uint64_t began = bench_begin();
    if (!ok || pawl_open(path, NULL, &engine, &error) != PAWL_OK)
        return bench_failed("restart", &error);
    pawl_request *request;
    ok = pawl_request_new(engine, &request) == PAWL_OK;
    if (ok) {
        bill(request, 1, PAWL_ACK_APPLIED);
        ok = pawl_command(engine, request, NULL, &error) == PAWL_OK;
    }
    double ms = (double)(bench_now() - began) / 1e6;
    pawl_request_free(request);
    pawl_close(engine);
    return ok ? ms : bench_failed("restart", &error);
}

/* --- memory beside mapped pages --- */

static double resident(const struct bench_round *round)
{
    char line[256];
    double mib = 0;
    malloc_trim(0); /* memory that earlier rounds have freed must not count */
    workspaces = round->quick ? 20000 : 1000000;
    pawl_engine *engine = open_engine(round->dir);
    workspaces = WORKSPACES;
    FILE *status = fopen("/proc/self/status", "r");
    while (engine && status && fgets(line, sizeof line, status))
        if (strncmp(line, "RssAnon:", 8) == 0)
            mib = strtod(line + 8, NULL) / 1024;
    if (status)
        fclose(status);
    pawl_close(engine);
    return mib;
}

int main(int argc, char **argv)
{
    static pawl_ack applied = PAWL_ACK_APPLIED, durable = PAWL_ACK_DURABLE;
    static const struct bench_question questions[] = {
        {"command: one at a time", "op/s", BENCH_MORE, 0.7, alone, raw_alone, NULL},
        {"command: one at a time (peer: SQLite)", "op/s", BENCH_MORE, 1, alone, sqlite, NULL},
        {"command: 64 outstanding, applied", "op/s", BENCH_MORE, 0.4, outstanding, raw_crowd, &applied},
        {"command: 64 outstanding, durable", "op/s", BENCH_MORE, 0.7, outstanding, raw_crowd, &durable},
        {"command: 64 blocking threads", "op/s", BENCH_MORE, 0.3, threads, raw_crowd, NULL},
        {"read a record (peer: LMDB)", "op/s", BENCH_MORE, 0.8, read_records, read_lmdb, NULL},
        {"open after a kill, 10 M events", "ms", BENCH_LESS, 1000, restart, NULL, NULL},
        {"memory with 1 M workspaces", "MiB", BENCH_LESS, 100, resident, NULL, NULL},
    };
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
