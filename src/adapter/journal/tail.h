/* adapter/journal/tail.h: the end of a journal as it is found on the disk, and what to believe of it.
 *
 * The newest segment holds, in this order: records that are witnessed durable, records that were written and
 * maybe synced, and behind them nothing, or the remains of writes that a crash cut short.
 *
 *     header │ records up to D │ records up to N │ zeros, or a torn record and scraps
 *            └─ witnessed ─────┴─ whole ─────────┴─ cut
 *
 * D is the highest LSN that any record found here calls durable; everything before this segment is durable
 * because a segment gets its name only after its predecessor was synced.
 *
 * Torn or corrupt? Behind the last whole record, at LSN N + 1, there may be bytes that are not a record. If
 * nothing says that LSN N + 1 was durable, no caller was told that it was written, and the bytes are a torn
 * tail. If a witness says that it was durable, they are corruption: acknowledged bytes are gone, and nothing
 * may be cut. A witness is a later record, found by searching to the end of the file, whose durable field
 * reaches N + 1, or a place in the log that somebody else kept. */
#ifndef JOURNAL_TAIL_H
#define JOURNAL_TAIL_H

#include "adapter/journal/scan.h"
#include "adapter/journal/segment.h"

struct tail {
    const struct disk *disk;
    const pawl_allocator *alloc;
    struct segment_header header;
    struct scan scan;
    int file;
    struct streams streams; /* as they are at .lsn */
    uint64_t lsn;           /* the last record taken in */
    uint64_t chain;         /* its checksum */
    uint64_t at;            /* the byte behind it */
};

struct tail_end {
    uint64_t witnessed; /* D */
    uint64_t whole;     /* N */
    uint64_t whole_at;  /* the byte behind N */
    uint64_t useful;    /* N, or less: the last that is not a watermark, at least D */
    uint64_t useful_at; /* the byte behind that, if it is above D */
    uint64_t
        scraps;    /* how many bytes there are behind N up to the last that is not zero; found by tail_judge */
    uint64_t size; /* of the file, taken before anything was read */
    bool seals;    /* the last whole record is the watermark of a clean close */
    bool sealed;   /* closed cleanly: it seals, and the file ends with it */
    const char *why; /* what is wrong with what stands behind N; NULL: nothing stands there */
};

/* Open a segment, of that journal (NULL: of any), and stand at its beginning. */
int tail_open(struct tail *t, const struct disk *disk, int dir, struct segment_ref ref,
              const struct id128 *journal, const pawl_allocator *alloc, pawl_error *error);
void tail_close(struct tail *t);

/* Look at everything behind .at, without taking any record in. */
int tail_probe(struct tail *t, struct tail_end *ret_end, pawl_error *error);

/* After tail_judge: whether the file is shorter than a writer leaves it: it was cut, but is not sealed. Two
 * cases do not count. A writer that goes on behind its seal at this moment makes the file longer again. And a
 * loss of power may leave any part of an extension (extend.c): a seal, with only zeros behind it. */
bool tail_is_short(const struct tail *t, const struct tail_end *end);

/* PAWL_ECORRUPT, with segment and byte, if what ends there is not a torn tail. witness: the highest LSN that
 * someone else knows to be durable. live: another process may be writing, so an end that is not sealed is no
 * fault. */
int tail_judge(struct tail *t, struct tail_end *end, uint64_t witness, bool live, pawl_error *error);

/* Take in the records up to that LSN, which probing has found whole. visit may be NULL. */
int tail_advance(struct tail *t, uint64_t lsn, void (*visit)(void *arg, const struct record *r, uint64_t at),
                 void *arg, pawl_error *error);

#endif
