/* adapter/journal/copy.h: a journal's files, copied while its writer goes on.
 *
 * A copy is what a loss of power could leave: all that was durable when it began, and perhaps some of what came
 * meanwhile, with an end that was never finished. Opening it for writing tidies that up.
 *
 * The writer writes from the front to the back. So the newest segment is read from the back to the front, page
 * by page: whatever is seen of a record, all that was written before it is seen too, and the copy has no hole
 * in front of a later record. */
#ifndef JOURNAL_COPY_H
#define JOURNAL_COPY_H

#include <pawl/admin.h>

#include "adapter/journal/disk.h"

struct journal_copy_options {
    const char *from, *to;       /* to must be there, and empty */
    const struct disk *disk;     /* NULL: disk_real */
    const pawl_allocator *alloc; /* NULL: the C library's */
    pawl_progress progress;      /* may be NULL; counts bytes */
    void *arg;
};

/* Indexes are not copied: they are made when needed. Synced. Errors: PAWL_ENOTFOUND, PAWL_EFORMAT (no journal there),
 * PAWL_EVERSION, PAWL_ECORRUPT, PAWL_EFULL, PAWL_EIO, PAWL_ENOMEM, PAWL_ECANCELED. What was copied by then stays. */
int journal_copy(const struct journal_copy_options *options, uint64_t *ret_bytes, pawl_error *error);

#endif
