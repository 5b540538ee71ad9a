#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include <sqlite3.h>

#include "bench/peers/puts.h"

struct lite {
    pthread_mutex_t lock;
    sqlite3 *db;
    sqlite3_stmt *insert;
};

static bool put(void *store, const struct put_row *row)
{
    struct lite *l = store;
    pthread_mutex_lock(&l->lock);
    sqlite3_bind_int64(l->insert, 1, (sqlite3_int64)row->wsid);
    sqlite3_bind_int64(l->insert, 2, (sqlite3_int64)row->number);
    sqlite3_bind_blob(l->insert, 3, row->body, sizeof row->body, SQLITE_STATIC);
    bool ok = sqlite3_step(l->insert) == SQLITE_DONE;
    if (!ok)
        fprintf(stderr, "SQLite: %s\n", sqlite3_errmsg(l->db));
    sqlite3_reset(l->insert);
    pthread_mutex_unlock(&l->lock);
    return ok;
}

double sqlite_puts(const struct bench_round *round, unsigned threads, uint64_t duration)
{
    static const char prepare[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE invoice(id INTEGER PRIMARY KEY, wsid INTEGER, number INTEGER, body BLOB);"
        "CREATE INDEX by_number ON invoice(wsid, number);";
    struct lite l = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char path[PATH_MAX];
    bench_peer("SQLite", sqlite3_libversion());
    snprintf(path, sizeof path, "%s/sqlite", round->dir);
    bool ok = sqlite3_open(path, &l.db) == SQLITE_OK
              && sqlite3_exec(l.db, prepare, NULL, NULL, NULL) == SQLITE_OK
              && sqlite3_prepare_v2(l.db, "INSERT INTO invoice(wsid, number, body) VALUES (?, ?, ?)", -1,
                                    &l.insert, NULL)
                     == SQLITE_OK;
    double rate = ok ? puts_run(threads, duration, put, &l) : 0;
    if (!ok)
        fprintf(stderr, "SQLite: %s\n", sqlite3_errmsg(l.db));
    sqlite3_finalize(l.insert);
    sqlite3_close(l.db);
    return rate;
}
