/* bench/store.c: what does a put cost, and what would MDB_WRITEMAP save?
 *
 * Our store through its port against LMDB used bare, with and without MDB_WRITEMAP, in rounds that take turns:
 * rows of about 100 bytes at scattered keys in small unsynced transactions, as the live store sees them; and
 * large sorted synced ones, as the checkpoint store makes them. Times are medians of the rounds.
 *
 *     bench-store [--rows N] [--rounds N] [--dir DIR] [--json FILE] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lmdb.h>

#include "adapter/lmdb/store.h"
#include "base/bytes.h"
#include "base/hash.h"

#define KEY_BYTES   24
#define VALUE_BYTES 100
#define ROUNDS_MAX  64
#define MAP_BYTES   ((size_t)64 << 30)

/* One contender: our store, or LMDB bare with flags. */
struct subject {
    char dir[512];
    pawl_store *store;
    MDB_env *env;
    MDB_dbi dbi;
    MDB_txn *txn;
};

struct question {
    const char *text;
    const char *unit;
    bool durable;        /* sorted and synced; otherwise scattered and not */
    uint64_t per_commit; /* puts a transaction */
    uint64_t puts;       /* a round */
    unsigned peer_flags;
    double goal; /* the ratio ours / peer that we can live with */
};

static const struct question questions[] = {
    {"scattered put, 1 a commit, beside WRITEMAP", "us CPU/put", false, 1, 20000, MDB_WRITEMAP, 4},
    {"scattered put, 16 a commit, beside WRITEMAP", "us CPU/put", false, 16, 40000, MDB_WRITEMAP, 2.5},
    {"scattered put, 256 a commit, beside WRITEMAP", "us CPU/put", false, 256, 81920, MDB_WRITEMAP, 2.5},
    {"scattered put, 16 a commit, beside bare LMDB", "us CPU/put", false, 16, 40000, 0, 1.15},
    {"sorted put, synced, 100000 a commit, beside bare LMDB", "us/put", true, 100000, 100000, 0, 1.15},
};

static uint64_t rows = 1000000;
static unsigned rounds = 7;

static void die(const char *what, int rc)
{
    fprintf(stderr, "bench-store: %s: %s\n", what,
            rc < -30000 || rc > 0 ? mdb_strerror(rc) : pawl_status_name(rc));
    exit(1);
}

static double now_us(bool wall)
{
    struct timespec t;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void subject_open(struct subject *s, const char *base, const char *name, bool ours, bool durable,
                         unsigned flags)
{
    int rc = 0;
    *s = (struct subject){0};
    snprintf(s->dir, sizeof s->dir, "%s/%s", base, name);
    if (ours) {
        struct lmdb_options o = {.dir = s->dir, .mode = durable ? PAWL_STORE_DURABLE : PAWL_STORE_FAST};
        rc = lmdb_store_open(&o, NULL, &s->store, NULL);
        if (rc)
            die("open", rc);
        return;
    }
    if (mkdir(s->dir, 0700) != 0)
        die(s->dir, 1);
    if ((rc = mdb_env_create(&s->env)) || (rc = mdb_env_set_mapsize(s->env, MAP_BYTES))
        || (rc = mdb_env_set_maxdbs(s->env, 4))
        || (rc = mdb_env_open(s->env, s->dir, flags | (durable ? 0 : MDB_NOSYNC) | MDB_NOTLS, 0600))
        || (rc = mdb_txn_begin(s->env, NULL, 0, &s->txn))
        || (rc = mdb_dbi_open(s->txn, "0", MDB_CREATE, &s->dbi)) || (rc = mdb_txn_commit(s->txn)))
        die("open", rc);
    s->txn = NULL;
}

static void subject_put(struct subject *s, pawl_bytes key, pawl_bytes value)
{
    int rc;
    if (s->store) {
        rc = pawl_store_put(s->store, 0, key, value);
    } else {
        MDB_val k = {key.size, (void *)(uintptr_t)key.data}, v = {value.size, (void *)(uintptr_t)value.data};
        rc = s->txn ? 0 : mdb_txn_begin(s->env, NULL, 0, &s->txn);
        if (rc == 0)
            rc = mdb_put(s->txn, s->dbi, &k, &v, 0);
    }
    if (rc)
        die("put", rc);
}

static void subject_commit(struct subject *s)
{
    int rc = s->store ? pawl_store_commit(s->store) : mdb_txn_commit(s->txn);
    s->txn = NULL;
    if (rc)
        die("commit", rc);
}

static void subject_close(struct subject *s)
{
    static const char *const files[] = {"data.mdb", "lock.mdb", "pawl.mark", "pawl.lock"};
    if (s->store)
        pawl_store_close(s->store);
    else
        mdb_env_close(s->env);
    for (size_t i = 0; i < 4; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", s->dir, files[i]);
        unlink(path);
    }
    rmdir(s->dir);
}

/* Row n's key: scattered over the whole key space, the same for every contender. */
static void make_key(uint64_t n, uint8_t key[KEY_BYTES])
{
    put_u64_sorted(key, hash_mix(n));
    put_u64_sorted(key + 8, n);
    memset(key + 16, 'k', KEY_BYTES - 16);
}

static void put_row(struct subject *s, uint64_t row, uint64_t version, bool sorted)
{
    uint8_t key[KEY_BYTES], value[VALUE_BYTES];
    make_key(row, key);
    if (sorted)
        put_u64_sorted(key, row);
    memset(value, (int)(version & 0xff), sizeof value);
    put_u64(value, version);
    subject_put(s, (pawl_bytes){key, sizeof key}, (pawl_bytes){value, sizeof value});
}

static void fill(struct subject *s, bool sorted)
{
    for (uint64_t i = 0; i < rows; i++) {
        put_row(s, i, 0, sorted);
        if (i % 50000 == 49999 || i == rows - 1)
            subject_commit(s);
    }
}

/* Microseconds a put. The sorted rounds touch every tenth row or so, in order, as a coalesced batch does. */
static double run_round(struct subject *s, const struct question *q, uint64_t round)
{
    uint64_t stride = q->durable ? (rows / q->puts ? rows / q->puts : 1) : 0;
    double start = now_us(q->durable);
    for (uint64_t i = 0; i < q->puts; i++) {
        uint64_t row = q->durable ? (i * stride + round) % rows : hash_mix(round << 32 | i) % rows;
        put_row(s, row, round, q->durable);
        if ((i + 1) % q->per_commit == 0)
            subject_commit(s);
    }
    return (now_us(q->durable) - start) / (double)q->puts;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static void ask(const struct question *q, const char *base, double *ret_ours, double *ret_peer)
{
    struct subject ours, peer;
    double a[ROUNDS_MAX], b[ROUNDS_MAX];
    subject_open(&ours, base, "ours", true, q->durable, 0);
    subject_open(&peer, base, "peer", false, q->durable, q->peer_flags);
    fill(&ours, q->durable);
    fill(&peer, q->durable);
    for (unsigned r = 0; r < rounds; r++) {
        a[r] = run_round(&ours, q, r + 1);
        b[r] = run_round(&peer, q, r + 1);
    }
    subject_close(&ours);
    subject_close(&peer);
    *ret_ours = median(a, rounds);
    *ret_peer = median(b, rounds);
}

static void parse(int argc, char **argv, const char **dir, const char **json)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--rows") == 0)
            rows = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--dir") == 0)
            *dir = argv[i + 1];
        else if (strcmp(argv[i], "--json") == 0)
            *json = argv[i + 1];
    }
    if (rounds == 0 || rounds > ROUNDS_MAX || rows < 1000)
        die("--rounds is 1 to 64, --rows at least 1000", PAWL_EINVAL);
}

int main(int argc, char **argv)
{
    const char *dir = "/tmp", *json = NULL;
    char base[256];
    parse(argc, argv, &dir, &json);
    snprintf(base, sizeof base, "%s/pawl-bench-XXXXXX", dir);
    if (!mkdtemp(base))
        die("mkdtemp", 1);
    FILE *out = json ? fopen(json, "w") : NULL;
    if (json && !out)
        die(json, 2);
    printf("%-56s %10s %10s  %-10s %6s %5s\n", "question", "ours", "peer", "unit", "ratio", "goal");
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        const struct question *q = &questions[i];
        double ours, peer;
        ask(q, base, &ours, &peer);
        bool met = ours / peer <= q->goal;
        printf("%-56s %10.2f %10.2f  %-10s %6.2f %5.2f %s\n", q->text, ours, peer, q->unit, ours / peer,
               q->goal, met ? "" : "NOT MET");
        fflush(stdout);
        if (out)
            fprintf(
                out,
                "%s{\"question\": \"%s\", \"ours\": %.3f, \"peer\": %.3f, \"unit\": \"%s\", \"ratio\": %.3f, "
                "\"goal\": %.2f, \"met\": %s}",
                i ? ",\n " : "[", q->text, ours, peer, q->unit, ours / peer, q->goal, met ? "true" : "false");
    }
    if (out) {
        fprintf(out, "]\n");
        fclose(out);
    }
    rmdir(base);
    return 0;
}
