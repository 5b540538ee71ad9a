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

#include "port/env.h"
#include "port/log.h"

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
    void (*progress)(void *arg, uint64_t done, uint64_t of_bytes); /* may be NULL; on the calling thread */
    void *arg;
};

/* Offsets first to last. */
struct journal_range {
    uint64_t first;
    uint64_t last;
};

struct journal_salvage_stream {
    pawl_stream id;
    struct journal_range *intact; /* ascending, with gaps between them */
    size_t count;
    size_t room;
    uint64_t next;    /* one above the highest offset that anything found speaks of */
    uint64_t entries; /* intact ones */
    uint64_t dense;   /* of these, from offset 1 to the first hole: what a journal can hold */
};

struct journal_salvage_report {
    uint64_t segments;
    uint64_t segments_missing;
    uint64_t headers_damaged;
    uint64_t places_damaged; /* where records are lost, or something else than a record stands */
    uint64_t bytes_damaged;
    pawl_error first; /* the first damage, in words; code PAWL_OK: there is none */

    struct journal_salvage_stream *streams;
    size_t stream_count;
    size_t stream_room;
    const pawl_allocator *alloc;
};

/* Errors: PAWL_ENOTFOUND, PAWL_EFORMAT (no journal there), PAWL_EVERSION, PAWL_ECORRUPT (nothing tells any more
 * which journal it was, so that no checksum can be checked), PAWL_EEXISTS (to is not empty), PAWL_EINVAL, and
 * what writing may end with; what was written by then stays. The caller releases the report. */
int journal_salvage(const struct journal_salvage_options *options, struct journal_salvage_report *ret_report,
                    pawl_error *error);
void journal_salvage_release(struct journal_salvage_report *report);

#endif
