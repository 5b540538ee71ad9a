/* adapter/journal/streams.h: what the journal knows of each stream.
 *
 * Thread: changed by whoever writes or scans, under the journal's lock once others can see it; a pointer to a
 * stream stays valid until streams_release. */
#ifndef JOURNAL_STREAMS_H
#define JOURNAL_STREAMS_H

#include "adapter/journal/record.h"
#include "base/map.h"

struct follower;

struct stream {
    pawl_stream id;
    uint64_t epoch;   /* of the last claim that has a record; 0: there is none */
    uint64_t given;   /* the writer's: the last epoch that a claim was given; see claims.c */
    uint64_t next;    /* the offset that the next entry must have */
    uint64_t visible; /* last offset that readers may see: durable */
    bool claimed;     /* since the journal was opened or reopened: the epoch given may write */
    bool touched;     /* in the writer's list of streams with entries that are not visible yet */
    struct stream *touched_next;
    uint64_t group0;            /* the writer's: what the last claim given rests on */
    uint64_t refused;           /* number of the append that had an entry of it refused last */
    struct follower *followers; /* waiting for visible to grow */
};

/* A stream's ID as the key of a map. */
struct stream_key {
    uint64_t high;
    uint64_t low;
};

static inline struct stream_key stream_key(pawl_stream id)
{
    return (struct stream_key){
        .high = (uint64_t)id.kind << 32 | (uint64_t)id.partition << 16 | id.lane,
        .low = id.generation,
    };
}

static inline uint64_t stream_key_hash(struct stream_key key)
{
    return hash_mix(key.high * 31 + key.low);
}

#define STREAMS_MAX ((size_t)1 << 20)

struct streams {
    const pawl_allocator *alloc;
    struct stream **items; /* in the order in which they appeared */
    size_t count;
    size_t room;
    struct map by_id;
};

void streams_init(struct streams *s, const pawl_allocator *alloc);
void streams_release(struct streams *s);

/* NULL if it is not there. */
struct stream *streams_find(const struct streams *s, pawl_stream id);

/* The offset that its next entry must have; 1 if it is not there. */
static inline uint64_t streams_next(const struct streams *s, pawl_stream id)
{
    const struct stream *stream = streams_find(s, id);
    return stream ? stream->next : 1;
}

/* The one that is there, or a new one with next 1; NULL without memory. */
struct stream *streams_add(struct streams *s, pawl_stream id);

/* Take a record in: claims set the epoch, entries move next. Sets *ret_why and returns PAWL_ECORRUPT if the
 * record cannot follow what is known of its stream. */
int streams_apply(struct streams *s, const struct record *r, const char **ret_why);

#endif
