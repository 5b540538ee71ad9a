/* core/sequence/table.h: the workspaces in memory, one record each.
 *
 * A record holds of each sequence of a workspace the number last given, and which row of those to be written
 * (flusher.c) has the number last durable. So the cache, the values of the open event, those of staged events
 * and those to be flushed are not four maps but one record, found once an event. With three sequences it is one
 * cache line.
 *
 *     index:   hash(wsid) → slot          open addressing, 8 bytes an entry: 32 bits of the hash, and the slot
 *     chunks:  slot → record              of one size a chunk; a record never moves
 *     hand:    goes round the slots       and evicts the first record that was not used since it last came by
 *
 * The hand finds nearly the least recently used record. To use a record costs one byte written into a cache
 * line that is written anyway; a list in order of use would touch the lines of two other records.
 *
 * Rows are gathered in batches, which are numbered. A record knows the last batch that it is in, so that
 * all records of a batch are released by going on to the next number, without visiting them.
 *
 * Invariants
 *   T1  A record is complete: it has a value for each sequence of its kind, never some of them only.
 *   T2  What is pinned is not evicted: it has a row in the batch that gathers or in the one being written, or a
 *       staged event, or the open one. So evicting cannot lose an unflushed value.
 *   T3  Between an entry's home (its hash's low bits) and the entry, no entry of the index is empty; and a
 *       quarter of them is. Removing shifts back, there are no tombstones.
 *   T4  A record that has a row in the batch that gathers is marked with that batch.
 *
 * One thread at a time: the shard's, or the pool's while it recovers. Pointers to records hold until the
 * record is evicted or the table cleared. */
#ifndef CORE_SEQUENCE_TABLE_H
#define CORE_SEQUENCE_TABLE_H

#include "base/hash.h"
#include "core/sequence/kinds.h"

#define NO_SLOT    UINT32_MAX
#define CHUNK_BITS 8 /* a chunk has at most 256 records */

struct record {
    uint64_t wsid;    /* 0: it is no workspace's */
    uint32_t slot;    /* its own */
    uint32_t staged;  /* how many staged events it has. Free: the next free slot. */
    uint32_t batch;   /* that it last got a row in */
    uint16_t kind;    /* place in the kinds */
    uint8_t used;     /* since the hand came by */
    uint8_t known;    /* the storage has its kind, or a row that says it is to be written */
    uint64_t given[]; /* one a place; and behind them, 4 bytes a place, the rows */
};

/* By place: which row of its batch it got last, counted from 1; 0 if it never got one. */
static inline uint32_t *record_rows(struct record *record, const struct kind *kind)
{
    return (uint32_t *)(void *)(record->given + kind->count);
}

struct chunk {
    uint8_t *records; /* on a cache line */
    uint32_t stride;
    uint16_t count;
    uint16_t skipped; /* bytes of its memory before the records */
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
    uint32_t batch;            /* that gathers; never 0 */
    uint32_t write;            /* the batch being written; 0: none */
    uint32_t count;
    uint32_t count_max; /* beyond it the least recently used are evicted, if any may be */
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

/* Shorter than hash_mix, because everything else of a look-up waits for it: the upper half of a product depends
 * on all bits below it, and the upper bits are folded in first. */
static inline uint32_t table_hash(uint64_t wsid)
{
    return (uint32_t)((wsid ^ wsid >> 32) * UINT64_C(0xd6e8feb86659fd93) >> 32);
}

/* The workspace's record, or NULL. */
static inline struct record *table_find(const struct table *table, uint64_t wsid)
{
    uint32_t hash = table_hash(wsid);
    for (uint64_t i = hash & table->mask; table->index[i]; i = (i + 1) & table->mask) {
        if ((uint32_t)(table->index[i] >> 32) != hash)
            continue;
        struct record *record = table_at(table, (uint32_t)table->index[i] - 1);
        if (record->wsid == wsid)
            return record;
    }
    return NULL;
}

/* Prefetch the records of these workspaces, if they are there: first all lines of the index, then all records,
 * so that the memory accesses overlap. */
void table_prefetch(const struct table *table, const uint64_t *wsids, size_t count);

/* A record for a workspace that has none, its values all zero. If the table is full another is evicted.
 * PAWL_ENOMEM: nothing has changed but that. */
int table_insert(struct table *table, uint64_t wsid, uint16_t kind_place, struct record **ret_record);

/* The gathered batch is being written, and a new batch gathers; the write is over. */
static inline void table_write_begin(struct table *table)
{
    table->write = table->batch;
    table->batch += table->batch == UINT32_MAX ? 2 : 1; /* 0 is no batch */
}

static inline void table_write_end(struct table *table)
{
    table->write = 0;
}

/* Evict this one, if it may go. */
bool table_forget(struct table *table, struct record *record);

/* Evict until there are no more than count_max, or none may go. */
void table_trim(struct table *table);

/* Forget all workspaces, keep the memory. */
void table_clear(struct table *table);

#endif
