#include "adapter/journal/scan.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"

int scan_init(struct scan *s, const struct disk *disk, int file, uint64_t seed, const pawl_allocator *alloc)
{
    uint8_t *window = mem_resize(alloc, NULL, 0, SCAN_WINDOW);
    if (!window)
        return PAWL_ENOMEM;
    *s = (struct scan){.disk = disk,
                       .alloc = alloc,
                       .file = file,
                       .seed = seed,
                       .window = window,
                       .room = SCAN_WINDOW,
                       .end = UINT64_MAX};
    return PAWL_OK;
}

void scan_release(struct scan *s)
{
    mem_free(s->alloc, s->window, s->room);
    s->window = NULL;
}

void scan_resize(struct scan *s, size_t room)
{
    uint8_t *window = mem_resize(s->alloc, s->window, s->room, room);
    if (!window)
        return;
    s->window = window;
    s->room = room;
    s->window_size = 0;
}

void scan_seek(struct scan *s, int file, uint64_t at, uint64_t lsn, uint64_t chain, bool chained)
{
    s->file = file;
    s->at = at;
    s->lsn = lsn;
    s->chain = chain;
    s->chained = chained;
    s->window_size = 0;
    s->why = NULL;
}

/* Have need bytes from .at in the window, or as many as the file has; *ret_bytes is what there is. */
static int fill(struct scan *s, size_t need, pawl_bytes *ret_bytes)
{
    bool inside = s->at >= s->window_at && s->at <= s->window_at + s->window_size;
    size_t skip = inside ? (size_t)(s->at - s->window_at) : 0;
    if (inside && s->window_size - skip >= need) {
        *ret_bytes = (pawl_bytes){s->window + skip, s->window_size - skip};
        return PAWL_OK;
    }
    size_t keep = inside ? s->window_size - skip : 0;
    if (need > s->room) {
        uint8_t *larger = mem_resize(s->alloc, s->window, s->room, need);
        if (!larger)
            return PAWL_ENOMEM;
        s->window = larger;
        s->room = need;
    }
    memmove(s->window, s->window + skip, keep);
    s->window_at = s->at;
    s->window_size = keep;
    uint64_t from = s->at + keep;
    uint64_t below_end = s->end > from ? s->end - from : 0;
    size_t most = s->room - keep < below_end ? s->room - keep : (size_t)below_end;
    int64_t n = disk_read_all(s->disk, s->file, s->window + keep, most, from);
    if (n < 0)
        return error_from_errno((int)-n);
    s->window_size += (size_t)n;
    *ret_bytes = (pawl_bytes){s->window, s->window_size};
    return PAWL_OK;
}

/* Decode what stands at .at, whatever comes before it. */
static enum record_verdict look(struct scan *s, struct record *ret_record, size_t *ret_size, int *ret_status)
{
    size_t need = RECORD_HEADER;
    for (;;) {
        pawl_bytes bytes = {NULL, 0};
        *ret_status = fill(s, need, &bytes);
        if (*ret_status != PAWL_OK)
            return RECORD_SHORT;
        if (bytes.size < need) {
            *ret_size = bytes.size;
            return bytes_all_zero(bytes.data, bytes.size) ? RECORD_NONE : RECORD_SHORT;
        }
        enum record_verdict verdict = record_decode(bytes, s->seed, ret_record, ret_size);
        if (verdict != RECORD_SHORT)
            return verdict;
        need = *ret_size;
    }
}

enum scan_result scan_next(struct scan *s, struct record *ret_record, int *ret_status)
{
    size_t size;
    enum record_verdict verdict = look(s, ret_record, &size, ret_status);
    if (*ret_status != PAWL_OK)
        return SCAN_ERROR;
    if (verdict == RECORD_NONE)
        return SCAN_END;
    if (verdict != RECORD_VALID)
        s->why = record_verdict_text(verdict);
    else if (ret_record->lsn != s->lsn)
        s->why = "its LSN is not the next";
    else if (s->chained && ret_record->chain != s->chain)
        s->why = "it does not continue the record before it";
    else
        goto valid;
    return SCAN_BAD;

valid:
    s->at += size;
    s->lsn++;
    s->chain = ret_record->checksum;
    s->chained = true;
    return SCAN_RECORD;
}

bool scan_ready(const struct scan *s)
{
    if (s->at < s->window_at || s->at > s->window_at + s->window_size)
        return false;
    size_t skip = (size_t)(s->at - s->window_at);
    size_t left = s->window_size - skip;
    size_t size = record_claimed_size((pawl_bytes){s->window + skip, left});
    return size != 0 && size <= left;
}

enum scan_result scan_search(struct scan *s, uint64_t at, struct record *ret_record, int *ret_status)
{
    scan_seek(s, s->file, (at + RECORD_ALIGN - 1) & ~(uint64_t)(RECORD_ALIGN - 1), 0, 0, false);
    for (;;) {
        pawl_bytes bytes = {NULL, 0};
        *ret_status = fill(s, RECORD_HEADER, &bytes);
        if (*ret_status != PAWL_OK)
            return SCAN_ERROR;
        if (bytes.size < RECORD_HEADER)
            return SCAN_END;
        /* Zeros are most of what there is to search: step over them without decoding. */
        const uint8_t *p = bytes.data;
        size_t step = 0;
        while (bytes.size - step >= RECORD_HEADER && get_u64(p + step) == 0)
            step += RECORD_ALIGN;
        s->at += step;
        if (step > 0)
            continue;
        /* The guard first: bytes that only look like a length must not be summed over. */
        if (!record_guarded(p, s->seed)) {
            s->at += RECORD_ALIGN;
            continue;
        }
        size_t size;
        enum record_verdict verdict = look(s, ret_record, &size, ret_status);
        if (*ret_status != PAWL_OK)
            return SCAN_ERROR;
        if (verdict == RECORD_VALID) {
            s->lsn = ret_record->lsn;
            return SCAN_RECORD;
        }
        s->at += RECORD_ALIGN;
    }
}

int scan_tail_zero(struct scan *s, uint64_t at, uint64_t *ret_end)
{
    uint64_t end = at;
    scan_seek(s, s->file, at, 0, 0, false);
    for (;;) {
        pawl_bytes bytes = {NULL, 0};
        int status = fill(s, 1, &bytes);
        if (status != PAWL_OK)
            return status;
        if (bytes.size == 0)
            break;
        const uint8_t *p = bytes.data;
        if (!bytes_all_zero(p, bytes.size)) {
            size_t last = bytes.size;
            while (p[last - 1] == 0)
                last--;
            end = s->at + last;
        }
        s->at += bytes.size;
    }
    *ret_end = end;
    return PAWL_OK;
}
