/* adapter/journal/index.h: where in a segment a stream's offsets lie, roughly.
 *
 * For every stream in a segment its first record, and one more about every 64 KiB. The index
 * only makes reading faster; what is read never depends on it. It is written without a sync when a segment is
 * sealed. It is made again from the segment if it is missing or damaged, or if it ends before the segment does,
 * because the segment was closed and then extended.
 *
 * The last entry says how far the index goes: kind 0, and the LSN behind the last record. That record was
 * synced before the index was written, so the index is a witness too: a newest segment that ends before its
 * index does has lost records.
 *
 * The file: magic 8 "PAWLIDX" and a newline, version u32, number u32, journal ID 16, count u64, then entries of
 * 40 bytes: kind u8, zero u8, partition u16, lane u16, zero u16, generation u32, zero u32, offset u64, LSN u64,
 * byte u64; then XXH3_64 of everything before, seed 0. */
#ifndef JOURNAL_INDEX_H
#define JOURNAL_INDEX_H

#include "adapter/journal/segment.h"

#define INDEX_STEP ((uint64_t)64 << 10)

struct index_entry {
    pawl_stream stream;
    uint64_t offset;
    uint64_t lsn;
    uint64_t at;
};

struct index {
    const pawl_allocator *alloc;
    struct index_entry *items;
    size_t count;
    size_t room;
    uint64_t end;    /* of one that was loaded: the LSN behind the last record; 0: it does not say */
    struct map last; /* stream -> byte of its last item, plus one */
};

void index_init(struct index *x, const pawl_allocator *alloc);
void index_clear(struct index *x);
void index_release(struct index *x);

/* Whether index_add would add this one. */
bool index_wants(const struct index *x, pawl_stream stream, uint64_t at);

/* Without memory the entry is left out: a search then starts further in front. */
void index_add(struct index *x, pawl_stream stream, uint64_t offset, uint64_t lsn, uint64_t at);

/* The nearest entry of the stream at or before offset; false if there is none. */
bool index_find(const struct index *x, pawl_stream stream, uint64_t offset, struct index_entry *ret_entry);

/* end: the LSN behind the last record, all of which are durable. */
int index_save(const struct index *x, uint64_t end, const struct disk *disk, int dir, struct id128 journal,
               uint32_t number);

/* PAWL_ENOTFOUND: there is none, or none that can be believed. */
int index_load(struct index *x, const struct disk *disk, int dir, struct id128 journal, uint32_t number);

/* The highest LSN that a segment's index knows to be durable; 0 if there is no such index. */
uint64_t index_witness(const struct disk *disk, int dir, struct id128 journal, uint32_t number,
                       const pawl_allocator *alloc);

#endif
