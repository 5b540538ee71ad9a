/* adapter/kafka/stream.c: a stream as this log knows it: its topic, and points to resume reading at.
 *
 * A judge cannot begin in the middle of a stream. So every reader keeps its judge now and then as a resume
 * point, and the next reader begins at the last resume point before the offset that it wants. There are at most
 * RESUME_POINTS_MAX: when one more comes, every other one is dropped, and from then on they are kept half as
 * often. */
#include <assert.h>
#include <string.h>

#include "adapter/kafka/impl.h"
#include "base/alloc.h"

struct key {
    uint64_t low;
    uint64_t high;
};

static struct key key_of(pawl_stream s)
{
    return (struct key){.low = (uint64_t)s.kind << 32 | (uint64_t)s.partition << 16 | s.lane,
                        .high = s.generation};
}

static int stream_new(struct kafka_log *log, pawl_stream id, struct stream **ret_stream)
{
    if (log->stream_count == STREAMS_MAX)
        return PAWL_EBUSY;
    if (log->stream_count == log->stream_room) {
        size_t room = log->stream_room ? log->stream_room * 2 : 16;
        void *streams = mem_resize(log->alloc, log->streams, log->stream_room * sizeof *log->streams,
                                   room * sizeof *log->streams);
        if (!streams)
            return PAWL_ENOMEM;
        log->streams = streams;
        log->stream_room = room;
    }
    struct stream *s = mem_new(log->alloc, 1, sizeof *s);
    if (!s)
        return PAWL_ENOMEM;
    s->log = log;
    s->id = id;
    s->number = (uint32_t)log->stream_count;
    s->resume_spacing = RESUME_SPACING;
    kafka_topic_of(log->url.cluster, id, s->topic);
    s->seed = kafka_record_seed(s->topic, id.partition);
    judge_init(&s->latest.judge, 0);
    op_list_init(&s->claims);
    if (owner_init(&s->owner, log->alloc, 1, &s->latest.judge) != PAWL_OK) {
        mem_free(log->alloc, s, sizeof *s);
        return PAWL_ENOMEM;
    }
    log->streams[log->stream_count++] = s;
    *ret_stream = s;
    return PAWL_OK;
}

int stream_find(struct kafka_log *log, pawl_stream id, struct stream **ret_stream)
{
    struct key key = key_of(id);
    uint64_t hash = hash_mix(key.low ^ hash_mix(key.high));
    struct stream **found = map_get(&log->by_stream, hash, &key), *s;
    if (found) {
        *ret_stream = *found;
        return PAWL_OK;
    }
    void *slot;
    bool is_new;
    int status = map_reserve(&log->by_stream, log->by_stream.count + 1);
    if (status == PAWL_OK)
        status = stream_new(log, id, &s);
    if (status == PAWL_OK)
        status = map_put(&log->by_stream, hash, &key, &slot, &is_new);
    if (status != PAWL_OK)
        return status;
    memcpy(slot, &s, sizeof s);
    *ret_stream = s;
    return PAWL_OK;
}

void stream_release(struct stream *s)
{
    const pawl_allocator *alloc = s->log->alloc;
    assert(!s->cursor.fetcher && !s->producing && s->flight_count == 0);
    owner_release(&s->owner);
    mem_free(alloc, s->flights, s->flight_room * sizeof *s->flights);
    mem_free(alloc, s->resume_points, s->resume_room * sizeof *s->resume_points);
    mem_free(alloc, s, sizeof *s);
}

static void thin_out(struct stream *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->resume_count; i += 2)
        s->resume_points[kept++] = s->resume_points[i];
    s->resume_count = kept;
    s->resume_spacing *= 2;
}

/* The epoch that was the latest is over, or was when somebody looked again. Claims that nothing was written under are
 * not worth a place. */
static void note_end(struct stream *s)
{
    struct find_fact fact = {s->latest.judge.epoch, s->latest.judge.next - 1};
    if (fact.epoch == 0 || fact.upto == 0 || s->ended[ENDED_MAX - 1].upto == fact.upto)
        return;
    memmove(s->ended, s->ended + 1, sizeof s->ended - sizeof s->ended[0]);
    s->ended[ENDED_MAX - 1] = fact;
}

/* If there is no memory for a resume point, a later reader only begins earlier. */
void stream_keep_resume_point(struct stream *s, const struct judged *judged)
{
    if (judged->judge.fragments > 0) /* K3 */
        return;
    if (judged->judge.at > s->latest.judge.at) {
        if (judged->judge.epoch > s->latest.judge.epoch)
            note_end(s);
        s->latest = *judged;
    }
    uint64_t last = s->resume_count ? s->resume_points[s->resume_count - 1].judge.next : 1;
    if (judged->judge.next < last + s->resume_spacing)
        return;
    if (s->resume_count == RESUME_POINTS_MAX)
        thin_out(s);
    if (s->resume_count == s->resume_room) {
        size_t room = s->resume_room ? s->resume_room * 2 : 16;
        void *resume_points =
            mem_resize(s->log->alloc, s->resume_points, s->resume_room * sizeof *s->resume_points,
                       room * sizeof *s->resume_points);
        if (!resume_points)
            return;
        s->resume_points = resume_points;
        s->resume_room = room;
    }
    s->resume_points[s->resume_count++] = *judged;
}

/* How many resume points are not behind this offset. */
static size_t count_before(const struct stream *s, uint64_t offset)
{
    size_t low = 0, high = s->resume_count; /* points below low are not behind offset, from high on they are */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->resume_points[middle].judge.next <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct judged *stream_resume_before(const struct stream *s, uint64_t offset)
{
    static const struct judged beginning = {.judge.next = 1};
    if (s->latest.judge.next <= offset)
        return &s->latest;
    size_t before = count_before(s, offset);
    return before > 0 ? &s->resume_points[before - 1] : &beginning;
}

const struct judged *stream_resume_after(const struct stream *s, uint64_t offset)
{
    size_t before = count_before(s, offset);
    return before < s->resume_count ? &s->resume_points[before] : NULL;
}
