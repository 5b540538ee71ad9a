#include "adapter/journal/tail.h"

#include <inttypes.h>

#include "base/error.h"

static int fault(const struct tail *t, int status, uint64_t at, pawl_error *error)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(t->header.number, t->header.first_lsn, name);
    return error_wrap(error, status, "segment %s, byte %" PRIu64, name, at);
}

int tail_open(struct tail *t, const struct disk *disk, int dir, struct segment_ref ref,
              const struct id128 *journal, const pawl_allocator *alloc, pawl_error *error)
{
    *t = (struct tail){.disk = disk, .alloc = alloc, .file = -1};
    streams_init(&t->streams, alloc);
    int status = segment_open(disk, dir, ref, journal, alloc, &t->header, &t->streams, &t->file, error);
    if (status == PAWL_OK) {
        status = scan_init(&t->scan, disk, t->file, journal_seed(t->header.journal), alloc);
        if (status != PAWL_OK)
            error_set(error, status, "no memory to read the journal");
    }
    if (status != PAWL_OK) {
        tail_close(t);
        return status;
    }
    t->lsn = t->header.first_lsn - 1;
    t->chain = t->header.chain;
    t->at = t->header.size;
    return PAWL_OK;
}

void tail_close(struct tail *t)
{
    scan_release(&t->scan);
    streams_release(&t->streams);
    if (t->file >= 0)
        t->disk->close(t->disk->ctx, t->file);
    t->file = -1;
}

int tail_probe(struct tail *t, struct tail_end *ret_end, pawl_error *error)
{
    struct tail_end end = {
        .witnessed = t->lsn, .whole = t->lsn, .whole_at = t->at, .useful = t->lsn, .useful_at = t->at};
    enum scan_result result;
    struct record r;
    int status;
    /* The size is read first: a file that ends with a seal at that size was sealed, whatever a writer adds
     * later. */
    int64_t size = t->disk->size(t->disk->ctx, t->file);
    if (size < 0)
        return error_errno(error, (int)-size, "cannot see the size of segment %08" PRIx32, t->header.number);
    end.size = (uint64_t)size;
    scan_seek(&t->scan, t->file, t->at, t->lsn + 1, t->chain, true);
    while ((result = scan_next(&t->scan, &r, &status)) == SCAN_RECORD) {
        end.whole = r.lsn;
        end.whole_at = t->scan.at;
        if (r.durable > end.witnessed)
            end.witnessed = r.durable;
        end.seals = r.type == RECORD_WATERMARK && r.kind == WATERMARK_SEALS;
        if (r.type != RECORD_WATERMARK) {
            end.useful = r.lsn;
            end.useful_at = end.whole_at;
        }
    }
    if (result == SCAN_ERROR) {
        error_set(error, status, "%s", pawl_status_text(status));
        return fault(t, status, t->scan.at, error);
    }
    end.why = result == SCAN_BAD ? t->scan.why : NULL;
    end.sealed = end.size == end.whole_at && end.seals;
    if (end.useful < end.witnessed)
        end.useful = end.witnessed; /* watermarks below D stay where they are, with all else */
    *ret_end = end;
    return PAWL_OK;
}

/* Whether a record somewhere behind the end calls the first lost LSN durable. */
static int search_witness(struct tail *t, const struct tail_end *end, uint64_t *ret_witness)
{
    struct record r;
    int status;
    uint64_t at = end->whole_at;
    *ret_witness = 0;
    while (*ret_witness <= end->whole) {
        enum scan_result result = scan_search(&t->scan, at, &r, &status);
        if (result == SCAN_ERROR)
            return status;
        if (result == SCAN_END)
            return PAWL_OK;
        if (r.durable > *ret_witness)
            *ret_witness = r.durable;
        at = t->scan.at + record_size(r.body.size);
    }
    return PAWL_OK;
}

/* A writer may be at work: whether the record that was not whole when it was probed is whole by now. */
static bool is_whole_now(struct tail *t, const struct tail_end *end)
{
    struct record r;
    int status;
    scan_seek(&t->scan, t->file, end->whole_at, end->whole + 1, 0, false);
    return scan_next(&t->scan, &r, &status) == SCAN_RECORD;
}

bool tail_is_short(const struct tail *t, const struct tail_end *end)
{
    bool extended = end->seals && end->scraps == 0;
    return end->size < t->header.file_size && end->whole_at <= end->size && !extended;
}

int tail_judge(struct tail *t, struct tail_end *end, uint64_t witness, bool live, pawl_error *error)
{
    const char *what = end->why ? end->why : "nothing is written there";
    uint64_t lost = end->whole + 1;
    if (witness >= lost) {
        error_set(error, PAWL_ECORRUPT,
                  "record %" PRIu64 " was durable (record %" PRIu64 " is known elsewhere), but %s", lost,
                  witness, what);
        return fault(t, PAWL_ECORRUPT, end->whole_at, error);
    }
    uint64_t scraps_end = end->whole_at;
    int status = scan_tail_zero(&t->scan, end->whole_at, &scraps_end);
    end->scraps = scraps_end - end->whole_at;
    if (status == PAWL_OK && tail_is_short(t, end) && !live) {
        error_set(error, PAWL_ECORRUPT,
                  "the file ends at byte %" PRIu64 " without a seal, and should have %" PRIu64 " bytes",
                  end->size, t->header.file_size);
        return fault(t, PAWL_ECORRUPT, end->why ? end->whole_at : end->size, error);
    }
    if (status == PAWL_OK && end->scraps != 0)
        status = search_witness(t, end, &witness);
    if (status != PAWL_OK) {
        error_set(error, status, "%s", pawl_status_text(status));
        return fault(t, status, t->scan.at, error);
    }
    if (witness >= lost && !(live && is_whole_now(t, end))) {
        error_set(error, PAWL_ECORRUPT, "record %" PRIu64 " was durable (a later record says so), but %s", lost,
                  what);
        return fault(t, PAWL_ECORRUPT, end->whole_at, error);
    }
    return PAWL_OK;
}

int tail_advance(struct tail *t, uint64_t lsn, void (*visit)(void *arg, const struct record *r, uint64_t at),
                 void *arg, pawl_error *error)
{
    scan_seek(&t->scan, t->file, t->at, t->lsn + 1, t->chain, true);
    while (t->lsn < lsn) {
        struct record r;
        const char *why = "it was whole a moment ago";
        int status = PAWL_OK;
        enum scan_result result = scan_next(&t->scan, &r, &status);
        if (result != SCAN_ERROR)
            status = result == SCAN_RECORD ? streams_apply(&t->streams, &r, &why) : PAWL_ECORRUPT;
        if (status != PAWL_OK) {
            error_set(error, status, "%s", status == PAWL_ECORRUPT ? why : pawl_status_text(status));
            return fault(t, status, t->at, error);
        }
        if (visit)
            visit(arg, &r, t->at);
        t->lsn = r.lsn;
        t->chain = r.checksum;
        t->at = t->scan.at;
    }
    return PAWL_OK;
}
