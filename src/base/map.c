#include "base/map.h"

#include <assert.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/alloc.h"

#define CACHE_LINE 64
#define GROUP      16 /* tags that are looked at together */
#define SLOTS_MIN  ((size_t)16)
#define KEY_AT     sizeof(uint64_t)
#define TAG_EMPTY  0
_Static_assert(SLOTS_MIN >= GROUP, "a group does not meet a slot twice");

static size_t pad8(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static inline uint64_t load64(const void *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline uint8_t *slot_at(const struct map *map, uint64_t index)
{
    return map->slots + index * map->slot_size;
}

static inline uint8_t tag_of(uint64_t hash)
{
    return (uint8_t)(0x80 | hash >> 57);
}

static inline void set_tag(struct map *map, uint64_t index, uint8_t tag)
{
    map->tags[index] = tag;
    if (index < GROUP - 1)
        map->tags[map->mask + 1 + index] = tag;
}

/* Bit i is set if tag i of the group equals tag. */
static inline uint32_t group_match(const uint8_t *group, uint8_t tag)
{
#if defined(__SSE2__)
    __m128i tags = _mm_loadu_si128((const __m128i *)(const void *)group);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8((char)tag)));
#else
    uint32_t match = 0;
    for (unsigned i = 0; i < GROUP; i++)
        match |= (uint32_t)(group[i] == tag) << i;
    return match;
#endif
}

/* Word by word, the last one overlapping: a call of memcmp would cost as much as the rest of a lookup. */
static inline bool key_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
    if (size < 8)
        return memcmp(a, b, size) == 0;
    for (size_t at = 0; at + 8 < size; at += 8)
        if (load64(a + at) != load64(b + at))
            return false;
    return load64(a + size - 8) == load64(b + size - 8);
}

/* True: the key's index. False: the index at which it belongs, which is empty. There must be slots. */
static inline bool find(const struct map *map, uint64_t hash, const void *key, uint64_t *ret_index)
{
    uint8_t tag = tag_of(hash);
    /* Most keys lie at home or next to it: in a large map the slot's cache miss then overlaps the tags'. */
    __builtin_prefetch(slot_at(map, hash & map->mask));
    for (uint64_t at = hash & map->mask;; at = (at + GROUP) & map->mask) {
        const uint8_t *group = map->tags + at;
        for (uint32_t hits = group_match(group, tag); hits; hits &= hits - 1) {
            uint64_t index = (at + (uint64_t)__builtin_ctz(hits)) & map->mask;
            if (key_equal(slot_at(map, index) + KEY_AT, key, map->key_size)) {
                *ret_index = index;
                return true;
            }
        }
        uint32_t empty = group_match(group, TAG_EMPTY);
        if (empty) {
            *ret_index = (at + (uint64_t)__builtin_ctz(empty)) & map->mask;
            return false;
        }
    }
}

/* Empty the slot. Move into the hole each later key that would otherwise have an empty slot before it (M2). */
static void empty_slot(struct map *map, uint64_t hole)
{
    for (uint64_t at = (hole + 1) & map->mask; map->tags[at] != TAG_EMPTY; at = (at + 1) & map->mask) {
        const uint8_t *slot = slot_at(map, at);
        uint64_t from_home = (at - load64(slot)) & map->mask;
        uint64_t from_hole = (at - hole) & map->mask;
        if (from_home < from_hole)
            continue;
        memcpy(slot_at(map, hole), slot, map->slot_size);
        set_tag(map, hole, map->tags[at]);
        hole = at;
    }
    set_tag(map, hole, TAG_EMPTY);
}

/* to has no key yet that from has, and room for all of them. */
static void copy_all(struct map *to, const struct map *from)
{
    for (size_t i = 0; from->slots && i <= from->mask; i++) {
        if (from->tags[i] == TAG_EMPTY)
            continue;
        const uint8_t *slot = slot_at(from, i);
        uint64_t at = load64(slot) & to->mask;
        while (to->tags[at] != TAG_EMPTY)
            at = (at + 1) & to->mask;
        memcpy(slot_at(to, at), slot, to->slot_size);
        set_tag(to, at, from->tags[i]);
    }
}

static int grow(struct map *map, size_t slots)
{
    struct map bigger = *map;
    size_t size;
    if (__builtin_mul_overflow(slots, (size_t)map->slot_size + 1, &size)
        || __builtin_add_overflow(size, CACHE_LINE - 1 + GROUP - 1, &bigger.memory_size))
        return PAWL_ENOMEM;
    bigger.memory = mem_new(map->alloc, bigger.memory_size, 1);
    if (!bigger.memory)
        return PAWL_ENOMEM;
    uintptr_t start = (uintptr_t)bigger.memory;
    bigger.slots = (uint8_t *)bigger.memory + (-start & (CACHE_LINE - 1));
    bigger.tags = bigger.slots + slots * map->slot_size;
    bigger.mask = slots - 1;
    bigger.room = slots - slots / 4;
    copy_all(&bigger, map);
    mem_free(map->alloc, map->memory, map->memory_size);
    *map = bigger;
    return PAWL_OK;
}

void map_init(struct map *map, const pawl_allocator *alloc, size_t key_size, size_t value_size, size_t limit)
{
    assert(key_size >= 1 && key_size <= MAP_KEY_BYTES_MAX);
    assert(value_size <= MAP_VALUE_BYTES_MAX);
    size_t value_at = KEY_AT + pad8(key_size);
    *map = (struct map){
        .slot_size = (uint32_t)(value_at + pad8(value_size)),
        .key_size = (uint32_t)key_size,
        .value_at = (uint32_t)value_at,
        .value_size = (uint32_t)value_size,
        .limit = limit,
        .alloc = alloc,
    };
}

void map_release(struct map *map)
{
    mem_free(map->alloc, map->memory, map->memory_size);
    *map = (struct map){0};
}

int map_reserve(struct map *map, size_t count)
{
    if (count > map->limit)
        return PAWL_ETOOBIG;
    if (count <= map->room)
        return PAWL_OK;
    if (count > SIZE_MAX / 4)
        return PAWL_ENOMEM;
    size_t slots = SLOTS_MIN;
    while (slots - slots / 4 < count)
        slots *= 2;
    return grow(map, slots);
}

void *map_get(const struct map *map, uint64_t hash, const void *key)
{
    uint64_t index;
    if (map->count == 0 || !find(map, hash, key, &index))
        return NULL;
    return slot_at(map, index) + map->value_at;
}

int map_put(struct map *map, uint64_t hash, const void *key, void **ret_value, bool *ret_new)
{
    uint64_t index = 0;
    bool found = map->slots && find(map, hash, key, &index);
    if (!found) {
        if (map->count >= map->room || map->count >= map->limit) {
            int status = map_reserve(map, map->count + 1);
            if (status)
                return status;
            find(map, hash, key, &index);
        }
        uint8_t *slot = slot_at(map, index);
        memcpy(slot, &hash, sizeof hash);
        memcpy(slot + KEY_AT, key, map->key_size);
        memset(slot + map->value_at, 0, map->value_size);
        set_tag(map, index, tag_of(hash));
        map->count++;
    }
    *ret_value = slot_at(map, index) + map->value_at;
    *ret_new = !found;
    return PAWL_OK;
}

bool map_remove(struct map *map, uint64_t hash, const void *key)
{
    uint64_t index;
    if (map->count == 0 || !find(map, hash, key, &index))
        return false;
    empty_slot(map, index);
    map->count--;
    return true;
}

void map_clear(struct map *map)
{
    if (map->tags)
        memset(map->tags, TAG_EMPTY, map->mask + GROUP);
    map->count = 0;
}

bool map_next(const struct map *map, size_t *cursor, const void **ret_key, void **ret_value)
{
    if (map->count == 0)
        return false;
    while (*cursor <= map->mask) {
        size_t index = (*cursor)++;
        if (map->tags[index] == TAG_EMPTY)
            continue;
        uint8_t *slot = slot_at(map, index);
        *ret_key = slot + KEY_AT;
        *ret_value = slot + map->value_at;
        return true;
    }
    return false;
}
