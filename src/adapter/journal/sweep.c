/* adapter/journal/sweep.c: many streams in one pass through the journal.
 *
 *     AHEAD ── the pass comes to its start ──► PASSING ── its last visible entry was visited ──► OVER
 *       ▲                                        │
 *       └── the next segment holds nothing that any of those passing lacks: placed again
 *
 * Each stream that has something to show is placed, as a read of it would be: its start is then where its next
 * entry lies, or some way before it. The pass begins at the first start, and a stream joins it at its own
 * start. While no stream is passing, it goes straight to the next start.
 *
 * Invariants
 *   W1  An entry is visited only if its offset is the stream's next. So it does no harm to pass it a second
 *       time.
 *   W2  The next entry of a stream that is ahead does not lie before its start.
 *   W3  Of a stream that is passing, nothing between its start and where the pass is was left out. So an entry
 *       with a later offset than its next shows that one is missing. */
#include "adapter/journal/cursor.h"
#include "adapter/journal/impl.h"
#include "base/alloc.h"
#include "base/error.h"

enum swept_state { OVER, AHEAD, PASSING };

struct swept {
    enum swept_state state;
    uint64_t last; /* its last visible entry */
    struct cursor_position start;
};

struct sweeping {
    pawl_sweep *sweep;
    struct cursor cursor; /* its stream is the one that was placed last */
    struct swept *swept;  /* as the sweep's streams */
    struct map indexes;   /* struct stream_key -> size_t */
    size_t passing;
    uint64_t arrival; /* the LSN of the first start that is ahead, or UINT64_MAX */
    uint64_t left;
    bool stopped;
};

static int sweeping_init(struct sweeping *s, struct journal *j, pawl_sweep *sweep)
{
    *s = (struct sweeping){.sweep = sweep, .left = sweep->limit, .arrival = UINT64_MAX};
    map_init(&s->indexes, j->alloc, sizeof(struct stream_key), sizeof(size_t), STREAMS_MAX);
    int status = journal_cursor_init(&s->cursor, j, (pawl_stream){0}, 1);
    if (status != PAWL_OK)
        return error_set(sweep->error, status, "no memory to sweep");
    s->swept = mem_new(j->alloc, sweep->count, sizeof *s->swept);
    status = s->swept ? PAWL_OK : PAWL_ENOMEM;
    for (size_t i = 0; status == PAWL_OK && i < sweep->count; i++) {
        struct stream_key key = stream_key(sweep->streams[i].stream);
        void *index;
        bool fresh;
        status = map_put(&s->indexes, stream_key_hash(key), &key, &index, &fresh);
        if (status == PAWL_OK && !fresh)
            return error_set(sweep->error, PAWL_EINVAL, "a sweep has a stream twice");
        if (status == PAWL_OK)
            *(size_t *)index = i;
    }
    return status == PAWL_OK ? status : error_set(sweep->error, status, "no memory to sweep");
}

static void sweeping_release(struct sweeping *s)
{
    const pawl_allocator *alloc = s->cursor.journal->alloc;
    if (s->cursor.scan.window)
        journal_cursor_release(&s->cursor);
    mem_free(alloc, s->swept, s->swept ? s->sweep->count * sizeof *s->swept : 0);
    map_release(&s->indexes);
}

/* Up to where records are visible, at one moment for all streams. */
static int look(struct sweeping *s)
{
    struct journal *j = s->cursor.journal;
    int status = j->read_only ? journal_refresh(j, s->sweep->error) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    pthread_mutex_lock(&j->lock);
    s->cursor.limit = j->durable_lsn;
    for (size_t i = 0; i < s->sweep->count; i++) {
        const struct stream *stream = streams_find(&j->streams, s->sweep->streams[i].stream);
        s->swept[i].last = stream ? stream->visible : 0;
    }
    pthread_mutex_unlock(&j->lock);
    return PAWL_OK;
}

static int place(struct sweeping *s, size_t i, pawl_place at)
{
    s->cursor.stream = s->sweep->streams[i].stream;
    s->cursor.next = s->sweep->streams[i].next;
    int status = journal_cursor_place(&s->cursor, at, s->sweep->error);
    if (status != PAWL_OK)
        return status;
    s->swept[i].start = journal_cursor_position(&s->cursor);
    s->swept[i].state = AHEAD;
    return PAWL_OK;
}

static int place_all(struct sweeping *s)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < s->sweep->count; i++) {
        pawl_sweep_stream *stream = &s->sweep->streams[i];
        stream->ended = stream->from > s->swept[i].last;
        if (!stream->ended)
            status = place(s, i, stream->at);
    }
    return status;
}

/* Streams whose start lies before the next record are passing from now on. */
static void arrive(struct sweeping *s)
{
    s->arrival = UINT64_MAX;
    for (size_t i = 0; i < s->sweep->count; i++) {
        struct swept *swept = &s->swept[i];
        if (swept->state == AHEAD && swept->start.lsn < s->cursor.scan.lsn) {
            swept->state = PASSING;
            s->passing++;
        }
        if (swept->state == AHEAD && swept->start.lsn < s->arrival)
            s->arrival = swept->start.lsn;
    }
}

static bool is_near(const struct cursor *c, const struct cursor_position *start)
{
    return c->file >= 0 && start->number == c->ref.number && start->at >= c->scan.at
           && start->at - c->scan.at <= SCAN_WINDOW;
}

/* No stream is passing: go to the first start; its stream passes from there on. *ret_over: all streams are
 * over. */
static int go_to_first(struct sweeping *s, bool *ret_over)
{
    struct swept *first = NULL;
    for (size_t i = 0; i < s->sweep->count; i++)
        if (s->swept[i].state == AHEAD && (!first || s->swept[i].start.lsn < first->start.lsn))
            first = &s->swept[i];
    *ret_over = !first;
    int status = PAWL_OK;
    if (first && !is_near(&s->cursor, &first->start))
        status = journal_cursor_return(&s->cursor, &first->start, s->sweep->error);
    if (!first || status != PAWL_OK)
        return status;
    first->state = PASSING;
    s->passing = 1;
    arrive(s);
    return PAWL_OK;
}

static bool wants_any(const void *ctx, const struct streams *behind)
{
    const struct sweeping *s = ctx;
    for (size_t i = 0; i < s->sweep->count; i++) {
        const pawl_sweep_stream *stream = &s->sweep->streams[i];
        if (s->swept[i].state == PASSING && streams_next(behind, stream->stream) > stream->next)
            return true;
    }
    return false;
}

static int cross(struct sweeping *s)
{
    bool skipped;
    int status = journal_cursor_cross(&s->cursor, wants_any, s, &skipped, s->sweep->error);
    if (status != PAWL_OK || !skipped)
        return status;
    for (size_t i = 0; status == PAWL_OK && i < s->sweep->count; i++)
        if (s->swept[i].state == PASSING)
            status = place(s, i, (pawl_place){0});
    s->passing = 0;
    return status;
}

static int take(struct sweeping *s, const struct record *r, pawl_place at)
{
    struct stream_key key = stream_key(r->stream);
    const size_t *index = r->type == RECORD_ENTRY ? map_get(&s->indexes, stream_key_hash(key), &key) : NULL;
    if (!index)
        return PAWL_OK;
    struct swept *swept = &s->swept[*index];
    pawl_sweep_stream *stream = &s->sweep->streams[*index];
    if (swept->state != PASSING || r->offset < stream->next) /* W1 */
        return PAWL_OK;
    if (r->offset != stream->next) /* W3 */
        return journal_cursor_damaged(&s->cursor, "an entry before it is missing", s->sweep->error);
    pawl_entry entry;
    record_entry(r, &stream->stream, &entry);
    stream->next++;
    s->left--;
    s->stopped = !s->sweep->visit(s->sweep, *index, &entry, at);
    if (stream->next > swept->last) {
        swept->state = OVER;
        stream->ended = true;
        s->passing--;
    }
    return PAWL_OK;
}

static int pass(struct sweeping *s)
{
    struct cursor *c = &s->cursor;
    int status = PAWL_OK;
    bool over = false;
    while (status == PAWL_OK && s->left > 0 && !s->stopped) {
        struct record r;
        pawl_place at;
        if (s->passing == 0)
            status = go_to_first(s, &over);
        if (status != PAWL_OK || over || c->scan.lsn > c->limit)
            break;
        if (c->scan.lsn == c->segment_end) {
            status = cross(s);
            continue;
        }
        status = journal_cursor_step(c, &r, &at, s->sweep->error);
        if (status == PAWL_OK && r.lsn >= s->arrival)
            arrive(s);
        if (status == PAWL_OK)
            status = take(s, &r, at);
    }
    return status;
}

int journal_sweep(pawl_log *log, pawl_sweep *sweep)
{
    struct sweeping s;
    if (sweep->count == 0)
        return PAWL_OK;
    int status = sweeping_init(&s, (struct journal *)log, sweep);
    if (status == PAWL_OK)
        status = look(&s);
    if (status == PAWL_OK)
        status = place_all(&s);
    if (status == PAWL_OK)
        status = pass(&s);
    sweeping_release(&s);
    return status;
}
