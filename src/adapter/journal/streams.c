#include "adapter/journal/streams.h"

#include "base/alloc.h"

void streams_init(struct streams *s, const pawl_allocator *alloc)
{
    *s = (struct streams){.alloc = alloc};
    map_init(&s->by_id, alloc, sizeof(struct stream_key), sizeof(struct stream *), STREAMS_MAX);
}

void streams_release(struct streams *s)
{
    for (size_t i = 0; i < s->count; i++)
        mem_free(s->alloc, s->items[i], sizeof *s->items[i]);
    mem_free(s->alloc, s->items, s->room * sizeof *s->items);
    map_release(&s->by_id);
    s->items = NULL;
    s->count = s->room = 0;
}

struct stream *streams_find(const struct streams *s, pawl_stream id)
{
    struct stream_key key = stream_key(id);
    struct stream *const *found = map_get(&s->by_id, stream_key_hash(key), &key);
    return found ? *found : NULL;
}

struct stream *streams_add(struct streams *s, pawl_stream id)
{
    struct stream *stream = streams_find(s, id);
    if (stream)
        return stream;
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 16;
        struct stream **items = mem_resize(s->alloc, s->items, s->room * sizeof *items, room * sizeof *items);
        if (!items)
            return NULL;
        s->items = items;
        s->room = room;
    }
    stream = mem_new(s->alloc, 1, sizeof *stream);
    if (!stream)
        return NULL;
    struct stream_key key = stream_key(id);
    void *slot;
    bool fresh;
    if (map_put(&s->by_id, stream_key_hash(key), &key, &slot, &fresh) != PAWL_OK) {
        mem_free(s->alloc, stream, sizeof *stream);
        return NULL;
    }
    *(struct stream **)slot = stream;
    stream->id = id;
    stream->next = 1;
    s->items[s->count++] = stream;
    return stream;
}

int streams_apply(struct streams *s, const struct record *r, const char **ret_why)
{
    if (r->type == RECORD_WATERMARK)
        return PAWL_OK;
    struct stream *stream = streams_find(s, r->stream);
    if (r->type == RECORD_ENTRY) {
        *ret_why = "an entry of a stream that nobody claimed";
        if (!stream)
            return PAWL_ECORRUPT;
        *ret_why = "its offset is not the stream's next";
        if (stream->next != r->offset)
            return PAWL_ECORRUPT;
        stream->next++;
        return PAWL_OK;
    }
    uint64_t epoch, group0;
    *ret_why = "a claim that cannot be read";
    if (!claim_body_decode(r->body, &epoch, &group0))
        return PAWL_ECORRUPT;
    *ret_why = "a claim that does not follow the one before it";
    if (epoch != (stream ? stream->epoch : 0) + 1 || r->offset != (stream ? stream->next : 1))
        return PAWL_ECORRUPT;
    if (!stream)
        stream = streams_add(s, r->stream);
    if (!stream)
        return PAWL_ENOMEM;
    stream->epoch = epoch;
    return PAWL_OK;
}
