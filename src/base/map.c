#include "base/map.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define CACHE_LINE 64
#define SLOTS_MIN  ((size_t)16)
#define MARK_FULL  (UINT64_C(1) << 63)
#define KEY_AT     sizeof(uint64_t)

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

static inline uint64_t mark_at(const struct map *map, uint64_t index)
{
    return load64(slot_at(map, index));
}

/* How far the key with this mark, lying at index, is from its home. */
static inline uint64_t distance_of(const struct map *map, uint64_t mark, uint64_t index)
{
    return (index - mark) & map->mask;
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

/* True: the key's index. False: the index at which it belongs (M3). There must be slots. */
static inline bool find(const struct map *map, uint64_t mark, const void *key, uint64_t *ret_index)
{
    uint64_t index = mark & map->mask;
    for (uint64_t distance = 0;; distance++, index = (index + 1) & map->mask) {
        const uint8_t *slot = slot_at(map, index);
        uint64_t there = load64(slot);
        bool equal = there == mark && key_equal(slot + KEY_AT, key, map->key_size);
        if (equal || there == 0 || distance_of(map, there, index) < distance) {
            *ret_index = index;
            return equal;
        }
    }
}

/* Free the slot by moving the rest of its run forward by one. Everybody moved gets one further from home, and
 * so keeps M3. */
static void open_gap(struct map *map, uint64_t at)
{
    size_t size = map->slot_size;
    uint64_t end = at;
    while (mark_at(map, end))
        end = (end + 1) & map->mask;
    if (end < at) {
        memmove(slot_at(map, 1), slot_at(map, 0), end * size);
        memcpy(slot_at(map, 0), slot_at(map, map->mask), size);
        end = map->mask;
    }
    memmove(slot_at(map, at + 1), slot_at(map, at), (end - at) * size);
}

/* Fill the slot by moving those behind it back by one, up to one that is at home or an empty one (M2). */
static void close_gap(struct map *map, uint64_t at)
{
    size_t size = map->slot_size;
    uint64_t last = at;
    for (;;) {
        uint64_t next = (last + 1) & map->mask;
        uint64_t mark = mark_at(map, next);
        if (mark == 0 || distance_of(map, mark, next) == 0)
            break;
        last = next;
    }
    if (last < at) {
        memmove(slot_at(map, at), slot_at(map, at + 1), (map->mask - at) * size);
        memcpy(slot_at(map, map->mask), slot_at(map, 0), size);
        at = 0;
    }
    memmove(slot_at(map, at), slot_at(map, at + 1), (last - at) * size);
    memset(slot_at(map, last), 0, sizeof(uint64_t));
}

static void move_all(struct map *to, const struct map *from)
{
    for (size_t i = 0; from->slots && i <= from->mask; i++) {
        const uint8_t *slot = slot_at(from, i);
        uint64_t mark = load64(slot);
        if (mark == 0)
            continue;
        uint64_t index;
        bool found = find(to, mark, slot + KEY_AT, &index);
        assert(!found);
        open_gap(to, index);
        memcpy(slot_at(to, index), slot, to->slot_size);
    }
}

static int grow(struct map *map, size_t slots)
{
    struct map bigger = *map;
    size_t size;
    if (__builtin_mul_overflow(slots, map->slot_size, &size)
        || __builtin_add_overflow(size, CACHE_LINE - 1, &bigger.memory_size))
        return PAWL_ENOMEM;
    bigger.memory = mem_new(map->alloc, bigger.memory_size, 1);
    if (!bigger.memory)
        return PAWL_ENOMEM;
    uintptr_t start = (uintptr_t)bigger.memory;
    bigger.slots = (uint8_t *)bigger.memory + (-start & (CACHE_LINE - 1));
    bigger.mask = slots - 1;
    bigger.room = slots - slots / 4;
    move_all(&bigger, map);
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
    if (map->count == 0 || !find(map, hash | MARK_FULL, key, &index))
        return NULL;
    return slot_at(map, index) + map->value_at;
}

int map_put(struct map *map, uint64_t hash, const void *key, void **ret_value, bool *ret_new)
{
    uint64_t mark = hash | MARK_FULL;
    uint64_t index = 0;
    bool found = map->slots && find(map, mark, key, &index);
    if (!found) {
        if (map->count >= map->room || map->count >= map->limit) {
            int status = map_reserve(map, map->count + 1);
            if (status)
                return status;
            find(map, mark, key, &index);
        }
        open_gap(map, index);
        uint8_t *slot = slot_at(map, index);
        memcpy(slot, &mark, sizeof mark);
        memcpy(slot + KEY_AT, key, map->key_size);
        memset(slot + map->value_at, 0, map->value_size);
        map->count++;
    }
    *ret_value = slot_at(map, index) + map->value_at;
    *ret_new = !found;
    return PAWL_OK;
}

bool map_remove(struct map *map, uint64_t hash, const void *key)
{
    uint64_t index;
    if (map->count == 0 || !find(map, hash | MARK_FULL, key, &index))
        return false;
    close_gap(map, index);
    map->count--;
    return true;
}

void map_clear(struct map *map)
{
    for (size_t i = 0; map->count && i <= map->mask; i++)
        memset(slot_at(map, i), 0, sizeof(uint64_t));
    map->count = 0;
}

bool map_next(const struct map *map, size_t *cursor, const void **ret_key, void **ret_value)
{
    if (map->count == 0)
        return false;
    while (*cursor <= map->mask) {
        uint8_t *slot = slot_at(map, (*cursor)++);
        if (load64(slot) == 0)
            continue;
        *ret_key = slot + KEY_AT;
        *ret_value = slot + map->value_at;
        return true;
    }
    return false;
}
