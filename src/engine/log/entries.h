/* engine/log/entries.h: a stream's entries one after the other, for a thread that may block.
 *
 * The log port shows entries to a visitor. This is for a caller that reads two streams side by side, or that
 * needs more time for an entry than a visitor should take. It copies a piece of the stream at a time. The next
 * piece is read from the place of the last entry on, so that the log need not search for it. */
#ifndef ENGINE_LOG_ENTRIES_H
#define ENGINE_LOG_ENTRIES_H

#include "core/stream/copies.h"

struct log_entries {
    pawl_log *log;
    pawl_stream stream;
    uint64_t from;        /* the offset to read next */
    pawl_place place;     /* of the entry before that; zero: nothing was read yet */
    struct copies copies; /* entries that were read, and not taken yet */
};

void log_entries_init(struct log_entries *entries, pawl_log *log, pawl_stream stream, uint64_t from,
                      const pawl_allocator *alloc);
void log_entries_release(struct log_entries *entries);

/* The entry is borrowed until the next one is asked for. PAWL_ENOTFOUND: the stream ends here. Errors: those of
 * the log; PAWL_ENOMEM. */
int log_entries_next(struct log_entries *entries, const struct copied_entry **ret_entry, pawl_error *error);

/* Whether the next one belongs to the same piece. As long as that is so, those that were taken before stay. */
static inline bool log_entries_has_more(const struct log_entries *entries)
{
    return entries->copies.first != NULL;
}

#endif
