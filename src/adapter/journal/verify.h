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
 * reported, because the others may be its consequences. */
#ifndef JOURNAL_VERIFY_H
#define JOURNAL_VERIFY_H

#include <pawl/admin.h>

struct disk;

struct journal_verify_options {
    const char *dir;
    const struct disk *disk;     /* NULL: disk_real */
    const pawl_allocator *alloc; /* NULL: the C library's */
    pawl_place witness;     /* known durable from elsewhere: up to it, records that are there are witnessed */
    pawl_progress progress; /* may be NULL; counts bytes */
    void *arg;
};

/* PAWL_OK: everything that is there was looked at; see ret_report->faults. The caller releases the report
 * (pawl_log_report_release).
 * Errors, when looking was not possible: PAWL_ENOTFOUND (no journal there), PAWL_EFORMAT, PAWL_EVERSION,
 * PAWL_EACCES, PAWL_EIO, PAWL_ENOMEM, PAWL_ECANCELED, and PAWL_ECORRUPT if the journal's id is damaged or
 * missing. */
int journal_verify(const struct journal_verify_options *options, pawl_log_report *ret_report,
                   pawl_error *error);

#endif
