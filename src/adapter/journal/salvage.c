#include "adapter/journal/salvage.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapter/journal/home.h"
#include "adapter/journal/index.h"
#include "adapter/journal/salvage_to.h"
#include "adapter/journal/tail.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"

/* A segment's file, under its own name, in the place that its header claims for it, if that can be read. */
struct piece {
    struct segment_ref name;
    struct segment_ref ref;
    bool readable;
};

struct salvaging {
    const struct journal_salvage_options *options;
    const struct disk *disk;
    const pawl_allocator *alloc;
    int dir;
    struct id128 id;
    uint64_t seed;
    struct segment_list list; /* by name */
    struct piece *pieces;     /* as many as the list has, in the journal's order */
    pawl_doctor_report report;
    struct map by_stream; /* stream -> its place in the report, plus one */
    struct rescue *rescue;
    uint64_t last_lsn; /* of the records taken so far */
    uint64_t bytes_done;
    uint64_t bytes_total;
    pawl_error *error;
};

static void note(struct salvaging *s, const pawl_error *error)
{
    if (s->report.first.code == PAWL_OK)
        s->report.first = *error;
}

static int find_stream(struct salvaging *s, pawl_stream id, pawl_doctor_stream **ret_stream)
{
    pawl_doctor_report *r = &s->report;
    struct stream_key key = stream_key(id);
    void *place;
    bool fresh;
    if (map_put(&s->by_stream, stream_key_hash(key), &key, &place, &fresh) != PAWL_OK)
        return PAWL_ENOMEM;
    if (fresh) {
        if (r->stream_count == r->stream_room) {
            size_t room = r->stream_room ? r->stream_room * 2 : 16;
            pawl_doctor_stream *streams =
                mem_resize(s->alloc, r->streams, r->stream_room * sizeof *streams, room * sizeof *streams);
            if (!streams)
                return PAWL_ENOMEM;
            r->streams = streams;
            r->stream_room = room;
        }
        r->streams[r->stream_count] = (pawl_doctor_stream){.id = id, .next = 1};
        *(uint64_t *)place = ++r->stream_count;
    }
    *ret_stream = &r->streams[*(uint64_t *)place - 1];
    return PAWL_OK;
}

static int speak_of(struct salvaging *s, pawl_stream id, uint64_t next)
{
    pawl_doctor_stream *stream;
    int status = find_stream(s, id, &stream);
    if (status == PAWL_OK && next > stream->next)
        stream->next = next;
    return status;
}

/* Entries come in the order of the log, so an offset is new only if it is above all there were. */
static int add_offset(struct salvaging *s, pawl_doctor_stream *stream, uint64_t offset)
{
    stream->entries++;
    if (stream->dense + 1 == offset)
        stream->dense = offset;
    if (stream->count && stream->intact[stream->count - 1].last + 1 == offset) {
        stream->intact[stream->count - 1].last = offset;
        return PAWL_OK;
    }
    if (stream->count == stream->room) {
        size_t room = stream->room ? stream->room * 2 : 4;
        pawl_offset_range *ranges =
            mem_resize(s->alloc, stream->intact, stream->room * sizeof *ranges, room * sizeof *ranges);
        if (!ranges)
            return PAWL_ENOMEM;
        stream->intact = ranges;
        stream->room = room;
    }
    assert(stream->intact);
    stream->intact[stream->count++] = (pawl_offset_range){offset, offset};
    return PAWL_OK;
}

static int take(struct salvaging *s, const struct record *r)
{
    pawl_doctor_stream *stream;
    s->last_lsn = r->lsn;
    if (r->type == RECORD_WATERMARK)
        return PAWL_OK;
    if (r->type == RECORD_CLAIM)
        return speak_of(s, r->stream, r->offset);
    int status = find_stream(s, r->stream, &stream);
    if (status != PAWL_OK)
        return status;
    uint64_t last = stream->count ? stream->intact[stream->count - 1].last : 0;
    if (r->offset <= last)
        return PAWL_OK;
    if (r->offset >= stream->next)
        stream->next = r->offset + 1;
    status = add_offset(s, stream, r->offset);
    const struct journal_salvage_options *o = s->options;
    if (status == PAWL_OK && s->rescue && (!o->keep || o->keep(o->keep_arg, r->stream, r->offset, r->body)))
        status = rescue_entry(s->rescue, r, s->error);
    return status;
}

/* Where to search behind a record that is damaged: behind its body, if its header can still be believed, so
 * that bytes which a user put into a body are not searched for records. */
static uint64_t behind_damage(struct salvaging *s, const struct scan *scan)
{
    uint8_t head[RECORD_HEADER];
    struct record r;
    size_t need;
    if (disk_read_all(s->disk, scan->file, head, sizeof head, scan->at) == (int64_t)sizeof head
        && record_decode((pawl_bytes){head, sizeof head}, s->seed, &r, &need) == RECORD_SHORT)
        return scan->at + need;
    return scan->at + RECORD_ALIGN;
}

/* Go to the next valid record whose LSN fits between the last one taken and end. */
static enum scan_result resynchronise(struct salvaging *s, struct scan *scan, uint64_t end, int *ret_status)
{
    uint64_t at = scan->at == 0 ? 0 : behind_damage(s, scan);
    for (;;) {
        struct record r;
        enum scan_result result = scan_search(scan, at, &r, ret_status);
        if (result != SCAN_RECORD)
            return result;
        if (r.lsn > s->last_lsn && r.lsn < end)
            return SCAN_RECORD;
        at = scan->at + record_size(r.body.size);
    }
}

static void note_damage(struct salvaging *s, const char *name, uint64_t at, uint64_t until, uint64_t lsn,
                        const char *why)
{
    pawl_error error = {0};
    s->report.places_damaged++;
    s->report.bytes_damaged += until - at;
    error_set(&error, PAWL_ECORRUPT, "segment %s, byte %" PRIu64 ": record %" PRIu64 " is lost: %s", name, at,
              lsn, why);
    note(s, &error);
}

struct limits {
    uint64_t end; /* the LSN that the next segment begins with, or UINT64_MAX */
    bool torn;    /* what is not a record is only what a writer did not finish */
    bool open;    /* nothing says how far the segment went */
};

/* at: of the segment at hand. */
static int tell(struct salvaging *s, uint64_t at)
{
    uint64_t done = s->bytes_done + at;
    if (!s->options->progress
        || s->options->progress(s->options->arg, done, s->bytes_total > done ? s->bytes_total : done))
        return PAWL_OK;
    return error_set(s->error, PAWL_ECANCELED, "the salvage of %s was cancelled", s->options->dir);
}

/* Every record of a segment that counts. */
static int walk(struct salvaging *s, struct scan *scan, const char *name, struct limits limits)
{
    for (;;) {
        struct record r;
        int status = PAWL_OK;
        enum scan_result result = scan_next(scan, &r, &status);
        if (result == SCAN_RECORD) {
            status = take(s, &r);
            if (status != PAWL_OK)
                return status;
            status = tell(s, scan->at);
            if (status != PAWL_OK)
                return status;
            continue;
        }
        uint64_t at = scan->at, lsn = scan->lsn, until = at;
        const char *why = result == SCAN_BAD ? scan->why : "nothing is written there";
        if (result != SCAN_ERROR && (lsn >= limits.end || limits.torn))
            return PAWL_OK;
        if (result != SCAN_ERROR) {
            bool ends = result == SCAN_END;
            result = resynchronise(s, scan, limits.end, &status);
            if (ends && result == SCAN_END && limits.open)
                return PAWL_OK;
            until = scan->at;
            if (result == SCAN_END)
                status = scan_tail_zero(scan, at, &until);
        }
        if (result == SCAN_ERROR || status != PAWL_OK)
            return error_set(s->error, status, "cannot read segment %s at byte %" PRIu64, name, scan->at);
        note_damage(s, name, at, until, lsn, why);
        if (result == SCAN_END)
            return PAWL_OK;
        /* The newest segment is damaged: report that. Its end is not known any more. */
        limits.open |= limits.end == UINT64_MAX;
    }
}

/* If the writer was killed, its last segment ends with records that were not finished: that is no damage.
 * newest: there never was a segment behind this one. */
static bool is_torn_only(struct salvaging *s, const struct piece *piece, bool newest)
{
    struct tail t;
    struct tail_end end;
    if (tail_open(&t, s->disk, s->dir, piece->name, &s->id, s->alloc, NULL) != PAWL_OK)
        return false;
    uint64_t indexed = index_witness(s->disk, s->dir, s->id, piece->ref.number, s->alloc);
    bool torn =
        tail_probe(&t, &end, NULL) == PAWL_OK && tail_judge(&t, &end, indexed, !newest, NULL) == PAWL_OK;
    tail_close(&t);
    return torn;
}

/* Go to the first record, and take in what the header says of the streams. *ret_found is false if there is no
 * record. */
static int enter(struct salvaging *s, const struct piece *piece, int file, struct scan *scan, uint64_t end,
                 bool *ret_found)
{
    struct segment_header header;
    struct streams streams;
    uint64_t fault = 0;
    pawl_error error = {0};
    char name[SEGMENT_NAME_MAX];
    segment_name(piece->name.number, piece->name.first_lsn, name);
    streams_init(&streams, s->alloc);
    *ret_found = true;
    int status = segment_read(s->disk, file, piece->name, &s->id, s->alloc, &header, &streams, &fault, &error);
    if (status != PAWL_OK) {
        s->report.headers_damaged++;
        error_wrap(&error, PAWL_ECORRUPT, "segment %s, byte %" PRIu64, name, fault);
        note(s, &error);
        status = PAWL_OK;
    }
    if (piece->readable) {
        status = segment_read(s->disk, file, piece->ref, &s->id, s->alloc, &header, &streams, &fault, s->error);
        for (size_t i = 0; i < streams.count && status == PAWL_OK; i++)
            status = speak_of(s, streams.items[i]->id, streams.items[i]->next);
        if (status == PAWL_OK)
            scan_seek(scan, file, header.size, header.first_lsn, header.chain, true);
        if (status == PAWL_OK && s->last_lsn >= header.first_lsn)
            s->last_lsn = header.first_lsn - 1; /* it begins with copies of what was taken */
    } else {
        scan_seek(scan, file, 0, 0, 0, false);
        *ret_found = resynchronise(s, scan, end, &status) == SCAN_RECORD;
    }
    streams_release(&streams);
    return status;
}

static int walk_piece(struct salvaging *s, size_t i)
{
    const struct piece *piece = &s->pieces[i];
    bool newest = i + 1 == s->list.count;
    bool followed = !newest && s->pieces[i + 1].ref.number == piece->ref.number + 1;
    struct limits limits = {.end = newest ? UINT64_MAX : s->pieces[i + 1].ref.first_lsn};
    char name[SEGMENT_NAME_MAX];
    segment_name(piece->name.number, piece->name.first_lsn, name);
    int file = s->disk->open(s->disk->ctx, s->dir, name, O_RDONLY);
    if (file < 0)
        return error_errno(s->error, -file, "cannot open segment %s", name);
    if (!followed) {
        limits.torn = piece->readable && is_torn_only(s, piece, newest);
        limits.open = !piece->readable || !newest;
    }
    struct scan scan;
    bool found = false;
    int status = scan_init(&scan, s->disk, file, s->seed, s->alloc);
    if (status == PAWL_OK) {
        status = enter(s, piece, file, &scan, limits.end, &found);
        if (status == PAWL_OK && found)
            status = walk(s, &scan, name, limits);
        scan_release(&scan);
    }
    int64_t size = s->disk->size(s->disk->ctx, file);
    s->bytes_done += size > 0 ? (uint64_t)size : 0;
    s->disk->close(s->disk->ctx, file);
    return status == PAWL_OK ? tell(s, 0) : status;
}

static int walk_all(struct salvaging *s)
{
    for (size_t i = 0; i < s->list.count; i++) {
        uint32_t expected = i ? s->pieces[i - 1].ref.number + 1 : 1;
        uint32_t number = s->pieces[i].ref.number;
        if (number > expected) {
            pawl_error error = {0};
            error_set(&error, PAWL_ECORRUPT, "segment %08" PRIx32 " is missing", expected);
            note(s, &error);
            s->report.segments_missing += number - expected;
        }
        int status = walk_piece(s, i);
        if (status != PAWL_OK)
            return status == PAWL_ENOMEM ? error_set(s->error, status, "no memory to salvage") : status;
    }
    s->report.segments = s->list.count;
    return PAWL_OK;
}

/* The ID that the first readable header has. */
static int identify(struct salvaging *s, pawl_error *why)
{
    for (size_t i = 0; i < s->list.count; i++) {
        struct segment_header header;
        int file;
        if (segment_open(s->disk, s->dir, s->list.items[i], NULL, s->alloc, &header, NULL, &file, NULL)
            != PAWL_OK)
            continue;
        s->disk->close(s->disk->ctx, file);
        s->id = header.journal;
        note(s, why);
        return PAWL_OK;
    }
    if (s->error)
        *s->error = *why;
    return error_wrap(s->error, PAWL_ECORRUPT, "no segment's header says which journal this was");
}

static int by_place(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->ref.number != y->ref.number)
        return x->ref.number < y->ref.number ? -1 : 1;
    return (x->ref.first_lsn > y->ref.first_lsn) - (x->ref.first_lsn < y->ref.first_lsn);
}

/* Put the files into the order that their headers claim: a name may be wrong. */
static int sort_pieces(struct salvaging *s)
{
    s->pieces = mem_new(s->alloc, s->list.count, sizeof *s->pieces);
    if (!s->pieces)
        return error_set(s->error, PAWL_ENOMEM, "no memory to salvage");
    for (size_t i = 0; i < s->list.count; i++) {
        struct piece *piece = &s->pieces[i];
        char name[SEGMENT_NAME_MAX];
        uint8_t head[SEGMENT_HEADER_FIXED];
        struct segment_header header;
        uint64_t fault;
        piece->name = piece->ref = s->list.items[i];
        segment_name(piece->name.number, piece->name.first_lsn, name);
        int file = s->disk->open(s->disk->ctx, s->dir, name, O_RDONLY);
        if (file < 0)
            continue;
        if (disk_read_all(s->disk, file, head, sizeof head, 0) == (int64_t)sizeof head) {
            struct segment_ref claimed = {.number = get_u32(head + 32), .first_lsn = get_u64(head + 40)};
            piece->readable =
                segment_read(s->disk, file, claimed, &s->id, s->alloc, &header, NULL, &fault, NULL) == PAWL_OK;
            if (piece->readable)
                piece->ref = claimed;
        }
        int64_t size = s->disk->size(s->disk->ctx, file);
        s->bytes_total += size > 0 ? (uint64_t)size : 0;
        s->disk->close(s->disk->ctx, file);
    }
    qsort(s->pieces, s->list.count, sizeof *s->pieces, by_place);
    return PAWL_OK;
}

static int look_into(struct salvaging *s)
{
    char inner[4096];
    if (snprintf(inner, sizeof inner, "%s/journal", s->options->dir) >= (int)sizeof inner)
        return error_set(s->error, PAWL_EINVAL, "the path is too long: %.100s...", s->options->dir);
    s->dir = s->disk->open_dir(s->disk->ctx, inner);
    if (s->dir < 0)
        return error_errno(s->error, -s->dir, "cannot open directory %s", inner);
    pawl_error listed = {0}, why = {0};
    int status = segment_list_load(&s->list, s->disk, s->dir, &listed);
    if (status != PAWL_OK && status != PAWL_ECORRUPT) {
        if (s->error)
            *s->error = listed;
        return status;
    }
    if (s->list.count == 0)
        return error_set(s->error, PAWL_ENOTFOUND, "%s holds no segment", inner);
    if (status == PAWL_ECORRUPT)
        note(s, &listed);
    struct home home;
    status = home_open(&home, s->disk, s->options->dir, true, (struct id128){0}, &why);
    if (status == PAWL_OK) {
        s->id = home.id;
        home_close(&home);
    } else if (status != PAWL_EVERSION) {
        status = identify(s, &why);
    } else if (s->error) {
        *s->error = why;
    }
    s->seed = journal_seed(s->id);
    return status == PAWL_OK ? sort_pieces(s) : status;
}

int journal_salvage(const struct journal_salvage_options *options, pawl_doctor_report *ret_report,
                    pawl_error *error)
{
    struct salvaging s = {
        .options = options,
        .disk = options->disk ? options->disk : &disk_real,
        .alloc = options->alloc,
        .dir = -1,
        .list.alloc = options->alloc,
        .report.alloc = options->alloc,
        .error = error,
    };
    map_init(&s.by_stream, s.alloc, sizeof(struct stream_key), sizeof(uint64_t), STREAMS_MAX);
    int status = look_into(&s);
    if (status == PAWL_OK && options->to)
        status = rescue_open(options, &s.rescue, error);
    if (status == PAWL_OK)
        status = walk_all(&s);
    if (s.rescue && status == PAWL_OK)
        status = rescue_close(s.rescue, error);
    else if (s.rescue)
        rescue_abandon(s.rescue);
    if (s.dir >= 0)
        s.disk->close(s.disk->ctx, s.dir);
    mem_free(s.alloc, s.pieces, s.list.count * sizeof *s.pieces);
    segment_list_release(&s.list);
    map_release(&s.by_stream);
    if (status == PAWL_OK)
        *ret_report = s.report;
    else
        pawl_doctor_report_release(&s.report);
    return status;
}

void pawl_doctor_report_release(pawl_doctor_report *report)
{
    for (size_t i = 0; i < report->stream_count; i++)
        mem_free(report->alloc, report->streams[i].intact,
                 report->streams[i].room * sizeof *report->streams[i].intact);
    mem_free(report->alloc, report->streams, report->stream_room * sizeof *report->streams);
    report->streams = NULL;
    report->stream_count = report->stream_room = 0;
}
