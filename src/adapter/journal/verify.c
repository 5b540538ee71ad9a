#include "adapter/journal/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "adapter/journal/home.h"
#include "adapter/journal/index.h"
#include "adapter/journal/tail.h"
#include "base/alloc.h"
#include "base/error.h"

#define PROGRESS_STEP ((uint64_t)4 << 20)

struct verifying {
    const struct journal_verify_options *options;
    const struct disk *disk;
    const pawl_allocator *alloc;
    struct home home;
    struct segment_list list;
    pawl_log_report report;
    struct map by_stream; /* stream -> its place in the report, plus one */

    /* Where the segments so far have come to; known is false behind a fault. */
    bool known;
    uint64_t lsn;
    uint64_t chain;
    struct streams streams;

    uint64_t bytes_before; /* of the segments before the present one */
    uint64_t bytes_told;
    uint64_t bytes_total;
    int status; /* of counting and telling, which cannot return one */
};

static void tell(struct verifying *v, uint64_t at, bool always)
{
    uint64_t done = v->bytes_before + at;
    if (!v->options->progress || v->status != PAWL_OK || (!always && done - v->bytes_told < PROGRESS_STEP))
        return;
    v->bytes_told = done;
    if (!v->options->progress(v->options->arg, done, v->bytes_total > done ? v->bytes_total : done))
        v->status = PAWL_ECANCELED;
}

/* Note a fault; what follows in this segment is not looked at. error: the words, with or without the place. */
static void fault(struct verifying *v, const char *file, uint64_t at, uint64_t lsn, const pawl_error *error)
{
    v->known = false;
    if (v->report.faults++ != 0)
        return;
    pawl_log_fault *f = &v->report.first;
    f->at = at;
    f->lsn = lsn;
    f->error = *error;
    snprintf(f->file, sizeof f->file, "%s", file);
}

/* The same, with the place put in front. */
__attribute__((format(printf, 5, 6))) static void fault_at(struct verifying *v, const char *file, uint64_t at,
                                                           uint64_t lsn, const char *format, ...)
{
    pawl_error error = {.code = PAWL_ECORRUPT};
    va_list args;
    va_start(args, format);
    vsnprintf(error.text, sizeof error.text, format, args);
    va_end(args);
    error_wrap(&error, PAWL_ECORRUPT, "segment %s, byte %" PRIu64, file, at);
    fault(v, file, at, lsn, &error);
}

static int count_stream(struct verifying *v, const struct record *r)
{
    pawl_log_report *report = &v->report;
    struct stream_key key = stream_key(r->stream);
    void *place;
    bool fresh;
    if (map_put(&v->by_stream, stream_key_hash(key), &key, &place, &fresh) != PAWL_OK)
        return PAWL_ENOMEM;
    if (fresh) {
        if (report->stream_count == report->stream_room) {
            size_t room = report->stream_room ? report->stream_room * 2 : 16;
            pawl_log_report_stream *streams = mem_resize(
                v->alloc, report->streams, report->stream_room * sizeof *streams, room * sizeof *streams);
            if (!streams)
                return PAWL_ENOMEM;
            report->streams = streams;
            report->stream_room = room;
        }
        report->streams[report->stream_count] = (pawl_log_report_stream){.id = r->stream};
        *(uint64_t *)place = ++report->stream_count;
    }
    pawl_log_report_stream *s = &report->streams[*(uint64_t *)place - 1];
    uint64_t group0;
    if (r->type == RECORD_CLAIM) {
        (void)claim_body_decode(r->body, &s->epoch, &group0);
        return PAWL_OK;
    }
    s->entries++;
    s->last = r->offset;
    if (s->first == 0)
        s->first = r->offset;
    return PAWL_OK;
}

static void count(void *arg, const struct record *r, uint64_t at)
{
    struct verifying *v = arg;
    v->report.records++;
    v->report.entries += r->type == RECORD_ENTRY;
    v->report.claims += r->type == RECORD_CLAIM;
    v->report.watermarks += r->type == RECORD_WATERMARK;
    if (r->type != RECORD_WATERMARK && v->status == PAWL_OK)
        v->status = count_stream(v, r);
    tell(v, at, false);
}

/* Whether a header says of the streams exactly what was read up to it. */
static const struct stream *first_difference(const struct streams *read, const struct streams *header)
{
    for (size_t i = 0; i < read->count; i++) {
        const struct stream *a = read->items[i];
        const struct stream *b = streams_find(header, a->id);
        if (a->epoch != 0 && (!b || b->epoch != a->epoch || b->next != a->next))
            return a;
    }
    for (size_t i = 0; i < header->count; i++)
        if (!streams_find(read, header->items[i]->id))
            return header->items[i];
    return NULL;
}

/* A header that is good by itself must go on where the segment before it ended. */
static bool continues(struct verifying *v, const struct tail *t, const char *name)
{
    if (!v->known)
        return true;
    if (t->header.first_lsn != v->lsn) {
        fault_at(v, name, 40, 0,
                 "it begins with LSN %" PRIu64 ", and the segment before it ends before %" PRIu64,
                 t->header.first_lsn, v->lsn);
        return false;
    }
    if (t->header.chain != v->chain) {
        fault_at(v, name, 48, 0, "it does not continue the segment before it");
        return false;
    }
    const struct stream *s = first_difference(&v->streams, &t->streams);
    if (s) {
        char stream[PAWL_STREAM_TEXT_MAX];
        pawl_stream_format(s->id, stream);
        fault_at(v, name, SEGMENT_HEADER_FIXED, 0, "what its header says of %s is not what was read", stream);
        return false;
    }
    return true;
}

/* What was read of a segment is what the next one is held against. */
static void adopt(struct verifying *v, struct tail *t)
{
    struct streams read = v->streams;
    v->streams = t->streams;
    t->streams = read;
    v->lsn = t->lsn + 1;
    v->chain = t->chain;
    v->known = true;
}

/* The records of a segment whose successor begins with end (UINT64_MAX: not known, it is missing). */
static int check_older(struct verifying *v, struct tail *t, const char *name, uint64_t end)
{
    scan_seek(&t->scan, t->file, t->at, t->lsn + 1, t->chain, true);
    while (t->lsn + 1 < end) {
        struct record r;
        const char *why = "nothing is written there";
        int status = PAWL_OK;
        enum scan_result result = scan_next(&t->scan, &r, &status);
        if (result == SCAN_ERROR && status == PAWL_ENOMEM)
            return status;
        if (result == SCAN_ERROR) {
            fault_at(v, name, t->at, t->lsn + 1, "it cannot be read: %s", pawl_status_text(status));
            return PAWL_OK;
        }
        if (result != SCAN_RECORD && end == UINT64_MAX)
            return PAWL_OK;
        if (result == SCAN_BAD)
            why = t->scan.why;
        status = result == SCAN_RECORD ? streams_apply(&t->streams, &r, &why) : PAWL_ECORRUPT;
        if (status == PAWL_ECORRUPT)
            fault_at(v, name, t->at, t->lsn + 1, "record %" PRIu64 " was durable, but %s", t->lsn + 1, why);
        if (status != PAWL_OK)
            return status == PAWL_ECORRUPT ? PAWL_OK : status;
        count(v, &r, t->at);
        t->lsn = r.lsn;
        t->chain = r.checksum;
        t->at = t->scan.at;
    }
    uint64_t scraps = t->at;
    int status = scan_tail_zero(&t->scan, t->at, &scraps);
    if (status != PAWL_OK)
        return status;
    v->report.dead_bytes += scraps - t->at;
    adopt(v, t);
    return PAWL_OK;
}

static int advance(struct verifying *v, struct tail *t, const char *name, uint64_t lsn)
{
    pawl_error error = {0};
    int status = tail_advance(t, lsn, count, v, &error);
    if (status == PAWL_ECORRUPT)
        fault(v, name, t->at, t->lsn + 1, &error);
    return status;
}

static int count_newest(struct verifying *v, struct tail *t, const char *name, const struct tail_end *end)
{
    int status = advance(v, t, name, end->witnessed);
    if (status == PAWL_OK)
        status = advance(v, t, name, end->whole);
    uint64_t elsewhere = v->options->witness.position;
    uint64_t witnessed = end->witnessed > elsewhere ? end->witnessed : elsewhere;
    v->report.unwitnessed = end->useful > witnessed ? end->useful - witnessed : 0;
    v->report.clean = end->sealed;
    if (end->scraps) {
        v->report.torn_bytes = end->scraps;
        v->report.torn_at = end->whole_at;
        snprintf(v->report.torn_file, sizeof v->report.torn_file, "%s", name);
    }
    return status;
}

/* The newest segment. While a writer has it, it is as long as its header says; it becomes shorter only after
 * its seal was written or its successor named. So if it is short and not sealed, there is a successor by now
 * (*ret_older), or damage. */
static int check_newest(struct verifying *v, struct tail *t, const char *name, bool *ret_older)
{
    struct tail_end end = {.whole = t->lsn, .whole_at = t->at};
    pawl_error error = {0};
    /* The index first: a writer may seal the segment meanwhile. */
    uint64_t indexed = index_witness(v->disk, v->home.dir, v->home.id, t->header.number, v->alloc);
    int status = tail_probe(t, &end, &error);
    if (status == PAWL_OK)
        status = tail_judge(t, &end, indexed, true, &error);
    if (status == PAWL_OK && tail_is_short(t, &end)) {
        struct segment_list fresh = {.alloc = v->alloc};
        if (segment_list_load(&fresh, v->disk, v->home.dir, NULL) == PAWL_OK && fresh.count > v->list.count) {
            segment_list_release(&v->list);
            v->list = fresh;
            *ret_older = true;
            return PAWL_OK;
        }
        segment_list_release(&fresh);
        status = tail_judge(t, &end, indexed, false, &error);
    }
    if (status == PAWL_ENOMEM)
        return status;
    if (status != PAWL_OK) {
        fault(v, name, end.whole_at, end.whole + 1, &error);
        (void)tail_advance(t, end.whole, count, v, NULL);
        return PAWL_OK;
    }
    status = count_newest(v, t, name, &end);
    return status == PAWL_ECORRUPT ? PAWL_OK : status;
}

/* A segment whose header cannot be believed: which byte of it, and why. */
static void fault_in_header(struct verifying *v, struct segment_ref ref, const char *name,
                            const pawl_error *error)
{
    struct segment_header header;
    uint64_t at = PAWL_NO_BYTE;
    int file = v->disk->open(v->disk->ctx, v->home.dir, name, 0);
    if (file >= 0) {
        (void)segment_read(v->disk, file, ref, &v->home.id, v->alloc, &header, NULL, &at, NULL);
        v->disk->close(v->disk->ctx, file);
    }
    fault(v, name, at, 0, error);
}

static int check_segment(struct verifying *v, size_t i)
{
    struct segment_ref ref = v->list.items[i];
    char name[SEGMENT_NAME_MAX];
    segment_name(ref.number, ref.first_lsn, name);
    struct tail t;
    pawl_error error = {0};
    int status = tail_open(&t, v->disk, v->home.dir, ref, &v->home.id, v->alloc, &error);
    if (status == PAWL_ENOMEM)
        return status;
    if (status != PAWL_OK) {
        fault_in_header(v, ref, name, &error);
        return PAWL_OK;
    }
    bool older = i + 1 < v->list.count;
    if (continues(v, &t, name) && !older)
        status = check_newest(v, &t, name, &older);
    else
        older = true;
    if (older && status == PAWL_OK) {
        bool followed = i + 1 < v->list.count && v->list.items[i + 1].number == ref.number + 1;
        status = check_older(v, &t, name, followed ? v->list.items[i + 1].first_lsn : UINT64_MAX);
    }
    int64_t size = v->disk->size(v->disk->ctx, t.file);
    v->bytes_before += size > 0 ? (uint64_t)size : 0;
    tail_close(&t);
    return status;
}

static void check_index(struct verifying *v, uint32_t number)
{
    char name[SEGMENT_NAME_MAX];
    segment_index_name(number, name);
    int file = v->disk->open(v->disk->ctx, v->home.dir, name, 0);
    if (file < 0)
        return;
    v->disk->close(v->disk->ctx, file);
    struct index index;
    index_init(&index, v->alloc);
    if (index_load(&index, v->disk, v->home.dir, v->home.id, number) != PAWL_OK)
        v->report.bad_indexes++;
    index_release(&index);
}

/* Numbers are 1, 2, 3, ...: what is missing before item i, or there twice, is a fault of its own. */
static void check_number(struct verifying *v, size_t i)
{
    struct segment_ref ref = v->list.items[i];
    uint32_t expected = i ? v->list.items[i - 1].number + 1 : 1;
    char name[SEGMENT_NAME_MAX], missing[SEGMENT_NAME_MAX];
    pawl_error error = {0};
    segment_name(ref.number, ref.first_lsn, name);
    if (ref.number == expected)
        return;
    if (ref.number < expected) {
        error_set(&error, PAWL_ECORRUPT, "segment %s: another file has the same number", name);
        fault(v, name, PAWL_NO_BYTE, 0, &error);
        return;
    }
    snprintf(missing, sizeof missing, "%08" PRIx32, expected);
    error_set(&error, PAWL_ECORRUPT, "segment %s is missing: the next one there is %s", missing, name);
    fault(v, missing, PAWL_NO_BYTE, 0, &error);
}

static void add_sizes(struct verifying *v)
{
    for (size_t i = 0; i < v->list.count; i++) {
        char name[SEGMENT_NAME_MAX];
        segment_name(v->list.items[i].number, v->list.items[i].first_lsn, name);
        int file = v->disk->open(v->disk->ctx, v->home.dir, name, 0);
        if (file < 0)
            continue;
        int64_t size = v->disk->size(v->disk->ctx, file);
        v->bytes_total += size > 0 ? (uint64_t)size : 0;
        v->disk->close(v->disk->ctx, file);
    }
}

static int check_all(struct verifying *v, pawl_error *error)
{
    pawl_error listed = {0};
    int status = segment_list_load(&v->list, v->disk, v->home.dir, &listed);
    if (status != PAWL_OK && (status != PAWL_ECORRUPT || v->list.count == 0)) {
        if (error)
            *error = listed;
        return status;
    }
    if (v->list.count == 0)
        return error_set(error, PAWL_ECORRUPT, "%s/journal has no segment: all of them are missing",
                         v->options->dir);
    bool gap = status == PAWL_ECORRUPT;
    add_sizes(v);
    v->known = true;
    v->lsn = 1;
    v->chain = journal_seed(v->home.id);
    for (size_t i = 0; i < v->list.count; i++) {
        check_number(v, i);
        status = check_segment(v, i);
        if (status == PAWL_OK) {
            check_index(v, v->list.items[i].number);
            tell(v, 0, true);
            status = v->status;
        }
        if (status == PAWL_ECANCELED)
            return error_set(error, status, "the verification of %s was cancelled", v->options->dir);
        if (status != PAWL_OK)
            return error_set(error, status, "no memory to verify %s", v->options->dir);
    }
    /* What the list has to say beyond the numbers. */
    if (gap && v->report.faults == 0)
        fault(v, "journal", PAWL_NO_BYTE, 0, &listed);
    v->report.segments = v->list.count;
    v->report.bytes = v->bytes_before;
    return PAWL_OK;
}

/* No id file: either the journal was never finished being made, or it has lost it. */
static int look_for_orphans(struct verifying *v, pawl_error *error)
{
    char inner[4096];
    snprintf(inner, sizeof inner, "%s/journal", v->options->dir);
    int dir = v->disk->open_dir(v->disk->ctx, inner);
    if (dir < 0)
        return PAWL_ENOTFOUND;
    int status = PAWL_ENOTFOUND;
    (void)segment_list_load(&v->list, v->disk, dir, NULL);
    struct tail t;
    struct tail_end end;
    bool empty = v->list.count == 0;
    if (v->list.count == 1 && tail_open(&t, v->disk, dir, v->list.items[0], NULL, v->alloc, NULL) == PAWL_OK) {
        empty = tail_probe(&t, &end, NULL) == PAWL_OK && tail_judge(&t, &end, 0, true, NULL) == PAWL_OK
                && end.whole == 0 && end.scraps == 0;
        tail_close(&t);
    }
    if (!empty)
        status = error_set(error, PAWL_ECORRUPT, "%s/id is missing, but segments are there", inner);
    v->disk->close(v->disk->ctx, dir);
    return status;
}

int journal_verify(const struct journal_verify_options *options, pawl_log_report *ret_report, pawl_error *error)
{
    struct verifying v = {
        .options = options,
        .disk = options->disk ? options->disk : &disk_real,
        .alloc = options->alloc,
        .list.alloc = options->alloc,
        .report.alloc = options->alloc,
    };
    streams_init(&v.streams, v.alloc);
    map_init(&v.by_stream, v.alloc, sizeof(struct stream_key), sizeof(uint64_t), STREAMS_MAX);
    int status = home_open(&v.home, v.disk, options->dir, true, (struct id128){0}, error);
    if (status == PAWL_ENOTFOUND)
        status = look_for_orphans(&v, error);
    if (status == PAWL_OK) {
        status = check_all(&v, error);
        home_close(&v.home);
    }
    segment_list_release(&v.list);
    streams_release(&v.streams);
    map_release(&v.by_stream);
    if (status == PAWL_OK)
        *ret_report = v.report;
    else
        pawl_log_report_release(&v.report);
    return status;
}

void pawl_log_report_release(pawl_log_report *report)
{
    mem_free(report->alloc, report->streams, report->stream_room * sizeof *report->streams);
    report->streams = NULL;
    report->stream_count = report->stream_room = 0;
}
