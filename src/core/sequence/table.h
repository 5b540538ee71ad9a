/* core/sequence/table.h: the workspaces in memory, one record each.
 *
 * A record holds all values of a workspace: the number last given and the number last durable of each of its
 * sequences, and which of the latter the view does not have yet. So the cache, the values of the open event,
 * those of staged events and those to be flushed are not four maps but one record, found once an event.
 *
 *     index:   hash(wsid) → slot          open addressing, 8 bytes an entry: 32 bits of the hash, and the slot
 *     chunks:  slot → record              of one size a chunk; a record never moves
 *     hand:    goes round the slots       and evicts the first record that was not used since it last came by
 *
 * The hand is how the least recently used is found, nearly: using a record costs the store of one byte into a
 * line that is being written anyway, where a list in order of use would touch the lines of two strangers.
 *
 * Invariants
 *   T1  A record is complete: it has a value for each sequence of its kind, never some of them only.
 *   T2  What is pinned is not evicted: it has a value to be flushed or in the write under way, or a staged
 *       event, or the open one, or is suspect. So evicting cannot lose an unflushed value.
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
    RECORD_FREE = 1,    /* it is no workspace's */
    RECORD_DIRTY = 2,   /* it has a value to be flushed, and is in the dirty list */
    RECORD_SUSPECT = 4, /* during recovery: the view has a number that the log has not shown yet */
};

struct record {
    uint64_t wsid;
    uint32_t slot;     /* its own */
    uint32_t staged;   /* how many staged events it has. Free: the next free slot. */
    uint32_t write;    /* the write that it was last in */
    uint16_t kind;     /* place in the kinds */
    uint8_t state;     /* RECORD_ bits */
    uint8_t used;      /* since the hand came by */
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
};

/* Records of one size. */
struct record_class {
    uint32_t stride;
    uint32_t free; /* slots linked through staged */
};

struct table {
    uint64_t *index; /* hash << 32 | slot + 1; 0: empty */
    uint64_t mask;
    struct chunk *chunks;
    uint32_t chunk_count;
    uint32_t chunk_room;
    struct record_class *classes;
    uint16_t class_count;
    uint32_t hand_chunk;
    uint32_t hand;
    const struct record *held; /* the open event's */
    uint32_t write;            /* the write under way; 0: none */
    uint32_t write_last;
    uint32_t count;
    uint32_t count_max; /* beyond it the least recently used have to go, if there are some that may */
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

/* The workspace's record, or NULL. */
static inline struct record *table_find(const struct table *table, uint64_t wsid)
{
    uint32_t hash = (uint32_t)hash_mix(wsid);
    for (uint64_t i = hash & table->mask; table->index[i]; i = (i + 1) & table->mask) {
        if ((uint32_t)(table->index[i] >> 32) != hash)
            continue;
        struct record *record = table_at(table, (uint32_t)table->index[i] - 1);
        if (record->wsid == wsid)
            return record;
    }
    return NULL;
}

/* A record for a workspace that has none, its values all zero. If the table is full another is evicted.
 * PAWL_ENOMEM: nothing has changed but that. */
int table_insert(struct table *table, uint64_t wsid, uint16_t kind_place, struct record **ret_record);

/* A write begins, which the records that are marked with table->write are in; it is over. */
static inline void table_write_begin(struct table *table)
{
    table->write_last += table->write_last == UINT32_MAX ? 2 : 1; /* 0 is no write */
    table->write = table->write_last;
}

static inline void table_write_end(struct table *table)
{
    table->write = 0;
}

/* Evict until there are no more than count_max, or none may go. */
void table_trim(struct table *table);

/* Forget all workspaces, keep the memory. */
void table_clear(struct table *table);

#endif
