/* bench/peers.c: Pawl beside what a user would pick instead: numbers that leave no gap, durable
 * writes, and how long they take.
 *
 * Both sides sync before they answer. Ours is embedded: clients are threads that each wait for their answer. PostgreSQL
 * and Redis are servers on loopback, whose clients are connections of one thread (bench/peers/load.h); SQLite, LMDB and
 * RocksDB are called by as many threads. An operation of ours makes an event of about 300 bytes and a record with a
 * number; one of a peer writes a row of that size, or of the record's, and an index entry. */
#include <limits.h>
#include <stdio.h>

#include <pawl/pawl.h>

#include "bench/lib/bench.h"
#include "bench/lib/crowd.h"
#include "bench/lib/invoices.h"
#include "bench/lib/pace.h"
#include "bench/peers/numbers.h"
#include "bench/peers/postgres.h"
#include "bench/peers/puts.h"
#include "bench/peers/redis.h"

#define WORKSPACES 10000

struct asked {
    unsigned clients;
    unsigned tenants;
};

static unsigned clients_of(const struct bench_round *round)
{
    return ((const struct asked *)round->arg)->clients;
}

static uint64_t duration_of(const struct bench_round *round)
{
    return (round->quick ? 500 : 2000) * UINT64_C(1000000);
}

static bool see_number(void *arg, const pawl_row *record)
{
    int64_t number = 0;
    (void)pawl_row_int64(record, "number", &number, NULL);
    *(uint64_t *)arg += (uint64_t)number;
    return true;
}

/* The next number of each workspace is one more than it has records, so that these numbers add up to all records. */
static bool has_no_gap(pawl_engine *engine, uint64_t workspaces, uint64_t records)
{
    pawl_error error = {0};
    pawl_request *request;
    uint64_t sum = 0;
    int status = pawl_request_new(engine, &request);
    for (uint64_t wsid = 1; status == PAWL_OK && wsid <= workspaces; wsid++) {
        invoices_bill(request, wsid, PAWL_ACK_APPLIED);
        status = pawl_command(engine, request, NULL, &error);
        if (status == PAWL_OK)
            status = pawl_record_read(engine, wsid, "bench.Invoice", pawl_request_id(request, 1), NULL,
                                      see_number, &sum, &error);
    }
    pawl_request_free(request);
    if (status != PAWL_OK)
        return bench_failed("numbers", &error) > 0;
    if (sum != records + workspaces)
        fprintf(stderr, "the numbers have a gap\n");
    return sum == records + workspaces;
}

static double commands(const struct bench_round *round, uint64_t workspaces,
                       uint64_t (*run)(const struct crowd *crowd), bool numbers)
{
    pawl_engine *engine = invoices_open(round->dir, workspaces);
    struct invoices_turn turn = {workspaces, PAWL_ACK_APPLIED};
    if (!engine)
        return 0;
    uint64_t began = bench_begin();
    uint64_t count = run(&(struct crowd){.engine = engine,
                                         .make = invoices_bill_in_turn,
                                         .arg = &turn,
                                         .under_way = clients_of(round),
                                         .deadline = began + duration_of(round)});
    double rate = bench_per_second(count, began);
    bool ok = count > 0 && (!numbers || has_no_gap(engine, workspaces, count));
    pawl_close(engine);
    return ok ? rate : 0;
}

/* --- numbers --- */

static double numbered(const struct bench_round *round)
{
    return commands(round, ((const struct asked *)round->arg)->tenants, crowd_block, true);
}

static double numbered_outstanding(const struct bench_round *round)
{
    return commands(round, ((const struct asked *)round->arg)->tenants, crowd_run, true);
}

static double numbered_in_postgres(const struct bench_round *round, enum numbers_way way)
{
    const struct asked *asked = round->arg;
    return numbers_in_postgres(round, way, asked->clients, asked->tenants, duration_of(round));
}

static double by_counter(const struct bench_round *round)
{
    return numbered_in_postgres(round, NUMBERS_BY_COUNTER);
}

static double by_statement(const struct bench_round *round)
{
    return numbered_in_postgres(round, NUMBERS_BY_STATEMENT);
}

static double by_max(const struct bench_round *round)
{
    return numbered_in_postgres(round, NUMBERS_BY_MAX);
}

/* --- durable writes --- */

static double blocking(const struct bench_round *round)
{
    return commands(round, WORKSPACES, crowd_block, false);
}

static double outstanding(const struct bench_round *round)
{
    return commands(round, WORKSPACES, crowd_run, false);
}

static double sqlite(const struct bench_round *round)
{
    return sqlite_puts(round, clients_of(round), duration_of(round));
}

static double lmdb(const struct bench_round *round)
{
    return lmdb_puts(round, clients_of(round), duration_of(round));
}

static double rocksdb(const struct bench_round *round)
{
    return rocksdb_puts(round, clients_of(round), duration_of(round));
}

static double redis_at(const struct bench_round *round, double rate, struct loaded *ret_loaded)
{
    struct load load = {.clients = clients_of(round), .duration = duration_of(round), .rate = rate};
    return redis_ask(round, &load, "", REDIS_XADD(INVOICE_TEXT), ret_loaded);
}

static double postgres_at(const struct bench_round *round, double rate, struct loaded *ret_loaded)
{
    struct load load = {.clients = clients_of(round), .duration = duration_of(round), .rate = rate};
    return postgres_insert(round, &load, INVOICE_TEXT, ret_loaded);
}

static double redis(const struct bench_round *round)
{
    return redis_at(round, 0, NULL);
}

static double postgres(const struct bench_round *round)
{
    return postgres_at(round, 0, NULL);
}

/* --- how long a write takes, at half of the rate that the peer reaches with as many clients --- */

struct latency {
    struct asked asked; /* first: the round's argument is one for all questions */
    double (*peer)(const struct bench_round *round, double rate, struct loaded *ret_loaded);
    unsigned percent;
    double most; /* of the peer; 0: it was not measured yet */
};

/* Without the peer nothing is compared, and any rate will do. */
#define RATE_ALONE 5000.0

static double rate_of(const struct bench_round *round, struct latency *l)
{
    if (l->most == 0)
        l->most = l->peer(round, 0, NULL);
    return l->most > 0 ? l->most / 2 : l->most == BENCH_NO_PEER ? RATE_ALONE : 0;
}

static double latency(const struct bench_round *round)
{
    struct latency *l = round->arg;
    double rate = rate_of(round, l), seconds = (double)duration_of(round) / 1e9;
    pawl_engine *engine = rate > 0 ? invoices_open(round->dir, WORKSPACES) : NULL;
    struct invoices_turn turn = {WORKSPACES, PAWL_ACK_APPLIED};
    struct paced paced = {0};
    if (!engine)
        return 0;
    bool ok = pace_run(&(struct pace){.engine = engine,
                                      .make = invoices_bill_in_turn,
                                      .make_arg = &turn,
                                      .rate = rate,
                                      .over = pace_over_after,
                                      .arg = &seconds},
                       &paced);
    pawl_close(engine);
    return !ok ? 0 : l->percent == 50 ? paced.p50_us : paced.p99_us;
}

static double latency_of_peer(const struct bench_round *round)
{
    struct latency *l = round->arg;
    struct loaded loaded;
    double rate = rate_of(round, l);
    if (l->most == BENCH_NO_PEER)
        return BENCH_NO_PEER;
    if (rate <= 0 || l->peer(round, rate, &loaded) <= 0)
        return 0;
    return l->percent == 50 ? loaded.p50_us : loaded.p99_us;
}

#define LESS(question, ours, peer, arg)                                                                        \
    {                                                                                                          \
        question, "µs", BENCH_LESS, 0, ours, peer, arg                                                         \
    }
#define MORE(question, goal, ours, peer, arg)                                                                  \
    {                                                                                                          \
        question, "op/s", BENCH_MORE, goal, ours, peer, arg                                                    \
    }

int main(int argc, char **argv)
{
    static struct asked one = {1, 1}, few = {8, 1}, many = {64, 1}, hundred = {64, 100};
    static struct latency redis50 = {{64, 1}, redis_at, 50, 0}, redis99 = {{64, 1}, redis_at, 99, 0},
                          postgres50 = {{64, 1}, postgres_at, 50, 0},
                          postgres99 = {{64, 1}, postgres_at, 99, 0};
    static const struct bench_question questions[] = {
        MORE("numbers: 64 clients, 1 tenant (peer: PostgreSQL, counter row)", 50, numbered, by_counter, &many),
        MORE("numbers: 64 clients, 1 tenant (peer: PostgreSQL, one statement)", 0, numbered, by_statement,
             &many),
        MORE("numbers: 64 clients, 1 tenant (peer: PostgreSQL, max + 1)", 0, numbered, by_max, &many),
        MORE("numbers: 64 outstanding, 1 tenant (peer: PostgreSQL, counter row)", 0, numbered_outstanding,
             by_counter, &many),
        MORE("numbers: 64 clients, 100 tenants (peer: PostgreSQL, counter row)", 0, numbered, by_counter,
             &hundred),
        MORE("numbers: 64 clients, 100 tenants (peer: PostgreSQL, one statement)", 0, numbered, by_statement,
             &hundred),
        MORE("numbers: 64 clients, 100 tenants (peer: PostgreSQL, max + 1)", 0, numbered, by_max, &hundred),

        MORE("durable: 1 client (peer: SQLite)", 1, blocking, sqlite, &one),
        MORE("durable: 1 client (peer: PostgreSQL)", 0, blocking, postgres, &one),
        MORE("durable: 1 client (peer: Redis)", 0, blocking, redis, &one),
        MORE("durable: 1 client (peer: LMDB)", 0, blocking, lmdb, &one),
        MORE("durable: 1 client (peer: RocksDB)", 0, blocking, rocksdb, &one),
        MORE("durable: 8 clients (peer: SQLite)", 0, blocking, sqlite, &few),
        MORE("durable: 8 clients (peer: PostgreSQL)", 0, blocking, postgres, &few),
        MORE("durable: 8 clients (peer: Redis)", 0, blocking, redis, &few),
        MORE("durable: 8 clients (peer: LMDB)", 0, blocking, lmdb, &few),
        MORE("durable: 8 clients (peer: RocksDB)", 0, blocking, rocksdb, &few),
        MORE("durable: 64 clients (peer: SQLite)", 0, blocking, sqlite, &many),
        MORE("durable: 64 clients (peer: PostgreSQL)", 3, blocking, postgres, &many),
        MORE("durable: 64 clients (peer: Redis)", 1.2, blocking, redis, &many),
        MORE("durable: 64 clients (peer: LMDB)", 0, blocking, lmdb, &many),
        MORE("durable: 64 clients (peer: RocksDB)", 0, blocking, rocksdb, &many),
        MORE("durable: 64 outstanding (peer: Redis)", 2, outstanding, redis, &many),

        LESS("latency: p50 at half of the rate of Redis (peer: Redis)", latency, latency_of_peer, &redis50),
        LESS("latency: p99 at half of the rate of Redis (peer: Redis)", latency, latency_of_peer, &redis99),
        LESS("latency: p50 at half of the rate of PostgreSQL (peer: PostgreSQL)", latency, latency_of_peer,
             &postgres50),
        LESS("latency: p99 at half of the rate of PostgreSQL (peer: PostgreSQL)", latency, latency_of_peer,
             &postgres99),
    };
    int status = bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
    redis_remove();
    postgres_remove();
    return status;
}
