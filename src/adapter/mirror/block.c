/* adapter/mirror/block.c: entries in blocks, and the index of blocks by stream and offset. docs/FORMAT.md has the
 * bytes. */
#include <assert.h>

#include "adapter/mirror/impl.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"

enum {
    AT_SUM = 0,
    AT_HEAD_SUM = 8,
    AT_MAGIC = 16,
    AT_KIND = 20,
    AT_PARTITION = 22,
    AT_LANE = 24,
    AT_GENERATION = 28,
    AT_FIRST = 32,
    AT_COUNT = 40,
    AT_SIZE = 48,
};

static const uint8_t magic[4] = {'P', 'W', 'M', MIRROR_VERSION};

static size_t padded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* --- bytes --- */

static uint64_t sum_of_head(const uint8_t *bytes)
{
    return hash_checksum(0, (pawl_bytes){bytes + AT_MAGIC, BLOCK_HEADER - AT_MAGIC});
}

void block_seal_bytes(struct block *b)
{
    uint8_t *to = b->bytes;
    pawl_stream s = b->stream->id;
    memset(to, 0, BLOCK_HEADER);
    memcpy(to + AT_MAGIC, magic, sizeof magic);
    put_u8(to + AT_KIND, s.kind);
    put_u16(to + AT_PARTITION, s.partition);
    put_u16(to + AT_LANE, s.lane);
    put_u32(to + AT_GENERATION, s.generation);
    put_u64(to + AT_FIRST, b->first);
    put_u64(to + AT_COUNT, b->end - b->first);
    put_u64(to + AT_SIZE, b->size);
    put_u64(to + AT_HEAD_SUM, sum_of_head(to));
    put_u64(to + AT_SUM,
            hash_checksum(get_u64(to + AT_HEAD_SUM), (pawl_bytes){to + BLOCK_HEADER, b->size - BLOCK_HEADER}));
}

bool block_head_read(const uint8_t *head, pawl_stream *ret_id, uint64_t *ret_first, uint64_t *ret_end,
                     size_t *ret_size)
{
    if (memcmp(head + AT_MAGIC, magic, sizeof magic) != 0 || get_u64(head + AT_HEAD_SUM) != sum_of_head(head))
        return false;
    *ret_id = (pawl_stream){.kind = head[AT_KIND],
                            .partition = get_u16(head + AT_PARTITION),
                            .lane = get_u16(head + AT_LANE),
                            .generation = get_u32(head + AT_GENERATION)};
    *ret_first = get_u64(head + AT_FIRST);
    *ret_end = *ret_first + get_u64(head + AT_COUNT);
    *ret_size = get_u64(head + AT_SIZE);
    return pawl_stream_valid(*ret_id) && *ret_first > 0 && *ret_end > *ret_first && *ret_size > BLOCK_HEADER
           && *ret_size <= PAWL_ENTRY_BYTES_MAX + 2 * BLOCK_BYTES;
}

bool block_check(const uint8_t *bytes, size_t size)
{
    return get_u64(bytes + AT_SUM)
           == hash_checksum(get_u64(bytes + AT_HEAD_SUM),
                            (pawl_bytes){bytes + BLOCK_HEADER, size - BLOCK_HEADER});
}

static void put_entry(struct block *b, const pawl_entry *entry, pawl_place place)
{
    uint8_t *to = b->bytes + b->size;
    size_t size = padded(ENTRY_HEADER + entry->body.size);
    memset(to, 0, ENTRY_HEADER);
    put_u32(to, (uint32_t)entry->body.size);
    put_u8(to + 4, entry->kind);
    put_u64(to + 8, entry->epoch);
    put_u64(to + 16, place.position);
    put_u64(to + 24, place.hint);
    if (entry->body.size > 0)
        memcpy(to + ENTRY_HEADER, entry->body.data, entry->body.size);
    memset(to + ENTRY_HEADER + entry->body.size, 0, size - ENTRY_HEADER - entry->body.size);
    b->size += size;
    b->end++;
}

const uint8_t *block_entry(const uint8_t *bytes, size_t size, const uint8_t *at, pawl_stream stream,
                           uint64_t offset, pawl_entry *ret_entry, pawl_place *ret_place)
{
    const uint8_t *end = bytes + size;
    if (at + ENTRY_HEADER > end)
        return NULL;
    size_t body = get_u32(at), whole = padded(ENTRY_HEADER + body);
    if (whole > (size_t)(end - at))
        return NULL;
    *ret_entry = (pawl_entry){.stream = stream,
                              .epoch = get_u64(at + 8),
                              .offset = offset,
                              .kind = at[4],
                              .body = {body > 0 ? at + ENTRY_HEADER : NULL, body}};
    *ret_place = (pawl_place){get_u64(at + 16), get_u64(at + 24)};
    return at + whole;
}

/* --- the index --- */

struct key {
    uint64_t low;
    uint64_t high;
};

struct mirrored *mirror_stream(struct mirror *m, pawl_stream id, bool make)
{
    struct key key = {.low = (uint64_t)id.kind << 32 | (uint64_t)id.partition << 16 | id.lane,
                      .high = id.generation};
    uint64_t hash = hash_mix(key.low ^ hash_mix(key.high));
    struct mirrored **found = map_get(&m->by_stream, hash, &key);
    void *slot;
    bool is_new;
    if (found || !make)
        return found ? *found : NULL;
    if (m->stream_count == m->stream_room) {
        size_t room = m->stream_room ? m->stream_room * 2 : 16;
        void *streams =
            mem_resize(m->alloc, m->streams, m->stream_room * sizeof *m->streams, room * sizeof *m->streams);
        if (!streams)
            return NULL;
        m->streams = streams;
        m->stream_room = room;
    }
    struct mirrored *s = mem_new(m->alloc, 1, sizeof *s);
    if (!s || map_put(&m->by_stream, hash, &key, &slot, &is_new) != PAWL_OK) {
        mem_free(m->alloc, s, s ? sizeof *s : 0);
        return NULL;
    }
    s->id = id;
    memcpy(slot, &s, sizeof s);
    m->streams[m->stream_count++] = s;
    return s;
}

struct block *block_new(struct mirror *m, struct mirrored *stream, uint64_t first, size_t room)
{
    struct block *b = mem_new(m->alloc, 1, sizeof *b);
    if (!b)
        return NULL;
    *b = (struct block){.stream = stream, .first = first, .end = first, .size = BLOCK_HEADER, .room = room};
    if (room > 0 && !(b->bytes = mem_new(m->alloc, 1, room))) {
        mem_free(m->alloc, b, sizeof *b);
        return NULL;
    }
    return b;
}

void block_free(struct mirror *m, struct block *b)
{
    mem_free(m->alloc, b->bytes, b->room);
    mem_free(m->alloc, b, sizeof *b);
}

int block_add(struct mirror *m, struct mirrored *s, struct block *b)
{
    if (s->begin > 0 && s->begin + s->count == s->room) {
        memmove(s->blocks, s->blocks + s->begin, s->count * sizeof s->blocks[0]);
        s->begin = 0;
    }
    if (s->begin + s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 8;
        void *blocks =
            mem_resize(m->alloc, s->blocks, s->room * sizeof s->blocks[0], room * sizeof s->blocks[0]);
        if (!blocks)
            return PAWL_ENOMEM;
        s->blocks = blocks;
        s->room = room;
    }
    s->blocks[s->begin + s->count++] = b;
    return PAWL_OK;
}

static struct block *last_of(const struct mirrored *s)
{
    return s->count > 0 ? s->blocks[s->begin + s->count - 1] : NULL;
}

const struct block *mirror_find(const struct mirrored *s, uint64_t offset)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->blocks[s->begin + middle]->end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    const struct block *b = low < s->count ? s->blocks[s->begin + low] : NULL;
    return b && b->first <= offset ? b : NULL;
}

/* Blocks of a stream are written in their order (M3), so those that are not lie at its end. */
uint64_t mirror_unwritten(const struct mirror *m)
{
    uint64_t entries = 0;
    for (size_t i = 0; i < m->stream_count; i++) {
        const struct mirrored *s = m->streams[i];
        for (size_t n = s->count; n > 0 && !s->blocks[s->begin + n - 1]->segment; n--)
            entries += s->blocks[s->begin + n - 1]->end - s->blocks[s->begin + n - 1]->first;
    }
    return entries;
}

/* Blocks leave the index in any case; those that wait to be written are freed by the thread. */
void mirror_forget(struct mirror *m, const struct segment *segment)
{
    for (size_t i = 0; i < m->stream_count; i++) {
        struct mirrored *s = m->streams[i];
        size_t kept = 0;
        for (size_t n = 0; n < s->count; n++) {
            struct block *b = s->blocks[s->begin + n];
            if (b->segment && (!segment || b->segment == segment))
                block_free(m, b);
            else
                s->blocks[s->begin + kept++] = b;
        }
        s->count = kept;
    }
}

void block_close(struct mirror *m, struct block *b)
{
    b->closed = true;
    b->next = NULL;
    *m->last_waiting = b;
    m->last_waiting = &b->next;
    m->waiting_bytes += b->size;
    pthread_cond_signal(&m->wake);
}

/* Room for an entry in the last block of a stream; NULL: none. */
static struct block *room_for(struct mirror *m, struct mirrored *s, uint64_t offset, size_t size)
{
    struct block *b = last_of(s);
    if (b && !b->closed && b->end == offset && b->size + size <= b->room)
        return b;
    if (b && !b->closed && b->end == offset && b->size + size <= BLOCK_BYTES) {
        size_t room = b->room * 2 < b->size + size ? b->size + size : b->room * 2;
        uint8_t *bytes = mem_resize(m->alloc, b->bytes, b->room, room);
        if (!bytes)
            return NULL;
        b->bytes = bytes;
        b->room = room;
        return b;
    }
    if (b && !b->closed)
        block_close(m, b);
    size_t least = (size_t)4 << 10;
    b = block_new(m, s, offset, BLOCK_HEADER + size < least ? least : BLOCK_HEADER + size);
    if (b && block_add(m, s, b) != PAWL_OK) {
        block_free(m, b);
        b = NULL;
    }
    return b;
}

void mirror_put(struct mirror *m, const pawl_entry *entry, pawl_place place, bool was_read)
{
    if (!m->running || m->off.code != PAWL_OK) {
        m->figures.dropped += !was_read;
        return;
    }
    struct mirrored *s = mirror_stream(m, entry->stream, true);
    struct block *last = s ? last_of(s) : NULL;
    if (!s || (last && (entry->offset < last->end || (was_read && entry->offset > last->end))))
        return;
    size_t size = padded(ENTRY_HEADER + entry->body.size);
    if (m->waiting_bytes + size > WAITING_MAX) { /* the disk is slow: what follows leaves a gap */
        m->figures.dropped += !was_read;
        return;
    }
    struct block *b = room_for(m, s, entry->offset, size);
    if (b)
        put_entry(b, entry, place);
}
