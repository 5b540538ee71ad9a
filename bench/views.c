/* bench/views.c: what views cost: to build one, while it is built, to keep it, and to read it.
 *
 * 5 million rows of about 200 bytes in 1,000 workspaces, on 2 shards; the quick form has 300,000. A view has
 * the customer as its key and one more field. PostgreSQL makes a materialised view with the same columns in the
 * same order, and an index on its key; SQLite makes an index with the same columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/lib/crowd.h"
#include "bench/lib/pace.h"
#include "bench/views/views.h"

#define PATIENCE (600 * PAWL_SECOND)

/* --- building --- */

static double build_rate; /* rows a second, of the last build until the live state covered the rows */

static double build(const struct bench_round *round, bool durable)
{
    pawl_engine *engine = shop_loaded(round);
    pawl_error error = {0};
    if (!engine)
        return 0;
    uint64_t rows = shop_rows(), began = bench_begin();
    if (pawl_view_create(engine, &shop_view, &error) != PAWL_OK)
        return bench_failed("view", &error);
    bool ok = durable ? pawl_view_wait(engine, shop_view.name, PATIENCE, &error) == PAWL_OK
                            || bench_failed("wait", &error) > 0
                      : shop_covered(engine, shop_view.name, rows);
    double rate = bench_per_second(rows, began);
    if (!durable)
        build_rate = rate;
    return shop_drop(engine, shop_view.name) && ok ? rate : 0;
}

static double build_live(const struct bench_round *round)
{
    return build(round, false);
}

static double build_durable(const struct bench_round *round)
{
    return build(round, true);
}

/* --- commands while a view is built --- */

enum { NO_BUILD, THROTTLED, UNTHROTTLED };

struct during {
    pawl_engine *engine;
    bool building;
    double most; /* seconds */
};

static bool see_state(void *arg, const pawl_view_status *status)
{
    *(pawl_view_state *)arg = status->state;
    return true;
}

static bool is_over(void *arg, double seconds)
{
    const struct during *d = arg;
    pawl_view_state state = PAWL_VIEW_BUILDING;
    if (!d->building || seconds >= d->most)
        return seconds >= d->most;
    return pawl_view_status_read(d->engine, shop_view.name, see_state, &state, NULL) != PAWL_OK
           || state != PAWL_VIEW_BUILDING;
}

/* The most commands a second, 64 outstanding. It is measured once. */
static double most_commands(const struct bench_round *round, pawl_engine *engine)
{
    static double rate;
    uint64_t began = bench_now();
    struct crowd crowd = {.engine = engine,
                          .make = shop_bill_new,
                          .deadline = began + (round->quick ? 500 : 3000) * UINT64_C(1000000)};
    if (rate == 0)
        rate = (double)crowd_run(&crowd) * 1e9 / (double)(bench_now() - began);
    return rate;
}

static double commands_beside(const struct bench_round *round, int how)
{
    pawl_engine *engine = shop_loaded(round);
    pawl_error error = {0};
    double most = engine ? most_commands(round, engine) : 0;
    if (most == 0 || (build_rate == 0 && build_live(round) == 0))
        return 0;
    shop_settle();
    struct during during = {.engine = engine, .building = how != NO_BUILD, .most = round->quick ? 2 : 10};
    uint64_t throttle = how == THROTTLED ? (uint64_t)(build_rate / 2) : 0;
    if (pawl_view_throttle(engine, throttle, &error) != PAWL_OK
        || (during.building && pawl_view_create(engine, &shop_view, &error) != PAWL_OK))
        return bench_failed("build", &error);
    struct paced paced = {0};
    struct pace pace = {
        .engine = engine, .make = shop_bill_new, .rate = most / 2, .over = is_over, .arg = &during};
    (void)pace_run(&pace, &paced);
    if (pawl_view_throttle(engine, 0, &error) != PAWL_OK)
        return bench_failed("throttle", &error);
    return !during.building || shop_drop(engine, shop_view.name) ? paced.p99_us : 0;
}

static double beside_nothing(const struct bench_round *round)
{
    return commands_beside(round, NO_BUILD);
}

static double beside_throttled(const struct bench_round *round)
{
    return commands_beside(round, THROTTLED);
}

static double beside_unthrottled(const struct bench_round *round)
{
    return commands_beside(round, UNTHROTTLED);
}

/* --- the processor time of a command --- */

#define COMMANDS UINT64_C(100000)

struct kept {
    const char *base;
    size_t views;
};

static double processor_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6
           + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static bool make_views(pawl_engine *engine, const struct kept *kept)
{
    static const char *const names[] = {"bench.first", "bench.second", "bench.third"};
    static const char *const keys[][2] = {{"customer"}, {"number"}, {"cents", "customer"}};
    pawl_view_definition view = shop_view;
    pawl_error error = {0};
    for (size_t i = 0; i < kept->views; i++) {
        view.name = names[i];
        view.base = kept->base;
        view.key = keys[i];
        view.key_count = keys[i][1] ? 2 : 1;
        view.include_count = i == 2 ? 0 : 1; /* the third has the field in its key */
        if (pawl_view_create(engine, &view, &error) != PAWL_OK
            || pawl_view_wait(engine, view.name, PATIENCE, &error) != PAWL_OK)
            return bench_failed(view.name, &error) > 0;
    }
    return true;
}

/* All threads' time: the live state's and the checkpoint's. */
static double insert(const struct bench_round *round, const struct kept *kept)
{
    uint64_t count = round->quick ? COMMANDS / 5 : COMMANDS;
    pawl_engine *engine = shop_open(round->dir);
    if (!engine)
        return 0;
    bool ok = make_views(engine, kept);
    struct crowd crowd = {.engine = engine, .make = shop_bill_new, .most = count};
    uint64_t began = bench_begin();
    double before = processor_us();
    ok = ok && crowd_run(&crowd) == count;
    double us = (processor_us() - before) / (double)count;
    (void)bench_per_second(count, began); /* the frame measures it too, for tools/compare-benches */
    pawl_close(engine);
    return ok ? us : 0;
}

static double insert_with(const struct bench_round *round)
{
    return insert(round, round->arg);
}

static double insert_without(const struct bench_round *round)
{
    return insert(round, &(struct kept){.views = 0});
}

/* --- reading --- */

#define READS UINT64_C(1000000)

static const pawl_view_definition by_number = {.name = "bench.by_number",
                                               .base = "bench.Invoice",
                                               .key = (const char *const[]){"number"},
                                               .key_count = 1,
                                               .include = (const char *const[]){"cents"},
                                               .include_count = 1,
                                               .unique = true};

/* The engine with both views built. */
static pawl_engine *readable(const struct bench_round *round)
{
    static bool built;
    pawl_engine *engine = shop_loaded(round);
    pawl_error error = {0};
    if (built || !engine)
        return engine;
    if (pawl_view_create(engine, &shop_view, &error) != PAWL_OK
        || pawl_view_create(engine, &by_number, &error) != PAWL_OK
        || pawl_view_wait(engine, shop_view.name, PATIENCE, &error) != PAWL_OK
        || pawl_view_wait(engine, by_number.name, PATIENCE, &error) != PAWL_OK) {
        bench_failed("views", &error);
        return NULL;
    }
    built = true;
    shop_settle();
    return engine;
}

static bool see_cents(void *arg, const pawl_row *row)
{
    int64_t cents = 0;
    (void)pawl_row_int64(row, "cents", &cents, NULL);
    *(int64_t *)arg += cents;
    return true;
}

/* The middle half of each workspace's customers, on this thread. */
static double scan_view(const struct bench_round *round)
{
    pawl_engine *engine = readable(round);
    pawl_value from = pawl_value_int64(CUSTOMERS / 4), to = pawl_value_int64(CUSTOMERS / 4 * 3);
    pawl_error error = {0};
    uint64_t count = 0;
    int64_t sum = 0;
    if (!engine)
        return 0;
    uint64_t began = bench_begin();
    for (uint64_t wsid = 1; wsid <= WORKSPACES; wsid++) {
        pawl_view_answer answer;
        pawl_view_query query = {
            .wsid = wsid, .from = {&from, 1}, .to = {&to, 1}, .to_exclusive = true, .limit = SIZE_MAX};
        if (pawl_view_scan(engine, shop_view.name, &query, see_cents, &sum, &answer, &error) != PAWL_OK)
            return bench_failed("scan", &error);
        count += answer.rows;
    }
    double rate = bench_per_second(count, began);
    return sum > 0 && count > rows_of(round) / 3 ? rate : 0;
}

static double get_view(const struct bench_round *round)
{
    pawl_engine *engine = readable(round);
    uint64_t reads = round->quick ? READS / 10 : READS;
    pawl_error error = {0};
    int64_t sum = 0;
    if (!engine)
        return 0;
    uint64_t began = bench_begin();
    for (uint64_t i = 0; i < reads; i++) {
        struct row row = row_at(read_at(i, rows_of(round)));
        pawl_value number = pawl_value_int64(row.number);
        sum -= row.cents;
        if (pawl_view_read(engine, by_number.name, row.wsid, (pawl_key){&number, 1}, NULL, see_cents, &sum,
                           &error)
            != PAWL_OK)
            return bench_failed("read", &error);
    }
    double rate = bench_per_second(reads, began);
    if (sum != 0)
        fprintf(stderr, "a read found another row\n");
    return sum == 0 ? rate : 0;
}

int main(int argc, char **argv)
{
    static struct kept one = {"bench.Invoice", 1}, three = {"bench.Invoice", 3}, other = {"bench.Letter", 3};
    static const struct bench_question questions[] = {
        {"build a view, live (peer: PostgreSQL)", "rows/s", BENCH_MORE, 1.5, build_live, postgres_build, NULL},
        {"build a view, live (peer: SQLite)", "rows/s", BENCH_MORE, 0.6, build_live, sqlite_build, NULL},
        {"build a view, durable (peer: PostgreSQL)", "rows/s", BENCH_MORE, 0, build_durable, postgres_build,
         NULL},
        {"p99 of commands at half rate, build at half rate (peer: no build)", "µs", BENCH_LESS, 1.5,
         beside_throttled, beside_nothing, NULL},
        {"p99 of commands at half rate, build unthrottled (peer: no build)", "µs", BENCH_LESS, 0,
         beside_unthrottled, beside_nothing, NULL},
        {"processor time of an insert with 1 view (peer: none)", "µs/op", BENCH_LESS, 1.4, insert_with,
         insert_without, &one},
        {"processor time of an insert with 3 views (peer: none)", "µs/op", BENCH_LESS, 2.1, insert_with,
         insert_without, &three},
        {"processor time of an insert with 3 views on another table (peer: none)", "µs/op", BENCH_LESS, 1.05,
         insert_with, insert_without, &other},
        {"range read of a view, one thread", "rows/s", BENCH_MORE, 5e6, scan_view, NULL, NULL},
        {"range read of a view (peer: LMDB)", "rows/s", BENCH_MORE, 0, scan_view, lmdb_scan, NULL},
        {"read a row of a unique view (peer: LMDB)", "op/s", BENCH_MORE, 0.6, get_view, lmdb_get, NULL},
    };
    int status = bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
    shop_remove();
    postgres_leave();
    sqlite_remove();
    lmdb_remove();
    return status;
}
