/* adapter/journal/salvage.h: what can still be read of a damaged journal, and saving it elsewhere.
 *
 * Blocking, and never in place: the damaged journal is only read. Reading is tolerant where verify is strict:
 *
 *     a record is damaged     ──► the next valid one behind it, whose LSN is between its neighbours'
 *     a header is damaged     ──► the same, from the beginning of the file
 *     a segment is missing    ──► the next one
 *     the id file is damaged  ──► the ID that the first readable header has
 *
 * A record counts if its checksum, which is seeded with the journal's ID, is right, and if it lies where the
 * journal's order allows it. What a recovery has cut stays cut: behind the point where the next segment begins,
 * only records that continue the chain count, because those are copies of what the next segment begins with.
 *
 * Saving writes a fresh journal with each stream's entries from offset 1 up to the first that is lost, with the
 * same offsets, kinds and bodies; epochs begin anew. An entry that is readable but lies behind a hole cannot be
 * in a journal, whose offsets have no gap: it goes into DIR/behind-holes/STREAM.ndjson, '-' for '/' in STREAM:
 *
 *     {"offset":12,"kind":3,"hex":"68656c6c6f"} */
#ifndef JOURNAL_SALVAGE_H
#define JOURNAL_SALVAGE_H

#include <pawl/admin.h>

#include "port/env.h"

struct disk;

struct journal_salvage_options {
    const char *dir;
    const char *to; /* NULL: only look. Must not exist, or be empty */
    bool (*keep)(void *arg, pawl_stream stream, uint64_t offset,
                 pawl_bytes body); /* NULL: all that is intact */
    void *keep_arg;
    pawl_env *env; /* for the new journal; needed with to */
    const struct disk *disk;
    const pawl_allocator *alloc;
    pawl_progress progress; /* may be NULL; counts bytes */
    void *arg;
};

/* Errors: PAWL_ENOTFOUND, PAWL_EFORMAT (no journal there), PAWL_EVERSION, PAWL_ECORRUPT (nothing tells any more
 * which journal it was, so that no checksum can be checked), PAWL_EEXISTS (to is not empty), PAWL_EINVAL,
 * PAWL_ECANCELED, and
 * what writing may end with; what was written by then stays. The caller releases the report
 * (pawl_doctor_report_release). */
int journal_salvage(const struct journal_salvage_options *options, pawl_doctor_report *ret_report,
                    pawl_error *error);

#endif
