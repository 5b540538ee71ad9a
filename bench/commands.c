/* bench/commands.c: what a command costs, from request to durable, applied and answered.
 *
 * The peer of writing is the plainest program that is as durable (bench/lib/raw.h), with as many bytes a record
 * as an event has in the journal, one record a sync or 64. Commands go to 10,000 workspaces in turn, each makes
 * an event of about 300 bytes and writes one record. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lmdb.h>

#include <pawl/pawl.h>

#include "bench/lib/bench.h"
#include "bench/lib/crowd.h"
#include "bench/lib/folder.h"
#include "bench/lib/invoices.h"
#include "bench/lib/pace.h"
#include "bench/lib/raw.h"
#include "bench/lib/steady.h"
#include "bench/peers/lmdb_version.h"

#define WORKSPACES 10000

static uint64_t duration_of(const struct bench_round *round)
{
    return (round->quick ? 300 : 1500) * UINT64_C(1000000);
}

static double commands(const struct bench_round *round, pawl_engine *engine, size_t under_way, pawl_ack ack,
                       uint64_t (*run)(const struct crowd *crowd))
{
    struct invoices_turn turn = {WORKSPACES, ack};
    if (!engine)
        return 0;
    uint64_t began = bench_begin();
    double rate = bench_per_second(run(&(struct crowd){.engine = engine,
                                                       .make = invoices_bill_in_turn,
                                                       .arg = &turn,
                                                       .under_way = under_way,
                                                       .deadline = began + duration_of(round)}),
                                   began);
    pawl_close(engine);
    return rate;
}

static double alone(const struct bench_round *round)
{
    return commands(round, invoices_open(round->dir, WORKSPACES), 1, PAWL_ACK_APPLIED, crowd_block);
}

static double outstanding(const struct bench_round *round)
{
    pawl_engine *engine = invoices_open(round->dir, WORKSPACES);
    return commands(round, engine, CROWD, *(const pawl_ack *)round->arg, crowd_run);
}

static double without_checkpoint(const struct bench_round *round)
{
    pawl_engine *engine = invoices_open_alone(round->dir, WORKSPACES);
    return commands(round, engine, CROWD, PAWL_ACK_APPLIED, crowd_run);
}

static double threads(const struct bench_round *round)
{
    return commands(round, invoices_open(round->dir, WORKSPACES), CROWD, PAWL_ACK_APPLIED, crowd_block);
}

/* The same where a sync costs nothing: what the processors allow. Nobody who does as much can be faster on a disk. */
static double in_memory(const struct bench_round *round, bench_measure measure)
{
    char dir[PATH_MAX];
    if (!folder_make_in_memory("commands", dir))
        return BENCH_NO_PEER;
    double rate = measure(&(struct bench_round){.dir = dir, .quick = round->quick, .arg = round->arg});
    folder_remove(dir);
    return rate;
}

static double alone_in_memory(const struct bench_round *round)
{
    return in_memory(round, alone);
}

static double outstanding_in_memory(const struct bench_round *round)
{
    return in_memory(round, outstanding);
}

static double without_checkpoint_in_memory(const struct bench_round *round)
{
    return in_memory(round, without_checkpoint);
}

static double raw_alone(const struct bench_round *round)
{
    return raw_append(round, INVOICE_BYTES, 1, duration_of(round));
}

static double raw_crowd(const struct bench_round *round)
{
    return raw_append(round, INVOICE_BYTES, CROWD, duration_of(round));
}

static double steady_alone(const struct bench_round *round)
{
    return steady(round, alone);
}

static double steady_outstanding(const struct bench_round *round)
{
    return steady(round, outstanding);
}

static double steady_without_checkpoint(const struct bench_round *round)
{
    return steady(round, without_checkpoint);
}

static double steady_threads(const struct bench_round *round)
{
    return steady(round, threads);
}

static double steady_raw_alone(const struct bench_round *round)
{
    return steady(round, raw_alone);
}

static double steady_raw_crowd(const struct bench_round *round)
{
    return steady(round, raw_crowd);
}

/* --- commands gather in the mailbox while the log syncs others; the peer takes each as soon as it comes --- */

static double some(const struct bench_round *round, bool gather)
{
    pawl_engine *engine =
        gather ? invoices_open(round->dir, WORKSPACES) : invoices_open_hasty(round->dir, WORKSPACES);
    return commands(round, engine, *(const size_t *)round->arg, PAWL_ACK_APPLIED, crowd_run);
}

static double gathered(const struct bench_round *round)
{
    return some(round, true);
}

static double at_once(const struct bench_round *round)
{
    return some(round, false);
}

/* Half of what 64 outstanding reach, measured once, while no other engine is open. */
static double half_load(const struct bench_round *round)
{
    static double rate;
    static pawl_ack applied = PAWL_ACK_APPLIED;
    char dir[PATH_MAX];
    if (rate == 0 && folder_make(round, "rate", dir)) {
        rate = outstanding(&(struct bench_round){.dir = dir, .quick = round->quick, .arg = &applied}) / 2;
        folder_remove(dir);
    }
    return rate;
}

/* What 99 of 100 do not exceed then. */
static double late(const struct bench_round *round, pawl_engine *(*open)(const char *dir, uint64_t workspaces))
{
    struct invoices_turn turn = {WORKSPACES, PAWL_ACK_APPLIED};
    struct paced paced = {0};
    double seconds = round->quick ? 0.5 : 2, rate = half_load(round);
    pawl_engine *engine = rate > 0 ? open(round->dir, WORKSPACES) : NULL;
    if (!engine)
        return 0;
    bench_begin();
    bool ok = pace_run(&(struct pace){.engine = engine,
                                      .make = invoices_bill_in_turn,
                                      .make_arg = &turn,
                                      .rate = rate,
                                      .over = pace_over_after,
                                      .arg = &seconds},
                       &paced);
    pawl_close(engine);
    return ok ? paced.p99_us : 0;
}

static double late_gathered(const struct bench_round *round)
{
    return late(round, invoices_open);
}

static double late_at_once(const struct bench_round *round)
{
    return late(round, invoices_open_hasty);
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
    pawl_engine *engine = invoices_open(round->dir, WORKSPACES);
    pawl_error error = {0};
    if (!engine)
        return 0;
    pawl_request *request;
    bool ok = pawl_request_new(engine, &request) == PAWL_OK;
    for (uint64_t wsid = 1; ok && wsid <= CROWD; wsid++) {
        invoices_bill(request, wsid, PAWL_ACK_APPLIED);
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
    lmdb_note_version();
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

/* --- memory beside mapped pages --- */

static double resident(const struct bench_round *round)
{
    char line[256];
    double mib = 0;
    malloc_trim(0); /* memory that earlier rounds have freed must not count */
    pawl_engine *engine = invoices_open(round->dir, round->quick ? 20000 : 1000000);
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
    static size_t counts[] = {8, 64, 512, 2048};
    static const struct bench_question questions[] = {
        /* First: what engines of other questions leave in the allocator's heap is not this one's. */
        {"memory with 1 M workspaces", "MiB", BENCH_LESS, 100, resident, NULL, NULL},
        {"command: one at a time", "op/s", BENCH_MORE, 0.85, alone, raw_alone, NULL},
        {"command: 64 outstanding, applied", "op/s", BENCH_MORE, 0.33, outstanding, raw_crowd, &applied},
        {"command: 64 outstanding, applied, no checkpoint", "op/s", BENCH_MORE, 0.4, without_checkpoint,
         raw_crowd, NULL},
        {"command: 64 outstanding, durable", "op/s", BENCH_MORE, 0.33, outstanding, raw_crowd, &durable},
        {"command: one at a time (peer: in memory)", "op/s", BENCH_MORE, 0, alone, alone_in_memory, NULL},
        {"command: 64 outstanding (peer: in memory)", "op/s", BENCH_MORE, 0, outstanding, outstanding_in_memory,
         &applied},
        {"command: 64 outstanding, no checkpoint (peer: in memory)", "op/s", BENCH_MORE, 0, without_checkpoint,
         without_checkpoint_in_memory, NULL},
        {"command: 64 blocking threads", "op/s", BENCH_MORE, 0, threads, raw_crowd, NULL},
        {"200 us a sync: one at a time", "op/s", BENCH_MORE, 0.85, steady_alone, steady_raw_alone, NULL},
        {"200 us a sync: 64 outstanding, applied", "op/s", BENCH_MORE, 0.33, steady_outstanding,
         steady_raw_crowd, &applied},
        {"200 us a sync: 64 outstanding, applied, no checkpoint", "op/s", BENCH_MORE, 0.4,
         steady_without_checkpoint, steady_raw_crowd, NULL},
        {"200 us a sync: 64 outstanding, durable", "op/s", BENCH_MORE, 0.33, steady_outstanding,
         steady_raw_crowd, &durable},
        {"200 us a sync: 64 blocking threads", "op/s", BENCH_MORE, 0, steady_threads, steady_raw_crowd, NULL},
        {"gathered: 8 outstanding (peer: taken at once)", "op/s", BENCH_MORE, 0.95, gathered, at_once,
         &counts[0]},
        {"gathered: 64 outstanding (peer: taken at once)", "op/s", BENCH_MORE, 0.95, gathered, at_once,
         &counts[1]},
        {"gathered: 512 outstanding (peer: taken at once)", "op/s", BENCH_MORE, 0.95, gathered, at_once,
         &counts[2]},
        {"gathered: 2048 outstanding (peer: taken at once)", "op/s", BENCH_MORE, 0.95, gathered, at_once,
         &counts[3]},
        {"gathered: p99 at half load (peer: taken at once)", "µs", BENCH_LESS, 1.1, late_gathered, late_at_once,
         NULL},
        {"read a record (peer: LMDB)", "op/s", BENCH_MORE, 0.8, read_records, read_lmdb, NULL},
    };
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
