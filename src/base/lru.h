/* base/lru.h: a cache of fixed capacity, from u64 keys to values of one size; it drops the least recently used.
 *
 * All memory is taken at init; nothing fails afterwards. Entries are linked by index, not by pointer: one list
 * in order of use, and one chain a bucket.
 *
 *     order:    NEWEST ⇄ ... ⇄ OLDEST           links through the sentinel, entry 0
 *     buckets:  hash → entry → entry → NONE
 *
 * Invariants
 *   L1  Every entry but the sentinel is either in the order and in exactly one chain, or in the free list.
 *   L2  There is one entry more than the capacity, so one is always free: the evicted entry's bytes stay
 *       where they are while the new one is filled.
 *
 * Caveat: pointers to values are borrowed until their key is removed or evicted; an evicted one until the next
 * put. */
#ifndef BASE_LRU_H
#define BASE_LRU_H

#include <pawl/types.h>

#define LRU_CAPACITY_MAX    ((uint32_t)1 << 30)
#define LRU_VALUE_BYTES_MAX 65536

struct lru {
    uint8_t *entries;
    uint32_t *buckets;
    uint32_t bucket_mask;
    uint32_t entry_size;
    uint32_t capacity;
    uint32_t count;
    uint32_t free;  /* entries given back, linked through next */
    uint32_t fresh; /* entries from here on were never used */
    const pawl_allocator *alloc;
};

/* The entry that was dropped; value is NULL if none was. */
struct lru_evicted {
    uint64_t key;
    void *value;
};

/* capacity: 1 to LRU_CAPACITY_MAX. PAWL_ENOMEM. */
int lru_init(struct lru *lru, const pawl_allocator *alloc, uint32_t capacity, size_t value_size);
void lru_release(struct lru *lru);

/* NULL if the key is not there. get makes it the most recently used; peek changes nothing. */
void *lru_get(struct lru *lru, uint64_t key);
void *lru_peek(const struct lru *lru, uint64_t key);

/* The key's value, which becomes the most recently used. If the key was not there it gets zeros for a value,
 * and, if the LRU was full, the least recently used entry has to go: ret_evicted shows it. */
void *lru_put(struct lru *lru, uint64_t key, struct lru_evicted *ret_evicted);

/* Whether the key was there. */
bool lru_remove(struct lru *lru, uint64_t key);
void lru_clear(struct lru *lru);

#endif
