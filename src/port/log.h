/* port/log.h: the log as a port: what an adapter implements, and what only the inside uses.
 *
 * pawl/log.h is the manual of the requests; here are the table of functions behind them, and the sweep, which
 * reads many streams at once. */
#ifndef PAWL_PORT_LOG_H
#define PAWL_PORT_LOG_H

#include <pawl/log.h>

#ifdef __cplusplus
extern "C" {
#endif

/* sweep: read many streams at once, for a thread that may block.
 * Visits the entries of each stream from an offset on, up to what is durable now, at most limit of them in all:
 * within a stream in order and without a gap, between streams in whatever order the log has them at hand. A log
 * that keeps its streams in one place goes through it once, where a read of each would go through it once for
 * each; one that does not reads one stream after the other, and of each no more than its share of the limit.
 *
 * Everything is done on the calling thread, and is over when the call returns: not from a shard that has
 * anything else to do. The entry is borrowed for the call of visit(); return false to stop.
 *
 * Whatever the outcome, each stream's next is the offset after the last of its entries that was visited (from,
 * if none was), and ended says that there was no more of it; otherwise there may be. A sweep goes on where
 * another one ended; with a limit no less than the number of streams none of them waits for the others for
 * ever.
 *
 * Returns the outcome. PAWL_EINVAL: a stream that is none or is there twice, an offset 0, no visit(). An
 * entry that cannot be read ends the sweep for all streams, also for those whose entries could be read. If only one of them
 * is damaged, because the log keeps each in a place of its own, damaged says so. */
typedef struct pawl_sweep_stream {
    pawl_stream stream;
    uint64_t from; /* at least 1 */
    pawl_place at; /* {0, 0}, or the place of entry from */
    uint64_t next;
    bool ended;
    bool damaged; /* PAWL_ECORRUPT, PAWL_EVERSION: it is this stream's alone, at next */
} pawl_sweep_stream;

typedef struct pawl_sweep pawl_sweep;
struct pawl_sweep {
    pawl_sweep_stream *streams;
    size_t count;
    uint64_t limit;
    /* index: which of the streams the entry is of. */
    bool (*visit)(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place);
    void *arg;
    pawl_error *error;
};

struct pawl_log_ops {
    int (*claim)(pawl_log *log, pawl_claim *claim);
    int (*append)(pawl_log *log, pawl_append *append);
    int (*read)(pawl_log *log, pawl_read *read);
    /* NULL: the sweep is done by reads. It gets sweeps that are well formed, except that a stream may be there
     * twice; next and ended are set as if nothing was visited. */
    int (*sweep)(pawl_log *log, pawl_sweep *sweep);
    int (*follow)(pawl_log *log, pawl_follow *follow);
    /* On the thread that called follow. PAWL_EMISUSE: it is over already, or ends by itself. */
    int (*unfollow)(pawl_log *log, pawl_follow *follow);
    int (*tail)(pawl_log *log, pawl_tail *tail);
    /* NULL: it leaves nothing out. */
    int (*unwitnessed)(pawl_log *log, pawl_unwitnessed_visit visit, void *arg, pawl_error *error);
    /* Blocks until everything is freed. Never on a shard of the log's env. PAWL_EMISUSE if a request is outstanding: the
     * log stays open then. */
    int (*close)(pawl_log *log);
};

/* An implementation puts this first into its own struct. */
struct pawl_log {
    const struct pawl_log_ops *ops;
};

int pawl_log_sweep(pawl_log *log, pawl_sweep *sweep);

static inline bool pawl_stream_equal(pawl_stream a, pawl_stream b)
{
    return a.kind == b.kind && a.partition == b.partition && a.lane == b.lane && a.generation == b.generation;
}

/* Whether it is a stream at all: a known kind, and nothing set that its kind does not have. */
static inline bool pawl_stream_valid(pawl_stream s)
{
    switch (s.kind) {
    case PAWL_STREAM_RAW:
    case PAWL_STREAM_PLOG: return s.lane == 0 && s.generation == 0;
    case PAWL_STREAM_OPLOG: return true;
    case PAWL_STREAM_GROUP0: return s.partition == 0 && s.lane == 0 && s.generation == 0;
    default: return false;
    }
}

/* Whether an append is well formed. What the log holds is not looked at. */
static inline bool pawl_append_valid(const pawl_append *append)
{
    if (!append->done || !append->entries || append->count == 0)
        return false;
    for (size_t i = 0; i < append->count; i++) {
        const pawl_entry *e = &append->entries[i].entry;
        if (!pawl_stream_valid(e->stream) || e->offset == 0 || (e->body.size > 0 && !e->body.data))
            return false;
    }
    return true;
}

#ifdef __cplusplus
}
#endif
#endif
