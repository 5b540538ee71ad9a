/* bench/views/views.h: what the parts of the views' bench share.
 *
 * Every side has the same rows: row n of ROWS, made from n alone. They are loaded once, when a side is first
 * asked for, beside the rounds' own directories, and are removed at the end.
 *
 *     shop.c        an engine with the rows: build a view, drop it, wait until the engine is idle
 *     postgres.c    PostgreSQL, by psql
 *     embedded.c    SQLite, and LMDB bare */
#ifndef BENCH_VIEWS_VIEWS_H
#define BENCH_VIEWS_VIEWS_H

#include <limits.h>

#include <pawl/pawl.h>
#include <pawl/view.h>

#include "bench/lib/bench.h"
#include "bench/lib/folder.h"

#define WORKSPACES  UINT64_C(1000)
#define SHARDS      2
#define PER_COMMAND UINT64_C(100) /* rows, all of one workspace */
#define CUSTOMERS   INT64_C(10000)
#define ROWS        UINT64_C(5000000)
#define ROWS_QUICK  UINT64_C(300000)

/* With three numbers, an ID and heads a row has about 200 bytes. */
#define TEXT                                                                                                   \
    "Consulting in the month of November, as agreed: 3 days on site and 2 days remote, with travel by train, " \
    "and a report of what is left to do."

struct row {
    uint64_t wsid;
    int64_t number; /* 0, 1, 2, ... in its workspace */
    int64_t customer;
    int64_t cents;
};

uint64_t rows_of(const struct bench_round *round);
struct row row_at(uint64_t n);

/* --- shop.c --- */

/* A new engine with all workspaces and no rows; NULL, after saying why. */
pawl_engine *shop_open(const char *dir);

/* The engine that has all rows: opened and loaded by the first call. NULL, after saying why. */
pawl_engine *shop_loaded(const struct bench_round *round);

/* Put a row into a request; and a new one, in any workspace, that no other has. */
void shop_bill(pawl_request *request, struct row row);
struct row shop_new_row(void);
void shop_bill_new(void *arg, pawl_request *request, uint64_t n); /* of a crowd */

/* Rows that the loaded engine has by now. */
uint64_t shop_rows(void);

/* Wait until nothing works in this process any more: rows of a dropped view are removed and the checkpoint is
 * written in the background. At most two minutes. */
void shop_settle(void);

/* The view that is built in all questions: customer as its key, cents included. */
extern const pawl_view_definition shop_view;

/* Wait until every row is in the live state's view. */
bool shop_covered(pawl_engine *engine, const char *view, uint64_t rows);
bool shop_drop(pawl_engine *engine, const char *view);

void shop_remove(void);

/* --- the peers --- */

double postgres_build(const struct bench_round *round);
void postgres_leave(void);

double sqlite_build(const struct bench_round *round);
void sqlite_remove(void);

/* The same keys, one get each with a renewed transaction; and all rows of half of the customers, workspace by
 * workspace, by a cursor. */
double lmdb_get(const struct bench_round *round);
double lmdb_scan(const struct bench_round *round);
void lmdb_remove(void);

/* The n-th row to be read by a get, of so many: scattered over all workspaces. */
uint64_t read_at(uint64_t n, uint64_t rows);

#endif
