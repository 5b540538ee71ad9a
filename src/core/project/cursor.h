/* core/project/cursor.h: how far a generation of a lane has come in its partition, and the digests of its
 * tables.
 *
 * A row of the state (TABLE_LANE), written in the same transaction as the rows that it counts:
 *
 *      0  version    u8    1
 *      1  zero       u8, u16
 *      4  tables     u32   n
 *      8  applied    u64   number of the last operation applied
 *     16  place      u64, u64   of that operation in its log
 *     32  checksum   u64   of its body
 *     40  scanned    u64   PLog offset of the last event all of whose operations are applied
 *     48  within     u64   how many operations of the event behind it are applied
 *     56  tables     28 each, ascending: core/state/digests.h
 *
 * Its key is TABLE_LANE u32 | partition u64 | lane u16 | generation u32.
 *
 * Numbers are bound in the order of events, and within an event in the order of the projectors. So number
 * applied + 1 is match number (within + 1) of event scanned + 1, or of the first event behind it that has a
 * match. */
#ifndef CORE_PROJECT_CURSOR_H
#define CORE_PROJECT_CURSOR_H

#include "core/state/digests.h"
#include "core/state/overlay.h"
#include "port/log.h"

#define CURSOR_VERSION 1
#define CURSOR_KEY     ((size_t)18)
#define CURSOR_PREFIX  ((size_t)12)

struct cursor {
    uint16_t partition;
    uint16_t lane;
    uint32_t generation;
    uint64_t applied;
    pawl_place place;
    uint64_t checksum;
    uint64_t scanned;
    uint64_t within;
    struct digests digests; /* add to them what is applied */
};

void cursor_init(struct cursor *cursor, const pawl_allocator *alloc, uint16_t partition, uint16_t lane,
                 uint32_t generation);
void cursor_release(struct cursor *cursor);

/* Read it from the store; one that was never written is at 0. PAWL_ECORRUPT, PAWL_EVERSION; PAWL_ENOMEM. */
int cursor_read(struct cursor *cursor, pawl_reader *reader, pawl_error *error);

/* Read from a snapshot only how far it has come, without allocating. Errors as cursor_read, without words. */
int cursor_peek(pawl_reader *reader, uint16_t partition, uint16_t lane, uint32_t generation,
                uint64_t *ret_applied, uint64_t *ret_scanned);

/* Put the row into the store's transaction. PAWL_ENOMEM. */
int cursor_write(struct cursor *cursor, pawl_store *store);

/* The row's key. Those of all lanes of a partition begin with the same CURSOR_PREFIX bytes. */
pawl_bytes cursor_key(uint16_t partition, uint16_t lane, uint32_t generation, uint8_t key[CURSOR_KEY]);

/* Take such a key apart. False: it is no such key. */
bool cursor_key_read(pawl_bytes key, uint16_t *ret_partition, uint16_t *ret_lane, uint32_t *ret_generation);

#endif
