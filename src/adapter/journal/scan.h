/* adapter/journal/scan.h: going through a segment record by record.
 *
 * The one reader of records: recovery, reads, verify and doctor all look through this. It checks each record by
 * itself and against its predecessor (LSN and chain), and reads the file in windows. It keeps no judgement of
 * what a bad record means; see tail.h for that. */
#ifndef JOURNAL_SCAN_H
#define JOURNAL_SCAN_H

#include "adapter/journal/disk.h"
#include "adapter/journal/record.h"

#define SCAN_WINDOW ((size_t)256 << 10)

struct scan {
    const struct disk *disk;
    const pawl_allocator *alloc;
    int file;
    uint64_t seed;

    uint64_t at;    /* byte of the next record */
    uint64_t lsn;   /* which it must have */
    uint64_t chain; /* which it must have, if chained */
    bool chained;
    uint64_t end; /* nothing is read from this byte on: it may be written meanwhile */

    uint8_t *window;
    size_t room;
    uint64_t window_at; /* byte of window[0] */
    size_t window_size; /* bytes read */

    const char *why; /* after SCAN_BAD: what is wrong with the record at .at */
};

enum scan_result {
    SCAN_RECORD,
    SCAN_END,  /* nothing was written at .at, or the file ends there */
    SCAN_BAD,  /* something is there, and it is not the next record */
    SCAN_ERROR /* could not read, or no memory: see scan_error */
};

int scan_init(struct scan *s, const struct disk *disk, int file, uint64_t seed, const pawl_allocator *alloc);
void scan_release(struct scan *s);

/* Read so many bytes at a time from now on. Borrowed bodies end. Without memory it stays as it is. */
void scan_resize(struct scan *s, size_t room);

/* Go on at this byte, in this file. chained false: the first record is not checked against its predecessor. */
void scan_seek(struct scan *s, int file, uint64_t at, uint64_t lsn, uint64_t chain, bool chained);

/* The next record; its body is borrowed until the next call. On SCAN_ERROR *ret_status is the status. */
enum scan_result scan_next(struct scan *s, struct record *ret_record, int *ret_status);

/* Whether the next record, if there is one, is in the window already: then scan_next moves no bytes. */
bool scan_ready(const struct scan *s);

/* From byte at on, find the next place where a record stands that is valid by itself, whatever is before it.
 * Leaves the scan there, unchained. SCAN_END if there is none up to the end of the file. */
enum scan_result scan_search(struct scan *s, uint64_t at, struct record *ret_record, int *ret_status);

/* Whether everything from byte at to the end of the file is zero; *ret_end is the byte after the last that is
 * not. */
int scan_tail_zero(struct scan *s, uint64_t at, uint64_t *ret_end);

#endif
