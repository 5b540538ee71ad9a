/* base/map.h: a hash map from keys of one size to values of one size.
 *
 * The caller brings the hash, because it often has one already (a token) and knows what its keys are made of.
 * Beside the slots lies one byte for each, its tag: empty, or seven bits of the hash. A lookup compares the
 * tags of sixteen neighbours at once and so goes to the right slot nearly always, hit or miss, without a branch
 * that the processor could guess wrongly: one cache line of tags, one of the slot.
 *
 *     slot:  hash (8) | key, padded to 8 | value, padded to 8
 *     tags:  one byte a slot, and the first fifteen once more at the end, so that a group may begin anywhere
 *
 * Invariants (linear probing)
 *   M1  A slot's tag is 0 if it is empty; otherwise the top seven bits of the hash, with the top bit set.
 *   M2  Home is the hash's low bits. Between a key's home and its slot no slot is empty.
 *   M3  At least a quarter of the slots is empty, so every probe ends.
 * Removing shifts back those behind that may move (M2); there are no tombstones, and a map does not slow down
 * with age.
 *
 * Caveats
 *   - Pointers to keys and values are borrowed until the next put, remove, reserve or clear.
 *   - Keys are compared as bytes: a struct with padding must be zeroed before it is filled.
 *   - Values are aligned to 8 bytes.
 *   - Growing moves everything at once: reserve ahead where a pause would matter.
 *   - The order of iteration depends on nothing but the history of calls; it is not to be stored. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <pawl/types.h>

#include "base/hash.h"

#define MAP_KEY_BYTES_MAX   256
#define MAP_VALUE_BYTES_MAX 65536

struct map {
    uint8_t *slots; /* on a cache line, inside memory; NULL until something is put or reserved */
    uint8_t *tags;
    uint64_t mask;
    uint32_t slot_size;
    uint32_t key_size;
    uint32_t value_at;
    uint32_t value_size;
    size_t count;
    size_t room; /* as many as fit before the map must grow */
    size_t limit;
    void *memory;
    size_t memory_size;
    const pawl_allocator *alloc;
};

/* Allocates nothing. limit: how many keys it will ever hold. */
void map_init(struct map *map, const pawl_allocator *alloc, size_t key_size, size_t value_size, size_t limit);
void map_release(struct map *map);

/* Make room for count keys in all. PAWL_ENOMEM; PAWL_ETOOBIG beyond the limit. The map is then unchanged. */
int map_reserve(struct map *map, size_t count);

/* NULL if there is no such key. */
void *map_get(const struct map *map, uint64_t hash, const void *key);

/* The value of the key, which is put there, with zeros for a value, if it is not there yet (then ret_new).
 * Copies the key. Errors as map_reserve. */
int map_put(struct map *map, uint64_t hash, const void *key, void **ret_value, bool *ret_new);

/* Whether there was such a key. */
bool map_remove(struct map *map, uint64_t hash, const void *key);

/* Forget all keys, keep the memory. */
void map_clear(struct map *map);

/* Visit every key once: start with *cursor = 0, until false. The map must not change meanwhile. */
bool map_next(const struct map *map, size_t *cursor, const void **ret_key, void **ret_value);

static inline void *map_get_u64(const struct map *map, uint64_t key)
{
    return map_get(map, hash_mix(key), &key);
}

static inline int map_put_u64(struct map *map, uint64_t key, void **ret_value, bool *ret_new)
{
    return map_put(map, hash_mix(key), &key, ret_value, ret_new);
}

static inline bool map_remove_u64(struct map *map, uint64_t key)
{
    return map_remove(map, hash_mix(key), &key);
}

#endif
