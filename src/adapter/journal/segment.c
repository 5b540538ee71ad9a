#include "adapter/journal/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

static const char magic[8] = "PAWLSEG\n";

uint64_t journal_seed(struct id128 journal)
{
    uint8_t bytes[16];
    put_u64(bytes, journal.high);
    put_u64(bytes + 8, journal.low);
    return hash_checksum(0, (pawl_bytes){bytes, sizeof bytes});
}

void segment_name(uint32_t number, uint64_t first_lsn, char name[SEGMENT_NAME_MAX])
{
    snprintf(name, SEGMENT_NAME_MAX, "%08" PRIx32 "-%016" PRIx64 ".seg", number, first_lsn);
}

void segment_index_name(uint32_t number, char name[SEGMENT_NAME_MAX])
{
    snprintf(name, SEGMENT_NAME_MAX, "%08" PRIx32 ".idx", number);
}

static bool parse_hex(const char *text, size_t digits, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < digits; i++) {
        char c = text[i];
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret = v;
    return true;
}

bool segment_name_parse(const char *name, uint32_t *ret_number, uint64_t *ret_first_lsn)
{
    uint64_t number, lsn;
    if (strlen(name) != 29 || name[8] != '-' || strcmp(name + 25, ".seg") != 0 || !parse_hex(name, 8, &number)
        || !parse_hex(name + 9, 16, &lsn) || number == 0 || lsn == 0)
        return false;
    *ret_number = (uint32_t)number;
    *ret_first_lsn = lsn;
    return true;
}

size_t segment_header_count(const struct streams *streams)
{
    size_t count = 0;
    for (size_t i = 0; i < streams->count; i++)
        count += streams->items[i]->epoch != 0;
    return count;
}

void segment_header_encode(struct segment_header *h, const struct streams *streams, uint8_t *at)
{
    size_t count = segment_header_count(streams);
    size_t size = segment_header_size(count);
    struct encoder e = encoder_over(at, size);
    h->size = (uint32_t)size;
    encode_raw(&e, (pawl_bytes){magic, sizeof magic});
    encode_u32(&e, FORMAT_VERSION);
    encode_u32(&e, h->size);
    encode_u64(&e, h->journal.high);
    encode_u64(&e, h->journal.low);
    encode_u32(&e, h->number);
    encode_u32(&e, (uint32_t)count);
    encode_u64(&e, h->first_lsn);
    encode_u64(&e, h->chain);
    encode_u64(&e, h->file_size);
    encode_u64(&e, (uint64_t)h->created_ns);
    for (size_t i = 0; i < streams->count; i++) {
        const struct stream *s = streams->items[i];
        if (s->epoch == 0)
            continue;
        encode_u8(&e, s->id.kind);
        encode_u8(&e, 0);
        encode_u16(&e, s->id.partition);
        encode_u16(&e, s->id.lane);
        encode_u16(&e, 0);
        encode_u32(&e, s->id.generation);
        encode_u32(&e, 0);
        encode_u64(&e, s->epoch);
        encode_u64(&e, s->next);
    }
    encode_u64(&e, hash_checksum(0, (pawl_bytes){at, encoder_size(&e)}));
}

static int decode_summary(struct decoder *d, struct streams *streams)
{
    pawl_stream id = {0};
    id.kind = decode_u8(d);
    uint8_t zero = decode_u8(d);
    id.partition = decode_u16(d);
    id.lane = decode_u16(d);
    uint16_t zero16 = decode_u16(d);
    id.generation = decode_u32(d);
    uint32_t zero32 = decode_u32(d);
    uint64_t epoch = decode_u64(d), next = decode_u64(d);
    if (d->bad || zero || zero16 || zero32 || epoch == 0 || next == 0 || !pawl_stream_valid(id))
        return PAWL_ECORRUPT;
    if (!streams)
        return PAWL_OK;
    struct stream *s = streams_add(streams, id);
    if (!s)
        return PAWL_ENOMEM;
    s->epoch = epoch;
    s->next = next;
    s->visible = next - 1;
    return PAWL_OK;
}

int segment_header_decode(pawl_bytes bytes, struct segment_header *ret_header, struct streams *streams,
                          uint64_t *ret_fault, pawl_error *error)
{
    struct decoder d = decoder_over(bytes);
    *ret_fault = 0;
    const uint8_t *found_magic = decode_raw(&d, sizeof magic);
    if (!found_magic || memcmp(found_magic, magic, sizeof magic) != 0)
        return error_set(error, PAWL_ECORRUPT, "it does not begin as a segment does");
    *ret_fault = 8;
    uint32_t version = decode_u32(&d);
    if (version > FORMAT_VERSION)
        return error_set(error, PAWL_EVERSION, "its format is version %" PRIu32 "; this program knows up to %d",
                         version, FORMAT_VERSION);
    if (version == 0)
        return error_set(error, PAWL_ECORRUPT, "its format version is 0");
    *ret_fault = 12;
    struct segment_header h = {.size = decode_u32(&d)};
    struct id128 id = {.high = decode_u64(&d)};
    id.low = decode_u64(&d);
    h.number = decode_u32(&d);
    uint32_t count = decode_u32(&d);
    if (d.bad || h.size > bytes.size || h.size != segment_header_size(count))
        return error_set(error, PAWL_ECORRUPT, "its header's size is wrong");
    h.journal = id;
    h.first_lsn = decode_u64(&d);
    h.chain = decode_u64(&d);
    h.file_size = decode_u64(&d);
    h.created_ns = (int64_t)decode_u64(&d);
    /* The sum first: the summaries are believed only under it. */
    *ret_fault = h.size - 8;
    const uint8_t *start = bytes.data;
    if (get_u64(start + h.size - 8) != hash_checksum(0, (pawl_bytes){start, h.size - 8}))
        return error_set(error, PAWL_ECORRUPT, "its header does not match its checksum");
    for (uint32_t i = 0; i < count; i++) {
        *ret_fault = SEGMENT_HEADER_FIXED + i * SEGMENT_STREAM_BYTES;
        int status = decode_summary(&d, streams);
        if (status != PAWL_OK)
            return error_set(error, status, "its summary of stream %" PRIu32 " is wrong", i);
    }
    *ret_header = h;
    return PAWL_OK;
}

/* Read as much of the file as its header has. */
static int read_header(const struct disk *disk, int file, const pawl_allocator *alloc, uint8_t **ret_bytes,
                       size_t *ret_size, pawl_error *error)
{
    size_t size = 4096;
    for (;;) {
        uint8_t *bytes = mem_new(alloc, 1, size);
        if (!bytes)
            return error_set(error, PAWL_ENOMEM, "no memory for its header");
        int64_t n = disk_read_all(disk, file, bytes, size, 0);
        if (n < 0) {
            mem_free(alloc, bytes, size);
            return error_errno(error, (int)-n, "cannot read its header");
        }
        size_t want = (size_t)n >= 16 ? get_u32(bytes + 12) : 0;
        if (want <= (size_t)n || want > SEGMENT_HEADER_MAX || (size_t)n < size) {
            *ret_bytes = bytes;
            *ret_size = size;
            return (int)PAWL_OK;
        }
        mem_free(alloc, bytes, size);
        size = want;
    }
}

static int check_identity(const struct segment_header *h, struct segment_ref ref, const struct id128 *journal,
                          uint64_t *ret_fault, pawl_error *error)
{
    *ret_fault = 16;
    if (journal && !id128_equal(h->journal, *journal)) {
        char theirs[ID128_TEXT_SIZE], ours[ID128_TEXT_SIZE];
        id128_format(h->journal, theirs);
        id128_format(*journal, ours);
        return error_set(error, PAWL_ECORRUPT, "it belongs to journal %s, and this is journal %s", theirs,
                         ours);
    }
    *ret_fault = 32;
    if (h->number != ref.number)
        return error_set(error, PAWL_ECORRUPT, "it is segment %" PRIu32 " by its header", h->number);
    *ret_fault = 40;
    if (h->first_lsn != ref.first_lsn)
        return error_set(error, PAWL_ECORRUPT, "it begins with LSN %" PRIu64 " by its header", h->first_lsn);
    return PAWL_OK;
}

int segment_read(const struct disk *disk, int file, struct segment_ref ref, const struct id128 *journal,
                 const pawl_allocator *alloc, struct segment_header *ret_header, struct streams *streams,
                 uint64_t *ret_fault, pawl_error *error)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct segment_header h = {0};
    *ret_fault = 0;
    int status = read_header(disk, file, alloc, &bytes, &size, error);
    if (status == PAWL_OK)
        status = segment_header_decode((pawl_bytes){bytes, size}, &h, streams, ret_fault, error);
    if (status == PAWL_OK)
        status = check_identity(&h, ref, journal, ret_fault, error);
    mem_free(alloc, bytes, size);
    if (status == PAWL_OK)
        *ret_header = h;
    return status;
}

int segment_open(const struct disk *disk, int dir, struct segment_ref ref, const struct id128 *journal,
                 const pawl_allocator *alloc, struct segment_header *ret_header, struct streams *streams,
                 int *ret_file, pawl_error *error)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(ref.number, ref.first_lsn, name);
    int file = disk->open(disk->ctx, dir, name, O_RDONLY);
    if (file == -ENOENT)
        return error_set(error, PAWL_ECORRUPT, "segment %s is missing", name);
    if (file < 0)
        return error_errno(error, -file, "cannot open segment %s", name);
    uint64_t fault = 0;
    int status = segment_read(disk, file, ref, journal, alloc, ret_header, streams, &fault, error);
    if (status != PAWL_OK) {
        disk->close(disk->ctx, file);
        return error_wrap(error, status, "segment %s, byte %" PRIu64, name, fault);
    }
    *ret_file = file;
    return PAWL_OK;
}

int segment_list_reserve(struct segment_list *list)
{
    if (list->count < list->room)
        return PAWL_OK;
    size_t room = list->room ? list->room * 2 : 16;
    struct segment_ref *items =
        mem_resize(list->alloc, list->items, list->room * sizeof *items, room * sizeof *items);
    if (!items)
        return PAWL_ENOMEM;
    list->items = items;
    list->room = room;
    return PAWL_OK;
}

void segment_list_release(struct segment_list *list)
{
    mem_free(list->alloc, list->items, list->room * sizeof *list->items);
    list->items = NULL;
    list->count = list->room = 0;
}

struct listing {
    struct segment_list *list;
    uint32_t indexed; /* the highest number that there is an index of */
    int status;
};

static void list_one(void *arg, const char *name)
{
    struct listing *l = arg;
    struct segment_ref ref;
    uint64_t indexed;
    if (strlen(name) == 12 && strcmp(name + 8, ".idx") == 0 && parse_hex(name, 8, &indexed)
        && indexed > l->indexed)
        l->indexed = (uint32_t)indexed;
    if (l->status != PAWL_OK || !segment_name_parse(name, &ref.number, &ref.first_lsn))
        return;
    l->status = segment_list_reserve(l->list);
    if (l->status == PAWL_OK)
        l->list->items[l->list->count++] = ref;
}

/* Of two files with the same number the earlier place comes first: what is said of them must not depend on the order
 * in which the file system lists them. */
static int by_number(const void *a, const void *b)
{
    const struct segment_ref *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->first_lsn > y->first_lsn) - (x->first_lsn < y->first_lsn);
}

int segment_list_load(struct segment_list *list, const struct disk *disk, int dir, pawl_error *error)
{
    struct listing l = {.list = list};
    list->count = 0;
    int rc = disk->list(disk->ctx, dir, list_one, &l);
    if (rc < 0)
        return error_errno(error, -rc, "cannot list the journal's directory");
    if (l.status != PAWL_OK)
        return error_set(error, l.status, "no memory to list the journal's directory");
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_number);
    for (size_t i = 0; i < list->count; i++) {
        const struct segment_ref *ref = &list->items[i];
        char name[SEGMENT_NAME_MAX];
        segment_name(ref->number, ref->first_lsn, name);
        if (ref->number < i + 1)
            return error_set(error, PAWL_ECORRUPT, "segment %s: another file has the same number", name);
        if (ref->number > i + 1)
            return error_set(error, PAWL_ECORRUPT, "segment %08zx is missing: the next one there is %s", i + 1,
                             name);
        if (i && ref->first_lsn < list->items[i - 1].first_lsn)
            return error_set(error, PAWL_ECORRUPT, "segment %s begins before its predecessor", name);
    }
    /* An index is made of a segment that has its name: without it, the newest ones are gone. */
    if (l.indexed > list->count)
        return error_set(error, PAWL_ECORRUPT, "segment %08" PRIx32 " is missing: its index is there",
                         l.indexed);
    return PAWL_OK;
}
