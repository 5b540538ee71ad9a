#include "base/lru.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

#define NONE ((uint32_t)0) /* the sentinel is nobody's successor in a chain or in the free list */

struct entry {
    uint64_t key;
    uint32_t newer;
    uint32_t older;
    uint32_t next; /* in its chain, or in the free list */
    uint32_t unused;
};
_Static_assert(sizeof(struct entry) % 8 == 0, "values follow, aligned");

static inline struct entry *entry_at(const struct lru *lru, uint32_t index)
{
    return (struct entry *)(void *)(lru->entries + (size_t)index * lru->entry_size);
}

static inline void *value_of(struct entry *entry)
{
    return entry + 1;
}

static inline uint32_t *bucket_of(const struct lru *lru, uint64_t key)
{
    return &lru->buckets[hash_mix(key) & lru->bucket_mask];
}

static inline uint32_t find(const struct lru *lru, uint64_t key)
{
    uint32_t index = *bucket_of(lru, key);
    while (index != NONE && entry_at(lru, index)->key != key)
        index = entry_at(lru, index)->next;
    return index;
}

static void order_unlink(struct lru *lru, uint32_t index)
{
    struct entry *e = entry_at(lru, index);
    entry_at(lru, e->newer)->older = e->older;
    entry_at(lru, e->older)->newer = e->newer;
}

/* The sentinel's older is the newest entry, its newer the oldest: the list is a circle. */
static void order_link_newest(struct lru *lru, uint32_t index)
{
    struct entry *sentinel = entry_at(lru, 0);
    struct entry *e = entry_at(lru, index);
    e->newer = 0;
    e->older = sentinel->older;
    entry_at(lru, e->older)->newer = index;
    sentinel->older = index;
}

static void chain_unlink(struct lru *lru, uint32_t index)
{
    struct entry *e = entry_at(lru, index);
    uint32_t *link = bucket_of(lru, e->key);
    while (*link != index)
        link = &entry_at(lru, *link)->next;
    *link = e->next;
}

static uint32_t take_free(struct lru *lru)
{
    uint32_t index = lru->free;
    if (index == NONE)
        index = lru->fresh++;
    else
        lru->free = entry_at(lru, index)->next;
    assert(index <= lru->capacity + 1);
    return index;
}

static void drop(struct lru *lru, uint32_t index)
{
    assert(index != NONE && lru->count > 0);
    chain_unlink(lru, index);
    order_unlink(lru, index);
    entry_at(lru, index)->next = lru->free;
    lru->free = index;
    lru->count--;
}

static void forget_all(struct lru *lru)
{
    entry_at(lru, 0)->newer = entry_at(lru, 0)->older = 0;
    lru->free = NONE;
    lru->fresh = 1;
    lru->count = 0;
}

static size_t entry_bytes(const struct lru *lru)
{
    return ((size_t)lru->capacity + 2) * lru->entry_size;
}

static size_t bucket_bytes(const struct lru *lru)
{
    return ((size_t)lru->bucket_mask + 1) * sizeof *lru->buckets;
}

int lru_init(struct lru *lru, const pawl_allocator *alloc, uint32_t capacity, size_t value_size)
{
    assert(capacity >= 1 && capacity <= LRU_CAPACITY_MAX);
    assert(value_size <= LRU_VALUE_BYTES_MAX);
    uint32_t buckets = 1;
    while (buckets < capacity)
        buckets *= 2;
    struct lru made = {
        .bucket_mask = buckets - 1,
        .entry_size = (uint32_t)(sizeof(struct entry) + ((value_size + 7) & ~(size_t)7)),
        .capacity = capacity,
        .alloc = alloc,
    };
    made.entries = mem_take(alloc, entry_bytes(&made), 1);
    if (!made.entries)
        return PAWL_ENOMEM;
    made.buckets = mem_new(alloc, bucket_bytes(&made), 1);
    if (!made.buckets)
        goto no_buckets;
    forget_all(&made);
    *lru = made;
    return PAWL_OK;

no_buckets:
    mem_free(alloc, made.entries, entry_bytes(&made));
    return PAWL_ENOMEM;
}

void lru_release(struct lru *lru)
{
    if (!lru->entries)
        return;
    mem_free(lru->alloc, lru->buckets, bucket_bytes(lru));
    mem_free(lru->alloc, lru->entries, entry_bytes(lru));
    *lru = (struct lru){0};
}

void *lru_get(struct lru *lru, uint64_t key)
{
    uint32_t index = find(lru, key);
    if (index == NONE)
        return NULL;
    order_unlink(lru, index);
    order_link_newest(lru, index);
    return value_of(entry_at(lru, index));
}

void *lru_peek(const struct lru *lru, uint64_t key)
{
    uint32_t index = find(lru, key);
    return index == NONE ? NULL : value_of(entry_at(lru, index));
}

void *lru_put(struct lru *lru, uint64_t key, struct lru_evicted *ret_evicted)
{
    *ret_evicted = (struct lru_evicted){0};
    void *value = lru_get(lru, key);
    if (value)
        return value;

    /* Taken before the oldest is dropped, so that it is not the oldest's own (L2). */
    uint32_t index = take_free(lru);
    if (lru->count == lru->capacity) {
        uint32_t oldest = entry_at(lru, 0)->newer;
        drop(lru, oldest);
        *ret_evicted = (struct lru_evicted){entry_at(lru, oldest)->key, value_of(entry_at(lru, oldest))};
    }
    uint32_t *bucket = bucket_of(lru, key);
    struct entry *e = entry_at(lru, index);
    memset(e, 0, lru->entry_size);
    e->key = key;
    e->next = *bucket;
    *bucket = index;
    order_link_newest(lru, index);
    lru->count++;
    return value_of(e);
}

bool lru_remove(struct lru *lru, uint64_t key)
{
    uint32_t index = find(lru, key);
    if (index == NONE)
        return false;
    drop(lru, index);
    return true;
}

void lru_clear(struct lru *lru)
{
    memset(lru->buckets, 0, bucket_bytes(lru));
    forget_all(lru);
}
