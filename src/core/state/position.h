/* core/state/position.h: how far the state of a partition has come, and its digests.
 *
 * A row of the state, written in the same transaction as the rows that it covers:
 *
 *      0  version   u8    1
 *      1  zero      u8
 *      2  partition u16
 *      4  tables    u32   n
 *      8  offset    u64   of the last event applied
 *     16  place     u64, u64   of that event in the log
 *     32  checksum  u64   of its body: a log that has another event there is another log
 *     40  tables    28 each, ascending: digests.h */
#ifndef CORE_STATE_POSITION_H
#define CORE_STATE_POSITION_H

#include "core/state/digests.h"
#include "core/state/key.h"
#include "port/log.h"

#define POSITION_VERSION 1

struct position {
    uint16_t partition;
    uint64_t offset;
    pawl_place place;
    uint64_t checksum;
    struct digests digests; /* add to them what is applied */
};

void position_init(struct position *position, const pawl_allocator *alloc, uint16_t partition);
void position_release(struct position *position);

/* From the store; a partition that was never written is at offset 0. PAWL_ECORRUPT; PAWL_ENOMEM. */
int position_read(struct position *position, pawl_reader *reader, pawl_error *error);

/* The rows of a table that are the partition's, of so many: a slice of its tokens. Borrows from and to. */
pawl_range position_range(const struct position *position, uint32_t partitions, uint32_t table,
                          uint8_t from[KEY_TOKEN], uint8_t to[KEY_TOKEN]);

/* Put the row into the store's transaction. */
int position_write(struct position *position, pawl_store *store);

#endif
