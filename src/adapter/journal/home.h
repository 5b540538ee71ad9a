/* adapter/journal/home.h: the journal's directory: its ID, and its lock.
 *
 *     DIR/journal/id                             magic 8 "PAWLJRN" and a newline, version u32, zero u32, ID 16,
 *                                                created i64, XXH3_64 of all that, seed 0
 *     DIR/journal/lock                           locked by the one writer; holds its process ID
 *     DIR/journal/00000001-0000000000000001.seg  segments: number and first LSN, hexadecimal
 *     DIR/journal/00000001.idx                   their indexes
 *     DIR/journal/ *.tmp                         drafts: never read, removed by the next writer
 *
 * The id file is written last when a journal is made, so a directory without one holds no acknowledged entry.
 */
#ifndef JOURNAL_HOME_H
#define JOURNAL_HOME_H

#include "adapter/journal/disk.h"
#include "base/id.h"

struct home {
    const struct disk *disk;
    int dir;
    int lock; /* -1: read-only */
    struct id128 id;
    bool is_new; /* there is no id file yet: home_settle writes it */
};

/* Open path/journal. For writing: makes what is missing if path is empty or not there, and takes the lock.
 * Changes nothing in a directory that is not Pawl's. Errors: PAWL_EFORMAT (not Pawl's), PAWL_EVERSION,
 * PAWL_ELOCKED, PAWL_EACCES, PAWL_EREADONLY, PAWL_ECORRUPT, PAWL_EIO. */
int home_open(struct home *home, const struct disk *disk, const char *path, bool read_only, struct id128 new_id,
              pawl_error *error);

/* The journal has been made: write its id file. */
int home_settle(struct home *home, int64_t created_ns, pawl_error *error);

/* Whether somebody has the journal open for writing just now. Takes nothing. */
bool home_has_writer(const struct home *home);

/* Remove drafts that a writer left behind. */
void home_sweep(struct home *home);

void home_close(struct home *home);

#endif
