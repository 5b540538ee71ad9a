/* adapter/journal/verify.h: read a whole journal, and say whether every byte of it is as it was written.
 *
 * Blocking and read-only: it takes no lock and leaves nothing behind, and may run beside a writer. What is
 * checked of each segment, in order:
 *
 *     header: checksum, journal ID, number, first LSN ──► it continues the chain of the segment before it, and
 *             says of every stream what was read up to here
 *     records: checksums, LSN + 1, chain ──► a stream's offsets are 1, 2, 3, ..., its epochs too
 *     the end: an older segment's is where the next one begins; the newest one's is judged as tail.h says
 *
 * What stands behind the end of an older segment is dead: it was cut by a recovery, and is counted only. So is
 * what a writer has not finished at the end of the newest.
 *
 * A fault does not end it: it goes on with the next segment, whose header is then believed. The first fault is
 * the one that is told, because the others may be its consequences. */
#ifndef JOURNAL_VERIFY_H
#define JOURNAL_VERIFY_H

#include "port/log.h"

struct disk;

struct journal_verify_options {
    const char *dir;
    const struct disk *disk;     /* NULL: disk_real */
    const pawl_allocator *alloc; /* NULL: the C library's */
    pawl_place witness; /* known durable from elsewhere: up to it, records that are there are witnessed */
    void (*progress)(void *arg, uint64_t done, uint64_t of_bytes); /* may be NULL; on the calling thread */
    void *arg;
};

#define JOURNAL_NO_BYTE UINT64_MAX

/* Something that is not as it was written. */
struct journal_fault {
    char file[48];
    uint64_t at;      /* JOURNAL_NO_BYTE: the file as a whole */
    uint64_t lsn;     /* of the record; 0: it is not about one */
    pawl_error error; /* the whole sentence, with file and byte */
};

struct journal_verify_stream {
    pawl_stream id;
    uint64_t entries;
    uint64_t first; /* offset; 0: it has no entry */
    uint64_t last;
    uint64_t epoch;
};

struct journal_verify_report {
    uint64_t segments;
    uint64_t records; /* entries, claims and watermarks */
    uint64_t entries;
    uint64_t claims;
    uint64_t watermarks;
    uint64_t unwitnessed; /* of the records: whole, but nothing says that they are durable; readers leave out
                             the entries among them */
    uint64_t bytes;       /* of the segments' files */
    uint64_t dead_bytes;  /* left behind by cuts */
    uint64_t torn_bytes;  /* unfinished at the end of the newest segment */
    char torn_file[48];
    uint64_t torn_at;
    uint64_t bad_indexes; /* index files that cannot be believed: they are made anew when needed */
    bool clean;           /* the last writer closed it */

    uint64_t faults;
    struct journal_fault first; /* if there are faults */

    struct journal_verify_stream *streams; /* in the order in which they appear */
    size_t stream_count;
    size_t stream_room;
    const pawl_allocator *alloc;
};

/* PAWL_OK: everything that is there was looked at; see ret_report->faults. The caller releases the report.
 * Errors, when looking was not possible: PAWL_ENOTFOUND (no journal there), PAWL_EFORMAT, PAWL_EVERSION,
 * PAWL_EACCES, PAWL_EIO, PAWL_ENOMEM, and PAWL_ECORRUPT if the journal's id is damaged or missing. */
int journal_verify(const struct journal_verify_options *options, struct journal_verify_report *ret_report,
                   pawl_error *error);
void journal_verify_release(struct journal_verify_report *report);

#endif
