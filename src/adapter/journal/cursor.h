/* adapter/journal/cursor.h: a place in the journal that one reader moves along.
 *
 * It blocks: it is used on the env's pool, or by callers that may block. It sees records up to a limit that the
 * caller knows to be durable; a record below the limit that cannot be read is corruption, and is named. */
#ifndef JOURNAL_CURSOR_H
#define JOURNAL_CURSOR_H

#include "adapter/journal/scan.h"
#include "adapter/journal/segment.h"

struct journal;

struct cursor {
    struct journal *journal;
    pawl_stream stream;
    uint64_t next; /* the offset of the stream's next entry to be shown */
    struct segment_ref ref;
    int file; /* -1: not placed yet */
    struct scan scan;
    uint64_t limit;       /* records up to this LSN may be seen */
    uint64_t last;        /* and of the stream this is the last */
    uint64_t segment_end; /* the LSN that the next segment begins with, or UINT64_MAX */
};

int journal_cursor_init(struct cursor *c, struct journal *j, pawl_stream stream, uint64_t from);
void journal_cursor_release(struct cursor *c);

/* Go to the entry .next, from its place if that still fits. PAWL_ENOTFOUND: it is not visible yet; try again
 * later. */
int journal_cursor_place(struct cursor *c, pawl_place place, pawl_error *error);

/* Find out up to where records are visible by now. PAWL_ENOTFOUND: the entry .next is not visible yet. */
int journal_cursor_refresh(struct cursor *c, pawl_error *error);

/* Where a cursor was, to come back to. It is enough that the cursor was placed. */
struct cursor_position {
    uint32_t number;
    uint64_t at;
    uint64_t lsn;
    uint64_t chain;
    bool chained;
};

struct cursor_position journal_cursor_position(const struct cursor *c);
int journal_cursor_return(struct cursor *c, const struct cursor_position *position, pawl_error *error);

/* The next entry of the stream below the limit. PAWL_ENOTFOUND: there is none yet. PAWL_ECORRUPT. The body is
 * borrowed until the next call with still false. A call with still true leaves all bytes where they are, and
 * returns PAWL_EBUSY if it would have to move them. */
int journal_cursor_next(struct cursor *c, bool still, pawl_entry *ret_entry, pawl_place *ret_place,
                        pawl_error *error);

/* The parts of journal_cursor_next, for a caller that reads more than one stream.
 * step: the next record of the segment, of whatever stream, which must be there. The body is borrowed until the
 * next call.
 * cross: from the end of a segment into the next one. If the header of the segment behind that shows that it
 * holds nothing that is wanted, *ret_skipped is set, and the caller must place the cursor again.
 * damaged: set the error's words, with segment and byte. */
int journal_cursor_step(struct cursor *c, struct record *ret_record, pawl_place *ret_place, pawl_error *error);
int journal_cursor_cross(struct cursor *c, bool (*wants)(const void *ctx, const struct streams *behind),
                         const void *ctx, bool *ret_skipped, pawl_error *error);
int journal_cursor_damaged(const struct cursor *c, const char *why, pawl_error *error);

#endif
