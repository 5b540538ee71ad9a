/* engine/log/entries.h: a stream's entries one after the other, for a thread that may block.
 *
 * The log port shows entries to a visitor; whoever has two streams to read in step, or more to do with an entry
 * than a visitor should, takes them from here. A piece of the stream is copied at a time; the next one is read
 * from the place of the last entry on, because a log that knows no place has to search for it. */
#ifndef ENGINE_LOG_ENTRIES_H
#define ENGINE_LOG_ENTRIES_H

#include "core/stream/copies.h"

struct log_entries {
    pawl_log *log;
    pawl_stream stream;
    uint64_t from;        /* what is read next */
    pawl_place place;     /* of the entry before it, once there was one */
    struct copies copies; /* read, and not yet taken */
};

void log_entries_init(struct log_entries *entries, pawl_log *log, pawl_stream stream, uint64_t from,
                      const pawl_allocator *alloc);
void log_entries_release(struct log_entries *entries);

/* The entry is borrowed until the next one is asked for. PAWL_ENOTFOUND: the stream ends here. Errors: those of the log; PAWL_ENOMEM. */
int log_entries_next(struct log_entries *entries, const struct copied_entry **ret_entry, pawl_error *error);

#endif
