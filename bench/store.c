/* bench/store.c: what does a put cost through the port, and what does writing through LMDB's map bring?
 *
 * Our store against LMDB used bare, over the same rows of 24 + 100 bytes: at scattered keys in small unsynced
 * transactions, as the live store sees them, against LMDB that writes through its map as ours does, but without
 * blocks reserved for it, and against LMDB that writes page by page; and in large sorted synced transactions,
 * as the checkpoint store makes them. CPU time where nothing waits for the disk: other work on the machine is
 * not in it. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <lmdb.h>

#include "adapter/lmdb/store.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "bench/lib/bench.h"
#include "bench/peers/lmdb_version.h"

#define KEY_BYTES   24
#define VALUE_BYTES 100
#define ROWS        400000
#define MAP_BYTES   ((size_t)64 << 30)

struct work {
    bool durable;        /* sorted and synced; otherwise scattered and not */
    uint64_t per_commit; /* puts a transaction */
    uint64_t puts;
    unsigned flags; /* the peer's */
};

/* One contender: our store, or LMDB bare. */
struct subject {
    pawl_store *store;
    MDB_env *env;
    MDB_dbi dbi;
    MDB_txn *txn;
};

static bool failed(const char *what, int rc)
{
    if (rc)
        fprintf(stderr, "%s: %s\n", what, rc < -30000 || rc > 0 ? mdb_strerror(rc) : pawl_status_name(rc));
    return rc != 0;
}

static int open_bare(struct subject *s, const char *dir, const struct work *w)
{
    lmdb_note_version();
    int rc = mdb_env_create(&s->env);
    if (rc == 0)
        rc = mdb_env_set_mapsize(s->env, MAP_BYTES);
    if (rc == 0)
        rc = mdb_env_set_maxdbs(s->env, 4);
    if (rc == 0)
        rc = mdb_env_open(s->env, dir, w->flags | (w->durable ? 0 : MDB_NOSYNC) | MDB_NOTLS, 0600);
    if (rc == 0)
        rc = mdb_txn_begin(s->env, NULL, 0, &s->txn);
    if (rc == 0)
        rc = mdb_dbi_open(s->txn, "0", MDB_CREATE, &s->dbi);
    if (rc == 0)
        rc = mdb_txn_commit(s->txn);
    s->txn = NULL;
    return rc;
}

static int open_ours(struct subject *s, const char *dir, const struct work *w)
{
    struct lmdb_options o = {.dir = dir, .mode = w->durable ? PAWL_STORE_DURABLE : PAWL_STORE_FAST};
    struct lmdb_opened opened;
    int status = lmdb_store_open(&o, &opened, &s->store, NULL);
    if (status == PAWL_OK && opened.unmapped[0])
        fprintf(stderr, "ours does not write through the map: %s\n", opened.unmapped);
    return status;
}

static int subject_put(struct subject *s, pawl_bytes key, pawl_bytes value)
{
    if (s->store)
        return pawl_store_put(s->store, 0, key, value);
    MDB_val k = {key.size, (void *)(uintptr_t)key.data}, v = {value.size, (void *)(uintptr_t)value.data};
    int rc = s->txn ? 0 : mdb_txn_begin(s->env, NULL, 0, &s->txn);
    return rc ? rc : mdb_put(s->txn, s->dbi, &k, &v, 0);
}

static int subject_commit(struct subject *s)
{
    if (s->store)
        return pawl_store_commit(s->store);
    int rc = mdb_txn_commit(s->txn);
    s->txn = NULL;
    return rc;
}

static void subject_close(struct subject *s)
{
    if (s->store)
        pawl_store_close(s->store);
    if (s->env)
        mdb_env_close(s->env);
}

/* Row n's key is scattered over the whole key space, or in order; the same for every contender. */
static int put_row(struct subject *s, uint64_t row, uint64_t version, bool sorted)
{
    uint8_t key[KEY_BYTES], value[VALUE_BYTES];
    put_u64_sorted(key, sorted ? row : hash_mix(row));
    put_u64_sorted(key + 8, row);
    memset(key + 16, 'k', KEY_BYTES - 16);
    memset(value, (int)(version & 0xff), sizeof value);
    put_u64(value, version);
    return subject_put(s, (pawl_bytes){key, sizeof key}, (pawl_bytes){value, sizeof value});
}

/* Puts rows, so many a commit. The sorted ones are spread evenly over all rows, as in a checkpoint's set. */
static int put_rows(struct subject *s, const struct work *w, uint64_t rows, uint64_t puts, uint64_t per_commit,
                    uint64_t version)
{
    int rc = 0;
    for (uint64_t i = 0; i < puts && rc == 0; i++) {
        uint64_t row = version == 0 ? i : w->durable ? i * (rows / puts) : hash_mix(version << 32 | i) % rows;
        rc = put_row(s, row, version, w->durable);
        if (rc == 0 && ((i + 1) % per_commit == 0 || i + 1 == puts))
            rc = subject_commit(s);
    }
    return rc;
}

static double now_us(bool wall)
{
    struct timespec t;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Microseconds a put. A quarter of the work is done before, so that there are free pages and warm caches. */
static double measure(const struct bench_round *round,
                      int (*open)(struct subject *, const char *, const struct work *))
{
    const struct work *w = round->arg;
    struct subject s = {0};
    uint64_t rows = round->quick ? ROWS / 10 : ROWS;
    uint64_t puts = round->quick ? w->puts / 10 : w->puts;
    double spent = 0;
    int rc = open(&s, round->dir, w);
    if (rc == 0)
        rc = put_rows(&s, w, rows, rows, 50000, 0);
    if (rc == 0)
        rc = put_rows(&s, w, rows, puts / 4, w->per_commit, 1);
    if (rc == 0) {
        double began = now_us(w->durable);
        rc = put_rows(&s, w, rows, puts, w->per_commit, 2);
        spent = (now_us(w->durable) - began) / (double)puts;
    }
    subject_close(&s);
    return failed("store", rc) ? 0 : spent;
}

static double ours(const struct bench_round *round)
{
    return measure(round, open_ours);
}

static double bare(const struct bench_round *round)
{
    return measure(round, open_bare);
}

static struct work fast_1 = {false, 1, 40000, MDB_WRITEMAP}, fast_16 = {false, 16, 80000, MDB_WRITEMAP},
                   fast_256 = {false, 256, 160000, MDB_WRITEMAP}, slow_1 = {false, 1, 40000, 0},
                   slow_16 = {false, 16, 80000, 0}, slow_256 = {false, 256, 160000, 0},
                   durable = {true, 100000, 100000, 0};

#define ASK(text, what, most, which)                                                                           \
    {                                                                                                          \
        .question = (text), .unit = (what), .better = BENCH_LESS, .goal = (most), .ours = ours, .peer = bare,  \
        .arg = &(which)                                                                                        \
    }

static const struct bench_question questions[] = {
    ASK("scattered put, 1 a commit, beside LMDB through its map", "us CPU/put", 1.3, fast_1),
    ASK("scattered put, 16 a commit, beside LMDB through its map", "us CPU/put", 1.3, fast_16),
    ASK("scattered put, 256 a commit, beside LMDB through its map", "us CPU/put", 1.3, fast_256),
    ASK("scattered put, 1 a commit, beside LMDB page by page", "us CPU/put", 0.6, slow_1),
    ASK("scattered put, 16 a commit, beside LMDB page by page", "us CPU/put", 0.6, slow_16),
    ASK("scattered put, 256 a commit, beside LMDB page by page", "us CPU/put", 0.6, slow_256),
    ASK("sorted put, synced, 100000 a commit, beside LMDB", "us/put", 1.15, durable),
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof questions[0]);
}
