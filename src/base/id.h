/* base/id.h: the numbers that name things, and what can be read off them.
 *
 * 128-bit ids (operations, journals) are random and written as 32 hex digits, in one way only: lower case.
 * Workspaces have a token (hash.h), whose top bits are the partition. Record IDs are below 2^53, so that JSON
 * keeps them:
 *
 *     bit 50        49 ... 0
 *     C register    base
 *
 *     1 ... 65535         raw: placeholders in a request, for records that have no ID yet
 *     65536 ... 66047     singletons
 *     from 200001         records */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <assert.h>

#include <pawl/types.h>

struct id128 {
    uint64_t high;
    uint64_t low;
};

#define ID128_TEXT_SIZE 33 /* 32 digits and their end */

static inline bool id128_equal(struct id128 a, struct id128 b)
{
    return a.high == b.high && a.low == b.low;
}

/* Zero is no id. */
static inline bool id128_is_zero(struct id128 id)
{
    return (id.high | id.low) == 0;
}

/* text has ID128_TEXT_SIZE bytes. */
void id128_format(struct id128 id, char *text);

/* PAWL_EINVAL unless the text is exactly what format writes. */
int id128_parse(pawl_bytes text, struct id128 *ret_id);

#define PARTITIONS_MAX ((uint32_t)PAWL_PARTITIONS_MAX)

/* partitions: a power of two, 1 to PARTITIONS_MAX. */
static inline uint16_t partition_of(uint64_t token, uint32_t partitions)
{
    assert(partitions >= 1 && partitions <= PARTITIONS_MAX);
    assert((partitions & (partitions - 1)) == 0);
    unsigned bits = (unsigned)__builtin_ctz(partitions);
    /* In two steps, because one partition would be a shift by 64. */
    return (uint16_t)(token >> 1 >> (63 - bits));
}

#define RECORD_BASE_MASK       ((UINT64_C(1) << 50) - 1)
#define RECORD_C_BIT           (UINT64_C(1) << 50)
#define RECORD_RAW_MAX         UINT64_C(65535)
#define RECORD_SINGLETON_FIRST UINT64_C(65536)
#define RECORD_SINGLETON_LAST  UINT64_C(66047)
#define RECORD_FIRST           UINT64_C(200001)

static inline uint64_t record_base(uint64_t id)
{
    return id & RECORD_BASE_MASK;
}

static inline bool record_in_c(uint64_t id)
{
    return (id & RECORD_C_BIT) != 0;
}

static inline uint64_t record_id(uint64_t base, bool c)
{
    assert(base <= RECORD_BASE_MASK);
    return base | (c ? RECORD_C_BIT : 0);
}

static inline bool record_is_raw(uint64_t id)
{
    return id >= 1 && id <= RECORD_RAW_MAX;
}

static inline bool record_is_singleton(uint64_t id)
{
    return id >= RECORD_SINGLETON_FIRST && id <= RECORD_SINGLETON_LAST;
}

#endif
