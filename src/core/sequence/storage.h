/* core/sequence/storage.h: the rows of the sequence storage, as bytes.
 *
 *     key    partition u64, wsid u64, name u16    big-endian, so that a workspace's rows lie together
 *     value  last number u64                      little-endian
 *
 * 26 bytes a row. The row (partition, 0, SEQ_PLOG_OFFSET) holds the offset up to which the storage is
 * complete. */
#ifndef CORE_SEQUENCE_STORAGE_H
#define CORE_SEQUENCE_STORAGE_H

#include "base/bytes.h"
#include "port/store.h"

#define SEQUENCE_KEY_BYTES   ((size_t)18)
#define SEQUENCE_VALUE_BYTES ((size_t)8)
#define SEQUENCE_SPACE       1 /* of a store's key spaces */

/* The names that every schema has. */
enum system_sequence {
    SEQ_PLOG_OFFSET = 1, /* sys.PLogOffsetSeq: the partition's own */
    SEQ_WLOG_OFFSET = 2, /* sys.WLogOffsetSeq */
    SEQ_REC_ID = 3,      /* sys.RecIDSeq: the O/W register */
    SEQ_CREC_ID = 4,     /* sys.CRecIDSeq: the C register */
};

static inline pawl_bytes sequence_key(uint64_t partition, uint64_t wsid, uint16_t name,
                                      uint8_t key[SEQUENCE_KEY_BYTES])
{
    put_u64_sorted(key, partition);
    put_u64_sorted(key + 8, wsid);
    key[16] = (uint8_t)(name >> 8);
    key[17] = (uint8_t)name;
    return (pawl_bytes){key, SEQUENCE_KEY_BYTES};
}

/* The offset up to which a partition's storage is complete; 0: it was never written. Errors: PAWL_ECORRUPT, and
 * the store's. */
static inline int sequence_read_offset(pawl_reader *reader, uint16_t partition, uint64_t *ret_offset)
{
    uint8_t key[SEQUENCE_KEY_BYTES];
    pawl_bytes value;
    int status =
        pawl_store_get(reader, SEQUENCE_SPACE, sequence_key(partition, 0, SEQ_PLOG_OFFSET, key), &value);
    if (status == PAWL_OK && value.size != SEQUENCE_VALUE_BYTES)
        return PAWL_ECORRUPT;
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return status;
    *ret_offset = status == PAWL_OK ? get_u64(value.data) : 0;
    return PAWL_OK;
}

#endif
