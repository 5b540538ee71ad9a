#include "adapter/journal/cursor.h"

#include <inttypes.h>

#include "adapter/journal/impl.h"
#include "base/error.h"

int journal_cursor_init(struct cursor *c, struct journal *j, pawl_stream stream, uint64_t from)
{
    *c = (struct cursor){.journal = j, .stream = stream, .next = from, .file = -1};
    return scan_init(&c->scan, j->disk, -1, j->seed, j->alloc);
}

static void leave_segment(struct cursor *c)
{
    if (c->file >= 0)
        c->journal->disk->close(c->journal->disk->ctx, c->file);
    c->file = -1;
}

void journal_cursor_release(struct cursor *c)
{
    leave_segment(c);
    scan_release(&c->scan);
}

/* Take the segment with that number, and its end; false if there is none. With the lock. */
static bool look_up(struct cursor *c, uint32_t number)
{
    const struct journal *j = c->journal;
    if (number == 0 || number > j->segments.count)
        return false;
    bool last = number == j->segments.count;
    c->ref = j->segments.items[number - 1];
    c->segment_end = last ? UINT64_MAX : j->segments.items[number].first_lsn;
    c->scan.end = last ? j->durable_at : UINT64_MAX;
    return true;
}

int journal_cursor_refresh(struct cursor *c, pawl_error *error)
{
    struct journal *j = c->journal;
    if (j->read_only) {
        int status = journal_refresh(j, error);
        if (status != PAWL_OK)
            return status;
    }
    pthread_mutex_lock(&j->lock);
    const struct stream *s = streams_find(&j->streams, c->stream);
    c->limit = j->durable_lsn;
    c->last = s ? s->visible : 0;
    if (c->file >= 0)
        look_up(c, c->ref.number);
    pthread_mutex_unlock(&j->lock);
    /* A recovery has copied the records that were read here into the segment that it began: go on there. */
    if (c->file >= 0 && c->scan.lsn > c->segment_end)
        return journal_cursor_place(c, (pawl_place){0}, error);
    return PAWL_OK;
}

static int enter_segment(struct cursor *c, uint32_t number, struct segment_header *ret_header,
                         struct streams *streams, pawl_error *error)
{
    struct journal *j = c->journal;
    leave_segment(c);
    pthread_mutex_lock(&j->lock);
    bool found = look_up(c, number);
    pthread_mutex_unlock(&j->lock);
    if (!found)
        return error_set(error, PAWL_ENOTFOUND, "there is no segment %08" PRIx32, number);
    int status =
        segment_open(j->disk, j->home.dir, c->ref, &j->home.id, j->alloc, ret_header, streams, &c->file, error);
    if (status == PAWL_OK)
        scan_seek(&c->scan, c->file, ret_header->size, c->ref.first_lsn, ret_header->chain, true);
    return status;
}

/* The offset that a stream is at where a segment begins. */
static int offset_at(struct cursor *c, uint32_t number, uint64_t *ret_next, pawl_error *error)
{
    struct streams streams;
    struct segment_header header;
    streams_init(&streams, c->journal->alloc);
    int status = enter_segment(c, number, &header, &streams, error);
    if (status == PAWL_OK)
        *ret_next = streams_next(&streams, c->stream);
    streams_release(&streams);
    return status;
}

/* Make a sealed segment's index from the segment, and keep it for the next reader if we may write. */
static void make_index(struct cursor *c, struct index *index)
{
    struct journal *j = c->journal;
    struct record r;
    int status;
    uint64_t at = c->scan.at;
    while (c->scan.lsn < c->segment_end && scan_next(&c->scan, &r, &status) == SCAN_RECORD) {
        if (r.type == RECORD_ENTRY && index_wants(index, r.stream, at))
            index_add(index, r.stream, r.offset, r.lsn, at);
        at = c->scan.at;
    }
    if (!j->read_only && c->scan.lsn == c->segment_end)
        (void)index_save(index, c->segment_end, j->disk, j->home.dir, j->home.id, c->ref.number);
}

/* The cursor is in the segment that holds .next: go near that entry. */
static void approach(struct cursor *c)
{
    struct journal *j = c->journal;
    struct index loaded;
    struct index_entry near = {0};
    struct scan start = c->scan;
    index_init(&loaded, j->alloc);
    bool found = false;
    if (c->segment_end == UINT64_MAX && !j->read_only) {
        pthread_mutex_lock(&j->lock);
        found = j->segments.count == c->ref.number && index_find(&j->index, c->stream, c->next, &near);
        pthread_mutex_unlock(&j->lock);
    } else if (c->segment_end != UINT64_MAX) {
        if (index_load(&loaded, j->disk, j->home.dir, j->home.id, c->ref.number) != PAWL_OK
            || loaded.end < c->segment_end) {
            index_clear(&loaded);
            make_index(c, &loaded);
        }
        found = index_find(&loaded, c->stream, c->next, &near);
    }
    index_release(&loaded);
    if (found)
        scan_seek(&c->scan, c->file, near.at, near.lsn, 0, false);
    else
        scan_seek(&c->scan, c->file, start.at, start.lsn, start.chain, true);
}

/* A place is believed only if the very entry stands there, in a part of the segment that is alive. */
static bool try_place(struct cursor *c, pawl_place place)
{
    struct segment_header header;
    struct record r;
    int status;
    uint32_t number = (uint32_t)(place.hint >> 32);
    uint64_t at = place.hint & UINT32_MAX;
    if (place.position == 0 || place.position > c->limit
        || enter_segment(c, number, &header, NULL, NULL) != PAWL_OK || at < header.size
        || at % RECORD_ALIGN != 0 || place.position < c->ref.first_lsn || place.position >= c->segment_end)
        return false;
    scan_seek(&c->scan, c->file, at, place.position, 0, false);
    if (scan_next(&c->scan, &r, &status) != SCAN_RECORD || r.type != RECORD_ENTRY || r.offset != c->next
        || !pawl_stream_equal(r.stream, c->stream))
        return false;
    scan_seek(&c->scan, c->file, at, place.position, 0, false);
    return true;
}

int journal_cursor_place(struct cursor *c, pawl_place place, pawl_error *error)
{
    struct journal *j = c->journal;
    pthread_mutex_lock(&j->lock);
    const struct stream *s = streams_find(&j->streams, c->stream);
    bool visible = s && s->visible >= c->next;
    size_t high = j->segments.count;
    pthread_mutex_unlock(&j->lock);
    if (!visible)
        return PAWL_ENOTFOUND;
    if (try_place(c, place))
        return PAWL_OK;
    /* The last segment at whose beginning the stream had not passed .next yet. */
    uint32_t low = 1;
    while (low < high) {
        uint32_t middle = (uint32_t)(low + (high - low + 1) / 2);
        uint64_t next;
        int status = offset_at(c, middle, &next, error);
        if (status != PAWL_OK)
            return status;
        if (next <= c->next)
            low = middle;
        else
            high = middle - 1;
    }
    struct segment_header header;
    int status = enter_segment(c, low, &header, NULL, error);
    if (status == PAWL_OK)
        approach(c);
    return status;
}

struct cursor_position journal_cursor_position(const struct cursor *c)
{
    return (struct cursor_position){.number = c->ref.number,
                                    .at = c->scan.at,
                                    .lsn = c->scan.lsn,
                                    .chain = c->scan.chain,
                                    .chained = c->scan.chained};
}

int journal_cursor_return(struct cursor *c, const struct cursor_position *position, pawl_error *error)
{
    struct segment_header header;
    int status = enter_segment(c, position->number, &header, NULL, error);
    if (status == PAWL_OK)
        scan_seek(&c->scan, c->file, position->at, position->lsn, position->chain, position->chained);
    return status;
}

int journal_cursor_damaged(const struct cursor *c, const char *why, pawl_error *error)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(c->ref.number, c->ref.first_lsn, name);
    return error_set(error, PAWL_ECORRUPT,
                     "segment %s, byte %" PRIu64 ": record %" PRIu64 " was durable, but %s", name, c->scan.at,
                     c->scan.lsn, why);
}

int journal_cursor_cross(struct cursor *c, bool (*wants)(const void *ctx, const struct streams *behind),
                         const void *ctx, bool *ret_skipped, pawl_error *error)
{
    struct journal *j = c->journal;
    struct segment_header header;
    struct streams behind;
    uint32_t number = c->ref.number + 1;
    uint64_t chain = c->scan.chain;
    bool chained = c->scan.chained, skipped = false;
    pthread_mutex_lock(&j->lock);
    bool last = number >= j->segments.count;
    pthread_mutex_unlock(&j->lock);
    if (!last) {
        /* If a later header cannot be read, the segments before it are still read. */
        streams_init(&behind, j->alloc);
        skipped = enter_segment(c, number + 1, &header, &behind, NULL) == PAWL_OK && !wants(ctx, &behind);
        streams_release(&behind);
    }
    *ret_skipped = skipped;
    if (skipped)
        return PAWL_OK;
    int status = enter_segment(c, number, &header, NULL, error);
    if (status == PAWL_OK && chained && header.chain != chain)
        return journal_cursor_damaged(c, "its segment does not continue the one before it", error);
    return status;
}

static bool wants_stream(const void *ctx, const struct streams *behind)
{
    const struct cursor *c = ctx;
    return streams_next(behind, c->stream) > c->next;
}

/* Into the segment behind this one; or, if that holds nothing of the stream, to the one that does: a stream
 * that is seldom written lies far apart, with all the others in between. */
static int next_segment(struct cursor *c, pawl_error *error)
{
    bool skipped;
    int status = journal_cursor_cross(c, wants_stream, c, &skipped, error);
    return status == PAWL_OK && skipped ? journal_cursor_place(c, (pawl_place){0}, error) : status;
}

int journal_cursor_step(struct cursor *c, struct record *ret_record, pawl_place *ret_place, pawl_error *error)
{
    int status;
    uint64_t at = c->scan.at;
    enum scan_result result = scan_next(&c->scan, ret_record, &status);
    if (result == SCAN_ERROR)
        return error_set(error, status, "cannot read segment %08" PRIx32 " at byte %" PRIu64, c->ref.number,
                         at);
    if (result != SCAN_RECORD)
        return journal_cursor_damaged(c, result == SCAN_BAD ? c->scan.why : "nothing is written there", error);
    *ret_place = (pawl_place){.position = ret_record->lsn, .hint = (uint64_t)c->ref.number << 32 | at};
    return PAWL_OK;
}

int journal_cursor_next(struct cursor *c, bool still, pawl_entry *ret_entry, pawl_place *ret_place,
                        pawl_error *error)
{
    while (c->scan.lsn <= c->limit && c->next <= c->last) {
        if (still && (c->scan.lsn == c->segment_end || !scan_ready(&c->scan)))
            return PAWL_EBUSY;
        if (c->scan.lsn == c->segment_end) {
            int status = next_segment(c, error);
            if (status != PAWL_OK)
                return status;
            continue; /* it may be empty: opened, and never written */
        }
        struct record r;
        pawl_place place;
        int status = journal_cursor_step(c, &r, &place, error);
        if (status != PAWL_OK)
            return status;
        if (r.type != RECORD_ENTRY || r.offset < c->next || !pawl_stream_equal(r.stream, c->stream))
            continue;
        if (r.offset != c->next)
            return journal_cursor_damaged(c, "an entry before it is missing", error);
        c->next++;
        record_entry(&r, &c->stream, ret_entry);
        *ret_place = place;
        return PAWL_OK;
    }
    return PAWL_ENOTFOUND;
}
