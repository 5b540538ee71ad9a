/* bench/log/log.h: what the parts of the log's bench share. */
#ifndef BENCH_LOG_LOG_H
#define BENCH_LOG_LOG_H

#include "adapter/journal/journal.h"
#include "adapter/journal/record.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "bench/lib/bench.h"

#define WRITERS 64
#define BODY    300
#define CHUNK   ((size_t)256 << 10)

/* A journal with its env, and 64 streams claimed. */
struct rig {
    struct uv_env *env;
    pawl_log *log;
    uint64_t epoch[WRITERS];
    uint64_t next[WRITERS];
};

/* False, after saying why. disk: NULL is the real one. */
bool rig_open(struct rig *rig, const char *dir, const struct disk *disk);
void rig_close(struct rig *rig);
pawl_stream rig_stream(unsigned i);
pawl_bytes rig_body(void);

/* large.c: measurements on journals that are too large to be made anew in every round. */
double read_alone(const struct bench_round *round);
double read_from_shard(const struct bench_round *round);
double read_raw(const struct bench_round *round);
double open_long(const struct bench_round *round);
double open_short(const struct bench_round *round);
void large_remove(void);

#endif
