/* core/stream/copies.h: entries of a log, copied while they are visited.
 *
 * The log lends an entry for the time of a visit. Who needs it longer copies it. Copies form a list, in the
 * order of their offsets, and lie in one arena. */
#ifndef CORE_STREAM_COPIES_H
#define CORE_STREAM_COPIES_H

#include "base/arena.h"
#include "port/log.h"

struct copied_entry {
    struct copied_entry *next;
    uint64_t offset;
    pawl_place place;
    uint8_t kind; /* the entry's */
    pawl_bytes body;
};

struct copies {
    struct arena memory; /* of the copies; others may take from it too, until the next reset */
    struct copied_entry *first;
    struct copied_entry **last;
    size_t bytes; /* of their bodies */
    int status;   /* PAWL_ENOMEM: there was no memory for an entry */
};

/* init allocates nothing. reset: forget the copies and keep the memory. release: free both. */
void copies_init(struct copies *copies, const pawl_allocator *alloc, size_t chunk_size);
void copies_reset(struct copies *copies);
void copies_release(struct copies *copies);

/* Copy an entry to the end of the list. False: visit no more, because there are bytes_max bytes now, or because
 * there is no memory (see status). */
bool copies_take(struct copies *copies, const pawl_entry *entry, pawl_place place, size_t bytes_max);

#endif
