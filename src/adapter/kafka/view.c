/* adapter/kafka/view.c: a stream as this log knows it: where it lies, and marks on the way through it.
 *
 * A judge cannot begin in the middle of a stream. So whoever reads leaves a mark now and then, and the next
 * reader begins at the last one before what it wants. There are never more than MARKS_MAX: when there would be,
 * every other one goes, and they are left half as often. */
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

static int view_new(struct kafka_log *log, pawl_stream stream, struct view **ret_view)
{
    if (log->view_count == VIEWS_MAX)
        return PAWL_EBUSY;
    if (log->view_count == log->view_room) {
        size_t room = log->view_room ? log->view_room * 2 : 16;
        void *views =
            mem_resize(log->alloc, log->views, log->view_room * sizeof *log->views, room * sizeof *log->views);
        if (!views)
            return PAWL_ENOMEM;
        log->views = views;
        log->view_room = room;
    }
    struct view *v = mem_new(log->alloc, 1, sizeof *v);
    if (!v)
        return PAWL_ENOMEM;
    v->log = log;
    v->stream = stream;
    v->number = (uint32_t)log->view_count;
    v->mark_spacing = MARK_SPACING;
    kafka_topic_of(log->url.cluster, stream, v->topic);
    v->seed = kafka_record_seed(v->topic, stream.partition);
    judge_init(&v->latest.judge, 0);
    op_list_init(&v->claims);
    if (owner_init(&v->owner, log->alloc, 1, &v->latest.judge) != PAWL_OK) {
        mem_free(log->alloc, v, sizeof *v);
        return PAWL_ENOMEM;
    }
    log->views[log->view_count++] = v;
    *ret_view = v;
    return PAWL_OK;
}

int view_find(struct kafka_log *log, pawl_stream stream, struct view **ret_view)
{
    struct key key = key_of(stream);
    uint64_t hash = hash_mix(key.low ^ hash_mix(key.high));
    struct view **found = map_get(&log->by_stream, hash, &key), *v;
    if (found) {
        *ret_view = *found;
        return PAWL_OK;
    }
    void *slot;
    bool is_new;
    int status = map_reserve(&log->by_stream, log->by_stream.count + 1);
    if (status == PAWL_OK)
        status = view_new(log, stream, &v);
    if (status == PAWL_OK)
        status = map_put(&log->by_stream, hash, &key, &slot, &is_new);
    if (status != PAWL_OK)
        return status;
    memcpy(slot, &v, sizeof v);
    *ret_view = v;
    return PAWL_OK;
}

void view_release(struct view *v)
{
    const pawl_allocator *alloc = v->log->alloc;
    assert(!v->cursor.fetcher && !v->producing && v->flight_count == 0);
    owner_release(&v->owner);
    mem_free(alloc, v->flights, v->flight_room * sizeof *v->flights);
    mem_free(alloc, v->marks, v->mark_room * sizeof *v->marks);
    mem_free(alloc, v, sizeof *v);
}

static void thin_out(struct view *v)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->mark_count; i += 2)
        v->marks[kept++] = v->marks[i];
    v->mark_count = kept;
    v->mark_spacing *= 2;
}

/* A mark that cannot be kept for want of memory only makes a later reader begin earlier. */
void view_mark(struct view *v, const struct mark *mark)
{
    if (mark->judge.fragments > 0) /* K3 */
        return;
    if (mark->judge.at > v->latest.judge.at)
        v->latest = *mark;
    uint64_t last = v->mark_count ? v->marks[v->mark_count - 1].judge.next : 1;
    if (mark->judge.next < last + v->mark_spacing)
        return;
    if (v->mark_count == MARKS_MAX)
        thin_out(v);
    if (v->mark_count == v->mark_room) {
        size_t room = v->mark_room ? v->mark_room * 2 : 16;
        void *marks =
            mem_resize(v->log->alloc, v->marks, v->mark_room * sizeof *v->marks, room * sizeof *v->marks);
        if (!marks)
            return;
        v->marks = marks;
        v->mark_room = room;
    }
    v->marks[v->mark_count++] = *mark;
}

const struct mark *view_mark_before(const struct view *v, uint64_t offset)
{
    static const struct mark beginning = {.judge.next = 1};
    if (v->latest.judge.next <= offset)
        return &v->latest;
    size_t low = 0, high = v->mark_count; /* marks below low are not behind offset, from high on they are */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->marks[middle].judge.next <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &v->marks[low - 1] : &beginning;
}
