#include "adapter/journal/index.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"

static const char magic[8] = "PAWLIDX\n";

#define INDEX_HEADER    ((size_t)40)
#define INDEX_ENTRY     ((size_t)40)
#define INDEX_COUNT_MAX ((uint64_t)1 << 24)

void index_init(struct index *x, const pawl_allocator *alloc)
{
    *x = (struct index){.alloc = alloc};
    map_init(&x->last, alloc, sizeof(struct stream_key), sizeof(uint64_t), STREAMS_MAX);
}

void index_clear(struct index *x)
{
    x->count = 0;
    x->end = 0;
    map_clear(&x->last);
}

void index_release(struct index *x)
{
    mem_free(x->alloc, x->items, x->room * sizeof *x->items);
    x->items = NULL;
    x->count = x->room = 0;
    map_release(&x->last);
}

bool index_wants(const struct index *x, pawl_stream stream, uint64_t at)
{
    struct stream_key key = stream_key(stream);
    const uint64_t *last = map_get(&x->last, stream_key_hash(key), &key);
    return !last || at - (*last - 1) >= INDEX_STEP;
}

void index_add(struct index *x, pawl_stream stream, uint64_t offset, uint64_t lsn, uint64_t at)
{
    if (x->count == x->room) {
        size_t room = x->room ? x->room * 2 : 64;
        struct index_entry *items =
            mem_resize(x->alloc, x->items, x->room * sizeof *items, room * sizeof *items);
        if (!items)
            return;
        x->items = items;
        x->room = room;
    }
    struct stream_key key = stream_key(stream);
    void *last;
    bool fresh;
    if (map_put(&x->last, stream_key_hash(key), &key, &last, &fresh) != PAWL_OK)
        return;
    *(uint64_t *)last = at + 1;
    x->items[x->count++] = (struct index_entry){.stream = stream, .offset = offset, .lsn = lsn, .at = at};
}

bool index_find(const struct index *x, pawl_stream stream, uint64_t offset, struct index_entry *ret_entry)
{
    const struct index_entry *best = NULL;
    for (size_t i = 0;
         i < x->count
         && (!best || x->items[i].offset <= offset || !pawl_stream_equal(x->items[i].stream, stream));
         i++)
        if (x->items[i].offset <= offset && pawl_stream_equal(x->items[i].stream, stream))
            best = &x->items[i];
    if (!best)
        return false;
    *ret_entry = *best;
    return true;
}

static void encode_entry(const struct index_entry *entry, struct encoder *e)
{
    encode_u8(e, entry->stream.kind);
    encode_u8(e, 0);
    encode_u16(e, entry->stream.partition);
    encode_u16(e, entry->stream.lane);
    encode_u16(e, 0);
    encode_u32(e, entry->stream.generation);
    encode_u32(e, 0);
    encode_u64(e, entry->offset);
    encode_u64(e, entry->lsn);
    encode_u64(e, entry->at);
}

static void encode_all(const struct index *x, uint64_t end, struct id128 journal, uint32_t number,
                       struct encoder *e)
{
    const struct index_entry last = {.lsn = end};
    encode_raw(e, (pawl_bytes){magic, sizeof magic});
    encode_u32(e, FORMAT_VERSION);
    encode_u32(e, number);
    encode_u64(e, journal.high);
    encode_u64(e, journal.low);
    encode_u64(e, x->count + 1);
    for (size_t i = 0; i < x->count; i++)
        encode_entry(&x->items[i], e);
    encode_entry(&last, e);
    encode_u64(e, hash_checksum(0, (pawl_bytes){e->start, encoder_size(e)}));
}

int index_save(const struct index *x, uint64_t end, const struct disk *disk, int dir, struct id128 journal,
               uint32_t number)
{
    char name[SEGMENT_NAME_MAX], draft[SEGMENT_NAME_MAX + 4];
    segment_index_name(number, name);
    snprintf(draft, sizeof draft, "%s.tmp", name);
    size_t size = INDEX_HEADER + (x->count + 1) * INDEX_ENTRY + 8;
    uint8_t *bytes = mem_new(x->alloc, 1, size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(bytes, size);
    encode_all(x, end, journal, number, &e);
    int file = disk->open(disk->ctx, dir, draft, O_WRONLY | O_CREAT | O_TRUNC);
    int rc = file < 0 ? file : disk_write_all(disk, file, bytes, size, 0);
    if (file >= 0)
        disk->close(disk->ctx, file);
    if (rc == 0)
        rc = disk->rename(disk->ctx, dir, draft, name);
    if (rc < 0 && file >= 0)
        disk->remove(disk->ctx, dir, draft);
    mem_free(x->alloc, bytes, size);
    return rc < 0 ? error_from_errno(-rc) : PAWL_OK;
}

static bool decode_all(struct index *x, pawl_bytes bytes, struct id128 journal, uint32_t number)
{
    struct decoder d = decoder_over(bytes);
    const uint8_t *found_magic = decode_raw(&d, sizeof magic);
    uint32_t version = decode_u32(&d), found_number = decode_u32(&d);
    struct id128 id = {.high = decode_u64(&d)};
    id.low = decode_u64(&d);
    uint64_t count = decode_u64(&d);
    if (d.bad || memcmp(found_magic, magic, sizeof magic) != 0 || version != FORMAT_VERSION
        || found_number != number || !id128_equal(id, journal) || count > INDEX_COUNT_MAX
        || bytes.size != INDEX_HEADER + count * INDEX_ENTRY + 8)
        return false;
    const uint8_t *start = bytes.data;
    if (get_u64(start + bytes.size - 8) != hash_checksum(0, (pawl_bytes){start, bytes.size - 8}))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct index_entry entry = {.stream.kind = decode_u8(&d)};
        (void)decode_u8(&d);
        entry.stream.partition = decode_u16(&d);
        entry.stream.lane = decode_u16(&d);
        (void)decode_u16(&d);
        entry.stream.generation = decode_u32(&d);
        (void)decode_u32(&d);
        entry.offset = decode_u64(&d);
        entry.lsn = decode_u64(&d);
        entry.at = decode_u64(&d);
        if (entry.stream.kind == 0)
            x->end = entry.lsn;
        else
            index_add(x, entry.stream, entry.offset, entry.lsn, entry.at);
    }
    return true;
}

int index_load(struct index *x, const struct disk *disk, int dir, struct id128 journal, uint32_t number)
{
    char name[SEGMENT_NAME_MAX];
    segment_index_name(number, name);
    index_clear(x);
    int file = disk->open(disk->ctx, dir, name, O_RDONLY);
    if (file < 0)
        return PAWL_ENOTFOUND;
    int status = PAWL_ENOTFOUND;
    int64_t size = disk->size(disk->ctx, file);
    if (size >= (int64_t)(INDEX_HEADER + 8)
        && size <= (int64_t)(INDEX_HEADER + INDEX_COUNT_MAX * INDEX_ENTRY + 8)) {
        uint8_t *bytes = mem_new(x->alloc, 1, (size_t)size);
        if (bytes && disk_read_all(disk, file, bytes, (size_t)size, 0) == size
            && decode_all(x, (pawl_bytes){bytes, (size_t)size}, journal, number))
            status = PAWL_OK;
        mem_free(x->alloc, bytes, (size_t)size);
    }
    disk->close(disk->ctx, file);
    return status;
}

uint64_t index_witness(const struct disk *disk, int dir, struct id128 journal, uint32_t number,
                       const pawl_allocator *alloc)
{
    struct index x;
    index_init(&x, alloc);
    uint64_t witness = index_load(&x, disk, dir, journal, number) == PAWL_OK && x.end ? x.end - 1 : 0;
    index_release(&x);
    return witness;
}
