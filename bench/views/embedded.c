/* bench/views/embedded.c: the peers that live in this process: SQLite builds an index, LMDB bare is read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lmdb.h>
#include <sqlite3.h>

#include "bench/peers/lmdb_version.h"
#include "bench/views/views.h"
#include "core/state/key.h"

/* --- SQLite: an index that has all that the view has --- */

static struct {
    char dir[PATH_MAX];
    sqlite3 *db;
} lite;

static bool lite_do(const char *statements)
{
    return sqlite3_exec(lite.db, statements, NULL, NULL, NULL) == SQLITE_OK;
}

static bool lite_load(uint64_t rows)
{
    sqlite3_stmt *insert = NULL;
    bool ok = lite_do("CREATE TABLE invoice(wsid INTEGER, id INTEGER, number INTEGER, customer INTEGER,"
                      " cents INTEGER, body TEXT); BEGIN")
              && sqlite3_prepare_v2(lite.db, "INSERT INTO invoice VALUES (?, ?, ?, ?, ?, '" TEXT "')", -1,
                                    &insert, NULL)
                     == SQLITE_OK;
    for (uint64_t n = 0; ok && n < rows; n++) {
        struct row r = row_at(n);
        sqlite3_bind_int64(insert, 1, (sqlite3_int64)r.wsid);
        sqlite3_bind_int64(insert, 2, (sqlite3_int64)n);
        sqlite3_bind_int64(insert, 3, r.number);
        sqlite3_bind_int64(insert, 4, r.customer);
        sqlite3_bind_int64(insert, 5, r.cents);
        ok = sqlite3_step(insert) == SQLITE_DONE && sqlite3_reset(insert) == SQLITE_OK;
    }
    sqlite3_finalize(insert);
    return ok && lite_do("COMMIT");
}

/* The rollback journal, which is the default: with a WAL every page of an index is written twice. */
static bool lite_prepare(const struct bench_round *round)
{
    char path[PATH_MAX + 16];
    if (!folder_make(round, "views", lite.dir))
        return false;
    bench_peer("SQLite", sqlite3_libversion());
    snprintf(path, sizeof path, "%s/sqlite", lite.dir);
    return sqlite3_open(path, &lite.db) == SQLITE_OK
           && lite_do("PRAGMA synchronous=FULL; PRAGMA cache_size=-524288; PRAGMA threads=2")
           && lite_load(rows_of(round));
}

double sqlite_build(const struct bench_round *round)
{
    bool ok = lite.db || lite_prepare(round);
    uint64_t began = bench_begin();
    ok = ok && lite_do("CREATE INDEX by_customer ON invoice(wsid, customer, id, cents)");
    double rate = bench_per_second(rows_of(round), began);
    ok = ok && lite_do("DROP INDEX by_customer");
    if (!ok)
        fprintf(stderr, "SQLite: %s\n", lite.db ? sqlite3_errmsg(lite.db) : "no directory");
    return ok ? rate : 0;
}

void sqlite_remove(void)
{
    sqlite3_close(lite.db);
    lite.db = NULL;
    if (lite.dir[0])
        folder_remove(lite.dir);
    lite.dir[0] = 0;
}

/* --- LMDB: a row of the same size for each row, under the key that a view's row begins with --- */

#define VIEW_TABLE 512
#define KEY_BYTES  (KEY_WORKSPACE + 9)  /* a field of a key: a byte, then the number */
#define ROW_BYTES  ((size_t)4 + 5 + 16) /* a head, which fields there are, two numbers */
#define MAP_BYTES  ((size_t)16 << 30)
#define GETS       UINT64_C(1000000)

static struct {
    char dir[PATH_MAX];
    MDB_env *env;
    MDB_dbi dbi;
} bare;

/* Two tables: rows by number, and rows by customer, which have their ID behind it. */
static void bare_key(uint32_t table, uint64_t wsid, uint64_t field, uint8_t key[KEY_BYTES])
{
    key_of_workspace(table, wsid, key);
    key[KEY_WORKSPACE] = 1;
    put_u64_sorted(key + KEY_WORKSPACE + 1, field);
}

static int bare_put(MDB_txn *txn, uint64_t n)
{
    uint8_t key[KEY_BYTES + 8], row[ROW_BYTES] = {1};
    struct row r = row_at(n);
    memcpy(row + 9, &r.number, 8);
    memcpy(row + 17, &r.cents, 8);
    MDB_val k = {KEY_BYTES, key}, v = {sizeof row, row};
    bare_key(VIEW_TABLE, r.wsid, (uint64_t)r.number, key);
    int rc = mdb_put(txn, bare.dbi, &k, &v, 0);
    bare_key(VIEW_TABLE + 1, r.wsid, (uint64_t)r.customer, key);
    put_u64_sorted(key + KEY_BYTES, n);
    k.mv_size = sizeof key;
    return rc ? rc : mdb_put(txn, bare.dbi, &k, &v, 0);
}

static int bare_prepare(const struct bench_round *round)
{
    MDB_txn *txn = NULL;
    if (!folder_make(round, "views", bare.dir))
        return MDB_PANIC;
    lmdb_note_version();
    int rc = mdb_env_create(&bare.env);
    rc = rc ? rc : mdb_env_set_mapsize(bare.env, MAP_BYTES);
    rc = rc ? rc : mdb_env_open(bare.env, bare.dir, MDB_NOSYNC | MDB_NOTLS | MDB_WRITEMAP, 0600);
    rc = rc ? rc : mdb_txn_begin(bare.env, NULL, 0, &txn);
    rc = rc ? rc : mdb_dbi_open(txn, NULL, MDB_CREATE, &bare.dbi);
    for (uint64_t n = 0; rc == 0 && n < rows_of(round); n++)
        rc = bare_put(txn, n);
    return rc ? rc : mdb_txn_commit(txn);
}

double lmdb_get(const struct bench_round *round)
{
    MDB_txn *txn = NULL;
    uint64_t gets = round->quick ? GETS / 10 : GETS, sum = 0;
    uint8_t key[KEY_BYTES];
    MDB_val k = {sizeof key, key}, v;
    int rc = bare.env ? 0 : bare_prepare(round);
    rc = rc ? rc : mdb_txn_begin(bare.env, NULL, MDB_RDONLY, &txn);
    if (rc == 0)
        mdb_txn_reset(txn);
    uint64_t began = bench_begin();
    for (uint64_t i = 0; rc == 0 && i < gets; i++) {
        struct row r = row_at(read_at(i, rows_of(round)));
        bare_key(VIEW_TABLE, r.wsid, (uint64_t)r.number, key);
        rc = mdb_txn_renew(txn);
        rc = rc ? rc : mdb_get(txn, bare.dbi, &k, &v);
        sum += rc ? 0 : v.mv_size;
        mdb_txn_reset(txn);
    }
    double rate = bench_per_second(gets, began);
    mdb_txn_abort(txn);
    if (rc)
        fprintf(stderr, "LMDB: %s\n", mdb_strerror(rc));
    return rc == 0 && sum == gets * ROW_BYTES ? rate : 0;
}

/* The rows of a workspace whose customer is in the middle half. */
static int bare_range(MDB_cursor *cursor, uint64_t wsid, uint64_t *count, int64_t *sum)
{
    uint8_t first[KEY_BYTES], last[KEY_BYTES];
    MDB_val k = {sizeof first, first}, v;
    bare_key(VIEW_TABLE + 1, wsid, CUSTOMERS / 4, first);
    bare_key(VIEW_TABLE + 1, wsid, CUSTOMERS / 4 * 3, last);
    int rc = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    while (rc == 0 && memcmp(k.mv_data, last, sizeof last) < 0) {
        int64_t cents;
        memcpy(&cents, (const uint8_t *)v.mv_data + 17, sizeof cents);
        *sum += cents;
        ++*count;
        rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
    }
    return rc == MDB_NOTFOUND ? 0 : rc;
}

double lmdb_scan(const struct bench_round *round)
{
    MDB_txn *txn = NULL;
    MDB_cursor *cursor = NULL;
    uint64_t count = 0;
    int64_t sum = 0;
    int rc = bare.env ? 0 : bare_prepare(round);
    uint64_t began = bench_begin();
    for (uint64_t wsid = 1; rc == 0 && wsid <= WORKSPACES; wsid++) {
        rc = txn ? mdb_txn_renew(txn) : mdb_txn_begin(bare.env, NULL, MDB_RDONLY, &txn);
        rc = rc ? rc : cursor ? mdb_cursor_renew(txn, cursor) : mdb_cursor_open(txn, bare.dbi, &cursor);
        rc = rc ? rc : bare_range(cursor, wsid, &count, &sum);
        mdb_txn_reset(txn);
    }
    double rate = bench_per_second(count, began);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    if (rc)
        fprintf(stderr, "LMDB: %s\n", mdb_strerror(rc));
    return rc == 0 && sum > 0 ? rate : 0;
}

void lmdb_remove(void)
{
    mdb_env_close(bare.env);
    bare.env = NULL;
    if (bare.dir[0])
        folder_remove(bare.dir);
    bare.dir[0] = 0;
}
