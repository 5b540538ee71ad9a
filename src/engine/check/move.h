/* engine/check/move.h: a log is copied into another one, stream by stream, with all offsets unchanged (import, export).
 *
 *     for each stream:  claim ──► its next offset ──► what is there is compared ──► the rest is appended
 *     in the end:       every entry of both is read, and compared
 *
 * The target's own next offset says where to go on: so a copy that was killed, or whose outcome is unknown, goes on where
 * it was, and an entry is never there twice.
 *
 *   M1  Nothing is appended behind an entry that differs from the source's.
 *   M2  An offset is appended only under a claim that says that it is the next. */
#ifndef ENGINE_CHECK_MOVE_H
#define ENGINE_CHECK_MOVE_H

#include <pawl/cluster.h>

#include "port/log.h"

struct move_stream {
    pawl_stream id;
    uint64_t last; /* the offset of its last entry */
};

struct move {
    const char *verb; /* "the import of /dir" */
    pawl_log *from;
    pawl_log *to;
    const char *to_name;
    pawl_progress progress; /* may be NULL; counts entries that were copied or compared */
    void *arg;

    uint64_t done, total; /* of progress */
    uint64_t copied;      /* entries */
};

/* Tell how far it is. PAWL_ECANCELED. */
int move_tell(struct move *move, pawl_error *error);

/* Claim a stream of the target; *ret_epoch, *ret_next. PAWL_EFENCED: another process writes there, too. */
int move_claim(struct move *move, pawl_stream stream, uint64_t *ret_epoch, uint64_t *ret_next,
               pawl_error *error);

/* Copy a stream up to its last entry. PAWL_EEXISTS: the target has entries that the source has not. */
int move_copy(struct move *move, const struct move_stream *stream, pawl_error *error);

/* Whether the first count entries are the same in both. PAWL_EEXISTS: one differs, or the target has fewer. */
int move_compare(struct move *move, pawl_stream stream, uint64_t count, pawl_error *error);

/* Append one entry to a stream of the target. PAWL_EUNKNOWN: claim again and look. */
int move_append(struct move *move, const pawl_entry *entry, pawl_error *error);

#endif
