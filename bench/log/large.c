/* bench/log/large.c: reading and opening, on journals that are too large to be made anew in every round. They
 * are made when first asked for, beside the rounds' own directories, and removed at the end. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "bench/log/log.h"

#define BATCH 512

struct fixture {
    char dir[PATH_MAX];
    struct rig rig;
    uint64_t segments; /* 0: not made yet */
};

static struct fixture to_read, to_open, to_open_short;

/* A disk that makes journals fast, and leaves them as a killed process would: it never syncs, leaves out
 * zeros where the file is zero already, and once the power is cut nothing reaches it any more. */
static atomic_bool power_cut;

static int64_t hasty_write(void *ctx, int file, const void *data, size_t size, uint64_t at)
{
    const uint8_t *bytes = data;
    bool zeros = bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
    return power_cut || zeros ? (int64_t)size : disk_real.write(ctx, file, data, size, at);
}

static int hasty_truncate(void *ctx, int file, uint64_t size)
{
    return power_cut ? 0 : disk_real.truncate(ctx, file, size);
}

static int hasty_sync(void *ctx, int file)
{
    return 0;
}

static void set_latch(pawl_append *append)
{
    latch_set(append->arg);
}

static bool append_batch(struct rig *rig)
{
    static pawl_append_entry entries[BATCH];
    pawl_error error = {0};
    struct latch latch;
    for (unsigned i = 0; i < BATCH; i++)
        entries[i].entry = (pawl_entry){
            .stream = rig_stream(0), .epoch = rig->epoch[0], .offset = rig->next[0]++, .body = rig_body()};
    pawl_append append = {
        .entries = entries, .count = BATCH, .alone = true, .done = set_latch, .arg = &latch, .error = &error};
    latch_init(&latch);
    int status = pawl_log_append(rig->log, &append);
    if (status == PAWL_OK)
        latch_wait(&latch);
    if (status >= 0 && append.status == PAWL_OK)
        return true;
    bench_failed("append", &error);
    return false;
}

/* So many whole segments, and a last one that holds so many bytes, whatever the whole ones hold. */
static bool fixture_make(struct fixture *x, const struct bench_round *round, uint64_t segments, uint64_t last)
{
    struct disk hasty = disk_real;
    struct journal_stats stats = {0};
    uint64_t before = 0;
    hasty.write = hasty_write;
    hasty.truncate = hasty_truncate;
    hasty.sync = hasty.sync_dir = hasty_sync;
    power_cut = false;
    snprintf(x->dir, sizeof x->dir, "%s-%" PRIu64, round->dir, segments);
    if (mkdir(x->dir, 0750) != 0 || !rig_open(&x->rig, x->dir, &hasty))
        return bench_failed(x->dir, NULL) > 0;
    while (stats.segments_made <= segments || stats.bytes - before < last) {
        if (stats.segments_made <= segments)
            before = stats.bytes;
        if (!append_batch(&x->rig))
            return false;
        journal_stats(x->rig.log, &stats);
    }
    power_cut = true;
    rig_close(&x->rig);
    sync();
    x->segments = stats.segments_made;
    return true;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    return remove(path);
}

static void fixture_remove(struct fixture *x)
{
    if (x->rig.log)
        rig_close(&x->rig);
    if (x->dir[0])
        nftw(x->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Opening puts a segment behind the last; take it away, so that the next opening finds what this one found. */
static void forget_opening(const struct fixture *x)
{
    char path[PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/journal", x->dir);
    DIR *listing = opendir(path);
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        char *end;
        uint64_t number = strtoull(entry->d_name, &end, 16);
        snprintf(path, sizeof path, "%s/journal/%s", x->dir, entry->d_name);
        if (end == entry->d_name + 8 && number > x->segments)
            unlink(path);
    }
    if (listing)
        closedir(listing);
}

/* Milliseconds, of the opening alone. Segments grow from 1 to 64 MiB: 6 of them have 63 MiB, the seventh is the
 * first of full size. The last one is filled by a little more than half, in both. */
static double open_journal(const struct bench_round *round, struct fixture *x, uint64_t segments)
{
    pawl_error error = {0};
    struct uv_env *env;
    pawl_log *log;
    if (!x->segments && !fixture_make(x, round, segments, UINT64_C(37) << 20))
        return 0;
    struct uv_env_options options = {.shards = 1, .pool_threads = 1};
    if (uv_env_open(&options, &env, &error) != PAWL_OK)
        return bench_failed(x->dir, &error);
    uint64_t began = bench_begin();
    int status = journal_open(&(struct journal_options){.dir = x->dir, .env = uv_env_port(env)}, &log, &error);
    double ms = (double)(bench_now() - began) / 1e6;
    if (status == PAWL_OK)
        pawl_log_close(log);
    uv_env_close(env);
    forget_opening(x);
    return status == PAWL_OK ? ms : bench_failed(x->dir, &error);
}

double open_long(const struct bench_round *round)
{
    return open_journal(round, &to_open, round->quick ? 6 + 15 : 6 + 158);
}

double open_short(const struct bench_round *round)
{
    return open_journal(round, &to_open_short, 6);
}

/* A read of everything: on the thread that asks, or from a shard. */
struct reading {
    pawl_task task; /* first */
    pawl_read read;
    pawl_log *log;
    pawl_error error;
    struct latch over;
    uint64_t bytes;
};

static bool count_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct reading *r = read->arg;
    r->bytes += record_size(entry->body.size);
    return true;
}

static void read_over(pawl_read *read)
{
    struct reading *r = read->arg;
    latch_set(&r->over);
}

static void read_start(pawl_task *task)
{
    struct reading *r = (struct reading *)task;
    r->read.status = pawl_log_read(r->log, &r->read);
    if (r->read.status != PAWL_OK)
        latch_set(&r->over);
}

static bool have_to_read(const struct bench_round *round)
{
    struct fixture *x = &to_read;
    if (!x->segments && !fixture_make(x, round, round->quick ? 6 : 9, UINT64_C(1) << 20))
        return false;
    return x->rig.log || rig_open(&x->rig, x->dir, NULL);
}

static double read_all(const struct bench_round *round, bool alone)
{
    if (!have_to_read(round))
        return 0;
    struct reading r = {.task.fn = read_start, .log = to_read.rig.log};
    r.read = (pawl_read){.stream = rig_stream(0),
                         .from = 1,
                         .limit = UINT64_MAX,
                         .alone = alone,
                         .visit = count_entry,
                         .done = read_over,
                         .arg = &r,
                         .error = &r.error};
    latch_init(&r.over);
    uint64_t began = bench_begin();
    if (alone) {
        pawl_log_read(r.log, &r.read);
    } else {
        pawl_env_post(uv_env_port(to_read.rig.env), 0, &r.task);
        latch_wait(&r.over);
    }
    double rate = bench_per_second(r.bytes, began) / 1e6;
    return r.read.status == PAWL_OK ? rate : bench_failed("read", &r.error);
}

double read_alone(const struct bench_round *round)
{
    return read_all(round, true);
}

double read_from_shard(const struct bench_round *round)
{
    return read_all(round, false);
}

/* What any reader of such records must do at least: fetch the bytes, and sum up each record. */
double read_raw(const struct bench_round *round)
{
    const size_t record = record_size(BODY);
    if (!have_to_read(round))
        return 0;
    char path[PATH_MAX + 300];
    uint8_t *chunk = malloc(CHUNK);
    uint64_t bytes = 0, sum = 0;
    snprintf(path, sizeof path, "%s/journal", to_read.dir);
    DIR *listing = chunk ? opendir(path) : NULL;
    uint64_t began = bench_begin();
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        if (!strstr(entry->d_name, ".seg"))
            continue;
        int file = openat(dirfd(listing), entry->d_name, O_RDONLY | O_CLOEXEC);
        ssize_t n;
        for (off_t at = 0; file >= 0 && (n = pread(file, chunk, CHUNK, at)) > 0; at += n) {
            for (size_t i = 0; i + record <= (size_t)n; i += record)
                sum += XXH3_64bits(chunk + i, record - 8);
            bytes += (uint64_t)n;
        }
        if (file >= 0)
            close(file);
    }
    double rate = bench_per_second(bytes, began) / 1e6;
    if (listing)
        closedir(listing);
    free(chunk);
    return sum ? rate : bench_failed(path, NULL); /* sum is looked at, so that it must be computed */
}

void large_remove(void)
{
    fixture_remove(&to_read);
    fixture_remove(&to_open);
    fixture_remove(&to_open_short);
}
