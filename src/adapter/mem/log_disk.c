#include "adapter/mem/log_disk.h"

#include <assert.h>
#include <string.h>

#include "adapter/mem/log_stream.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"

/* Who claims in the place of a rival that was ordered. */
#define NODE_RIVAL UINT64_MAX

int mem_log_disk_open(uint64_t seed, const pawl_allocator *allocator, struct mem_log_disk **ret_disk)
{
    struct mem_log_disk *disk = mem_new(allocator, 1, sizeof *disk);
    if (!disk)
        return PAWL_ENOMEM;
    disk->alloc = allocator;
    disk->random = seed;
    *ret_disk = disk;
    return PAWL_OK;
}

static void free_records(struct mem_log_disk *disk, struct disk_stream *s, uint64_t from)
{
    for (uint64_t i = from; i < s->count; i++)
        disk_record_free(disk, s->records[i]);
    s->count = from;
}

void mem_log_disk_close(struct mem_log_disk *disk)
{
    while (disk->logs) /* closed, with something on the wire for which there was no time any more */
        log_free(disk->logs);
    for (struct disk_stream *s = disk->streams, *next; s; s = next) {
        next = s->next;
        free_records(disk, s, 0);
        for (struct disk_record *r = s->late, *after; r; r = after) {
            after = r->next;
            disk_record_free(disk, r);
        }
        mem_free(disk->alloc, s->records, s->capacity * sizeof *s->records);
        mem_free(disk->alloc, s, sizeof *s);
    }
    mem_free(disk->alloc, disk, sizeof *disk);
}

uint64_t disk_random(struct mem_log_disk *disk)
{
    disk->random += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(disk->random);
}

void mem_log_disk_crash(struct mem_log_disk *disk)
{
    disk->crashes++;
    for (struct disk_stream *s = disk->streams; s; s = s->next)
        free_records(disk, s, s->final + disk_random(disk) % (s->count - s->final + 1));
}

struct disk_stream *disk_stream_of(struct mem_log_disk *disk, pawl_stream id)
{
    for (struct disk_stream *s = disk->streams; s; s = s->next)
        if (pawl_stream_equal(s->id, id))
            return s;
    struct disk_stream *s = mem_new(disk->alloc, 1, sizeof *s);
    if (!s)
        return NULL;
    s->id = id;
    s->next = disk->streams;
    disk->streams = s;
    return s;
}

struct disk_record *disk_record_new(struct mem_log_disk *disk, size_t size)
{
    struct disk_record *r = mem_resize(disk->alloc, NULL, 0, sizeof *r + size);
    if (!r)
        return NULL;
    *r = (struct disk_record){.size = size};
    return r;
}

void disk_record_free(struct mem_log_disk *disk, struct disk_record *record)
{
    if (record)
        mem_free(disk->alloc, record, sizeof *record + record->size);
}

uint64_t disk_record_checksum(const struct disk_record *r)
{
    const struct claim_record *h = &r->head;
    uint8_t bytes[64];
    struct encoder e = encoder_over(bytes, sizeof bytes);
    encode_u8(&e, h->kind);
    encode_u8(&e, h->last);
    encode_u32(&e, h->fragment);
    encode_u64(&e, h->epoch);
    encode_u64(&e, h->offset);
    encode_u64(&e, h->chain);
    encode_u64(&e, h->node);
    encode_u64(&e, h->nonce);
    encode_u64(&e, h->group0);
    encode_u8(&e, r->kind);
    assert(!e.bad);
    uint64_t seed = hash_checksum(0, (pawl_bytes){bytes, encoder_size(&e)});
    return hash_checksum(seed, (pawl_bytes){r->body, r->size});
}

/* Takes the record; false, and it is gone, if there is no memory. */
static bool put(struct mem_log_disk *disk, struct disk_stream *s, struct disk_record *r)
{
    if (s->count == s->capacity) {
        uint64_t capacity = s->capacity ? s->capacity * 2 : 64;
        void *records = mem_resize(disk->alloc, s->records, s->capacity * sizeof *s->records,
                                   capacity * sizeof *s->records);
        if (!records) {
            disk_record_free(disk, r);
            return false;
        }
        s->records = records;
        s->capacity = capacity;
    }
    r->head.position = s->count;
    r->next = NULL;
    s->records[s->count++] = r;
    return true;
}

static void put_copy(struct mem_log_disk *disk, struct disk_stream *s, const struct disk_record *r)
{
    struct disk_record *copy = disk_record_new(disk, r->size);
    if (!copy)
        return;
    memcpy(copy, r, sizeof *r + r->size);
    put(disk, s, copy);
}

static void put_rival(struct mem_log_disk *disk, struct disk_stream *s, const struct disk_record *claim)
{
    struct disk_record *r = disk_record_new(disk, 0);
    if (!r)
        return;
    r->head = claim->head;
    r->head.node = NODE_RIVAL;
    r->head.nonce = disk_random(disk);
    r->head.checksum = disk_record_checksum(r);
    put(disk, s, r);
}

static void put_late(struct mem_log_disk *disk, struct disk_stream *s)
{
    while (s->late && disk_random(disk) % 2) {
        struct disk_record *r = s->late;
        s->late = r->next;
        put(disk, s, r);
    }
}

uint64_t disk_land(struct mem_log_disk *disk, struct disk_stream *s, struct disk_record *r)
{
    put_late(disk, s);
    enum mem_log_fault_kind fate = r->fate;
    switch (fate) {
    case MEM_LOG_FAIL:
    case MEM_LOG_LOST: disk_record_free(disk, r); return CLAIM_NOWHERE;
    case MEM_LOG_LATE:
        r->next = s->late;
        s->late = r;
        return CLAIM_NOWHERE;
    case MEM_LOG_TWICE: put_copy(disk, s, r); break;
    case MEM_LOG_RIVAL: put_rival(disk, s, r); break;
    default: break;
    }
    uint64_t position = s->count;
    if (!put(disk, s, r))
        return CLAIM_NOWHERE;
    return fate == MEM_LOG_LANDED ? CLAIM_NOWHERE : position;
}

void disk_finalise(struct disk_stream *s, uint64_t position)
{
    assert(position <= s->count);
    if (position <= s->final)
        return;
    s->final = position;
    for (struct disk_watcher *w = s->watchers; w; w = w->next)
        w->fn(w);
}

void disk_watch(struct disk_stream *s, struct disk_watcher *watcher)
{
    watcher->next = s->watchers;
    s->watchers = watcher;
}

void disk_unwatch(struct disk_stream *s, struct disk_watcher *watcher)
{
    struct disk_watcher **at = &s->watchers;
    while (*at != watcher)
        at = &(*at)->next;
    *at = watcher->next;
}
