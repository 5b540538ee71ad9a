/* core/sequence/table.h: the workspaces in memory, one record each.
 *
 * A record holds all values of a workspace: the number last given and the number last durable of each of its
 * sequences, and which of the latter the view does not have yet. So the cache, the values of the open event,
 * those of staged events and those to be flushed are not four maps but one record, found once an event.
 *
 *     index:   hash(wsid) → slot          open addressing, 8 bytes an entry: 32 bits of the hash, and the slot
 *     chunks:  slot → record              of one size a chunk; a record never moves
 *     order:   NEWEST ⇄ ... ⇄ OLDEST      through the records, of those only that may be evicted
 *
 * Invariants
 *   T1  A record is complete: it has a value for each sequence of its kind, never some of them only.
 *   T2  A record is in the order if and only if its state is 0 and it has no staged event. Whatever pins it
 *       takes it out, so evicting looks at nothing but the order's end, and cannot lose an unflushed value.
 *   T3  Between an entry's home (its hash's low bits) and the entry, no entry of the index is empty; and a
 *       quarter of them is. Removing shifts back, there are no tombstones.
 *   T4  given >= durable for every value, save during recovery (actualizer.c).
 *
 * One thread at a time: the shard's, or the pool's while it recovers. Pointers to records hold until the
 * record is evicted or the table cleared. */
#ifndef CORE_SEQUENCE_TABLE_H
#define CORE_SEQUENCE_TABLE_H

#include "base/hash.h"
#include "core/sequence/kinds.h"

#define NO_SLOT    UINT32_MAX
#define CHUNK_BITS 8 /* a chunk has at most 256 records */

enum record_state {
    RECORD_OPEN = 1,    /* its event is open */
    RECORD_DIRTY = 2,   /* it has a value to be flushed, and is in the dirty list */
    RECORD_WRITING = 4, /* it has a value in the write that is under way */
    RECORD_SUSPECT = 8, /* during recovery: the view has a number that the log has not shown yet */
};

struct record {
    uint64_t wsid;
    uint32_t older;
    uint32_t newer;
    uint32_t staged; /* how many staged events it has */
    uint16_t kind;   /* place in the kinds */
    uint16_t state;
    uint64_t values[]; /* given: one a place; dirty: one bit a place; durable: one a place */
};

static inline uint64_t *record_given(struct record *record)
{
    return record->values;
}

static inline uint64_t *record_dirty(struct record *record, const struct kind *kind)
{
    return record->values + kind->count;
}

static inline uint64_t *record_durable(struct record *record, const struct kind *kind)
{
    return record->values + kind->count + kind->words;
}

struct chunk {
    uint8_t *records;
    uint32_t stride;
    uint32_t count;
    uint32_t next; /* chunk of the same class; UINT32_MAX: none */
};

/* Records of one size. */
struct record_class {
    uint32_t stride;
    uint32_t free;        /* slots given back, linked through older */
    uint32_t chunk_first; /* its chunks, oldest first; UINT32_MAX: none */
    uint32_t chunk_last;
    uint32_t chunk_now; /* the chunk that fresh records come from, and how many of it are used */
    uint32_t used;
};

struct table {
    uint64_t *index; /* hash << 32 | slot + 1; 0: empty */
    uint64_t mask;
    struct chunk *chunks;
    uint32_t chunk_count;
    uint32_t chunk_room;
    struct record_class *classes;
    uint16_t class_count;
    uint32_t newest;
    uint32_t oldest;
    uint32_t count;
    uint32_t count_max; /* beyond it the oldest have to go, if there is one that may */
    uint64_t evictions;
    struct kinds *kinds;
    const pawl_allocator *alloc;
};

static inline struct record *table_at(const struct table *table, uint32_t slot)
{
    const struct chunk *chunk = &table->chunks[slot >> CHUNK_BITS];
    return (struct record *)(void *)(chunk->records
                                     + (size_t)(slot & ((1u << CHUNK_BITS) - 1)) * chunk->stride);
}

/* Sets every kind's class. PAWL_ENOMEM. */
int table_init(struct table *table, const pawl_allocator *alloc, struct kinds *kinds, uint32_t count_max);
void table_release(struct table *table);

/* The workspace's slot, or NO_SLOT. */
static inline uint32_t table_find(const struct table *table, uint64_t wsid)
{
    uint32_t hash = (uint32_t)hash_mix(wsid);
    for (uint64_t i = hash & table->mask; table->index[i]; i = (i + 1) & table->mask) {
        uint32_t slot = (uint32_t)table->index[i] - 1;
        if ((uint32_t)(table->index[i] >> 32) == hash && table_at(table, slot)->wsid == wsid)
            return slot;
    }
    return NO_SLOT;
}

/* A record for a workspace that has none: all zeros, and not in the order: pin it or let it go. If the table is
 * full the oldest is evicted. PAWL_ENOMEM: nothing has changed. */
int table_insert(struct table *table, uint64_t wsid, uint16_t kind_place, uint32_t *ret_slot);

/* Remove a record that is not in the order. */
void table_remove(struct table *table, uint32_t slot);

/* Something pins the record from now on: take it out of the order if it is in. */
void table_pin(struct table *table, uint32_t slot, enum record_state why);

/* This reason no longer pins it; if none is left it becomes the newest in the order. */
void table_unpin(struct table *table, uint32_t slot, enum record_state why);

/* Evict until there are no more than count_max, or none may go. */
void table_trim(struct table *table);

/* Forget all workspaces, keep the memory. */
void table_clear(struct table *table);

#endif
