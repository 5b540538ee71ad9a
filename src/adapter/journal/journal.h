/* adapter/journal/journal.h: the log port on files.
 *
 * One journal a data directory, shared by all streams, so that one sync serves everything that waits.
 *
 *     append ──► queue ──► one writer: encode, write, sync ──► done
 *                          (the caller itself, when it is alone)
 *
 * The writer takes all that is queued, writes it with one call and syncs it with one more; what arrives
 * meanwhile is the next group. No request waits for others to come. A shard's commands have been gathered
 * before (engine/shard/turn_appends.h); the queue is for all others, and for what comes during a sync. See tail.h
 * for what happens at opening, and docs/FORMAT.md for the bytes. */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include <pawl/figures.h>

#include "adapter/journal/disk.h"
#include "base/id.h"
#include "port/env.h"
#include "port/log.h"

#define JOURNAL_SEGMENT_BYTES ((uint64_t)64 << 20)
#define JOURNAL_SEGMENT_FIRST ((uint64_t)1 << 20)

struct journal_options {
    const char *dir;
    pawl_env *env;               /* where done and visit run; reads are done on its pool */
    const pawl_allocator *alloc; /* NULL: the C library's */
    const struct disk *disk;     /* NULL: disk_real */
    bool read_only; /* see what is witnessed durable; change nothing; next to a writer or without */
    const pawl_place *witnesses; /* places known durable from elsewhere: read-only, what is there up to them is
                                    shown; for writing, a journal without them is corrupt */
    size_t witness_count;
    uint64_t segment_bytes; /* 0: JOURNAL_SEGMENT_BYTES. The first segment that an opening begins is smaller
                               (at most JOURNAL_SEGMENT_FIRST), each next one twice as large, up to this. */
    bool no_threads;        /* for tests: no writer, no maker; see journal_pump */
};

/* What opening found. */
struct journal_report {
    uint64_t segments;
    uint64_t records_recovered; /* whole, but not witnessed durable: written again and synced */
    uint64_t bytes_cut;         /* of a torn tail, left behind in its segment */
    uint32_t cut_segment;
    uint64_t cut_at;
    bool clean; /* the last writer closed it */
};

struct journal_stats {
    uint64_t syncs;
    uint64_t records;
    uint64_t bytes;
    uint64_t segments_made;
};

/* How long syncs of groups took, in ns, and how many records each had, of the last seconds (0: all), added up. Of
 * a log that journal_open opened. Any thread; waits for nobody. */
void journal_syncs(pawl_log *log, uint32_t seconds, pawl_histogram *to);
void journal_batches(pawl_log *log, uint32_t seconds, pawl_histogram *to);

/* Errors, each naming file and byte where there is one: PAWL_EFORMAT, PAWL_EVERSION, PAWL_ELOCKED, PAWL_EACCES,
 * PAWL_EREADONLY, PAWL_EFULL, PAWL_ECORRUPT, PAWL_ENOTFOUND (read-only, and there is none), PAWL_EIO,
 * PAWL_ENOMEM. */
int journal_open(const struct journal_options *options, pawl_log **ret_log, pawl_error *error);

/* Of a log that journal_open opened. Any thread. */
void journal_report(pawl_log *log, struct journal_report *ret_report);
void journal_stats(pawl_log *log, struct journal_stats *ret_stats);

/* Read-only: a place known durable from elsewhere, as those given at opening are. Reads that start from now on
 * show it, if it is there. Any thread. */
void journal_witness(pawl_log *log, pawl_place place);

/* Read-only: the entries that are left out. They are whole in the files, but neither the files nor a witness
 * says that they are durable: a process wrote them and died before it could say so, whether or not it had
 * acknowledged them. They are neither shown nor synced; the next opening for writing copies them to a new
 * segment, and from then on they are shown. visit gets each stream that has such entries, with the offset of
 * the first and their number. Beside a running writer they are what it is writing at this moment: see
 * journal_has_writer. Looks at the files again, as a read does. Blocks; any thread. Errors: PAWL_ECORRUPT,
 * PAWL_EIO, PAWL_ENOMEM. */
typedef void (*journal_unwitnessed_visit)(void *arg, pawl_stream stream, uint64_t first, uint64_t count);
int journal_unwitnessed(pawl_log *log, journal_unwitnessed_visit visit, void *arg, pawl_error *error);

/* The journal's ID, which was made with it. A copy has the same. Any thread. */
struct id128 journal_id(pawl_log *log);

/* Whether somebody, in this process or another, has the journal open for writing just now. Any thread. */
bool journal_has_writer(pawl_log *log);

/* With no_threads: write and sync what is queued, in this thread, as one group. */
void journal_pump(pawl_log *log);

#endif
