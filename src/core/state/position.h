/* core/state/position.h: how far the state of a partition has come, and what it sums up to.
 *
 * A row of the state, written in the same transaction as what it speaks of:
 *
 *      0  version   u8    1
 *      1  zero      u8
 *      2  partition u16
 *      4  tables    u32   n
 *      8  offset    u64   of the last event applied
 *     16  place     u64, u64   of that event in the log
 *     32  checksum  u64   of its body: a log that has another event there is another log
 *     40  tables    28 each, ascending: table u32, digest low u64, high u64, rows u64 */
#ifndef CORE_STATE_POSITION_H
#define CORE_STATE_POSITION_H

#include "core/state/key.h"
#include "core/state/overlay.h"
#include "port/log.h"

#define POSITION_VERSION    1
#define POSITION_TABLES_MAX 65536

struct table_digest {
    uint32_t table;
    pawl_digest digest;
};

struct position {
    uint16_t partition;
    uint64_t offset;
    pawl_place place;
    uint64_t checksum;
    struct table_digest *tables; /* ascending */
    size_t table_count;
    size_t table_room;
    uint8_t *bytes; /* of the row */
    const pawl_allocator *alloc;
};

void position_init(struct position *position, const pawl_allocator *alloc, uint16_t partition);
void position_release(struct position *position);

/* From the store; a partition that was never written is at offset 0. PAWL_ECORRUPT; PAWL_ENOMEM. */
int position_read(struct position *position, pawl_reader *reader, pawl_error *error);

/* Add what changes do to their tables, or, if they were not committed after all, take it back. Taking back
 * cannot fail. PAWL_ENOMEM: nothing was added. */
int position_add(struct position *position, const struct changes *changes);
void position_subtract(struct position *position, const struct changes *changes);

/* What it sums a table up to; of one that it does not know, nothing. */
const pawl_digest *position_digest(const struct position *position, uint32_t table);

/* The rows of a table that are the partition's, of so many: a slice of its tokens. Borrows from and to. */
pawl_range position_range(const struct position *position, uint32_t partitions, uint32_t table,
                          uint8_t from[KEY_TOKEN], uint8_t to[KEY_TOKEN]);

/* Put the row into the store's transaction. */
int position_write(struct position *position, pawl_store *store);

#endif
